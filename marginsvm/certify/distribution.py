"""The distribution over the rows that is published for a vector, made to balance exactly.

Weights q on the rows are balanced if, for every class, those of its own rows and those of the
rows held against it have the same sum. Only then do they bound the margin of predictors with an
unpenalised intercept.
"""

from __future__ import annotations

from math import fsum

import numpy as np
from scipy.linalg import qr

from marginsvm._cached import cached_property
from marginsvm._rounding import FEW, Extended, extended
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.tolerances import (
    ABLE_WEIGHT,
    BALANCE_CORRECTIONS,
    MAX_BALANCED_EXACTLY,
    ROUNDED_IMBALANCE,
)
from marginsvm.rows import Rows, Vector, support_of


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
        return min(1.0, fsum(q[q > 0].tolist())) if self.moved else 1.0


def balanced_exactly(rows: Rows, q: Array) -> Array:
    """Change weights in their last digits until they balance exactly, if few rows carry weight.

    Small weights are changed, as the spacing of floats is finer where they are smaller.
    """
    row_ids = np.flatnonzero(q)
    if not rows.balanced or not 0 < len(row_ids) <= MAX_BALANCED_EXACTLY:
        return q
    few, B = q.ravel()[row_ids], np.sign(rows.balance_conditions(row_ids))
    for _ in range(BALANCE_CORRECTIONS):
        excess = np.array([fsum(column) for column in (B * few[:, None]).T.tolist()])
        able = np.flatnonzero(few > ABLE_WEIGHT * np.abs(excess).max())
        if not 0 < np.abs(excess).max() <= ROUNDED_IMBALANCE or len(able) < B.shape[1]:
            break
        if len(excess) == 1:
            some = able[few[able].argmin()]
            few[some] -= B[some, 0] * excess[0]
            continue
        order = qr((B[able] / few[able, None]).T, mode="r", pivoting=True)[1]
        some = able[order[: len(excess)]]
        few[some] -= np.linalg.lstsq(B[some].T, excess, rcond=None)[0]
    q = q.copy()
    q.flat[row_ids] = few
    return q


def imbalance(rows: Rows, q: Array) -> float:
    """How far weights are at most from balanced ones, as a sum of absolute values.

    A weight of 1e-22 that the others do not balance counts: on a row of length 1e11 it moves the
    bound by 1e-11. Extended precision loses it beside a weight of 0.1. So sums of few weights are
    exact, and those of many are charged with what they may have lost.
    """
    if not rows.balanced:
        return 0.0
    row_ids, size = np.flatnonzero(q), MAX_BALANCED_EXACTLY
    if len(row_ids) <= size:
        signs, few = np.sign(rows.locate(row_ids)[1]), q.ravel()[row_ids]
        total = fsum(abs(fsum(column)) for column in (signs * few[:, None]).T.tolist())
        return total / rows.unit * (1.0 + FEW)
    support = support_of(q)
    parts = [support[i : i + size] for i in range(0, len(support), size)]
    sums, absolute = np.zeros(1, Extended), 0.0
    for part in parts:
        V = rows.adjoint(q[part].astype(Extended), part)
        sums, absolute = sums + V.sum(axis=0), absolute + float(np.abs(V).sum())
    # additions that a term passes through: over the other classes, within its part, over the parts
    lost = extended(rows.n_classes + size + len(parts)) * absolute
    return (float(np.abs(sums).sum()) + lost) * (1.0 + FEW)
