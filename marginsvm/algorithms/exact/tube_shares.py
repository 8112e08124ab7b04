"""Tubes of unknown width with a kernel: pairs of weights at given widths, until one is the best.

The wider the tube, the less the sizes of weights sum to, and at the best width that is the share
that they may. Rounds at a given width are those of :mod:`marginsvm.algorithms.exact.tube_pairs`.
While they are coarse, the width follows the distances of the scores. Later, the weights that are at
neither end say it: with their sum given, the width is one more unknown of their system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm.algorithms.exact.candidates import interval_candidates
from marginsvm.algorithms.exact.climb import COARSE, Course
from marginsvm.algorithms.exact.interior.ends import solved_for_free
from marginsvm.algorithms.exact.method import Turn, is_proved
from marginsvm.algorithms.exact.pairs import PASS
from marginsvm.algorithms.exact.tube_pairs import TubePairs
from marginsvm.certify.prices import hinge_caps
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import intervals_of

# Gap of the rounds at the first width; from which on weights say the next one; and its fall from
# one width to the next.
_FIRST_GAP, _SAYS_WIDTH, _LESS = 0.2, 2e-2, 0.1
# How far beyond their ends solved weights may be, beside the largest cap, to be worth their bounds.
_WORTH = 1e-3
# Error of scores that rounds begin with at another width, over the change of the width.
_OF_MOVE = 0.1
# Numbers read in a round, over the cube of the number of examples, after which interior points are
# quicker: their steps compute with that many, but out of a cache.
_LONG_READ = 0.5
# Widths at most: four to six lead to the last digits.
_WIDTHS = 20


@dataclass(frozen=True)
class TubeShares(TubePairs):
    """The same at one width after the other.

    Attributes
    ----------
    goal : float
        Gap at which rounds of this width end.
    left : int
        Widths that may follow.
    """

    name: ClassVar[str] = "pairs of tubes of some width"

    goal: float = _FIRST_GAP
    left: int = _WIDTHS

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[TubeShares, Turn]:
        """Rounds at some widths, until the weights prove the best one or this takes a while."""
        if tol >= self.settled:
            return self, Turn.STALLED
        assert isinstance(problem, GramAdapter)
        most, now = min(PASS, _LONG_READ * problem.n_rows**3), self
        unread = most
        while unread > 0.0 and now.left:
            climb = now.rounds(problem)
            ended = climb.run(now.goal, unread)
            unread, now = unread - climb.read, now.after(climb)
            if ended:
                now = now._with_next_width(problem, tol)
            if now.settled < np.inf:
                return now, Turn.STALLED
        if now.left and most == PASS:
            return now, Turn.NEARER
        return replace(now, settled=tol), Turn.STALLED

    def _with_next_width(self, problem: GramAdapter, tol: float) -> TubeShares:
        """The same for the width that these weights say, or with what they prove."""
        now = replace(self, goal=max(_LESS * self.goal, tol), left=self.left - 1)
        solved = None if self.goal > _SAYS_WIDTH else solved_for_free(problem, self.u)
        if solved is None or solved.width < 0.0:
            distances = np.abs(intervals_of(problem.rows).low - self.f - self.course.b)
            return now._of_width(float(hinge_caps(problem.caps).width(distances)))
        if solved.beyond <= _WORTH:
            proof = problem.combine(solved.v, precise=True)
            found = interval_candidates(problem, proof, proof)
            proved = is_proved(problem, found, 0.5 * tol)  # an output is certified at half of it
            now = replace(now, candidates=found, settled=tol if proved else np.inf)
        return now._of_width(solved.width)

    def _of_width(self, width: float) -> TubeShares:
        """The same for another width, whose first rounds are as coarse as that is far."""
        precision, b, *_ = self.course
        precision = min(COARSE, max(precision, _OF_MOVE * abs(width - self.width)))
        return replace(self, width=width, course=Course(precision, b))
