"""Rounds of weights on columns in float32: a working set, scores of all examples, and exchange.

A working set of examples is solved by steps that move two weights, see
:mod:`marginsvm.algorithms.compiled.pairs`; the scores of all examples follow from the columns of
those that moved; examples with smaller margins join. What this proves is for others to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.certify.own_slack import with_least_slack
from marginsvm.certify.prices import HingeCaps
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix.single import SingleColumns
from marginsvm.rows import support_of

# Examples that may join in a round at least, and as a share of those there.
_JOIN, _JOIN_SHARE = 200, 0.4
# Error of margins, which are about 1, up to which the first working set is solved; by which factors
# it falls once as few join (as a share of the working set), or most of the gap is inside of it; and
# from which on it should bring bounds nearer.
COARSE, _FINER, _LEAST_STEP, _FEW_JOIN, _GAP_INSIDE, _FINE = 0.3, 0.3, 0.1, 0.1, 0.5, 1e-3
# Least error of margins that float32 may show.
_FINEST = 1e-7
# Steps for each example of a working set at most, before scores are computed anew.
STEPS_AN_EXAMPLE = 50
# Examples without weight may leave if their margins are beyond 1 by more than this; they do once
# they are so large a share.
_FAR, _IDLE_SHARE = 0.1, 0.3


@dataclass(frozen=True, eq=False)
class Dual:
    """Maximise ``sum u - |sum_i u_i y_i x_i|^2 / 2 - sum_i s_i u_i^2 / 2`` over weights below caps.

    Two classes are tubes: scores are to reach the end y of an interval, of width 0, on one side.

    Attributes
    ----------
    columns : SingleColumns
        Kernel values.
    y, caps, slack : ndarray of shape (n,)
        Signs of the classes (of many: their numbers), largest weights, and s. Examples with the
        cap 0 are left out, but have scores.
    balanced : bool
        Whether the classes keep the same sum of weights.
    scale, constant : float
        An inner product is ``scale`` times a kernel value, plus a constant.
    tube : tuple of two ndarrays of shape (n,), or None
        Of weights of either sign, the lower ends of their intervals, and how far the upper ones are
        above them; y is 1.
    """

    columns: SingleColumns
    y: Array
    caps: Array
    slack: Array
    balanced: bool
    scale: float = 1.0
    constant: float = 0.0
    tube: tuple[Array, Array] | None = None

    @property
    def ends(self) -> tuple[Array, Array, Array, Array]:
        """Lower ends of intervals, their widths, and least and largest weights, which have signs.

        Weights above 0 are for lower ends, and those below 0 for upper ones.
        """
        if self.tube is not None:
            return *self.tube, -self.caps, self.caps
        up, none = self.y > 0.0, np.zeros(len(self.y))
        return self.y, none, np.where(up, 0.0, -self.caps), np.where(up, self.caps, 0.0)

    @classmethod
    def of_costs(
        cls, columns: SingleColumns, y: Array, costs: Array, hinge: bool, balanced: bool
    ) -> Dual:
        """That of a soft margin, given what the slack of each example costs; 0: it is left out."""
        if hinge:
            return cls(columns, y, costs, np.zeros(len(y)), balanced)
        there = costs > 0.0
        slack = np.divide(0.5, costs, out=np.zeros(len(y)), where=there)
        return cls(columns, y, np.where(there, np.inf, 0.0), slack, balanced)


class Course(NamedTuple):
    """What later rounds must know of earlier ones, beside weights and scores.

    Attributes
    ----------
    precision : float
        Error of margins up to which the working set is solved.
    b : float or ndarray of shape (k,)
        Intercept.
    least : float
        The smallest gap so far.
    idle : int
        Rounds at small errors that brought bounds no nearer.
    """

    precision: float = COARSE
    b: Any = 0.0
    least: float = np.inf
    idle: int = 0


class Climb:
    """The rounds of one call, on arrays that change in place.

    Parameters
    ----------
    dual : Dual
    u, f : ndarray of shape (n,), or (n, k) and (k, n)
        Weights, and scores without intercept; scores of 0: they are computed.
    work : ndarray of int
        The working set.
    course : Course
        How earlier rounds went.

    Attributes
    ----------
    read : float
        Numbers read or computed so far.
    gap, inside : float
        Relative gap, from the scores in float32; and as if there were the working set only.
    mass, missing, wrong : ndarray of shape (n,)
        Weight of each example, the most that a margin is short of where its weight would not grow,
        and by how much it is out of order.
    margins : ndarray of shape (n,) or (n, k)
    price_of_excess : float
        What weights prove less, as their classes are out of balance.
    """

    patience = 2  # rounds at small errors that may bring bounds no nearer
    aim = 0.7  # share of the tolerance: what rounding and the intercept add is beside it
    price_of_excess = 0.0
    mass: Array
    missing: Array
    wrong: Array
    margins: Array

    def __init__(
        self,
        dual: Dual,
        u: Array,
        f: Array,
        work: Array,
        course: Course = Course(),  # noqa: B008
    ) -> None:
        self.dual, self.columns = dual, dual.columns
        self.y, self.caps, self.slack = dual.y, dual.caps, dual.slack
        self.u, self.f, self.work = u.copy(), f.copy(), work
        self.precision, self.b, self.least, self.idle = course
        self.read, self.gap, self.inside = 0.0, np.inf, np.inf
        self._soft, self._counted = bool(self.slack.any()), np.flatnonzero(self.caps)
        self._hard = not self._soft and bool(np.isinf(self.caps[self._counted]).all())
        if self.u.any() and not self.f.any():
            used = support_of(self.u)
            self.add(used, self.u[used])

    @property
    def course(self) -> Course:
        """How rounds have gone so far."""
        return Course(self.precision, self.b, self.least, self.idle)

    @classmethod
    def start(cls, dual: Dual, work: Array) -> Climb:
        """Begin with weights of zero."""
        none = np.zeros(len(dual.y))
        return cls(dual, none, none, work)

    def continued(self, dual: Dual) -> Climb:
        """Begin at these weights for larger costs of slack."""
        return type(self)(dual, self.u, self.f, support_of(self.u), Course(b=self.b))

    @property
    def limit(self) -> str:
        """What to do where the weights have outgrown the working set."""
        used, columns = len(support_of(self.u)), self.columns
        if used < columns.side or columns.side == len(self.y):
            return ""
        return (
            f"cache_size={columns.cache_size:g} MB does not hold the kernel values of all examples "
            "that have slack or weight with each other: raise cache_size (twice as many take four "
            "times as much), or choose a larger C or a kernel of shorter reach."
        )

    @property
    def scores(self) -> Array:
        """Scores of all examples, a column for each class; of two classes, one."""
        return (self.f + self.b)[:, None]

    @property
    def has_diverged(self) -> bool:
        """Whether no climb from 0 has such weights: their slack alone outweighs their sum."""
        u = np.abs(self.u).reshape(len(self.slack), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            return not self.slack @ (u * u).sum(axis=1) <= 2.02 * u.sum() < np.inf

    def goes_on(self, tol: float) -> bool:
        """Whether bounds are apart, and rounds may bring them nearer."""
        return self.gap > self.aim * tol and self.idle < self.patience

    def run(self, tol: float, most: float = np.inf) -> bool:
        """Rounds until bounds are near each other or do not come nearer; False: it takes a while.

        Parameters
        ----------
        tol : float
            Relative gap.
        most : float
            Numbers read or computed, after which no round begins.
        """
        while self.goes_on(tol) and not self.has_diverged:
            if self.read >= most:
                return False
            let_interrupts_through()
            self.round(tol)
        if self.has_diverged:  # in float32, the kernel has negative eigenvalues: leave it
            self.u, self.f, self.gap = np.zeros_like(self.u), np.zeros_like(self.f), np.inf
        return True

    def round(self, tol: float) -> None:
        """Solve on the working set, compute scores, exchange examples."""
        work = self.work
        K = self.columns.among(work, self.dual.scale, self.dual.constant)
        u = self._ascended(K)
        change, self.u[work] = u - self.u[work], u
        moved = support_of(change)
        self.add(work[moved], change[moved])
        self.read += float(len(work)) ** 2
        self._measure()
        self._exchange(tol)

    def _ascended(self, K: Array) -> Array:
        """Weights of the working set, whose inner products are given, after some steps."""
        from marginsvm.algorithms.compiled.pairs import ascend_pairs

        work, y = self.work, self.y[self.work]
        v, f, ends = y * self.u[work], self.f[work], [end[work] for end in self.dual.ends]
        steps = ascend_pairs(
            K, *ends, self.slack[work], self.dual.balanced, self.precision,
            STEPS_AN_EXAMPLE * len(work), v, f,
        )  # fmt: skip
        self.read += 2.0 * steps * len(work)
        return y * v

    def add(self, examples: Array, change: Array) -> None:
        """Add what changes of weights add to the scores."""
        self.add_products(examples, self.y[examples] * change, self.f)

    def add_products(self, examples: Array, v: Array, f: Array) -> None:
        """Add inner products of all examples with a combination of some."""
        from marginsvm.algorithms.compiled.pairs import add_columns

        last = np.argsort(self.columns.place[examples] < 0, kind="stable")  # what was dropped
        room, examples, scaled = self.columns.room, examples[last], self.dual.scale * v[last]
        self.read += float(len(examples)) * len(f)
        for i in range(0, len(examples), room):
            part = examples[i : i + room]
            places = self.columns.fetch(part)
            add_columns(self.columns.values, places, scaled[i : i + room], f)
        f += self.dual.constant * float(v.sum())

    def _measure(self) -> None:
        """The intercept, what scores are short of their ends, and the gap that this leaves."""
        u, v, (low, width, floor, ceiling) = self.u, self.y * self.u, self.dual.ends
        self.mass = np.abs(u)
        slope = low - self.f - self.slack * v
        raised, lowered = slope + width * (v < 0.0), slope + width * (v <= 0.0)
        # what rounding leaves beside an end does not hold the intercept, which may be free
        rounding = np.minimum(len(u) * UNIT * float(self.mass.sum()), 0.5 * self.caps)
        self._centre(raised, lowered, v < ceiling - rounding, v > floor + rounding)
        rise = np.where((v > 0.0) | (v == 0.0) & (ceiling > 0.0), raised - self.b, -np.inf)
        fall = np.where((v < 0.0) | (v == 0.0) & (floor < 0.0), self.b - lowered, -np.inf)
        self.missing = np.maximum(rise, fall)
        self.margins = 1.0 - self.missing - self.slack * self.mass
        self._compare(float(v @ self.f), 0.5 * float(self.slack @ (u * u)))

    def _centre(self, raised: Array, lowered: Array, up: Array, down: Array) -> None:
        """The intercept of the working set, and by how much examples are out of order under it.

        They are where their scores miss ``raised``, and weights may go up, or exceed ``lowered``,
        and weights may go down.
        """
        if self.dual.balanced:
            work = self.work
            ends = [
                raised[work][up[work]].max(initial=-np.inf),
                lowered[work][down[work]].min(initial=np.inf),
            ]
            ends = [end for end in ends if np.isfinite(end)]
            self.b = float(np.mean(ends)) if ends else 0.0
        rise, fall = np.where(up, raised - self.b, 0.0), np.where(down, self.b - lowered, 0.0)
        self.wrong = np.maximum(rise, fall)

    def _compare(self, squared: float, less: float) -> None:
        """The gap of this squared length, where the weights prove less by so much."""
        root = float(np.sqrt(max(2.0 * (self.mass.sum() - 0.5 * squared - less), 0.0)))
        length = float(np.sqrt(max(squared, 0.0)))
        self.gap = 1.0 - root * self._lower(length, self._counted)
        # what the examples outside leave is not for the next steps on the working set
        self.inside = 1.0 - root * self._lower(length, self.work)

    def _lower(self, length: float, some: Array) -> float:
        """Lower bound by the margins of some examples."""
        margins, slack = self.margins[some], self.slack[some]
        if self._hard:
            return max(float(margins.min()), 0.0) / max(length, 1e-300)
        if not self._soft:
            return HingeCaps(self.caps[some]).lower_bound(length, margins)[0]
        return with_least_slack(length, margins, slack.reshape(-1, *[1] * (margins.ndim - 1)))[0]

    def _exchange(self, tol: float) -> None:
        """Examples that join, the precision of the next round, and those that leave."""
        self.wrong[self.work] = 0.0
        new = np.flatnonzero(self.wrong > 0.5 * self.precision)
        few = len(new) <= _FEW_JOIN * len(self.work)
        apart = self.inside > self.aim * tol and (few or self.inside > _GAP_INSIDE * self.gap)
        if apart or not len(new):
            self._finer(tol)
        kept, room = self.work, self.columns.side
        most = min(max(_JOIN, int(_JOIN_SHARE * len(kept))), room // 2)
        if len(new) > most:
            new = new[np.argpartition(-self.wrong[new], most - 1)[:most]]
        far = (self.mass[kept] == 0.0) & (self.missing[kept] < -_FAR)
        if np.count_nonzero(far) > _IDLE_SHARE * len(kept) or len(kept) + len(new) > room:
            kept = kept[~far]
        if len(kept) + len(new) > room:  # then those at their ends, and those longest there, rest
            free = (self.mass[kept] > 0.0) & (self.mass[kept] < self.caps[kept])
            kept = np.delete(kept, np.argsort(free, kind="stable")[: len(kept) + len(new) - room])
        self.work = np.concatenate([kept, new])

    def _finer(self, tol: float) -> None:
        """A smaller error, as far as rounding allows it."""
        if self.gap > 0.9 * self.least and self.precision <= _FINE:
            self.idle += 1
        self.least = min(self.least, self.gap)
        factor = np.clip(0.5 * self.aim * tol / max(self.inside, 1e-300), _LEAST_STEP, _FINER)
        self.precision = max(float(factor) * self.precision, _FINEST)
