"""Dual coordinate ascent where each ``theta.a_r`` is to lie in an interval, compiled.

    ascend        one vector: Algorithm 1 of Raj and Bach
    accelerate    two vectors: Algorithm 2, and its branch of linear rate (Appendix C)

A margin of at least 1 is the interval ``[1, inf)``. Both are given a sequence of coordinates and
update vectors in place, as the loops of ``coordinates.py`` do.
"""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.compiled.coordinates import (
    _ZERO_CURVATURE,
    _inline,
    _loop,
    _margin,
    _mirror,
    _push,
    _sum,
)
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import row_layout
from marginsvm.rows import Intervals, Vector


@_inline
def _proximal(t, step, low, high):
    """Weight a that maximises ``low max(a, 0) + high min(a, 0) - (a - t)^2 / (2 step)``."""
    if t + step * low > 0.0:
        return t + step * low
    return min(t + step * high, 0.0)


@_loop
def _ascend(rows, order, low, high, alpha, u, phi):
    factor = _mirror(u, rows.q, phi)
    for r in order:
        m = factor * _margin(rows, r, phi, len(phi), 0.0) + rows.slack[r] * alpha[r]
        step = 1.0 / max(rows.curvature[r], _ZERO_CURVATURE)
        delta = _proximal(alpha[r] - step * m, step, low[r], high[r]) - alpha[r]
        if delta != 0.0:
            alpha[r] += delta
            _push(rows, r, delta, 0.0, u, len(u))
            factor = _mirror(u, rows.q, phi)


@_loop
def _accelerate(rows, order, low, high, n, mu, w, s, u, work, gamma):
    """Images of w and s lie one after the other in u."""
    u_y, phi, size = work[0], work[1], len(u) // 2
    h, c = 0.0, 1.0
    for r in order:
        a = (mu - gamma + np.sqrt((mu - gamma) ** 2 + 4.0 * n * n * gamma)) / (2.0 * n * n)
        after = (n * a) ** 2
        share, beta = after / (a * gamma + after), a * mu / after
        e = h + share * c
        h += beta * share * c
        c *= share * (1.0 - beta)
        if rows.q == 2.0:
            m = _margin(rows, r, u, size, e)
        else:
            m = _mirror(_sum(u, size, e, u_y), rows.q, phi)
            m *= _margin(rows, r, phi, size, 0.0)
        m += rows.slack[r] * (w[r] + e * s[r])
        z = w[r] + h * s[r]
        step = 1.0 / (n * a * max(rows.curvature[r], _ZERO_CURVATURE))
        delta = _proximal(z - step * m, step, low[r], high[r]) - z
        if delta != 0.0:
            shift = (n * a - 1.0) / c * delta
            rest = delta - h * shift
            w[r] += rest
            s[r] += shift
            _push(rows, r, rest, shift, u, size)
        gamma = after
    return gamma, h, c


def ascend(problem: KernelMatrixAdapter, order: Array, intervals: Intervals, alpha: Vector) -> None:
    """Move a vector along one row at a time, to the maximum of a lower bound on the dual."""
    rows, u = row_layout(problem), alpha.image.reshape(-1)
    phi = u if rows.q == 2.0 else np.empty_like(u)
    low, high = (ends.reshape(-1) for ends in (intervals.low, intervals.high))
    _ascend(rows, order, low, high, alpha.coef.reshape(-1), u, phi)
    problem.work.add_pass(order.size / problem.n_rows)


def accelerate(
    problem: KernelMatrixAdapter,
    order: Array,
    n: int,
    intervals: Intervals,
    z: Vector,
    x: Vector,
    gamma: float,
    mu: float,
) -> tuple[Vector, Vector, float]:
    """Move the two sequences of Lin, Lu and Xiao's Algorithm 1 along n coordinates.

    In their letters, ``x - z = c s`` and ``z = w + h s`` for scalars c and h, so that both w and
    s move in one coordinate a step; y is ``w + (h + share c) s``, and z after its move towards
    y, before the step, ``w + h s`` with the new h. Given and returned are z, x and gamma.
    """
    rows, w, s = row_layout(problem), z.copy(), x - z
    u = np.concatenate([w.image.ravel(), s.image.ravel()])  # in C order
    coefs = (v.coef.reshape(-1) for v in (w, s))
    low, high = (ends.reshape(-1) for ends in (intervals.low, intervals.high))
    work = np.empty((2, 0 if rows.q == 2.0 else u.size // 2))
    problem.work.add_pass(order.size / problem.n_rows)
    gamma, h, c = _accelerate(rows, order, low, high, float(n), mu, *coefs, u, work, gamma)
    halves = np.split(u, 2)
    w, s = (
        Vector(half.reshape(z.image.shape), v.coef) for v, half in zip((w, s), halves, strict=True)
    )
    z = w + h * s
    return z, z + c * s, float(gamma)
