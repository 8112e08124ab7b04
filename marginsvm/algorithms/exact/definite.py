"""Systems that are definite but for rounding: a singular one is solved with a raised diagonal."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf

from marginsvm._typing import Array

# First addition to a diagonal, relative to its mean, and the factor to the next one: some roundings
# of a number, and up to 100 times what was needed, which changes no direction that counts.
_LIFT, _LIFT_FACTOR = 1e-14, 100.0


def cholesky(M: Array) -> Array:
    """Upper Cholesky factor of a symmetric matrix that would be definite without rounding.

    If rounding has made it singular, its diagonal is raised by next to nothing, and by more until
    the matrix is definite. With the factor, Newton's directions still are directions of descent,
    and preconditioners still are definite. If the matrix holds numbers too large for float64, the
    factor is that of the identity: Newton's method becomes steepest descent.

    Parameters
    ----------
    M : ndarray of shape (m, m)
        It is overwritten where it lies in Fortran's order.

    Returns
    -------
    ndarray of shape (m, m)
        What is below its diagonal is of no account.
    """
    diagonal = M.diagonal().copy()
    lift = _LIFT * float(np.abs(diagonal).mean())
    factor, failed = dpotrf(M, lower=0, clean=0, overwrite_a=1)
    while failed and 0.0 < lift < np.inf:
        M = np.tril(factor, -1)  # which still holds the matrix
        M += M.T
        M.flat[:: len(M) + 1] = diagonal + lift
        factor, failed = dpotrf(M.T, lower=0, clean=0, overwrite_a=1)
        lift *= _LIFT_FACTOR
    if failed or not np.isfinite(factor.diagonal()).all():
        return np.eye(len(M), order="F")
    return np.asarray(factor)
