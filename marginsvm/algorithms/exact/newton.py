"""Soft margins by Newton's method in feature space.

``min |w|^2/2 + sum_r max(0, 1 - m_r)^2 / (2 s_r)`` over predictors w with intercepts, m their
margins and s the squares of the rows' extra coordinates. Every iterate brings both bounds: with
the slack it needs, w separates, and the slacks over s are the data player's weights, balanced
since the intercepts are the best ones.

References
----------
S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large scale
linear SVMs. JMLR 2005.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._rounding import inner
from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems import Direct, System
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Vector

# Steps after which a working set of the active rows is quicker, if they are few.
_STEPS = 15
# Unknowns up to which a system is solved directly (72 MB, some tenths of a second) where products
# have left a step without effect: conditioning is then too bad for them.
_UNKNOWNS = 3000
# Decrease of the objective in a step, relative to the most by which it may still fall, up to which
# nothing moves.
_MORE = 1e-8
# A step is idle if it leaves so large a share of a gap that is larger than the second number; after
# so many in a row, steps are known to be short.
_LEFT, _FAR, _IDLE = 0.9, 1.0, 2


@dataclass(frozen=True)
class Newton(Method):
    """An iterate, and what is known of Newton's system there.

    Attributes
    ----------
    slack : Slack
        The penalty.
    system : System
        Solves Newton's systems.
    margins : ndarray of shape rows.shape
        Of ``w`` with its best intercepts; slack left out.
    separator : Vector
        The image ``w``, and the weights ``u`` (slacks over s).
    proof : Vector
        ``A^T u``.
    candidates : tuple of Candidate
    steps : int
        Taken so far.
    settled : bool
        The last step changed nothing.
    idle : int
        Steps in a row that hardly reduced a large gap.
    fell : float
        By how much the last step reduced the objective; infinite before the first.
    """

    name: ClassVar[str] = "Newton"

    slack: Slack
    system: System
    margins: Array
    separator: Vector
    proof: Vector
    candidates: tuple[Candidate, ...]
    steps: int = 0
    settled: bool = False
    idle: int = 0
    fell: float = np.inf

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, slack: Slack, system: System) -> Newton:
        """Begin at w = 0."""
        rows = problem.rows
        b = slack.intercept_alone(rows) if rows.balanced else np.zeros(1)
        margins = rows.margins(np.broadcast_to(b, rows.score_shape))
        return cls.at(problem, slack, system, problem.zeros().image, margins)

    @classmethod
    def at(
        cls,
        problem: KernelMatrixAdapter,
        slack: Slack,
        system: System,
        w: Array,
        margins: Array,
    ) -> Newton:
        """Bounds at w, under its best intercepts."""
        rows = problem.rows
        if rows.balanced:
            b = slack.best_intercept(rows, margins)
            margins = margins + rows.moves(np.broadcast_to(b, rows.score_shape))
        u = slack.weights(margins)
        if rows.balanced and not u.any():  # of those without slack, the ones of largest margin
            beta = rows.best_offsets(rows.group_min(margins))
            margins = margins + rows.expand(beta[:, None] - beta)
        separator, proof = Vector(w, u), problem.combine(u, precise=True)
        lower = cls._lower(problem, margins, separator)
        seen = lower, Candidate(proof, proof.mass, precise=True)
        return cls(slack, system, margins, separator, proof, seen)

    @staticmethod
    def _lower(problem: KernelMatrixAdapter, margins: Array, separator: Vector) -> Candidate:
        """The predictor, with the slack that it needs in the problem itself."""
        if problem.slack is None:
            lowest = problem.rows.min_margin(problem.rows.group_min(margins))
            return Candidate(separator, min_margin=lowest)
        needed = np.maximum(1.0 - margins, 0.0) / problem.slack
        return Candidate(Vector(separator.image, needed), min_margin=1.0)

    @cached_property
    def gap(self) -> float:
        """Gap between this soft margin's objective and that of the weights, relative to it."""
        left = self.separator.image - self.proof.image
        return 0.5 * inner(left, left) / max(self.objective, 1e-300)

    @cached_property
    def objective(self) -> float:
        """The soft margin's."""
        w, u = self.separator.image, self.separator.coef
        return 0.5 * (inner(w, w) + float(np.vdot(self.slack.s * u, u)))

    @property
    def weights(self) -> Array:
        """The data player's."""
        return self.separator.coef

    @property
    def _moving(self) -> bool:
        """Whether the last step reduced the objective, which cannot fall by more than its gap."""
        return self.fell > _MORE * min(self.gap, 1.0) * self.objective

    @property
    def _turn(self) -> Turn:
        """What the last step has found; next to a separator, where C is large, many are taken."""
        turn = Turn.NEARER if self._moving else Turn.STALLED
        if self.idle >= _IDLE:
            turn |= Turn.SHORT
        return turn | Turn.FEW if self.steps >= _STEPS else turn

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Newton, Turn]:
        """One step along Newton's direction, and the bounds of where it ends."""
        if self.settled:
            return self, Turn.ENDED
        w = self.separator.image
        z, move, system = self._direction(problem)
        slope, square = inner(w, z), inner(z, z)
        t = self.slack.line_search(self.margins, move, slope, square)
        new = self.at(problem, self.slack, system, w + t * z, self.margins + t * move)
        if new.proof.mass <= 0.0:  # no row has slack: the last proof remains
            new = replace(new, candidates=(new.candidates[0], self.candidates[1]))
        settled = (new.separator - self.separator).largest_entry() == 0.0
        idle = self.idle + 1 if new.gap > max(_LEFT * self.gap, _FAR) else 0
        fell = self.objective - new.objective
        new = replace(new, steps=self.steps + 1, settled=settled, idle=idle, fell=fell)
        return new, new._turn

    def _direction(self, problem: KernelMatrixAdapter) -> tuple[Array, Array, System]:
        """Newton's direction, what it adds to the margins, and the system that gave it."""
        w, u = self.separator.image, self.separator.coef
        if not u.any():  # no row has slack: the predictor shrinks, and its intercept with it
            return -w, np.where(np.isfinite(self.margins), -self.margins, 0.0), self.system
        weight = (u > 0) / self.slack.s
        lost = not self._moving and self.system.by_passes and w.size <= _UNKNOWNS
        system = Direct() if lost else self.system
        direction, system = system.solve(problem, weight, self.proof.image - w)
        z, shift = direction[..., : w.shape[-1]], direction[..., w.shape[-1] :]
        F = problem.scores(Vector(z, np.zeros(problem.rows.shape)))
        if problem.rows.balanced:
            F = F + shift[..., 0]
        return z, problem.rows.moves(F), system
