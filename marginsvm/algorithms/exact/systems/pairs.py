"""Newton's system of many classes on sparse rows, by its dual: an unknown for each active row.

Few classes are active in an example, so that there are far fewer active rows, pairs of an example
and a class, than entries in an image. With the active rows A and the negative gradient d,

    (I + A' S^-1 A)^-1 d = d - A' x,    (S + A A') x = A d,

up to the intercepts, which keep x balanced. Balanced weights have the same image about any
centre, so that the examples are taken as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import inner
from marginsvm._typing import Array
from marginsvm.algorithms.exact.intercepts import ClassPairs, InterceptSystem
from marginsvm.algorithms.exact.systems.features import FeatureSystem, Iterative, with_intercept
from marginsvm.algorithms.exact.systems.system import conjugate_gradients, precision
from marginsvm.kernel_matrix import KernelMatrixAdapter, LpNorm
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.rows import Vector

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

    def squared_lengths(self) -> Array:
        """Squared lengths of the rows."""
        indptr, indices, values = self._matrix
        X = sp.csr_array((values, indices, indptr), shape=self._shape)
        return 2.0 * self._unit**2 * LpNorm().squared_lengths_of_csr(X)[self._each]

    def squares(self) -> Array:
        """The diagonal of ``A' diag(weight) A``, of shape (k, d)."""
        indptr, indices, values = self._matrix
        squared = sp.csr_array((values * values, indices, indptr), shape=self._shape)
        both = np.concatenate([self.classes.own, self.classes.other])
        at = np.tile(self.weight * self._unit**2, 2), (both, np.tile(self._each, 2))
        total = sp.csr_array(at, shape=(self.classes.n_classes, self._shape[0]))
        return np.asfortranarray((total @ squared).toarray())


@dataclass(frozen=True)
class DualIterative(FeatureSystem):
    """By conjugate gradients in the dual; while many rows are active, in the primal.

    Attributes
    ----------
    first : float
        Length of the first right hand side, by which later precision is judged; 0: none yet.
    most : int
        Products for each system at most.
    """

    by_passes: ClassVar[bool] = True
    first: float = 0.0
    most: int = 300

    def solve(
        self, problem: KernelMatrixAdapter, weight: Array, descent: Array, linked: Array | None
    ) -> tuple[Array, FeatureSystem]:
        """Solve as precisely as pays, see ``systems.precision``."""
        length = float(np.sqrt(inner(descent, descent)))
        system = replace(self, first=self.first or length)
        if _are_many(weight):
            direction, _ = Iterative(first=system.first).solve(problem, weight, descent, linked)
            return direction, system
        pairs, balanced = ActivePairs(problem, weight), problem.rows.balanced
        s = 1.0 / pairs.weight
        inverse, classes = 1.0 / (pairs.squared_lengths() + s), pairs.classes
        intercepts = InterceptSystem.of(classes.curvature(inverse))

        def balance(r: Array) -> Array:
            """Precondition what is left of r without the part that intercepts make up for."""
            q = inverse * r
            if not balanced:
                return q
            return q - inverse * classes.moves(intercepts.solve(classes.imbalance(q)))

        x = conjugate_gradients(
            lambda p: pairs.moves(pairs.image(p)) + s * p,
            balance,
            pairs.moves(descent),
            precision(length, system.first),
            self.most,
        )
        z = descent - pairs.image(x)
        if not balanced:
            return z, system
        load = classes.imbalance(pairs.weight * pairs.moves(z))
        b = -InterceptSystem.of(classes.curvature(pairs.weight)).solve(load)
        return with_intercept(z, (b - _due_to_the_mean(problem, z))[:, None]), system

    def anew(self, factor: float = np.nan) -> DualIterative:
        """Forget how long right hand sides were."""
        return DualIterative()


@dataclass(frozen=True)
class PairIterative(Iterative):
    """By conjugate gradients in the primal, whose diagonal is that of the features.

    Where C is large, features that many examples share make the dual ill-conditioned; and a dual
    residual says little about the direction, which then is a small difference.
    """

    def solve(
        self, problem: KernelMatrixAdapter, weight: Array, descent: Array, linked: Array | None
    ) -> tuple[Array, FeatureSystem]:
        """As in the dual, products visit the active rows alone, unless these are many."""
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
    return problem.predictor(Vector(z, np.zeros(problem.rows.shape)), np.zeros(k))[1]
