"""Newton's systems among the features: by the matrix itself, or by passes over the examples.

The intercept is an unknown as well, the last entry of images; it is not penalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.lapack import dpotrs, dtrtri

from marginsvm._rounding import inner
from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.algorithms.exact.intercepts import InterceptSystem, intercept_curvature
from marginsvm.algorithms.exact.systems.system import (
    MOST_PRODUCTS,
    RESIDUAL,
    Equation,
    System,
    conjugate_gradients,
    is_outdated,
)
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import Curvature, curvature
from marginsvm.rows import Predictor, Rows

# Unknowns from which products are quicker than the first factorization.
_LONG_SYSTEM = 200
# Change of a weight, relative to it, that is rounding.
_NOT_MOVED = 1e-12
# Penalty of the intercepts, relative to the largest second moment: rounding, but it makes the
# matrix definite where a class has no active row.
_FREE = 1e-13

Operator = Callable[[Array], Array]


@dataclass(frozen=True)
class Direct(System):
    """By a Cholesky factor of the whole matrix, which follows the active rows as they change.

    Attributes
    ----------
    begun : bool
        Whether a system was solved. At w = 0 all rows are active: few products will do.
    weight : ndarray of shape rows.shape or None
        The weights of ``matrix``.
    matrix : ndarray of shape (m, m) or None
        Second moments, over all entries of an image and its intercept; None: not kept.
    """

    begun: bool = False
    weight: Array | None = None
    matrix: Array | None = None

    def direction(
        self, problem: KernelMatrixAdapter, equation: Equation
    ) -> tuple[Predictor, Array, Direct]:
        """Solve with the matrix, of which rows that are as they were keep their part."""
        weight, descent = equation.weight, equation.descent.image
        if not self.begun and descent.size > _LONG_SYSTEM:
            return *Iterative().direction(problem, equation)[:2], Direct(begun=True)
        of_examples, level = _of_level(problem, equation.linked)
        change, H = weight, np.zeros((1, 1))
        if self.weight is not None and self.matrix is not None and of_examples is None:
            times = float(weight.max() / self.weight.max())  # that of another C, or other costs
            moved = weight - times * self.weight
            moved[np.abs(moved) <= _NOT_MOVED * weight] = 0.0
            if np.count_nonzero(moved) < np.count_nonzero(weight):
                change, H = moved, times * self.matrix
        H = H + curvature(problem, change, of_examples).dense()
        less = 0.0 if level is None else np.multiply.outer(level, level)
        M = penalised(H - less, descent.shape, problem.rows)
        r = with_intercept(descent, 0.0) if problem.rows.balanced else descent
        x = dpotrs(cholesky(M), r.ravel(order="C"), lower=0)[0]
        kept = (weight, H) if of_examples is None else ()
        return *split(problem, x.reshape(*descent.shape[:-1], -1)), Direct(True, *kept)


def split(problem: KernelMatrixAdapter, z: Array) -> tuple[Predictor, Array]:
    """The predictor of an image, whose coefficients are not known, and its intercepts."""
    if not problem.rows.balanced:
        return Predictor(z, np.zeros(1)), np.zeros(z.shape[:-1])
    return Predictor(z[..., :-1], np.zeros(1)), np.asarray(z[..., -1])


def penalised(H: Array, shape: tuple[int, ...], rows: Rows) -> Array:
    """The matrix of the system: 1 is added for w, and next to nothing for intercepts.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Second moments, over all entries of an image and its intercept.
    shape : tuple of int
        Shape of an image.
    rows : Rows
    """
    ridge = np.ones(shape)
    if rows.balanced:
        ridge = with_intercept(ridge, _FREE * H.max())
    M = H + np.diag(ridge.ravel(order="C"))
    fix_shift(M, shape, rows)
    return M.T


def fix_shift(H: Array, shape: tuple[int, ...], rows: Rows) -> None:
    """Make second moments definite for a shift of all intercepts, which changes no margin."""
    if rows.balanced and len(shape) == 2:
        ends = np.arange(shape[1], len(H), shape[1] + 1)
        H[np.ix_(ends, ends)] += H[ends, ends].mean()


@dataclass(frozen=True)
class Iterative(System):
    """By conjugate gradients: each product is a pass over the active examples.

    Attributes
    ----------
    sample : int
        Examples from which each class's part of the matrix is computed, to be factored; 0: the
        diagonal preconditions.
    factors : ClassFactors or None
    begun : bool
        Whether a system was solved: for the first one, at w = 0, no factors are worth their price.
    """

    by_passes: ClassVar[bool] = True
    sample: int = 0
    factors: ClassFactors | None = None
    begun: bool = False

    def direction(
        self, problem: KernelMatrixAdapter, equation: Equation
    ) -> tuple[Predictor, Array, Iterative]:
        """Solve as precisely as pays."""
        weight, descent, linked = equation.weight, equation.descent.image, equation.linked
        of_examples, level = _of_level(problem, linked)
        product: Any = curvature(problem, weight, of_examples)
        if level is not None:
            product = LevelCurvature(product, level)
        balanced, system = problem.rows.balanced, replace(self, begun=True)
        r = with_intercept(descent, 0.0) if balanced else descent
        ridge = np.ones(r.shape[-1])
        ridge[descent.shape[-1] :] = 0.0
        if self.sample and self.begun:
            factors = self.factors
            if factors is None or factors.differ_from(weight):
                factors = ClassFactors.of(product, problem.rows, weight, ridge, self.sample)
            system = replace(system, factors=factors)
            precondition: Operator = factors.solve
        else:
            precondition = _jacobi(ridge + product.diagonal(), problem.rows, weight, linked)
        z = conjugate_gradients(
            lambda p: ridge * p + product(p), precondition, r, RESIDUAL, MOST_PRODUCTS
        )
        return *split(problem, z), system


def _of_level(
    problem: KernelMatrixAdapter, linked: Array | None
) -> tuple[Array | None, Array | None]:
    """What links rows of the same examples; the image, with intercept, of what links all rows."""
    if linked is None or linked.ndim == 2:
        return linked, None
    return None, image_of(problem, linked)


@dataclass(frozen=True)
class LevelCurvature:
    """Second moments where a level is free as well, less what it then takes from them.

    Attributes
    ----------
    fixed : Curvature
        With the level as it is.
    image : ndarray
        Of what links all rows, see ``Slack.curvature``.
    """

    fixed: Curvature
    image: Array

    def __call__(self, Z: Array) -> Array:
        return self.fixed(Z) - inner(self.image, Z) * self.image

    def diagonal(self) -> Array:
        return np.maximum(self.fixed.diagonal() - self.image**2, 0.0)


def _jacobi(diagonal: Array, rows: Rows, weight: Array, linked: Array | None) -> Operator:
    """Division by the diagonal; intercepts, which are few, are solved for as if alone."""
    intercepts = InterceptSystem.of(intercept_curvature(rows, weight, linked))
    divisor = np.where(diagonal > 0.0, diagonal, 1.0)

    def precondition(r: Array) -> Array:
        q = r / divisor
        if rows.balanced:
            q[..., -1] = intercepts.solve(np.atleast_1d(r[..., -1])).reshape(r.shape[:-1])
        return q

    return precondition


@dataclass(frozen=True)
class ClassFactors:
    """Inverses of each class's part of the matrix of Newton's system.

    Attributes
    ----------
    weight : ndarray of shape rows.shape
        The weights that they were computed for.
    roots : ndarray of shape (k, m, m)
        Inverses of Cholesky factors, all classes in one array: of many classes with few features, a
        solution with each takes longer to call than to compute.
    balanced : bool
    """

    weight: Array
    roots: Array
    balanced: bool

    @classmethod
    def of(
        cls, product: Curvature, rows: Rows, weight: Array, ridge: Array, sample: int
    ) -> ClassFactors:
        """Factor the parts, each from some examples."""
        k = rows.n_classes
        roots = np.zeros((k, len(ridge), len(ridge)))
        for c in range(k):
            H = product.of_class(c, sample)
            H.flat[:: len(H) + 1] += ridge + _FREE * H.max()
            H[-1, -1] = H[-1, -1] or 1.0  # the intercept of a class without active rows
            roots[c] = np.triu(dtrtri(cholesky(H.T), lower=0)[0])
        return cls(weight, roots, rows.balanced)

    def differ_from(self, weight: Array) -> bool:
        """Whether too many rows have come or gone since, or the slack is another."""
        return bool(weight.max() != self.weight.max() or is_outdated(self.weight, weight))

    def solve(self, r: Array) -> Array:
        """Apply the inverses, for intercepts that sum to 0."""
        r = self._summing_to_zero(np.array(r))
        q = self.roots @ (self.roots.transpose(0, 2, 1) @ r[..., None])
        return self._summing_to_zero(q[..., 0])

    def _summing_to_zero(self, r: Array) -> Array:
        if self.balanced:
            r[:, -1] -= r[:, -1].mean()
        return r


def image_of(problem: KernelMatrixAdapter, u: Array) -> Array:
    """``A'u``, with its intercept."""
    image, rows = problem.combine(u, precise=True).image, problem.rows
    return with_intercept(image, rows.adjoint(u).sum(axis=0)[..., None]) if rows.balanced else image


def with_intercept(image: Array, value: float | Array) -> Array:
    """An image with one more entry, in the order of memory that sparse products are fast in."""
    last = np.broadcast_to(value, (*image.shape[:-1], 1))
    return np.asfortranarray(np.append(image, last, axis=-1))
