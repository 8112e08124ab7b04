"""Real data of families that had none: small tables, typed from the literature."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from marginsvm import check_separability, check_separability_proof

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
# The first three of the Formula One championships of 2018 to 2023.
SEASONS = [
    ["Hamilton", "Vettel", "Raikkonen"],
    ["Hamilton", "Bottas", "Verstappen"],
    ["Hamilton", "Bottas", "Verstappen"],
    ["Verstappen", "Hamilton", "Bottas"],
    ["Verstappen", "Leclerc", "Perez"],
    ["Verstappen", "Perez", "Hamilton"],
]


@pytest.fixture
def wine():
    """Temperature and contact of each glass, and its rating."""
    X = np.array([x for x, counts in WINE.items() for _ in range(sum(counts))], float)
    y = np.concatenate([np.repeat(np.arange(1, 6), counts) for counts in WINE.values()])
    return X, y


@pytest.fixture
def games():
    """Winner and loser of each game."""
    first, second = np.nonzero(WINS)
    both = np.repeat(np.column_stack([first, second]), np.array(WINS)[first, second], axis=0)
    return np.array(TEAMS)[both]


def statuses(report):
    return {c.name: c.status for c in report.coefficients}


def test_bitterness_of_wine_has_the_estimate_of_the_books(wine):
    X, y = wine
    report = check_separability(X, y, family="ordinal")
    assert report.estimate_exists
    assert check_separability_proof(report, X, y, exact=True)

    def loss(p):
        ends = np.concatenate([[-np.inf], p[:4], [np.inf]])
        score = X @ p[4:]
        return -np.log(
            np.maximum(expit(ends[y] - score) - expit(ends[y - 1] - score), 1e-300)
        ).sum()

    found = minimize(loss, [-1.0, 1.0, 3.0, 5.0, 0.0, 0.0]).x
    known = [-1.344, 1.251, 3.467, 5.006, 2.503, 1.528]  # of the vignette of R's package ordinal
    np.testing.assert_allclose(found, known, atol=2e-3)


def test_no_warm_wine_is_not_bitter_at_all(wine):
    X, y = wine
    report = check_separability(X, y > 1, family="ordinal", feature_names=["warm", "contact"])
    assert report.kind == "quasi-complete"
    assert statuses(report) == {"False|True": "finite", "warm": "+inf", "contact": "finite"}
    np.testing.assert_array_equal(report.separated, X[:, 0] == 1)
    assert check_separability_proof(report, X, y > 1, exact=True)


def test_baseball_has_the_estimate_of_the_book(games):
    report = check_separability(games, np.ones(len(games)), family="pairs")
    assert report.estimate_exists
    assert set(statuses(report).values()) == {"finite"}
    won = np.array(WINS, float)

    def loss(p):
        strength = np.append(0.0, p)
        return -(won * np.log(expit(strength[:, None] - strength))).sum()

    known = [1.108, 0.684, 1.436, 1.581, 1.248, 1.294]
    np.testing.assert_allclose(minimize(loss, np.zeros(6)).x, known, atol=2e-3)


def test_a_team_that_loses_every_game(games):
    lost = games[games[:, 0] != "Baltimore"]
    report = check_separability(lost, np.ones(len(lost)), family="pairs")
    assert set(statuses(report).values()) == {"+inf"}  # against Baltimore, the first
    np.testing.assert_array_equal(report.separated, lost[:, 1] == "Baltimore")
    np.testing.assert_array_equal(report.remainder(lost), lost[:, 1] != "Baltimore")
    assert check_separability_proof(report, lost, np.ones(len(lost)), exact=True)


def test_drivers_who_never_beat_one_of_the_others():
    """Hamilton, Bottas, Verstappen, Leclerc and Perez beat each other in cycles."""
    report = check_separability(SEASONS, family="pairs")
    below = {"Vettel", "Raikkonen"}
    for name, status in statuses(report).items():
        assert status == ("-inf" if name in below else "finite"), name
    assert report.remainder(SEASONS) == SEASONS[1:]
    assert check_separability_proof(report, SEASONS, None, exact=True)
