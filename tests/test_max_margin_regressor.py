"""Support vector regression by the exact solver: its objectives, proofs and attributes."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.claiming import claim
from helpers.estimators import fit
from scipy.optimize import linprog
from sklearn.datasets import load_diabetes
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR

from marginsvm import MaxMarginRegressor, check_certificate

LOSSES = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}


def line(rng, n=40, d=5, noise=1.0):
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + noise * rng.standard_normal(n)


def objective(model, X, y, power=1, weight=1.0):
    """P of a predictor, from its predictions."""
    xi = np.maximum(np.abs(model.predict(X) - y) - model.epsilon, 0.0)
    return 0.5 * float(np.sum(model.coef_**2)) + model.C * float(np.sum(weight * xi**power))


# The objective against other programs, and against the predictions.


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 20.0])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_it_is_the_problem_of_svr(C, epsilon):
    X, y = load_diabetes(return_X_y=True)
    reg = MaxMarginRegressor(C=C, epsilon=epsilon).fit(X, y)
    svr = SVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-10).fit(X, y)
    assert reg.status_ == "certified"
    assert reg.objective_ == pytest.approx(objective(svr, X, y), rel=1e-6)
    assert reg.objective_bound_ <= objective(svr, X, y) * (1 + 1e-12)
    assert reg.objective_ == pytest.approx(objective(reg, X, y), rel=1e-9)
    assert check_certificate(reg, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_without_an_intercept_it_is_the_problem_of_linear_svr(rng, loss):
    X, y = line(rng)
    ours = {"C": 2.0, "epsilon": 0.3, "loss": loss, "fit_intercept": False}
    reg = MaxMarginRegressor(**ours).fit(X, y)
    svr = LinearSVR(**ours, tol=1e-10, max_iter=10**6, dual=True).fit(X, y)
    assert reg.objective_ == pytest.approx(objective(svr, X, y, LOSSES[loss]), rel=2e-6)
    np.testing.assert_allclose(reg.coef_, svr.coef_, atol=1e-2)
    assert reg.coef_.shape == svr.coef_.shape


@pytest.mark.parametrize("loss", LOSSES)
def test_objectives_are_those_of_the_predictions_and_the_weights(rng, loss):
    X, y = line(rng)
    weight = rng.integers(0, 4, len(y)) / 2.0
    reg = MaxMarginRegressor(C=0.7, epsilon=0.2, loss=loss).fit(X, y, weight)
    assert reg.objective_ == pytest.approx(objective(reg, X, y, LOSSES[loss], weight), rel=1e-9)
    alpha = reg.dual_coef_[0]
    assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
    dual = alpha @ y[reg.support_] - 0.2 * np.abs(alpha).sum()
    dual -= 0.5 * np.sum((alpha @ X[reg.support_]) ** 2)
    if loss == "squared_epsilon_insensitive":
        dual -= 0.25 * np.sum(alpha**2 / (0.7 * weight[reg.support_]))
    else:
        assert (np.abs(alpha) <= 0.7 * weight[reg.support_] * (1 + 1e-12)).all()
    assert dual == pytest.approx(reg.objective_bound_, rel=1e-9)
    np.testing.assert_allclose(alpha @ X[reg.support_], reg.coef_, atol=1e-2)


# Hard tubes.


def largest_deviation(X, y):
    """The least epsilon of a hard tube, by a linear program."""
    n, d = X.shape
    A = np.block([[X, np.ones((n, 1)), -np.ones((n, 1))], [-X, -np.ones((n, 1)), -np.ones((n, 1))]])
    cost = np.append(np.zeros(d + 1), 1.0)
    bounds = [(None, None)] * (d + 1) + [(0, None)]
    return linprog(cost, A, np.append(y, -y), bounds=bounds).fun


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_hard_tubes(rng, factor):
    X, y = line(rng)
    reg = fit(MaxMarginRegressor(C=np.inf, epsilon=factor * largest_deviation(X, y)), X, y)
    assert reg.feasible_ is (factor > 1.0)
    assert reg.status_ == ("certified" if factor > 1.0 else "infeasible")
    assert np.isinf(reg.objective_bound_) == (factor < 1.0)
    assert check_certificate(reg, X, y, exact=True)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_no_tube_holds_two_targets_of_one_point(kernel):
    """Whether its image is 0, as with poly, or not: steps then lead to weights without a bound."""
    X, y = np.zeros((10, 3)), np.arange(10) % 2
    reg = fit(MaxMarginRegressor(C=np.inf, kernel=kernel, fit_intercept=False), X, y)
    assert reg.status_ == "infeasible"


def test_that_no_predictor_fits_is_said_of_the_outputs_of_which_it_is_proved(rng):
    X = rng.standard_normal((30, 3))
    Y = np.column_stack([rng.standard_normal(30), X[:, 0]])  # nothing fits noise
    reg = fit(MaxMarginRegressor(C=np.inf, epsilon=0.1), X, Y)
    assert reg.status_ == "infeasible"
    assert np.isinf(reg.objective_bound_).tolist() == [True, False]
    assert check_certificate(reg, X, Y, exact=True)
    claim(reg, objective_bound=np.full(2, np.inf))
    assert "objective_bound_ is inf" in check_certificate(reg, X, Y, exact=True).reason


def test_interpolation_is_the_shortest(rng):
    X, y = line(rng, n=6, d=20)
    reg = MaxMarginRegressor(C=np.inf, epsilon=0.0, fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(reg.coef_, np.linalg.pinv(X) @ y, atol=1e-6)
    assert reg.status_ == "certified"


# Outputs, sparse examples, single precision, weights, hostile units.


@pytest.mark.parametrize("loss", LOSSES)
def test_outputs_are_problems_of_their_own(rng, loss):
    X, _ = line(rng)
    Y = X @ rng.standard_normal((5, 3)) + rng.standard_normal((40, 3))
    Y = Y * [1.0, 1e9, 1e-9] + [0.0, 0.0, 5e-6]
    reg = MaxMarginRegressor(epsilon=0.0, loss=loss).fit(X, Y)
    assert reg.coef_.shape == (3, 5)
    assert reg.intercept_.shape == reg.objective_.shape == reg.objective_bound_.shape == (3,)
    assert reg.dual_coef_.shape == (3, len(reg.support_))
    for j in range(3):
        one = MaxMarginRegressor(epsilon=0.0, loss=loss).fit(X, Y[:, j])
        assert reg.objective_[j] == pytest.approx(one.objective_, rel=1e-5)
        assert reg.objective_bound_[j] == pytest.approx(one.objective_bound_, rel=1e-5)
    assert check_certificate(reg, X, Y)
    assert check_certificate(reg, X, Y, exact=True)
    claim(reg, objective_bound=reg.objective_bound_ * [1, 1, 1.01])
    assert "objective_bound_" in check_certificate(reg, X, Y, exact=True).reason


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_single_precision(rng, loss):
    X, y = line(rng)
    X[X < 0.5] = 0.0
    params = {"loss": loss, "tol": 1e-9}
    dense = MaxMarginRegressor(**params).fit(X, y)
    for other in (sp.csr_array(X), X.astype(np.float32)):
        reg = MaxMarginRegressor(**params).fit(other, y)
        assert reg.objective_ == pytest.approx(dense.objective_, rel=1e-5)
        assert check_certificate(reg, other, y)


@pytest.mark.parametrize("y_offset", [0.0, 1e6])
@pytest.mark.parametrize("y_unit", [1e-8, 1.0, 1e12])
@pytest.mark.parametrize("x_unit", [1e-8, 1.0, 1e12])
def test_units(rng, x_unit, y_unit, y_offset):
    X, y = line(rng)
    X, y = X * x_unit, (y + y_offset) * y_unit
    C = 0.7 * y_unit / x_unit**2
    reg = fit(MaxMarginRegressor(C=C, epsilon=0.1 * y_unit), X, y)
    assert reg.status_ == "certified"
    assert check_certificate(reg, X, y, exact=True)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hard_tubes_that_need_long_predictors(rng, kernel):
    """They grow by decades until they fit: shorter ones prove nothing, nor are steps slow."""
    X = rng.standard_normal((120, 20 if kernel == "linear" else 3))
    y = X @ rng.standard_normal(X.shape[1]) if kernel == "linear" else np.sin(3.0 * X).sum(axis=1)
    if kernel == "linear":
        X *= 10.0 ** np.linspace(-3.0, 3.0, X.shape[1])
    reg = fit(MaxMarginRegressor(C=np.inf, epsilon=0.1, kernel=kernel), X, y)
    assert reg.status_ == "certified"
    assert np.abs(reg.predict(X) - y).max() <= 0.1 * (1.0 + 1e-5)
    assert check_certificate(reg, X, y)


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
def test_what_a_large_offset_rounds_costs_nothing_at_the_ends_of_a_tube(rng, C):
    """Each of the scores there may be outside, by what rounds it, and pays its caps for that."""
    X = rng.standard_normal((300, 6))
    y = X @ rng.standard_normal(6)
    kw = {"C": C, "epsilon": 0.1, "loss": "epsilon_insensitive"}
    near, far = (fit(MaxMarginRegressor(**kw), X + offset, y) for offset in (0.0, 2e5))
    assert near.status_ == "certified"
    assert far.gap_ <= (1e-6 if C < 1e6 else 2e-6)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=0, atol=1e-3 * np.abs(near.coef_).max())
    assert check_certificate(far, X + 2e5, y)


def test_constant_targets_and_wide_tubes(rng):
    X, y = line(rng)
    for C in (1.0, np.inf):
        for targets, epsilon in ((np.full(40, 3.7), 0.0), (y, 100.0)):
            reg = MaxMarginRegressor(C=C, epsilon=epsilon).fit(X, targets)
            assert reg.status_ == "certified"
            assert reg.objective_ == 0.0
            assert not reg.coef_.any()


@pytest.mark.parametrize("exact", [False, True])
def test_weights_that_cancel_are_limited_by_their_caps(exact):
    """Equal examples: their weights cancel, and only C limits what these prove."""
    X, y = np.ones((2, 3)), np.array([0.0, 1.0])
    reg = MaxMarginRegressor(C=0.25, epsilon=0.125).fit(X, y)
    assert reg.objective_ == pytest.approx(0.25 * 0.75)
    assert check_certificate(reg, X, y, exact=exact)
    claim(reg, objective_bound=reg.objective_bound_ * (1 + 1e-5))
    assert "objective_bound_" in check_certificate(reg, X, y, exact=exact).reason
    reg.certificate_ = replace(reg.certificate_, lower=reg.certificate_.lower * (1 + 1e-5))
    assert "norm_bound" in check_certificate(reg, X, y, exact=exact).reason


# Kernels.


def in_kernel(model, K, y, power=1):
    """P of a kernel predictor, from the kernel matrix."""
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    xi = np.maximum(np.abs(K @ coef + model.intercept_[0] - y) - model.epsilon, 0.0)
    return 0.5 * coef @ K @ coef + model.C * np.sum(xi**power)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_kernels_are_those_of_svr(kernel, C):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200]
    params = {"kernel": kernel, "C": C, "degree": 2, "coef0": 1.0, "epsilon": 5.0}
    reg = MaxMarginRegressor(**params, tol=1e-8).fit(X, y)
    svr = SVR(**params, tol=1e-10).fit(X, y)
    K = pairwise_kernels(
        X, metric=kernel, filter_params=True, gamma=svr._gamma, degree=2, coef0=1.0
    )
    assert reg.objective_ == pytest.approx(in_kernel(svr, K, y), rel=1e-6)
    assert reg.objective_ == pytest.approx(in_kernel(reg, K, y), rel=1e-8)
    assert reg.n_support_.shape == svr.n_support_.shape
    assert reg.dual_coef_.shape == (1, len(reg.support_))
    assert reg.support_vectors_.shape == (len(reg.support_), X.shape[1])
    assert not hasattr(reg, "coef_")
    assert check_certificate(reg, X, y)
    np.testing.assert_allclose(reg.to_sklearn().predict(X), reg.predict(X), rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("outputs", [(), (1,), (2,)])
def test_precomputed_kernels(rng, loss, outputs):
    X, _ = line(rng, n=20)
    K, y = X @ X.T, rng.standard_normal((20, *outputs))
    K = 0.5 * (K + K.T)
    weight = rng.integers(0, 3, 20)
    params = {"loss": loss, "epsilon": 0.1}
    reg = MaxMarginRegressor(**params, kernel="precomputed").fit(K, y, weight)
    linear = MaxMarginRegressor(**params).fit(X, y, weight)
    np.testing.assert_allclose(reg.objective_, linear.objective_, rtol=1e-5)
    assert reg.predict(K).shape == linear.predict(X).shape == y.shape
    assert check_certificate(reg, K, y, weight, exact=True)
    claim(reg, objective_bound=reg.objective_bound_ * (1 + 1e-5))
    assert "objective_bound_" in check_certificate(reg, K, y, weight, exact=True).reason


def test_callable_and_sparse_kernels(rng):
    X, y = line(rng)
    linear = MaxMarginRegressor().fit(X, y)
    reg = MaxMarginRegressor(kernel=lambda A, B: A @ B.T).fit(X, y)
    assert reg.objective_ == pytest.approx(linear.objective_, rel=1e-5)
    dense = MaxMarginRegressor(kernel="rbf", C=np.inf, epsilon=0.2).fit(X, y)
    sparse = MaxMarginRegressor(kernel="rbf", C=np.inf, epsilon=0.2).fit(sp.csr_array(X), y)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert dense.violation_ <= 1e-6
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), sparse.predict(X), rtol=1e-9)


def test_kernels_that_are_no_inner_products_are_refused(rng):
    K = -np.eye(10)
    with pytest.raises(ValueError, match="positive semidefinite"):
        MaxMarginRegressor(kernel="precomputed").fit(K, np.arange(10.0))
    with pytest.raises(ValueError, match="eigenvalue"):  # 1 - 2 x z + (x z)^2
        MaxMarginRegressor(kernel="poly", degree=2, gamma=1.0, coef0=-1.0).fit(
            rng.standard_normal((10, 1)), np.arange(10.0)
        )


def test_kernels_known_to_be_inner_products_need_no_eigenvalues(rng, monkeypatch):
    """They took half of the time of a small fit."""
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda K: pytest.fail("eigenvalues are computed"))
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    for params in ({"kernel": "rbf"}, {"kernel": "poly", "coef0": 1.0}):
        assert fit(MaxMarginRegressor(**params), X, y).status_ == "certified"


# A stress run.


def hostile(seed):
    """Examples of any shape, unit and offset, and parameters."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([1, 2, 3, 10, 30])), int(rng.choice([1, 2, 5, 20]))
    X = rng.standard_normal((n, d))
    kind = rng.choice(["normal", "duplicates", "integers", "of rank 1", "sparse"])
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "integers":
        X = rng.integers(-3, 4, (n, d)).astype(float)
    elif kind == "of rank 1":
        X = np.outer(X[:, 0], rng.standard_normal(d))
    elif kind == "sparse":
        X[rng.random((n, d)) < 0.7] = 0.0
    Y = X @ rng.standard_normal((d, 2)) + rng.choice([0.0, 0.1, 3.0]) * rng.standard_normal((n, 2))
    x_unit, y_unit = 10.0 ** rng.integers(-8, 13, 2)
    X = (X + rng.choice([0.0, 1.0, 1e6])) * x_unit
    Y = (Y + rng.choice([0.0, 1e3, 1e6])) * y_unit
    C = 10.0 ** rng.integers(-3, 7) * rng.choice([1.0, y_unit / x_unit**2])
    params = {
        "C": np.inf if rng.random() < 0.2 else C,
        "epsilon": float(rng.choice([0.0, 0.1, 1.0])) * y_unit,
        "loss": str(rng.choice([*LOSSES])),
        "fit_intercept": bool(rng.random() < 0.8),
    }
    return (sp.csr_array(X) if kind == "sparse" else X), Y if seed % 3 else Y[:, 0], params


@pytest.mark.parametrize("seed", [135, 171])
def test_ends_are_rounded_beside_the_middle_of_the_targets(seed):
    X, y, params = hostile(seed)
    assert check_certificate(fit(MaxMarginRegressor(**params), X, y), X, y, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_hostile_problems_end_with_certificates_that_hold(first):
    for seed in range(first, first + 50):
        X, y, params = hostile(seed)
        reg = fit(MaxMarginRegressor(**params), X, y)
        assert reg.status_ in ("certified", "infeasible", "stalled", "max_iter"), seed
        # what stalls may be rounding of scores, beside which floats tell nothing
        assert reg.status_ == "stalled" or check_certificate(reg, X, y), seed
        assert check_certificate(reg, X, y, exact=True), seed


# Claims: what is false is refused.


def test_a_norm_below_zero_is_refused(rng):
    """Also one that is below it by less than any rounding."""
    X, _ = line(rng)
    reg = MaxMarginRegressor(epsilon=1.0).fit(X, np.zeros(40))
    assert (reg.norm_, reg.objective_) == (0.0, 0.0)
    claim(reg, upper=-1e-30)
    for exact in (False, True):
        assert "norm does not hold" in check_certificate(reg, X, np.zeros(40), exact=exact).reason


def test_false_objectives_are_refused(rng):
    X, y = line(rng)
    reg = MaxMarginRegressor().fit(X, y)
    for name, factor in (("objective", 1 - 1e-4), ("objective_bound", 1 + 1e-4)):
        false = pickle.loads(pickle.dumps(reg))
        claim(false, **{name: factor * getattr(reg.certificate_, name)})
        assert f"{name}_ is" in check_certificate(false, X, y).reason
        assert f"{name}_ is" in check_certificate(false, X, y, exact=True).reason
    false = pickle.loads(pickle.dumps(reg))
    claim(false, objective=np.array([reg.objective_]))
    assert not check_certificate(false, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_predictor_is_below_the_bound(rng, loss):
    """Of predictors near the fitted one, in fractions."""
    X, y = line(rng, n=12, d=2)
    X, y = np.round(4 * X) / 4, np.round(4 * y) / 4
    reg = MaxMarginRegressor(loss=loss, epsilon=0.25, tol=1e-9).fit(X, y)
    rows = [[*map(Fraction, row)] for row in X]

    def exact(w, b):
        total = sum(c * c for c in w) / 2
        for row, target in zip(rows, map(Fraction, y), strict=True):
            miss = abs(sum(a * c for a, c in zip(row, w, strict=True)) + b - target)
            total += max(miss - Fraction(1, 4), 0) ** LOSSES[loss]
        return total

    w, b = [*map(Fraction, reg.coef_)], Fraction(reg.intercept_[0])
    least = Fraction(reg.objective_bound_)
    assert least <= exact(w, b) <= Fraction(reg.objective_)
    for _ in range(50):
        moved = [c + Fraction(x) for c, x in zip(w, 1e-3 * rng.standard_normal(2), strict=True)]
        assert exact(moved, b + Fraction(1e-3 * rng.standard_normal())) >= least


# A user's life.


def test_searches_pipelines_and_copies(rng):
    X, y = line(rng)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), MaxMarginRegressor()),
        {"maxmarginregressor__C": [0.1, 1.0], "maxmarginregressor__epsilon": [0.0, 0.5]},
    ).fit(X, y)
    assert check_certificate(search, X, y)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_rounds_can_be_continued(rng):
    X, y = line(rng, n=300, d=20)
    whole = MaxMarginRegressor(warm_start=True).fit(X, y)
    part = fit(MaxMarginRegressor(warm_start=True, max_iter=1), X, y)
    fit(part.set_params(max_iter=200), X, y)
    assert part.status_ == "certified"
    assert part.objective_ == pytest.approx(whole.objective_, rel=2e-6)
    assert check_certificate(part, X, y)
