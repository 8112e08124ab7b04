"""The numbers that a certificate is checked with: floats, or rationals that round nothing.

Both have the same few operations, so that a proof is spelled out once (``_proof.py``).
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import inf, isqrt, lcm, nextafter
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array

_BLOCK = 1024
_TINY = 1e-290  # what is smaller has lost digits, and overflows when inverted
_BITS = 512  # of the square of a root
_DECIMAL = Context(prec=90, Emax=MAX_EMAX, Emin=MIN_EMIN)  # for powers, where p is not 2


class Floats:
    """float64. Squares do not overflow: norms are taken relative to the largest entry."""

    doubt = 0.0  # relative error that roots and powers may have

    def array(self, x: Any) -> Any:
        """Numbers of an array, sparse or dense."""
        return (x if sp.issparse(x) else np.asarray(x)).astype(np.float64, copy=False)

    def dot(self, A: Any, B: Any) -> Array:
        """Matrix product."""
        return A @ B

    def sqrt(self, x: Any) -> Any:
        """Square root, of 0 for what rounding has made negative."""
        return np.sqrt(np.maximum(x, 0.0))

    def norms(self, X: Any, p: float) -> Array:
        """p-norms of the rows."""
        blocks = (abs(X[i : i + _BLOCK]) for i in range(0, X.shape[0], _BLOCK))
        return np.concatenate([self._norms(block, p) for block in blocks])

    def _norms(self, X: Any, p: float) -> Array:
        sparse = sp.issparse(X)
        top = X.max(axis=1).toarray().ravel() if sparse else X.max(axis=1, initial=0.0)
        inverse = self.inverse(np.maximum(top, _TINY) * (top > 0))
        x = sp.diags_array(inverse) @ X if sparse else X * inverse[:, None]
        powers = x.power(p) if sparse else x**p
        return np.maximum(top, _TINY) * powers.sum(axis=1) ** (1.0 / p)

    def distances(self, X: Any, mean: Array) -> Array:
        """Euclidean distances of the rows from ``mean``."""
        if not sp.issparse(X):
            blocks = (abs(X[i : i + _BLOCK] - mean) for i in range(0, X.shape[0], _BLOCK))
            return np.concatenate([self._norms(block, 2.0) for block in blocks])
        return self.sqrt(self.norms(X, 2.0) ** 2 - 2.0 * (X @ mean) + mean @ mean)

    def inverse(self, x: Array) -> Array:
        """Inverses, 0 for 0."""
        return np.where(x > 0, 1.0 / np.where(x > 0, x, 1.0), 0.0)

    def down(self, x: float) -> float:
        """Largest float that is no larger."""
        return float(x)

    def up(self, x: float) -> float:
        """Smallest float that is no smaller."""
        return float(x)


class Rationals:
    """Fractions, in NumPy's object arrays.

    Sums and products are exact; roots and powers are true to 70 digits, which ``doubt``
    allows for.
    """

    doubt = Fraction(1, 10**60)

    def __init__(self) -> None:
        self._last: tuple[Any, Any, int] = (None, None, 1)

    def array(self, x: Any) -> Array:
        x = np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float64)
        out = np.empty(x.size, dtype=object)
        out[:] = [Fraction(value) for value in x.ravel().tolist()]
        return out.reshape(x.shape)

    def dot(self, A: Array, B: Array) -> Array:
        (a, below_a), (b, below_b) = self._integers(A), self._integers(B)
        return _fractions(a @ b, below_a * below_b)

    def sqrt(self, x: Any) -> Any:
        return _roots(x) if isinstance(x, np.ndarray) else _root(x)

    def norms(self, X: Array, p: float) -> Array:
        if p == 2.0:
            return self.sqrt(self._squares(X))
        return np.array([_norm(row, p) for row in X], dtype=object)

    def _squares(self, X: Array) -> Array:
        x, below = self._integers(X)
        return _fractions((x * x).sum(axis=1), below**2)

    def distances(self, X: Array, mean: Array) -> Array:
        return self.sqrt(self._squares(X) - 2 * self.dot(X, mean) + (mean * mean).sum())

    def _integers(self, A: Array) -> tuple[Array, int]:
        """Numerators over a common denominator: sums of products need no more fractions."""
        if A is not self._last[0]:
            below = lcm(*{x.denominator for x in A.flat})
            numerators = np.frompyfunc(lambda x: x.numerator * (below // x.denominator), 1, 1)(A)
            if A.size < 10_000:
                return numerators, below
            self._last = A, numerators, below  # all of X, which comes again
        return self._last[1:]

    def inverse(self, x: Array) -> Array:
        return _inverses(x)

    def down(self, x: Fraction) -> float:
        near = float(x)
        return near if near <= x else nextafter(near, -inf)

    def up(self, x: Fraction) -> float:
        near = float(x)
        return near if near >= x else nextafter(near, inf)


def _fractions(numerators: Any, below: int) -> Any:
    return np.frompyfunc(lambda x: Fraction(x, below), 1, 1)(numerators)


def _root(x: Fraction) -> Fraction:
    if x <= 0:
        return Fraction(0)
    shift = max(0, (_BITS - x.numerator.bit_length() + x.denominator.bit_length()) // 2 + 1)
    return Fraction(isqrt((x.numerator << 2 * shift) // x.denominator), 1 << shift)


_roots = np.frompyfunc(_root, 1, 1)
_inverses = np.frompyfunc(lambda x: _root(1 / x**2) if x else x, 1, 1)  # over a power of two


def _norm(x: Array, p: float) -> Fraction:
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
