"""Ji's theorems, round by round; those of Nacson, Nesterov, and Wang, Min and Wu beside them."""

from functools import partial

import numpy as np
import pytest
from helpers.estimators import BY_PASSES, fit, overlapping, separable
from helpers.games import flat, game, known, margin_of, rounds
from helpers.hard import chain, contradicted, corner, each_hard, lopsided, within
from helpers.oracle import best_margin
from helpers.pairwise import pairwise
from scipy.optimize import minimize, nnls
from scipy.special import expit, logsumexp
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from marginsvm import (
    GrowthSchedule,
    MomentumMarginClassifier,
    NesterovSchedule,
    PowerSchedule,
    check_certificate,
)
from marginsvm.fit import Algorithm
from marginsvm.papers.momentum import LOSSES
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows

PLAIN = {"momentum": None, "gradient": "plain", "step": 0.5}
PSI = {"loss": "logistic", "gradient": "theory"}
RECURSIONS = {  # parameters; beta_t
    "Ji's": ({}, lambda t: t / (t + 1)),
    "of the logistic psi": (PSI, lambda t: t / (t + 1)),
    "of the textbooks": (
        {"momentum": NesterovSchedule(delay=3)},
        lambda t: t / (t + 3),
    ),
    "plain gradients": ({**PLAIN, "loss": "logistic"}, lambda t: 0.0),
    "plain exponential gradients": (PLAIN, lambda t: 0.0),
    "progressive rescaling": ({"momentum": None, "norm": "progressive"}, lambda t: 0.0),
}


@pytest.mark.parametrize(("params", "beta"), RECURSIONS.values(), ids=RECURSIONS)
def test_rounds_are_the_papers_recursions(params, beta, rng):
    """g and w spelled out on explicit rows, without an intercept."""
    data, A, _ = known(*separable(rng, n=40))
    w, g = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    logistic = params.get("loss") == "logistic"
    for t, state in enumerate(rounds(MomentumMarginClassifier(**params), data, 50)):
        losses = np.logaddexp(0.0, -A @ w) if logistic else np.exp(-A @ w)
        slopes = expit(-A @ w) if logistic else losses
        scale = {
            "normalized": slopes.sum(),
            "plain": len(A),
            "theory": len(A) * -np.expm1(-losses.sum()),
        }
        p = A.T @ slopes / scale[params.get("gradient", "normalized")]
        g = beta(t) * (g + p)
        w = w + params.get("step", 1.0) * (g + p)
        w = 1.2 ** (t // 5) / np.linalg.norm(w) * w if "norm" in params else w
        np.testing.assert_allclose(state.w.image, w, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.g.image, g, rtol=1e-12, atol=1e-12)


SCHEDULES = {
    "logistic": {"loss": "logistic"},
    "names": {"step": "inv_sqrt", "momentum": None},
    "numbers": {"step": 0.5, "momentum": 0.3},
    "functions": {"step": lambda t: 1 / (t + 1), "momentum": lambda t: 0.5},
    "objects": {
        "step": PowerSchedule(scale=2.0, power=0.25),
        "momentum": NesterovSchedule(delay=3),
    },
}


def test_the_dual_points_of_momentum_bound_the_margin(rng):
    """The weights of g_t sum to t / 2, so that 2 |g_t| / t is a bound."""
    X, y = separable(rng, n=40)
    clf = MomentumMarginClassifier(
        max_iter=31, tol=0.0, fit_intercept=False, warm_start=True
    )
    progress = fit(clf, X, y)._progress
    length = np.linalg.norm(progress.state.g.image) * progress.radius
    assert clf.margin_bound_ <= 2 * length / 30 * (1 + 1e-9)


BY_STEPS = [cls for cls in BY_PASSES if isinstance(cls()._algorithm(), Algorithm)]


@pytest.mark.parametrize("cls", BY_STEPS, ids=lambda cls: cls.__name__)
def test_bounds_are_of_their_own_vectors(cls, rng):
    """The smallest margin of a candidate is that of its predictor, not of the one before."""
    data, _, _ = known(*separable(rng, n=40))
    algorithm = cls()._algorithm()
    for state in rounds(algorithm, data, 12):
        for candidate in algorithm.candidates(data, state):
            if candidate.min_margin is not None:
                low = data.margins(candidate.vector).min()
                np.testing.assert_allclose(candidate.min_margin, low, atol=1e-12)


@pairwise(params=SCHEDULES, k=[2, 3], fit_intercept=[True, False])
def test_bounds_hold_for_every_loss_and_schedule(params, k, fit_intercept, rng):
    X, y = separable(rng, k=k)
    best = best_margin(X, y, fit_intercept=fit_intercept)
    rounds = {} if "loss" in params else {"max_iter": 200}
    clf = fit(
        MomentumMarginClassifier(fit_intercept=fit_intercept, **rounds, **params), X, y
    )
    assert clf.status_ == "certified" or "loss" not in params
    assert clf.margin_ <= best * (1 + 1e-5)
    assert best <= clf.margin_bound_ * (1 + 1e-5)


KINDS = {
    "lopsided": lopsided,
    "lopsided, 4 classes": partial(lopsided, k=4),
    "thin": chain,  # where the first part is tight
    "corner": lambda rng: corner(),  # the second
    "overlapping": partial(overlapping, n=80),
    "contradicted": lambda rng: contradicted(),
}


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_theorem_3_1_and_5_1(kind, balanced, rng):
    """The constant that Theorem 5.1 prints for k classes is half of what its proof gives."""
    data, _, best = known(*KINDS[kind](rng), balanced=balanced)
    n, short, above, best = data.n_rows, 0.0, 0.0, best * (best > 1e-6)
    assert bool(best) == (
        kind != "overlapping" and (balanced or kind != "contradicted")
    )
    for state in rounds(MomentumMarginClassifier(), data, 600):
        t = state.t - 1  # state.measured is w_t
        if t >= 1:
            margin = margin_of(data, state.measured.vector)
            bound = 4 * (1 + np.log(n)) * (1 + 2 * np.log(t + 1)) / (t + 1) ** 2
            short = max(short, (best - margin) * best / bound)
            assert margin <= best * (1 + 1e-5)
            upper = 2 * data.norm(state.g) / t
            np.testing.assert_allclose(state.g.mass, t / 2)
            assert best**2 <= upper**2 * (1 + 1e-5)
            far = upper**2 - best**2 * (1 + 1e-5)
            above = max(above, far / (8 * np.log(n) / (t + 1) ** 2))
    within(short, 0.5 if "4" in kind else 1.0, "part 1, share of the bound")
    within(above, 1.0, "part 2, share of the bound")


@each_hard
def test_a_quarter_of_the_best_margin(kind, rng):
    """Section 1.1: a margin of at least a quarter of the best after 4 sqrt(ln n) / best steps."""
    data, _, best = known(*kind(rng))
    last, enough = 0, 4 * np.sqrt(np.log(data.n_rows)) / best
    for state in rounds(MomentumMarginClassifier(), data, int(2 * enough)):
        if state.t > 1 and margin_of(data, state.measured.vector) < best / 4:
            last = state.t - 1
    assert last > 10
    within(last, enough, "the last step with less than a quarter")


@pytest.mark.parametrize("gradient", ["plain", "normalized"])
@pytest.mark.parametrize("kind", [overlapping, contradicted])
def test_section_3_1_where_nothing_separates(kind, gradient, rng):
    """The risk R(w_t) does not increase, and phi(q_t) and |grad R(w_t)| tend to 0."""
    X, y = (
        overlapping(rng, n=40)
        if kind is overlapping
        else contradicted(short=1.0, side=0.0)
    )
    data, A, _ = known(X, y)
    before, clf = 1.0, MomentumMarginClassifier(momentum=None, gradient=gradient)
    first = 0.5 * np.sum(A.mean(axis=0) ** 2)
    for state in rounds(clf, data, 1500):
        losses = np.exp(-A @ state.w.image)
        assert losses.mean() <= before * (1 + 1e-12)
        before = losses.mean()
    q = data.respond(state.w).weights.q
    phi = 0.5 * np.sum((A.T @ q) ** 2)
    print(f"phi falls from {first:.1e} to {phi:.1e}, R to {before:.4f}")
    assert phi < 1e-20 * first
    length = np.linalg.norm(A.T @ losses) / len(A)
    np.testing.assert_allclose(np.sqrt(2 * phi) * before, length, atol=1e-12)


def test_section_3_2_the_rate_of_plain_mirror_descent():
    """phi(q_t) - phi(q) <= D(q, q_0) / t with steps 1, where all optimal weight is in a corner."""
    data, _, best = known(*corner())
    far = 0.0
    for state in rounds(MomentumMarginClassifier(momentum=None), data, 2000):
        if state.t > 1:  # p of the last round is q_{t-1}'s pseudoexample
            q = data.respond(state.measured.vector).vector
            far = max(far, (state.t - 1) * 0.5 * (data.norm(q) ** 2 - best**2))
    within(
        far, np.log(data.n_rows), "t times what the dual objective is above its least"
    )


def test_section_1_gradient_descent_takes_exponentially_many_rounds(rng):
    """The margin of plain gradient descent falls short by about c / ln t."""
    data, _, best = known(*lopsided(rng, n=20, gamma=0.5))
    clf = MomentumMarginClassifier(momentum=None, gradient="plain", step=1.0)
    short = {}
    for state in rounds(clf, data, 6401):
        if (t := state.t - 1) in (400, 6400):
            margin = state.measured.min_margin / data.norm(state.measured.vector)
            short[t] = (1 - margin / best) * np.log(t)
    print(f"shortfall times ln t: {short}")
    assert 0.6 < short[6400] / short[400] < 1.0  # of 1 / sqrt(t), it would be 0.37


def lambdas(kind, rng, n):
    """lambda_0 = 1 and others in (0, 1]; those for which no momentum is above 1."""
    lam = [1.0]
    for t in range(1, n):
        least = lam[-1] / (1.0 + lam[-1])
        lam.append(
            {"ji": 2 / (t + 2), "constant": max(1.001 * least, 0.3)}.get(
                kind, rng.uniform(least, 1.0)
            )
        )
    return np.array(lam)


def momentum_of(lam):
    """beta_t, by eq. (C.5)."""
    return lambda t: lam[t - 1] * (1 - lam[t]) / lam[t] if t else 0.0


@pairwise(
    kind=["ji", "constant", "random"],
    loss=["exponential", "logistic"],
    k=[2, 3],
    balanced=[True, False],
)
def test_lemma_3_4_for_other_steps(kind, loss, k, balanced, rng):
    """Lemmas 3.4 and C.3, eq. (3.3) and (C.6): the dual's updates and Algorithm 1's momentum."""
    X, y = lopsided(rng, n=24, k=k)
    data, n = LinearAdapter(X, make_rows(y, k, balanced=balanced)), 60
    lam, th = lambdas(kind, rng, n + 1), rng.uniform(0.05, 1.0, n)
    clf = MomentumMarginClassifier(
        loss=loss, gradient="theory", step=lambda t: th[t], momentum=momentum_of(lam)
    )
    rho = 1.0 if loss == "exponential" else data.n_rows
    q = data.respond(data.zeros(), response=LOSSES[loss]).vector
    mu, w = q, data.zeros()
    for t, state in enumerate(rounds(clf, data, n)):
        nu = (1 - lam[t]) * mu + lam[t] * q
        w = w + (th[t] / (rho * lam[t])) * nu
        np.testing.assert_allclose(flat(state.w), flat(w), rtol=1e-8, atol=1e-9)
        if t:  # (C.6), by (C.5)
            found = rho * lam[t] / (1 - lam[t]) * state.g
            np.testing.assert_allclose(flat(found), flat(mu), rtol=1e-6, atol=1e-8)
        q = data.respond(w, response=LOSSES[loss]).vector
        mu = (1 - lam[t]) * mu + lam[t] * q


def psi(xi, loss):
    """Ji, eq. (2.1): ell^{-1} of the sum of the losses."""
    if loss == "exponential":
        return logsumexp(xi)
    return np.log(np.expm1(np.sum(np.logaddexp(0.0, xi))))


@pytest.mark.parametrize(("loss", "rho"), [("exponential", 1), ("logistic", 6)])
def test_section_5_1_properties_of_psi(loss, rho, rng):
    """(i) psi is rho-smooth in the largest entry, and (ii) its gradient sums to 1 at least."""
    n, most = 6, 0.0
    rows, step = make_rows(np.arange(n) % 2, 2, balanced=False), 1e-6 * np.eye(n)
    for scale in (0.1, 5.0, 1.0):
        for xi, move in rng.standard_normal((200, 2, n)) * scale:
            q = LOSSES[loss].respond(rows, -xi, 1.0).q
            assert q.sum() >= 1 - 1e-12
            rise = psi(xi + move, loss) - psi(xi, loss) - q @ move
            most = max(most, rise / (0.5 * np.abs(move).max() ** 2))
    numerical = [(psi(xi + e, loss) - psi(xi - e, loss)) / 2e-6 for e in step]
    np.testing.assert_allclose(q, numerical, rtol=1e-7)
    within(most, rho, "curvature")


@pytest.mark.parametrize("kind", ["ji", "constant", "random"])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_lemmas_of_ji(loss, kind, rng):
    """Lemmas C.7 and C.11, of which 3.5 and 3.6 are the case rho = 1, and Lemma C.12."""
    data, _, best = known(*lopsided(rng, gamma=0.3))
    n, lam = data.n_rows, lambdas(kind, rng, 202)
    rho = 1.0 if loss == "exponential" else n
    clf = MomentumMarginClassifier(
        loss=loss, gradient="theory", momentum=momentum_of(lam)
    )
    start = -psi(np.zeros(n), loss)
    first = data.respond(data.zeros(), response=LOSSES[loss]).vector
    from_mu = from_nu = travelled = least = of_mus = 0.0  # the sums over j < t
    sum_of_mus = data.zeros()
    for after in rounds(clf, data, 200):
        t, w = after.t - 1, after.measured.vector  # w_t; after.w is w_{t+1}
        now, last = lam[t], lam[t - 1]
        if t >= 1:
            mu = rho * now / (1 - now) * after.g  # Z' mu_t, by eq. (C.5) and (C.6)
            rise, length = -psi(-data.margins(w), loss), data.norm(mu)
            latest = 0.5 * (length / last) ** 2 / rho
            assert rise >= start + latest + from_mu + from_nu - 1e-9
            assert best * least <= data.norm(w) * (1 + 1e-9)
            assert data.norm(w) <= travelled * (1 + 1e-9)
            sum_of_mus = sum_of_mus + mu / (rho * last)
            of_mus += 0.5 * length**2 / (rho * last)
            response = data.respond(w, response=LOSSES[loss]).vector
            np.testing.assert_allclose(
                flat(w), flat((first - response) / rho + sum_of_mus), atol=1e-8
            )
            if loss == "exponential" and kind == "ji":
                assert latest + from_mu >= of_mus - 2 * np.log(n) * np.log(t + 1)
                floor = best / 2 - 4 * np.log(n) / (best * (t + 1) ** 2)
                assert margin_of(data, w) >= floor
            from_mu += 0.5 * (1 / last**2 - (1 - now) / now**2) * length**2 / rho
        step = data.norm(after.w - w)  # |Z' nu_t| / (rho lambda_t), by eq. (3.3)
        from_nu += 0.5 * rho * now * step**2
        travelled += step
        least += 1 / (rho * now)


def test_lemma_c_2_and_section_5_1_for_the_logistic_loss(rng):
    """phi(mu_t) - phi(q) <= 4 rho D(q, q_0) / (t + 1)^2, rho = n, D by psi's conjugate."""
    data, A, best = known(*lopsided(rng, n=8, gamma=0.5))
    n, level = len(A), psi(np.zeros(8), "logistic")
    q = nnls(np.vstack([A.T, np.ones(n)]), np.r_[np.zeros(A.shape[1]), 1.0])[0]
    q = q / q.sum()
    least = minimize(
        lambda xi: psi(xi, "logistic") - q @ xi, np.zeros(n), method="BFGS"
    ).fun
    distance, short, above = level - least, 0.0, 0.0
    for state in rounds(
        MomentumMarginClassifier(loss="logistic", gradient="theory"), data, 600
    ):
        if (t := state.t - 1) >= 1:
            value = 0.5 * (n * 2 * data.norm(state.g) / t) ** 2
            above = max(above, (value - 0.5 * best**2) * (t + 1) ** 2)
            margin = margin_of(data, state.measured.vector)
            logs = 2 * distance * np.log(t + 1) + level
            rate = (4 + 4 * n * logs / best) / (t + 1) ** 2
            short = max(short, (best - margin) / rate)
    assert rate < 0.5 * best  # the bound has said something
    within(above, 4 * n * distance, "excess of the dual objective times (t + 1)^2")
    within(short, 1.0, "shortfall of the margin, as a share of the bound")


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("kind", [lopsided, corner])
def test_nesterovs_margin_converges_without_a_logarithm(kind, balanced, rng):
    """His weights, a_t^2 = a_1 + ... + a_t, and momentum a_t / a_{t+1}: the step may stay 1."""
    X, y = lopsided(rng) if kind is lopsided else corner()
    data, _, gamma = known(X, y, balanced=balanced)
    a, used = [0.0], 0.0
    for _ in range(402):
        a.append(0.5 + np.sqrt(0.25 + a[-1] ** 2))
    estimator = MomentumMarginClassifier(momentum=lambda t: a[t] / a[t + 1])
    for state in rounds(estimator, data, 401):
        t = state.t - 1  # state.measured is w_t
        if t >= 1:
            regret = 2.0 * np.log(data.n_rows) / a[t] ** 2
            margin = max(state.measured.min_margin, 0.0) / data.norm(
                state.measured.vector
            )
            upper = data.norm(state.g) / state.g.mass
            used = max(
                used, (gamma**2 - margin**2) / regret, (upper**2 - gamma**2) / regret
            )
    within(used, 1.0, "share of the bounds, for squares of margins")
    assert regret < 0.5 * gamma**2  # the bound said something


def shortfalls(estimator, data, gamma, n):
    measured = (state.measured for state in rounds(estimator, data, n) if state.t > 1)
    return np.array(
        [1.0 - m.min_margin / data.norm(m.vector) / gamma for m in measured]
    )


@pytest.mark.parametrize("gamma", [0.1, 0.3])
def test_progressive_rescaling_is_exponentially_fast_where_support_vectors_span(gamma):
    """The shortfall is divided by the growth of the norm; normalized descent's is about c / t,
    and c / sqrt(t) with steps of 1 / sqrt(t).

    One more example, of no weight and in a direction of its own, and the growth gets stuck.
    """
    side = np.sqrt(1.0 - gamma**2)
    X = np.array([[gamma, side, 0.0], [-gamma, side / 2.0, 0.0], [0.9, 0.0, 0.4]])
    spanned, data = (game(X[:n], np.array([1, 0, 1])[:n]) for n in (2, 3))
    growth = MomentumMarginClassifier(
        momentum=None, norm=GrowthSchedule(growth=2.0, period=5)
    )
    short, t = shortfalls(growth, spanned, gamma, 151), np.arange(50, 150)
    assert np.polyfit(t, np.log(short[t]), 1)[0] < -0.9 * np.log(2.0) / 5.0
    for step, least, most in (("constant", 0.48, 0.52), ("inv_sqrt", 0.67, 0.73)):
        plain = MomentumMarginClassifier(momentum=None, step=step)
        far = shortfalls(plain, spanned, gamma, 151)
        assert least < far[140] / far[70] < most
    stuck = shortfalls(growth, data, gamma, 300)
    assert stuck[-1] > 100 * short[-1]
    np.testing.assert_allclose(stuck[200:], stuck[-1], rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", sorted(set(PAIRWISE_KERNEL_FUNCTIONS) - {"sigmoid"}))
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-7), (np.float32, 1e-5)])
def test_every_kernel_of_scikit_learn(kernel, dtype, rtol):
    X, y = load_digits(return_X_y=True)
    X, y = X[:200].astype(dtype) / 16, y[:200] % 3
    clf = fit(MomentumMarginClassifier(kernel=kernel, max_iter=300), X, y)
    assert clf.score(X, y) > 0.6
    assert check_certificate(clf, X, y, rtol=rtol)
