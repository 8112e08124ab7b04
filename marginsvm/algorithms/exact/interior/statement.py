"""What an interior point method solves: one statement of hard margins, squared slack and hinge.

With rows A, and free unknowns f (intercepts, and a level) that add ``F f`` to the margins, the
weights u of the data player solve

    min |A'u|^2 / 2 + own u^2 / 2 - target u    where    F'u = sums,   0 <= u,   and S u <= caps

A soft margin has the target 1. A hard margin is a game: the target is 0, and the weights sum to 1,
so that there is a solution whether or not anything separates; so is the mean margin of a share of
the examples, where weights have caps, too. S sums over the rows of an example: with two classes,
there is one. The level, which adds to all margins, is there where the sum of the weights is given.

Where scores are to lie in intervals, each row has two sides: its score, whose target is the lower
end, and the score with its sign changed, whose target is the upper end with its sign changed. With
a share of the examples outside of tubes, weights sum to a part of the caps' sum, and the level is
the width of the tube. No less is needed: of a tube without a width of its own, both sides may have
as much more weight as they like.

Signs of coefficients are rows as well: the value of a predictor on ``s_j e_j`` is to be 0 at least.
They come after the others, have no slack, and nothing free adds to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certify.caps import Caps, ShareCaps
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import OutputRows, Rows

# By how much caps of a share sum to more than 1 at least: with a share of all examples, weights at
# their caps are the only ones, and no point would be inside.
_ROOM = 1e-9
# Part of an interval's width by which one of its ends is moved inward at most.
_MOVED = 0.25


@dataclass(frozen=True)
class Statement:
    """Rows, in one flat order, with their slack and the largest weights that they may have.

    Attributes
    ----------
    row_ids : ndarray of int, shape (n,)
        Flat indices of all rows.
    own : ndarray of shape (n,)
        Squares of the rows' extra coordinates; 0: slack is not squared, or there is none.
    caps : ndarray of shape (n_examples,) or (0,)
        Largest weights of the examples; empty: there are none.
    total : float
        What the weights sum to, those of signs apart, where that is given; else 0.
    signs : ndarray of shape (n_features,) or (0,)
        Signs of the coefficients: -1, 0 for any, or 1; empty: there are none.
    ends : ndarray of shape (n,) or None
        Targets of both sides of all rows, where scores are to lie in intervals; else None.
    """

    row_ids: Array
    own: Array
    caps: Array
    total: float
    signs: Array = field(default_factory=lambda: np.zeros(0))
    ends: Array | None = None

    @classmethod
    def of(cls, problem: KernelMatrixAdapter, inward: float = 0.0) -> Statement:
        """The statement of a problem.

        Parameters
        ----------
        problem : KernelMatrixAdapter
        inward : float
            By how much ends of intervals are moved inward (in units of scores), and by no more than
            a part of their width: what rounds a score at its end then costs nothing.
        """
        rows, row_ids = problem.rows, problem.rows.flat_indices()
        own = np.zeros(len(row_ids)) if problem.slack is None else problem.slack.flat[row_ids]
        caps = np.zeros(0) if problem.caps is None else _with_room(problem.caps)
        signs = np.zeros(0) if problem.signs is None else np.asarray(problem.signs, float)
        none, ends = np.zeros(np.count_nonzero(signs)), None
        hard = problem.slack is None and (problem.caps is None or problem.nu is not None)
        total = float(hard)
        if isinstance(rows, OutputRows):
            low, high = rows.intervals.low, rows.intervals.high
            moved = np.minimum(inward, _MOVED * (high - low))
            ends = np.concatenate([low + moved, moved - high, none])
            own, caps = np.tile(own, 2), np.tile(caps, 2)
            total = 0.0
            if problem.caps is not None and problem.caps.nu is not None:
                total = 0.5 * problem.caps.nu * float(caps.sum())
        return cls(row_ids, np.append(own, none), caps, total, signs, ends)

    @property
    def game(self) -> bool:
        """Whether margins have no target but each other."""
        return self.total > 0.0 and self.ends is None

    @cached_property
    def target(self) -> Array | float:
        """The margin from which on a row has no slack."""
        if self.ends is not None:
            return self.ends
        return 0.0 if self.game else self.slackened

    @cached_property
    def slackened(self) -> Array:
        """1 for all rows that slack and a level add to, 0 for signs."""
        n = self.sides * len(self.row_ids)
        return np.append(np.ones(n), np.zeros(self.own.size - n))

    @property
    def of_signs(self) -> Array:
        """The rows of the signs, of shape (n_signs, n_features)."""
        return np.diag(self.signs)[np.flatnonzero(self.signs)]

    @property
    def sides(self) -> int:
        """Of each row."""
        return 1 if self.ends is None else 2

    @property
    def shared(self) -> bool:
        """Whether several rows share a cap."""
        return 0 < len(self.caps) < len(self.row_ids)

    def sums(self, u: Array) -> Array:
        """What counts against each cap."""
        if not self.shared:
            return u[: self.caps.size]
        return np.asarray(u.reshape(self.caps.size, -1).sum(axis=1))

    def spread(self, xi: Array, rest: float = 0.0) -> Array:
        """To each row, the number that belongs to its cap; ``rest`` to those that have none."""
        if self.shared:
            return np.repeat(xi, len(self.row_ids) // xi.size)
        more = self.own.size - xi.size
        return np.append(xi, np.full(more, rest)) if more else xi

    def on_rows(self, u: Array, rows: Rows) -> Array:
        """Weights in the shape of the rows: of two sides, their difference; without signs."""
        u = self.net(u)[: len(self.row_ids)]
        if u.size == int(np.prod(rows.shape)):
            return u.reshape(rows.shape)
        q = np.zeros(rows.shape)
        q.reshape(-1)[self.row_ids] = u
        return q

    def chosen(self, values: Array) -> Array:
        """Values in the shape of the rows, in flat order."""
        values = values.ravel()
        return values if len(values) == len(self.row_ids) else values[self.row_ids]

    def both(self, values: Array) -> Array:
        """Values of all rows, and those of their other sides; then of signs, which have one."""
        if self.sides == 1:
            return values
        n = len(self.row_ids)
        return np.concatenate([values[:n], -values[:n], values[n:]])

    def net(self, u: Array) -> Array:
        """What weights come to on the rows: of two sides, their difference."""
        if self.sides == 1 or len(u) < len(self.own):
            return u
        above, below, rest = self._apart(u)
        return np.append(above - below, rest)

    def gross(self, weight: Array) -> Array:
        """The sum of the weights of squares, of both sides."""
        if self.sides == 1:
            return weight
        above, below, rest = self._apart(weight)
        return np.append(above + below, rest)

    def _apart(self, u: Array) -> list[Array]:
        """What belongs to either side of all rows, and to signs."""
        n = len(self.row_ids)
        return np.split(u, [n, 2 * n])


def _with_room(caps: Caps) -> Array:
    """The caps; those of a share leave the weights, which sum to 1, some room."""
    if not isinstance(caps, ShareCaps):
        return caps.largest
    return caps.largest * max(1.0, (1.0 + _ROOM) / float(caps.largest.sum()))
