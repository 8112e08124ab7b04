"""The width of a tube as one more free unknown, which widens both sides of all rows alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.row_weights import RowWeights
from marginsvm.algorithms.exact.interior.sides import Side
from marginsvm.algorithms.exact.interior.statement import Statement
from marginsvm.certify.certifiable import Vector


@dataclass(frozen=True)
class Widened:
    """A side with the width of the tube as its last unknown: the weights then have a given sum.

    Attributes
    ----------
    side : Side
    statement : Statement
        It has the sum, and the rows that a tube widens.
    """

    side: Side
    statement: Statement

    def begun(self, u: Array) -> Array:
        return np.append(self.side.begun(u), 0.0)

    def margins(self, x: Array) -> Array:
        return self.side.margins(x[:-1]) + x[-1] * self.statement.widened

    def of_free(self, x: Array) -> Array:
        return self.side.of_free(x[:-1]) + x[-1] * self.statement.widened

    def fall(self, x: Array, u: Array) -> Array:
        short = self.statement.mass - u @ self.statement.widened
        return np.append(self.side.fall(x[:-1], u), short)

    def squared(self, x: Array) -> float:
        return self.side.squared(x[:-1])

    def factored(self, weights: RowWeights) -> WidenedSystem:
        return WidenedSystem(weights, self.side.factored(weights))

    def predictor(self, x: Array, proof: Vector) -> Vector:
        return self.side.predictor(x[:-1], proof)


@dataclass(frozen=True)
class WidenedSystem:
    """The system of a side, and what the width changes in its solution."""

    weights: RowWeights
    system: Any

    @cached_property
    def _wider(self) -> tuple[Array, Array, float]:
        """What a unit of width moves: unknowns, margins, and the sum of the weights."""
        wide = self.weights.statement.widened
        dx, move = self.system.direction(wide, np.zeros(self.system.side.begun(wide).size))
        return dx, wide - move, float(self.weights.times(wide - move)[0] @ wide)

    def direction(self, g: Array, fall: Array) -> tuple[Array, Array]:
        dx, move = self.system.direction(g, fall[:-1])
        of_width, wider, sum_of_width = self._wider
        change = self.weights.times(g - move)[0] @ self.weights.statement.widened
        t = (float(change) - fall[-1]) / sum_of_width
        return np.append(dx - t * of_width, t), move + t * wider
