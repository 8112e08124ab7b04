"""Lemmas and corollaries on which the papers' theorems stand, in the papers' own setting.

The theorems are with their algorithms (test_momentum, test_perceptrons, test_dual_lp,
test_adaptive_sampling); docs/papers.rst says where each of them is.
"""

import numpy as np
import pytest
from estimators import overlapping, separable
from oracle import best_margin
from scipy.special import logsumexp
from test_dual_lp import optimum, theta
from test_momentum import rounds

from marginsvm import (
    MomentumMarginClassifier,
    OptimisticPerceptron,
    PrimalMirrorDescent,
    SmoothedKernelPerceptron,
)
from marginsvm.algorithms import _coordinates as loops
from marginsvm.kernel_matrix import LinearAdapter, LpNorm, make_rows, normalized


def game(X, y, p=2.0):
    """Rows without an intercept, the longest of norm 1."""
    return LinearAdapter(X, make_rows(y, 2, balanced=False), norm=LpNorm(p))


def written_out(data, X, y):
    return np.where(y == 1, 1.0, -1.0)[:, None] * X / data.radius


def test_lemmas_of_ji(rng):
    """Lemmas 3.5 and 3.6 and Proposition 3.7, with lambda_t = 2 / (t + 2)."""
    X, y = separable(rng, n=48, d=6)
    data = game(X, y)
    best = best_margin(X, y, fit_intercept=False) / data.radius
    from_mu = from_nu = travelled = least = 0.0  # the sums over j < t
    for after in rounds(MomentumMarginClassifier(), data, 300):
        t, w = after.t - 1, after.seen.vector  # w_t; after.w is w_{t+1}, after.g is g_t
        lam, last = 2 / (t + 2), 2 / (t + 1)
        if t >= 1:
            mu = 2 * data.norm(after.g) / t  # Lemma 3.4
            rise = logsumexp(-data.margins(w))  # psi(Z w_t); psi(0) = ln n
            latest = 0.5 * (mu / last) ** 2
            assert -rise >= -np.log(len(X)) + latest + from_mu + from_nu - 1e-9
            from_mu += 0.5 * (1 / last**2 - (1 - lam) / lam**2) * mu**2
            assert best * least <= data.norm(w) * (1 + 1e-9)
            assert data.norm(w) <= travelled * (1 + 1e-9)
            floor = best / 2 - 4 * np.log(len(X)) / (best * (t + 1) ** 2)
            assert data.lower_bound(w)[0] >= floor
        step = data.norm(after.w - w)  # |Z' nu_t| / lambda_t, by eq. (3.3)
        from_nu += 0.5 * lam * step**2
        travelled += step
        least += 1 / lam


def test_regrets_of_hanashiro(rng):
    """Theorem 1 for unit vectors, the best among them, and Theorem 2; r = 1, eta = 1."""
    X, y = separable(rng, n=40)
    data = game(X, y)
    A = written_out(data, X, y)
    star = theta(A.T @ optimum(data, X, y, 2.0), 2.0)
    others = np.vstack([star, rng.standard_normal((5, X.shape[1]))])
    units = others / np.linalg.norm(others, axis=1)[:, None]
    start = OptimisticPerceptron()._start(data)
    W, p, gained, moved, played = start.W, data.coefficients(start.last), 0.0, 0.0, 0.0
    for state in rounds(OptimisticPerceptron(), data, 200):
        w, W, before, p = state.W - W, state.W, p, data.coefficients(state.last)
        gained += p @ data.margins(w)
        moved += np.abs(p - before).sum() ** 2
        played = played + p
        assert np.all(units @ (A.T @ played) - gained <= 0.5 + 0.5 * moved + 1e-9)
        assert gained - data.margins(W).min() <= np.log(len(A)) - 0.5 * moved + 1e-9


@pytest.mark.parametrize("kind", [separable, overlapping])
def test_lemma_4_of_ramdas(kind, rng):
    """L_mu(alpha) >= L(alpha) - mu log n; the answer to alpha is the maximiser in L_mu."""
    X, y = kind(rng, n=45)
    data = game(normalized(X), y)
    for state in rounds(SmoothedKernelPerceptron(), data, 100):
        margins, q = data.margins(state.alpha), data.coefficients(state.answer.vector)
        entropy = np.sum(q[q > 0] * np.log(q[q > 0] * len(q)))
        smooth = -margins @ q - state.mu * entropy
        assert smooth >= -margins.min() - state.mu * np.log(len(q)) - 1e-12
        assert smooth <= -margins.min() + 1e-12


def test_normalizing_does_not_shrink_the_margin(rng):
    """Ramdas, section 2.2: rho / max |x| <= rho_2."""
    for margin in (0.5, 0.1, 0.02):
        X, y = separable(rng, margin=margin)
        length = np.linalg.norm(X, axis=1)
        rho = best_margin(X, y, fit_intercept=False)
        rho_2 = best_margin(X / length[:, None], y, fit_intercept=False)
        assert rho / length.max() <= rho_2 * (1 + 1e-6)


def ascents(data, epochs, seeds=20):
    """The dual variables of Algorithm 1 with uniform draws, epoch by epoch."""
    for seed in range(seeds):
        draws, alpha = np.random.default_rng(seed), data.zeros()
        path = []
        for _ in range(epochs):
            loops.ascend(data, draws.integers(data.n_rows, size=data.n_rows), alpha)
            path.append(data.coefficients(alpha).copy())
        yield path


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_eq_5_of_raj(p, rng):
    """The rate of Algorithm 1, even with the smaller of the two constants in its maximum."""
    X, y = separable(rng, n=30, d=12)
    data, q, n = game(X, y, p), p / (p - 1), len(X)
    A, best = written_out(data, X, y), optimum(data, X, y, p)

    def dual(alpha):
        return alpha.sum() - 0.5 * np.linalg.norm(A.T @ alpha, q) ** 2

    gaps = [[dual(best) - dual(alpha) for alpha in path] for path in ascents(data, 60)]
    t = n * np.arange(1, 61)
    bound = n * data.flat().curvature.max() * (best @ best) / t  # alpha is the paper's over n
    assert np.all(np.mean(gaps, axis=0) <= bound + 1e-6 * dual(best))


@pytest.mark.parametrize("p", [2.0, 1.5, 1.2])
def test_corollary_1_of_raj(p, rng):
    """|theta(alpha) - theta*|_p <= sqrt(2 gap / (p - 1)), for any alpha."""
    X, y = separable(rng, n=30, d=12)
    data, q = game(X, y, p), p / (p - 1)
    A, best = written_out(data, X, y), optimum(data, X, y, p)
    star, top = theta(A.T @ best, q), best.sum() - 0.5 * np.linalg.norm(A.T @ best, q) ** 2
    for path in ascents(data, 40, seeds=3):
        for alpha in path:
            gap = top - alpha.sum() + 0.5 * np.linalg.norm(A.T @ alpha, q) ** 2
            apart = np.linalg.norm(theta(A.T @ alpha, q) - star, p)
            assert apart**2 <= 2 * (gap + 1e-6 * top) / (p - 1)


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_corollary_2_of_raj(p, rng):
    """Mistakes of mirror descent's average, as a share: at most |theta*|_p R / sqrt((p-1) t)."""
    X, y = separable(rng, n=30, d=12, margin=0.1)
    data, q = game(X, y, p), p / (p - 1)
    A = written_out(data, X, y)
    length = np.linalg.norm(A.T @ optimum(data, X, y, p), q)  # |theta*|_p; R is 1
    shares = []
    for seed in range(10):
        clf = PrimalMirrorDescent(p=p, average=True, random_state=seed)
        shares.append([np.mean(A @ state.total <= 0) for state in rounds(clf, data, 100)])
    t = len(X) * np.arange(1, 101)
    assert np.all(np.mean(shares, axis=0) <= length / np.sqrt((p - 1) * t))
