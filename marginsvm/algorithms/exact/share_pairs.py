"""A share of the examples with a kernel: pairs of weights, on columns in float32.

Weights that sum to 1, none above its cap, are moved by pairs as those of two classes are: the level
that margins are to reach takes the place of the intercept. They are multiplied by a number, so that
margins are about 1, as :mod:`marginsvm.algorithms.exact.climb` expects them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import share_candidates
from marginsvm.algorithms.exact.choosing import first_examples
from marginsvm.algorithms.exact.climb import Climb, Dual
from marginsvm.algorithms.exact.interior.ends import solved_share
from marginsvm.algorithms.exact.method import is_proved
from marginsvm.algorithms.exact.pairs import OnColumns, dual_of
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.problem.responses import worst_first
from marginsvm.rows import Vector

# Examples in an order in which any first ones are spread evenly: multiples of this, modulo 1.
_GOLDEN = 0.6180339887498949


class ShareClimb(Climb):
    """Rounds of weights that keep their sum."""

    def _compare(self, squared: float, less: float) -> None:
        whole = max(squared, np.finfo(np.float64).tiny)
        self.gap, self.inside = (self._gain(some) / whole for some in (self._counted, self.work))

    def _gain(self, some: Array) -> float:
        """How much shorter their combination could at most become if some examples had others."""
        u, f, caps = self.u[some], self.f[some], self.caps[some]
        mass = float(u.sum())
        if not mass > 0.0:
            return 0.0
        order, left, _ = worst_first(f, caps, mass)
        return float(u @ f) - float(np.clip(left, 0.0, caps[order]) @ f[order])


@dataclass(frozen=True)
class SharePairs(OnColumns):
    """Weights that keep their sum.

    Attributes
    ----------
    mass : float
        What they sum to.
    """

    name: ClassVar[str] = "pairs"
    climb: ClassVar[type[Climb]] = ShareClimb

    mass: float = 1.0

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> SharePairs:
        """Begin with all the weight on some examples, evenly spread, as libsvm with the first."""
        assert isinstance(problem, GramAdapter)
        assert problem.caps is not None
        caps, n = problem.caps.largest, problem.n_rows
        spread = np.argsort(_GOLDEN * np.arange(n) % 1.0, kind="stable")
        q, before = np.zeros(n), np.cumsum(caps[spread]) - caps[spread]
        q[spread] = np.clip(1.0 - before, 0.0, caps[spread])
        begun = Climb(dual_of(problem), q, np.zeros(n), spread[:0])
        mass = 1.0 / max(float(q @ begun.f), np.finfo(np.float64).tiny)
        return cls(mass * q, mass * begun.f, first_examples(problem), mass=mass)

    def dual(self, problem: GramAdapter) -> Dual:
        dual = dual_of(problem)
        return replace(dual, caps=self.mass * dual.caps, balanced=True)

    def estimates(self, problem: GramAdapter, climb: Climb, tol: float) -> tuple[Candidate, ...]:
        low, high = self.bounds(problem, climb, Vector(climb.f, climb.u), climb.f)
        assert low.min_margin is not None
        low = replace(low, min_margin=low.min_margin - tol * abs(low.min_margin), margins=None)
        return low, replace(high, mass=high.mass * (1.0 - tol), precise=False)

    def proved(self, problem: GramAdapter, climb: Climb, tol: float) -> tuple[Candidate, ...]:
        """The bounds of the weights if those at their ends are right, or else as they are."""
        u, q = climb.u, solved_share(problem, climb.u / self.mass)
        if q is not None:
            climb.u = self.mass * q
            solved = super().proved(problem, climb, tol)
            if is_proved(problem, solved, tol):
                return solved
        climb.u = u
        return super().proved(problem, climb, tol)

    def bounds(
        self, problem: GramAdapter, climb: Climb, vector: Vector, margins: Array
    ) -> tuple[Candidate, ...]:
        low, high = share_candidates(problem, vector, margins, vector)
        return replace(low, margins=margins), high
