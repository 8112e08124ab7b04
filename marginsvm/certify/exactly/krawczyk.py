"""Linear systems in floating point, with error bounds that are rigorous.

References
----------
S. Rump. Verification methods: rigorous results using floating-point arithmetic. Acta
Numerica, 2010 (Krawczyk's argument for linear systems).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

_UNIT_ROUNDOFF = 2.0**-53  # relative error of one operation in float64
# A column counts as dependent if others explain all but this part of the first.
_DEPENDENT_COLUMN = 1e-11
_LONG_RATIO = 4  # columns for each row, of which the longest are looked at first
_CLEARLY_NEW = 1e-2  # part of the first column that is new in columns that are clearly independent
_SAFETY = 1.01  # covers the few roundings in the evaluation of the error bounds themselves
_LARGEST_DEFECT = 0.5  # norm of I - R B up to which R is a useful inverse; below 1 is needed


def independent_first(A: NDArray) -> tuple[NDArray, int]:
    """Order the columns so that independent ones come first, by a pivoted QR factorisation.

    Returns
    -------
    order : ndarray of shape (n_columns,)
        The columns, those that add most to the span of the ones before first.
    rank : int
        Number of independent columns, as far as floats can tell. Nothing rigorous rests on it.
    """
    n, k = A.shape
    if k > _LONG_RATIO * n:
        longest = np.argsort(-np.einsum("ij,ij->j", A, A), kind="stable")
        first, pivots = _pivoted(A[:, longest[: _LONG_RATIO * n]])
        if pivots.min(initial=np.inf) > _CLEARLY_NEW * pivots.max(initial=0.0):
            return np.append(longest[first], longest[_LONG_RATIO * n :]), n
    order, pivots = _pivoted(np.asarray(np.linalg.qr(A, mode="r")) if n > _LONG_RATIO * k else A)
    return order, int(np.count_nonzero(pivots > _DEPENDENT_COLUMN * pivots[:1]))


def _pivoted(A: NDArray) -> tuple[NDArray, NDArray]:
    """The order of the columns, and what is new in each."""
    R, order = qr(A, mode="r", pivoting=True, check_finite=False)
    return order, np.abs(R.diagonal())


def is_regular(B: NDArray) -> bool:
    """Whether a square matrix is proved to be regular: ``|I - R B| < 1`` for some R."""
    try:
        R = np.linalg.inv(B)
    except np.linalg.LinAlgError:
        return False
    return bool(_defect(R, B) < _LARGEST_DEFECT)


def _defect(R: NDArray, B: NDArray, rounding: float = 0.0) -> float:
    """An upper bound on ``|I - R B|``, the largest sum of a row."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.abs(np.eye(len(B)) - R @ B).sum(axis=1)
        size = 1.0 + np.abs(R) @ np.abs(B).sum(axis=1)
        return float(np.max(sums + (_of_sums(len(B)) + rounding) * size, initial=0.0))


def _of_sums(n: int) -> float:
    """The error of a sum of n terms, in any order, relative to the sum of their sizes."""
    return _SAFETY * _UNIT_ROUNDOFF * (n + 4)


def positive_solution_is_near(A: NDArray, q: NDArray, rounding: float = 0.0) -> bool:
    """Whether positive weights that solve ``A q* = 0`` exactly are proved to exist near q.

    Only the first weights change, as many as there are equations. Let B be their columns, and R
    an approximate inverse of B. If ``eps = |I - R B| < 1`` (maximum row sums), B is invertible, and
    the exact change that makes ``A q`` vanish is at most ``|R A q| / (1 - eps)``. The new weights
    are positive if that is less than the smallest of the old ones.

    Parameters
    ----------
    A : ndarray of shape (n_equations, n_weights)
        At least as many columns as rows, the first ones independent.
    q : ndarray of shape (n_weights,)
        Positive weights.
    rounding : float
        Relative error that the numbers of A may have.

    Returns
    -------
    bool
        True is a proof. False says nothing.
    """
    rank = len(A)
    B = A[:, :rank]
    try:
        R = np.linalg.inv(B)
    except np.linalg.LinAlgError:
        return False
    wide = np.longdouble
    residual = np.asarray(A.astype(wide) @ q.astype(wide))
    of_sums = float(np.finfo(wide).eps) * (len(q) + 4)
    residual_error = (of_sums + rounding) * _SAFETY * (np.abs(A) @ q)
    residual_bound = np.abs(residual).astype(np.float64) * (1.0 + 2.0 * _UNIT_ROUNDOFF)
    residual_bound += residual_error
    change = np.abs(R @ residual.astype(np.float64))
    change += np.abs(R) @ (residual_error + _of_sums(rank) * residual_bound)
    largest_defect = _defect(R, B, rounding)
    if not largest_defect < _LARGEST_DEFECT:
        return False
    return bool(_SAFETY * change.max() / (1.0 - largest_defect) < q[:rank].min())
