"""The steps of :mod:`marginsvm.certify.nearest_point`: a QR factorization of rows in use.

Plain NumPy: a step is a few products with all rows, and the first proof that a user asks
for should not wait for a compiler.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, qr_delete
from scipy.linalg.lapack import dtrtrs

from marginsvm._typing import Array
from marginsvm.certify.tolerances import (
    CONDITION_RANK,
    DEPENDENT_ROW,
    NEAREST_POINT_PATIENCE,
    NEAREST_POINT_PROGRESS,
    NEGATIVE_WEIGHT,
    ORIGIN_REACHED,
)


class Corral:
    """Rows in use, affinely independent: ``E[in_use] = R^T Q`` for ``E = (z, B, 1)``.

    Parameters
    ----------
    E : ndarray of shape (n, D)
    n_conditions : int
        The last columns of E, which the weights must take to (0, ..., 0, 1).

    Attributes
    ----------
    in_use : list of int
        The rows in use, by their positions in E.
    q : ndarray
        Their weights.
    inside : ndarray of bool, shape (n,)
        Which rows these are.
    room : int
        Rows that may be in use at the same time.
    """

    def __init__(self, E: Array, n_conditions: int) -> None:
        n, D = E.shape
        self.room = min(n, D) + 2
        self._E, self._nc = E, n_conditions
        self._Q, self._R = np.zeros((self.room, D)), np.zeros((self.room, self.room))
        self.in_use: list[int] = []
        self.q = np.empty(0)
        self.inside = np.zeros(n, dtype=bool)

    @property
    def Q(self) -> Array:  # noqa: N802
        """Orthonormal basis of the rows."""
        return self._Q[: len(self.in_use)]

    def begin(self, rows: Array) -> None:
        """Take these rows, by one factorization where none depends on the others."""
        rows = rows[: self.room - 1]
        lengths = np.sqrt(np.einsum("ij,ij->i", self._E[rows], self._E[rows]))
        Q, R = qr(self._E[rows].T, mode="economic", check_finite=False)
        s = len(rows)
        if len(R) == s and np.all(np.abs(R.diagonal()) > DEPENDENT_ROW * lengths):
            self._Q[:s], self._R[:s, :s], self.in_use = Q.T, R, rows.tolist()
            self.inside[rows] = True
        else:
            for i in rows:
                self.append(int(i))
        self.q = np.full(len(self.in_use), 1.0 / len(self.in_use))

    def append(self, i: int) -> bool:
        """Add row i with weight 0; False where it depends on those already there."""
        s, v = len(self.in_use), self._E[i].copy()
        column = np.zeros(s)
        for _ in range(2):
            r = self.Q @ v
            v -= r @ self.Q
            column += r
        rho = np.sqrt(v @ v)
        if rho <= DEPENDENT_ROW * np.sqrt(self._E[i] @ self._E[i]):
            return False
        self._R[:s, s], self._R[s, s], self._Q[s] = column, rho, v / rho
        self.in_use.append(i)
        self.inside[i] = True
        self.q = np.append(self.q, 0.0)
        return True

    def remove(self, p: int) -> None:
        """Drop the p-th row."""
        s = len(self.in_use)
        Q, R = qr_delete(self.Q.T, self._R[:s, :s], p, which="col", check_finite=False)
        self._Q[: s - 1], self._R[: s - 1, : s - 1] = Q[:, : s - 1].T, R[: s - 1]
        self.inside[self.in_use.pop(p)] = False
        self.q = np.maximum(np.delete(self.q, p), 0.0)

    def _affine(self) -> tuple[Array, Array]:
        """Weights of the nearest point of the balanced affine hull, and the multipliers."""
        s = len(self.in_use)
        Qc = self.Q[:, self._E.shape[1] - self._nc :]
        rhs = np.zeros(self._nc)
        rhs[-1] = 1.0
        mu = np.linalg.lstsq(Qc.T @ Qc, rhs, CONDITION_RANK)[0]
        return dtrtrs(self._R[:s, :s], Qc @ mu)[0], mu

    def descend(self) -> tuple[int, Array]:
        """Walk to the nearest point of the affine hull, dropping the rows that block."""
        steps = 0
        while True:
            steps += 1
            x, mu = self._affine()
            blocking = x <= NEGATIVE_WEIGHT
            if not blocking.any():
                self.q = np.maximum(x, 0.0)
                return steps, mu
            gone = np.maximum(self.q - x, 1e-300)
            ratio = np.where(blocking, self.q / gone, np.inf)
            p = int(ratio.argmin())
            self.q = self.q + min(ratio[p], 1.0) * (x - self.q)
            self.remove(p)

    def separator(self, mu: Array) -> tuple[Array, float]:
        """``(w, b, -margin)``, orthogonal to every row of the corral; and ``|q^T z|^2``.

        The weights give it up to rounding of the rows' norm; projecting twice gives it up
        to rounding of its own, which is what a margin far below that norm needs.
        """
        d, s = self._E.shape[1] - self._nc, len(self.in_use)
        v = (self._R[:s, :s] @ self.q) @ self.Q
        norm2 = float(v[:d] @ v[:d])
        v[d:-1] = -mu[: self._nc - 1]
        v[-1] = -norm2
        for _ in range(2):
            v -= (self.Q @ v) @ self.Q
        return v, norm2


def wolfe(
    E: Array, n_conditions: int, start: Array, max_steps: int, tol: float
) -> tuple[Array, Array, Array]:
    """Wolfe's method: the last corral, its weights, and the separator; rows ``E = (z, B, 1)``."""
    corral = Corral(E, n_conditions)
    corral.begin(start)
    skip = np.zeros(len(E), dtype=bool)
    best, stalled, steps = np.inf, 0, 0
    while True:
        taken, mu = corral.descend()
        steps += taken
        v, norm2 = corral.separator(mu)
        scores = E @ v
        stalled += 1
        if norm2 < best * (1 - NEAREST_POINT_PROGRESS):
            best, stalled = norm2, 0
            skip[:] = False
        done = (
            scores.min() >= tol * v[-1]
            or stalled > NEAREST_POINT_PATIENCE
            or norm2 <= ORIGIN_REACHED
        )
        if done or steps >= max_steps or not _enter(corral, skip, scores, tol * v[-1]):
            return np.array(corral.in_use), corral.q, v


def _enter(corral: Corral, skip: Array, scores: Array, least: float) -> bool:
    """Add the row of the smallest score, if below ``least``, that is independent of the corral."""
    while len(corral.in_use) < corral.room:
        i = int(np.where(skip | corral.inside, np.inf, scores).argmin())
        if skip[i] or corral.inside[i] or scores[i] >= least:
            return False
        skip[i] = True
        if corral.append(i):
            return True
    return False
