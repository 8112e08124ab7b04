"""Pairs of weights for tubes with a kernel: steps, rounds, and what they prove."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from marginsvm import MaxMarginRegressor

pytest.importorskip("numba")


def waves(rng, n=150):
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_steps_climb_to_the_least_objective(rng, loss, intercept):
    from marginsvm.algorithms.compiled.pairs import ascend_tubes

    X, y = waves(rng)
    n, C, epsilon = len(y), 2.0, 0.1
    K, square = rbf_kernel(X, gamma=1.0), loss.startswith("squared")
    v, f = np.zeros(n), np.zeros(n)
    cap = np.full(n, np.inf if square else C)
    slack = np.full(n, 0.5 / C if square else 0.0)
    tube = y - epsilon, np.full(n, 2.0 * epsilon)
    steps = ascend_tubes(K, *tube, -cap, cap, slack, intercept, 1e-9, 10**6, v, f)
    assert 0 < steps < 10**6
    np.testing.assert_allclose(f, K @ v, atol=1e-9)
    if intercept:
        assert abs(v.sum()) <= 1e-9
    dual = y @ v - epsilon * np.abs(v).sum() - 0.5 * v @ K @ v - 0.5 * slack @ (v * v)
    params = {"C": C, "epsilon": epsilon, "loss": loss, "fit_intercept": intercept}
    best = MaxMarginRegressor(kernel="rbf", gamma=1.0, tol=1e-9, **params).fit(X, y)
    assert dual == pytest.approx(best.objective_, rel=1e-7)
