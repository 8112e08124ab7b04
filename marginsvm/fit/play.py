"""The only loop: play rounds, keep the best bounds, confirm those that it stops on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginsvm.certify.bounds import upper_bound
from marginsvm.certify.decisive import decisive
from marginsvm.fit.algorithm import Algorithm
from marginsvm.fit.confirm import confirm
from marginsvm.fit.history import Line
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.fit.progress import Progress
from marginsvm.fit.stopping import Stopping
from marginsvm.kernel_matrix import KernelMatrixAdapter

OnRound = Callable[[Progress], bool]


@dataclass(frozen=True)
class Outcome:
    """How a fit ended.

    Attributes
    ----------
    status : str
        ``certified``, ``separated``, ``no_margin``, ``stalled``, ``stopped`` or ``max_iter``.
    progress : Progress
        Where it ended.
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
    """Play rounds until the margin is certified, or what else ends a fit.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    stopping : Stopping
    on_round : callable, default=None
        It is given the progress after every round, and may stop the fit by returning True.
    resume : Progress, default=None
        Where an earlier fit of the same algorithm to the same problem ended; None: begin.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If vectors become too long for float64.
    KeyboardInterrupt
        Between two rounds, see :mod:`marginsvm.fit.interrupts`; ``on_round`` has been given
        all that is worth keeping.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.algorithms.momentum import Momentum
    >>> from marginsvm.fit import Stopping, play
    >>> from marginsvm.kernel_matrix import LinearAdapter, make_rows
    >>> rows = make_rows(np.array([1, 0]), 2, balanced=False)
    >>> problem = LinearAdapter(np.array([[1.0, 0.0], [1.0, -1.0]]), rows)
    >>> outcome = play(Momentum(), problem, Stopping(tol=0.01))
    >>> outcome.status, outcome.progress.upper <= 1.01 * outcome.progress.lower
    ('certified', True)
    """
    progress = begin(algorithm, problem) if resume is None else resume
    known = progress.confirmed  # the end of an earlier fit may be that of this one
    status = stopping.confirmed(problem, progress, known) if known else None
    while status is None and progress.n_iter < stopping.max_iter:
        if on_round is not None:  # who is told of every round keeps what an interrupt leaves
            let_interrupts_through()
        progress = advance(algorithm, problem, stopping.max_iter, progress)
        status, progress = _check(algorithm, problem, stopping, progress)
        if on_round is not None and on_round(progress):
            status = status or "stopped"
    return Outcome(status or "max_iter", progress)


@np.errstate(over="ignore", invalid="ignore")  # norms tell
def begin(algorithm: Algorithm, problem: KernelMatrixAdapter) -> Progress:
    """Progress before the first round."""
    state = algorithm.start(problem)
    return Progress(state, problem.C, n_passes=problem.work.lap())  # with those that measured it


@np.errstate(over="ignore", invalid="ignore")
def advance(
    algorithm: Algorithm, problem: KernelMatrixAdapter, max_iter: int, progress: Progress
) -> Progress:
    """Play one step and keep the best bounds."""
    problem.work.lap()  # passes between rounds are not theirs
    begun = time.perf_counter()
    state = algorithm.step(problem, progress.state)
    lower, upper, found = _best_of(algorithm, problem, state, progress)
    end = progress.n_iter + algorithm.n_rounds(progress.n_iter)
    n_iter, n_passes = min(end, max_iter), progress.n_passes + problem.work.lap()
    seconds = progress.seconds + time.perf_counter() - begun
    return replace(
        progress,
        state=state,
        n_iter=n_iter,
        begun=progress if end > max_iter else None,
        settled=state is progress.state,
        lower=lower,
        upper=upper,
        seconds=seconds,
        n_passes=n_passes,
        confirmed=None,
        history=progress.history.grown(Line(n_iter, n_passes, seconds, lower, upper)),
        **found,
    )


def _best_of(
    algorithm: Algorithm, problem: KernelMatrixAdapter, state: Any, progress: Progress
) -> tuple[float, float, dict[str, Any]]:
    """Best bounds so far, and those of the state's candidates that are to be kept."""
    found: dict[str, Any] = {}
    lower, upper = progress.lower, progress.upper
    for candidate in algorithm.candidates(problem, state):
        norm = problem.norm(candidate.vector)
        if not np.isfinite(norm):
            raise ValueError(
                f"{type(algorithm).__name__} diverged in round {progress.n_iter + 1}: its vectors "
                "are too long for float64; choose a smaller step, or scale X"
            )
        if candidate.fallback:
            found["last"] = candidate
        margin = candidate.min_margin
        if margin is not None and norm > 0 and margin / norm > lower:
            lower, found["best"] = margin / norm, candidate
        if candidate.mass > 0 and norm / candidate.mass < upper:
            upper, found["proof"] = norm / candidate.mass, candidate
    return lower, upper, found


def _check(
    algorithm: Algorithm, problem: KernelMatrixAdapter, stopping: Stopping, progress: Progress
) -> tuple[str | None, Progress]:
    """Name the reason to stop, if there is one and confirmed bounds agree.

    The bounds of a round carry its rounding (float32's, too); bounds to stop on
    are computed again in float64, now and then if they disagree.
    """
    status, n = stopping.promised(problem, progress), progress.n_iter
    last = n == stopping.max_iter or progress.settled
    promising = status is not None and (n >= progress.next_confirmation or last)
    if not (promising or stopping.stalled(progress)):
        return None, progress
    if status == "no_margin":
        progress = _with_decisive_proof(algorithm, problem, progress)
    bounds = confirm(algorithm, problem, progress)
    progress = replace(progress, next_confirmation=n + 1 + n // 10, confirmed=bounds)
    return stopping.confirmed(problem, progress, bounds), progress


def _with_decisive_proof(
    algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
) -> Progress:
    """Replace a proof that next to nothing separates by one that nothing does, if it can be."""
    assert progress.proof is not None
    proof = decisive(problem, progress.proof, algorithm.candidates(problem, progress.state))
    upper = min(progress.upper, upper_bound(problem, proof.vector))  # no worse one may follow it
    return replace(progress, proof=proof, upper=upper)
