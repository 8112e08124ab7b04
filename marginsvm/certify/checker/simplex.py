"""Nonnegative solutions of linear equations, or a proof that there are none, in integers.

References
----------
R. Bland. New finite pivoting rules for the simplex method. Mathematics of Operations Research,
1977.

J. Edmonds. Systems of distinct representatives and linear algebra. Journal of Research of the
National Bureau of Standards, 1967.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginsvm.certify.exactly.elimination import Integers

_MAX_PIVOTS = 1000
_MAX_INTEGER_PRODUCTS = 2_000_000  # of integers: about a second


class Answer(NamedTuple):
    """Either of the two that exist by Farkas' lemma.

    Attributes
    ----------
    weights : ndarray of shape (n_rows,) or None
        A solution of ``A^T q = b, q >= 0``, each number rounded once.
    direction : list of int or None
        Some v with ``A v >= 0`` and ``b v < 0``.
    """

    weights: NDArray | None
    direction: Integers | None


def has_positive_weights(A: NDArray) -> bool:
    """Whether ``A^T q = 0`` for some q that are all positive. False also if it takes too long.

    Each is at least 1 in some unit: what is above must make up for the sum of all rows.
    """
    total = [-sum(map(Fraction, column), Fraction(0)) for column in A.T.tolist()]
    answer = combination(A, total)
    return answer is not None and answer.weights is not None


def combination(A: NDArray, b: NDArray | list[Fraction]) -> Answer | None:
    """Whether a vector is a nonnegative combination of rows; None: it takes too long.

    The first phase of the simplex method. Every row of the table is an integer multiple, and the
    last pivot divides it exactly after the next one.

    Parameters
    ----------
    A : ndarray of shape (n_rows, d)
    b : ndarray or list of Fraction, shape (d,)
    """
    n, d = A.shape
    table, factors = _table(A, b)
    basis, last, products = list(range(n, n + d)), 1, 0
    for _ in range(_MAX_PIVOTS):
        if table[-1, -1] == 0:
            q = np.zeros(n)
            for i, k in enumerate(basis):
                if k < n:
                    q[k] = table[i, -1] / last
            return Answer(q, None)
        entering = np.flatnonzero(table[-1, :n] < 0)
        if not len(entering):
            prices = table[-1, n:-1] - last
            return Answer(None, [int(x) * f for x, f in zip(prices, factors, strict=True)])
        j, products = int(entering[0]), products + table.size
        if products > _MAX_INTEGER_PRODUCTS:
            return None
        leaving = _leaving(table[:-1, j], table[:-1, -1], basis)
        row, p = table[leaving].copy(), table[leaving, j]
        table = (p * table - table[:, j, None] * row) // last
        table[leaving], basis[leaving], last = row, j, p
    return None


def _table(A: NDArray, b: NDArray | list[Fraction]) -> tuple[NDArray, Integers]:
    """Equations with an extra unknown each, and the cost; what the equations were multiplied by."""
    n, d = A.shape
    table, factors = np.zeros((d + 1, n + d + 1), dtype=object), list[int]()
    for i, (column, right) in enumerate(zip(A.T.tolist(), list(b), strict=True)):
        ratios = [x.as_integer_ratio() for x in (*column, right)]
        common = max(denominator for _, denominator in ratios) * (-1 if right < 0 else 1)
        integers = [x * common // denominator for x, denominator in ratios]
        table[i, :n], table[i, -1], table[i, n + i] = integers[:-1], integers[-1], 1
        factors.append(common)
    table[-1] = -table[:-1].sum(axis=0)
    table[-1, n:-1] = 0
    return table, factors


def _leaving(column: NDArray, right: NDArray, basis: Integers) -> int:
    """The row of the least ratio, and among these of the first unknown (Bland's rule)."""
    best = -1
    for i in np.flatnonzero(column > 0).tolist():
        if best >= 0:
            this, other = right[i] * column[best], right[best] * column[i]
            if this > other or (this == other and basis[i] > basis[best]):
                continue
        best = i
    return best
