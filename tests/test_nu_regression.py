"""Tubes of unknown width: the problem of NuSVR, its proofs, and what is refused."""

import pickle
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.claiming import claim
from helpers.estimators import fit
from sklearn.datasets import load_diabetes
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVR, NuSVR

from marginsvm import MaxMarginOutlierDetector, MaxMarginRegressor, check_certificate


def objective(model, K, y, C, nu, weight=None):
    """P of a kernel predictor: C times the sum of the nu n largest distances, besides the norm."""
    weight = np.ones(len(y)) if weight is None else weight
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    distances = np.abs(K @ coef + model.intercept_[0] - y)
    order = np.argsort(-distances)
    left = nu * weight.sum() - np.append(0.0, np.cumsum(weight[order])[:-1])
    counted = np.clip(left, 0.0, weight[order])
    return 0.5 * coef @ K @ coef + C * counted @ distances[order]


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.02, 0.5, 1.0])
def test_it_is_the_problem_of_nu_svr(rng, kernel, nu):
    X, y = load_diabetes(return_X_y=True)
    X, y = 20.0 * X[:150], y[:150] / 80.0
    weight = rng.integers(1, 4, 150) / 2.0
    params = {"kernel": kernel, "C": 1.5, "nu": nu, "gamma": 0.2, "degree": 2, "coef0": 1.0}
    names = {"gamma": 0.2, "degree": 2, "coef0": 1.0}
    K = pairwise_kernels(X, metric=kernel, filter_params=True, **names)
    theirs = NuSVR(**params, tol=1e-10).fit(X, y, weight)
    ours = MaxMarginRegressor(**params).fit(X, y, weight)
    least = objective(theirs, K, y, 1.5, nu, weight)
    assert ours.status_ == "certified"
    assert ours.objective_ == pytest.approx(least, rel=1e-6)
    assert ours.objective_bound_ <= least * (1 + 1e-12)
    # of a linear predictor, these are the weights of the proof
    found, rtol = objective(ours, K, y, 1.5, nu, weight), 1e-2 if kernel == "linear" else 1e-8
    assert found == pytest.approx(ours.objective_, rel=rtol)
    assert check_certificate(ours, X, y, weight)


@pytest.mark.parametrize("shape", [(300, 20), (60, 200)])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("nu", [slow(0.05), 0.5])
def test_shapes_and_forms(rng, shape, fit_intercept, nu):
    """The same of dense and sparse examples, more or fewer than features."""
    X = rng.random(shape) * (rng.random(shape) < 0.3)
    y = 10.0 + X @ rng.standard_normal(shape[1]) + rng.standard_normal(len(X))
    weight = rng.integers(1, 4, len(X)) / 2.0
    params = {"nu": nu, "C": 2.0, "fit_intercept": fit_intercept}
    known = MaxMarginRegressor(**params).fit(X, y, weight)
    for Z in (X, sp.csr_array(X)):
        ours = MaxMarginRegressor(**params).fit(Z, y, weight)
        assert ours.status_ == "certified"
        assert ours.objective_ == pytest.approx(known.objective_, rel=2e-6)
        assert ours.objective_bound_ <= known.objective_
        assert ours.epsilon_ == pytest.approx(known.epsilon_, rel=1e-2, abs=1e-6)
        assert check_certificate(ours, Z, y, weight, exact=True)


def test_its_width_gives_the_same_predictor(rng):
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60)
    of_share = MaxMarginRegressor(nu=0.3, tol=1e-9).fit(X, y)
    of_width = MaxMarginRegressor(epsilon=of_share.epsilon_, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(of_share.coef_, of_width.coef_, atol=1e-3)
    assert of_width.epsilon_ == of_share.epsilon_
    price = 0.3 * 60 * of_share.epsilon_
    assert of_share.objective_ == pytest.approx(of_width.objective_ + price, rel=1e-6)
    distances = np.abs(of_share.predict(X) - y)
    outside = np.mean(distances > of_share.epsilon_ + 1e-4)
    assert outside <= 0.3 <= np.mean(distances >= of_share.epsilon_ - 1e-4)
    assert np.abs(of_share.dual_coef_).sum() <= 0.3 * 60
    svr = SVR(kernel="linear", epsilon=of_share.epsilon_, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(of_share.coef_, svr.coef_.ravel(), atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_outputs_units_and_weights_have_exact_proofs(rng, kernel, fit_intercept):
    X = rng.standard_normal((25, 3))
    Y = (X @ rng.standard_normal((3, 3)) + rng.standard_normal((25, 3))) * [1.0, 1e6, 1e-2]
    weight = rng.integers(0, 3, 25)
    G = X @ X.T
    Z = X if kernel == "linear" else 0.5 * (G + G.T)
    reg = MaxMarginRegressor(kernel=kernel, nu=0.4, fit_intercept=fit_intercept)
    reg.fit(Z, Y, weight)
    assert reg.epsilon_.shape == (3,)
    assert check_certificate(reg, Z, Y, weight, exact=True)
    for j in range(3):
        one = MaxMarginRegressor(kernel=kernel, nu=0.4, fit_intercept=fit_intercept)
        one.fit(Z, Y[:, j], weight)
        assert reg.objective_[j] == pytest.approx(one.objective_, rel=1e-5)
        assert isinstance(one.epsilon_, float)
    for name, factor in (("objective", 1 - 1e-5), ("objective_bound", 1 + 1e-5)):
        false = pickle.loads(pickle.dumps(reg))
        claim(false, **{name: getattr(reg.certificate_, name) * [1, factor, 1]})
        assert name in check_certificate(false, Z, Y, weight, exact=True).reason
    reg.epsilon_ = reg.epsilon_ * [1.1, 1, 1]
    assert not check_certificate(reg, Z, Y, weight, exact=True)


def test_another_share_is_no_continuation(rng):
    X = rng.standard_normal((40, 3))
    y = rng.standard_normal(40)
    reg = MaxMarginRegressor(nu=0.2, warm_start=True).fit(X, y)
    reg.set_params(nu=0.7).fit(X, y)
    anew = MaxMarginRegressor(nu=0.7).fit(X, y)
    assert reg.objective_ == pytest.approx(anew.objective_, rel=1e-5)


@pytest.mark.parametrize("params", [{"C": np.inf}, {"loss": "squared_epsilon_insensitive"}])
def test_it_needs_a_price_of_slack(rng, params):
    X, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    with pytest.raises(ValueError, match=r"nu=0.5 needs C < inf and loss='epsilon_insensitive'"):
        MaxMarginRegressor(nu=0.5, **params).fit(X, y)


def test_a_given_width_is_published(rng):
    X, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    reg = MaxMarginRegressor(epsilon=0.3).fit(X, y)
    assert reg.epsilon_ == 0.3
    np.testing.assert_array_equal(reg.fit(X, np.column_stack([y, y])).epsilon_, [0.3, 0.3])
    reg.epsilon_ = np.array([0.3, 0.2])
    assert "epsilon_" in check_certificate(reg, X, np.column_stack([y, y])).reason


@pytest.mark.parametrize("exact", [False, True])
def test_weights_of_a_larger_share_prove_nothing_of_a_smaller_one(rng, exact):
    X = rng.standard_normal((20, 2))
    y = X[:, 0] + rng.standard_normal(20)
    reg = MaxMarginRegressor(nu=0.8).fit(X, y)
    reason = check_certificate(reg.set_params(nu=0.4), X, y, exact=exact).reason
    assert "objective_bound_" in reason
    assert "norm_bound" in reason


def test_no_predictor_is_below_the_bound(rng):
    """Of predictors near the fitted one, in fractions, at the best width."""
    X, y = rng.integers(-8, 9, (12, 2)) / 4.0, rng.integers(-8, 9, 12) / 4.0
    reg = MaxMarginRegressor(nu=0.35, tol=1e-8).fit(X, y)
    share = 12 * Fraction(0.35)

    def exact(w, b):
        rows = zip(X.tolist(), y.tolist(), strict=True)
        far = [abs(sum(Fraction(a) * c for a, c in zip(x, w, strict=True)) + b - Fraction(t))
               for x, t in rows]  # fmt: skip
        far.sort(reverse=True)
        whole = int(share)
        worst = sum(far[:whole]) + (share - whole) * far[whole]
        return sum(c * c for c in w) / 2 + worst

    w, b = [*map(Fraction, reg.coef_)], Fraction(reg.intercept_[0])
    least = Fraction(reg.objective_bound_)
    assert least <= exact(w, b) <= Fraction(reg.objective_)
    for _ in range(50):
        moved = [c + Fraction(x) for c, x in zip(w, 1e-3 * rng.standard_normal(2), strict=True)]
        assert exact(moved, b + Fraction(1e-3 * rng.standard_normal())) >= least


def test_a_share_of_all_examples_is_a_tube_of_width_zero(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    reg = fit(MaxMarginRegressor(C=2.0, nu=1.0), X, y)
    flat = fit(MaxMarginRegressor(C=2.0, epsilon=0.0), X, y)
    assert reg.status_ == "certified"
    assert reg.epsilon_ == 0.0
    assert reg.objective_ == pytest.approx(flat.objective_, rel=1e-5)
    assert check_certificate(reg, X, y, exact=True)


@pytest.mark.slow
def test_hostile_problems_end_with_proofs_that_hold():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, d = int(rng.choice([1, 2, 3, 10, 30])), int(rng.choice([1, 2, 5, 20]))
        X = rng.standard_normal((n, d))
        if seed % 4 == 0:
            X = X[rng.integers(0, max(1, n // 3), n)]
        elif seed % 4 == 1:
            X = np.outer(X[:, 0], rng.standard_normal(d))
        y = X[:, 0] + rng.choice([0.0, 0.1, 3.0]) * rng.standard_normal(n)
        x_unit, y_unit = 10.0 ** rng.integers(-8, 13, 2)
        X, y = (X + rng.choice([0.0, 1.0, 1e6])) * x_unit, (y + rng.choice([0.0, 1e6])) * y_unit
        C = 10.0 ** rng.integers(-3, 7) * rng.choice([1.0, y_unit / x_unit**2])
        nu, intercept = float(rng.choice([1e-3, 0.1, 0.5, 1.0])), bool(rng.random() < 0.8)
        reg = fit(MaxMarginRegressor(C=C, nu=nu, fit_intercept=intercept), X, y)
        assert reg.status_ in ("certified", "stalled", "max_iter"), seed
        # what stalls may be rounding of scores, beside which floats tell nothing
        assert reg.status_ == "stalled" or check_certificate(reg, X, y), seed
        assert check_certificate(reg, X, y, exact=True), seed


def test_a_share_needs_memory_for_features_alone(rng, monkeypatch):
    """With a kernel, pairs hold the columns for which there is room; no matrix of all examples."""
    pytest.importorskip("numba")
    X, y = rng.standard_normal((400, 300)), rng.standard_normal(400)
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: 10**6)
    for estimator in (MaxMarginRegressor(nu=0.5), MaxMarginOutlierDetector(nu=0.5)):
        assert fit(estimator.set_params(kernel="rbf"), X, y).status_ == "certified"
    with pytest.raises(MemoryError, match="400 examples, 300 features"):
        MaxMarginRegressor(nu=0.5).fit(X, y)


@pytest.mark.parametrize("tube", [{"nu": 0.1}, {"nu": 0.5}, {"epsilon": 0.5}])
def test_a_large_price_of_slack_on_a_kernel_of_low_rank(tube):
    """Weights are 1e8 times what their combination is: the predictor has few coefficients."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(40)
    K = X @ X.T
    model = fit(MaxMarginRegressor(kernel="precomputed", C=1e8, **tube), K, y)
    assert model.gap_ < 1e-3
    assert len(model.support_) <= 6
    assert check_certificate(model, K, y)
    found = check_certificate(model, K, y, exact=True)  # of a matrix that has been rounded
    assert found or "none of inner products" in found.reason


def test_a_tube_may_be_as_narrow_as_nothing():
    """Targets can be met: the sum of the weights is far below its cap, and the width is 0."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    model = fit(MaxMarginRegressor(kernel="rbf", C=1e8, nu=0.5), X, y)
    assert model.gap_ < 2e-4  # what rounding of scores costs at this price
    assert 0.0 <= model.epsilon_ < 1e-10
    assert check_certificate(model, X, y)


# Pairs of weights for tubes with a kernel: steps, rounds, and what they prove.


compiled = pytest.mark.skipif(not find_spec("numba"), reason="slow without numba")


def waves(rng, n=150):
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n)


@compiled
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


@compiled
def test_what_float32_cannot_show_interior_points_end(rng):
    X, y = waves(rng)
    reg = MaxMarginRegressor(kernel="rbf", C=1e3, tol=1e-7).fit(X, y)
    assert reg.status_ == "certified"


@compiled
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


@compiled
@pytest.mark.parametrize("tube", [{"nu": 0.4}, {"epsilon": 0.1}])
def test_a_polynomial_in_few_features_has_interior_points_first(rng, tube):
    X, y = waves(rng, n=300)
    poly = {"kernel": "poly", "degree": 3, "coef0": 1.0}
    reg = MaxMarginRegressor(**poly, **tube).fit(X, y)
    assert reg.status_ == "certified"
    assert check_certificate(reg, X, y)


@compiled
def test_widths_of_a_kernel_of_few_dimensions(rng):
    """Free weights may depend on each other."""
    X, y = waves(rng)
    K = (1.0 + X @ X.T) ** 2
    reg = MaxMarginRegressor(kernel="precomputed", nu=0.4).fit(K, y)
    assert reg.status_ == "certified"
