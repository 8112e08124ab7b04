"""Twenty values of C in five folds: MaxMarginClassifierCV beside searches over single fits.

    MARGINSVM_DATA=... python examples/benchmarks/choosing_the_cost.py [SET ...]

For each data set, in turn and three times: a single fit with the chosen C; MaxMarginClassifierCV,
its refit included; and once, as they take longer, grid searches over LinearSVC (SVC with a kernel)
and over MaxMarginClassifier, which are given up after LIMIT seconds. All see the same grid and the
same folds, in one thread. Times are CPU seconds, the least of each. Prints a table in Markdown.
"""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import sys
import time
import warnings

import numpy as np
from _sets import load, text_like
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier, MaxMarginClassifierCV

LIMIT = 60.0  # CPU seconds
COSTS, FOLDS, TURNS = 20, 5, 3
RBF = {"kernel": "rbf", "gamma": 0.02}


def mnist(wanted):
    """Pixels in [0, 1] of the digits that are wanted, and these."""
    X, y = load("mnist")
    kept = np.isin(y, wanted)
    return X[kept].reshape(kept.sum(), -1) / 255.0, y[kept]


def even_or_odd():
    X, y = mnist(range(10))
    return X[:5000], y[:5000] % 2


SETS = {
    "a9a": (lambda: load("a9a"), {}),
    "MNIST 3/5": (lambda: mnist([3, 5]), {}),
    "rcv1, 1000 rows": (lambda: load("rcv1_ccat_small"), {}),
    "like text, 20000 rows": (lambda: text_like(20_000, 20_000, seed=0), {}),
    "MNIST even/odd, 5000 rows, rbf": (even_or_odd, RBF),
}


def seconds(model, X, y):
    """CPU seconds of a fit."""
    begin = time.process_time()
    model.fit(X, y)
    return time.process_time() - begin


def searched(model, X, y, Cs):
    """CPU seconds of a fit and a score for each fold and C, with the best mean score.

    Values of C go up in each fold. A search that takes longer than LIMIT is given up: no score.
    """
    begin, scores = time.process_time(), np.zeros((FOLDS, len(Cs)))
    for i, (train, test) in enumerate(StratifiedKFold(FOLDS).split(X, y)):
        X_train, y_train, X_test, y_test = X[train], y[train], X[test], y[test]
        for j, C in enumerate(Cs):
            fitted = clone(model).set_params(C=C).fit(X_train, y_train)
            scores[i, j] = fitted.score(X_test, y_test)
            if time.process_time() - begin > LIMIT:
                return time.process_time() - begin, (i * len(Cs) + j + 1, np.nan)
    return time.process_time() - begin, (scores.size, scores.mean(axis=0).max())


def in_words(spent, found, total=FOLDS * COSTS):
    """A cell of the table for a search."""
    done, score = found
    if done < total:
        return f"over {spent:.0f} ({done} of {total} fits)"
    return f"{spent:.2f} ({score:.4f})"


def line(name):
    """The line of a data set."""
    make, params = SETS[name]
    X, y = make()
    search = MaxMarginClassifierCV(Cs=COSTS, cv=FOLDS, **params)
    few = np.arange(0, len(y), max(1, len(y) // 900))
    search.fit(X[few], y[few])  # compiles what is compiled
    single, whole = [], []
    for _ in range(TURNS):
        whole.append(seconds(search, X, y))
        single.append(seconds(MaxMarginClassifier(C=search.C_, **params), X, y))
    peer, mine = SVC(**params) if params else LinearSVC(), MaxMarginClassifier(**params)
    cells = [in_words(*searched(model, X, y, search.Cs_)) for model in (peer, mine)]
    one, cv = min(single), min(whole)
    numbers = [f"{search.C_:.3g}", f"{one:.3f}", f"{cv:.2f}", f"{cv / one:.0f}"]
    return [name, *numbers, f"{search.best_score_:.4f}", *cells]


def main(names):
    warnings.simplefilter("ignore")
    head = ["set", "C", "single fit, s", "CV, s", "in single fits", "score"]
    head += [
        "search over LinearSVC or SVC, s (score)",
        "search over MaxMarginClassifier, s (score)",
    ]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for name in names or SETS:
        print(f"| {' | '.join(line(name))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
