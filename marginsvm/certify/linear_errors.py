"""Error bounds for the computed norms and margins of linear predictors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from marginsvm._rounding import (
    EXTENDED_TERMS,
    FEW,
    LONG,
    PAIRWISE,
    UNIT,
    Extended,
    chained,
    extended,
    summed,
)
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Distribution
from marginsvm.certify.tolerances import VANISHING, WORTH_A_PASS
from marginsvm.rows import LpNorm, Predictor, Rows, support_of


class Features(Protocol):
    """What the error model needs of examples that have features."""

    @property
    def mean_before_products(self) -> bool:
        """Whether sums over examples are of examples about the mean: then it costs no digits."""
        ...

    @property
    def chain(self) -> int:
        """Examples, at most, that one chain of such a sum adds up."""
        ...

    @property
    def extent(self) -> tuple[Array, Array] | None:
        """For each feature, its largest distance from the mean, and the error due to the mean.

        Both are in radii; it takes a pass to compute them. None: they are not needed, as no
        feature is longer than its example.
        """
        ...

    @property
    def extended_terms(self) -> int:
        """Terms, at most, of sums over examples in extended precision."""
        ...

    def extended_image(self, few: Array, V: Array, features: Array) -> Array:
        """Features of the image of coefficients V on a few examples, in extended precision."""
        ...


@dataclass(frozen=True)
class LinearErrors:
    """Rounding errors of sums over features, which may have different units, and over examples.

    See :class:`marginsvm.certify.certifiable.ErrorModel`; lengths are in radii.

    Attributes
    ----------
    features : Features
    rows : Rows
    norm : LpNorm
        The norm of predictors.
    width : int
        Number of features, including the constant one.
    reach : float
        Largest norm of an example with the mean subtracted, plus an allowance for the rounding of
        that subtraction.
    row_error : float
        Error of the examples themselves, such as dividing them by their norms causes.
    centre_is_far : bool
        Whether the mean is so far from 0 that it is subtracted from each example, rather than
        from sums of examples.
    dense : bool
        Whether sums are computed in short chains, as for a dense matrix in memory.
    rounding_rtol : float
    """

    features: Features
    rows: Rows
    norm: LpNorm
    width: int
    reach: float
    row_error: float
    centre_is_far: bool
    dense: bool
    rounding_rtol: float
    resolution = 0.0  # the error model includes all rounding
    vanishing = VANISHING
    farthest = 1.0  # in radii: the radius is measured from the mean, the origin of images

    def predictor_norm(self, vector: Predictor) -> float:
        return self.norm.length(self.norm.mirror(vector.image).ravel()) * (1.0 + PAIRWISE)

    def published_norm(self, vector: Predictor) -> float:
        return self.predictor_norm(vector)

    def proof_norm(self, proof: Distribution, slack: float = 0.0) -> float:
        image, q, moved = proof.image, proof.weights(), proof.moved
        few, norm = support_of(q), self.norm.of_vector(image)
        chain = self.features.chain
        sums = (chained(len(q), chain) if self.dense else UNIT * (few.size + 8)) + FEW
        terms = few.size * self.width
        quick = terms <= EXTENDED_TERMS
        cheap = quick or terms * (q.size // len(q)) <= self.features.extended_terms
        enough = (1.0 if quick else WORTH_A_PASS) * self.rounding_rtol
        # how much of the mean is in the terms of the sums, and how long these are
        offset, reach = (0.0, 1.0) if self.features.mean_before_products else (1.0, self.reach)
        whole = np.hypot(norm, slack)
        if cheap and (sums + moved) * reach > enough * whole:
            image = self._extended(q, few, np.arange(self.width))
            norm = self.norm.of_vector(image)
            sums, offset, moved = extended(few.size), 0.0, 0.0
        coarse = (sums + moved) * reach
        length = norm + coarse
        extent = self.features.extent if coarse > self.rounding_rtol * whole else None
        if extent is not None:
            weight, spread = np.abs(self.rows.adjoint(q)).sum(axis=0), extent[0]
            error = np.multiply.outer(sums * weight + moved, spread + offset * extent[1])
            if not cheap:  # those in large units, at least
                order = np.argsort(-error.reshape(-1, self.width).max(axis=0))
                some, image = np.sort(order[: EXTENDED_TERMS // few.size]), image.copy()
                image[..., some] = self._extended(q, few, some)
                error[..., some] = np.multiply.outer(extended(few.size) * weight, spread[some])
            length = min(length, self.norm.of_vector(image, error))
        return length * (1.0 + PAIRWISE) + self.row_error

    def _extended(self, q: Array, few: Array, features: Array) -> Array:
        """Features of the image of weights q, few of which are not 0."""

        def of(some: Array) -> Array:
            V = self.rows[some].adjoint(q[some].astype(Extended))
            return self.features.extended_image(some, V, features)

        size = max(1, EXTENDED_TERMS // len(features))
        parts = (of(few[i : i + size]) for i in range(0, max(1, len(few)), size))
        return np.asarray(summed(parts), np.float64)

    def margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        sums = self._of_features
        # where the mean is far, the intercept is a sum of its own
        late = UNIT * (self.width + 8) + sums if self.centre_is_far else sums
        return self._of_sums(vector, norm, wanted, sums + FEW, late + 2.0 * FEW)

    def extended_margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        sums = 2.0 * extended(self.width)
        return self._of_sums(vector, norm, wanted, sums, sums)

    def published_margin_error(self, vector: Predictor, norm: float) -> float:
        # what a far mean adds is rounded once, as the intercept is
        return self._of_sums(vector, norm, 0.0, self._of_features + FEW, 0.0)

    @property
    def _of_features(self) -> float:
        """Relative error of a sum over the features."""
        return chained(self.width, LONG) if self.dense else UNIT * (self.width + 8)

    def _of_sums(
        self, vector: Predictor, norm: float, wanted: float, inner: float, outer: float
    ) -> float:
        """Error of margins: ``inner`` of sums of centred terms, ``outer`` of the mean's part."""
        offset = 0.5 * (self.reach - 1.0)  # of the mean
        error = (inner + outer * offset + self.row_error) * norm
        extent = self.features.extent if error > wanted else None
        if extent is not None:
            W = np.abs(self.norm.mirror(vector.image)).reshape(-1, self.width).max(axis=0)
            spread, late = extent
            terms = inner * float(W @ spread) + 0.5 * outer * float(W @ late)
            error = min(error, self.rows.unit * (1.0 + PAIRWISE) * terms)
        return error


@dataclass(frozen=True)
class LazyErrors(LinearErrors):
    """The same where the examples are on other machines.

    Errors of predictors are as in :class:`LinearErrors`, those of proofs as sums over all examples.
    A closer bound for proofs would need the single weights, and with them one more pass.
    """

    def proof_norm(self, proof: Distribution, slack: float = 0.0) -> float:
        length = self.norm.of_vector(proof.image) * (1.0 + PAIRWISE)
        sums = UNIT * (self.rows.n_examples + 8) * (self.reach + 3.0)
        return length + sums + self.row_error
