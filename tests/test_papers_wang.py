"""Wang et al. (2023) on Nesterov's method, Wang, Min and Wu (2024) on progressive rescaling.

The game for the maximum margin and its p-norms are in test_accelerated.
"""

import numpy as np
import pytest
from helpers.estimators import separable
from helpers.games import game, rounds, written_out
from helpers.oracle import best_margin
from helpers.vectors import flat

from marginsvm import (
    AcceleratedPerceptron,
    GrowthSchedule,
    MomentumMarginClassifier,
    NesterovSchedule,
    SmoothedKernelPerceptron,
)
from marginsvm.kernel_matrix import LinearAdapter, make_rows


@pytest.mark.parametrize("delay", [1, 3])  # Ji's, and the textbooks'
@pytest.mark.parametrize("gradient", ["normalized", "plain"])
def test_the_momentum_method_is_nesterovs(gradient, delay, rng):
    """His method on the exponential loss or its logarithm, from zero with steps of length 1."""
    X, y = separable(rng, n=40)
    data = game(X, y)
    A = written_out(data, X, y)
    estimator = MomentumMarginClassifier(gradient=gradient, momentum=NesterovSchedule(delay=delay))
    x = extrapolated = np.zeros(X.shape[1])
    for t, state in enumerate(rounds(estimator, data, 50)):
        losses = np.exp(-A @ extrapolated)
        weights = losses / (losses.sum() if gradient == "normalized" else len(A))
        x, before = extrapolated + A.T @ weights, x
        extrapolated = x + t / (t + delay) * (x - before)
        np.testing.assert_allclose(state.w.image, extrapolated, rtol=1e-9)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_the_accelerated_perceptron_is_momentum_with_shorter_steps(balanced, k, rng):
    """Steps (t + 1) / (t + 2) in place of 1 are what takes the logarithm away."""
    X, y = separable(rng, n=30, k=k)
    data = LinearAdapter(X, make_rows(y, k, balanced=balanced))
    shorter = MomentumMarginClassifier(step=lambda t: (t + 1) / (t + 2))
    pairs = zip(rounds(AcceleratedPerceptron(), data, 60), rounds(shorter, data, 61), strict=False)
    total = data.zeros()
    for accelerated, momentum in pairs:
        np.testing.assert_allclose(flat(momentum.w), flat(accelerated.W) / 2, rtol=1e-8, atol=1e-10)
        g = flat(total) / accelerated.t
        np.testing.assert_allclose(flat(momentum.g), g, rtol=1e-8, atol=1e-10)
        total = accelerated.total


@pytest.mark.parametrize("balanced", [True, False])
def test_nesterovs_margin_converges_without_a_logarithm(balanced, rng):
    """His weights, a_t^2 = a_1 + ... + a_t, and momentum a_t / a_{t+1}: the step may stay 1."""
    X, y = separable(rng, n=40)
    data = LinearAdapter(X, make_rows(y, 2, balanced=balanced))
    gamma, a = best_margin(X, y, fit_intercept=balanced) / data.radius, [0.0]
    for _ in range(402):
        a.append(0.5 + np.sqrt(0.25 + a[-1] ** 2))
    estimator = MomentumMarginClassifier(momentum=lambda t: a[t] / a[t + 1])
    for state in rounds(estimator, data, 401):
        t = state.t - 1  # state.measured is w_t
        if t >= 1:
            regret = 2.0 * np.log(data.n_rows) / a[t] ** 2
            margin = max(state.measured.min_margin, 0.0) / data.norm(state.measured.vector)
            assert margin**2 >= gamma**2 - regret - 1e-9
            assert (data.norm(state.g) / state.mass_g) ** 2 <= gamma**2 + regret + 1e-9
    assert regret < 0.1 * gamma**2  # the bound said something


@pytest.mark.parametrize("balanced", [True, False])
def test_the_smoothed_perceptron_has_the_same_rate(balanced, rng):
    """By Lemma 5 of Ramdas and Pena, of 2014: L_mu is at least |alpha|^2 / 2 - margin - mu ln n."""
    X, y = separable(rng, n=40)
    data = LinearAdapter(X, make_rows(y, 2, balanced=balanced))
    gamma = best_margin(X, y, fit_intercept=balanced) / data.radius
    for state in rounds(SmoothedKernelPerceptron(), data, 300):
        regret = 8.0 * np.log(data.n_rows) / ((state.k + 1) * (state.k + 2))
        margin = max(state.best_response.weights.min_margin, 0.0) / data.norm(state.alpha)
        assert margin**2 >= gamma**2 - regret - 1e-9
        assert data.norm(state.p) ** 2 <= gamma**2 + regret + 1e-9
    assert regret < 0.2 * gamma**2  # the bound said something


def shortfalls(estimator, data, gamma, n):
    """What the margins of the rounds' predictors fall short by, relative to the best."""
    measured = (state.measured for state in rounds(estimator, data, n) if state.t > 1)
    return np.array([1.0 - m.min_margin / data.norm(m.vector) / gamma for m in measured])


def test_rate_of_the_textbooks_method(rng):
    X, y = separable(rng, n=60, margin=0.5)
    data = game(X, y)
    gamma = best_margin(X, y, fit_intercept=False) / data.radius
    estimator = MomentumMarginClassifier(momentum=NesterovSchedule(delay=3))
    short = np.maximum.accumulate(shortfalls(estimator, data, gamma, 2000)[::-1])[::-1]
    t = np.arange(200, 1900)
    assert np.polyfit(np.log(t), np.log(short[t]), 1)[0] < -1.6


def narrow(gamma):
    """Two examples that the best predictor separates by gamma: both carry weight."""
    side = np.sqrt(1.0 - gamma**2)
    X, y = np.array([[gamma, side], [-gamma, side / 2.0]]), np.array([1, 0])
    return game(X, y)


def test_progressive_rescaling_is_the_recursion_spelled_out(rng):
    X, y = separable(rng, n=40)
    data, w = game(X, y), np.zeros(5)
    A = written_out(data, X, y)
    estimator = MomentumMarginClassifier(momentum="none", norm="progressive")
    for t, state in enumerate(rounds(estimator, data, 60)):
        losses = np.exp(-A @ w)
        w = w + A.T @ losses / losses.sum()
        w *= 1.2 ** (t // 5) / np.linalg.norm(w)
        np.testing.assert_allclose(state.w.image, w, rtol=1e-9)
        upper = data.norm(state.w) / state.mass_w
        np.testing.assert_allclose(upper, data.norm(state.w) / state.w.mass)


@pytest.mark.parametrize("gamma", [0.1, 0.3])
def test_progressive_rescaling_is_exponentially_fast_where_support_vectors_span(gamma):
    """The shortfall is divided by the growth of the norm; normalized descent's is about c / t."""
    data = narrow(gamma)
    growth = GrowthSchedule(growth=2.0, period=5)
    rescaled = MomentumMarginClassifier(momentum="none", norm=growth)
    short = shortfalls(rescaled, data, gamma, 151)
    t = np.arange(50, 150)
    assert np.polyfit(t, np.log(short[t]), 1)[0] < -0.9 * np.log(2.0) / 5.0
    plain = shortfalls(MomentumMarginClassifier(momentum="none"), data, gamma, 151)
    assert 0.4 < plain[140] / plain[70] < 0.6


def test_progressive_rescaling_gets_stuck_elsewhere(rng):
    """Where the norm grows faster than the direction improves: half of the rounds gain nothing.

    It is the growth that decides: with a slower one, the margin of the same data goes on.
    """
    X, y = separable(rng, n=40, d=10)
    data = game(X, y)
    gamma = best_margin(X, y, fit_intercept=False) / data.radius
    estimator = MomentumMarginClassifier(momentum="none", norm="progressive")
    short = shortfalls(estimator, data, gamma, 1000)
    assert short.min() > 1e-3
    assert short[500:].max() < 1.01 * short[500:].min()
    growth = GrowthSchedule(growth=1.05, period=20)
    slower = shortfalls(MomentumMarginClassifier(momentum="none", norm=growth), data, gamma, 3000)
    assert slower[-1] < 0.2 * short.min()
