"""Sums and products, and bounds on their rounding errors, by which bounds on margins are widened.

A sum of n products, each term of which passes through at most m additions, has an error of at most
``(m + 1) u / (1 - (m + 1) u)`` times the sum of the absolute values, u = 2^-53, whatever the
order of the additions. So the sums from which bounds are computed are split into short chains.

References
----------
N. Higham. Accuracy and Stability of Numerical Algorithms. SIAM, 2002. Section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import reduce
from math import fsum
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array

# Relative rounding error of one operation in float64.
UNIT = 2.0**-53
# Relative error of a few operations: scaling, signs, and the rounding of published numbers.
FEW = 8.0 * UNIT
# Relative error of NumPy's pairwise sums of contiguous numbers, and of a few operations.
PAIRWISE = 64.0 * UNIT
# A type with more digits, where the platform has one: for sums of few terms.
Extended = np.longdouble
# Largest number of terms of sums over all examples in extended precision: some tenths of a second,
# a part of the examples at a time.
EXTENDED_TERMS_OF_ALL = 2**24
# Terms in a chain of the sums from which bounds are computed, and of sums that need fewer digits.
CHAIN, LONG = 256, 1024
# Dekker's constant: x c - (x c - x) is the upper half of the digits of x.
_SPLITTER = 2.0**27 + 1.0


def chained(n: int, chain: int = CHAIN) -> float:
    """Relative error of ``product`` over n terms, and of adding blocks of such products."""
    return 1.01 * UNIT * (additions(n, chain) + 8)


def additions(n: int, chain: int = CHAIN) -> int:
    """Additions that a term of ``product`` over n terms passes through at most."""
    return min(n, chain) + 2 * (n // chain)


def product(A: Array, B: Array, chain: int = CHAIN) -> Array:
    """``A @ B`` in short chains, nearly as fast; of any length where ``chain`` is 0.

    NumPy's matmul keeps other threads waiting where it gives up to 500 numbers (2.4), but dot
    copies parts of columns.
    """
    n = A.shape[-1]
    found = None
    for i in range(0, n or 1, chain or n or 1):
        a, b = (A[..., i : i + chain], B[i : i + chain]) if n > (chain or n) else (A, B)
        part: Array = np.dot(a, b) if a.flags.forc and b.flags.forc else a @ b
        found = part if found is None else np.add(found, part, out=found)
    assert found is not None
    return found


def totals(V: Array) -> Array:
    """Sums along the first axis, pairwise, where NumPy adds one row after the other."""
    return np.array([v.sum() for v in V.T] if V.ndim > 1 else V.sum())


def inner(A: Array, B: Array) -> float:
    """Sum of the products of all entries, without a copy where both are in the same order."""
    if A.flags.f_contiguous and B.flags.f_contiguous:
        A = A.T
        B = B.T
    return float(np.vdot(A, B))


def check_exact(X: Any, name: str = "X") -> None:
    """Refuse numbers that float64 would round: what is proved would be of other numbers.

    Parameters
    ----------
    X : array-like or sparse matrix
        Arrays of other libraries are not looked at.
    name : str
        Name of X in the error message.

    Raises
    ------
    ValueError
        If float64 does not hold one of the numbers.

    Examples
    --------
    >>> from marginsvm._rounding import check_exact
    >>> check_exact([[2**53], [2**60]])
    >>> check_exact([[2**60 + 1]])
    Traceback (most recent call last):
    ValueError: X has numbers that float64 does not hold, such as 1152921504606846977: ...
    """
    if hasattr(X, "iloc") and X.ndim == 2:  # a data frame has a type for each column
        for j in range(X.shape[1]):
            check_exact(np.asarray(X.iloc[:, j]), name)
        return
    if isinstance(X, list | tuple) or hasattr(X, "iloc"):
        # of lists of different lengths, which are refused elsewhere
        with suppress(ValueError):
            X = np.asarray(X)
    if sp.issparse(X) and not isinstance(getattr(X, "data", None), np.ndarray):  # dok
        X = X.tocsr()
    values = X.data if sp.issparse(X) else X
    for value in _suspects(values) if isinstance(values, np.ndarray) else ():
        if _is_rounded(value.item() if isinstance(value, np.generic) else value):
            raise ValueError(
                f"{name} has numbers that float64 does not hold, such as {value}: a fit would be "
                "of other numbers. Subtract what they have in common, or use categories"
            )


def _suspects(values: Array) -> Array:
    """Those of the numbers that float64 may round."""
    kind = values.dtype.kind
    large = 2**53
    if kind in "iu" and values.itemsize == 8:
        return values[(values > large) | (values < -large)]
    if kind == "f" and values.itemsize > 8:
        return values[values != values.astype(np.float64)]
    return values.ravel() if kind == "O" else values.ravel()[:0]


def _is_rounded(value: Any) -> bool:
    try:
        return isinstance(value, Real | Decimal) and bool(
            float(value) != value == value
        )
    except OverflowError:
        return True


# Numbers that are summed one by one; and those of a part, whose sums of halves are exact.
SUMMED_ONE_BY_ONE = 1000
PART = 2**15


def exact_sum(values: Array) -> float:
    """Sum of all entries, rounded once; NaN or infinite where partial sums overflow.

    The halves of numbers with equal exponents are multiples of one number, and few of them have
    exact sums.
    """
    values = values.ravel()
    total = float(values.sum())
    if not np.isfinite(total):
        return total
    if values.size <= SUMMED_ONE_BY_ONE:
        return fsum(values.tolist())
    sums = list[float]()
    for i in range(0, values.size, PART):
        low = np.array(values[i : i + PART], np.float64)
        exponents = (low.view(np.int64) >> 52) & 0x7FF
        high = low.copy()
        high.view(np.int64)[:] &= -(2**27)
        low -= high
        for half in (high, low):
            found = np.bincount(exponents, half)
            sums += found[found.nonzero()].tolist()
    return fsum(sums)


def exact_inner(a: Array, b: Array, *added: float) -> float:
    """The sum of ``a b`` and of the numbers ``added``, rounded once."""
    some = a.nonzero()
    a = a[some]
    b = b[some]
    product = a * b
    return fsum([*product.tolist(), *rounding_of(product, a, b).tolist(), *added])


def rounding_of(product: Array, a: Array, b: Array) -> Array:
    """What rounding has taken from a product: ``a b - product``, a number of float64 (Dekker)."""
    a_high = _high(a)
    b_high = _high(b)
    a_low = a - a_high
    b_low = b - b_high
    rest = ((product - a_high * b_high) - a_low * b_high) - a_high * b_low
    return np.asarray(a_low * b_low - rest)


def _high(a: Array) -> Array:
    """The upper half of the digits of each number."""
    scaled = _SPLITTER * a
    return np.asarray(scaled - (scaled - a))


def summed(parts: Iterable[Array]) -> Array:
    """Sum of arrays, one after the other."""
    return reduce(np.add, parts)


def at_least(bound: float, digits: int = 6) -> str:
    """Write a lower bound, rounded down, so that the written number is a lower bound as well."""
    return _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = 6) -> str:
    """Write an upper bound, rounded up, so that the written number is an upper bound as well."""
    return _rounded(bound, digits, ROUND_CEILING)


def _rounded(x: float, digits: int, direction: str) -> str:
    if not np.isfinite(x):
        return str(x)
    context = Context(prec=digits, rounding=direction, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return f"{float(context.create_decimal_from_float(float(x))):.{digits}g}"
