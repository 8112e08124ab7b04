"""A method at work, and what the portfolio remembers of those before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.portfolio import FIRST, NEXT
from marginsvm.algorithms.exact.rules import Handover
from marginsvm.algorithms.exact.shape import Portfolio, Shape
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Vector

# Rounds after which bounds are looked at, and the share of their gap that they may leave: most
# methods that end at all need no more than 40 rounds, and those that stall leave nearly all.
_PERIOD, _NEARER = 20, 0.5


@dataclass(frozen=True)
class Stage:
    """A method at work.

    Attributes
    ----------
    method : Method
        Its state.
    turn : Turn
        What its last round has found.
    done : frozenset of (str, str)
        The handovers that the fit has been through, which it does not repeat: methods and names.
    before : Method or None
        The method that goes on where this one has outgrown its room.
    rounds : int
        How many rounds this method has played.
    gap : float
        The relative gap between its bounds when they were last looked at.
    """

    method: Method
    turn: Turn = Turn.GO_ON
    done: frozenset[tuple[str, str]] = frozenset()
    before: Method | None = None
    rounds: int = 0
    gap: float = np.inf

    @classmethod
    def first(cls, problem: KernelMatrixAdapter, portfolio: Portfolio) -> Stage:
        """The method for problems of this shape."""
        shape = Shape.of(problem)
        rule = next(rule for rule in FIRST if rule.applies(shape, portfolio))
        return cls.of(rule.begin(problem, portfolio))

    @classmethod
    def near(
        cls, problem: KernelMatrixAdapter, portfolio: Portfolio, w: Vector, proof: Vector
    ) -> Stage | None:
        """A method that begins near the solution for another C; None: to begin anew is as quick.

        Parameters
        ----------
        problem : KernelMatrixAdapter
        portfolio : Portfolio
        w, proof : Vector
            The best predictor and the best weights there.
        """
        shape = Shape.of(problem)
        rule = next(rule for rule in FIRST if rule.applies(shape, portfolio))
        method = None if rule.near is None else rule.near(problem, portfolio, w, proof)
        return None if method is None else cls.of(method)

    @classmethod
    def of(cls, method: Method) -> Stage:
        """A method that begins."""
        return cls(method, method.begun)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Those of the last round."""
        return self.method.candidates

    @property
    def nearer(self) -> bool:
        """Whether the method has come nearer to a solution, although bounds may not show it."""
        return Turn.NEARER in self.turn

    def advance(self, problem: KernelMatrixAdapter, tol: float, portfolio: Portfolio) -> Stage:
        """The stage after one more round; the same object if nothing is left to do."""
        stage = self._following(problem, portfolio)
        while True:
            method, turn = stage.method.advance(problem, tol)
            now = replace(stage, method=method, turn=turn)
            if method is not stage.method:
                return now._watched(problem)
            stage = now._following(problem, portfolio)
            if stage is now:  # no round was played, and no other method plays it
                return self if method is self.method and turn == self.turn else now

    def _watched(self, problem: KernelMatrixAdapter) -> Stage:
        """The same, and slow if its bounds have hardly come nearer since they were looked at."""
        now = replace(self, rounds=self.rounds + 1)
        if now.rounds % _PERIOD:
            return now
        norms = [problem.norm(candidate.vector) for candidate in self.candidates]
        both = list(zip(self.candidates, norms, strict=True))
        lower = max(candidate.lower(norm) or 0.0 for candidate, norm in both)
        upper = min(candidate.upper(norm) for candidate, norm in both)
        gap = 1.0 - lower / upper if lower > 0.0 else 1.0
        turn = self.turn | Turn.SLOW if gap > _NEARER * self.gap else self.turn
        return replace(now, turn=turn, gap=gap)

    def _following(self, problem: KernelMatrixAdapter, portfolio: Portfolio) -> Stage:
        """The stage of the next round: this one, or that of a method that takes over."""
        if Turn.MANY in self.turn and self.before is not None:
            return Stage(self.before, done=self.done)
        handover = self._handover(problem, portfolio)
        if handover is None:
            return self
        method = handover.begin(problem, portfolio, self.method)
        before = self.method if handover.returns else None
        now = Stage(method, method.begun, self.done | {handover.key}, before)
        return now._following(problem, portfolio)

    def _handover(self, problem: KernelMatrixAdapter, portfolio: Portfolio) -> Handover | None:
        """The first handover that applies, if there is one."""
        for (method, turn), handovers in NEXT.items():
            if not (isinstance(self.method, method) and turn in self.turn):
                continue
            shape = Shape.of(problem)
            for handover in handovers:
                new = handover.key not in self.done
                if new and handover.applies(shape, portfolio, self.method):
                    return handover
        return None
