"""The only loop: play rounds, keep the best bounds, confirm those that it stops on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginsvm.fit.algorithm import Algorithm
from marginsvm.fit.candidate import Candidate
from marginsvm.fit.confirm import confirm
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.fit.progress import Progress, longer
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
        Called with the progress after every round; it may stop the fit by returning True.
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
    progress = begin(algorithm, problem) if resume is None else resume
    known = progress.confirmed  # an earlier fit may have reached the goal of this one already
    status, stopped = stopping.confirmed(problem, progress, known) if known else None, False
    while status is None and not stopped and progress.n_iter < stopping.max_iter:
        # Only a caller that follows the rounds can keep what was found before an interrupt.
        if on_round is not None:
            let_interrupts_through()
        progress = advance(algorithm, problem, stopping, progress)
        status, progress = _check(algorithm, problem, stopping, progress)
        stopped = on_round is not None and on_round(progress)
    if status is None and stopping.goal != "rounds":  # it may have reached its goal all the same
        bounds = progress.confirmed or confirm(algorithm, problem, progress)
        progress = replace(progress, confirmed=bounds)
        status = stopping.confirmed(problem, progress, bounds)
    return Outcome(status or ("stopped" if stopped else "max_iter"), progress)


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
        problem.C,
        problem.radius,
        rows.weights,
        n_passes=problem.work.passes,
        loss=problem.loss,
        nu=problem.nu,
        signs=problem.signs,
        intervals=rows.intervals if isinstance(rows, OutputRows) else None,
    )


@np.errstate(over="ignore", invalid="ignore")
def advance(
    algorithm: Algorithm, problem: KernelMatrixAdapter, stopping: Stopping, progress: Progress
) -> Progress:
    """Play one step and keep the best bounds."""
    begun, problem.work.passes = time.perf_counter(), 0.0
    state = algorithm.step(problem, progress.state)
    end = progress.n_iter + algorithm.n_rounds(progress.n_iter)
    n_iter = min(end, stopping.max_iter)
    found: dict[str, Any] = {}
    lower, upper = progress.lower, progress.upper
    if stopping.looks_at_bounds_after(n_iter):
        lower, upper, found = _best_of(algorithm, problem, state, progress)
    n_passes = progress.n_passes + problem.work.passes
    seconds = progress.seconds + time.perf_counter() - begun
    settled = state is progress.state
    after = replace(
        progress,
        state=state,
        n_iter=n_iter,
        begun=progress if end > stopping.max_iter else None,
        settled=settled,
        moving=not settled and algorithm.moving(state),
        route=longer(progress.route, algorithm.phase(state), n_iter - progress.n_iter),
        lower=lower,
        upper=upper,
        seconds=seconds,
        n_passes=n_passes,
        confirmed=None,
        **found,
    )
    return replace(after, history=progress.history.grown(after.line))


def _best_of(
    algorithm: Algorithm, problem: KernelMatrixAdapter, state: Any, progress: Progress
) -> tuple[float, float, dict[str, Any]]:
    """Best bounds so far, and the candidates of this state that become part of the progress."""
    found: dict[str, Any] = {}
    lower, upper = progress.lower, progress.upper
    for candidate, norm in _finite(algorithm, problem, state, progress):
        if candidate.fallback:
            found["fallback"] = candidate
        below, above = candidate.lower(norm), candidate.upper(norm)
        if below is not None and (below > lower or candidate.error is not None):
            lower, found["best"] = below, candidate
        chosen = candidate.error is not None and candidate.norm_bound is not None
        if above < upper or chosen:
            upper, found["proof"] = above, candidate
    return lower, upper, found


def _finite(
    algorithm: Algorithm, problem: KernelMatrixAdapter, state: Any, progress: Progress
) -> list[tuple[Candidate, float]]:
    """Candidates and their norms, without those that are too long for float64.

    A round whose model is too long, or that leaves no proof, has diverged. A predictor that a round
    has found besides its proof may be too long where the margin is next to nothing.
    """
    all_of = [(c, problem.norm(c.vector)) for c in algorithm.candidates(problem, state)]
    found = [(c, norm) for c, norm in all_of if np.isfinite(norm)]
    proved = progress.proof is not None or any(c.upper(norm) < np.inf for c, norm in found)
    if len(found) < len(all_of) and (not proved or any(c.fallback for c, _ in all_of)):
        raise ValueError(
            f"{type(algorithm).__name__} diverged in round {progress.n_iter + 1}: its vectors are "
            "too long for float64; choose a smaller step, if it has one, or scale X"
        )
    return found


def _check(
    algorithm: Algorithm, problem: KernelMatrixAdapter, stopping: Stopping, progress: Progress
) -> tuple[str | None, Progress]:
    """Confirm the bounds if they would end the fit; its status then, or None.

    The bounds of a round are subject to its rounding (in float32, too). When they promise a
    reason to stop, they are confirmed in float64. If that fails, it is tried again only after
    a tenth more rounds, as confirming takes passes, or after twice as many for a proof that
    nothing separates. Soft margins are confirmed after a quarter
    more rounds as well: the best slack of a predictor is better than that of its round.
    """
    status, n, before = stopping.promised(problem, progress), progress.n_iter, progress.confirmed_at
    last = n == stopping.max_iter or progress.settled
    wait = before if status == "no_margin" else before // 10  # a proof takes longer
    promising = status is not None and (n > before + wait or last)
    is_soft = np.isfinite(problem.C) or problem.nu is not None
    hopeful = is_soft and stopping.goal != "rounds" and n >= before + before // 4 + _UNPROMISED
    if not (promising or hopeful or stopping.stalled(progress)):
        return None, progress
    bounds = confirm(algorithm, problem, progress)
    if status == "no_margin":  # no larger bound may replace this proof
        progress = replace(progress, upper=min(progress.upper, bounds.upper))
    progress = replace(progress, confirmed_at=n, confirmed=bounds)
    ended = stopping.confirmed(problem, progress, bounds)
    if (
        ended is None
        and status not in ("no_margin", None)
        and not isinstance(problem.rows, OutputRows)
    ):
        # rounding had promised more, beside which what is better would not be kept
        lower, upper = min(progress.lower, bounds.lower), max(progress.upper, bounds.upper)
        progress = replace(progress, lower=lower, upper=upper)
    return ended, progress
