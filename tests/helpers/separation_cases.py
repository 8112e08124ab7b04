"""Random small problems for check_separability, and what is wrong with the answer to one.

For the tests, and for ``examples/benchmarks/separation.py``.
"""

import time
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from helpers.separation import conditions, truth
from marginsvm import check_separability, check_separability_proof
from marginsvm.separation import program

FAMILIES = ["binomial", "multinomial", "poisson", "trials"]
MORE = ["ordinal", "pairs", "rankings"]
ALL = [*FAMILIES, "negative_binomial", *MORE]
OFFSETS = [0, 1, 2**10, 10**5, 10**6, 10**7, 1_700_000_000, 2**40, 2**45]


def problem(seed, kind=None, *, units=True):
    """X, y, options, and weights or None; all numbers of X are exact."""
    rng, kind = np.random.default_rng([seed, 29]), kind or FAMILIES[seed % 4]
    if kind in MORE[1:]:
        return meetings(rng, kind)
    d = int(rng.integers(1, 4 if kind != "multinomial" else 3))
    n = int(rng.integers(3, 12 if kind != "multinomial" else 8))
    high = int(rng.integers(1, 4))
    X = rng.integers(-high, high + 1, (n, d)).astype(float)
    intercept = bool(rng.random() < 0.7)
    y = outcomes(rng, kind, X)
    X = in_other_units(rng, X) if units else X
    weight = None
    if rng.random() < 0.3:
        weight = rng.integers(0, 4, n).astype(float)
        weight[:3] = 1.0
    family = "binomial" if kind == "trials" else kind
    options = {} if kind == "ordinal" else {"fit_intercept": intercept}
    return X, y, {"family": family, **options}, weight


def outcomes(rng, kind, X):
    """Labels or counts that hang on X, more or less."""
    n, d = X.shape
    if kind == "trials":
        y = rng.integers(0, 3, (n, 2)) * (rng.random((n, 2)) < 0.6)
        y[0] = 1, 0
        return y
    if kind in ("poisson", "negative_binomial"):
        return rng.integers(0, 3, n) * (rng.random(n) < 0.4)
    k = {"binomial": 2, "ordinal": int(rng.integers(2, 5))}.get(kind, 3)
    if kind == "ordinal":
        score = X @ rng.integers(-1, 2, d) + rng.choice(
            [0, 0.3, 3]
        ) * rng.standard_normal(n)
        y = np.digitize(score, np.sort(rng.integers(-2, 3, k - 1)) + 0.5)
        y[:2] = 0, k - 1
        return y
    noise = rng.choice([0, 0.3, 3]) * rng.standard_normal((n, k))
    y = (X @ rng.standard_normal((d, k)) + rng.standard_normal(k) + noise).argmax(
        axis=1
    )
    y[:k] = np.arange(k)
    return y


def meetings(rng, kind):
    """Comparisons of a few items, by how strong they are and by chance; or rankings."""
    items, n = int(rng.integers(2, 8)), int(rng.integers(1, 14))
    strength, noise = rng.integers(0, 3, items), rng.choice([0, 0.5, 3])
    names = np.array(list("hbgadcfe")[:items])
    weight = rng.integers(0, 3, n) if rng.random() < 0.3 else None
    if weight is not None:
        weight[0] = 1
    X, y = [], []
    for _ in range(n):
        some = rng.permutation(items)[
            : 2 if kind != "rankings" else int(rng.integers(2, 5))
        ]
        score = strength[some] + noise * rng.standard_normal(len(some))
        order = np.argsort(-score)
        if kind == "rankings":
            ranked = names[some[order]].tolist()
            X.append(
                [*ranked[:-2], ranked[-2], {ranked[-1]}]
                if rng.random() < 0.3
                else ranked
            )
            continue
        X.append(names[some].tolist())
        drawn = rng.random() < 0.15 or (
            noise < 1 and strength[some[0]] == strength[some[1]]
        )
        y.append(0.5 if drawn else 1.0 * (order[0] == 0))
    return X, None if kind == "rankings" else np.array(y), {"family": "pairs"}, weight


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


def in_another_form(X, seed):
    """A third are sparse; of the others, a third in float32, where that has the same numbers."""
    if seed % 3 == 0:
        return sp.csr_array(X)
    small = X.astype(np.float32)
    return small if seed % 9 < 3 and np.array_equal(small, X) else X


def repeated(table, times):
    """The same rows over and over."""
    if table is None or times == 1:
        return table
    return table[np.tile(np.arange(table.shape[0]), times)]


def statuses(report):
    return [c.status for c in report.coefficients]


def proved(X, y, sample_weight=None, exact=(False, True), **options):
    """A report whose proof holds, in floats and in integers."""
    report = check_separability(X, y, sample_weight=sample_weight, **options)
    for each in exact:
        check = check_separability_proof(report, X, y, sample_weight, exact=each)
        assert check, check.reason
    return report


def lies(report):
    """Reports that differ from a true one in one thing; and whether only an exact check sees it."""
    rows, no = report.separated_rows, "not identified"

    def told(j, status):
        names = list(report.coefficients)
        names[j] = names[j]._replace(status=status)
        return replace(report, coefficients=tuple(names))

    for j, status in enumerate(statuses(report)):
        for lie in {"finite", "+inf", "-inf", "inf"} - {status} if status != no else ():
            yield (
                told(j, lie),
                "finite" not in (status, lie) and report.family != "pairs",
            )
        if status == "finite":
            yield told(j, no), True
    for kind in {"complete", "quasi-complete", "overlap"} - {report.kind}:
        yield replace(report, kind=kind), False
    some = rows.copy()
    some[tuple(np.argwhere(rows == rows.any())[0])] ^= True
    yield replace(report, separated_rows=some), False
    if report.direction is not None:
        turned = type(report.direction)(*(-w for w in report.direction))
        yield replace(report, direction=turned), False
        yield replace(report, direction=None), False
        nothing = np.zeros_like(rows)
        yield (
            replace(report, separated_rows=nothing, kind="overlap", direction=None),
            False,
        )
    weights = report.overlap_weights
    if weights is not None and weights.data.any():
        some = weights.copy()
        some.data[some.data.nonzero()[0][0]] *= 2
        for q in (-weights, weights * 0, None, some):
            yield replace(report, overlap_weights=q), False


def judged(X, y, weight, times, truth, rows_are, **options):
    """What is wrong or open, a word for each; the kind, or why it is open; and the seconds.

    Samples of a few rows answer what is asked many times over.
    """
    few, a_column = (4, 1) if times > 1 else (program.FEW, program.A_COLUMN)
    with patch.multiple(program, FEW=few, A_COLUMN=a_column):
        begin = time.process_time()
        report = check_separability(X, y, sample_weight=weight, **options)
        seconds = time.process_time() - begin
    if report.kind == "undecided" or report.reason or not report.exact:
        return ["undecided"], report.reason, seconds
    kind, expected = truth
    answers = {
        "kind": (report.kind, kind),
        "rows": (rows_are(report), True),
        "statuses": (statuses(report), expected),
        "separable": (report.separable, kind == "complete"),
        "estimate_exists": (report.estimate_exists, kind == "overlap"),
    }
    wrong = [
        f"{name} {said} for {true}"
        for name, (said, true) in answers.items()
        if said != true
    ]
    checks = [
        check_separability_proof(report, X, y, weight, exact=exact) for exact in (0, 1)
    ]
    wrong += [f"proof refused: {check.reason}" for check in checks if not check]
    return wrong, report.kind, seconds


def answer_of(seed, kind=None, times=1, units=True):
    """See ``judged``."""
    kind = kind or FAMILIES[seed % 4]
    X, y, options, weight = problem(seed, kind, units=units)
    items = kind in MORE[1:]
    times, n = 1 if items else times, len(X)
    kept = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
    some = (
        [X[i] if items else X[i].tolist() for i in kept],
        None if y is None else y[kept].tolist(),
    )
    regression = dict(options)
    if options.get("fit_intercept"):
        x = X[kept[y[kept].any(axis=1)] if kind == "trials" else kept]
        # a constant column is the intercept
        regression["fit_intercept"] = not np.any((x == x[0]).all(axis=0) & (x[0] != 0))
    expected, where, signs = truth(*some, **regression)
    rows = [(i, j) for _, _, i, j in conditions(*some, **regression)]
    perfect = sorted(
        {i for i, _ in rows} - {row[0] for row in rows if row not in where}
    )

    def rows_are(report):
        found = [(i, j) for i, j in rows if report.separated_rows[kept[i], j]]
        places = np.arange(0, len(report.separated), n)[:, None] + kept[perfect]
        return found == where and np.array_equal(
            places.ravel(), np.flatnonzero(report.separated)
        )

    given = X if items else repeated(in_another_form(X, seed), times)
    y, weight = repeated(y, times), repeated(weight, times)
    return judged(given, y, weight, times, (expected, signs), rows_are, **options)
