"""Predictors in feature space, and those among them that are combinations of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from marginsvm._typing import Array

AnyPredictor = TypeVar("AnyPredictor", bound="Predictor")


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """A predictor in feature space, which may be no combination of rows.

    Predictors are added and scaled as in the formulas of papers.

    Attributes
    ----------
    image : ndarray
        The predictor in feature space; with p other than 2, the vector whose mirror image it is
        (see :class:`marginsvm.problem.norms.LpNorm`); with a kernel, its scores on all examples.
    coef : ndarray
        The extra coordinates that a soft margin adds, one for each row, in which only that row
        has an entry: each divided by this entry, as in the coefficients of a combination of rows.
        With a kernel, the coefficients of the rows, of which every predictor is a combination.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.vector import Predictor
    >>> a, b = (Predictor(row, np.zeros(2)) for row in np.eye(2))
    >>> 0.5 * (a + b)
    Predictor(image=array([0.5, 0.5]), coef=array([0., 0.]))
    """

    __array_ufunc__ = None  # NumPy leaves the product of a number and a predictor to __rmul__

    image: Array
    coef: Array

    def __add__(self: AnyPredictor, other: AnyPredictor) -> AnyPredictor:
        return _kind(self, other)(self.image + other.image, self.coef + other.coef)

    def __sub__(self: AnyPredictor, other: AnyPredictor) -> AnyPredictor:
        return _kind(self, other)(self.image - other.image, self.coef - other.coef)

    def __mul__(self, factor: float) -> Self:
        return type(self)(factor * self.image, factor * self.coef)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Self:
        return type(self)(self.image / divisor, self.coef / divisor)

    def copy(self) -> Self:
        """Copy with new arrays, for loops that change coordinates in place."""
        return type(self)(self.image.copy(), self.coef.copy())

    def has_shape_of(self, other: Predictor) -> bool:
        """Whether the two may be added."""
        return self.image.shape == other.image.shape and self.coef.shape == other.coef.shape

    def largest_entry(self) -> float:
        """Largest absolute value in both parts."""
        return max(float(np.abs(part).max(initial=0.0)) for part in (self.image, self.coef))


@dataclass(frozen=True, slots=True, eq=False)
class Vector(Predictor):
    """``A^T c``, a combination of rows, together with its coefficients c.

    Both parts are linear in c. So sums and multiples of vectors come with their coefficients, which
    prove the upper bound.

    Attributes
    ----------
    image : ndarray
        ``A^T c`` in feature space; with a kernel, its scores on all examples.
    coef : ndarray
        Coefficients c, of either sign in regressions, else not negative: one for each row or, where
        the examples are on other machines, one for each best response so far, of which the vector
        is a combination.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.vector import Vector
    >>> a, b = (Vector(row, row) for row in np.eye(2))
    >>> 0.5 * (a + b)
    Vector(image=array([0.5, 0.5]), coef=array([0.5, 0.5]))
    """

    @property
    def mass(self) -> float:
        """Sum of the coefficients (dimensionless)."""
        return float(self.coef.sum())


def _kind(one: Predictor, other: Predictor) -> Any:
    """Type of a sum, which is a combination of rows only if both terms are."""
    return type(one) if isinstance(other, type(one)) else Predictor
