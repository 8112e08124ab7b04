"""A point inside: weights, what is left to their ends, and Mehrotra's step to the next one.

References
----------
S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM Journal on
Optimization 1992.

J. Gondzio. Multiple centrality correctors in a primal-dual method for linear programming.
Computational Optimization and Applications 1996.

M. P. Friedlander and D. Orban. A primal-dual regularized interior-point method for convex quadratic
programs. Mathematical Programming Computation 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.row_weights import RowWeights
from marginsvm.algorithms.exact.interior.sides import Factored, FactoredRows, Side
from marginsvm.algorithms.exact.interior.statement import Statement

# Share of the way to the boundary that a step goes at most.
_INSIDE = 0.995
# Power of the share of complementarity that the first step leaves: what the second aims at.
_CENTRING = 3
# Corrections of a step at most; the length from which on it needs none; how much longer each aims
# at; and the products that it leaves as they are, in parts of the aim. Two save a fifth of the
# steps, more hardly any.
_CORRECTIONS, _LONG_STEP, _LONGER, _PRODUCTS_LEFT_ALONE = 2, 0.5, 0.3, (0.1, 10.0)
# Inverse weight that each row has besides (radii squared, at most), which keeps moves of u short:
# sums of weights as large as 1 / eps would round away the 1 of the norm beside them. A move as long
# as the largest weight changes a margin by no more than the second number.
_PROXIMAL, _SHIFT = 1e-14, 1e-4
# Margin by which the first point is inside, where there is no other measure of it.
_FIRST_INSIDE = 1.0
# Squared length (in radii) that is 0.
_ZERO_SQUARE = 1e-300
# Share of the caps that the first weights have at most.
_BELOW = 0.5


class _Step(NamedTuple):
    """A direction for everything that a point holds."""

    x: Array
    margins: Array
    inside: Array
    duals: Array


@dataclass(frozen=True)
class Point:
    """An iterate, strictly inside: all of ``inside`` and ``duals`` are positive.

    Attributes
    ----------
    x : ndarray
        Predictor and free unknowns, as the side has them.
    margins : ndarray of shape (n,)
        ``E x``.
    inside : ndarray of shape (n,) or (n + n_examples,)
        Weights u and, where there are caps, what is left to them, ``over``. The difference of both
        would lose its digits.
    duals : ndarray of the same shape
        By how much margins, slack included, are above the target, z; then slack that is not
        squared, xi. Each is 0 in the end, where its partner in ``inside`` is not.
    """

    x: Array
    margins: Array
    inside: Array
    duals: Array

    @property
    def u(self) -> Array:
        """Weights."""
        return self.inside[: self.margins.size]

    @property
    def z(self) -> Array:
        """By how much margins, slack included, are above the target."""
        return self.duals[: self.margins.size]

    @property
    def over(self) -> Array:
        """What is left to the caps, of shape (n_caps,) or (0,)."""
        return self.inside[self.margins.size :]

    @property
    def xi(self) -> Array:
        """Slack that is not squared, of the same shape."""
        return self.duals[self.margins.size :]

    @classmethod
    def first(cls, side: Side, statement: Statement, q: Array, far: bool = False) -> Point:
        """Begin far inside, with as much weight as there is at w = 0, where each row has slack 1.

        Weights that begin too small block every step: they are the ones that have to grow.

        Parameters
        ----------
        side : Side
        statement : Statement
        q : ndarray of shape (n,)
            Balanced weights that sum to 1.
        far : bool, default=False
            Whether the predictor is to be long, midway to that of the weights themselves. Nearer to
            0, the first steps do more; but where margins are thin, a predictor that has to grow by
            a factor of 1e4 passes thousands of rows, each of which shortens a step.
        """
        if statement.game:
            return cls._first_of_game(side, statement, q)
        x, caps = side.begun(q), statement.caps
        if statement.total:
            t = statement.total
        elif caps.size:
            t = min(float(caps.sum()), _BELOW * float((caps / statement.sums(q)).min()))
        elif statement.own.any():
            t = float((1.0 / statement.own[statement.own > 0.0]).sum())
        else:
            t = float(len(q))
        square = side.squared(x) + float(np.vdot(statement.own * q, q))
        near = min(t, 1.0 / max(square, _ZERO_SQUARE))  # the multiple that proves most
        x = (float(np.sqrt(near * t)) if far else near) * x
        u, margins = t * q, side.margins(x)
        missing = statement.target - margins - statement.own * u
        inside = max(_FIRST_INSIDE, float(np.abs(missing).mean())) if far else _FIRST_INSIDE
        alone = np.maximum(missing, 0.0) + inside
        if not caps.size:
            return cls(x, margins, u, alone - missing)
        n = statement.sides * len(statement.row_ids)
        slack = alone[:n].reshape(caps.size, -1).max(axis=1)
        spread = np.append(statement.spread(slack)[:n], alone[n:])
        over = caps - statement.sums(u)
        return cls(x, margins, np.append(u, over), np.append(spread - missing, slack))

    @classmethod
    def _first_of_game(cls, side: Side, statement: Statement, q: Array) -> Point:
        """Margins are as far from each other as rows under equal weights are."""
        x = side.begun(q)
        margins = side.margins(x)
        first = float(np.abs(margins).max()) or _FIRST_INSIDE
        over = statement.caps - statement.sums(q)
        duals = np.append(margins - margins.min() + first, np.full(over.size, first))
        return cls(x, margins, np.append(q, over), duals)

    def at_its_ends(self, statement: Statement) -> Array:
        """Weights of which those nearer to 0 than their margins are to the target are 0.

        And those nearer to their caps than to having no slack are at their caps.
        """
        u, caps = self.u, statement.caps
        unit = max(float(np.abs(u @ self.margins) / u.sum()), float(self.z.max()))
        unit = max(unit, float(self.xi.max(initial=0.0)))
        short = np.where(u * unit < self.z * u.max(), 0.0, u)
        if not caps.size:
            return short
        full, sums = self.over * unit < self.xi * caps, statement.sums(short)
        more = np.divide(caps, sums, out=np.ones(len(sums)), where=full & (sums > 0.0))
        return short * statement.spread(more, 1.0)

    def complementarity(self) -> float:
        """``u z + over xi``, which is the gap of the objective once the equations hold."""
        return float(np.vdot(self.inside, self.duals))

    def refreshed(self, side: Side) -> Point:
        """The same, without what longer vectors before have left of their rounding."""
        return replace(self, margins=side.margins(self.x))

    def next(self, side: Side, statement: Statement) -> Point:
        """To the boundary, and from what that shows, along the central path."""
        system = _System.of(self, side, statement)
        now, products = self.complementarity(), self.inside * self.duals
        ahead = system.step(-products)
        left = self._moved(ahead, *self._reach(ahead)).complementarity()
        aim = (left / now) ** _CENTRING * now / products.size
        change = aim - products - ahead.inside * ahead.duals
        ahead = system.step(change)
        p, r = self._reach(ahead)
        for _ in range(_CORRECTIONS):
            if min(p, r) >= _LONG_STEP:
                break
            change = change + self._centred(ahead, aim, p, r)
            other = system.step(change)
            q, s = self._reach(other)
            if min(q, s) <= min(p, r):
                break
            ahead, p, r = other, q, s
        return self._moved(ahead, _INSIDE * p, _INSIDE * r)

    def _centred(self, step: _Step, aim: float, p: float, r: float) -> Array:
        """What brings the products of a longer step nearer to the aim, as a change of them."""
        p, r = min(1.0, p + _LONGER), min(1.0, r + _LONGER)
        low, high = (part * aim for part in _PRODUCTS_LEFT_ALONE)
        product = (self.inside + r * step.inside) * (self.duals + p * step.duals)
        return np.asarray(np.maximum(np.clip(product, low, high) - product, -high))

    def _reach(self, step: _Step) -> tuple[float, float]:
        """How far x and how far u may go along a step."""
        return _longest(self.duals, step.duals), _longest(self.inside, step.inside)

    def _moved(self, step: _Step, p: float, r: float) -> Point:
        return Point(
            self.x + p * step.x,
            self.margins + p * step.margins,
            self.inside + r * step.inside,
            self.duals + p * step.duals,
        )


@dataclass(frozen=True)
class _System:
    """Newton's equations at a point."""

    point: Point
    statement: Statement
    weights: RowWeights
    factored: Factored | FactoredRows
    rest: Array
    fall: Array

    @classmethod
    def of(cls, point: Point, side: Side, statement: Statement) -> _System:
        """The equations that hold in the end, and what is missing from them here."""
        u, xi = point.u, point.xi
        proximal = min(_PROXIMAL, _SHIFT / float(u.max()))
        weights = RowWeights(statement, statement.own + point.z / u + proximal, xi / point.over)
        rest = point.margins + statement.own * u + statement.spread(xi)
        rest = rest - statement.target - point.z
        factored = side.factored(weights)
        return cls(point, statement, weights, factored, rest, side.fall(point.x, u))

    def step(self, change: Array) -> _Step:
        """To where the equations hold, and products change by these, to first order."""
        point, n = self.point, self.rest.size
        goal = change / point.inside
        g = goal[:n] - self.rest - self.statement.spread(goal[n:])
        dx, move = self.factored.direction(g, self.fall)
        du, sums = self.weights.times(g - move)
        inside = np.append(du, -sums) if sums.size else du
        return _Step(dx, move, inside, (change - point.duals * inside) / point.inside)


def _longest(x: Array, dx: Array) -> float:
    """The step at which x first reaches 0; 1 at most."""
    fastest = float((-dx / x).max(initial=0.0))
    return 1.0 / max(fastest, 1.0)
