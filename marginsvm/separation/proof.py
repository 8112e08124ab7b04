"""Proofs of a split, in floats with error bounds or in integers; signs.

A direction that is positive on the separated rows and 0 on all others proves that they are
separated. Dual variables q with ``A'q = 0``, positive on rows that span the others, prove that
these overlap (Albert and Anderson). Coefficients that are not 0 on the face, the directions that
are 0 on all overlapping rows, are infinite. ``prove`` does not depend on the solver, so reports are
checked by it, from the data alone (``check``).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.certificate import exact_algebra as exact
from marginsvm.separation import families, program
from marginsvm.separation.families import EXACT, UNIDENTIFIED, Design, dense
from marginsvm.separation.program import TINY, Parts, Split, multiplied

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

    def near(self, direction: Parts) -> Array:
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


def in_floats(v: Array, kept: Array, n_columns: int) -> Parts:
    """Integers divided by the largest one, with zeros in other columns: floats and remainders."""
    top = max(map(abs, v.tolist()), default=0) or 1
    values = [Fraction(x, top) for x in v.tolist()]
    out = np.zeros((2, n_columns))
    for part in out:
        part[kept] = [float(x) for x in values]
        values = [
            x - Fraction(y) for x, y in zip(values, part[kept].tolist(), strict=True)
        ]
    return out[0], out[1]


class Answer(NamedTuple):
    """A split, its face if proved, and what is proved.

    ``reason``: why it is undecided, or what holds up to rounding only, or empty. ``separable``:
    whether all rows are separated. ``signs``: of a graph, what ``statuses`` returns of others.
    """

    found: Split
    face: Face | None = None
    reason: str = ""
    separable: bool | None = None
    undecided: bool = False
    signs: tuple[list[str], list[int]] | None = None


def of_graph(design: Design) -> Answer:
    """The split of comparisons, and the statuses of items relative to the first one.

    The graph has an edge from each winner to the loser, and both ways for a draw; a ranking has an
    edge from each item to the next, and from the last to all unranked ones. A direction of the cone
    does not increase along any edge. So it is constant on each strongly connected component, and
    can decrease along all edges between components. An item has -inf if it is reachable from the
    first one, +inf if that is reachable from it.
    """
    edges = (design.plus + 1, design.minus + 1)
    n = design.shape[1] + 1
    graph = sp.csr_array((np.ones(design.shape[0]), edges), shape=(n, n))
    levels = connected_components(graph, connection="strong")[1]
    part = connected_components(graph, connection="weak")[1]
    out = np.full(n, families.EITHER, dtype=object)
    out[breadth_first_order(graph, 0, return_predecessors=False)] = families.MINUS
    out[breadth_first_order(graph.T.tocsr(), 0, return_predecessors=False)] = (
        families.PLUS
    )
    out[levels == levels[0]] = families.FINITE
    out[part != part[0]] = UNIDENTIFIED
    found = Split.of_nothing(*design.shape)
    w = (levels - levels[0])[1:].astype(float)
    found.separated = levels[edges[0]] != levels[edges[1]]
    found.direction = (w, 0.0 * w)
    return Answer(
        found, separable=bool(found.separated.all()), signs=(out[1:].tolist(), [])
    )


def answer(design: Design) -> Answer:
    """Split the rows, and prove it."""
    n, d = design.shape
    if not n:
        found = Split.of_nothing(n, d)
        nothing = np.zeros((0, 0), object)
        return Answer(found, Face(d, found.kept, nothing, found.kept), separable=False)
    for everything in (False, True) if n * d <= EXACT else (False,):
        found = program.split(design, everything)
        flaw, face = prove(design, found)
        every = len(found.at) == n
        if face is not None and (every or not flaw):
            return _decided(design, found, face, flaw and _UP_TO_ROUNDING.format(flaw))
        if n * d > EXACT or (face is None and design.rounded.any()):
            # A result that rounding may have changed is not final.
            doubt = flaw_in_floats(design, found)
            if doubt:
                return Answer(found, None, f"{doubt}.", undecided=True)
            return _decided(
                design, found, None, _UP_TO_ROUNDING.format("it is not proved")
            )
        if every:
            break
    simple = _by_simplex(design) if n * d <= SIMPLEX else None
    face = None if simple is None else prove(design, simple)[1]
    if simple is None or face is None:
        return Answer(found, None, f"no proof is known: {flaw}.", undecided=True)
    return _decided(design, replace(simple, face=face.floats(face.vectors)), face, "")


def _decided(design: Design, found: Split, face: Face | None, reason: str) -> Answer:
    return Answer(found, face, reason, is_separable(design, found, face, reason))


def is_separable(
    design: Design, found: Split, face: Face | None, reason: str
) -> bool | None:
    """Whether all rows are separated; None: not known, by the proofs that there are."""
    if not found.separated.any() or not found.separated.all():
        known = design.equality.any() or (face is not None and not reason)
        return False if known else None
    known = face is not None or not len(
        not_positive(design, found.separated, found.direction)[0]
    )
    return True if known else None


def prove(design: Design, found: Split) -> tuple[str, Face | None]:
    """Prove a split without rounding, for X as printed.

    Returns the unproved part, or an empty string; and the face. With a face, only the dependence of
    columns is unproved: all else holds without these columns.
    """
    some = spanning(design, found)
    n, d = design.shape
    flaw = flaw_of_weights(design, found)
    at = found.at[some]
    q = found.weights[some]
    rest = np.setdiff1d(np.arange(d), found.kept)
    if len(found.kept) == n:  # these span all columns
        rest = rest[rest < found.kept.max(initial=0)]
    if flaw:
        return flaw, None
    if not len(rest) and _holds_in_floats(design, found, at, q):
        k = len(found.kept)
        own = np.arange(k if found.separated.all() else 0)
        return "", Face(d, found.kept, np.eye(len(own), k, dtype=object), own)
    if n * d > EXACT or not design.is_whole:
        return "it takes too long", None
    return _in_integers(design, found, rest)


def _holds_in_floats(design: Design, found: Split, at: Array, q: Array) -> bool:
    """Whether floats prove that all rows are separated, or none, and that columns are independent.

    Error bounds make both rigorous.
    """
    kept = found.kept
    k = len(found.kept)
    every = found.separated.all()
    unit = design.reach
    rows = found.at[:: len(found.at) // (4 * k + 1) + 1] if every else at
    if not k <= len(rows) <= WRITTEN / max(design.shape[1], 1) or (
        found.separated.any() and not every
    ):
        return False
    A, E = (dense(part(rows) / unit)[:, kept] for part in (design.rows, design.errors))
    if every:
        order, rank = exact.independent_first(A.T)
        first = order[:k]
        bad = not_positive(design, found.separated, found.direction)[0]
        return rank == k and not len(bad) and exact.is_regular(A[first], E[first])
    A, weights = _both_ways(A, design.equality[at], q)
    E = np.abs(_both_ways(E, design.equality[at], q)[0])
    size = np.maximum(weights, 1e-3 * weights.max(initial=0.0))
    order, rank = exact.independent_first(A.T * size)
    return rank == k and exact.solution_is_near(A[order].T, weights[order], E[order].T)


def _in_integers(design: Design, found: Split, rest: Array) -> tuple[str, Face | None]:
    """``prove`` in integers: for rows of both kinds, and dependent columns."""
    some = spanning(design, found)
    kept = found.kept
    separated = found.separated
    at = found.at[some]
    q = found.weights[some]
    equality = design.equality[found.at[some]]
    M = design.integers(np.arange(design.shape[0]))
    d = design.shape[1]
    flaw = (
        f"column {rest[0]} is not identified only up to rounding" if len(rest) else ""
    )
    if (
        len(rest)
        and len(rest) <= MANY
        and not len(found.loose)
        and _are_sums(M, found, rest)
    ):
        flaw = ""
    near = found.face[kept] / np.maximum(
        np.abs(found.face[kept]).max(axis=0, initial=0.0), 1e-300
    )
    null = exact.null_space(M[at][:, kept], near)
    if null is None:
        return "it takes too long", None
    face = Face(d, kept, *null)
    if (~separated & exact.multiplied(M[:, kept], face.vectors.T).any(axis=1)).any():
        return "some overlapping rows are not combinations of those with weight", None
    if separated.any() != bool(len(face.free)):
        return "the overlapping rows leave a direction, or none, but should not", None
    T = M[separated][:, kept]
    near = face.near(found.direction)
    w = found.direction[0]
    v = w if face.is_all else in_floats(near, kept, d)[0]
    w, v = (x / (np.abs(x).max() or 1.0) for x in (w * design.reach, v * design.reach))
    if not np.allclose(w, v, atol=1e-6):
        return "the direction is not 0 on all rows that are called overlapping", None
    if (exact.multiplied(T, near[:, None]) <= 0).any():
        return "not all rows that are called separated are", None
    if len(exact.independent(exact.multiplied(T, face.vectors.T))[1]) < len(face.free):
        return (
            "columns are called identified that are not known to be independent",
            None,
        )
    A, weights = _both_ways(M[at][:, np.delete(kept, face.free)], equality, q)
    if (q[~equality] > 0).any() and exact.positive_weights(A.T, weights) is None:
        return "no exact weights near these are known", None
    return flaw, face


def _are_sums(M: Array, found: Split, rest: Array) -> bool:
    """Whether columns are linear combinations of those before them, in all rows."""
    used = np.union1d(found.kept, rest)
    M = M[:, used]
    own = np.searchsorted(used, rest)
    before = np.searchsorted(used, found.kept)
    F, e = exact.floats(M[found.at], 0)
    near = np.zeros((len(used), len(rest)))
    near[own] = np.eye(len(rest))
    near[before] = -np.linalg.lstsq(F[:, before], F[:, own], rcond=None)[0]
    null = exact.null_space(M[found.at], near * 2.0 ** -(e.T - e.max()))
    if (
        null is None
        or null[1].tolist() != own.tolist()
        or exact.multiplied(M, null[0].T).any()
    ):
        return False
    return not any(
        row[j + 1 :].any() for row, j in zip(null[0], own.tolist(), strict=True)
    )


def _both_ways(A: Array, equality: Array, q: Array) -> tuple[Array, Array]:
    """Rows with q > 0: an equality is split into two opposite rows."""
    top = np.abs(q).max(initial=0.0) or 1.0
    free = q[equality]
    weights = [q[~equality], top + np.maximum(free, 0.0), top + np.maximum(-free, 0.0)]
    return np.concatenate([A[~equality], A[equality], -A[equality]]), np.concatenate(
        weights
    )


def not_positive(
    design: Design, some: Array, w: Parts, face: Face | None = None
) -> Parts:
    """Rows of a mask on which a direction is not proved to be positive, and its signs.

    The direction is replaced by the nearest one of the face, if that is known.
    """
    high = w[0]
    d = design.shape[1]
    signs = np.sign(high)
    at = np.flatnonzero(some)
    v = None
    if face is not None and not face.is_all:
        v = np.zeros(d, object)
        v[face.kept] = face.near(w)
        high = face.floats(v[None, face.kept])[:, 0]
        signs = np.sign(v).astype(float)
    m = design.margins(high[:, None])[at, 0]
    error = 2.0**-47 + UNIT * (d + 16)  # of numbers, and of sums
    unclear = at[~(m > 2 * error * float(design.reach @ np.abs(high)))]
    if not design.is_whole or not 0 < len(unclear) * d <= EXACT:
        return unclear, signs
    if v is None:
        pairs = zip(w[0].tolist(), w[1].tolist(), strict=True)
        v = np.array(
            exact.integers([Fraction(a) + Fraction(b) for a, b in pairs]), object
        )
    return unclear[~(design.integers(unclear).astype(object) @ v > 0)], signs


def spanning(design: Design, found: Split) -> Array:
    """Mask of rows of the sample that overlap: those with weight, and equalities."""
    some = (found.weights > 0) | design.equality[found.at]
    return np.asarray(some & ~found.separated[found.at])


def face_in_floats(design: Design, found: Split) -> Array:
    """Directions that are 0 on these rows, up to rounding."""
    kept = found.kept
    rows = design.rows(found.at[spanning(design, found)])
    N = program.null_vectors(rows[:, kept] / design.reach[kept])[0]
    N[np.abs(N).max(axis=1, initial=0.0) <= 1e-8] = 0.0
    V = np.zeros((design.shape[1], N.shape[1]))
    V[kept] = N / design.reach[kept, None]
    return V


def flaw_of_weights(design: Design, found: Split) -> str:
    """An error of the dual variables q, or an empty string: ``A'q = 0`` up to rounding."""
    some = found.weights != 0
    q = found.weights[some]
    A = design.rows(found.at[some])
    if (some & ~spanning(design, found)).any():
        return "weights are negative somewhere, or not 0 on rows that are separated"
    if (np.abs(A.T @ q) > 1e-9 * design.reach * np.abs(q).sum()).any():
        return "the weights do not balance the rows"
    return ""


def flaw_in_floats(design: Design, found: Split) -> str:
    """An error of a split beyond rounding, or an empty string.

    Residuals of 1e-9 relative to the terms count as 0, and rows are dependent up to 1e-7.
    """
    w = found.direction[0]
    kept = found.kept
    unit = design.reach
    m = design.margins(w[:, None])[:, 0]
    size = float(unit @ np.abs(w))
    if (m[found.separated] <= 1e-14 * size).any():
        return "the direction does not separate all rows that are called separated"
    if (np.abs(m[~found.separated]) > 1e-9 * size).any():
        return "the direction is not 0 on all rows that are called overlapping"
    flaw = flaw_of_weights(design, found)
    if flaw:
        return flaw
    V = face_in_floats(design, found)
    W = V @ np.random.default_rng(0).standard_normal(
        (V.shape[1], 8)
    )  # an error is seen in one
    if (np.abs(design.margins(W)[~found.separated]) > 1e-7).any():
        return "some overlapping rows are not combinations of those with weight"
    if (V.any(axis=1) != found.face.any(axis=1))[kept].any():
        return (
            "coefficients are called infinite that are finite, or the other way round"
        )
    return ""


def _by_simplex(design: Design) -> Split | None:
    """The split of few rows by the simplex method in integers (Bland's rule).

    Either the sum of the rows is minus a non-negative combination of all rows, or some of them are
    positive in a direction of the cone; then the others are solved again.
    """
    n, d = design.shape
    equality = design.equality
    every = np.arange(n)
    out = Split.of_nothing(n, d)
    q = np.zeros(n)
    M = design.integers(every).astype(object)
    kept = exact.independent(M)[1]
    M = M[:, kept]
    left = ~equality
    w = np.zeros(len(kept), dtype=object)
    rows = np.concatenate([M, -M[equality]])
    while left.any():
        b = -M[left].sum(axis=0)
        found = exact.combination(rows, b, 10_000)
        if found is None:
            return None
        weights = np.asarray(found[0])
        v = found[1]
        if v is None:
            some = np.flatnonzero(b)[:1]  # the sum is a positive multiple of b
            k = (
                Fraction(int(rows[:, some[0]] @ weights), int(b[some[0]]))
                if len(some)
                else 1
            )
            both = np.array([float(x / k) for x in weights.tolist()])
            q = both[:n] + left
            q[equality] -= both[n:]
            break
        m = M @ v
        positive = (m > 0) & ~equality
        w = w + v * Fraction(1, int(m.max()))  # so that none is lost in the sum
        out.separated = out.separated | positive
        left = left & ~positive
    out.weights = np.where(out.separated, 0.0, q)
    out.at = every
    out.kept = kept
    out.direction = in_floats(w, kept, d)
    return out


# ---- signs of infinite coefficients


def statuses(
    design: Design, found: Split, face: Face | None
) -> tuple[list[str], list[int]]:
    """The status of each column, and columns whose sign is undecided.

    A coefficient is finite exactly if all directions of the face are 0 in it. Else it has one sign
    in the whole cone exactly if its unit vector, or minus it, is on the face a non-negative
    combination of separated rows (Farkas' lemma). It has either sign if two directions of the cone
    have both. Without an exact face, signs hold up to rounding.
    """
    out = np.full(design.shape[1], UNIDENTIFIED, dtype=object)
    out[found.kept] = families.FINITE
    exactly = found.face if face is None else face.floats(face.vectors)
    infinite = np.flatnonzero(exactly.any(axis=1) & (out == families.FINITE)).tolist()
    if not infinite:
        return out.tolist(), []
    if not found.face[infinite].any(axis=1).all():
        found = replace(found, face=exactly)  # in floats, indistinguishable from 0
    few = found.spanned and len(infinite) <= MOST_SIGNS
    cone = Cone(design, found, face if design.is_whole else None, few)
    cone.take(*found.direction)
    signs = [cone.sign(j) for j in infinite]
    words = {1: families.PLUS, -1: families.MINUS}
    out[infinite] = [words.get(sign or 0, families.EITHER) for sign in signs]
    return out.tolist(), [
        j for j, sign in zip(infinite, signs, strict=True) if sign is None
    ]


class Cone:
    """The directions ``w = F c`` of a face that are positive on all separated rows, ``T c > 0``.

    T holds some of these rows, scaled to unit length; ``lengths`` are their norms before.
    """

    def __init__(self, design: Design, found: Split, face: Any, few: bool) -> None:
        self.design = design
        self.found = found
        self.face = face
        self.few = few
        self.seen = np.zeros(
            (3, design.shape[1]), bool
        )  # rows 1 and -1: columns with this sign
        self.look_at(np.intersect1d(found.at, np.flatnonzero(found.separated)))

    def look_at(self, at: Array) -> None:
        """Set T to some of the separated rows, in well-conditioned coordinates."""
        A = self.design.rows(at)
        self.at = at
        F = self.found.face
        unit = self.design.reach
        T = np.asarray(A @ F)
        size = program.CLEAR * (np.abs(A) @ np.abs(F)).max(axis=1)
        if (np.abs(T).max(axis=1) < size).any() and len(at) * F.size <= 1e7:
            T = multiplied(dense(A), F)[0]
        top = np.maximum(np.abs(T).max(axis=1), 1e-300)
        T, C = program.coordinates(T / top[:, None])
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", T, T)), 1e-300)
        self.T = T / lengths[:, None]
        self.lengths = lengths * top
        self.F = F @ C
        w = self.found.direction[0] * unit
        self.z = np.linalg.lstsq(self.F * unit[:, None], w, rcond=None)[0]
        self.z /= np.sqrt(self.z @ self.z) or 1.0

    def take(self, w: Array, low: Any = 0.0) -> bool:
        """Note the signs of a direction of the cone; if it is outside, violated rows join T."""
        bad, signs = not_positive(
            self.design, self.found.separated, (w, low + 0 * w), self.face
        )
        new = np.setdiff1d(bad, self.at)[: 4 * len(self.z)]
        if len(new):
            self.look_at(np.union1d(self.at, new))
        if not len(bad):
            size = np.abs(w) * self.design.reach
            sure = (size > TINY * size.max()) | (self.face is not None)
            self.seen |= (signs == [[0], [1], [-1]]) & sure
        return not len(bad)

    def sign(self, j: int) -> int | None:
        """1 or -1 if a column has this sign in the whole cone; 0: either; None: unknown.

        Directions near one that is known may have the other sign. Else this is one more row: it is
        separated, or its weight and those of the others prove that it is not. Unless there are few
        columns, only signs that a single row implies are known.
        """
        every = np.flatnonzero(self.found.separated)
        small = (
            self.few and self.face is not None and len(every) * len(self.z) <= SIMPLEX
        )
        for sign in (1, -1):
            for attempt in range(10):  # until all rows that are violated have joined T
                if self.seen[-sign, j]:
                    break
                line = sign * self.F[j] / np.sqrt(self.F[j] @ self.F[j])
                m = self.T @ line
                nearest = m >= 1 - TINY
                if nearest.any() and self.is_sum(sign, j, nearest / nearest.sum()):
                    return sign
                if not self.few:
                    break
                # half the way to the boundary of the cone, against the sign
                z = (
                    self.z
                    - line
                    * np.min((self.T @ self.z)[m > 0] / m[m > 0], initial=1e6)
                    / 2
                )
                if attempt or line @ z >= 0:
                    rows = np.vstack([self.T, -line])
                    separated, z, q = program.faces(rows, np.zeros(len(rows), bool))[:3]
                    if not separated[-1]:
                        if self.is_sum(sign, j, q[:-1] / (q[-1] or 1.0)):
                            return sign
                        break
                    z = (
                        z / (np.sqrt(z @ z) or 1.0)
                        + (0.0 if separated.all() else 1e-3) * self.z
                    )
                if self.take(self.F @ z):
                    self.z = z / np.sqrt(z @ z)
            if small and not self.seen[-sign, j]:
                M, unit = self.on_face(every, j)
                answer = exact.combination(M, sign * unit)
                if answer is not None and answer[1] is None:
                    return sign
                self.seen[-sign, j] = answer is not None
        return 0 if self.seen[1, j] and self.seen[-1, j] else None

    def on_face(self, at: Array, j: int) -> tuple[Array, Array]:
        """Rows, and a column's unit vector, on the face: integers."""
        face = self.face
        place = np.searchsorted(self.face.kept, j)
        used = np.flatnonzero(face.vectors.any(axis=0))
        M = self.design.integers(at)[:, face.kept[used]]
        M = M if face.is_all else exact.multiplied(M, face.vectors[:, used].T)
        return M, face.vectors[:, place]

    def is_sum(self, sign: int, j: int, q: Array) -> bool:
        """Whether some q nearby has ``T'q`` equal to a unit vector, exactly if the face is."""
        for least in (1e-9, 0.0) if self.face is not None else ():
            some = np.flatnonzero(q > least * q.max())
            M, line = self.on_face(self.at[some], j)
            weights = np.append(
                q[some] / self.lengths[some], 1.0 / np.sqrt(self.F[j] @ self.F[j])
            )
            if (
                exact.positive_weights(np.vstack([M, -sign * line]).T, weights)
                is not None
            ):
                return True
        return self.face is None
