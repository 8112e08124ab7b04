"""KernelMatrixAdapter: all that an algorithm may ask of the data."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.bounds import Bounds
from marginsvm.kernel_matrix.columns import ColumnCache, ColumnPlan
from marginsvm.kernel_matrix.flat import FlatRows
from marginsvm.kernel_matrix.responses import Response, Weights, softmax
from marginsvm.rows.norms import LpNorm
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

_LARGEST = 1e152  # norm of a row, whose square must not overflow; and inverse of the smallest


@dataclass(frozen=True)
class BestResponse:
    """The data's answer to a predictor: ``vector = A^T q`` and what came with it."""

    vector: Vector
    weights: Weights

    @property
    def mass(self) -> float:
        """Sum of the weights in ``vector``."""
        return self.weights.mass


class KernelMatrixAdapter(Bounds):
    """The rows ``a_r`` of a problem, scaled by the largest of their norms.

    A vector is ``A^T c`` for coefficients c >= 0 on the rows, see :class:`Vector`.

    Parameters
    ----------
    rows : Rows
        Labels as rows: binary, or an example held against another class.
    C : float
        Soft margin (dimensionless): each row has its own extra coordinate ``1 / sqrt(2 C)``.
    image_shape : tuple of int
        Shape of the first part of a vector.
    norm : LpNorm
        Of the predictors, which are the mirror images of the vectors.
    constant : float
        A constant feature that every example has (units of x): a penalised intercept.
    plan : ColumnPlan or None
        For algorithms that go by ``columns``; the Gram matrix then is never formed.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    radius : float
        Largest norm of a row in the user's units; about the mean where the rows are
        balanced. Everything else here is in units of it.
    n_passes : float
        Passes over the data so far; with kernels, products with the Gram matrix.
    n_kernel_evaluations : int
        Inner products of two examples computed so far (of a kernel, or for columns).
    column_scale, column_passes, column_dtype
        What a value of ``columns`` is multiplied with, what a column counts in passes,
        and its type.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import LinearAdapter, make_rows
    >>> X, codes = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1, 0])
    >>> data = LinearAdapter(X, make_rows(codes, 2, balanced=False))
    >>> answer = data.respond(data.zeros())  # of a predictor that knows nothing: all rows alike
    >>> answer.vector.coef, answer.mass
    (array([0.5, 0.5]), 1.0)
    >>> data.radius, data.margins(answer.vector)  # in units of the radius, squared
    (2.0, array([0.5  , 0.125]))
    """

    radius: float
    cheap_sums = True  # whether a sum over all rows costs no more than a pass
    column_scale: float
    column_passes: float
    column_dtype: np.dtype
    _extra_bytes = 0  # held beside X for the columns' sake; taken off the cache

    def __init__(
        self,
        rows: Rows,
        C: float,
        image_shape: tuple[int, ...],
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        plan: ColumnPlan | None = None,
    ) -> None:
        self._plan = plan
        self._asked = {}
        self.n_kernel_evaluations = 0
        self.rows = rows
        self.n_rows = rows.n_rows
        self.n_passes = 0.0
        self._image_shape = image_shape
        self.C = C
        self._norm = norm
        self._constant = constant
        self._slack: Array | None = None  # squares of the rows' extra coordinates

    def _set_radius(self, squared_norms: Array, unit: float = 0.0) -> None:
        """Scale by the largest row, given the squared norms of the examples; or else by ``unit``.

        A weight m stands for m rows, each with an extra coordinate of its own: their sum
        moves like one row whose coordinate is smaller, but the rows are as long as ever.
        """
        weights = np.ones(1) if self.rows.weights is None else self.rows.weights
        with np.errstate(over="ignore", invalid="ignore"):
            slack = 0.5 / (self.C * np.minimum(weights, 1.0))
            longest = float((squared_norms + slack).max())
        short = longest < _LARGEST**-2 and 0.0 < self._tallest() < 1.0 / _LARGEST
        if short or not longest < _LARGEST**2:
            raise ValueError(
                f"the squared norms of the examples (and 1 / 2C) come to {longest:.3g}, with which "
                f"float64 cannot compute: scale X to entries between {1 / _LARGEST:g} and "
                f"{_LARGEST:g}, and C with the inverse of their squares"
            )
        self.radius = float(np.sqrt(longest)) or unit or 1.0
        self._lengths = squared_norms / self.radius**2
        if np.isfinite(self.C):
            slack = 0.5 / self.C / (weights * self.radius**2)
            self._slack = self.rows.per_example(slack)

    # What the geometry provides.

    def _tallest(self) -> float:
        """Largest absolute value of a feature, where there are features."""
        return 1.0

    @abstractmethod
    def _adjoint(self, V: Array, precise: bool) -> Array:
        """Image of coefficients on the examples."""

    @abstractmethod
    def _inner(self, w: Vector, u: Vector) -> float:
        """Inner product without the slack coordinates."""

    @abstractmethod
    def _kernel_block(self, i: Array, j: Array) -> Array:
        """Inner products of the examples i with the examples j."""

    @abstractmethod
    def flat(self) -> FlatRows:
        """Lay the rows out for compiled loops, which move images in place."""

    @abstractmethod
    def _columns(self, examples: Array) -> Array:
        """Inner products of some examples with all, one row each, before ``column_scale``.

        The constant feature is left out.
        """

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

    def dot(self, w: Vector, u: Vector) -> float:
        """Inner product in the geometry of the problem (p != 2: of w with u's mirror image)."""
        product = self._inner(w, u)
        if self._slack is not None:
            product += float(np.sum(self._slack * w.coef * u.coef))
        return product

    def norm(self, w: Vector) -> float:
        """Norm in the geometry of the problem; rounding below zero is clipped."""
        return float(np.sqrt(max(self.dot(w, w), 0.0)))

    def gram(self, rows: Array, others: Array) -> Array:
        """A block of ``A A^T``; rows are named by their flat indices."""
        examples, signs = self.rows.locate(rows)
        other_examples, other_signs = (
            (examples, signs) if others is rows else self.rows.locate(others)
        )
        G = self._kernel_block(examples, other_examples) * (signs @ other_signs.T)
        if self._slack is not None:
            slack = np.broadcast_to(self._slack, self.rows.shape).ravel()[rows]
            G += slack[:, None] * (rows[:, None] == others)
        return G

    def _flat_rows(self, form: int, values: Array, **layout: Any) -> FlatRows:
        """Add to a layout of the data what all layouts share."""
        # with more than two classes, two share a row: (x, -x) / sqrt(2)
        lengths = self._lengths * self.rows.unit ** (4.0 / self._norm.q - 2.0)
        curvature = self.rows.per_example((self._norm.q - 1.0) * lengths)
        slack = np.broadcast_to(0.0 if self._slack is None else self._slack, self.rows.shape)
        return FlatRows(
            form=form,
            values=values,
            codes=self.rows.codes,
            n_classes=self.rows.n_classes,
            slack=slack.ravel(),
            curvature=(curvature + slack).ravel(),
            q=self._norm.q,
            **layout,
        )

    @property
    def slack(self) -> Array | None:
        """Squares of the rows' extra coordinates, as many as margins; None: a hard margin."""
        return None if self._slack is None else np.broadcast_to(self._slack, self.rows.shape)

    @property
    def csr(self) -> Any:
        """The examples in the user's units if they are a CSR matrix, or None."""
        return None

    def examples(self, index: Array) -> Array:
        """Examples written out in float64, about the mean, in units of the radius."""
        raise NotImplementedError("the examples of a kernel have no finite form")

    def second_moments(self, weight: Array) -> Array:
        """``sum weight (x, 1)(x, 1)'`` over the examples, as ``examples`` writes them out."""
        raise NotImplementedError("the examples of a kernel have no finite form")

    def points(self, rows: Array) -> Array:
        """Rows written out one below the other, as images, slack left out."""
        examples, signs = self.rows.locate(rows)
        x = self.examples(examples)
        if signs.shape[1] == 1:
            x *= signs
            return x
        return (signs[:, :, None] * x[:, None, :]).reshape(len(rows), -1)

    def flaw(self) -> str:
        """Say why margins mean nothing on this data, and what helps; empty: no reason is known."""
        return ""

    def restrict(self, examples: Array) -> KernelMatrixAdapter | None:
        """The problem of some of the examples, at hand and in the same units; None: no gain."""
        return None

    @cached_property
    def columns(self) -> ColumnCache:
        """Columns of the examples' Gram matrix, the last used of them kept."""
        size, batch = self._plan or ColumnPlan(0.0, 1)
        size -= self._extra_bytes / 2**20
        return ColumnCache(
            self._columns, self.rows.n_examples, self.column_dtype, size, batch, self.rows.n_classes
        )

    def assemble(self, F: Array, q: Array) -> Vector:
        """``combine(q)`` where the scores ``F`` of ``A^T q`` are known (slack left out)."""
        return self.combine(q)

    @property
    def slack_per_example(self) -> Array:
        """Squares of the extra coordinates of each example's rows; zeros: a hard margin."""
        zeros = np.zeros(self.rows.n_examples)
        return zeros if self._slack is None else zeros + self._slack.ravel()

    # The game.

    def scores(self, w: Vector) -> Array:
        """Scores of all examples, in float64."""
        return self._scores(w.image, precise=True)

    def respond(self, w: Vector, mu: float = 1.0, response: Response = softmax) -> BestResponse:
        """Let the data player answer ``w``: one pass over the data."""
        weights = response(self.rows, self.margins(w), mu)
        return BestResponse(self.combine(weights.q), weights)


def support_of(V: Array) -> Array:
    """Examples with a coefficient other than zero."""
    return np.flatnonzero(V if V.ndim == 1 else V.any(axis=1))
