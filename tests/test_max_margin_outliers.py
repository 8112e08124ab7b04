"""Outlier detection by the exact solver: the problem of OneClassSVM, its proofs and attributes."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit
from scipy.optimize import nnls
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from marginsvm import MaxMarginOutlierDetector, check_certificate

SETS = {
    "iris": load_iris().data,
    "wine": StandardScaler().fit_transform(load_wine().data),
    "cancer": StandardScaler().fit_transform(load_breast_cancer().data)[::3],
}
KERNELS = [{"kernel": "rbf"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}, {"kernel": "linear"}]


def cloud(rng, n=60, d=4, offset=3.0):
    return rng.standard_normal((n, d)) + offset * np.eye(1, d)[0]


def objective(model, X, nu, weight=1.0):
    """OneClassSVM's, from what a model publishes."""
    weight = np.broadcast_to(weight, len(X))
    scores, rho = model.score_samples(X), float(np.ravel(model.offset_)[0])
    if model.kernel == "linear":
        square = float(np.sum(model.coef_**2))
    else:
        square = float(model.dual_coef_[0] @ model.score_samples(X[model.support_]))
    slack = float(weight @ np.maximum(0.0, rho - scores))
    return 0.5 * square - nu * weight.sum() * rho + slack


# The problem of OneClassSVM.


@pytest.mark.parametrize("shape", [(800, 100), (150, 500)])
@pytest.mark.parametrize("nu", [0.02, 0.5, 1.0])
def test_many_numbers_by_multipliers(shape, nu, rng):
    """The level that margins are to reach is found with the predictor."""
    X = rng.random(shape) * (rng.random(shape) < 0.3)
    weight = rng.integers(1, 4, len(X)) / 2.0
    for Z in (X, sp.csr_array(X)):
        ours = MaxMarginOutlierDetector(kernel="linear", nu=nu).fit(Z, sample_weight=weight)
        assert ours.status_ == "certified"
        assert ours.n_iter_ <= 30  # 41 if each step leaves the level where it is
        assert check_certificate(ours, Z, sample_weight=weight)
    if nu < 1.0:  # which OneClassSVM refuses
        theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-10).fit(X, sample_weight=weight)
        least = objective(theirs, X, nu, weight)
        assert objective(ours, X, nu, weight) == pytest.approx(least, rel=3e-6)


def test_examples_on_all_sides_have_no_margin_whatever_their_number(rng):
    X = rng.standard_normal((2000, 40))
    ours = fit(MaxMarginOutlierDetector(kernel="linear", nu=0.1), X)
    assert ours.status_ == "no_margin"
    assert check_certificate(ours, X)


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("params", KERNELS, ids=[p["kernel"] for p in KERNELS])
@pytest.mark.parametrize("name", SETS)
def test_it_is_the_problem_of_one_class_svm(name, params, nu):
    X = SETS[name]
    if params["kernel"] == "linear":
        X = X - X.min(axis=0) + 1.0
    ours = MaxMarginOutlierDetector(nu=nu, tol=4e-7, **params).fit(X)
    theirs = OneClassSVM(nu=nu, tol=1e-10, **params).fit(X)
    least = objective(theirs, X, nu)
    assert ours.status_ == "certified"
    assert objective(ours, X, nu) == pytest.approx(least, rel=1e-6)
    assert -0.5 * (nu * len(X) * ours.margin_bound_) ** 2 <= least * (1 - 1e-12)
    assert ours.dual_coef_.sum() == pytest.approx(theirs.dual_coef_.sum(), rel=1e-9)
    assert ours.dual_coef_.min() > 0.0
    assert ours.dual_coef_.max() <= 1.0 + 1e-9
    assert check_certificate(ours, X)


def test_decision_values_are_those_of_one_class_svm(rng):
    X, new = cloud(rng), cloud(rng)
    ours = MaxMarginOutlierDetector(nu=0.23, tol=1e-11).fit(
        X
    )  # no whole number of examples: one offset
    theirs = OneClassSVM(nu=0.23, tol=1e-12).fit(X)
    np.testing.assert_allclose(
        ours.decision_function(new), theirs.decision_function(new), atol=1e-6
    )
    np.testing.assert_allclose(ours.score_samples(new), theirs.score_samples(new), atol=1e-6)
    assert ours.offset_ == pytest.approx(theirs.offset_[0], abs=1e-6)
    np.testing.assert_array_equal(ours.intercept_, [-ours.offset_])
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert ours.n_support_.shape == theirs.n_support_.shape


def test_the_weights_of_a_linear_predictor_make_it_up(rng):
    X = cloud(rng)
    detector = MaxMarginOutlierDetector(kernel="linear", nu=0.3).fit(X)
    found = detector.dual_coef_ @ X[detector.support_]
    np.testing.assert_allclose(found, detector.coef_, rtol=1e-3, atol=1e-3)
    assert np.linalg.norm(detector.coef_) == pytest.approx(18 * detector.margin_bound_, rel=1e-12)
    np.testing.assert_allclose(X @ detector.coef_[0], detector.score_samples(X), rtol=1e-12)


# nu.


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("nu", [0.001, 0.017, 0.1, 0.25, 0.5, 0.9, 1.0])
def test_nu_is_between_the_shares_of_outliers_and_of_the_support(nu, kernel, rng):
    """Proposition 3 of Schoelkopf et al. (2001)."""
    X = np.vstack([cloud(rng, n=80), cloud(rng, n=20, offset=5.0)])
    detector = MaxMarginOutlierDetector(nu=nu, kernel=kernel).fit(X)
    assert np.mean(detector.predict(X) < 0) <= nu <= len(detector.support_) / len(X) + 1e-12
    assert detector.status_ == "certified"
    assert check_certificate(detector, X)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_weights_are_copies(kernel, rng):
    X, weight = cloud(rng), rng.integers(0, 4, 60)
    params = {"kernel": kernel, "nu": 0.2, "gamma": 0.3, "tol": 1e-11}
    weighted = MaxMarginOutlierDetector(**params).fit(X, sample_weight=weight)
    copied = MaxMarginOutlierDetector(**params).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(
        weighted.decision_function(X), copied.decision_function(X), atol=1e-6
    )
    assert weighted.dual_coef_.sum() == pytest.approx(0.2 * weight.sum())
    assert weighted.margin_ == pytest.approx(copied.margin_, rel=1e-6)
    assert weight[weighted.predict(X) < 0].sum() <= 0.2 * weight.sum()
    assert check_certificate(weighted, X, sample_weight=weight)
    assert not check_certificate(weighted, X)


@pytest.mark.parametrize("nu", [0.001, 0.05, 0.5])
def test_many_examples_by_pairs_of_weights(nu, rng):
    X, weight = cloud(rng, n=1000), rng.integers(1, 3, 1000)
    detector = MaxMarginOutlierDetector(nu=nu).fit(X, sample_weight=weight)
    assert detector.status_ == "certified"
    theirs = OneClassSVM(nu=nu, tol=1e-10, gamma=detector._gamma).fit(X, sample_weight=weight)
    least = objective(theirs, X, nu, weight)
    assert objective(detector, X, nu, weight) == pytest.approx(least, rel=2e-6)
    assert check_certificate(detector, X, sample_weight=weight)
    assert weight[detector.predict(X) < 0].sum() <= nu * weight.sum()
    K = rbf_kernel(X, gamma=detector._gamma)
    given = MaxMarginOutlierDetector(nu=nu, kernel="precomputed").fit(K, sample_weight=weight)
    assert given.margin_ == pytest.approx(detector.margin_, rel=2e-6)
    assert check_certificate(given, K, sample_weight=weight)


# Hard margins: the distance of the hull from the origin.


def distance_of_the_hull(X):
    q = nnls(np.vstack([X.T, np.ones(len(X))]), np.append(np.zeros(X.shape[1]), 1.0))[0]
    return np.linalg.norm(q @ X) / q.sum()


@pytest.mark.parametrize("shape", [(60, 4), (5, 20)])
def test_a_hard_margin_is_the_distance_of_the_hull_from_the_origin(shape, rng):
    X = cloud(rng, *shape, offset=5.0)
    detector = MaxMarginOutlierDetector(nu=None, kernel="linear").fit(X)
    assert detector.status_ == "certified"
    assert detector.separable_ is True
    assert detector.margin_ == pytest.approx(distance_of_the_hull(X), rel=1e-6)
    assert (detector.predict(X) == 1).all()
    assert detector.dual_coef_.sum() == pytest.approx(1.0)
    assert np.linalg.norm(detector.coef_) == pytest.approx(detector.margin_, rel=1e-6)
    assert detector.offset_ == pytest.approx(detector.margin_**2, rel=1e-6)
    assert check_certificate(detector, X, exact=True)


@pytest.mark.parametrize("nu", [None, 0.1])
def test_the_origin_in_the_hull_is_proved(nu, rng):
    X = cloud(rng, offset=0.0)
    with pytest.warns(match="the convex hull of the examples holds the origin"):
        detector = MaxMarginOutlierDetector(nu=nu, kernel="linear").fit(X)
    assert detector.status_ == "no_margin"
    assert detector.separable_ is False
    assert (detector.predict(rng.standard_normal((20, 4))) == 1).all()
    assert not detector.coef_.any()
    assert check_certificate(detector, X, exact=True)


def test_an_example_at_the_origin_leaves_no_margin(rng):
    X = cloud(rng, offset=9.0)
    X[7] = 0.0
    assert fit(MaxMarginOutlierDetector(nu=None, kernel="linear"), X).separable_ is False
    for data in (X, sp.csr_array(X)):
        robust = MaxMarginOutlierDetector(nu=0.1, kernel="linear").fit(data)
        assert robust.status_ == "certified"
        assert robust.predict(data)[7] == -1


def test_a_share_smaller_than_one_example_is_a_hard_margin(rng):
    X = cloud(rng)
    hard = MaxMarginOutlierDetector(nu=None).fit(X)
    soft = MaxMarginOutlierDetector(nu=1.0 / len(X)).fit(X)
    assert soft.margin_ == pytest.approx(hard.margin_, rel=1e-6)
    np.testing.assert_allclose(soft.decision_function(X), hard.decision_function(X), atol=1e-6)


# Forms of data.


@pytest.mark.parametrize("nu", [None, 0.3])
def test_forms_of_the_same_data(nu, rng):
    X = cloud(rng)
    X[np.abs(X) < 0.5] = 0.0
    dense = MaxMarginOutlierDetector(nu=nu, gamma=0.2).fit(X)
    for kernel, data in (
        ("rbf", sp.csr_array(X)),
        ("precomputed", rbf_kernel(X, gamma=0.2)),
        (lambda A, B: rbf_kernel(A, B, gamma=0.2), X),
    ):
        other = MaxMarginOutlierDetector(nu=nu, kernel=kernel, gamma=0.2).fit(data)
        assert other.margin_ == pytest.approx(dense.margin_, rel=1e-6)
        np.testing.assert_allclose(
            other.decision_function(data), dense.decision_function(X), atol=1e-6
        )
        assert check_certificate(other, data)
    single = X.astype(np.float32)
    found = MaxMarginOutlierDetector(nu=nu, gamma=0.2).fit(single)
    assert found.margin_ == pytest.approx(dense.margin_, rel=1e-5)
    assert check_certificate(found, single)


@pytest.mark.parametrize("unit", [1e-8, 1e12])
@pytest.mark.parametrize("nu", [None, 0.1])
def test_units(nu, unit, rng):
    X = cloud(rng)
    one = MaxMarginOutlierDetector(nu=nu, kernel="linear").fit(X)
    other = MaxMarginOutlierDetector(nu=nu, kernel="linear").fit(unit * X)
    assert other.margin_ == pytest.approx(unit * one.margin_, rel=2e-6)
    assert check_certificate(other, unit * X, exact=True)


def test_duplicates_and_equal_examples():
    X = np.ones((10, 3))
    for nu in (None, 0.1, 0.55, 1.0):
        detector = MaxMarginOutlierDetector(nu=nu, kernel="linear").fit(X)
        assert detector.margin_ == pytest.approx(np.sqrt(3.0))
        assert (detector.predict(X) == 1).all()
        assert check_certificate(detector, X, exact=True)


# A stress run.


def hostile(seed):
    """Examples of any shape, unit, offset and weight, and parameters."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([1, 2, 3, 10, 30, 200])), int(rng.choice([1, 2, 5, 20, 300]))
    X = rng.standard_normal((n, d))
    kind = rng.choice(["normal", "duplicates", "integers", "of rank 1", "sparse", "zero rows"])
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "integers":
        X = rng.integers(-3, 4, (n, d)).astype(float)
    elif kind == "of rank 1":
        X = np.outer(X[:, 0], rng.standard_normal(d))
    X = (X + rng.choice([0.0, 1.0, 10.0, 1e6]) * rng.choice([0.0, 1.0], d)) * 10.0 ** rng.integers(
        -8, 13
    )
    if kind == "zero rows":
        X[rng.random(n) < 0.1] = 0.0
    elif kind == "sparse":
        X[rng.random((n, d)) < 0.7] = 0.0
    kernel, single = str(rng.choice(["linear", "linear", "rbf", "poly"])), rng.random() < 0.3
    if single and kernel != "poly":  # whose values in float32 are others in other batches
        X = X.astype(np.float32)
    nu = [None, 1.0 / n, 1.0, float(rng.uniform(1.0 / n, 1.0))][rng.integers(4)]
    weight = rng.integers(0, 3, n) + (np.arange(n) == 0) if rng.random() < 0.3 else None
    return (sp.csr_array(X) if kind == "sparse" else X), weight, {"nu": nu, "kernel": kernel}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 50))
def test_hostile_problems_end_with_certificates_that_hold(first):
    for seed in range(first, first + 50):
        X, weight, params = hostile(seed)
        detector = fit(MaxMarginOutlierDetector(**params), X, sample_weight=weight)
        assert detector.status_ in ("certified", "no_margin", "stalled", "max_iter"), seed
        assert check_certificate(detector, X, sample_weight=weight), seed
        if params["kernel"] == "linear" and X.shape[0] * X.shape[1] <= 1000:
            assert check_certificate(detector, X, sample_weight=weight, exact=True), seed


# Certificates, and what users do with a model.


def test_false_claims_are_found(rng):
    X = cloud(rng)
    detector = MaxMarginOutlierDetector(nu=0.2, kernel="linear").fit(X)
    assert check_certificate(detector, X, exact=True)

    def claiming(**claims):
        other = pickle.loads(pickle.dumps(detector))
        other.certificate_ = replace(other.certificate_, **claims)
        return check_certificate(other, X, exact=True)

    bounds = detector.certificate_
    assert "predictor's margin" in claiming(lower=bounds.lower * (1 + 1e-9)).reason
    assert "the weights prove" in claiming(upper=bounds.upper * (1 - 1e-9)).reason
    assert "nu=0.2" in claiming(nu=0.3).reason
    weights = bounds.weights.copy()
    weights.data[0] *= 2.0
    assert not claiming(weights=weights / weights.sum())
    assert not check_certificate(detector, X[::-1])
    assert "separable is False" in claiming(feasible=False).reason


def test_a_false_offset_is_found(rng):
    X = cloud(rng)
    detector = MaxMarginOutlierDetector(nu=0.2).fit(X)
    scores = np.sort(detector.score_samples(X))
    detector.offset_ = float(scores[20])
    assert "intercept_ is" in check_certificate(detector, X).reason
    detector.intercept_ = np.array([-detector.offset_])
    assert "of the weight is below" in check_certificate(detector, X).reason
    detector.offset_ = np.nan
    assert "not a number" in check_certificate(detector, X).reason


@pytest.mark.parametrize("params", [*KERNELS, {"kernel": "laplacian"}, {"kernel": rbf_kernel}])
def test_to_sklearn(params, rng):
    X, new = cloud(rng), cloud(rng)
    detector = MaxMarginOutlierDetector(nu=0.2, **params).fit(X)
    model = detector.to_sklearn()
    assert isinstance(model, OneClassSVM)
    for found in (model, pickle.loads(pickle.dumps(model))):
        values = detector.decision_function(new)
        np.testing.assert_allclose(found.decision_function(new), values, atol=1e-9)
        np.testing.assert_allclose(found.score_samples(new), detector.score_samples(new), atol=1e-9)
        np.testing.assert_array_equal(found.predict(new), detector.predict(new))
    assert model.nu == 0.2


def test_a_model_without_a_margin_converts_as_well(rng):
    X = cloud(rng, offset=0.0)
    detector = fit(MaxMarginOutlierDetector(nu=None, kernel="linear"), X)
    np.testing.assert_array_equal(detector.to_sklearn().decision_function(X), np.zeros(60))


def test_warm_starts_and_other_shares(rng):
    X = cloud(rng)
    detector = MaxMarginOutlierDetector(nu=0.2, warm_start=True).fit(X)
    again = pickle.loads(pickle.dumps(detector)).fit(X)
    assert again.margin_ == pytest.approx(detector.margin_, rel=2e-6)
    other = detector.set_params(nu=0.4).fit(X)
    anew = MaxMarginOutlierDetector(nu=0.4).fit(X)
    assert other.margin_ == pytest.approx(anew.margin_, rel=2e-6)
    assert check_certificate(other, X)


def test_all_weights_zero(rng):
    with pytest.raises(ValueError, match=r"[wW]eights"):
        MaxMarginOutlierDetector().fit(cloud(rng), sample_weight=np.zeros(60))
