"""Ji's theorems, round by round."""

import numpy as np
import pytest
from helpers.estimators import fit, overlapping, separable
from helpers.games import game, rounds
from helpers.hard import chain, contradicted, corner, lopsided, within
from helpers.margins import margin_of
from helpers.oracle import best_margin
from helpers.vectors import flat
from scipy.special import expit

from marginsvm import MomentumMarginClassifier, NesterovSchedule, PowerSchedule
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.responses import softmax
from marginsvm.problem.rows import make_rows


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 4])
def test_theorem_3_1_and_5_1(balanced, k, rng):
    X, y = lopsided(rng, k=k)
    data = LinearAdapter(X, make_rows(y, k, balanced=balanced))
    best = best_margin(X, y, fit_intercept=balanced) / data.radius / data.rows.unit
    check_theorem_3_1(data, best, 600)


def test_theorem_3_1_where_it_is_tight(rng):
    """Its first part where the margins are thin, its second where the best weights are a corner."""
    for X, y in (chain(rng), corner()):
        data = game(X, y)
        check_theorem_3_1(data, best_margin(X, y, fit_intercept=False) / data.radius, 600)


def check_theorem_3_1(data, best, n_rounds):
    n, short, above = data.n_rows, 0.0, 0.0
    for state in rounds(MomentumMarginClassifier(), data, n_rounds):
        t = state.t - 1  # state.measured is w_t
        if t >= 1:
            w = state.measured.vector
            margin = margin_of(data, w)
            bound = 4 * (1 + np.log(n)) * (1 + 2 * np.log(t + 1)) / (best * (t + 1) ** 2)
            short = max(short, (best - margin) / bound)
            assert margin <= best * (1 + 1e-5)
            upper = 2 * data.norm(state.g) / t
            np.testing.assert_allclose(state.g.mass, t / 2)
            assert best**2 <= upper**2 * (1 + 1e-5)
            far = upper**2 - best**2 * (1 + 1e-5)
            above = max(above, far / (8 * np.log(n) / (t + 1) ** 2))
    within(short, 1.0, "part 1, share of the bound")
    within(above, 1.0, "part 2, share of the bound")


@pytest.mark.parametrize("kind", ["balanced", "unbalanced", "contradicted"])
def test_upper_bound_of_theorem_3_1_on_overlapping_data(kind, rng):
    X, y = contradicted() if kind == "contradicted" else overlapping(rng, n=80)
    data = LinearAdapter(X, make_rows(y, 2, balanced=kind == "balanced"))
    best, most = best_margin(X, y, fit_intercept=kind == "balanced") / data.radius, 0.0
    assert best < 1e-6
    for state in rounds(MomentumMarginClassifier(), data, 300):
        if (t := state.t - 1) >= 1:
            most = max(most, 4 * data.norm(state.g) ** 2 * (t + 1) ** 2 / t**2)
    within(most, 8 * np.log(data.n_rows), "the squared upper bound times (t + 1)^2")


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_primal_iterates_are_the_dual_forms(balanced, k, rng):
    """Section 3.2: nu, q and mu with lambda_t = 2 / (t + 2) give the same w (eq. 3.3)."""
    X, y = separable(rng, n=30, k=k)
    data = LinearAdapter(X, make_rows(y, k, balanced=balanced))
    q = data.respond(data.zeros()).vector.coef
    mu, dual_w = q, data.zeros()
    for state in rounds(MomentumMarginClassifier(), data, 60):
        lam = 2.0 / (state.t - 1 + 2.0)
        nu = (1 - lam) * mu + lam * q
        dual_w = dual_w + data.combine(nu) / lam
        q = softmax(data.rows, data.margins(dual_w)).q
        mu = (1 - lam) * mu + lam * q
        np.testing.assert_allclose(flat(state.w), flat(dual_w), rtol=1e-9, atol=1e-9)


def test_momentum_is_the_papers_recursion(rng):
    """g and w spelled out on explicit rows, without an intercept."""
    X, y = separable(rng, n=40)
    sign = np.where(y == 1, 1.0, -1.0)
    A = sign[:, None] * X / np.linalg.norm(X, axis=1).max()
    w, g = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    data = LinearAdapter(X, make_rows(y, 2, balanced=False))
    for state in rounds(MomentumMarginClassifier(), data, 50):
        t = state.t - 1
        q = np.exp(-A @ w)
        p = A.T @ (q / q.sum())
        g = t / (t + 1) * (g + p)
        w = w + g + p
        np.testing.assert_allclose(state.w.image, w, rtol=1e-9)
        np.testing.assert_allclose(state.g.image, g, rtol=1e-9)


def test_logistic_gradient_is_psis(rng):
    """Numerical derivative of psi(xi) = ell^{-1}(sum ell(xi)), Ji eq. (2.1)."""
    from marginsvm.problem.responses import logistic

    rows = make_rows(np.arange(6) % 2, 2, balanced=False)
    xi = rng.standard_normal(6)

    def psi(xi):
        return np.log(np.expm1(np.sum(np.logaddexp(0, xi))))

    step = 1e-6
    derivative = [(psi(xi + step * e) - psi(xi - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(logistic(rows, -xi, 1.0).q, derivative, rtol=1e-7)


def test_the_theorys_step_is_psis_gradient_over_n(rng):
    from marginsvm.problem.responses import logistic

    X, y = separable(rng, n=20)
    data = LinearAdapter(X, make_rows(y, 2, balanced=False))
    q = logistic(data.rows, np.zeros(20)).q
    state = next(rounds(MomentumMarginClassifier(loss="logistic", gradient="theory"), data, 1))
    np.testing.assert_allclose(flat(state.w), flat(data.combine(q) / 20))
    state = next(rounds(MomentumMarginClassifier(loss="logistic"), data, 1))
    np.testing.assert_allclose(flat(state.w), flat(data.combine(q / q.sum())))


def test_lemmas_c_7_and_c_11_for_the_logistic_loss(rng):
    """Ji's Appendix C with rho = n, on past margins of 37, where S is below one ulp of 1."""
    X, y = separable(rng, n=8, d=3)
    sign, n = np.where(y == 1, 1.0, -1.0), 8
    A = sign[:, None] * X / np.linalg.norm(X, axis=1).max()
    best = best_margin(X, y, fit_intercept=False) / np.linalg.norm(X, axis=1).max()

    def psi_and_gradient(w):
        S = np.sum(np.logaddexp(0.0, -A @ w))
        return np.log(np.expm1(S)), expit(-A @ w) / -np.expm1(-S)

    data = LinearAdapter(X, make_rows(y, 2, balanced=False))
    estimator = MomentumMarginClassifier(loss="logistic", gradient="theory", fit_intercept=False)
    psi_0, q = psi_and_gradient(np.zeros(3))
    mu, gained, shortest, longest = q, 0.0, 0.0, 0.0
    for t, state in enumerate(rounds(estimator, data, 2000)):
        if (A @ state.w.image).min() > 200.0:  # soon the test's own psi underflows
            return
        w, lam = state.w.image, 2.0 / (t + 2.0)  # w_{t+1}
        psi, q_next = psi_and_gradient(w)
        along_nu = np.linalg.norm(A.T @ ((1.0 - lam) * mu + lam * q))
        gained += along_nu**2 / (2.0 * n * lam)
        if t >= 1:
            before = 2.0 / (t + 1.0)
            factor = 1.0 / before**2 - (1.0 - lam) / lam**2
            gained += factor * np.linalg.norm(A.T @ mu) ** 2 / (2.0 * n)
        mu, q = (1.0 - lam) * mu + lam * q_next, q_next
        last = np.linalg.norm(A.T @ mu) ** 2 / (2.0 * n * lam**2)
        assert -psi >= -psi_0 + last + gained - 1e-9 * abs(psi)  # Lemma C.7
        shortest += best / (n * lam)
        longest += along_nu / (n * lam)
        assert shortest * (1 - 1e-9) <= np.linalg.norm(w) <= longest * (1 + 1e-9)  # Lemma C.11
    raise AssertionError("the margins have stayed below 200")


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_logistic_loss_maximises_the_margin_too(fit_intercept, k, rng):
    X, y = separable(rng, k=k)
    best = best_margin(X, y, fit_intercept=fit_intercept)
    clf = MomentumMarginClassifier(loss="logistic", fit_intercept=fit_intercept, tol=1e-2)
    clf.fit(X, y)
    assert clf.status_ == "certified"
    assert clf.margin_ <= best * (1 + 1e-5)
    assert best <= clf.margin_bound_ * (1 + 1e-5)


def slope(clf, best):
    history = clf.history_
    gap = best - history["margin"]
    late = (history["n_iter"] > 1000) & (gap > 1e-7 * best)
    return np.polyfit(np.log(history["n_iter"][late]), np.log(gap[late]), 1)[0]


@pytest.mark.slow
def test_rates(rng):
    """Log gap against log t: the momentum's slope is 2, normalized descent's 1, or steeper."""
    X, y = separable(rng, n=60, d=5, margin=0.5)
    best = best_margin(X, y, fit_intercept=False)
    params = {"fit_intercept": False, "tol": 0.0, "max_iter": 5000}
    fast = fit(MomentumMarginClassifier(**params), X, y)
    descent = fit(MomentumMarginClassifier(momentum=None, **params), X, y)
    nacson = fit(MomentumMarginClassifier(momentum=None, step="inv_sqrt", **params), X, y)
    assert slope(fast, best) < -1.6
    assert slope(descent, best) < -0.8
    assert slope(nacson, best) < -0.4
    assert slope(fast, best) < slope(descent, best) < slope(nacson, best)


def test_plain_gradient_descent_is_the_risks(rng):
    X, y = separable(rng, n=40)
    sign = np.where(y == 1, 1.0, -1.0)
    A = sign[:, None] * X / np.linalg.norm(X, axis=1).max()
    w = np.zeros(X.shape[1])
    plain = {"momentum": None, "gradient": "plain"}
    data = LinearAdapter(X, make_rows(y, 2, balanced=False))
    for state in rounds(MomentumMarginClassifier(step=0.5, **plain), data, 30):
        w = w + 0.5 * A.T @ np.exp(-A @ w) / len(A)
        np.testing.assert_allclose(state.w.image, w, rtol=1e-10)
    w = np.zeros(X.shape[1])
    logistic = MomentumMarginClassifier(step=0.5, loss="logistic", **plain)
    for state in rounds(logistic, data, 30):
        w = w + 0.5 * A.T @ (1 / (1 + np.exp(A @ w))) / len(A)
        np.testing.assert_allclose(state.w.image, w, rtol=1e-10)


@pytest.mark.parametrize(
    ("step", "momentum"),
    [
        ("inv_sqrt", None),
        (0.5, 0.3),
        (lambda t: 1 / (t + 1), lambda t: 0.5),
        (PowerSchedule(scale=2.0, power=0.25), NesterovSchedule(delay=3)),
    ],
)
def test_any_schedule_gives_sound_bounds(step, momentum, rng):
    X, y = separable(rng, k=3)
    best = best_margin(X, y)
    clf = fit(MomentumMarginClassifier(step=step, momentum=momentum, max_iter=200), X, y)
    assert clf.margin_ <= best * (1 + 1e-5)
    assert best <= clf.margin_bound_ * (1 + 1e-5)
