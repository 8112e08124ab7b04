"""The last digits of a share: what is left to solve once it is known which weights are at ends."""

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
from marginsvm.rows import output_rows

# By how much weights may leave their ends, beside the largest cap, due to rounding.
_BEYOND = 1e-9
# The same from which on weights of tubes have no unique solution.
_DEPENDENT = 1e3


class SolvedTube(NamedTuple):
    """Weights within their ends, half the width, and how far beyond their ends they had been.

    That is beside the largest cap.
    """

    v: Array
    width: float
    beyond: float


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
    conditions = np.column_stack([rows.balance_conditions(np.arange(len(u))), np.ones(len(u))])
    solved = _solved(problem, u, free, conditions, 1.0, np.zeros(len(u)))
    if solved is None:
        return None
    full = solved[0]
    beyond = np.maximum(-full, full - caps).max()
    return problem.caps.filled(np.maximum(full, 0.0)) if beyond <= _BEYOND * caps.max() else None


def solved_tube(problem: KernelMatrixAdapter, v: Array) -> SolvedTube | None:
    """The weights and the width under which the scores of all free rows are at an end of the tube.

    Parameters
    ----------
    problem : KernelMatrixAdapter
        With a share of the rows outside of tubes.
    v : ndarray of shape (n,)
        Weights of either sign, those at their ends exactly there.

    Returns
    -------
    SolvedTube or None
        None: there are no free rows, too many of them, or they depend on each other.
    """
    caps, rows = hinge_caps(problem.caps), output_rows(problem.rows)
    sides, largest = np.sign(v), caps.largest
    free = np.flatnonzero((v != 0.0) & (np.abs(v) < (1.0 - FEW) * largest))
    if not 0 < len(free) <= MAX_ROWS:
        return None
    conditions = np.column_stack([rows.balance_conditions(np.arange(len(v))), sides])
    solved = _solved(problem, v, free, conditions, float(caps.most), rows.intervals.low)
    if solved is None:
        return None
    sizes, levels = sides * solved[0], solved[1]
    inside = np.clip(sizes, 0.0, largest)
    beyond = float(np.abs(inside - sizes).max() / largest.max())
    if not beyond < _DEPENDENT:
        return None
    return SolvedTube(sides * inside, -float(levels[-1]), beyond)


def _solved(
    problem: KernelMatrixAdapter,
    u: Array,
    free: Array,
    conditions: Array,
    total: float,
    ends: Array,
) -> tuple[Array, Array] | None:
    """Weights of which the free ones have margins that are levels above their ends.

    They are balanced, and the last condition sums to ``total``.
    """
    full, few = u.copy(), conditions[free]
    full[free] = 0.0
    missing = ends[free] - _margins(problem, free, full)
    sums = -conditions.T @ full
    sums[-1] += total
    try:
        gram = Cholesky(problem.gram(free, free))
        each, alone = gram.solve(few), gram.solve(missing)
        levels = np.linalg.solve(few.T @ each, sums - few.T @ alone)
    except np.linalg.LinAlgError:
        return None
    full[free] = each @ levels + alone
    return full, levels


def _margins(problem: KernelMatrixAdapter, row_ids: Array, u: Array) -> Array:
    """Margins of some rows under weights, some of which are 0."""
    used, margins = np.flatnonzero(u), np.zeros(len(row_ids))
    for i in range(0, len(used), MAX_ROWS):
        part = used[i : i + MAX_ROWS]
        margins += problem.gram(row_ids, part) @ u[part]
    return margins
