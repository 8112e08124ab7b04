"""The order of subjects along a direction, of which nothing is rounded.

Scores are computed in floats with a bound on their error. Where it leaves the order of two open,
they are computed again in integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.exactly.elimination import Integers

_UNIT_ROUNDOFF = 2.0**-53
_EXACT = 2.0**53  # integers up to this are float64 numbers
_DIGITS = 53
_MULTIPLIED_NUMBERS = 2_000_000  # numbers that are multiplied in integers: about a second
_WRITTEN_COLUMNS = 2**26  # numbers of the columns that a direction needs, in 512 MB
_TINY = 1e-300  # more than all numbers that vanish add up to
_RANGE_BITS = 900  # bits between the numbers of a column, so that floats hold them as integers


def ranks(X: Any, direction: Integers) -> NDArray | None:
    """The rank of each row of X along a direction, equal for equal scores; None: it is too much.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    direction : list of int
    """
    used = [j for j, v in enumerate(direction) if v]
    if X.shape[0] * len(used) > _WRITTEN_COLUMNS:
        return None
    some = X[:, used]
    some = (some.toarray() if sp.issparse(some) else np.asarray(some)) + 0.0  # no -0
    first, of = _distinct(some)
    scores = _scores(some[first], [direction[j] for j in used])
    if scores is None:
        return None
    return np.asarray(scores[of])


def _distinct(X: NDArray) -> tuple[NDArray, NDArray]:
    """One of each of the different rows, and which of these each row is equal to."""
    every = np.arange(len(X))
    rng = np.random.default_rng(0)
    factors: Any = rng.integers(0, 2**63, X.shape[1], dtype=np.uint64) * 2 + 1
    key = np.zeros(len(X), np.uint64)
    for column, factor in zip(X.T, factors, strict=True):
        bits = np.ascontiguousarray(column).view(np.uint64)
        key = (key + bits) * factor
        key ^= key >> np.uint64(29)
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(X):
        return every, every
    same = all(np.array_equal(column[first[of]], column) for column in X.T)
    return (first, of) if same else (every, every)


def _scores(X: NDArray, direction: Integers) -> NDArray | None:
    """Ranks of different rows."""
    low = _lowest_digit(X)
    least = int(low.min(initial=0))
    factors = [v << int(e - least) for v, e in zip(direction, low, strict=True)]
    top = np.abs(X).max(axis=0, initial=0.0)
    if np.any(np.frexp(top)[1] - low > _RANGE_BITS):
        return None
    integers = np.ldexp(X, -low)
    most = sum(int(t) * abs(f) for t, f in zip(np.ldexp(top, -low), factors, strict=True))
    if most < _EXACT:
        return _dense(integers @ np.array(factors, dtype=float))
    unit = max(map(abs, direction))
    w = np.array([v / unit for v in direction])
    with np.errstate(over="ignore", invalid="ignore"):
        s = X @ w
        error = _UNIT_ROUNDOFF * (len(w) + 4) * (np.abs(X) @ np.abs(w)) + _TINY
    order = np.argsort(s, kind="stable")
    above = s[order] - error[order]
    below = np.maximum.accumulate(s[order] + error[order])
    apart = np.concatenate([[True], above[1:] > below[:-1]])
    group = np.cumsum(apart) - 1
    open_ = np.flatnonzero(np.bincount(group)[group] > 1)
    if len(open_) * len(w) > _MULTIPLIED_NUMBERS:
        return None
    exact = {
        int(order[k]): sum(int(x) * f for x, f in zip(integers[order[k]], factors, strict=True))
        for k in open_
    }
    return _merged(order, group, exact)


def _merged(order: NDArray, group: NDArray, exact: dict[int, int]) -> NDArray:
    """Ranks by groups, and in these by integers."""
    new = np.zeros(len(order), np.int64)
    new[1:] = np.diff(group)
    order = order.copy()
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], len(group))
    for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
        if b - a == 1:
            continue
        some = sorted(order[a:b].tolist(), key=exact.__getitem__)
        order[a:b] = some
        for k in range(a + 1, b):
            new[k] = exact[some[k - a]] != exact[some[k - a - 1]]
    out = np.empty(len(order), np.int64)
    out[order] = np.cumsum(new)
    return out


def _dense(scores: NDArray) -> NDArray:
    return np.unique(scores, return_inverse=True)[1]


def _lowest_digit(X: NDArray) -> NDArray:
    """For each column, the exponent of the last digit that is not 0 in all of its numbers."""
    mantissa, exponents = np.frexp(X)
    integers = np.ldexp(mantissa, _DIGITS).astype(np.int64)
    last = np.frexp((integers & -integers).astype(np.float64))[1] - 1
    digits = np.where(integers == 0, np.iinfo(np.int32).max, exponents - _DIGITS + last)
    lowest = digits.min(axis=0, initial=np.iinfo(np.int32).max)
    return np.where(lowest == np.iinfo(np.int32).max, 0, lowest).astype(int)
