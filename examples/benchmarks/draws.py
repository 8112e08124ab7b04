"""Cost of a draw, as a ratio of ``np.exp`` of all scores measured side by side in this run.

    python examples/benchmarks/draws.py

Process time, one BLAS thread: rounds of draws on a precomputed float32 kernel, after the
first 150 draws and up to 3000, against ``np.exp`` of a float64 array of N x k.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

from marginsvm import AdaptiveSamplingKernelClassifier
from marginsvm.problem.adapter import GramAdapter
from marginsvm.problem.column_cache import ColumnPlan
from marginsvm.problem.rows import make_rows

N, k, d = 10_000, 10, 50
rng = np.random.default_rng(0)
y = rng.integers(0, k, N)
X = (rng.standard_normal((N, d)) + 1.5 * rng.standard_normal((k, d))[y]).astype(
    np.float32
)
K = X @ X.T
Z = -30.0 * rng.random((N, k))


def microseconds(work, repeat=20):
    work()
    begin = time.process_time()
    for _ in range(repeat):
        work()
    return (time.process_time() - begin) / repeat * 1e6


with threadpool_limits(1):
    for fit_intercept in (False, True):
        rows = make_rows(y, k, balanced=fit_intercept)
        data = GramAdapter(None, K, rows, np.inf, plan=ColumnPlan(0.0, 1))
        for schedule in ("momentum", "theory"):
            clf = AdaptiveSamplingKernelClassifier(
                fit_intercept=fit_intercept,
                schedule=schedule,
                max_iter=3000,
                random_state=0,
            )
            state, ratios, draws = clf._algorithm().start(data), [], []
            while state.t < clf.max_iter:
                exp, begin = microseconds(lambda: np.exp(Z)), time.process_time()
                after = clf._algorithm().step(data, state)
                cost = (time.process_time() - begin) / (after.t - state.t) * 1e6
                if state.t > 150:
                    draws.append(cost)
                    ratios.append(cost / exp)
                state = after
            print(
                f"intercept {fit_intercept!s:5}, {schedule:8}: {np.median(draws):5.0f} us a draw, "
                f"ratio {np.median(ratios):.2f} (worst round {max(ratios):.2f})"
            )
