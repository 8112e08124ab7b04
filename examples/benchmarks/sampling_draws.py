"""What a draw of adaptive sampling costs by NumPy and in the compiled loop.

    python examples/benchmarks/sampling_draws.py [DRAWS ...]

Microseconds of a draw, without the kernel's columns, on clouds of 1,000 to 60,000 examples (rbf
kernel): medians of fits that alternate between the two. Their predictors must agree. Limit BLAS to
one thread.
"""

import sys
import time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from marginsvm.algorithms.adaptive_sampling import AdaptiveSampling
from marginsvm.algorithms.draws import CompiledDraws, Draws
from marginsvm.algorithms.sampling_state import uniforms
from marginsvm.kernel_matrix import GramAdapter, make_rows
from marginsvm.kernel_matrix.columns import ColumnPlan

SIZES, CLASSES, REPEATS, CACHE = (1_000, 10_000, 60_000), (2, 10), 3, 3_000.0  # cache: MB


def problem(n, k, balanced):
    """Clouds of k classes around random centres."""
    rng, y = np.random.default_rng(0), np.arange(n) % k
    X = rng.standard_normal((n, 10)) + 1.5 * rng.standard_normal((k, 10))[y]
    rows, plan = make_rows(y, k, balanced=balanced), ColumnPlan(CACHE, 16)
    return GramAdapter(
        lambda a, b: rbf_kernel(a, b, gamma=0.1), X.astype("f4"), rows, 1.0, plan=plan
    )


def timed(kind, data, n):
    """Seconds of n draws, and the scores that they end with."""
    state, seconds = AdaptiveSampling(n, random_state=0).start(data).copy(), 0.0
    theta, beta = np.ones(n), np.arange(n) / (np.arange(n) + 1.0)
    u = uniforms(0, 0, n, 1 + data.rows.n_classes)
    draws = kind(data, state)
    made = draws.made

    def measured(*schedules):
        nonlocal seconds
        begin = time.perf_counter()
        number = made(*schedules)
        seconds += time.perf_counter() - begin
        return number

    draws.made = measured
    draws.play(theta, beta, u)
    return seconds, state.w


print("intercept classes examples draws compiled NumPy ratio")
for n_draws in [int(arg) for arg in sys.argv[1:]] or [2_000]:
    for balanced in (True, False):
        for k in CLASSES:
            for n in SIZES:
                data, times = problem(n, k, balanced), {CompiledDraws: [], Draws: []}
                timed(CompiledDraws, data, 20)  # compiled, or loaded
                for _ in range(REPEATS):
                    (a, w), (b, v) = (timed(kind, data, n_draws) for kind in times)
                    times[CompiledDraws].append(a), times[Draws].append(b)
                    np.testing.assert_allclose(v, w, atol=1e-6 * np.abs(w).max())
                a, b = (1e6 * np.median(seconds) / n_draws for seconds in times.values())
                print(f"{balanced!s:9} {k:7} {n:8} {n_draws:5} {a:8.1f} {b:5.1f} {b / a:5.1f}")
