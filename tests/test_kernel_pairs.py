"""Soft margins with kernels by pairs of weights on columns in float32, and their bounds."""

import numpy as np
import pytest
from helpers.estimators import certified, overlapping
from helpers.pairwise import pairwise
from helpers.tables import Table
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginsvm import MaxMarginClassifier

pytestmark = pytest.mark.usefixtures("as_within_a_fit")
LOSSES = ["hinge", "squared_hinge"]


def several(rng, n=600, k=4):
    """Overlapping classes of different sizes."""
    y = rng.choice(k, n, p=np.arange(1, k + 1) / sum(range(1, k + 1)))
    return rng.standard_normal((n, 5)) + 1.5 * rng.standard_normal((k, 5))[y], y


@pairwise(
    loss=LOSSES,
    C=[0.1, 100.0],
    kernel=["rbf", "poly", "precomputed", "callable"],
    fit_intercept=[True, False],
    kind=["plain", "weights", "duplicates", "float32"],
    k=[2, 3, 6],
)
def test_certified_fits(loss, C, kernel, fit_intercept, kind, k, rng):
    X, y = overlapping(rng, n=700) if k == 2 else several(rng, k=k)
    if kind == "duplicates":
        X[300:600] = X[:300]
    X = X.astype(np.float32) if kind == "float32" else X
    weight = rng.uniform(0.2, 3.0, len(y)) if kind == "weights" else None
    params = {"C": C, "loss": loss, "fit_intercept": fit_intercept, "tol": 1e-4 if k == 2 else 1e-3}
    params["kernel"] = rbf_kernel if kernel == "callable" else kernel
    data = rbf_kernel(X) if kernel == "precomputed" else X
    rounded = kind == "float32" or (k > 2 and kernel == "poly")  # whose values are
    ends = ("certified", "stalled", "max_iter") if rounded else ("certified",)
    certified(MaxMarginClassifier(**params), data, y, weight, ends=ends)


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_problem_is_that_of_svc(C, rng):
    X, y = overlapping(rng, n=700)
    clf = certified(MaxMarginClassifier(C=C, loss="hinge", kernel="rbf", tol=1e-4), X, y)
    peer = SVC(C=C, tol=1e-6).fit(X, y)
    v, K = peer.dual_coef_[0], rbf_kernel(peer.support_vectors_, gamma=peer._gamma)
    best = 1.0 / np.sqrt(2.0 * (np.abs(v).sum() - 0.5 * v @ K @ v))
    assert clf.margin_ <= best * (1.0 + 1e-4)
    assert clf.margin_bound_ >= best * (1.0 - 1e-4)


hard = Table(MaxMarginClassifier)


@hard(C=[1e-3, 15.0], loss=["hinge"], kernel=["laplacian"], gamma=[2.3e-4], tol=[1e-4])
def a_nearly_constant_kernel():
    """Raw units: most of the kernel is a constant, which balanced weights do not see."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 16)) * np.logspace(-3, 3, 16)
    scores = X @ rng.standard_normal((16, 6)) / X.std() + rng.standard_normal((600, 6))
    return X, scores.argmax(axis=1)


WIDE = {"kernel": ["rbf"], "loss": ["hinge"], "tol": [1e-3]}


@hard(**WIDE, gamma=[1e-5], C=[10.0])
@hard(**WIDE, gamma=[1e-4], C=[1.0])
@hard(**WIDE, gamma=[1.5625e-4], C=[0.5])
def weights_at_their_caps():
    """They jump between them as intercepts move, which must not run away."""
    X, y = load_digits(return_X_y=True)
    train = [*StratifiedKFold(5).split(X, y)][3][0]
    return StandardScaler().fit_transform(X)[train], y[train]


def without_rule(n):
    """Nothing to be learnt: all have slack."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)), rng.integers(0, 2, n)


little_memory = {"kernel": ["rbf"], "C": [1.0], "cache_size": [1.0, 4.0]}
hard(**little_memory, n=[900])(without_rule)
hard(**little_memory, n=[3200], gamma=[1.0], quick=False)(without_rule)


@hard(
    offset=[0.0, 1e9],
    kernel=["poly"],
    C=[25.0],
    gamma=[3.0],
    max_iter=[5],
    ends="certified or stalled or max_iter",
)
def kernels_that_float32_cannot_hold(offset):
    """Of rank one in float64, with negative eigenvalues in float32; or above its numbers."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(1200) < 0.3, rng.standard_normal(1200), 0.0) + offset
    return x[:, None], rng.integers(0, 2, 1200)


@hard(kernel=["rbf"], C=[100.0], loss=["hinge"])
def what_float32_has_rounded():
    """Scores of rounds are taken from float64 after the first bounds: 1e-5 was left without."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 6))
    scores = X @ rng.standard_normal((6, 10)) + rng.standard_normal((600, 10))
    return X, scores.argmax(axis=1)


@hard(k=[2], loss=LOSSES, gamma=[1e-8], kernel=["rbf"], C=[1e3], tol=[1e-5])
@hard(k=[2, 5], loss=LOSSES, gamma=[1e-10], kernel=["rbf"], C=[1e3], tol=[1e-5], quick=False)
def values_that_are_1_in_float32(k):
    """But for rounding: some have no best weights, and rounds that diverge end elsewhere."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((600, 4)), np.arange(600) % k


@hard.each
def test_hard_data(data, estimator, ends, exact):
    X, y = data()
    clf = certified(estimator, X, y, ends=ends, exact=exact)
    assert np.isfinite(clf.decision_function(X)).all()


def test_bounds_of_other_examples_are_not_taken_over(rng):
    """Examples that differ little may be told apart by nothing but what is computed anew."""
    X, y = overlapping(rng, n=500)
    X += 1.5 * y[:, None]
    clf = MaxMarginClassifier(C=1.0, kernel="rbf", gamma=0.5, warm_start=True).fit(X, y)
    certified(clf, X + 1e-4 * rng.standard_normal(X.shape), y)
    with pytest.raises(ValueError, match="other classes, intervals or values"):
        clf.fit(3.0 * X, y)
