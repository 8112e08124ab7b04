"""Proofs of a split, in floats with error bounds or in integers; signs; the check of a report.

A direction that is positive on the separated rows and 0 on all others proves that they are
separated. Dual variables q with ``A'q = 0``, positive on rows that span the others, prove that
these overlap (Albert and Anderson). Coefficients that are not 0 on the face, the directions that
are 0 on all overlapping rows, are infinite. ``prove`` does not depend on the solver, so reports are
checked by it, from the data alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from marginsvm._rounding import UNIT, rounding_of
from marginsvm._threads import single_threaded_blas
from marginsvm._typing import Array
from marginsvm.certificate import exact
from marginsvm.separation import families, program
from marginsvm.separation.families import EXACT, UNIDENTIFIED, Design, dense
from marginsvm.separation.program import TINY, Split, multiplied

WRITTEN = 2**22  # entries of rows converted to dense: 32 MB
MANY = 200  # largest number of dependent columns to prove
MOST_SIGNS = 100  # largest number of coefficients whose signs are decided one by one
SIMPLEX = 4000  # largest number of entries for the simplex method in integers
_UP_TO_ROUNDING = "This holds up to the rounding of X; of its numbers as they are, {}."


class Face(NamedTuple):
    """Directions that are exactly 0 on all overlapping rows.

    Attributes
    ----------
    n_columns : int
    kept : ndarray of int
        Columns: all others are combinations of those before them.
    vectors : ndarray of int, shape (k, n_kept)
        A basis.
    free : ndarray of int, shape (k,)
        For each vector, a coordinate in which all others are 0.
    """

    n_columns: int
    kept: Array
    vectors: Array
    free: Array

    @property
    def is_all(self) -> bool:
        """Whether no row overlaps, so that any direction is in the face."""
        return len(self.free) == len(self.kept)

    def near(self, direction: tuple[Array, Array]) -> Array:
        """The vector of the face with a direction's values in the free coordinates: integers."""
        values = []
        for row, j in zip(self.vectors, self.free.tolist(), strict=True):
            high, low = (Fraction(float(part[self.kept[j]])) for part in direction)
            values.append((high + low) / int(row[j]))
        return np.asarray(np.array(exact.integers(values), dtype=object) @ self.vectors)

    def floats(self, vectors: Array) -> Array:
        """Integer vectors as directions with entries of at most about 1, shape (n_columns, k)."""
        out = np.zeros((self.n_columns, len(vectors)))
        out[self.kept] = exact.floats(vectors)[0].T
        return out


def in_floats(v: Array, kept: Array, n_columns: int) -> tuple[Array, Array]:
    """Integers divided by the largest one, with zeros in other columns: floats and remainders."""
    top = max(map(abs, v.tolist()), default=0) or 1
    values, out = [Fraction(x, top) for x in v.tolist()], np.zeros((2, n_columns))
    for part in out:
        part[kept] = [float(x) for x in values]
        values = [x - Fraction(y) for x, y in zip(values, part[kept].tolist(), strict=True)]
    return out[0], out[1]


class Answer(NamedTuple):
    """A split, its face if proved, and what is proved.

    ``reason``: why it is undecided, or what holds up to rounding only, or empty. ``separable``:
    whether all rows are separated.
    """

    found: Split
    face: Face | None = None
    reason: str = ""
    separable: bool | None = None
    undecided: bool = False


def answer(design: Design) -> Answer:
    """Split the rows, and prove it."""
    (n, d), flaw, found = design.shape, "", Split.of_nothing(*design.shape)
    if not n:
        nothing = np.zeros((0, 0), object)
        return Answer(found, Face(d, found.kept, nothing, found.kept), separable=False)
    for everything in (False, True) if n * d <= EXACT else (False,):
        try:
            found = program.split(design, everything)
        except program.ProgramError as error:
            flaw = str(error)
            continue
        flaw, face = prove(design, found)
        every = len(found.at) == n
        if face is not None and (every or not flaw):
            return _decided(design, found, face, flaw and _UP_TO_ROUNDING.format(flaw))
        if n * d > EXACT or (face is None and design.rounded.any()):
            # A result that rounding may have changed is not final.
            doubt = flaw_in_floats(design, found)
            if doubt:
                return Answer(found, None, f"{doubt}.", undecided=True)
            return _decided(design, found, None, _UP_TO_ROUNDING.format("it is not proved"))
        if every:
            break
    simple = _by_simplex(design) if n * d <= SIMPLEX else None
    face = None if simple is None else prove(design, simple)[1]
    if simple is None or face is None:
        return Answer(found, None, f"no proof is known: {flaw}.", undecided=True)
    return _decided(design, replace(simple, face=face.floats(face.vectors)), face, "")


def _decided(design: Design, found: Split, face: Face | None, reason: str) -> Answer:
    if not found.separated.all():
        known = design.equality.any() or (face is not None and not reason)
        return Answer(found, face, reason, False if known else None)
    known = face is not None or not len(not_positive(design, found.separated, found.direction)[0])
    return Answer(found, face, reason, True if known else None)


def prove(design: Design, found: Split) -> tuple[str, Face | None]:
    """Prove a split without rounding, for X as printed.

    Returns the unproved part, or an empty string; and the face. With a face, only the dependence of
    columns is unproved: all else holds without these columns.
    """
    some = ~found.separated[found.at]
    some &= (found.weights > 0) | design.equality[found.at]
    at, q, (n, d) = found.at[some], found.weights[some], design.shape
    rest = np.setdiff1d(np.arange(d), found.kept)
    if len(found.kept) == n:  # these span all columns
        rest = rest[rest < found.kept.max(initial=0)]
    if (found.weights[~some] != 0).any() or (q[~design.equality[at]] < 0).any():
        return "weights are negative somewhere, or not 0 on rows that are separated", None
    if not balances(design, found):
        return "the weights do not balance the rows", None
    if not len(rest) and _holds_in_floats(design, found, at, q):
        k = len(found.kept)
        own = np.arange(k if found.separated.all() else 0)
        return "", Face(d, found.kept, np.eye(len(own), k, dtype=object), own)
    if n * d > EXACT or not design.is_whole:
        return "it takes too long", None
    return _in_integers(design, found, at, q, rest)


def _holds_in_floats(design: Design, found: Split, at: Array, q: Array) -> bool:
    """Whether floats prove that all rows are separated, or none, and that columns are independent.

    Error bounds make both rigorous.
    """
    kept, k, every, unit = found.kept, len(found.kept), found.separated.all(), design.reach
    rows = found.at[:: len(found.at) // (4 * k + 1) + 1] if every else at
    if not k <= len(rows) <= WRITTEN / design.shape[1] or (found.separated.any() and not every):
        return False
    A, E = (dense(part(rows) / unit)[:, kept] for part in (design.rows, design.errors))
    if every:
        order, rank = exact.independent_first(A.T)
        first = order[:k]
        bad = not_positive(design, found.separated, found.direction)[0]
        return rank == k and not len(bad) and exact.is_regular(A[first], E[first])
    A, weights = _both_ways(A, design.equality[at], q)
    E = np.abs(_both_ways(E, design.equality[at], q)[0])
    order, rank = exact.independent_first(
        A.T * np.maximum(weights, 1e-3 * weights.max(initial=0.0))
    )
    return rank == k and exact.solution_is_near(A[order].T, weights[order], E[order].T)


def _in_integers(
    design: Design, found: Split, at: Array, q: Array, rest: Array
) -> tuple[str, Face | None]:
    """``prove`` in integers: for rows of both kinds, and dependent columns."""
    kept, separated, equality = found.kept, found.separated, design.equality[at]
    M, d = design.integers(np.arange(design.shape[0])), design.shape[1]
    flaw = f"column {rest[0]} is not identified only up to rounding" if len(rest) else ""
    if len(rest) and len(rest) <= MANY and not len(found.loose) and _are_sums(M, found, rest):
        flaw = ""
    near = found.face[kept] / np.maximum(np.abs(found.face[kept]).max(axis=0, initial=0.0), 1e-300)
    null = exact.null_space(M[at][:, kept], near)
    if null is None:
        return "it takes too long", None
    face = Face(d, kept, *null)
    if (~separated & exact.multiplied(M[:, kept], face.vectors.T).any(axis=1)).any():
        return "some overlapping rows are not combinations of those with weight", None
    if separated.any() != bool(len(face.free)):
        return "the overlapping rows leave a direction, or none, but should not", None
    T, near, w = M[separated][:, kept], face.near(found.direction), found.direction[0]
    v = w if face.is_all else in_floats(near, kept, d)[0]
    w, v = (x / (np.abs(x).max() or 1.0) for x in (w * design.reach, v * design.reach))
    if not np.allclose(w, v, atol=1e-6):
        return "the direction is not 0 on all rows that are called overlapping", None
    if (exact.multiplied(T, near[:, None]) <= 0).any():
        return "not all rows that are called separated are", None
    if len(exact.independent(exact.multiplied(T, face.vectors.T))[1]) < len(face.free):
        return "columns are called identified that are not known to be independent", None
    A, weights = _both_ways(M[at][:, np.delete(kept, face.free)], equality, q)
    if (q[~equality] > 0).any() and exact.positive_weights(A.T, weights) is None:
        return "no exact weights near these are known", None
    return flaw, face


def _are_sums(M: Array, found: Split, rest: Array) -> bool:
    """Whether columns are linear combinations of those before them, in all rows."""
    used = np.union1d(found.kept, rest)
    M, own, before = M[:, used], np.searchsorted(used, rest), np.searchsorted(used, found.kept)
    (F, e), near = exact.floats(M[found.at], 0), np.zeros((len(used), len(rest)))
    near[own] = np.eye(len(rest))
    near[before] = -np.linalg.lstsq(F[:, before], F[:, own], rcond=None)[0]
    null = exact.null_space(M[found.at], near * 2.0 ** -(e.T - e.max()))
    if null is None or null[1].tolist() != own.tolist() or exact.multiplied(M, null[0].T).any():
        return False
    return not any(row[j + 1 :].any() for row, j in zip(null[0], own.tolist(), strict=True))


def _both_ways(A: Array, equality: Array, q: Array) -> tuple[Array, Array]:
    """Rows with q > 0: an equality is split into two opposite rows."""
    top, free = np.abs(q).max(initial=0.0) or 1.0, q[equality]
    weights = [q[~equality], top + np.maximum(free, 0.0), top + np.maximum(-free, 0.0)]
    return np.concatenate([A[~equality], A[equality], -A[equality]]), np.concatenate(weights)


def not_positive(
    design: Design, some: Array, w: tuple[Array, Array], face: Face | None = None
) -> tuple[Array, Array]:
    """Rows of a mask on which a direction is not proved to be positive, and its signs.

    The direction is replaced by the nearest one of the face, if that is known.
    """
    high, d = w[0], design.shape[1]
    signs, at, v = np.sign(high), np.flatnonzero(some), None
    if face is not None and not face.is_all:
        v = np.zeros(d, object)
        v[face.kept] = face.near(w)
        high, signs = face.floats(v[None, face.kept])[:, 0], np.sign(v).astype(float)
    m = design.margins(high[:, None])[at, 0]
    error = 2.0**-47 + UNIT * (d + 16)  # of numbers, and of sums
    unclear = at[~(m > 2 * error * float(design.reach @ np.abs(high)))]
    if 0 < len(unclear) * d <= WRITTEN:
        A, E = dense(design.rows(unclear)), design.errors(unclear)
        errors = UNIT * (d + 16) * (np.abs(A) @ np.abs(high)) + E @ np.abs(high)
        unclear = unclear[~(A @ high > errors)]
    if not design.is_whole or not 0 < len(unclear) * d <= EXACT:
        return unclear, signs
    if v is None:
        pairs = zip(w[0].tolist(), w[1].tolist(), strict=True)
        v = np.array(exact.integers([Fraction(a) + Fraction(b) for a, b in pairs]), object)
    return unclear[~(design.integers(unclear).astype(object) @ v > 0)], signs


def balances(design: Design, found: Split) -> bool:
    """Whether ``A'q = 0`` up to rounding."""
    some = found.weights != 0
    q, A = found.weights[some], design.rows(found.at[some])
    return bool((np.abs(A.T @ q) <= 1e-9 * design.reach * np.abs(q).sum()).all())


def flaw_in_floats(design: Design, found: Split) -> str:
    """An error of a split beyond rounding, or an empty string.

    Residuals of 1e-9 relative to the terms count as 0, and rows are dependent up to 1e-7.
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
    N = program.null_vectors(A[spanning][:, kept] / unit[kept])[0]
    V = np.zeros((len(w), N.shape[1]))
    V[kept] = N / unit[kept, None]
    if (np.abs(design.margins(V)[~found.separated]) > 1e-7).any():
        return "some overlapping rows are not combinations of those with weight"
    moved = np.abs(N).max(axis=1, initial=0.0) > 1e-7
    if (moved != found.face[kept].any(axis=1)).any():
        return "coefficients are called infinite that are finite, or the other way round"
    return ""


def _by_simplex(design: Design) -> Split | None:
    """The split of few rows by the simplex method in integers (Bland's rule).

    Either the sum of the rows is minus a non-negative combination of all rows, or some of them are
    positive in a direction of the cone; then the others are solved again.
    """
    (n, d), equality = design.shape, design.equality
    every, out, q = np.arange(n), Split.of_nothing(n, d), np.zeros(n)
    M = design.integers(every).astype(object)
    kept = exact.independent(M)[1]
    M, left, w = M[:, kept], ~equality, np.zeros(len(kept), dtype=object)
    rows = np.concatenate([M, -M[equality]])
    while left.any():
        b = -M[left].sum(axis=0)
        found = exact.combination(rows, b, 10_000)
        if found is None:
            return None
        weights, v = np.asarray(found[0]), found[1]
        if v is None:
            some = np.flatnonzero(b)[:1]  # the sum is a positive multiple of b
            k = Fraction(int(rows[:, some[0]] @ weights), int(b[some[0]])) if len(some) else 1
            both = np.array([float(x / k) for x in weights.tolist()])
            q = both[:n] + left
            q[equality] -= both[n:]
            break
        m = M @ v
        positive = (m > 0) & ~equality
        w = w + v * Fraction(1, int(m.max()))  # so that none is lost in the sum
        out.separated, left = out.separated | positive, left & ~positive
    out.at, out.kept, out.weights = every, kept, np.where(out.separated, 0.0, q)
    out.direction = in_floats(w, kept, d)
    return out


# ---- signs of infinite coefficients


def statuses(design: Design, found: Split, face: Face | None) -> tuple[list[str], list[int]]:
    """The status of each column, and columns whose sign is undecided.

    A coefficient is finite exactly if all directions of the face are 0 in it. Else it has one sign
    in the whole cone exactly if its unit vector, or minus it, is on the face a non-negative
    combination of separated rows (Farkas' lemma). It has either sign if two directions of the cone
    have both. Without an exact face, signs hold up to rounding.
    """
    out = np.full(design.shape[1], UNIDENTIFIED, dtype=object)
    out[found.kept] = families.FINITE
    exactly = None if face is None else face.floats(face.vectors)
    moved = (found.face if exactly is None else exactly).any(axis=1)
    infinite = np.flatnonzero(moved & (out == families.FINITE)).tolist()
    if not infinite:
        return out.tolist(), []
    if exactly is not None and not found.face[infinite].any(axis=1).all():
        found = replace(found, face=exactly)  # in floats, indistinguishable from 0
    cone = Cone(design, found, face if design.is_whole else None)
    known, few = cone.signs(found.direction), found.spanned and len(infinite) <= MOST_SIGNS
    seen = np.zeros(len(out), int) if known is None else known.astype(int)
    signs = {j: cone.sign(j, int(seen[j])) if few else cone.sign_of_a_row(j) for j in infinite}
    for j, sign in signs.items():
        out[j] = {1: families.PLUS, -1: families.MINUS}.get(sign or 0, families.EITHER)
    return out.tolist(), [j for j, sign in signs.items() if sign is None]


class Cone:
    """The directions ``w = F c`` of a face that are positive on all separated rows, ``T c > 0``.

    T holds some of these rows, scaled to unit length; ``lengths`` are their norms before.
    """

    def __init__(self, design: Design, found: Split, face: Face | None) -> None:
        self.design, self.found, self.face = design, found, face
        every = np.flatnonzero(found.separated)
        few = len(every) * design.shape[1] <= WRITTEN
        self.look_at(every if few else np.intersect1d(found.at, every))

    def look_at(self, at: Array) -> None:
        """Set T to some of the separated rows, in well-conditioned coordinates."""
        self.at, A, F, unit = at, self.design.rows(at), self.found.face, self.design.reach
        T, size = np.asarray(A @ F), np.abs(A) @ np.abs(F)
        cancelled = np.abs(T).max(axis=1) < program.CLEAR * size.max(axis=1)
        if cancelled.any() and len(at) * F.size <= 1e7:
            T = multiplied(dense(A), F)[0]
        top = np.maximum(np.abs(T).max(axis=1), 1e-300)
        T, C = program.coordinates(T / top[:, None])
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", T, T)), 1e-300)
        self.T, self.lengths, self.F = T / lengths[:, None], lengths * top, F @ C
        w = self.found.direction[0] * unit
        self.z = np.linalg.lstsq(self.F * unit[:, None], w, rcond=None)[0]
        self.z /= np.sqrt(self.z @ self.z)

    def signs(self, w: tuple[Array, Array]) -> Array | None:
        """The signs of a direction of the cone; if it is outside, violated rows join T."""
        bad, signs = not_positive(self.design, self.found.separated, w, self.face)
        new = np.setdiff1d(bad, self.at)[: 4 * len(self.z)]
        if len(new):
            self.look_at(np.union1d(self.at, new))
        if self.face is None:
            size = np.abs(w[0]) * self.design.reach
            signs = np.where(size > TINY * size.max(), signs, 0.0)
        return None if len(bad) else signs

    def sign(self, j: int, seen: int) -> int | None:
        """1 or -1 if a column has this sign in the whole cone; 0: either; None: unknown.

        ``seen`` is the sign in a known direction of the cone; 0: none is known.
        """
        known = {seen} - {0}
        for sign in (seen or 1, -(seen or 1)):
            for part in (1e-6, 1e-3, 0.1) * 3:
                q, rest = least_rest(self.T, sign * self.F[j] / np.sqrt(self.F[j] @ self.F[j]))
                length = np.sqrt(rest @ rest)
                if length <= 1e-8:
                    if self.is_sum(sign, j, q):
                        return sign
                    break
                v = multiplied(self.F, (part * self.z - rest / length)[:, None])
                signs = self.signs((v[0][:, 0], v[1][:, 0]))
                if signs is not None and signs[j]:
                    known.add(int(signs[j]))
                    break
            if len(known) == 2:
                return 0
        every = np.flatnonzero(self.found.separated)
        if self.face is None or len(every) * len(self.face.vectors) > SIMPLEX:
            return None
        M, line = self.on_face(every, j)
        for sign in (1, -1):
            found = exact.combination(M, sign * line)
            if found is None or found[1] is None:
                return None if found is None else sign
        return 0

    def sign_of_a_row(self, j: int) -> int | None:
        """The sign implied by a single row; None: no row implies it."""
        line = self.F[j] / np.sqrt(self.F[j] @ self.F[j])
        along = self.T @ line
        for sign in (1, -1):
            q = (np.arange(len(along)) == (sign * along).argmax()) * 1.0
            if sign * (along @ q) >= 1 - TINY and self.is_sum(sign, j, q):
                return sign
        return None

    def on_face(self, at: Array, j: int) -> tuple[Array, Array]:
        """Rows, and a column's unit vector, on the face: integers."""
        face = self.face
        assert face is not None
        used, place = np.flatnonzero(face.vectors.any(axis=0)), np.searchsorted(face.kept, j)
        M = self.design.integers(at)[:, face.kept[used]]
        return exact.multiplied(M, face.vectors[:, used].T), face.vectors[:, place]

    def is_sum(self, sign: int, j: int, q: Array) -> bool:
        """Whether some q nearby has ``T'q`` equal to a unit vector, exactly if the face is."""
        for least in (1e-9, 0.0) if self.face is not None else ():
            some = np.flatnonzero(q > least * q.max())
            M, line = self.on_face(self.at[some], j)
            weights = np.append(q[some] / self.lengths[some], 1.0 / np.sqrt(self.F[j] @ self.F[j]))
            if exact.positive_weights(np.vstack([M, -sign * line]).T, weights) is not None:
                return True
        return self.face is None


def least_rest(T: Array, unit: Array) -> tuple[Array, Array]:
    """Non-negative least squares for ``T'q = unit`` by an active set: q, and the residual.

    No row is positive on the residual.
    """
    k, q = T.shape[1], np.zeros(len(T))
    rows = np.argsort(-(T @ unit), kind="stable")[: 4 * k]
    for _ in range(100):
        found = nnls(T[rows].T, unit, maxiter=100 * sum(T.shape))[0]
        rest = unit - T[rows].T @ found
        gains = T @ rest
        new = np.setdiff1d(np.flatnonzero(gains > TINY), rows)
        if np.sqrt(rest @ rest) <= TINY or not len(new):
            break
        rows = np.append(rows, new[np.argsort(-gains[new])[: 2 * k]])
    q[rows] = found
    return q, rest


# ---- the check of a report


@dataclass(frozen=True)
class SeparabilityCheck:
    """Result of :func:`~marginsvm.check_separability_proof`; true if the report holds.

    Attributes
    ----------
    valid : bool
    reason : str
        The error or the unproved part, or an empty string.
    exact : bool
        Whether nothing was rounded.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from marginsvm import check_separability, check_separability_proof
    >>> X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> false = replace(check_separability(X, y), kind="overlap")
    >>> check_separability_proof(false, X, y).reason
    "the kind of these rows is 'quasi-complete', not 'overlap'"
    """

    valid: bool
    reason: str
    exact: bool

    def __bool__(self) -> bool:
        return self.valid


@single_threaded_blas()
def check_separability_proof(
    report: Any, X: Any, y: Any, sample_weight: Any = None, *, exact: bool = False
) -> SeparabilityCheck:
    """Check the report of :func:`marginsvm.check_separability` from the data alone.

    The report holds if three conditions do. Its ``direction`` is positive on the separated rows,
    and 0 on all others: this proves separation. Its ``overlap_weights`` q satisfy ``A^T q = 0``,
    and are positive on rows that span all others: this proves overlap. The infinite coefficients
    are those that are not 0 in all directions that are 0 on the overlapping rows.

    Parameters
    ----------
    report : Separability
        As :func:`marginsvm.check_separability` returned it.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        As given to :func:`marginsvm.check_separability`.
    y : array-like of shape (n_samples,) or (n_samples, 2)
        As given there.
    sample_weight : array-like of shape (n_samples,), default=None
        As given there.
    exact : bool, default=False
        Accept no rounding: prove that a direction and q near those of the report satisfy all of
        this exactly, for the numbers of X as printed; also prove the signs of infinite
        coefficients, and that columns called not identified are combinations of those before them.

    Returns
    -------
    SeparabilityCheck
        True if the report holds, else with a reason.

    Raises
    ------
    ValueError
        If the report is undecided.

    Notes
    -----
    Without ``exact``, where a proof would take too long, sums of up to 1e-9 relative to their terms
    count as 0, and rows may be combinations of others up to 1e-7.

    References
    ----------
    A. Albert, J. A. Anderson. On the existence of maximum likelihood estimates in logistic
    regression models. Biometrika, 1984. Theorems 1 to 3.

    Examples
    --------
    >>> from marginsvm import check_separability, check_separability_proof
    >>> X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> report = check_separability(X, y)
    >>> report.kind, report.separated.tolist()
    ('quasi-complete', [True, False, False, True])
    >>> bool(check_separability_proof(report, X, y, exact=True))
    True
    """
    if report.kind == families.UNDECIDED:
        raise ValueError("the report is undecided, and claims nothing that could be checked here")
    kind = families.FAMILIES[report.family]
    data = families.data_of(kind, X, **{**report.given, "y": y, "sample_weight": sample_weight})
    if isinstance(kind, families.Pairs):
        flaw = _flaw_of_pairs(report, kind.met(data))
        return SeparabilityCheck(not flaw, flaw, True)
    design, status = kind.rows(data), [c.status for c in report.coefficients]
    separated, table = report.pairs, report.separated_rows
    if not kind.compares:
        separated = table[design.example, design.column]
    elif len(separated) != design.shape[0] or (kind.table(design, separated) != table).any():
        return SeparabilityCheck(False, "other pairs are compared, or are separated", exact)
    if families.kind_of(separated) != report.kind or len(status) != design.shape[1]:
        flaw = f"the kind of these rows is {families.kind_of(separated)!r}, not {report.kind!r}"
        return SeparabilityCheck(False, flaw, exact)
    found = _claim(report, kind, design, separated, np.array(status))
    doubt, face = prove(design, found)
    flaw = doubt if exact else "" if face is not None else flaw_in_floats(design, found)
    moved = (found.face if face is None else face.floats(face.vectors)).any(axis=1)
    if exact and not flaw and statuses(design, found, face) != (status, []):
        flaw = "the sign of a coefficient is another one, or not proved"
    infinite = ~np.isin(status, (families.FINITE, UNIDENTIFIED))
    if not flaw and not np.array_equal(moved, infinite):
        flaw = "coefficients are called infinite that are finite, or the other way round"
    return SeparabilityCheck(not flaw, flaw, exact or (face is not None and not doubt))


def _flaw_of_pairs(report: Any, met: families.Met) -> str:
    levels, w = met.levels(), np.zeros(len(met.names))
    if report.direction is not None:
        w[1:] = report.direction.coef[0]
    separated, rise = levels[met.winner] != levels[met.loser], w[met.winner] - w[met.loser]
    rows, status = (
        report.separated_rows[met.example, met.column],
        [c.status for c in report.coefficients],
    )
    if not np.array_equal(rows, separated) or families.kind_of(separated) != report.kind:
        return f"other comparisons are separated: the kind is {families.kind_of(separated)!r}"
    if not np.array_equal(rise > 0, separated) or (rise < 0).any():
        return "the direction does not separate exactly these comparisons"
    return "" if status == met.statuses(levels) else "the status of a coefficient is another one"


def _claim(
    report: Any, kind: families.Family, design: Design, separated: Array, status: Array
) -> Split:
    """The report's direction and q as a Split; of many rows, those with q > 0 and a sample."""
    (n, d), w, reach = design.shape, np.zeros(design.shape[1]), design.reach
    some, q = np.ones(n, bool), np.zeros(n)
    if n * d > EXACT / 2:
        some = np.random.default_rng(0).permutation(n) < program.A_COLUMN * d + program.FEW
    if report.overlap_weights is not None:
        table = report.overlap_weights.tocoo()
        places = design.example * table.shape[1] + design.column
        order = np.argsort(places, kind="stable")
        where = np.asarray(table.row, dtype=np.int64) * table.shape[1] + table.col
        q[order[np.minimum(np.searchsorted(places[order], where), n - 1)]] = table.data
    low = report.tail if np.shape(report.tail) == (d,) else np.zeros(d)
    if report.direction is not None:
        coef, intercept = report.direction
        given, unit = kind.flat(coef, intercept, design.data.intercept), design.unit
        w = given / unit
        low = (((given - w * unit) - rounding_of(w * unit, w, unit)) + low) / unit
    at, kept = np.flatnonzero(some | (q != 0)), np.flatnonzero(status != UNIDENTIFIED)
    face = np.zeros((d, 0))
    if separated.any():
        spanning = at[~separated[at] & ((q[at] > 0) | design.equality[at])]
        N = program.null_vectors(design.rows(spanning)[:, kept] / reach[kept])[0]
        N[np.abs(N).max(axis=1, initial=0.0) <= 1e-9] = 0.0
        face = np.zeros((d, N.shape[1]))
        face[kept] = N / reach[kept, None]
    none = np.zeros((d, 0))
    return Split(at, separated, (w, low), q[at], kept, at[:0], at[:0], face, none, none)
