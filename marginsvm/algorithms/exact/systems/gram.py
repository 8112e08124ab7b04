"""Newton's systems of problems of which only inner products are known: directions are ``A' x``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.choosing import spread_evenly
from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.algorithms.exact.systems.features import penalised
from marginsvm.algorithms.exact.systems.system import (
    Equation,
    conjugate_gradients,
    is_outdated,
    precision,
)
from marginsvm.data.block import Centre, Dense
from marginsvm.data.moments import second_moments_of_classes
from marginsvm.data.passes import second_moments
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import Predictor, Rows

# Unknowns, of all classes together, of the part of a system that is solved directly.
_UNKNOWNS_OF_PART = 1000
# Examples that are searched for the directions in which all spread most: for each direction, and in
# all at most.
_EXAMPLES_EACH, _SAMPLE = 3, 500
# Eigenvalue, relative to the largest, up to which examples are linearly dependent.
_DEPENDENT_EIGENVALUE = 1e-8


@dataclass(frozen=True)
class Span:
    """The directions in which some examples spread most, with an orthonormal basis.

    Attributes
    ----------
    few : ndarray of int
        Examples whose combinations the basis consists of.
    basis : ndarray of shape (len(few), p)
        Their coefficients; 0 where the examples are linearly dependent.
    features : ndarray of shape (m, p)
        All examples, projected to the span.
    """

    few: Array
    basis: Array
    features: Array

    @classmethod
    def of(cls, K: Array, rows: Rows, share: int) -> Span:
        """Span of the leading eigenvectors of some examples (Nystroem).

        Parameters
        ----------
        K : ndarray of shape (m, m)
            Inner products of the examples.
        rows : Rows
        share : int
            Examples for each unknown, at least.
        """
        unknowns = min(_UNKNOWNS_OF_PART, len(K) // share)
        most = max(1, unknowns // int(np.prod(rows.score_shape[1:])))
        few = spread_evenly(rows.codes, min(_SAMPLE, _EXAMPLES_EACH * most))
        length, U = np.linalg.eigh(K[np.ix_(few, few)].astype(np.float64))
        long = np.sqrt(np.where(length > _DEPENDENT_EIGENVALUE * length[-1], length, np.inf))
        basis = (U / long)[:, ::-1][:, :most]
        return cls(few, basis, K[few].T @ basis)


@dataclass(frozen=True)
class Leading:
    """A preconditioner: the inverse in a span of few dimensions, the identity beside it.

    Attributes
    ----------
    span : Span
    weight : ndarray of shape rows.shape
        The weights that it was computed for.
    factor : ndarray
        Upper Cholesky factor of the matrix in this span, all classes together.
    """

    span: Span
    weight: Array
    factor: Array

    @classmethod
    def of(cls, span: Span, rows: Rows, weight: Array) -> Leading:
        """Form the matrix of these features and factor it."""
        blocks = [(slice(None), Dense(span.features))]
        shape = (*rows.score_shape[1:], span.basis.shape[1])
        if rows.n_classes == 2:
            H = second_moments(rows, blocks, weight, Centre())
            H = H if rows.balanced else H[:-1, :-1]
        else:
            H = second_moments_of_classes(rows, blocks, weight, Centre(), 1.0)
        return cls(span, weight, cholesky(penalised(H, shape, rows)))

    def solve(self, r: Array) -> Array:
        """Apply the inverse in the span, and the identity beside it, to a point of ``BySpan``."""
        span, m = self.span, len(self.span.features)
        inside = span.basis.T @ r[m : 2 * m][span.few]
        p, balanced = len(inside), len(self.factor) > inside.size
        right = np.vstack([inside, r[2 * m :]]) if balanced else inside
        x = dpotrs(self.factor, right.ravel(order="F"), lower=0)[0]
        x = x.reshape(right.shape, order="F")
        change, q = x[:p] - inside, r.copy()
        q[span.few] += span.basis @ change
        q[m : 2 * m] += span.features @ change
        if balanced:
            q[2 * m] = x[p]
        return q


@dataclass(frozen=True)
class BySpan:
    """By conjugate gradients for all classes together, each by a product with the Gram matrix.

    A point is an array of 2 m + 1 lines with an entry for each class (one for two classes): the
    coefficients of the m examples, their scores, and the intercepts.

    Attributes
    ----------
    K : ndarray of shape (m, m)
        Inner products in float32, as directions need not be exact.
    share : int
        Examples for each unknown of what is solved directly: the more, the quicker this is beside
        the products.
    most : int
        Products for each system at most.
    first : float
        Length of the first right hand side, by which later precision is judged; 0: none yet.
    leading : Leading or None
    products : int
        Products so far, those of the iterates included.
    """

    by_passes: ClassVar[bool] = False

    K: Array
    share: int = 2
    most: int = 300
    first: float = 0.0
    leading: Leading | None = None
    products: int = 0

    @classmethod
    def of(cls, problem: GramAdapter, share: int = 2, most: int = 300) -> BySpan:
        """For a problem of which the Gram matrix fits in memory."""
        return cls(problem.stored_products(np.float32), share, most)

    def direction(
        self, problem: KernelMatrixAdapter, equation: Equation
    ) -> tuple[Predictor, Array, BySpan]:
        """See ``System``."""
        rows, m, weight, descent = problem.rows, len(self.K), equation.weight, equation.descent
        V, F = rows.adjoint(descent.coef).reshape(m, -1), descent.image.reshape(m, -1)
        r = np.concatenate([V, F, np.zeros_like(V[:1])])
        leading = self.leading
        if leading is None or is_outdated(leading.weight, weight):
            span = Span.of(self.K, rows, self.share) if leading is None else leading.span
            leading = Leading.of(span, rows, weight)

        dot, multiply = partial(inner_of_points, m), GramCurvature(self.K, rows, weight)
        length = float(np.sqrt(max(dot(r, r), 0.0)))
        first = self.first or length
        rtol = precision(length, first, equation.enough)
        z = conjugate_gradients(multiply, leading.solve, r, rtol, self.most, dot)
        x = problem.combine(rows.weights_of(z[:m].reshape(rows.score_shape)), precise=True)
        products = self.products + multiply.products + 2  # the step's own, and the next proof's
        system = replace(self, first=first, leading=leading, products=products)
        return x, z[2 * m].reshape(rows.score_shape[1:]), system

    def anew(self, factor: float = np.nan) -> BySpan:
        """Forget how long right hand sides were."""
        return replace(self, first=0.0)


class GramCurvature:
    """``I + A' diag(weight) A`` for points, roughly; the intercepts are not penalised.

    Parameters
    ----------
    K : ndarray of shape (m, m)
    rows : Rows
    weight : ndarray of shape rows.shape

    Attributes
    ----------
    products : int
        Products with K so far.
    """

    def __init__(self, K: Array, rows: Rows, weight: Array) -> None:
        self._K, self._rows, self._weight, self.products = K, rows, weight, 0

    def __call__(self, p: Array) -> Array:
        rows, m = self._rows, len(self._K)
        self.products += 1
        scores = (p[m : 2 * m] + p[2 * m]).reshape(rows.score_shape)
        V = rows.adjoint(self._weight * rows.moves(scores)).reshape(m, -1)
        F = (V.T.astype(self._K.dtype) @ self._K).T
        total = V.sum(axis=0, keepdims=True) if rows.balanced else np.zeros_like(V[:1])
        return np.concatenate([p[:m] + V, p[m : 2 * m] + F, total])


def inner_of_points(m: int, p: Array, q: Array) -> float:
    """Inner product in feature space, that of the intercepts added."""
    return float(np.vdot(p[:m], q[m : 2 * m]) + np.vdot(p[2 * m], q[2 * m]))
