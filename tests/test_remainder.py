"""The finite coefficients of a regression without an estimate: limits of a penalty path."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.limit_cases import CASES, RIDGES, of_classes, of_groups, of_rankings, ordinal
from helpers.separation_cases import statuses

from marginsvm import check_separability


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
    assert not case.finite.all() or family in ("binomial", "trials", "poisson")


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
    x, y = np.repeat([1.0, 2.0], [7, 9]), np.array([0] * 3 + [1] * 4 + [1] * 4 + [2] * 5)
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
    complete = " ".join(repr(check_separability([[0.0], [1.0], [2.0]], [0, 0, 1])).split())
    assert "Report these as infinite, or penalise the fit (Firth: logistf" in complete
    rng = np.random.default_rng(0)
    overlap = repr(check_separability(rng.standard_normal((60, 2)), np.arange(60) % 2))
    assert overlap.startswith("No separation: the examples overlap.")
    assert "scale the features, or raise max_iter" in " ".join(overlap.split())
    assert "x0" not in overlap
