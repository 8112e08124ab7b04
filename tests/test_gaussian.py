"""Bounds of Gaussian kernels hold of the kernel itself, not only of its values in float64.

What a fit has proved is computed again with kernel values from differences of the examples, in
extended precision, by code that shares nothing with the package.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import in_blocks
from helpers.estimators import confirmed, fit, needs_more_digits

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
)
from marginsvm.problem.kernels import Gram, Kernel

Real = np.longdouble
ROUNDING = 1e-15  # relative, of the sums here, and of published numbers


def by_differences(X, Y, gamma):
    X, Y = (Z.toarray() if sp.issparse(Z) else Z for Z in (X, Y))
    difference = X[:, None].astype(Real) - Y.astype(Real)
    return np.exp(-Real(gamma) * np.square(difference).sum(axis=2))


def hostile(seed):
    """Examples whose columns spread over up to eight decades, with and without offsets; y."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(15, 60), rng.integers(1, 9)
    X = rng.standard_normal((n, d))
    y = np.sign(X[:, 0] + 0.5 * np.sin(3.0 * X[:, -1]) + 0.3 * rng.standard_normal(n))
    y[:2] = -1.0, 1.0
    X[:, rng.random(d) < 0.4] *= 10.0 ** rng.uniform(0.0, 8.0)
    if rng.random() < 0.5:
        X += 10.0 ** rng.uniform(0.0, 9.0, d)
    form = np.asarray
    if rng.random() < 0.5:
        form = sp.csr_array
        if rng.random() < 0.5:
            X[rng.random((n, d)) < 0.3] = 0.0
    gamma = ("scale", "auto", 10.0 ** rng.uniform(-3.0, 2.0))[rng.integers(3)]
    C, nu = float(rng.choice([0.1, 1.0, 10.0, 1e4])), float(rng.choice([0.1, 0.5]))
    loss, intercept = str(rng.choice(["hinge", "squared_hinge"])), bool(rng.random() < 0.7)
    hard = float(rng.choice([C, np.inf]))
    tube = "epsilon_insensitive" if loss == "hinge" else "squared_epsilon_insensitive"
    estimator = [
        MaxMarginOutlierDetector(nu=nu),
        MaxMarginRegressor(C=C, loss=tube),
        MaxMarginClassifier(C=C if loss == "hinge" else hard, loss=loss, fit_intercept=intercept),
        MomentumMarginClassifier(C=hard, fit_intercept=intercept, max_iter=300),
    ][seed % 4]
    return estimator.set_params(kernel="rbf", gamma=gamma), form(X), y


def problem(estimator, X):
    """Kernel values; the square of the norm, and the decision values, of a fitted predictor."""
    K = by_differences(X, X, estimator._gamma)
    V = np.zeros(X.shape[0], Real)
    V[estimator.support_] = estimator.dual_coef_[0]
    return K, V @ K @ V, K @ V + np.ravel(estimator.intercept_)[0]


def of_classifier(estimator, K, squared, f, y):
    """(What the predictor reaches, what the weights prove), as margins."""
    q, C = estimator.certificate_.weights.toarray().ravel().astype(Real), estimator.C
    proof, m = max((y * q) @ K @ (y * q), Real(0)), y * f  # rounding may make 0 negative
    if np.isinf(C):
        reached = m.min() / np.sqrt(squared) if squared > 0 else -np.inf
        return reached, np.sqrt(proof)
    xi = np.maximum(1 - m, 0)
    if getattr(estimator, "loss", "") == "hinge":
        s = min(1 / proof, C / q.max()) if proof > 0 else C / q.max()
        P, D = squared / 2 + C * xi.sum(), s - s * s * proof / 2
        return 1 / np.sqrt(2 * P), 1 / np.sqrt(2 * D)
    P = squared / 2 + C * (xi * xi).sum()
    return 1 / np.sqrt(2 * P), np.sqrt(proof + (q * q).sum() / (2 * C))


def of_detector(estimator, K, squared, f):
    q = estimator.certificate_.weights.toarray().ravel().astype(Real)
    share = Real(estimator.nu) * len(q)
    assert q.max() <= (1 + 1e-12) / share
    scores = np.sort(f - np.ravel(estimator.intercept_)[0])
    weight = np.clip(share - np.arange(len(q)), 0, 1)
    return (weight @ scores) / share / np.sqrt(squared), np.sqrt(q @ K @ q)


def of_regressor(estimator, K, squared, f, y):
    """(P of the predictor, what the weights prove)."""
    C, epsilon = estimator.C, Real(estimator.epsilon)
    q = estimator.certificate_.weights.toarray().ravel().astype(Real)
    xi = np.maximum(np.abs(y - f) - epsilon, 0)
    gain, proof = y @ q - epsilon * np.abs(q).sum(), q @ K @ q
    if estimator.loss == "epsilon_insensitive":
        s = min(gain / proof, C / np.abs(q).max())
        return squared / 2 + C * xi.sum(), s * gain - s * s * proof / 2
    proof = proof + (q * q).sum() / (2 * C)
    return squared / 2 + C * (xi * xi).sum(), gain * gain / (2 * proof)


def false_bounds(estimator, X, y):
    """Which bounds of a fit are false of the kernel, and by how much (relative)."""
    K, squared, f = problem(estimator, X)
    if isinstance(estimator, MaxMarginRegressor):
        P, D = of_regressor(estimator, K, squared, f, y)
        excess = {"objective": (P, estimator.objective_), "bound": (estimator.objective_bound_, D)}
    else:
        detects = isinstance(estimator, MaxMarginOutlierDetector)
        data = (estimator, K, squared, f)
        reached, proved = of_detector(*data) if detects else of_classifier(*data, y)
        excess = {"bound": (proved, estimator.margin_bound_)}
        if estimator.margin_ > 0.0:
            excess["margin"] = (estimator.margin_, reached)
    return {k: float(a / b - 1) for k, (a, b) in excess.items() if a > b * (1 + ROUNDING)}


@needs_more_digits
@in_blocks(2000, size=100)
def test_bounds_hold_of_the_kernel_itself(seeds):
    statuses = []
    for seed in seeds:
        estimator, X, y = hostile(seed)
        detects = isinstance(estimator, MaxMarginOutlierDetector)
        data = (X,) if detects else (X, y)
        confirmed(fit(estimator, *data), *data)
        assert not false_bounds(estimator, X, y), (seed, estimator)
        statuses.append(estimator.status_)
    assert statuses.count("certified") > 0.5 * len(statuses)


def test_bounds_of_float32_hold_of_the_kernel_itself():
    """Values that are kept in float32 are rounded, which is allowed for."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((20, 3)) * 10.0 ** rng.uniform(-2.0, 2.0)).astype(np.float32)
        y = np.where(X[:, 0] + 0.5 * X[:, 1] * rng.standard_normal(20) > 0.0, 1.0, -1.0)
        y[:2] = -1.0, 1.0
        clf = MomentumMarginClassifier(kernel="rbf", C=float(rng.choice([1.0, 1e3])), max_iter=300)
        assert not false_bounds(fit(clf, X, y), X, y), seed


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.5), Kernel("poly", 0.5, 3, 1.0)])
def test_values_in_float32_have_the_error_that_is_allowed_for(kernel, rng):
    X, every = rng.standard_normal((200, 5)).astype(np.float32), np.arange(200)
    gram = Gram(kernel, X)
    Z = X.astype(Real)
    true = (0.5 * (Z @ Z.T) + 1.0) ** 3 if kernel.metric == "poly" else by_differences(X, X, 0.5)
    size = np.sqrt(np.multiply.outer(np.diagonal(true), np.diagonal(true)))
    off = (np.abs(gram.values(every) - true) / size).max()
    assert gram.values(every).dtype == np.float32
    assert gram.error < off <= gram.rounding  # what is kept is rounded
