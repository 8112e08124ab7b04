"""Regressions of counts with a log link: Poisson, and negative binomial of a given dispersion.

An example x = (1, features) has the row -x if its count is 0; else x, as an equality.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.separability.design import Design, times
from marginsvm.separability.family import Data, Family
from marginsvm.separability.reading import nonnegative


class Counts(Family):
    """Of counts, zero or not."""

    def outcomes(self, y: Any) -> Array:
        if np.ndim(y) == 2:
            raise ValueError(f"counts must have one dimension, but y has the shape {np.shape(y)}")
        return nonnegative(y)

    def design(self, data: Data) -> Design:
        (X, names), positive = data.columns(), data.y > 0
        A = times(X, np.where(positive, 1.0, -1.0))
        return Design(A, positive, data.example, np.zeros(len(positive), int), names)


POISSON = Counts("poisson", "brglm2 in R")
NEGATIVE_BINOMIAL = Counts("negative_binomial", "brglm2 in R")
