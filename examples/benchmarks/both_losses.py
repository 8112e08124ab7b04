"""Hard margins and both losses at C = 1: ``MaxMarginClassifier`` beside its peers.

    MARGINSVM_DATA=/path/to/sets python both_losses.py [SET ...]
    MARGINSVM_DATA=/path/to/sets python both_losses.py --sweep
    python both_losses.py --large

Ours is certified to its default, ``tol=1e-6`` of margins: an objective is at most 2e-6 above the
best, as margins are the roots of objectives. Peers have their default tolerances: LinearSVC 1e-4
(of gradients; 1000 epochs, ``loss="hinge", C=1e6`` and 3000 epochs for hard margins), SVC 1e-3 (of
the KKT conditions; ``C=inf`` for hard margins), ReHLine 1e-4 (of the gap; 1000 iterations) and
quadprog that of a dense active set, up to 2,500 examples. *Same gap* is LinearSVC with the largest
tolerance of 1e-4, 1e-5, ... that leaves its objective no more than 2e-6 above the best, with up to
a million epochs. Behind each time is by how much the objective is above the best, against bounds
that ours proves; that of LinearSVC and ReHLine has the squared intercept as a part. Of hard
margins, it is the fraction by which the margin of the direction falls short.

``--sweep`` prints the statuses of C from 1e-4 to 1e6 under two kernels of OpenBLAS, raw sets
included, and ``--large`` seconds and memory of a million rows.

CPU time of one thread, medians of three fits in turn, the first untimed; dense features are
standardised, pixels divided by 255, sparse ones as published.
"""

import os
import sys
import warnings
from contextlib import suppress

import numpy as np
import scipy.sparse as sp
from _children import Child, ChildError, measured, warm_up
from _sets import load, standardised
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier

try:
    from quadprog import solve_qp
except ImportError:
    solve_qp = None
try:
    from rehline import plq_Ridge_Classifier as ReHLine
except ImportError:
    ReHLine = None

SETS = [
    "heart_scale", "sonar", "breast_wisconsin", "german_numer_scale", "musk1", "svmguide1",
    "mushrooms", "a9a", "mnist 0 1", "arcene", "tng_basehock", "rcv1_ccat_small",
]  # fmt: skip
LOSSES = {"squared_hinge": 2, "hinge": 1, "hard": 0}
GAP = 2e-6
SECONDS = 20.0  # CPU time of a fit, after which it is given up
DENSE = 2500  # examples of a dense quadratic program


class Quadprog(BaseEstimator):
    """Two classes by Goldfarb and Idnani's dense active set: the dual; hard margins: the primal."""

    def __init__(self, loss="hinge"):
        self.loss = loss

    def fit(self, X, y):
        A = y[:, None] * (X.toarray() if sp.issparse(X) else X)
        n, d = A.shape
        if self.loss == "hard" and d < n:
            G = np.diag(np.append(np.ones(d), 1e-10))
            w = solve_qp(G, np.zeros(d + 1), np.column_stack([A, y]).T, np.ones(n))[0]
            self.coef_, self.intercept_ = w[None, :d], w[d:]
            return self
        K = A @ A.T
        bounds, low = [y[:, None], np.eye(n)], np.zeros(1 + n)
        if self.loss == "hinge":
            bounds, low = [*bounds, -np.eye(n)], np.append(low, -np.ones(n))
        ridge = 0.5 if self.loss == "squared_hinge" else 1e-10 * np.trace(K) / n
        alpha = solve_qp(K + ridge * np.eye(n), np.ones(n), np.hstack(bounds), low, 1)[
            0
        ]
        free = (alpha > 1e-6 * alpha.max()) & (
            (alpha < 1.0 - 1e-6) | (self.loss != "hinge")
        )
        w = alpha @ A
        slack = ridge * alpha if self.loss == "squared_hinge" else 0.0 * alpha
        self.coef_, self.intercept_ = (
            w[None],
            np.median((y * (1.0 - slack - A @ w))[free])[None],
        )
        return self


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


def has_penalty(estimator):
    """Whether the intercept is penalised, as the coefficient of a constant."""
    return type(estimator).__name__ in ("LinearSVC", "plq_Ridge_Classifier")


def best_with_penalty(estimator, X, y, weight):
    """A lower bound on the least objective with a penalised intercept."""
    one = np.ones((len(y), 1))
    X = sp.hstack([X, one], format="csr") if sp.issparse(X) else np.hstack([X, one])
    clf = MaxMarginClassifier(
        C=1.0, loss=estimator.loss, fit_intercept=False, tol=1e-8
    ).fit(X, y)
    return 0.5 / clf.margin_bound_**2


def direction(estimator):
    w = estimator.coef_
    return np.ravel(w.toarray() if sp.issparse(w) else w)


def margin(estimator, X, y, weight):
    """That of the direction, with the best intercept."""
    w = direction(estimator)
    scores = X @ w
    return (
        0.5
        * (scores[y > 0].min() - scores[y < 0].max())
        / max(np.linalg.norm(w), 1e-300)
    )


def objective(estimator, X, y, weight, power):
    """That of the fitted predictor."""
    w, b = direction(estimator), np.ravel(estimator.intercept_)[0]
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return 0.5 * (w @ w + has_penalty(estimator) * b * b) + np.sum(slack**power)


def squared(estimator, X, y, weight):
    return objective(estimator, X, y, weight, 2)


def simple(estimator, X, y, weight):
    return objective(estimator, X, y, weight, 1)


WORTH = {"squared_hinge": squared, "hinge": simple, "hard": margin}


def shape_of(estimator, X, y, weight):
    return X.shape


def same_gap(child, loss, best):
    """LinearSVC with the largest tolerance that comes to the gap; None: none does in time."""
    for tol in 10.0 ** np.arange(-4, -13, -1):
        clf = LinearSVC(C=1.0, loss=loss, tol=tol, max_iter=10**6, random_state=0)
        child.ask(measured, clf, SECONDS)
        if child.ask(WORTH[loss]) <= (1.0 + GAP) * best:
            return clf
    return None


def peers(loss, n):
    """Estimators by the name of their column."""
    if loss == "hard":
        yield "LinearSVC", LinearSVC(loss="hinge", C=1e6, max_iter=3000, random_state=0)
        yield "SVC", SVC(kernel="linear", C=np.inf, cache_size=1000)
    else:
        yield "LinearSVC", LinearSVC(C=1.0, loss=loss, random_state=0)
        if loss == "hinge":
            yield "SVC", SVC(kernel="linear", cache_size=1000)
        if ReHLine is not None:
            kind = {"name": "svm"} if loss == "hinge" else {"name": "squared svm"}
            yield "ReHLine", ReHLine(loss=kind, C=1.0)
    if solve_qp is not None and n <= DENSE:
        yield "quadprog", Quadprog(loss)


def timed(child, clf, loss):
    """CPU seconds, the median of three fits after a first one; the last; its model's worth."""
    took = [child.ask(measured, clf, SECONDS) for _ in range(4)][1:]
    return np.median([one["cpu"] for one in took]), took[-1], child.ask(WORTH[loss])


def compare(name, loss):
    """Print a line of the table; of a hard margin, if there is one."""
    ours, cells, child = MaxMarginClassifier(), {}, Child(data, name)
    if loss != "hard":
        ours.set_params(C=1.0, loss=loss)
    child.ask(warm_up, ours)
    n, d = child.ask(shape_of)
    own, took, _ = timed(child, ours, loss)
    if loss == "hard" and took["status"] != "certified":
        return child.end()
    bound = took["margin_bound"]
    fits, best = dict(peers(loss, n)), {False: 0.5 / bound**2, True: None}
    if loss != "hard":
        best[True] = child.ask(best_with_penalty, fits["LinearSVC"])
        with suppress(ChildError):
            fits["same gap"] = same_gap(child, loss, best[True])
    for key, clf in fits.items():
        try:
            seconds, _, worth = timed(child, clf, loss)
        except ChildError as error:
            cells[key] = "–" if "Error" in str(error) else f"> {SECONDS:.0f} s"
            child.end()
            child = Child(data, name)
            continue
        least = best[has_penalty(clf)]
        off = 1.0 - worth / bound if loss == "hard" else worth / least - 1.0
        more = f"{max(off, 0.0):.0e}" if off < 1.0 else "wrong"
        cells[key] = f"x{float(f'{seconds / own:.2g}'):g}, {more}"
    child.end()
    line = [
        name,
        f"{n:,} x {d:,}",
        loss.replace("_", " "),
        took["status"],
        f"{1e3 * own:.3g}",
    ]
    print(
        "| " + " | ".join([*line, *(cells.get(key, "") for key in COLUMNS)]) + " |",
        flush=True,
    )


def raw(name):
    """X as it is published, labels -1 and 1, and no weights."""
    X, y = load(name)
    return X, np.where(y == np.unique(y)[1], 1.0, -1.0), None


def sweep(name, load, loss):
    """Print how the fits with each C end, under kernels for Haswell's and Nehalem's processors."""
    ends = {}
    for core in ("Haswell", "Nehalem"):
        os.environ["OPENBLAS_CORETYPE"] = core
        with Child(load, name) as child:
            for C in COSTS:
                clf = MaxMarginClassifier(C=C, loss=loss)
                took = child.ask(measured, clf, 10.0 * SECONDS)
                end = took["status"] if took["status"] != "certified" else "ok"
                ends.setdefault(C, []).append(
                    f"{end} ({took['gap']:.0e}, {took['cpu']:.2g} s)"
                )
    cells = [
        a if a.split()[0] == b.split()[0] else f"{a}; {b}" for a, b in ends.values()
    ]
    print(f"| {name}, {load.__name__}, {loss} | {' | '.join(cells)} |", flush=True)


def million(name):
    """A million rows of 30 features in two classes that overlap."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10**6, 30)), np.where(np.arange(10**6) % 2, 1.0, -1.0)
    X[:, :4] += 0.5 * y[:, None]
    return X, y, None


def large(loss):
    """Print seconds and memory of a fit to a million rows, its first."""
    with Child(million, "") as child:
        clf = MaxMarginClassifier(C=1.0, loss=loss)
        child.ask(warm_up, clf)
        took = child.ask(measured, clf, 10.0 * SECONDS)
    more = took["beyond"] / took["size"]
    print(
        f"| 1,000,000 x 30, {loss} | {took['status']} | {took['cpu']:.2f} s | {more:.1f} of X |"
    )


COSTS = 10.0 ** np.arange(-4, 7, 2)
COLUMNS = ("LinearSVC", "same gap", "SVC", "ReHLine", "quadprog")

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["--sweep"]:
        print("| set | " + " | ".join(f"C = {C:g}" for C in COSTS) + " |", flush=True)
        for name in ("german_numer_scale", "svmguide1", "breast_wisconsin"):
            for form in (raw, data):
                for loss in ("squared_hinge", "hinge"):
                    sweep(name, form, loss)
    elif sys.argv[1:] == ["--large"]:
        for loss in ("squared_hinge", "hinge"):
            large(loss)
    else:
        columns = ["set", "n x d", "loss", "status", "ms", *COLUMNS]
        print(
            "| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|",
            flush=True,
        )
        for name in sys.argv[1:] or SETS:
            for loss in LOSSES:
                compare(name, loss)
