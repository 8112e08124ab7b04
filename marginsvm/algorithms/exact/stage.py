"""A method at work, and what the portfolio remembers of those before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from marginsvm.algorithms.exact.method import Method, Turn, best_bounds
from marginsvm.algorithms.exact.portfolio import FIRST, NEXT
from marginsvm.algorithms.exact.rules import Handover
from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.certify.candidate import Candidate
from marginsvm.fit.progress import came_nearer
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Predictor, Vector


@dataclass(frozen=True)
class Stage:
    """A method at work.

    Attributes
    ----------
    method : Method
        Its state.
    found : int
        What its last round has found, a ``Turn``, as a number that every file format stores.
    done : tuple of (str, str)
        The handovers that the fit has been through, which it does not repeat: methods and names.
    before : Method or None
        The method that goes on where this one has outgrown its room.
    best : tuple of (float, float)
        The best bounds (in radii) of its rounds, the first ones left out.
    seen : tuple of (float, float)
        The same when they last came nearer.
    still : int
        Rounds since then.
    rounds : int
        How many rounds this method has played.
    gap : float
        The relative gap between these bounds after every ``long_patience`` rounds.
    """

    method: Method
    found: int = Turn.GO_ON.value
    done: tuple[tuple[str, str], ...] = ()
    before: Method | None = None
    best: tuple[float, float] = (0.0, np.inf)
    seen: tuple[float, float] = (0.0, np.inf)
    still: int = 0
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
        cls, problem: KernelMatrixAdapter, portfolio: Portfolio, w: Predictor, proof: Vector
    ) -> Stage | None:
        """A method that begins near the solution for another C; None: to begin anew is as quick.

        Parameters
        ----------
        problem : KernelMatrixAdapter
        portfolio : Portfolio
        w, proof : Predictor, Vector
            The best predictor and the best weights there.
        """
        shape = Shape.of(problem)
        rule = next(rule for rule in FIRST if rule.applies(shape, portfolio))
        method = None if rule.near is None else rule.near(problem, portfolio, w, proof)
        return None if method is None else cls.of(method)

    @classmethod
    def of(cls, method: Method) -> Stage:
        """A method that begins."""
        return cls(method, method.begun.value)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Those of the last round."""
        return self.method.candidates

    @property
    def turn(self) -> Turn:
        """What the last round has found."""
        return Turn(self.found)

    @property
    def nearer(self) -> bool:
        """Whether the method has come nearer to a solution, or the next one may do so."""
        return Turn.NEARER in self.turn

    def advance(self, problem: KernelMatrixAdapter, tol: float, portfolio: Portfolio) -> Stage:
        """The stage after one more round; the same object if nothing is left to do."""
        stage = self._following(problem, portfolio)
        while True:
            method, turn = stage.method.advance(problem, tol)
            now = replace(stage, method=method, found=turn.value)
            if method is not stage.method:
                now = now._watched(problem, portfolio)
                if now.nearer or now._handover(problem, portfolio) is None:
                    return now
                return replace(now, found=(now.turn | Turn.NEARER).value)  # the next one may
            stage = now._following(problem, portfolio)
            if stage is now:  # no round was played, and no other method plays it
                return self if method is self.method and turn == self.turn else now

    def _watched(self, problem: KernelMatrixAdapter, portfolio: Portfolio) -> Stage:
        """The same, which has found whether its bounds still come nearer, and fast enough."""
        now = replace(self, rounds=self.rounds + 1)
        if now.rounds < portfolio.patience:
            return now
        lower, upper = best = best_bounds(problem, self.candidates, self.best)
        still = 0 if came_nearer(self.seen, best) else self.still + 1
        now = replace(now, best=best, still=still, seen=self.seen if still else best)
        # a method that has come far is left more time, as another one begins anew
        stalled = still >= min(max(portfolio.patience, now.rounds // 4), 2 * portfolio.patience - 1)
        if now.rounds % portfolio.long_patience == 0:
            gap = 1.0 - lower / upper if lower > 0.0 else 1.0
            stalled |= gap > portfolio.nearer * self.gap
            now = replace(now, gap=gap)
        return replace(now, found=(now.turn | Turn.STALLED).value) if stalled else now

    def _following(self, problem: KernelMatrixAdapter, portfolio: Portfolio) -> Stage:
        """The stage of the next round: this one, or that of a method that takes over."""
        if Turn.MANY in self.turn and self.before is not None:
            return Stage(self.before, done=self.done)
        handover = self._handover(problem, portfolio)
        if handover is None:
            return self
        method = handover.begin(problem, portfolio, self.method)
        done = (*self.done, handover.key)
        if method is None:
            return replace(self, done=done)._following(problem, portfolio)
        before = self.method if handover.returns else None
        return Stage(method, method.begun.value, done, before)._following(problem, portfolio)

    def _handover(self, problem: KernelMatrixAdapter, portfolio: Portfolio) -> Handover | None:
        """The first handover that applies, if there is one."""
        for (method, turn), handovers in NEXT.items():
            if not (isinstance(self.method, method) and turn & self.turn):
                continue
            shape = Shape.of(problem)
            for handover in handovers:
                new = handover.key not in self.done
                if new and handover.applies(shape, portfolio, self.method):
                    return handover
        return None
