"""The width of a tube: the price of a cap on the sum of all weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.row_weights import RowWeights
from marginsvm.algorithms.exact.interior.sides import Side


def system_of(side: Side, weights: RowWeights) -> Any:
    """The system of a side with given W, which a cap on the sum of weights changes by rank one."""
    if not weights.statement.mass:
        return side.factored(weights)
    return WidenedSystem(side, weights)


@dataclass(frozen=True)
class WidenedSystem:
    """The system of a side, and what a price of the sum of weights changes in its solution.

    Attributes
    ----------
    side : Side
    weights : RowWeights
        With the sum of all as their last cap.
    """

    side: Side
    weights: RowWeights

    @cached_property
    def _narrow(self) -> tuple[RowWeights, Any]:
        """The weights, and their system, at a given width."""
        weights = self.weights
        narrow = replace(weights.statement, mass=0.0)
        weights = RowWeights(narrow, weights.h, weights.pull[:-1])
        return weights, self.side.factored(weights)

    @cached_property
    def _wider(self) -> tuple[Array, Array, float]:
        """What a unit of width moves: unknowns, margins, and the sum of the weights."""
        wide, (weights, system) = self.weights.statement.widened, self._narrow
        dx, move = system.direction(wide, np.zeros(self.side.begun(wide).size))
        return dx, move, float(weights.own * (wide - move) @ wide)

    def direction(self, g: Array, fall: Array) -> tuple[Array, Array]:
        weights, system = self._narrow
        dx, move = system.direction(g, fall)
        of_width, wider, sum_of_width = self._wider
        change = float(weights.own * (g - move) @ self.weights.statement.widened)
        t = change / (1.0 / self.weights.pull[-1] + sum_of_width)
        return dx - t * of_width, move - t * wider
