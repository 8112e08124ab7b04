"""Soft tubes with a kernel: pairs of weights of either sign, on columns in float32.

Rounds are those of :mod:`marginsvm.algorithms.exact.climb`, bounds are computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import interval_candidates
from marginsvm.algorithms.exact.choosing import first_examples
from marginsvm.algorithms.exact.climb import COARSE, STEPS_AN_EXAMPLE, Climb, Dual
from marginsvm.algorithms.exact.pairs import Found, OnColumns, dual_of
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import intervals_of

# Error of scores that rounds begin with at another width, over the change of the width.
_OF_MOVE = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class TubeDual(Dual):
    """The same with ends in place of ones: the lower one for weights above 0, else the upper one.

    Attributes
    ----------
    low, width : ndarray of shape (n,)
        Lower ends of the intervals, and how far the upper ones are above them.
    """

    low: Array
    width: Array

    @classmethod
    def of(cls, problem: GramAdapter) -> TubeDual:
        """The weights that rounds look for."""
        ends = intervals_of(problem.rows)
        return cls(**vars(dual_of(problem)), low=ends.low, width=ends.high - ends.low)


class ClimbOfTubes(Climb):
    """The rounds of one call; weights have signs."""

    aim = 0.35  # an output is certified at half of the tolerance
    dual: TubeDual

    def widen(self, problem: GramAdapter, width: float) -> None:
        """Go on with the ends of a problem widened by so much on both sides."""
        ends, before = intervals_of(problem.rows), self.dual.low
        low, wide = ends.low - width, ends.high - ends.low + 2.0 * width
        self.dual = replace(self.dual, low=low, width=wide)
        moved = float(np.abs(low - before).max())
        self.precision = min(COARSE, max(self.precision, _OF_MOVE * moved))
        self.gap, self.inside, self.least, self.idle = np.inf, np.inf, np.inf, 0

    def _ascended(self, K: Array) -> Array:
        from marginsvm.algorithms.compiled.pairs import ascend_tubes

        work, dual = self.work, self.dual
        v, f, caps = self.u[work], self.f[work], self.caps[work]
        steps = ascend_tubes(
            K, dual.low[work], dual.width[work], -caps, caps, self.slack[work], dual.balanced,
            self.precision, STEPS_AN_EXAMPLE * len(work), v, f,
        )  # fmt: skip
        self.read += 2.0 * steps * len(work)
        return v

    def _measure(self) -> None:
        """The intercept, what each score misses, and the gap that this leaves."""
        v, dual = self.u, self.dual
        slope = dual.low - self.f - self.slack * v
        raised, lowered = slope + dual.width * (v < 0.0), slope + dual.width * (v <= 0.0)
        self._centre(raised, lowered, v < self.caps, v > -self.caps)
        rise, fall = raised - self.b, self.b - lowered
        self.mass = np.abs(v)
        self.missing = np.where(v > 0.0, rise, np.where(v < 0.0, fall, np.maximum(rise, fall)))
        self._compare_objectives()

    def _compare_objectives(self) -> None:
        """The gap between what the scores cost and what the weights prove."""
        v, dual = self.u, self.dual
        ends = np.where(v > 0.0, dual.low, dual.low + dual.width)
        square = float(v @ self.f)
        proved = float(ends @ v) - 0.5 * square - 0.5 * float(self.slack @ (v * v))
        below = dual.low - self.f - self.b
        distance = np.maximum(np.maximum(below, -below - dual.width), 0.0)
        slack = distance * (0.5 * distance / self.slack if self._soft else self.caps)
        self.gap, self.inside = (
            1.0 - np.sqrt(max(proved, 0.0) / max(0.5 * square + float(paid), 1e-300))
            for paid in (slack.sum(), slack[self.work].sum())
        )


class FoundTube(Found):
    """What rounds have come to, as bounds on the error."""

    def estimates(self, tol: float) -> tuple[Candidate, ...]:
        """None: scores in float32 bound no error."""
        return ()

    def proved(self, tol: float) -> tuple[Candidate, ...]:
        proof = self.problem.combine(self.climb.u, precise=True)
        return interval_candidates(self.problem, proof, proof)


@dataclass(frozen=True)
class TubePairs(OnColumns):
    """Weights of either sign, and their scores."""

    name: ClassVar[str] = "pairs of tubes"
    climb: ClassVar[type[Climb]] = ClimbOfTubes
    bounds: ClassVar[type[Found]] = FoundTube

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Self:
        """Begin with some examples."""
        n = problem.n_rows
        return cls(np.zeros(n), np.zeros(n), first_examples(problem))

    def dual(self, problem: GramAdapter) -> TubeDual:
        return TubeDual.of(problem)
