"""The hinge loss: MaxMarginClassifier against SVC and LinearSVC, objectives and times.

    MARGINSVM_DATA=/path/to/sets python hinge.py [linear] [rbf] [classes]

Two classes are solved for C = 1; features are standardised (sparse ones are not centred). Times are
the least of three fits, taken in turn; SVC is fitted with ``tol=1e-8``, for the objective that is
compared with, and as it comes. LinearSVC penalises the intercept, and stops after 1000 epochs
unless it converged: its objective is that of its own predictor with the best intercept for it.

``classes``: Crammer and Singer's problem of all classes, for several C, against
``LinearSVC(multi_class="crammer_singer")``, whose predictor is given the best intercepts as well;
CPU time of one fit each.
"""

import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from _sets import load, standardised
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier, check_certificate

SETS = {
    "linear": [
        "svmguide1",
        "german_numer_scale",
        "mushrooms",
        "a9a",
        "usps",
        "rcv1_ccat_small",
    ],
    "rbf": [
        "svmguide1",
        "german_numer_scale",
        "heart_scale",
        "mushrooms",
        "usps",
        "dna",
    ],
}
SLOW = {
    ("linear", "a9a"): 4000
}  # examples that SVC is given, which takes minutes for all
C = 1.0
CLASSES, COSTS = ["dna", "pendigits", "letter", "usps"], [0.01, 1.0, 100.0]


def two_classes(name, kernel):
    """A set with labels -1 and 1: many classes are told apart by whether their number is odd."""
    X, y = load(name)
    y = np.where(np.isin(y, np.unique(y)[1::2]), 1, -1)
    some = slice(None, SLOW.get((kernel, name)))
    X, y = X[some], y[some]
    return (X if sp.issparse(X) and kernel == "linear" else standardised(dense(X))), y


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def objective(clf, X, y):
    """That of a fitted predictor with the best intercept."""
    if clf.kernel == "linear":
        w = dense(clf.coef_).ravel()
        squared, scores = w @ w, X @ w
    else:
        b = clf.intercept_[0]
        scores = clf.decision_function(X) - b
        a = dense(clf.dual_coef_).ravel()
        squared = a @ scores[clf.support_]
    at = np.sort(y - scores)  # where examples reach their margins
    slack = np.maximum(
        0.0, 1.0 - y * (scores + at[:: max(1, len(at) // 400), None])
    ).sum(axis=1)
    i = int(np.argmin(slack)) * max(1, len(at) // 400)
    near = at[max(i - len(at) // 400 - 1, 0) : i + len(at) // 400 + 2, None]
    return (
        0.5 * squared + C * np.maximum(0.0, 1.0 - y * (scores + near)).sum(axis=1).min()
    )


def fastest(estimators, X, y):
    """The least time of each, the fits taken in turn."""
    seconds = dict.fromkeys(estimators, np.inf)
    for _ in range(3):
        for name, estimator in estimators.items():
            begun = time.perf_counter()
            estimator.fit(X, y)
            seconds[name] = min(seconds[name], time.perf_counter() - begun)
    return seconds


def compare(name, kernel):
    """Print a line of the table."""
    X, y = two_classes(name, kernel)
    ours = MaxMarginClassifier(loss="hinge", C=C, kernel=kernel)
    exact = SVC(C=C, kernel=kernel, tol=1e-8, cache_size=1000)
    peers = {
        "ours": ours,
        "exact": exact,
        "SVC": SVC(C=C, kernel=kernel, cache_size=1000),
    }
    if kernel == "linear":
        peers["LinearSVC"] = LinearSVC(C=C, loss="hinge", random_state=0)
    seconds = fastest(peers, X, y)
    best = objective(exact, X, y)
    line = f"| {name} | {X.shape[0]} x {X.shape[1]} | {ours.status_} | {ours.gap_:.0e} "
    line += f"| {objective(ours, X, y) / best - 1:+.0e} "
    line += f"| {'holds' if check_certificate(ours, X, y) else 'FAILS'} "
    line += "| " + " | ".join(f"{s:.3f}" for s in seconds.values()) + " |"
    if kernel == "linear":
        peers["LinearSVC"].kernel = "linear"
        line += f" {objective(peers['LinearSVC'], X, y) / best - 1:+.0e} |"
    print(line, flush=True)


def objective_of_classes(W, X, y, C):
    """That of a predictor with the best intercepts."""
    codes = np.unique(y, return_inverse=True)[1]
    scores, each = X @ W.T, np.arange(len(y))
    margins = scores[each, codes][:, None] - scores
    margins[each, codes] = np.inf
    n, k = scores.shape
    i, j = np.nonzero(np.isfinite(margins))
    r = np.arange(len(i))
    rows = sp.coo_array((np.ones(len(r)), (r, codes[i])), (len(r), k + n))
    rows -= sp.coo_array((np.ones(len(r)), (r, j)), (len(r), k + n))
    rows += sp.coo_array((np.ones(len(r)), (r, k + i)), (len(r), k + n))
    free, costs = [(None, None)] * k + [(0, None)] * n, np.repeat([0.0, 1.0], [k, n])
    b = linprog(costs, -rows.tocsr(), margins[i, j] - 1.0, bounds=free).x[:k]
    least = (margins + b[codes][:, None] - b).min(axis=1)
    return 0.5 * np.vdot(W, W) + C * np.maximum(0.0, 1.0 - least).sum()


def compare_classes(name, C):
    """Print a line of the table of many classes."""
    X, y = load(name)
    X = standardised(X)
    ours = MaxMarginClassifier(loss="hinge", C=C)
    peer = LinearSVC(C=C, multi_class="crammer_singer", random_state=0)
    seconds = []
    for estimator in (ours, peer):
        begun = time.process_time()
        estimator.fit(X, y)
        seconds.append(time.process_time() - begun)
    best, other = (objective_of_classes(e.coef_, X, y, C) for e in (ours, peer))
    line = f"| {name} | {X.shape[0]:,} x {X.shape[1]} | {len(ours.classes_)} | {C:g} "
    line += f"| {ours.status_}, {ours.gap_:.0e} | {seconds[0]:.2f} | {seconds[1]:.2f} "
    print(line + f"| {other / best - 1:+.0e} |", flush=True)


def tables_of_classes():
    columns = ["set", "n x d", "classes", "C", "result, gap", "s", "crammer_singer s"]
    columns.append("its objective above")
    print(
        "\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True
    )
    compare_classes("dna", 0.1)  # not counted: imports
    for name in CLASSES:
        for C in COSTS:
            compare_classes(name, C)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    for kernel in sys.argv[1:] or [*SETS, "classes"]:
        if kernel == "classes":
            tables_of_classes()
            continue
        print(
            f"\n{kernel}: gap, objective relative to SVC's at tol=1e-8, certificate, seconds\n"
        )
        columns = ["set", "examples", "status", "gap", "objective", "certificate"]
        columns += ["MaxMarginClassifier", "SVC(tol=1e-8)", "SVC"]
        columns += ["LinearSVC", "its objective"] if kernel == "linear" else []
        print(
            "| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|",
            flush=True,
        )
        for name in SETS[kernel]:
            compare(name, kernel)
