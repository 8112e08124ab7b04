"""The accelerated perceptron: the theorem of Wang, Hanashiro, Guha and Abernethy, every round."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import certified, confirmed, fit, overlapping, separable
from helpers.games import flat, game, known, optimum, rounds, theta, written_out
from helpers.hard import chain, contradicted, corner, each_hard, lopsided, small, within
from helpers.oracle import best_margin, best_margin_in_norm
from helpers.pairwise import pairwise
from scipy.special import softmax

from marginsvm import (
    AcceleratedPerceptron,
    DualLpPerceptron,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    check_certificate,
)
from marginsvm.papers.accelerated import AcceleratedPlay
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows

# Algorithms 1 and 2 with the paper's constants: the data player is smoothed by 4.
PAPER = SimpleNamespace(_algorithm=lambda: AcceleratedPlay(smoothing=4.0))
OURS = AcceleratedPerceptron()


def best_in_norm(data, X, y, p):
    return 1.0 / np.sqrt(optimum(data, X, y, p).sum())


@pytest.mark.parametrize("exponent", [2.0, 1.4])
def test_both_players_are_the_papers(exponent, rng):
    """Both players' moves as they are defined: the minimisers of weighted sums so far."""
    X, y = separable(rng, n=40)
    data, q = game(X, y, exponent), exponent / (exponent - 1.0)
    A = written_out(data, X, y)
    p = np.full(len(A), 1.0 / len(A))
    moves, output, played = [p], 0.0, 0.0
    for state in rounds(OURS, data, 50):
        t = state.t
        alpha = np.arange(1.0, t + 1)
        guess = A.T @ (
            alpha[:-1] @ np.array(moves[1:]).reshape(t - 1, len(A)) + t * moves[-1]
        )
        # least of sum_s alpha_s (|w|^2 / 2 - p_s'A w), the last p twice
        output = output + t * theta(guess / alpha.sum(), q)
        moves.append(softmax(-A @ output * (exponent - 1.0) / 2.0))
        played = played + t * A.T @ moves[-1]
        np.testing.assert_allclose(
            theta(state.W.image, q), output, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(state.last.coef, moves[-1], rtol=1e-8)
        np.testing.assert_allclose(state.total.image, played, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.W.coef.sum(), t * (t + 1) / 2)


def check_the_rate(data, gamma, n_rounds, p=2.0):
    """Both bounds are as near as the regret of both players together allows."""
    short = above = 0.0
    for state in rounds(OURS, data, n_rounds):
        regret = 8.0 * np.log(data.n_rows) / ((p - 1.0) * state.t * (state.t + 1))
        margin = max(state.measured.min_margin, 0.0) / data.norm(state.W)
        upper = data.norm(state.total) / state.total.mass
        short = max(short, (gamma**2 - margin**2 - 1e-9) / regret)
        above = max(above, (upper**2 - gamma**2 - 1e-9) / regret)
    assert regret < 0.5 * gamma**2  # the bound has said something
    within(short, 1.0, "shortfall, as a share of the bound")
    within(above, 1.0, "excess of the upper bound, as a share")


@pairwise(
    form=[np.asarray, sp.csr_array], balanced=[True, False], C=[np.inf, 1.0], k=[2, 3]
)
def test_the_margin_converges_without_a_logarithm(form, balanced, C, k, rng):
    X, y = lopsided(rng, gamma=0.2, k=k)
    _, _, gamma = known(X, y, balanced=balanced, C=C)
    data = LinearAdapter(form(X), make_rows(y, k, balanced=balanced), C)
    check_the_rate(data, gamma, 300)


def test_the_rate_where_the_best_weights_are_a_corner():
    data, _, gamma = known(*corner())
    check_the_rate(data, gamma, 300)


@each_hard
@pytest.mark.parametrize("p", [1.5, 1.15])
def test_the_p_norm_perceptron_has_the_rate(p, kind, rng):
    """Regrets are larger by 1 / (p - 1); separation after sqrt(8 ln n / (p - 1)) / gamma rounds."""
    X, y = small(kind, rng)
    data = game(X, y, p)
    gamma = best_in_norm(data, X, y, p)
    check_the_rate(
        data, gamma, int(np.sqrt(16 * np.log(len(X)) / (p - 1)) / gamma) + 1, p
    )


# Margins in p-norms of the predictor: against a general solver, which shares no code, and against
# coordinate ascent, which penalises the intercept the less, the larger the constant feature is.


@pairwise(
    kind=[separable, lopsided],
    p=[1.1, 1.5, 1.9],
    cls=[AcceleratedPerceptron, OptimisticPerceptron],
)
def test_bounds_hold_in_p_norms(kind, p, cls, rng):
    X, y = kind(rng, n=20)
    best = best_margin_in_norm(X, y, p)
    clf = fit(cls(p=p, tol=0.05), X, y)
    assert clf.margin_ <= best * (1 + 1e-4)
    assert best <= clf.margin_bound_ * (1 + 1e-4)
    assert check_certificate(clf, X, y, exact=True)


def test_the_oracle_by_hand(rng):
    """Two points: their distance in the dual norm, halved. And margins grow with the norm."""
    points, labels = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0, 1])
    assert best_margin_in_norm(points, labels, 1) == pytest.approx(2.0)
    assert best_margin_in_norm(points, labels, 2) == pytest.approx(2.5)
    X, y = separable(rng, n=30)
    margins = [best_margin_in_norm(X, y, p) for p in (1.0, 1.5, 2.0)]
    assert margins == sorted(margins)
    assert margins[2] == pytest.approx(best_margin(X, y), rel=1e-5)


@pairwise(k=[2, 3], C=[np.inf, 1.0], cls=[AcceleratedPerceptron, OptimisticPerceptron])
def test_p_norm_margins_agree_with_coordinate_ascent(k, C, cls, rng):
    X, y = separable(rng, n=30, k=k)
    params = {"p": 1.5, "C": C, "tol": 1e-2}
    free = cls(**params).fit(X, y)
    penalised = DualLpPerceptron(intercept_scaling=30.0, random_state=0, **params).fit(
        X, y
    )
    assert check_certificate(free, X, y)
    assert free.margin_bound_ >= penalised.margin_
    assert free.margin_ <= 1.01 * penalised.margin_bound_
    bare = cls(fit_intercept=False, **params).fit(X, y)
    same = DualLpPerceptron(fit_intercept=False, random_state=0, **params).fit(X, y)
    assert max(bare.margin_, same.margin_) <= min(
        bare.margin_bound_, same.margin_bound_
    )


@pytest.mark.parametrize("p", [1.5, 1.1, 1.01])
@pytest.mark.parametrize("C", [np.inf, 1e-3])
def test_sparse_examples_are_measured_about_their_mean_in_the_dual_norm(C, p, rng):
    """As dense ones are, but for rounding: in a column in which no entry is zero as well."""
    X, y = separable(rng, n=40, d=30)
    X *= rng.random(X.shape) < 0.3
    X[:, 0] += 20.0
    X[3], X[4] = 0.0, rng.standard_normal(30)
    dense, sparse = (
        fit(AcceleratedPerceptron(p=p, C=C, max_iter=60), form(X), y)
        for form in (np.asarray, sp.csr_array)
    )
    ours, theirs = dense.certificate_, sparse.certificate_
    q = p / (p - 1.0)
    longest = np.linalg.norm(X - X.mean(axis=0), ord=q, axis=1).max()
    slack = 1.0 / np.sqrt(2.0 * C)
    np.testing.assert_allclose(ours.radius, np.hypot(longest, slack), rtol=1e-6)
    np.testing.assert_allclose(theirs.radius, ours.radius, rtol=1e-3)
    np.testing.assert_allclose(theirs.margin_bound, ours.margin_bound, rtol=1e-3)
    for estimator in (dense, sparse):
        assert check_certificate(estimator, X, y, exact=True)


# Protocol 1, Algorithms 1 and 2: the learner guesses, the data player knows.


def test_proposition_1_the_smooth_perceptron_is_the_game(rng):
    """Algorithm 1 as listed (theta_0 = 2/3, mu_0 = 4; A' for its A before q), against the game."""
    data, A, _ = known(*lopsided(rng))
    v, mu = A.mean(axis=0), 4.0
    q = softmax(-A @ v / mu)
    for t, state in enumerate(rounds(PAPER, data, 60)):
        np.testing.assert_allclose(state.W.image / state.weight, v, atol=1e-12)
        np.testing.assert_allclose(state.total.coef / state.weight, q, atol=1e-12)
        th = 2.0 / (t + 3)
        v = (1 - th) * (v + th * A.T @ q) + th**2 * A.T @ softmax(-A @ v / mu)
        mu = (1 - th) * mu
        q = (1 - th) * q + th * softmax(-A @ v / mu)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_proposition_2_ji_with_the_papers_steps_is_the_game(balanced, k, rng):
    """v_T is a quarter of the weighted sum; steps twice as long are ours, and half of the sum."""
    X, y = lopsided(rng, k=k)
    data = LinearAdapter(X, make_rows(y, k, balanced=balanced))
    for play, share in ((PAPER, 4.0), (OURS, 2.0)):
        ji = MomentumMarginClassifier(
            step=lambda t, share=share: 2 * (t + 1) / (t + 2) / share
        )
        for ours, theirs in zip(
            rounds(play, data, 60), rounds(ji, data, 60), strict=True
        ):
            np.testing.assert_allclose(
                flat(theirs.w), flat(ours.W) / share, rtol=1e-8, atol=1e-10
            )


def regrets(play, data, A, n_rounds):
    """After each round: both regrets in the game g of eq. (6), and the squared moves of p."""
    start = play._algorithm().start(data)
    W, p, values, own, moved = start.W, start.last.coef, 0.0, 0.0, 0.0
    for state in rounds(play, data, n_rounds):
        t, S, before, p = state.t, state.weight, p, state.last.coef
        w, W = (state.W.image - W.image) / t, state.W
        moved += np.abs(p - before).sum() ** 2
        values += t * (p @ A @ w)
        own += t * 0.5 * (w @ w)
        learner = 0.5 * np.sum(state.total.image**2) / S - (values - own)
        adversary = values - (A @ W.image).min()
        yield state, learner, adversary, moved


@each_hard
@pytest.mark.parametrize("play", [PAPER, OURS], ids=["the paper's", "ours"])
def test_theorems_2_and_3_and_4(play, kind, rng):
    """Both regrets; the duality gap; rounds to a separator; the normalized margin."""
    data, A, gamma = known(*kind(rng))
    mu, log_n, last, share, short = (
        play._algorithm().smoothing,
        np.log(len(A)),
        0,
        0.0,
        0.0,
    )
    enough = 2 * np.sqrt(mu * log_n) / gamma
    for state, learner, adversary, moved in regrets(play, data, A, int(enough) + 20):
        t, S, length = state.t, state.weight, data.norm(state.W)
        assert learner <= 2 * moved + 1e-9  # Theorem 3
        assert adversary <= mu * log_n - 0.5 * mu * moved + 1e-9
        share = max(share, learner / (2 * moved))
        margin = state.measured.min_margin
        value = margin / S - 0.5 * (length / S) ** 2
        assert 0.5 * gamma**2 - value <= (learner + adversary) / S + 1e-9  # Theorem 2
        assert length >= S * gamma * (1 - 1e-6)  # Lemma 5
        short = max(short, (gamma - margin / length) * gamma * t * (t + 1))
        if margin <= 0:
            last = t
    assert last > 10
    within(share, 1.0, "the learner's regret, as a share of its bound")
    within(last, enough, "the last round without a separator")
    within(
        short,
        2 * mu * log_n,
        "Theorem 4: shortfall of the margin times gamma t (t + 1)",
    )


# Algorithm 3: the data player guesses.

NESTEROV = AcceleratedPerceptron(play="nesterov")


def test_algorithm_3_is_nesterovs_method(rng):
    """Its lines, with the gradients of the exponential loss R; v_0 / 0 is read as 0."""
    data, A, _ = known(*lopsided(rng))
    v, s = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    for t, state in enumerate(rounds(NESTEROV, data, 60), start=1):
        u = s + v / (2 * (t - 1)) if t > 1 else s
        losses = np.exp(-A @ u)
        gradient, R = -A.T @ losses / len(A), losses.mean()
        v = v - t * gradient / R
        s = s + v / (2 * (t + 1))
        np.testing.assert_allclose(state.measured.vector.image / 4, u, atol=1e-10)
        np.testing.assert_allclose(state.W.image / 4, s, atol=1e-10)
        np.testing.assert_allclose(state.total.image, v, atol=1e-10)


@each_hard
def test_theorem_6(kind, rng):
    """The margin of s_T, every round; of its constant 8 log n + 2, the 2 could be 1/4."""
    data, A, gamma = known(*kind(rng))
    constant, short = 8 * np.log(len(A)) + 0.25, 0.0
    for state in rounds(NESTEROV, data, int(2 * np.sqrt(constant) / gamma)):
        margin = (A @ state.W.image).min() / data.norm(state.W)
        short = max(short, (gamma - margin) * gamma * state.t * (state.t + 1))
    assert margin > 0.5 * gamma
    within(short, constant, "shortfall of the margin times gamma t (t + 1)")


@pytest.mark.parametrize("p", [2.0, 1.5])  # the paper's q
def test_algorithm_4_is_the_optimistic_perceptron(p, rng):
    """Both players as they are defined, with eta_w = sqrt(1 / (2 (q - 1) log n)) = 1 / eta_p."""
    X, y = lopsided(rng, n=24)
    data = game(X, y, p)
    A = written_out(data, X, y)
    eta = np.sqrt(1.0 / (2.0 * (p - 1.0) * np.log(len(A))))
    moves, W = [np.full(len(A), 1.0 / len(A))], 0.0
    for state in rounds(OptimisticPerceptron(p=p), data, 60):
        guess = A.T @ (np.sum(moves[1:], axis=0) + moves[-1])
        # the least of -eta guess'w + |w|_p^2 / (2 (p - 1))
        W = W + theta(eta * (p - 1.0) * guess, p / (p - 1.0))
        moves.append(softmax(-A @ W / eta))
        np.testing.assert_allclose(state.last.coef, moves[-1], atol=1e-10)
        predictor = theta(state.W.image, p / (p - 1.0)) * eta * (p - 1.0)
        np.testing.assert_allclose(predictor, W, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", [lopsided, chain])
@pytest.mark.parametrize("p", [2.0, 1.5, 1.2])
def test_theorem_7(p, kind, rng):
    """A separator after sqrt(2 log n / (p - 1)) / gamma rounds; p = 2: less than Hanashiro's."""
    X, y = small(kind, rng)
    data, last = game(X, y, p), 0
    enough = np.sqrt(2 * np.log(len(X)) / (p - 1)) / best_in_norm(data, X, y, p)
    for state in rounds(OptimisticPerceptron(p=p), data, int(enough) + 20):
        if state.measured.min_margin <= 0:
            last = state.t
    assert last > 2
    within(last, enough, "the last round without a separator")


# Algorithm 5: both guess.

MIRROR_PROX = AcceleratedPerceptron(play="mirror_prox")


def ball(w):
    return w / max(1.0, np.linalg.norm(w))


def test_theorem_8_mirror_prox_is_the_game(rng):
    """Prox mappings of the ball and of the simplex, from the listing and its constants."""
    data, A, _ = known(*lopsided(rng))
    root = np.sqrt(np.log(len(A)))
    gamma = 1.0 / (root + np.sqrt(0.5))
    a_w, a_p = root / (root + np.sqrt(0.5)), 1.0 / (root * (root + np.sqrt(0.5)))
    w_hat, p_hat = np.zeros(A.shape[1]), np.full(len(A), 1.0 / len(A))
    sums = np.zeros(A.shape[1]), np.zeros(len(A))
    for state in rounds(MIRROR_PROX, data, 60):
        w = ball(w_hat + gamma / a_w * A.T @ p_hat)  # u_t = Prox of F(v_t) from v_t
        p = softmax(np.log(p_hat) - gamma / a_p * A @ w_hat)
        w_hat = ball(w_hat + gamma / a_w * A.T @ p)  # v_{t+1} = Prox of F(u_t) from v_t
        p_hat = softmax(np.log(p_hat) - gamma / a_p * A @ w)
        sums = sums[0] + w, sums[1] + p
        np.testing.assert_allclose(state.W.image, sums[0], atol=1e-10)
        np.testing.assert_allclose(state.total.coef, sums[1], atol=1e-10)
        np.testing.assert_allclose(state.w_hat.image, w_hat, atol=1e-10)
        np.testing.assert_allclose(state.last.coef, p_hat, atol=1e-10)


@each_hard
def test_proposition_3_and_theorems_5_and_9(kind, rng):
    """Regrets sum to 3 sqrt(log n) / 2; a separator after 3 sqrt(log n) / (2 gamma) rounds."""
    data, A, gamma = known(*kind(rng))
    bound, last, most = 1.5 * np.sqrt(np.log(len(A))), 0, 0.0
    for state in rounds(MIRROR_PROX, data, int(bound / gamma) + 20):
        margin = state.measured.min_margin
        # both best responses in hindsight
        most = max(most, data.norm(state.total) - margin)
        if margin < 0:
            last = state.t
    assert last > 10
    within(most, bound, "regrets of both players")
    within(last, bound / gamma, "the last round without a separator")


@pytest.mark.parametrize("kind", [overlapping, contradicted])
def test_theorem_9_where_nothing_separates(kind, rng):
    """The average of the data's weights is an epsilon-certificate after 3 sqrt(log n) / (2 eps)."""
    X, y = overlapping(rng, n=60) if kind is overlapping else contradicted()
    data = game(X, y)
    most = max(data.norm(state.total) for state in rounds(MIRROR_PROX, data, 300))
    within(most, 1.5 * np.sqrt(np.log(len(X))), "t times the norm of the average")


@pytest.mark.parametrize("play", ["nesterov", "mirror_prox"])
@pytest.mark.parametrize("k", [2, 3])
def test_plays_are_certified_from_blocks_and_with_kernels(play, k, rng):
    """All that goes by passes; a round of mirror-prox has two best responses."""
    X, y = lopsided(rng, k=k, gamma=0.5)
    params = {"play": play, "tol": 0.1, "max_iter": 2000}
    whole = certified(AcceleratedPerceptron(**params), X, y)
    halves = [(X[:20], y[:20]), (X[20:], y[20:])]
    assert AcceleratedPerceptron(**params).fit_blocks(halves).n_iter_ == whole.n_iter_
    confirmed(fit(AcceleratedPerceptron(kernel="rbf", C=1.0, **params), X, y), X, y)
    with pytest.raises(ValueError, match='take play="optimistic"'):
        AcceleratedPerceptron(play=play, p=1.5).fit(X, y)
