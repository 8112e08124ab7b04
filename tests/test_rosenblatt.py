"""Rosenblatt's perceptron against one that is spelled out."""

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, overlapping, separable
from helpers.games import section_3

from marginsvm import KernelPerceptron


@pytest.mark.parametrize("n", [*range(2, 7), slow(7)])
def test_mistakes_of_rosenblatts_perceptron_on_the_data_of_section_3(n):
    clf = KernelPerceptron(fit_intercept=False).fit(*section_3(n))
    assert clf.n_mistakes_ == (4**n - 1) // 3


def mistakes_in_turn(A, sign, most):
    """How often each row of ``A = sign * X`` is added by a perceptron, spelled out.

    ``sign`` is None without an intercept. With one, half of a row is added, and half of the row of
    smallest margin in the other class, if the two together are misclassified.
    """
    w, added, start, n = np.zeros(A.shape[1]), np.zeros(len(A)), 0, len(A)
    for _ in range(most):
        margins = A @ w
        partner = np.arange(n)
        if sign is not None:
            lowest = {s: int(np.where(sign == s, margins, np.inf).argmin()) for s in (-1.0, 1.0)}
            partner = np.array([lowest[-s] for s in sign])
        order = np.roll(np.arange(n), -start)
        wrong = [r for r in order if margins[r] + margins[partner[r]] <= 0.0]
        if not wrong:
            break
        both = [wrong[0], partner[wrong[0]]]
        w += 0.5 * A[both].sum(axis=0)
        np.add.at(added, both, 0.5)
        start = (wrong[0] + 1) % n
    return added


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_rosenblatts_perceptron_visits_rows_in_turn(kernel, fit_intercept, rng):
    X, y = overlapping(rng, n=30, d=4)
    X, sign = X / np.linalg.norm(X, axis=1).max(), np.where(y == 1, 1.0, -1.0)
    params = {"kernel": kernel, "gamma": 1.0, "degree": 1, "fit_intercept": fit_intercept}
    clf = fit(KernelPerceptron(max_iter=200, warm_start=True, **params), X, y)
    expected = mistakes_in_turn(sign[:, None] * X, sign if fit_intercept else None, 200)
    assert clf.n_mistakes_ == expected.sum() == 200
    np.testing.assert_array_equal(clf._progress.state.w.coef, expected)
    assert (expected > 0).sum() > 10


def test_rosenblatts_perceptron_tells_thin_margins_from_none(rng):
    clf = KernelPerceptron(fit_intercept=False).fit([[1.0], [-5e-11]], [1, -1])
    assert (clf.status_, clf.n_mistakes_) == ("separated", 1)
    X, y = separable(rng, n=20, d=4)
    X[::3] *= 1e-10
    expected = mistakes_in_turn(np.where(y == 1, 1.0, -1.0)[:, None] * X, None, 10_000).sum()
    clf = KernelPerceptron(fit_intercept=False, tol=0.0).fit(X, y)
    assert (clf.status_, clf.n_mistakes_) == ("separated", expected)
