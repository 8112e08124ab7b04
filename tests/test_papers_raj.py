"""What Raj and Bach state beside their theorems, in their own setting.

The theorems are in test_dual_lp; docs/papers.rst says where each of them is. The paper's
dual variables are n times those here: its problem (12) has averages where the code has sums.
"""

import numpy as np
import pytest
from helpers.estimators import separable
from helpers.games import game, optimum, rounds, theta, written_out
from helpers.hard import each_hard, small, within
from helpers.vectors import flat

from marginsvm import PrimalMirrorDescent
from marginsvm.algorithms.compiled import coordinates as loops
from marginsvm.algorithms.dual_ascent import before


def ascents(data, epochs, seeds=20):
    """The dual variables of Algorithm 1 with uniform draws, epoch by epoch."""
    for seed in range(seeds):
        draws, alpha = np.random.default_rng(seed), data.zeros()
        path = []
        for _ in range(epochs):
            loops.ascend(data, draws.integers(data.n_rows, size=data.n_rows), alpha)
            path.append(alpha.coef.copy())
        yield path


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_eq_5_of_raj(p, kind, rng):
    """The rate of Algorithm 1, even with the smaller of the two constants in its maximum."""
    X, y = small(kind, rng)
    data, q, n = game(X, y, p), p / (p - 1), len(X)
    A, best = written_out(data, X, y), optimum(data, X, y, p)

    def dual(alpha):
        return alpha.sum() - 0.5 * np.linalg.norm(A.T @ alpha, q) ** 2

    constant = n * data.layout().curvature.max() * (best @ best)  # alpha is the paper's over n
    epochs = int(2 * constant / (n * dual(best)))  # by then the bound is half of the first gap
    gaps = [[dual(best) - dual(alpha) for alpha in path] for path in ascents(data, epochs, 5)]
    bound = constant / (n * np.arange(1, epochs + 1)) + 1e-6 * dual(best)
    within(np.max(np.mean(gaps, axis=0) / bound), 1.0, "share of the bound")


@pytest.mark.slow
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


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_corollary_2_of_raj(p, kind, rng):
    """Mistakes of mirror descent's average, as a share: at most |theta*|_p R / sqrt((p-1) t).

    And at most the square of that: a mistake costs 1/2, so that they are at most twice the loss.
    """
    X, y = small(kind, rng)
    data, q = game(X, y, p), p / (p - 1)
    A = written_out(data, X, y)
    length = np.linalg.norm(A.T @ optimum(data, X, y, p), q)  # |theta*|_p; R is 1
    shares, epochs = [], int(1.5 * length**2 / (p - 1))  # by then, no row is misclassified
    for seed in range(3):
        clf = PrimalMirrorDescent(p=p, average=True, random_state=seed)
        shares.append([np.mean(A @ state.total <= 0) for state in rounds(clf, data, epochs)])
    share, t = np.mean(shares, axis=0), len(X) * np.arange(1, epochs + 1)
    assert share[1] > 0  # the statement can fail
    bound = length / np.sqrt((p - 1) * t)
    within(np.max(share / bound), 1.0, "mistakes, as a share of the bound")
    within(np.max(share / bound**2), 1.0, "and of its square")


@pytest.mark.slow
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_eq_5_of_raj_with_draws_in_proportion_to_the_curvatures(p, rng):
    """Section 2.2: drawn so, the mean of the L_i takes the place of their maximum."""
    X, y = separable(rng, n=30, d=12)
    X[:3] *= 4.0  # few long rows, so that mean and maximum differ
    data, q, n = game(X, y, p), p / (p - 1), len(X)
    A, best = written_out(data, X, y), optimum(data, X, y, p)
    L = data.layout().curvature

    def dual(alpha):
        return alpha.sum() - 0.5 * np.linalg.norm(A.T @ alpha, q) ** 2

    gaps = []
    for seed in range(20):
        draws, alpha, path = np.random.default_rng(seed), data.zeros(), []
        for _ in range(60):
            loops.ascend(data, draws.choice(n, size=n, p=L / L.sum()), alpha)
            path.append(dual(best) - dual(alpha.coef))
        gaps.append(path)
    assert L.mean() < 0.5 * L.max()
    bound = n * L.mean() * (best @ best) / (n * np.arange(1, 61))
    assert np.all(np.mean(gaps, axis=0) <= bound + 1e-6 * dual(best))


@pytest.mark.parametrize("p", [2.0, 1.3])
def test_first_visits_are_mirror_descent_s(p, rng):
    """Section 2.3: a row that has no weight yet moves as in eq. (10), if all L_i are equal."""
    X, y = separable(rng, n=30, d=12)
    X = X / np.linalg.norm(X, p / (p - 1), axis=1)[:, None]
    data, order = game(X, y, p), rng.permutation(30)
    dual, primal = data.zeros(), data.zeros()
    loops.ascend(data, order, dual)
    loops.ascend(data, order, primal, loops.DESCENT)
    np.testing.assert_allclose(flat(dual), flat(primal), rtol=1e-9, atol=1e-12)
    loops.ascend(data, order, dual)  # not so when rows are visited again
    loops.ascend(data, order, primal, loops.DESCENT)
    assert np.abs((dual - primal).coef).max() > 1e-3


def accelerated(data, epochs, seeds=20):
    """The listing's alpha and the sequence v of Algorithm 2 with uniform draws, by epochs."""
    n = data.n_rows
    for seed in range(seeds):
        draws, zeta, s, gamma = np.random.default_rng(seed), data.zeros(), data.zeros(), 1 / n
        path = []
        for _ in range(epochs):
            gamma = loops.accelerate(data, draws.integers(n, size=n), n, zeta, s, gamma)
            v = zeta + before(gamma) * s
            path.append((zeta.coef.copy(), v.coef))
        yield path


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_eq_13_and_lemma_3_of_raj(p, kind, rng):
    """The distance to theta* falls as 1 / t, and there are no mistakes after so many steps.

    Eq. (13) as printed, with t beside its square root, as Lemma 3 takes it, and R = 1; and
    as eq. (8) and Corollary 1 give it, where p - 1 is in another place, and n, squared, at G.
    """
    X, y = small(kind, rng)
    data, q, n = game(X, y, p), p / (p - 1), len(X)
    A, best = written_out(data, X, y), optimum(data, X, y, p)
    star, alpha_2 = theta(A.T @ best, q), n**2 * (best @ best)  # the paper's |alpha*|^2
    top = best.sum() - 0.5 * np.linalg.norm(A.T @ best, q) ** 2  # G(alpha*), and G(0) = 0
    printed = 2 * np.sqrt(2 / (p - 1)) * np.sqrt(top + 0.5 * alpha_2)
    derived = 2 * np.sqrt(2) / (p - 1) * np.sqrt(n**2 * (p - 1) * top + 0.5 * alpha_2)
    epochs, runs = int(np.ceil(derived / n)) + 5, 5
    apart, wrong = np.zeros(epochs), np.zeros(epochs)
    for path in accelerated(data, epochs, runs):
        for epoch, (_, v) in enumerate(path):
            predictor = theta(A.T @ v, q)
            apart[epoch] += np.linalg.norm(predictor - star, p) / runs
            wrong[epoch] += np.mean(A @ predictor <= 0) / runs
    t = n * np.arange(1, epochs + 1)
    last = t[np.flatnonzero(wrong)[-1]]
    for steps in (printed, derived):
        within(np.max(apart * t), steps, "t times the distance")
        within(last, steps, "the last step after which there was a mistake")


def test_the_listing_returns_a_worse_sequence_than_v():
    """On the data of section 4, p = 2, after 30 epochs: dozens of mistakes against none."""
    rng, n, d = np.random.default_rng(0), 1000, 2000
    truth = rng.standard_normal(d)
    X = rng.standard_normal((3 * n, d)) * np.arange(1, d + 1) ** -0.75
    score = X @ truth + 0.005
    kept = np.flatnonzero(np.abs(score) > 0.1)[:n]
    data = game(X[kept], (score[kept] > 0).astype(int))
    for path in accelerated(data, 30, seeds=2):
        listed, v = (np.sum(data.margins(data.combine(q)) <= 0) for q in path[-1])
        print(f"epoch 30: {listed} training mistakes of the listing's alpha, {v} of v")
        assert v == 0 < listed


@pytest.mark.slow
def test_observation_c_of_section_4(rng):
    """With independent rows the dual is strongly convex: the gap falls by a factor an epoch."""
    X, y = rng.standard_normal((60, 90)), np.arange(60) % 2
    data = game(X, y)
    A, best = written_out(data, X, y), optimum(data, X, y, 2.0)
    top = best.sum() - 0.5 * np.linalg.norm(A.T @ best) ** 2
    gaps = [
        [top - alpha.sum() + 0.5 * np.sum((A.T @ alpha) ** 2) for alpha in path]
        for path in ascents(data, 40)
    ]
    mean = np.mean(gaps, axis=0)
    epoch = np.flatnonzero((np.arange(40) >= 3) & (mean > 1e-6 * top))  # above alpha*'s error
    logs = np.log(mean[epoch])
    slope, start = np.polyfit(epoch, logs, 1)
    print(f"{epoch.size} epochs, a factor of {np.exp(slope):.2f} each")
    assert epoch.size >= 10
    assert slope < -0.1
    assert np.all(np.abs(logs - start - slope * epoch) < 0.1 * np.ptp(logs))  # affine
