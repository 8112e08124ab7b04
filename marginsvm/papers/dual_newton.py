"""Newton's method on a working set of the dual, by which coordinate ascent ends.

Coordinate ascent soon finds which rows carry weight, but where rows are nearly dependent it takes
thousands of epochs to find how much. For given signs of the weights, the dual is smooth, and its
second derivatives on few rows are a small matrix: one solution of its quadratic model, by block
pivoting, replaces those epochs. A step ends where the dual objective is largest along it, and what
it finds is certified like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import brentq

from marginsvm._typing import Array
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.problem.adapter import KernelMatrixAdapter, Vector
from marginsvm.problem.rows import intervals_of

_LEAST_ADDED = 100  # a working set gains as many rows as it has, or this many
_MOST_ROWS = 2500  # rows of a working set, whose matrices take 200 MB
# Work is counted in steps along a coordinate, about as measured with dozens of features. It does
# not depend on their number, or on how many are zero, so that a fit takes the same steps for all
# forms of the same data. The matrix of m rows takes m^2 / 10, pivoting m^3 / 10,000, calls from
# Python 500 in an epoch and five times that in a step of Newton's.
_PRODUCT, _PIVOTING, _CALLS, _MORE_CALLS = 10.0, 10_000.0, 500.0, 5.0
_POWERS = 6.0  # how much longer a step along a coordinate takes if it computes powers
# Curvature that is added, relative to the mean, at first, at least and at most. It moves the
# solution towards the weights at hand, so that the model is trusted near them; and where rows are
# dependent, it makes the model definite. It falls or grows tenfold as the model is right or not.
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-12, 1e3
_TRIES = 8  # of pivoting, with tenfold damping each, in one step
_FLAT_SLOPE = 1e-3  # slope at the end of a step, relative to that at its beginning, of a maximum
# Error of a shorter step, relative to it; and the shortest one.
_PRECISE, _SHORTEST_STEP = 1e-4, 1e-12
# Exchanges that may pass without fewer infeasible rows: pivoting may go round in circles.
_TURNS_WITHOUT_PROGRESS = 3
_INFEASIBLE = 1e-10  # share of the largest end, or weight, that is taken for rounding


@dataclass(frozen=True)
class Newton:
    """When the next step is due, and how far its model is trusted: a value.

    Attributes
    ----------
    damping : float
        Curvature that is added, relative to the mean (dimensionless).
    spent : float
        Work of coordinate ascent since the last step of this method.
    """

    damping: float = _FIRST_DAMPING
    spent: float = 0.0

    def after(self, problem: KernelMatrixAdapter, steps: int) -> Newton:
        """The same after so many steps along coordinates."""
        work = _CALLS + steps * (1.0 if problem.layout().q == 2.0 else _POWERS)
        return replace(self, spent=self.spent + work)

    def is_due(self, m: int) -> bool:
        """Whether a step on m rows would take no more time than was spent since the last one."""
        work = m**2 / _PRODUCT + m**3 / _PIVOTING + _MORE_CALLS * _CALLS
        return m <= _MOST_ROWS and self.spent >= work

    def step(self, problem: KernelMatrixAdapter, v: Vector, chosen: Array) -> tuple[Vector, Newton]:
        """Maximise the dual objective between v and the maximum of its model on some rows."""
        intervals = intervals_of(problem.rows)
        low, high = intervals.low.ravel()[chosen], intervals.high.ravel()[chosen]
        weights, H = v.coef.ravel()[chosen], problem.second_derivatives(v, chosen)
        pull = H @ weights - problem.margins(v).ravel()[chosen]  # also of the rows left out
        damping, diagonal = self.damping, H.diagonal().copy()
        for _ in range(_TRIES):
            added = damping * diagonal.mean()
            np.fill_diagonal(H, diagonal + added)
            found = pivoted(H, low, high, pull + added * weights, weights)
            if found is not None:
                break
            damping *= 10.0
        else:
            return v, Newton(min(damping, _MOST_DAMPING))
        coef = v.coef.ravel().copy()
        coef[chosen] = found
        d = problem.combine(coef) - v
        t = _best_step(problem, v, d)
        damping *= 0.1 if t > 0.5 else 10.0 if t < 0.1 else 1.0
        newton = Newton(min(max(damping, _LEAST_DAMPING), _MOST_DAMPING))
        return (v + t * d if t > 0.0 else v), newton


def working_set(problem: KernelMatrixAdapter, v: Vector) -> Array:
    """The support, and as many others, or ``_LEAST_ADDED``, whose scores are farthest outside."""
    flat, ends = problem.rows.flat_indices(), intervals_of(problem.rows)
    score, weight = problem.margins(v).ravel()[flat], v.coef.ravel()[flat]
    inside = np.minimum(score - ends.low.ravel()[flat], ends.high.ravel()[flat] - score)
    n = int(np.count_nonzero(weight))
    size = min(len(flat), n + max(_LEAST_ADDED, n))
    chosen = np.argpartition(np.where(weight != 0.0, -np.inf, inside), size - 1)[:size]
    return np.sort(flat[chosen])


def pivoted(H: Array, low: Array, high: Array, pull: Array, near: Array) -> Array | None:
    """Weights b that maximise ``gain(b) + pull'b - b'Hb/2``, or None where that does not settle.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Definite.
    low, high : ndarray of shape (m,)
        Ends of intervals: the gain is that of :class:`~marginsvm.rows.Intervals`.
    pull : ndarray of shape (m,)
    near : ndarray of shape (m,)
        Weights whose signs are the first guess.
    """
    point, ends = low == high, np.abs(np.append(low, high))
    small = _INFEASIBLE * float(ends[np.isfinite(ends)].max(initial=0.0))
    side, fewest, left = np.sign(near), len(H) + 1, _TURNS_WITHOUT_PROGRESS
    while left >= 0:
        let_interrupts_through()  # of thousands of rows, a factor takes a second
        face, b = np.flatnonzero(side), np.zeros(len(H))
        if len(face):
            load = (np.where(side > 0, low, high) + pull)[face]
            _, b[face], failed = dposv(H[face[:, None], face], load)
            if failed:
                return None
        score = H @ b - pull
        to = np.where(score < low - small, 1.0, np.where(score > high + small, -1.0, 0.0))
        gone = ~point & (b * side < -_INFEASIBLE * np.abs(b).max(initial=0.0))
        wanted = np.where(side == 0.0, to, np.where(gone, 0.0, side))
        changed = int(np.count_nonzero(wanted != side))
        if changed == 0:
            return np.where(point | (b * side > 0.0), b, 0.0)
        left = _TURNS_WITHOUT_PROGRESS if changed < fewest else left - 1
        side, fewest = wanted, min(changed, fewest)
    return None


def _best_step(problem: KernelMatrixAdapter, v: Vector, d: Vector) -> float:
    """Where in [0, 1] the dual objective, which is concave, is largest along d; 1 if it is near.

    The full step makes weights exactly zero.
    """
    intervals = intervals_of(problem.rows)

    def slope(t: float) -> float:
        """Derivative from within [0, 1]."""
        weights = v.coef + t * d.coef
        side = np.where(weights != 0.0, weights, -d.coef if t > 0.0 else d.coef)
        gain = np.where(d.coef == 0.0, 0.0, np.where(side > 0.0, intervals.low, intervals.high))
        return float((gain * d.coef).sum()) - problem.dot(d, v + t * d)

    first, last = slope(0.0), slope(1.0)
    if first > 0.0 and last < -_FLAT_SLOPE * first:
        return float(brentq(slope, 0.0, 1.0, xtol=_SHORTEST_STEP, rtol=_PRECISE))
    return 1.0 if last >= -_FLAT_SLOPE * first else 0.0
