"""Which rows of a dense design can be strictly positive.

A design has rows a_r with ``a_r w >= 0`` and rows e with ``e w = 0``. The directions w that meet
all of these form a cone. By a theorem of Goldman and Tucker, the rows split uniquely into those
that one w of the cone makes strictly positive all at once, the separated rows S, and those on
which some ``q > 0`` with ``A^T q`` in the span of the equalities lives, the overlapping rows O. On
O, ``a_r w = 0`` for the whole cone. One pair of interior points tells them apart
(``partition.py``); where float64 cannot tell for some rows, the same is asked again of these, on
the face that the others leave.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq, qr

from marginsvm._typing import Array
from marginsvm.certify.checker.coordinates import (
    ZERO,
    coordinates,
    power_of_two,
    row_lengths,
)
from marginsvm.certify.checker.partition import partition
from marginsvm.certify.checker.triangular import triangular_factor
from marginsvm.separability.split import Split

_DOUBTFUL = 1e4  # lengths that are this often ``ZERO``, or less, may be 0 or not
_RATIO_OF_FACES = (
    1e6  # ratio of weight and margin at which a row certainly overlaps, or is separated
)
_MAX_FACES = 100
_LOST = 1e-11  # singular values below this part of the largest are rounding


def split(A: Array, equality: Array) -> Split:
    """Split the rows of a dense design.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
    equality : ndarray of bool, shape (n_rows,)
        Rows e of the conditions ``e w = 0``.
    """
    Z, M, identified, lengths = coordinates(A)
    walk = _Walk(Z, equality)
    z = walk.walk()
    face = M @ walk.N
    finite = row_lengths(face, 0.0) <= ZERO * row_lengths(M, 0.0)
    face[finite] = 0.0
    return Split(
        walk.separated,
        np.where(finite, 0.0, M @ z),
        walk.weights() / lengths,
        identified,
        face,
        walk.doubt,
    )


def split_of_separator(A: Array, w: Array) -> Split:
    """The split of rows that are all positive in a direction w."""
    _, M, identified, _ = coordinates(A)
    z = w[identified]
    if len(identified) < len(w):
        R = triangular_factor(A / power_of_two(A)[:, None])
        z = lstsq(R[:, identified], R @ w, check_finite=False)[0]
    every, nothing = np.ones(len(A), bool), np.zeros(len(A))
    direction = np.zeros(len(w))
    direction[identified] = z
    return Split(every, direction, nothing, identified, M, "")


class _Walk:
    """From face to face, in coordinates in which the rows have unit length.

    Parameters
    ----------
    Z : ndarray of shape (n, k)
        Rows of unit length (or zero).
    equality : ndarray of bool
    """

    def __init__(self, Z: Array, equality: Array) -> None:
        self._Z, self.doubt = Z, ""
        self._equality, self._rest = equality, np.flatnonzero(~equality)
        self.separated, self._q = np.zeros(len(Z), bool), np.zeros(len(Z))
        self.N = np.eye(Z.shape[1])
        self._restrict(Z[equality])

    def walk(self) -> Array:
        """Go through the faces; the direction that separates what is left at the end."""
        for _ in range(_MAX_FACES):
            T = self._rest_on_face()
            if not len(T):
                break
            w, z, q = _independent(T) or partition(T)
            if np.all(z > q) and np.all(T @ w > 0.0):
                self.separated[self._rest] = True
                return np.asarray(self.N @ w)
            overlap = q > _RATIO_OF_FACES * z
            if not overlap.any():
                overlap = q >= z
                if not overlap.any():  # then w is next to 0 on some rows
                    overlap = q == q.max()
                self._doubt_if(True, "an overlap is as thin as rounding")
            self._q[self._rest] += q / self._lengths
            self._rest = self._rest[~overlap]
            self._restrict(T[overlap])
        return np.zeros(self._Z.shape[1])

    def weights(self) -> Array:
        """Weights of the rows that overlap, balanced as well as float64 allows."""
        q = np.where(self.separated, 0.0, self._q)
        inside = ~self.separated & ~self._equality & row_lengths(self._Z, 0.0).astype(bool)
        if self._equality.any():
            E = self._Z[self._equality]
            q[self._equality] = _least_solution(E, -(self._Z[inside].T @ q[inside]))
        some = np.flatnonzero(q != 0.0)
        if len(some):  # changes in proportion to the weights keep signs
            P = self._Z[some] * q[some, None]
            q[some] -= q[some] * _least_solution(P, P.sum(axis=0))
        zero = ~self._equality & ~row_lengths(self._Z, 0.0).astype(bool)
        q[zero] = 1.0  # rows of zeros overlap by themselves
        return q / (np.abs(q).max(initial=0.0) or 1.0)

    def _doubt_if(self, doubtful: bool, reason: str) -> None:
        self.doubt = self.doubt or (reason if doubtful else "")

    def _rest_on_face(self) -> Array:
        """The remaining rows on the face, of unit length, without those that are 0 there."""
        T = self._Z[self._rest] @ self.N
        lengths = row_lengths(T, 0.0)
        near = (lengths > ZERO) & (lengths < _DOUBTFUL * ZERO)
        self._doubt_if(bool(near.any()), "a row is on a face up to rounding")
        kept = lengths > ZERO
        self._rest, self._lengths = self._rest[kept], lengths[kept]
        return np.asarray(T[kept] / self._lengths[:, None])

    def _restrict(self, T: Array) -> None:
        """Go to the null space of rows that are written in coordinates of the face."""
        if not len(T) or not self.N.shape[1]:
            return
        Q, r, _ = qr(triangular_factor(T).T, pivoting=True)
        pivots = np.abs(r.diagonal())
        near = (pivots > ZERO) & (pivots < _DOUBTFUL * ZERO)
        self._doubt_if(bool(near.any()), "rows are nearly dependent")
        self.N = self.N @ Q[:, int(np.count_nonzero(pivots > ZERO)) :]


def _independent(T: Array) -> tuple[Array, Array, Array] | None:
    """The pair of rows that do not depend on each other: all are separated."""
    n, k = T.shape
    if n > k:
        return None
    w = np.linalg.lstsq(T, np.ones(n), rcond=None)[0]
    return (w, T @ w, np.zeros(n)) if np.all(T @ w > 0.5) else None


def _least_solution(M: Array, right: Array) -> Array:
    """The shortest x with ``M^T x = right``, for many rows M, by their triangular factor."""
    _, s, Vt = np.linalg.svd(triangular_factor(M), full_matrices=False)
    kept = s > _LOST * s.max(initial=0.0)
    Vt, x, left = Vt[kept] / s[kept, None], np.zeros(len(M)), right
    for _ in range(3):  # what rounding has left
        x += M @ (Vt.T @ (Vt @ left))
        left = right - M.T @ x
    return x
