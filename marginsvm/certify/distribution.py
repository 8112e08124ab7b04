"""The distribution over the rows that is published for a vector, made to balance exactly.

Weights q on the rows are balanced if, for every class, those of its own rows and those of the
rows held against it have the same sum. Only then do they bound the margin of predictors with an
unpenalised intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from marginsvm._cached import cached_property
from marginsvm._rounding import FEW, PAIRWISE
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.tolerances import (
    ABLE_WEIGHT,
    BALANCE_CORRECTIONS,
    ROUNDED_IMBALANCE,
)
from marginsvm.rows import OutputRows, Rows, Vector, support_of

# Weights up to which Python's sum, which is exact, is quicker than NumPy's of parts.
_FEW_WEIGHTS = 1000


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
        if not self.moved:
            return 1.0
        few = support_of(q)
        if len(few) > _FEW_WEIGHTS:
            return min(1.0, float(q.sum()) * (1.0 - PAIRWISE))
        return min(1.0, fsum(q[few].ravel().tolist()))


def sums_of_outputs(q: Array) -> Array:
    """Sums of the weights of each output, each rounded once."""
    return np.array([fsum(column.tolist()) for column in q.reshape(len(q), -1).T])


@dataclass(frozen=True)
class SignedWeights:
    """Weights of either sign whose absolute values sum to 1, those of a vector as they are."""

    image: Array
    q: Array
    moved = 0.0
    mass = 1.0

    def weights(self) -> Array:
        return self.q

    def imbalance(self) -> float:
        return 0.0


def distribution_of(problem: Certifiable, vector: Vector) -> KnownDistribution | SignedWeights:
    """The distribution that is published for a vector, with its weights in memory."""
    if isinstance(problem.rows, OutputRows):
        return SignedWeights(vector.image, vector.coef)
    return KnownDistribution(problem, vector)


def balanced_exactly(rows: Rows, q: Array) -> Array:
    """Change weights in their last digits until they balance exactly.

    Small weights are changed, as the spacing of floats is finer where they are smaller: those of a
    tree of pairs of classes, along which what a class has in excess is passed on.
    """
    if not rows.balanced:
        return q
    q = q.copy()
    flat = q.reshape(-1)
    for _ in range(BALANCE_CORRECTIONS):
        excess = _excess(rows, q)
        most = float(np.abs(excess).max())
        if not 0.0 < most <= ROUNDED_IMBALANCE:
            break
        for row_id, own, c, j in _tree(rows, np.flatnonzero(flat > ABLE_WEIGHT * most), flat):
            flat[row_id] -= excess[c] if own == c else -excess[c]
            excess[j] += excess[c]
    return q


def _tree(rows: Rows, row_ids: Array, weights: Array) -> list[tuple[int, int, int, int]]:
    """A tree of pairs of classes, from its leaves on, by the rows of least weight.

    Returns
    -------
    list of (row, own, c, j)
        A row between the classes c and j, and its own class. No later one is of class c.
    """
    k, group, values = rows.n_classes, rows.group(row_ids), weights[row_ids]
    if len(rows.shape) == 1:
        some = np.flatnonzero(values == values.min(initial=np.inf))[:1]
        return [(row_ids[i], group[i], 0, 1) for i in some]
    own, other = np.divmod(group, k)
    pair, least = np.minimum(own, other) * k + np.maximum(own, other), np.full(k * k, np.inf)
    np.minimum.at(least, pair, values)
    some = np.flatnonzero(values == least[pair])
    pair, first = np.unique(pair[some], return_index=True)
    some, far = some[first], np.arange(k)
    low, high = np.divmod(pair, k)
    # from one more node, far away, classes can be reached that no row connects with others
    at = np.append(low, far), np.append(high, np.full(k, k))
    at = at[0].astype(np.int32), at[1].astype(np.int32)  # SciPy's trees take no others before 1.17
    graph = sp.csr_array((np.append(values[some], np.full(k, 2.0)), at), (k + 1, k + 1))
    order, before = breadth_first_order(minimum_spanning_tree(graph), k, directed=False)
    tree = []
    for c in order[:0:-1]:
        j = before[c]
        if j < k:
            row = some[np.searchsorted(pair, min(c, j) * k + max(c, j))]
            tree.append((row_ids[row], own[row], c, j))
    return tree


def _excess(rows: Rows, q: Array) -> Array:
    """By how much the weights of each class's own rows exceed those of rows held against it.

    Of any number of weights, the sums are exact: they are split into parts, each of multiples of
    a power of two that is so large that sums of these are not rounded.
    """
    if q.ndim == 1 and len(few := support_of(q)) <= _FEW_WEIGHTS:
        excess = fsum(rows.adjoint(q)[few].tolist())
        return np.array([-excess, excess])
    sums, left = [np.zeros(rows.n_classes)], q
    while (most := float(left.max(initial=0.0))) > 0.0 or left.min(initial=0.0) < 0.0:
        unit = 2.0 * np.exp2(np.ceil(np.log2(max(most, -float(left.min()))) + np.log2(q.size)))
        part = (left + unit) - unit
        table, left = rows.group_sum(part), left - part
        sums.append(table.sum(axis=1) - table.sum(axis=0))
    return np.array([fsum(parts) for parts in np.column_stack(sums).tolist()])


def imbalance(rows: Rows, q: Array) -> float:
    """How far weights are at most from balanced ones, as a sum of absolute values.

    A weight of 1e-22 that the others do not balance counts: on a row of length 1e11 it moves the
    bound by 1e-11. Extended precision loses it beside a weight of 0.1.
    """
    if not rows.balanced:
        return 0.0
    total = fsum(np.abs(_excess(rows, q)).tolist())
    each = 2.0 if q.ndim == 1 else rows.unit  # of two classes, one lacks what the other has
    return total / each * (1.0 + FEW)
