"""The two kinds of numbers that bounds are evaluated in: floats, and rationals that round nothing.

Both classes have the same few operations, so that the formulas of the bounds are written once
(``problem.py``, ``linear_space.py``, ``kernel_space.py``).
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import inf, isqrt, lcm, nextafter
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_BLOCK_ROWS = 1024  # rows of which norms are computed at once, so that temporary arrays stay small
_TINY_NUMBER = 1e-290  # smaller numbers have lost digits, and their inverses overflow
_ROOT_BITS = 512  # bits of the integer of which a root is taken: its root has half of them
_KEPT_INTEGERS = 10_000  # entries of a matrix from which on its integers are kept for later
_DECIMAL = Context(prec=90, Emax=MAX_EMAX, Emin=MIN_EMIN)  # for powers, where p is not 2


class Floats:
    """float64. Squares do not overflow: norms are taken relative to the largest entry."""

    are_exact = False
    rounding_error = 0.0  # relative, allowed for in a bound: the caller's tolerance covers it

    def array(self, x: Any) -> Any:
        """Convert an array, sparse or dense, to these numbers."""
        return (x if sp.issparse(x) else np.asarray(x)).astype(np.float64, copy=False)

    def number(self, x: float) -> float:
        """Convert one number."""
        return float(x)

    def dot(self, A: Any, B: Any) -> NDArray:
        """Matrix product."""
        return A @ B

    def sqrt(self, x: Any) -> Any:
        """Square root, of 0 for what rounding has made negative."""
        return np.sqrt(np.maximum(x, 0.0))

    def norms(self, X: Any, p: float) -> NDArray:
        """p-norms of the rows."""
        blocks = (abs(X[i : i + _BLOCK_ROWS]) for i in range(0, X.shape[0], _BLOCK_ROWS))
        return np.concatenate([self._norms_of_absolute(block, p) for block in blocks])

    def _norms_of_absolute(self, X: Any, p: float) -> NDArray:
        sparse = sp.issparse(X)
        top = X.max(axis=1).toarray().ravel() if sparse else X.max(axis=1, initial=0.0)
        inverse = self.inverse(np.maximum(top, _TINY_NUMBER) * (top > 0))
        x = sp.diags_array(inverse) @ X if sparse else X * inverse[:, None]
        powers = x.power(p) if sparse else x**p
        return np.maximum(top, _TINY_NUMBER) * powers.sum(axis=1) ** (1.0 / p)

    def distances(self, X: Any, mean: NDArray) -> NDArray:
        """Euclidean distances of the rows from ``mean``."""
        if not sp.issparse(X):
            blocks = (X[i : i + _BLOCK_ROWS] - mean for i in range(0, X.shape[0], _BLOCK_ROWS))
            return np.concatenate([self._norms_of_absolute(abs(block), 2.0) for block in blocks])
        return self.sqrt(self.norms(X, 2.0) ** 2 - 2.0 * (X @ mean) + mean @ mean)

    def inverse(self, x: NDArray) -> NDArray:
        """Inverses, 0 for 0."""
        return np.where(x > 0, 1.0 / np.where(x > 0, x, 1.0), 0.0)

    def down(self, x: float) -> float:
        """Largest float that is no larger."""
        return float(x)

    def up(self, x: float) -> float:
        """Smallest float that is no smaller."""
        return float(x)


class Rationals:
    """Fractions, in NumPy's object arrays; the operations are those of :class:`Floats`.

    Sums and products are exact; roots and powers are true to 70 digits, which
    ``rounding_error`` allows for.
    """

    are_exact = True
    rounding_error = Fraction(1, 10**60)

    def __init__(self) -> None:
        self._kept: tuple[Any, Any, int] = (None, None, 1)  # a matrix, as integers over a number

    def array(self, x: Any) -> NDArray:
        if getattr(x, "dtype", None) == np.dtype(object):  # they are such numbers already
            return np.asarray(x)
        x = np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float64)
        out = np.empty(x.size, dtype=object)
        out[:] = [Fraction(value) for value in x.ravel().tolist()]
        return out.reshape(x.shape)

    def number(self, x: float) -> Fraction:
        return Fraction(float(x))

    def dot(self, A: NDArray, B: NDArray) -> NDArray:
        (a, a_denominator), (b, b_denominator) = self._integers(A), self._integers(B)
        return _fractions(a @ b, a_denominator * b_denominator)

    def sqrt(self, x: Any) -> Any:
        return _roots(x) if isinstance(x, np.ndarray) else _root(x)

    def norms(self, X: NDArray, p: float) -> NDArray:
        if p == 2.0:
            return self.sqrt(self._squares(X))
        return np.array([_norm(row, p) for row in X], dtype=object)

    def _squares(self, X: NDArray) -> NDArray:
        x, denominator = self._integers(X)
        return _fractions((x * x).sum(axis=1), denominator**2)

    def distances(self, X: NDArray, mean: NDArray) -> NDArray:
        return self.sqrt(self._squares(X) - 2 * self.dot(X, mean) + (mean * mean).sum())

    def _integers(self, A: NDArray) -> tuple[NDArray, int]:
        """Numerators over a common denominator: integers are added faster than fractions."""
        if A is not self._kept[0]:
            denominator = lcm(*{x.denominator for x in A.flat})
            scaled = np.frompyfunc(lambda x: x.numerator * (denominator // x.denominator), 1, 1)
            numerators = scaled(A)
            if A.size < _KEPT_INTEGERS:
                return numerators, denominator
            self._kept = A, numerators, denominator  # all of X, which comes again
        return self._kept[1:]

    def inverse(self, x: NDArray) -> NDArray:
        return _inverses(x)

    def down(self, x: Any) -> float:
        near = float(x)
        return near if near <= x else nextafter(near, -inf)

    def up(self, x: Any) -> float:
        near = float(x)
        return near if near >= x else nextafter(near, inf)


Numbers: TypeAlias = Floats | Rationals


def _fractions(numerators: Any, denominator: int) -> Any:
    return np.frompyfunc(lambda x: Fraction(x, denominator), 1, 1)(numerators)


def _root(x: Fraction) -> Fraction:
    """Square root, rounded down, as an integer over a power of two."""
    if x <= 0:
        return Fraction(0)
    shift = max(0, (_ROOT_BITS - x.numerator.bit_length() + x.denominator.bit_length()) // 2 + 1)
    return Fraction(isqrt((x.numerator << 2 * shift) // x.denominator), 1 << shift)


_roots = np.frompyfunc(_root, 1, 1)
# inverses over a power of two: a common denominator of many of them stays short
_inverses = np.frompyfunc(lambda x: _root(1 / x**2) if x else x, 1, 1)


def _norm(x: NDArray, p: float) -> Fraction:
    top = max(abs(value) for value in x)
    if top == 0:
        return Fraction(0)
    exponent, total = Decimal(p), Decimal(0)
    for value in x:
        power = _DECIMAL.power(_decimal(abs(value) / top), exponent) if value else Decimal(0)
        total = _DECIMAL.add(total, power)
    return top * Fraction(_DECIMAL.power(total, _DECIMAL.divide(Decimal(1), exponent)))


def _decimal(x: Fraction) -> Decimal:
    return _DECIMAL.divide(Decimal(x.numerator), Decimal(x.denominator))
