"""The certificate of a regression: how short a predictor that fits can be."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from marginsvm.certify.certificate import at_least, at_most
from marginsvm.certify.checker.claims import relative_gap


@dataclass(frozen=True)
class NormCertificate:
    """Bounds on the least norm of a predictor that fits, and what proves them.

    A predictor fits if each of its predictions on the training examples is in its interval.

    Attributes
    ----------
    norm : float
        Norm of the fitted predictor, at most; ``C < inf``: that of its slack included (units of y
        over those of X).
    norm_bound : float
        No predictor of a smaller norm fits (same units). inf: it is proved that none fits at all.
    widened_bound : float
        No predictor of a smaller norm has a violation of ``violation`` or less (same units). With
        ``C < inf``, slack makes up for the violation: it is equal to ``norm_bound``.
    violation : float
        Largest distance of a prediction from its interval, at most (units of y).
    status : str
        How the fit ended: ``certified``, ``infeasible``, ``max_iter`` or ``interrupted``.
    feasible : bool or None
        True: the predictor fits. False: it is proved that none fits. None: neither is known.
    weights : csr_array of shape (n_samples, n_outputs)
        Weights of either sign that prove both bounds. Their absolute values sum to 1.

    Examples
    --------
    >>> from marginsvm import DualLpRegressor
    >>> reg = DualLpRegressor(fit_intercept=False, random_state=0).fit([[3.0, 4.0]], [10.0])
    >>> print(reg.certificate_)
    certified: 1.99999 <= least norm, norm 2.00001, violation ..., feasible: None
    """

    norm: float
    norm_bound: float
    widened_bound: float
    violation: float
    status: str
    feasible: bool | None
    weights: sp.csr_array

    @property
    def gap(self) -> float:
        """Relative gap between ``widened_bound`` and ``norm``, from 0 to 1 (dimensionless).

        By this fraction of its norm, at most, the predictor is longer than the shortest one that
        violates the intervals by no more.
        """
        return relative_gap(self.widened_bound, self.norm)

    def outcome(self, max_iter: int, tol: float) -> str:
        """Describe the end of a fit that did not reach its goal, in a sentence.

        Parameters
        ----------
        max_iter : int
            Number of epochs that the fit was allowed.
        tol : float
            Relative gap that the fit was to reach (dimensionless).

        Returns
        -------
        str
        """
        if self.feasible is False:
            return (
                "proved that no predictor fits: weights near certificate_.weights have a "
                "combination of examples that is exactly zero, and a positive gain."
            )
        return (
            f"ended after max_iter={max_iter} epochs with a violation of {at_most(self.violation)} "
            f"and a relative gap of {self.gap:.3g}; tol={tol}. No predictor of a norm below "
            f"{at_least(self.norm_bound)} fits."
        )

    def __str__(self) -> str:
        return (
            f"{self.status}: {at_least(self.norm_bound)} <= least norm, norm {at_most(self.norm)}, "
            f"violation {at_most(self.violation, 3)}, feasible: {self.feasible}"
        )
