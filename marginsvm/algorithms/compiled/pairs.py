"""Sequential minimal optimisation of weights on a Gram matrix, compiled: capped, or with own slack.

Weights have signs: those of classes, or of the sides of tubes. They change by pairs, which leaves
their sum as it is, or one by one where there is no intercept. The slope of a weight is by how much
the score of its row misses an end; on the other side of 0, that of the other end of a tube. Slopes
are kept, and each step is two passes over them. These find the largest of every 64th number:
compilers turn such loops into operations on many numbers at once, but not a search for where an
extreme is.

References
----------
R. Fan, P. Chen, C. Lin. Working set selection using second order information for training support
vector machines. JMLR 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._compiling import compiled, parts

_LEAST_CURVATURE = 1e-12  # curvature along a pair, relative to the largest square, that is rounding
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
def _raise(r, t, floor, ceiling, width, slack, v, slope, not_up, not_down):
    """Raise weight r by t, and see which way it can go on, and at which end of the tube."""
    v[r] = min(max(v[r] + t, floor[r]), ceiling[r])
    slope[r] -= slack[r] * t
    not_up[r] = _CLOSED if v[r] >= ceiling[r] else -width[r] if v[r] < 0.0 else 0.0
    not_down[r] = _CLOSED if v[r] <= floor[r] else 0.0 if v[r] > 0.0 else width[r]


@parts()
def _room(r, up, floor, ceiling, v):
    """How far weight r can be raised, or lowered, on its side of 0."""
    if up:
        return -v[r] if v[r] < 0.0 else ceiling[r] - v[r]
    return v[r] if v[r] > 0.0 else v[r] - floor[r]


@parts()
def _finish(low, slack, v, slope, f, steps):
    """The scores that the slopes say."""
    for r in range(len(v)):
        f[r] = low[r] - slope[r] - slack[r] * v[r]
    return steps


@compiled(**_OPTIONS)
def ascend_pairs(K, low, width, floor, ceiling, slack, balanced, precision, most, v, f):
    """Maximise ``sum_i e_i v_i - |sum_i v_i x_i|^2 / 2 - sum_i s_i v_i^2 / 2`` between given ends.

    The end e_i is the lower one of an interval where v_i > 0, and the upper one where v_i < 0.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Inner products.
    low, width : ndarray of shape (m,)
        Lower ends of the intervals, and how far the upper ones are above them.
    floor, ceiling, slack : ndarray of shape (m,)
        Least and largest weights, of which one is 0 at least and one at most; and s.
    balanced : bool
        Whether the weights keep their sum.
    precision : float
        By how much slopes, which are about 1, may miss their order.
    most : int
        Steps at most.
    v, f : ndarray of shape (m,)
        Weights, and scores ``K v``; changed in place.

    Returns
    -------
    int
        Steps taken.
    """
    m = len(v)
    slope, square, not_up, not_down = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    tops, best, gaps, nothing = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES), 0.0 * K[0]
    least, i = 1e-300, 0
    for r in range(m):
        slope[r] = low[r] - f[r] - slack[r] * v[r]
        square[r] = K[r, r] + slack[r]
        least = max(least, _LEAST_CURVATURE * square[r])
        _raise(r, 0.0, floor, ceiling, width, slack, v, slope, not_up, not_down)
    _move(0.0, nothing, nothing, slope, not_up, tops)
    for step in range(most):
        if balanced:
            i = _highest(slope, not_up, tops.argmax())
            high, own = slope[i] - not_up[i], square[i]
            _pair_gains(high, own, K[i], slope, not_down, square, least, best, gaps)
        else:
            _single_gains(slope, not_up, not_down, square, least, best, gaps)
        if not gaps.max() > precision:
            return _finish(low, slack, v, slope, f, step)
        lane = best.argmax()
        if balanced:
            j = _lowest_pair(high, own, K[i], slope, not_down, square, least, lane)
            t = (high - slope[j] - not_down[j]) / max(own + square[j] - 2.0 * K[i, j], least)
            t = min(t, _room(i, True, floor, ceiling, v), _room(j, False, floor, ceiling, v))
            _raise(i, t, floor, ceiling, width, slack, v, slope, not_up, not_down)
            _raise(j, -t, floor, ceiling, width, slack, v, slope, not_up, not_down)
            _move(t, K[i], K[j], slope, not_up, tops)
        else:
            j = _best_single(slope, not_up, not_down, square, least, lane)
            up, down = slope[j] - not_up[j], -slope[j] - not_down[j]
            if up > down:
                t = min(up / max(square[j], least), _room(j, True, floor, ceiling, v))
            else:
                t = -min(down / max(square[j], least), _room(j, False, floor, ceiling, v))
            _raise(j, t, floor, ceiling, width, slack, v, slope, not_up, not_down)
            _move(t, K[j], nothing, slope, not_up, tops)
    return _finish(low, slack, v, slope, f, most)


@compiled(**_OPTIONS)
def add_columns(columns, places, v, f):
    """Add ``v_a columns[places_a]`` to the scores f, in parts that stay in cache."""
    for begin in range(0, len(f), 4096):
        part = f[begin : begin + 4096]
        for a in range(len(places)):
            column = columns[places[a], begin : begin + 4096]
            for r in range(len(part)):
                part[r] += v[a] * column[r]
