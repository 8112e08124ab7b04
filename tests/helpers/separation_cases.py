"""Random small problems for check_separability, and what is wrong with the answer to one.

For the tests, and for ``examples/benchmarks/separation_oracle.py``.
"""

import time

import numpy as np
import scipy.sparse as sp

from helpers.separation import truth
from marginsvm import check_separability, check_separability_proof

FAMILIES = ["binomial", "multinomial", "poisson", "trials"]
OFFSETS = [0, 1, 2**10, 10**5, 10**6, 10**7, 1_700_000_000, 2**40, 2**45]


def problem(seed):
    """X, y, options, and weights or None; all numbers of X are exact."""
    rng, kind = np.random.default_rng([seed, 29]), FAMILIES[seed % 4]
    d = int(rng.integers(1, 4 if kind != "multinomial" else 3))
    n = int(rng.integers(3, 12 if kind != "multinomial" else 8))
    high = int(rng.integers(1, 4))
    X = rng.integers(-high, high + 1, (n, d)).astype(float)
    intercept = bool(rng.random() < 0.7)
    y = outcomes(rng, kind, X)
    X = in_other_units(rng, X)
    weight = None
    if rng.random() < 0.3:
        weight = rng.integers(0, 4, n).astype(float)
        weight[:3] = 1.0
    family = "binomial" if kind == "trials" else kind
    return X, y, {"family": family, "fit_intercept": intercept}, weight


def outcomes(rng, kind, X):
    """Labels or counts that hang on X, more or less."""
    n, d = X.shape
    if kind == "trials":
        y = rng.integers(0, 3, (n, 2)) * (rng.random((n, 2)) < 0.6)
        y[0] = 1, 0
        return y
    if kind == "poisson":
        return rng.integers(0, 3, n) * (rng.random(n) < 0.4)
    k = 2 if kind == "binomial" else 3
    noise = rng.choice([0, 0.3, 3]) * rng.standard_normal((n, k))
    y = (X @ rng.standard_normal((d, k)) + rng.standard_normal(k) + noise).argmax(axis=1)
    y[:k] = np.arange(k)
    return y


def in_other_units(rng, X):
    """Near other numbers, far from zero, beside their sums, and in other units."""
    d = X.shape[1]
    fine = rng.choice([0.0, 2.0**-12, 2.0**-17, 2.0**-30], p=[0.6, 0.15, 0.15, 0.1])
    X = X + fine * rng.integers(-2, 3, X.shape)
    if rng.random() < 0.5 and not fine:
        X += rng.choice(OFFSETS, d).astype(float)
    if rng.random() < 0.25:
        X = np.column_stack([X, X @ rng.integers(-1, 2, d)])
    if rng.random() < 0.4:
        X *= 2.0 ** rng.integers(-40, 41, X.shape[1])
    return X


def answer_of(seed):
    """What is wrong or open, a word for each; with the seconds that the answer took."""
    X, y, options, weight = problem(seed)
    kept = np.ones(len(X), bool) if weight is None else weight > 0
    kind, where, statuses = truth(X[kept].tolist(), y[kept].tolist(), **options)
    given = sp.csr_array(X) if seed % 3 == 0 else X
    begin = time.perf_counter()
    report = check_separability(given, y, sample_weight=weight, **options)
    seconds = time.perf_counter() - begin
    if report.kind == "undecided" or report.reason:
        return ["undecided"], report.reason, seconds
    wrong = []
    rows = np.zeros(report.separated_rows.shape, bool)
    for i, j in where:
        rows[np.flatnonzero(kept)[i], j] = True
    if report.kind != kind:
        wrong.append(f"kind {report.kind} for {kind}")
    elif not np.array_equal(rows, report.separated_rows):
        wrong.append("rows")
    elif [c.status for c in report.coefficients] != statuses:
        wrong.append(f"statuses {[c.status for c in report.coefficients]} for {statuses}")
    elif report.separable is not (kind == "complete"):
        wrong.append(f"separable {report.separable}")
    else:
        check = check_separability_proof(report, given, y, weight, exact=True)
        if not check:
            wrong.append(f"proof refused: {check.reason}")
    return wrong, report.kind, seconds
