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

TOO_LARGE = "it takes too long"
WRITTEN = 2**22  # numbers of rows that are written out: 32 MB
WORK = 2e7  # numbers of integer rows that are looked at: a second or two
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
    at, q = found.at[some], found.weights[some]
    if (found.weights[~some] != 0).any() or (q[~design.equality[at]] < 0).any():
        return Proof("weights are negative somewhere, or not 0 on rows that are separated")
    try:
        face = _short_face(design, found, at, q) or _face(design, found, at, q)
        return face if isinstance(face, Proof) else _proved(design, found, face)
    except OverflowError:
        return Proof("there are numbers below 1e-300")


def _proved(design: Design, found: Split, face: Face) -> Proof:
    positive = np.flatnonzero(found.separated)
    if len(positive) and not len(face.free):
        return Proof("rows are called separated, but the others leave no direction")
    if len(face.free) and not len(positive):
        return Proof("columns are called identified that are not")
    if len(positive):
        missing = not_positive(design, positive, found.direction, face)[0]
        if missing is None or len(missing):
            flaw = "not all rows that are called separated are"
            return Proof(TOO_LARGE) if missing is None else Proof(flaw, missing)
        if not _independent(design, np.intersect1d(found.at, positive), face):
            return Proof("the columns that are called identified are not known to be independent")
    flaw, missing = _flaw_of_columns(design, found)
    missing = np.setdiff1d(missing, found.at)
    return Proof(flaw, missing, None if len(missing) else face)


def _short_face(design: Design, found: Split, at: Array, q: Array) -> Face | None:
    """The face, if it has short vectors, and floats prove that the rows with weight allow no other.

    So they do where no direction is left, or all are.
    """
    near, (k, f) = found.face[found.kept], (len(found.kept), found.face.shape[1])
    vectors, free = np.zeros((f, k), dtype=object), np.arange(f)
    if f == k and not len(at):
        vectors[free, free] = 1
    elif f:
        used = np.flatnonzero(near.any(axis=1))
        near = near[used] / design.integers(NONE, found.kept[used])[1][:, None]
        near /= np.maximum(np.abs(near).max(axis=0, initial=0.0), 1e-300)
        free = exact.independent_first(near.T)[0][:f]
        if len(free) < f:
            return None
        table = np.linalg.lstsq(near[free].T, near.T, rcond=None)[0]
        vectors[:, used], free = exact.short_fractions(table), used[free]
    own = vectors[:, free].diagonal()
    if not own.all() or (vectors[:, free] != np.diag(own)).any():
        return None
    missing = _not_zero(design, np.flatnonzero(~found.separated), found.kept, vectors)
    pivots = np.delete(found.kept, free)
    if missing is None or len(missing) or not _balance_in_floats(design, at, pivots, q):
        return None
    return Face(design, found.kept, vectors, free)


def _balance_in_floats(design: Design, at: Array, columns: Array, q: Array) -> bool:
    """Whether floats prove that rows balance in some columns, and are independent there."""
    if not len(columns):
        return True
    if not len(columns) <= len(at) <= WRITTEN / design.shape[1]:
        return False
    A, E, equality = dense(design.rows(at)), design.errors(at), design.equality[at]
    unit = np.exp2(np.frexp(np.abs(A[:, columns]).max(axis=0))[1])
    M, weights = _both_ways(A[:, columns] / unit, equality, q)
    E = np.abs(_both_ways(E[:, columns] / unit, equality, q)[0])
    order, rank = exact.independent_first(M.T * np.maximum(weights, 1e-3 * weights.max()))
    return rank == len(columns) and exact.solution_is_near(M[order].T, weights[order], E[order].T)


def _both_ways(A: Array, equality: Array, q: Array) -> tuple[Array, Array]:
    """Rows whose weights are positive: an equality is two opposite ones."""
    top, free = np.abs(q).max(initial=0.0) or 1.0, q[equality]
    weights = [q[~equality], top + np.maximum(free, 0.0), top + np.maximum(-free, 0.0)]
    return np.concatenate([A[~equality], A[equality], -A[equality]]), np.concatenate(weights)


def _face(design: Design, found: Split, at: Array, q: Array) -> Face | Proof:
    """The null space of rows with weight, on which all overlapping rows are to be 0."""
    if len(at) * len(found.kept) > WORK:
        return Proof(TOO_LARGE)
    M, unit = design.integers(at, found.kept)
    some, equality = np.arange(len(at)), design.equality[at]
    if M.size * min(M.shape) > ALL_ROWS:  # as many as are needed, as far as floats see
        order, rank = exact.independent_first(exact.floats(exact.floats(M, 0)[0])[0].T)
        some = order[:rank]
    near = found.face[found.kept] / unit[:, None]
    near /= np.maximum(np.abs(near).max(axis=0, initial=0.0), 1e-300)
    overlapping, wrong = np.flatnonzero(~found.separated), at
    for _ in range(5):
        null = exact.null_space(M[some], near)
        missing = null and _not_zero(design, overlapping, found.kept, null[0])
        if null is None or missing is None:
            return Proof(TOO_LARGE)
        if not len(missing):
            pivots = np.delete(np.arange(len(found.kept)), null[1])
            A, weights = _both_ways(M[:, pivots], equality, q)
            if (q[~equality] > 0).any() and exact.positive_weights(A.T, weights) is None:
                return Proof("no exact weights near these are known")
            return Face(design, found.kept, *null)
        more = np.flatnonzero(np.isin(at, missing))[: len(found.kept)]
        wrong, some = missing, np.union1d(some, more)
        if not len(more):
            break
    return Proof("some overlapping rows are not combinations of those with weight", wrong)


def _not_zero(design: Design, at: Array, columns: Array, vectors: Array) -> Array | None:
    """Rows that are not 0 on all vectors; None: it takes too long."""
    used = np.flatnonzero(vectors.any(axis=0))
    if len(at) * len(used) > WORK or len(at) * len(used) * len(vectors) > 10 * WORK:
        return None
    M = design.integers(at, columns[used])[0]
    return at[exact.multiplied(M, vectors[:, used].T).any(axis=1)]


def not_positive(
    design: Design, at: Array, w: tuple[Array, Array], face: Face | None
) -> tuple[Array | None, Array]:
    """Rows that a direction is not proved to be positive on, and its signs.

    It is the direction of the face that is near; without a face, it is what it is, and nothing is
    proved beyond floats. None: it takes too long.
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
    if face is None or not len(unclear):
        return unclear, signs
    if len(unclear) * len(face.kept) > WORK / 10:
        return None, signs
    M, v = design.integers(unclear, face.kept)[0], face.near(w) if v is None else v
    return unclear[~((M.astype(object) @ v) > 0)], signs


def _independent(design: Design, at: Array, face: Face) -> bool:
    """Whether no vector of the face is 0 on all of these rows."""
    k, some = len(face.free), at[:: len(at) // (4 * len(face.free)) + 1]
    if len(some) * design.shape[1] <= WRITTEN:
        F = np.zeros((design.shape[1], k))
        F[face.kept, np.arange(len(face.kept)) % k] = 1.0 / design.reach[face.kept]
        F = F if face.is_all else face.floats(face.vectors)
        A, E = dense(design.rows(some)), design.errors(some)
        T = A @ F
        first = exact.independent_first(T.T)[0][:k]
        error = E[first] @ np.abs(F) + UNIT * (len(F) + 8) * (np.abs(A[first]) @ np.abs(F))
        if len(first) == k and exact.is_regular(T[first], error):
            return True
    if len(at) * k * k > 10 * ALL_ROWS:
        return False
    M = design.integers(at, face.kept)[0]
    return len(exact.independent(exact.multiplied(M, face.vectors.T))[0]) == k


def _flaw_of_columns(design: Design, found: Split) -> tuple[str, Array]:
    """What is not proved of columns that should be combinations of those before them.

    And rows in which one is none.
    """
    if len(found.loose):
        return f"column {found.loose[0]} is not identified only up to rounding", NONE
    (n, d), kept = design.shape, found.kept
    rest = np.setdiff1d(np.arange(d), kept)
    if len(kept) == n:  # they span all columns
        rest = rest[rest < kept.max(initial=0)]
    at = found.at[: WRITTEN // d]
    A = dense(design.rows(at)) / design.reach if len(rest) else np.zeros((0, d))
    for j in rest[:200]:
        before, missing = kept[kept < j], NONE
        factors = np.linalg.lstsq(A[:, before], A[:, j], rcond=None)[0]
        for some in before[np.abs(factors) > 1e-9], before:
            rows = _others(design, at, some, j)
            if rows is not None and not len(rows):
                break
            missing = NONE if rows is None else rows
        else:
            return f"column {j} is not identified only up to rounding", missing
    return TOO_LARGE if len(rest) > 200 else "", NONE


def _others(design: Design, at: Array, before: Array, j: int) -> Array | None:
    """Rows in which a column is not the combination that it is in some; None: it is none there."""
    used, n = np.append(before, j), design.shape[0]
    if n * len(used) > WORK:
        return None
    M = design.integers(at, used)[0]
    rows = exact.independent(M)[0] if M.size * len(used) <= ALL_ROWS else np.arange(len(M))
    null = exact.null_space(M[rows])
    if null is None or null[1].tolist() != [len(before)]:
        return None
    return _not_zero(design, np.arange(n), used, null[0])


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
