"""The finite coefficients of all families: limits of a penalty path."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.limit_cases import CASES, RIDGES, of_classes, of_groups, of_rankings, ordinal, season

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


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 1190])
def test_what_is_left_of_pairs_are_those_that_can_win_back(seed):
    """Two divisions; in one of the seeds an item of the strong one has won all of its games."""
    X, y = season(seed, 0.2)
    above = np.zeros((7, 7), bool)
    above[X[y > 0, 0], X[y > 0, 1]] = above[X[y < 1, 1], X[y < 1, 0]] = True
    for _ in range(3):
        above |= (above.astype(int) @ above) > 0
    kept = check_separability(X, y, family="pairs").remainder(X)
    np.testing.assert_array_equal(kept, (above & above.T)[X[:, 0], X[:, 1]])
    assert 0 < kept.sum() < len(X)


@pytest.mark.parametrize("seed", range(6))
def test_the_classes_that_are_left(seed):
    np.testing.assert_array_equal(*of_classes(seed).remainder)


@pytest.mark.parametrize("seed", range(6))
def test_rankings_are_cut_between_the_divisions(seed):
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
    assert [c.status for c in report.coefficients] == ["finite", "+inf", "+inf", "finite"]
    rows, lower, upper, columns = report.remainder(X)
    path = [ordinal(X, y, y, 3, ridge)[[0, 3]] for ridge in RIDGES]
    rest = ordinal(X[rows][:, columns], lower[rows], upper[rows], 3, 1e-12)
    # The other threshold and the mark grow together: what is left of them is their difference.
    limit = rest[[0, 2 + columns.tolist().index(1)]]
    np.testing.assert_allclose(path[-1], limit, atol=1e-4)
