"""Predictors, combinations of rows, and best responses: what the steps of papers compute with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self, TypeVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.responses import Response, Weights

AnyPredictor = TypeVar("AnyPredictor", bound="Predictor")


# Nothing modifies these; but frozen dataclasses take as long to make as sums of few numbers.


@dataclass(eq=False)
class Predictor:
    """A predictor in feature space; it need not be a combination of rows.

    Predictors are added and scaled as in the formulas of papers.

    Attributes
    ----------
    image : ndarray
        The primal vector w in feature space; if p is not 2, the vector whose mirror image w is
        (see :class:`marginsvm.problem.norms.LpNorm`); with a kernel, its scores on all examples.
    coef : ndarray
        The ridge's coordinates of a soft margin, one for each row, divided by the row's entry
        there: for a combination of rows, its coefficients. With a kernel, the coefficients of the
        rows: every predictor is then a combination of them.
    start : ndarray or None
        Where the search for the best response may begin: the ``start`` of the response that is the
        last term of the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.vectors import Predictor
    >>> a, b = (Predictor(row, np.zeros(2)) for row in np.eye(2))
    >>> 0.5 * (a + b)
    Predictor(image=array([0.5, 0.5]), coef=array([0., 0.]))
    """

    # NumPy leaves the product of a number and a predictor to __rmul__
    __array_ufunc__ = None

    image: Array
    coef: Array
    start: Array | None = field(default=None, repr=False)

    def __setstate__(self, state: dict[str, object] | list[object]) -> None:
        """Read what 1.0.0rc1 wrote, too: a list."""
        if isinstance(state, list):
            state = dict(zip(("image", "coef"), state, strict=True))
        vars(self).update(state)

    def __add__(self: AnyPredictor, other: AnyPredictor) -> AnyPredictor:
        return _sum(self, other, self.image + other.image, self.coef + other.coef)

    def __sub__(self: AnyPredictor, other: AnyPredictor) -> AnyPredictor:
        return _sum(self, other, self.image - other.image, self.coef - other.coef)

    def __mul__(self, factor: float) -> Self:
        return type(self)(factor * self.image, factor * self.coef, self.start)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Self:
        return type(self)(self.image / divisor, self.coef / divisor, self.start)

    def copy(self) -> Self:
        """Copy with new arrays, for loops that change coordinates in place."""
        return type(self)(self.image.copy(), self.coef.copy(), self.start)

    def has_shape_of(self, other: Predictor) -> bool:
        """Whether the two may be added."""
        return (
            self.image.shape == other.image.shape
            and self.coef.shape == other.coef.shape
        )

    def largest_entry(self) -> float:
        """Largest absolute value in both parts."""
        return max(
            float(np.abs(part).max(initial=0.0)) for part in (self.image, self.coef)
        )


@dataclass(eq=False)
class Vector(Predictor):
    """``A^T c``, a combination of rows, together with its coefficients c (dual variables).

    Both parts are linear in c, so that sums and multiples of vectors keep their coefficients; these
    prove the upper bound.

    Attributes
    ----------
    image : ndarray
        The primal vector ``A^T c``, in feature space; with a kernel, its scores on all examples.
    coef : ndarray
        Coefficients c, of either sign in regressions, else non-negative: one for each row. Where
        the examples are on other machines: one for each best response so far.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.vectors import Vector
    >>> a, b = (Vector(row, row) for row in np.eye(2))
    >>> 0.5 * (a + b)
    Vector(image=array([0.5, 0.5]), coef=array([0.5, 0.5]))
    """

    @property
    def mass(self) -> float:
        """Sum of the coefficients (dimensionless)."""
        return float(self.coef.sum())


def _sum(
    one: AnyPredictor, other: AnyPredictor, image: Array, coef: Array
) -> AnyPredictor:
    """A sum is a combination of rows only if both terms are; its start is the last term's."""
    kind: type = type(one) if isinstance(other, type(one)) else Predictor
    return kind(image, coef, one.start if other.start is None else other.start)


@dataclass(eq=False)
class BestResponse:
    """The best response to a predictor: a distribution q, and ``vector = A^T q``."""

    vector: Vector
    weights: Weights


AnyResponse = TypeVar("AnyResponse", bound=Response)


def from_the_start(response: AnyResponse, w: Predictor) -> AnyResponse:
    """The response, searched for from the start that the predictor has."""
    if w.start is None or not hasattr(response, "near"):
        return response
    found: AnyResponse = response.near(w.start)
    return found


def responded(vector: Vector, weights: Weights) -> BestResponse:
    """The best response, whose vector keeps the start for the next one."""
    if weights.start is not None:
        vector = Vector(vector.image, vector.coef, weights.start)
    return BestResponse(vector, weights)
