"""The directions that are exactly 0 on rows: a null space in integers, with a proof of its rank."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from marginsvm.certify.checker.modular import independent_columns, remainders_are_quick
from marginsvm.certify.exactly.elimination import Integers, as_integers, dot, null_space
from marginsvm.certify.exactly.krawczyk import independent_first, is_regular

_LARGEST_DENOMINATOR = 1000  # of the short fractions that dummies and counts lead to
_MOST_FRACTIONS = 3000  # that are looked for: some milliseconds
_WORD_BITS = 64  # bits of a machine word
_KARATSUBA = 1.6  # integers of m words are multiplied in about m ** 1.6 products of words
QUICK, PATIENT = 3e6, 3e8  # products of words: a fifth of a second, and some fifteen seconds
_EXACT = 2.0**53  # integers up to this are float64 numbers


@dataclass(frozen=True)
class Face:
    """A null space.

    Attributes
    ----------
    free : ndarray of int
        Columns whose values may be chosen.
    pivots : ndarray of int
        The others.
    vectors : list of list of int
        One for each free column, positive there and 0 in the others; they span the null space.
    basis : ndarray of shape (n_pivots, n_columns)
        Rows that span all those that are 0 on it.
    """

    free: NDArray
    pivots: NDArray
    vectors: list[Integers]
    basis: NDArray

    @cached_property
    def table(self) -> NDArray:
        """The vectors as columns, each 1 at its free column, and rounded once."""
        columns = [
            [x / v[f] for x in v] for v, f in zip(self.vectors, self.free.tolist(), strict=True)
        ]
        shape = len(self.free), len(self.free) + len(self.pivots)
        return np.array(columns, dtype=float).reshape(shape).T

    def moved(self) -> NDArray:
        """Columns in which some vector is not 0: a mask."""
        return np.array([any(x) for x in zip(*self.vectors, strict=True)], dtype=bool)

    def direction(self, w: NDArray) -> Integers:
        """The vector that has the entries of w at the free columns, times a positive integer."""
        values, free = as_integers(w[self.free]), self.free.tolist()
        common = lcm(*(v[f] for v, f in zip(self.vectors, free, strict=True)))
        total, factors = [0] * len(w), list[int]()
        for value, v, f in zip(values, self.vectors, free, strict=True):
            factors.append(value * (common // v[f]))
            total[f] = value * common
        for p in self.pivots.tolist():
            total[p] = sum(a * v[p] for a, v in zip(factors, self.vectors, strict=True))
        return total


def face_of(A: NDArray, most: float = PATIENT) -> Face | None:
    """The directions that are 0 on all rows; None: it takes too long.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
    most : float
        Products of machine words that this may take.
    """
    d = A.shape[1]
    rows, pivots = _basis(A)
    free = np.setdiff1d(np.arange(d), pivots)
    block = A[np.ix_(rows, pivots)]
    if not is_regular(block) and len(independent_columns(block)) < len(pivots):
        return None
    if not len(free):
        return Face(free, pivots, [], A[rows])
    vectors = _short_vectors(A, rows, pivots, free, most)
    if vectors is None:
        integers = [as_integers(A[i]) for i in rows]
        words = len(rows) * max(x.bit_length() for row in integers for x in row) / _WORD_BITS
        if len(rows) ** 2 * d * max(words, 1.0) ** _KARATSUBA > most:
            return None
        vectors = null_space(integers, [*pivots.tolist(), *free.tolist()])
        if len(vectors) != len(free) or not vanish(A, vectors, most):
            return None
    return Face(free, pivots, vectors, A[rows])


def _basis(A: NDArray) -> tuple[NDArray, NDArray]:
    """Rows and columns of a largest regular block, as far as can be seen quickly."""
    if not A.size:
        return np.zeros(0, int), np.zeros(0, int)
    if remainders_are_quick(A):
        pivots = independent_columns(A)
        return independent_columns(A[:, pivots].T), pivots
    top = np.abs(A).max(axis=0)
    scaled = A / np.where(top > 0, top, 1.0)
    order, rank = independent_first(scaled)
    return independent_first(scaled[:, order[:rank]].T)[0][:rank], order[:rank]


def _short_vectors(
    A: NDArray, rows: NDArray, pivots: NDArray, free: NDArray, most: float
) -> list[Integers] | None:
    """The vectors where they are of short fractions, and 0 on all rows."""
    if len(pivots) * len(free) > _MOST_FRACTIONS:
        return None
    try:
        C = -np.linalg.solve(A[np.ix_(rows, pivots)], A[np.ix_(rows, free)])
    except np.linalg.LinAlgError:
        return None
    if not np.all(np.isfinite(C)):
        return None
    vectors = []
    for column, f in zip(C.T.tolist(), free.tolist(), strict=True):
        fractions = [Fraction(x).limit_denominator(_LARGEST_DENOMINATOR) for x in column]
        common = lcm(*(x.denominator for x in fractions))
        vector = [0] * A.shape[1]
        vector[f] = common
        for p, x in zip(pivots.tolist(), fractions, strict=True):
            vector[p] = int(x * common)
        vectors.append(vector)
    return vectors if vanish(A, vectors, most) else None


def vanish(A: NDArray, vectors: list[Integers], most: float = PATIENT) -> bool:
    """Whether all rows are exactly 0 on all vectors; False also if that takes too long."""
    used = np.flatnonzero([any(x) for x in zip(*vectors, strict=True)])
    A, vectors = A[:, used], [[v[j] for j in used] for v in vectors]
    if not A.any():
        return True
    quick = _in_floats(A, vectors)
    if quick is not None:
        return quick
    if A.size * len(vectors) > most:
        return False
    return not any(dot(row, v) for row in map(as_integers, A) for v in vectors)


def _in_floats(A: NDArray, vectors: list[Integers]) -> bool | None:
    """The same, of rows and vectors of short integers in some unit; None: they are not."""
    unit = np.abs(A[A != 0.0]).min(initial=1.0)
    M, N = A / 2.0 ** np.floor(np.log2(unit)), np.array(vectors, dtype=object).T
    for _ in range(2):
        if np.array_equal(M, np.rint(M)):
            break
        M = M * 2.0**20
    largest = max((abs(x) for v in vectors for x in v), default=0)
    if not np.array_equal(M, np.rint(M)) or np.abs(M).max(initial=0.0) * largest * len(N) >= _EXACT:
        return None
    return not np.any(M @ N.astype(float))
