"""Soft tubes with a kernel: pairs of weights of either sign, on columns in float32.

Rounds are those of :mod:`marginsvm.algorithms.exact.climb`, bounds are computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from marginsvm.algorithms.exact.candidates import interval_candidates
from marginsvm.algorithms.exact.choosing import first_examples
from marginsvm.algorithms.exact.climb import Climb, Dual
from marginsvm.algorithms.exact.pairs import OnColumns, dual_of
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import intervals_of


class ClimbOfTubes(Climb):
    """The rounds of one call; weights have signs."""

    aim = 0.35  # an output is certified at half of the tolerance

    def _compare(self, squared: float, less: float) -> None:
        """The gap between what the scores cost and what the weights prove."""
        v, (low, width, _, _) = self.u, self.dual.ends
        proved = float(np.where(v > 0.0, low, low + width) @ v) - 0.5 * squared - less
        below = low - self.f - self.b
        distance = np.maximum(np.maximum(below, -below - width), 0.0)
        slack = distance * (0.5 * distance / self.slack if self._soft else self.caps)
        self.gap, self.inside = (
            1.0 - np.sqrt(max(proved, 0.0) / max(0.5 * squared + float(paid), 1e-300))
            for paid in (slack.sum(), slack[self.work].sum())
        )


@dataclass(frozen=True)
class TubePairs(OnColumns):
    """Weights of either sign, and their scores.

    Attributes
    ----------
    width : float
        By how much both ends of the tube are moved outwards.
    """

    name: ClassVar[str] = "pairs of tubes"
    climb: ClassVar[type[Climb]] = ClimbOfTubes

    width: float = 0.0

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Self:
        """Begin with some examples."""
        n = problem.n_rows
        return cls(np.zeros(n), np.zeros(n), first_examples(problem))

    def dual(self, problem: GramAdapter) -> Dual:
        ends, wider = intervals_of(problem.rows), self.width
        tube = ends.low - wider, ends.high - ends.low + 2.0 * wider
        return replace(dual_of(problem), tube=tube)

    def estimates(self, problem: GramAdapter, climb: Climb, tol: float) -> tuple[Candidate, ...]:
        """None: scores in float32 bound no error."""
        return ()

    def proved(self, problem: GramAdapter, climb: Climb, tol: float) -> tuple[Candidate, ...]:
        proof = problem.combine(climb.u, precise=True)
        return interval_candidates(problem, proof, proof)
