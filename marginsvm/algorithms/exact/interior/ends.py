"""The last digits where weights have a sum: what is left to solve once those at ends are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.sides import Cholesky
from marginsvm.algorithms.exact.method import MAX_ROWS
from marginsvm.certify.caps import ShareCaps
from marginsvm.certify.prices import hinge_caps
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import OutputRows

# By how much weights may leave their ends, beside the largest cap, due to rounding.
_BEYOND = 1e-9
# The same from which on weights of tubes have no unique solution.
_DEPENDENT = 1e3


class Solved(NamedTuple):
    """Weights within their ends, half the width of a tube, and how far beyond ends they had been.

    That is beside the largest cap.
    """

    v: Array
    width: float
    beyond: float


def solved_share(problem: KernelMatrixAdapter, u: Array) -> Array | None:
    """The weights under which all free rows of a share, which sum to 1, have the same margin.

    If the others are at the right ends, these are the weights of the solution. None: there are too
    many free rows, or their weights leave their ends.
    """
    assert isinstance(problem.caps, ShareCaps)
    solved = solved_for_free(problem, u)
    return None if solved is None or solved.beyond > _BEYOND else problem.caps.filled(solved.v)


def solved_for_free(problem: KernelMatrixAdapter, v: Array) -> Solved | None:
    """The weights under which all free rows, between 0 and their caps, are equally far from ends.

    Parameters
    ----------
    problem : KernelMatrixAdapter
        With caps of a share of the rows, or a share of them outside of tubes.
    v : ndarray of shape (n,)
        Weights, of either sign for tubes, those at their ends exactly there.

    Returns
    -------
    Solved or None
        None: a tube has no free rows; there are too many, or they depend on each other.
    """
    rows, caps = problem.rows, problem.caps
    assert caps is not None
    total, ends, least = 1.0, np.zeros(len(v)), 0
    if isinstance(rows, OutputRows):
        total, ends, least = float(hinge_caps(caps).most), rows.intervals.low, 1
    sides, full, largest = np.sign(v), v.copy(), caps.largest
    free = np.flatnonzero((v != 0.0) & (np.abs(v) < (1.0 - FEW) * largest))
    if not least <= len(free) <= MAX_ROWS:
        return None
    if len(free) == 0:
        return Solved(v, 0.0, 0.0)
    full[free] = 0.0
    missing = ends[free] - _margins(problem, free, full)
    conditions = np.column_stack([rows.balance_conditions(np.arange(len(v))), sides])
    few = conditions[free]
    sums = -conditions.T @ full
    sums[-1] += total
    try:
        gram = Cholesky(problem.gram(free, free))
        each, alone = gram.solve(few), gram.solve(missing)
        levels = np.linalg.solve(few.T @ each, sums - few.T @ alone)
    except np.linalg.LinAlgError:
        return None
    full[free] = each @ levels + alone
    inside = np.clip(sides * full, 0.0, largest)
    beyond = float(np.abs(inside - sides * full).max() / largest.max())
    return Solved(sides * inside, -float(levels[-1]), beyond) if beyond < _DEPENDENT else None


def _margins(problem: KernelMatrixAdapter, row_ids: Array, u: Array) -> Array:
    """Margins of some rows under weights, some of which are 0."""
    used, margins = np.flatnonzero(u), np.zeros(len(row_ids))
    for i in range(0, len(used), MAX_ROWS):
        part = used[i : i + MAX_ROWS]
        margins += problem.gram(row_ids, part) @ u[part]
    return margins
