"""The model where nothing separates: the limit of the soft margins, C growing.

As C grows, a soft margin's predictor becomes one with the least sum of squared slacks, whatever its
norm. No bound is taken from it: it is what a fit publishes after its proof.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginsvm.algorithms.exact.choosing import difference_of_means
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.tolerances import DELICATE_MARGIN
from marginsvm.fit import Algorithm, Progress, Stopping, play
from marginsvm.fit.confirm import least_loss
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.papers.momentum import Momentum

# Relative gap of the soft margin: its predictor then is hardly better or worse than the best one,
# as the square of the margin, and with it the sum of squared slacks, is known to 2 %.
LOOSE = 1e-2
# Rounds of the soft margin: Newton's method takes 4 to 12, more only next to a separator.
_ROUNDS = 15
# Passes after which no further round is begun: twice those of the rounds of momentum below.
_PASSES = 100
# With more unknowns than this, the smallest soft margin (in radii) that is asked for is the second
# number: conjugate gradients take as many products as the root of C, which then are some ten.
_UNKNOWNS_OF_LIMIT = 2000
_LEAST_MARGIN_OF_MANY = 1e-4
# Rounds of momentum, where those were not enough: its predictor then is near the least
# exponential loss.
_LAST_RESORT = 50
# What the model is, in words.
_LIMIT = (
    "the limit of the soft margins of the squared hinge loss as C grows, with nearly the least sum "
    "of squared slacks"
)
_LARGE = "a soft margin with a large C, which was not solved to the end"


@np.errstate(over="ignore", invalid="ignore")  # as in rounds of a fit
def limit_of_soft_margins(
    algorithm: Algorithm, problem: KernelMatrixAdapter
) -> tuple[Candidate, ...]:
    """The predictor of a soft margin with a large C; several candidates if it was not reached.

    The larger C, the smaller are the features that count beside others in larger units, and the
    fewer digits are left. Weights that are the same on all rows show that, for n rows, the soft
    margin is ``1 / sqrt(2 C n)`` at least. C is such that this is the smallest margin which the
    exact solver finds quickly: 1e-6 radii, or with kernels 1e-5, of which a gap of 1e-2 is what
    their rounding leaves; and 1e-4 where its systems are large. A feature that spreads over ten
    times that part of the radius counts as fully as one that makes up the radius.
    """
    least = max(DELICATE_MARGIN, problem.errors.resolution / LOOSE)
    if problem.width < np.inf and problem.zeros().image.size > _UNKNOWNS_OF_LIMIT:
        least = max(least, _LEAST_MARGIN_OF_MANY)
    C = 0.5 / problem.rows.total_weight / (least * problem.radius) ** 2
    soft, before = problem.softened(min(C, np.finfo(np.float64).max)), problem.work.passes

    state, lower, upper, best = algorithm.start(soft), 0.0, np.inf, None
    for _ in range(_ROUNDS):
        let_interrupts_through()
        state = algorithm.step(soft, state)
        for candidate in algorithm.candidates(soft, state):
            norm = soft.norm(candidate.vector)
            upper, below = min(upper, candidate.upper(norm)), candidate.lower(norm) or 0.0
            lower, best = (below, candidate) if below > lower else (lower, best)
        solved = best is not None and lower >= (1.0 - LOOSE) * upper  # no proof rests on it
        if solved or soft.work.passes - before > _PASSES:
            break
    found = [] if best is None else [_with_intercept(soft, best, _LIMIT if solved else _LARGE)]
    if solved:
        return tuple(found)
    if problem.cheap_sums:
        momentum = Momentum()
        rounds = play(momentum, problem, Stopping("rounds", max_iter=_LAST_RESORT))
        words = f"that of {_LAST_RESORT} rounds of momentum, with nearly the least exponential loss"
        found.append(replace(momentum.fallback(problem, rounds.progress), words=words))
    return (*found, _difference(problem))


def _with_intercept(soft: KernelMatrixAdapter, best: Candidate, words: str) -> Candidate:
    """The predictor of a soft margin as a model without slack, with the same intercept."""
    margins = soft.margins(best.vector, precise=True)
    offsets = soft.rows.best_offsets(soft.rows.group_min(margins))
    return Candidate(best.vector, offsets=offsets, words=words)


def _difference(problem: KernelMatrixAdapter) -> Candidate:
    return Candidate(difference_of_means(problem), words="the difference of the class means")


def first_guess(problem: KernelMatrixAdapter, progress: Progress) -> tuple[Candidate, ...]:
    """What is at hand after an early end: the best predictor, and the difference of means."""
    best = () if progress.best is None else (Candidate(progress.best.vector),)
    return (*best, _difference(problem))


def of_least_loss(problem: KernelMatrixAdapter, models: tuple[Candidate, ...]) -> Candidate:
    """The model with the least exponential loss, each at its best scale."""
    if len(models) == 1:
        return models[0]
    rows = problem.rows
    loss = [least_loss(rows, problem.margins(model.vector)).log_risk for model in models]
    return models[int(np.argmin(loss))]
