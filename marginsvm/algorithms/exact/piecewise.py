"""The cost of slack over some rows, a piecewise quadratic: its minimum along lines.

Between changes of which weights are free and which are at their caps it is quadratic, so that
Newton's method ends exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.algorithms.exact.intercepts import ClassPairs
from marginsvm.certify.capped_offsets import CappedSlack, on_capped_simplex
from marginsvm.problem.intercepts import least_of_convex

# Steps of a line search at most; a bracket that is halved so often is down to one number.
_PIECEWISE_STEPS = 80
# Newton steps for the intercepts of more than two classes.
_INTERCEPT_STEPS = 30
# Change of a step length, relative to it, that is rounding.
_NO_STEP = 1e-15
# A sum of weights that cancel, relative to the sum of their sizes, that is rounding.
_CANCELLED = 1e-15
# Imbalance of weights, relative to their sum, that is rounding.
_CANCELLED_ALL = 1e-13


@dataclass(frozen=True)
class Pieces:
    """Some rows; each has a cap of its own.

    Attributes
    ----------
    raw : ndarray
        The weights that these rows would have without signs and caps.
    s : ndarray or float
        By how much a margin must fall for one more unit of weight.
    cap : ndarray or float
        Largest weights; a number: infinite.
    """

    raw: Array
    s: Array | float
    cap: Array | float

    def weights(self, raw: Array) -> tuple[Array, Array, Array]:
        """The weights nearest to some without signs and caps.

        Returns
        -------
        u : ndarray
        free : ndarray of bool
            Those that move with their margins.
        full : ndarray of bool
            Those at their caps.
        """
        u, free = np.maximum(raw, 0.0), raw > 0.0
        if isinstance(self.cap, float):
            return u, free, np.empty(0, bool)
        full = raw >= self.cap
        return np.minimum(u, self.cap), free & ~full, full

    def lowest(self, move: Array, t: float, slope: float = 0.0, square: float = 0.0) -> float:
        """Minimise ``slope t + square t^2/2`` plus the cost along a line, from a first guess.

        Newton's method, kept inside a bracket. Where caps make the cost linear, steps become longer
        until they pass the minimum.
        """
        rate = move / self.s
        bent, low, high, wide = move * rate, -np.inf, np.inf, 1.0
        last: tuple[Array, ...] = ()
        for _ in range(_PIECEWISE_STEPS):
            u, free, full = self.weights(self.raw - t * rate)
            force = float(np.vdot(move, u)) - slope - square * t
            same = last and not (free != last[0]).any() and not (full != last[1]).any()
            if same or abs(force) <= self._rounding(move, u, slope):
                break
            low, high = (t, high) if force > 0.0 else (low, t)
            curvature = square + self._along(bent, move, free, full)
            if not (curvature > 0.0 or full.any() or slope):  # the force is rounding
                break
            step, last = t + force / curvature if curvature > 0.0 else np.nan, (free, full)
            if not low < step < high:
                step, wide, last = t + float(np.copysign(wide, force)), 2.0 * wide, ()
                if np.isfinite(low) and np.isfinite(high):
                    step = 0.5 * (low + high)
            if abs(step - t) <= _NO_STEP * abs(t):
                break
            t = step
        return t

    def best_intercepts(self, classes: ClassPairs, start: Array) -> Array:
        """The intercepts of more than two classes with the least cost, by Newton's method."""

        def at(b: Array) -> tuple[Array, Array]:
            u, free, _ = self.weights(self.raw - classes.moves(b) / self.s)
            return -classes.imbalance(u), free / self.s

        size = float((self.raw * self.s).max(initial=0.0))
        flat = UNIT * np.sqrt(self.raw.size) * float(self.weights(self.raw)[0].sum())
        return least_of_convex(at, classes.curvature, start, size, flat, _INTERCEPT_STEPS)[0]

    def _rounding(self, move: Array, u: Array, slope: float) -> float:
        """Size of a force along a line that is rounding."""
        if isinstance(self.cap, float):  # each step leads to the end, or to other rows
            return 0.0
        return _CANCELLED * (float(np.vdot(np.abs(move), u)) + abs(slope))

    def _along(self, bent: Array, move: Array, free: Array, full: Array) -> float:
        """Second derivative along a line; ``bent`` is move squared, over s."""
        return float(np.vdot(bent, free))


@dataclass(frozen=True)
class SharedPieces(Pieces):
    """All rows of some examples, in a line for each of these, with a cap on their sum.

    Where an example's weights reach their cap, they move against each other: two free ones with
    the weight ``a_j a_l / sum(a)``, for a = 1/s of these.
    """

    def weights(self, raw: Array) -> tuple[Array, Array, Array]:
        """As for rows with caps of their own, but ``full`` is of examples."""
        cap = self._each(self.cap)
        u = cap * on_capped_simplex(raw / cap)
        return u, u > 0.0, np.maximum(raw, 0.0).sum(axis=1) > cap[:, 0]

    def best_offsets(self, codes: Array) -> Array:
        """The intercepts with the least cost, for the classes of the examples."""
        missing, cap = self.raw * self.s, self._each(self.cap)
        slack = CappedSlack.of(-missing, codes, cap[:, 0], free_edge=False)
        size, u = float(missing.max(initial=0.0)), self.weights(self.raw)[0]
        start = np.zeros(self.raw.shape[1] + 1)
        flat = _CANCELLED_ALL * float(u.sum())
        x, _ = slack.smooth_minimum(start, 0.0, self.s * cap, size, flat)
        return np.sqrt(2.0) * (x[:-1] - x[:-1].mean())

    def _each(self, values: Array | float) -> Array:
        """A column with the value of each example."""
        return np.broadcast_to(values, (len(self.raw), 1))

    def _along(self, bent: Array, move: Array, free: Array, full: Array) -> float:
        a, m = self._of_full(free, full), move[full]
        about = m - (np.sum(a * m, axis=1) / a.sum(axis=1))[:, None]
        about[np.abs(about) <= 4.0 * UNIT * np.abs(m)] = 0.0  # rounding
        return float(np.vdot(bent, free & ~full[:, None]) + np.vdot(a * about, about))

    def _of_full(self, free: Array, full: Array) -> Array:
        """1/s of the free rows of examples that have reached their caps."""
        return np.asarray(free[full] / self._each(self.s)[full])
