"""Mehrotra's predictor-corrector interior-point method, for all programs.

With the slack ``over = upper - alpha`` (of the sum over an example, if its rows share a cap) and
multipliers z and xi of ``alpha >= 0`` and ``over >= 0``, the KKT conditions are

    A w + F f + ridge alpha + xi = target + z      w = A'alpha,  F'alpha = g
    alpha z = 0,  over xi = 0

Each iteration solves the linearised conditions for products 0 (predictor), then for products mu
minus the second-order terms of the predictor (corrector), with one factorisation, see ``systems``.
(w, f, z, xi) and (alpha, over) have separate step lengths. Sign constraints on coefficients are
unit rows. A hard margin is solved as a game: if the classes overlap, it ends with A'alpha at
rounding level.

References
----------
S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM Journal on
Optimization, 1992.

M. P. Friedlander and D. Orban. A primal-dual regularized interior-point method for convex quadratic
programs. Mathematical Programming Computation, 2012.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array, Values
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.solution import INWARD, Solution
from marginsvm.solvers.systems import (
    ByRows,
    RowWeights,
    WrittenOut,
    even_weights,
    side_of,
)

EPS = float(np.finfo(np.float64).eps)
NOTHING = 1e-300  # instead of 0, as a divisor
# Least excess of the sum of upper bounds over the sum of alpha, relative: if alpha = upper is the
# only feasible point, there is no interior.
ROOM = 1e-9


class RowBounds(NamedTuple):
    """Bounds of alpha on the flat rows of one program or of a stack of programs.

    Attributes
    ----------
    target, ridge : ndarray of shape (..., n)
    upper : ndarray of shape (..., n_upper)
        Upper bounds on the sums of ``each`` rows, ``n_upper`` apart, from each of the first
        n_upper on, which may be 0.
    each : int
    game : bool
        Whether the objective is ``|w|^2 / 2 - rho``, with targets 0.
    """

    target: Array
    ridge: Array
    upper: Array
    each: int = 1
    game: bool = False

    @classmethod
    def of(cls, qp: QuadraticProgram) -> RowBounds:
        """Bounds of a program; sign constraints on coefficients are rows without upper bounds."""
        rows = qp.rows
        none = np.zeros(0 if qp.signs is None else np.count_nonzero(qp.signs))
        target, ridge = (joined(rows.flat(v), none) for v in (qp.target, qp.ridge))
        upper = qp.cap
        each = qp.k - 1
        if upper is None:
            upper = rows.flat(qp.upper)
            each = 1
        if not np.isfinite(upper).all():
            return cls(target, ridge, np.zeros(0), game=qp.game)
        if qp.level:
            mass = qp.level * qp.total
            halves = [np.ones(len(upper), bool)]
            if qp.intercept and each == 1:
                mass = 0.5 * mass
                halves = [rows.labels == side for side in (0, 1)]
            needed = [(1.0 + ROOM) * mass / upper[half].sum() for half in halves]
            upper = upper * max(1.0, *needed)
        return cls(target, ridge, upper, each, qp.game)

    def take(self, some: Array) -> RowBounds:
        """Bounds of some programs of a stack."""
        return self._replace(
            target=self.target[some], ridge=self.ridge[some], upper=self.upper[some]
        )

    def sums(self, alpha: Array) -> Array:
        """The sum of alpha under each upper bound."""
        if self.each == 1:
            return alpha[..., : self.upper.shape[-1]]
        return np.asarray(alpha.reshape(self.each, -1).sum(axis=0))

    def spread(self, xi: Array) -> Values:
        """The adjoint of ``sums``: to each row, the entry of its upper bound."""
        if not self.upper.size:
            return 0.0
        if self.each > 1:
            return np.concatenate([xi] * self.each)
        without = self.target.shape[-1] - xi.shape[-1]
        return joined(xi, np.zeros((*xi.shape[:-1], without))) if without else xi


def dot(x: Array, y: Array) -> Array:
    """Inner products, of shape (..., 1)."""
    return np.asarray(np.vecdot(x, y)[..., None])


def joined(first: Array, second: Array) -> Array:
    """Concatenation along the last axis."""
    return np.concatenate([first, second], axis=-1) if second.shape[-1] else first


class Iterate(NamedTuple):
    """An iterate: ``inside`` is (alpha, over) and ``duals`` (z, xi), all positive."""

    x: Array
    inside: Array
    duals: Array


INSIDE = 0.995  # fraction of the step to the boundary
# Primal regularisation, at most, and relative to 1 / alpha: it keeps the condition number of the
# system below 1 / eps.
PROXIMAL = 1e-14
RELATIVE = 1e-4


def mehrotra(side: WrittenOut | ByRows, bounds: RowBounds, at: Iterate) -> Iterate:
    """One iteration, for one program or a stack."""
    n = bounds.target.shape[-1]
    alpha = at.inside[..., :n]
    top = alpha.max(axis=-1, keepdims=True)
    proximal = np.minimum(PROXIMAL, RELATIVE / top)
    ratio = at.duals / at.inside
    h = bounds.ridge + ratio[..., :n] + proximal
    pull = ratio[..., n:]
    own = bounds.each == 1
    weights = RowWeights(h + bounds.spread(pull)) if own else RowWeights(h, pull)
    aim_of_rows = bounds.target - bounds.ridge * alpha
    values, fall, direction, (_, da) = side.begun(at.x, alpha, weights, aim_of_rows)

    def relative(da: Array) -> Array:
        """The change relative to inside."""
        return joined(da, -bounds.sums(da)) / at.inside

    products = at.inside * at.duals
    now = products.sum(axis=-1, keepdims=True)
    s = relative(da)
    t = -1.0 - s
    left = dot(products * (1.0 + longest(s) * s), 1.0 + longest(t) * t)
    aim = (left / now) ** 3 * now / products.shape[-1]
    # the change of duals at the same inside
    goal = aim / at.inside - at.duals * (1.0 + s * t)
    missed = aim_of_rows - values + at.duals[..., :n] - bounds.spread(at.duals[..., n:])
    right = goal[..., :n] + missed - bounds.spread(goal[..., n:])
    dx, da = direction(right, fall)
    s = relative(da)
    t = goal / at.duals - s
    r = INSIDE * longest(s)
    p = INSIDE * longest(t)
    if bounds.ridge.any():  # with a ridge, alpha enters the rows' residuals
        p = r = np.minimum(p, r)
    return Iterate(at.x + p * dx, at.inside * (1.0 + r * s), at.duals * (1.0 + p * t))


def objective_at(side: WrittenOut | ByRows, bounds: RowBounds, at: Iterate) -> Array:
    """The primal value; in a game, where it is negative, half of the squared margin."""
    value = 0.5 * side.square(at.x)
    if not bounds.game:
        n = bounds.target.shape[-1]
        alpha = at.inside[..., :n]
        xi = at.duals[..., n:]
        f = at.x[..., at.x.shape[-1] - len(side.g) :]
        value = value + dot(side.g, f) + dot(bounds.upper, xi)
        value = value + 0.5 * dot(bounds.ridge * alpha, alpha)
    return value


def longest(rate: Array) -> Array:
    """The step length at which an entry of ``1 + length rate`` first reaches 0; at most 1."""
    return 1.0 / np.maximum(-rate.min(axis=-1, keepdims=True), 1.0)


# part of its upper bound at which an alpha of a game starts, where q is above
BELOW = 0.9


def first(
    side: WrittenOut | ByRows,
    bounds: RowBounds,
    q: Array,
    total: float = 0.0,
    far: bool = False,
) -> Iterate:
    """Starting point: alpha proportional to q, as large as at w = 0, where each row has slack 1.

    An alpha that starts too small would shorten every step. w has the best primal value on its ray;
    with ``far`` it lies midway to ``A'alpha``, as small margins need a large norm. A game starts
    with z spread like the values of the rows at q.

    Parameters
    ----------
    side, bounds
    q : ndarray of shape (..., n)
        With sum 1.
    total : float
        Required sum of alpha; 0: none.
    far : bool
    """
    x = side.start(q)
    upper = bounds.upper
    sums = bounds.sums(q)
    if bounds.game:
        values = side.values(x)
        top = np.maximum(np.abs(values).max(axis=-1, keepdims=True), NOTHING)
        z = values - values.min(axis=-1, keepdims=True) + top
        # q is above bounds in some class: there alpha starts below them
        if np.any(sums >= upper):
            q = q * bounds.spread(np.where(sums < upper, 1.0, BELOW * upper / sums))
        return Iterate(
            x, joined(q, upper - bounds.sums(q)), joined(z, top + 0.0 * upper)
        )
    t = np.full((*q.shape[:-1], 1), total or float(q.shape[-1]))
    if not total and upper.size:
        t = 0.5 * (upper / sums).min(axis=-1, keepdims=True)
        t = np.minimum(upper.sum(axis=-1, keepdims=True), t)
    elif not total and bounds.ridge.any():
        inverse = np.divide(1.0, bounds.ridge, out=0.0 * q, where=bounds.ridge > 0.0)
        t = inverse.sum(axis=-1, keepdims=True)
    square = side.square(x) + dot(bounds.ridge * q, q)
    near = np.minimum(t, 1.0 / np.maximum(square, NOTHING))
    x = (np.sqrt(near * t) if far else near) * x
    alpha = t * q
    missing = bounds.target - side.values(x) - bounds.ridge * alpha
    size = np.abs(missing).mean(axis=-1, keepdims=True) if far else 0.0
    slack = np.maximum(missing, 0.0) + np.maximum(size, 1.0)
    xi = slack[..., : upper.shape[-1]]
    if bounds.each > 1:
        xi = slack.reshape(bounds.each, -1).max(axis=0)
    above = bounds.spread(xi)
    z = np.where(above > 0.0, above, slack) - missing
    return Iterate(x, joined(alpha, upper - bounds.sums(alpha)), joined(z, xi))


def complementary(side: WrittenOut | ByRows, bounds: RowBounds, at: Iterate) -> Array:
    """Alpha with each entry at its bound if it is closer to it than its multiplier is to 0."""
    n = bounds.target.shape[-1]
    upper = bounds.upper
    alpha = at.inside[..., :n]
    over = at.inside[..., n:]
    xi = at.duals[..., n:]
    # The margin of a game; else the mean value of rows, weighted by alpha, where residuals are 0.
    margin = side.square(at.x)
    if not bounds.game:
        values = bounds.target + at.duals[..., :n] - bounds.ridge * alpha
        margin = np.abs(dot(alpha, values - bounds.spread(xi)))
        margin = margin / alpha.sum(axis=-1, keepdims=True)
    unit = np.maximum(margin, at.duals.max(axis=-1, keepdims=True))
    most = alpha.max(axis=-1, keepdims=True)
    few = np.where(alpha * unit < at.duals[..., :n] * most, 0.0, alpha)
    if upper.size:
        sums = bounds.sums(few)
        full = (over * unit < xi * upper) & (sums > 0.0)
        factor = np.where(full, upper / np.where(full, sums, 1.0), 1.0)
        few = few * bounds.spread(factor)
    return few


STIFF = 1e20  # weights of the largest and, at least, of the smallest alpha
SLACK = 1e-60


def cancelling(
    side: WrittenOut | ByRows, bounds: RowBounds, at: Iterate, share: float
) -> Array:
    """An alpha near the point's with A'alpha = 0, if one exists: then the classes overlap.

    The projection is weighted by alpha itself, so that small entries change little. Entries below
    ``share`` of the largest are set to 0: rows of separable classes have alpha = 0 in the limit.
    """
    n = len(bounds.target)
    alpha = at.inside[:n]
    alpha = np.where(alpha > share * alpha.max(), alpha, 0.0)
    stiff = STIFF * (alpha / alpha.max()) ** 2
    try:
        direction = side.factor(RowWeights(1.0 / np.maximum(stiff, SLACK)))
    except np.linalg.LinAlgError:
        return alpha
    near = alpha + direction(np.zeros(n), side.fall(0.0 * at.x, alpha))[1]
    some = alpha > 0.0
    return np.where(some, near, 0.0) if near[some].min() > 0.0 else alpha


# An iteration is slow if the complementarity is above this part of what it was before. After more
# than MOST_SLOW in a row the method restarts farther from the boundary; there it stops after as
# many without any reduction.
SLOW = 0.9
MOST_SLOW = 10
# Complementarity of a game below which an alpha with A'alpha = 0 is sought, the parts of the
# largest alpha that count as 0 in it, and the part of the complementarity at which it is sought
# again.
THIN = 1e-6
SHARES = (0.0, 1e-7)
THINNER = 0.01
# Iterations spent on a sparse alpha once the full alpha proves the gap; if it does not, the part of
# the complementarity at which it is tried again.
MORE = 5
ENOUGH = 0.1


def interior_point(solution: Solution, start: Array | None) -> Iterator[None]:
    """Solve a program with few features or few rows; the method cannot be warm-started."""
    qp = solution.qp
    rows = qp.rows
    hard_tube = qp.hard and not qp.game
    inward = qp
    if hard_tube:  # targets are met only up to rounding
        unit = float(qp.largest_target)
        inward = replace(qp, target=qp.target + INWARD * unit)
    side = side_of(inward)
    bounds = RowBounds.of(inward)
    q = even_weights(inward)
    q = joined(q, np.full(len(bounds.target) - len(q), q.mean()))
    total = float(qp.level * qp.total)
    # The state: the iterate; whether it started far from the boundary; what was left before; the
    # complementarity at which A'alpha may vanish, and at which a point is offered again; and how
    # many iterations may still be spent on a sparse alpha.
    at = first(side, bounds, q, total)
    far = False
    before = np.inf
    thin = THIN
    enough = np.inf
    more = MORE
    while True:
        gap = float(at.inside @ at.duals)
        objective = float(objective_at(side, bounds, at)[0])
        # the relative gap of margins is half the relative gap of objectives
        estimate = min(1.0, gap / max(objective, NOTHING) / (1 + qp.by_margins))
        # relative for hard tubes, whose objective may grow without bound
        left = gap / max(abs(objective), NOTHING) if hard_tube else gap

        solution.progress(not left > (1.0 if far else SLOW) * before)
        stalled = solution.idle > MOST_SLOW
        if stalled and not (far or qp.game):
            at = first(side, bounds, q, total, far=True)
            far = True
            before = np.inf
            solution.idle = 0
            continue
        ended = stalled or not gap > EPS * (EPS if qp.game else objective)

        if qp.game and gap <= thin:
            thin = THINNER * gap
            offer_overlap(solution, side, bounds, at)
        if ended or (estimate <= solution.tol and gap <= enough):
            offer(solution, side, bounds, at)
            if solution.gap > solution.tol:
                every = rows.shaped(at.inside[: len(bounds.target)])
                D = solution.feasible(every)[1]
                if solution.gap_of(solution.P, D) <= solution.tol:
                    more -= 1
                else:
                    enough = ENOUGH * gap
                if ended or more == 0:
                    solution.dual(every)
        yield
        if ended or solution.ended:
            return
        before = left
        try:
            at = mehrotra(side, bounds, at)
        except np.linalg.LinAlgError:
            return


def offer(
    solution: Solution, side: WrittenOut | ByRows, bounds: RowBounds, at: Iterate
) -> None:
    """Offer alpha at its bounds, and w unless that alpha's, a sparse kernel expansion, suffices."""
    qp = solution.qp
    w, f = side.point(at.x, qp)
    solution.dual(qp.rows.shaped(complementary(side, bounds, at)))
    if qp.examples.is_kernel:
        solution.primal(qp.rmatvec(solution.alpha), f)
    if solution.gap > solution.tol:
        solution.primal(w, f)


def offer_overlap(
    solution: Solution, side: WrittenOut | ByRows, bounds: RowBounds, at: Iterate
) -> None:
    """Offer an alpha with A'alpha = 0, if there is one nearby."""
    shaped = solution.qp.rows.shaped
    shares = SHARES if isinstance(side, WrittenOut) else ()
    others = (cancelling(side, bounds, at, share) for share in shares)
    for alpha in chain([at.inside[: len(bounds.target)]], others):
        if solution.vanishes(solution.feasible(shaped(alpha))[1]):
            solution.dual(shaped(alpha))
            break


# part of the problems that are left, below which the solved ones are dropped
SHRINK = 0.9


@np.errstate(all="ignore")  # from problems without a solution, or at rounding level
def stacked(
    X: Array,
    y: Array,
    ridge: Array | None = None,
    upper: Array | None = None,
    *,
    intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 60,
) -> tuple[Array, Array, Array, Array]:
    """Solve many small problems of two classes at once, with one batched system per iteration.

    Parameters
    ----------
    X : ndarray of shape (B, n, d)
        Scaled to radius 1.
    y : ndarray of shape (B, n)
        1 and -1.
    ridge, upper : ndarray of shape (B, n) or None
        Ridge of the squared hinge loss, upper bounds of the hinge loss; both None: hard margins,
        as games.
    intercept : bool
    tol : float
        Relative gap of the objectives.
    max_iter : int

    Returns
    -------
    w, f, alpha : ndarray of shape (B, d), (B, n_free) and (B, n)
    solved : ndarray of bool, shape (B,)
    """
    B, n, d = X.shape
    game = ridge is None and upper is None
    A = y[..., None] * X
    columns = [y[..., None]] * intercept + [np.full((B, n, 1), -1.0)] * game
    F = np.concatenate([A[..., :0], *columns], axis=-1)
    g = np.array([0.0] * intercept + [-1.0] * game)
    side: WrittenOut | ByRows = ByRows(A @ A.swapaxes(1, 2), F, g)
    if d <= n:
        R = np.append(np.ones(d), 0.0 * g)
        side = WrittenOut(np.concatenate([A, F], axis=-1), R, np.append(np.zeros(d), g))
    upper = np.zeros((B, 0)) if upper is None else upper
    bounds = RowBounds(
        np.full((B, n), 0.0 if game else 1.0),
        np.zeros((B, n)) if ridge is None else ridge,
        upper,
        game=game,
    )
    whole = (side, bounds)
    prior = np.ones((B, n))
    if upper.size:
        prior = upper
    elif ridge is not None:
        prior = 1.0 / ridge
    for side_of_y in (y > 0, y < 0) if intercept else ():
        sums = np.where(side_of_y, prior, 0.0).sum(axis=1, keepdims=True)
        prior = np.where(side_of_y, prior / sums, prior)
    at = first(side, bounds, prior / prior.sum(axis=1, keepdims=True))
    # The state: problems that are not solved, and their iterates; those of all are kept in last.
    live = np.arange(B)
    solved = np.zeros(B, bool)
    last = Iterate(*(np.copy(part) for part in at))
    for _ in range(max_iter):
        gap = (at.inside * at.duals).sum(axis=1)
        alpha = at.inside[:, :n]
        values, fall = side.values_and_fall(at.x, alpha)
        off = values + bounds.ridge * alpha + bounds.spread(at.duals[:, n:])
        off = off - bounds.target - at.duals[:, :n]
        missed = np.abs(off).max(axis=1) * alpha.sum(axis=1)
        missed = missed + (fall**2).sum(axis=1)
        done = np.maximum(gap, missed) <= tol * objective_at(side, bounds, at)[:, 0]
        for kept, part in zip(last, at, strict=True):
            kept[live] = part
        solved[live] = done
        left = ~done & (gap > EPS**2)
        if not left.any():
            break
        if left.mean() < SHRINK:
            live = live[left]
            at = Iterate(*(part[left] for part in at))
            side = side.take(left)
            bounds = bounds.take(left)
        try:
            at = mehrotra(side, bounds, at)
        except np.linalg.LinAlgError:  # one singular system ends the whole batch
            break
    w, f = np.split(last.x, [last.x.shape[1] - len(g)], axis=1)
    if d > n:
        w = (A.swapaxes(1, 2) @ w[..., None])[..., 0]
    return w, f, complementary(*whole, last), solved
