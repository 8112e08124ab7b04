"""The proof of a split: in floats with error bounds where these are enough, else in integers.

A direction that is positive on the separated rows and 0 on all others proves that they are
separated; weights that balance, positive on rows that span the others, that these are not
(Albert and Anderson). The face, all directions that are 0 on these, says which coefficients are
infinite. Nothing here depends on how any of it was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.certificate import exact
from marginsvm.separation.design import Design, dense
from marginsvm.separation.program import Split, null_vectors

WRITTEN = 2**22  # numbers of rows that are written out: 32 MB
MANY = 200  # columns that are combinations of others: to prove that takes too long
EXACT = 2_000_000  # numbers of a design that is written as integers
ALL_ROWS = 2e6  # products of an elimination of all rows; of more, rows are chosen by floats
NONE = np.zeros(0, int)


@dataclass(frozen=True)
class Face:
    """Directions that are exactly 0 on all overlapping rows.

    Attributes
    ----------
    design : Design
    kept : ndarray of int
        Columns: all others are combinations of those before them.
    vectors : ndarray of int, shape (k, n_kept)
        They span it, for columns as integers (``design.integers``).
    free : ndarray of int, shape (k,)
        Places that a vector has to itself.
    """

    design: Design
    kept: Array
    vectors: Array
    free: Array

    @cached_property
    def unit(self) -> Array:
        """Of the columns as integers, where a vector is not 0."""
        used, out = self.vectors.any(axis=0), np.ones(len(self.kept))
        out[used] = self.design.integers(NONE, self.kept[used])[1]
        return out

    @property
    def is_all(self) -> bool:
        """Whether no row overlaps: directions need no integers."""
        return len(self.free) == len(self.kept)

    def near(self, direction: tuple[Array, Array]) -> Array:
        """The vector of the face that has the values of a direction in free places: integers."""
        values = []
        for row, j in zip(self.vectors, self.free.tolist(), strict=True):
            high, low = (Fraction(float(part[self.kept[j]])) for part in direction)
            values.append((high + low) / Fraction(float(self.unit[j])) / int(row[j]))
        return np.asarray(np.array(exact.integers(values), dtype=object) @ self.vectors)

    def floats(self, vectors: Array) -> Array:
        """Integer vectors as directions with entries of at most about 1, shape (n_columns, k)."""
        out = np.zeros((self.design.shape[1], len(vectors)))
        out[self.kept] = exact.floats(vectors)[0].T * self.unit[:, None]
        top = np.abs(out).max(axis=0, initial=0.0)
        return out / np.where(top > 0, top, 1.0)


class Proof(NamedTuple):
    """What is not proved of a split, an empty string: nothing.

    With a face, this is only that columns are combinations of others; all else holds without
    these. ``missing`` are rows that forbid the split.
    """

    flaw: str
    missing: Array = NONE
    face: Face | None = None


def prove(design: Design, found: Split) -> Proof:
    """Whether a split holds without rounding, for the numbers as they are printed."""
    some = ~found.separated[found.at]
    some &= (found.weights > 0) | design.equality[found.at]
    at, q, (n, d) = found.at[some], found.weights[some], design.shape
    rest = np.setdiff1d(np.arange(d), found.kept)
    if len(found.kept) == n:  # these span all columns
        rest = rest[rest < found.kept.max(initial=0)]
    if (found.weights[~some] != 0).any() or (q[~design.equality[at]] < 0).any():
        return Proof("weights are negative somewhere, or not 0 on rows that are separated")
    try:
        if not len(rest) and _holds_in_floats(design, found, at, q):
            k = len(found.kept)
            own = np.arange(k if found.separated.all() else 0)
            return Proof("", NONE, Face(design, found.kept, np.eye(len(own), k, dtype=object), own))
        if n * d > EXACT:
            return Proof("it takes too long")
        return _in_integers(design, found, at, q, rest)
    except OverflowError:
        return Proof("there are numbers below 1e-300")


def _holds_in_floats(design: Design, found: Split, at: Array, q: Array) -> bool:
    """Whether floats prove that all rows are separated, or none, and that columns are independent.

    Both hold whatever the errors of these floats are.
    """
    kept, k, every, unit = found.kept, len(found.kept), found.separated.all(), design.reach
    rows = found.at[:: len(found.at) // (4 * k + 1) + 1] if every else at
    if not k <= len(rows) <= WRITTEN / design.shape[1] or (found.separated.any() and not every):
        return False
    A, E = (dense(part(rows) / unit)[:, kept] for part in (design.rows, design.errors))
    if every:
        order, rank = exact.independent_first(A.T)
        first = order[:k]
        bad = not_positive(design, np.arange(design.shape[0]), found.direction, None)[0]
        return rank == k and not len(bad) and exact.is_regular(A[first], E[first])
    A, weights = _both_ways(A, design.equality[at], q)
    E = np.abs(_both_ways(E, design.equality[at], q)[0])
    order, rank = exact.independent_first(
        A.T * np.maximum(weights, 1e-3 * weights.max(initial=0.0))
    )
    return rank == k and exact.solution_is_near(A[order].T, weights[order], E[order].T)


def _in_integers(design: Design, found: Split, at: Array, q: Array, rest: Array) -> Proof:
    """The same, of rows of both kinds, and of columns that are combinations of others."""
    kept, separated, equality = found.kept, found.separated, design.equality[at]
    M, unit = design.integers(*map(np.arange, design.shape))
    flaw, missing = _flaw_of_columns(M, found, rest) if len(rest) else ("", NONE)
    if len(missing):
        return Proof(flaw, missing)
    near = found.face[kept] / unit[kept, None]
    near = near / np.maximum(np.abs(near).max(axis=0, initial=0.0), 1e-300)
    null = exact.null_space(_few(M[at][:, kept]), near)
    if null is None:
        return Proof("it takes too long")
    face = Face(design, kept, *null)
    wrong = ~separated & exact.multiplied(M[:, kept], face.vectors.T).any(axis=1)
    if wrong.any():
        text = "some overlapping rows are not combinations of those with weight"
        return Proof(text, np.flatnonzero(wrong))
    if separated.any() != bool(len(face.free)):
        return Proof("the overlapping rows leave a direction, or none, but should not")
    wrong = separated & (
        exact.multiplied(M[:, kept], face.near(found.direction)[:, None])[:, 0] <= 0
    )
    if wrong.any():
        return Proof("not all rows that are called separated are", np.flatnonzero(wrong))
    T = exact.multiplied(M[separated][:, kept], face.vectors.T)
    if len(exact.independent(_few(T))[1]) < len(face.free):
        return Proof("columns are called identified that are not known to be independent")
    A, weights = _both_ways(M[at][:, np.delete(kept, face.free)], equality, q)
    if (q[~equality] > 0).any() and exact.positive_weights(A.T, weights) is None:
        return Proof("no exact weights near these are known")
    return Proof(flaw, NONE, face)


def _few(M: Array) -> Array:
    """Integer rows; of very many as many as are needed, as far as floats see."""
    if M.size * min(M.shape) <= ALL_ROWS:
        return M
    order, rank = exact.independent_first(exact.floats(exact.floats(M, 0)[0])[0].T)
    return M[order[:rank]]


def _flaw_of_columns(M: Array, found: Split, rest: Array) -> tuple[str, Array]:
    """What is not proved of columns that should be combinations of those before them.

    And rows in which one is none.
    """
    flaw, kept = f"column {rest[0]} is not identified only up to rounding", found.kept
    if len(found.loose) or len(rest) > MANY:
        return flaw, NONE
    used = np.union1d(kept, rest)
    M, own, before = M[:, used], np.searchsorted(used, rest), np.searchsorted(used, kept)
    (F, e), near = exact.floats(M[found.at], 0), np.zeros((len(used), len(rest)))
    near[own] = np.eye(len(rest))
    near[before] = -np.linalg.lstsq(F[:, before], F[:, own], rcond=None)[0]
    null = exact.null_space(_few(M[found.at]), near * 2.0 ** -(e.T - e.max()))
    if null is None or null[1].tolist() != own.tolist():
        return flaw, NONE
    later = [row[j + 1 :].any() for row, j in zip(null[0], own.tolist(), strict=True)]
    missing = np.flatnonzero(exact.multiplied(M, null[0].T).any(axis=1))
    return (flaw if any(later) or len(missing) else ""), missing


def _both_ways(A: Array, equality: Array, q: Array) -> tuple[Array, Array]:
    """Rows whose weights are positive: an equality is two opposite ones."""
    top, free = np.abs(q).max(initial=0.0) or 1.0, q[equality]
    weights = [q[~equality], top + np.maximum(free, 0.0), top + np.maximum(-free, 0.0)]
    return np.concatenate([A[~equality], A[equality], -A[equality]]), np.concatenate(weights)


def not_positive(
    design: Design, at: Array, w: tuple[Array, Array], face: Face | None
) -> tuple[Array, Array]:
    """Rows that a direction is not proved to be positive on, and its signs.

    It is the direction of the face that is near; without a face, it is what it is.
    """
    high, n, v = w[0], design.shape[1], None
    signs = np.sign(high)
    if face is not None and not face.is_all:
        v = face.near(w)
        high, signs = face.floats(v[None])[:, 0], np.zeros(n)
        signs[face.kept] = np.sign(v).astype(float)
    m = design.margins(high[:, None])[at, 0]
    error = 2.0**-47 + UNIT * (n + 16)  # of numbers, and of sums
    unclear = at[~(m > 2 * error * float(design.reach @ np.abs(high)))]
    if 0 < len(unclear) * n <= WRITTEN:
        A, E = dense(design.rows(unclear)), design.errors(unclear)
        errors = UNIT * (n + 16) * (np.abs(A) @ np.abs(high)) + E @ np.abs(high)
        unclear = unclear[~(A @ high > errors)]
    if face is None or not 0 < len(unclear) * n <= EXACT:
        return unclear, signs
    M, v = design.integers(unclear, face.kept)[0], face.near(w) if v is None else v
    return unclear[~((M.astype(object) @ v) > 0)], signs


def balances(design: Design, found: Split) -> bool:
    """Whether the weights balance up to rounding."""
    at = found.at[found.weights != 0]
    q = found.weights[found.weights != 0]
    return bool((np.abs(design.rows(at).T @ q) <= 1e-9 * design.reach * np.abs(q).sum()).all())


def flaw_in_floats(design: Design, found: Split) -> str:
    """What is wrong with a split beyond rounding; an empty string: nothing.

    Lengths of 1e-9 of those of the terms count as 0, and rows are combinations up to 1e-7.
    """
    w, kept, unit = found.direction[0], found.kept, design.reach
    m, size = design.margins(w[:, None])[:, 0], float(unit @ np.abs(w))
    if (m[found.separated] <= 1e-14 * size).any():
        return "the direction does not separate all rows that are called separated"
    if (np.abs(m[~found.separated]) > 1e-9 * size).any():
        return "the direction is not 0 on all rows that are called overlapping"
    A, q, free = design.rows(found.at), found.weights, design.equality[found.at]
    if (q[~free] < 0).any() or (q[found.separated[found.at]] != 0).any():
        return "weights are negative somewhere, or not 0 on rows that are separated"
    if not balances(design, found):
        return "the weights do not balance the rows"
    spanning = ~found.separated[found.at] & ((q > 0) | free)
    N = null_vectors(sp.csr_array(A[spanning][:, kept] / unit[kept]))[0]
    V = np.zeros((len(w), N.shape[1]))
    V[kept] = N / unit[kept, None]
    if (np.abs(design.margins(V)[~found.separated]) > 1e-7).any():
        return "some overlapping rows are not combinations of those with weight"
    moved = np.abs(N).max(axis=1, initial=0.0) > 1e-7
    if (moved != found.face[kept].any(axis=1)).any():
        return "coefficients are called infinite that are finite, or the other way round"
    return ""
