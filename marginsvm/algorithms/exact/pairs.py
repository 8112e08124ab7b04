"""Margins with a kernel: weights in pairs, or of one example, on columns in float32.

Rounds are those of :mod:`marginsvm.algorithms.exact.climb`. Kernel values are computed once for
each pair of an example and one that was in the working set, in float32. Bounds need float64: for
the examples with weight, and for those whose margins are not beyond 1 by more than the error of
float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import (
    candidates_of_weights,
    hinge_candidates,
    relative_gap,
    under_intercepts,
)
from marginsvm.algorithms.exact.choosing import first_examples
from marginsvm.algorithms.exact.climb import STEPS_AN_EXAMPLE, Climb, Course, Dual
from marginsvm.algorithms.exact.climb_of_classes import ClimbOfClasses
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.caps import of_examples, room_below, sums_of_examples
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.problem.responses import balanced
from marginsvm.rows import Vector, support_of

# What float32 rounds of an inner product, relative to it.
_ROUNDED = float(np.finfo(np.float32).eps)
# Rounds with scores in float64 go on while each call leaves so much of the gap at most.
_HALVED = 0.5
# By how much margins in float64, which are about 1, may miss their order.
_IN_FLOAT64 = 1e-8
# Numbers that a round reads or computes at least: a tenth of a second, or about.
PASS = 3e8


def dual_of(problem: GramAdapter) -> Dual:
    """The weights that rounds look for."""
    rows, scale = problem.rows, 1.0 / problem.radius**2
    n = rows.n_examples
    slack = np.zeros(n)
    if problem.slack is not None:  # all rows of an example have the same
        slack = np.ascontiguousarray(problem.slack.reshape(n, -1)[:, 0])
    return Dual(
        problem.single,
        rows.codes if rows.n_classes > 2 else rows.moves(np.ones(n)),
        np.full(n, np.inf) if problem.caps is None else problem.caps.largest,
        slack,
        rows.balanced,
        scale,
        scale * problem.constant**2,
    )


def best_multiple(problem: KernelMatrixAdapter, proof: Vector) -> Array:
    """The multiple of some weights that proves most, none of them above its cap."""
    best, u = proof.mass / max(problem.norm(proof) ** 2, 1e-300), np.maximum(proof.coef, 0.0)
    if problem.caps is not None:  # what a cap cut off would leave the classes out of balance
        best = min(best, room_below(problem.caps.largest, sums_of_examples(u)))
    return best * u


def weights_by_pairs(
    problem: KernelMatrixAdapter, most: int, start: Array | None = None
) -> Array | None:
    """Weights by the inner products of all examples in float64, from others that are near.

    They are left as they are, or None, if there are more examples than ``most``.
    """
    from marginsvm.algorithms.compiled.pairs import ascend_pairs

    if problem.n_rows > most or problem.rows.n_classes > 2:
        return start
    assert problem.caps is not None
    rows, n = problem.rows, problem.n_rows
    K, y, none = problem.inner_products(np.arange(n)), rows.moves(np.ones(n)), np.zeros(n)
    v, caps = np.zeros(n) if start is None else y * start, problem.caps.largest
    ends, steps = (np.minimum(y, 0.0) * caps, np.maximum(y, 0.0) * caps), STEPS_AN_EXAMPLE * n
    ascend_pairs(K, y, none, *ends, none, rows.balanced, _IN_FLOAT64, steps, v, K @ v)
    return y * v


def _with_errors(climb: Climb) -> tuple[Array, Array]:
    """Scores anew, and the error of each margin of an example due to float32."""
    used, n, mass = support_of(climb.u), len(climb.u), sums_of_examples(climb.u)
    prepared, F = climb.columns.prepared, climb.f.T
    if prepared is None or len(used) > climb.columns.room:
        return F, np.full(n, np.inf)
    relative, sizes = prepared.error(used), np.zeros(n)
    if np.isinf(relative).all():
        return F, relative
    climb.f = np.zeros_like(climb.f)
    climb.add(used, climb.u[used])
    # with more classes as well, no margin changes by more than the weight times a kernel value
    climb.add_products(used, mass[used], sizes)
    # and what the sums in float64 round, as well as values too small for float32
    relative += FEW + len(used) * FEW + 1e-37
    error = relative * sizes + 1e-37 * float(mass.sum()) * climb.dual.scale
    return climb.f.T, error


@dataclass(frozen=True)
class OnColumns(Method):
    """Weights on the examples, and their scores.

    Attributes
    ----------
    u : ndarray of shape rows.shape
        Weights; in tubes, of either sign.
    f : ndarray of shape (n,) or (k, n)
        Scores, from float32 values.
    work : ndarray of int
        The working set.
    course : Course
        How rounds went so far.
    candidates : tuple of Candidate
    settled : float
        The state is final for every tolerance from this one up.
    limit : str
        See ``Climb``.
    """

    climb: ClassVar[type[Climb]]

    u: Array
    f: Array
    work: Array
    course: Course = Course()  # noqa: RUF009
    candidates: tuple[Candidate, ...] = ()
    settled: float = np.inf
    limit: str = ""

    def estimates(self, problem: GramAdapter, climb: Climb, tol: float) -> tuple[Candidate, ...]:
        """What the scores in float32 show, less the tolerance: it is not to end a fit.

        Nor is it to stand beside later proofs: margins, which are about 1, may be off by what
        float32 rounds.
        """
        farthest, mass = problem.errors.farthest, float(climb.u.sum())
        tol = max(tol, _ROUNDED * mass * farthest**2)
        vector = Vector(np.ascontiguousarray(climb.f.T), climb.u)
        margins = problem.rows.margins(vector.image)
        low, high = self.bounds(problem, climb, vector, margins)
        assert low.norm is not None
        low = replace(low, norm=low.norm * (1.0 + tol), margins=None)
        if high.norm_bound is not None:
            return low, Candidate(vector, norm_bound=high.norm_bound * max(1.0 - tol, _ROUNDED))
        mass = vector.mass * (1.0 - tol) - climb.price_of_excess
        return low, Candidate(vector, max(mass, _ROUNDED * vector.mass))

    def proved(self, problem: GramAdapter, climb: Climb, tol: float) -> tuple[Candidate, ...]:
        """Bounds with scores in float64 for all examples that may count.

        The scores of the others are below what they are by the error of float32.
        """
        rows = problem.rows
        climb.u = balanced(rows, climb.u)  # steps by one example at a time nearly do
        F, error = _with_errors(climb)
        margins = rows.margins(F)
        lowest = of_examples(under_intercepts(problem, margins, climb.b)[0]) - error
        sure = (lowest > 1.0) & (sums_of_examples(climb.u) == 0.0)
        vector = problem.with_scores(climb.u, F, np.flatnonzero(~sure))
        off = rows.per_example(np.where(sure, error, 0.0))
        return self.bounds(problem, climb, vector, rows.margins(vector.image) - off)

    def bounds(
        self, problem: GramAdapter, climb: Climb, vector: Vector, margins: Array
    ) -> tuple[Candidate, ...]:
        """A predictor with these margins, slack left out, and the proof: they are one vector."""
        if problem.caps is None:
            return candidates_of_weights(problem, vector, margins, climb.b)
        shifted = under_intercepts(problem, margins, climb.b)[0]
        low, high = hinge_candidates(problem, vector, shifted, vector)
        return replace(low, vector=vector, margins=margins), high

    def dual(self, problem: GramAdapter) -> Dual:
        """The weights that rounds look for."""
        return dual_of(problem)

    def rounds(self, problem: GramAdapter) -> Climb:
        """The rounds of a call, which begin at this state."""
        course = self.course if np.isinf(self.settled) else self.course._replace(idle=0)
        return self.climb(self.dual(problem), self.u, self.f, self.work, course)

    def after(self, climb: Climb) -> Self:
        """The state after rounds."""
        now = replace(self, u=climb.u, f=climb.f, work=climb.work, course=climb.course)
        return replace(now, limit=climb.limit, settled=np.inf)

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Self, Turn]:
        """Some rounds on working sets, until bounds are near each other or this takes a while."""
        if tol >= self.settled:
            return self, Turn.STALLED
        assert isinstance(problem, GramAdapter)
        climb = self.rounds(problem)
        if not climb.run(tol, PASS):
            estimates = self.estimates(problem, climb, tol)
            return replace(self.after(climb), candidates=estimates), Turn.NEARER
        proved = () if np.isinf(climb.gap) else self.proved(problem, climb, tol)  # it has diverged
        return replace(self.after(climb), candidates=proved, settled=tol), Turn.STALLED


@dataclass(frozen=True)
class Pairs(OnColumns):
    """Weights of two classes, which change by two examples at a time.

    Attributes
    ----------
    gap : float
        Relative gap of the last bounds in float64.
    """

    name: ClassVar[str] = "pairs"
    climb: ClassVar[type[Climb]] = Climb

    gap: float = np.inf

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Self:
        """Begin with some examples of each class."""
        shape = problem.rows.shape
        return cls(np.zeros(shape), np.zeros(shape[::-1]), first_examples(problem))

    @classmethod
    def of(cls, problem: KernelMatrixAdapter, proof: Vector) -> Self:
        """Begin at some weights, at the multiple of them below the caps that is best."""
        u = best_multiple(problem, proof)
        return cls(u, np.zeros(u.shape[::-1]), support_of(u))

    @property
    def weights(self) -> Array:
        return self.u

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Self, Turn]:
        """The same; with the hinge loss, more rounds mend what float32 has rounded.

        Other losses are handed over to working sets of rows, which are quicker at that.
        """
        now, turn = super().advance(problem, tol)
        if turn != Turn.STALLED or problem.caps is None or not now.candidates:
            return now, turn
        gap = relative_gap(problem, now.candidates)
        if not tol < gap <= _HALVED * self.gap:
            return now, turn
        f = np.ascontiguousarray(now.candidates[0].combination.image.T)  # from float64
        course = now.course._replace(idle=0)
        return replace(now, f=f, course=course, gap=gap, settled=np.inf), Turn.NEARER


@dataclass(frozen=True)
class OneByOne(Pairs):
    """Those of more than two classes, which change by one example at a time."""

    name: ClassVar[str] = "one example at a time"
    climb: ClassVar[type[Climb]] = ClimbOfClasses
