"""The smoothed perceptron: Lemma 5 and Theorem 1 of Ramdas and Pena, round by round."""

import numpy as np
import pytest
from helpers.divided import normalized
from helpers.estimators import fit, overlapping, separable
from helpers.games import excessive_gap, game, rounds, smoothed, unit_rows
from helpers.hard import each_hard, lopsided, within
from helpers.oracle import best_margin

from marginsvm import OptimisticPerceptron, PerceptronVonNeumann, SmoothedKernelPerceptron
from marginsvm.problem.adapter import GramAdapter, LinearAdapter
from marginsvm.problem.rows import make_rows


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", [lopsided, overlapping])
def test_lemma_5_and_theorem_1(balanced, k, kind, rng):
    X, y = kind(rng, n=45, k=k)
    data = LinearAdapter(normalized(X), make_rows(y, k, balanced=balanced))
    prior = data.rows.prior
    seen = X / np.linalg.norm(X, axis=1)[:, None]
    rho = best_margin(seen, y, fit_intercept=balanced) / data.radius / data.rows.unit

    def entropy(q):
        return np.sum(q[q > 0] * np.log(q[q > 0] / prior))

    enough, last = 2 * np.sqrt(2 * np.log(data.n_rows)) / max(rho, 1e-12), 0
    for state in rounds(SmoothedKernelPerceptron(), data, min(int(enough) + 20, 300)):
        at = smoothed(state)
        assert excessive_gap(data, at.alpha, at.p, at.mu, at.answer, entropy) <= 1e-12
        assert data.norm(at.p) >= rho * (1 - 1e-5) - 1e-12
        if at.min_margin <= 0:
            last = at.k
    if kind is lopsided:
        assert last > 20  # the statement can fail
        within(last, enough, "the last round without a separator")


@each_hard
def test_theorem_1_where_it_takes_rounds(kind, rng):
    X, y = kind(rng)
    data = game(normalized(X), y)
    rho = best_margin(X / np.linalg.norm(X, axis=1)[:, None], y, fit_intercept=False)
    enough, last = 2 * np.sqrt(2 * np.log(len(X))) / rho, 0
    for state in rounds(SmoothedKernelPerceptron(), data, int(enough) + 20):
        if state.measured.min_margin <= 0:
            last = state.t - 1  # the paper's k
    assert last > 10
    within(last, enough, "the last round without a separator")


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_a_proof_that_nothing_separates_after_so_many_rounds(margin, rng):
    """|p_k|^2 <= rho^2 + 8 ln n / ((k + 1)(k + 2)), by Lemma 5.

    With rho = 0, it is an epsilon-certificate after sqrt(8 ln n) / epsilon rounds: the half of the
    conjecture in section 7 that is about epsilon. All alpha_k and p_k are weights that sum to 1.
    """
    X, y = overlapping(rng, n=60) if margin == 0 else lopsided(rng, gamma=margin)
    data = game(normalized(X), y)
    rho = best_margin(X / np.linalg.norm(X, axis=1)[:, None], y, fit_intercept=False)
    most = 0.0
    for state in rounds(SmoothedKernelPerceptron(), data, 300):
        at = smoothed(state)
        for weights in (at.alpha.coef, at.p.coef):
            assert weights.min() >= 0
            np.testing.assert_allclose(weights.sum(), 1.0)
        most = max(most, (data.norm(at.p) ** 2 - rho**2) * (at.k + 1) * (at.k + 2))
    within(most, 8 * np.log(len(X)), "excess of the squared norm times (k + 1)(k + 2)")


def test_smoothed_perceptron_is_algorithm_4s(rng):
    X, y = separable(rng, n=40)
    A = unit_rows(X, y)
    G = A @ A.T
    n = len(A)

    def p_mu(alpha, mu):
        e = np.exp(-G @ alpha / mu)
        return e / e.sum()

    for data in (
        LinearAdapter(normalized(X), make_rows(y, 2, balanced=False)),
        GramAdapter(
            lambda a, b: a @ b.T,
            X,
            make_rows(y, 2, balanced=False),
            scale=1.0 / np.linalg.norm(X, axis=1),
        ),
    ):
        alpha, mu = np.full(n, 1.0 / n), 2.0
        p = p_mu(alpha, mu)
        for k, state in enumerate(rounds(SmoothedKernelPerceptron(), data, 60)):
            at = smoothed(state)
            np.testing.assert_allclose(at.alpha.coef, alpha, atol=1e-12)
            np.testing.assert_allclose(at.p.coef, p, atol=1e-12)
            np.testing.assert_allclose(at.mu, mu)
            theta = 2 / (k + 3)
            alpha = (1 - theta) * (alpha + theta * p) + theta**2 * p_mu(alpha, mu)
            mu = (1 - theta) * mu
            p = (1 - theta) * p + theta * p_mu(alpha, mu)


def test_a_round_is_one_product_with_the_gram_matrix(rng):
    X, y = separable(rng, n=60)
    for cls in (SmoothedKernelPerceptron, PerceptronVonNeumann, OptimisticPerceptron):
        clf = fit(cls(kernel="rbf", stopping="gap", tol=0.0, max_iter=50), X, y)
        assert clf.history_["n_passes"][-1] <= 50 + 4
