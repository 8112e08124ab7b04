"""Support vector regression by the exact solver: its objectives, proofs and attributes."""

import pickle
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.claiming import claim
from helpers.estimators import fit
from scipy.optimize import linprog
from sklearn.datasets import load_diabetes
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR, NuSVR

from marginsvm import MaxMarginOutlierDetector, MaxMarginRegressor, check_certificate

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


def hostile(seed, share=False):
    """Examples of any shape, unit and offset, and parameters; of tubes of a width or a share."""
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
    if share:
        params |= {"C": C, "nu": float(rng.choice([1e-3, 0.1, 0.5, 1.0]))}
        del params["loss"], params["epsilon"]
    return (sp.csr_array(X) if kind == "sparse" else X), Y if seed % 3 else Y[:, 0], params


@pytest.mark.parametrize("seed", [135, 171])
def test_ends_are_rounded_beside_the_middle_of_the_targets(seed):
    X, y, params = hostile(seed)
    assert check_certificate(fit(MaxMarginRegressor(**params), X, y), X, y, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "share"), [*((i, False) for i in range(0, 200, 50)), (0, True), (50, True)]
)
def test_hostile_problems_end_with_certificates_that_hold(first, share):
    unseen = []
    for seed in range(first, first + 50):
        X, y, params = hostile(seed, share)
        reg = fit(MaxMarginRegressor(**params), X, y)
        assert reg.status_ in ("certified", "infeasible", "stalled", "max_iter"), seed
        assert check_certificate(reg, X, y, exact=True), seed
        if not check_certificate(reg, X, y):  # a few that stall are rounding of scores
            assert reg.status_ == "stalled", seed
            unseen.append(seed)
    assert len(unseen) <= (5 if share else 2), unseen


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


@pytest.mark.parametrize("tube", [*({"loss": loss} for loss in LOSSES), {"nu": 0.35}], ids=str)
def test_no_predictor_is_below_the_bound(rng, tube):
    """Of predictors near the fitted one, in fractions; those of a share at the best width."""
    X, y = rng.integers(-8, 9, (12, 2)) / 4.0, rng.integers(-8, 9, 12) / 4.0
    reg = MaxMarginRegressor(epsilon=0.25, tol=1e-8, **tube).fit(X, y)

    def exact(w, b):
        rows = zip(X.tolist(), y.tolist(), strict=True)
        far = [abs(sum(Fraction(a) * c for a, c in zip(x, w, strict=True)) + b - Fraction(t))
               for x, t in rows]  # fmt: skip
        if "nu" in tube:
            share = 12 * Fraction(0.35)
            far, whole = sorted(far, reverse=True), int(share)
            cost = sum(far[:whole]) + (share - whole) * far[whole]
        else:
            cost = sum(max(miss - Fraction(1, 4), 0) ** LOSSES[reg.loss] for miss in far)
        return sum(c * c for c in w) / 2 + cost

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


# Tubes of unknown width: the problem of NuSVR, its proofs, and what is refused.


def share_objective(model, K, y, C, nu, weight=None):
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
    least = share_objective(theirs, K, y, 1.5, nu, weight)
    assert ours.status_ == "certified"
    assert ours.objective_ == pytest.approx(least, rel=1e-6)
    assert ours.objective_bound_ <= least * (1 + 1e-12)
    # of a linear predictor, these are the weights of the proof
    found, rtol = share_objective(ours, K, y, 1.5, nu, weight), 1e-2 if kernel == "linear" else 1e-8
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


def test_a_share_of_all_examples_is_a_tube_of_width_zero(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    reg = fit(MaxMarginRegressor(C=2.0, nu=1.0), X, y)
    flat = fit(MaxMarginRegressor(C=2.0, epsilon=0.0), X, y)
    assert reg.status_ == "certified"
    assert reg.epsilon_ == 0.0
    assert reg.objective_ == pytest.approx(flat.objective_, rel=1e-5)
    assert check_certificate(reg, X, y, exact=True)


def test_a_share_needs_memory_for_features_alone(rng, monkeypatch):
    """With a kernel, pairs hold the columns for which there is room; no matrix of all examples."""
    pytest.importorskip("numba")
    X, y = rng.standard_normal((400, 300)), rng.standard_normal(400)
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: 10**6)
    for estimator in (MaxMarginRegressor(nu=0.5), MaxMarginOutlierDetector(nu=0.5)):
        assert fit(estimator.set_params(kernel="rbf"), X, y).status_ == "certified"
    with pytest.raises(MemoryError, match="400 examples, 300 features"):
        MaxMarginRegressor(nu=0.5).fit(X, y)


@pytest.mark.parametrize(
    "tube",
    [
        {"nu": 0.1},
        *(pytest.param(t, marks=pytest.mark.slow) for t in ({"nu": 0.5}, {"epsilon": 0.5})),
    ],
)
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


TUBES = [{"epsilon": 0.3, "loss": loss} for loss in LOSSES] + [
    {"nu": nu} for nu in (0.05, 0.5, 0.95)
]


@compiled
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("tube", TUBES, ids=str)
def test_rounds_of_working_sets_end_with_a_proof(rng, tube, intercept, kernel):
    """More examples than begin: they join as their scores leave their tubes."""
    X, y = waves(rng, n=700)
    Z = rbf_kernel(X, gamma=1.0) if kernel == "precomputed" else X
    weight = rng.integers(0, 3, 700)
    params = {"C": 0.5, "fit_intercept": intercept, "kernel": kernel, "gamma": 1.0, **tube}
    reg = MaxMarginRegressor(**params).fit(Z, y, weight)
    assert reg.status_ == "certified"
    assert check_certificate(reg, Z, y, weight)
    if "nu" not in tube:
        both = np.column_stack([y, 1e6 * y])
        two = MaxMarginRegressor(**params).fit(Z, both, weight)
        assert two.objective_[0] == pytest.approx(reg.objective_, rel=3e-6)
        assert check_certificate(two, Z, both, weight)


@compiled
def test_what_float32_cannot_show_interior_points_end(rng):
    X, y = waves(rng)
    reg = MaxMarginRegressor(kernel="rbf", C=1e3, tol=1e-7).fit(X, y)
    assert reg.status_ == "certified"


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
