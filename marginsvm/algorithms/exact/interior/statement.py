"""What an interior point method solves: one statement of hard margins, squared slack and hinge.

With rows A, and free unknowns f (intercepts, and the level of a hard margin) that add ``F f`` to
the margins, the weights u of the data player solve

    min |A'u|^2 / 2 + own u^2 / 2 - target u    where    F'u = sums,   0 <= u,   and S u <= caps

A soft margin has the target 1. Where scores are to lie in intervals, each row has two sides: its
score, whose target is the lower end, and the score with its sign changed, whose target is the upper
end with its sign changed. A hard margin is a game: the target is 0, and the weights sum to 1,
so that there is a solution whether or not anything separates. So is the mean margin of a share of
the examples, where weights have caps, too. S sums over the rows of an example: with two classes,
there is one. Of a hard margin, weights sum to 1. Of tubes with a share of the examples outside,
they sum to no more than a part of the caps' sum: that is one more cap, and its price is the width
of the tube, which adds to the margins of both sides.

Signs of coefficients are rows as well: the value of a predictor on ``s_j e_j`` is to be 0 at least.
They come after the others, have no slack, and nothing free adds to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.caps import Caps, ShareCaps
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import OutputRows, Rows

# By how much caps of a share sum to more than 1 at least: with a share of all examples, weights at
# their caps are the only ones, and no point would be inside.
_ROOM = 1e-9


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
    game : bool
        Whether weights sum to 1, for a hard margin or a share of the examples.
    signs : ndarray of shape (n_features,) or (0,)
        Signs of the coefficients: -1, 0 for any, or 1; empty: there are none.
    ends : ndarray of shape (n,) or None
        Targets of both sides of all rows, where scores are to lie in intervals; else None.
    mass : float
        What the weights of both sides sum to at most, where that is given; else 0.
    """

    row_ids: Array
    own: Array
    caps: Array
    game: bool
    signs: Array = field(default_factory=lambda: np.zeros(0))
    ends: Array | None = None
    mass: float = 0.0

    @classmethod
    def of(cls, problem: KernelMatrixAdapter) -> Statement:
        """The statement of a problem."""
        rows, row_ids = problem.rows, problem.rows.flat_indices()
        own = np.zeros(len(row_ids)) if problem.slack is None else problem.slack.flat[row_ids]
        caps = np.zeros(0) if problem.caps is None else _with_room(problem.caps)
        signs = np.zeros(0) if problem.signs is None else np.asarray(problem.signs, float)
        none, ends, mass = np.zeros(np.count_nonzero(signs)), None, 0.0
        game = problem.slack is None and (problem.caps is None or problem.nu is not None)
        if isinstance(rows, OutputRows):
            low, high, game = rows.intervals.low, rows.intervals.high, False
            ends = np.concatenate([low, -high, none])
            own, caps = np.tile(own, 2), np.tile(caps, 2)
            if problem.caps is not None and problem.caps.nu is not None:
                mass = 0.5 * problem.caps.nu * float(caps.sum())
        return cls(row_ids, np.append(own, none), caps, game, signs, ends, mass)

    @property
    def target(self) -> Array | float:
        """The margin from which on a row has no slack."""
        if self.ends is not None:
            return self.ends
        if not self.signs.size or self.game:
            return 0.0 if self.game else 1.0
        return np.append(np.ones(len(self.row_ids)), np.zeros(len(self.of_signs)))

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

    @property
    def limits(self) -> Array:
        """All caps: that of the sum is the last one."""
        return np.append(self.caps, self.mass) if self.mass else self.caps

    def sums(self, u: Array) -> Array:
        """What counts against each cap."""
        if self.mass:
            return np.append(u[: self.caps.size], u @ self.widened)
        if not self.shared:
            return u[: self.caps.size]
        return np.asarray(u.reshape(self.caps.size, -1).sum(axis=1))

    def relief(self, xi: Array) -> Array | float:
        """What prices of caps add to the margin of each row: its own one, and the width."""
        each = self.spread(xi)
        return each + xi[-1] * self.widened if self.mass else each

    def spread(self, xi: Array, rest: float = 0.0) -> Array | float:
        """To each row, the number that belongs to its cap; ``rest`` to those that have none."""
        xi = xi[: self.caps.size]
        if not self.shared:
            if not xi.size:
                return rest
            more = self.own.size - xi.size
            return np.append(xi, np.full(more, rest)) if more else xi
        return np.repeat(xi, len(self.row_ids) // self.caps.size)

    def on_rows(self, u: Array, rows: Rows) -> Array:
        """Weights in the shape of the rows: of two sides, their difference; without signs."""
        u = self.net(u)[: len(self.row_ids)]
        if u.size == int(np.prod(rows.shape)):
            return u.reshape(rows.shape)
        q = np.zeros(rows.shape)
        q.reshape(-1)[self.row_ids] = u
        return q

    def flat(self, margins: Array) -> Array:
        """Values of the rows in flat order, and those of their other sides."""
        values = margins.ravel()
        return self.both(values if len(values) == len(self.row_ids) else values[self.row_ids])

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

    @property
    def widened(self) -> Array:
        """By how much a wider tube adds to each margin: signs have none."""
        return np.append(np.ones(2 * len(self.row_ids)), np.zeros(len(self.of_signs)))

    def _apart(self, u: Array) -> list[Array]:
        """What belongs to either side of all rows, and to signs."""
        n = len(self.row_ids)
        return np.split(u, [n, 2 * n])


def _with_room(caps: Caps) -> Array:
    """The caps; those of a share leave the weights, which sum to 1, some room."""
    if not isinstance(caps, ShareCaps):
        return caps.largest
    return caps.largest * max(1.0, (1.0 + _ROOM) / float(caps.largest.sum()))
