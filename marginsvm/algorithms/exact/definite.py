"""Systems that are definite but for rounding: a singular one is solved with a raised diagonal."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf

from marginsvm._typing import Array

# First addition to a diagonal, relative to it, for each unknown: roundings of a number; and the
# factor to the next one, up to ten times what was needed, which changes no direction that counts.
_LIFT_BY_UNKNOWN, _LIFT_FACTOR = 1e-15, 10.0


def factored(M: Array, most: float = 1.0) -> Array:
    """Upper Cholesky factor of a symmetric matrix that would be definite without rounding.

    If rounding has made it singular, its diagonal is raised by next to nothing, and by more until
    the matrix is definite.

    Parameters
    ----------
    M : ndarray of shape (m, m)
        It is overwritten where it lies in Fortran's order.
    most : float
        By how much its diagonal may be raised, relative to it; 0: by the least amount only.

    Returns
    -------
    factor : ndarray of shape (m, m)
        What is below its diagonal is of no account.

    Raises
    ------
    LinAlgError
        If the matrix is not definite, or holds numbers too large for float64.
    """
    diagonal = M.diagonal().copy()
    lift, least = 0.0, _LIFT_BY_UNKNOWN * len(M)
    factor, failed = dpotrf(M, lower=0, clean=0, overwrite_a=1)
    while failed:
        lift = max(_LIFT_FACTOR * lift, least)
        if lift > max(most, least) or not np.isfinite(diagonal).all():
            break
        M = np.tril(factor, -1)  # which still holds the matrix
        M += M.T
        M.flat[:: len(M) + 1] = (1.0 + lift) * diagonal
        factor, failed = dpotrf(M.T, lower=0, clean=0, overwrite_a=1)
    if failed or not np.isfinite(factor.diagonal()).all():
        raise np.linalg.LinAlgError("not positive definite")
    return np.asarray(factor)


def cholesky(M: Array) -> Array:
    """The factor; that of the identity where there is none: Newton's becomes steepest descent.

    With it, Newton's directions still are directions of descent, and preconditioners definite.
    """
    try:
        return factored(M)
    except np.linalg.LinAlgError:
        return np.eye(len(M), order="F")
