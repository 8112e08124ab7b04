"""KernelMatrixAdapter: the maximum-margin problem, as algorithms use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certify.caps import Caps
from marginsvm.certify.certifiable import Distribution, ErrorModel, LowestMargins, OverlapChecks
from marginsvm.certify.distribution import distribution_of
from marginsvm.certify.overlapping import meeting_rows
from marginsvm.certify.prices import HingeCaps
from marginsvm.data.work import Work
from marginsvm.kernel_matrix.outputs import Outputs
from marginsvm.kernel_matrix.responses import Response, Weights, softmax
from marginsvm.kernel_matrix.responses.response import below
from marginsvm.kernel_matrix.scale import Scale
from marginsvm.rows import AnyPredictor, LpNorm, Predictor, Rows, Vector


@dataclass(frozen=True)
class BestResponse:
    """The data player's best response to a predictor: weights q, and ``vector = A^T q``."""

    vector: Vector
    weights: Weights


class KernelMatrixAdapter(Outputs, ABC):
    """The problem ``max_w min_r <a_r, w> / |w|`` over rows ``a_r``, the signed examples.

    The rows are divided by the largest of their norms, and A is the matrix that has them as its
    rows. A vector is ``A^T c`` for coefficients c >= 0, see ``marginsvm.rows.Vector``. It stands
    for a predictor as well: the smallest margin of a predictor and the norm of ``A^T q`` bound
    the best margin from below and from above. Operations that only some problems have are
    declared in ``marginsvm.kernel_matrix.capabilities``, and those that bounds need in
    ``marginsvm.certify.certifiable``.

    Parameters
    ----------
    rows : Rows
        The labels, in the form of rows: one for each example (two classes), or one for each
        example and each other class.
    image_shape : tuple of int
        Shape of the image of a vector, see ``marginsvm.rows.Vector``.
    norm : LpNorm
        Norm of predictors. For p = 2 a vector is its own predictor; otherwise its predictor is
        the gradient of half the squared dual norm at the vector, the *mirror image*.
    scale : Scale
        The radius, C and slack, as measured before the first round.
    errors : ErrorModel
        How far computed lengths and margins may be off.
    work : Work
        Counter of passes and kernel evaluations.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    caps : Caps or None
        Largest weights of the rows, where no example may count for too much: as slack costs C
        times its size, or as margins are means over a share of the examples. None: weights are
        not capped.
    C : float
        Soft margin (dimensionless); infinite: a hard margin.
    radius : float
        Largest norm of a row in the user's units; with an unpenalised intercept, of examples with
        the mean subtracted. Everything else here is in units of it.
    precision : dtype
        Floating-point type in which rounds compute.
    overlap_checks : OverlapChecks
        Results of earlier checks of whether weights prove that the classes overlap.
    models : dict
        Models for the case that nothing separates, by algorithm, once they were computed: each
        confirmation of bounds asks for one.

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
        self.overlap_checks = OverlapChecks()
        self.models: dict[Any, Any] = {}
        self._image_shape = image_shape
        self._norm = norm
        self._scale = scale
        self._slack = self._slack_of_rows()
        self.caps: Caps | None = None

    # What subclasses implement: the operations that differ between features and kernels.

    @abstractmethod
    def _adjoint(self, V: Array, precise: bool) -> Array:
        """Image of the vector with coefficients V on the examples (not on the rows)."""

    @abstractmethod
    def _scores(self, image: Array, precise: bool) -> Array:
        """Scores of all examples; float64 throughout where ``precise``."""

    @abstractmethod
    def inner(self, w: Predictor, u: Predictor) -> float:
        """Inner product without the slack coordinates."""

    @abstractmethod
    def _kernel_block(self, i: Array, j: Array) -> Array:
        """Inner products of the examples i with the examples j, as a new array."""

    @abstractmethod
    def predictor(self, w: Predictor, offsets: Array) -> tuple[Array, Array]:
        """Coefficients and intercept of ``w`` for x in the user's units."""

    @abstractmethod
    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        """Scores of published numbers, with fewer errors, see ``Certifiable``."""

    @abstractmethod
    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Some of the examples as the user gave them, see ``Certifiable``."""

    # Vectors.

    def zeros(self) -> Vector:
        """The zero vector."""
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

    def mirrored(self, theta: Array) -> Predictor:
        """The predictor ``theta``, without slack."""
        image = self._norm.mirrored(theta).reshape(self._image_shape)
        return Predictor(image, np.zeros(self.rows.shape))

    def add_predictors(self, w: Predictor, u: Predictor) -> Predictor:
        """The sum of two predictors, slack included; for p = 2, it is ``w + u``."""
        if self._norm.p == 2.0 and self.signs is None:
            return w + u
        image = self._norm.mirrored(self._norm.mirror(w.image) + self._norm.mirror(u.image))
        return Predictor(image, w.coef + u.coef)

    @property
    def strong_convexity(self) -> float:
        """Strong convexity (dimensionless) of half the squared norm of predictors: p - 1."""
        return self._norm.p - 1.0

    def weights(self, w: Predictor) -> Array:
        """Weights of a vector on the rows; computing them may take passes over the examples."""
        return w.coef

    def dot(self, w: Predictor, u: Predictor) -> float:
        """Inner product, slack included (for p != 2: of ``w`` with the mirror image of ``u``)."""
        product = self.inner(w, u)
        if self._slack is not None:
            product += float(np.sum(self._slack * w.coef * u.coef))
        return product

    def norm(self, w: Predictor) -> float:
        """Norm of a vector (the dual of the norm of predictors), slack included."""
        return float(np.sqrt(max(self.dot(w, w), 0.0)))

    def gram(self, row_ids: Array, others: Array) -> Array:
        """A block of ``A A^T``, for two sets of rows given by their flat indices."""
        examples, signs = self.rows.locate(row_ids)
        other_examples, other_signs = (
            (examples, signs) if others is row_ids else self.rows.locate(others)
        )
        if signs.shape[1] == 1:
            G = self._kernel_block(examples, other_examples)
        else:  # rows of many classes share their examples
            few, at = np.unique(examples, return_inverse=True)
            same = other_examples is examples
            rest, there = (few, at) if same else np.unique(other_examples, return_inverse=True)
            G = self._kernel_block(few, rest)[at[:, None], there]
        G *= signs @ other_signs.T
        if self._slack is not None:
            slack = self._slack.flat[row_ids]
            G += slack[:, None] * (row_ids[:, None] == others)
        return G

    def second_derivatives(self, w: Predictor, row_ids: Array) -> Array:
        """Second derivatives at ``w`` of half the squared norm, along some rows."""
        return self.gram(row_ids, row_ids)

    def inner_products(self, examples: Array) -> Array:
        """Inner products of some examples, in units of the radius squared, as a new array."""
        return self._kernel_block(examples, examples)

    # The game: a predictor against a data player, who chooses weights on the rows.

    def scores(self, w: Predictor) -> Array:
        """Scores of all examples, in float64."""
        return self._scores(w.image, precise=True)

    def margins(self, w: Predictor, *, precise: bool = False) -> Array:
        """Margins ``<a_r, w>`` of all rows."""
        margins = self.rows.margins(self._scores(w.image, precise))
        return margins if self._slack is None else margins + self._slack * self.weights(w)

    def respond(self, w: Predictor, mu: float = 1.0, response: Response = softmax) -> BestResponse:
        """Best response of the data player to the predictor ``w``, by one pass."""
        weights = self._below_caps(response).respond(self.rows, self.margins(w), mu)
        return BestResponse(self.combine(weights.q), weights)

    def _below_caps(self, response: Response) -> Response:
        """The response among the weights that the data player may choose from."""
        return response if self.caps is None else below(self.caps.largest, response)

    # What bounds and proofs need, see ``Certifiable``.

    @property
    def slack(self) -> Array | None:
        """Squares of the slack coordinates, of the shape of margins; None: a hard margin."""
        return self._slack

    def _slack_of_rows(self) -> Array | None:
        slack = self._scale.slack
        return None if slack is None else np.broadcast_to(slack, self.rows.shape)

    @property
    def mean_square(self) -> float:
        """Mean squared norm of the examples, with their weights, in the user's units.

        With balanced rows, norms are those about the mean.
        """
        mean = float(np.average(self._scale.lengths, weights=self.rows.weights))
        return mean * self.radius * self.radius

    @property
    def width(self) -> float:
        """Numbers in a row that is written out, without slack; infinite where it cannot be."""
        return np.inf

    def lowest_margins(self, w: Predictor) -> LowestMargins:
        """Compute the margins for a lower bound, in float64, by a pass over the examples."""
        margins = self.margins(w, precise=True)
        return LowestMargins(w, self.rows.group_min(margins), margins)

    def distribution(self, w: Vector) -> Distribution:
        """The distribution over the rows that is published for a vector."""
        return distribution_of(self, w)

    def fingerprints(self) -> Array | None:
        """A number for each example, see ``Certifiable``."""
        return None

    @cached_property
    def meeting(self) -> Vector | None:
        """Two rows that cancel, see ``meeting_rows``; the first call takes a pass."""
        return meeting_rows(self)

    # The same problem with slack, or with another one.

    def converted(self, w: AnyPredictor, radius: float) -> AnyPredictor:
        """A vector of the problem with another C, whose radius is given, in the units of this."""
        t = self.radius / radius
        return type(w)(self._converted(w.image, t), t**2 * w.coef)

    @abstractmethod
    def _converted(self, image: Array, t: float) -> Array:
        """An image in units of a radius that is larger by the factor t."""

    @abstractmethod
    def with_C(self, C: float) -> KernelMatrixAdapter:  # noqa: N802 - the parameter's name
        """The problem with another C and the radius that it has there; nothing is measured anew."""

    def softened(self, C: float) -> Self:
        """The problem with a soft margin: the same data, centre, radius and counters.

        Vectors mean the same in both. The radius is that of the hard margin; so C should be
        large against ``1 / radius**2``, for the slack coordinates to be short beside it.
        """
        return self._rescaled(self._scale.softened(C, self.rows))

    def frame_of(self, examples: Array) -> Scale:
        """The units of the problem of some examples that are given in units of the radius."""
        return self._scale.restrict(examples)

    def _rescaled(self, scale: Scale) -> Self:
        """A copy with another scale and squared slack; what a subclass computes stays as it is."""
        other = copy(self)
        other._scale, other.C, other.radius, other.models = scale, scale.C, scale.radius, {}
        other._slack, other.caps = other._slack_of_rows(), None
        for name in ("_layout", "meeting"):  # rows as plain arrays, which hold the slack
            vars(other).pop(name, None)
        return other

    @property
    def loss(self) -> str:
        """What slack costs: ``"squared_hinge"`` or, with caps on weights, ``"hinge"``."""
        return "squared_hinge" if self.caps is None else "hinge"

    def with_hinge_loss(self) -> KernelMatrixAdapter:
        """The problem in which slack costs C times its size, and not times its square.

        Rows then have no extra coordinates; instead, their weights are capped. The radius stays,
        so that it includes the coordinate that the other loss would give the rows. Without a soft
        margin, both losses are one.
        """
        if self._slack is None:
            return self
        return self.below(HingeCaps.of(self.rows, self._slack))

    @property
    def signs(self) -> Array | None:
        """Signs that the coefficients of the features must have; None: any."""
        return self._norm.signs

    @property
    def nu(self) -> float | None:
        """Share of the examples whose mean margin is maximised; None: it is no such problem."""
        return None if self.caps is None else self.caps.nu

    def below(self, caps: Caps) -> Self:
        """The problem without slack, and with weights that are at most these."""
        capped = self._rescaled(replace(self._scale, slack=None))
        capped.caps = caps
        return capped

    # Counters, and known defects of the data.

    def flaw(self) -> str:
        """A known defect of the data that makes margins meaningless, with advice; else empty."""
        return ""
