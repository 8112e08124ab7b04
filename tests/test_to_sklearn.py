"""Estimators of scikit-learn with the same decision values."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each
from helpers.estimators import fit, make, overlapping, separable
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, LinearSVC, LinearSVR

from marginsvm import DualLpRegressor, MaxMarginClassifier, MomentumMarginClassifier


def are_equal(model, estimator, X):
    """Decision values to 1e-9 of their size, and predictions; also after pickling."""
    expected = estimator.decision_function(X)
    for found in (model, pickle.loads(pickle.dumps(model))):
        values = found.decision_function(X)
        assert values.shape == expected.shape
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_array_equal(found.predict(X), estimator.predict(X))


@each
def test_linear_classifiers(cls, rng):
    for k in (2, 3):
        X, y = overlapping(rng, k=k)
        clf = fit(make(cls, max_iter=20), X, np.array(["a", "b", "c"])[y])
        if getattr(clf, "normalize", False):
            with pytest.raises(ValueError, match="normalize=True"):
                clf.to_sklearn()
            continue
        model = clf.to_sklearn()
        assert isinstance(model, LinearSVC)
        are_equal(model, clf, rng.standard_normal((30, 3)))


def squares(A, B):
    """A kernel of a user."""
    return np.asarray(A @ B.T) ** 2


KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "poly", "kernel_params": {"degree": 3, "gamma": 0.1}},
    {"kernel": "laplacian"},
    {"kernel": squares},
]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("params", KERNELS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_kernel_classifiers(loss, params, form, rng):
    X, y = overlapping(rng, n=80)
    labels = np.array(["yes", "no"])[y]
    clf = fit(MaxMarginClassifier(C=0.7, loss=loss, max_iter=50, **params), form(X), labels)
    model = clf.to_sklearn()
    assert isinstance(model, SVC)
    are_equal(model, clf, form(rng.standard_normal((30, 3))))
    assert model.n_support_.sum() == len(clf.support_)


@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_a_precomputed_kernel(C, rng):
    X, y = separable(rng, n=40)
    clf = fit(MaxMarginClassifier(kernel="precomputed", C=C), X @ X.T, y)
    are_equal(clf.to_sklearn(), clf, rng.standard_normal((9, 5)) @ X.T)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "laplacian"])
def test_a_predictor_that_is_zero(kernel):
    clf = MomentumMarginClassifier(kernel=kernel, max_iter=5)
    fit(clf, np.ones((4, 4)), [0, 1, 0, 1])
    found = clf.to_sklearn().decision_function(np.eye(4))
    np.testing.assert_allclose(found, clf.decision_function(np.eye(4)), rtol=1e-12)


def test_it_is_the_predictor_that_svc_finds(rng):
    X, y = overlapping(rng, n=80)
    ours = MaxMarginClassifier(C=1.0, loss="hinge", kernel="rbf", tol=1e-7).fit(X, y).to_sklearn()
    theirs = SVC(C=1.0, kernel="rbf", tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)


def test_regressors(rng):
    X = rng.standard_normal((20, 4))
    reg = fit(DualLpRegressor(C=1.0, epsilon=0.1, random_state=0), X, X[:, 0] + 1.0)
    model = reg.to_sklearn()
    assert isinstance(model, LinearSVR)
    np.testing.assert_allclose(model.predict(X), reg.predict(X), rtol=1e-12)
    several = fit(DualLpRegressor(C=1.0, random_state=0), X, X[:, :2])
    with pytest.raises(ValueError, match="one output"):
        several.to_sklearn()


def test_what_has_none_is_refused(rng):
    X, y = overlapping(rng, k=3)
    with pytest.raises(NotFittedError):
        MaxMarginClassifier().to_sklearn()
    with pytest.raises(ValueError, match="only two classes"):
        fit(MaxMarginClassifier(C=1.0, kernel="rbf"), X, y).to_sklearn()

    def kernel(A, B):
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    words = fit(MaxMarginClassifier(C=1.0, kernel=kernel), ["ab", "cd", "ac"], [0, 1, 0])
    with pytest.raises(ValueError, match="not objects"):
        words.to_sklearn()
