"""When a fit ends, and with which status."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm.certificate.certificate import relative_gap
from marginsvm.fit.confirm import WORTH_A_PROOF, vanishing
from marginsvm.fit.progress import Confirmed, Progress
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.rows import OutputRows

# A margin (in radii) that rounds may find although there is none: a few roundings of 1.
NOISE = 1e-14
# Rounding of a relative gap: ``tol=0`` plays all rounds even where bounds happen to be equal.
GAP_ROUNDING = 1e-15
# Upper bound (in radii) at which a search for a separator is given up: that of a thinner margin
# would take 1e12 mistakes of a perceptron to find.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Stopping:
    """When a fit ends.

    Attributes
    ----------
    goal : {"gap", "separation", "rounds"}
        What ends the fit: the relative gap ``tol``, any separator of the examples, or nothing
        but ``max_iter``.
    tol : float
        Relative gap between the certified bounds (dimensionless).
    max_iter : int
        Number of rounds, those of a resumed fit included.
    negligible : float or None
        Upper bound (in radii) at which a fit without a separator gives up. Before, from 1e-2 on
        (a fit to a separator: from ``tol`` on), it looks now and then for a proof that nothing
        separates. None: a fit looks for a proof once the bound is below the threshold of the
        problem's error model (``vanishing``), and without one goes on as long as it can.
    """

    goal: str = "gap"
    tol: float = 1e-3
    max_iter: int = 10_000
    negligible: float | None = None

    def promised(self, problem: KernelMatrixAdapter, progress: Progress) -> str | None:
        """Name the reason to stop according to the bounds of rounds, if there is one."""
        if progress.error is not None:
            return "infeasible" if progress.upper == 0.0 else self._status_of_error(progress.error)
        lower = progress.lower if progress.lower > NOISE else 0.0
        if self.negligible is None:
            small = vanishing(problem)
        else:
            wanted = WORTH_A_PROOF if self.goal == "gap" else min(self.tol, WORTH_A_PROOF)
            small = max(self.negligible, wanted) if self.tol > 0 else self.negligible
        return self._status(problem, lower, progress.upper, small, separates=True)

    def confirmed(
        self, problem: KernelMatrixAdapter, progress: Progress, bounds: Confirmed
    ) -> str | None:
        """Name the reason to stop according to proved bounds, if there is one."""
        if isinstance(problem.rows, OutputRows):
            if bounds.refuted:
                return "infeasible"
            return self._status_of_error(bounds.error(problem.rows.farthest))
        at_the_end = progress.settled or progress.n_iter >= self.max_iter
        small = vanishing(problem) if self.negligible is None else self.negligible
        if bounds.refuted:
            small = np.inf
            if self.tol == 0 and not at_the_end:
                return None  # all rounds are played, those of a fit that goes on, too
        separates = bounds.separates
        status = self._status(problem, bounds.lower, bounds.upper, small, separates=separates)
        proved = bounds.refuted or self.negligible is not None or at_the_end
        return None if status == "no_margin" and not proved else status

    def _status_of_error(self, error: float) -> str | None:
        """Name the reason to stop where scores are to lie in intervals."""
        return "certified" if error + GAP_ROUNDING <= self.tol else None

    def _status(
        self,
        problem: KernelMatrixAdapter,
        lower: float,
        upper: float,
        negligible: float,
        *,
        separates: bool,
    ) -> str | None:
        """Name the reason to stop at these bounds.

        A soft margin is positive whether or not the predictor separates the examples themselves;
        ``separates`` says whether it does (True where that has not been checked yet).
        """
        if self.goal == "rounds":
            return None
        positive = lower > 0.0
        if self.goal == "separation" and positive and separates:
            return "separated"
        if positive and relative_gap(lower, upper) + GAP_ROUNDING <= self.tol:
            return "certified"
        if not positive and upper <= negligible and np.isinf(problem.C):
            return "no_margin"
        return None
