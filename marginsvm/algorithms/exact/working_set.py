"""Working sets of rows: solve exactly on some, look at all, add the worst violators."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.faces import FaceSolver
from marginsvm.algorithms.exact.growing import GrowingMatrix
from marginsvm.algorithms.exact.pivoting import block_pivoting
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.nearest_point import NearestPoint, nearest_point
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows.vector import Vector

_NEAR = 0.05  # rows within this fraction of the margin stay
_GROWTH = 0.2  # rows that may come in a round, as a fraction of the support
NARROW = 256  # up to this many features, the active set is fast: no second try at pivoting
_CACHE_BYTES = 2**21  # of examples that a round looks at first
_MAX_NEAR = 1000  # such examples
_NEAR_ROUNDS = 10
_DELICATE = 1e-6  # below this margin (in radii), only the active set's digits suffice
_LONG = 1e6  # features this many times longer than the best margin may hide it: they are freed


class _View(NamedTuple):
    """Margins of all rows, the common one of the support, and the worst violators."""

    flat: Array
    common: float
    new: Array


@dataclass(frozen=True)
class WorkingSet:
    """Some rows and the last weights on them; replaced whole by every round.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Flat indices.
    gram : GrowingMatrix
        ``H``, of shape (m, m): the rows' Gram matrix + 1 + balance products. The 1 keeps the
        weights bounded where nothing separates, and leaves their direction alone; the products
        are 0 on balanced weights, and make H definite on affinely independent rows. Shape
        (0, 0): not yet computed, and of no use once ``delicate``.
    u : ndarray of shape (m,)
        Weights.
    passive : ndarray of bool, shape (m,)
        Rows that are expected to carry weight.
    base, factor : ndarray
        The last factorization, see :class:`FaceSolver`.
    candidates : tuple of Candidate
    near : ndarray of int
        Examples, those of the working set among them, that a round looks at before all.
    delicate : bool
        Block pivoting has nothing more to give: the active set's turn.
    free : ndarray of int
        Entries of images that the active set treats as it does the intercept.
    settled : float
        Tolerance from which up nothing will change any more, as no row violates it.
    """

    rows: Array
    gram: GrowingMatrix
    u: Array
    passive: Array
    base: Array
    factor: Array
    candidates: tuple[Candidate, ...]
    near: Array = field(default_factory=lambda: np.empty(0, int))
    delicate: bool = False
    free: Array = field(default_factory=lambda: np.empty(0, int))
    settled: float = np.inf

    @classmethod
    def start(cls, data: KernelMatrixAdapter) -> WorkingSet:
        """Begin with the rows that the difference of the class means separates worst.

        With many examples, these are some of each class.
        """
        size = _room(data)
        near = _spread(data.rows.codes, size) if size else np.empty(0, int)
        part = data.restrict(near)
        if part is None:
            return cls.of(_worst_under_means(data), np.zeros(0))
        rows = data.rows.renamed(_worst_under_means(part), near)
        return replace(cls.of(rows, np.zeros(0)), near=near)

    @classmethod
    def of(
        cls,
        rows: Array,
        u: Array,
        candidates: tuple[Candidate, ...] = (),
        delicate: bool = False,
    ) -> WorkingSet:
        """Begin with given rows and weights; no weights: all rows are expected to get some."""
        u, passive = (u, u > 0) if u.any() else (np.zeros(len(rows)), np.ones(len(rows), bool))
        none, nothing = np.empty(0, int), np.empty((0, 0))
        gram = GrowingMatrix(nothing)
        return cls(rows, gram, u, passive, none, nothing, candidates, delicate=delicate)

    def advance(self, data: KernelMatrixAdapter, tol: float) -> WorkingSet:
        """Solve on the working set, certify with a pass over all rows, exchange rows."""
        if tol >= self.settled:  # as nothing will change any more
            return self
        work, view = self._within(data, tol)._look(data, tol)
        if not len(view.new):  # slack keeps H definite: pivoting has given all its digits
            free = _long_features(data, work) if work.delicate else work.free
            done = (work.delicate and len(free) == len(work.free)) or data.slack is not None
            delicate = work.delicate or data.slack is None
            return replace(work, delicate=delicate, free=free, settled=tol if done else np.inf)
        work = work._exchange(data, view)
        return replace(work, near=_near(data, view.flat, work.rows)) if len(self.near) else work

    def _within(self, data: KernelMatrixAdapter, tol: float) -> WorkingSet:
        """What rounds on the near examples make of this: they cost next to nothing."""
        part = None if self.delicate else data.restrict(self.near)
        if part is None:
            return self
        names = np.empty(data.rows.n_examples, int)
        names[self.near] = np.arange(len(self.near))
        work = replace(self, rows=data.rows.renamed(self.rows, names))
        for _ in range(_NEAR_ROUNDS):
            work, view = work._look(part, tol)
            if work.delicate or not len(view.new):
                break
            work = work._exchange(part, view)
        data.n_passes += part.n_passes * len(self.near) / len(names)
        return replace(work, rows=data.rows.renamed(work.rows, self.near))

    def _look(self, data: KernelMatrixAdapter, tol: float) -> tuple[WorkingSet, _View]:
        """Solve on the working set, and look at all rows."""
        solution, work = self._solve(data)
        margins, candidates = bounds(data, self.rows, solution)
        support = solution.q > 0
        flat = margins.ravel()
        common = max(float(flat[self.rows[support]].mean()), 0.0)
        most = max(least_rows(data), int(_GROWTH * np.count_nonzero(support)))
        view = _View(flat, common, _violators(work.rows, flat, common, tol, most))
        return replace(work, u=solution.q, passive=support, candidates=candidates), view

    def _exchange(self, data: KernelMatrixAdapter, view: _View) -> WorkingSet:
        """Drop rows that are far, add violators."""
        delicate = self.delicate or data.norm(self.candidates[0].vector) <= _DELICATE
        thinned = self._thinned(view.flat, view.common, len(view.new))
        return replace(thinned, delicate=delicate)._add(data, view.new)

    def _solve(self, data: KernelMatrixAdapter) -> tuple[NearestPoint, WorkingSet]:
        """Balanced weights on the working set that are exact, by the faster way if it can."""
        work = self
        if not self.delicate:
            known = len(self.gram.values) > 0
            gram = self.gram if known else GrowingMatrix(_block(data, self.rows, self.rows))
            faces, B = FaceSolver(self.base, self.factor), data.rows.balance(self.rows)
            solved = block_pivoting(faces, gram.values, B, self.passive)
            work = replace(self, gram=gram, base=faces.base, factor=faces.factor)
            if solved is not None:
                u, b = solved
                return NearestPoint(u / u.sum(), b / u.sum(), None), work
            work = replace(work, delicate=data.width <= NARROW and data.slack is None)
        if len(self.free) or not (self.delicate and self.candidates):
            return nearest_point(data, self.rows, free=self.free), work  # last weights are far off
        support = np.flatnonzero(self.u > 0)
        corral = support[np.argsort(-self.u[support], kind="stable")]
        return nearest_point(data, self.rows, corral), work

    def _thinned(self, flat: Array, common: float, coming: int) -> WorkingSet:
        """Drop the rows far from the margin, if they are many."""
        stay = (self.u > 0) | (flat[self.rows] < common * (1.0 + _NEAR))
        stay[self.base] = True
        if len(self.rows) <= 2 * np.count_nonzero(stay) + coming:
            return self
        kept = np.flatnonzero(stay)
        position = np.full(len(self.rows), -1)
        position[kept] = np.arange(len(kept))
        gram = self.gram
        if not self.delicate:
            gram = GrowingMatrix(gram.values[kept[:, None], kept])
        return replace(
            self,
            rows=self.rows[kept],
            gram=gram,
            u=self.u[kept],
            passive=self.passive[kept],
            base=position[self.base],
        )

    def _add(self, data: KernelMatrixAdapter, new: Array) -> WorkingSet:
        m, n = len(self.rows), len(self.rows) + len(new)
        rows = np.concatenate([self.rows, new])
        gram = self.gram if self.delicate else self.gram.grown(_block(data, new, rows))
        u = np.concatenate([self.u, np.zeros(n - m)])
        passive = np.concatenate([self.passive, np.ones(n - m, bool)])
        return replace(self, rows=rows, gram=gram, u=u, passive=passive)


def bounds(
    data: KernelMatrixAdapter, rows: Array, solution: NearestPoint
) -> tuple[Array, tuple[Candidate, ...]]:
    """Margins of all rows, shifted by the multipliers b of a solution, and what they prove."""
    q = np.zeros(data.rows.shape)
    q.flat[rows] = solution.q
    proof = vector = data.combine(q, precise=True)
    if solution.w is not None:
        vector = Vector(solution.w.reshape(proof.image.shape), proof.coef)
    margins = data.margins(vector, precise=True)
    low = data.rows.group_min(margins)
    separator = Candidate(vector, min_margin=data.rows.min_margin(low), margins=margins)
    if len(solution.b):
        beta = data.rows.balance_offsets(solution.b)
        margins = margins + data.rows.expand(beta[:, None] - beta)
    return margins, (Candidate(proof, proof.mass, precise=True), separator)


def least_rows(data: KernelMatrixAdapter) -> int:
    """Rows to begin with, and to add at least."""
    return max(100, 5 * data.rows.n_classes * (data.rows.n_classes - 1))


def _block(data: KernelMatrixAdapter, rows: Array, others: Array) -> Array:
    H = data.gram(rows, others)
    H += 1.0
    if data.rows.balanced:
        H += data.rows.balance(rows) @ data.rows.balance(others).T
    return H


def _long_features(data: KernelMatrixAdapter, work: WorkingSet) -> Array:
    """Entries of images that may be huge next to the norm of the others in the proof."""
    proof = work.candidates[0]
    rest = proof.vector.image.ravel() / max(proof.mass, 1e-300)
    rest[work.free] = 0.0
    if data.slack is not None or _LONG * np.abs(rest).max() >= 1.0:  # no feature is that long
        return work.free
    if data.spread is None:
        return work.free
    spread = np.broadcast_to(data.spread, (rest.size // data.spread.size, data.spread.size))
    long = np.flatnonzero(spread.ravel() > _LONG * np.abs(rest).max())
    return np.union1d(work.free, long)


def _violators(rows: Array, flat: Array, common: float, tol: float, most: int) -> Array:
    """Rows outside the working set with the worst margins, if below the common one."""
    flat = flat.copy()
    flat[rows] = np.inf
    new = np.flatnonzero(flat < common * (1.0 - max(0.5 * tol, 1e-13)))
    return new if len(new) <= most else new[np.argpartition(flat[new], most)[:most]]


def difference_of_means(data: KernelMatrixAdapter) -> Vector:
    """``A^T q`` of balanced weights, the same on a few rows of each group."""
    rows = data.rows.flat_indices()
    group = data.rows.group(rows)
    some = _spread(group, least_rows(data))
    q = np.zeros(data.rows.shape)
    q.flat[rows[some]] = 1.0 / np.bincount(group[some])[group[some]]
    return data.combine(q / q.sum())


def _worst_under_means(data: KernelMatrixAdapter) -> Array:
    """Some rows of each group that the difference of the class means separates worst."""
    rows = data.rows.flat_indices()
    if len(rows) <= least_rows(data):
        return rows
    margins = data.margins(difference_of_means(data)).ravel()
    return rows[_least(margins[rows], data.rows.group(rows), least_rows(data))]


def _room(data: KernelMatrixAdapter) -> int:
    """Examples that stay in cache; 0: so do all of them, or too few to be of use."""
    size = min(_MAX_NEAR, int(_CACHE_BYTES / (8 * min(data.width, _CACHE_BYTES))))
    return size if 2 * least_rows(data) < size < data.rows.n_examples // 4 else 0


def _near(data: KernelMatrixAdapter, flat: Array, rows: Array) -> Array:
    """Examples of the working set, and of each class those with the worst margins."""
    worst = flat.reshape(data.rows.n_examples, -1).min(axis=1)
    near = _least(worst, data.rows.codes, _room(data))
    return np.union1d(near, data.rows.locate(rows)[0])


def _least(values: Array, group: Array, size: int) -> Array:
    """Positions of the smallest values of every group, ``size`` in all (two each, at least)."""
    if len(values) <= size:
        return np.arange(len(values))
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = max(size // len(members), 2)
    return np.sort(
        np.concatenate(
            [m[np.argpartition(values[m], min(each, len(m)) - 1)[:each]] for m in members]
        )
    )


def _spread(group: Array, size: int) -> Array:
    """Positions of some members of every group, evenly spread, about ``size`` in all."""
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = max(size // len(members), 2)
    return np.sort(np.concatenate([m[:: -(-len(m) // each)] for m in members]))
