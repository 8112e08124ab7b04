"""When a fit ends, and what its end is called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm.certify.certificate import relative_gap
from marginsvm.certify.tolerances import GAP_ROUNDING, NOISE
from marginsvm.fit.progress import ConfirmedBounds, Progress
from marginsvm.kernel_matrix import KernelMatrixAdapter


@dataclass(frozen=True)
class Stopping:
    """When a fit ends.

    Attributes
    ----------
    goal : {"gap", "separation", "rounds"}
        The relative gap ``tol``, any separator of the examples, or nothing but ``max_iter``.
    tol : float
        Relative gap between the certified bounds (dimensionless).
    max_iter : int
        Rounds in all.
    negligible : float or None
        Upper bound (in radii) at which a fit without a separator gives up; None: where exact
        weights that prove 0 may be near, which depends on the problem.
    patience : int or None
        Rounds without closer bounds after which a fit has stalled. Such a fit also goes on where
        its bound is negligible but proves nothing, as later rounds may. None: it never stalls.
    """

    goal: str = "gap"
    tol: float = 1e-3
    max_iter: int = 10_000
    negligible: float | None = None
    patience: int | None = None

    def promised(self, problem: KernelMatrixAdapter, progress: Progress) -> str | None:
        """Name the reason to stop that the rounds' own bounds promise, if there is one."""
        lower = progress.lower if progress.lower > NOISE else 0.0
        return self._status(problem, lower, progress.upper, separates=True)

    def confirmed(
        self, problem: KernelMatrixAdapter, progress: Progress, bounds: ConfirmedBounds
    ) -> str | None:
        """Name the reason to stop that confirmed bounds give, if there is one."""
        separates = bounds.predictor.separates
        status = self._status(problem, bounds.lower, bounds.upper, separates=separates)
        stalled = self.stalled(progress)
        if status == "no_margin" and not bounds.overlap and self.patience is not None:
            at_the_end = stalled or progress.settled or progress.n_iter >= self.max_iter
            return status if at_the_end else None
        return status or ("stalled" if stalled else None)

    def stalled(self, progress: Progress) -> bool:
        """Whether more rounds are in vain."""
        return self.tol > 0 and progress.stalled(self.patience)

    def _status(
        self, problem: KernelMatrixAdapter, lower: float, upper: float, *, separates: bool
    ) -> str | None:
        """Name the reason to stop at these bounds.

        A soft margin is positive whether or not the examples themselves are separated;
        ``separates`` says so where it has been looked at.
        """
        if self.goal == "rounds":
            return None
        positive = lower > problem.errors.resolution
        if self.goal == "separation" and positive and separates:
            return "separated"
        if positive and relative_gap(lower, upper) + GAP_ROUNDING <= self.tol:
            return "certified"
        negligible = problem.errors.vanishing if self.negligible is None else self.negligible
        if not positive and upper <= negligible and np.isinf(problem.C):
            return "no_margin"
        return None
