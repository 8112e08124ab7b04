"""How far float64 may be off: bounds are moved outward by it, so that none is ever wrong.

A sum of n products, each term of which passes through at most m additions, is off by at most
``(m + 1) u / (1 - (m + 1) u)`` times the sum of the absolute values, u = 2^-53, whatever the
order of the additions. So sums that bounds rest on are broken into short chains.

References
----------
N. Higham. Accuracy and Stability of Numerical Algorithms. SIAM, 2002. Section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from marginsvm._typing import Array

# Relative rounding error of one operation in float64.
UNIT = 2.0**-53
# The same of a few operations on a number: scaling, signs, and what publishing rounds.
FEW = 8.0 * UNIT
# The same of NumPy's sums of contiguous numbers, which it adds in pairs, and a few operations.
PAIRWISE = 64.0 * UNIT
# A type with more digits, where the platform has one: for sums of few terms.
Extended = np.longdouble
# Numbers up to which sums are done in extended precision: it takes some milliseconds.
SMALL = 2**17
# Terms that are added at a time in sums that bounds rest on, and where a few digits less will do.
_CHAIN, LONG = 256, 1024


def chained(n: int, chain: int = _CHAIN) -> float:
    """Relative error of ``product`` over n terms, and of adding blocks of such products."""
    return 1.01 * UNIT * (min(n, chain) + 2 * (n // chain) + 8)


def extended(n: int) -> float:
    """Relative error of sums of n products in extended precision."""
    return 0.51 * float(np.finfo(Extended).eps) * (n + 8)


def product(A: Array, B: Array, chain: int = _CHAIN) -> Array:
    """``A @ B`` in short chains; nearly as fast."""
    n = A.shape[-1]
    if n <= chain:
        return times(A, B)
    return summed(times(A[..., i : i + chain], B[i : i + chain]) for i in range(0, n, chain))


def times(A: Any, B: Any) -> Any:
    """``A @ B``, during which other threads run: matmul keeps them waiting, where it gives
    up to 500 numbers (NumPy 2.4).
    """
    return np.dot(A, B) if is_dense(A) and is_dense(B) else A @ B


def is_dense(X: Any) -> bool:
    """Whether a matrix holds its numbers in one array: it is not sparse, nor a stand-in for one."""
    return isinstance(X, np.ndarray)


def summed(parts: Iterable[Array]) -> Array:
    """Sum of arrays, one after the other."""
    return reduce(np.add, parts)
