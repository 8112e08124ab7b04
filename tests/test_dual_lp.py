"""Raj and Bach's algorithms: the loops against plain NumPy, and the theorems."""

import sys
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import certified, fit, overlapping, separable
from helpers.games import flat, game, optimum, rounds, theta, written_out
from helpers.hard import each_hard, lopsided, small, within
from helpers.oracle import best_margin_of, explicit_rows
from helpers.pairwise import pairwise
from scipy.optimize import linprog
from sklearn.feature_selection import SelectFromModel
from sklearn.svm import LinearSVC

from marginsvm import (
    DualLpPerceptron,
    DualLpRegressor,
    LpPerceptron,
    PrimalMirrorDescent,
    _compiling,
    check_certificate,
)
from marginsvm.papers import coordinates as loops
from marginsvm.papers.dual_lp import RajBach, draw
from marginsvm.papers.dual_lp_newton import Newton, working_set
from marginsvm.papers.layout import layout_of
from marginsvm.problem.adapter import GramAdapter, LinearAdapter
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.rows import Intervals, OutputRows, intervals_of, make_rows

sys.path.append(str(Path(__file__).parents[1] / "examples" / "benchmarks"))
from _sets import raj_bach

# The loops against the algorithms as listed: explicit rows, nothing incremental.


def proximal(t, step, low, high):
    up, down = t + step * low, t + step * high
    return np.where(up > 0, up, np.minimum(down, 0.0))


def reference_ascend(A, order, rule, ends, q, L, slack):
    alpha, total = np.zeros(len(A)), np.zeros(A.shape[1])
    for r in order:
        t = theta(A.T @ alpha, q)
        total += t
        m = A[r] @ t + slack * alpha[r]
        if rule == loops.DUAL:
            alpha[r] = proximal(alpha[r] - m / L[r], 1 / L[r], *ends[:, r])
        elif rule == loops.DESCENT:
            alpha[r] += (np.clip(m, *ends[:, r]) - m) / L.max()
        else:
            alpha[r] += m <= 0
    return alpha, total


def reference_accelerate(A, order, ends, q, L, slack, mu):
    """Lin, Lu and Xiao's Algorithm 1, in their three sequences; for mu = 0, Algorithm 2."""
    n = len(A)
    # for which the first a is 1 / n, as Raj and Bach have it
    gamma = (1 - mu / n) / (1 - 1 / n)
    x = z = np.zeros(n)
    for r in order:
        a = np.roots([n**2, gamma - mu, -gamma]).max()
        after = (1 - a) * gamma + a * mu
        beta = a * mu / after
        y = (a * gamma * z + after * x) / (a * gamma + after)
        m = A[r] @ theta(A.T @ y, q) + slack * y[r]
        new = (1 - beta) * z + beta * y
        step = 1 / (n * a * L[r])
        new[r] = proximal(new[r] - step * m, step, *ends[:, r])
        x = y + n * a * (new - z) + n * a * beta * (z - y)
        z, gamma = new, after
    return z, x


def written(form, k, p, rng, *, labels, C, dtype):
    """A problem of labels, or of k outputs in intervals, and its rows written out."""
    n, d, constant = 14, 9, 0.7
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)).astype(dtype)
    design = np.c_[X, np.full(n, constant)]
    if labels:
        y = np.arange(n) % k
        rows, A = make_rows(y, k, balanced=False), explicit_rows(design, y)[0]
    else:
        y = rng.standard_normal(n if k == 1 else (n, k))
        rows = OutputRows(Intervals(y - 0.3, np.where(y > 0.5, np.inf, y + 0.3)))
        A = np.array([np.kron(e, x) for x in design for e in np.eye(k)])
    if form == "gram":
        problem = GramAdapter(None, X @ X.T, rows, C, constant=constant)
    else:
        container = {
            "dense": np.asarray,
            "fortran": np.asfortranarray,
            "csr": sp.csr_array,
        }
        problem = LinearAdapter(container[form](X), rows, C, LpNorm(p), constant)
    return problem, A * problem.rows.square**0.5 / problem.radius


LABELS = [
    (f, k, p)
    for f in ("dense", "fortran", "csr")
    for k in (2, 4)
    for p in (2.0, 1.5, 1.3)
]
LABELS += [("dense", 2, 1.1), ("gram", 2, 2.0), ("gram", 4, 2.0)]
OUTPUTS = [(f, k, p) for f in ("dense", "csr") for k in (1, 3) for p in (2.0, 1.3)]


@pairwise(
    of={f"labels-{of}": (True, *of) for of in LABELS}
    | {f"outputs-{of}": (False, *of) for of in OUTPUTS},
    C=[np.inf, 0.3],
    dtype=[np.float64, slow(np.float32)],
)
def test_loops_equal_the_reference(of, C, dtype, rng):
    labels, form, k, p = of
    problem, A = written(form, k, p, rng, labels=labels, C=C, dtype=dtype)
    index, n, zero = problem.rows.flat_indices(), len(A), problem.zeros()
    order, loose = rng.integers(n, size=400), 1e-8 if dtype == np.float64 else 1e-4
    intervals = intervals_of(problem.rows)
    ends = np.array([intervals.low.ravel()[index], intervals.high.ravel()[index]])
    q, mu = p / (p - 1), layout_of(problem).mu
    slack = 0.5 * problem.rows.square / (C * problem.radius**2)
    L = np.linalg.norm(A, q, axis=1) ** 2 / (p - 1) + slack
    if dtype == np.float64:
        np.testing.assert_allclose(layout_of(problem).curvature[index], L, rtol=1e-12)
        np.testing.assert_allclose(mu, (slack / L).min())

    def check(vector, expected):
        found, again = vector.coef.ravel()[index], problem.refresh(vector)
        np.testing.assert_allclose(found, expected, atol=loose * np.abs(expected).max())
        np.testing.assert_allclose(
            flat(vector), flat(again), atol=loose * again.largest_entry()
        )

    for rule in (loops.DUAL, loops.DESCENT, loops.PERCEPTRON):
        alpha, mean = (
            problem.zeros(),
            None if form == "gram" else np.zeros(zero.image.size),
        )
        loops.ascend(problem, index[order], alpha, rule, mean)
        expected, total = reference_ascend(A, order, rule, ends, q, L, slack)
        check(alpha, expected)
        if form != "gram":
            np.testing.assert_allclose(mean, total, atol=loose * np.abs(total).max())
        if np.isinf(C):
            t = theta(A.T @ expected, q)
            scores, size = problem.margins(alpha).ravel()[index], np.linalg.norm(t, p)
            np.testing.assert_allclose(
                scores, A @ t, atol=10 * loose * np.abs(A @ t).max()
            )
            np.testing.assert_allclose(problem.norm(alpha), size, rtol=10 * loose)
    *first, gamma = loops.accelerate(
        problem, index[order[:200]], n, mu, zero, zero, 1 / n
    )
    # images in another order, of sparse data
    again = [problem.combine(w.coef) for w in first]
    found = loops.accelerate(problem, index[order[200:]], n, mu, *again, gamma)
    reference = reference_accelerate(A, order, ends, q, L, slack, mu)
    for vector, expected in zip(found[:2], reference, strict=True):
        check(vector, expected)


@pytest.mark.parametrize("C", [np.inf, 0.3])
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_epochs_are_the_listings(p, C, rng):
    """Three epochs of the estimator's algorithm: alpha and v."""
    problem, A = written("dense", 2, p, rng, labels=True, C=C, dtype=np.float64)
    n, q, L = len(A), p / (p - 1), layout_of(problem).curvature
    plain = {"restart": False, "shrinking": False, "random_state": 0, "p": p}
    *_, state = rounds(DualLpPerceptron(**plain), problem, 3)
    order = [draw(state.seed, t, np.arange(n), n, "permutation") for t in range(3)]
    ends = np.array([np.ones(n), np.full(n, np.inf)])
    slack, mu = layout_of(problem).ridge[0], layout_of(problem).mu
    found = reference_accelerate(A, np.concatenate(order), ends, q, L, slack, mu)
    for vector, coef in zip((state.alpha, state.v), found, strict=True):
        np.testing.assert_allclose(vector.coef.ravel(), coef, atol=1e-9 * coef.max())


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_v_is_published(p, rng):
    """Eq. (8) is about v, not about the alpha that the listing returns."""
    X, y = separable(rng, n=40)
    params = {"p": p, "restart": False, "shrinking": False, "random_state": 0}
    clf = DualLpPerceptron(fit_intercept=False, max_iter=3, tol=0.0, **params)
    at = fit(clf, X, y).coef_.ravel()
    at = at / np.linalg.norm(at)
    published, others = [], []
    for state in rounds(clf, game(X, y, p), 3):
        for vector, far in ((state.v, published), (state.alpha, others)):
            w = theta(vector.image.ravel(), p / (p - 1))
            far.append(np.abs(w / np.linalg.norm(w) - at).max())
    assert min(published) < 1e-9
    assert min(others) > 1e-3


def test_restarts_begin_with_the_first_gamma(rng):
    """Algorithm 2 from v on, after a Newton step as after some epochs."""
    data, restarts = game(*separable(rng, n=40)), 0
    for state in rounds(DualLpPerceptron(random_state=0), data, 45):
        if state.begun == state.t:
            restarts += 1
            assert state.alpha is state.v
            assert state.gamma == 1.0 / state.rows.size
    assert restarts >= 2


def test_orders_of_epochs(monkeypatch):
    """Sweeps over all rows, in all orders alike, by seed and epoch; the same without numba."""
    rows, counts = np.array([3, 5, 9]), {}
    for t in range(3000):
        order = draw(7, t, rows, 7, "permutation")
        assert len(order) == 7
        for sweep in (order[:3], order[3:6]):
            counts[tuple(sweep)] = counts.get(tuple(sweep), 0) + 1
    assert sorted(counts) == sorted(permutations(rows.tolist()))
    assert np.abs(np.array([*counts.values()]) - 1000).max() < 5 * np.sqrt(1000)
    rows, epochs = np.arange(1000), [(0, 0), (0, 1), (1, 0), (2**31 - 1, 10**6)]
    orders = [draw(seed, t, rows, 1000, "permutation") for seed, t in epochs]
    assert all(np.any(a != b) for a, b in combinations(orders, 2))
    monkeypatch.setattr(_compiling, "njit", None)
    plain = {"__name__": "plain"}
    exec(Path(loops.__file__).read_text(), plain)
    monkeypatch.setattr(_compiling, "_say_once", lambda: None)
    for (seed, t), order in zip(epochs, orders, strict=True):
        np.testing.assert_array_equal(plain["shuffled"](rows, 1000, seed, t), order)


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
@pytest.mark.parametrize("q", [2.0, 3.0, 4.6, 8.6009, 17.1])
def test_mirror_maps(q, scale, rng):
    tiny = 10.0 ** -rng.integers(1, 15, 50)
    u = np.r_[rng.standard_normal(2000), tiny, 1.0, np.sqrt(0.5), 0.5, 0.0]
    expected = theta(u, q) * scale
    phi = u * scale if q == 2.0 else np.empty_like(u)
    factor = loops._mirror(u * scale, q, phi)
    negligible = 1e-100 * np.abs(expected).max()
    np.testing.assert_allclose(factor * phi, expected, rtol=1e-11, atol=negligible)
    mirrored = LpNorm(q / (q - 1.0)).mirror(u * scale)
    np.testing.assert_allclose(mirrored, expected, rtol=1e-11, atol=negligible)
    for zero in (
        loops._mirror(np.zeros(3), 3.0, np.ones(3)),
        LpNorm(1.5).mirror(np.zeros(3)),
    ):
        assert not np.any(zero)


@pytest.mark.parametrize(
    ("form", "k", "p", "C"),
    [
        ("dense", 2, 2.0, np.inf),
        ("csr", 3, 2.0, np.inf),
        ("dense", 2, 1.3, np.inf),
        ("dense", 2, 2.0, 0.5),
    ],
)
def test_vectors_do_not_drift(form, k, p, C, rng):
    """1000 epochs, never computed again; with a soft margin, they have converged by then."""
    X, y = separable(rng, n=60, d=20, k=k)
    X = sp.csr_array(X) if form == "csr" else X
    data = LinearAdapter(X, make_rows(y, k, balanced=False), C, LpNorm(p), 1.0)
    zero, index, mu = data.zeros(), data.rows.flat_indices(), layout_of(data).mu
    n, order = index.size, rng.choice(index, size=1000 * index.size)
    alpha, v, _ = loops.accelerate(data, order, n, mu, zero, zero, 1 / n)
    for w in (alpha, v):
        again = data.refresh(w)
        assert np.linalg.norm(flat(w - again)) <= 1e-10 * np.linalg.norm(again.image)
    if np.isfinite(C):
        np.testing.assert_allclose(flat(alpha), flat(v), atol=1e-9 * v.largest_entry())
        np.testing.assert_allclose(
            data.margins(v)[v.coef > 1e-6 * v.coef.max()], 1.0, rtol=1e-9
        )


class Dual:
    """The dual of a hard margin, the longest row being 1; its optimum, and the predictor."""

    def __init__(self, X, y, p):
        self.data, self.n, self.q = game(X, y, p), len(X), p / (p - 1)
        self.A, self.L = written_out(self.data, X, y), layout_of(self.data).curvature
        self.best = optimum(self.data, X, y, p)
        self.star, self.top = self.predictor(self.best), self.value(self.best)
        self.length = np.linalg.norm(self.star, p)  # |theta*|_p; R is 1

    def value(self, alpha):
        return alpha.sum() - 0.5 * np.linalg.norm(self.A.T @ alpha, self.q) ** 2

    def gap(self, alpha):
        return self.top - self.value(alpha)

    def predictor(self, alpha):
        return theta(self.A.T @ alpha, self.q)


def on_average(paths, bound):
    within(np.max(np.mean(paths, axis=0) / bound), 1.0, "share of the bound")


def ascents(data, epochs, seeds, chances=None):
    """The dual variables of Algorithm 1 with independent draws, epoch by epoch."""
    for seed in range(seeds):
        draws, alpha = np.random.default_rng(seed), data.zeros()
        path = []
        for _ in range(epochs):
            loops.ascend(
                data, draws.choice(data.n_rows, size=data.n_rows, p=chances), alpha
            )
            path.append(alpha.coef.copy())
        yield path


def accelerated(data, epochs, seeds):
    """The listing's alpha and the sequence v of Algorithm 2 with uniform draws, by epochs."""
    n = data.n_rows
    for seed in range(seeds):
        draws, alpha, v, gamma = (
            np.random.default_rng(seed),
            data.zeros(),
            data.zeros(),
            1 / n,
        )
        path = []
        for _ in range(epochs):
            order = draws.integers(n, size=n)
            alpha, v, gamma = loops.accelerate(data, order, n, 0.0, alpha, v, gamma)
            path.append((alpha.coef, v.coef))
        yield path


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_proposition_1_and_the_rate_of_eq_8(p, kind, rng):
    """Bregman divergence <= dual gap at every epoch; mean gap within the rate of Algorithm 2.

    So |theta(alpha) - theta*|_p <= sqrt(2 gap / (p - 1)), which is Corollary 1.
    """
    dual = Dual(*small(kind, rng), p)
    weighted, paths = dual.top + 0.5 * (dual.best**2 * dual.L).sum(), []
    # by then the bound is a quarter of the gap
    epochs = int(4 * np.sqrt(weighted / dual.top))
    for seed in range(5):
        paths.append([])
        for state in rounds(RajBach(random_state=seed), dual.data, epochs):
            v = state.v.coef
            assert (v >= -1e-13 * v.max()).all()
            t, short = dual.predictor(v), dual.gap(v)
            divergence = 0.5 * (dual.length**2 - np.linalg.norm(t, p) ** 2)
            divergence -= (dual.A.T @ v) @ (dual.star - t)  # psi'(theta(v)) = A'v
            assert divergence <= short + 1e-6 * dual.top
            apart = np.linalg.norm(t - dual.star, p)
            assert apart**2 <= 2 * (short + 1e-6 * dual.top) / (p - 1)
            paths[-1].append(short)
    t = dual.n * np.arange(1, epochs + 1)
    on_average(paths, (2 * dual.n / (2 * dual.n + t)) ** 2 * weighted + 1e-6 * dual.top)


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_theorem_1_for_the_average(p, kind, rng):
    """Every epoch, on the average of some runs."""
    dual, paths = Dual(*small(kind, rng), p), []
    t = dual.n * np.arange(1, 201)
    for seed in range(5):
        clf = PrimalMirrorDescent(p=p, average=True, random_state=seed)
        totals = [state.total for state in rounds(clf, dual.data, 200)]
        margins = dual.A @ (np.array(totals) / t[:, None]).T
        paths.append(0.5 * np.mean(np.maximum(0, 1 - margins) ** 2, axis=0))
    on_average(paths, dual.L.max() * 0.5 * dual.length**2 / t)


def check_eq_5(dual, constant, seeds, chances=None):
    # by then the bound is half of the first gap
    epochs = int(2 * constant / (dual.n * dual.top))
    found = ascents(dual.data, epochs, seeds, chances)
    paths = [[dual.gap(alpha) for alpha in path] for path in found]
    on_average(paths, constant / (dual.n * np.arange(1, epochs + 1)) + 1e-6 * dual.top)


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_eq_5_of_raj(p, kind, rng):
    """The rate of Algorithm 1, even with the smaller of the two constants in its maximum."""
    dual = Dual(*small(kind, rng), p)
    # alpha: the paper's / n
    check_eq_5(dual, dual.n * dual.L.max() * (dual.best @ dual.best), 5)


def long_and_short(rng):
    """Eight long rows that decide, and forty that are ten times shorter and well separated."""
    X, y = lopsided(rng, n=8, gamma=0.05, noise=0.0)
    labels = np.arange(40) % 2
    short = 0.1 * np.eye(2, X.shape[1])[labels] + 0.01 * rng.standard_normal(
        (40, X.shape[1])
    )
    return np.vstack([X, short]), np.r_[y, labels]


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_eq_5_of_raj_with_draws_by_curvature(power, p, rng):
    """Section 2.2; Nesterov (2012), Theorem 1, for draws in proportion to a power of the L_i."""
    dual = Dual(*long_and_short(rng), p)
    chances = dual.L**power / (dual.L**power).sum()
    constant = 2 * max(dual.top / chances.min(), (dual.L / chances) @ dual.best**2)
    check_eq_5(dual, constant, 3, chances)


def test_draws_by_curvature_are_the_estimators(rng):
    """``sampling="curvature"``: the frequencies, and fewer epochs where few rows are long."""
    X, y = long_and_short(rng)
    L = layout_of(game(X, y)).curvature
    drawn = np.bincount(
        draw(0, 0, np.arange(len(X)), 100_000, "curvature", L), minlength=len(X)
    )
    np.testing.assert_allclose(drawn / 1e5, np.sqrt(L) / np.sqrt(L).sum(), atol=0.01)
    plain = {
        "accelerated": False,
        "restart": False,
        "shrinking": False,
        "random_state": 0,
    }
    params = {"fit_intercept": False, "tol": 1e-2, "max_iter": 100_000, **plain}
    ways = "uniform", "curvature"
    epochs = {
        way: DualLpPerceptron(sampling=way, **params).fit(X, y).n_iter_ for way in ways
    }
    print(f"epochs to a gap of 1e-2: {epochs}")
    assert epochs["curvature"] < 0.5 * epochs["uniform"]


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_corollary_2_of_raj(p, kind, rng):
    """Mistakes of mirror descent's average, as a share: at most |theta*|_p R / sqrt((p-1) t)."""
    dual, shares = Dual(*small(kind, rng), p), []
    epochs = int(1.5 * dual.length**2 / (p - 1))  # by then, no row is misclassified
    for seed in range(3):
        clf = PrimalMirrorDescent(p=p, average=True, random_state=seed)
        totals = [state.total for state in rounds(clf, dual.data, epochs)]
        shares.append(np.mean(dual.A @ np.transpose(totals) <= 0, axis=0))
    share, t = np.mean(shares, axis=0), dual.n * np.arange(1, epochs + 1)
    assert share[1] > 0  # the statement can fail
    bound = dual.length / np.sqrt((p - 1) * t)
    within(np.max(share / bound), 1.0, "mistakes, as a share of the bound")
    within(np.max(share / bound**2), 1.0, "and of its square")


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_eq_13_and_lemma_3_of_raj(p, kind, rng):
    """The distance to theta* falls as 1 / t, and there are no mistakes after so many steps."""
    dual = Dual(*small(kind, rng), p)
    n, alpha_2, top = (
        dual.n,
        dual.n**2 * (dual.best @ dual.best),
        dual.top,
    )  # |alpha*|^2 in print
    printed = 2 * np.sqrt(2 / (p - 1)) * np.sqrt(top + 0.5 * alpha_2)
    derived = 2 * np.sqrt(2) / (p - 1) * np.sqrt(n**2 * (p - 1) * top + 0.5 * alpha_2)
    epochs, runs = int(np.ceil(derived / n)) + 5, 5
    apart, wrong = np.zeros(epochs), np.zeros(epochs)
    for path in accelerated(dual.data, epochs, runs):
        for epoch, (_, v) in enumerate(path):
            predictor = dual.predictor(v)
            apart[epoch] += np.linalg.norm(predictor - dual.star, p) / runs
            wrong[epoch] += np.mean(dual.A @ predictor <= 0) / runs
    t = n * np.arange(1, epochs + 1)
    last = t[np.flatnonzero(wrong)[-1]]
    for steps in (printed, derived):
        within(np.max(apart * t), steps, "t times the distance")
        within(last, steps, "the last step after which there was a mistake")


def test_the_listing_returns_a_worse_sequence_than_v(rng):
    """On the data of section 4, p = 2, after 30 epochs: dozens of mistakes against none."""
    n, d = 1000, 2000
    X = rng.standard_normal((3 * n, d)) * np.arange(1, d + 1) ** -0.75
    score = X @ rng.standard_normal(d) + 0.005
    kept = np.flatnonzero(np.abs(score) > 0.1)[:n]
    data = game(X[kept], (score[kept] > 0).astype(int))
    (path,) = accelerated(data, 30, seeds=1)
    listed, v = (np.sum(data.margins(data.combine(q)) <= 0) for q in path[-1])
    print(f"epoch 30: {listed} training mistakes of the listing's alpha, {v} of v")
    assert v == 0 < listed


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_proposition_2_for_the_squared_hinge(p, rng):
    """gap >= D_psi(theta*, theta(alpha)) + sum of D_phi*(alpha_i, alpha*_i), the last of (19)."""
    X, y = overlapping(rng, n=30, d=5)
    data, q = (
        LinearAdapter(X, make_rows(y, 2, balanced=False), 2.0, norm=LpNorm(p)),
        p / (p - 1),
    )
    A, half = written_out(data, X, y), 0.5 * data.ridge
    (path,) = ascents(data, 2000, 1)

    def dual(alpha):
        return alpha.sum() - 0.5 * np.linalg.norm(A.T @ alpha, q) ** 2 - half @ alpha**2

    star, seen = path[-1], 0.0
    best = theta(A.T @ star, q)
    for at in path[:40]:
        t = theta(A.T @ at, q)
        apart = 0.5 * np.linalg.norm(best, p) ** 2 - 0.5 * np.linalg.norm(t, p) ** 2
        apart += half @ (at - star) ** 2 - (A.T @ at) @ (best - t)
        gap = dual(star) - dual(at)
        seen = max(seen, apart / gap) if gap > 1e-6 * dual(star) else seen
        assert apart <= gap + 1e-9 * dual(star)
    within(seen, 1.001, "share of the gap")
    assert seen > 0.5


@pytest.mark.parametrize(
    ("k", "C"), [(1, 0.05), slow(1, 0.5), (1, 5.0), (2, 0.3), (2, 30.0), (3, 3.0)]
)
@pytest.mark.parametrize("fast", [True, False])
def test_the_linear_rates_of_appendix_c(fast, k, C, rng):
    """Corollaries C.1 and C.2 as Lin, Lu and Xiao have them: mean dual gaps, and their slopes.

    Of k classes; one class stands for intervals.
    """
    X, y = overlapping(rng, n=30, d=5, k=k)
    targets = X.sum(axis=1) + rng.standard_normal(30)
    tube = OutputRows(Intervals(targets - 0.1, targets + 0.1))
    problem = LinearAdapter(X, tube if k == 1 else make_rows(y, k, balanced=False), C)
    n, layout = problem.n_rows, layout_of(problem)
    mu, L = layout.mu, layout.curvature
    intervals = intervals_of(problem.rows)

    def dual(v):
        alpha = v.coef.ravel()
        up, down = alpha > 0, alpha < 0
        gain = (
            alpha[up] @ intervals.low.ravel()[up]
            + alpha[down] @ intervals.high.ravel()[down]
        )
        return gain - 0.5 * problem.norm(v) ** 2

    *_, last = rounds(RajBach(random_state=99), problem, int(40 / np.sqrt(mu)))
    best, star = dual(last.v), last.v.coef.ravel()
    paths = [
        [
            dual(state.v)
            for state in rounds(RajBach(fast, random_state=seed), problem, 60)
        ]
        for seed in range(10)
    ]
    gaps, t = best - np.mean(paths, axis=0), n * np.arange(1, 61)
    first, rate = best + 0.5 * float(L @ star**2), 1 - (np.sqrt(mu) if fast else mu) / n
    assert np.all(gaps <= first * rate**t + 1e-12 * best)
    assert not fast or np.all(gaps <= first * (2 * n / (2 * n + t)) ** 2 + 1e-12 * best)
    seen = gaps > 1e-10 * best  # rounding below
    assert np.polyfit(t[seen], np.log(gaps[seen]), 1)[0] <= np.log(rate)


def test_corollaries_c_1_and_c_2_are_false_as_printed():
    """200 orthonormal rows, gamma lambda = 1/4: after 50 steps, most of the gap is left."""
    n, product, steps = 200, 0.25, 50
    y = np.arange(n) % 2
    X = np.where(y == 1, 1.0, -1.0)[:, None] * np.eye(n)
    # lambda/2 |w|^2 + 1/n sum xi^2 / (2 gamma), divided by lambda, has C = 1 / (2 n gamma lambda)
    data = LinearAdapter(X, make_rows(y, 2, balanced=False), 1 / (2 * n * product))
    curvature, mu, zero = (
        layout_of(data).curvature[0],
        layout_of(data).mu,
        data.zeros(),
    )
    best, left = 0.5 * n / curvature, []
    for seed in range(20):
        order = np.random.default_rng(seed).integers(n, size=steps)
        alpha = data.zeros()
        loops.ascend(data, order, alpha)
        _, v, _ = loops.accelerate(data, order, n, mu, zero, zero, 1 / n)
        duals = [w.mass - 0.5 * curvature * np.sum(w.coef**2) for w in (alpha, v)]
        left.append(1 - np.array(duals) / best)
    printed = (1 - product) ** steps, 2 * (1 - np.sqrt(product)) ** steps
    print(f"{np.mean(left, axis=0)} of the gap are left; promised: {printed}")
    assert np.min(left) >= 0.75
    assert max(printed) < 1e-6
    np.testing.assert_allclose(
        np.mean(left, axis=0)[0], (1 - mu / n) ** steps, rtol=0.02
    )


# Newton's method on the dual: its model, its pivoting, and the fits that it ends.


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("p", [2.0, 1.3])
def test_a_step_never_makes_the_dual_smaller(p, C, rng):
    X, y = separable(rng, n=60, d=20)
    problem = LinearAdapter(X, make_rows(y, 2, balanced=False), C, LpNorm(p), 1.0)
    v, newton, values = problem.combine(rng.random(60)), Newton(), []
    for _ in range(30):
        v, newton = newton.step(problem, v, working_set(problem, v))
        values.append(v.mass - 0.5 * problem.norm(v) ** 2)
        assert np.all(v.coef >= 0.0)
    assert np.all(np.diff(values) >= -1e-12 * values[-1])
    low = problem.margins(v)[v.coef > 0.0]
    # complementary slackness: it converges
    np.testing.assert_allclose(low, 1.0, atol=1e-7)
    assert problem.margins(v).min() > 1.0 - 1e-7


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_fits_end_where_coordinates_take_thousands_of_epochs(p, rng):
    """Examples whose features differ in size by a thousand, with labels that they separate."""
    X = rng.standard_normal((80, 30)) * np.logspace(0, -3, 30)
    score = X @ rng.standard_normal(30)
    params = {"p": p, "random_state": 0, "max_iter": 500, "tol": 1e-6}
    clf = certified(DualLpPerceptron(**params), X, score > 0, exact=True)
    assert fit(clf.set_params(restart=False), X, score > 0).status_ == "max_iter"
    reg = certified(DualLpRegressor(epsilon=0.01, **params), X, score, exact=True)
    assert fit(reg.set_params(restart=False), X, score).status_ == "max_iter"


WAYS = [
    {},
    {"sampling": "uniform"},
    {"restart": False},
    {"shrinking": False},
    {"sampling": "uniform", "restart": False, "shrinking": False},
    {"accelerated": False},
]


@pairwise(
    how={str(i): way for i, way in enumerate(WAYS)},
    k=[2, 3],
    fit_intercept=[True, False],
)
def test_all_ways_find_the_best_margin(how, k, fit_intercept, rng):
    X, y = separable(rng, n=80, d=15, k=k)
    params = {
        "tol": 1e-4,
        "random_state": 0,
        "max_iter": 50_000,
        "fit_intercept": fit_intercept,
    }
    clf = certified(DualLpPerceptron(**params, **how), X, y)
    best = best_margin_of(clf, X, y)
    assert clf.margin_ <= best * (1 + 1e-6)
    assert best <= clf.margin_bound_ * (1 + 1e-6)
    assert fit_intercept or not clf.intercept_.any()


@pytest.mark.parametrize("C", [0.01, 1.0, slow(100.0)])
def test_soft_margin_with_an_intercept_is_linear_svcs(C, rng):
    X, y = rng.standard_normal((120, 6)), np.arange(120) % 2
    peer = LinearSVC(C=C, intercept_scaling=2.0, tol=1e-12, max_iter=10**6).fit(X, y)
    clf = DualLpPerceptron(
        C=C, intercept_scaling=2.0, tol=1e-9, max_iter=10**5, random_state=0
    )
    clf.fit(X, y)
    # the decision values of LinearSVC are those of the objective, ours have margins of 1
    scale = (
        peer.coef_.ravel() @ clf.coef_.ravel() / (clf.coef_.ravel() @ clf.coef_.ravel())
    )
    np.testing.assert_allclose(
        clf.coef_ * scale, peer.coef_, atol=1e-4 * np.abs(peer.coef_).max()
    )
    np.testing.assert_allclose(clf.intercept_ * scale, peer.intercept_, atol=1e-3)
    assert check_certificate(clf, X, y)


def test_p_near_1_finds_the_l1_margin(rng):
    """Within a per cent, with no more features than examples, against a linear program."""
    X, y = separable(rng, n=20, d=300)
    A, d = explicit_rows(X, y)[0], X.shape[1]
    best = 1 / linprog(np.ones(2 * d), A_ub=-np.c_[A, -A], b_ub=-np.ones(len(A))).fun
    clf = certified(
        DualLpPerceptron(p=1.002, fit_intercept=False, random_state=0), X, y
    )
    size = np.abs(clf.coef_.ravel())
    assert (
        0.99 * best <= (A @ clf.coef_.ravel()).min() / size.sum() <= best * (1 + 1e-9)
    )
    assert np.searchsorted(np.cumsum(np.sort(size)[::-1]), 0.99 * size.sum()) < len(A)


@pytest.mark.parametrize("seed", [slow(s) for s in range(10)])
def test_the_sparse_norm_separates_the_papers_data_within_100_epochs(seed):
    X, y, *_ = raj_bach(seed, sparse=True)
    clf = DualLpPerceptron(
        p="sparse", stopping="separation", max_iter=100, random_state=seed
    )
    assert fit(clf.set_params(fit_intercept=False), X, y).status_ == "separated"


@pairwise(
    k=[2, 3],
    C=[np.inf, 1.0],
    p=[1.5, "sparse"],
    fit_intercept=[True, False],
    sparse=[True, False],
)
def test_certificates_of_other_norms(k, C, p, fit_intercept, sparse, rng):
    X, y = separable(rng, k=k, d=8)
    clf = DualLpPerceptron(p=p, C=C, fit_intercept=fit_intercept, random_state=0)
    certified(clf, sp.csr_array(X) if sparse else X, y)


@pytest.mark.parametrize("cls", [DualLpPerceptron, LpPerceptron, PrimalMirrorDescent])
@pytest.mark.parametrize("p", [2.0, "sparse"])
def test_fits_without_a_separator_say_so(cls, p, rng):
    X, y = rng.standard_normal((80, 4)), np.arange(80) % 2
    X[0] = 0.0
    for fit_intercept in (True, False):
        clf = cls(p=p, fit_intercept=fit_intercept, random_state=0, max_iter=20_000)
        with pytest.warns(UserWarning, match="C < inf"):
            clf.fit(X, y)
        assert clf.separable_ is False
        assert check_certificate(clf, X, y)


@pytest.mark.parametrize("p", [2.0, "sparse"])
def test_perceptrons_and_averages_of_mirror_descent_separate(p, rng):
    for cls, params in ((LpPerceptron, {}), (PrimalMirrorDescent, {"average": True})):
        clf = fit(
            cls(p=p, stopping="separation", random_state=0, **params), *separable(rng)
        )
        assert clf.status_ == "separated"


def test_the_average_of_mirror_descent_is_of_all_steps(rng):
    """The model after three epochs is the mean of theta before each step."""
    X, y = separable(rng, n=40)
    data, n = game(X, y), 40
    *_, state = rounds(PrimalMirrorDescent(average=True, random_state=0), data, 3)
    order = [draw(state.seed, t, np.arange(n), n, "uniform") for t in range(3)]
    A, L = written_out(data, X, y), layout_of(data).curvature
    ends = np.array([np.ones(n), np.full(n, np.inf)])
    found = A, np.concatenate(order), loops.DESCENT, ends, 2.0, L, 0.0
    _, total = reference_ascend(*found)
    w, model = total / np.linalg.norm(total), state.pocket.last.image.ravel()
    np.testing.assert_allclose(model / np.linalg.norm(model), w, atol=1e-9)


def test_selects_features(rng):
    X, y = separable(rng, n=80, d=200)
    selected = fit(SelectFromModel(DualLpPerceptron(p="sparse", random_state=0)), X, y)
    assert selected.transform(X).shape[1] < 60
    assert selected.get_support()[:2].all()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"p": "dense"}, "sparse"),
        ({"p": 1.5, "kernel": "rbf"}, "kernel='linear'"),
        ({"sampling": "cyclic"}, "permutation"),
        ({"sampling": "curvature"}, "accelerated=False"),
        (
            {"kernel": "rbf", "cache_size": 0.02},
            "kernel matrix of 60 examples takes more than cache_size",
        ),
    ],
)
def test_errors_say_what_to_do(params, text, rng):
    with pytest.raises(ValueError, match=text):
        DualLpPerceptron(**params).fit(*separable(rng))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_pocket_holds_the_model_that_misclassifies_the_least_weight(weighted, rng):
    X, y = overlapping(rng, n=60, d=3)
    weights = 10.0 ** rng.uniform(-2.0, 2.0, 60) if weighted else None
    data = LinearAdapter(X, make_rows(y, 2, balanced=False, weights=weights))
    sign, weight = (
        np.where(y == 1, 1.0, -1.0),
        np.ones(60) if weights is None else weights,
    )

    def wrong(vector):
        return weight[sign * (X @ vector.image) <= 0.0].sum()

    least, measured, before = np.inf, 0, None
    for state in rounds(
        DualLpPerceptron(random_state=0, fit_intercept=False), data, 60
    ):
        if state.found is not before:  # the vector of this epoch was measured
            least, measured = min(least, wrong(state.found.last)), measured + 1
            np.testing.assert_allclose(wrong(state.found.model), least)
            before = state.found
    assert measured > 10
