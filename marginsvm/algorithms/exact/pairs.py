"""Soft margins of two classes with a kernel: pairs of weights, on columns in float32.

A working set of examples is solved by steps that move two weights, see
:mod:`marginsvm.algorithms.compiled.pairs`; the scores of all examples follow from the columns of
those that moved; examples with smaller margins join. Kernel values are computed once for each pair
of an example and one that was in the working set, in float32. Bounds need float64: for the examples
with weight, and for those whose margins are not beyond 1 by more than the error of float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import hinge_candidates
from marginsvm.algorithms.exact.choosing import spread_evenly
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.caps import HingeCaps
from marginsvm.certify.own_slack import with_least_slack
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.rows import Vector

# Examples to begin with, and that may join in a round at least; and as a share of those there.
_FIRST, _JOIN, _GROWTH = 400, 200, 0.4
# Error of margins, which are about 1, up to which the first working set is solved; by which factors
# it falls once as few join (as a share of the working set), or most of the gap is inside of it; and
# from which on it should bring bounds nearer.
_COARSE, _FINER, _LEAST_STEP, _FEW_JOIN, _INSIDE, _FINE = 0.3, 0.3, 0.1, 0.1, 0.5, 1e-3
# Least error of margins that float32 may show.
_FINEST = 1e-7
# Steps for each example of a working set at most, before scores are computed anew.
_STEPS = 50
# Examples without weight may leave if their margins are beyond 1 by more than this; they do once
# they are so large a share.
_FAR, _IDLE = 0.1, 0.3
# Share of the tolerance that rounds aim at: what rounding adds is beside it.
_AIM = 0.7
# Numbers that a round reads or computes at least: a tenth of a second, or about.
_ROUND = 3e8


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
    precision: float = _COARSE
    candidates: tuple[Candidate, ...] = ()
    settled: float = np.inf

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Pairs:
        """Begin with some examples of each class, evenly spread."""
        n = problem.rows.n_examples
        return cls(np.zeros(n), np.zeros(n), spread_evenly(problem.rows.codes, _FIRST))

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
        climb = Climb(problem, self)
        while climb.goes_on(tol) and climb.read < _ROUND:
            let_interrupts_through()
            climb.round(tol)
        now = climb.state()
        if climb.goes_on(tol):
            return replace(now, candidates=climb.estimates(tol)), Turn.NEARER
        found = replace(now, candidates=climb.proved())
        return replace(found, settled=tol), Turn.STALLED


class Climb:
    """The rounds of one call, on arrays that change in place.

    Parameters
    ----------
    problem : GramAdapter
    start : Pairs

    Attributes
    ----------
    read : float
        Numbers read or computed so far.
    """

    def __init__(self, problem: GramAdapter, start: Pairs) -> None:
        self.problem, self.columns, n = problem, problem.single, len(start.u)
        rows = problem.rows
        self.y = rows.moves(np.ones(n))
        self.slack = np.zeros(n) if problem.slack is None else np.ascontiguousarray(problem.slack)
        self.caps = np.full(n, np.inf) if problem.caps is None else problem.caps.largest
        self.u, self.f, self.work = start.u.copy(), start.f.copy(), start.work
        self.precision, self.b, self.read, self.gap = start.precision, 0.0, 0.0, np.inf
        self.inside, self.least, self.idle, self.block = np.inf, np.inf, 0, Block(self.columns)
        self.missing: Array = np.ones(n)
        if self.u.any() and not self.f.any():
            used = np.flatnonzero(self.u)
            self._add(used, self.u[used], self.f)

    def goes_on(self, tol: float) -> bool:
        """Whether bounds are apart, or an example outside is far off, and rounds may mend that.

        With slack, the intercept of the certificate is that at which the worst example is best.
        """
        outside = self.problem.slack is not None and self.missing.max() > _COARSE
        return (self.gap > _AIM * tol or outside) and self.idle < 2

    def state(self) -> Pairs:
        """What the rounds have come to."""
        return Pairs(self.u, self.f, self.work, self.precision)

    def round(self, tol: float) -> None:
        """Solve on the working set, compute scores, exchange examples."""
        from marginsvm.algorithms.compiled.pairs import ascend_pairs

        work, scale = self.work, 1.0 / self.problem.radius**2
        K = self.block.of(work, scale, scale * self.problem.constant**2)
        u, f = self.u[work], self.f[work]
        steps = ascend_pairs(
            K, self.y[work], self.caps[work], self.slack[work], self.problem.rows.balanced,
            self.precision, _STEPS * len(work), u, f,
        )  # fmt: skip
        change, self.u[work] = u - self.u[work], u
        moved = np.flatnonzero(change)
        self._add(work[moved], change[moved], self.f)
        self.read += 2.0 * steps * len(work) + float(len(work)) ** 2
        self._measure()
        self._exchange(tol)

    def _add(self, examples: Array, change: Array, f: Array, signs: bool = True) -> None:
        """Add what changes of weights add to the scores."""
        from marginsvm.algorithms.compiled.pairs import add_columns

        scale, room = 1.0 / self.problem.radius**2, self.columns.room
        v = scale * (self.y[examples] if signs else 1.0) * change
        self.read += float(len(examples)) * len(f)
        for i in range(0, len(examples), room):
            part = examples[i : i + room]
            add_columns(self.columns.values, self.columns.fetch(part), v[i : i + room], f)
        f += self.problem.constant**2 * float(v.sum())

    def _measure(self) -> None:
        """The intercept, margins, and the gap that they leave."""
        y, u, f = self.y, self.u, self.f
        slope = y - f - self.slack * y * u
        if self.problem.rows.balanced:
            up = np.where(y > 0.0, u < self.caps, u > 0.0)[self.work]
            down = np.where(y > 0.0, u > 0.0, u < self.caps)[self.work]
            some = slope[self.work]
            ends = [some[up].max(initial=-np.inf), some[down].min(initial=np.inf)]
            ends = [end for end in ends if np.isfinite(end)]
            self.b = float(np.mean(ends)) if ends else 0.0
        self.missing = y * (slope - self.b)
        squared, mass = float((y * u) @ f), float(u.sum())
        dual = mass - 0.5 * squared - 0.5 * float(self.slack @ (u * u))
        root, length = float(np.sqrt(max(2.0 * dual, 0.0))), float(np.sqrt(max(squared, 0.0)))
        self.gap = 1.0 - root * self._lower(length, np.arange(len(u)))
        # what the examples outside leave is not for the next steps on the working set
        self.inside = 1.0 - root * self._lower(length, self.work)

    def _lower(self, length: float, some: Array) -> float:
        """Lower bound by the margins of some examples."""
        margins = 1.0 - self.missing[some] - self.slack[some] * self.u[some]
        if self.problem.caps is not None:
            return HingeCaps(self.caps[some]).lower_bound(length, margins)[0]
        return with_least_slack(length, margins, self.slack[some])[0]

    def _exchange(self, tol: float) -> None:
        """Examples that join, the precision of the next round, and those that leave."""
        wrong = np.where(self.u < self.caps, self.missing, 0.0)
        wrong = np.maximum(wrong, np.where(self.u > 0.0, -self.missing, 0.0))
        wrong[self.work] = 0.0
        new = np.flatnonzero(wrong > 0.5 * self.precision)
        few = len(new) <= _FEW_JOIN * len(self.work)
        apart = self.inside > _AIM * tol and (few or self.inside > _INSIDE * self.gap)
        if apart or not len(new):
            self._finer(tol)
        kept, room = self.work, self.columns.room
        most = min(max(_JOIN, int(_GROWTH * len(kept))), room // 2)
        if len(new) > most:
            new = new[np.argpartition(-wrong[new], most - 1)[:most]]
        far = (self.u[kept] == 0.0) & (self.missing[kept] < -_FAR)
        if np.count_nonzero(far) > _IDLE * len(kept) or len(kept) + len(new) > room:
            kept = kept[~far]
        if len(kept) + len(new) > room:  # then those at their ends, and those longest there, rest
            free = (self.u[kept] > 0.0) & (self.u[kept] < self.caps[kept])
            kept = kept[np.argsort(free, kind="stable")][len(kept) + len(new) - room :]
        self.work = np.concatenate([kept, new])

    def _finer(self, tol: float) -> None:
        """A smaller error, as far as rounding allows it."""
        if self.gap > 0.9 * self.least and self.precision <= _FINE:
            self.idle += 1
        self.least = min(self.least, self.gap)
        factor = np.clip(0.5 * _AIM * tol / max(self.inside, 1e-300), _LEAST_STEP, _FINER)
        self.precision = max(float(factor) * self.precision, _FINEST)

    def estimates(self, tol: float) -> tuple[Candidate, ...]:
        """What the scores in float32 show, less the tolerance: it is not to end a fit."""
        vector = Vector(self.f, self.u)
        low, high = self._candidates(vector, self.y * self.f)
        assert low.norm is not None
        low = replace(low, norm=low.norm * (1.0 + tol), margins=None)
        if high.norm_bound is not None:
            return low, Candidate(vector, norm_bound=high.norm_bound * (1.0 - tol))
        return low, Candidate(vector, vector.mass * (1.0 - tol))

    def proved(self) -> tuple[Candidate, ...]:
        """Bounds with scores in float64 for all examples that may count.

        The scores of the others are below what they are by the error of float32.
        """
        f, error = self._with_errors()
        margins = self.y * (f + self.b) - error
        sure = (margins > 1.0) & (self.u == 0.0)
        vector = self.problem.with_scores(self.u, f, np.flatnonzero(~sure))
        return self._candidates(vector, self.y * vector.image - np.where(sure, error, 0.0))

    def _with_errors(self) -> tuple[Array, Array]:
        """Scores anew, and the error of each due to float32."""
        used, n = np.flatnonzero(self.u), len(self.u)
        prepared = self.columns.prepared
        if prepared is None or len(used) > self.columns.room:
            return self.f, np.full(n, np.inf)
        relative, f, sizes = prepared.error(used), np.zeros(n), np.zeros(n)
        if np.isinf(relative).all():
            return self.f, relative
        self._add(used, self.u[used], f)
        self._add(used, self.u[used], sizes, signs=False)
        # and what the sums in float64 round, as well as values too small for float32
        relative += FEW + len(used) * FEW + 1e-37
        return f, relative * sizes + 1e-37 * float(self.u.sum()) / self.problem.radius**2

    def _candidates(self, vector: Vector, margins: Array) -> tuple[Candidate, ...]:
        """The predictor with these margins, slack left out, and the proof: they are one vector."""
        problem = self.problem
        if problem.caps is not None:
            shifted = margins + self.y * self.b
            low, high = hinge_candidates(problem, vector, shifted, vector)
            return replace(low, vector=vector, margins=margins), high
        length = float(np.sqrt(max(problem.inner(vector, vector), 0.0)))
        least = with_least_slack(length, margins + self.y * self.b, self.slack)[0]
        return (
            Candidate(vector, norm=1.0 / least, margins=margins + self.slack * self.u),
            Candidate(vector, vector.mass, precise=True),
        )


class Block:
    """Inner products of the examples of a working set, which grows more often than it shrinks.

    Parameters
    ----------
    columns : SingleColumns
    """

    def __init__(self, columns: Any) -> None:
        self._columns, self._examples = columns, np.empty(0, int)
        self._room = np.empty((0, 0), np.float32)

    def of(self, examples: Array, scale: float, constant: float) -> Array:
        """Inner products of these examples, of which those before are the first, or it begins."""
        from marginsvm.algorithms.compiled.pairs import gather

        m, n = len(self._examples), len(examples)
        if n < m or not np.array_equal(examples[:m], self._examples):
            m = 0
        if n > len(self._room):
            room = np.empty((n + n // 2, n + n // 2), np.float32)
            room[:m, :m] = self._room[:m, :m]
            self._room = room
        K = self._room[:n, :n]
        gather(self._columns.values, self._columns.fetch(examples), examples, m, scale, constant, K)
        self._examples = examples
        return K
