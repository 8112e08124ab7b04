"""Working sets of rows: solve on some rows, check all, add those with smaller margins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.choosing import (
    least_rows,
    lowest_under_means,
    violators,
)
from marginsvm.algorithms.exact.method import MAX_ROWS, Method, Turn
from marginsvm.algorithms.exact.pivoting import block_pivoting
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import written_out
from marginsvm.certify.nearest_point import NearestPoint, nearest_point
from marginsvm.certify.tolerances import DELICATE_MARGIN, LONG_FEATURE
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import has_curvature
from marginsvm.rows import Predictor

# Features up to which Wolfe's active set is fast enough to take over as soon as pivoting fails.
NARROW = 256
# Rows for each number in one from which on pivoting does not begin: their Gram matrix is singular,
# and it seldom settles (measured: twelve fits took 0.92 to 1.44 times as long with it).
_SINGULAR = 2
_NEAR = 0.05  # rows whose margin is within this fraction of the smallest stay in a working set
_GROWTH = 0.2  # rows that may join a working set in a round, as a fraction of those with weight
# Rows with slack beyond which Wolfe's active set, whose first rows take seconds to find, does not
# solve what pivoting cannot: the method before goes on (1,911 x 83, 16 classes: 21 s, now 3.4).
_ROWS_FOR_WOLFE = 500


_FULL = (
    "More rows, pairs of an example and another class, carry weight than fit in memory. Use fewer "
    "examples or classes, or C < inf, which solves for all pairs together."
)


class _Check(NamedTuple):
    """The margins of all rows at a solution, and the rows to be added.

    Attributes
    ----------
    margins : ndarray of shape (n_flat,)
        Margins of all rows, by their flat indices.
    common : float
        The margin that the rows with weight have in common.
    violators : ndarray of int
        Rows to be added, whose margins are smaller.
    """

    margins: Array
    common: float
    violators: Array


@dataclass(frozen=True)
class WorkingSet(Method):
    """Some rows and the last weights on them; replaced whole by every round.

    Attributes
    ----------
    row_ids : ndarray of int, shape (m,)
        Flat indices of the rows.
    gram : ndarray
        ``H = AA' + 1 + BB'`` over these rows, of shape (m, m), for the conditions ``B'u = 0`` of
        balance. Adding 1 bounds u where the rows overlap, and only scales the solution.
        Adding ``BB'`` changes nothing for balanced u, and makes H definite on affinely independent
        rows. Shape (0, 0): not computed yet, and not used once ``delicate``.
    u : ndarray of shape (m,)
        Weights.
    passive : ndarray of bool, shape (m,)
        Rows that are expected to carry weight.
    candidates : tuple of Candidate
    delicate : bool
        The margin is so small that block pivoting has no more digits to give: Wolfe's active
        set, which is slower, solves from here on.
    free : ndarray of int
        Features that the active set leaves out of the norm, as it does the intercept: they are so
        large that they hide the digits of the others.
    settled : float
        This state is final for every tolerance from this one up: no row violates it.
    room : int
        How many rows it may hold.
    """

    name: ClassVar[str] = "working set of rows"

    row_ids: Array
    gram: Array
    u: Array
    passive: Array
    candidates: tuple[Candidate, ...]
    delicate: bool = False
    free: Array = field(default_factory=lambda: np.empty(0, int))
    settled: float = np.inf
    room: int = MAX_ROWS

    @property
    def begun(self) -> Turn:
        return Turn.MANY if len(self.row_ids) > self.room else Turn.GO_ON

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> WorkingSet:
        """Begin with the rows that the difference of the class means gives the smallest margins."""
        row_ids = lowest_under_means(problem)
        narrow = problem.width <= min(NARROW, len(row_ids) // _SINGULAR)
        return cls.of(row_ids, np.zeros(0), delicate=narrow and problem.slack is None)

    @classmethod
    def with_weights(cls, coef: Array, candidates: tuple[Candidate, ...] = ()) -> WorkingSet:
        """Begin with those of all rows that have weight."""
        row_ids = np.flatnonzero(coef)
        return replace(cls.of(row_ids, coef.flat[row_ids]), candidates=candidates)

    @classmethod
    def of(cls, row_ids: Array, u: Array, delicate: bool = False) -> WorkingSet:
        """Begin with given rows and weights; no weights: all rows are expected to get some."""
        m, some = len(row_ids), bool(u.any())
        u, passive = (u, u > 0) if some else (np.zeros(m), np.ones(m, bool))
        return cls(row_ids, np.empty((0, 0)), u, passive, (), delicate=delicate)

    @property
    def _full(self) -> bool:
        """Whether more rows have weight than it may hold, and no other method took over."""
        return bool(self.candidates) and bool(np.count_nonzero(self.u) > self.room)

    @property
    def limit(self) -> str:
        return _FULL if self._full else ""

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[WorkingSet, Turn]:
        """Solve on the working set, certify with a pass over all rows, exchange rows."""
        if tol >= self.settled or self._full:  # as nothing will change any more
            return self, Turn.STALLED
        work, check = self._solve_and_check(problem, tol)
        none = len(check.violators) == 0
        now = work._settled(problem, tol) if none else work._exchange(problem, check)
        return now, now.begun

    def _settled(self, problem: KernelMatrixAdapter, tol: float) -> WorkingSet:
        """No row is left to be added: continue with a more precise method, if there is one.

        With slack, H is definite, so that pivoting has given all digits. Without, the active
        set gives more, and more yet where long features are left free.
        """
        free = _long_features(problem, self) if self.delicate else self.free
        all_free = self.delicate and len(free) == len(self.free)
        done = all_free or problem.slack is not None
        delicate = self.delicate or problem.slack is None
        return replace(self, delicate=delicate, free=free, settled=tol if done else np.inf)

    def _solve_and_check(
        self, problem: KernelMatrixAdapter, tol: float
    ) -> tuple[WorkingSet, _Check]:
        """Solve on the working set, and find the rows whose margins are smaller."""
        solution, work = self._solve(problem)
        margins, candidates = bounds(problem, self.row_ids, solution)
        support = solution.q > 0
        flat = margins.ravel()
        common = max(float(flat[self.row_ids[support]].mean()), 0.0)
        most = max(least_rows(problem), int(_GROWTH * np.count_nonzero(support)))
        # one beyond its room, and another method goes on; with kernels, there may be none
        room = self.room + 1 if has_curvature(problem) else 3 * self.room // 2
        most = min(most, max(room - len(self.row_ids), 1))
        new = violators(work.row_ids, flat, common, tol)
        work = replace(work, u=solution.q, passive=support, candidates=candidates)
        if len(new) > most:
            new = new[np.argpartition(flat[new], most)[:most]]
        return work, _Check(flat, common, new)

    def _exchange(self, problem: KernelMatrixAdapter, check: _Check) -> WorkingSet:
        """Drop rows that are far, add violators."""
        delicate = self.delicate or problem.norm(self.candidates[0].vector) <= DELICATE_MARGIN
        thinned = self._thinned(check.margins, check.common, len(check.violators))
        return replace(thinned, delicate=delicate)._add(problem, check.violators)

    def _solve(self, problem: KernelMatrixAdapter) -> tuple[NearestPoint, WorkingSet]:
        """Optimal balanced weights on the working set, by pivoting where that succeeds."""
        work = self
        if not self.delicate:
            solution, work = self._pivoted(problem)
            if solution is not None:
                return solution, work
            long = len(self.row_ids) > _ROWS_FOR_WOLFE and self.u.sum() > 0.0
            if long and problem.slack is not None and has_curvature(problem):
                given = NearestPoint(self.u / self.u.sum(), np.empty(0), None)
                return given, replace(work, room=0)
            work = replace(work, delicate=problem.width <= NARROW and problem.slack is None)
        if len(self.free) or not (self.delicate and self.candidates):  # the weights are far off
            return nearest_point(problem, self.row_ids, free=self.free), work
        support = np.flatnonzero(self.u > 0)
        corral = support[np.argsort(-self.u[support], kind="stable")]
        return nearest_point(problem, self.row_ids, corral), work

    def _pivoted(self, problem: KernelMatrixAdapter) -> tuple[NearestPoint | None, WorkingSet]:
        """Weights by block pivoting, if it settles, and the matrix that it has left."""
        gram, row_ids = self.gram, self.row_ids
        if not len(gram):
            gram = _block_of(problem, row_ids, row_ids)
        B = problem.rows.balance_conditions(row_ids)
        solved, work = block_pivoting(gram, B, self.passive), replace(self, gram=gram)
        if solved is None:
            return None, work
        u, b = solved
        return NearestPoint(u / u.sum(), b / u.sum(), None), work

    def _thinned(self, margins: Array, common: float, coming: int) -> WorkingSet:
        """Drop the rows far from the margin, if they are many."""
        stay = (self.u > 0) | (margins[self.row_ids] < common * (1.0 + _NEAR))
        if len(self.row_ids) <= 2 * np.count_nonzero(stay) + coming:
            return self
        kept = np.flatnonzero(stay)
        gram = self.gram
        if not self.delicate:
            gram = gram[kept[:, None], kept]
        return replace(
            self,
            row_ids=self.row_ids[kept],
            gram=gram,
            u=self.u[kept],
            passive=self.passive[kept],
        )

    def _add(self, problem: KernelMatrixAdapter, new: Array) -> WorkingSet:
        m, n = len(self.row_ids), len(self.row_ids) + len(new)
        row_ids = np.concatenate([self.row_ids, new])
        gram = self.gram
        if not self.delicate:
            strip = _block_of(problem, new, row_ids)
            gram = np.block([[gram, strip[:, :m].T], [strip]])
        u = np.concatenate([self.u, np.zeros(n - m)])
        passive = np.concatenate([self.passive, np.ones(n - m, bool)])
        return replace(self, row_ids=row_ids, gram=gram, u=u, passive=passive)


def _block_of(problem: KernelMatrixAdapter, row_ids: Array, others: Array) -> Array:
    """A block of the matrix of a working set, see ``WorkingSet.gram``."""
    H = problem.gram(row_ids, others)
    H += 1.0
    if problem.rows.balanced:
        H += problem.rows.balance_conditions(row_ids) @ problem.rows.balance_conditions(others).T
    return H


def bounds(
    problem: KernelMatrixAdapter, row_ids: Array, solution: NearestPoint
) -> tuple[Array, tuple[Candidate, ...]]:
    """Margins of all rows, shifted by the multipliers b of a solution, and what they prove."""
    q = np.zeros(problem.rows.shape)
    q.flat[row_ids] = solution.q
    proof = problem.combine(q, precise=True)
    vector: Predictor = proof
    if solution.w is not None:
        vector = Predictor(solution.w.reshape(proof.image.shape), proof.coef)
    margins = problem.margins(vector, precise=True)
    low = problem.rows.group_min(margins)
    separator = Candidate(vector, min_margin=problem.rows.min_margin(low), margins=margins)
    if len(solution.b):
        beta = problem.rows.offsets_of_multipliers(solution.b)
        margins = margins + problem.rows.expand(beta[:, None] - beta)
    return margins, (Candidate(proof, proof.mass, precise=True), separator)


def _long_features(problem: KernelMatrixAdapter, work: WorkingSet) -> Array:
    """Entries of images that may be huge next to the norm of the others in the proof."""
    proof = work.candidates[0]
    rest = proof.vector.image.ravel() / max(proof.mass, 1e-300)
    rest[work.free] = 0.0
    long = LONG_FEATURE * np.abs(rest).max()
    if problem.slack is not None or long >= 1.0:  # no feature is longer than the radius
        return work.free
    features = written_out(problem)
    spread = None if features is None else features.spread()
    if spread is None:
        return work.free
    spread = np.broadcast_to(spread, (rest.size // spread.size, spread.size))
    return np.union1d(work.free, np.flatnonzero(spread.ravel() > long))
