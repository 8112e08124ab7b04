"""Ranks modulo a prime: columns that are independent there are independent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_PRIME = 2**31 - 19  # the square of a remainder modulo it fits an int64
_QUICK_ELIMINATION = 200_000  # products of an elimination that takes some milliseconds
_DIGITS = 53  # of a float64
_SPARE = 5  # digits that rounded numbers hardly leave empty, all of them


def remainders_are_quick(A: NDArray) -> bool:
    """Whether an elimination modulo the prime takes a few milliseconds."""
    return bool(A.size * min(A.shape) <= _QUICK_ELIMINATION)


def independent_columns(A: NDArray) -> NDArray:
    """Indices of the columns that are not combinations of those before them, modulo a prime.

    They are independent, which this proves. That the others depend on them is as good as certain,
    and no proof.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
    """
    R = _remainders(A)
    found, top = list[int](), 0
    for j in range(R.shape[1]):
        candidates = np.flatnonzero(R[top:, j])
        if not len(candidates):
            continue
        i = top + int(candidates[0])
        pivot = R[i] * pow(int(R[i, j]), -1, _PRIME) % _PRIME
        R[i] = R[top]
        some = top + 1 + np.flatnonzero(R[top + 1 :, j])
        R[some, j:] = (R[some, j:] - R[some, j, None] * pivot[j:]) % _PRIME
        R[top] = pivot
        found.append(j)
        top += 1
        if top == len(R):
            break
    return np.array(found, dtype=int)


def _remainders(A: NDArray) -> NDArray:
    """The columns, each times a power of two that makes it one of integers, modulo the prime."""
    integers, exponents = _integers(A)
    exponents = np.where(integers == 0, np.iinfo(exponents.dtype).max, exponents)
    above = exponents - exponents.min(axis=0, initial=np.iinfo(exponents.dtype).max)
    above[integers == 0] = 0
    powers, which = np.unique(above, return_inverse=True)
    factors = np.array([pow(2, int(e), _PRIME) for e in powers], dtype=np.int64)
    return np.asarray(integers % _PRIME * factors[which.reshape(A.shape)] % _PRIME)


def _integers(A: NDArray) -> tuple[NDArray, NDArray]:
    """Integers and exponents of two of float64 numbers."""
    mantissa, exponents = np.frexp(A)
    return np.ldexp(mantissa, _DIGITS).astype(np.int64), exponents.astype(np.int64) - _DIGITS


def are_exact(A: NDArray) -> NDArray:
    """Columns whose numbers leave digits of float64 empty, as no rounded numbers would."""
    integers, exponents = _integers(A)
    used = integers != 0
    low = np.frexp(np.where(used, integers & -integers, 1).astype(np.float64))[1] - 1
    most = np.iinfo(exponents.dtype).max
    lowest = np.where(used, exponents + low, most).min(axis=0, initial=most)
    highest = np.where(used, exponents + _DIGITS, -most).max(axis=0, initial=-most)
    return np.asarray((highest - lowest <= _DIGITS - _SPARE) | ~used.any(axis=0))
