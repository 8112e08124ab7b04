"""Newton's systems of problems of which only inner products are known: directions are ``A' x``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.systems.system import (
    MOST_PRODUCTS,
    RESIDUAL,
    Equation,
    System,
    conjugate_gradients,
)
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import Predictor, Rows


@dataclass(frozen=True)
class ByProducts(System):
    """By conjugate gradients for all classes together, each by a product with the Gram matrix.

    A point is an array of 2 m + 1 lines with an entry for each class (one for two classes): the
    coefficients of the m examples, their scores, and the intercepts.

    Attributes
    ----------
    K : ndarray of shape (m, m)
        Inner products in float32, as directions need not be exact.
    """

    K: Array

    @classmethod
    def of(cls, problem: GramAdapter) -> ByProducts:
        """For a problem of which the Gram matrix fits in memory."""
        return cls(problem.stored_products(np.float32))

    def direction(
        self, problem: KernelMatrixAdapter, equation: Equation
    ) -> tuple[Predictor, Array, ByProducts]:
        """See ``System``."""
        rows, m, descent = problem.rows, len(self.K), equation.descent
        V, F = rows.adjoint(descent.coef).reshape(m, -1), descent.image.reshape(m, -1)
        r = np.concatenate([V, F, np.zeros_like(V[:1])])
        dot, multiply = partial(inner_of_points, m), GramCurvature(self.K, rows, equation.weight)
        z = conjugate_gradients(multiply, np.copy, r, RESIDUAL, MOST_PRODUCTS, dot)
        x = problem.combine(rows.weights_of(z[:m].reshape(rows.score_shape)), precise=True)
        return x, z[2 * m].reshape(rows.score_shape[1:]), self


class GramCurvature:
    """``I + A' diag(weight) A`` for points, roughly; the intercepts are not penalised.

    Parameters
    ----------
    K : ndarray of shape (m, m)
    rows : Rows
    weight : ndarray of shape rows.shape
    """

    def __init__(self, K: Array, rows: Rows, weight: Array) -> None:
        self._K, self._rows, self._weight = K, rows, weight

    def __call__(self, p: Array) -> Array:
        rows, m = self._rows, len(self._K)
        scores = (p[m : 2 * m] + p[2 * m]).reshape(rows.score_shape)
        V = rows.adjoint(self._weight * rows.moves(scores)).reshape(m, -1)
        F = (V.T.astype(self._K.dtype) @ self._K).T
        total = V.sum(axis=0, keepdims=True) if rows.balanced else np.zeros_like(V[:1])
        return np.concatenate([p[:m] + V, p[m : 2 * m] + F, total])


def inner_of_points(m: int, p: Array, q: Array) -> float:
    """Inner product in feature space, that of the intercepts added."""
    return float(np.vdot(p[:m], q[m : 2 * m]) + np.vdot(p[2 * m], q[2 * m]))
