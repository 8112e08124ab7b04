"""Proofs of a split, in floats with error bounds or in integers.

A direction that is positive on the separated rows and 0 on all others proves that they are
separated. Dual variables q with ``A'q = 0``, positive on rows that span the others, prove that
these overlap (Albert and Anderson). Coefficients that are not 0 on the face, the directions that
are 0 on all overlapping rows, are infinite. ``prove`` does not depend on the solver, so reports are
checked by it, from the data alone (``check``).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.certificate import exact_algebra as exact
from marginsvm.problem.matrix import dense
from marginsvm.separation import families, program
from marginsvm.separation.program import NO_LENGTH, TINY, ZERO, DoubleDouble, Split
from marginsvm.separation.regression import MOST_INTEGERS, Regression

WRITTEN = 2**22  # entries of rows converted to dense: 32 MB
MANY = 200  # largest number of dependent columns to prove
SIMPLEX = 4000  # largest number of entries for the simplex method in integers
PIVOTS = 10_000  # its exchanges: some ten for each row
DIRECTIONS = 8  # random ones of a face: an error of the face is seen in one
# Margins of a direction of size 1, and of random directions of a face, that count as 0.
SEPARATES = 1e-14
OFF_FACE = 1e-7
NEAR = 1e-6  # entries of a direction and of the nearest one of the face differ by less
_UP_TO_ROUNDING = "This holds up to the rounding of X; of its numbers as they are, {}."


class Face(NamedTuple):
    """Directions that are exactly 0 on all overlapping rows.

    Attributes
    ----------
    n_columns : int
    independent : ndarray of int
        Columns: all others are combinations of those before them.
    vectors : ndarray of int, shape (k, n_independent)
        A basis.
    free : ndarray of int, shape (k,)
        For each vector, a coordinate in which all others are 0.
    """

    n_columns: int
    independent: Array
    vectors: Array
    free: Array

    @property
    def is_all(self) -> bool:
        """Whether no row overlaps, so that any direction is in the face."""
        return len(self.free) == len(self.independent)

    def near(self, direction: DoubleDouble) -> Array:
        """The vector of the face with a direction's values in the free coordinates: integers."""
        factors = []
        for row, j in zip(self.vectors, self.free.tolist(), strict=True):
            column = self.independent[j]
            value = sum(Fraction(float(part[column])) for part in direction)
            factors.append(value / int(row[j]))
        whole = np.array(exact.integers(factors), dtype=object)
        return np.asarray(whole @ self.vectors)

    def floats(self, vectors: Array) -> Array:
        """Integer vectors as directions with entries of at most about 1, shape (n_columns, k)."""
        out = np.zeros((self.n_columns, len(vectors)))
        out[self.independent] = exact.floats(vectors)[0].T
        return out


def in_floats(v: Array, columns: Array, n_columns: int) -> DoubleDouble:
    """Integers divided by the largest one, with zeros in other columns: floats and remainders."""
    top = max(map(abs, v.tolist()), default=0) or 1
    values = [Fraction(x, top) for x in v.tolist()]
    high = [float(x) for x in values]
    low = [float(x - Fraction(y)) for x, y in zip(values, high, strict=True)]
    out = np.zeros((2, n_columns))
    out[:, columns] = high, low
    return out[0], out[1]


class Answer(NamedTuple):
    """A split, and what is proved of it.

    Attributes
    ----------
    found : Split
    face : Face or None
        None: it is not proved.
    reason : str
        Why the split is undecided, or what holds up to rounding only; or an empty string.
    separable : bool or None
        Whether all rows are separated; None: undecided.
    undecided : bool
    signs : tuple or None
        Of a graph, what ``signs.statuses`` returns of other regressions.
    """

    found: Split
    face: Face | None = None
    reason: str = ""
    separable: bool | None = None
    undecided: bool = False
    signs: tuple[list[str], list[int]] | None = None


def of_graph(regression: Regression) -> Answer:
    """The split of comparisons, and the statuses of items relative to the first one.

    The graph has an edge from each winner to the loser, and both ways for a draw; a ranking has an
    edge from each item to the next, and from the last to all unranked ones. A direction of the cone
    does not increase along any edge. So it is constant on each strongly connected component, and
    can decrease along all edges between components. An item has -inf if it is reachable from the
    first one, +inf if that is reachable from it.
    """
    edges = (regression.plus + 1, regression.minus + 1)
    n = regression.shape[1] + 1
    graph = sp.csr_array((np.ones(regression.shape[0]), edges), shape=(n, n))
    levels = connected_components(graph, connection="strong")[1]
    part = connected_components(graph, connection="weak")[1]
    below = breadth_first_order(graph, 0, return_predecessors=False)
    above = breadth_first_order(graph.T.tocsr(), 0, return_predecessors=False)
    status = np.full(n, families.EITHER, dtype=object)
    status[below] = families.MINUS
    status[above] = families.PLUS
    status[levels == levels[0]] = families.FINITE
    status[part != part[0]] = families.UNIDENTIFIED
    found = Split.of_nothing(*regression.shape)
    w = (levels - levels[0])[1:].astype(float)
    found.direction = (w, 0.0 * w)
    found.separated = levels[edges[0]] != levels[edges[1]]
    separable = bool(found.separated.all())
    return Answer(found, separable=separable, signs=(status[1:].tolist(), []))


def answer(regression: Regression) -> Answer:
    """Split the rows, and prove it: by a sample, by all rows, or by the simplex method."""
    n, d = regression.shape
    if not n:
        found = Split.of_nothing(n, d)
        none = found.independent
        nothing = Face(d, none, np.zeros((0, 0), object), none)
        return Answer(found, nothing, separable=False)
    large = n * d > MOST_INTEGERS
    for everything in (False,) if large else (False, True):
        found = program.split(regression, everything)
        flaw, face = prove(regression, found)
        every = len(found.sample) == n
        if face is not None and (every or not flaw):
            reason = flaw and _UP_TO_ROUNDING.format(flaw)
            return _answer_with(regression, found, face, reason)
        if large or (face is None and regression.rounded.any()):
            # A result that rounding may have changed is not final.
            doubt = flaw_in_floats(regression, found)
            if doubt:
                return Answer(found, reason=f"{doubt}.", undecided=True)
            reason = _UP_TO_ROUNDING.format("it is not proved")
            return _answer_with(regression, found, None, reason)
        if every:
            break
    simple = _by_simplex(regression) if n * d <= SIMPLEX else None
    face = None if simple is None else prove(regression, simple)[1]
    if simple is None or face is None:
        return Answer(found, reason=f"no proof is known: {flaw}.", undecided=True)
    simple.face = face.floats(face.vectors)
    return _answer_with(regression, simple, face, "")


def _answer_with(
    regression: Regression, found: Split, face: Face | None, reason: str
) -> Answer:
    return Answer(found, face, reason, is_separable(regression, found, face, reason))


def is_separable(
    regression: Regression, found: Split, face: Face | None, reason: str
) -> bool | None:
    """Whether all rows are separated; None: not known, by the proofs that there are."""
    separated = found.separated
    if separated.any() and separated.all():
        proved = face is not None or not len(
            not_positive(regression, separated, found.direction)[0]
        )
        return True if proved else None
    refuted = regression.equality.any() or (face is not None and not reason)
    return False if refuted else None


def prove(regression: Regression, found: Split) -> tuple[str, Face | None]:
    """Prove a split without rounding, for X as printed.

    Returns the unproved part, or an empty string; and the face. With a face, only the dependence of
    columns is unproved: all else holds without these columns.
    """
    n, d = regression.shape
    independent = found.independent
    flaw = flaw_of_weights(regression, found)
    if flaw:
        return flaw, None
    some = spanning(regression, found)
    at = found.sample[some]
    q = found.weights[some]
    rest = np.setdiff1d(np.arange(d), independent)
    # later columns are combinations of so many independent ones
    if len(independent) == n:
        rest = rest[rest < independent.max(initial=0)]
    if not len(rest) and _holds_in_floats(regression, found, at, q):
        k = len(independent)
        own = np.arange(k if found.separated.all() else 0)
        return "", Face(d, independent, np.eye(len(own), k, dtype=object), own)
    if n * d > MOST_INTEGERS or not regression.is_whole:
        return "it takes too long", None
    return _in_integers(regression, found, at, q, rest)


def _holds_in_floats(regression: Regression, found: Split, at: Array, q: Array) -> bool:
    """Whether floats prove that all rows are separated, or none, and that columns are independent.

    ``at`` and ``q`` are the overlapping rows of the sample and their weights. Error bounds make
    both proofs rigorous.
    """
    separated = found.separated
    every = separated.all()
    if separated.any() and not every:
        return False
    independent = found.independent
    k = len(independent)
    sample = found.sample
    # Of separated rows, some more than there are columns are looked at.
    rows = sample[:: len(sample) // (4 * k + 1) + 1] if every else at
    if not k <= len(rows) <= WRITTEN / max(regression.shape[1], 1):
        return False
    A, E = (
        dense(part(rows) / regression.reach)[:, independent]
        for part in (regression.rows, regression.errors)
    )
    if every:
        order, rank = exact.independent_first(A.T)
        first = order[:k]
        bad = not_positive(regression, separated, found.direction)[0]
        return rank == k and not len(bad) and exact.is_regular(A[first], E[first])
    equality = regression.equality[at]
    A, weights = _both_ways(A, equality, q)
    E = np.abs(_both_ways(E, equality, q)[0])
    # Columns are sought among rows of large weight, which may change without losing their sign.
    size = np.maximum(weights, exact.SMALL * weights.max(initial=0.0))
    order, rank = exact.independent_first(A.T * size)
    return rank == k and exact.solution_is_near(A[order].T, weights[order], E[order].T)


def _in_integers(
    regression: Regression, found: Split, at: Array, q: Array, rest: Array
) -> tuple[str, Face | None]:
    """``prove`` in integers: for rows of both kinds, and dependent columns (``rest``)."""
    n, d = regression.shape
    independent = found.independent
    separated = found.separated
    M = regression.integers(np.arange(n))
    flaw = ""
    if len(rest):
        few = len(rest) <= MANY and not len(found.dependent_by_rounding)
        if not few or not _are_sums(M, found, rest):
            flaw = f"column {rest[0]} is not identified only up to rounding"
    # The face.
    size = np.abs(found.face[independent]).max(axis=0, initial=0.0)
    near = found.face[independent] / np.maximum(size, NO_LENGTH)
    null = exact.null_space(M[at][:, independent], near)
    if null is None:
        return "it takes too long", None
    face = Face(d, independent, *null)
    moved = exact.multiplied(M[:, independent], face.vectors.T).any(axis=1)
    if (moved & ~separated).any():
        return "some overlapping rows are not combinations of those with weight", None
    if separated.any() != bool(len(face.free)):
        return "the overlapping rows leave a direction, or none, but should not", None
    # The direction, and the nearest one of the face.
    v = face.near(found.direction)
    w = found.direction[0]
    nearest = w if face.is_all else in_floats(v, independent, d)[0]
    both = (w * regression.reach, nearest * regression.reach)
    w, nearest = (u / (np.abs(u).max() or 1.0) for u in both)
    if not np.allclose(w, nearest, atol=NEAR):
        return "the direction is not 0 on all rows that are called overlapping", None
    T = M[separated][:, independent]
    if (exact.multiplied(T, v[:, None]) <= 0).any():
        return "not all rows that are called separated are", None
    on_face = exact.multiplied(T, face.vectors.T)
    if len(exact.independent(on_face)[1]) < len(face.free):
        flaw = "columns are called identified that are not known to be independent"
        return flaw, None
    # The weights.
    equality = regression.equality[at]
    columns = np.delete(independent, face.free)
    A, weights = _both_ways(M[at][:, columns], equality, q)
    if (q[~equality] > 0).any() and exact.positive_weights(A.T, weights) is None:
        return "no exact weights near these are known", None
    return flaw, face


def _are_sums(M: Array, found: Split, rest: Array) -> bool:
    """Whether columns are linear combinations of those before them, in all rows."""
    used = np.union1d(found.independent, rest)
    M = M[:, used]
    own = np.searchsorted(used, rest)
    before = np.searchsorted(used, found.independent)
    sample = M[found.sample]
    F, exponent = exact.floats(sample, 0)
    near = np.zeros((len(used), len(rest)))
    near[own] = np.eye(len(rest))
    near[before] = -np.linalg.lstsq(F[:, before], F[:, own], rcond=None)[0]
    null = exact.null_space(sample, near * 2.0 ** -(exponent.T - exponent.max()))
    if null is None:
        return False
    vectors, free = null
    if free.tolist() != own.tolist() or exact.multiplied(M, vectors.T).any():
        return False
    after = [row[j + 1 :].any() for row, j in zip(vectors, own.tolist(), strict=True)]
    return not any(after)


def _both_ways(A: Array, equality: Array, q: Array) -> tuple[Array, Array]:
    """Rows with q > 0: an equality is split into two opposite rows."""
    top = np.abs(q).max(initial=0.0) or 1.0
    free = q[equality]
    weights = [q[~equality], top + np.maximum(free, 0.0), top + np.maximum(-free, 0.0)]
    rows = [A[~equality], A[equality], -A[equality]]
    return np.concatenate(rows), np.concatenate(weights)


def not_positive(
    regression: Regression, some: Array, w: DoubleDouble, face: Face | None = None
) -> tuple[Array, Array]:
    """Rows of a mask on which a direction is not proved to be positive, and its signs.

    The direction is replaced by the nearest one of the face, if that is known.
    """
    d = regression.shape[1]
    high = w[0]
    signs = np.sign(high)
    exactly = None  # the direction in integers, once it is needed
    if face is not None and not face.is_all:
        v = face.near(w)
        high = face.floats(v[None])[:, 0]
        exactly = np.zeros(d, object)
        exactly[face.independent] = v
        signs = np.sign(exactly).astype(float)
    at = np.flatnonzero(some)
    m = regression.margins(high[:, None])[at, 0]
    error = 2.0**-47 + UNIT * (d + 16)  # relative, of the numbers and of sums
    unclear = at[~(m > 2 * error * float(regression.reach @ np.abs(high)))]
    if not regression.is_whole or not 0 < len(unclear) * d <= MOST_INTEGERS:
        return unclear, signs
    if exactly is None:
        pairs = zip(w[0].tolist(), w[1].tolist(), strict=True)
        values = exact.integers([Fraction(a) + Fraction(b) for a, b in pairs])
        exactly = np.array(values, object)
    margins = regression.integers(unclear).astype(object) @ exactly
    return unclear[~(margins > 0)], signs


def spanning(regression: Regression, found: Split) -> Array:
    """Mask of rows of the sample that overlap: those with weight, and equalities."""
    some = (found.weights > 0) | regression.equality[found.sample]
    return np.asarray(some & ~found.separated[found.sample])


def face_in_floats(regression: Regression, found: Split) -> Array:
    """Directions that are 0 on these rows, up to rounding."""
    columns = found.independent
    unit = regression.reach[columns]
    rows = regression.rows(found.sample[spanning(regression, found)])
    N = program.null_vectors(rows[:, columns] / unit)[0]
    N[np.abs(N).max(axis=1, initial=0.0) <= ZERO] = 0.0
    V = np.zeros((regression.shape[1], N.shape[1]))
    V[columns] = N / unit[:, None]
    return V


def flaw_of_weights(regression: Regression, found: Split) -> str:
    """An error of the dual variables q, or an empty string: ``A'q = 0`` up to rounding."""
    some = found.weights != 0
    if (some & ~spanning(regression, found)).any():
        return "weights are negative somewhere, or not 0 on rows that are separated"
    q = found.weights[some]
    A = regression.rows(found.sample[some])
    if (np.abs(A.T @ q) > TINY * regression.reach * np.abs(q).sum()).any():
        return "the weights do not balance the rows"
    return ""


def flaw_in_floats(regression: Regression, found: Split) -> str:
    """An error of a split beyond rounding, or an empty string.

    Residuals of 1e-9 relative to the terms count as 0, and rows are dependent up to 1e-7.
    """
    w = found.direction[0]
    m = regression.margins(w[:, None])[:, 0]
    size = float(regression.reach @ np.abs(w))
    if (m[found.separated] <= SEPARATES * size).any():
        return "the direction does not separate all rows that are called separated"
    if (np.abs(m[~found.separated]) > TINY * size).any():
        return "the direction is not 0 on all rows that are called overlapping"
    flaw = flaw_of_weights(regression, found)
    if flaw:
        return flaw
    V = face_in_floats(regression, found)
    W = V @ np.random.default_rng(0).standard_normal((V.shape[1], DIRECTIONS))
    if (np.abs(regression.margins(W)[~found.separated]) > OFF_FACE).any():
        return "some overlapping rows are not combinations of those with weight"
    differ = V.any(axis=1) != found.face.any(axis=1)
    if differ[found.independent].any():
        return (
            "coefficients are called infinite that are finite, or the other way round"
        )
    return ""


def _by_simplex(regression: Regression) -> Split | None:
    """The split of few rows by the simplex method in integers (Bland's rule).

    Either the sum of the rows is minus a non-negative combination of all rows, or some of them are
    positive in a direction of the cone; then the others are solved again.
    """
    n, d = regression.shape
    every = np.arange(n)
    equality = regression.equality
    M = regression.integers(every).astype(object)
    independent = exact.independent(M)[1]
    M = M[:, independent]
    rows = np.concatenate([M, -M[equality]])
    left = ~equality  # rows that may overlap
    separated = np.zeros(n, bool)
    w = np.zeros(len(independent), dtype=object)  # positive on the separated rows
    q = np.zeros(n)
    while left.any():
        b = -M[left].sum(axis=0)
        found = exact.combination(rows, b, PIVOTS)
        if found is None:
            return None
        weights, v = found
        if v is None:
            weights = np.asarray(weights)
            k = Fraction(1)  # the combination is k times b, k > 0
            if b.any():
                j = np.flatnonzero(b)[0]
                k = Fraction(int(rows[:, j] @ weights), int(b[j]))
            both = np.array([float(x / k) for x in weights.tolist()])
            q = both[:n] + left
            q[equality] -= both[n:]
            break
        m = M @ v
        positive = (m > 0) & ~equality
        # scaled, so that no direction is lost in the sum
        w = w + v * Fraction(1, int(m.max()))
        separated |= positive
        left &= ~positive
    out = Split.of_nothing(n, d)
    out.sample = every
    out.separated = separated
    out.direction = in_floats(w, independent, d)
    out.weights = np.where(separated, 0.0, q)
    out.independent = independent
    return out
