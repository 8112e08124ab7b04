"""Soft margins with kernels: MaxMarginClassifier with both losses, and SVC with the gap it leaves.

    MARGINSVM_DATA=... python examples/benchmarks/kernels.py [set ...]

Standardised data, ``gamma="scale"``, CPU seconds of one thread, medians of fits in turns. SVC has
its default tolerance and a cache of 1 GB; its gap is that of its margin to our upper bound.
"""

import sys
import time
import warnings

import numpy as np
from _children import warm_up  # one thread, before libraries start theirs
from _sets import load, standardised
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from marginsvm import MaxMarginClassifier

SETS = {
    "usps 3 5": lambda: of_two("usps", 3, 5),
    "svmguide1": lambda: load("svmguide1"),
    "mushrooms": lambda: load("mushrooms"),
    "a9a": lambda: some(*load("a9a"), 10_000),
    "dna": lambda: load("dna"),
    "pendigits": lambda: load("pendigits"),
    "usps": lambda: load("usps"),
    "mnist even": lambda: even(*some(*load("mnist"), 10_000)),
    "mnist even 20000": lambda: even(*some(*load("mnist"), 20_000)),
}
COSTS, LOSSES = (1.0, 100.0), ("hinge", "squared_hinge")
# Fits of each solver: of those that take longer than some seconds, one.
TURNS, LONG = 3, 5.0


def gaussian(A, B):
    """The Gaussian kernel as a function, which no solver can see through."""
    return rbf_kernel(A, B, gamma=1.0 / A.shape[1])


def of_two(name, a, b):
    """The examples of two classes."""
    X, y = load(name)
    members = np.isin(y, (a, b))
    return X[members], y[members]


def even(X, y):
    """Even digits against odd ones."""
    return X, y % 2


def some(X, y, n):
    """That many examples, drawn at random."""
    chosen = np.random.default_rng(0).permutation(len(y))[:n]
    return X[chosen], y[chosen]


def margin_of(svc, X, y):
    """Of SVC's problem: one over the root of twice the objective at its predictor."""
    scores = svc.decision_function(X)
    squared = svc.dual_coef_[0] @ (scores[svc.support_] - svc.intercept_)
    slack = np.maximum(0.0, 1.0 - np.where(y == svc.classes_[1], scores, -scores))
    return 1.0 / np.sqrt(squared + 2.0 * svc.C * slack.sum())


def timed(fits, X, y):
    """Median CPU seconds of fits in turns, or of one fit each where that takes long."""
    seconds = {key: [] for key in fits}
    for _ in range(TURNS):
        for key, estimator in fits.items():
            begun = time.process_time()
            estimator.fit(X, y)
            seconds[key].append(time.process_time() - begun)
        if sum(times[0] for times in seconds.values()) > LONG:
            break
    return {key: float(np.median(times)) for key, times in seconds.items()}


def line(name, X, y, C, kernel):
    """Print a line of the table."""
    common = {"C": C, "kernel": kernel}
    fits = {loss: MaxMarginClassifier(loss=loss, tol=1e-4, **common) for loss in LOSSES}
    fits["SVC"] = SVC(cache_size=1000, **common)
    shape, given = f"{X.shape[0]:,} x {X.shape[1]}", X
    if kernel == "precomputed":
        given = gaussian(X, X)
    middle, classes = timed(fits, given, y), len(np.unique(y))
    left = ""  # of several classes, SVC solves other problems
    if classes == 2:
        bound = fits["hinge"].margin_bound_
        left = f"{1.0 - margin_of(fits['SVC'], given, y) / bound:.0e}"
    word = "callable" if callable(kernel) else kernel
    text = f"| {name}, {word} | {shape} | {classes} | {C:g} | {middle['SVC']:.3f} | {left} |"
    for loss in LOSSES:
        faster = middle["SVC"] / middle[loss]
        text += f" {middle[loss]:.3f} | {fits[loss].gap_:.0e} | {faster:.2f} |"
    print(text, flush=True)


def main(names):
    """Print the table."""
    columns = [
        "set",
        "n x d",
        "classes",
        "C",
        "SVC s",
        "its gap",
        "hinge s",
        "gap",
        "times faster",
    ]
    columns += ["squared slack s", "gap", "times faster"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    small = np.random.default_rng(0).standard_normal((600, 3))
    for loss in LOSSES:
        warm_up(
            MaxMarginClassifier(C=1.0, kernel="rbf", loss=loss),
            small,
            small[:, 0] > 0.0,
        )
    for name in names or SETS:
        X, y = SETS[name]()
        X = standardised(X.toarray() if hasattr(X, "toarray") else X)
        for C in COSTS:
            line(name, X, y, C, "rbf")
        if name in ("usps 3 5", "mushrooms", "dna"):
            for kernel in ("poly", "precomputed", gaussian):
                line(name, X, y, 1.0, kernel)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main(sys.argv[1:])
