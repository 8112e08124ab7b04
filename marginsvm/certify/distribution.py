"""The distribution over the rows that is published for a vector."""

from __future__ import annotations

from math import fsum

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certify.balancing import balanced_exactly, imbalance
from marginsvm.certify.certifiable import Certifiable
from marginsvm.rows import Vector


class KnownDistribution:
    """A distribution with its weights in memory: those of a vector, normalised and balanced.

    See :class:`marginsvm.certify.certifiable.Distribution`. Everything is computed when it is
    first used.

    Parameters
    ----------
    problem : Certifiable
    vector : Vector
    """

    def __init__(self, problem: Certifiable, vector: Vector) -> None:
        self._problem, self._vector = problem, vector

    def weights(self) -> Array:
        return self._weights

    @cached_property
    def _weights(self) -> Array:
        q = np.maximum(self._problem.weights(self._vector), 0.0)
        return balanced_exactly(self._problem.rows, q / q.sum())

    @cached_property
    def _source(self) -> Vector:
        """The vector without its negative weights, which are due to rounding."""
        weights = self._problem.weights(self._vector)
        if weights.min() >= 0.0:
            return self._vector
        return self._problem.combine(np.maximum(weights, 0.0), precise=True)

    @property
    def image(self) -> Array:
        return self._source.image / self._source.mass

    @cached_property
    def moved(self) -> float:
        before = self._problem.weights(self._source) / self._source.mass
        return float(np.abs(self._weights - before).sum())

    def imbalance(self) -> float:
        return imbalance(self._problem.rows, self._weights)

    @property
    def mass(self) -> float:
        q = self._weights
        return min(1.0, fsum(q[q > 0])) if self.moved else 1.0
