"""Margins of vectors of a problem, from what every problem has."""

import numpy as np

from marginsvm.problem.intercepts import differences


def margin_of(problem, w):
    """The margin of a predictor under its best intercept (in radii)."""
    lowest = problem.rows.group_min(problem.margins(w, precise=True))
    least = (lowest + differences(problem.rows.best_offsets(lowest))).min()
    return least / problem.norm(w)


def imbalance(rows, q):
    """How far weights are from balanced ones, as a sum over classes."""
    return float(np.abs(rows.adjoint(q).sum(axis=0)).sum()) if rows.balanced else 0.0
