"""Many small fits: how many a second, certified, beside loops of other fits.

    python examples/benchmarks/many_fits.py [--problems 10000] [--spheres 30000] [--threads 1 2]

The first table is of separable problems of 100 Gaussian examples with 500 features, half of each
class, whose means are one apart in each of the first four features; they are generated 500 at a
time, which is not counted. The gap is the largest certified relative one. Loops of single fits take
a part of the problems. The second table is a searchlight: spheres of 100 voxels each, 120 examples
of two classes, six folds. Seconds are those of the processor for one thread, of the clock for two.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from marginsvm import MaxMarginClassifier, cross_val_many, fit_many

AT_A_TIME, ALONE = 500, 200  # problems generated together, and fitted by loops
TOL = 1e-4
LOSSES = {
    "hard": {},
    "C = 1, squared": {"C": 1.0},
    "C = 1, hinge": {"C": 1.0, "loss": "hinge"},
}


def problems(seed, n=AT_A_TIME):
    """Examples of some problems, and the labels of all."""
    X = np.random.default_rng(seed).standard_normal((n, 100, 500))
    y = np.arange(100) % 2
    X[:, y == 1, :4] += 1.0
    return X, y


def clock(threads):
    """CPU seconds, which others on the machine hardly change; with threads, seconds."""
    return time.process_time if threads == 1 else time.perf_counter


def of_many(estimator, n_problems, now):
    """Fits a second, the largest gap, and how many were fitted one by one."""
    seconds, gap, alone = 0.0, 0.0, 0
    for seed in range(n_problems // AT_A_TIME):
        X, y = problems(seed)
        begun = now()
        fits = fit_many(estimator, X, y)
        seconds += now() - begun
        gap, alone = max(gap, float(fits.gap.max())), alone + len(fits.single)
    return n_problems / seconds, gap, alone


def of_loop(estimator):
    """Fits a second, one by one."""
    X, y = problems(0, ALONE)
    begun = time.process_time()
    for x in X:
        estimator.fit(x, y)
    return ALONE / (time.process_time() - begun)


def peers(name, C):
    """Other fits of these problems, which have no certificate."""
    loss = "hinge" if "hinge" in name else "squared_hinge"
    if "squared" not in name:
        yield SVC(kernel="linear", C=C)
    yield LinearSVC(loss=loss, C=C, max_iter=10_000)


def table_of_fits(n_problems, all_threads):
    print(f"{n_problems} problems of 100 x 500: fits a second (largest gap; fitted one by one)")
    for name, options in LOSSES.items():
        estimator = MaxMarginClassifier(tol=TOL, **options)
        for threads in all_threads:
            with threadpool_limits(threads):
                rate, gap, alone = of_many(estimator, n_problems, clock(threads))
            print(f"{name:15} fit_many, {threads} thread(s)  {rate:7.0f} ({gap:.0e}; {alone})")
        with threadpool_limits(1):  # and so are the passes of single fits
            others = [estimator, *peers(name, options.get("C", 1e6))]
            for other in others:
                rate = of_loop(other)
                print(f"{name:15} {type(other).__name__ + ', loop':22} {rate:7.0f}")


def table_of_spheres(n_spheres, all_threads):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 20_000)), np.arange(120) % 2
    X[y == 1, :500] += 0.3
    spheres = [rng.choice(20_000, 100, replace=False) for _ in range(n_spheres)]
    cv = StratifiedKFold(6)
    print(f"\nsearchlight of {n_spheres} spheres, 100 voxels, 120 examples, 6 folds")
    for threads in all_threads:
        with threadpool_limits(threads):
            now = clock(threads)
            begun = now()
            scores = cross_val_many(MaxMarginClassifier(C=1.0), X, y, columns=spheres, cv=cv)
            seconds = now() - begun
        certified = np.mean(scores.status == "certified")
        print(f"cross_val_many, {threads} thread(s): {seconds:.0f} s, {certified:.2%} certified")
    some = spheres[: max(1, n_spheres // 1000)]
    threadpool_limits(1)
    for other in (LinearSVC(C=1.0, max_iter=10_000), MaxMarginClassifier(C=1.0)):
        begun = time.process_time()
        for sphere in some:
            cross_val_score(other, X[:, sphere], y, cv=cv)
        seconds = (time.process_time() - begun) * n_spheres / len(some)
        print(f"{type(other).__name__}, loop, from {len(some)} spheres: {seconds:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--spheres", type=int, default=30_000)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table_of_fits(given.problems, given.threads)
    table_of_spheres(given.spheres, given.threads)
