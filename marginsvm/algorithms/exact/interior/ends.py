"""The last digits of a share: what is left to solve once it is known which weights are at ends."""

from __future__ import annotations

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.sides import Cholesky
from marginsvm.algorithms.exact.method import MAX_ROWS
from marginsvm.certify.caps import ShareCaps
from marginsvm.kernel_matrix import KernelMatrixAdapter

# By how much weights may leave their ends, beside the largest cap, due to rounding.
_BEYOND = 1e-9


def solved_for_free(problem: KernelMatrixAdapter, u: Array) -> Array | None:
    """The weights under which all free rows, between 0 and their caps, have the same margin.

    If the others are at the right ends, these are the weights of the solution.

    Parameters
    ----------
    problem : KernelMatrixAdapter
        With caps of a share, and one row for each.
    u : ndarray of shape (n,)
        Weights that sum to 1, those at their ends exactly there.

    Returns
    -------
    ndarray or None
        None: there are too many free rows, or their weights leave their ends.
    """
    assert isinstance(problem.caps, ShareCaps)
    caps, rows = problem.caps.largest, problem.rows
    free = np.flatnonzero((u > 0.0) & (u < (1.0 - FEW) * caps))
    if len(free) == 0:
        return problem.caps.filled(u)
    if len(free) > MAX_ROWS:
        return None
    full = u.copy()
    full[free] = 0.0
    of_full = _margins(problem, free, full)
    conditions = np.column_stack([rows.balance_conditions(free), np.ones(len(free))])
    missing = -rows.balance_conditions(np.arange(len(u))).T @ full
    try:
        gram = Cholesky(problem.gram(free, free))
        each = gram.solve(conditions)
        sums = np.append(missing, 1.0 - full.sum()) + conditions.T @ gram.solve(of_full)
        levels = np.linalg.solve(conditions.T @ each, sums)
    except np.linalg.LinAlgError:
        return None
    full[free] = each @ levels - gram.solve(of_full)
    beyond = np.maximum(-full, full - caps).max()
    return problem.caps.filled(np.maximum(full, 0.0)) if beyond <= _BEYOND * caps.max() else None


def _margins(problem: KernelMatrixAdapter, row_ids: Array, u: Array) -> Array:
    """Margins of some rows under weights, some of which are 0."""
    used, margins = np.flatnonzero(u), np.zeros(len(row_ids))
    for i in range(0, len(used), MAX_ROWS):
        part = used[i : i + MAX_ROWS]
        margins += problem.gram(row_ids, part) @ u[part]
    return margins
