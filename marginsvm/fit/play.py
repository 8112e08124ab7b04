"""The only loop: play rounds, keep the best bounds, confirm those that it stops on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginsvm.fit.algorithm import Algorithm
from marginsvm.fit.confirm import confirm
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.fit.progress import Progress
from marginsvm.fit.stopping import Stopping
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.rows import OutputRows

OnRound = Callable[[Progress], bool]
_UNPROMISED = 10  # rounds, at least, between confirmations of bounds that promise no end


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
