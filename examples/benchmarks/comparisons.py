"""Cox's regression and choices at scale: how long check_separability takes, and its proof.

    python examples/benchmarks/comparisons.py [subjects] [features]

Seconds of the processor, one thread, generated data; MB is by how much the largest resident memory
grew. Each line is a process of its own. The last ones are of small designs: medians of 21.
"""

import multiprocessing
import resource
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from marginsvm import check_separability, check_separability_proof

# Name: whether times have ties, a mark that nobody with an event has, strata and late entries.
SURVIVAL = {
    "ties": (True, False, False),
    "no ties, strata, entry": (False, False, True),
    "no ties, strata, entry, rare mark": (False, True, True),
}
CHOICES = {"choices of 1 in 4": False, "choices of 1 in 4, rare mark": True}
RARE = 1e-3  # share of subjects that have the mark


def survival(n, d, ties, mark, more, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    hazard = np.exp(X @ rng.standard_normal(d) / np.sqrt(d))
    event_time, censored = rng.exponential(1 / hazard), rng.exponential(1.0, n)
    time_, event = np.minimum(event_time, censored), event_time <= censored
    if ties:
        time_ = np.ceil(50 * time_)
    if mark:
        X[:, 0] = rng.random(n) < max(RARE, 10 / n)
        event &= X[:, 0] == 0
    given = {"family": "cox"}
    if more:
        given |= {"strata": rng.integers(0, 20, n), "entry": 0.9 * time_ * rng.random(n)}
    return X, np.column_stack([time_, event]), given


def choices(n, d, mark, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    utility = X @ rng.standard_normal(d) / np.sqrt(d) + rng.gumbel(size=n)
    y = np.zeros(n)
    y[np.arange(0, n, 4) + utility.reshape(-1, 4).argmax(axis=1)] = 1.0
    if mark:
        X[:, 0] = (rng.random(n) < max(RARE, 10 / n)) & (y == 0)
    return X, y, {"family": "conditional", "groups": np.arange(n) // 4}


def data_of(name, n, d):
    if name in SURVIVAL:
        return survival(n, d, *SURVIVAL[name])
    return choices(n // 4 * 4, d, CHOICES[name])


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds_of(work):
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def large(name, n, d):
    threadpool_limits(1)
    X, y, given = data_of(name, n, d)
    before = megabytes()
    seconds, report = seconds_of(lambda: check_separability(X, y, **given))
    more = megabytes() - before
    checked, proof = seconds_of(lambda: check_separability_proof(report, X, y, exact=True))
    infinite = sum(c.status != "finite" for c in report.coefficients)
    size = f"{len(X):,} x {d} ({X.nbytes / 2**20:.0f} MB)"
    found = f"{report.kind}, {infinite} infinite, {report.separated.sum():,} separated"
    print(f"{name}, {size}: {seconds:.2f} s, {more:.0f} MB more; {found}, by", end=" ")
    print(f"{len(report.comparisons.winner):,} pairs; in integers {bool(proof)}, {checked:.1f} s")


def small(name, n, d):
    threadpool_limits(1)
    X, y, given = data_of(name, n, d)
    times = [seconds_of(lambda: check_separability(X, y, **given))[0] for _ in range(21)]
    print(f"{name}, {n:,} x {d}: {1e3 * np.median(times):.1f} ms")


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    d = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    names = [*SURVIVAL, *CHOICES]
    for work, size in ((large, (n, d)), (small, (1000, 30))):
        for name in names:
            process = multiprocessing.get_context("spawn").Process(target=work, args=(name, *size))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
