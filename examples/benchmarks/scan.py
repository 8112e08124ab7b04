"""Every dense set of at most 1000 features: any units, either loss, any C. What each fit ends with.

    MARGINSVM_DATA=/path/to/sets python scan.py [set ...]
    MARGINSVM_DATA=/path/to/sets python scan.py --processors Haswell Nehalem SkylakeX

The first form prints a table for each set, as published ("raw") and standardised: the status of
``MaxMarginClassifier`` with its default ``tol``, the relative gap, CPU milliseconds and the methods
that the fit went through. The second runs the first once for each of OpenBLAS's kernels, in
processes of their own, and lists the fits whose statuses are not the same on all.
"""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # before NumPy is imported
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import subprocess
import sys
import time
import warnings

import numpy as np
from _sets import load, standardised
from sklearn.datasets import load_breast_cancer

from marginsvm import MaxMarginClassifier

COSTS = (1e-3, 1.0, 1e2, 1e4, 1e6, np.inf)
LOSSES = ("squared_hinge", "hinge")
FEW = 3000  # rows that are taken of MNIST's ten classes


def of_digits(*digits):
    def make():
        X, y = load("mnist")
        some = np.isin(y, digits)
        return X[some], y[some]

    return make


def some_of_mnist():
    X, y = load("mnist")
    return X[:FEW], y[:FEW]


def named(name):
    return lambda: load(name)


SETS = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    **{
        name: named(name)
        for name in (
            "breast_wisconsin", "german_numer_scale", "heart_scale", "musk1", "sonar", "svmguide1",
            "dna", "pendigits", "letter", "usps",
        )
    },
    "mnist 0 1": of_digits(0, 1),
    "mnist 3 5": of_digits(3, 5),
    "mnist, 3000 rows": some_of_mnist,
}  # fmt: skip


def columns_that_vary(X):
    """Constant columns have no standard deviation."""
    return X[:, np.ptp(X, axis=0) > 0]


def fits(name):
    """Form, loss and C of each fit to a set, with what it ended with."""
    X, y = SETS[name]()
    forms = {"raw": X, "standardised": standardised(columns_that_vary(X))}
    for form, given in forms.items():
        for loss in LOSSES:
            for C in COSTS:
                if np.isinf(C) and loss == "hinge":
                    continue  # both losses are one
                clf, begun = MaxMarginClassifier(C=C, loss=loss), time.process_time()
                clf.fit(given, y)
                yield form, loss, C, clf, time.process_time() - begun


def show(name):
    """Print the table of a set."""
    head = "| form | loss | C | status | gap | ms |"
    print(f"\n{name}\n\n{head}\n{'|---' * 6}|")
    for form, loss, C, clf, seconds in fits(name):
        line = f"| {form} | {loss} | {C:g} | {clf.status_} | {clf.gap_:.0e} | {1e3 * seconds:.1f} |"
        print(line, flush=True)


def statuses(processor, names):
    """What the fits end with where OpenBLAS takes the kernels of a processor."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
    command = [sys.executable, __file__, *names]
    out = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    found, name = {}, ""
    for line in out.stdout.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and cells[0] in ("raw", "standardised"):
            found[(name, *cells[:3])] = cells[3], cells[4]
        elif line and len(cells) == 1:
            name = line
    return found


def compare(processors, names):
    """List the fits that end in different ways."""
    found = {processor: statuses(processor, names) for processor in processors}
    first = found[processors[0]]
    ended = sum(status in ("certified", "no_margin") for status, _ in first.values())
    print(f"{processors[0]}: {ended} of {len(first)} fits certified or proved")
    for fit in first:
        ends = [found[processor][fit] for processor in processors]
        if len({status for status, _ in ends}) > 1:
            ways = [
                f"{p} {status} {gap}"
                for p, (status, gap) in zip(processors, ends, strict=True)
            ]
            print("; ".join([", ".join(fit), *ways]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--processors" in sys.argv:
        compare(sys.argv[sys.argv.index("--processors") + 1 :], [])
    else:
        for name in sys.argv[1:] or SETS:
            show(name)
