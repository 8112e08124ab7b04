"""Newton's system of many classes on sparse rows, by products with the active ones alone.

Few classes are active in an example. Balanced weights have the same image about any centre, so
that the examples are taken as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.intercepts import ClassPairs
from marginsvm.algorithms.exact.systems.features import FeatureSystem, Iterative, with_intercept
from marginsvm.algorithms.exact.systems.system import Equation
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.rows import Predictor

# Share of the rows: if more are active, products with all classes at once are quicker.
_MANY_ACTIVE = 0.3


class ActivePairs:
    """The free rows of a problem with a CSR matrix, as pairs of an example and a class.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    weight : ndarray of shape rows.shape
    linked : ndarray of shape rows.shape or None
        Where rows share caps, see ``Slack.curvature``.

    Attributes
    ----------
    classes : ClassPairs
        The classes of each pair, in order.
    """

    def __init__(
        self, problem: KernelMatrixAdapter, weight: Array, linked: Array | None = None
    ) -> None:
        X, rows = csr_examples(problem), problem.rows
        active = _active(weight, linked)
        examples, other = np.nonzero(active)
        some, self._first, number = np.unique(examples, return_index=True, return_counts=True)
        self._at = np.repeat(np.arange(len(some)), number)
        self.n_features = X.shape[1]
        self._matrix, self._shape = (X.indptr, X.indices, X.data), X.shape
        pointer = np.append(self._first, len(examples))
        self._pairs = some, pointer, other, rows.codes[some]
        self._weight, self._each = weight[active], examples
        self._linked = None if linked is None else linked[active]
        self.classes = ClassPairs(rows.n_classes, rows.codes[examples], other)
        self._unit = np.sqrt(0.5) / problem.radius
        self._work, self._share = problem.work, len(some) / len(weight)

    def weighted(self, moves: Array) -> Array:
        """``D v``: how much weights move with margins."""
        out = self._weight * moves
        if self._linked is not None:
            out += self._linked * (self._sums * moves - self._of_each(self._linked * moves))
        return np.asarray(out)

    @cached_property
    def _sums(self) -> Array:
        """What the rows of an example are linked by, in sum, for each of its pairs."""
        assert self._linked is not None
        return self._of_each(self._linked)

    def _of_each(self, v: Array) -> Array:
        """The sum over the pairs of an example, for each of these."""
        return np.asarray(np.add.reduceat(v, self._first)[self._at])

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

        out = np.empty(len(self._weight))
        self._work.add_pass(self._share)
        moves_of_pairs(*self._matrix, *self._pairs, np.ascontiguousarray(image.T), out)
        out *= self._unit
        return out

    def squares(self) -> Array:
        """The diagonal of ``A' diag(weight) A``, of shape (k, d)."""
        indptr, indices, values = self._matrix
        squared = sp.csr_array((values * values, indices, indptr), shape=self._shape)
        other = self._weight
        if self._linked is not None:
            other = other + self._linked * (self._sums - self._linked)
        both = np.concatenate([self.classes.own, self.classes.other])
        weight = self._unit**2 * np.concatenate([self._weight, other])
        at = weight, (both, np.tile(self._each, 2))
        total = sp.csr_array(at, shape=(self.classes.n_classes, self._shape[0]))
        return np.asfortranarray((total @ squared).toarray())


@dataclass(frozen=True)
class PairIterative(Iterative):
    """By conjugate gradients; products visit the active rows alone, unless these are many."""

    def solve(
        self, problem: KernelMatrixAdapter, equation: Equation
    ) -> tuple[Array, FeatureSystem]:
        """See ``FeatureSystem``; the intercepts are those of examples about their mean."""
        direction, system = super().solve(problem, equation)
        if problem.rows.balanced and not _are_many(equation.weight, equation.linked):
            direction[:, -1] -= _due_to_the_mean(problem, direction[:, :-1])
        return direction, system

    def _product(self, problem: KernelMatrixAdapter, weight: Array, linked: Array | None) -> Any:
        if _are_many(weight, linked):
            return super()._product(problem, weight, linked)
        return _PairCurvature(ActivePairs(problem, weight, linked), problem.rows.balanced)


def _active(weight: Array, linked: Array | None) -> Array:
    """The rows whose weights move, by themselves or against others of their example."""
    return np.asarray((weight if linked is None else weight + linked) > 0.0)


def _are_many(weight: Array, linked: Array | None) -> bool:
    return bool(np.count_nonzero(_active(weight, linked)) > _MANY_ACTIVE * weight.size)


@dataclass(frozen=True)
class _PairCurvature:
    """``A' D A`` over active rows, with intercepts; examples are taken as they are."""

    pairs: ActivePairs
    balanced: bool

    def __call__(self, Z: Array) -> Array:
        pairs, d = self.pairs, self.pairs.n_features
        moves = pairs.moves(Z[:, :d])
        if not self.balanced:
            return pairs.image(pairs.weighted(moves))
        v = pairs.weighted(moves + pairs.classes.moves(Z[:, d]))
        return with_intercept(pairs.image(v), pairs.classes.imbalance(v)[:, None])

    def diagonal(self) -> Array:
        squares = self.pairs.squares()
        return with_intercept(squares, 0.0) if self.balanced else squares


def _due_to_the_mean(problem: KernelMatrixAdapter, z: Array) -> Array:
    """What the scores of an image lack, as they are about the mean of the examples."""
    k = problem.rows.n_classes
    return problem.predictor(Predictor(z, np.zeros(problem.rows.shape)), np.zeros(k))[1]
