"""Newton's method for soft margins in the span of some examples, of which the Gram matrix is known.

The same objective and steps as in :mod:`marginsvm.algorithms.exact.newton`. A predictor is a
combination ``sum V_i x_i`` of the examples, beside which its scores ``F = K V`` are kept. A
conjugate gradient then takes one product with K, for all classes together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.choosing import spread_evenly
from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems import (
    conjugate_gradients,
    is_outdated,
    penalised,
    precision,
)
from marginsvm.data.passes import Centre, second_moments, second_moments_of_classes
from marginsvm.rows import Rows

# Unknowns, of all classes together, of the part of a system that is solved directly; and as a share
# of the examples: to factor it then takes no longer than the products with K.
_UNKNOWNS, _SHARE = 1000, 2
# Examples that are searched for the directions in which all spread most: for each direction, and in
# all at most.
_EXAMPLES_EACH, _SAMPLE = 3, 500
# Eigenvalue, relative to the largest, up to which examples are linearly dependent.
_DEPENDENT = 1e-8
# Share of the error that a step is to leave which may come from its system.
_OF_GOAL = 0.1
# Length of a step, relative to the predictor, that is rounding.
_STEP = 1e-14
# Conjugate gradients in a step at most.
_PRODUCTS = 300


@dataclass(frozen=True)
class Point:
    """A predictor with an intercept, or a direction.

    Attributes
    ----------
    V : ndarray of shape rows.score_shape
        Coefficients on the examples.
    F : ndarray of shape rows.score_shape
        Scores of the examples, ``K V``.
    b : ndarray
        Intercept of the scores: a number for each class, or one (two classes).
    """

    V: Array
    F: Array
    b: Array

    def __add__(self, other: Point) -> Point:
        return Point(self.V + other.V, self.F + other.F, self.b + other.b)

    def __sub__(self, other: Point) -> Point:
        return self + (-1.0) * other

    def __rmul__(self, factor: float) -> Point:
        return Point(factor * self.V, factor * self.F, factor * self.b)

    @property
    def scores(self) -> Array:
        """Scores of the examples with the intercept."""
        return np.asarray(self.F + self.b)


def inner(one: Point, other: Point) -> float:
    """Inner product in feature space, that of the intercepts added."""
    return float(np.vdot(one.V, other.F)) + float(np.vdot(one.b, other.b))


@dataclass(frozen=True)
class Gram:
    """The soft margin of some examples.

    Attributes
    ----------
    K : ndarray of shape (m, m)
        Their inner products; where rows are balanced, about the mean of these examples, which
        an unpenalised intercept makes up for.
    rough : ndarray of shape (m, m)
        The same in float32, for directions, which need not be exact.
    rows : Rows
    slack : Slack
    """

    K: Array
    rough: Array
    rows: Rows
    slack: Slack

    @classmethod
    def of(cls, K: Array, rows: Rows, slack: Slack) -> Gram:
        """Subtract the mean where that is of no consequence; K is overwritten."""
        if rows.balanced:
            K -= K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
        return cls(K, K.astype(np.float32), rows, slack)

    def point(self, V: Array, b: Array) -> Point:
        """A combination of the examples, and its scores, by a product with K."""
        return Point(V, (V.T @ self.K).T, b)

    def curvature(self, weight: Array, p: Point) -> Point:
        """``(I + A' diag(weight) A) p``, where the intercept is not penalised; roughly."""
        V = self.rows.adjoint(weight * self.rows.moves(p.scores))
        b = V.sum(axis=0) if self.rows.balanced else np.zeros_like(p.b)
        return Point(p.V + V, p.F + (V.T.astype(np.float32) @ self.rough).T, b)


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
    def of(cls, gram: Gram, share: int = _SHARE) -> Span:
        """Span of the leading eigenvectors of some examples (Nystroem)."""
        unknowns = min(_UNKNOWNS, len(gram.K) // share)
        most = max(1, unknowns // int(np.prod(gram.rows.score_shape[1:])))
        few = spread_evenly(gram.rows.codes, min(_SAMPLE, _EXAMPLES_EACH * most))
        length, U = np.linalg.eigh(gram.K[np.ix_(few, few)])
        long = np.sqrt(np.where(length > _DEPENDENT * length[-1], length, np.inf))
        basis = (U / long)[:, ::-1][:, :most]
        return cls(few, basis, gram.K[few].T @ basis)


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
        blocks, shape = [(slice(None), span.features)], (*rows.score_shape[1:], span.basis.shape[1])
        if rows.n_classes == 2:
            H = second_moments(rows, blocks, weight, Centre())
            H = H if rows.balanced else H[:-1, :-1]
        else:
            H = second_moments_of_classes(rows, blocks, weight, None, Centre(), 1.0)
        M = penalised(H, shape, rows)
        return cls(span, weight, cholesky(M))

    def solve(self, r: Point) -> Point:
        """Apply the inverse in the span, and the identity beside it."""
        span, shape = self.span, r.b.shape
        p = span.basis.shape[1]
        inside = (span.basis.T @ r.F[span.few]).reshape(p, -1)
        balanced = len(self.factor) > inside.size
        right = np.vstack([inside, r.b.reshape(1, -1)]) if balanced else inside
        x = dpotrs(self.factor, right.ravel(order="F"), lower=0)[0].reshape(
            len(right), -1, order="F"
        )
        change = (x[:p] - inside).reshape(p, *shape)
        V = r.V.copy()
        V[span.few] += span.basis @ change
        b = x[p].reshape(shape) if balanced else r.b
        return Point(V, r.F + span.features @ change, b)


@dataclass(frozen=True)
class GramNewton:
    """An iterate.

    Attributes
    ----------
    gram : Gram
    w : Point
        The predictor with its best intercept.
    u : ndarray of shape rows.shape
        The data player's weights: slack over s.
    proof : Point
        ``A' u``.
    leading : Leading or None
        The preconditioner of the last step.
    first : float
        Length of the first right hand side, by which later precision is judged.
    products : int
        Products with K so far.
    settled : bool
        The last step was rounding.
    """

    gram: Gram
    w: Point
    u: Array
    proof: Point
    leading: Leading | None = None
    first: float = 0.0
    products: int = 0
    settled: bool = False

    @classmethod
    def start(cls, gram: Gram, V: Array, b: Array) -> GramNewton:
        """Begin with a predictor of given coefficients."""
        if gram.rows.balanced and not V.any():
            b = gram.slack.intercept_alone(gram.rows)
        return cls.at(gram, gram.point(V, b))

    @classmethod
    def at(cls, gram: Gram, w: Point) -> GramNewton:
        """Weights at a predictor, under its best intercept."""
        rows = gram.rows
        margins = rows.margins(w.scores)
        if rows.balanced:
            b = gram.slack.best_intercept(rows, margins)
            margins = margins + rows.moves(np.broadcast_to(b, rows.score_shape))
            w = replace(w, b=w.b + b)
        u = gram.slack.weights(margins)
        return cls(gram, w, u, gram.point(rows.adjoint(u), np.zeros_like(w.b)))

    @property
    def error(self) -> float:
        """How far the margins of ``A' u`` are from those of w, which are about 1."""
        change = self.gram.rows.moves(self.proof.F - self.w.F)
        return float(np.abs(change).max(initial=0.0))

    def advanced(self, goal: float = 0.0, most: int = _PRODUCTS) -> GramNewton:
        """One Newton step, with a line search; no more precise than an error of ``goal`` asks for.

        Parameters
        ----------
        goal : float
            See ``error``.
        most : int
            Products with K for the system at most.
        """
        gram, w = self.gram, replace(self.w, b=np.zeros_like(self.w.b))
        # without slack, the predictor shrinks, and its intercept too
        z, now = -1.0 * self.w, replace(self, products=self.products + 2)
        if self.u.any():
            z, now = self._direction(goal, most)
        flat = replace(z, b=w.b)
        slope, square = inner(w, flat), inner(flat, flat)
        margins = gram.rows.margins(self.w.scores)
        t = gram.slack.line_search(margins, gram.rows.moves(z.scores), slope, square)
        new = self.at(gram, gram.point(w.V + t * z.V, self.w.b + t * z.b))
        settled = t * t * square <= _STEP**2 * inner(w, w)
        new = replace(new, leading=now.leading, first=now.first, products=now.products)
        return replace(new, settled=settled)

    def _direction(self, goal: float, most: int) -> tuple[Point, GramNewton]:
        """Newton's direction, and this iterate with what is known of the system now."""
        gram, rows, w = self.gram, self.gram.rows, replace(self.w, b=np.zeros_like(self.w.b))
        weight = (self.u > 0) / gram.slack.s
        descent = self.proof - w
        length = float(np.sqrt(max(inner(descent, descent), 0.0)))
        first, leading, products = self.first or length, self.leading, self.products + 2
        if leading is None or is_outdated(leading.weight, weight):
            leading = Leading.of(leading.span if leading else Span.of(gram), rows, weight)

        def multiply(p: Point) -> Point:
            nonlocal products
            products += 1
            return gram.curvature(weight, p)

        rtol = max(precision(length, first), _OF_GOAL * goal / max(self.error, goal, 1e-300))
        z = conjugate_gradients(multiply, leading.solve, descent, rtol, most, inner)
        return z, replace(self, leading=leading, first=first, products=products)
