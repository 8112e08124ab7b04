"""The classical baselines: each round is the one of the paper, spelled out."""

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, overlapping, separable
from helpers.games import known, rounds, section_3
from helpers.hard import each_hard, small, within

from marginsvm import (
    BatchPerceptron,
    KernelPerceptron,
    NormalizedKernelPerceptron,
    VonNeumannClassifier,
)


@pytest.mark.parametrize("steps", ["constant", "cotter"])
def test_batch_perceptrons_add_the_worst_row(steps, rng):
    """Cotter's with steps of 1 / sqrt(t), projected to the unit ball; the average of all rounds."""
    data, A, _ = known(*separable(rng, n=40))
    w, total, outside = np.zeros(A.shape[1]), np.zeros(A.shape[1]), 0
    for t, state in enumerate(rounds(BatchPerceptron(steps=steps), data, 60), start=1):
        row = A[np.argmin(A @ w)] if t > 1 else A.mean(axis=0)  # at w = 0 all are equally bad
        if steps == "cotter":
            w = w + row / np.sqrt(t)
            outside += np.linalg.norm(w) > 1.0
            w = w / max(1.0, np.linalg.norm(w))
        else:
            w = w + row
        total += w
        np.testing.assert_allclose(state.w.image, w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(state.average.image, total / t, rtol=1e-10, atol=1e-12)
    assert outside > 10 or steps == "constant"


@each_hard
def test_the_margin_of_cotters_average(kind, rng):
    """At least gamma - 3 / sqrt(T): steps 1 / sqrt(t), gradients of norm 1, a ball of width 2."""
    data, _, gamma = known(*small(kind, rng))
    short = 0.0
    for state in rounds(BatchPerceptron(steps="cotter"), data, int(6 / gamma**2)):
        if state.t & (state.t - 1) == 0:  # sometimes
            margin = data.margins(state.average).min()
            short = max(short, (gamma - margin) * np.sqrt(state.t))
    within(short, 3.0, "shortfall of the average's margin, times the root of the rounds")
    assert margin > 0


def test_normalized_kernel_perceptron_is_algorithm_3s(rng):
    data, A, _ = known(*separable(rng, n=40), normalize=True)
    alpha = np.zeros(len(A))
    for k, state in enumerate(rounds(NormalizedKernelPerceptron(), data, 60)):
        theta = 1 / (k + 1)
        alpha = (1 - theta) * alpha + theta * np.eye(len(A))[np.argmin(A @ (A.T @ alpha))]
        np.testing.assert_allclose(state.w.coef / (k + 1), alpha, atol=1e-12)
        assert state.w.coef.min() >= 0  # the second remark: alpha stays in the simplex
        np.testing.assert_allclose(state.w.coef.sum(), k + 1)


def test_von_neumann_is_algorithm_5s(rng):
    data, A, _ = known(*overlapping(rng, n=40), normalize=True)
    p = np.full(len(A), 1.0 / len(A))
    for state in rounds(VonNeumannClassifier(), data, 60):
        w = A.T @ p
        j = np.argmin(A @ w)
        lam = np.linspace(0, 1, 10_001)[:, None]
        exact = lam[np.argmin(np.linalg.norm((1 - lam) * w + lam * A[j], axis=1)), 0]
        before, p = p, state.p.coef.copy()
        theta = (p[j] - before[j]) / (1 - before[j])
        np.testing.assert_allclose(theta, exact, atol=2e-4)
        np.testing.assert_allclose(p, (1 - theta) * before + theta * np.eye(len(A))[j], atol=1e-12)


@pytest.mark.parametrize("n", [*range(2, 7), slow(7)])
def test_mistakes_of_rosenblatts_perceptron_on_the_data_of_section_3(n):
    clf = KernelPerceptron(fit_intercept=False).fit(*section_3(n))
    assert clf.n_mistakes_ == (4**n - 1) // 3


def mistakes_in_turn(A, sign, most):
    """How often each row of ``A = sign * X`` is added by a perceptron, spelled out."""
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
