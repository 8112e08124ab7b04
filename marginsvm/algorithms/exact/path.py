"""Hard margins, and soft ones with a large C, by softer ones on the way.

The square s of the rows' extra coordinates falls along the path, and each soft margin is solved
loosely, from the solution of the last. Its weights become multipliers (the augmented Lagrangian,
or method of multipliers): they make up for the slack that the problem itself does not give, so that
they turn exact at an s that stays as it is.

References
----------
R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research 1976.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._rounding import inner
from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.starts import sparse_problem
from marginsvm.algorithms.exact.systems import System
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.rows import Vector

# Square of the extra coordinate that the path begins with (in radii squared): C = 10 / R^2.
_FIRST = 0.05
# Factor by which it falls from one soft margin to the next.
_HARDER = 0.1
# Square of the extra coordinate at which the path ends (in radii squared): beyond, rounding
# of margins, which are about 1, is all that it resolves.
_LAST = 1e-13
# Share of the gap that an update of the multipliers must remove; if it does not, s falls.
_PROGRESS = 0.5
# Epochs of coordinate ascent before the path, where the rows are sparse: the weights that the
# first multipliers are made of.
_EPOCHS = 10


@dataclass(frozen=True)
class Path(Method):
    """A soft margin on the way to that of the problem.

    Attributes
    ----------
    newton : Newton
        Its iterate.
    gap : float
        Relative gap between the bounds on the problem's margin when the multipliers were last
        updated.
    soft : bool
        Whether the problem is a soft margin.
    ended : bool
        The hardest margin of the path is solved: either the problem's own is next, or nothing
        separates still.
    """

    name: ClassVar[str] = "multipliers"

    newton: Newton
    gap: float = np.inf
    soft: bool = False
    ended: bool = False

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, system: System, u: Array | None = None) -> Path:
        """Begin where the soft margin is easy; weights that are known are its multipliers."""
        s = np.full((1,) * len(problem.rows.shape), _FIRST)
        if problem.slack is not None:
            s = s * _prior(problem)
            if u is None and csr_examples(problem) is not None and problem.rows.n_classes == 2:
                u = sparse_problem(problem).ascend(_EPOCHS) * problem.radius**2
        if u is None:
            start = Newton.start(problem, Slack(_own(problem), soft=s - _own(problem)), system)
        else:
            w, slack = problem.combine(u).image, Slack(_own(problem), soft=s - _own(problem), v=u)
            scores = problem.scores(Vector(w, np.zeros(problem.rows.shape)))
            start = Newton.at(problem, slack, system, w, problem.rows.margins(scores))
        return cls(start, soft=problem.slack is not None)

    @property
    def candidates(self) -> tuple[Candidate, ...]:  # type: ignore[override]
        return self.newton.candidates

    @property
    def weights(self) -> Array | None:
        return self.newton.weights if self._bounded else None

    @property
    def _bounded(self) -> bool:
        """Whether the best weights are: the last predictor has a positive margin on all rows."""
        margin = self.newton.candidates[0].min_margin
        return margin is not None and margin > 0.0

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Path, Turn]:
        """One step of Newton's method, and on to the next soft margin where that was enough."""
        if self.ended:
            return self, Turn.ENDED
        newton, turn = self.newton.advance(problem, tol)
        now = replace(self, newton=newton)
        turn &= ~Turn.SHORT  # softer margins are what a path is of
        if not self.soft and now._bounded:
            turn |= Turn.FEW
        if newton.settled or now._near(problem):
            now, turn = now._harder(problem), turn & Turn.FEW | Turn.NEARER
        return now, Turn.ENDED if now.ended else turn

    def last(self, problem: KernelMatrixAdapter) -> Newton:
        """The problem's own soft margin, where the path to it has ended."""
        assert problem.slack is not None
        return self._next(problem, Slack(problem.slack))

    def _near(self, problem: KernelMatrixAdapter) -> bool:
        """Whether this soft margin is solved as precisely as it is near to the problem's."""
        slack, u = self.newton.slack, self.newton.separator.coef
        left = self.newton.separator.image - self.newton.proof.image
        return inner(left, left) <= float(np.sum(slack.soft * (u - slack.v) ** 2))

    def _next(self, problem: KernelMatrixAdapter, slack: Slack) -> Newton:
        """The iterate at the same predictor, for another soft margin."""
        newton = self.newton
        w, system = newton.separator.image, newton.system.anew()
        new = Newton.at(problem, slack, system, w, newton.margins)
        return replace(new, steps=newton.steps)

    def _harder(self, problem: KernelMatrixAdapter) -> Path:
        """The next soft margin: with new multipliers, a smaller s, or both."""
        newton, own, gap = self.newton, _own(problem), self._gap(problem)
        least = np.maximum(own, _LAST)
        slow = gap > _PROGRESS * self.gap
        s = np.maximum(newton.slack.s * (_HARDER if slow else 1.0), least)
        at_end = np.all(newton.slack.s <= least) if problem.slack is None else np.all(s <= least)
        if at_end and not (problem.slack is None and self._bounded):  # or nothing separates
            return replace(self, ended=True)
        slack = Slack(own, soft=s - own, v=newton.weights)
        return replace(self, newton=self._next(problem, slack), gap=gap)

    def _gap(self, problem: KernelMatrixAdapter) -> float:
        separator, proof = self.newton.candidates
        lower = (separator.min_margin or 0.0) / max(problem.norm(separator.vector), 1e-300)
        upper = problem.norm(proof.vector) / max(proof.mass, 1e-300)
        return 1.0 - lower / max(upper, 1e-300)


def is_steep(problem: KernelMatrixAdapter) -> bool:
    """Whether the problem leaves so little slack that a path leads to it sooner."""
    return problem.slack is None or bool(np.all(problem.slack < _FIRST * _prior(problem)))


def _own(problem: KernelMatrixAdapter) -> float | Array:
    """The square of the extra coordinates that the problem has."""
    return 0.0 if problem.slack is None else problem.slack


def _prior(problem: KernelMatrixAdapter) -> float | Array:
    """Factor for each row: examples of small weight get as much slack as a soft margin gives."""
    weights = problem.rows.weights
    return 1.0 if weights is None else problem.rows.per_example(weights.mean() / weights)
