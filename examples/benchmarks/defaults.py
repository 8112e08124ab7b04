"""Soft margins by default: ``MaxMarginClassifier(C=1.0)`` against ``LinearSVC()``.

    MARGINSVM_DATA=/path/to/sets python defaults.py [SET ...]

All other parameters are the defaults of both: ours is certified to a gap of 1e-6, LinearSVC stops
at a tolerance of 1e-4 or after 1000 epochs. Dense features are standardised, sparse ones as
published (news20: rows of norm 1). CPU time of one thread, medians of fits that alternate.
"""

import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from _sets import load, standardised
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginsvm import MaxMarginClassifier

SETS = [
    "heart_scale",
    "sonar",
    "breast_wisconsin",
    "german_numer_scale",
    "svmguide1",
    "rcv1_ccat_small",
    "tng_basehock",
    "mushrooms",
    "a9a",
    "dna",
    "pendigits",
    "news20",
]
SECONDS = (
    4.0  # CPU time after which no further fit of a set begins; at least three are made
)


def data(name):
    X, y = load(name)
    if name == "news20":
        return normalize(X), y
    return (X if sp.issparse(X) else standardised(X)), y


def seconds(clf, X, y):
    began = time.process_time()
    clf.fit(X, y)
    return time.process_time() - began


def main():
    print(
        "| set | n x d | classes | ms | LinearSVC ms | ratio | gap |\n"
        + "|---" * 7
        + "|"
    )
    for name in sys.argv[1:] or SETS:
        X, y = data(name)
        both = MaxMarginClassifier(C=1.0), LinearSVC()
        for clf in both:
            clf.fit(X, y)  # compiled loops, caches
        times = [], []
        while len(times[0]) < 3 or (len(times[0]) < 21 and np.sum(times) < SECONDS):
            for clf, measured in zip(both, times, strict=True):
                measured.append(seconds(clf, X, y))
        ours, theirs = (1e3 * float(np.median(measured)) for measured in times)
        shape, k = f"{X.shape[0]:,} x {X.shape[1]:,}", len(both[0].classes_)
        figures = (
            f"{ours:.3g} | {theirs:.3g} | x{theirs / ours:.2f} | {both[0].gap_:.0e}"
        )
        print(f"| {name} | {shape} | {k} | {figures} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
