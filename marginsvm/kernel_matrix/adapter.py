"""KernelMatrixAdapter: the problem as every algorithm sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.certifiable import (
    Distribution,
    ErrorModel,
    LowestMargins,
    OverlapAnswers,
)
from marginsvm.certify.distribution import KnownDistribution
from marginsvm.data.work import Work
from marginsvm.kernel_matrix.responses import Response, Weights, softmax
from marginsvm.kernel_matrix.scale import Scale
from marginsvm.rows import LpNorm, Rows, Vector


@dataclass(frozen=True)
class BestResponse:
    """The data's best response to a predictor: weights q, and ``vector = A^T q``."""

    vector: Vector
    weights: Weights


class KernelMatrixAdapter(ABC):
    """The rows ``a_r`` of a problem, scaled by the largest of their norms.

    A vector is ``A^T c`` for coefficients c >= 0 on the rows, see :class:`Vector`. What only
    some problems can do is declared in :mod:`marginsvm.kernel_matrix.capabilities`; what bounds
    ask of a problem, in :mod:`marginsvm.certify.certifiable`.

    Parameters
    ----------
    rows : Rows
        Labels as rows: binary, or an example held against another class.
    image_shape : tuple of int
        Shape of the first part of a vector.
    norm : LpNorm
        Of the predictors, which are the mirror images of the vectors.
    scale : Scale
        The radius, and what was measured together with it.
    errors : ErrorModel
        How far computed lengths and margins may be off.
    work : Work
        The counter of passes and kernel evaluations.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    C : float
        Soft margin (dimensionless); infinite: a hard margin.
    radius : float
        Largest norm of a row in the user's units; about the mean where the rows are
        balanced. Everything else here is in units of it.
    precision : dtype
        Of what rounds compute with.
    overlap_answers : OverlapAnswers
        What is known of whether the classes overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import LinearAdapter, make_rows
    >>> X, codes = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1, 0])
    >>> problem = LinearAdapter(X, make_rows(codes, 2, balanced=False))
    >>> best = problem.respond(problem.zeros())  # the zero predictor has margin 0 on all rows
    >>> best.vector.coef, best.weights.mass
    (array([0.5, 0.5]), 1.0)
    >>> problem.radius, problem.margins(best.vector)  # in units of the radius, squared
    (2.0, array([0.5  , 0.125]))
    """

    cheap_sums = True  # whether a sum over all rows costs no more than a pass
    precision = np.dtype(np.float64)

    def __init__(
        self,
        rows: Rows,
        image_shape: tuple[int, ...],
        norm: LpNorm,
        scale: Scale,
        errors: ErrorModel,
        work: Work,
    ) -> None:
        self.rows = rows
        self.n_rows = rows.n_rows
        self.C = scale.C
        self.radius = scale.radius
        self.errors = errors
        self.work = work
        self.overlap_answers = OverlapAnswers()
        self._image_shape = image_shape
        self._norm = norm
        self._scale = scale
        self._slack = scale.slack

    # What the geometry provides.

    @abstractmethod
    def _adjoint(self, V: Array, precise: bool) -> Array:
        """Image of coefficients on the examples."""

    @abstractmethod
    def _scores(self, image: Array, precise: bool) -> Array:
        """Scores of all examples; float64 throughout where ``precise``."""

    @abstractmethod
    def _inner(self, w: Vector, u: Vector) -> float:
        """Inner product without the slack coordinates."""

    @abstractmethod
    def _kernel_block(self, i: Array, j: Array) -> Array:
        """Inner products of the examples i with the examples j."""

    @abstractmethod
    def predictor(self, w: Vector, offsets: Array) -> tuple[Array, Array]:
        """``w`` as the user applies it: coefficients and intercept, user's units of x."""

    @abstractmethod
    def extended_scores(self, examples: Array, coef: Array) -> Array:
        """Scores of some examples before the intercept is added, in extended precision."""

    @abstractmethod
    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Some of the examples as the user gave them, see ``Certifiable``."""

    # Vectors.

    def zeros(self) -> Vector:
        """Give the zero vector."""
        return Vector(np.zeros(self._image_shape), np.zeros(self.rows.shape))

    def combine(self, q: Array, *, precise: bool = False) -> Vector:
        """``A^T q``."""
        q = q.reshape(self.rows.shape)
        return Vector(self._adjoint(self.rows.adjoint(q), precise), q)

    def row(self, r: int) -> Vector:
        """One row, as a vector."""
        q = np.zeros(self.rows.shape)
        q.flat[r] = 1.0
        return self.combine(q)

    def refresh(self, w: Vector) -> Vector:
        """Compute a vector again from its coefficients, free of accumulated rounding."""
        return self.combine(w.coef, precise=True)

    def mirrored(self, theta: Array) -> Vector:
        """Vector whose image's mirror image is ``theta``; it has no coefficients."""
        image = self._norm.mirrored(theta).reshape(self._image_shape)
        return Vector(image, np.zeros(self.rows.shape))

    def weights(self, w: Vector) -> Array:
        """Weights of a vector on the rows; where these are lazy, passes compute them."""
        return w.coef

    def dot(self, w: Vector, u: Vector) -> float:
        """Inner product in the geometry of the problem (p != 2: of w with u's mirror image)."""
        product = self._inner(w, u)
        if self._slack is not None:
            product += float(np.sum(self._slack * w.coef * u.coef))
        return product

    def norm(self, w: Vector) -> float:
        """Norm in the geometry of the problem; rounding below zero is clipped."""
        return float(np.sqrt(max(self.dot(w, w), 0.0)))

    def gram(self, row_ids: Array, others: Array) -> Array:
        """A block of ``A A^T``; rows are named by their flat indices."""
        examples, signs = self.rows.locate(row_ids)
        other_examples, other_signs = (
            (examples, signs) if others is row_ids else self.rows.locate(others)
        )
        G = self._kernel_block(examples, other_examples) * (signs @ other_signs.T)
        if self._slack is not None:
            slack = np.broadcast_to(self._slack, self.rows.shape).ravel()[row_ids]
            G += slack[:, None] * (row_ids[:, None] == others)
        return G

    # The game between a predictor and the data, whose moves are weights on the rows.

    def scores(self, w: Vector) -> Array:
        """Scores of all examples, in float64."""
        return self._scores(w.image, precise=True)

    def margins(self, w: Vector, *, precise: bool = False) -> Array:
        """Margins ``<a_r, w>`` of all rows."""
        margins = self.rows.margins(self._scores(w.image, precise))
        return margins if self._slack is None else margins + self._slack * self.weights(w)

    def respond(self, w: Vector, mu: float = 1.0, response: Response = softmax) -> BestResponse:
        """Best response of the data to the predictor ``w``: one pass over the examples."""
        weights = response.respond(self.rows, self.margins(w), mu)
        return BestResponse(self.combine(weights.q), weights)

    # What proofs ask for, see ``Certifiable``.

    @property
    def slack(self) -> Array | None:
        """Squares of the rows' extra coordinates, as many as margins; None: a hard margin."""
        return None if self._slack is None else np.broadcast_to(self._slack, self.rows.shape)

    @property
    def width(self) -> float:
        """Numbers in a row that is written out, slack left out; infinite: it cannot be."""
        return np.inf

    def lowest_margins(self, w: Vector) -> LowestMargins:
        """Compute the margins that a lower bound rests on: a pass."""
        margins = self.margins(w, precise=True)
        return LowestMargins(w, self.rows.group_min(margins), margins)

    def distribution(self, w: Vector) -> Distribution:
        """The distribution over the rows that a vector is published as."""
        return KnownDistribution(self, w)

    # What it cost, and what may be wrong.

    def flaw(self) -> str:
        """Say why margins mean nothing on this data, and what helps; empty: no reason is known."""
        return ""
