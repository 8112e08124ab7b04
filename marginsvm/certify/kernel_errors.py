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
    kernel_error : float
        Error of the kernel values themselves, relative to the highest.
    extended_values : int
        How many values are computed in extended precision, where sums are.
    unit_error : float
        Relative rounding error of kernel values computed by this package; 0: they were given.
    rounding_rtol : float
    """

    extended_square: Callable[[Array, Array], float]
    rows: Rows
    radius: float
    highest: float
    value_error: float
    kernel_error: float
    extended_values: int
    unit_error: float
    rounding_rtol: float
    resolution = KERNEL_RESOLUTION
    vanishing = KERNEL_VANISHING

    @property
    def farthest(self) -> float:
        return float(np.sqrt(1.0 + self.highest))  # the mean is not subtracted from images

    def predictor_norm(self, vector: Predictor) -> float:
        V = self.rows.adjoint(vector.coef)
        return _root(*self._squared(V, vector.image, self._of_scores(V)))

    def published_norm(self, vector: Predictor) -> float:
        V = self.rows.adjoint(vector.coef)
        squared, error = self._squared(V, vector.image, self._of_scores(V))
        few = support_of(V)
        if not self._costs_too_much(error, squared, few):
            return _root(squared, error)
        rounded = FEW * float(np.abs(V).sum() * np.sqrt(self.highest))  # of the numbers themselves
        return self._extended_length(few, V[few].astype(Extended)) + rounded

    def proof_norm(self, proof: Distribution, slack: float = 0.0) -> float:
        q = proof.weights()
        V, few = self.rows.adjoint(q), support_of(q)
        off = self._of_scores(V) + 4.0 * proof.moved * self.highest
        squared, error = self._squared(V, proof.image, off)
        if not self._costs_too_much(error, squared + slack**2, few):
            return max(_root(squared, error), self._finest)
        V = self.rows[few].adjoint(q[few].astype(Extended))
        return max(self._extended_length(few, V), self._finest)

    def _squared(self, V: Array, image: Array, off: float) -> tuple[float, float]:
        """Square of a norm in float64, and its error, given that of scores for a unit of weight."""
        return float(np.sum(V * image)), off * float(np.abs(V).sum() ** 2)

    def _costs_too_much(self, error: float, squared: float, few: Array) -> bool:
        """Whether that error is worth a sum in extended precision, which does not take too long."""
        terms = few.size**2
        enough = (1.0 if terms <= EXTENDED_TERMS else WORTH_A_PASS) * self.rounding_rtol
        return error > enough * squared and terms <= EXTENDED_TERMS_OF_ALL

    def _extended_length(self, few: Array, V: Array) -> float:
        """Upper bound on the norm of extended coefficients on few examples."""
        squared = float(self.extended_square(few, V)) / self.radius**2
        error = (4.0 * extended(few.size) + self._of_values(few.size**2)) * self.highest
        return _root(squared, error * float(np.abs(V).sum() ** 2))

    def margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        V = self.rows.adjoint(vector.coef)
        return 2.0 * self._of_scores(V) * float(np.abs(V).sum())

    def extended_margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        return self._of_extended_scores(vector, EXTENDED_TERMS)  # of few margins

    def published_margin_error(self, vector: Predictor, norm: float) -> float:
        few = len(support_of(self.rows.adjoint(vector.coef)))
        return self._of_extended_scores(vector, self.rows.n_examples * few)

    def _of_extended_scores(self, vector: Predictor, n_values: int) -> float:
        V = self.rows.adjoint(vector.coef)
        sums = (extended(len(support_of(V))) + self._of_values(n_values)) * self.highest
        return sums * float(np.abs(V).sum())

    def _of_scores(self, V: Array) -> float:
        """Error of scores for each unit of weight."""
        of_values = self.value_error + self.kernel_error
        return (2.0 * chained(len(V)) + FEW + of_values) * self.highest

    def _of_values(self, n: int) -> float:
        """Error of as many kernel values, relative to the highest, in extended sums."""
        few = n <= self.extended_values
        digits = float(np.finfo(Extended).eps / np.finfo(np.float64).eps) if few else 1.0
        return self.value_error + digits * self.kernel_error

    @property
    def _finest(self) -> float:
        """Norm below which kernel values computed by this package are all rounding."""
        return float(np.sqrt(16.0 * self.unit_error * self.highest))


def _root(squared: float, error: float) -> float:
    """Upper bound on a square root, where the square has at most this error."""
    return float(np.sqrt(max(squared, 0.0) + error)) * (1.0 + PAIRWISE)
