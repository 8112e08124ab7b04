"""Which rows of a design can be strictly positive: faces, one after the other.

A design has rows a_r with ``a_r w >= 0`` and rows e with ``e w = 0``. The directions w that meet
all of these form a cone. By a theorem of Goldman and Tucker, the rows split uniquely into those
that one w of the cone makes strictly positive all at once, the separated rows S, and those on
which some ``q > 0`` with ``A^T q`` in the span of the equalities lives, the overlapping rows O. On
O, ``a_r w = 0`` for the whole cone.

    N <- null space of the equalities
    repeat:
      rows that are zero on N belong to O
      least sum of squared hinges of the other rows on N
      no row has weight: they are S, and N z separates them; stop
      else rows with weight belong to O: N <- N times their null space

References
----------
A. Albert, J. A. Anderson. On the existence of maximum likelihood estimates in logistic regression
models. Biometrika, 1984.

A. J. Goldman, A. W. Tucker. Theory of linear programming. In Linear Inequalities and Related
Systems, 1956.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.separability.hinge import least_squared_hinge, triangular_factor
from marginsvm.separability.split import LOW_WEIGHT, NO_WEIGHT, Split

# A column whose part that earlier columns do not explain is below this part of its length is
# collinear with them: float64 keeps 16 digits, of which a factorization may lose some.
_COLLINEAR = 1e-11
# Lengths of rows on a face that are this often the rounding error, or less, may be 0 or not.
_DOUBTFUL = 1e4
_LEAST_ZERO = 1e-12  # of the unit length of rows: no longer than this counts as 0 in any case
_MAX_FACES = 1000
_SHARE = 0.5  # smallest part of a weight that is left when later weights are added


def independent_columns(R: Array) -> Array:
    """Indices of the columns that are not combinations of those before them, up to rounding.

    As in R, the later ones of collinear columns are left out.

    Parameters
    ----------
    R : ndarray of shape (m, d)
        A triangular factor of the rows.
    """
    room = min(R.shape)
    Q, kept = np.zeros((room, R.shape[0])), list[int]()
    for j, column in enumerate(R.T):
        v, length = column.copy(), float(np.sqrt(column @ column))
        for _ in range(2):
            v -= (Q[: len(kept)] @ v) @ Q[: len(kept)]
        rest = float(np.sqrt(v @ v))
        if len(kept) < room and rest > _COLLINEAR * length:
            Q[len(kept)] = v / rest
            kept.append(j)
    return np.array(kept, dtype=int)


def split(A: Array, equality: Array) -> Split:
    """Split the rows of a dense design.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
    equality : ndarray of bool, shape (n_rows,)
        Rows e of the conditions ``e w = 0``.
    """
    lengths = _unit(A.T)
    scaled = A / lengths
    units = _unit(scaled)
    scaled /= units[:, None]
    R = triangular_factor(scaled)
    identified = independent_columns(R)
    R = triangular_factor(R[:, identified])
    Z = solve_triangular(R, scaled[:, identified].T, trans="T").T
    norms = _norms(Z)
    condition = float(np.linalg.cond(R)) if len(R) else 1.0
    faces = _Faces(Z / norms[:, None], equality, max(_LEAST_ZERO, 8.0 * UNIT * condition))
    z = faces.walk()
    face = np.zeros((A.shape[1], faces.N.shape[1]))
    face[identified] = np.linalg.qr(solve_triangular(R, faces.N))[0]
    finite = _norms(face, unit=0.0) <= faces.zero * np.sqrt(len(R))
    face[finite] = 0.0
    direction = np.zeros(A.shape[1])
    direction[identified] = solve_triangular(R, z) / lengths[identified]
    direction[finite] = 0.0
    weights = faces.weights() / (units * norms)
    return Split(faces.separated, direction, weights, identified, face, lengths, faces.doubt)


def split_of_separator(A: Array, w: Array) -> Split:
    """The split of rows that are all positive in a direction w."""
    columns = _unit(A.T)
    scaled = A / columns
    R = triangular_factor(scaled)
    identified = independent_columns(R)
    direction = np.zeros(len(w))
    direction[identified] = np.linalg.lstsq(R[:, identified], R @ (w * columns), rcond=None)[0]
    face = np.zeros((len(w), len(identified)))
    face[identified] = np.eye(len(identified))
    every, nothing = np.ones(len(A), bool), np.zeros(len(A))
    return Split(every, direction / columns, nothing, identified, face, columns, "")


class _Faces:
    """The walk from face to face, in coordinates in which the rows have unit length.

    Parameters
    ----------
    Z : ndarray of shape (n, k)
        Rows of unit length (or zero).
    equality : ndarray of bool
    zero : float
        Length at which a row on a face counts as 0.
    """

    def __init__(self, Z: Array, equality: Array, zero: float) -> None:
        self._Z, self.zero, self.doubt = Z, zero, ""
        self._equality, self._rest = equality, np.flatnonzero(~equality)
        self.separated, self.q = np.zeros(len(Z), bool), np.zeros(len(Z))
        self.N = np.eye(Z.shape[1])
        self._restrict(Z[equality])

    def walk(self) -> Array:
        """Go through the faces; the direction that separates what is left at the end."""
        for _ in range(_MAX_FACES):
            T = self._rest_on_face()
            if not len(T):
                break
            z, u = least_squared_hinge(T)
            if u.max() <= NO_WEIGHT + 1e3 * UNIT * float(np.abs(z).max()):
                self.separated[self._rest] = True
                thin = 1.0 / max(float(np.sqrt(z @ z)), 1.0)
                self._doubt_if(thin <= _DOUBTFUL * self.zero, "a margin is as thin as rounding")
                return np.asarray(self.N @ z)
            least = min(LOW_WEIGHT, 0.1 * u.max())
            self._doubt_if(least < LOW_WEIGHT, "an overlap is as thin as rounding")
            self._add_weights(self._rest, u / self._lengths)
            self._rest = self._rest[u <= least]
            self._restrict(T[u > least])
        return np.zeros(self._Z.shape[1])

    def weights(self) -> Array:
        """The weights of all faces, balanced as well as float64 allows."""
        q = np.where(self.separated, 0.0, self.q)
        some = np.flatnonzero(q != 0.0)
        if len(some):  # changes in proportion to the weights keep signs
            M = self._Z[some] * q[some, None]
            q[some] -= q[some] * _least_solution(M, M.sum(axis=0))
        return q / (np.abs(q).max(initial=0.0) or 1.0)

    def _doubt_if(self, doubtful: bool, reason: str) -> None:
        self.doubt = self.doubt or (reason if doubtful else "")

    def _rest_on_face(self) -> Array:
        """The remaining rows on the face, of unit length, without those that are 0 there."""
        T = self._Z[self._rest] @ self.N
        self._lengths = _norms(T, unit=0.0)
        near = (self._lengths > self.zero) & (self._lengths < _DOUBTFUL * self.zero)
        self._doubt_if(bool(near.any()), "a row is on a face up to rounding")
        kept = self._lengths > self.zero
        self._rest, self._lengths = self._rest[kept], self._lengths[kept]
        return np.asarray(T[kept] / self._lengths[:, None])

    def _add_weights(self, rows: Array, u: Array) -> None:
        """Add weights whose sum of rows is a combination of the rows that already have weight."""
        before = np.flatnonzero((self.q != 0.0) | self._equality)
        new = np.zeros(len(self.q))
        new[rows] = u
        if len(before):
            free = self._equality[before]
            scale = np.where(free, 1.0, self.q[before])
            change = _least_solution(self._Z[before] * scale[:, None], -(self._Z.T @ new))
            worst = float(-(change[~free]).min(initial=0.0))
            self.q *= max(1.0, worst / _SHARE)
            new[before] += change * scale
        self.q += new
        self.q /= np.abs(self.q).max()

    def _restrict(self, T: Array) -> None:
        """Go to the null space of rows that are written in coordinates of the face."""
        if not len(T) or not self.N.shape[1]:
            return
        Q, r, _ = qr(triangular_factor(T).T, pivoting=True)
        pivots = np.abs(r.diagonal())
        near = (pivots > self.zero) & (pivots < _DOUBTFUL * self.zero)
        self._doubt_if(bool(near.any()), "rows are nearly dependent")
        self.N = self.N @ Q[:, int(np.count_nonzero(pivots > self.zero)) :]


def _least_solution(M: Array, right: Array) -> Array:
    """The shortest x with ``M^T x = right``, for many rows M, by their triangular factor."""
    _, s, Vt = np.linalg.svd(triangular_factor(M), full_matrices=False)
    kept = s > _COLLINEAR * s[0]
    Vt, x, left = Vt[kept] / s[kept, None], np.zeros(len(M)), right
    for _ in range(3):  # what rounding has left
        x += M @ (Vt.T @ (Vt @ left))
        left = right - M.T @ x
    return x


def _unit(A: Array) -> Array:
    """For each row, the power of two next to its largest entry; 1 for rows of zeros."""
    top = np.maximum(A.max(axis=1, initial=0.0), -A.min(axis=1, initial=0.0))
    return np.asarray(np.ldexp(1.0, np.frexp(top)[1]) * (top > 0.0) + (top == 0.0))


def _norms(A: Array, unit: float = 1.0) -> Array:
    """Lengths of the rows; ``unit`` for rows of zeros."""
    norms = np.sqrt(np.einsum("ij,ij->i", A, A))
    return np.where(norms > 0.0, norms, unit)
