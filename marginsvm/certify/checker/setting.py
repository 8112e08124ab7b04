"""What rows are made from, whether they are vectors of features or live in a kernel's space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginsvm.certify.checker.examples import Examples
from marginsvm.certify.checker.numbers import Numbers


@dataclass(frozen=True)
class Setting:
    """A fitted estimator, the examples that it was given, and the numbers to compute in."""

    estimator: Any
    examples: Examples
    numbers: Numbers

    @property
    def constant(self) -> float:
        """Value of a feature that all examples share; 0: there is none.

        It makes the intercept a coefficient like any other: in normalised rows, and where an
        ``intercept_scaling`` says that the intercept is penalised.
        """
        estimator = self.estimator
        if not estimator.fit_intercept:
            return 0.0
        return estimator.constant_ if estimator.normalize else estimator.intercept_scaling or 0.0

    @property
    def free_intercept(self) -> bool:
        """Whether predictors have an intercept that their norm does not count."""
        return bool(self.estimator.fit_intercept) and self.constant == 0.0

    @cached_property
    def shares(self) -> NDArray:
        """Weights of the examples in their mean."""
        weight = self.numbers.array(self.examples.weight)
        return np.asarray(weight / weight.sum())
