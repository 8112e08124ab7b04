"""Numbers of ALGORITHMS.md, on scikit-learn's data and on the real sets if they are there."""

import numpy as np
import pytest
from helpers.estimators import fit
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.svm import LinearSVC

from marginsvm import (
    BatchPerceptron,
    MomentumMarginClassifier,
    NormalizedKernelPerceptron,
    PerceptronVonNeumann,
    SmoothedKernelPerceptron,
    check_certificate,
)


def test_what_the_readme_says_of_linear_svc():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    peer = LinearSVC(C=1e6).fit(X, y)  # without a warning
    margin = np.min(np.where(y == 1, 1, -1) * peer.decision_function(X))
    assert round(margin / np.linalg.norm(peer.coef_), 3) == 0.699
    assert MomentumMarginClassifier(tol=1e-3).fit(X, y).margin_ > 0.817


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fit_intercept", "low", "high"), [(True, 0.7634, 0.7661), (False, 0.7321, 0.7385)]
)
def test_ten_digits(fit_intercept, low, high):
    X, y = load_digits(return_X_y=True)
    clf = fit(MomentumMarginClassifier(fit_intercept=fit_intercept, max_iter=5000), X, y)
    assert clf.margin_ <= high
    assert clf.margin_bound_ >= low
    assert clf.gap_ <= 0.01
    assert check_certificate(clf, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", sorted(set(PAIRWISE_KERNEL_FUNCTIONS) - {"sigmoid"}))
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-7), (np.float32, 1e-5)])
def test_every_kernel_of_scikit_learn(kernel, dtype, rtol):
    X, y = load_digits(return_X_y=True)
    X, y = X[:200].astype(dtype) / 16, y[:200] % 3
    clf = fit(MomentumMarginClassifier(kernel=kernel, max_iter=300), X, y)
    assert clf.score(X, y) > 0.6
    assert check_certificate(clf, X, y, rtol=rtol)


def mnist(shared_data, part, pair):
    data = shared_data("mnist")
    y = data[f"y_{part}"]
    kept = np.isin(y, pair)
    return data[f"X_{part}"].reshape(len(y), -1)[kept].astype(float), y[kept]


@pytest.mark.slow
def test_mnist_zero_one(shared_data):
    X, y = mnist(shared_data, "train", (0, 1))
    params = {"fit_intercept": False, "max_iter": 1000}
    momentum = fit(MomentumMarginClassifier(**params), X / 255.0, y)
    assert 0.3607 <= momentum.margin_ <= 0.364146 <= momentum.margin_bound_ <= 0.3661
    assert fit(MomentumMarginClassifier(momentum=None, **params), X / 255.0, y).margin_ < 0
    assert 0.29 < fit(BatchPerceptron(**params), X / 255.0, y).margin_ < 0.33


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "pair", "expected"),
    [
        (SmoothedKernelPerceptron, (0, 1), 15),
        (SmoothedKernelPerceptron, (3, 5), 196),
        (NormalizedKernelPerceptron, (0, 1), 21),
        (NormalizedKernelPerceptron, (3, 5), 1480),
        (PerceptronVonNeumann, (0, 1), 75),
        (PerceptronVonNeumann, (3, 5), 1164),
    ],
)
def test_rounds_on_mnist(cls, pair, expected, shared_data):
    """As many as a prototype counts that shares no code."""
    X, y = mnist(shared_data, "test", pair)
    clf = cls(stopping="separation", fit_intercept=False, normalize=True)
    if cls is PerceptronVonNeumann:
        clf.set_params(gamma_outer=2.0)
    clf.fit(X, y)
    assert clf.separable_ is True
    assert abs(clf.n_iter_ - expected) <= 1 + expected // 100
    assert check_certificate(clf, X, y)
