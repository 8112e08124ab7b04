"""Pairs of weights for tubes with a kernel: steps, rounds, and what they prove."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from marginsvm import MaxMarginRegressor, check_certificate

pytest.importorskip("numba")


def waves(rng, n=150):
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_rounds_of_working_sets_end_with_a_proof(rng, loss, intercept, kernel):
    """More examples than begin: they join as their scores leave their tubes."""
    X, y = waves(rng, n=700)
    Z = rbf_kernel(X, gamma=1.0) if kernel == "precomputed" else X
    weight = rng.integers(0, 3, 700)
    params = {"loss": loss, "fit_intercept": intercept, "kernel": kernel, "gamma": 1.0}
    reg = MaxMarginRegressor(C=0.5, epsilon=0.3, **params).fit(Z, y, weight)
    assert reg.status_ == "certified"
    assert check_certificate(reg, Z, y, weight)
    both = np.column_stack([y, 1e6 * y])
    two = MaxMarginRegressor(C=0.5, epsilon=0.3, **params).fit(Z, both, weight)
    assert two.objective_[0] == pytest.approx(reg.objective_, rel=3e-6)
    assert check_certificate(two, Z, both, weight)


def test_what_float32_cannot_show_interior_points_end(rng):
    X, y = waves(rng)
    reg = MaxMarginRegressor(kernel="rbf", C=1e3, tol=1e-7).fit(X, y)
    assert reg.status_ == "certified"


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("nu", [0.05, 0.5, 0.95])
def test_widths_lead_to_the_problem_of_nu_svr(rng, nu, intercept, kernel):
    X, y = waves(rng, n=700)
    Z = rbf_kernel(X, gamma=1.0) if kernel == "precomputed" else X
    weight = rng.integers(0, 3, 700)
    params = {"C": 0.5, "nu": nu, "fit_intercept": intercept, "gamma": 1.0}
    reg = MaxMarginRegressor(kernel=kernel, **params).fit(Z, y, weight)
    assert reg.status_ == "certified"
    assert check_certificate(reg, Z, y, weight)


@pytest.mark.parametrize("tube", [{"nu": 0.4}, {"epsilon": 0.1}])
def test_a_polynomial_in_few_features_has_interior_points_first(rng, tube):
    X, y = waves(rng, n=300)
    poly = {"kernel": "poly", "degree": 3, "coef0": 1.0}
    reg = MaxMarginRegressor(**poly, **tube).fit(X, y)
    assert reg.status_ == "certified"
    assert check_certificate(reg, X, y)


def test_widths_of_a_kernel_of_few_dimensions(rng):
    """Free weights may depend on each other."""
    X, y = waves(rng)
    K = (1.0 + X @ X.T) ** 2
    reg = MaxMarginRegressor(kernel="precomputed", nu=0.4).fit(K, y)
    assert reg.status_ == "certified"


def test_a_wide_tube_needs_no_weights(rng):
    X, y = waves(rng)
    model = MaxMarginRegressor(kernel="rbf", epsilon=2.0 * np.abs(y).max()).fit(X, y)
    assert model.status_ == "certified"
    assert not model.dual_coef_.any()
