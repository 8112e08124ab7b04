"""Raj and Bach's algorithms on intervals: the theorems, and what fits find and claim."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import in_blocks, slow
from helpers.claiming import claim, refused
from helpers.estimators import fit, quiet
from helpers.games import rounds, theta
from helpers.rational import has_solution
from scipy.optimize import LinearConstraint, linprog, minimize, nnls
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

from marginsvm import DualLpRegressor, check_certificate
from marginsvm.papers import coordinates as loops
from marginsvm.papers.dual_lp import RajBach
from marginsvm.papers.dual_lp_regressor import IntervalAscent
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.rows import Intervals, OutputRows

EXACT = {"fit_intercept": False, "tol": 1e-10, "random_state": 0}


# The oracle: the shortest vector with G w >= g, by Lawson and Hanson's least distance program.


def shortest(X, low, high, *, C=np.inf):
    """The shortest theta with ``low <= X theta <= high``; with C, its slack beside it."""
    if np.isfinite(C):
        X = np.hstack([X, np.eye(len(X)) / np.sqrt(2.0 * C)])
    below, above = np.isfinite(low), np.isfinite(high)
    G, g = np.vstack([X[below], -X[above]]), np.append(low[below], -high[above])
    A, b = np.vstack([G.T, g]), np.append(np.zeros(X.shape[1]), 1.0)
    residual = A @ nnls(A, b, maxiter=50 * len(g))[0] - b
    return -residual[:-1] / residual[-1]


def regression(rng, n=15, d=30, noise=0.0):
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + noise * rng.standard_normal(n)


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_lemma_2_interpolation_is_mirror_descent_on_least_squares(p, rng):
    """Where intervals are points, a step of Algorithm 1 is one of eq. (10), always."""
    X, y = regression(rng)
    intervals = Intervals(y, y)
    problem = LinearAdapter(X, OutputRows(intervals), norm=LpNorm(p))
    q, A, alpha, u = p / (p - 1), X / problem.radius, problem.zeros(), np.zeros(30)
    L = np.linalg.norm(A, q, axis=1) ** 2 / (p - 1)
    order = rng.integers(15, size=100)
    loops.ascend(problem, order, alpha)
    for r in order:
        u = u + (y[r] - A[r] @ theta(u, q)) / L[r] * A[r]
    np.testing.assert_allclose(alpha.image, u, atol=1e-10)


@pytest.mark.parametrize("accelerated", [True, False])
def test_proposition_1_on_intervals(accelerated, rng):
    """Half the squared distance to the shortest predictor is at most the dual gap (p = 2)."""
    X, y = regression(rng)
    low, high = y - 0.5, y + 0.5
    problem = LinearAdapter(X, OutputRows(Intervals(low, high)))
    best = shortest(X / problem.radius, low, high)
    for state in rounds(RajBach(accelerated=accelerated, random_state=0), problem, 40):
        alpha = state.v.coef
        dual = (alpha * np.where(alpha > 0, low, high)).sum() - 0.5 * problem.norm(
            state.v
        ) ** 2
        assert (
            0.5 * ((state.v.image - best) ** 2).sum()
            <= 0.5 * best @ best - dual + 1e-10
        )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.asfortranarray])
@pytest.mark.parametrize("accelerated", [True, False])
def test_interpolation_is_the_shortest_solution(form, accelerated, rng):
    X, y = regression(rng)
    reg = DualLpRegressor(accelerated=accelerated, **EXACT).fit(form(X), y)
    least = np.linalg.lstsq(X, y)[0]
    np.testing.assert_allclose(reg.coef_, least, atol=1e-8)
    assert reg.status_ == "certified"
    assert reg.gap_ <= 1e-10
    np.testing.assert_allclose(reg.norm_bound_, np.linalg.norm(least), rtol=1e-9)
    assert reg.norm_bound_ <= np.linalg.norm(least) * (1 + 1e-14)
    assert np.abs(y - reg.predict(X)).max() <= reg.violation_


@pytest.mark.parametrize("constant", [None, 3.0])
def test_interpolation_of_several_outputs(constant, rng):
    """The intercept is a constant feature."""
    X, Y = regression(rng)[0], rng.standard_normal((15, 3))
    params = {
        **EXACT,
        "fit_intercept": constant is not None,
        "intercept_scaling": constant or 1.0,
    }
    reg = DualLpRegressor(**params).fit(X, Y)
    design = X if constant is None else np.c_[X, np.full(15, constant)]
    least = np.linalg.lstsq(design, Y)[0]
    np.testing.assert_allclose(reg.coef_, least[:30].T, atol=1e-8)
    np.testing.assert_allclose(reg.intercept_, (constant or 0.0) * least[-1], atol=1e-8)
    np.testing.assert_allclose(reg.norm_, np.linalg.norm(least), rtol=1e-8)
    assert reg.predict(X).shape == Y.shape
    assert check_certificate(reg, X, Y, exact=True)
    column, single = (DualLpRegressor(**params).fit(X, y) for y in (Y[:, :1], Y[:, 0]))
    assert column.coef_.shape == (1, 30)
    assert column.predict(X).shape == (15, 1)
    np.testing.assert_array_equal(column.coef_[0], single.coef_)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, None])
def test_the_tube_against_a_quadratic_program(epsilon, rng):
    """None: bounds, of which some are infinite."""
    X, y = regression(rng)
    if epsilon is None:
        low, high = y - rng.random(15), y + rng.random(15)
        low[:4], high[4:8] = -np.inf, np.inf
        bounds = np.stack([low, high], axis=1)
    else:
        low, high, bounds = y - epsilon, y + epsilon, None
    reg = DualLpRegressor(epsilon=epsilon or 0.0, **EXACT).fit(X, y, bounds=bounds)
    assert reg.status_ == "certified"
    # for the gap, as squared norms are strongly convex
    near = np.sqrt(2.0 * reg.tol) * reg.norm_
    np.testing.assert_allclose(reg.coef_, shortest(X, low, high), atol=near)
    for exact in (False, True):
        assert check_certificate(reg, X, y, bounds=bounds, exact=exact)
    weights = reg.certificate_.weights.toarray().ravel()
    assert np.all(weights[np.isinf(low)] <= 0)
    assert np.all(weights[np.isinf(high)] >= 0)
    if epsilon is None:
        same = DualLpRegressor(**EXACT).fit(X, None, bounds=bounds)
        np.testing.assert_array_equal(same.coef_, reg.coef_)


@pytest.mark.parametrize("p", [1.5, 1.2])
def test_other_norms_against_a_general_solver(p, rng):
    X, y = regression(rng, n=4, d=8)
    reg = DualLpRegressor(p=p, epsilon=0.1, **{**EXACT, "tol": 1e-7}).fit(X, y)
    start = np.linalg.lstsq(X, y)[0]
    found = minimize(
        lambda w: (np.abs(w) ** p).sum() ** (2 / p) / 2,
        start,
        constraints=LinearConstraint(X, y - 0.1, y + 0.1),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    least = (np.abs(found.x) ** p).sum() ** (1 / p)
    np.testing.assert_allclose(reg.norm_, least, rtol=1e-5)
    assert reg.norm_bound_ <= least * (1 + 1e-9)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_soft_tube_against_ridge_and_linear_svr(C, rng):
    X, y = regression(rng, n=40, d=5, noise=1.0)
    reg = DualLpRegressor(C=C, **EXACT).fit(X, y)
    ridge = Ridge(alpha=0.5 / C, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(reg.coef_, ridge.coef_, atol=1e-5)
    weight = rng.integers(0, 4, 40)
    reg = DualLpRegressor(C=C, **EXACT).fit(X, y, weight)
    np.testing.assert_allclose(reg.coef_, ridge.fit(X, y, weight).coef_, atol=1e-5)
    assert check_certificate(reg, X, y, weight, exact=True)
    reg = DualLpRegressor(C=C, epsilon=0.5, **EXACT).fit(X, y)
    svr = LinearSVR(
        loss="squared_epsilon_insensitive",
        C=C,
        epsilon=0.5,
        fit_intercept=False,
        tol=1e-10,
    )
    with quiet():
        svr.fit(X, y)
    np.testing.assert_allclose(reg.coef_, svr.coef_, atol=2e-5)
    least = shortest(X, y - 0.5, y + 0.5, C=C)
    np.testing.assert_allclose(reg.norm_, np.linalg.norm(least), rtol=1e-8)
    assert reg.norm_bound_ <= np.linalg.norm(least) * (1 + 1e-12)


@pytest.mark.parametrize("seed", [slow(0), slow(1), slow(2)])
def test_a_sparse_signal_is_recovered(seed):
    """Of 2000 coefficients, the 20 that are not zero are found in 200 examples by p = "sparse"."""
    rng = np.random.default_rng(seed)
    X, signal = rng.standard_normal((200, 2000)), np.zeros(2000)
    support = rng.choice(2000, 20, replace=False)
    signal[support] = rng.choice([-1.0, 1.0], 20) * rng.uniform(1.0, 2.0, 20)
    y = X @ signal
    sparse = DualLpRegressor(p="sparse", fit_intercept=False, random_state=0).fit(X, y)
    assert sparse.status_ == "certified"
    largest = np.argsort(np.abs(sparse.coef_))[-20:]
    assert set(largest) == set(support)
    assert np.linalg.norm(sparse.coef_ - signal) < 0.4 * np.linalg.norm(signal)
    dense = np.linalg.lstsq(X, y)[0]
    assert np.linalg.norm(dense - signal) > 0.9 * np.linalg.norm(signal)


def test_restarts_find_the_linear_rate_of_a_hard_tube(monkeypatch):
    """Few rows are active there: without restarts, the gap falls as 1 / t^2 at best."""
    monkeypatch.setattr(
        "marginsvm.papers.dual_lp_newton.Newton.is_due", lambda *_: False
    )
    X, y = regression(np.random.default_rng(0))
    tube = DualLpRegressor(
        epsilon=1.0, fit_intercept=False, tol=1e-9, max_iter=300, random_state=0
    )
    assert fit(tube, X, y).status_ == "certified"
    assert fit(tube.set_params(restart=False), X, y).status_ == "max_iter"


@in_blocks(400, size=16)
def test_bounds_hold_where_a_predictor_is_known(seeds):
    """Integers, so that a known predictor fits exactly: duplicates, zeros, tiny and huge units."""
    for seed in seeds:
        print("seed", seed)
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 25, 2)
        X = rng.integers(-3, 4, (n, d)).astype(float)
        X[rng.random(n) < 0.2] = 0.0
        X = X[rng.integers(n, size=n)]
        signal = rng.integers(-2, 3, d).astype(float)
        unit, other = 2.0 ** rng.integers(-80, 80, 2)
        X, y = X * unit, X @ signal * unit * other
        params = {
            "p": rng.choice([2.0, 1.5, 1.1]),
            "epsilon": rng.choice([0, 0.25 * unit * other]),
        }
        params |= {
            "fit_intercept": False,
            "max_iter": 300,
            "tol": 1e-9,
            "random_state": 0,
        }
        reg = fit(DualLpRegressor(**params), X, y)
        assert reg.norm_bound_ <= np.linalg.norm(signal, reg.p) * other * (1 + 1e-15)
        assert reg.feasible_ is not False
        assert check_certificate(reg, X, y)
        assert check_certificate(reg, X, y, exact=True)
        distance = np.abs(reg.predict(X) - y) - reg.epsilon
        assert distance.max() <= reg.violation_ + 1e-13 * np.abs(y).max(initial=0.0)


@in_blocks(200, size=16)
def test_feasibility_agrees_with_a_linear_program(seeds):
    """False only if no predictor fits, and always if the best violates by a hundredth or more."""
    for seed in seeds:
        print("seed", seed)
        rng = np.random.default_rng(seed)
        n, d, k = (
            int(rng.integers(8, 30)),
            int(rng.integers(1, 6)),
            int(rng.integers(1, 3)),
        )
        X, intercept = rng.standard_normal((n, d)), bool(rng.integers(2))
        Y = X @ rng.standard_normal((d, k)) + 0.5 * rng.standard_normal((n, k))
        epsilon = float(rng.choice([0.0, 0.2, 0.5, 1.0, 1.5]))
        A = np.c_[X, np.ones((n, int(intercept)))]
        rows = np.hstack([np.vstack([A, -A]), -np.ones((2 * n, 1))])
        violation = np.eye(A.shape[1] + 1)[-1]  # the last of the variables
        least = max(
            linprog(
                violation,
                rows,
                np.append(y + epsilon, epsilon - y),
                bounds=(None, None),
            ).fun
            for y in Y.T
        )
        reg = DualLpRegressor(
            epsilon=epsilon, fit_intercept=intercept, tol=1e-6, random_state=0
        )
        reg = fit(reg, X, Y)
        assert reg.feasible_ is not False or least > 0.0
        assert reg.feasible_ is False or least < 0.01
        assert reg.status_ == "certified" or least >= -0.01
        assert check_certificate(reg, X, Y)
        assert check_certificate(reg, X, Y, exact=True)


def test_an_infeasible_system_ends_with_its_proof(rng):
    X, y = regression(rng, n=100, d=5, noise=1.0)
    with pytest.warns(ConvergenceWarning, match="proved that no predictor fits"):
        reg = DualLpRegressor(random_state=0).fit(X, y)
    assert reg.status_ == "infeasible"
    assert reg.feasible_ is False
    assert reg.norm_bound_ == np.inf
    weights = reg.certificate_.weights.toarray().ravel()
    assert np.abs(X.T @ weights).max() < 1e-12
    assert abs(weights.sum()) < 1e-12
    assert y @ weights > 0
    best = np.linalg.lstsq(np.c_[X, np.ones(100)], y)[0]
    residual = ((y - np.c_[X, np.ones(100)] @ best) ** 2).sum()
    assert ((y - reg.predict(X)) ** 2).sum() < 1.1 * residual  # a model all the same
    assert check_certificate(reg, X, y, exact=True)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], [0.0, 1.0]),  # equal examples
        ([[0.0, 0.0], [1.0, 2.0]], [1.0, 1.0]),  # an example of zeros
        ([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 5.0]),  # a face of the space
        ([[1e8, 1.0], [1e8, 1.0], [1e-8, 1.0]], [0.0, 1.0, 5.0]),  # and units far apart
    ],
)
def test_contradictions_are_proved(X, y):
    reg = fit(DualLpRegressor(fit_intercept=False, random_state=0, max_iter=1000), X, y)
    assert reg.status_ == "infeasible"
    assert check_certificate(reg, X, y, exact=True)


def test_what_just_fits_is_never_called_infeasible():
    """Two equal examples, half the distance of their targets being the radius, or next to it."""
    X, y = np.ones((2, 1)), np.array([0.0, 1.0])
    for epsilon in (0.499, 0.5, np.nextafter(0.5, 1.0)):
        reg = DualLpRegressor(
            epsilon=epsilon, fit_intercept=False, random_state=0, max_iter=200
        )
        assert (fit(reg, X, y).feasible_ is False) == (epsilon < 0.5)


def nothing_fits_exactly(X, low, high, fit_intercept):
    """Farkas' lemma in rationals: weights with no combination, but a gain of 1."""
    rows = [
        [Fraction(v) for v in x] + [Fraction(1)] * fit_intercept for x in X.tolist()
    ]
    equations = [[*column, *(-v for v in column)] for column in zip(*rows, strict=True)]
    gain = [*low, *(-v for v in high)]
    return has_solution(
        [*equations, gain], [Fraction(0)] * len(equations) + [Fraction(1)]
    )


@pytest.mark.parametrize("epsilon", [1.0, slow(0.1)])
def test_what_is_said_of_integers_is_true_and_confirmed(epsilon):
    """Of small problems with ends of 0; and no weights prove what is not true."""
    proved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d, fit_intercept = (
            rng.integers(2, 7),
            rng.integers(1, 4),
            bool(rng.integers(0, 2)),
        )
        X, y = rng.integers(-3, 4, (n, d)) * 1.0, rng.integers(-3, 4, n) * epsilon
        params = {"epsilon": epsilon, "fit_intercept": fit_intercept, "max_iter": 200}
        reg = fit(DualLpRegressor(random_state=0, **params), X, y)
        low, high = (
            [Fraction(v) + Fraction(e) for v in y] for e in (-epsilon, epsilon)
        )
        truth = not nothing_fits_exactly(X, low, high, fit_intercept)
        assert reg.feasible_ in (truth, None), seed
        proved += reg.feasible_ is False
        for exact in (False, True):
            check = check_certificate(reg, X, y, exact=exact)
            assert check, (seed, check.reason)
        if truth:
            null = np.linalg.svd(np.c_[X, np.ones(n)])[0][:, -1]
            lie = {"norm_bound": np.inf, "widened_bound": 0.0, "feasible": False}
            for weights in (null, -null, rng.integers(-2, 3, n)):
                q = sp.csr_array((weights / max(abs(weights).sum(), 1.0))[:, None])
                claim(reg, status="infeasible", weights=q, **lie)
                assert not check_certificate(reg, X, y)
    assert proved >= 10


def test_ends_say_whether_they_are_rounded():
    rng = np.random.default_rng(0)
    for value in rng.integers(-9, 10, 400) * 2.0 ** rng.integers(-60, 61, 400):
        for radius in (0.0, 1.0, 0.1, 2.0**-40 + 2.0**-90, 5e-324):
            ends = Intervals(np.array([value]), np.array([np.inf])).moved(
                -radius, radius
            )
            exact = Fraction(value) - Fraction(radius)
            assert ends.low == float(exact)
            assert ends.rounded == (Fraction(ends.low[0]) != exact)
    tiny = Intervals(np.array([8 * 5e-324]), np.array([9 * 5e-324]))
    assert not tiny.moved(0.0, -5e-324).scaled(0.125).rounded
    assert tiny.scaled(0.125).rounded


def test_a_bound_short_of_a_proof_is_stated_as_such(rng):
    X, y = regression(rng, n=100, d=150, noise=1.0)
    with pytest.warns(
        ConvergenceWarning, match="certificate_ has both bounds.*Increase max_iter"
    ):
        reg = DualLpRegressor(random_state=0, max_iter=5).fit(X, y)
    assert reg.status_ == "max_iter"
    assert reg.feasible_ is None
    assert 0 < reg.norm_bound_ < np.inf


@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_false_claims_are_found(C, rng):
    X, y = regression(rng)
    reg = DualLpRegressor(C=C, random_state=0).fit(X, y)
    true = reg.certificate_
    assert check_certificate(reg, X, y)
    violation = np.abs(y).max() - reg.epsilon  # of w = 0; its constant is penalised
    false = [
        {"norm": 0.99 * true.norm},
        {"norm_bound": 1.01 * true.norm},
        {"norm_bound": np.inf},
        {"norm_bound": np.nan},
        {"widened_bound": 1.01 * true.norm},
        {"violation": 0.5 * true.violation},
        {"violation": np.nan},
        {"violation_of_zero": 1.01 * violation if np.isinf(C) else violation},
        {"violation_of_zero": np.nan},
        {"feasible": False},
        {"feasible": True},
        {"feasible": 7},
        {"status": "infeasible"},
        {"status": "separated"},
        {"weights": -true.weights},
        {"weights": true.weights[:-1]},
        {"weights": true.weights * np.nan},
        {"status": "certified", "widened_bound": 0.5 * true.norm},
    ]
    for changes in false:
        refused(reg, " ", X, y, **changes)
    assert not check_certificate(reg, X, y + 0.1)
    reg.coef_ = 0.99 * reg.coef_
    assert not check_certificate(reg, X, y)


@pytest.mark.parametrize(
    ("unit", "dtype"), [(1e-100, float), (1e100, float), (1.0, np.float32)]
)
def test_units_and_types_do_not_matter(unit, dtype, rng):
    X, y = regression(rng)
    X = X.astype(dtype)
    least, loose = (
        np.linalg.lstsq(X.astype(float), y)[0],
        1e-8 if dtype is float else 1e-5,
    )
    reg = DualLpRegressor(**{**EXACT, "tol": 1e-10 if dtype is float else 1e-6})
    reg.fit(X * dtype(unit), y / unit)
    np.testing.assert_allclose(reg.coef_ * unit * unit, least, atol=loose)
    assert check_certificate(reg, X * dtype(unit), y / unit, exact=dtype is np.float32)


def test_the_history_is_of_the_best(rng, capsys):
    X, y = regression(rng)
    reg = DualLpRegressor(**EXACT, verbose=True).fit(X, y)
    assert "norm_bound" in capsys.readouterr().out
    history = reg.history_
    assert np.all(np.diff(history["n_iter"]) > 0)
    assert history["n_iter"][-1] == reg.n_iter_
    assert np.all(np.diff(history["norm_bound"][:-1]) >= 0)
    for name in ("violation", "norm", "norm_bound"):
        assert history[name][-1] == getattr(reg, f"{name}_")
    for name in ("norm", "norm_bound"):
        assert history[name][-1] == pytest.approx(history[name][-2], rel=1e-8)
    assert set(history) == {
        "n_iter",
        "n_passes",
        "seconds",
        "norm",
        "norm_bound",
        "violation",
    }


def test_a_zero_predictor_is_certified_at_once():
    reg = DualLpRegressor(epsilon=2.0).fit([[1.0], [2.0]], [1.0, -1.0])
    assert (reg.status_, reg.feasible_, reg.norm_, reg.n_iter_) == (
        "certified",
        True,
        0.0,
        1,
    )
    assert not np.any(reg.coef_)


@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_a_warm_start_continues_bit_for_bit(C, rng):
    X, y = regression(rng, n=60, d=20, noise=0.1)
    params = {"C": C, "epsilon": 0.3, "tol": 1e-6, "random_state": 0}
    whole = DualLpRegressor(**params).fit(X, y)
    part = fit(DualLpRegressor(**params, warm_start=True, max_iter=7), X, y)
    assert (part.status_, part.n_iter_) == ("max_iter", 7)
    part = pickle.loads(pickle.dumps(part)).set_params(max_iter=10_000).fit(X, y)
    for name in ("n_iter_", "norm_", "norm_bound_", "coef_"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
    for other in (y + 1.0, 2.0 * y):
        with pytest.raises(ValueError, match="other classes, intervals or values"):
            part.fit(X, other)
    again = part.set_params(C=0.5).fit(X, y)
    np.testing.assert_array_equal(again.coef_, whole.set_params(C=0.5).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        (np.zeros((3, 3)), "its shape is"),
        ([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], r"bounds\[1\] is \[1.0, 0.0\]"),
        ([[0.0, 1.0], [0.0, np.nan], [0.0, 1.0]], "must not be above"),
        ([[0.0, 1.0], [np.inf, np.inf], [0.0, 1.0]], "must not be above"),
    ],
)
def test_bad_bounds_are_refused(bounds, match):
    with pytest.raises(ValueError, match=match):
        DualLpRegressor().fit(np.eye(3), np.zeros(3), bounds=bounds)


def test_pipelines_searches_and_routed_bounds(rng):
    X, y = regression(rng, n=60, d=5, noise=0.1)
    model = make_pipeline(
        StandardScaler(), DualLpRegressor(random_state=0, epsilon=0.1)
    )
    search = GridSearchCV(model, {"duallpregressor__C": [0.1, 1.0]}).fit(X, y)
    assert search.score(X, y) > 0.9
    assert check_certificate(search, X, y)
    bounds = np.stack([y - 0.1, y + 0.1], axis=1)
    with config_context(enable_metadata_routing=True):
        reg = DualLpRegressor(C=1.0, random_state=0).set_fit_request(bounds=True)
        scores = cross_val_score(reg, X, y, params={"bounds": bounds})
    tube = DualLpRegressor(C=1.0, epsilon=0.1, random_state=0)
    np.testing.assert_allclose(scores, cross_val_score(tube, X, y), atol=1e-6)


@pytest.mark.parametrize("C", [np.inf, 10.0])
def test_the_best_predictor_of_all_epochs_is_kept(C, rng):
    """Its error by the bounds that are known does not grow, as that of the last one does."""
    X = rng.standard_normal((40, 8))
    y = X @ rng.standard_normal(8) + rng.uniform(-1.0, 1.0, 40)
    problem = LinearAdapter(X, OutputRows(Intervals(y - 1.5, y + 1.5)), C)
    algorithm = IntervalAscent(restart=False, random_state=0)
    state, errors = algorithm.start(problem), [np.inf]
    for _ in range(60):
        state = algorithm.measured(problem, algorithm.step(problem, state))
        errors.append(state.found.error(state.found.fit))
        assert errors[-1] <= errors[-2]
        best = state.found.fit
        assert algorithm._fit(problem, best.vector).primal == best.primal
    assert errors[-1] < 0.5 * errors[1]
