"""Losses with a proximal term: best responses, generalised derivatives, exact line searches.

    cost_i(r) = max over 0 <= a <= upper_i of a r - ridge_i a^2/2 - rho_i (a - v_i)^2/2

is piecewise quadratic in ``r = target - A w - F f``; its maximiser a is the best response. With
rho = 0 it is the loss itself (hinge: ridge = 0; squared hinge: upper = inf). With rho > 0 it is the
term of the augmented Lagrangian with multipliers v. Several classes: an example has no row for its
own class, and if its rows share a cap, the best response is the projection onto
``{a >= 0, sum a <= cap}``.

References
----------
R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research, 1976.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.systems import curvature_of_f

EPS = float(np.finfo(np.float64).eps)
SEARCH_STEPS, SETTLE_STEPS = 100, 50
BALANCED = 1e-14  # rounding of F'alpha - g, relative to the sum of alpha


class Loss:
    """The loss of a program, with a proximal term.

    Attributes
    ----------
    s : ndarray
        ``ridge + rho``: the inverse slope of the best response on free rows.
    """

    def __init__(
        self, qp: QuadraticProgram, rho: Array | float = 0.0, v: Array | float = 0.0
    ) -> None:
        self.qp, self.rho, self.v = qp, np.asarray(rho), np.asarray(v)
        self.light = replace(qp, examples=Count(qp.examples.n))  # without X, for f and alpha only
        self.s = np.asarray(qp.ridge + self.rho)
        self.target = np.array(np.broadcast_to(qp.target + self.rho * self.v, qp.shape))
        if qp.codes is not None:
            self.target[np.arange(len(qp.codes)), qp.codes] = -np.inf

    def raw(self, m: Array) -> Array:
        """Unconstrained maximisers a, for values m of the rows."""
        return (self.target - m) / self.s

    def best_response(self, m: Array) -> Array:
        """Maximisers a within their bounds, for values m of the rows."""
        return within(self.raw(m), self.qp.upper, self.qp.cap)

    def value(self, m: Array, alpha: Array) -> float:
        """The sum of the losses of all rows."""
        qp, more = self.qp, alpha - self.v
        value = float(np.vdot(alpha, qp.target - m)) - 0.5 * float(np.sum(qp.ridge * alpha * alpha))
        return value - 0.5 * float(np.sum(self.rho * more * more))

    def derivative(self, m: Array, alpha: Array) -> tuple[Array, Array | None]:
        """Generalised derivative of the best response with respect to -m.

        Returns
        -------
        own : ndarray
            1/s for free rows, 0 for the others.
        linked : ndarray or None
            The free rows of an example at its cap keep their sum: the quadratic form has the terms
            ``linked_j linked_l (v_j - v_l)^2`` for pairs of them, and own is 0.
        """
        if self.qp.cap is None:
            return np.where((alpha > 0.0) & (alpha < self.qp.upper), 1.0 / self.s, 0.0), None
        own, full = np.where(alpha > 0.0, 1.0 / self.s, 0.0), is_full(self.raw(m), self.qp.cap)
        linked = np.where(full[:, None], own, 0.0)
        linked /= np.sqrt(np.maximum(linked.sum(axis=1), 1e-300))[:, None]
        own[full] = 0.0
        return own, linked if full.any() else None

    def search(
        self,
        m: Array,
        move: Array,
        slope: float = 0.0,
        square: float = 0.0,
        t: float = 1.0,
        low: float = 0.0,
    ) -> float:
        """The t >= low that minimises ``slope t + square t^2/2`` plus the loss at ``m + t move``.

        Newton's method inside a bracket. With ``low = 0``, rows inactive for all t are left out.
        """
        raw, rate, upper, cap = self.raw(m), move / self.s, self.qp.upper, self.qp.cap
        if low == 0.0:
            reached = (raw > 0.0) | (rate < 0.0)
            reached = reached if cap is None else reached.any(axis=1)
            if 2 * np.count_nonzero(reached) < reached.size:
                raw, rate, move = raw[reached], rate[reached], move[reached]
                cap = None if cap is None else cap[reached]
                upper = upper[reached] if np.shape(upper) == reached.shape else upper
        high, wide = np.inf, max(1.0, abs(t))
        for _ in range(SEARCH_STEPS):
            at = raw - t * rate
            alpha = within(at, upper, cap)
            force = float(np.vdot(move, alpha)) - slope - square * t
            size = abs(slope) + abs(square * t) + float(np.vdot(np.abs(move), alpha))
            if abs(force) <= EPS * size:
                break
            low, high = (t, high) if force > 0.0 else (low, t)
            curvature = square + _bend(at, alpha, rate, move, upper, cap)
            new = t + force / curvature if curvature > 0.0 else np.nan
            if not low < new < high:
                if np.isfinite(low) and np.isfinite(high):
                    new = 0.5 * (low + high)
                else:
                    new, wide = t + float(np.copysign(wide, force)), 4.0 * wide
            if abs(new - t) <= EPS * abs(t):
                break
            t = new
        return t

    def settle(self, m: Array, f: Array, reach: float = np.inf) -> tuple[Array, Array]:
        """The minimising f for fixed scores, where ``F'alpha = g``, and the values m at it.

        Rows with alpha = 0 unless m decreases by ``reach`` are left out if f moves m by less.
        """
        qp = self.qp
        if qp.n_free == 0:
            return f, m
        near, df = self.target - m > -reach, None
        some = np.flatnonzero(near if qp.codes is None else near.any(axis=1))
        if 2 * len(some) < len(m):
            parts = (v[some] if v.ndim and len(v) == len(m) else v for v in (self.rho, self.v))
            df = Loss(self.light.restrict(some), *parts)._settled(m[some])
        if df is None or 2.0 * np.abs(df).max() > reach:
            df = self._settled(m)
        return f + df, m + self.light.values(np.zeros((qp.examples.n, qp.k)), df)

    def _settled(self, m: Array) -> Array:
        """The change of f, by Newton's method."""
        qp, f = self.light, np.zeros(self.qp.n_free)
        S = np.zeros((qp.examples.n, qp.k))
        if qp.n_free == 1:
            move = qp.values(S, np.ones(1))
            return f + self.search(m, move, float(qp.g[0]), t=0.0, low=-np.inf)
        for _ in range(SETTLE_STEPS):
            alpha = self.best_response(m)
            force = qp.balance(alpha) - qp.g
            if np.abs(force).max() <= BALANCED * float(alpha.sum()):
                break
            H = curvature_of_f(qp, *self.derivative(m, alpha))
            # without free rows, the step is bounded by the largest change of an alpha
            damping = EPS * H.trace() + 1e-12 * float(np.mean(1.0 / self.s))
            df = np.linalg.solve(H + damping * np.eye(len(H)), force)
            move = qp.values(S, df)
            t = self.search(m, move, float(qp.g @ df))
            f, m = f + t * df, m + t * move
        return f


class Count(NamedTuple):
    """Stands for examples where only their number is needed."""

    n: int

    def take(self, index: Array) -> Count:
        """Some of them."""
        return Count(len(index))


def within(raw: Array, upper: Array, cap: Array | None) -> Array:
    """Projection of alpha onto its bounds."""
    if cap is None:
        return np.minimum(np.maximum(raw, 0.0), upper)
    alpha = np.maximum(raw, 0.0)
    full = np.flatnonzero(is_full(raw, cap))
    if full.size:
        order = -np.sort(-raw[full], axis=1)
        excess = np.cumsum(order, axis=1) - cap[full, None]
        count = np.arange(1, raw.shape[1] + 1)
        last = np.maximum(np.count_nonzero(order * count > excess, axis=1), 1)
        level = np.take_along_axis(excess, last[:, None] - 1, axis=1) / last[:, None]
        alpha[full] = np.maximum(raw[full] - level, 0.0)
    return alpha


def is_full(raw: Array, cap: Array) -> Array:
    """Whether the alpha of an example reach their cap."""
    return np.asarray(np.maximum(raw, 0.0).sum(axis=1) > cap)


def _bend(
    raw: Array, alpha: Array, rate: Array, move: Array, upper: Array, cap: Array | None
) -> float:
    """Second derivative of the loss along a line."""
    free = alpha > 0.0 if cap is not None else (alpha > 0.0) & (alpha < upper)
    if cap is None:
        return float(np.vdot(np.where(free, rate, 0.0), move))
    rate = np.where(free, rate, 0.0)
    full = is_full(raw, cap)
    # at a cap, less the mean over the example's free rows, which all have the same s
    mean = (free * move).sum(axis=1) / np.maximum(free.sum(axis=1), 1)
    return float(np.vdot(rate, move - np.where(full, mean, 0.0)[:, None]))
