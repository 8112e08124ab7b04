"""The rows of a regression's recession cone: differences of two points, in floats or integers.

The recession cone holds the directions w in which the likelihood does not decrease. A row a stands
for ``a w >= 0`` or, for an equality, ``a w = 0``. All rows compare two points, ``a = z_p - z_m``: a
point is an example in the columns of one class, a threshold, or zero. So rows are the same function
of floats and of integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from marginsvm._threads import cached_property
from marginsvm._typing import Array, Stored
from marginsvm.problem.matrix import dense
from marginsvm.separation.arguments import Arguments

# Largest number of entries of X that are read as integers, and of rows in integers.
MOST_INTEGERS = 2_000_000
SPARSE = 4  # blocks for each that is not empty, above which rows are sparse
FAR = 1000  # binary digits of a column, beyond which its integers leave float64's range
SPARE = 48  # binary digits of an exact column: five of the 53 of float64 are unused
DECIMALS = 13  # digits of decimals that are recognised in the floats next to them
POWERS = 23  # 10**22 is the largest power of ten that is a float64
FIRST = slice(50)  # rows that usually tell that a column holds no decimals
INT64 = 2.0**61  # differences of two smaller numbers are int64
DIGITS = 53  # binary digits of float64
BEYOND = 2000  # binary digits: more than any exponent
# A number is whole within this part of itself, or of a part of the largest one of its column; below
# this part of the largest one, it is lost in rounding.
WHOLE = 1e-15
OF_LARGEST = 1e-3
LOST = 2.0**-56
# Error of a row in floats, relative to its points; and of X as printed, relative to that.
OF_POINTS = 2.0**-49
OF_PRINTED = 2.0**-9


def as_printed(X: Stored) -> tuple[Stored, Array, Array] | None:
    """X as printed: columns of integers, each in its own unit.

    Returns X times the units, in float64; the units; and which columns were rounded.

    A column whose entries all leave five bits of float64 unused is exact: integers, halves,
    float32, dates in nanoseconds. Else, if all entries are the floats next to decimals of up to 13
    digits, it is a column of these decimals: 0.1 is a tenth, and three of them are 0.3. Any other
    column was computed and rounded; its entries are taken as the binary fractions they are.
    None: entries are too small or differ too much in size.
    """
    x = dense(X)
    used = x != 0
    mantissa, exponent = np.frexp(x)
    # the powers of two above the first digit, and of the last digit, of a column's entries
    whole = np.ldexp(mantissa, DIGITS).astype(np.int64)
    last = exponent - (DIGITS + 1) + np.frexp((whole & -whole).astype(float))[1]
    high = np.where(used, exponent, -BEYOND).max(axis=0, initial=-BEYOND)
    low = np.where(used, last, BEYOND).min(axis=0, initial=BEYOND)
    high, low = np.where(high < low, 0, (high, low))  # a column of zeros
    if low.min(initial=0) < -FAR or (high - low).max(initial=0) > FAR:
        return None
    out = np.ldexp(x, -low)
    unit = np.ldexp(1.0, -low)
    rounded = high - low > SPARE
    top = np.abs(x).max(axis=0, initial=0.0)
    digits = DECIMALS - np.ceil(np.log10(np.where(top > 0, top, 1.0)))
    for p in range(POWERS):
        ten = 10.0**p
        some = np.flatnonzero(rounded & (p <= digits))
        for rows in (FIRST, slice(None)):
            some = some[_are_whole(x[rows][:, some] * ten, top[some] * ten)]
        out[:, some] = np.rint(x[:, some] * ten)
        unit[some] = ten
        rounded[some] = False
    return sp.csr_array(out) if sp.issparse(X) else out, unit, rounded


def _are_whole(v: Array, top: Array) -> Array:
    """Columns whose entries are within rounding (1e-15, relative) of integers.

    A non-zero entry smaller than the rounding of the largest one is not an integer.
    """
    size = np.abs(v)
    whole = np.rint(v)
    near = np.abs(v - whole) <= WHOLE * np.maximum(size, OF_LARGEST * top)
    not_lost = (whole != 0) | (v == 0) | (size >= LOST * top)
    return np.asarray((near & not_lost).all(axis=0))


@dataclass
class Regression:
    """The rows of a regression, ``z_plus - z_minus``: a matrix A that is not stored.

    Attributes
    ----------
    arguments : Arguments
    X : ndarray or csr_array of shape (n_points, n_columns / n_blocks)
        Of examples and thresholds; the intercept is a feature.
    plus, minus : ndarray of int, shape (n_rows,)
        Points: ``i * n_blocks + b`` for row i of X in block b of the columns; -1 for zero.
    equality : ndarray of bool, shape (n_rows,)
    at, column : ndarray of int, shape (n_rows,)
        Position of each row in the report's tables: index of its example among those used, and
        column.
    names : list of str
        Of the columns.
    span : tuple of ndarray
        Cox: the first and the last event time at which both subjects of a comparison are at risk,
        and the last event time at which each subject is.
    shape : tuple
        ``(n_rows, n_columns)``.
    example : ndarray of int, shape (n_rows,)
        Index of each row's example among the given ones.
    is_whole : bool
        Whether X is in integers.
    unit : ndarray of shape (n_columns,)
        The factors of the columns of X; 1 if they are no integers.
    rounded : ndarray of bool, shape (n_columns,)
        Which columns were computed and rounded; all of them, if X is too large to tell.
    """

    arguments: Arguments
    X: Stored
    plus: Array
    minus: Array
    equality: Array
    at: Array
    column: Array
    names: list[str]
    span: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        n, d = self.X.shape
        self.blocks = len(self.names) // d if d else 1
        self.shape = (len(self.at), len(self.names))
        self.example = self.arguments.example[self.at]
        printed = as_printed(self.X) if n * d <= MOST_INTEGERS else None
        self.is_whole = printed is not None
        self.X, unit, rounded = printed or (self.X, np.ones(d), np.ones(d, bool))
        self.unit = np.tile(unit, self.blocks)
        self.rounded = np.tile(rounded, self.blocks)
        filled_blocks = np.count_nonzero([self.plus >= 0, self.minus >= 0])
        if self.shape[0] * self.blocks > SPARSE * filled_blocks:
            self.X = sp.csr_array(self.X)

    def rows(self, at: Array) -> Stored:
        """Rows in floats."""
        plus, minus = self._ends(self.X, at)
        return plus - minus

    def integers(self, at: Array) -> Array:
        """Rows in integers."""
        plus, minus = self._ends(self._whole, at)
        return np.asarray(plus - minus)

    def errors(self, at: Array) -> Array:
        """Bounds on the error of rows in floats relative to those of X as printed."""
        plus, minus = self._ends(self.X, at)
        points = dense(abs(plus) + abs(minus))
        return OF_POINTS * (points + OF_PRINTED * self.reach)

    def _ends(self, X: Stored, at: Array) -> tuple[Stored, Stored]:
        """The two points that each row compares."""
        return self._points(X, self.plus[at]), self._points(X, self.minus[at])

    def _points(self, X: Stored, points: Array) -> Stored:
        """Points as vectors over all columns."""
        example, block = np.divmod(points, self.blocks)
        some = points >= 0
        d = X.shape[1]
        shape = len(points), self.shape[1]
        if isinstance(X, np.ndarray):
            out = np.zeros((len(points), self.blocks, d), X.dtype)
            out[some, block[some]] = X[example[some]]
            return out.reshape(shape)
        x = X[example]
        size = np.diff(x.indptr)
        values = x.data * np.repeat(some, size)
        columns = x.indices + np.repeat(block * d, size)
        return sp.csr_array((values, columns, x.indptr), shape)

    @cached_property
    def _whole(self) -> Array:
        """X in integers."""
        X = dense(self.X)
        if np.abs(X).max(initial=0.0) < INT64:
            return X.astype(np.int64)
        numbers = [[int(v) for v in x] for x in X.tolist()]
        return np.array(numbers, object).reshape(X.shape)

    @cached_property
    def reach(self) -> Array:
        """The largest absolute value of the points in each column, 1 for zeros."""
        top = np.maximum(dense(self.X.max(axis=0)), -dense(self.X.min(axis=0))).ravel()
        return np.tile(np.where(top > 0, top, 1.0), self.blocks)

    def margins(self, W: Array) -> Array:
        """``A W``, by products with the points; the last one, at -1, is zero."""
        V = self.X @ np.hstack(np.split(W, self.blocks))
        zero = np.zeros((1, W.shape[1]))
        V = np.vstack([V.reshape(len(V) * self.blocks, W.shape[1]), zero])
        return np.asarray(V[self.plus] - V[self.minus])
