"""Ordinal regressions, pairs, rankings and draws: against rationals, lies, errors, pictures."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.limit_cases import (
    CASES,
    RIDGES,
    of_classes,
    of_groups,
    of_rankings,
    ordinal,
)
from helpers.separation_cases import lies, problem, proved, statuses

from marginsvm import SeparationDisplay, check_separability, check_separability_proof
from marginsvm.separation import program


@pytest.mark.parametrize("groups", [5, 20])
def test_signs_of_large_sparse_designs_are_decided_or_open(groups, monkeypatch):
    """Of x + y >= 0 and x - y >= 0 follows x >= 0, of none of these alone; more than 16 vectors."""
    monkeypatch.setattr(program, "DENSE", -1)
    X = np.tile(
        np.kron(np.eye(groups), -np.array([[1.0, 1.0], [1.0, -1.0]])), (2500, 1)
    )
    report = check_separability(
        sp.csr_array(X), np.zeros(len(X)), family="poisson", fit_intercept=False
    )
    assert (report.kind, report.separated.all()) == ("complete", True)
    if groups == 5:
        assert statuses(report) == ["+inf", "inf"] * 5
    else:
        assert statuses(report) == ["inf"] * 40
        assert "The signs of these are not decided: x0, x1, " in report.reason
        assert report.reason.endswith("x18, x19, ....")


def ordered():
    """Pain before and after, of which a mark of four patients ends in the highest category."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(-2, 3, (30, 2)), np.arange(30) < 4]).astype(float)
    score = X[:, 0] + rng.standard_normal(30)
    y = np.array(["low", "mid", "high"])[np.digitize(score, [-0.5, 0.5])]
    y[:4] = "high"
    return X, y


def test_an_ordered_categorical_has_its_order_and_its_names():
    X, y = ordered()
    categories = ["low", "mid", "never", "high"]
    given = pd.Series(pd.Categorical(y, categories=categories, ordered=True))
    report = proved(X, given, family="ordinal")
    names = [c.name for c in report.coefficients]
    assert names == ["low|mid", "mid|high", "x0", "x1", "x2"]
    assert statuses(report) == ["finite"] * 4 + ["+inf"]
    np.testing.assert_array_equal(report.separated, X[:, 2] == 1)
    assert report.direction.coef.shape, report.direction.intercept.shape == (
        (1, 3),
        (2,),
    )
    codes = np.array([categories.index(v) for v in y])
    assert statuses(check_separability(X, codes, family="ordinal")) == statuses(report)
    table = report.to_frame()
    assert table.direction["x2"] > 0
    np.testing.assert_array_equal(table.direction.drop("x2"), 0.0)
    constant = check_separability(
        np.column_stack([X, np.ones(30)]), given, family="ordinal"
    )
    assert statuses(constant)[-1] == "not identified"  # beside thresholds


def many_values(n=4000):
    """A measurement for a category, as its ranks are regressed; a mark ends at its top."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(-2, 3, (n, 3)), np.arange(n) < 20]).astype(float)
    y = X[:, 0] + rng.logistic(size=n)
    y[:20] += 1000.0
    return X, y


@pytest.mark.filterwarnings("error")
def test_as_many_categories_as_examples():
    """Dense rows would take 256 MB, and as much again for each copy."""
    X, y = many_values()
    tracemalloc.start()
    report = check_separability(X, y, family="ordinal")
    proof = check_separability_proof(report, X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 64e6
    assert proof
    assert statuses(report)[-4:] == ["finite"] * 3 + ["+inf"]
    assert report.kind == "quasi-complete"
    refused = check_separability_proof(report, X, y, exact=True)
    assert refused.reason == "it takes too long"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_values_for_categories_change_nothing(form):
    """Few examples: the sparse rows are written out, and proved in integers."""
    X, y = many_values(60)
    report = proved(form(X), y, family="ordinal")
    assert (report.kind, report.reason) == ("quasi-complete", "")
    ranked = check_separability(X, np.argsort(np.argsort(y)), family="ordinal")
    assert statuses(ranked) == statuses(report)
    np.testing.assert_array_equal(ranked.separated_rows, report.separated_rows)


def test_a_sample_of_classes_nearly_apart_says_what_all_rows_say(monkeypatch):
    """Weights of overlapping rows carry over to the next sample; all of them are proved at last."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(8), 60)
    X = 2.5 * rng.standard_normal((8, 4))[y] + rng.standard_normal((480, 4))
    sampled = proved(X, y, exact=(False,))
    monkeypatch.setattr(program, "FEW", 10**6)
    report = check_separability(X, y)
    assert (report.kind, report.exact, sampled.exact) == ("quasi-complete", True, True)
    np.testing.assert_array_equal(sampled.separated_rows, report.separated_rows)


def test_many_classes_are_sparse_rows():
    rng = np.random.default_rng(0)
    X, y = rng.integers(-2, 3, (150, 2)).astype(float), np.arange(150) % 9
    X[:, 1] = (y == 3) & (np.arange(150) < 40)
    report = proved(X, y)
    assert (report.kind, report.reason) == ("quasi-complete", "")


def test_a_half_that_is_certain():
    """Low or mid without the mark, mid or high with it: two binomial regressions are left."""
    x, y = np.repeat([[0.0], [1.0]], 4, axis=0), np.array([0, 0, 1, 1, 1, 1, 2, 2])
    report = check_separability(x, y, family="ordinal")
    assert dict(report.coefficients) == {"0|1": "finite", "1|2": "+inf", "x0": "+inf"}
    assert not report.separated.any()
    assert report.separated_rows.tolist() == (
        [[False, False]] * 2
        + [[True, False]] * 2
        + [[False, True]] * 2
        + [[False, False]] * 2
    )
    assert "some outcomes are ruled out for 4 others" in " ".join(repr(report).split())
    rows, lower, upper, columns = report.remainder(x)
    assert rows.all()
    assert lower.tolist() == [0, 0, 1, 1, 0, 0, 2, 2]
    assert upper.tolist() == [0, 0, 2, 2, 1, 1, 2, 2]
    assert not len(columns)


def test_the_picture_of_an_ordinal_report():
    x = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    report = check_separability(x, [0, 1, 1, 2], family="ordinal")
    assert report.kind == "complete"
    ax = SeparationDisplay.from_report(report, x, [0, 1, 1, 2]).ax_
    assert len(ax.lines) == 3 + 1 + 2  # points, rings, and a line for each threshold
    w, (low, high) = -report.direction.coef[0], report.direction.intercept
    assert [np.sign(x @ w + b).tolist() for b in (low, high)] == [
        [1, -1, -1, -1],
        [1, 1, 1, -1],
    ]


def test_a_report_in_a_sentence():
    dose = np.array([0, 0, 1, 1, 2, 2, 3, 3, 3, 3], dtype=float)
    mark = np.array([0, 0, 0, 1, 0, 0, 0, 1, 1, 0], dtype=float)
    X, y = np.column_stack([dose, mark]), np.array([0, 1, 0, 1, 1, 0, 1, 1, 1, 0])
    report = check_separability(X, y, feature_names=["dose", "<mark>"])
    assert report.sentence == (
        "The maximum-likelihood estimate of <mark> is infinite (quasi-complete separation of 3 of "
        "10 examples); the other estimates are those of the limit."
    )
    overlap = check_separability(X[:, :1], y)
    assert overlap.sentence == ""


def test_a_league_in_two_divisions():
    X = [
        ["a", "b"],
        ["b", "c"],
        ["c", "a"],
        ["a", "d"],
        ["d", "g"],
        ["h", "d"],
        ["e", "f"],
    ]
    report = check_separability(X, [1, 1, 1, 1, 0.5, 1, 1], family="pairs")
    expected = [
        "finite",
        "finite",
        "-inf",
        "not identified",
        "not identified",
        "-inf",
        "inf",
    ]
    assert dict(report.coefficients) == dict(zip("bcdefgh", expected, strict=True))
    assert report.separated.tolist() == [False] * 3 + [True, False, True, True]
    assert report.remainder(X).tolist() == (~report.separated).tolist()
    assert "3 of 7 comparisons are predicted perfectly" in repr(report)
    assert "No separation: the comparisons overlap" in repr(
        check_separability(X[:3], [1, 1, 1], family="pairs")
    )


def test_rankings_are_cut_where_they_are_separated():
    X = [
        ["a", "b", "c"],
        ["b", "a", "d"],
        ["c", "d", {"e", "f"}],
        ["c", {"d", "f"}],
        ["d", "c"],
    ]
    report = proved(X, None, family="pairs")
    assert dict(report.coefficients) == {
        "b": "finite", "c": "-inf", "d": "-inf", "e": "-inf", "f": "-inf"
    }  # fmt: skip
    kept = [["a", "b"], ["b", "a"], ["c", "d"], ["c", {"d"}], ["d", "c"]]
    assert report.remainder(X) == kept
    assert check_separability(kept, family="pairs").kind == "overlap"


@pytest.mark.parametrize("seed", range(20))
def test_components_are_those_of_who_can_win_back(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 40)), int(rng.integers(1, 100))
    winner = rng.integers(0, n, m)
    loser, drawn = (winner + rng.integers(1, n, m)) % n, rng.random(m) < 0.2
    X = np.column_stack([winner, loser])
    report = proved(X, np.where(drawn, 0.5, 1.0), family="pairs")
    above = np.eye(n, dtype=int)
    above[winner, loser] = 1
    above[loser[drawn], winner[drawn]] = 1
    for _ in range(6):
        above = ((above @ above) > 0).astype(int)
    np.testing.assert_array_equal(
        report.separated, (above & above.T)[winner, loser] == 0
    )
    np.testing.assert_array_equal(report.remainder(X), ~report.separated)


def test_many_comparisons_of_many_items(rng):
    n, m = 300, 100_000
    strength = np.repeat([0, 1, 1], 100)
    X = rng.integers(0, n, (m, 2))
    X = X[X[:, 0] != X[:, 1]]
    gap = strength[X[:, 0]] - strength[X[:, 1]]
    y = np.where(gap, gap > 0, rng.integers(0, 3, len(X)) / 2)
    report = proved(X, y, exact=[False], family="pairs")
    np.testing.assert_array_equal(report.separated, gap != 0)
    assert statuses(report) == ["finite"] * 99 + ["+inf"] * 200


TWO, THREE, NAN = [[0.0], [1.0]], [[0.0], [1.0], [2.0]], np.nan
FAMILIES = "pairs", "ordinal", "poisson", "cox"
PAIRS, ORDINAL, POISSON, COX = ({"family": name} for name in FAMILIES)
TIMES, CHOICES = (
    [[1, 1], [1, 0], [2, 1]],
    {"family": "conditional", "groups": [0, 0, 0]},
)
BAD = [
    (THREE, [0, 1, 2], {"family": "binomial"}, "family='multinomial'"),
    (THREE, [0, -1, 2], POISSON, "must not be negative"),
    (THREE, [0, 1, 1], {"family": "gamma"}, "family must be one of"),
    (THREE, [0, 1, 1], {"feature_names": ["a", "b"]}, "feature_names has 2 names"),
    (
        THREE,
        [0, 1, 2],
        {**POISSON, "sample_weight": [0, 0, 0]},
        "at least one non-zero",
    ),
    (TWO, None, {}, "y is missing"),
    (TWO, None, POISSON, "y is missing"),
    (
        TWO,
        [0, 1],
        {"strata": [0, 1]},
        "strata is for family 'cox', but the family is 'binomial",
    ),
    (TWO, [0, 1], {"offset": [1.0]}, "inconsistent numbers of samples"),
    (THREE, [0, NAN, 1], {}, "y contains NaN"),
    (THREE, [0.1, 0.7, 0.2], {}, "Unknown label type: continuous"),
    (THREE, [[0, 1, 1], [1, 1, 0], [1, 0, 0]], {}, "1d array"),
    (THREE, [1, 1, 1], {}, "at least two classes"),
    (THREE, [0, 1, 1], {"sample_weight": [0, 1, 1]}, "at least two classes"),
    (THREE, [0, 1, 1], {"sample_weight": [-1, 1, 1]}, "Negative values"),
    (
        THREE,
        [0, 1, 1],
        {"fit_intercept": "no"},
        "'fit_intercept' parameter of check_separability",
    ),
    *(
        (X, [0, 1, 1], options, message)
        for options in ({}, POISSON)
        for X, message in (
            ([[0.0], [NAN], [1.0]], "X contains NaN; leave out the examples"),
            (
                [["m"], ["f"], ["m"]],
                "X holds words, but numbers are needed; give categories as d",
            ),
            ([[0.0], [np.inf], [1.0]], "infinity"),
        )
    ),
    (THREE, pd.Categorical(["a", "b", "a"]), ORDINAL, "have no order"),
    (THREE, pd.Categorical(["a", None, "b"], ordered=True), ORDINAL, "contains NaN"),
    (THREE, [1, 1, 1], ORDINAL, "one category, 1"),
    (THREE, None, ORDINAL, "y is missing"),
    ([["a", "a"]], [1], PAIRS, "compared with itself"),
    ([["a", "b", "c"]], [1], PAIRS, "two columns"),
    ([["a", "b"]], [0.3], PAIRS, "0.5 if none"),
    ([[0.0, NAN]], [1], PAIRS, "an item is NaN"),
    (
        np.array([["a", 1], ["b", 2]], object),
        [1, 0],
        PAIRS,
        "all be words, or all be numbers",
    ),
    ([["a", "b", "a"]], None, PAIRS, "ranking 0 has an item twice"),
    ([["a"]], None, PAIRS, "nothing is compared"),
    ([], None, PAIRS, "there are no rankings"),
    (THREE, [1, 2, 3], COX, "y must have two columns, time and event"),
    (
        THREE,
        [[1, 2], [1, 0], [2, 1]],
        COX,
        "the second column of y, the events, must hold 1 and 0",
    ),
    (THREE, [[1, NAN], [1, 0], [2, 1]], COX, "y contains NaN"),
    (
        THREE,
        np.zeros(3, dtype=[("time", float), ("entry", float)]),
        COX,
        "two fields: an event",
    ),
    (
        THREE,
        TIMES,
        {**COX, "entry": [0, 1, 0]},
        "entry must be before time.* example 1",
    ),
    (THREE, TIMES, {**COX, "entry": [0, 0]}, "inconsistent numbers of samples"),
    (THREE, TIMES, {**COX, "strata": [0, 0]}, "strata must have 3 entries"),
    (THREE, TIMES, {**COX, "strata": [0, NAN, 1]}, "strata contains NaN"),
    (THREE, TIMES, {**COX, "groups": [0, 0, 0]}, "groups is for family 'conditional'"),
    (THREE, [0, 1, 1], {"family": "conditional"}, "groups is missing"),
    (THREE, [0, 1, 2], CHOICES, "y must hold 1 for alternatives that were chosen"),
    (THREE, [0, 1, 1], {**CHOICES, "groups": [0, 0]}, "groups must have 3 entries"),
    (THREE, [0, 1, 1], {**CHOICES, "strata": [0, 0, 0]}, "strata is for family 'cox'"),
]


@pytest.mark.parametrize(("X", "y", "options", "message"), BAD)
def test_what_cannot_be_used(X, y, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_separability(X, y, **options)
    assert "MaxMargin" not in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["pairs", "rankings", "ordinal", "binomial", "multinomial"]
)
def test_lies_are_refuted(kind):
    told = 0
    for seed in range(12):
        X, y, options, weight = problem(seed, kind)
        report = check_separability(X, y, sample_weight=weight, **options)
        for lie, hidden in lies(report):
            for exact in (True,) if hidden else (False, True):
                check = check_separability_proof(lie, X, y, weight, exact=exact)
                assert not check, (seed, told)
                assert check.reason
                told += 1
    assert told > 40


# The finite coefficients of a regression without an estimate: limits of a penalty path.


def follows(case):
    """Whether the finite coefficients of a path of fits come near their limits."""
    away = case.away()
    assert away[-1] < 1e-4, away
    assert away[-1] <= away[0] + 1e-6
    assert case.finite.any()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("family", CASES)
def test_the_finite_coefficients_are_those_of_the_remainder(family, seed):
    """``examples/benchmarks/separation.py`` does the same for as many as one likes."""
    case = CASES[family](seed)
    follows(case)
    assert not case.finite.all() or family in (
        "binomial",
        "trials",
        "poisson",
        "negative_binomial",
    )


@pytest.mark.parametrize("seed", range(24))
def test_sparse_data_has_the_same_remainder(seed):
    case = of_groups(seed, sp.csr_array)
    follows(case)
    for found, expected in zip(case.remainder, of_groups(seed).remainder, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(6))
def test_classes_and_rankings_that_are_left(seed):
    np.testing.assert_array_equal(*of_classes(seed).remainder)
    case = of_rankings(seed)
    assert case.finite.tolist() == [True] * 2 + [False] * 4
    assert all(len({x < 3 for x in part}) == 1 for part in case.remainder)


def test_an_ordinal_limit_of_halves():
    """Low or mid without the mark, mid or high with it, and another feature."""
    rng = np.random.default_rng(5)
    mark, z = np.repeat([0.0, 1.0], 60), rng.integers(-1, 2, 120)
    y = mark.astype(int) + (rng.random(120) < 1 / (1 + np.exp(-0.7 * z)))
    X = np.column_stack([mark, z])
    report = check_separability(X, y, family="ordinal")
    assert statuses(report) == ["finite", "+inf", "+inf", "finite"]
    rows, lower, upper, columns = report.remainder(X)
    path = [ordinal(X, y, y, 3, ridge)[[0, 3]] for ridge in RIDGES]
    rest = ordinal(X[rows][:, columns], lower[rows], upper[rows], 3, 1e-12)
    # The other threshold and the mark grow together: what is left of them is their difference.
    limit = rest[[0, 2 + columns.tolist().index(1)]]
    np.testing.assert_allclose(path[-1], limit, atol=1e-4)


def test_the_classes_that_are_still_possible():
    """x = 1 is of class 0 or 1, and x = 2 of 1 or 2: no example is predicted perfectly."""
    x, y = (
        np.repeat([1.0, 2.0], [7, 9]),
        np.array([0] * 3 + [1] * 4 + [1] * 4 + [2] * 5),
    )
    report = check_separability(x[:, None], y, sample_weight=np.arange(16) > 0)
    assert not report.separated.any()
    expected = [[False] * 3] + [[True, True, False]] * 6 + [[False, True, True]] * 9
    np.testing.assert_array_equal(report.remainder(x[:, None]), expected)


def test_what_has_no_remainder():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    report = check_separability(X, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="X has 3 examples, but the report 4"):
        report.remainder(X[:3])
    with pytest.raises(ValueError, match="no remainder is known"):
        replace(report, kind="undecided").remainder(X)
    rows, columns = check_separability(X, [0, 0, 0, 1]).remainder(X)
    assert not rows.any()
    assert not len(columns)
    twice = np.hstack([X, X])
    rows, columns = check_separability(twice, [0, 1, 0, 0]).remainder(twice)
    assert rows.all()
    assert columns.tolist() == [0]


def test_what_a_report_advises():
    complete = " ".join(
        repr(check_separability([[0.0], [1.0], [2.0]], [0, 0, 1])).split()
    )
    remedies = (
        "Report these as infinite; or penalise the fit (Firth: logistf or brglm2 in R, "
        "firthmodels in Python); or drop a feature that is a mistake"
    )
    assert remedies in complete
    rng = np.random.default_rng(0)
    overlap = repr(check_separability(rng.standard_normal((60, 2)), np.arange(60) % 2))
    assert overlap.startswith("No separation: the examples overlap.")
    assert "scale the features, or raise max_iter" in " ".join(overlap.split())
    assert "x0" not in overlap
