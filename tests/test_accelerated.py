"""The accelerated perceptron: the theorem of Wang, Hanashiro, Guha and Abernethy, every round."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit, separable
from helpers.games import game, optimum, rounds, theta, written_out
from helpers.hard import corner, each_hard, lopsided, small, within
from helpers.oracle import best_margin
from sklearn.datasets import load_iris

from marginsvm import AcceleratedPerceptron, DualLpPerceptron, check_certificate
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows


@pytest.mark.parametrize("exponent", [2.0, 1.4])
def test_both_players_are_the_papers(exponent, rng):
    """Both players' moves as they are defined: the minimisers of weighted sums so far."""
    X, y = separable(rng, n=40)
    data = game(X, y, exponent)
    A = written_out(data, X, y)
    p = np.full(len(A), 1.0 / len(A))
    moves, output, played = [p], 0.0, 0.0
    for state in rounds(AcceleratedPerceptron(), data, 50):
        t = state.t
        alpha = np.arange(1.0, t + 1)
        guess = A.T @ (alpha[:-1] @ np.array(moves[1:]).reshape(t - 1, len(A)) + t * moves[-1])
        # least of sum_s alpha_s (|w|^2 / 2 - p_s'A w), the last p twice
        w = theta(guess / alpha.sum(), exponent / (exponent - 1.0))
        output = output + t * w
        losses = A @ output
        p = np.exp(-(losses - losses.min()) * (exponent - 1.0) / 2.0)
        moves.append(p / p.sum())
        played = played + t * A.T @ moves[-1]
        predictor = theta(state.W.image, exponent / (exponent - 1.0))
        np.testing.assert_allclose(predictor, output, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.last.coef, moves[-1], rtol=1e-8)
        np.testing.assert_allclose(state.total.image, played, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.W.coef.sum(), t * (t + 1) / 2)


def check_the_rate(form, X, y, balanced, C=np.inf, n_rounds=300):
    """The rate for the Euclidean norm, whose best margin is known."""
    rows = make_rows(y, int(y.max()) + 1, balanced=balanced)
    data = LinearAdapter(form(X), rows, C)
    gamma = best_margin(X, y, fit_intercept=balanced, C=C) / data.rows.unit / data.radius
    check_every_round(data, gamma, 2.0, n_rounds)


def check_every_round(data, gamma, p, n_rounds):
    """Both bounds are as near as the regret of both players together allows."""
    short = above = 0.0
    for state in rounds(AcceleratedPerceptron(), data, n_rounds):
        regret = 8.0 * np.log(data.n_rows) / ((p - 1.0) * state.t * (state.t + 1))
        margin = max(state.measured.min_margin, 0.0) / data.norm(state.W)
        upper = data.norm(state.total) / state.total.mass
        short = max(short, (gamma**2 - margin**2 - 1e-9) / regret)
        above = max(above, (upper**2 - gamma**2 - 1e-9) / regret)
    assert regret < 0.5 * gamma**2  # the bound has said something
    within(short, 1.0, "shortfall, as a share of the bound")
    within(above, 1.0, "excess of the upper bound, as a share")


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_the_margin_converges_without_a_logarithm(form, balanced, C, rng):
    X, y = lopsided(rng, gamma=0.2)
    check_the_rate(form, X, y, balanced, C)


def test_the_rate_where_the_best_weights_are_a_corner():
    check_the_rate(np.asarray, *corner(), False)


@pytest.mark.parametrize("balanced", [True, False])
def test_the_same_with_three_classes(balanced):
    X, y = load_iris(return_X_y=True)
    X = X + 3.0 * np.eye(3, 4)[y]  # so that the classes can be separated
    check_the_rate(np.asarray, X, y, balanced, n_rounds=600)


@each_hard
@pytest.mark.parametrize("p", [1.5, 1.15])
def test_the_p_norm_perceptron_has_the_rate(p, kind, rng):
    """Regrets are larger by 1 / (p - 1); separation after sqrt(8 ln n / (p - 1)) / gamma rounds."""
    X, y = small(kind, rng)
    data = game(X, y, p)
    gamma = 1.0 / np.sqrt(optimum(data, X, y, p).sum())
    rounds_of_use = int(np.sqrt(16 * np.log(len(X)) / (p - 1)) / gamma) + 1
    check_every_round(data, gamma, p, rounds_of_use)


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("k", [2, 3])
def test_p_norm_margins_agree_with_coordinate_ascent(k, C, rng):
    """Which penalises the intercept the less, the larger the constant feature is."""
    X, y = separable(rng, n=30, k=k)
    params = {"p": 1.5, "C": C, "tol": 1e-2}
    free = AcceleratedPerceptron(**params).fit(X, y)
    penalised = DualLpPerceptron(intercept_scaling=30.0, random_state=0, **params).fit(X, y)
    assert check_certificate(free, X, y)
    assert free.margin_bound_ >= penalised.margin_
    assert free.margin_ <= 1.01 * penalised.margin_bound_
    bare = AcceleratedPerceptron(fit_intercept=False, **params).fit(X, y)
    same = DualLpPerceptron(fit_intercept=False, random_state=0, **params).fit(X, y)
    assert bare.margin_ <= same.margin_bound_
    assert same.margin_ <= bare.margin_bound_


@pytest.mark.parametrize("p", [1.5, 1.1, 1.01])
@pytest.mark.parametrize("C", [np.inf, 1e-3])
def test_sparse_examples_are_measured_about_their_mean_in_the_dual_norm(C, p, rng):
    """As dense ones are, but for rounding: in a column in which no entry is zero as well."""
    X, y = separable(rng, n=40, d=30)
    X *= rng.random(X.shape) < 0.3
    X[:, 0] += 20.0
    X[3], X[4] = 0.0, rng.standard_normal(30)
    dense, sparse = (
        fit(AcceleratedPerceptron(p=p, C=C, max_iter=60), form(X), y)
        for form in (np.asarray, sp.csr_array)
    )
    ours, theirs = dense.certificate_, sparse.certificate_
    q = p / (p - 1.0)
    longest = np.linalg.norm(X - X.mean(axis=0), ord=q, axis=1).max()
    slack = 1.0 / np.sqrt(2.0 * C)
    np.testing.assert_allclose(ours.radius, np.hypot(longest, slack), rtol=1e-6)
    np.testing.assert_allclose(theirs.radius, ours.radius, rtol=1e-3)
    np.testing.assert_allclose(theirs.margin_bound, ours.margin_bound, rtol=1e-3)
    for estimator in (dense, sparse):
        assert check_certificate(estimator, X, y, exact=True)
