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
        separates. None: both at the
        threshold of the problem's error model (``vanishing``).
    patience : int or None
        Rounds without progress after which a fit has stalled. Until then, a negligible upper bound
        ends it only with a proof that nothing separates: later rounds may find that proof, or a
        thin margin. None: a fit never stalls.
    """

    goal: str = "gap"
    tol: float = 1e-3
    max_iter: int = 10_000
    negligible: float | None = None
    patience: int | None = None

    def looks_at_bounds_after(self, n_iter: int) -> bool:
        """Whether candidates are looked at after a round: all rounds, unless they end nothing."""
        return self.goal != "rounds" or n_iter == self.max_iter

    def promised(self, problem: KernelMatrixAdapter, progress: Progress) -> str | None:
        """Name the reason to stop according to the bounds of rounds, if there is one."""
        best, proof = progress.best, progress.proof
        if best is not None and best.error is not None and proof is not None:
            infeasible = proof.norm_bound == np.inf
            return "infeasible" if infeasible else self._status_of_error(best.error)
        lower = progress.lower if progress.lower > NOISE else 0.0
        small = vanishing(problem) if self.negligible is None else self.negligible
        if self.negligible is not None and self.goal != "rounds" and self.tol > 0:
            small = max(
                small, WORTH_A_PROOF if self.goal == "gap" else min(self.tol, WORTH_A_PROOF)
            )
        return self._status(problem, lower, progress.upper, small, separates=True)

    def confirmed(
        self, problem: KernelMatrixAdapter, progress: Progress, bounds: Confirmed
    ) -> str | None:
        """Name the reason to stop according to proved bounds, if there is one."""
        stalled = "stalled" if self.stalled(progress) else None
        if isinstance(problem.rows, OutputRows):
            if bounds.refuted:
                return "infeasible"
            return self._status_of_error(bounds.error(problem.rows.farthest)) or stalled
        small = vanishing(problem) if self.negligible is None else self.negligible
        if bounds.refuted:
            small = np.inf
            if self.tol == 0 and progress.n_iter < self.max_iter:
                return None  # all rounds are played, those of a fit that goes on, too
        separates = bounds.separates
        status = self._status(problem, bounds.lower, bounds.upper, small, separates=separates)
        if status == "no_margin" and not bounds.refuted and self.patience is not None:
            at_the_end = stalled or progress.settled or progress.n_iter >= self.max_iter
            return status if at_the_end else None
        return status or stalled

    def stalled(self, progress: Progress) -> bool:
        """Whether ``patience`` rounds have brought no progress; never with ``tol=0``."""
        return self.tol > 0 and progress.stalled(self.patience)

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
