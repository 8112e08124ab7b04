"""The least sum of squared hinges of sparse rows: its weights say which rows overlap.

For rows t_r, a minimiser z of ``1/2 sum_r max(0, 1 - t_r z)^2`` exists always, and its weights
``u_r = max(0, 1 - t_r z)`` solve ``T^T u = 0``: so rows with weight overlap, and no direction that
leaves all rows on the right side separates any of them strictly. Rows that some direction
separates strictly have no weight, and ``t_r z >= 1``. In contrast to the nearest point of the
convex hull, most rows that overlap get weight at once, and neither the number of rows nor the
conditioning of their Gram matrix matters: the problem has as many unknowns as there are columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve

from marginsvm._typing import Array
from marginsvm.algorithms.exact.systems.system import conjugate_gradients
from marginsvm.certify.checker.partition import lifted_factor

_MAX_HINGE_STEPS = 200  # Newton steps: five to fifteen are usual, more where margins are thin
_SEARCH_STEPS = 60  # steps of a line search, which ends by itself in far fewer
_FLAT = 1e-15  # gradient, per unit row, at which only rounding is left
_LEVEL = 1e-15  # slope of a line at which only rounding is left, relative to its terms
_PRECISION_OF_PRODUCTS = 1e-3  # relative precision of a step by products
_PRODUCTS_OF_HINGE_STEP = 2000  # in a step at most
FEW_COLUMNS = 1000  # of a system that is factorized, in a tenth of a second
_FACTOR_COST = 100.0  # multiplications for each number of the rows that such a system may take
_PROGRESS = 1e-12  # relative decrease of the sum that is more than rounding
_STALLED_STEPS = 3  # steps in a row without progress, nor half the gradient


def least_squared_hinge(T: Any, equality: Array | None = None) -> tuple[Array, Array]:
    """Minimise the sum of squared hinges by Newton's method with an exact line search.

    Parameters
    ----------
    T : csr_array of shape (n, k)
        Rows, of unit length.
    equality : ndarray of bool, shape (n,), or None
        Rows e whose squares ``(e z)^2`` are added in place of hinges; None: no such rows.

    Returns
    -------
    z : ndarray of shape (k,)
    u : ndarray of shape (n,)
        Weights ``max(0, 1 - T z)``, and ``-e z`` for equalities, with ``T^T u = 0`` up to rounding.
    """
    n, k = T.shape
    fixed = np.zeros(n, bool) if equality is None else equality
    z, m = np.zeros(k), np.zeros(n)
    best, best_slope, least, stalled = z, np.inf, np.inf, 0
    for _ in range(_MAX_HINGE_STEPS):
        u = _weights(m, fixed)
        descent = T.T @ u
        slope, total = float(np.sqrt(descent @ descent)), float(u @ u)
        better = slope < 0.5 * best_slope or total < (1.0 - _PROGRESS) * least
        stalled, least = 0 if better else stalled + 1, min(total, least)
        if slope < best_slope:
            best, best_slope = z, slope
        if slope <= _FLAT * n or stalled > _STALLED_STEPS:
            break
        active = (u > 0.0) | fixed
        step = newton_step(T[active], descent, np.ones(np.count_nonzero(active)))
        moves = T @ step
        z = z + _exact_length(m, moves, fixed) * step
        m = T @ z
    return best, _weights(T @ best, fixed)


def _weights(m: Array, fixed: Array) -> Array:
    return np.where(fixed, -m, np.maximum(1.0 - m, 0.0))


def newton_step(T: Any, descent: Array, curvature: Array) -> Array:
    """``(T' diag(curvature) T)^+ descent``, factorized if there are few columns."""
    diagonal = T.multiply(T).T @ curvature
    diagonal = np.where(diagonal > 0.0, diagonal, 1.0)
    each = np.diff(T.indptr).astype(float)  # numbers in a row
    if T.shape[1] <= FEW_COLUMNS and each @ each <= _FACTOR_COST * each.sum():
        H = (T.T @ (sp.diags_array(curvature) @ T)).toarray()
        np.fill_diagonal(H, diagonal)
        factor = lifted_factor(H)
        if factor is not None:
            return np.asarray(cho_solve(factor, descent))
    return conjugate_gradients(
        lambda v: T.T @ (curvature * (T @ v)),
        lambda r: r / diagonal,
        descent,
        _PRECISION_OF_PRODUCTS,
        _PRODUCTS_OF_HINGE_STEP,
    )


def _exact_length(m: Array, moves: Array, fixed: Array) -> float:
    """Length of the step that leaves the least sum: the zero of a growing, piecewise linear slope.

    Newton's method on the slope, within the bracket that its signs give.
    """
    low, high, t = 0.0, np.inf, 1.0
    flat = _LEVEL * float(np.abs(_weights(m, fixed)) @ np.abs(moves))
    for _ in range(_SEARCH_STEPS):
        u = _weights(m + t * moves, fixed)
        slope = -float(u @ moves)
        curvature = float(np.square(moves[(u > 0.0) | fixed]).sum())
        if abs(slope) <= flat:
            break
        low, high = (t, high) if slope < 0.0 else (low, t)
        new = t - slope / curvature if curvature > 0.0 else t
        if not low < new < high:
            new = 2.0 * low if high == np.inf else 0.5 * (low + high)
        if abs(new - t) <= 1e-14 * t:
            break
        t = new
    return t
