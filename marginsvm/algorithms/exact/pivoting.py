"""Block principal pivoting: the solution on a working set whose Gram matrix is regular."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.faces import FaceSolver

# Exchanges after which pivoting is given up: it may go round in circles.
_MAX_EXCHANGES = 60
# Exchanges that may pass without fewer infeasible indices.
_PATIENCE = 3
# A weight below minus this, relative to the largest, is negative; and a margin below the common one
# by more than this part of it is a violation (or by more than the second, where it is tiny).
_INFEASIBLE = 1e-10
_SMALLEST_VIOLATION = 1e-14


def block_pivoting(
    faces: FaceSolver, H: Array, B: Array, passive: Array
) -> tuple[Array, Array] | None:
    """``min u'Hu/2 - 1'u, u >= 0, B'u = 0``, or None where that does not settle.

    Parameters
    ----------
    faces : FaceSolver
    H : ndarray of shape (m, m)
        Gram matrix plus 1: then ``1 - sum(u)`` is the common margin in units of sum(u) = 1,
        and violations are measured against it.
    B : ndarray of shape (m, c)
    passive : ndarray of shape (m,)
        Indices that are expected to carry weight.

    Returns
    -------
    u, b : ndarray
        Weights and the multipliers of their balance.

    References
    ----------
    J. Judice, F. Pires, 1994; J. Kim, H. Park, SIAM J. Sci. Comput. 2011: exchange all
    infeasible indices at once.
    """
    m = len(H)
    fewest, left = m + 1, _PATIENCE
    for _ in range(_MAX_EXCHANGES):
        face = np.flatnonzero(passive)
        solved = _solve_face(faces, H, B, face)
        if solved is None:
            return None
        u, b = np.zeros(m), solved[1]
        u[face] = solved[0]
        bad = u < -_INFEASIBLE * np.abs(u).max(initial=0.0)
        if len(face) < m:
            small = max(_INFEASIBLE * (1 - u.sum()), _SMALLEST_VIOLATION)
            bad = np.where(passive, bad, H @ u + B @ b - 1 < -small)
        count = int(np.count_nonzero(bad))
        if count == 0:
            return (np.maximum(u, 0.0), b) if u.sum() > 0 else None
        fewest, left = (count, _PATIENCE) if count < fewest else (fewest, left - 1)
        if left < 0:
            return None
        passive = passive ^ bad
    return None


def _solve_face(faces: FaceSolver, H: Array, B: Array, face: Array) -> tuple[Array, Array] | None:
    """``u, b`` with ``(Hu)_i + B_i b = 1`` on the face, ``B'u = 0``."""
    rhs = np.ones((1 + B.shape[1], len(face))).T
    rhs[:, 1:] = B[face]
    x = faces.solve(H, face, rhs)
    if x is None or B.shape[1] == 0:
        return x if x is None else (x[:, 0], np.zeros(0))
    schur, load = B[face].T @ x[:, 1:], B[face].T @ x[:, 0]
    b = load / schur[0] if len(load) == 1 else np.linalg.lstsq(schur, load, rcond=1e-12)[0]
    return x[:, 0] - x[:, 1:] @ b, b
