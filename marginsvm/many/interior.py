"""Interior points on a stack of problems, all of them at once: for those that pivoting leaves.

The problems are those of :mod:`marginsvm.many.stacked_pivoting`. With margins m of all rows,

    own u + m - 1 = z - xi,    u z = 0,    over xi = 0,    over = cap - u

where u, z, over and xi are positive inside. Each step solves ``(K + W) dv + db = ...`` with
``W = own + z / u + xi / over`` twice: for a step that aims at 0, and for one that aims at what that
step would leave and makes up for its curvature (Mehrotra). There are no thresholds on the way, so
that it does not matter how many examples overlap. In the end, what is nearest to a bound is put
there, and pivoting from there takes the last digits.

References
----------
S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM Journal on
Optimization, 1992.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from marginsvm._typing import Array
from marginsvm.many.stacked_pivoting import (
    AT_ZERO,
    CAPPED,
    FREE,
    StackedProblems,
    StackedSolution,
    pivoted,
    solve,
    times,
)

# Share of the way to the boundary that a step goes at most.
_INSIDE = 0.995
# Steps at most; most problems take 10 to 20.
_INTERIOR_STEPS = 50
# Sum of what is not complementary, relative to that of the weights, and largest residual of
# margins, at which a problem is solved.
_SOLVED_PRODUCTS, _SOLVED_RESIDUAL = 1e-10, 1e-9
# Pull of the last pivoting towards the weights inside, in mean squares of the examples.
_LAST_PULL = 1e-9


@dataclass
class _Point:
    """An iterate: weights, what is left to both of their bounds, and margins short of the target.

    The arrays are of shape (B, n), and b of shape (B,). Without caps, xi is 0 and over is 1.
    """

    u: Array
    z: Array
    over: Array
    xi: Array
    b: Array

    def some(self, chosen: Array) -> _Point:
        return _Point(*(getattr(self, f.name)[chosen] for f in fields(self)))

    def put(self, where: Array, other: _Point) -> None:
        for f in fields(self):
            getattr(self, f.name)[where] = getattr(other, f.name)


@np.errstate(all="ignore")  # of problems without a solution, which stay unsolved
def inside(statement: StackedProblems) -> StackedSolution:
    """Solve all problems.

    Parameters
    ----------
    statement : Statement

    Returns
    -------
    Solution
        Of those that are not done, the last step.
    """
    last = _begun(statement)
    B = len(last.u)
    live, done, part, point = np.arange(B), np.zeros(B, bool), statement, last.some(np.arange(B))
    for _ in range(_INTERIOR_STEPS):
        residual = _residual(part, point)
        products = (point.u * point.z + point.over * point.xi).sum(axis=1)
        small = products <= _SOLVED_PRODUCTS * point.u.sum(axis=1)
        small &= np.abs(residual).max(axis=1) <= _SOLVED_RESIDUAL
        last.put(live, point)
        done[live] = small
        left = ~small & np.isfinite(products)
        if not left.any():
            break
        if not left.all():
            live, part = live[left], part.some(left)
            point, residual = point.some(left), residual[left]
        point = _advanced(part, point, residual)
    return _settled(statement, last, done)


def _begun(statement: StackedProblems) -> _Point:
    """Well inside: weights of about the size of a solution, or half of their caps."""
    y, cap = statement.y, statement.cap
    typical = 1.0 / (np.einsum("bii->bi", statement.K).mean(axis=1, keepdims=True) + statement.own)
    u, capped = np.minimum(typical, 0.5 * cap), np.isfinite(cap)
    over = np.where(capped, cap - u, 1.0)
    return _Point(u, np.ones_like(y), over, np.where(capped, 1.0, 0.0), np.zeros(len(y)))


def _residual(part: StackedProblems, at: _Point) -> Array:
    """What margins miss of their target."""
    m = part.y * (times(part.K, part.y * at.u) + at.b[:, None])
    return np.asarray(1.0 - m - part.own * at.u + at.z - at.xi)


def _advanced(part: StackedProblems, at: _Point, residual: Array) -> _Point:
    """One step: where Newton's would lead, and then there with what that shows."""
    B, n = at.u.shape
    M = part.K.copy()
    M.reshape(B, -1)[:, :: n + 1] += part.own + at.z / at.u + at.xi / at.over
    size = at.u.shape[1] * (1.0 + (at.xi > 0.0).any(axis=1))
    mu = (at.u * at.z + at.over * at.xi).sum(axis=1) / size
    ahead = _direction(part, M, at, residual, -at.u * at.z, -at.over * at.xi)
    far = _moved(at, ahead, _lengths(at, ahead))
    left = (far.u * far.z + far.over * far.xi).sum(axis=1) / size
    aim = (mu * np.minimum((left / mu) ** 3, 1.0))[:, None]
    of_zero = aim - at.u * at.z - ahead.u * ahead.z
    of_cap = np.where(at.xi > 0.0, aim - at.over * at.xi - ahead.over * ahead.xi, 0.0)
    step = _direction(part, M, at, residual, of_zero, of_cap)
    return _moved(at, step, _INSIDE * _lengths(at, step))


def _direction(
    part: StackedProblems, M: Array, at: _Point, residual: Array, of_zero: Array, of_cap: Array
) -> _Point:
    """The step after which products change by these amounts, and nothing is missed."""
    rhs = np.empty((*at.u.shape, 2))
    rhs[:, :, 0] = part.y * (residual + of_zero / at.u - of_cap / at.over)
    rhs[:, :, 1] = 1.0
    both = solve(M, rhs)
    dv, db = both[:, :, 0], np.zeros(len(M))
    if part.balanced:
        db = (dv.sum(axis=1) + (part.y * at.u).sum(axis=1)) / both[:, :, 1].sum(axis=1)
        dv = dv - db[:, None] * both[:, :, 1]
    du = part.y * dv
    capped = at.xi > 0.0
    over = np.where(capped, -du, 0.0)
    xi = np.where(capped, (of_cap - at.xi * over) / at.over, 0.0)
    return _Point(du, (of_zero - at.z * du) / at.u, over, xi, db)


def _lengths(at: _Point, step: _Point) -> Array:
    """How far each problem may go until something reaches 0; at most 1."""
    parts = ((at.u, step.u), (at.z, step.z), (at.over, step.over), (at.xi, step.xi))
    ends = [np.where(dx < 0.0, -x / np.where(dx < 0.0, dx, 1.0), np.inf) for x, dx in parts]
    return np.minimum(np.min([end.min(axis=1) for end in ends], axis=0), 1.0)


def _moved(at: _Point, step: _Point, length: Array) -> _Point:
    t = length[:, None]
    over = np.maximum(at.over + t * step.over, 0.0)
    return _Point(
        at.u + t * step.u, at.z + t * step.z, over, at.xi + t * step.xi, at.b + length * step.b
    )


def _settled(statement: StackedProblems, last: _Point, done: Array) -> StackedSolution:
    """The solutions, with what is at a bound exactly there."""
    most = np.maximum(last.u.max(axis=1, keepdims=True), 1e-300)
    place = np.full(last.u.shape, FREE, np.int8)
    place[last.u / most < last.z] = AT_ZERO
    place[(last.xi > 0.0) & (last.over / most < last.xi)] = CAPPED
    u = np.where(place == CAPPED, statement.cap, np.where(place == AT_ZERO, 0.0, last.u))
    found = StackedSolution(statement.y * u, last.b, place, done)
    size = np.einsum("bii->b", statement.K) / last.u.shape[1]
    sharper = pivoted(statement, found, _LAST_PULL * size)
    better = np.flatnonzero(done & sharper.done)
    found.put(better, sharper.some(better))
    return found
