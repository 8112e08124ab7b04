"""Error bounds for the computed norms and margins of kernel predictors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import EXTENDED_TERMS, FEW, PAIRWISE, Extended, chained, extended
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Distribution
from marginsvm.certify.tolerances import KERNEL_RESOLUTION, KERNEL_VANISHING
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
        return _root(np.sum(V * vector.image), self._of_scores(V) * np.abs(V).sum() ** 2)

    def proof_norm(self, proof: Distribution) -> float:
        q = proof.weights()
        V, few = self.rows.adjoint(q), support_of(q)
        off = self._of_scores(V) + 4.0 * proof.moved * self.highest
        squared, error = np.sum(V * proof.image), off * np.abs(V).sum() ** 2
        if error <= self.rounding_rtol * squared or few.size**2 > EXTENDED_TERMS:
            return max(_root(squared, error), self._finest)
        squared = self.extended_square(few, self.rows.adjoint(q.astype(Extended))[few])
        error = (4.0 * extended(few.size) + self.value_error) * self.highest
        return max(_root(squared / self.radius**2, error), self._finest)

    def margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        V = self.rows.adjoint(vector.coef)
        return 2.0 * self._of_scores(V) * float(np.abs(V).sum())

    def extended_margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        V = self.rows.adjoint(vector.coef)
        sums = (extended(len(support_of(V))) + self.value_error) * self.highest
        return sums * float(np.abs(V).sum())

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
