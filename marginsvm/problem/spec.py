"""The problem that an estimator's parameters name: a fit solves it, and a check reads it again."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

_LINEAR_LOSSES = ("hinge", "epsilon_insensitive")  # others price the square of slack


@dataclass(frozen=True)
class ProblemSpec:
    """What is to be solved, and how far, apart from the data; few estimators have all of these.

    Attributes
    ----------
    C : float
        Infinite: a hard margin.
    loss : str
        What slack costs.
    nu : float or None
        Share of the examples whose mean margin is maximised.
    p : float or str
        Norm of predictors.
    kernel : str or callable
    normalize, fit_intercept : bool
    intercept_scaling : float or None
        Value of the constant feature that makes the intercept a coefficient like any other.
    monotonic_cst : array-like, dict or None
        Signs that coefficients must have.
    tol : float
        Gap at which a fit ends (dimensionless).
    max_iter : int
        Rounds of a fit, at most.
    cache_size : float
        Memory for kernel values (MB).

    Examples
    --------
    >>> from marginsvm import MaxMarginClassifier
    >>> from marginsvm.problem.spec import ProblemSpec
    >>> spec = ProblemSpec.of(MaxMarginClassifier(C=2.0, loss="hinge"))
    >>> spec.C, spec.is_soft, spec.slack_is_linear, spec.intercept_is_free
    (2.0, True, True, True)
    """

    C: float = np.inf
    loss: str = "squared_hinge"
    nu: float | None = None
    p: float | str = 2.0
    kernel: Any = "linear"
    normalize: bool = False
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    monotonic_cst: Any = None
    tol: float = 0.0
    max_iter: int = 0
    cache_size: float = np.inf

    @classmethod
    def of(cls, estimator: Any) -> ProblemSpec:
        """The problem of an estimator; what it has no parameter for is as by default."""
        read: dict[str, Any] = {f.name: getattr(estimator, f.name, f.default) for f in fields(cls)}
        return cls(**read)

    @property
    def is_soft(self) -> bool:
        """Whether C makes the margin a soft one."""
        return bool(np.isfinite(self.C))

    @property
    def slack_is_linear(self) -> bool:
        """Whether slack costs its size, and not its square."""
        return self.loss in _LINEAR_LOSSES

    @property
    def constant(self) -> float:
        """The constant feature of a penalised intercept; 0: there is none."""
        return (self.intercept_scaling or 0.0) if self.fit_intercept else 0.0

    @property
    def intercept_is_free(self) -> bool:
        """Whether the intercept is not penalised, so that weights on the rows must balance.

        Normalised examples get a constant feature before they are divided by their norms.
        """
        free = self.intercept_scaling is None and not self.normalize
        return bool(self.fit_intercept) and free

    @property
    def outputs_are_apart(self) -> bool:
        """Whether a regression's outputs are problems of their own: those of the exact solver."""
        return self.intercept_scaling is None
