"""Weights near some others that make up a given predictor."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.row_weights import RowWeights
from marginsvm.algorithms.exact.interior.sides import Side
from marginsvm.algorithms.exact.interior.statement import Statement

# Weight (per radius squared) beside which a norm is nothing, and one that is none.
_STIFF, _NONE = 1e20, 1e-60
# Part of a cap by which weights may exceed it: all are divided by it where they prove a bound.
_OVER = 1e-9


def nearest(side: Side, statement: Statement, u: Array, x: Array) -> Array | None:
    """The weights nearest to these whose vector is that of x; None: there are none near.

    Distances are measured by the weights themselves, and by what is left to their caps, so that
    small ones change little.
    """
    some = u > 0.0
    weight, room = (
        np.maximum(_STIFF * (v / u.max()) ** 2, _NONE)
        for v in (u, np.maximum(statement.caps - statement.sums(u), 0.0))
    )
    weights = RowWeights(statement, 1.0 / weight, 1.0 / room)
    try:
        _, move = side.factored(weights).direction(np.zeros(len(u)), side.fall(x, u))
    except np.linalg.LinAlgError:
        return None
    near = np.where(some, u - weights.times(move)[0], 0.0)
    over = statement.sums(near) > (1.0 + _OVER) * statement.caps
    return near if near[some].min() > 0.0 and not over.any() else None
