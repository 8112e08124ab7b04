"""The response without smoothing: all the weight on the row of smallest margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix.responses.response import Weights
from marginsvm.rows import Rows
from marginsvm.rows.cycles import min_cycle

_SMALLEST_SUM = 1e-300  # of prior weights (dimensionless); instead of 0 where a group has no rows


@dataclass(frozen=True)
class WorstRow:
    """Limit of the softmax as mu vanishes: all the weight on the row of smallest margin.

    With an intercept, the weight is shared by the groups along the cycle of groups whose
    smallest margins have the least mean, and in each of them is on the row of smallest margin.
    For two classes, that is half on such a row of either class.

    Parameters
    ----------
    first : bool
        Whether, of several rows of a group with its smallest margin, the first takes all the
        weight. Otherwise they share it in proportion to the prior, as in the limit.
    """

    first: bool = False

    def respond(self, rows: Rows, margins: Array, mu: float = 0.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        low = rows.group_min(margins)
        share = np.zeros_like(low)
        for edge in min_cycle(low)[1] if rows.balanced else [(0, 0)]:
            share[edge] += 1.0
        e = (margins == rows.expand(np.where(np.isfinite(low), low, 0.0))) * rows.prior
        if self.first:
            e.flat[_later_ties(rows, low, e)] = 0.0
        sums = np.maximum(rows.group_sum(e), _SMALLEST_SUM)
        q = e * rows.expand(share / share.sum() / sums)
        smallest = rows.min_margin(low)
        return Weights(q, 1.0, smallest, rows.best_offsets(low), -smallest, 1.0)

    def __call__(
        self, rows: Rows, margins: Array, mu: float = 0.0, *, first: bool = False
    ) -> Weights:
        """``WorstRow(first).respond``."""
        return WorstRow(first or self.first).respond(rows, margins, mu)


def _later_ties(rows: Rows, low: Array, e: Array) -> Array:
    """Flat indices of the rows that have weight in ``e``, less the first of each group."""
    tied, groups = np.flatnonzero(e), np.arange(low.size).reshape(low.shape)
    own = np.broadcast_to(rows.expand(groups), rows.shape).ravel()[tied]
    return np.delete(tied, np.unique(own, return_index=True)[1])


worst_row = WorstRow()
