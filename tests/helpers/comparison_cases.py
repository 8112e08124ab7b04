"""Random small problems of comparisons, all of whose pairs are written out in rationals."""

from fractions import Fraction
from itertools import permutations

import numpy as np

from helpers.separation import truth_of
from helpers.separation_cases import in_another_form, in_other_units, judged, repeated


def pairs_of(family, y, more):
    """Winners and rivals, by the definition."""
    n, pairs = len(y), permutations(range(len(y)), 2)
    if family == "conditional":
        groups = more["groups"]
        return [
            (i, j)
            for i, j in pairs
            if groups[i] == groups[j] and y[i] == 1 and y[j] == 0
        ]
    strata, entry = more.get("strata", [0] * n), more.get("entry", [-np.inf] * n)
    of_events = [(i, j) for i, j in pairs if y[i][1] == 1 and strata[i] == strata[j]]
    return [(i, j) for i, j in of_events if entry[j] < y[i][0] <= y[j][0]]


def expected(X, pairs):
    """Kind, separated pairs and statuses."""
    X = [[*map(Fraction, x)] for x in X]
    rows = [[a - b for a, b in zip(X[i], X[j], strict=True)] for i, j in pairs]
    of_pairs = [(row, False, i, j) for row, (i, j) in zip(rows, pairs, strict=True)]
    return (
        truth_of(of_pairs) if pairs else ("overlap", [], ["not identified"] * len(X[0]))
    )


ALL = ["cox", "conditional"]


def problem(seed, family=None):
    """X, y, family, further arguments, and weights or None; all numbers of X are exact."""
    rng = np.random.default_rng([seed, 31])
    family = family or ALL[seed % 2]
    n, d, high = (int(rng.integers(*ends)) for ends in ((3, 9), (1, 4), (1, 4)))
    X = rng.integers(-high, high + 1, (n, d)).astype(float)
    score = X @ rng.standard_normal(d) + rng.choice(
        [0.0, 0.3, 3.0]
    ) * rng.standard_normal(n)
    more = {}
    if family == "cox":
        times = np.exp(-score) if rng.random() < 0.6 else rng.integers(1, 5, n)
        if rng.random() < 0.5:
            times = np.ceil(2 * times)
        y = np.column_stack([times, rng.random(n) < rng.choice([0.4, 0.9])]).astype(
            float
        )
        if rng.random() < 0.4:
            more["strata"] = rng.integers(0, 3, n)
        if rng.random() < 0.4:
            more["entry"] = times * rng.choice([0.0, 0.3, 0.6, 0.9], n)
    else:
        more["groups"] = rng.integers(0, 3, n)
        y = np.zeros(n)
        for g in range(3):
            some = np.flatnonzero(more["groups"] == g)
            y[some[np.argsort(-score[some])][: rng.integers(0, 3)]] = 1
    weight = rng.integers(0, 4, n).astype(float) if rng.random() < 0.2 else None
    if weight is not None:
        weight[0] = 1.0
    return in_other_units(rng, X), y, family, more, weight


def answer_of(seed, family=None, times=1):
    """See ``judged``."""
    X, y, family, more, weight = problem(seed, family)
    n = len(X)
    kept = np.flatnonzero(np.ones(n) if weight is None else weight)
    some = {name: values[kept] for name, values in more.items()}
    pairs = pairs_of(family, y[kept].tolist(), some)
    kind, where, signs = expected(X[kept].tolist(), pairs)
    where = {(int(kept[i]), int(kept[j])) for i, j in where}
    given = repeated(in_another_form(X, seed), times)
    y, weight = repeated(y, times), repeated(weight, times)
    more = {name: repeated(values, times) for name, values in more.items()}
    if times > 1:
        key = "strata" if family == "cox" else "groups"
        more[key] = more.get(key, 0) + 10 * np.repeat(np.arange(times), n)
    every, truth = {(int(kept[i]), int(kept[j])) for i, j in pairs}, (kind, signs)

    def right(report):
        return rows_are(report, given, every, where, n)

    return judged(given, y, weight, times, truth, right, family=family, **more)


def rows_are(report, X, pairs, separated, n):
    """Whether these are the pairs of the first n that the report calls separated."""
    rest = report.remainder(X)
    if report.family == "cox":
        apart = {(i, j) for i, j in pairs if rest.strata[i] != rest.strata[j]}
        said = apart == separated
    else:
        said = set(np.flatnonzero(rest.rows[:n])) == {
            i for p in pairs - separated for i in p
        }
    winners = np.isin(np.arange(len(report.separated)) % n, [i for i, _ in separated])
    return said and np.array_equal(report.separated, winners)
