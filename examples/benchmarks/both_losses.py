"""Both losses at C = 1: ``MaxMarginClassifier``, and LinearSVC by default and to the same gap.

    MARGINSVM_DATA=/path/to/sets python both_losses.py [SET ...]

Ours is certified to its default: the objective is at most 2e-6 above the best (``tol=1e-6`` is of
margins, the roots of objectives). LinearSVC stops by default at ``tol=1e-4`` or after 1000 epochs;
*same gap* is the largest of 1e-4, 1e-5, ... that leaves its objective, of which the squared
intercept is a part, no more than 2e-6 above the best, with up to a million epochs. SVC, for the
hinge loss, has its default ``tol=1e-3``, and two minutes. What an objective is above the best is
measured against bounds that ours proves. CPU time of one thread, medians of three fits in turn;
dense features are standardised, pixels divided by 255, sparse ones as published.
"""

import sys
import warnings

import numpy as np
import scipy.sparse as sp
from _children import Child, ChildError, measured, warm_up
from _sets import load, standardised
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier

SETS = ["heart_scale", "german_numer_scale", "svmguide1", "tng_basehock", "a9a", "mnist 0 1"]
LOSSES = {"squared_hinge": 2, "hinge": 1}
GAP = 2e-6
SECONDS = 120.0  # CPU time of a fit, after which it is given up


def data(name):
    """X, labels -1 and 1, and no weights."""
    name, *pair = name.split()
    X, y = load(name)
    if pair:
        kept = np.isin(y, [int(label) for label in pair])
        X, y = X[kept].reshape(kept.sum(), -1) / 255.0, y[kept]
    elif not sp.issparse(X):
        X = standardised(X)
    return X, np.where(y == np.unique(y)[1], 1.0, -1.0), None


def best_of_linear_svc(estimator, X, y, weight):
    """A lower bound on LinearSVC's objective, whose intercept is the weight of a constant."""
    one = np.ones((len(y), 1))
    X = sp.hstack([X, one], format="csr") if sp.issparse(X) else np.hstack([X, one])
    clf = MaxMarginClassifier(C=1.0, loss=estimator.loss, fit_intercept=False, tol=1e-8).fit(X, y)
    return 0.5 / clf.margin_bound_**2


def objective(estimator, X, y, weight):
    """That of the fitted predictor; LinearSVC's has the square of the intercept."""
    w = np.ravel(estimator.coef_.toarray() if sp.issparse(estimator.coef_) else estimator.coef_)
    b = estimator.intercept_[0]
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    power = LOSSES[getattr(estimator, "loss", "hinge")]
    penalty = b * b if isinstance(estimator, LinearSVC) else 0.0
    return 0.5 * (w @ w + penalty) + np.sum(slack**power)


def same_gap(child, loss, best):
    """LinearSVC with the largest tolerance that comes to the gap; None: none does in time."""
    for tol in 10.0 ** np.arange(-4, -13, -1):
        clf = LinearSVC(C=1.0, loss=loss, tol=tol, max_iter=10**6, random_state=0)
        try:
            child.ask(measured, clf, SECONDS)
        except ChildError:
            return None
        if child.ask(objective) <= (1.0 + GAP) * best:
            return clf
    return None


def compare(name, loss):
    """Print a line of the table."""
    with Child(data, name) as child:
        ours = MaxMarginClassifier(C=1.0, loss=loss)
        theirs = LinearSVC(C=1.0, loss=loss, random_state=0)
        child.ask(warm_up, ours)
        best = child.ask(best_of_linear_svc, theirs)
        fits = {"ours": ours, "theirs": theirs, "same gap": same_gap(child, loss, best)}
    excess, times = {}, {key: [] for key in fits}
    with Child(data, name) as child:
        child.ask(warm_up, ours)
        for _ in range(3):
            for key, clf in fits.items():
                if clf is not None:
                    took = child.ask(measured, clf, SECONDS)
                    times[key].append(took["cpu"])
                    excess[key] = child.ask(objective) / best - 1.0
                    if key == "ours":
                        status, bound = took["status"], 0.5 / took["margin_bound"] ** 2
        try:
            times["SVC"] = [
                child.ask(measured, SVC(kernel="linear", cache_size=1000), SECONDS)["cpu"]
            ]
            excess["SVC"] = child.ask(objective) / bound - 1.0
        except ChildError:
            times["SVC"] = []
        shape = child.ask(shape_of)
    own = float(np.median(times["ours"]))
    cells = [name, f"{shape[0]:,} x {shape[1]:,}", loss, status, f"{1e3 * own:.3g}"]
    for key in ("theirs", "same gap", "SVC"):
        ratio = f"x{float(f'{np.median(times[key]) / own:.2g}'):g}" if times[key] else ""
        cells.append(f"{ratio}, {excess[key]:.0e}" if ratio else f"not in {SECONDS:.0f} s")
    if loss != "hinge":
        cells[-1] = ""
    print("| " + " | ".join(cells) + " |", flush=True)


def shape_of(estimator, X, y, weight):
    return X.shape


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    columns = ["set", "n x d", "loss", "status", "ms", "LinearSVC", "the same gap", "SVC"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for name in sys.argv[1:] or SETS:
        for loss in LOSSES:
            compare(name, loss)
