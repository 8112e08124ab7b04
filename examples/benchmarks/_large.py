"""Tables of the large sets: time, memory and excess objective, each fit in a child process.

The child of each estimator has a copy of the data. They fit in turns, so that all see the same
machine; fits that take longer than LIMIT are interrupted, and count as ">" that time.
"""

import numpy as np
from _children import (
    MEGABYTE,
    Child,
    ChildError,
    measured,
    objective,
    save,
    saved,
    warm_up,
)
from _sets import gauss, load, standardised, text_like, topics
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier

LIMIT = 60.0  # seconds of wall-clock time for a fit (MNIST: five times as much)
ENOUGH = 8.0  # CPU seconds of an estimator's fits after which it fits no more
TURNS = 5


def news(binary, unit):
    X, y = load("news20")
    return (normalize(X) if unit else X), (y % 2 if binary else y)


def pixels():
    X, y = load("mnist")
    X /= 255.0
    return X, y


def scaled(name):
    X, y = load(name)
    return standardised(X), y


TWO = [  # name, how to make it, C, tol
    (
        "generated text, seed 0",
        lambda: text_like(60_000, 30_000, 0),
        (1.0, 100.0),
        1e-4,
    ),
    (
        "generated text, seed 1",
        lambda: text_like(200_000, 20_000, 1),
        (1.0, 100.0),
        1e-4,
    ),
    (
        "generated text, seed 7",
        lambda: text_like(30_000, 45_000, 7),
        (1.0, 100.0),
        1e-4,
    ),
    ("news20 even/odd, unit rows", lambda: news(True, True), (1.0, 100.0), 1e-4),
    ("news20 even/odd, raw counts", lambda: news(True, False), (1.0,), 1e-3),
]
MORE = [
    ("letter, standardised", lambda: scaled("letter"), (1.0,), 1e-4),
    ("pendigits, standardised", lambda: scaled("pendigits"), (1.0,), 1e-4),
    ("news20, unit rows", lambda: news(False, True), (1.0,), 1e-4),
    ("news20, raw counts", lambda: news(False, False), (1.0,), 1e-3),
    ("generated topics, seed 3", lambda: topics(6_000, 50_000, 100, 3), (1.0,), 1e-4),
    ("mnist, pixels / 255", pixels, (1.0,), 1e-3),
]
HARD = [("Gaussian, overlap, seed 5", lambda: gauss(20_000, 2_000, 5), (np.inf,), 1e-4)]
KERNELS = [
    ("usps, rbf", lambda: load("usps"), (1.0,), 1e-4),
    ("pendigits, rbf", lambda: load("pendigits"), (1.0,), 1e-4),
]


def ovr(C):
    return LinearSVC(C=C, dual="auto")


def crammer_singer(C):
    return LinearSVC(C=C, multi_class="crammer_singer")


def objective_of(estimator, X, y, weight):
    return objective(estimator, X, y)


def in_turns(folder, estimators, limit, ask_objective=False):
    """For each estimator: what its fits took, and its objective; or the text of its failure."""
    children = [Child(saved, folder) for _ in estimators]
    fits, ends = [[] for _ in estimators], [None] * len(estimators)
    try:
        for child, estimator in zip(children, estimators, strict=True):
            child.ask(warm_up, estimator)
        for _ in range(TURNS):
            for i, (child, estimator) in enumerate(
                zip(children, estimators, strict=True)
            ):
                if ends[i] is None and sum(f["cpu"] for f in fits[i]) < ENOUGH:
                    try:
                        fits[i].append(child.ask(measured, estimator, limit))
                    except ChildError as error:
                        ends[i] = str(error)
        for child, mine, end in zip(children, fits, ends, strict=True):
            if ask_objective and end is None:
                mine[-1]["objective"] = child.ask(objective_of)
    finally:
        for child in children:
            child.end()
    return [mine if end is None else end for mine, end in zip(fits, ends, strict=True)]


def seconds(fits, limit):
    """Median CPU time; or how a fit failed, in a word."""
    if isinstance(fits, str):
        return f"> {limit:.0f}" if "deaf" in fits else fits.split(":")[0]
    median = float(np.median([f["cpu"] for f in fits]))
    stopped = fits[-1].get("status") == "interrupted"
    return f"> {limit:.0f}" if stopped else f"{median:.3g}"


def ours_in_words(fits, limit):
    """Status with gap, seconds and memory beyond X: three cells."""
    if isinstance(fits, str):
        return "", seconds(fits, limit), ""
    last, beyond = fits[-1], max(f["beyond"] for f in fits) / MEGABYTE
    return f"{last['status']}, {last['gap']:.0e}", seconds(fits, limit), f"{beyond:.0f}"


def excess(ours, theirs):
    """By which fraction an objective is above that of our solution."""
    if isinstance(ours, str) or isinstance(theirs, str) or not ours[-1]["margin"] > 0:
        return ""
    return f"{2.0 * theirs[-1]['objective'] * ours[-1]['margin'] ** 2 - 1.0:.0e}"


def shape_of(X):
    return f"{X.shape[0]:,} x {X.shape[1]:,}"


def rows(cases, folder, peers, kernel=False, two=False):
    """Lines of a table: for each set and each C what ours and its peers took."""
    for name, make, Cs, tol in cases:
        X, y = make()
        save(folder, X, y)
        limit = 5 * LIMIT if name.startswith("mnist") else LIMIT
        k = "" if two else f" {len(np.unique(y))} |"
        shape = (
            {"kernel": "rbf", "gamma": 1.0 / (X.shape[1] * X.var())} if kernel else {}
        )
        head = f"| {name} | {shape_of(X)} |{k}"
        del X, y
        for C in Cs:
            mine = MaxMarginClassifier(C=C, tol=tol, **shape)
            others = [peer(C, **shape) for peer in peers]
            ours, *theirs = in_turns(folder, [mine, *others], limit, two)
            cells = [f"{C:g}", *ours_in_words(ours, limit)]
            cells += [seconds(their, limit) for their in theirs]
            cells += [excess(ours, their) for their in theirs if two]
            print(head, " | ".join(cells), "|", flush=True)


def large(folder):
    """Print the tables; the folder is for the data of the children."""
    ours = "C | result, gap | s | MB beyond X |"
    print(f"\n| set | n x d | {ours} LinearSVC s | its excess |\n|{'---|' * 8}")
    rows(TWO, folder, [ovr], two=True)
    print(
        f"\n| set | n x d | classes | {ours} one-vs-rest s | crammer_singer s |\n|{'---|' * 9}"
    )
    rows(MORE, folder, [ovr, crammer_singer])
    print(f"\n| set | n x d | classes | {ours}\n|{'---|' * 7}")
    rows(HARD, folder, [])
    print(f"\n| set | n x d | classes | {ours} SVC s |\n|{'---|' * 8}")
    rows(
        KERNELS,
        folder,
        [lambda C, **kernel: SVC(C=C, cache_size=2000, **kernel)],
        kernel=True,
    )
