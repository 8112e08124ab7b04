"""Arithmetic of the proofs: float64, or fractions.

Both classes have the same operations, so that each bound is written once. Errors are multiples of
the unit roundoff, which is 0 for fractions.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import fsum, inf, isfinite, isqrt, lcm, nextafter
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.problem.norms import LpNorm

DECIMALS = Context(prec=90, Emax=MAX_EMAX, Emin=MIN_EMIN)  # for powers with p != 2
ROOT_BITS = 512  # of the integer whose root is taken


class Floats:
    """float64.

    Parameters
    ----------
    unit : float
        Unit roundoff; 0: rounding is not accounted for, as the caller has a tolerance.
    """

    exact = False

    def __init__(self, unit: float = UNIT) -> None:
        self.unit = unit

    def gamma(self, n: int) -> float:
        """Relative error of a sum of products in which each term passes through <= n additions."""
        return 1.01 * self.unit * (n + 8)

    def array(self, x: Any) -> Array:
        return np.asarray(x, dtype=np.float64)

    def number(self, x: Any) -> float:
        return float(x)

    def sums(self, table: Array) -> Array:
        """Sums of the columns, each rounded once."""
        return np.array([fsum(column[np.flatnonzero(column)].tolist()) for column in table.T])

    def sqrt(self, x: Any) -> float:
        """Square root; 0 for negative numbers, which are rounding errors."""
        return float(np.sqrt(max(float(x), 0.0)))

    def length(self, x: Array, p: float = 2.0) -> float:
        """p-norm of all entries, up to ``error_of_length``."""
        return LpNorm(p).length(x)

    def error_of_length(self, n: int, p: float = 2.0) -> float:
        """Relative error of the p-norm of n numbers: pairwise sums, powers and a root."""
        return self.unit * (min(n + 8.0, 128.0) if p == 2.0 else 128.0)

    def down(self, x: Any) -> float:
        """The largest float ``<= x``."""
        return float(x)

    def up(self, x: Any) -> float:
        """The smallest float ``>= x``."""
        return float(x)


class Rationals:
    """Fractions, in arrays of objects; roots and powers have 60 digits."""

    exact = True
    unit = 0

    def gamma(self, n: int) -> int:
        return 0

    def array(self, x: Any) -> Array:
        """Array of fractions; infinities are kept."""
        if getattr(x, "dtype", None) == np.dtype(object):
            return np.asarray(x)
        x = np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float64)
        out = np.empty(x.size, dtype=object)
        out[:] = [Fraction(v) if isfinite(v) else v for v in x.ravel().tolist()]
        return out.reshape(x.shape)

    def number(self, x: Any) -> Any:
        return Fraction(x) if x not in (inf, -inf) else x

    def sums(self, table: Array) -> Array:
        return table.sum(axis=0)

    def sqrt(self, x: Any) -> Fraction:
        """Square root, rounded down, as an integer over a power of two."""
        if x <= 0:
            return Fraction(0)
        bits = x.denominator.bit_length() - x.numerator.bit_length() + ROOT_BITS
        shift = max(0, bits // 2 + 1)
        return Fraction(isqrt((x.numerator << 2 * shift) // x.denominator), 1 << shift)

    def length(self, x: Array, p: float = 2.0) -> Fraction:
        if p == 2.0:
            return self.sqrt((x * x).sum())
        top, total = max(map(abs, x.flat)), Decimal(0)
        if not top:
            return Fraction(0)
        for v in filter(None, x.flat):
            part = Fraction(abs(v) / top)
            ratio = DECIMALS.divide(Decimal(part.numerator), Decimal(part.denominator))
            total = DECIMALS.add(total, DECIMALS.power(ratio, Decimal(p)))
        return top * Fraction(DECIMALS.power(total, DECIMALS.divide(Decimal(1), Decimal(p))))

    def error_of_length(self, n: int, p: float = 2.0) -> Fraction:
        return Fraction(1, 10**60)

    def down(self, x: Any) -> float:
        near = float(x)
        return near if near <= x else nextafter(near, -inf)

    def up(self, x: Any) -> float:
        near = float(x)
        return near if near >= x else nextafter(near, inf)


Numbers = Floats | Rationals


def over_one_denominator(x: Array) -> tuple[Array, int]:
    """Integers and their common denominator: sums of integers are quicker than of fractions."""
    denominator = lcm(*{v.denominator for v in x.flat})
    scaled = np.frompyfunc(lambda v: v.numerator * (denominator // v.denominator), 1, 1)
    return scaled(x), denominator


def product(A: Array, B: Array) -> Array:
    """Matrix product of fractions."""
    (a, d), (b, e) = over_one_denominator(A), over_one_denominator(B)
    return np.frompyfunc(lambda v: Fraction(v, d * e), 1, 1)(a @ b)
