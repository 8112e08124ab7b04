"""Interior points: Mehrotra's predictor and corrector, for every row of the table.

With ``over = upper - alpha`` (of an example's sum, where several rows share a cap) as a variable of
its own, and multipliers z and xi of ``alpha >= 0`` and ``over >= 0``, the solution has

    A w + F f + ridge alpha + xi = target + z      w = A'alpha,  F'alpha = g
    alpha z = 0,  over xi = 0

Each iteration solves these for products that fall to 0 (predictor), and then for products that fall
to a common aim, less what the predictor's curvature adds (corrector); both by one factor of the
system, see ``systems``. (w, f, z, xi) and (alpha, over) have step lengths of their own. Signs of
coefficients are unit rows. Where nothing separates, a hard margin ends with A'alpha at rounding
level, as it is a game.

References
----------
S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM Journal on
Optimization, 1992.

M. P. Friedlander and D. Orban. A primal-dual regularized interior-point method for convex quadratic
programs. Mathematical Programming Computation, 2012.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.solution import Monitor, Progress, Solution
from marginsvm.solvers.systems import ByRows, Rows, Weights, WrittenOut, side_of

EPS = float(np.finfo(np.float64).eps)
INSIDE = 0.995  # share of the way to the boundary that a step goes
SLOW, MOST_SLOW = 0.9, 10  # iterations in a row that leave more of the complementarity: a stall
ROOM = 1e-9  # by which bounds sum to more than weights are to, at least
THIN = 1e-10  # value of a game from which on weights that cancel are looked for
MORE = 5  # iterations after which all weights prove the gap, if few do not


class Bounds(NamedTuple):
    """Rows in one flat order, of one program or of a stack, and upper bounds of the first ones.

    Attributes
    ----------
    target, ridge : ndarray of shape (..., n)
    upper : ndarray of shape (..., n_upper)
        Of ``each`` consecutive rows' sum; n_upper may be 0.
    each : int
    """

    target: Array
    ridge: Array
    upper: Array
    each: int = 1

    @classmethod
    def of(cls, rows: Rows) -> Bounds:
        """Of a program; signs of coefficients are rows without bounds."""
        qp = rows.qp
        n_signs = 0 if qp.signs is None else int(np.count_nonzero(qp.signs))
        target, ridge = (np.pad(rows.flat(v), (0, n_signs)) for v in (qp.target, qp.ridge))
        upper, each = (rows.flat(qp.upper), 1) if qp.cap is None else (qp.cap, qp.k - 1)
        if not np.isfinite(upper).all():
            return cls(target, ridge, np.zeros(0))
        if qp.level:  # where the sum leaves no other weights than the bounds, there is no inside
            mass, halves = qp.level * qp.total, [np.ones(len(upper), bool)]
            if qp.intercept and each == 1:
                mass, halves = 0.5 * mass, [qp.sign > 0, qp.sign < 0]
            upper = upper * max(1.0, *((1.0 + ROOM) * mass / upper[half].sum() for half in halves))
        return cls(target, ridge, upper, each)

    def sums(self, alpha: Array) -> Array:
        """What counts against each upper bound."""
        if self.each == 1:
            return alpha[..., : self.upper.shape[-1]]
        return np.asarray(alpha.reshape(-1, self.each).sum(axis=1))

    def spread(self, xi: Array) -> Array:
        """The adjoint of ``sums``: to each row, the number of its bound."""
        if self.each > 1:
            return np.repeat(xi, self.each)
        more = self.target.shape[-1] - xi.shape[-1]
        if more == 0:
            return xi
        return np.concatenate([xi, np.zeros((*xi.shape[:-1], more))], axis=-1)


class Point(NamedTuple):
    """An iterate: ``inside`` is (alpha, over) and ``duals`` (z, xi), all positive."""

    x: Array
    values: Array  # E x
    inside: Array
    duals: Array

    def moved(self, step: Point, p: Array, r: Array) -> Point:
        """``p`` along the primal step, ``r`` along that of the weights."""
        return Point(
            self.x + p * step.x,
            self.values + p * step.values,
            self.inside + r * step.inside,
            self.duals + p * step.duals,
        )


def mehrotra(side: WrittenOut | ByRows, bounds: Bounds, at: Point) -> Point:
    """One iteration, for one program or all of a stack."""
    n = bounds.target.shape[-1]
    alpha, z, xi = at.inside[..., :n], at.duals[..., :n], at.duals[..., n:]
    # primal regularization: sums of weights as large as 1 / eps would round away the norm
    proximal = np.minimum(1e-14, 1e-4 / alpha.max(axis=-1, keepdims=True))
    h, pull = bounds.ridge + z / alpha + proximal, xi / at.inside[..., n:]
    weights = Weights(h, pull) if bounds.each > 1 else Weights(h + bounds.spread(pull))
    direction = side.factor(weights)
    residual = at.values + bounds.ridge * alpha + bounds.spread(xi) - bounds.target - z
    fall = side.fall(at.x, alpha)

    def towards(change: Array) -> Point:
        """The step after which the equations hold, and products have changed, to first order."""
        goal = change / at.inside
        dx, move, da = direction(goal[..., :n] - residual - bounds.spread(goal[..., n:]), fall)
        inside = np.concatenate([da, -bounds.sums(da)], axis=-1)
        return Point(dx, move, inside, (change - at.duals * inside) / at.inside)

    def lengths(step: Point) -> tuple[Array, Array]:
        return longest(at.duals, step.duals), longest(at.inside, step.inside)

    products = at.inside * at.duals
    now = products.sum(axis=-1, keepdims=True)
    step = towards(-products)
    after = at.moved(step, *lengths(step))
    left = (after.inside * after.duals).sum(axis=-1, keepdims=True)
    aim = (left / now) ** 3 * now / products.shape[-1]
    step = towards(aim - products - step.inside * step.duals)
    p, r = lengths(step)
    return at.moved(step, INSIDE * p, INSIDE * r)


def longest(x: Array, dx: Array) -> Array:
    """The length of the step at which x first reaches 0; 1 at most."""
    return 1.0 / np.maximum((-dx / x).max(axis=-1, keepdims=True), 1.0)


def first(side: WrittenOut | ByRows, bounds: Bounds, rows: Rows) -> Point:
    """Well inside: balanced weights, as large as at w = 0, where each row has slack 1.

    Weights that begin too small block every step, as they have to grow; predictors that begin too
    long pass thousands of rows. A game begins with values as far apart as under equal weights.
    """
    qp, n = rows.qp, len(rows.at)
    prior = 1.0 / rows.flat(qp.ridge) if np.any(qp.ridge) else np.ones(n)
    if bounds.upper.size:
        prior = bounds.spread(bounds.upper)[:n]
    if qp.intercept:  # all pairs of classes, or both signs, have as much weight
        group = qp.sign > 0 if qp.codes is None else rows.ids % qp.k + qp.k * qp.codes[rows.at]
        prior = prior / np.bincount(group, prior)[group * 1]
    q = prior / prior.sum()
    q = np.append(q, np.full(len(bounds.target) - n, q.mean()))
    sums = bounds.sums(q)
    if qp.game and np.any(sums >= bounds.upper):  # of some classes; their weights are to grow
        q[:n] *= bounds.spread(np.where(sums < bounds.upper, 1.0, 0.9 * bounds.upper / sums))
    x = side.start(q, 1.0)
    if qp.game:
        values = side.values(x)
        z = float(np.abs(values).max()) or 1.0
        over = bounds.upper - bounds.sums(q)
        duals = np.append(values - values.min() + z, np.full(len(over), z))
        return Point(x, values, np.append(q, over), duals)
    t = float(len(q))
    if qp.level:
        t = float(qp.level * qp.total)
    elif bounds.upper.size:
        t = min(float(bounds.upper.sum()), 0.5 * float((bounds.upper / bounds.sums(q)).min()))
    elif np.any(bounds.ridge):
        t = float((1.0 / bounds.ridge[bounds.ridge > 0.0]).sum())
    square = float(side.square(x) + bounds.ridge @ q**2)
    near = min(t, 1.0 / max(square, 1e-300))  # the multiple of the weights that proves most
    x = near * x
    alpha, values = t * q, side.values(x)
    missing = bounds.target - values - bounds.ridge * alpha
    slack = np.maximum(missing, 0.0) + 1.0
    if not bounds.upper.size:
        return Point(x, values, alpha, slack - missing)
    xi = slack[:n].reshape(bounds.upper.size, -1).max(axis=1)
    z = np.append(bounds.spread(xi)[:n], slack[n:]) - missing
    return Point(x, values, np.append(alpha, bounds.upper - bounds.sums(alpha)), np.append(z, xi))


def at_bounds(at: Point, bounds: Bounds) -> Array:
    """The weights, of which those nearer to a bound than their multiplier to 0 are there."""
    n = len(bounds.target)
    alpha, z, over, xi = at.inside[:n], at.duals[:n], at.inside[n:], at.duals[n:]
    unit = max(abs(float(alpha @ at.values)) / float(alpha.sum()), float(at.duals.max()))
    few = np.where(alpha * unit < z * alpha.max(), 0.0, alpha)
    if over.size:
        sums = bounds.sums(few)
        full = (over * unit < xi * bounds.upper) & (sums > 0.0)
        factor = bounds.spread(np.where(full, bounds.upper / np.where(full, sums, 1.0), 1.0))
        few = few * np.append(factor[: len(few)], np.ones(n - len(factor)))
    return few


def cancelling(side: WrittenOut | ByRows, bounds: Bounds, at: Point, share: float) -> Array:
    """Weights near those of a point with A'alpha = 0, if there are some: nothing separates.

    Distances are measured by the weights themselves, so that small ones change little. Those below
    a share of the largest are left out: the rows of classes that can be separated lose theirs.
    """
    n = len(bounds.target)
    alpha = at.inside[:n]
    alpha = np.where(alpha > share * alpha.max(), alpha, 0.0)
    stiff = 1e20 * (alpha / alpha.max()) ** 2
    try:
        direction = side.factor(Weights(1.0 / np.maximum(stiff, 1e-60)))
    except np.linalg.LinAlgError:
        return alpha
    change = direction(np.zeros(n), side.fall(0.0 * at.x, alpha))[2]
    return np.where(alpha > 0.0, alpha + change, 0.0)


def interior_point(
    qp: QuadraticProgram, start: Array | None, tol: float, max_iter: int, monitor: Monitor
) -> Solution:
    """Solve a program of which one side, features or rows, is small.

    ``start`` is only looked at: if it is a solution, there are no iterations.
    """
    progress, rows = Progress(qp, tol, max_iter, monitor), Rows(qp)
    if start is not None:
        progress.dual(start)
        progress.primal(qp.rmatvec(progress.alpha), progress.f)
        if not progress.goes_on():
            return progress.solution()
    side, bounds = side_of(rows), Bounds.of(rows)
    at = first(side, bounds, rows)
    slow, more, enough, thin, before = 0, MORE, np.inf, THIN, np.inf
    while True:
        alpha = at.inside[: len(bounds.target)]
        gap, objective = float(at.inside @ at.duals), 0.5 * float(side.square(at.x))
        if not qp.game:  # what slack costs is in its level
            objective += 0.5 * float(bounds.ridge @ alpha**2) + qp.total * float(at.x[-1])
            objective += float(bounds.upper @ at.duals[len(alpha) :])
        # the relative gap of margins is half of that of objectives
        estimate = min(1.0, gap / max(objective, 1e-300) / (1 + qp.by_margins))
        slow = slow + 1 if gap > SLOW * before else 0
        ended = not gap > EPS * (EPS if qp.game else objective) or slow > MOST_SLOW
        if qp.game and gap <= thin:
            thin = 0.01 * gap
            for some in (alpha, *(cancelling(side, bounds, at, share) for share in (0.0, 1e-7))):
                if progress.vanishes(qp.dual(qp.feasible(rows.shaped(some)))):
                    progress.dual(rows.shaped(some))
                    break
        looked = (estimate <= progress.tol and gap <= enough) or ended
        if looked:
            w, f = side.point(at.x, qp)
            progress.dual(rows.shaped(at_bounds(at, bounds)))
            if qp.examples.d is None:  # a predictor of few examples, if that will do
                progress.primal(qp.rmatvec(progress.alpha), f)
            if progress.gap > progress.tol:
                progress.primal(w, f)
            if progress.gap > progress.tol:  # not by few weights
                every = rows.shaped(alpha)
                proved = progress.gap_of(progress.P, qp.dual(qp.feasible(every))) <= progress.tol
                more, enough = (more - 1, enough) if proved else (more, 0.1 * gap)
                if ended or more == 0:
                    progress.dual(every)
        looked = looked or progress.gap <= progress.tol or progress.nothing_separates
        if not progress.goes_on(progress.gap if looked else max(estimate, 1.01 * progress.tol)):
            break
        if ended:
            break
        before = gap
        try:
            at = mehrotra(side, bounds, at)
        except np.linalg.LinAlgError:
            break
    return progress.solution()
