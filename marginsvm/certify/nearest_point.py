"""The point of a polytope nearest to the origin, by Wolfe's active-set method: slow but reliable.

Rows enter one at a time. Those in use (the corral) are affinely independent and kept as a QR
factorization, so that no squares of small numbers are formed and the method does not cycle.
Margins down to 1e-9 of the rows' norm are resolved, also with duplicate and dependent rows.

References
----------
P. Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.optimize import nnls

from marginsvm._rounding import Extended
from marginsvm._typing import Array
from marginsvm.certify.certifiable import written_out
from marginsvm.certify.corral import wolfe
from marginsvm.certify.tolerances import (
    GRAM_RANK,
    MAX_WRITTEN_OUT,
    NEAREST_POINT_TOL,
    STIFFNESS,
    WIDE_ROW,
)


@dataclass(frozen=True)
class NearestPoint:
    """The nearest point, as weights on the rows, and the separator that belongs to it.

    Attributes
    ----------
    q : ndarray of shape (n_rows,)
        Balanced distribution over the rows, positive on affinely independent ones only.
    b : ndarray
        Multipliers of the conditions B of balance: the margin of ``A^T q`` plus ``B @ b`` is the
        same on all rows with q > 0.
    w : ndarray or None
        The separator as an image, to more digits than ``A^T q``. None where only the Gram
        matrix of the rows was used.
    """

    q: Array
    b: Array
    w: Array | None


def nearest_point(
    problem: Any,
    row_ids: Array,
    start: Array | None = None,
    free: Array | None = None,
) -> NearestPoint:
    """Find the balanced distribution on these rows with the smallest ``||A^T q||``.

    A feature with values that are huge beside that norm hides the digits of the others. Its
    coefficient in the predictor is negligible, so that, like the intercept's, it may be left
    out of the norm: the weights keep ``free`` features in balance, as they do the classes.

    Parameters
    ----------
    problem : Any
    row_ids : ndarray of int
        Flat indices of the rows, with at least one of every group of the problem.
    start : ndarray of int or None
        Positions in ``row_ids`` of the first rows in use; None: those that SciPy's NNLS finds.
    free : ndarray of int or None
        Features to be kept in balance, as positions in an image; None: none.
    """
    free = np.empty(0, int) if free is None else free
    features = written_out(problem) if _is_worth_writing_out(problem, row_ids, free) else None
    if features is None:
        Z = _rows_of_gram(problem.gram(row_ids, row_ids))
    else:
        Z = features.points(row_ids)
    free = free[:0] if features is None else free
    H, Z = Z[:, free], np.delete(Z, free, axis=1)
    classes = problem.rows.balance_conditions(row_ids)
    unit = np.abs(H).max(axis=0, initial=0.0)
    unit[unit == 0.0] = 1.0  # they are in balance whatever the weights
    B = np.column_stack([classes, H / unit])
    scale = float(np.sqrt(np.einsum("ij,ij->i", Z, Z).max())) if Z.size else 0.0
    scale = scale or 1.0
    E = np.ascontiguousarray(np.column_stack([Z / scale, B, np.ones(len(Z))]))
    if start is None or not len(start):
        start = _first_corral(E, B.shape[1] + 1)
    start = _balanced_first(start, problem.rows.group(row_ids), problem.rows.n_classes)
    corral, weights, v = wolfe(E, B.shape[1] + 1, start, 20 * sum(E.shape), NEAREST_POINT_TOL)
    q = np.zeros(len(row_ids))
    q[corral] = _in_balance(weights, B[corral]) if len(free) else weights
    d = Z.shape[1]
    b, of_free = np.split(v[d:-1] * scale**2, [classes.shape[1]])
    w = np.zeros(d + len(free))
    w[free] = of_free / unit
    w[np.delete(np.arange(len(w)), free)] = v[:d] * scale
    return NearestPoint(q / q.sum(), b, None if features is None else w)


def _is_worth_writing_out(problem: Any, row_ids: Array, free: Array) -> bool:
    """Whether written-out rows have more digits, or are quicker, than their Gram matrix."""
    if len(free) and problem.width * len(row_ids) <= MAX_WRITTEN_OUT:
        return True
    return problem.slack is None and problem.width <= max(2 * len(row_ids), WIDE_ROW)


def _in_balance(q: Array, B: Array) -> Array:
    """Correct q so that it sums to 1 and ``B^T q = 0`` to the full precision of float64."""
    conditions = np.column_stack([B, np.ones(len(B))])
    wanted = np.append(np.zeros(B.shape[1]), 1.0)
    for _ in range(2):
        wrong = wanted - (conditions.T.astype(Extended) @ q.astype(Extended)).astype(np.float64)
        # changes in proportion to the weights keep their signs
        q = q + q * np.linalg.lstsq(conditions.T * q, wrong, rcond=None)[0]
    return np.maximum(q, 0.0)


def _first_corral(E: Array, n_conditions: int) -> Array:
    """Rows with positive weight in ``min |Z'u|^2 + (1'u - 1)^2, u >= 0``, in order of weight.

    A stiff penalty keeps the weights nearly balanced, so that these rows are nearly those of
    the nearest point.
    """
    A, wanted = E.T.copy(), np.zeros(E.shape[1])
    A[E.shape[1] - n_conditions : -1] *= STIFFNESS
    wanted[-1] = 1.0
    try:
        u = nnls(A, wanted)[0]
    except RuntimeError:  # it cycles, or takes too long
        return np.empty(0, int)
    return np.argsort(-u, kind="stable")[: np.count_nonzero(u > 0)]


def _balanced_first(start: Array, group: Array, n_classes: int) -> Array:
    """Order the first rows so that some that can balance each other come first.

    There may be no room for all rows. Among the first ``n_classes`` groups are (0, 1) and
    (1, 0), so that one row of each of these groups is enough for balanced weights.
    """
    order = np.concatenate([start, np.arange(len(group))])
    heads = order[np.unique(group[order], return_index=True)[1][:n_classes]]
    return np.concatenate([heads, start[~np.isin(start, heads)]])


def _rows_of_gram(G: Array) -> Array:
    """Rows Z with ``ZZ' = G``, as short as the rank of G allows (pivoted Cholesky)."""
    factor, order, rank, _ = dpstrf(G, lower=1, tol=GRAM_RANK * max(G.diagonal().max(), 1e-300))
    Z = np.zeros((len(G), rank))
    Z[order - 1] = np.tril(factor)[:, :rank]
    return Z
