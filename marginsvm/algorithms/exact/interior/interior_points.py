"""Interior points as a method of the exact solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import (
    candidates_of,
    interval_candidate,
    interval_candidates,
)
from marginsvm.algorithms.exact.interior.ends import solved_share
from marginsvm.algorithms.exact.interior.nearest_weights import nearest
from marginsvm.algorithms.exact.interior.point import Point
from marginsvm.algorithms.exact.interior.sides import Side, side_of
from marginsvm.algorithms.exact.interior.statement import Statement
from marginsvm.algorithms.exact.method import Method, Turn, best_bounds, is_proved
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.caps import ShareCaps
from marginsvm.certify.interval_bounds import rounding_of_scores
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import has_curvature
from marginsvm.problem.intercepts import balancing_factors
from marginsvm.rows import OutputRows, Rows

# Steps of a round at most, as 10 to 40 lead to a gap of 1e-6 (measured on nine sets): a round that
# ends with less has computed its bounds, which take as long as three steps, for nothing.
_ROUND = 10
# Steps beyond those after which all weights prove the gap, until those weights that the solution
# needs prove it by themselves: mostly two; with C far beyond what matters, up to five.
MORE_STEPS = 5
# Steps after which no more are taken.
_MOST_STEPS = 200
# Weights up to this part of the largest are left out: first none is.
_SHARES = 0.0, 1e-7
# Complementarity beside the objective that is nothing; its square (in radii squared) for a game,
# whose objective may be 0.
_NOTHING = float(np.finfo(np.float64).eps)
# Steps in a row that leave more than a part of the complementarity, after which only rounding is
# left; or, at first, margins are so thin that a start farther out is quicker.
_MOST_SLOW_STEPS, _MOST_LEFT_AT_FIRST, _MOST_LEFT = 10, 0.9, 1.0
# Part of the complementarity at which bounds that proved less than it promised are computed again.
_ASKED_AGAIN = 0.1


@dataclass(frozen=True)
class Interior(Method):
    """A point inside, and the bounds that it gives.

    Attributes
    ----------
    statement : Statement
        The problem.
    side : Side
        The side on which its systems are solved. It holds the data, so that a state which was
        stored comes back without it, and the next round makes it anew.
    point : Point
        The iterate.
    candidates : tuple of Candidate
    steps : int
        Taken so far.
    slow : int
        Steps since the last one that was not slow.
    ended : bool
        Whether steps have come to an end.
    more : int
        Steps at most beyond those after which all weights prove the gap; 0: nobody asks which of
        them the solution needs.
    again : bool
        Whether it has begun anew: farther out, with examples in other coordinates, whatever they
        are (see ``turned``), and with ends of intervals inward by what rounds scores.
    """

    name: ClassVar[str] = "interior points"

    statement: Statement
    side: Side
    point: Point
    candidates: tuple[Candidate, ...] = ()
    steps: int = 0
    slow: int = 0
    ended: bool = False
    more: int = MORE_STEPS
    again: bool = False

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, before: Interior | None = None) -> Interior:
        """Begin with weights that are those of the examples, the same in sum for each class.

        Parameters
        ----------
        problem : KernelMatrixAdapter
            One side must be small, see ``Shape.is_small``.
        before : Interior, default=None
            A state that has come to its end: it begins anew.
        """
        again = before is not None
        statement = Statement.of(problem, before._rounding(problem) if before is not None else 0.0)
        side = side_of(problem, statement, again)
        q = _begun(problem.rows, statement)
        q = np.append(q, np.full(len(statement.of_signs), q.mean()))
        return cls(statement, side, Point.first(side, statement, q, again), again=again)

    def _rounding(self, problem: KernelMatrixAdapter) -> float:
        """By how much scores that are to lie in intervals may be rounded."""
        fit = next((seen.fit for seen in self.candidates if seen.fit is not None), None)
        if fit is None:
            return 0.0
        norm = problem.length(fit.vector)
        return rounding_of_scores(problem, fit.vector, norm, fit.offsets)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "side": None}

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Interior, Turn]:
        """Some steps, and the bounds of where they end."""
        if self.ended:
            return self, Turn.STALLED
        side = self.side or side_of(problem, self.statement, self.again)  # type: ignore[truthy-bool]  # none if saved
        now, left, enough, proved = replace(self, side=side), _ROUND, np.inf, False
        while left and not now.ended:
            let_interrupts_through()
            now, left = now._stepped(), left - 1
            due = now._promises(tol) and now.point.complementarity() <= enough
            if not due and left and not now.ended:
                continue
            now, on_few, now_proved = now._with_bounds(problem, tol)
            if on_few:
                break
            if now_proved and not proved:
                left, proved = self.more, True
            elif not now_proved:
                enough = _ASKED_AGAIN * now.point.complementarity()
        return now, Turn.STALLED if now.ended else Turn.NEARER

    def _stepped(self) -> Interior:
        """One step, unless rounding has left nothing of its system."""
        try:
            point = self.point.next(self.side, self.statement)
        except np.linalg.LinAlgError:
            return replace(self, ended=True)
        now, left = replace(self, point=point, steps=self.steps + 1), point.complementarity()
        if not np.isfinite(left):
            return replace(self, ended=True)
        before = (_MOST_LEFT if self.again else _MOST_LEFT_AT_FIRST) * self.point.complementarity()
        # while predictors grow until they fit in hard tubes, it grows with their objective
        slow = left > before and left * self._objective > before * now._objective
        # with a level, rounding may leave an objective below 0
        nothing = _NOTHING * (_NOTHING if self.statement.game else max(self._objective, 0.0))
        slow_steps = self.slow + 1 if slow else 0
        ended = left <= nothing or slow_steps >= _MOST_SLOW_STEPS or now.steps >= _MOST_STEPS
        return replace(now, slow=slow_steps, ended=ended)

    @cached_property
    def _objective(self) -> float:
        point, statement = self.point, self.statement
        own = float(np.vdot(statement.own * point.u, point.u))
        if statement.game:  # what slack costs is in the level
            return 0.5 * self.side.squared(point.x)
        paid = float(statement.caps @ point.xi) + statement.total * float(point.x[-1])
        return 0.5 * (self.side.squared(point.x) + own) + paid

    def _promises(self, tol: float) -> bool:
        """Whether the gap of the objective, of which that of margins is half, may be enough."""
        return self.point.complementarity() <= 2.0 * tol * self._objective

    def _with_bounds(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Interior, bool, bool]:
        """The same with its bounds; whether they are of few weights, and whether they are enough.

        All weights of a point inside are positive, but the fit is to name those that the solution
        needs. Some steps after all weights prove a gap, these few prove it, too.
        """
        now = replace(self, point=self.point.refreshed(self.side))
        found, on_few, proved = now._found(problem, tol)
        lower, upper = best_bounds(problem, found)
        if not on_few:  # steps that only rounding is left of may lose what others have proved
            before = best_bounds(problem, self.candidates)
            found = self.candidates if before[0] * upper > lower * before[1] else found
        if self.statement.game and not lower > 0.0:
            found = (*now._cancelling(problem), *found)
        return replace(now, candidates=found), on_few, proved

    def _found(
        self, problem: KernelMatrixAdapter, tol: float
    ) -> tuple[tuple[Candidate, ...], bool, bool]:
        """Candidates of the first weights that prove the gap, or else of the last ones."""
        u, few = self.point.u, self.point.at_its_ends(self.statement)
        share = isinstance(problem.caps, ShareCaps)
        if self.more and share:
            found = _solved_for_free(problem, self.statement.on_rows(few, problem.rows))
            if is_proved(problem, found, tol):
                return found, True, True
        for weights in (few, u) if self.more else (u,):
            found = self._bounds(problem, weights, tol, weights is u and self._promises(tol))
            if is_proved(problem, found, tol):
                return found, weights is few and not share, True
        return found, False, False

    def _bounds(
        self, problem: KernelMatrixAdapter, u: Array, tol: float, promised: bool
    ) -> tuple[Candidate, ...]:
        """What the predictor and some weights prove, or weights near them that make it up.

        These are taken where last digits are missing: all weights do not prove what the point
        promises, as systems of steps had lost theirs; or what rounding leaves of some costs the
        gap. With a large C in large units, the norm of the predictor is nothing beside them.
        """
        found: tuple[Candidate, ...] = ()
        missed = self.side.squared(self.side.fall(self.point.x, u))
        if self.statement.game or missed <= 2.0 * tol * self._objective:
            found = self._bounds_of(problem, u, tol)
            if self.statement.game or not promised or is_proved(problem, found, tol):
                return found
        even = nearest(self.side, self.statement, u, self.point.x)
        if even is None:
            return found or self._bounds_of(problem, u, tol)
        return self._bounds_of(problem, even, tol)

    def _bounds_of(
        self, problem: KernelMatrixAdapter, u: Array, tol: float
    ) -> tuple[Candidate, ...]:
        """What the predictor and these weights prove."""
        rows = problem.rows
        u = self.statement.on_rows(u, rows)
        if isinstance(rows, OutputRows):
            return self._of_intervals(problem, u, tol)
        if isinstance(problem.caps, ShareCaps):
            u = problem.caps.filled(u)
        unit = float(np.exp2(np.frexp(u.sum())[1]))  # weights of a sum near 1 overflow nowhere
        proof = problem.combine(_balanced(rows, u / unit), precise=True)
        w = self.side.predictor(self.point.x, unit * proof)
        of_two = problem.caps is not None and rows.n_classes == 2
        if self.statement.game or of_two:
            margins = rows.margins(problem.scores(w))
        else:  # the best intercepts would take longer than a step
            nothing = rows.margins(np.zeros(rows.score_shape))  # infinite where there is no row
            shown = self.side.of_predictor(w, self.point.x, self.point.margins)
            margins = self.statement.on_rows(shown, rows) + nothing
        if problem.caps is not None and of_two:
            offsets = problem.caps.offsets(rows, margins)
            margins = margins + rows.expand(offsets[:, None] - offsets)
        if has_curvature(problem) or problem.slack is None:
            return candidates_of(problem, w, margins, unit * proof)
        margins = margins + problem.slack * w.coef
        separator = Candidate(w, min_margin=rows.min_margin(rows.group_min(margins)))
        return separator, Candidate(proof, proof.mass, precise=True)

    def _of_intervals(
        self, problem: KernelMatrixAdapter, q: Array, tol: float
    ) -> tuple[Candidate, ...]:
        """The same where scores are to lie in intervals.

        With a kernel, the weights are a predictor as well, and the one to publish unless it is
        their last digits that are missing.
        """
        proof = problem.combine(q, precise=True)
        w = self.side.predictor(self.point.x, proof)
        if has_curvature(problem):
            return interval_candidates(problem, w, proof)
        found = interval_candidates(problem, proof, proof)
        if is_proved(problem, found, tol):
            return found
        return (interval_candidate(problem, w), *found)

    def _cancelling(self, problem: KernelMatrixAdapter) -> tuple[Candidate, ...]:
        """Weights near those of the point under which all rows cancel, if there are some.

        Where nothing separates, all rows that may have weight do, far inside; those of quasi-
        separated classes that may not are near 0 by then.
        """
        u, rows, nothing = self.point.u, problem.rows, np.zeros(self.point.x.size)
        for share in _SHARES:
            some = np.where(u > share * u.max(), u, 0.0)
            cancel = nearest(self.side, self.statement, some, nothing)
            if cancel is not None:
                q = _balanced(rows, self.statement.on_rows(cancel, rows))
                vector = problem.combine(q, precise=True)
                return (Candidate(vector, vector.mass, precise=True),)
        return ()


def _solved_for_free(problem: KernelMatrixAdapter, u: Array) -> tuple[Candidate, ...]:
    """What the solution proves, if the weights of a share that are at their ends are right."""
    q = solved_share(problem, u)
    if q is None:
        return ()
    w = problem.combine(q, precise=True)
    return candidates_of(problem, w, problem.rows.margins(problem.scores(w)), w)


def _begun(rows: Rows, statement: Statement) -> Array:
    """Weights that are balanced and sum to 1, in proportion to those of the examples."""
    if statement.sides == 2:
        return np.tile(np.broadcast_to(rows.prior, len(statement.row_ids)) / 2.0, 2)
    are_rows = np.isfinite(rows.margins(np.zeros(rows.score_shape)))
    q = np.asarray(rows.weighted(are_rows.astype(np.float64)))
    if rows.balanced:
        total = rows.group_sum(q)
        q = q * rows.expand(1.0 / np.where(total > 0.0, total, 1.0))
    return statement.chosen(q / q.sum())


def _balanced(rows: Rows, u: Array) -> Array:
    """Weights without what is left of their imbalance; none of them grows."""
    if not rows.balanced:
        return u
    factors = balancing_factors(rows.group_sum(u))
    np.fill_diagonal(factors, 0.0)
    return np.asarray(u * rows.expand(factors / factors.max()))
