"""Coordinate ascent on sparse rows, of two classes and of many, against dense oracles."""

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls

from marginsvm.algorithms.compiled.sparse_classes import (
    SparseClassWeights,
    ascend_classes,
    balance_penalty,
    lead_classes,
)
from marginsvm.algorithms.compiled.sparse_rows import SparseRowWeights, coordinate_ascent
from marginsvm.algorithms.exact.ascent import Ascent, _best_multiple
from marginsvm.algorithms.exact.candidates import at_best_scale
from marginsvm.kernel_matrix import LinearAdapter, make_rows

N, D, K = 30, 12, 4


class Problem:
    """Examples of K classes, some of zeros, one class with a single example."""

    def __init__(self, rng, n=N, C=1.0, dtype=np.float64, index=np.int32, hinge=False):
        X = sp.random(n, D, 0.4, format="csr", random_state=rng, data_rvs=rng.standard_normal)
        keep = (np.arange(n) % 7 > 0).astype(float)
        self.X = sp.csr_matrix(sp.diags_array(keep) @ X, dtype=dtype)
        self.X.eliminate_zeros()
        self.arrays = self.X.indptr.astype(index), self.X.indices.astype(index), self.X.data
        self.codes = np.append(rng.integers(K - 1, size=n - 1), K - 1)
        self.dense = self.X.toarray().astype(np.float64)
        self.squares = (self.dense**2).sum(axis=1)
        costs = C * rng.choice([0.5, 1.0, 2.0], n)
        self.slack = np.zeros(n) if hinge else 1.0 / costs
        self.caps = costs if hinge else np.full(n, np.inf)
        self.other = self.codes[:, None] != np.arange(K)

    def start(self, dtype=np.float64):
        return SparseClassWeights.start(*self.X.shape, K, dtype)

    def ascend(self, at, epochs, penalty=0.0):
        return ascend_classes(
            *self.arrays, self.codes, self.squares, self.slack, self.caps, penalty, at, epochs
        )

    def balanced(self, epochs, dtype=np.float64):
        penalty = balance_penalty(self.squares, self.slack, self.caps)
        return self.ascend(self.start(dtype), epochs, penalty)

    def coefficients(self, u):
        """Of the examples in the image: (n, k)."""
        V = -u.astype(np.float64)
        V[~self.other] = u.sum(axis=1, dtype=np.float64)
        return V

    def image(self, u):
        return self.dense.T @ self.coefficients(u)

    def dual(self, u):
        u = u.astype(np.float64)
        square = (self.image(u) ** 2).sum() + (self.slack[:, None] * u**2).sum()
        return u.sum() - 0.5 * square

    def primal(self, W, b):
        F = self.dense @ W + b
        xi = np.maximum(1.0 - F[~self.other][:, None] + F, 0.0) * self.other
        if not self.slack.any():
            return 0.5 * (W**2).sum() + self.caps @ xi.max(axis=1)
        return 0.5 * ((W**2).sum() + (xi**2 / self.slack[:, None]).sum())

    def rows(self):
        """The rows x (e_y - e_j), those of an example side by side, as vectors of d k numbers."""
        differences = np.eye(K)[self.codes][:, None] - np.eye(K)
        return np.einsum("id,ijk->ijdk", self.dense, differences)[self.other].reshape(-1, D * K)


def optimal_weights(A, s):
    """``min u'(A A' + diag(s))u/2 - 1'u, u >= 0``, by non-negative least squares."""
    L = np.linalg.cholesky(A @ A.T + np.diag(s))
    return nnls(L.T, np.linalg.solve(L, np.ones(len(s))))[0]


@pytest.mark.parametrize("C", [0.01, 1.0, 5.0])
def test_weights_converge_to_the_optimum(rng, C):
    problem = Problem(rng, C=C)
    at = problem.ascend(problem.start(), 16384)
    expected = np.zeros((N, K))
    slack = np.repeat(problem.slack, K - 1)
    expected[problem.other] = optimal_weights(problem.rows(), slack)
    assert_allclose(at.u, expected, rtol=1e-6, atol=1e-7 * expected.max())
    assert_allclose(at.W, problem.image(at.u), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_the_dual_rises_in_every_epoch(rng, C):
    problem = Problem(rng, C=C)
    at, values = problem.start(), [0.0]
    for _ in range(20):
        at = problem.ascend(at, 1)
        values.append(problem.dual(at.u))
    assert (np.diff(values) >= -1e-12 * values[-1]).all()
    assert at.epochs == 20
    assert not at.b.any()


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_the_intercept_is_not_penalised(rng, C):
    """Both bounds meet, and no other method goes below."""
    problem = Problem(rng, C=C)
    at = problem.balanced(4096)
    upper, lower = problem.primal(at.W, at.b), problem.dual(at.u)
    off = problem.coefficients(at.u).sum(axis=0)
    assert_allclose(off, at.balance, atol=1e-9 * at.u.sum())
    assert np.abs(off).max() < 1e-8 * at.u.sum()
    assert_allclose(upper, lower, rtol=1e-7)

    def objective(v):
        return problem.primal(v[: D * K].reshape(D, K), v[D * K :])

    found = minimize(objective, np.zeros((D + 1) * K), method="L-BFGS-B").fun
    assert lower <= found * (1.0 + 1e-7)
    assert_allclose(found, upper, rtol=1e-3)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("balanced", [False, True])
def test_weights_below_caps_come_to_the_least_hinge_loss(rng, C, balanced):
    """Both bounds meet, and weights keep their caps; examples of zeros have weight to balance."""
    problem = Problem(rng, C=C, hinge=True)
    at = problem.balanced(4096) if balanced else problem.ascend(problem.start(), 4096)
    assert (at.u >= 0.0).all()
    assert (at.u.sum(axis=1) <= problem.caps * (1.0 + 1e-12)).all()
    upper, lower = problem.primal(at.W, at.b), problem.dual(at.u)
    if not balanced:  # whatever an example of zeros costs, no weight of it has an image
        lower += problem.caps[problem.squares == 0.0].sum()
    assert_allclose(upper, lower, rtol=1e-6)


def test_few_epochs_come_close(rng):
    problem = Problem(rng, n=200, C=0.1)
    at = problem.balanced(32)
    assert problem.primal(at.W, at.b) - problem.dual(at.u) < 1e-3 * problem.dual(at.u)


@pytest.mark.parametrize(("dtype", "index"), [(np.float32, np.int32), (np.float64, np.int64)])
def test_epochs_go_on_from_where_others_ended(rng, dtype, index):
    problem = Problem(rng, dtype=dtype, index=index)
    whole = problem.balanced(7)
    at, penalty = problem.start(), balance_penalty(problem.squares, problem.slack, problem.caps)
    for epochs in (2, 1, 4):
        at = problem.ascend(at, epochs, penalty)
    for one, other in zip(whole, at, strict=True):
        assert_array_equal(one, other)


def test_weights_in_float32_keep_their_image(rng):
    problem = Problem(rng)
    at = problem.balanced(50, np.float32)
    assert at.u.dtype == np.float32
    assert_allclose(at.W, problem.image(at.u), atol=1e-12 * at.u.sum())
    assert_allclose(at.balance, problem.coefficients(at.u).sum(axis=0), atol=1e-12 * at.u.sum())


def test_a_weight_of_two_is_two_copies(rng):
    problem = Problem(rng)
    twice = Problem(rng)
    once, again = np.arange(N), np.arange(0, N, 3)
    index = np.concatenate([once, again])
    X = problem.X[index]
    twice.X, twice.dense, twice.arrays = X, X.toarray(), (X.indptr, X.indices, X.data)
    twice.codes, twice.squares = problem.codes[index], problem.squares[index]
    twice.slack, twice.other = np.ones(len(index)), problem.other[index]
    twice.caps = problem.caps[index]
    problem.slack = np.where(once % 3 == 0, 0.5, 1.0)
    W, of_copies = problem.ascend(problem.start(), 2048).W, twice.ascend(twice.start(), 2048).W
    assert_allclose(W, of_copies, atol=1e-7 * np.abs(W).max())


@pytest.mark.parametrize("units", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("C", [1e-3, 1e6])
def test_no_margin_is_too_soft_or_too_hard(rng, C, units):
    """With C R^2 far from 1, it may be slow; it does not diverge."""
    problem = Problem(rng)
    problem.arrays = (*problem.arrays[:2], problem.X.data * units)
    problem.dense, problem.squares = problem.dense * units, problem.squares * units**2
    problem.slack *= problem.squares.max() / C
    at = problem.balanced(100)
    assert all(np.isfinite(array).all() for array in (at.u, at.W, at.b, at.balance))
    assert (at.u >= 0).all()
    assert not at.u[~problem.other].any()
    assert np.abs(at.balance).max() < 0.2 * at.u.sum()
    assert problem.dual(at.u) > 0


def test_an_example_of_zeros_with_a_hard_margin(rng):
    problem = Problem(rng)
    problem.slack = np.zeros(N)
    at = problem.ascend(problem.start(), 5)
    assert not at.u[problem.squares == 0].any()
    assert np.isfinite(at.W).all()


# Two classes.


def ascend_rows(problem, at, epochs, balanced, tol=0.0):
    y = np.where(problem.codes % 2, 1.0, -1.0)
    penalty = 0.02 * problem.squares.mean() * balanced
    curvature = problem.squares + problem.slack + penalty
    return coordinate_ascent(
        *problem.arrays, y, curvature, problem.slack, penalty, at, epochs, tol
    ), y  # fmt: skip


def test_two_classes_converge_to_the_optimum(rng):
    problem = Problem(rng)
    at, y = ascend_rows(problem, SparseRowWeights.start(N, D), 3000, False, 1e-12)
    expected = optimal_weights(problem.dense * y[:, None], problem.slack)
    assert at.settled
    assert_allclose(at.u, expected, atol=1e-9 * expected.max())
    assert_allclose(at.w, (at.u * y) @ problem.dense, atol=1e-9)


def test_two_classes_are_balanced(rng):
    problem = Problem(rng)
    at, y = ascend_rows(problem, SparseRowWeights.start(N, D), 3000, True, 1e-10)
    margins = y * (problem.dense @ at.w + at.b)
    xi = np.maximum(1.0 - margins, 0.0)
    assert abs(at.u @ y) < 1e-8 * at.u.sum()
    assert_allclose(at.u, xi / problem.slack, atol=1e-7 * at.u.max())


@pytest.mark.parametrize("balanced", [False, True])
def test_two_classes_go_on_from_where_they_ended(rng, balanced):
    problem = Problem(rng, n=200)
    whole, _ = ascend_rows(problem, SparseRowWeights.start(200, D), 9, balanced)
    at = SparseRowWeights.start(200, D)
    for epochs in (1, 3, 5):
        at, _ = ascend_rows(problem, at, epochs, balanced)
    for one, other in zip(whole, at, strict=True):
        assert_array_equal(one, other)


def test_every_eighth_epoch_looks_at_all_classes(rng):
    problem = Problem(rng)
    at = problem.ascend(problem.start()._replace(epochs=16), 7)
    assert not at.u.any()
    assert problem.ascend(at, 1).u.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_go_on_keep_their_image_and_price(dtype, rng):
    problem = Problem(rng)
    penalty = balance_penalty(problem.squares, problem.slack, problem.caps)
    before = problem.ascend(problem.start(dtype), 2, penalty)
    at = problem.ascend(deepcopy(before), 3, penalty)
    then = deepcopy(at)
    lead_classes(*problem.arrays, problem.codes, penalty, at, before, 0.7)
    wanted = np.maximum(then.u + 0.7 * (then.u - before.u), 0.0)
    assert (at.u != then.u).any()
    assert (then.u[wanted == 0.0] > 0.0).any()
    assert_allclose(at.u, wanted, rtol=1e-5, atol=1e-6)
    V = problem.coefficients(at.u)
    assert_allclose(at.W, problem.image(at.u), atol=1e-9)
    assert_allclose(at.balance, V.sum(axis=0), atol=1e-9)
    old, last = (state.b - penalty * state.balance for state in (before, then))
    assert_allclose(at.b - penalty * at.balance, last + 0.7 * (last - old), atol=1e-9)


def ascent_with(gaps):
    at = SparseClassWeights.start(N, D, K)._replace(epochs=8 * (len(gaps) - 1))
    return Ascent(gaps=tuple(gaps), ascent=at)


@pytest.mark.parametrize("rounds", [5, 8, 12])
def test_how_many_epochs_are_left_is_told_by_the_odds(rounds):
    odds = 1e3 * np.exp(-np.arange(rounds + 1.0))
    ascent = ascent_with(odds / (1.0 + odds))
    wanted = 8.0 * np.log(odds[-1] / 1e-8)
    assert_allclose(ascent._epochs_left(1e-8, steady=True), wanted)
    assert ascent._epochs_left(1e-8, steady=False) > 1.2 * wanted


def test_of_a_gap_that_is_still_large_as_many_epochs_are_left_again():
    for gap in (1.0, 0.95):
        assert ascent_with([1.0, *[gap] * 4])._epochs_left(1e-8, steady=True) == 32.0
    assert ascent_with([1.0] * 5)._epochs_left(1e-8, steady=False) == np.inf
    assert ascent_with([1.0, 0.5, 0.5, 0.5, 0.5])._epochs_left(1e-8, steady=True) == np.inf


def steep_problem(rng):
    """A soft margin next to a separator: slack costs much, and predictors are long."""
    X = sp.random_array((300, 120), density=0.1, format="csr", rng=rng)
    y = np.append(np.arange(5), rng.integers(5, size=295))
    return LinearAdapter(X, make_rows(y, 5, balanced=True), C=1e5)


def test_slow_ascent_ends_rounds_at_the_best_multiple_of_its_weights(rng):
    problem, now = steep_problem(rng), Ascent()
    for _ in range(6):
        now, _ = now.advance(problem, 1e-6)
    assert now.pace > 2
    slack = 2.0 * problem.radius**2 * problem.slack[:, 0]
    assert _best_multiple(now.ascent, slack) == pytest.approx(1.0, abs=1e-5)
    known = [Ascent()]
    for _ in range(6):
        known.append(known[-1].advance(problem, 1e-6)[0])
    lower, upper = np.transpose([state.best for state in known[1:]])
    assert np.all(np.diff(lower) >= 0.0)
    assert np.all(np.diff(upper) <= 0.0)


def test_predictors_are_judged_at_their_best_scale(rng):
    problem = steep_problem(rng)
    w = problem.combine(
        rng.random(problem.rows.shape) * (problem.rows.codes[:, None] != np.arange(5))
    )
    margins = problem.rows.margins(problem.scores(w))
    square = problem.inner(w, w)

    def cost(t):
        return 0.5 * t * t * square + 0.5 * np.sum(
            np.maximum(1.0 - t * margins, 0.0) ** 2 / problem.slack
        )

    scaled, of_scaled = at_best_scale(problem, w, margins)
    t = float(np.linalg.norm(scaled.image) / np.linalg.norm(w.image))
    np.testing.assert_allclose(of_scaled, t * margins)
    assert cost(t) < min(cost(0.99 * t), cost(1.01 * t), cost(1.0))
