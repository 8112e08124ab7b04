"""Solvers of the quadratic program, against clarabel's optima of programs that are written out."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.oracle import least_value
from helpers.plain_examples import PlainExamples

from marginsvm.problem.design import Design
from marginsvm.problem.gram import Gram
from marginsvm.problem.kernel_functions import Kernel
from marginsvm.problem.programs import classification, one_class, regression
from marginsvm.solvers.active_set import active_set, pivoting_by_products
from marginsvm.solvers.dual_cd import dual_cd
from marginsvm.solvers.interior_point import interior_point, stacked
from marginsvm.solvers.newton import newton
from marginsvm.solvers.smo import smo
from marginsvm.solvers.solution import Solution
from marginsvm.solvers.solve import solve

pytest.importorskip("clarabel", reason="pip install marginsvm[test-all]")

TOL = 1e-6


class DenseExamples(PlainExamples):
    @property
    def points(self):
        return self.X


class SparseExamples(DenseExamples):
    """The same as a CSR matrix, from which products subtract the mean."""

    sparse = True

    def __init__(self, X):
        self.mean = X.mean(axis=0)
        self.csr = sp.csr_array(X)
        super().__init__(X - self.mean)

    def rows(self, i):
        return self.csr[i]


class GivenKernel(Gram):
    """Examples that are known by their inner products: predictors are coefficients."""

    def __init__(self, points):
        self.points = points
        super().__init__(None, points @ points.T)


def written_out(qp, X):
    """A, F and which entries of alpha are rows."""
    if not qp.several:
        at, sign = qp.rows.at, qp.rows.sign
        A, F, is_row = (
            sign[:, None] * X[at],
            [sign] * qp.intercept,
            np.ones(len(at), bool),
        )
    else:
        n, k = qp.shape
        C = np.eye(k)[qp.rows.codes][:, None, :] - np.eye(k)
        A = (C[..., None] * X[:, None, None, :]).reshape(n * k, -1)
        F = list(C.reshape(n * k, k).T[: qp.n_intercepts])
        is_row = (qp.rows.codes[:, None] != np.arange(k)).ravel()
    F += [np.full(len(A), qp.level)] * bool(qp.level)
    return A, np.array(F).reshape(-1, len(A)).T, is_row


def optimum(qp, X):
    """The best value, by clarabel: min w'w/2 + ridge a'a/2 - target'a, w = A'a + signs, F'a = g."""
    A, F, is_row = written_out(qp, X)
    A, F = A[is_row], F[is_row]
    target, ridge, upper = (
        np.broadcast_to(v, qp.shape).ravel()[is_row]
        for v in (qp.target, qp.ridge, qp.upper)
    )
    S = (
        np.zeros((0, A.shape[1]))
        if qp.signs is None
        else np.diag(qp.signs)[qp.signs != 0]
    )
    (m, d), s, e, zero = A.shape, len(S), F.shape[1], sp.csc_matrix
    P = sp.diags(np.concatenate([np.ones(d), ridge, np.zeros(s)]))
    q = np.concatenate([np.zeros(d), -target, np.zeros(s)])
    capped = np.isfinite(upper)
    rows = [
        sp.hstack([sp.eye(d), zero(-A.T), zero(-S.T)]),
        sp.hstack([zero((e, d)), zero(F.T), zero((e, s))]),
        sp.hstack([zero((m + s, d)), -sp.eye(m + s)]),
        sp.hstack([zero((m, d)), sp.eye(m), zero((m, s))]).tocsr()[capped],
    ]
    right = [np.zeros(d), qp.g[:e], np.zeros(m + s), upper[capped]]
    if qp.cap is not None:
        sums = sp.kron(sp.eye(len(qp.cap)), np.ones((1, qp.k - 1)))
        rows.append(sp.hstack([zero((len(qp.cap), d)), sums, zero((len(qp.cap), s))]))
        right.append(qp.cap)
    best = -least_value(P, q, sp.vstack(rows), np.concatenate(right), d + e)
    assert np.isfinite(best)
    return best


def labels(rng, n, k):
    return np.append(np.arange(k), rng.integers(0, k, n - k))


def programs(rng, n, d, kind):
    X = rng.normal(size=(n, d)) / np.sqrt(3 * d)
    y, several, m = labels(rng, n, 2), labels(rng, n, 3), rng.uniform(0.2, 2.0, n)
    X[:, 0] += 0.2 * (y + several)
    t, E = X[:, 0] + 0.3 * rng.normal(size=n), kind(X)
    signs = np.append(np.array([1.0, -1.0]), np.zeros(max(d - 2, 0)))[:d]
    yield "hinge", classification(E, y, 2, C=3.0, loss="hinge", weight=m)
    yield (
        "hinge without intercept",
        classification(E, y, 2, C=0.1, loss="hinge", intercept=False),
    )
    yield "squared", classification(E, y, 2, C=3.0, weight=m)
    yield "nu", classification(E, y, 2, nu=0.9 * min(y.mean(), 1 - y.mean()) * 2)
    yield "one class", one_class(E, 0.3, m)
    yield "one class, hard", one_class(kind(X + 1.0), 0.0)
    yield "tube", regression(E, t - 0.1, t + 0.1, C=2.0, weight=m)
    yield "squared tube", regression(E, t - 0.1, t + 0.1, C=2.0, loss="squared_")
    yield (
        "ends",
        regression(
            E, np.where(y, t, -np.inf), np.where(several, t + 0.1, np.inf), C=2.0
        ),
    )
    yield (
        "one end each",
        regression(E, np.where(y, t, -np.inf), np.where(y, np.inf, t + 0.1), C=2.0),
    )
    yield "nu tube", regression(E, t, t, C=2.0, nu=0.3)
    yield (
        "hard tube",
        regression(E, t - 0.2 - abs(t - X[:, 0]), t + 0.2 + abs(t - X[:, 0])),
    )
    yield "Crammer-Singer", classification(E, several, 3, C=3.0, loss="hinge", weight=m)
    yield "squared, classes", classification(E, several, 3, C=3.0, weight=m)
    yield "nu, classes", classification(E, several, 3, nu=0.6)
    yield "classes, no intercept", classification(E, several, 3, C=3.0, intercept=False)
    if kind is DenseExamples:
        yield "signs", classification(E, y, 2, C=3.0, loss="hinge", signs=signs)
        yield "signs, squared", classification(E, y, 2, C=3.0, signs=signs)
        yield "signs, tube", regression(E, t - 0.1, t + 0.1, C=2.0, signs=signs)
        squared = regression(
            E, t, t, C=2.0, loss="squared_", intercept=False, signs=signs
        )
        yield "signs, squared, no tube", squared
        yield "signs, nu tube", regression(E, t, t, C=2.0, nu=0.3, signs=signs)
    apart = np.eye(d)[0] * y[:, None] + 0.8 * np.eye(d)[-1] * several[:, None]
    yield "hard", classification(kind(X + apart), y, 2)
    yield "hard, overlap", classification(E, y, 2)
    apart = (
        np.eye(d)[0] * (several == 1)[:, None] + 0.8 * np.eye(d)[-1] * several[:, None]
    )
    yield "hard, classes", classification(kind(X + apart), several, 3)
    yield "hard, classes, overlap", classification(E, several, 3)


def degenerate(rng):
    X = rng.normal(size=(20, 3)) / 4
    y = labels(rng, 20, 2)
    X[:, 0] += 0.3 * y
    cases = {
        "duplicates": (np.vstack([X, X]), np.append(y, y)),
        "zero columns": (np.column_stack([X, np.zeros((20, 2))]), y),
        "equal columns": (np.column_stack([X, X]), y),
        "two examples": (
            np.array([[0.5, 0.1, 0.0], [-0.5, 0.2, 0.1]]),
            np.array([1, 0]),
        ),
        "one of a class": (X, (np.arange(20) == 3) * 1),
        "all equal": (np.full((6, 2), 0.3), np.arange(6) % 2),
    }
    for name, (Z, z) in cases.items():
        E, m = DenseExamples(Z), rng.uniform(1e-3, 1e3, len(z))
        yield f"hinge, {name}", classification(E, z, 2, C=3.0, loss="hinge", weight=m)
        yield f"squared, {name}", classification(E, z, 2, C=3.0, weight=m)
        yield f"hard, {name}", classification(E, z, 2)


def solved(method, qp, tol=TOL, start=None, max_iter=500):
    """By a method, or by those that are chosen for it."""
    found = Solution(qp, tol, max_iter)
    n_iter = sum(1 for _ in solve(found, start, method and [method]))
    assert n_iter == found.n_iter
    return found


def primal(qp, w, f):
    """The value; with the level of a game, or ends without slack, off by rounding."""
    if qp.hard and not qp.game:
        qp = replace(qp, target=qp.target - 1e-13)
    if qp.game:
        f = qp.best_f(qp.examples.scores(w), f) - 1e-13 * (
            np.arange(len(f)) == len(f) - 1
        )
    return qp.primal(w, f)


def check(qp, best, found, tol=TOL):
    """The values are those of w, f and alpha, which are feasible, and they enclose the optimum."""
    _, F, is_row = written_out(qp, qp.examples.points)
    D = qp.dual(found.alpha)
    nothing = 0.5e-14 if qp.examples.d is None else 0.5e-28  # a kernel's squares cancel
    assert found.status == "converged"
    assert found.gap <= tol or (qp.game and abs(best) <= 1e-9 and D + nothing >= 0.0)
    assert found.alpha.shape == qp.shape
    alpha = found.alpha.ravel()
    assert np.all(alpha >= 0.0)
    assert np.all(alpha[~is_row] == 0.0)
    size = max(alpha.sum(), 1e-300)
    upper = np.broadcast_to(qp.upper, qp.shape).ravel()
    assert np.all(alpha[is_row] <= upper[is_row] * (1 + 1e-12))
    if qp.cap is not None:
        assert np.all(found.alpha.sum(axis=1) <= qp.cap * (1 + 1e-12))
    np.testing.assert_allclose(F.T @ alpha, qp.g[: F.shape[1]], atol=1e-12 * size)
    if qp.game and 2.0 * D + 2.0 * nothing >= 0.0:  # nothing separates, whatever w is
        return
    P = primal(qp, found.w, found.f)
    off = 2.0 * tol * abs(best) + 1e-9
    assert -off <= P - best <= 2.0 * off
    assert -off <= best - D <= 2.0 * off


def encloses(qp, best, found):
    """The values are on either side of the optimum, wherever a solver has ended."""
    game = float(qp.game)
    P = qp.primal(
        found.w, found.f - 1e-13 * game * (np.arange(len(found.f)) == len(found.f) - 1)
    )
    assert qp.dual(qp.feasible(found.alpha)) <= best + 1e-9 * abs(best) + 1e-9
    assert best <= P + 1e-9 * abs(best) + 1e-9


@cache
def every_program(kind, size, seed, method=None):
    """By their names, for each method anew; without a size, those of data that are degenerate."""
    rng = np.random.default_rng(seed)
    return dict(programs(rng, *size, kind) if size else degenerate(rng))


@cache
def best_value(kind, size, seed, name):
    qp = every_program(kind, size, seed)[name]
    return optimum(qp, qp.examples.points)


def solves(method, qp):
    """Whether it is a method for this program, where features and kernels are the same to it."""
    free = qp.cap is None and np.isinf(qp.upper[qp.upper > 0.0]).all() and qp.by_margins
    return method is interior_point or (qp.signs is None and (method is newton or free))


SIZES = [(30, 3), (12, 20), (60, 8)]
SOFT = [
    "hinge", "hinge without intercept", "squared", "squared tube", "ends", "Crammer-Singer",
    "squared, classes", "classes, no intercept",
]  # fmt: skip
BY_SMO = [
    *SOFT, "nu", "one class", "one class, hard", "tube", "one end each", "nu tube", "hard",
    "hard, classes",
]  # fmt: skip
# no mean is subtracted
THROUGH_0 = {"hinge without intercept", "classes, no intercept"}
SOLVED = [
    *(
        (method, kind, size, name)
        for method in (interior_point, newton, active_set)
        for kind, size in [
            *product((DenseExamples, GivenKernel), SIZES),
            (DenseExamples, None),
        ]
        for name, qp in every_program(kind, size, 0).items()
        if solves(method, qp)
    ),
    *((smo, GivenKernel, size, name) for size in SIZES for name in BY_SMO),
    *((dual_cd, DenseExamples, size, name) for size in SIZES for name in SOFT),
    *(
        (dual_cd, SparseExamples, size, name)
        for size, name in product(SIZES, SOFT)
        if name not in THROUGH_0
    ),
]


@pytest.mark.parametrize(
    ("method", "kind", "size", "name"),
    SOLVED,
    ids=lambda v: str(getattr(v, "__name__", v)),
)
def test_every_program_is_solved(method, kind, size, name):
    tol = {smo: 1e-5, dual_cd: 1e-4}.get(method, TOL)
    for seed in range(3 if size else 1):
        qp = every_program(kind, size, seed, method)[name]
        best, found = best_value(kind, size, seed, name), solved(method, qp, tol)
        if method is smo and qp.game and abs(best) < 1e-8:  # float32 has no such margin
            encloses(qp, best, found)
        else:
            check(qp, best, found, tol)


KINDS = [DenseExamples, SparseExamples, GivenKernel]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_the_choice_solves_every_program(kind, size):
    for name, qp in every_program(kind, size, 0, solve).items():
        if kind is not SparseExamples or qp.intercept:
            found = solved(None, qp)
            encloses(qp, best_value(kind, size, 0, name), found)
            assert found.status == "converged", name


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("name", ["hard", "hard, classes", "hard, overlap", "tube"])
def test_coordinate_descent_encloses_what_it_hands_over(name, kind):
    for seed in range(5):
        qp = every_program(kind, (40, 5), seed)[name]
        encloses(qp, best_value(kind, (40, 5), seed, name), solved(dual_cd, qp, 1e-4))


@pytest.mark.parametrize(
    ("method", "kind", "name"),
    [
        *((dual_cd, DenseExamples, name) for name in ("hinge", "Crammer-Singer")),
        *((smo, GivenKernel, name) for name in ("hinge", "nu", "tube", "one class")),
        *((smo, GivenKernel, name) for name in ("Crammer-Singer", "hard")),
    ],
)
def test_methods_go_on_from_a_solution(method, kind, name):
    qp = every_program(kind, (300, 5), 0)[name]
    first = solved(method, qp, 1e-6 if method is dual_cd else 1e-5)
    again = solved(method, qp, 1e-4, start=first.alpha)
    assert again.status == "converged"
    assert again.n_iter < first.n_iter


@pytest.mark.parametrize("name", ["squared", "hard"])
@pytest.mark.parametrize("size", SIZES)
def test_pivoting_by_products_ends_what_is_nearly_solved(name, size):
    """Where the rows with alpha > 0 are known. From others, hard margins may cycle, and only the
    values hold."""
    for seed in range(3):
        qp = every_program(DenseExamples, size, seed)[name]
        best = best_value(DenseExamples, size, seed, name)
        alpha = solved(active_set, qp).alpha
        near = alpha * np.random.default_rng(seed).uniform(0.9, 1.1, alpha.shape)
        with np.errstate(over="ignore"):  # as in fits
            ended = solved(pivoting_by_products, qp, start=near)
            rough = solved(newton, qp, tol=0.02).alpha
            other = solved(pivoting_by_products, qp, start=rough)
        # of a value of 0, it may find no proof
        (encloses if abs(best) <= 1e-9 else check)(qp, best, ended)
        (check if name == "squared" else encloses)(qp, best, other)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-3, 0.1, 100.0])
def test_copies_and_zeros_of_all_classes(C, loss, k, rng):
    X = np.repeat(rng.integers(-1, 2, (15, 4)) / 4.0, 4, axis=0)
    X[::7] = 0.0
    y = labels(rng, 60, k)
    qp = classification(GivenKernel(X), y, k, C=C, loss=loss)
    best = optimum(qp, X)
    check(qp, best, solved(smo, qp))
    found = solved(dual_cd, replace(qp, examples=DenseExamples(X)), 1e-4)
    encloses(replace(qp, examples=DenseExamples(X)), best, found)
    assert C > 1.0 or found.status == "converged"


@pytest.mark.parametrize("shape", [(12, 30, 4), (12, 12, 20)], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "hard"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_stack_is_solved_as_its_problems_are(shape, loss, intercept, rng):
    B, n, d = shape
    X = rng.normal(size=shape) / np.sqrt(3 * d)
    y = np.where(rng.random((B, n)) < 0.4, 1.0, -1.0)
    y[:, 0], y[:, 1] = 1.0, -1.0
    X[:, :, 0] += y if loss == "hard" else 0.2 * y
    cost = rng.uniform(0.5, 20.0, (B, n))
    kw = {"hinge": {"upper": cost}, "squared_hinge": {"ridge": 0.5 / cost}, "hard": {}}[
        loss
    ]
    w, f, alpha, solved = stacked(X, y, **kw, intercept=intercept, tol=1e-9)
    for b in range(B):
        C = {"C": 1.0, "weight": cost[b]} if kw else {}
        examples = DenseExamples(X[b])
        qp = classification(examples, y[b] > 0, 2, loss=loss, intercept=intercept, **C)
        D, best = qp.dual(qp.feasible(alpha[b])), optimum(qp, X[b])
        if solved[b]:
            assert qp.gap(primal(qp, w[b][None], f[b]), D) <= 1e-6
            assert abs(D - best) <= 1e-6 * abs(best)
        else:  # nothing separates
            assert max(-best, -D) <= 1e-12
    assert not kw or solved.all()
    assert solved.sum() >= B / 2


@pytest.mark.parametrize("size", [0.01, 100.0])
def test_smo_works_in_any_cache(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=1500) > 0).astype(int)
    gram = Gram(Kernel("rbf", gamma=0.1), X, cache_size=size)
    found = solved(smo, classification(gram, y, 2, C=0.1, loss="hinge"), 1e-4)
    assert found.status == "converged"


def test_the_choice_goes_on_with_another_method():
    """Coordinate descent stalls on random labels of rank 5, and others begin at its alpha."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(210, 5)) @ rng.normal(size=(5, 400))
    examples = Design.of(
        sp.csr_array(X), X.mean(axis=0), radius=np.linalg.norm(X, axis=1).max()
    )
    qp = classification(examples, rng.integers(0, 2, 210), 2, C=1e4, loss="hinge")
    assert solved(None, qp, max_iter=300).status == "converged"
    assert solved(dual_cd, qp, max_iter=300).status == "stalled"
    found = solved(None, qp, max_iter=5)
    assert (found.n_iter, found.status) == (5, "max_iter")
