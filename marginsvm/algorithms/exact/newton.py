"""Newton's method for soft margins of any kind: one step, and the bounds of where it ends.

    minimise |w|^2 / 2 + sum of the costs of all margins

over predictors w with intercepts, for the costs of :class:`Slack`. The weights u that attain the
costs are the data player's; they are balanced, since the intercepts are the best ones. The gradient
is ``w - A'u``, and ``|w - A'u|^2 / 2`` is the gap to the optimum.

References
----------
S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large scale
linear SVMs. JMLR 2005.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import candidates_of, candidates_of_weights
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems.system import Equation, System
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import has_curvature
from marginsvm.rows import OutputRows, Predictor, Vector

# Decrease of the objective in a step, relative to it, that is rounding.
_ROUNDED_DECREASE = 1e-14
# A step is idle if the gap exceeds the objective and is at least 0.9 of what it was. After two idle
# steps, softer margins come first.
_LEFT, _IDLE = 0.9, 2


@dataclass(frozen=True)
class Newton(Method):
    """An iterate, and what is known of Newton's system there.

    Attributes
    ----------
    slack : Slack
        The cost.
    system : System
        Solves Newton's systems.
    w : Predictor
        The predictor. Of features, its coefficients are of no account.
    b : ndarray of shape rows.score_shape[1:]
        The best intercepts of its scores.
    margins : ndarray of shape rows.shape
        Its margins with these.
    proof : Vector
        ``A'u`` of the weights u.
    objective, gap : float
        The objective, and by how much it is above the least one, at most.
    candidates : tuple of Candidate
    steps : int
        Taken so far.
    idle : int
        Steps in a row that hardly reduced a large gap.
    fell : float
        By how much the last step reduced the objective; infinite before the first.
    settled : bool
        The last step changed nothing.
    """

    name: ClassVar[str] = "Newton"

    slack: Slack
    system: System
    w: Predictor
    b: Array
    margins: Array
    proof: Vector
    objective: float
    gap: float
    candidates: tuple[Candidate, ...]
    steps: int = 0
    idle: int = 0
    fell: float = np.inf
    settled: bool = False

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, slack: Slack, system: System) -> Newton:
        """Begin at w = 0."""
        rows, b = problem.rows, np.zeros(problem.rows.score_shape[1:])
        if rows.balanced:
            b = slack.intercept_alone(rows)
        margins = rows.margins(np.broadcast_to(b, rows.score_shape))
        return cls.at(problem, slack, system, problem.zeros(), b, margins)

    @classmethod
    def of(cls, problem: KernelMatrixAdapter, slack: Slack, system: System, w: Predictor) -> Newton:
        """Begin at a predictor."""
        margins = problem.rows.margins(problem.scores(w))
        return cls.at(problem, slack, system, w, np.zeros(problem.rows.score_shape[1:]), margins)

    @classmethod
    def at(
        cls,
        problem: KernelMatrixAdapter,
        slack: Slack,
        system: System,
        w: Predictor,
        b: Array,
        margins: Array,
    ) -> Newton:
        """The iterate at a predictor that has these margins with the intercepts b."""
        rows = problem.rows
        slack, more = slack.settled(rows, margins)
        if rows.balanced:
            b, margins = b + more, margins + rows.moves(np.broadcast_to(more, rows.score_shape))
        u = slack.weights(margins)
        if rows.balanced and not isinstance(rows, OutputRows) and not u.any():
            # of the intercepts without slack, those of the largest margin
            beta = rows.best_offsets(rows.group_min(margins))
            b, margins = b + rows.score_offsets(beta), margins + rows.expand(beta[:, None] - beta)
        proof = problem.combine(u, precise=True)
        left = w - proof
        objective = 0.5 * problem.inner(w, w) + slack.cost(margins, u)
        gap = 0.5 * max(problem.inner(left, left), 0.0)
        if has_curvature(problem) or problem.caps is not None:
            seen = candidates_of(problem, w, margins, proof)
        else:  # of inner products, a predictor's coefficients say its length
            seen = candidates_of_weights(problem, proof, rows.margins(problem.scores(proof)))
        return cls(slack, system, w, b, margins, proof, objective, gap, seen)

    def with_slack(self, problem: KernelMatrixAdapter, slack: Slack) -> Newton:
        """The iterate at the same predictor, for another cost."""
        rows, w, margins = problem.rows, self.w, self.margins
        if not has_curvature(problem):  # rounding of earlier, longer vectors counts 1/s times
            w = problem.combine(w.coef, precise=True)
            margins = rows.margins(problem.scores(w) + self.b)
        new = self.at(problem, slack, self.system, w, self.b, margins)
        return replace(new, steps=self.steps, fell=self.fell)

    @property
    def weights(self) -> Array:
        """The data player's."""
        return self.proof.coef

    @property
    def _share(self) -> float:
        """The gap, as a share of the objective."""
        return self.gap / max(abs(self.objective), 1e-300)

    @property
    def moving(self) -> bool:
        """Whether the last step reduced the objective by more than rounding."""
        return self.fell > _ROUNDED_DECREASE * abs(self.objective)

    @property
    def _turn(self) -> Turn:
        """What the last step has found."""
        turn = Turn.NEARER if self.moving else Turn.STALLED
        return turn | Turn.SHORT if self.idle >= _IDLE else turn

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Newton, Turn]:
        """One step along Newton's direction, and the bounds of where it ends."""
        if self.settled:
            return self, Turn.STALLED
        z, shift, move, rise, system = self._direction(problem)
        t = self.slack.line_search(
            self.margins, move, problem.inner(self.w, z), problem.inner(z, z), rise
        )
        to = self.w + t * z, self.b + t * shift, self.margins + t * move
        new = self.at(problem, self.slack, system, *to)
        if not new.weights.any():  # no row has slack: the last proof remains
            new = replace(new, candidates=(new.candidates[0], self.candidates[1]))
        same = np.array_equal(new.w.image, self.w.image)
        settled = same and np.array_equal(new.weights, self.weights)
        idle = self.idle + 1 if new._share > max(_LEFT * self._share, 1.0) else 0
        fell = self.objective - new.objective
        new = replace(new, steps=self.steps + 1, idle=idle, fell=fell, settled=settled)
        return new, new._turn

    def _direction(
        self, problem: KernelMatrixAdapter
    ) -> tuple[Predictor, Array, Array, float, System]:
        """Newton's direction, its intercepts, what it adds to margins and level, its system."""
        if not self.weights.any():  # the predictor shrinks, and its intercept with it
            move = np.where(np.isfinite(self.margins), -self.margins, 0.0)
            return -1.0 * self.w, -self.b, move, 0.0, self.system
        z = -1.0 * (self.w - self.proof)
        shift, system = np.zeros(self.b.shape), self.system
        weight, linked = self.slack.curvature(self.margins, self.weights)
        if weight.any() or (linked is not None and linked.any()):
            z, shift, system = system.direction(problem, Equation(weight, z, linked))
        move, rise = problem.rows.moves(problem.scores(z) + shift), 0.0
        if self.slack.mass and linked is not None:  # as much as keeps the sum of all sizes
            rise = float(linked @ move) / float(np.sqrt(weight.sum()))
        return z, shift, move, rise, system
