"""The signs of infinite coefficients, each with a proof.

On the directions that are 0 on the overlapping rows and nowhere negative on the separated ones, a
coefficient never falls exactly if its unit vector is a combination of the rows: with any weights
on the overlapping ones, and weights that are not negative on the others (Farkas' lemma).
Otherwise some direction that is positive on all separated rows lowers it. Either is found in
floats, in coordinates in which they are as precise as can be, and proved for the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from marginsvm.certify.checker.coordinates import coordinates, null_space, power_of_two, row_lengths
from marginsvm.certify.checker.face import Face
from marginsvm.certify.checker.partition import partition
from marginsvm.certify.checker.positive import (
    direction_is_positive,
    exact_weights_exist,
    sign_of_entry,
)
from marginsvm.certify.checker.simplex import combination
from marginsvm.certify.exactly.elimination import Integers

_POSITIVE = 1e-9  # products of unit vectors above are not rounding of 0
_SHORT_REST = 1e-10  # what is left of a unit vector that may be a combination
_ADDED_ROWS = 2  # rows that join a working set in a round, times the dimension
# Weights up to this part of the largest may be rounding of 0: both are tried.
_LEAST_WEIGHT = 1e-9, 0.0
# Numbers of a design of which signs are decided by the simplex method in integers.
_SIMPLEX_NUMBERS = 2000
_WORKING_SET_ROUNDS = 50
_WAY = 0.99  # share of the way to the boundary
_INWARDS = 1e-6, 1e-3, 0.1  # parts of the way to a direction that all rows allow strictly


@dataclass(frozen=True)
class Cone:
    """The directions of a face that are positive on the separated rows.

    Attributes
    ----------
    T : ndarray of shape (n_separated, k)
        The separated rows in coordinates of the face, of unit length.
    face : ndarray of shape (n_columns, k)
        What a step along each coordinate changes.
    z : ndarray of shape (k,)
        A direction with ``T z > 0``.
    lengths : ndarray of shape (n_separated,)
        That the rows of T had.
    units : ndarray of shape (n_columns,)
        Of the columns: directions are ``face z / units``.
    """

    T: NDArray
    face: NDArray
    z: NDArray
    lengths: NDArray
    units: NDArray

    @classmethod
    def spanned(cls, A: NDArray, separated: NDArray, w: NDArray, basis: NDArray) -> Cone:
        """Of a face whose basis is known in floats; A is read once."""
        units = power_of_two(A.T)
        face = np.linalg.qr(basis * units[:, None])[0]
        T = A[separated] @ (face / units[:, None])
        lengths = row_lengths(T)
        return cls(T / lengths[:, None], face, face.T @ (w * units), lengths, units)

    @classmethod
    def of_rays(cls, rays: NDArray, w: NDArray, basis: NDArray) -> Cone:
        """Of the products of the separated rows with a basis of the face that has w."""
        lines = row_lengths(basis)
        z = np.linalg.lstsq(basis / lines[:, None], w / lines, rcond=None)[0]
        lengths = row_lengths(rays)
        T = rays / lengths[:, None]
        if not np.all(T @ z > 0.0):
            z = partition(T).w
        return cls(T, basis, z, lengths, np.ones(len(basis)))

    @classmethod
    def of(cls, A: NDArray, separated: NDArray, w: NDArray) -> Cone:
        """Of rows whose columns are independent, and a direction that separates some of them."""
        units = power_of_two(A.T)
        Z, M, _, scale = coordinates(A / units)
        N = null_space(Z[~separated]) if not separated.all() else np.eye(Z.shape[1])
        T = Z[separated] @ N
        face = M @ N
        z = np.linalg.lstsq(face, w * units, rcond=None)[0]
        lengths = row_lengths(T)
        T = T / lengths[:, None]
        if not np.all(T @ z > 0.0):  # rounding of w, in these coordinates
            z = partition(T).w
        return cls(T, face, z, lengths * scale[separated], units)

    def opposite(self, columns: NDArray) -> NDArray:
        """For each column, a direction that may change it the other way than z. Shape (n, k).

        From z as far as all rows allow, in the metric of their barrier.
        """
        slack = self.T @ self.z
        if not np.all(slack > 0.0):
            return np.tile(self.z, (len(columns), 1))
        W, lines = self.T / slack[:, None], self.face[columns]
        lines = lines / row_lengths(lines)[:, None]
        try:
            D = cho_solve(cho_factor(W.T @ W), -np.where(lines @ self.z < 0.0, -1.0, 1.0) * lines.T)
        except np.linalg.LinAlgError:
            return np.tile(self.z, (len(columns), 1))
        D /= row_lengths(D.T)
        fall = np.maximum((-(W @ D)).max(axis=0), 1e-3 / np.sqrt(self.z @ self.z))
        return np.asarray(self.z + (_WAY / fall * D).T)

    def never_falls(self, unit: NDArray) -> tuple[NDArray | None, NDArray | None]:
        """Weights whose sum of rows is a unit vector or, if none are, a direction that lowers it.

        Both are None where floats cannot tell.
        """
        T, q = self.T, np.zeros(len(self.T))
        rows = np.argsort(-(T @ unit), kind="stable")[: 4 * T.shape[1]]
        for _ in range(_WORKING_SET_ROUNDS):
            weights = nnls(T[rows].T, unit, maxiter=100 * sum(T.shape))[0]
            rest = unit - T[rows].T @ weights
            length = float(np.sqrt(rest @ rest))
            if length <= _SHORT_REST:
                q[rows] = weights
                return q, None
            v = -rest / length
            margins = T @ v
            new = np.setdiff1d(np.flatnonzero(margins < -_POSITIVE), rows)
            if not len(new):
                return None, self._inside(unit, v)
            new = new[np.argsort(margins[new], kind="stable")[: _ADDED_ROWS * T.shape[1]]]
            rows = np.append(rows, new)
        return None, None

    def _inside(self, unit: NDArray, v: NDArray) -> NDArray | None:
        """A direction near v that is positive on all rows, and lowers a unit vector."""
        for part in _INWARDS:
            inside = v + part * self.z / np.sqrt(self.z @ self.z)
            if unit @ inside < 0.0 and np.all(self.T @ inside > 0.0):
                return np.asarray(inside)
        return None


class Signs:
    """The signs of coefficients, with proofs where a face is known exactly.

    Parameters
    ----------
    cone : Cone
    A : ndarray of shape (n_rows, n_columns)
        Rows whose columns are independent.
    separated : ndarray of bool, shape (n_rows,)
    face : Face or None
        What is exactly 0 on the other rows; None: answers hold up to rounding.
    """

    def __init__(self, cone: Cone, A: NDArray, separated: NDArray, face: Face | None) -> None:
        self._cone, self._A, self._separated, self._face = cone, A, separated, face
        self.witnesses: list[Integers] = []  # directions that show coefficients of either sign

    def of(self, columns: NDArray) -> list[int | None]:
        """1 or -1 if a coefficient has this sign in the whole cone; 0: either; None: unknown."""
        if not len(columns):
            return []
        return [
            self._sign(int(j), v)
            for j, v in zip(columns, self._cone.opposite(columns), strict=True)
        ]

    def _sign(self, j: int, other: NDArray) -> int | None:
        z, line = self._cone.z, self._cone.face[j]
        largest = np.abs(line).max(initial=0.0)
        if not largest > 0.0:
            return None
        unit = line / largest  # whose square neither overflows nor vanishes
        unit = unit / np.sqrt(unit @ unit)
        here = self._sign_at(j, z)
        if here and self._sign_at(j, other) == -here:
            return self._either(z, other)
        seen = z
        for sign in (here,) if here else (1, -1):
            q, v = self._cone.never_falls(sign * unit)
            if q is not None and self._is_combination(j, sign, q):
                return sign
            if v is not None:
                there = self._sign_at(j, v)
                if here and there == -here:
                    return self._either(seen, v)
                here, seen = (here, seen) if here else (there, v)
        return self._by_simplex(j)

    def _either(self, *directions: NDArray) -> int:
        if self._face is not None:
            for z in directions:
                w = self._cone.face @ z / self._cone.units
                self.witnesses.append(self._face.direction(w))
        return 0

    def _by_simplex(self, j: int) -> int | None:
        """The sign of a coefficient of a small design, without rounding."""
        if self._face is None or self._A.size > _SIMPLEX_NUMBERS:
            return None
        basis = self._face.basis
        rows = np.concatenate([self._A[self._separated], basis, -basis])
        shown = []
        for sign in (1.0, -1.0):
            answer = combination(rows, sign * np.eye(1, rows.shape[1], j)[0])
            if answer is None:
                return None
            if answer.weights is not None or answer.direction is None:
                return int(sign)
            shown.append(answer.direction)
        self.witnesses += shown
        return 0

    def _sign_at(self, j: int, z: NDArray) -> int:
        """The sign of a coefficient in a direction inside the cone; 0: none, or it is outside."""
        if not np.all(self._cone.T @ z > 0.0):
            return 0
        if self._face is None:
            line = self._cone.face[j]
            value = line @ z / np.sqrt((line @ line) * (z @ z))
            return int(np.sign(value)) if abs(value) > _POSITIVE else 0
        w = self._cone.face @ z / self._cone.units
        sign = sign_of_entry(self._face, w, j)
        return sign if direction_is_positive(self._A[self._separated], self._face, w) else 0

    def _is_combination(self, j: int, sign: int, q: NDArray) -> bool:
        """Whether rows with such weights, and others with any, add up to a unit vector."""
        if self._face is None:
            return True
        cone, B = self._cone, self._face.basis
        A = self._A / cone.units
        B = B / cone.units
        unit = np.zeros(A.shape[1])
        unit[j] = -sign * _near(1.0 / row_lengths(cone.face[[j]])[0])
        for least in _LEAST_WEIGHT:
            some = np.flatnonzero(q > least * q.max())
            S = A[self._separated][some] * _near(1.0 / cone.lengths[some])[:, None]
            rows = np.concatenate([S, B, unit[None]])
            top = np.maximum(np.abs(rows).max(axis=0), np.finfo(float).tiny)
            weights = np.linalg.lstsq((rows[:-1] / top).T, -unit / top, rcond=None)[0]
            free = np.arange(len(rows)) >= len(some)
            free[-1] = False
            if exact_weights_exist(rows, free, np.append(weights, 1.0)):
                return True
        return False


def _near(x: NDArray) -> NDArray:
    """The power of two next to numbers, with which products are exact."""
    return np.asarray(np.ldexp(1.0, np.frexp(x)[1]))
