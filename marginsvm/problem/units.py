"""The radius of a problem, the norm of its longest row, within the range of float64 and float32."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.design import Design
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.matrix import FLOAT32, Matrix

# Sizes (units of x) whose squares neither overflow nor vanish; and those of float32.
LARGEST_NORM = 1e152
LARGEST_FLOAT32 = 1e35


class NotFinite(ValueError):  # noqa: N818 - of examples
    """Examples that hold NaN or infinity, or that are too long for float64."""


def check_finite(squared: Array) -> None:
    """Refuse examples whose squared norms are not finite."""
    if not np.isfinite(squared.max()):
        raise NotFinite(
            "examples hold NaN or infinity, or their squared norms overflow float64: scale X"
        )


def largest_square(
    examples: FloatExamples, squared: Array, C: float, weights: Array, unit: float
) -> float:
    """Largest squared norm of an example, ridge included; sample weights above 1 count as 1.

    ``unit`` is the size of the examples before their mean was subtracted.

    Raises
    ------
    ValueError
        If it overflows or vanishes in float64, unless all examples are zero.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        longest = float((squared + 0.5 / (C * np.minimum(weights, 1.0))).max())
    short = longest < LARGEST_NORM**-2
    if short:
        entry = longest**0.5
        if isinstance(examples, Design):
            entry = unit + float(examples.spread.max())
        short = 0.0 < entry < 1 / LARGEST_NORM
    if short or not longest < LARGEST_NORM**2:
        raise ValueError(
            f"the squared norms of the examples (and 1 / 2C) come to {longest:.3g}, outside "
            f"the range of float64: scale X to entries between {1 / LARGEST_NORM:g} and "
            f"{LARGEST_NORM:g}, and C with the inverse of their squares"
        )
    return longest


def check_single(X: Matrix, radius: float) -> None:
    """Refuse a radius by which numbers of float32 cannot be divided."""
    single = X.dtype == FLOAT32 and X.factor is None
    if single and radius * LARGEST_FLOAT32 < 1.0:
        raise ValueError(
            f"the longest row has the norm {radius:.3g}, by which numbers of float32 "
            "cannot be divided: scale X, or pass it as float64"
        )
