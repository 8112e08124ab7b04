"""Soft margins with kernels by pairs of weights on columns in float32, and their bounds."""

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, overlapping
from helpers.pairwise import pairwise
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginsvm import MaxMarginClassifier, check_certificate

pytestmark = pytest.mark.usefixtures("as_within_a_fit")


def several(rng, n=600, k=4):
    """Overlapping classes of different sizes."""
    y = rng.choice(k, n, p=np.arange(1, k + 1) / sum(range(1, k + 1)))
    return rng.standard_normal((n, 5)) + 1.5 * rng.standard_normal((k, 5))[y], y


@pairwise(
    loss=["hinge", "squared_hinge"],
    C=[0.1, 100.0],
    kernel=["rbf", "poly", "precomputed", "callable"],
    fit_intercept=[True, False],
    kind=["plain", "weights", "duplicates", "float32"],
)
def test_certified_fits(loss, C, kernel, fit_intercept, kind, rng):
    X, y = overlapping(rng, n=700)
    if kind == "duplicates":
        X[350:] = X[:350]
    X = X.astype(np.float32) if kind == "float32" else X
    weight = rng.uniform(0.2, 3.0, len(y)) if kind == "weights" else None
    params = {"C": C, "loss": loss, "fit_intercept": fit_intercept, "tol": 1e-4}
    params["kernel"] = rbf_kernel if kernel == "callable" else kernel
    data = rbf_kernel(X) if kernel == "precomputed" else X
    clf = fit(MaxMarginClassifier(**params), data, y, sample_weight=weight)
    assert clf.status_ == "certified" or kind == "float32"  # whose kernel values are rounded
    assert check_certificate(clf, data, y, sample_weight=weight)
    if loss == "hinge" and fit_intercept and kernel == "rbf" and kind != "weights":
        peer = SVC(C=C, tol=1e-6).fit(X, y)
        v, K = peer.dual_coef_[0], rbf_kernel(peer.support_vectors_, gamma=peer._gamma)
        dual = np.abs(v).sum() - 0.5 * v @ K @ v
        assert clf.margin_ <= (1.0 + 1e-4) / np.sqrt(2.0 * dual)
        assert clf.margin_bound_ >= (1.0 - 1e-4) / np.sqrt(2.0 * dual)


@pairwise(
    loss=["hinge", "squared_hinge"],
    C=[0.1, 100.0],
    kernel=["rbf", "poly", "precomputed", "callable"],
    fit_intercept=[True, False],
    kind=["plain", "weights", "duplicates"],
    k=[3, 6],
)
def test_certified_fits_of_several_classes(loss, C, kernel, fit_intercept, kind, k, rng):
    X, y = several(rng, k=k)
    if kind == "duplicates":
        X[300:] = X[:300]
    weight = rng.uniform(0.2, 3.0, len(y)) if kind == "weights" else None
    params = {"C": C, "loss": loss, "fit_intercept": fit_intercept, "tol": 1e-3}
    params["kernel"] = rbf_kernel if kernel == "callable" else kernel
    data = rbf_kernel(X) if kernel == "precomputed" else X
    clf = fit(MaxMarginClassifier(**params), data, y, sample_weight=weight)
    assert clf.status_ == "certified" or kernel == "poly"
    assert check_certificate(clf, data, y, sample_weight=weight)


@pytest.mark.parametrize("C", [1e-3, 15.0])
def test_nearly_constant_kernels_of_several_classes_are_certified(C, rng):
    """Raw units: most of the kernel is a constant, which balanced weights do not see."""
    X = rng.standard_normal((600, 16)) * np.logspace(-3, 3, 16)
    scores = X @ rng.standard_normal((16, 6)) / X.std() + rng.standard_normal((600, 6))
    y, gamma = scores.argmax(axis=1), 1.0 / (16 * X.std())
    clf = fit(
        MaxMarginClassifier(C=C, loss="hinge", kernel="laplacian", gamma=gamma, tol=1e-4), X, y
    )
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize(("gamma", "C"), [(1e-5, 10.0), (1e-4, 1.0), (1.5625e-4, 0.5)])
def test_intercepts_do_not_run_away(gamma, C):
    """Nearly all weights are at their caps, and jump between them as intercepts move."""
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    train = [*StratifiedKFold(5).split(X, y)][3][0]
    clf = MaxMarginClassifier(kernel="rbf", gamma=gamma, C=C, loss="hinge", tol=1e-3)
    assert fit(clf, X[train], y[train]).status_ == "certified"


@pytest.mark.slow
def test_a_support_outgrows_its_memory(rng):
    X, y = overlapping(rng, n=3200)
    y = rng.permutation(y)  # nothing to be learnt: all have slack
    clf = fit(MaxMarginClassifier(C=1.0, kernel="rbf", gamma=1.0, cache_size=4.0), X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


def test_little_memory_for_kernel_values(rng):
    X, y = overlapping(rng, n=900)
    clf = MaxMarginClassifier(C=1.0, kernel="rbf", cache_size=1.0).fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


def test_bounds_of_other_examples_are_not_taken_over(rng):
    """Examples that differ little may be told apart by nothing but what is computed anew."""
    X, y = overlapping(rng, n=500)
    X += 1.5 * y[:, None]
    params = {"C": 1.0, "kernel": "rbf", "gamma": 0.5, "warm_start": True, "tol": 1e-6}
    clf = MaxMarginClassifier(**params).fit(X, y)
    other = X + 1e-4 * rng.standard_normal(X.shape)
    assert check_certificate(clf.fit(other, y), other, y)
    with pytest.raises(ValueError, match="other classes, intervals or values"):
        clf.fit(3.0 * X, y)


@pytest.mark.parametrize("k", [2, slow(3)])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_kernels_that_float32_cannot_hold_end(k, offset, rng):
    """Of rank one in float64, with negative eigenvalues in float32; or above its numbers."""
    x = np.where(rng.random(1200) < 0.3, rng.standard_normal(1200), 0.0) + offset
    X, y = x[:, None], rng.integers(0, k, 1200)
    clf = fit(MaxMarginClassifier(kernel="poly", C=25.0, gamma=3.0, max_iter=5), X, y)
    assert clf.status_ in ("certified", "stalled", "max_iter")
    assert np.isfinite(clf.decision_function(X)).all()
    assert check_certificate(clf, X, y)


def test_rounds_mend_what_float32_has_rounded(rng):
    """Their scores are taken from float64 after the first bounds: 1e-5 was left without."""
    X = rng.standard_normal((600, 6))
    scores = X @ rng.standard_normal((6, 10)) + rng.standard_normal((600, 10))
    y = scores.argmax(axis=1)
    clf = MaxMarginClassifier(kernel="rbf", C=100.0, loss="hinge").fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y).valid


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("k", [2, slow(5)])
@pytest.mark.parametrize("gamma", [1e-8, slow(1e-10)])
def test_rounds_that_diverge_leave_a_fit_to_other_methods(k, loss, gamma, rng):
    """In float32 all values of the kernel are 1, but for rounding: some have no best weights."""
    X, y = rng.standard_normal((600, 4)), np.arange(600) % k
    clf = MaxMarginClassifier(C=1e3, kernel="rbf", gamma=gamma, loss=loss, tol=1e-5).fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)
