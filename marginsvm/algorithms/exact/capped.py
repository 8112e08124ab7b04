"""The penalty of the hinge loss on the way to it: capped slack, with multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.rows import Rows

# Steps of a line search at most; a bracket that is halved so often is down to one number.
_SEARCH_STEPS = 80
# Change of a step length, relative to it, that is rounding; and of a force, to the sum it is of.
_ROUNDED = 1e-15


@dataclass(frozen=True)
class CappedSlack:
    """``max_u u (1 - m) - s (u - v)^2 / 2`` over ``0 <= u <= caps``, summed over all rows.

    For multipliers v that are the weights of the solution, it has the solution of the hinge loss,
    ``max_u u (1 - m)``, whatever s is.

    Attributes
    ----------
    s : ndarray of shape rows.shape
        Squares of extra coordinates, by which the penalty is rounded off.
    caps : ndarray of shape rows.shape
        Largest weights of the rows.
    multipliers : ndarray of shape rows.shape
    """

    s: Array
    caps: Array
    multipliers: Array

    def weights(self, margins: Array) -> Array:
        """The data player's weights."""
        return np.clip(self.multipliers + (1.0 - margins) / self.s, 0.0, self.caps)

    def curvature(self, u: Array) -> Array:
        """Second derivatives in the margins: those of rows with weights that are free to move."""
        return ((u > 0.0) & (u < self.caps)) / self.s

    def line_search(
        self, margins: Array, move: Array, slope: float = 0.0, square: float = 0.0
    ) -> float:
        """Minimise ``slope t + square t^2/2`` plus the penalty of ``margins + t move``."""
        return self._lowest(margins, move, 1.0, slope, square)

    def best_intercept(self, rows: Rows, margins: Array) -> Array:
        """Change of the scores' intercept that minimises the penalty, and balances."""
        y = rows.moves(np.ones(rows.score_shape))
        return np.asarray(self._lowest(margins, y, 0.0))

    def _lowest(
        self, margins: Array, move: Array, t: float, slope: float = 0.0, square: float = 0.0
    ) -> float:
        """Newton's method from ``t``, kept inside a bracket.

        A step that leaves the free and the capped rows as they are is the last: between such
        changes the function is quadratic. Where it is linear, the bracket is halved.
        """
        some = move != 0.0
        move, s, caps = move[some], self.s[some], self.caps[some]
        xi = (1.0 - margins[some]) / s + self.multipliers[some]  # the weights, if they had no caps
        scaled = move / s
        squares = move * scaled
        low, high = -np.inf, np.inf
        last = np.empty(0)
        for _ in range(_SEARCH_STEPS):
            u = np.clip(xi - t * scaled, 0.0, caps)
            capped, free = u >= caps, (u > 0.0) & (u < caps)
            force, now = float(move @ u) - slope - square * t, capped + 2.0 * free
            if np.array_equal(now, last) or abs(force) <= _ROUNDED * float(np.abs(move) @ u):
                break
            low, high = (t, high) if force > 0.0 else (low, t)
            curvature = square + float(squares @ free)
            step = t + force / curvature if curvature > 0.0 else np.nan
            inside = low < step < high
            if not inside and not (np.isfinite(low) and np.isfinite(high)):
                ends = np.concatenate([xi / scaled, (xi - caps) / scaled])
                low, high = max(low, float(ends.min())), min(high, float(ends.max()))
            step, last = (step, now) if inside else (0.5 * (low + high), last[:0])
            if abs(step - t) <= _ROUNDED * abs(t):
                break
            t = step
        return t
