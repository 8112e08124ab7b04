"""Sequential minimal optimisation of capped weights on a Gram matrix, compiled.

Weights change by pairs, which leaves the classes in balance, or one by one where there is no
intercept. A weight is *raised* if the scores rise with the change, and else *lowered*.

References
----------
R. Fan, P. Chen, C. Lin. Working set selection using second order information for training support
vector machines. JMLR 2005.
"""

from __future__ import annotations

import numpy as np

from marginsvm._compiling import compiled, parts

_LEAST = 1e-12  # curvature along a pair, relative to the largest square, that is rounding


@parts()
def _up(r, y, caps, u):
    """How far row r can be raised."""
    return caps[r] - u[r] if y[r] > 0.0 else u[r]


@parts()
def _down(r, y, caps, u):
    return u[r] if y[r] > 0.0 else caps[r] - u[r]


@parts()
def _pair(K, y, caps, least, u, f):
    """Row to raise, row to lower, and by how much the worst pair misses its order."""
    i, high = -1, -np.inf
    for r in range(len(u)):
        if y[r] - f[r] > high and _up(r, y, caps, u) > 0.0:
            i, high = r, y[r] - f[r]
    j, best, wrong = -1, 0.0, 0.0
    for r in range(len(u)):
        gap = high - y[r] + f[r]
        if gap > 0.0 and _down(r, y, caps, u) > 0.0:
            gain = gap * gap / max(K[i, i] + K[r, r] - 2.0 * K[i, r], least)
            wrong = max(wrong, gap)
            if gain > best:
                j, best = r, gain
    return i, j, wrong


@parts()
def _single(K, y, caps, least, u, f):
    """The same without balance: a row to raise or a row to lower; -1 for the other."""
    i, j, best, wrong = -1, -1, 0.0, 0.0
    for r in range(len(u)):
        slope = y[r] - f[r]
        room = _up(r, y, caps, u) if slope > 0.0 else _down(r, y, caps, u)
        if room > 0.0:
            gain = slope * slope / max(K[r, r], least)
            wrong = max(wrong, abs(slope))
            if gain > best:
                i, j, best = (r if slope > 0.0 else -1), (-1 if slope > 0.0 else r), gain
    return i, j, wrong


@parts()
def _length(K, y, caps, least, i, j, u, f):
    """How far to raise row i and to lower row j: to the maximum, or until one is at its end."""
    t, slope, square = np.inf, 0.0, 0.0
    if i >= 0:
        t, slope, square = _up(i, y, caps, u), y[i] - f[i], K[i, i]
    if j >= 0:
        t, slope, square = min(t, _down(j, y, caps, u)), slope - y[j] + f[j], square + K[j, j]
    if i >= 0 and j >= 0:
        square -= 2.0 * K[i, j]
    return min(t, slope / max(square, least))


@parts()
def _change(K, y, caps, r, t, u, f):
    """Raise row r by t."""
    u[r] = min(max(u[r] + y[r] * t, 0.0), caps[r])
    for s in range(len(u)):
        f[s] += t * K[r, s]


@compiled()
def ascend_pairs(K, y, caps, balanced, precision, most, u, f):
    """Maximise ``sum u - |sum_i u_i y_i x_i|^2 / 2`` over ``0 <= u <= caps``.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Inner products.
    y, caps : ndarray of shape (m,)
        Signs of the classes, and largest weights.
    balanced : bool
        Whether the classes keep the same sum of weights.
    precision : float
        By how much margins, which are about 1, may miss their order.
    most : int
        Steps at most.
    u, f : ndarray of shape (m,)
        Weights, and scores ``K (y u)``; changed in place.

    Returns
    -------
    int
        Steps taken.
    """
    least = 1e-300
    for r in range(len(u)):
        least = max(least, _LEAST * K[r, r])
    for step in range(most):
        if balanced:
            i, j, wrong = _pair(K, y, caps, least, u, f)
        else:
            i, j, wrong = _single(K, y, caps, least, u, f)
        if wrong <= precision:
            return step
        t = _length(K, y, caps, least, i, j, u, f)
        if i >= 0:
            _change(K, y, caps, i, t, u, f)
        if j >= 0:
            _change(K, y, caps, j, -t, u, f)
    return most
