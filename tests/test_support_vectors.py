"""Support vectors can be counted: published dual coefficients are exactly at their bounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import certified, confirmed, fit, overlapping
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from marginsvm import MaxMarginClassifier, MaxMarginRegressor

each_kernel = pytest.mark.parametrize("kernel", ["linear", "rbf"])
each_cost = pytest.mark.parametrize("C", [1.0, 100.0])


def two_classes(load):
    X, y = load(return_X_y=True)
    some = y >= y.max() - 1
    return StandardScaler().fit_transform(X[some]), y[some]


def counts(model, C):
    """Support vectors, and those at C; libsvm's are there up to 1e-9."""
    size = np.abs(np.asarray(model.dual_coef_)).max(axis=0)
    if hasattr(model, "certificate_"):
        assert (size <= C).all()
        return len(model.support_), np.count_nonzero(size == C)
    return len(model.support_), np.count_nonzero(size >= C * (1 - 1e-9))


def as_many(ours, theirs):
    return all(
        abs(one - other) <= max(2, 0.05 * other)
        for one, other in zip(ours, theirs, strict=True)
    )


@each_kernel
@each_cost
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_as_many_as_in_svc(load, kernel, C):
    X, y = two_classes(load)
    clf = certified(MaxMarginClassifier(C=C, kernel=kernel, loss="hinge"), X, y)
    found, wanted = counts(clf, C), counts(SVC(C=C, kernel=kernel).fit(X, y), C)
    assert as_many(found, wanted), (found, wanted)


@each_kernel
@each_cost
@pytest.mark.parametrize("load", [load_iris, load_wine, load_diabetes])
def test_as_many_as_in_svr(load, kernel, C):
    X, y = (
        load_diabetes(return_X_y=True) if load is load_diabetes else two_classes(load)
    )
    X, params = StandardScaler().fit_transform(X), {"C": C, "kernel": kernel}
    params["epsilon"] = 10.0 if load is load_diabetes else 0.1
    reg = certified(MaxMarginRegressor(**params), X, y)
    found, wanted = counts(reg, C), counts(SVR(**params).fit(X, y), C)
    assert as_many(found, wanted), (found, wanted)


@each_kernel
def test_bounds_are_those_of_weights(kernel, rng):
    """Also in units in which C times the squared radius is rounded."""
    X, y = overlapping(rng, n=80)
    weight = rng.choice([0.1, 1.0, 7.0], 80)
    params = {"C": 0.3, "kernel": kernel}
    for model, target in (
        (MaxMarginClassifier(loss="hinge", **params), y),
        (MaxMarginRegressor(epsilon=0.01, **params), 0.37 * y),
    ):
        certified(model, 0.7 * X, target, weight)
        size, caps = np.abs(model.dual_coef_[0]), 0.3 * weight[model.support_]
        assert (size <= caps).all()
        assert np.count_nonzero(size == caps) > 20
        balance = float(model.dual_coef_.sum())
        assert abs(balance) <= 1e-12 * size.sum()
        if kernel == "linear":
            found = model.dual_coef_ @ (0.7 * X)[model.support_]
            np.testing.assert_allclose(found.ravel(), np.ravel(model.coef_), rtol=1e-9)


def test_several_classes_have_bounds(rng):
    X, y = overlapping(rng, n=90, k=3)
    clf = certified(MaxMarginClassifier(C=0.5, loss="hinge"), X, y)
    own = np.searchsorted(clf.classes_, y[clf.support_])
    sums = clf.dual_coef_[own, np.arange(len(own))]
    assert (sums <= 0.5).all()
    assert np.count_nonzero(sums == 0.5) > 20


def test_what_is_beyond_the_margin_is_no_support_vector(rng):
    """The squared hinge loss has no upper bounds."""
    X, y = overlapping(rng, n=120)
    for kernel in ("linear", "rbf"):
        clf = certified(MaxMarginClassifier(C=10.0, kernel=kernel), X, y)
        margins = np.where(y == 1, 1.0, -1.0) * clf.decision_function(X)
        assert margins[clf.support_].max() <= 1.0 + 1e-6


def test_what_is_inside_the_tube_is_no_support_vector(rng):
    X = rng.standard_normal((150, 2))
    y = X[:, 0] + 0.3 * rng.standard_normal(150)
    params = {"loss": "squared_epsilon_insensitive", "kernel": "rbf", "C": 100.0}
    reg = certified(MaxMarginRegressor(epsilon=0.1, **params), X, y)
    off = np.abs(y - reg.predict(X))[reg.support_]
    assert off.min() >= 0.1 * (1 - 1e-6)
    assert len(reg.support_) < 140


def test_many_support_vectors_are_at_their_bound(rng):
    """Also where more are free than a system is solved for."""
    X = rng.standard_normal((1000, 10))
    y = X @ np.arange(10) + rng.standard_normal(1000)
    reg = certified(MaxMarginRegressor(C=1.0, epsilon=0.5), X, y)
    assert np.count_nonzero(np.abs(reg.dual_coef_) == 1.0) > 500


@pytest.mark.parametrize("of", [np.asarray, sp.csr_array])
def test_linear_models_have_them_too(of, rng):
    X, y = overlapping(rng)
    clf = MaxMarginClassifier(C=1.0).fit(of(X), y)
    reg = MaxMarginRegressor().fit(of(X), y)
    for model in (clf, reg):
        vectors = model.support_vectors_
        assert sp.issparse(vectors) == (of is not np.asarray)
        vectors = vectors.toarray() if sp.issparse(vectors) else vectors
        np.testing.assert_array_equal(vectors, X[model.support_])
        assert model.n_support_.sum() == len(model.support_)
    assert clf.n_support_.shape == (2,)
    assert reg.n_support_.shape == (1,)


def test_a_warm_start_goes_on_from_what_was_not_rounded(rng):
    X, y = overlapping(rng)
    params = {"loss": "hinge", "kernel": "rbf"}
    clf = MaxMarginClassifier(C=1.0, warm_start=True, max_iter=4, **params)
    for most in (4, 200):
        fit(clf.set_params(max_iter=most), X, y)
        confirmed(clf, X, y)
    anew = MaxMarginClassifier(C=1.0, **params).fit(X, y)
    assert clf.margin_ == pytest.approx(anew.margin_, rel=2e-6)
