"""Time to a maximum margin: MaxMarginClassifier against the solvers people use.

Run with the folder of data sets named by MARGINSVM_DATA, and BLAS on one thread::

    OPENBLAS_NUM_THREADS=1 MARGINSVM_DATA=... python plot_against_peers.py [picture.png]

prints (in Markdown) a table of all binary sets, raw and standardised, one
line of kernels (these unless ``--no-table``), and tables of large sets (unless ``--no-large``),
then draws the gap that each solver has left against its CPU time. A gap is 1 - margin / best
margin, the margin recomputed from ``coef_`` with the best intercept, so that a solver that
penalises the intercept (LinearSVC, skglm) is asked for its direction only.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import scipy.sparse as sp
from _large import large
from _sets import load as published
from _sets import standardised
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC

from marginsvm import BatchPerceptron, MaxMarginClassifier, MomentumMarginClassifier

try:
    from skglm import LinearSVC as SkglmLinearSVC
except ImportError:
    SkglmLinearSVC = None

SETS = [
    "golub_leukemia", "colon_alon", "arcene", "musk1", "sonar", "mushrooms", "tng_basehock",
    "rcv1_ccat_small", "mnist 0 1", "usps 0 1", "usps 3 5", "breast_wisconsin",
    "german_numer_scale", "heart_scale", "svmguide1", "a9a", "mnist 3 5",
]  # fmt: skip
DRAWN = ["arcene", "mnist 0 1", "rcv1_ccat_small"]
LOOKS = {  # of Okabe and Ito, and lines that differ without colour
    "LinearSVC": ("#0072B2", (0, (6, 1.5))),
    "SVC": ("#E69F00", "-."),
    "SGDClassifier": ("#009E73", (0, (1, 1.2))),
    "skglm LinearSVC": ("#56B4E9", (0, (4, 1, 1, 1))),
    "MaxMarginClassifier": ("#000000", "-"),
    "MomentumMarginClassifier": ("#D55E00", (0, (3, 3))),
    "BatchPerceptron": ("#CC79A7", (0, (4, 1, 1, 1, 1, 1))),
}
BUDGET = 1.5  # seconds for the repetitions of one entry


def load(name):
    """Training part of a set, or of two of its classes; labels are -1 and 1."""
    name, *pair = name.split()
    X, y = published(name)
    if pair:
        keep = np.isin(y, [int(c) for c in pair])
        X, y = X[keep], y[keep]
    return X, np.where(y == y.max(), 1, -1)


def margin_of(w, X, y):
    """Margin of a direction under its best intercept."""
    w = (w.toarray() if sp.issparse(w) else w).ravel()
    scores = X @ w
    return (
        0.5
        * (scores[y > 0].min() - scores[y < 0].max())
        / max(np.linalg.norm(w), 1e-300)
    )


def cpu(estimators, X, y):
    """Median CPU times of fits, in seconds: in turns, so that all see the same machine.

    The first fit of each, which may pay for imports and compilers, is not counted.
    """
    times = [[] for _ in estimators]
    while len(times[0]) < 10 and sum(sum(t[1:]) for t in times) < BUDGET:
        for estimator, mine in zip(estimators, times, strict=True):
            begin = time.process_time()
            estimator.fit(X, y)
            mine.append(time.process_time() - begin)
    return [float(np.median(mine[1:])) for mine in times]


def table():
    print("| set | | n x d | result | margin / radius | gap | support | iterations | ms "
          "| LinearSVC | SVC |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in SETS:
        X, y = load(name)
        for scaled in (False, True):
            row(name, standardised(X) if scaled else X, y, scaled)


def row(name, X, y, scaled):
    ours = MaxMarginClassifier().fit(X, y)
    certificate, weights = ours.certificate_, ours.certificate_.weights.nnz
    size = ours.margin_bound_ / certificate.radius
    result, gap, others = ours.status_, "", "| | |"
    if ours.separable_:
        gap = f"{ours.gap_:.0e}"
        hinge = LinearSVC(loss="hinge", C=1e6, tol=1e-4, max_iter=3000)
        svc = SVC(kernel="linear", C=np.inf, cache_size=2000, max_iter=3_000_000)
        seconds, *theirs = cpu([ours, hinge, svc], X, y)
        short = 1 - margin_of(hinge.coef_, X, y) / ours.margin_bound_
        others = f"| x{theirs[0] / seconds:.1f} ({short:.0e} short) | x{theirs[1] / seconds:.1f} |"
    else:
        (seconds,) = cpu([ours], X, y)
        result = "not separable" if ours.separable_ is False else result
    scale = "standardised" if scaled else "raw"
    shape = f"{X.shape[0]} x {X.shape[1]}"
    print(f"| {name} | {scale} | {shape} | {result} | {size:.1e} | {gap} | {weights} "
          f"| {ours.n_iter_} | {1e3 * seconds:.1f} {others}", flush=True)  # fmt: skip


def kernels():
    """Even against odd: 10,000 images of MNIST with an rbf kernel."""
    X, y = published("mnist")
    X, y = X[:10_000] / 255.0, y[:10_000] % 2
    ours = MaxMarginClassifier(kernel="rbf", gamma=0.02)
    seconds, theirs = cpu([ours, SVC(C=np.inf, gamma=0.02, cache_size=2000)], X, y)
    print(f"\nrbf: {ours.status_} at {ours.gap_:.0e}, {len(ours.support_)} support vectors, "
          f"{ours.n_iter_} iterations, {seconds:.2f} s; "
          f"SVC {theirs:.2f} s, x{theirs / seconds:.2f}",
          flush=True)  # fmt: skip


def peers():
    """Name, and the estimators of growing effort that make its curve."""
    hinge = {"loss": "hinge", "C": 1e6}
    tolerances = [10.0**-k for k in range(0, 7)]
    yield "LinearSVC", [LinearSVC(**hinge, tol=t, max_iter=20_000) for t in tolerances]
    yield (
        "SVC",
        [SVC(kernel="linear", C=np.inf, tol=t, cache_size=2000) for t in tolerances],
    )
    epochs = [1, 3, 10, 30, 100, 300, 1000]
    yield (
        "SGDClassifier",
        [
            SGDClassifier(alpha=1e-9, max_iter=n, tol=None, random_state=0)
            for n in epochs
        ],
    )
    if SkglmLinearSVC is not None:
        yield "skglm LinearSVC", [SkglmLinearSVC(C=1e6, tol=t) for t in tolerances]
    yield (
        "MaxMarginClassifier",
        [MaxMarginClassifier(max_iter=n, tol=1e-9) for n in range(1, 9)],
    )
    iterations = [10, 30, 100, 300]
    for cls in (MomentumMarginClassifier, BatchPerceptron):
        yield cls.__name__, [cls(max_iter=n, tol=1e-9) for n in iterations]


def curves(path):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 2, figsize=(8.8, 7.6), layout="constrained")
    *axes, rest = grid.ravel()
    print("\n| set | solver | smallest gap | ms |\n|---|---|---|---|")
    for name, ax in zip(DRAWN, axes, strict=True):
        X, y = load(name)
        best = MaxMarginClassifier(tol=1e-9).fit(X, y).margin_bound_
        for label, estimators in peers():
            points = []
            for estimator in estimators:
                (seconds,) = cpu([estimator], X, y)
                gap = 1 - margin_of(estimator.coef_, X, y) / best
                points.append((1e3 * seconds, min(max(gap, 1e-12), 2.0)))
                if seconds > 3 * BUDGET:
                    break
            smallest = min(points, key=lambda p: (p[1], p[0]))
            print(
                f"| {name} | {label} | {smallest[1]:.0e} | {smallest[0]:.1f} |",
                flush=True,
            )
            ours = label == "MaxMarginClassifier"
            color, line = LOOKS[label]
            look = {"color": color, "ls": line, "ms": 3, "lw": 2.4 if ours else 1.2}
            ax.loglog(*zip(*points, strict=True), "o", label=label, **look)
        ax.axhline(1.0, color="grey", lw=0.6)
        ax.set(title=f"{name}: {X.shape[0]} x {X.shape[1]}", xlabel="CPU time (ms)")
        ax.set_ylabel("1 - margin / best margin")
    rest.axis("off")
    rest.legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--no-table" not in sys.argv:
        table()
        kernels()
    if "--no-large" not in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            large(Path(folder))
    pictures = [a for a in sys.argv[1:] if not a.startswith("--")]
    if pictures:
        curves(pictures[0])
