"""Ten values of C in five folds: MaxMarginClassifierCV beside the searches that people use.

    MARGINSVM_DATA=... python examples/benchmarks/choosing_the_cost.py [SET ...]

MaxMarginClassifierCV, GridSearchCV over LinearSVC and LogisticRegressionCV on ten sets; with a
kernel, GridSearchCV over SVC in place of the latter two. All see the same values of C and the same
folds, fit all examples with the chosen C at last, and run in one thread. CPU seconds are the least
of TURNS turns; a search that takes longer than LIMIT seconds runs once. In parentheses: the mean
score of the best C, and for the first column its standard error over the folds. Examples are
shuffled, dense features standardised, rows of text have norm 1. Prints a table in Markdown.
"""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from _sets import load, standardised
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifierCV

COSTS = np.logspace(-4, 4, 10)  # those of LogisticRegressionCV
FOLDS, TURNS, LIMIT, ROWS = 5, 3, 5.0, 10_000
LINEAR = (
    "heart_scale", "german_numer_scale", "musk1", "svmguide1", "dna", "pendigits", "a9a", "arcene",
    "rcv1_ccat_small", "tng_basehock",
)  # fmt: skip
KERNELS = ("german_numer_scale", "musk1", "svmguide1")


def problem(name):
    """A set in another order, of ROWS examples at most."""
    X, y = load(name)
    order = np.random.default_rng(0).permutation(len(y))[:ROWS]
    X, y = X[order], y[order]
    return normalize(X) if sp.issparse(X) and X.shape[1] > 1000 else standardised(X), y


def timed(model, X, y):
    """CPU seconds of a fit, the least of some turns, and the best mean score."""
    least, turns = np.inf, TURNS
    while turns:
        begin = time.process_time()
        model.fit(X, y)
        spent = time.process_time() - begin
        least, turns = min(least, spent), turns - 1 if spent < LIMIT else 0
    if isinstance(model, LogisticRegressionCV):
        scores = np.mean(
            [np.mean(part, axis=0).ravel() for part in scores_of(model)], axis=0
        )
        return least, scores.max()
    return least, model.best_score_


def scores_of(model):
    """Scores of a LogisticRegressionCV, of each class or of all."""
    return (
        model.scores_.values() if isinstance(model.scores_, dict) else [model.scores_]
    )


def line(name, kernel):
    """The line of a set, whether each search took longer, and whether its best score is mine."""
    X, y = problem(name)
    params = {"kernel": "rbf"} if kernel else {}
    search = MaxMarginClassifierCV(Cs=COSTS, cv=FOLDS, **params)
    peers = [
        GridSearchCV(SVC(**params) if kernel else LinearSVC(), {"C": COSTS}, cv=FOLDS)
    ]
    if not kernel:
        peers.append(LogisticRegressionCV(Cs=COSTS, cv=FOLDS))
    some = np.arange(min(len(y), 300))
    for model in (search, *peers):
        model.fit(X[some], y[some])  # compiles and imports
    mine, score = timed(search, X, y)
    best = search.scores_[:, list(search.Cs_).index(search.C_)]
    error = best.std(ddof=1) / np.sqrt(FOLDS)
    found = [timed(peer, X, y) for peer in peers]
    cells = [
        f"{name}{', rbf' * kernel}, {X.shape[0]:,} x {X.shape[1]:,}, {len(np.unique(y))}"
    ]
    cells += [f"{mine:.2f} ({score:.3f} ± {error:.3f})"]
    cells += [f"{seconds:.2f} ({score:.3f})" for seconds, score in found]
    print(f"| {' | '.join([*cells, *['–'] * (4 - len(cells))])} |", flush=True)


def main(names):
    warnings.simplefilter("ignore")
    print(
        "| set, classes | MaxMarginClassifierCV, s | GridSearchCV, s | LogisticRegressionCV, s |"
    )
    print("|---|---|---|---|")
    for kernel, sets in ((False, LINEAR), (True, KERNELS)):
        for name in sets:
            if not names or name in names:
                line(name, kernel)


if __name__ == "__main__":
    main(sys.argv[1:])
