"""The direction of the largest margin among those that separate the same rows."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.corral import wolfe
from marginsvm.certify.tolerances import NEAREST_POINT_TOL

_WOLFE_DIMENSIONS = (
    256  # dimensions in which Wolfe's method is quick: its steps are products with all rows
)
_FIRST_ROWS_A_DIMENSION = 4  # rows to begin with, for each dimension
_SHORT_OF_MARGIN = 1e-6  # part of a margin by which rows left out may fall short of it
_CENTRING_ROUNDS = 50


def of_largest_margin(T: Array, z: Array) -> Array:
    """The point of the rows' convex hull nearest to 0, by a working set of rows.

    Parameters
    ----------
    T : ndarray of shape (n_rows, k)
        Rows that z makes positive.
    z : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (k,)
        A direction of unit length whose smallest margin is the largest there is, or at least no
        smaller than that of z.
    """
    k = T.shape[1]
    best = z / np.sqrt(z @ z)
    margins = T @ best
    if k > _WOLFE_DIMENSIONS:
        return best
    length = float(np.sqrt(np.einsum("ij,ij->i", T, T).max()))
    rows = np.argsort(margins, kind="stable")[: _FIRST_ROWS_A_DIMENSION * (k + 1)]
    for _ in range(_CENTRING_ROUNDS):
        E = np.column_stack([T[rows] / length, np.ones(len(rows))])
        start = np.array([int(margins[rows].argmin())])
        w = wolfe(E, 1, start, 20 * sum(E.shape), NEAREST_POINT_TOL)[2][:k]
        norm = float(np.sqrt(w @ w))
        if not norm > 0.0:
            break
        w = w / norm
        m = T @ w
        if m.min() > margins.min():
            best, margins = w, m
        new = np.setdiff1d(np.flatnonzero(m < (1.0 - _SHORT_OF_MARGIN) * m[rows].min()), rows)
        if not len(new):
            break
        rows = np.append(
            rows, new[np.argsort(m[new], kind="stable")[: _FIRST_ROWS_A_DIMENSION * (k + 1)]]
        )
    return best
