"""Wolfe's method for :mod:`marginsvm.certify.nearest_point`, by a QR factorization.

The code is plain NumPy, since a step is a few products with all points, and since the first fit
of a session should not wait for a compiler.
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
    """The corral: affinely independent points in use, with ``E[in_use] = R^T Q``.

    A row of ``E = (z, B, 1)`` is a point z, its entries in the conditions B that the weights
    have to meet, and a 1 for the condition that they sum to 1.

    Parameters
    ----------
    E : ndarray of shape (n, D)
    n_conditions : int
        Number of the last columns of E, of which the weighted sum must be (0, ..., 0, 1).

    Attributes
    ----------
    in_use : list of int
        The points in use, by their positions in E.
    q : ndarray
        The weights of the points in use.
    inside : ndarray of bool, shape (n,)
        Whether each point is in use.
    room : int
        Number of points that may be in use at the same time.
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
        """Orthonormal basis of the points in use."""
        return self._Q[: len(self.in_use)]

    def begin(self, start: Array) -> None:
        """Use these points, by a single factorization where they are independent."""
        start = start[: self.room - 1]
        lengths = np.sqrt(np.einsum("ij,ij->i", self._E[start], self._E[start]))
        Q, R = qr(self._E[start].T, mode="economic", check_finite=False)
        s = len(start)
        if len(R) == s and np.all(np.abs(R.diagonal()) > DEPENDENT_ROW * lengths):
            self._Q[:s], self._R[:s, :s], self.in_use = Q.T, R, start.tolist()
            self.inside[start] = True
        else:
            for i in start:
                self.append(int(i))
        self.q = np.full(len(self.in_use), 1.0 / len(self.in_use))

    def append(self, i: int) -> bool:
        """Add point i with weight 0; False, without change, if it depends on those in use."""
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
        """Remove the p-th of the points in use."""
        s = len(self.in_use)
        Q, R = qr_delete(self.Q.T, self._R[:s, :s], p, which="col", check_finite=False)
        self._Q[: s - 1], self._R[: s - 1, : s - 1] = Q[:, : s - 1].T, R[: s - 1]
        self.inside[self.in_use.pop(p)] = False
        self.q = np.maximum(np.delete(self.q, p), 0.0)

    def _affine(self) -> tuple[Array, Array]:
        """Weights of the affine hull's point nearest to 0, and multipliers of the conditions."""
        s = len(self.in_use)
        Qc = self.Q[:, self._E.shape[1] - self._nc :]
        rhs = np.zeros(self._nc)
        rhs[-1] = 1.0
        mu = np.linalg.lstsq(Qc.T @ Qc, rhs, CONDITION_RANK)[0]
        return dtrtrs(self._R[:s, :s], Qc @ mu)[0], mu

    def descend(self) -> tuple[int, Array]:
        """Move to the nearest point of the affine hull; remove points of negative weight.

        Returns the number of steps and the multipliers of the conditions.
        """
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
        """``(w, b, -margin)``, orthogonal to every row of E in use; and ``|q^T z|^2``.

        Computed from the weights, w has rounding errors relative to the length of the points.
        Two projections reduce them to errors relative to w itself, which a margin far below
        that length needs.
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
    """Wolfe's method: the points in use at its end, their weights, and the separator.

    See :class:`Corral` for ``E`` and ``n_conditions``; ``start`` holds the positions of the
    first points, and the method ends once no point is violated by more than ``tol``.
    """
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
    """Add the point of smallest score below ``least`` that is independent of those in use."""
    while len(corral.in_use) < corral.room:
        i = int(np.where(skip | corral.inside, np.inf, scores).argmin())
        if skip[i] or corral.inside[i] or scores[i] >= least:
            return False
        skip[i] = True
        if corral.append(i):
            return True
    return False
