"""The parameters of estimators that say which problem they solve, and how precisely."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

LINEAR_LOSSES = ("hinge", "epsilon_insensitive")  # the other losses are squared


@dataclass(frozen=True)
class ProblemSpec:
    """Parameters of a problem and its tolerances; few estimators have all of them.

    Attributes
    ----------
    C : float
        Infinite: a hard margin.
    loss : str
    nu : float or None
        Share of the examples whose mean margin is maximised.
    p : float or str
        Norm of predictors.
    kernel : str or callable
    gamma, degree, coef0, kernel_params
        Parameters of the kernel.
    class_weight : dict, "balanced" or None
    epsilon : float
        Half the width of a tube.
    normalize, fit_intercept : bool
    intercept_scaling : float or None
        Value of the constant feature that makes the intercept a coefficient like any other.
    monotonic_cst : array-like, dict or None
        Signs that coefficients must have.
    tol : float
        Gap at which a fit ends (dimensionless).
    max_iter : int
        Largest number of iterations of a fit.
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
    gamma: float | str = "scale"
    degree: float = 3
    coef0: float = 0.0
    kernel_params: dict[str, object] | None = None
    class_weight: Any = None
    epsilon: float = 0.0
    normalize: bool = False
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    monotonic_cst: Any = None
    tol: float = 0.0
    max_iter: int = 0
    cache_size: float = np.inf

    @classmethod
    def of(cls, estimator: Any) -> ProblemSpec:
        """The parameters of an estimator; others have their defaults."""
        read: dict[str, Any] = {
            f.name: getattr(estimator, f.name, f.default) for f in fields(cls)
        }
        return cls(**read)

    @property
    def is_soft(self) -> bool:
        """Whether C makes the margin a soft one."""
        return bool(np.isfinite(self.C))

    @property
    def slack_is_linear(self) -> bool:
        """Whether the loss is linear in the slack (hinge), not squared."""
        return self.loss in LINEAR_LOSSES

    @property
    def constant(self) -> float:
        """The constant feature of a penalised intercept; 0: there is none."""
        return (self.intercept_scaling or 0.0) if self.fit_intercept else 0.0

    @property
    def intercept_is_free(self) -> bool:
        """Whether the intercept is not penalised: ``F'alpha = g`` then constrains it.

        Normalised examples get a constant feature before they are divided by their norms.
        """
        free = self.intercept_scaling is None and not self.normalize
        return bool(self.fit_intercept) and free

    @property
    def outputs_are_apart(self) -> bool:
        """Whether each output of a regression is a problem by itself (exact solver)."""
        return self.intercept_scaling is None
