"""Many small problems in hostile units against rationals, all estimators in turn.

    cd tests && python -m helpers.attack --cases 100000 --seed 0 --jobs 2
    cd tests && python -m helpers.attack --cases 100000 --library torch

Case i is ``hostile_problem(seed + i)`` for the i-th estimator, counted around; with ``--library``,
for those that take arrays of other libraries, with such an array. In each case, each published
attribute is then given another value, which the check must refuse. Prints what was answered, by
what is true; a case that fails is named with its seed, and the exit status is 1.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from contextlib import nullcontext

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from helpers.claiming import is_found
from helpers.devices import LIBRARIES, ON_DEVICES, dispatching
from helpers.estimators import ESTIMATORS
from helpers.hostile import hostile_problem, truthful

ROUNDS = 60  # for the first-order methods: what they say must be true at any time


def run(seed, number, library=None):
    """Answers of some cases, counted; and those that went wrong."""
    answers, failed, slowest = Counter(), [], 0.0
    classes, there, context = ESTIMATORS, np.asarray, nullcontext
    if library is not None:
        classes, there, context = ON_DEVICES, LIBRARIES[library], dispatching
    with threadpool_limits(1):
        for i in range(number):
            cls = classes[(seed + i) % len(classes)]
            X, y, fit_intercept = hostile_problem(seed + i)
            start = time.perf_counter()
            try:
                with context():
                    truth, clf = truthful(cls, X, y, fit_intercept, there, max_iter=ROUNDS)
                answers[cls.__name__, truth, clf.separable_] += 1
                assert is_found(clf, X, y, rng=np.random.default_rng(seed + i))
            except Exception:
                failed.append((seed + i, cls.__name__, traceback.format_exc(limit=-2)))
            slowest = max(slowest, time.perf_counter() - start)
    return answers, failed, slowest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--library", choices=sorted(LIBRARIES))
    given = parser.parse_args()
    starts = range(given.seed, given.seed + given.cases, 500)
    last = given.seed + given.cases
    parts = Parallel(given.jobs)(delayed(run)(s, min(500, last - s), given.library) for s in starts)
    answers = sum((part[0] for part in parts), Counter())
    failed = [case for part in parts for case in part[1]]
    print(f"{given.cases} cases from seed {given.seed}, slowest {max(p[2] for p in parts):.2f} s")
    print(f"{'estimator':34} | {'separable:':>10} True None False | overlapping: False None True")
    for cls in ESTIMATORS:
        of = [
            answers[cls.__name__, truth, answer]
            for truth, order in ((True, (True, None, False)), (False, (False, None, True)))
            for answer in order
        ]
        print(f"{cls.__name__:34} | {'':10} {of[0]:4} {of[1]:4} {of[2]:5} | {'':12} ", end="")
        print(f"{of[3]:5} {of[4]:4} {of[5]:4}")
    for seed, name, text in failed:
        print(f"FAILED: seed {seed}, {name}\n{text}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
