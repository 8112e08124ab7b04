"""Where a fit stands: the best bounds so far and the vectors that reached them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import Predictor
from marginsvm.certify.tolerances import OTHER_DATA
from marginsvm.fit.history import History
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows.vector import Vector


@dataclass(frozen=True)
class ConfirmedBounds:
    """The model and the proof with their bounds, with all of a round's rounding allowed for.

    Attributes
    ----------
    model, proof : Vector
    predictor : Predictor
        The model as it is published, with its margin.
    upper : float
        Upper bound that the proof gives (units of the radius).
    overlap : bool
        Exact weights near those of ``proof`` are known to make the classes meet.
    """

    model: Vector
    predictor: Predictor
    proof: Vector
    upper: float
    overlap: bool

    @property
    def lower(self) -> float:
        """Margin of the model at least (units of the radius)."""
        return self.predictor.margin


@dataclass(frozen=True)
class Progress:
    """Where a fit stands after a round; every round makes a new one.

    Attributes
    ----------
    state : object
        The algorithm's.
    C : float
        Soft margin of the problem that all this is about.
    n_iter : int
        Rounds played.
    lower, upper : float
        Best bounds so far (units of the radius), with the rounding of rounds.
    best, proof : Candidate or None
        Those that reached ``lower`` and ``upper``.
    last : Candidate or None
        The latest model for data that nothing separates.
    seconds, n_passes : float
        Time and passes that the rounds took.
    next_confirmation : int
        Round from which bounds may be confirmed again: it takes some passes.
    confirmed : ConfirmedBounds or None
        What these vectors were confirmed to give.
    begun : Progress or None
        Where a step began that ``max_iter`` cut short: a later fit plays it in full.
    settled : bool
        The last step changed nothing, and no later one will.
    history : History
    """

    state: Any
    C: float = np.inf
    n_iter: int = 0
    lower: float = -np.inf
    upper: float = np.inf
    best: Candidate | None = None
    last: Candidate | None = None
    proof: Candidate | None = None
    seconds: float = 0.0
    n_passes: float = 0.0
    next_confirmation: int = 0
    confirmed: ConfirmedBounds | None = None
    begun: Progress | None = None
    settled: bool = False
    history: History = field(default_factory=History)

    def stalled(self, patience: int | None) -> bool:
        """Whether the last ``patience`` rounds gained nothing: neither bound, nor the gap.

        A hundredth is the least that counts: at such a pace, one digit takes 230 times as
        many rounds. Before there is an upper bound, there is nothing to be gained on.
        """
        if patience is None or len(self.history) <= patience:
            return False
        then, now = self.history[-1 - patience], self.history[-1]
        better = now.upper < 0.99 * then.upper or now.lower > 1.01 * max(then.lower, 0.0)
        closer = max(now.upper - now.lower, 0.0) < 0.99 * max(then.upper - then.lower, 0.0)
        return bool(np.isfinite(then.upper)) and not (better or closer)

    def agrees_with(self, problem: KernelMatrixAdapter) -> bool:
        """Whether what is known of the vectors, and is not computed again, holds on this data."""
        proof, best, same = self.proof, self.best, True
        assert proof is not None
        if proof.precise:
            far = OTHER_DATA * proof.vector.mass
            same = (problem.refresh(proof.vector) - proof.vector).largest_entry() <= far
        if same and best is not None and best.margins is not None:
            margins, far = problem.margins(best.vector, precise=True), problem.norm(best.vector)
            same = np.allclose(margins, best.margins, rtol=0.0, atol=OTHER_DATA * far)
        return bool(same)
