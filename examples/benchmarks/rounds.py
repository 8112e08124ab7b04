"""Cost of a round, as ratios of plain products measured side by side in this run.

    python examples/benchmarks/rounds.py

A round of the momentum method is averaged over 100 rounds of a whole fit, validation and
certificates included. Medians of several repetitions; the number of BLAS threads is stated.
"""

import time
import tracemalloc
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from marginsvm import MomentumMarginClassifier

warnings.simplefilter("ignore", ConvergenceWarning)
rng = np.random.default_rng(0)


def seconds(work, repeat=7):
    work()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def both_products(X, W, V):
    return X @ W, X.T @ V


def report(name, unit, X, y, reference, rounds=100, **params):
    clf = MomentumMarginClassifier(max_iter=rounds, tol=0.0, **params)
    fits, references = [], []
    for _ in range(3):
        references.append(seconds(reference))
        fits.append(seconds(lambda: clf.fit(X, y), repeat=1) / rounds)
    ratio = np.median(np.array(fits) / np.array(references))
    mine, base = 1e3 * np.median(fits), 1e3 * np.median(references)
    print(f"{name:46s} {mine:8.2f} ms   {unit:16s} {base:8.2f} ms   ratio {ratio:.2f}")


threads = {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
print(f"BLAS threads: {threads}")
n, d = 21150, 784
y = np.where(rng.random(n) < 0.5, 1, -1)
for dtype in (np.float64, np.float32):
    X = rng.standard_normal((n, d)).astype(dtype)
    X[:, 0] += 5 * y
    for order in "CF":
        for intercept in (True, False):
            A = np.asarray(X, order=order)
            name = f"{n} x {d} {np.dtype(dtype)} {order}, intercept {intercept}"
            report(name, "X.sum()", A, y, A.sum, fit_intercept=intercept)
    tracemalloc.start()
    MomentumMarginClassifier(max_iter=20, tol=0.0).fit(X, y)
    print(
        f"  extra memory of a fit: {tracemalloc.get_traced_memory()[1] / X.nbytes:.1%} of X"
    )
    tracemalloc.stop()

X = sp.random_array((n, d), density=0.2, format="csr", rng=rng)
w, v = rng.standard_normal(d), rng.standard_normal(n)
report(
    "the same, CSR, density 0.2",
    "X @ w + X.T @ v",
    X,
    y,
    partial(both_products, X, w, v),
)

n, k = 60000, 10
y = rng.integers(0, k, n)
for dtype in (np.float64, np.float32):
    X, W, V = (rng.standard_normal(s).astype(dtype) for s in ((n, d), (d, k), (n, k)))
    for intercept in (True, False):
        name = f"{n} x {d} x {k} {np.dtype(dtype)}, intercept {intercept}"
        products = partial(both_products, X, W, V)
        report(
            name, "X @ W + X.T @ V", X, y, products, rounds=30, fit_intercept=intercept
        )
