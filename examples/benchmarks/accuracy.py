"""Five-fold accuracy with default parameters: MaxMarginClassifier() beside LinearSVC().

    MARGINSVM_DATA=... python examples/benchmarks/accuracy.py

The default of MaxMarginClassifier asks for a separator (C=inf), that of LinearSVC for a soft
margin (C=1). Most of these sets overlap, so this is about the model that the former leaves where
nothing separates. Both see the same folds of shuffled examples, as they are and standardised (by
the mean and variance of the training part). Prints a table in Markdown.
"""

import time
import warnings

import numpy as np
import scipy.sparse as sp
from _sets import load, spambase_like
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from marginsvm import MaxMarginClassifier

SETS = [
    ("german_numer_scale", lambda: load("german_numer_scale")),
    ("spambase-like, seed 0", spambase_like),
    ("pendigits", lambda: load("pendigits")),
    ("usps", lambda: load("usps")),
    ("a9a", lambda: load("a9a")),
]
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def five_fold(model, X, y):
    """Mean accuracy on the parts left out, seconds of a fit, and the statuses of the fits."""
    scores, seconds, statuses = [], [], set()
    for train, test in FOLDS.split(X, y):
        fitted, begin = clone(model), time.perf_counter()
        fitted.fit(X[train], y[train])
        seconds.append(time.perf_counter() - begin)
        scores.append(fitted.score(X[test], y[test]))
        statuses.add(getattr(fitted[-1], "status_", ""))
    return np.mean(scores), np.median(seconds), ", ".join(sorted(statuses))


def main():
    warnings.simplefilter("ignore")
    print(
        "| set | n x d | classes | | result | MaxMarginClassifier | s | LinearSVC | s | ahead by |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, make in SETS:
        X, y = make()
        shape = f"{X.shape[0]:,} x {X.shape[1]:,} | {len(np.unique(y))}"
        for scale in ("raw", "standardised"):
            before = (
                [StandardScaler(with_mean=not sp.issparse(X))] if scale != "raw" else []
            )
            models = MaxMarginClassifier(), LinearSVC()
            (mine, mine_s, status), (peer, peer_s, _) = (
                five_fold(make_pipeline(*before, model), X, y) for model in models
            )
            print(f"| {name} | {shape} | {scale} | {status} | {mine:.3f} | {mine_s:.2f} "
                  f"| {peer:.3f} | {peer_s:.2f} | {mine - peer:+.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
