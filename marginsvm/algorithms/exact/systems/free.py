"""Newton's systems by what is free to move, where that is less than there are features.

With weights u that margins move by ``-B diag(1/s) B'``, and ``G = B' A``, Newton's system is

    (I + G' diag(1/s) G) z = d,    z = d - G' y,    (G G' + diag(s)) y = G d + G b

for the intercepts b that keep y balanced. A row whose weight is between its ends is free alone.
Where an example's rows have reached the cap that they share, their weights move against each
other: of m of them, in m - 1 ways.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.algorithms.exact.intercepts import InterceptSystem
from marginsvm.algorithms.exact.systems.system import Equation, System
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import has_curvature
from marginsvm.rows import Predictor

# Free weights up to which their Gram matrix is factored where there are features as well: 200 MB,
# and about a second, in which conjugate gradients take some hundred products.
_FEW_FREE_WEIGHTS = 5000


@dataclass(frozen=True)
class FreeRows(System):
    """By the Gram matrix of what is free; with features, once that is little.

    Attributes
    ----------
    features : System or None
        Solves until then.
    by_passes : bool
        Whether it solved the last system, by passes.
    """

    features: System | None = None
    by_passes: bool = False  # type: ignore[misc]

    def direction(
        self, problem: KernelMatrixAdapter, equation: Equation
    ) -> tuple[Predictor, Array, FreeRows]:
        """See ``System``."""
        weight, linked = equation.weight, equation.linked
        free = np.count_nonzero(weight)
        if linked is not None:
            free += np.count_nonzero(linked) - np.count_nonzero(linked.any(axis=1))
        if self.features is None or free <= _FEW_FREE_WEIGHTS:
            return *_by_gram(problem, equation), FreeRows(self.features)
        z, shift, features = self.features.direction(problem, equation)
        return z, shift, FreeRows(features, features.by_passes)


def _by_gram(problem: KernelMatrixAdapter, equation: Equation) -> tuple[Predictor, Array]:
    """The direction, and its change of the intercepts."""
    rows, (weight, descent, linked) = problem.rows, equation
    examples, B, s = _free(weight, linked)
    C = rows[examples].adjoint(B).reshape(len(s), -1)
    F = problem.scores(descent)[examples].reshape(C.shape)
    G = _products(problem, examples) * (C @ C.T)
    G.flat[:: len(s) + 1] += s
    right = np.column_stack([np.sum(C * F, axis=1), C])
    y, of_b = np.split(dpotrs(cholesky(G.T), right, lower=0)[0], [1], axis=1)
    y, b = y[:, 0], np.zeros(C.shape[1])
    if rows.balanced:
        b = -InterceptSystem.of(C.T @ of_b).solve(C.T @ y)
        y = y + of_b @ b
    q = np.zeros(rows.shape)
    np.add.at(q, examples, (y * B.T).T)
    if has_curvature(problem):
        z = descent - problem.combine(q)
    else:
        z = problem.combine(descent.coef - q, precise=True)
    return z, b.reshape(rows.score_shape[1:])


def _free(weight: Array, linked: Array | None) -> tuple[Array, Array, Array]:
    """What is free: the example of each, its weights on that one's rows, of length 1, and s."""
    at = np.nonzero(weight)
    examples, s = at[0], 1.0 / weight[at]
    if weight.ndim == 1:
        return examples, np.ones(len(s)), s
    B = np.zeros((len(s), weight.shape[1]))
    B[np.arange(len(s)), at[1]] = 1.0
    if linked is None:
        return examples, B, s
    free = linked > 0.0
    before = np.cumsum(free, axis=1) - 1
    i, j = np.nonzero(free & (before > 0))  # against those of the same example before it
    m = before[i, j]
    against = free[i] & (np.arange(weight.shape[1]) < j[:, None])
    more = against / np.sqrt(m * (m + 1.0))[:, None]
    more[np.arange(len(i)), j] = -np.sqrt(m / (m + 1.0))
    s_more = 1.0 / (linked[i, j] ** 2 * np.count_nonzero(free[i], axis=1))
    return np.append(examples, i), np.vstack([B, more]), np.append(s, s_more)


def _products(problem: KernelMatrixAdapter, examples: Array) -> Array:
    """Inner products of some examples, of which several may be the same."""
    few, at = np.unique(examples, return_inverse=True)
    K = problem.inner_products(few)
    return K if len(few) == len(examples) and np.all(few == examples) else K[at[:, None], at]
