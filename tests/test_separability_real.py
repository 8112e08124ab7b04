"""Real data of families that had none: small tables, typed from the literature."""

import numpy as np
import pytest
from helpers.limit_cases import newton, ordinal
from helpers.separation_cases import proved

# Bitterness of wine on a scale of five, by temperature (cold, warm) and contact with the skins (no,
# yes). J. H. Randall. The analysis of sensory data by generalized linear model. Biometrical
# Journal, 1989. Counts of the ratings.
WINE = {
    (0, 0): [4, 9, 5, 0, 0],
    (0, 1): [1, 7, 8, 2, 0],
    (1, 0): [0, 5, 8, 3, 2],
    (1, 1): [0, 1, 5, 7, 5],
}
# Wins of the American League's Eastern Division in 1987, of each team against each. A. Agresti.
# Categorical Data Analysis, section on the Bradley-Terry model.
TEAMS = ["Baltimore", "Boston", "Cleveland", "Detroit", "Milwaukee", "New York", "Toronto"]
WINS = [
    [0, 1, 7, 4, 2, 3, 1],
    [12, 0, 7, 2, 6, 7, 6],
    [6, 6, 0, 4, 4, 6, 5],
    [9, 11, 9, 0, 6, 5, 7],
    [11, 7, 9, 7, 0, 7, 9],
    [10, 6, 7, 8, 6, 0, 6],
    [12, 7, 8, 6, 4, 7, 0],
]


@pytest.fixture
def wine():
    """Temperature and contact of each glass, and its rating."""
    X = np.array([x for x, counts in WINE.items() for _ in range(sum(counts))], float)
    y = np.concatenate([np.repeat(np.arange(5), counts) for counts in WINE.values()])
    return X, y


def test_bitterness_of_wine_has_the_estimate_of_the_books(wine):
    X, y = wine
    assert proved(X, y, family="ordinal").estimate_exists
    known = [-1.344, 1.251, 3.467, 5.006, 2.503, 1.528]  # of the vignette of R's package ordinal
    np.testing.assert_allclose(ordinal(X, y, y, 5, 0.0), known, atol=2e-3)


def test_no_warm_wine_is_not_bitter_at_all(wine):
    X, y = wine
    report = proved(X, y > 0, family="ordinal", feature_names=["warm", "contact"])
    assert report.kind == "quasi-complete"
    expected = {"False|True": "finite", "warm": "+inf", "contact": "finite"}
    assert dict(report.coefficients) == expected
    np.testing.assert_array_equal(report.separated, X[:, 0] == 1)


def test_baseball_has_the_estimate_of_the_book():
    first, second = np.nonzero(WINS)
    games = np.repeat(np.column_stack([first, second]), np.array(WINS)[first, second], axis=0)
    report = proved(np.array(TEAMS)[games], np.ones(len(games)), family="pairs")
    assert report.estimate_exists
    assert {c.status for c in report.coefficients} == {"finite"}
    known = [1.108, 0.684, 1.436, 1.581, 1.248, 1.294]
    np.testing.assert_allclose(newton(list(np.eye(7)[games][:, :, 1:]), 0.0), known, atol=2e-3)
