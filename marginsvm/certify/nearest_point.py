"""Nearest point of a polytope by Wolfe's active set: slow and sure.

One row enters at a time and the rows in use (the corral) are affinely independent and
held as a QR factorization, so nothing is squared, nothing cycles, and margins down to
1e-9 of the rows' norm are resolved. Duplicates and dependent rows do no harm.

References
----------
P. Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.optimize import nnls

from marginsvm._typing import Array
from marginsvm.certify.corral import nearest_point as walk
from marginsvm.certify.rounding import Extended
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows.vector import Vector

_MAX_WIDTH = 1024  # rows longer than this, and than twice their number, are known by their Gram
_STIFF = 1e4  # weight of the balance where it is a penalty
_ROUNDING = 1e-14  # of proofs that nothing separates: the shorter is the better one
_MAX_ROWS = 4000  # whose Gram matrix a proof may form
_MAX_ENTRIES = 2**25  # of rows that are written out although they are long, for exact features


@dataclass(frozen=True)
class NearestPoint:
    """Weights on the rows, and what they prove.

    Attributes
    ----------
    q : ndarray of shape (n_rows,)
        Distribution; balanced, and positive on affinely independent rows only.
    b : ndarray
        Multipliers of the balance: margin plus ``balance @ b`` is common where q > 0.
    w : ndarray or None
        Separator as an image, known to more digits than ``A^T q`` has; None where the
        rows were known by their Gram matrix only.
    """

    q: Array
    b: Array
    w: Array | None


def nearest_point(
    data: KernelMatrixAdapter,
    rows: Array,
    start: Array | None = None,
    free: Array | None = None,
) -> NearestPoint:
    """Find the balanced distribution on these rows with the smallest ``||A^T q||``.

    The length of a feature that is huge next to that norm hides the other features' digits.
    Its coefficient in the predictor is next to nothing, so that it costs nothing, like the
    intercept's: ``free`` features are kept in balance as the classes are.

    Parameters
    ----------
    data : KernelMatrixAdapter
    rows : ndarray of int
        Flat indices of rows; they should hold at least one of every group in use.
    start : ndarray of int or None
        Positions in ``rows`` of the first corral; None: those that SciPy's NNLS finds.
    free : ndarray of int or None
        Positions of entries of images.
    """
    free = np.empty(0, int) if free is None else free
    written_out = data.slack is None and data.width <= max(2 * len(rows), _MAX_WIDTH)
    written_out |= bool(len(free)) and data.width * len(rows) <= _MAX_ENTRIES
    Z = data.points(rows) if written_out else _rows_of_gram(data.gram(rows, rows))
    free = free if written_out else free[:0]
    H, Z, balance = Z[:, free], np.delete(Z, free, axis=1), data.rows.balance(rows)
    unit = np.maximum(np.abs(H).max(axis=0, initial=0.0), 1e-300)
    B = np.column_stack([balance, H / unit])
    scale = float(np.sqrt(np.einsum("ij,ij->i", Z, Z).max())) if Z.size else 0.0
    scale = scale or 1.0
    E = np.ascontiguousarray(np.column_stack([Z / scale, B, np.ones(len(Z))]))
    if start is None or not len(start):
        start = _first_corral(E, B.shape[1] + 1)
    start = _balanced_first(start, data.rows.group(rows), data.rows.n_classes)
    corral, weights, v = walk(E, B.shape[1] + 1, start, 20 * sum(E.shape), 1e-9)
    q = np.zeros(len(rows))
    q[corral] = _in_balance(weights, B[corral]) if len(free) else weights
    d = Z.shape[1]
    b, of_free = np.split(v[d:-1] * scale**2, [balance.shape[1]])
    w = np.zeros(d + len(free))
    w[free] = of_free / unit
    w[np.delete(np.arange(len(w)), free)] = v[:d] * scale
    return NearestPoint(q / q.sum(), b, w if written_out else None)


def _in_balance(q: Array, B: Array) -> Array:
    """Weights with a sum of 1 and ``B^T q = 0``, next to q, to all digits that floats have."""
    conditions = np.column_stack([B, np.ones(len(B))])
    wanted = np.append(np.zeros(B.shape[1]), 1.0)
    for _ in range(2):
        wrong = wanted - (conditions.T.astype(Extended) @ q.astype(Extended)).astype(np.float64)
        # a change in proportion to the weights keeps their signs
        q = q + q * np.linalg.lstsq(conditions.T * q, wrong, rcond=None)[0]
    return np.maximum(q, 0.0)


def _first_corral(E: Array, n_conditions: int) -> Array:
    """Rows that carry weight by ``min |Z'u|^2 + (1'u - 1)^2, u >= 0``, the heaviest first.

    A stiff penalty holds the balance, so these are all but the answer.
    """
    A, wanted = E.T.copy(), np.zeros(E.shape[1])
    A[E.shape[1] - n_conditions : -1] *= _STIFF
    wanted[-1] = 1.0
    try:
        u = nnls(A, wanted)[0]
    except RuntimeError:  # it cycles, or takes too long
        return np.empty(0, int)
    return np.argsort(-u, kind="stable")[: np.count_nonzero(u > 0)]


def _balanced_first(start: Array, group: Array, n_classes: int) -> Array:
    """Begin with rows of groups that can be in balance: there may be no room for all.

    Among the first groups, as many as classes, are (0, 1) and (1, 0).
    """
    order = np.concatenate([start, np.arange(len(group))])
    heads = order[np.unique(group[order], return_index=True)[1][:n_classes]]
    return np.concatenate([heads, start[~np.isin(start, heads)]])


def shortest_proof(data: KernelMatrixAdapter, q: Array) -> Vector | None:
    """Sharpen weights that show that (next to) nothing separates.

    Parameters
    ----------
    data : KernelMatrixAdapter
    q : ndarray
        Weights on the rows with a small ``||A^T q||``.

    Returns
    -------
    Vector or None
        ``A^T q`` of a balanced distribution on affinely independent rows, rank + 2
        at most; where nothing separates, its norm is at rounding level. None where it would
        be no better, or where no row carries weight, or too many do.
    """
    support = np.flatnonzero(q.ravel() > 0)
    if len(support) == 0 or (len(support) > _MAX_ROWS and data.width > 64):
        return None
    found = nearest_point(data, support)
    short = np.zeros(q.size)
    short[support] = found.q
    vector = data.combine(short, precise=True)
    before = data.upper_bound(data.combine(q, precise=True))
    return vector if data.upper_bound(vector) <= max(before, _ROUNDING) else None


def _rows_of_gram(G: Array) -> Array:
    """Rows Z with ``ZZ' = G``, as short as the rank of G allows (pivoted Cholesky)."""
    factor, order, rank, _ = dpstrf(G, lower=1, tol=1e-15 * max(G.diagonal().max(), 1e-300))
    Z = np.zeros((len(G), rank))
    Z[order - 1] = np.tril(factor)[:, :rank]
    return Z
