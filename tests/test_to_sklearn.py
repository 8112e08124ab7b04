"""Estimators of scikit-learn with the same decision values."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each
from helpers.estimators import fit, make, overlapping, separable
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM

from marginsvm import (
    DualLpRegressor,
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
)


def are_equal(model, estimator, X):
    """Decision values to 1e-9 of their size, and predictions; also after pickling."""
    for name in ("decision_function", "score_samples", "predict"):
        if not hasattr(estimator, name):
            continue
        expected = getattr(estimator, name)(X)
        for found in (model, pickle.loads(pickle.dumps(model))):
            values = getattr(found, name)(X)
            assert values.shape == expected.shape
            if name == "predict" and hasattr(estimator, "decision_function"):
                np.testing.assert_array_equal(values, expected)
                continue
            atol = 1e-9 * np.abs(expected).max()
            np.testing.assert_allclose(values, expected, rtol=0, atol=atol)


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
MODELS = {
    "hinge": (MaxMarginClassifier(C=0.7, loss="hinge", max_iter=50), SVC),
    "squared hinge": (MaxMarginClassifier(C=0.7, max_iter=50), SVC),
    "tube": (MaxMarginRegressor(max_iter=50), SVR),
    "one class": (MaxMarginOutlierDetector(nu=0.2), OneClassSVM),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("params", KERNELS)
@pytest.mark.parametrize(("model", "kind"), MODELS.values(), ids=MODELS)
def test_kernels(model, kind, params, form, rng):
    X, y = overlapping(rng, n=80)
    X += 3.0 * (kind is OneClassSVM)  # else cubes have no margin
    y = {SVC: np.array(["yes", "no"])[y], SVR: X[:, 0] + y}.get(kind)
    ours = fit(clone(model).set_params(**params), form(X), *([] if y is None else [y]))
    theirs = ours.to_sklearn()
    assert isinstance(theirs, kind)
    are_equal(theirs, ours, form(rng.standard_normal((30, 3)) + X.mean(axis=0)))
    assert theirs.n_support_.sum() == len(ours.support_)
    assert theirs.get_params().get("nu", 0.5) == getattr(ours, "nu", 0.5) or kind is not OneClassSVM


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


def test_linear_regressors_and_detectors(rng):
    X = rng.standard_normal((20, 4)) + 2.0
    reg = fit(DualLpRegressor(C=1.0, epsilon=0.1, random_state=0), X, X[:, 0] + 1.0)
    assert isinstance(reg.to_sklearn(), LinearSVR)
    detector = fit(MaxMarginOutlierDetector(kernel="linear", nu=0.2), X)
    assert isinstance(detector.to_sklearn(), OneClassSVM)
    for model in (reg, detector):
        are_equal(model.to_sklearn(), model, rng.standard_normal((20, 4)))
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
