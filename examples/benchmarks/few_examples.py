"""Rounds, draws and epochs on few examples, beside the arithmetic that they need.

    python examples/benchmarks/few_examples.py

CPU time of one thread, microseconds of whole fits over their iterations, and in the same process:

- a round of ``MomentumMarginClassifier(C=1)``: a plain NumPy loop of the momentum method without
  slack, bounds and results (several classes: also without an intercept);
- a draw of ``AdaptiveSamplingKernelClassifier(C=1)``: ``np.exp`` of all scores;
- an epoch of ``DualLpPerceptron(C=1)``: both products with the examples.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    AdaptiveSamplingKernelClassifier,
    DualLpPerceptron,
    MomentumMarginClassifier,
)

warnings.simplefilter("ignore", ConvergenceWarning)


def made(n, d, density=1.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    y = X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) > 0.0
    return X, y.astype(int)


def two_classes(X, y, products, rounds):
    """Rounds by ``products``, of the examples with w and of weights with the examples."""
    scores, combined = products
    sign, groups = 2.0 * y - 1.0, (y > 0, y == 0)
    w = g = np.zeros(X.shape[1])
    for t in range(rounds):
        margins = sign * scores(w)
        q = np.exp(margins.min() - margins)
        for group in groups:
            q[group] *= 0.5 / q[group].sum()
        p = combined(sign * q)
        g = t / (t + 1.0) * (g + p)
        w = w + (g + p)


def several_classes(X, y, rounds):
    each, W = np.arange(len(X)), np.zeros((y.max() + 1, X.shape[1]))
    G = W
    for t in range(rounds):
        F = X @ W.T
        margins = F[each, y][:, None] - F
        margins[each, y] = np.inf
        q = np.exp(margins.min() - margins)
        q /= q.sum()
        V = -q
        V[each, y] = q.sum(axis=1)
        P = V.T @ X
        G = t / (t + 1.0) * (G + P)
        W = W + (G + P)


def plain(X, y, kernel, rounds):
    scale = np.sqrt((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1).max())
    X = X / scale
    if y.max() > 1:
        return several_classes(X, y, rounds)
    if kernel:
        X = rbf_kernel(X)
    columns = X.T.tocsr() if sp.issparse(X) else X.T
    return two_classes(X, y, (X.__matmul__, columns.__matmul__), rounds)


def microseconds(work, number):
    """The least of three, after a first call."""
    work()
    times = []
    for _ in range(3):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return 1e6 * min(times) / number


def both_products(X, w, v):
    return X @ w, X.T @ v


cancer, labels = load_breast_cancer(return_X_y=True)
dense, sparse = made(2000, 100), made(2000, 100, 0.1)
SETS = {  # examples, classes, kernel, rounds
    "200 x 10": (*made(200, 10), False, 2000),
    "569 x 30": (StandardScaler().fit_transform(cancer), labels, False, 2000),
    "2,000 x 100": (*dense, False, 1000),
    "20,000 x 50": (*made(20_000, 50), False, 200),
    "2,000 x 100, CSR": (sp.csr_array(sparse[0]), sparse[1], False, 500),
    "1,000 x 20, rbf": (*made(1000, 20), True, 500),
    "iris, 3 classes": (*load_iris(return_X_y=True), False, 1000),
    "digits, 10 classes": (*load_digits(return_X_y=True), False, 300),
}

for name, (X, y, kernel, rounds) in SETS.items():
    params = {"C": 1.0, "tol": 0.0, "max_iter": rounds}
    kernels = {"kernel": "rbf"} if kernel else {}
    n, d = X.shape
    scores = -np.random.default_rng(0).random((n, 1 if y.max() == 1 else y.max() + 1))
    loops = {
        "round": (
            MomentumMarginClassifier(**params, **kernels),
            microseconds(partial(plain, X, y, kernel, rounds), rounds),
        ),
        "draw": (
            AdaptiveSamplingKernelClassifier(random_state=0, **params, **kernels),
            microseconds(partial(np.exp, scores), 1),
        ),
        "epoch": (
            DualLpPerceptron(random_state=0, **{**params, "max_iter": 100}),
            microseconds(partial(both_products, X, np.ones(d), np.ones(n)), 1),
        ),
    }
    for what, (clf, bare) in loops.items():
        mine = microseconds(partial(clf.fit, X, y), clf.fit(X, y).n_iter_)
        print(
            f"{name:20s} {what:6s} {mine:9.1f} us   {bare:9.1f} us   ratio {mine / bare:6.2f}",
            flush=True,
        )
