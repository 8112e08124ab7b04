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
    R, order = qr(A, mode="r", pivoting=True, check_finite=False)
    pivots = np.abs(R.diagonal())
    return order, int(np.count_nonzero(pivots > _DEPENDENT_COLUMN * pivots[:1]))


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
    R_abs = np.abs(R)
    sum_error = _SAFETY * _UNIT_ROUNDOFF * (rank + 4)  # of a sum of rank terms, in any order
    defect = np.abs(np.eye(rank) - R @ B).sum(axis=1)
    defect += (sum_error + rounding) * (1.0 + R_abs @ np.abs(B).sum(axis=1))
    wide = np.longdouble
    residual = np.asarray(A.astype(wide) @ q.astype(wide))
    of_sums = float(np.finfo(wide).eps) * (len(q) + 4)
    residual_error = (of_sums + rounding) * _SAFETY * (np.abs(A) @ q)
    residual_bound = np.abs(residual).astype(np.float64) * (1.0 + 2.0 * _UNIT_ROUNDOFF)
    residual_bound += residual_error
    change = np.abs(R @ residual.astype(np.float64))
    change += R_abs @ (residual_error + sum_error * residual_bound)
    largest_defect = float(defect.max())
    if not largest_defect < _LARGEST_DEFECT:
        return False
    return bool(_SAFETY * change.max() / (1.0 - largest_defect) < q[:rank].min())
