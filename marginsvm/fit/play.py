"""The only loop: play rounds, keep the best bounds, confirm those that it stops on."""

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

# A margin (in radii) that rounds may find although there is none: a few roundings of 1.
NOISE = 1e-14
# Rounding of a relative gap: ``tol=0`` plays all rounds even where bounds happen to be equal.
GAP_ROUNDING = 1e-15
# Upper bound (in radii) at which a search for a separator is given up: that of a thinner margin
# would take 1e12 mistakes of a perceptron to find.
NEGLIGIBLE = 1e-6
OnRound = Callable[[Progress], bool]
_UNPROMISED = 10  # rounds, at least, between confirmations of bounds that promise no end


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
        """Name the reason to stop according to proved bounds, if there is one."""
        if isinstance(problem.rows, OutputRows):
            error = bounds.error(problem.rows.farthest)
            return self._of_intervals(error, infeasible=bounds.refuted)
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

    def _of_intervals(self, error: float, *, infeasible: bool) -> str | None:
        """Name the reason to stop where scores are to lie in intervals."""
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


@dataclass(frozen=True)
class Outcome:
    """How a fit ended.

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
    """Play rounds until the stopping rule, ``max_iter`` or ``on_round`` ends the fit.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    stopping : Stopping
        When the fit ends.
    on_round : callable, default=None
        Called after every round with the progress, which later rounds change; it may stop the fit
        by returning True.
    resume : Progress, default=None
        Progress of an earlier fit of the same algorithm to the same problem, from which this one
        continues; None: begin anew.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If vectors become too long for float64.
    KeyboardInterrupt
        Between two rounds, see :mod:`marginsvm.fit.interrupts`. What was found so far is the
        progress that ``on_round`` was given last.

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
    # an earlier fit may have reached the goal of this one already
    status = stopping.confirmed(problem, progress, known) if known else None
    while not (status or stopped or progress.settled or progress.n_iter >= stopping.max_iter):
        # Only a caller that follows the rounds can keep what was found before an interrupt.
        if on_round is not None:
            let_interrupts_through()
        advance(algorithm, problem, stopping, progress)
        status = check(algorithm, problem, stopping, progress)
        stopped = on_round is not None and on_round(progress)
    if status is None and stopping.goal != "rounds":  # it may have reached its goal all the same
        progress.confirmed = progress.confirmed or confirm(algorithm, problem, progress)
        status = stopping.confirmed(problem, progress, progress.confirmed)
    without = "stopped" if stopped else "stalled" if progress.settled else "max_iter"
    return Outcome(status or without, progress)


@np.errstate(over="ignore", invalid="ignore")  # overflow is found by a check of the norms
def begin(
    algorithm: Algorithm, problem: KernelMatrixAdapter, before: Progress | None = None
) -> Progress:
    """Progress before the first round.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    before : Progress, default=None
        Progress on the same examples with another C, which an algorithm may begin near; all
        bounds are computed anew.
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
    """Play one step and keep the best bounds."""
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
    vars(progress).update(changes)  # at once: a second interrupt does not wait for a round's end
    progress.history.append(progress.line)


def check(
    algorithm: Algorithm, problem: KernelMatrixAdapter, stopping: Stopping, progress: Progress
) -> str | None:
    """Confirm the bounds if they would end the fit; its status then, or None.

    The bounds of a round are subject to its rounding (in float32, too). When they promise a
    reason to stop, they are confirmed in float64. If that fails, it is tried again only after
    a tenth more rounds, as confirming takes passes, or after twice as many for a proof that
    nothing separates. Soft margins are confirmed after a quarter more rounds as well: the best
    slack of a predictor is better than that of its round.
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
    if status == "no_margin":  # no larger bound may replace this proof
        changes["upper"] = min(progress.upper, bounds.upper)
    elif ended is None and status is not None and progress.error is None:
        # rounding had promised more, beside which what is better would not be kept
        changes["lower"] = min(progress.lower, bounds.lower)
        changes["upper"] = max(progress.upper, bounds.upper)
    vars(progress).update(changes)
    return ended
