"""A stack of problems, solved and certified."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.many.bounds import Fits, Loss, proved
from marginsvm.many.pivoting import solved
from marginsvm.many.stack import Stack


def fitted_together(
    stack: Stack, y: Array, loss: Loss, *, balanced: bool, tol: float
) -> tuple[Fits, Array]:
    """Solve all problems of a stack.

    Parameters
    ----------
    stack : Stack
    y : ndarray of shape (B, n)
        1 and -1.
    loss : Loss
    balanced : bool
        Whether there is an intercept.
    tol : float
        Relative gap (dimensionless).

    Returns
    -------
    fits : Fits
    certified : ndarray of bool, shape (B,)
        Whether bounds were found, and the gap between them is ``tol`` at most.
    """
    statement = loss.statement(stack.K, y, balanced=balanced)
    n, d = stack.K.shape[1], stack.terms
    singular = (loss.hard or loss.hinge) and (d == 0 or d < n)
    solution = solved(statement, singular=singular)
    fits = proved(stack, statement, loss, solution.v, solution.b)
    return fits, (fits.margin > 0.0) & (fits.bound < np.inf) & (fits.gap <= tol)
