"""Positive solutions of linear equations in integer arithmetic, in which nothing is rounded.

References
----------
E. Bareiss. Sylvester's identity and multistep integer-preserving Gaussian elimination.
Mathematics of Computation, 1968.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

_PRIME = 2**31 - 1  # the square of a remainder modulo it fits an int64
_MAX_MODULAR_PRODUCTS = 1e9  # in an elimination modulo the prime: some seconds
_MAX_WORD_PRODUCTS = 5e7  # products of machine words in an exact elimination: some seconds
_QUICKER = 20.0  # products of floats, or modulo the prime, in the time of one of machine words
_WORD_BITS = 64  # bits of a machine word
_KARATSUBA = 1.6  # integers of m words are multiplied in about m ** 1.6 products of words
_FREE_WEIGHT_BITS = 20  # kept of weights that may be chosen freely: short integers are quick

Integers = list[int]


@dataclass
class Effort:
    """What proofs have taken so far.

    Attributes
    ----------
    products : float
        Products of machine words, or what takes as long.
    """

    products: float = 0.0


def positive_solution(
    A: NDArray, q: NDArray, chosen: Integers, effort: Effort | None = None
) -> Integers | None:
    """Positive integers in proportion to weights near q that solve ``A q* = 0`` exactly.

    All weights but the first are rounded and then kept; the first, as many as equations are
    chosen, are solved for. An equation that does not hold then is independent of the chosen ones,
    however nearly it depends on them in floats: it joins them, with one weight more.

    Parameters
    ----------
    A : ndarray of shape (n_equations, n_weights)
        Equations, whose first columns are independent, as far as floats can tell.
    q : ndarray of shape (n_weights,)
        Positive weights.
    chosen : list of int
        As many equations as there are such columns, and independent of each other.
    effort : Effort or None
        To which is added what the proof takes.

    Returns
    -------
    list of int or None
        The integers are a proof. None says nothing, also where a proof would take too long.
    """
    effort = effort or Effort()
    effort.products += A.size * min(A.shape) / _QUICKER
    if len(chosen) == len(q) or _takes_too_long(len(chosen)):
        return None
    equations = [as_integers(row) for row in A]
    if len(q) <= len(A) and (  # else the columns depend on each other
        A.size * len(q) > _MAX_MODULAR_PRODUCTS or _columns_are_independent(equations)
    ):
        return None
    q = _shortened(q)
    while (rank := len(chosen)) < len(q):
        kept = as_integers(q[rank:])
        right = [-dot(equations[i][rank:], kept) for i in chosen]
        solution = _cramer([equations[i][:rank] for i in chosen], right, effort)
        if solution is None or not all(x > 0 for x in solution[0]):
            return None
        weights = solution[0] + [solution[1] * x for x in kept]
        violated = next((i for i, row in enumerate(equations) if dot(row, weights)), None)
        if violated is None:
            return weights
        chosen = [*chosen, violated]
    return None


def _takes_too_long(n: int) -> bool:
    """Whether the elimination of n equations would be given up, however short its integers are."""
    return 0.5 * n * n * (n + 1) > _MAX_WORD_PRODUCTS


def _shortened(q: NDArray) -> NDArray:
    """Weights rounded to so few bits that products with them are short integers."""
    mantissa, exponent = np.frexp(q)
    integers = np.round(np.ldexp(mantissa, _FREE_WEIGHT_BITS))
    return np.ldexp(integers, exponent - _FREE_WEIGHT_BITS)


def _columns_are_independent(equations: list[Integers]) -> bool:
    """Whether the columns are independent modulo a prime, and so in integers: only 0 solves."""
    A = np.array([[x % _PRIME for x in row] for row in equations])
    for j in range(A.shape[1]):
        candidates = np.flatnonzero(A[j:, j]) + j
        if len(candidates) == 0:
            return False
        A[[j, candidates[0]]] = A[[candidates[0], j]]
        A[j] = A[j] * pow(int(A[j, j]), -1, _PRIME) % _PRIME
        A[j + 1 :] = (A[j + 1 :] - A[j + 1 :, j, None] * A[j]) % _PRIME
    return True


def null_space(rows: list[Integers], order: Integers) -> list[Integers]:
    """Integer vectors that span the null space of rows.

    Parameters
    ----------
    rows : list of list of int
    order : list of int
        The columns, those that are to depend on the others first.

    Returns
    -------
    list of list of int
        One vector for each column on which others depend. It is positive there, and 0 in the
        other columns of this kind.
    """
    reduced: list[tuple[Integers, int]] = []
    for given in rows:
        row = [given[c] for c in order]
        for other, p in reduced:
            if row[p]:
                a, b = other[p], row[p]
                row = [a * x - b * y for x, y in zip(row, other, strict=True)]
        pivot = next((j for j, x in enumerate(row) if x), None)
        if pivot is not None:
            reduced.append((_shortest(row), pivot))
        if len(reduced) == len(order):
            return []
    free = sorted(set(range(len(order))) - {p for _, p in reduced})
    return [_null_vector(reduced, f, order) for f in free]


def _null_vector(reduced: list[tuple[Integers, int]], free: int, order: Integers) -> Integers:
    """The vector of one free column; rows have zeros in the pivot columns of earlier ones."""
    x = [0] * len(order)
    x[free] = 1
    for row, p in reversed(reduced):
        rest = dot(row, x)
        if rest:
            common = gcd(rest, row[p])
            factor = abs(row[p]) // common
            x = [factor * value for value in x]
            x[p] = -(rest // common) * (1 if row[p] > 0 else -1)
    out = [0] * len(order)
    for value, c in zip(x, order, strict=True):
        out[c] = value
    return out


def _shortest(row: Integers) -> Integers:
    common = gcd(*row)
    return [x // common for x in row]


def as_integers(x: NDArray) -> Integers:
    """Floats times the smallest power of two that makes all of them integers."""
    ratios = [value.as_integer_ratio() for value in x.tolist()]
    common = max((d for _, d in ratios), default=1)
    return [n * (common // d) for n, d in ratios]


def dot(x: Integers, y: Integers) -> int:
    """Inner product."""
    return sum(a * b for a, b in zip(x, y, strict=True) if a and b)


def _cramer(B: list[Integers], right: Integers, effort: Effort) -> tuple[Integers, int] | None:
    """Integers x and a positive d with ``B x = d right``, by Bareiss's elimination.

    The equation with the shortest integers is eliminated first, so that rows of zeros and ones
    cost next to nothing. None where B is singular, or where the elimination would take too long.
    """
    n = len(B)
    rows, left = [[*row, rhs] for row, rhs in zip(B, right, strict=True)], set(range(n))
    pivots: list[tuple[Integers, int]] = []  # rows with their columns
    divisor, most = 1, effort.products + _MAX_WORD_PRODUCTS
    while left:
        i = min(left, key=lambda i: max(map(int.bit_length, rows[i])))
        left.remove(i)
        pivot_row = rows[i]
        columns = [j for j in range(n) if pivot_row[j]]
        if not columns or effort.products > most:
            return None
        column = min(columns, key=lambda j: pivot_row[j].bit_length())
        pivot = pivot_row[column]
        for other in left:
            row, f = rows[other], rows[other][column]
            rows[other] = [
                (pivot * a - f * b) // divisor for a, b in zip(row, pivot_row, strict=True)
            ]
        words = max(map(int.bit_length, pivot_row)) / _WORD_BITS
        effort.products += len(left) * (n + 1) * (1.0 + words**_KARATSUBA)
        pivots.append((pivot_row, column))
        divisor = pivot
    return _back_substituted(pivots, divisor)


def _back_substituted(pivots: list[tuple[Integers, int]], d: int) -> tuple[Integers, int]:
    """Solve the triangular system that Bareiss's elimination has left; d is its last pivot."""
    n = len(pivots)
    x = [0] * n
    for row, column in reversed(pivots):
        rest = d * row[n] - sum(a * b for a, b in zip(row, x, strict=False) if a and b)
        x[column] = rest // row[column]
    return ([-value for value in x], -d) if d < 0 else (x, d)
