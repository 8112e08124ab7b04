"""Tubes of unknown width with a kernel: pairs of weights at given widths, until one is the best.

The wider the tube, the less the sizes of weights sum to, and at the best width that is the share
that they may. Rounds at a given width are those of :mod:`marginsvm.algorithms.exact.tube_pairs`.
While they are coarse, the width follows the distances of the scores. Later, the weights that are at
neither end say both: with their sum given, the width is one more unknown of their system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import interval_candidates
from marginsvm.algorithms.exact.interior.ends import Solved, solved_for_free
from marginsvm.algorithms.exact.method import MAX_ROWS, Turn, is_proved
from marginsvm.algorithms.exact.pairs import PASS
from marginsvm.algorithms.exact.tube_pairs import ClimbOfTubes, TubePairs
from marginsvm.certify.prices import hinge_caps
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import intervals_of

# Gap of the rounds at the first width; from which on weights say the next one; and its fall from
# one width to the next.
_FIRST_GAP, _SAYS_WIDTH, _LESS = 0.2, 2e-2, 0.1
# Share of the tolerance that is to be proved: an output is certified at that.
_HALF_OF_TOL = 0.5
# Gap from which on the mean of two widths may prove the best one.
_FINE_GAP = 2e-5
# How far beyond their ends solved weights may be, beside the largest cap, to be worth their bounds.
_WORTH = 1e-3
# Numbers read, over the cube of the number of examples, after which interior points have been
# quicker: their steps compute with that many, but out of a cache.
_LONG_READ = 0.5
# By how much more a width changes than the mass of its weights is off, so that it lies beyond the
# best one; sizes of weights fall more slowly than widths grow.
_PAST = 5.0
# Widths at most: four to six lead to the last digits.
_WIDTHS = 20


@dataclass(frozen=True, eq=False)
class AtWidth:
    """The weights of a width.

    Attributes
    ----------
    width : float
    v : ndarray of shape (n,)
    goal : float
        Gap at which rounds ended.
    """

    width: float
    v: Array
    goal: float

    @property
    def mass(self) -> float:
        """What their sizes sum to."""
        return float(np.abs(self.v).sum())


@dataclass(frozen=True)
class TubeShares(TubePairs):
    """The same at one width after the other: as solved, or between those that are known.

    Attributes
    ----------
    width : float
        Half that of the tube.
    narrow, wide : AtWidth or None
        The nearest widths that are too small, and too large; None: it is not known as precisely.
    goal : float
        Gap at which rounds of this width end.
    left : int
        Widths that may follow.
    read : float
        Numbers that were read or computed in all.
    """

    name: ClassVar[str] = "pairs of tubes of some width"

    width: float = 0.0
    narrow: AtWidth | None = None
    wide: AtWidth | None = None
    goal: float = _FIRST_GAP
    left: int = _WIDTHS
    read: float = 0.0

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[TubeShares, Turn]:
        """Rounds at some widths, until the weights prove the best one or this takes a while."""
        if tol >= self.settled:
            return self, Turn.STALLED
        assert isinstance(problem, GramAdapter)
        climb = self.rounds(problem)
        assert isinstance(climb, ClimbOfTubes)
        now = self
        dear = _LONG_READ * problem.n_rows**3
        while climb.read < PASS:
            climb.widen(problem, now.width)
            ended = climb.run(now.goal, PASS)
            now = now.after(climb)
            if not ended:
                break
            now = now._with_next_width(problem, climb, tol)
            if now.settled < np.inf or not now.left or self.read + climb.read > dear:
                return replace(now, settled=tol), Turn.STALLED
        return replace(now, read=self.read + climb.read), Turn.NEARER

    def _with_next_width(self, problem: GramAdapter, climb: ClimbOfTubes, tol: float) -> TubeShares:
        """The same for the width that these weights say, or with what they prove."""
        caps, target = hinge_caps(problem.caps), intervals_of(problem.rows).low
        now = replace(self, goal=max(_LESS * self.goal, tol), left=self.left - 1)
        if self.goal > _SAYS_WIDTH:
            return replace(now, width=float(caps.width(np.abs(target - climb.f - climb.b))))
        here, most = AtWidth(self.width, climb.u.copy(), self.goal), float(caps.most)
        sides = [None if a is None or _LESS * a.goal > self.goal else a for a in self._sides]
        sides[int(here.mass <= most)] = here
        now = replace(now, narrow=sides[0], wide=sides[1])
        solved = solved_for_free(problem, climb.u)
        if solved is None and problem.n_rows <= MAX_ROWS:
            return replace(now, left=0)  # few dimensions, which suits interior points
        between = now._between(most)
        best = solved if solved is not None and solved.beyond <= _WORTH else between
        if best is not None and (best is solved or self.goal <= _FINE_GAP):
            proof = problem.combine(best.v, precise=True)
            found = interval_candidates(problem, proof, proof)
            if is_proved(problem, found, _HALF_OF_TOL * tol):
                return replace(now, candidates=found, settled=tol)
        return replace(now, width=now._next(solved, between, here.mass / most))

    @property
    def _sides(self) -> tuple[AtWidth | None, AtWidth | None]:
        return self.narrow, self.wide

    def _between(self, most: float) -> AtWidth | None:
        """The mean of what is known on both sides, whose sizes sum to no more than they may."""
        if self.narrow is None or self.wide is None:
            return None
        a, b = self.narrow, self.wide
        t = (most - b.mass) / (a.mass - b.mass)
        mixed = t * a.width + (1.0 - t) * b.width, t * a.v + (1.0 - t) * b.v
        return AtWidth(*mixed, max(a.goal, b.goal))

    def _next(self, solved: Solved | None, between: AtWidth | None, mass: float) -> float:
        """The next width: as solved, if that is possible."""
        narrow = 0.0 if self.narrow is None else self.narrow.width
        wide = np.inf if self.wide is None else self.wide.width
        if solved is not None and narrow < solved.width < wide:
            return solved.width
        if between is None:
            return self.width * float(np.clip(1.0 + _PAST * (mass - 1.0), 0.5, 2.0))
        return between.width
