"""The response with Euclidean smoothing: a projection onto the (balanced) simplex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix.responses.balancing import balanced, differences, imbalance
from marginsvm.kernel_matrix.responses.response import Weights
from marginsvm.rows import Rows

_MAX_ITER = 100  # steps of Newton's method, which takes about as many as active sets change
_MAX_HALVINGS = 34  # of a step, which then is 6e-11 of its length and moves nothing
_ARMIJO = 1e-4  # of what the gradient promises (dimensionless), for a step to be taken: Armijo
_VALUE_ROUNDING = 1e-14  # of the function's value, relative to it: differences below are rounding
_REGULARISATION = 1e-13  # of the sum of the weights' densities; keeps the Hessian invertible


@dataclass(frozen=True, eq=False)
class Euclidean:
    """``argmin <margins, q> + mu/2 sum((q - centre)^2 / prior)`` over the (balanced) simplex.

    Ramdas's ``p_mu^q``, whose mu is n times this one: with n rows of equal prior, the
    projection of ``centre - margins / (n mu)``.

    Parameters
    ----------
    centre : ndarray of shape rows.shape or None
        Weights that the response stays close to; None: the prior.
    """

    centre: Array | None = None

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        density = rows.prior / mu
        t = (rows.prior if self.centre is None else self.centre) / density - margins
        offset = _offsets(rows, t, density)
        q = density * np.maximum(t - rows.expand(offset[0] + differences(offset[1:])), 0.0)
        q = balanced(rows, q)
        smallest = rows.min_margin(rows.group_min(margins))
        return Weights(q / q.sum(), 1.0, smallest, offset[1:], -smallest, 1.0)

    def __call__(
        self, rows: Rows, margins: Array, mu: float = 1.0, centre: Array | None = None
    ) -> Weights:
        """``Euclidean(centre).respond``."""
        response = self if centre is None else Euclidean(centre)
        return response.respond(rows, margins, mu)


def _offsets(rows: Rows, t: Array, density: float | Array) -> Array:
    """Offset of all rows, and class offsets, at which ``density * max(t - offset, 0)`` is balanced.

    One group of rows, or two, have a threshold each, found by sorting.
    """
    if not rows.balanced:
        return np.array([_threshold(t.ravel(), np.broadcast_to(density, t.shape).ravel(), 1.0), 0])
    if t.ndim > 1:
        return _newton(rows, t, density)
    density = np.broadcast_to(density, t.shape)
    low, high = (_threshold(t[rows.codes == c], density[rows.codes == c], 0.5) for c in (0, 1))
    return np.array([0.5 * (low + high), 0.25 * (low - high), 0.25 * (high - low)])


def _threshold(t: Array, density: Array, mass: float) -> float:
    """The T at which ``density * max(t - T, 0)`` has this mass."""
    order = np.argsort(-t)
    t, density = t[order], density[order]
    return float(np.max((np.cumsum(density * t) - mass) / np.cumsum(density)))


def _newton(rows: Rows, t: Array, density: float | Array) -> Array:
    """``_offsets`` for more classes: they minimise a piecewise quadratic, convex function.

    Newton's method is exact once it knows which weights are positive; it starts where they come to
    1 or more: where none is too small or, with weights of many magnitudes, where they would come to
    1 with none left out. If margins have overflowed, all offsets are NaN.
    """
    low, weight = rows.group_min(-t), np.broadcast_to(density, t.shape)
    offsets = rows.best_offsets(low)
    left, real = t - rows.expand(differences(offsets)), np.isfinite(t)
    of_all = (weight[real] @ left[real] - 1.0) / weight[real].sum()
    first = max(-rows.min_margin(low) - np.max(1.0 / density), of_all)
    x = np.append(first, offsets)

    def value(x: Array) -> tuple[Array, float]:
        gap = np.maximum(t - rows.expand(x[0] + differences(x[1:])), 0.0)
        return gap, float(x[0] + 0.5 * np.sum(density * gap**2))

    gap, height = value(x)
    for _ in range(_MAX_ITER):
        if not (np.isfinite(height) and gap.any()):
            return np.full_like(x, np.nan)
        mass, active = rows.group_sum(density * gap), rows.group_sum(density * (gap > 0))
        gradient = np.append(1.0 - mass.sum(), imbalance(mass))
        step = np.linalg.solve(_hessian(active), -gradient)
        scale, before, old = 1.0, height + _VALUE_ROUNDING * abs(height), gap
        slope = _ARMIJO * float(gradient @ step)
        gap, height = value(x + step)
        while height > before + slope * scale and scale > 0.5**_MAX_HALVINGS:
            scale *= 0.5
            gap, height = value(x + scale * step)
        x = x + scale * step
        if np.array_equal(gap > 0, old > 0):
            break
    return x


def _hessian(active: Array) -> Array:
    """Hessian in (offset, class offsets), from a table of the groups' densities.

    A constant added to all class offsets changes nothing, and a class without active
    rows little: both directions get some curvature.
    """
    out, into, total = active.sum(axis=1), active.sum(axis=0), active.sum()
    hessian = np.empty((len(out) + 1, len(out) + 1))
    hessian[0, 0] = total
    hessian[0, 1:] = hessian[1:, 0] = out - into
    regular = np.diag(out + into + _REGULARISATION * total)
    hessian[1:, 1:] = regular - active - active.T + total
    return hessian


euclidean = Euclidean()
