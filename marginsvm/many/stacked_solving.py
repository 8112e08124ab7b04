"""A stack of problems, solved and certified."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.many.interior import inside
from marginsvm.many.stack import Stack
from marginsvm.many.stacked_bounds import Fits, Loss, proved
from marginsvm.many.stacked_pivoting import (
    StackedProblems,
    StackedSolution,
    begun,
    directly,
    proximal,
)


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
    singular = (loss.hard or loss.hinge) and d < n
    solution = _solved(statement, loss, singular=singular)
    fits = proved(stack, statement, loss, solution.v, solution.b)
    return fits, (fits.margin > 0.0) & (fits.bound < np.inf) & (fits.gap <= tol)


def _solved(statement: StackedProblems, loss: Loss, *, singular: bool) -> StackedSolution:
    """Solve all problems, each method those that the one before it leaves.

    What pulls towards the last weights helps where some rows decide, and interior points where
    many weights are at their caps. A hard margin that the former do not find is mostly none.
    """
    solution = begun(statement) if singular else directly(statement)
    methods = [inside] if loss.hinge else [proximal] if loss.hard else [proximal, inside]
    for method in methods:
        left = np.flatnonzero(~solution.done)
        if left.size:
            part = statement.some(left) if left.size < len(solution.b) else statement
            solution.put(left, method(part))
    return solution
