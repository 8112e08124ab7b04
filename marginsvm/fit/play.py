"""The main loop of all fits: iterate, keep the best bounds, verify them before stopping."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginsvm.certificate.certificate import relative_gap
from marginsvm.certificate.proof import WORTH_A_PROOF, Confirmed, vanishing
from marginsvm.fit.algorithm import Algorithm, Progress
from marginsvm.fit.confirm import confirm
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.rows import OutputRows

# Largest margin (in radii) that may be rounding alone.
NOISE = 1e-14
# Rounding of a relative gap: with ``tol=0`` all iterations are made even if bounds are equal.
GAP_ROUNDING = 1e-15
# Upper bound (in radii) at which the search for a separator stops: for a smaller margin a
# perceptron may need 1e12 mistakes.
NEGLIGIBLE = 1e-6
OnRound = Callable[[Progress], bool]
_UNPROMISED = 10  # least number of iterations between verifications without a reason to stop


@dataclass(frozen=True)
class Stopping:
    """When a fit ends.

    Attributes
    ----------
    goal : {"gap", "separation", "rounds"}
        What ends the fit: the relative gap ``tol``, any separator of the examples, or only
        ``max_iter``.
    tol : float
        Relative gap between the certified bounds (dimensionless).
    max_iter : int
        Limit of iterations, including those of a resumed fit.
    negligible : float or None
        Upper bound (in radii) at which a fit without a separator stops. Once the bound is below
        1e-2 (with the goal "separation": below ``tol``), a proof of overlap is tried now and then.
        None: a proof is tried once the bound is below the threshold of the problem's error model
        (``vanishing``); without a proof the fit continues.
    """

    goal: str = "gap"
    tol: float = 1e-3
    max_iter: int = 10_000
    negligible: float | None = None

    def promised(self, problem: KernelMatrixAdapter, progress: Progress) -> str | None:
        """The status for stopping by the unverified bounds, or None."""
        if progress.error is not None:
            return self._of_intervals(progress.error, infeasible=progress.upper == 0.0)
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
        """The status for stopping by certified bounds, or None."""
        if isinstance(problem.rows, OutputRows):
            error = bounds.error(problem.rows.farthest)
            return self._of_intervals(error, infeasible=bounds.refuted)
        at_the_end = progress.settled or progress.n_iter >= self.max_iter
        small = vanishing(problem) if self.negligible is None else self.negligible
        if bounds.refuted:
            small = np.inf
            if self.tol == 0 and not at_the_end:
                return None  # max_iter alone ends the fit, also a resumed one
        separates = bounds.separates
        status = self._status(problem, bounds.lower, bounds.upper, small, separates=separates)
        proved = bounds.refuted or self.negligible is not None or at_the_end
        return None if status == "no_margin" and not proved else status

    def _of_intervals(self, error: float, *, infeasible: bool) -> str | None:
        """The status for stopping a regression, or None."""
        reached = "certified" if error + GAP_ROUNDING <= self.tol else None
        return "infeasible" if infeasible else reached

    def _status(
        self,
        problem: KernelMatrixAdapter,
        lower: float,
        upper: float,
        negligible: float,
        *,
        separates: bool,
    ) -> str | None:
        """The status for stopping at these bounds, or None.

        A soft margin is positive even if the classes overlap; ``separates`` tells whether the
        predictor separates the examples without slack (True if not checked yet).
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


@dataclass(frozen=True)
class Outcome:
    """Result of :func:`play`.

    Attributes
    ----------
    status : str
        ``certified``, ``separated``, ``no_margin``, ``infeasible``, ``stalled``, ``stopped`` or
        ``max_iter``.
    progress : Progress
        The state, the bounds and the history at the end.
    """

    status: str
    progress: Progress


def play(
    algorithm: Algorithm,
    problem: KernelMatrixAdapter,
    stopping: Stopping,
    on_round: OnRound | None = None,
    resume: Progress | None = None,
) -> Outcome:
    """Iterate until the stopping rule, ``max_iter`` or ``on_round`` ends the fit.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    stopping : Stopping
        The stopping rule.
    on_round : callable, default=None
        Called after every iteration with the progress, which later iterations modify; it stops the
        fit by returning True.
    resume : Progress, default=None
        Progress of an earlier fit of the same algorithm to the same problem, to be continued; None:
        start from scratch.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If vectors overflow float64.
    KeyboardInterrupt
        Between two iterations, see :mod:`marginsvm.fit.interrupts`. The progress last passed to
        ``on_round`` has the results so far.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.papers.momentum import Momentum
    >>> from marginsvm.fit import Stopping, play
    >>> from marginsvm.problem.adapter import LinearAdapter
    >>> from marginsvm.problem.rows import make_rows
    >>> rows = make_rows(np.array([1, 0]), 2, balanced=False)
    >>> problem = LinearAdapter(np.array([[1.0, 0.0], [1.0, -1.0]]), rows)
    >>> outcome = play(Momentum(), problem, Stopping(tol=0.01))
    >>> outcome.status, outcome.progress.upper <= 1.01 * outcome.progress.lower
    ('certified', True)
    """
    progress = begin(algorithm, problem) if resume is None else resume.copy()
    known, stopped = progress.confirmed, False
    # a resumed fit may have reached the goal already
    status = stopping.confirmed(problem, progress, known) if known else None
    while not (status or stopped or progress.settled or progress.n_iter >= stopping.max_iter):
        # Only a caller with on_round can keep the progress before an interrupt.
        if on_round is not None:
            let_interrupts_through()
        advance(algorithm, problem, stopping, progress)
        status = check(algorithm, problem, stopping, progress)
        stopped = on_round is not None and on_round(progress)
    if status is None and stopping.goal != "rounds":  # the certified bounds may reach the goal
        progress.confirmed = progress.confirmed or confirm(algorithm, problem, progress)
        status = stopping.confirmed(problem, progress, progress.confirmed)
    without = "stopped" if stopped else "stalled" if progress.settled else "max_iter"
    return Outcome(status or without, progress)


@np.errstate(over="ignore", invalid="ignore")  # best_bounds checks the norms for overflow
def begin(
    algorithm: Algorithm, problem: KernelMatrixAdapter, before: Progress | None = None
) -> Progress:
    """Progress before the first iteration.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    before : Progress, default=None
        Progress on the same examples with another C, for a warm start; all bounds are recomputed.
    """
    rows, problem.work.passes = problem.rows, 0.0
    near = None if before is None else algorithm.continued(problem, before)
    state = algorithm.start(problem) if near is None else near
    return Progress(
        state,
        C=problem.C,
        radius=problem.radius,
        loss=problem.loss,
        nu=problem.nu,
        signs=problem.signs,
        weights=rows.weights,
        n_passes=problem.work.passes,
        intervals=rows.intervals if isinstance(rows, OutputRows) else None,
    )


@np.errstate(over="ignore", invalid="ignore")
def advance(
    algorithm: Algorithm, problem: KernelMatrixAdapter, stopping: Stopping, progress: Progress
) -> None:
    """Make one step and keep the best bounds."""
    begun, problem.work.passes = time.perf_counter(), 0.0
    state = algorithm.step(problem, progress.state)
    end = progress.n_iter + algorithm.n_rounds(progress.n_iter)
    changes = algorithm.best_bounds(problem, state, progress)
    changes["begun"] = progress.copy() if end > stopping.max_iter else None
    changes["settled"] = state is progress.state
    changes["state"], changes["n_iter"] = state, min(end, stopping.max_iter)
    changes["n_passes"] = progress.n_passes + problem.work.passes
    changes["confirmed"] = None
    changes["seconds"] = progress.seconds + time.perf_counter() - begun
    vars(progress).update(changes)  # at once: a second Ctrl-C interrupts within an iteration
    progress.history.append(progress.line)


def check(
    algorithm: Algorithm, problem: KernelMatrixAdapter, stopping: Stopping, progress: Progress
) -> str | None:
    """Verify the bounds if they would end the fit; returns its status, or None.

    The bounds of an iteration are unverified (and may be in float32). If they would stop the fit,
    they are verified in float64. If that fails, the next verification comes after 10 % more
    iterations, as it takes passes, and for a proof of overlap after twice as many. Soft margins are
    also verified every 25 % more iterations: with optimal slack the bound of a predictor is better
    than in its iteration.
    """
    status, n, before = stopping.promised(problem, progress), progress.n_iter, progress.confirmed_at
    wait = before if status == "no_margin" else before // 10  # a proof takes longer
    promising = status is not None and n > before + wait
    is_soft = (np.isfinite(problem.C) or problem.nu is not None) and stopping.goal != "rounds"
    if not (promising or (is_soft and n >= before + before // 4 + _UNPROMISED)):
        return None
    bounds = confirm(algorithm, problem, progress)
    ended = stopping.confirmed(problem, progress, bounds)
    changes: dict[str, object] = {"confirmed_at": n, "confirmed": bounds}
    if status == "no_margin":  # keep the bound of this proof
        changes["upper"] = min(progress.upper, bounds.upper)
    elif ended is None and status is not None and progress.error is None:
        # the unverified bounds were too optimistic: reset, so that later ones can replace them
        changes["lower"] = min(progress.lower, bounds.lower)
        changes["upper"] = max(progress.upper, bounds.upper)
    vars(progress).update(changes)
    return ended
