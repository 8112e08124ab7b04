"""Signs of infinite coefficients: whether a column has one sign in the whole recession cone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginsvm._typing import Array, Values
from marginsvm.certificate import exact_algebra as exact
from marginsvm.problem.matrix import dense
from marginsvm.separation import families, program
from marginsvm.separation.program import CLEAR, NO_LENGTH, TINY, Split, multiplied
from marginsvm.separation.proof import SIMPLEX, Face, not_positive
from marginsvm.separation.regression import Regression

MOST_SIGNS = 100  # largest number of coefficients whose signs are decided one by one
# Multiplications of rows with a face in double-double arithmetic: a second.
MOST_MULTIPLICATIONS = 1e7
# linear programs for one sign, each with the rows that the last one violated
ATTEMPTS = 10
AWAY = 1e6  # a step along a line of the cone that has no boundary
INSIDE = 1e-3  # part of a direction that is known, so that no row is 0 in a sum with it


def statuses(
    regression: Regression, found: Split, face: Face | None
) -> tuple[list[str], list[int]]:
    """The status of each column, and columns whose sign is undecided.

    A coefficient is finite exactly if all directions of the face are 0 in it. Else it has one sign
    in the whole cone exactly if its unit vector, or minus it, is on the face a non-negative
    combination of separated rows (Farkas' lemma). It has either sign if two directions of the cone
    have both. Without an exact face, signs hold up to rounding.
    """
    out = np.full(regression.shape[1], families.UNIDENTIFIED, dtype=object)
    out[found.independent] = families.FINITE
    directions = found.face if face is None else face.floats(face.vectors)
    moved = directions.any(axis=1) & (out == families.FINITE)
    infinite = np.flatnonzero(moved).tolist()
    if not infinite:
        return out.tolist(), []
    if not found.face[infinite].any(axis=1).all():
        # The solver's face is 0 where the exact one is not, as floats could not tell.
        found = replace(found, face=directions)
    few = found.spanned and len(infinite) <= MOST_SIGNS
    cone = Cone(regression, found, face if regression.is_whole else None, few)
    cone.take(*found.direction)
    signs = [cone.sign(j) for j in infinite]
    words = {1: families.PLUS, -1: families.MINUS}
    out[infinite] = [words.get(sign or 0, families.EITHER) for sign in signs]
    unknown = [j for j, sign in zip(infinite, signs, strict=True) if sign is None]
    return out.tolist(), unknown


class Cone:
    """The directions ``w = F c`` of a face that are positive on all separated rows.

    Attributes
    ----------
    regression : Regression
    found : Split
    face : Face or None
        The exact face; None: signs hold up to rounding.
    few : bool
        Whether columns are few enough for linear programs.
    at : ndarray of int
        Some of the separated rows, ``T c > 0``; violated ones join.
    T : ndarray of shape (len(at), k)
        These rows in well-conditioned coordinates, scaled to unit length.
    lengths : ndarray of shape (len(at),)
        Their lengths before.
    F : ndarray of shape (n_columns, k)
        A basis of the face.
    z : ndarray of shape (k,)
        A direction of the cone in its coordinates, of unit length.
    seen : ndarray of bool, shape (3, n_columns)
        Rows 1 and -1: columns that have this sign in some direction of the cone.
    """

    def __init__(
        self, regression: Regression, found: Split, face: Face | None, few: bool
    ) -> None:
        self.regression = regression
        self.found = found
        self.face = face
        self.few = few
        self.seen = np.zeros((3, regression.shape[1]), bool)
        self.look_at(np.intersect1d(found.sample, np.flatnonzero(found.separated)))

    def look_at(self, at: Array) -> None:
        """Set T to some of the separated rows, in well-conditioned coordinates."""
        F = self.found.face
        A = self.regression.rows(at)
        T = np.asarray(A @ F)
        terms = (np.abs(A) @ np.abs(F)).max(axis=1)
        cancels = (np.abs(T).max(axis=1) < CLEAR * terms).any()
        if cancels and len(at) * F.size <= MOST_MULTIPLICATIONS:
            T = multiplied(dense(A), F)[0]
        top = np.maximum(np.abs(T).max(axis=1), NO_LENGTH)
        T, C = program.coordinates(T / top[:, None])
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", T, T)), NO_LENGTH)
        self.at = at
        self.T = T / lengths[:, None]
        self.lengths = lengths * top
        self.F = F @ C
        unit = self.regression.reach
        w = self.found.direction[0] * unit
        self.z = np.linalg.lstsq(self.F * unit[:, None], w, rcond=None)[0]
        self.z /= np.sqrt(self.z @ self.z) or 1.0

    def take(self, w: Array, low: Values = 0.0) -> bool:
        """Note the signs of a direction of the cone; if it is outside, violated rows join T."""
        direction = (w, low + 0 * w)
        bad, signs = not_positive(
            self.regression, self.found.separated, direction, self.face
        )
        new = np.setdiff1d(bad, self.at)[: 4 * len(self.z)]
        if len(new):
            self.look_at(np.union1d(self.at, new))
        if len(bad):
            return False
        size = np.abs(w) * self.regression.reach
        sure = (size > TINY * size.max()) | (self.face is not None)
        self.seen |= (signs == [[0], [1], [-1]]) & sure
        return True

    def sign(self, j: int) -> int | None:
        """1 or -1 if a column has this sign in the whole cone; 0: either; None: unknown."""
        for sign in (1, -1):
            if self._has(sign, j):
                return sign
        return 0 if self.seen[1, j] and self.seen[-1, j] else None

    def _has(self, sign: int, j: int) -> bool:
        """Whether a column is proved to have this sign in the whole cone.

        Directions near one that is known may have the other sign. Else this is one more row: it is
        separated, or its weight and those of the others prove that it is not. Unless there are few
        columns, only signs that a single row implies are known.
        """
        for attempt in range(ATTEMPTS):
            if self.seen[-sign, j]:
                return False
            line = sign * self.F[j] / np.sqrt(self.F[j] @ self.F[j])
            m = self.T @ line
            parallel = m >= 1 - TINY
            if parallel.any() and self.is_sum(sign, j, parallel / parallel.sum()):
                return True
            if not self.few:
                return False
            # Half the way to the boundary of the cone, against the sign.
            falls = m > 0
            reach = np.min((self.T @ self.z)[falls] / m[falls], initial=AWAY)
            z = self.z - line * reach / 2
            if attempt or line @ z >= 0:
                rows = np.vstack([self.T, -line])
                separated, z, q = program.faces(rows, np.zeros(len(rows), bool))[:3]
                if not separated[-1]:
                    if self.is_sum(sign, j, q[:-1] / (q[-1] or 1.0)):
                        return True
                    break
                z = z / (np.sqrt(z @ z) or 1.0)
                if not separated.all():
                    z = z + INSIDE * self.z
            if self.take(self.F @ z):
                self.z = z / np.sqrt(z @ z)
        every = np.flatnonzero(self.found.separated)
        small = self.face is not None and len(every) * len(self.z) <= SIMPLEX
        if not small or self.seen[-sign, j]:
            return False
        M, unit = self.on_face(every, j)
        answer = exact.combination(M, sign * unit)
        if answer is None:
            return False
        refuted = answer[1] is not None
        self.seen[-sign, j] = refuted
        return not refuted

    def on_face(self, at: Array, j: int) -> tuple[Array, Array]:
        """Rows, and a column's unit vector, on the face: integers."""
        face = self.face
        assert face is not None
        used = np.flatnonzero(face.vectors.any(axis=0))
        M = self.regression.integers(at)[:, face.independent[used]]
        if not face.is_all:
            M = exact.multiplied(M, face.vectors[:, used].T)
        return M, face.vectors[:, np.searchsorted(face.independent, j)]

    def is_sum(self, sign: int, j: int, q: Array) -> bool:
        """Whether some q nearby has ``T'q`` equal to a unit vector, exactly if the face is."""
        own = 1.0 / np.sqrt(self.F[j] @ self.F[j])
        if self.face is None:
            total = self.T.T @ q
            size = np.sqrt(total @ total)
            return bool(
                np.abs(total - size * sign * own * self.F[j]).max() <= TINY * size
            )
        for least in (TINY, 0.0):
            some = np.flatnonzero(q > least * q.max())
            M, unit = self.on_face(self.at[some], j)
            A = np.vstack([M, -sign * unit]).T
            weights = np.append(q[some] / self.lengths[some], own)
            if exact.positive_weights(A, weights) is not None:
                return True
        return False
