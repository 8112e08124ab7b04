"""Outlier detection by the exact solver: the problem of OneClassSVM, its proofs and attributes."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.claiming import refused
from helpers.estimators import certified, confirmed, fit
from helpers.hostile import random_examples
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
KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "linear"},
]
each_kernel = pytest.mark.parametrize("kernel", ["rbf", "linear"])


def cloud(rng, n=60, d=4, offset=3.0):
    return rng.standard_normal((n, d)) + offset * np.eye(1, d)[0]


def objective(model, X, nu, weight=None):
    """OneClassSVM's, from what a model publishes."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    scores, rho = model.score_samples(X), float(np.ravel(model.offset_)[0])
    if model.kernel == "linear":
        square = float(np.sum(model.coef_**2))
    else:
        square = float(model.dual_coef_[0] @ scores[model.support_])
    return (
        0.5 * square - nu * weight.sum() * rho + weight @ np.maximum(0.0, rho - scores)
    )


def is_that_of_one_class_svm(X, nu, weight=None, **params):
    ours = MaxMarginOutlierDetector(nu=nu, tol=4e-7, **params)
    certified(ours, X, None, weight)
    dense = X.toarray() if sp.issparse(X) else X
    theirs = OneClassSVM(nu=nu, tol=1e-10, **params).fit(dense, sample_weight=weight)
    least = objective(theirs, dense, nu, weight)
    total = nu * (len(dense) if weight is None else weight.sum())
    assert objective(ours, X, nu, weight) == pytest.approx(least, rel=1e-6)
    assert -0.5 * (total * ours.margin_bound_) ** 2 <= least * (1 - 1e-12)
    assert ours.dual_coef_.sum() == pytest.approx(theirs.dual_coef_.sum(), rel=1e-9)
    assert ours.dual_coef_.min() > 0.0
    caps = 1.0 if weight is None else weight[ours.support_]
    assert (ours.dual_coef_[0] <= caps * (1.0 + 1e-9)).all()
    return ours


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("params", KERNELS, ids=[p["kernel"] for p in KERNELS])
@pytest.mark.parametrize("name", SETS)
def test_it_is_the_problem_of_one_class_svm(name, params, nu):
    X = SETS[name]
    if params["kernel"] == "linear":
        X = X - X.min(axis=0) + 1.0
    is_that_of_one_class_svm(X, nu, **params)


@pytest.mark.parametrize("shape", [(800, 100), (150, 500)])
@pytest.mark.parametrize("nu", [0.02, 0.5, 0.999])
def test_many_numbers_by_multipliers(shape, nu, rng):
    """The level that margins are to reach is found with the predictor."""
    X = rng.random(shape) * (rng.random(shape) < 0.3)
    weight = rng.integers(1, 4, len(X)) / 2.0
    for Z in (X, sp.csr_array(X)):
        ours = is_that_of_one_class_svm(Z, nu, weight, kernel="linear")
        assert ours.n_iter_ <= 30  # 41 if each step leaves the level where it is


@pytest.mark.parametrize("nu", [0.001, 0.05, 0.5])
def test_many_examples_by_pairs_of_weights(nu, rng):
    X, weight = cloud(rng, n=1000), rng.integers(1, 3, 1000)
    detector = is_that_of_one_class_svm(X, nu, weight, gamma=0.25)
    assert weight[detector.predict(X) < 0].sum() <= nu * weight.sum()
    given = MaxMarginOutlierDetector(nu=nu, kernel="precomputed")
    certified(given, rbf_kernel(X, gamma=0.25), None, weight)
    assert given.margin_ == pytest.approx(detector.margin_, rel=2e-6)


def test_decision_values_are_those_of_one_class_svm(rng):
    X, new = cloud(rng), cloud(rng)
    # no whole number of examples: one offset
    ours, theirs = (
        MaxMarginOutlierDetector(nu=0.23, tol=1e-11),
        OneClassSVM(nu=0.23, tol=1e-12),
    )
    for name in ("decision_function", "score_samples"):
        values = [getattr(model.fit(X), name)(new) for model in (ours, theirs)]
        np.testing.assert_allclose(*values, atol=1e-6)
    assert ours.offset_ == pytest.approx(theirs.offset_[0], abs=1e-6)
    np.testing.assert_array_equal(ours.intercept_, [-ours.offset_])
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert ours.n_support_.shape == theirs.n_support_.shape


def test_the_weights_of_a_linear_predictor_make_it_up(rng):
    X = cloud(rng)
    detector = MaxMarginOutlierDetector(kernel="linear", nu=0.3).fit(X)
    found = detector.dual_coef_ @ X[detector.support_]
    np.testing.assert_allclose(found, detector.coef_, rtol=1e-3, atol=1e-3)
    assert np.linalg.norm(detector.coef_) == pytest.approx(
        18 * detector.margin_bound_, rel=1e-12
    )
    np.testing.assert_allclose(
        X @ detector.coef_[0], detector.score_samples(X), rtol=1e-12
    )


@each_kernel
@pytest.mark.parametrize("nu", [0.001, 0.017, 0.1, 0.25, 0.5, 0.9, 1.0])
def test_nu_is_between_the_shares_of_outliers_and_of_the_support(nu, kernel, rng):
    """Proposition 3 of Schoelkopf et al. (2001)."""
    X = np.vstack([cloud(rng, n=80), cloud(rng, n=20, offset=5.0)])
    detector = certified(MaxMarginOutlierDetector(nu=nu, kernel=kernel), X)
    assert (
        np.mean(detector.predict(X) < 0)
        <= nu
        <= len(detector.support_) / len(X) + 1e-12
    )


def distance_of_the_hull(X):
    q = nnls(np.vstack([X.T, np.ones(len(X))]), np.append(np.zeros(X.shape[1]), 1.0))[0]
    return np.linalg.norm(q @ X) / q.sum()


@pytest.mark.parametrize("shape", [(60, 4), (5, 20)])
def test_a_hard_margin_is_the_distance_of_the_hull_from_the_origin(shape, rng):
    X = cloud(rng, *shape, offset=5.0)
    detector = certified(
        MaxMarginOutlierDetector(nu=None, kernel="linear"), X, exact=True
    )
    assert detector.separable_ is True
    assert detector.margin_ == pytest.approx(distance_of_the_hull(X), rel=1e-6)
    assert (detector.predict(X) == 1).all()
    assert detector.dual_coef_.sum() == pytest.approx(1.0)
    assert np.linalg.norm(detector.coef_) == pytest.approx(detector.margin_, rel=1e-6)
    assert detector.offset_ == pytest.approx(detector.margin_**2, rel=1e-6)


@pytest.mark.parametrize(
    ("n", "d", "nu"), [(60, 4, None), (60, 4, 0.1), (2000, 40, 0.1)]
)
def test_the_origin_in_the_hull_is_proved(n, d, nu, rng):
    X = cloud(rng, n, d, offset=0.0)
    with pytest.warns(match="the convex hull of the examples holds the origin"):
        detector = MaxMarginOutlierDetector(nu=nu, kernel="linear").fit(X)
    assert (detector.status_, detector.separable_) == ("no_margin", False)
    assert (detector.predict(rng.standard_normal((20, d))) == 1).all()
    assert not detector.coef_.any()
    confirmed(detector, X, exact=n == 60)
    np.testing.assert_array_equal(
        detector.to_sklearn().decision_function(X), np.zeros(n)
    )


def test_an_example_at_the_origin_leaves_no_margin(rng):
    X = cloud(rng, offset=9.0)
    X[7] = 0.0
    assert (
        fit(MaxMarginOutlierDetector(nu=None, kernel="linear"), X).separable_ is False
    )
    for data in (X, sp.csr_array(X)):
        robust = certified(MaxMarginOutlierDetector(nu=0.1, kernel="linear"), data)
        assert robust.predict(data)[7] == -1


def test_a_share_smaller_than_one_example_is_a_hard_margin(rng):
    X = cloud(rng)
    hard, soft = (MaxMarginOutlierDetector(nu=nu).fit(X) for nu in (None, 1.0 / len(X)))
    assert soft.margin_ == pytest.approx(hard.margin_, rel=1e-6)
    np.testing.assert_allclose(
        soft.decision_function(X), hard.decision_function(X), atol=1e-6
    )


@pytest.mark.parametrize("nu", [None, 0.1, 0.55, 1.0])
def test_equal_examples(nu):
    X = np.ones((10, 3))
    detector = certified(
        MaxMarginOutlierDetector(nu=nu, kernel="linear"), X, exact=True
    )
    assert detector.margin_ == pytest.approx(np.sqrt(3.0))
    assert (detector.predict(X) == 1).all()


def hostile(seed):
    rng = np.random.default_rng(seed)
    X, kind = random_examples(rng, [1, 2, 3, 10, 30, 200], [1, 2, 5, 20, 300])
    (n, d), unit = X.shape, 10.0 ** rng.integers(-8, 13)
    X = (X + rng.choice([0.0, 1.0, 10.0, 1e6]) * rng.choice([0.0, 1.0], d)) * unit
    X[rng.random(n) < rng.choice([0.0, 0.1])] = 0.0
    kernel, single = (
        str(rng.choice(["linear", "linear", "rbf", "poly"])),
        rng.random() < 0.3,
    )
    # whose values in float32 are others in other batches
    if single and kernel != "poly":
        X = X.astype(np.float32)
    nu = [None, 1.0 / n, 1.0, float(rng.uniform(1.0 / n, 1.0))][rng.integers(4)]
    weight = rng.integers(0, 3, n) + (np.arange(n) == 0) if rng.random() < 0.3 else None
    return (
        (sp.csr_array(X) if kind == "sparse" else X),
        weight,
        {"nu": nu, "kernel": kernel},
    )


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 50))
def test_hostile_problems_end_with_certificates_that_hold(first):
    for seed in range(first, first + 50):
        X, weight, params = hostile(seed)
        detector = fit(MaxMarginOutlierDetector(**params), X, sample_weight=weight)
        assert detector.status_ in ("certified", "no_margin", "stalled", "max_iter"), (
            seed
        )
        for exact in {
            False,
            params["kernel"] == "linear" and X.shape[0] * X.shape[1] <= 1000,
        }:
            confirmed(detector, X, None, weight, exact=exact)


def test_false_claims_are_found(rng):
    X = cloud(rng)
    detector = certified(
        MaxMarginOutlierDetector(nu=0.2, kernel="linear"), X, exact=True
    )
    refused(detector, "nu=0.2", X, exact=True, nu=0.3)
    refused(detector, "separable is False", X, exact=True, feasible=False)
    assert not check_certificate(detector, X[::-1])


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
