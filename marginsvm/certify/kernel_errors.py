"""Error bounds for the computed norms and margins of kernel predictors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import (
    EXTENDED_TERMS,
    EXTENDED_TERMS_OF_ALL,
    FEW,
    PAIRWISE,
    Extended,
    chained,
    extended,
)
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Distribution
from marginsvm.certify.tolerances import KERNEL_RESOLUTION, KERNEL_VANISHING, WORTH_A_PASS
from marginsvm.rows import Predictor, Rows, support_of


@dataclass(frozen=True)
class KernelErrors:
    """Rounding of sums of kernel values; norms are square roots of sums that cancel.

    See :class:`marginsvm.certify.certifiable.ErrorModel`; lengths are in radii.

    Attributes
    ----------
    extended_square : callable
        Its arguments are the indices of few examples and extended coefficients V on them, one line
        an example; the result is ``V' K V``, in extended precision.
    rows : Rows
    radius : float
    highest : float
        Largest kernel value, in units of the radius squared.
    value_error : float
        Relative error of kernel values, such as dividing examples by their norms causes.
    unit_error : float
        Relative rounding error of kernel values computed by this package; 0: they were given.
    rounding_rtol : float
    """

    extended_square: Callable[[Array, Array], float]
    rows: Rows
    radius: float
    highest: float
    value_error: float
    unit_error: float
    rounding_rtol: float
    resolution = KERNEL_RESOLUTION
    vanishing = KERNEL_VANISHING

    @property
    def farthest(self) -> float:
        return float(np.sqrt(1.0 + self.highest))  # the mean is not subtracted from images

    def predictor_norm(self, vector: Predictor) -> float:
        V = self.rows.adjoint(vector.coef)
        return self._length(V, vector.image, self._of_scores(V))

    def proof_norm(self, proof: Distribution) -> float:
        V = self.rows.adjoint(proof.weights().astype(Extended))
        off = self._of_scores(V) + 4.0 * proof.moved * self.highest
        return max(self._length(V, proof.image, off), self._finest)

    def _length(self, V: Array, image: Array, off: float) -> float:
        """Upper bound on the norm of coefficients V, given their image and its error.

        The image is computed in extended precision where that error would cost too much.
        """
        few, mass = support_of(V), float(np.abs(V).sum())
        squared, error = float(np.sum(V * image)), off * mass**2
        terms = few.size**2
        enough = (1.0 if terms <= EXTENDED_TERMS else WORTH_A_PASS) * self.rounding_rtol
        if error <= enough * squared or terms > EXTENDED_TERMS_OF_ALL:
            return _root(squared, error)
        squared = float(self.extended_square(few, V[few].astype(Extended)))
        error = (4.0 * extended(few.size) + self.value_error) * self.highest
        return _root(squared / self.radius**2, error * mass**2)

    def margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        V = self.rows.adjoint(vector.coef)
        return 2.0 * self._of_scores(V) * float(np.abs(V).sum())

    def extended_margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        V = self.rows.adjoint(vector.coef)
        sums = (extended(len(support_of(V))) + self.value_error) * self.highest
        return sums * float(np.abs(V).sum())

    def published_margin_error(self, vector: Predictor, norm: float) -> float:
        return self.extended_margin_error(vector, norm, 0.0)

    def _of_scores(self, V: Array) -> float:
        """Rounding error of scores for each unit of weight, beside that of the kernel values."""
        return (2.0 * chained(len(V)) + FEW + self.value_error) * self.highest

    @property
    def _finest(self) -> float:
        """Norm below which kernel values computed by this package are all rounding."""
        return float(np.sqrt(16.0 * self.unit_error * self.highest))


def _root(squared: float, error: float) -> float:
    """Upper bound on a square root, where the square has at most this error."""
    return float(np.sqrt(max(squared, 0.0) + error)) * (1.0 + PAIRWISE)
