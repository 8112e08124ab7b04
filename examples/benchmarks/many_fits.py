"""Many small fits: milliseconds of a fit, certified, beside loops of LinearSVC and SVC.

    python examples/benchmarks/many_fits.py [--fits 1000] [--spheres 1000]

The first table is of stacks of Gaussian examples, half of each class, whose means are one apart in
each of four features: FITS problems of 60 x 30, and fewer of larger ones. The gap is the largest
certified relative one. Loops of single fits take a part of the problems. The second table is a
searchlight: spheres of 100 voxels each, 120 examples of two classes, six folds. All in one thread,
in seconds of the processor.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from marginsvm import MaxMarginClassifier, cross_val_many, fit_many

ALONE = 50  # problems that loops fit
STACKS = ((100, 4), (60, 30), (150, 50), (500, 50), (100, 500))
LOSSES = {
    "squared, C = 1": {"C": 1.0},
    "hinge, C = 1": {"C": 1.0, "loss": "hinge"},
    "hard": {},
}


def problems(B, n, d):
    """Examples of some problems, and the labels of all."""
    X, y = np.random.default_rng(0).standard_normal((B, n, d)), np.arange(n) % 2
    X[:, y == 1, :4] += 1.0
    return X, y


def peers(name):
    """Other fits of these problems, which have no certificate."""
    C = 1e6 if name == "hard" else 1.0
    loss = "hinge" if "hinge" in name else "squared_hinge"
    yield LinearSVC(loss=loss, C=C, max_iter=10_000)
    if "squared" not in name:
        yield SVC(kernel="linear", C=C)


def milliseconds(work, n):
    """CPU milliseconds of each of n fits, and the result."""
    begin = time.process_time()
    found = work()
    return 1e3 * (time.process_time() - begin) / n, found


def table_of_stacks(n_fits):
    print("| stack | fit_many, ms a fit (largest gap; one by one) | LinearSVC | SVC |")
    print("|---|---|---|---|")
    fit_many(MaxMarginClassifier(C=1.0), *problems(4, 20, 5))
    for n, d in STACKS:
        B = max(ALONE, n_fits * 1800 // max(1800, n * d))
        X, y = problems(B, n, d)
        for name, options in LOSSES.items():
            if name == "hard" and d < n:  # the classes overlap
                continue
            estimator = MaxMarginClassifier(**options)
            mine, fits = milliseconds(
                lambda e=estimator, X=X, y=y: fit_many(e, X, y), B
            )
            cells = [
                f"{n} x {d}, {name}",
                f"{mine:.2f} ({fits.gap.max():.0e}; {sum(one is not None for one in fits.single)})",
            ]
            for peer in peers(name):
                loop = milliseconds(
                    lambda p=peer, X=X, y=y: [p.fit(x, y) for x in X[:ALONE]], ALONE
                )
                cells.append(f"{loop[0]:.2f}")
            print(f"| {' | '.join([*cells, *['–'] * (4 - len(cells))])} |", flush=True)


def table_of_spheres(n_spheres):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 20_000)), np.arange(120) % 2
    X[y == 1, :500] += 0.3
    spheres = [rng.choice(20_000, 100, replace=False) for _ in range(n_spheres)]
    cv, mine = StratifiedKFold(6), MaxMarginClassifier(C=1.0)
    print(
        f"\nsearchlight of {n_spheres} spheres, 100 voxels, 120 examples, 6 folds: ms a fit"
    )
    spent, scores = milliseconds(
        lambda: cross_val_many(mine, X, y, columns=spheres, cv=cv), 6 * n_spheres
    )
    print(
        f"cross_val_many: {spent:.2f}, {np.mean(scores.status == 'certified'):.2%} certified"
    )
    some = spheres[: max(1, n_spheres // 50)]
    for other in (LinearSVC(C=1.0, max_iter=10_000), mine):
        spent, _ = milliseconds(
            lambda e=other: [
                cross_val_score(e, X[:, sphere], y, cv=cv) for sphere in some
            ],
            6 * len(some),
        )
        print(f"{type(other).__name__}, a loop: {spent:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--spheres", type=int, default=1000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        table_of_stacks(given.fits)
        table_of_spheres(given.spheres)
