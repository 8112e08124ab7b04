"""Block principal pivoting: which weights are zero, by exchanging all that are infeasible at once.

References
----------
J. Judice, F. Pires. A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems. Computers and Operations Research, 1994.

J. Kim, H. Park. Fast nonnegative matrix factorization: an active-set-like method and comparisons.
SIAM J. Sci. Comput., 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import factored
from marginsvm.fit.interrupts import let_interrupts_through

# Exchanges that may pass without fewer infeasible indices: pivoting may go round in circles.
_TURNS_WITHOUT_PROGRESS = 3
# A weight below minus this, relative to the largest, is negative; and a margin below the common one
# by more than this part of it is a violation (or by more than the second, where it is tiny).
_INFEASIBLE = 1e-10
_SMALLEST_VIOLATION = 1e-14

S = TypeVar("S")


def exchange(
    side: Array, solve: Callable[[Array], tuple[S, Array] | None]
) -> tuple[S, Array, bool] | None:
    """Exchange all infeasible indices at once, until there are none or no fewer than before.

    Parameters
    ----------
    side : ndarray
        For each index, whether its weight is zero or which sign it has: a first guess.
    solve : callable
        ``solve(side)`` gives the solution for these, and the sides that it calls for; None: there
        is none.

    Returns
    -------
    solution, side
        The last ones.
    settled : bool
        Whether the solution calls for no other sides.
    """
    fewest, left = len(side) + 1, _TURNS_WITHOUT_PROGRESS
    while True:
        let_interrupts_through()  # of thousands of rows, a factor takes a second
        solved = solve(side)
        if solved is None:
            return None
        solution, wanted = solved
        count = int(np.count_nonzero(wanted != side))
        if count == 0:
            return solution, side, True
        fewest, left = (count, _TURNS_WITHOUT_PROGRESS) if count < fewest else (fewest, left - 1)
        if left < 0:
            return solution, side, False
        side = wanted


def block_pivoting(H: Array, B: Array, passive: Array) -> tuple[Array, Array] | None:
    """``min u'Hu/2 - 1'u, u >= 0, B'u = 0``, or None where that does not settle.

    Parameters
    ----------
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
    """

    def solve(passive: Array) -> tuple[tuple[Array, Array], Array] | None:
        face = np.flatnonzero(passive)
        solved = _solve_face(H, B, face)
        if solved is None:
            return None
        u, b = np.zeros(len(H)), solved[1]
        u[face] = solved[0]
        wanted = u >= -_INFEASIBLE * np.abs(u).max(initial=0.0)
        if len(face) < len(H):
            small = max(_INFEASIBLE * (1 - u.sum()), _SMALLEST_VIOLATION)
            wanted = np.where(passive, wanted, H @ u + B @ b - 1 < -small)
        return (u, b), wanted

    found = exchange(passive, solve)
    if found is None or not found[2]:
        return None
    u, b = found[0]
    # weights that are cut off at 0 would leave the others unbalanced
    for _ in range(_TURNS_WITHOUT_PROGRESS):
        again = solve(u > 0.0) if B.shape[1] and u.min() < 0.0 else None
        if again is None:
            break
        u, b = again[0]
    return (np.maximum(u, 0.0), b) if u.sum() > 0 else None


def _solve_face(H: Array, B: Array, face: Array) -> tuple[Array, Array] | None:
    """``u, b`` with ``(Hu)_i + B_i b = 1`` on the face, ``B'u = 0``."""
    rhs = np.ones((1 + B.shape[1], len(face))).T
    rhs[:, 1:] = B[face]
    x = _solved(H, face, rhs)
    if x is None or B.shape[1] == 0:
        return x if x is None else (x[:, 0], np.zeros(0))
    schur, load = B[face].T @ x[:, 1:], B[face].T @ x[:, 0]
    b = load / schur[0] if len(load) == 1 else np.linalg.lstsq(schur, load, rcond=1e-12)[0]
    return x[:, 0] - x[:, 1:] @ b, b


def _solved(H: Array, face: Array, rhs: Array) -> Array | None:
    """``x`` with ``H[face, face] x = rhs``; None where that is not positive definite."""
    try:
        factor = factored(H[face[:, None], face].T, most=0.0)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(dpotrs(factor, rhs, lower=0)[0])
