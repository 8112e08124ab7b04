"""The numbers of X as they are printed: columns of integers, each in a unit of its own.

A column that leaves five bits of float64 empty, in all of its numbers, is what it is: integers,
halves, float32, dates in nanoseconds. Else it is a column of decimals, if all of its numbers are
next to such of up to 13 digits: so 0.1 is a tenth, and three of them are 0.3. What is neither, has
been computed and rounded: its numbers are the fractions that they are, but a column that others
explain up to that rounding is called a combination of these, as software that fits would do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import rounding_of
from marginsvm._typing import Array

_DIGITS = 13  # of decimals; with more, computed numbers are next to some by chance
_ULPS = 1e-15  # relative distance of a number from the decimal that it stands for
_LEAST = 1e-3  # part of the largest number, below which that distance is that of this part
_NOTHING = 2.0**-56  # the same: what is smaller, and no 0, has not been left by rounding
_SHORT = 48  # bits from the first to the last in a column of numbers that were not rounded
_LOOK = 50  # numbers of a column that are looked at before all others


class Column(NamedTuple):
    """``integers / unit``, which float64 rounds to ``x``: less than it by ``rest``."""

    integers: Array  # int64, or Python's
    unit: float
    rest: Array
    is_rounded: bool  # neither short nor decimals


def read(x: Array) -> Column:
    """One column of floats."""
    mantissa, e = np.frexp(x)
    whole, used = np.ldexp(mantissa, 53).astype(np.int64), x != 0
    if not used.any():
        return Column(whole, 1.0, 0 * x, False)
    last = np.frexp((whole & -whole)[used].astype(float))[1] - 1
    low, high = int((e[used] - 53 + last).min()), int(e[used].max())
    if low < -1000:
        raise OverflowError("numbers below 1e-300")
    if high - low <= _SHORT:
        return Column(np.ldexp(x, -low).astype(np.int64), 2.0**-low, 0 * x, False)
    top = np.abs(x).max()
    for p in range(max(_DIGITS - int(np.ceil(np.log10(top))), -1) + 1 if top < 1e15 else 0):
        ten = 10.0 ** min(p, 22)
        if p <= 22 and _are_whole(x[:_LOOK] * ten, top * ten) and _are_whole(x * ten, top * ten):
            v = x * ten
            decimals = np.rint(v)
            rest = ((decimals - v) - rounding_of(v, x, np.array(ten))) / ten
            return Column(decimals.astype(np.int64), ten, rest, False)
    shift = np.where(used, e - 53 - low, 0)
    if high - low < 61:
        return Column(_shifted(whole, shift), 2.0**-low, 0 * x, True)
    return Column(_shifted(whole.astype(object), shift.astype(object)), 2.0**-low, 0 * x, True)


def _are_whole(v: Array, top: float) -> bool:
    size, whole = np.abs(v), np.rint(v)
    near = np.abs(v - whole) <= _ULPS * np.maximum(size, _LEAST * top)
    return bool((near & ((whole != 0) | (v == 0) | (size >= _NOTHING * top))).all())


def _shifted(whole: Array, shift: Array) -> Array:
    """Times a power of two, some of which are negative: then zeros are dropped."""
    up, down = np.maximum(shift, 0), np.maximum(-shift, 0)
    return np.asarray((whole << up) >> down)


@dataclass
class Numbers:
    """Columns of X, which are read when they are asked for.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d), float64
    """

    X: Any
    _columns: dict[int, Column] = field(default_factory=dict)

    def column(self, j: int) -> Column:
        if j not in self._columns:
            x = self.X[:, [j]].toarray() if sp.issparse(self.X) else self.X[:, j]
            self._columns[j] = read(np.ascontiguousarray(x).ravel())
        return self._columns[j]

    def integers(self, examples: Array, features: Array) -> tuple[Array, Array]:
        """Integers of these, and the units of the columns."""
        some = [self.column(int(j)) for j in features]
        parts = [c.integers[examples] for c in some]
        kind = object if any(x.dtype == object for x in parts) else np.int64
        M = np.empty((len(examples), len(parts)), dtype=kind)
        for place, x in enumerate(parts):
            M[:, place] = x
        return M, np.array([c.unit for c in some])

    def rest(self, examples: Array) -> Array:
        """What the floats of these examples miss of their numbers, in all columns."""
        return np.column_stack([self.column(j).rest[examples] for j in range(self.X.shape[1])])
