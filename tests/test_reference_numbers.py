"""Numbers of ALGORITHMS.md, on scikit-learn's data and on the real sets if they are there."""

import numpy as np
import pytest
from helpers.estimators import fit
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from marginsvm import (
    MomentumMarginClassifier,
    NormalizedKernelPerceptron,
    PerceptronVonNeumann,
    SmoothedKernelPerceptron,
    check_certificate,
)


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
