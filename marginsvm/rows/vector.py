"""Vectors: non-negative combinations of rows, together with their coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """``A^T c`` together with its coefficients c.

    Both parts are linear in c. So vectors are added and scaled as in the formulas of papers, and
    the coefficients, which prove the upper bound, are added and scaled with them.

    Attributes
    ----------
    image : ndarray
        ``A^T c`` in feature space; with a kernel, its scores on all examples.
    coef : ndarray
        Coefficients c: one for each row or, where the examples are on other machines, one for
        each best response so far, of which the vector is a combination.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.rows.vector import Vector
    >>> a, b = (Vector(row, row) for row in np.eye(2))
    >>> 0.5 * (a + b)
    Vector(image=array([0.5, 0.5]), coef=array([0.5, 0.5]))
    """

    __array_ufunc__ = None  # so that NumPy leaves the product of a number and a vector to __rmul__

    image: Array
    coef: Array

    @property
    def mass(self) -> float:
        """Sum of the coefficients (dimensionless)."""
        return float(self.coef.sum())

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.image + other.image, self.coef + other.coef)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.image - other.image, self.coef - other.coef)

    def __mul__(self, factor: float) -> Vector:
        return Vector(factor * self.image, factor * self.coef)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Vector:
        return Vector(self.image / divisor, self.coef / divisor)

    def copy(self) -> Vector:
        """Copy with new arrays, for loops that change coordinates in place."""
        return Vector(self.image.copy(), self.coef.copy())

    def has_shape_of(self, other: Vector) -> bool:
        """Whether the two may be added."""
        return self.image.shape == other.image.shape and self.coef.shape == other.coef.shape

    def largest_entry(self) -> float:
        """Largest absolute value in both parts."""
        return max(float(np.abs(part).max(initial=0.0)) for part in (self.image, self.coef))
