"""Which coefficients an estimate has at infinity, and with which sign.

A coefficient is finite exactly if all directions of the face are 0 in it. Else it has one sign in
the whole cone exactly if its unit vector, or the negative of it, is on the face a nonnegative
combination of separated rows (Farkas' lemma); and either, if directions of the cone show both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from marginsvm._typing import Array
from marginsvm.certificate import exact
from marginsvm.separation.design import Design, dense
from marginsvm.separation.program import CLEAR, TINY, Split, coordinates, multiplied
from marginsvm.separation.proof import Face, not_positive

FINITE, PLUS, MINUS, EITHER, UNIDENTIFIED = "finite", "+inf", "-inf", "inf", "not identified"
MOST = 300  # coefficients whose signs are looked for one by one: some seconds
NUMBERS = 2**21  # of separated rows that are all looked at; of more, those that were solved
SIMPLEX = 4000  # numbers of rows on the face of which the simplex method in integers decides


def statuses(design: Design, found: Split, face: Face | None) -> tuple[list[str], list[int]]:
    """The status of each column, and columns whose sign is not decided.

    Without a face that is known exactly, signs hold up to rounding.
    """
    out = [UNIDENTIFIED] * design.shape[1]
    for j in found.kept.tolist():
        out[j] = FINITE
    moved = np.asarray(found.face.any(axis=1))
    if face is not None:
        moved = np.zeros(len(out), bool)
        moved[face.kept] = face.vectors.any(axis=0)
    infinite = [j for j in found.kept.tolist() if moved[j]]
    if not infinite:
        return out, []
    if not found.face[infinite].any(axis=1).all():  # floats do not tell it from 0
        found = replace(found, face=face.floats(face.vectors)) if face else found
    cone, few = Cone(design, found, face), found.spanned and len(infinite) <= MOST
    known = cone.signs(found.direction)
    seen = np.zeros(len(out)) if known is None else known
    signs = {j: cone.sign(j, {int(seen[j])} - {0}, few) for j in infinite}
    for j, sign in signs.items():
        out[j] = {1: PLUS, -1: MINUS}.get(sign or 0, EITHER)
    return out, [j for j, sign in signs.items() if sign is None]


class Cone:
    """The directions ``w = F c`` of a face that are positive on all separated rows, ``T c > 0``.

    T has some of these, of unit length; the ``lengths`` are what they had.
    """

    def __init__(self, design: Design, found: Split, face: Face | None) -> None:
        self.design, self.found, self.face = design, found, face
        self.every = np.flatnonzero(found.separated)
        few = len(self.every) * design.shape[1] <= NUMBERS
        self.look_at(self.every if few else np.intersect1d(found.at, self.every))

    def look_at(self, at: Array) -> None:
        """Take some of the separated rows, in coordinates in which they are round."""
        self.at, A, F = at, self.design.rows(at), self.found.face
        T, size = np.asarray(A @ F), np.abs(A) @ np.abs(F)
        if (np.abs(T).max(axis=1) < CLEAR * size.max(axis=1)).any() and A.shape[0] * F.size <= 1e7:
            T = multiplied(dense(A), F, self.design.rest(at))[0]
        top = np.maximum(np.abs(T).max(axis=1), 1e-300)
        T, C = coordinates(T / top[:, None])
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", T, T)), 1e-300)
        self.T, self.lengths, self.F = T / lengths[:, None], lengths * top, F @ C
        self.z = np.linalg.lstsq(self.F, self.found.direction[0], rcond=None)[0]
        self.z /= np.sqrt(self.z @ self.z)

    def signs(self, w: tuple[Array, Array]) -> Array | None:
        """The signs of a direction that is in the cone; if it is not, rows that say so join T."""
        bad, signs = not_positive(self.design, self.every, w, self.face)
        new = np.setdiff1d(bad, self.at)[: 4 * len(self.z)]
        if len(new):
            self.look_at(np.union1d(self.at, new))
        if self.face is None:
            signs = np.where(np.abs(w[0]) > TINY * np.abs(w[0]).max(), signs, 0.0)
        return None if len(bad) else signs

    def sign(self, j: int, seen: set[int], few: bool) -> int | None:
        """1 or -1 if a column has this sign in the whole cone; 0: either; None: unknown.

        ``seen`` are signs that directions of the cone have. If columns are not few, only single
        rows are looked at.
        """
        for sign in (*seen, *{1, -1} - seen):
            for part in (1e-6, 1e-3, 0.1) * 3:
                line = sign * self.F[j] / np.sqrt(self.F[j] @ self.F[j])
                along, rest = self.T @ line, 0.0 * line
                q = (np.arange(len(along)) == along.argmax()) * 1.0
                if along.max() < 1 - TINY:
                    if not few:
                        break
                    q, rest = least_rest(self.T, line)
                length = np.sqrt(rest @ rest)
                if length <= 1e-8:
                    if self.is_sum(sign, j, q):
                        return sign
                    break
                w, kept = np.zeros((2, len(self.F))), self.found.kept
                v = multiplied(self.F[kept], (part * self.z - rest / length)[:, None])
                w[0, kept], w[1, kept] = v[0][:, 0], v[1][:, 0]
                signs = self.signs((w[0], w[1]))
                if signs is not None and signs[j]:
                    seen = seen | {int(signs[j])}
                    break
            if len(seen) == 2:
                return 0
        if not few or self.face is None or len(self.every) * len(self.face.vectors) > SIMPLEX:
            return None
        M, line, _ = self.on_face(self.every, j)
        for sign in (1, -1):
            found = exact.combination(M, sign * line)
            if found is None or found[1] is None:
                return None if found is None else sign
        return 0

    def on_face(self, at: Array, j: int) -> tuple[Array, Array, float]:
        """Rows, and a column's unit vector, on the face: integers; and the unit of the column."""
        face = self.face
        assert face is not None
        used, place = np.flatnonzero(face.vectors.any(axis=0)), np.searchsorted(face.kept, j)
        M = self.design.integers(at, face.kept[used])[0]
        T = exact.multiplied(M, face.vectors[:, used].T)
        return T, face.vectors[:, place], face.unit[place]

    def is_sum(self, sign: int, j: int, q: Array) -> bool:
        """Whether weights near these make rows sum to a unit vector; exactly, if the face is."""
        for least in (1e-9, 0.0) if self.face is not None else ():
            some = np.flatnonzero(q > least * q.max())
            M, line, unit = self.on_face(self.at[some], j)
            weight = unit / np.sqrt(self.F[j] @ self.F[j])
            weights = np.append(q[some] / self.lengths[some], weight)
            if exact.positive_weights(np.vstack([M, -sign * line]).T, weights) is not None:
                return True
        return self.face is None


def central(design: Design, found: Split, face: Face | None) -> tuple[Array, Array]:
    """A direction of largest margin in columns of like units, or the one that was found.

    Floats, and what they miss.
    """
    cone, w, some = Cone(design, found, face), found.direction, list[Array]()
    R = np.asarray(np.linalg.qr(cone.F * design.reach[:, None], mode="r"))
    if found.spanned and cone.T.any() and len(R) <= MOST and np.linalg.cond(R) < 1e8:
        rows = np.linalg.solve(R.T, (cone.T * cone.lengths[:, None]).T).T
        M = np.column_stack([rows / np.abs(rows).max(), np.ones(len(rows))])
        c = -least_rest(M, np.eye(1, M.shape[1], M.shape[1] - 1)[0])[1][:-1]
        some.append((cone.F @ np.linalg.solve(R, c[:, None]))[:, 0])
    for v in (*some, w[0]):
        if face is not None and not face.is_all:  # the very direction that is proved
            v = face.floats(face.near((v, 0.0 * v))[None])[:, 0]
        if cone.signs((v, 0.0 * v)) is not None:
            return v, 0.0 * v
    return w


def least_rest(T: Array, unit: Array) -> tuple[Array, Array]:
    """Weights q >= 0 with ``T'q = unit``, or the least rest: a direction of no positive row.

    By a working set of rows.
    """
    k, q = T.shape[1], np.zeros(len(T))
    if len(T) == k:  # rows are independent: no other weights are possible
        q = np.linalg.lstsq(T.T, unit, rcond=None)[0]
        if q.min() < -TINY * q.max():
            margins = np.ones(k)
            margins[q.argmin()] -= 2 * np.maximum(q, 0.0).sum() / q.min()
            q, v = 0 * q, np.linalg.lstsq(T, margins, rcond=None)[0]
            return q, -v / np.sqrt(v @ v)
        return np.maximum(q, 0.0), 0.0 * unit
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
