"""Sequential minimal optimisation of weights on a Gram matrix, compiled: capped, or with own slack.

Weights change by pairs, which leaves the classes in balance, or one by one where there is no
intercept. A weight is *raised* if the scores rise with the change, and else *lowered*. Slopes are
kept, and each step is two passes over them. These find the largest of every 64th number: compilers
turn such loops into operations on many numbers at once, but not a search for where an extreme is.

References
----------
R. Fan, P. Chen, C. Lin. Working set selection using second order information for training support
vector machines. JMLR 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._compiling import compiled, parts

_LEAST = 1e-12  # curvature along a pair, relative to the largest square, that is rounding
_LANES = 64  # extremes are those of every 64th number, so that as many are compared at once
_CLOSED = 1e100  # what a slope is moved by where its weight is at its end
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}  # infinities stay what they are
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": _FAST}


@parts(**_OPTIONS)
def _move(t, row, other, slope, not_up, tops):
    """Scores rise by ``t (row - other)``; then the highest slopes of rows that can be raised."""
    n, tops[:] = len(slope), -_CLOSED
    for k in range(0, n, _LANES):
        a, b = row[k : k + _LANES], other[k : k + _LANES]
        s, closed = slope[k : k + _LANES], not_up[k : k + _LANES]
        for r in range(len(s)):
            s[r] -= t * (a[r] - b[r])
            high = s[r] - closed[r]
            tops[r] = high if high > tops[r] else tops[r]


@parts(**_OPTIONS)
def _gain(gap, square, least):
    """What a step earns along which the slope is ``gap``, and the curvature ``square``."""
    gap = gap if gap > 0.0 else 0.0
    return gap * gap / (square if square > least else least)


@parts(**_OPTIONS)
def _pair_gains(high, own, row, slope, not_down, square, least, tops, gaps):
    """The most that pairs with another row earn, and by how much they are out of order."""
    tops[:], gaps[:] = 0.0, 0.0
    for k in range(0, len(slope), _LANES):
        a, q = row[k : k + _LANES], square[k : k + _LANES]
        s, closed = slope[k : k + _LANES], not_down[k : k + _LANES]
        for r in range(len(s)):
            gap = high - s[r] - closed[r]
            gaps[r] = gap if gap > gaps[r] else gaps[r]
            gain = _gain(gap, own + q[r] - 2.0 * a[r], least)
            tops[r] = gain if gain > tops[r] else tops[r]


@parts(**_OPTIONS)
def _gap(slope, not_up, not_down):
    """By how much a row alone is off: it is to be raised, or to be lowered."""
    up, down = slope - not_up, -slope - not_down
    return up if up > down else down


@parts(**_OPTIONS)
def _single_gains(slope, not_up, not_down, square, least, tops, gaps):
    tops[:], gaps[:] = 0.0, 0.0
    for k in range(0, len(slope), _LANES):
        s, q = slope[k : k + _LANES], square[k : k + _LANES]
        closed, shut = not_up[k : k + _LANES], not_down[k : k + _LANES]
        for r in range(len(s)):
            gap = _gap(s[r], closed[r], shut[r])
            gaps[r] = gap if gap > gaps[r] else gaps[r]
            gain = _gain(gap, q[r], least)
            tops[r] = gain if gain > tops[r] else tops[r]


@parts()
def _lowest_pair(high, own, row, slope, not_down, square, least, lane):
    """Of the rows of a lane, the one that earns most."""
    best, j = -1.0, lane
    for r in range(lane, len(slope), _LANES):
        gain = _gain(high - slope[r] - not_down[r], own + square[r] - 2.0 * row[r], least)
        if gain > best:
            best, j = gain, r
    return j


@parts()
def _best_single(slope, not_up, not_down, square, least, lane):
    best, j = -1.0, lane
    for r in range(lane, len(slope), _LANES):
        gain = _gain(_gap(slope[r], not_up[r], not_down[r]), square[r], least)
        if gain > best:
            best, j = gain, r
    return j


@parts()
def _highest(slope, not_up, lane):
    i = lane
    for r in range(lane, len(slope), _LANES):
        if slope[r] - not_up[r] > slope[i] - not_up[i]:
            i = r
    return i


@parts()
def _raise(r, t, y, caps, slack, u, slope, not_up, not_down):
    """Raise row r by t, and see which way it can go on."""
    u[r] = min(max(u[r] + y[r] * t, 0.0), caps[r])
    slope[r] -= slack[r] * t
    up, down = (u[r] < caps[r], u[r] > 0.0) if y[r] > 0.0 else (u[r] > 0.0, u[r] < caps[r])
    not_up[r] = 0.0 if up else _CLOSED
    not_down[r] = 0.0 if down else _CLOSED


@parts()
def _room(r, up, y, caps, u):
    """How far row r can be raised, or lowered."""
    return caps[r] - u[r] if (y[r] > 0.0) == up else u[r]


@compiled(**_OPTIONS)
def ascend_pairs(K, y, caps, slack, balanced, precision, most, u, f):
    """Maximise ``sum u - |sum_i u_i y_i x_i|^2 / 2 - sum_i s_i u_i^2 / 2`` over ``0 <= u <= caps``.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Inner products.
    y, caps, slack : ndarray of shape (m,)
        Signs of the classes, largest weights, and s.
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
    m = len(u)
    slope, square, not_up, not_down = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    tops, best, gaps, nothing = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES), 0.0 * K[0]
    least, i = 1e-300, 0
    for r in range(m):
        slope[r] = y[r] - f[r] - slack[r] * y[r] * u[r]
        square[r] = K[r, r] + slack[r]
        least = max(least, _LEAST * square[r])
        _raise(r, 0.0, y, caps, slack, u, slope, not_up, not_down)
    _move(0.0, nothing, nothing, slope, not_up, tops)
    for step in range(most):
        if balanced:
            i = _highest(slope, not_up, tops.argmax())
            high, own = slope[i] - not_up[i], square[i]
            _pair_gains(high, own, K[i], slope, not_down, square, least, best, gaps)
        else:
            _single_gains(slope, not_up, not_down, square, least, best, gaps)
        if not gaps.max() > precision:
            return _finish(y, slack, u, slope, f, step)
        lane = best.argmax()
        if balanced:
            j = _lowest_pair(high, own, K[i], slope, not_down, square, least, lane)
            t = (high - slope[j]) / max(own + square[j] - 2.0 * K[i, j], least)
            t = min(t, _room(i, True, y, caps, u), _room(j, False, y, caps, u))
            _raise(i, t, y, caps, slack, u, slope, not_up, not_down)
            _raise(j, -t, y, caps, slack, u, slope, not_up, not_down)
            _move(t, K[i], K[j], slope, not_up, tops)
        else:
            j = _best_single(slope, not_up, not_down, square, least, lane)
            t = slope[j] / max(square[j], least)
            t = min(max(t, -_room(j, False, y, caps, u)), _room(j, True, y, caps, u))
            _raise(j, t, y, caps, slack, u, slope, not_up, not_down)
            _move(t, K[j], nothing, slope, not_up, tops)
    return _finish(y, slack, u, slope, f, most)


@parts()
def _finish(y, slack, u, slope, f, steps):
    """The scores that the slopes say."""
    for r in range(len(u)):
        f[r] = y[r] - slope[r] - slack[r] * y[r] * u[r]
    return steps


@compiled(**_OPTIONS)
def add_columns(columns, places, v, f):
    """Add ``v_a columns[places_a]`` to the scores f, in parts that stay in cache."""
    for begin in range(0, len(f), 4096):
        part = f[begin : begin + 4096]
        for a in range(len(places)):
            column = columns[places[a], begin : begin + 4096]
            for r in range(len(part)):
                part[r] += v[a] * column[r]


@compiled()
def gather(columns, places, examples, first, scale, constant, K):
    """``scale`` times inner products, plus a constant, of examples from ``first`` on with all."""
    for a in range(first, len(examples)):
        column = columns[places[a]]
        for b in range(len(examples)):
            K[a, b] = scale * column[examples[b]] + constant
        for b in range(first):
            K[b, a] = K[a, b]
