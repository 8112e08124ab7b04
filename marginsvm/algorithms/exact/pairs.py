"""Soft margins of two classes with a kernel: pairs of weights, on columns in float32.

Rounds are those of :mod:`marginsvm.algorithms.exact.climb`. Kernel values are computed once for
each pair of an example and one that was in the working set, in float32. Bounds need float64: for
the examples with weight, and for those whose margins are not beyond 1 by more than the error of
float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import hinge_candidates
from marginsvm.algorithms.exact.choosing import spread_evenly
from marginsvm.algorithms.exact.climb import COARSE, Climb, Dual
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.own_slack import with_least_slack
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import Vector

# Examples to begin with.
FIRST = 400
# Numbers that a round reads or computes at least: a tenth of a second, or about.
PASS = 3e8


@dataclass(frozen=True)
class Pairs(Method):
    """Weights on the examples, and their scores.

    Attributes
    ----------
    u : ndarray of shape (n,)
        Weights.
    f : ndarray of shape (n,)
        Scores, from float32 values.
    work : ndarray of int
        The working set.
    precision : float
        Error of margins up to which it is solved.
    candidates : tuple of Candidate
    settled : float
        Tolerance from which up nothing will change any more.
    """

    name: ClassVar[str] = "pairs"

    u: Array
    f: Array
    work: Array
    precision: float = COARSE
    candidates: tuple[Candidate, ...] = ()
    settled: float = np.inf

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Pairs:
        """Begin with some examples of each class, evenly spread."""
        n = problem.rows.n_examples
        return cls(np.zeros(n), np.zeros(n), spread_evenly(problem.rows.codes, FIRST))

    @classmethod
    def of(cls, problem: KernelMatrixAdapter, proof: Vector) -> Pairs:
        """Begin at some weights, at the multiple of them below the caps that is best."""
        used, best = proof.coef > 0.0, proof.mass / max(problem.norm(proof) ** 2, 1e-300)
        if problem.caps is not None:  # what a cap cut off would leave the classes out of balance
            best = min(
                best, float((problem.caps.largest[used] / proof.coef[used]).min(initial=best))
            )
        u = best * np.maximum(proof.coef, 0.0)
        return cls(u, np.zeros(len(u)), np.flatnonzero(u))

    @property
    def weights(self) -> Array:
        return self.u

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Pairs, Turn]:
        """Some rounds on working sets, until bounds are near each other or this takes a while."""
        if tol >= self.settled:
            return self, Turn.ENDED
        assert isinstance(problem, GramAdapter)
        climb = Climb(dual_of(problem), self.u, self.f, self.work, self.precision)
        ended, found = climb.run(tol, PASS), Found(problem, climb)
        now = Pairs(climb.u, climb.f, climb.work, climb.precision)
        if not ended:
            return replace(now, candidates=found.estimates(tol)), Turn.NEARER
        return replace(now, candidates=found.proved(), settled=tol), Turn.STALLED


def dual_of(problem: GramAdapter) -> Dual:
    """The weights that rounds look for."""
    n, scale = problem.n_rows, 1.0 / problem.radius**2
    return Dual(
        problem.single,
        problem.rows.moves(np.ones(n)),
        np.full(n, np.inf) if problem.caps is None else problem.caps.largest,
        np.zeros(n) if problem.slack is None else np.ascontiguousarray(problem.slack),
        problem.rows.balanced,
        scale,
        scale * problem.constant**2,
    )


@dataclass(frozen=True, eq=False)
class Found:
    """What rounds have come to, as bounds.

    Attributes
    ----------
    problem : GramAdapter
    climb : Climb
    """

    problem: GramAdapter
    climb: Climb

    def estimates(self, tol: float) -> tuple[Candidate, ...]:
        """What the scores in float32 show, less the tolerance: it is not to end a fit."""
        climb = self.climb
        vector = Vector(climb.f, climb.u)
        low, high = self._candidates(vector, climb.y * climb.f)
        assert low.norm is not None
        low = replace(low, norm=low.norm * (1.0 + tol), margins=None)
        if high.norm_bound is not None:
            return low, Candidate(vector, norm_bound=high.norm_bound * (1.0 - tol))
        return low, Candidate(vector, vector.mass * (1.0 - tol))

    def proved(self) -> tuple[Candidate, ...]:
        """Bounds with scores in float64 for all examples that may count.

        The scores of the others are below what they are by the error of float32.
        """
        climb = self.climb
        f, error = self._with_errors()
        margins = climb.y * (f + climb.b) - error
        sure = (margins > 1.0) & (climb.u == 0.0)
        vector = self.problem.with_scores(climb.u, f, np.flatnonzero(~sure))
        return self._candidates(vector, climb.y * vector.image - np.where(sure, error, 0.0))

    def _with_errors(self) -> tuple[Array, Array]:
        """Scores anew, and the error of each due to float32."""
        climb = self.climb
        used, n = np.flatnonzero(climb.u), len(climb.u)
        prepared = climb.columns.prepared
        if prepared is None or len(used) > climb.columns.room:
            return climb.f, np.full(n, np.inf)
        relative, f, sizes = prepared.error(used), np.zeros(n), np.zeros(n)
        if np.isinf(relative).all():
            return climb.f, relative
        climb.add_products(used, climb.y[used] * climb.u[used], f)
        climb.add_products(used, climb.u[used], sizes)
        # and what the sums in float64 round, as well as values too small for float32
        relative += FEW + len(used) * FEW + 1e-37
        return f, relative * sizes + 1e-37 * float(climb.u.sum()) / self.problem.radius**2

    def _candidates(self, vector: Vector, margins: Array) -> tuple[Candidate, ...]:
        """The predictor with these margins, slack left out, and the proof: they are one vector."""
        problem, climb = self.problem, self.climb
        if problem.caps is not None:
            shifted = margins + climb.y * climb.b
            low, high = hinge_candidates(problem, vector, shifted, vector)
            return replace(low, vector=vector, margins=margins), high
        length = float(np.sqrt(max(problem.inner(vector, vector), 0.0)))
        least = with_least_slack(length, margins + climb.y * climb.b, climb.slack)[0]
        return (
            Candidate(vector, norm=1.0 / least, margins=margins + climb.slack * climb.u),
            Candidate(vector, vector.mass, precise=True),
        )
