"""Newton's system of many classes on sparse rows, by products with the active ones alone.

Few classes are active in an example. Balanced weights have the same image about any centre, so
that the examples are taken as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.algorithms.exact.intercepts import ClassPairs
from marginsvm.algorithms.exact.systems.features import FeatureSystem, Iterative, with_intercept
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.rows import Predictor

# Share of the rows: if more are active, products with all classes at once are quicker.
_MANY_ACTIVE = 0.3


class ActivePairs:
    """The rows with weight of a problem with a CSR matrix, as pairs of an example and a class.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    weight : ndarray of shape rows.shape

    Attributes
    ----------
    classes : ClassPairs
        The classes of each pair, in order.
    weight : ndarray
        The weight of each pair.
    """

    def __init__(self, problem: KernelMatrixAdapter, weight: Array) -> None:
        X, rows = csr_examples(problem), problem.rows
        examples = np.flatnonzero(weight.any(axis=1))
        pairs = sp.csr_array(weight[examples])
        self.n_features = X.shape[1]
        self._matrix, self._shape = (X.indptr, X.indices, X.data), X.shape
        self._pairs = examples, pairs.indptr, pairs.indices, rows.codes[examples]
        self.weight = pairs.data
        self._each = np.repeat(examples, np.diff(pairs.indptr))
        self.classes = ClassPairs(rows.n_classes, rows.codes[self._each], pairs.indices)
        self._unit = np.sqrt(0.5) / problem.radius
        self._work, self._share = problem.work, len(examples) / len(weight)

    def image(self, x: Array) -> Array:
        """``A' x``, of shape (k, d)."""
        from marginsvm.data.compiled_rows import image_of_pairs

        out = np.zeros((self._shape[1], self.classes.n_classes))
        self._work.add_pass(self._share)
        image_of_pairs(*self._matrix, *self._pairs, self._unit * x, out)
        return out.T

    def moves(self, image: Array) -> Array:
        """``A v`` of an image v."""
        from marginsvm.data.compiled_rows import moves_of_pairs

        out = np.empty(len(self.weight))
        self._work.add_pass(self._share)
        moves_of_pairs(*self._matrix, *self._pairs, np.ascontiguousarray(image.T), out)
        out *= self._unit
        return out

    def squares(self) -> Array:
        """The diagonal of ``A' diag(weight) A``, of shape (k, d)."""
        indptr, indices, values = self._matrix
        squared = sp.csr_array((values * values, indices, indptr), shape=self._shape)
        both = np.concatenate([self.classes.own, self.classes.other])
        at = np.tile(self.weight * self._unit**2, 2), (both, np.tile(self._each, 2))
        total = sp.csr_array(at, shape=(self.classes.n_classes, self._shape[0]))
        return np.asfortranarray((total @ squared).toarray())


@dataclass(frozen=True)
class PairIterative(Iterative):
    """By conjugate gradients; products visit the active rows alone, unless these are many."""

    def solve(
        self, problem: KernelMatrixAdapter, weight: Array, descent: Array, linked: Array | None
    ) -> tuple[Array, FeatureSystem]:
        """See ``FeatureSystem``; the intercepts are those of examples about their mean."""
        direction, system = super().solve(problem, weight, descent, linked)
        if problem.rows.balanced and not _are_many(weight):
            direction[:, -1] -= _due_to_the_mean(problem, direction[:, :-1])
        return direction, system

    def _product(self, problem: KernelMatrixAdapter, weight: Array, linked: Array | None) -> Any:
        if _are_many(weight):
            return super()._product(problem, weight, linked)
        return _PairCurvature(ActivePairs(problem, weight), problem.rows.balanced)


def _are_many(weight: Array) -> bool:
    return bool(np.count_nonzero(weight) > _MANY_ACTIVE * weight.size)


@dataclass(frozen=True)
class _PairCurvature:
    """``A' diag(weight) A`` over active rows, with intercepts; examples are taken as they are."""

    pairs: ActivePairs
    balanced: bool

    def __call__(self, Z: Array) -> Array:
        pairs, d = self.pairs, self.pairs.n_features
        moves = pairs.moves(Z[:, :d])
        if not self.balanced:
            return pairs.image(pairs.weight * moves)
        v = pairs.weight * (moves + pairs.classes.moves(Z[:, d]))
        return with_intercept(pairs.image(v), pairs.classes.imbalance(v)[:, None])

    def diagonal(self) -> Array:
        squares = self.pairs.squares()
        return with_intercept(squares, 0.0) if self.balanced else squares


def _due_to_the_mean(problem: KernelMatrixAdapter, z: Array) -> Array:
    """What the scores of an image lack, as they are about the mean of the examples."""
    k = problem.rows.n_classes
    return problem.predictor(Predictor(z, np.zeros(problem.rows.shape)), np.zeros(k))[1]
