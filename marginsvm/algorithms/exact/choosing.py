"""Which rows to begin with, and which to add."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import MAX_ROWS
from marginsvm.certify.tolerances import LOST_TO_ROUNDING
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Vector

# Examples to begin with: in all and for each class at least, and at most.
_FIRST_EXAMPLES, _FIRST_OF_CLASS, _MOST_FIRST = 400, 80, 4500


def first_size(n_classes: int) -> int:
    """Examples to begin with."""
    return min(max(_FIRST_EXAMPLES, _FIRST_OF_CLASS * n_classes), _MOST_FIRST)


def first_examples(problem: KernelMatrixAdapter) -> Array:
    """Some of each class, evenly spread."""
    return spread_evenly(problem.rows.codes, first_size(problem.rows.n_classes))


def rows_of_all_pairs(problem: KernelMatrixAdapter) -> int:
    """Some rows for each pair of classes."""
    return max(100, 5 * problem.rows.n_classes * (problem.rows.n_classes - 1))


def least_rows(problem: KernelMatrixAdapter) -> int:
    """Rows to begin with, and to add at least."""
    return min(rows_of_all_pairs(problem), MAX_ROWS)


def difference_of_means(problem: KernelMatrixAdapter) -> Vector:
    """``A^T q`` of balanced weights, the same on a few rows of each group."""
    row_ids = problem.rows.flat_indices()
    group = problem.rows.group(row_ids)
    some = spread_evenly(group, least_rows(problem))
    q = np.zeros(problem.rows.shape)
    q.flat[row_ids[some]] = 1.0 / np.bincount(group[some])[group[some]]
    return problem.combine(q / q.sum())


def lowest_under_means(problem: KernelMatrixAdapter) -> Array:
    """Some rows of each group that the difference of the class means gives the smallest margins.

    Where it fails on all of them, its opposite separates them: half are then spread over all rows,
    which show an overlap in the first round.
    """
    row_ids, size = problem.rows.flat_indices(), least_rows(problem)
    if len(row_ids) <= size:
        return row_ids
    margins = problem.margins(difference_of_means(problem)).ravel()
    group = problem.rows.group(row_ids)
    if problem.rows.n_classes**2 > size:  # too many pairs of classes: the own class alone
        group = group // problem.rows.n_classes
    some = smallest_of_each(margins[row_ids], group, size)
    opposite = np.full(problem.rows.shape, np.inf)
    opposite.flat[row_ids[some]] = -margins[row_ids[some]]
    if problem.rows.min_margin(problem.rows.group_min(opposite)) > 0.0:
        half = smallest_of_each(margins[row_ids], group, size // 2)
        some = np.union1d(half, spread_evenly(group, size // 2))
    return row_ids[some]


def smallest_of_each(values: Array, group: Array, size: int) -> Array:
    """Positions of the smallest values of every group, ``size`` in all (two each, at least)."""
    if len(values) <= size:
        return np.arange(len(values))
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = max(size // len(members), 2)
    return np.sort(
        np.concatenate(
            [m[np.argpartition(values[m], min(each, len(m)) - 1)[:each]] for m in members]
        )
    )


def spread_evenly(group: Array, size: int) -> Array:
    """Positions of some members of every group, evenly spread, about ``size`` in all."""
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = max(size // len(members), 2)
    return np.sort(np.concatenate([m[:: -(-len(m) // each)] for m in members]))


def violators(row_ids: Array, margins: Array, common: float, tol: float) -> Array:
    """Rows outside the working set whose margins are below the common one."""
    margins = margins.copy()
    margins[row_ids] = np.inf
    return np.flatnonzero(margins < common * (1.0 - max(0.5 * tol, LOST_TO_ROUNDING)))
