"""The model where nothing separates: of all that an algorithm went through, the least wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.fit import Algorithm, Candidate, Requirements, Stopping, play
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Predictor, Rows, Vector

_LAST_RESORT = 50  # epochs of Algorithm 1, for a model of weighted examples


@dataclass(frozen=True)
class PocketState:
    """``u`` after ``t`` epochs, and of all models the one whose misclassified rows weigh least."""

    u: Vector
    pocket: Predictor
    mistakes: float
    t: int = 0


@dataclass(frozen=True)
class WeightedPocket(Algorithm):
    """Algorithm 1 with Gallant's pocket: rows are drawn in proportion to their weights.

    Weights of examples change neither a hard margin nor the sequence of a fit, so that the
    model where nothing separates does not heed them unless they are drawn by.

    Attributes
    ----------
    known : Predictor
        The model that is in the pocket at first.
    seed : int
        Seed of the draws.
    """

    known: Predictor
    seed: int

    requires = Requirements(by_passes=False)

    def start(self, problem: KernelMatrixAdapter) -> PocketState:
        """Begin at zero, with the known model in the pocket."""
        mistakes = misclassified_weight(problem.rows, problem.margins(self.known))
        return PocketState(problem.zeros(), self.known, mistakes)

    def step(self, problem: KernelMatrixAdapter, state: PocketState) -> PocketState:
        """Play an epoch: as many draws as rows."""
        from marginsvm.algorithms.compiled import coordinates as loops

        rows, u, t = problem.rows, state.u.copy(), state.t
        flat = rows.flat_indices()
        weights = rows.weighted(np.ones(rows.shape)).ravel()[flat]
        draws = np.random.default_rng((self.seed, t))
        order = draws.choice(flat, size=problem.n_rows, p=weights / weights.sum())
        loops.ascend(problem, order, u)
        mistakes = misclassified_weight(rows, problem.margins(u))
        if mistakes <= state.mistakes:
            return PocketState(u, u, mistakes, t + 1)
        return replace(state, u=u, t=t + 1)

    def candidates(self, problem: KernelMatrixAdapter, state: PocketState) -> Iterator[Candidate]:
        """The pocket, as the model where nothing separates."""
        yield Candidate(state.pocket, fallback=True)


def misclassified_weight(rows: Rows, margins: Array) -> float:
    """Sum of the weights of the rows whose margins are not positive."""
    wrong = margins.reshape(rows.shape) <= 0.0
    return float(rows.weighted(wrong).sum())


def weighted_pocket(problem: KernelMatrixAdapter, known: Candidate, seed: int) -> Candidate:
    """The known model where nothing separates or, of weighted rows, a better one."""
    if problem.rows.weights is None:
        return known
    pocket = WeightedPocket(known.vector, seed)
    rounds = play(pocket, problem, Stopping("rounds", max_iter=_LAST_RESORT))
    return pocket.fallback(problem, rounds.progress)
