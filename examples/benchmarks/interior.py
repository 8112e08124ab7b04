"""Interior points by themselves, and the exact solver without them: gaps, steps, milliseconds.

    MARGINSVM_DATA=/path/to/sets python interior.py [set ...]

A line for each set of two classes as published, loss and C: what the other methods end with
(status, relative gap, CPU milliseconds), and interior points (the same, and their steps), with the
default ``tol``. CPU time, least of three fits, BLAS on one thread.
"""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # before NumPy is imported
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import sys
import time
import warnings

import numpy as np
from _sets import load
from sklearn.datasets import load_breast_cancer

from marginsvm import MaxMarginClassifier
from marginsvm.algorithms.exact.interior.interior_points import Interior
from marginsvm.algorithms.exact.stage import Stage
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.algorithms.max_margin import ActiveSet

COSTS, LOSSES = (1.0, 1e2, 1e4, 1e6), ("hinge", "squared_hinge")
SETS = ("breast_cancer", "heart_scale", "sonar", "german_numer_scale", "breast_wisconsin",
        "svmguide1", "musk1", "usps", "made up")  # fmt: skip


class Inside(ActiveSet):
    """The exact solver with interior points alone."""

    def start(self, problem):
        return Stage.of(Interior.start(problem))


class ByInteriorPoints(MaxMarginClassifier):
    def _algorithm(self):
        return Inside(self.tol)


class Without(MaxMarginClassifier):
    def _algorithm(self):
        return ActiveSet(self.tol, Portfolio(inside=0, side_features=0, side_rows=0))


def examples(name):
    if name == "breast_cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "made up":  # columns in units of their own, two overlapping classes
        rng = np.random.default_rng(0)
        X = rng.lognormal(0.0, 1.0, (2600, 100)) * np.exp(rng.normal(0.0, 2.0, 100))
        scores = X @ (rng.standard_normal(100) / X.std(axis=0))
        noise = 0.7 * scores.std() * rng.standard_normal(len(X))
        return X, scores + noise > np.median(scores)
    X, y = load(name)
    some = np.isin(y, (3, 5)) if name == "usps" else slice(None)
    return X[some], y[some]


def fitted(make, X, y, C, loss):
    least = np.inf
    for _ in range(3):
        begun = time.process_time()
        clf = make(C=C, loss=loss, warm_start=True).fit(X, y)
        least = min(least, time.process_time() - begun)
    return clf, f"{clf.status_} | {clf.gap_:.0e} | {1e3 * least:.1f}"


def main(names):
    warnings.simplefilter("ignore")
    print("| set | n x d | loss | C | others | gap | ms | interior points | gap | ms | steps |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        X, y = examples(name)
        for loss in LOSSES:
            for C in COSTS:
                _, others = fitted(Without, X, y, C, loss)
                clf, inside = fitted(ByInteriorPoints, X, y, C, loss)
                steps = clf._progress.state.method.steps
                size = f"{X.shape[0]:,} x {X.shape[1]}"
                print(f"| {name} | {size} | {loss} | {C:g} | {others} | {inside} | {steps} |")


if __name__ == "__main__":
    main(sys.argv[1:] or SETS)
