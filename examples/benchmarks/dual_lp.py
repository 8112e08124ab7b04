"""Cost of coordinate steps, and of certified margins, as ratios measured side by side.

    MARGINSVM_DATA=... python examples/benchmarks/dual_lp.py

CPU seconds, BLAS on one thread, the least of several repetitions in turn. Everything has
run once before: what numba compiles (or loads from its cache on disk) is not counted, and
is printed first.
"""

import os
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from _sets import raj_bach
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginsvm import DualLpPerceptron, LpPerceptron, PrimalMirrorDescent
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.rows import make_rows

warnings.simplefilter("ignore")
threadpool_limits(1)
FOLDER = Path(os.environ.get("MARGINSVM_DATA", ""))
PAIRS = ["mnist:0-1", "mnist:1-7", "mnist:6-9", "usps:0-1", "usps:3-5", "usps:4-9"]
SEPARABLE = ["arcene", "colon_alon", "golub_leukemia", "mushrooms", "musk1"]
SEPARABLE += ["rcv1_ccat_small", "sonar", "tng_basehock", *PAIRS]


def load(name):
    """A shared set as float64 X and y = -1, 1; a pair of classes after a colon."""
    base, _, pair = name.partition(":")
    z = np.load(FOLDER / f"{base}.npz")
    if "indptr" in z:
        return sp.csr_matrix(
            (z["data"], z["indices"], z["indptr"]), tuple(z["shape"])
        ), z["y"]
    X, y = (z["X_train"], z["y_train"]) if "X_train" in z else (z["X"], z["y"])
    if pair:
        few = np.isin(y, [int(c) for c in pair.split("-")])
        X, y = X[few], np.where(y[few] == int(pair[0]), 1, -1)
    return X.astype(float), y


def milliseconds(*works, repeat):
    """Least time of each, measured in turn."""
    times = np.full((repeat + 1, len(works)), np.inf)
    for row in times:
        for i, work in enumerate(works):
            begin = time.process_time_ns()
            work()
            row[i] = (time.process_time_ns() - begin) / 1e6
    return times[1:].min(axis=0)


def both_products(X, w, v):
    return X @ w, X.T @ v


def power_of(u, p):
    return np.abs(u) ** (1.0 / (p - 1.0))


def epoch(X, y, p, constant=0.0):
    """A function that plays an epoch of Algorithm 2 over all rows."""
    from marginsvm.papers import coordinates as loops

    data = LinearAdapter(
        X, make_rows((y > 0) * 1, 2, balanced=False), np.inf, LpNorm(p), constant
    )
    n, order = len(y), np.random.default_rng(0).permutation(len(y))
    state = [data.zeros(), data.zeros(), 1.0 / n]

    def play():
        state[:] = loops.accelerate(data, order, n, 0.0, *state)

    return play


def steps():
    print("\nAn epoch of Algorithm 2 on the paper's data (1000 x 2000)")
    for p in (2.0, 1.0 + 1.0 / np.log(2000)):
        X, y, *_ = raj_bach(0, sparse=p < 2)
        for dtype in (np.float64, np.float32):
            Z, w, u = X.astype(dtype), np.ones(2000, dtype), X[0]
            a, product, power = milliseconds(
                epoch(Z, y, p),
                partial(np.matmul, Z, w),
                partial(power_of, u, p),
                repeat=30,
            )
            print(
                f"  p = {p:.4f} {np.dtype(dtype)}: {a:7.3f} ms = {a / product:5.2f} X @ w; "
                f"a step {a:.2f} us = {a / power / 1e3:.2f} np.abs(u) ** (q - 1)"
            )


def sparse_steps():
    print("\nAn epoch of Algorithm 2 on CSR")
    for name in ("rcv1_ccat_small", "tng_basehock", "mushrooms", "a9a"):
        X, y = load(name)
        X, w, v = X.astype(float), np.ones(X.shape[1]), np.ones(X.shape[0])
        a, b = milliseconds(
            epoch(X, y, 2.0, 1.0), partial(both_products, X, w, v), repeat=30
        )
        print(f"  {name:16s} {a:7.3f} ms = {a / b:.2f} (X @ w and X.T @ v)")


def certified():
    """Time to a certified gap of 1e-3, C = inf, p = 2, penalised intercept of 1."""
    print(
        "\nA certified gap of 1e-3, beside LinearSVC(loss='hinge', C=1e6, tol=1e-4); medians of"
    )
    print(
        "three seeds. LinearSVC stops at its default max_iter=1000, converged or not."
    )
    for name in SEPARABLE:
        X, y = load(name)
        peer = LinearSVC(loss="hinge", C=1e6, random_state=0)
        fits = [
            DualLpPerceptron(tol=1e-3, max_iter=100_000, random_state=seed)
            for seed in range(3)
        ]
        times = np.array(
            [
                milliseconds(partial(peer.fit, X, y), partial(ours.fit, X, y), repeat=1)
                for ours in fits
            ]
        )
        a, b = times[:, 0].min(), np.median(times[:, 1])
        separates = np.all(y * peer.decision_function(X) > 0)
        epochs = np.median([clf.n_iter_ for clf in fits])
        print(
            f"  {name:16s} LinearSVC {a:7.1f} ms ({peer.n_iter_:4d} iterations, separates: "
            f"{separates!s:5s})  ours {b:7.1f} ms ({epochs:5.0f} epochs, gap "
            f"{max(clf.gap_ for clf in fits):.1e})  ratio {b / a:5.2f}",
            flush=True,
        )


def separators():
    """Epochs until the model makes no training mistake (it is looked at every tenth)."""
    print("\nEpochs to a separator on the paper's data, ten seeds, no intercept")
    paper = {"sampling": "uniform", "restart": False, "shrinking": False}
    methods = {
        "accelerated, as by default": DualLpPerceptron(),
        "accelerated, as in the paper": DualLpPerceptron(**paper),
        "plain": DualLpPerceptron(accelerated=False, **paper),
        "primal mirror descent": PrimalMirrorDescent(),
        "lp perceptron": LpPerceptron(),
    }
    for p, last in ((2.0, 100), ("sparse", 200)):
        for name, method in methods.items():
            found = []
            for seed in range(10):
                X, y, *_ = raj_bach(seed, sparse=p == "sparse")
                method.set_params(
                    p=p, stopping="separation", max_iter=last, random_state=seed
                )
                clf = method.set_params(fit_intercept=False).fit(X, y)
                found.append(
                    str(clf.n_iter_) if clf.status_ == "separated" else f">{last}"
                )
            print(f"  p = {p}, {name:30s}", *found, flush=True)


begin = time.process_time()
DualLpPerceptron(random_state=0).fit(np.eye(2), [-1, 1])
print(
    f"numba: imported, compiled or loaded in {time.process_time() - begin:.1f} s (not counted)"
)
steps()
separators()
if FOLDER.joinpath("sonar.npz").is_file():
    sparse_steps()
    certified()
else:
    print(
        "\nMARGINSVM_DATA does not name the folder of the real data sets: no more to show"
    )
