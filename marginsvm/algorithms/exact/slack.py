"""What slack costs: the weights that margins give rise to, line searches, the best intercept.

A row with the margin m costs

    max over -cap <= u <= cap of  low u+ - high u- - m u - own u^2/2 - soft (u - v)^2/2

and the u that attains it is its weight, by which the data player proves a bound. Rows of classes
have low = 1 and high = inf, so that u >= 0.

===================================  ========  ========  ======================================
problem                              own       cap       soft, v
===================================  ========  ========  ======================================
squared slack                        1/(2 C)   inf       0
hinge loss                           0         C         soft, the last weights
hard margin                          0         inf       soft, the last weights
squared slack with a large C         1/(2 C)   inf       soft, the last weights
a share nu of n examples             0         1/(nu n)  soft, the last weights
===================================  ========  ========  ======================================

``soft`` rounds the cost off. If v are the weights of the solution, it is the solution of the
problem without it (the proximal point method for the weights, or method of multipliers).

Where a share of the examples is given, so is what the sizes of weights sum to, and both ends are
free to move towards each other: by the level that margins are to reach, or less the width of a
tube. The level earns this mass for each unit.

References
----------
R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research 1976.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.intercepts import ClassPairs
from marginsvm.algorithms.exact.piecewise import Pieces, SharedPieces
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Rows

# Look at rows that may get weight; if the intercepts move further than assumed, assume four times
# as far and try again.
_WIDER = 4.0


@dataclass(frozen=True)
class Slack:
    """The cost of margins, see above. All arrays broadcast against the rows.

    Attributes
    ----------
    own : ndarray or float
        Square of a row's extra coordinate in the problem itself.
    cap : ndarray or float
        Largest weight or, with ``shared``, largest sum of the weights of an example's rows; a
        number: infinite.
    low, high : ndarray or float
        Ends of the interval in which a margin costs nothing; None: infinite.
    soft : ndarray or float
        By how much the cost is rounded off.
    v : ndarray or float
        Weights about which it is: the multipliers.
    shared : bool
        Whether the rows of an example share a cap; ``own`` and ``soft`` then are the same for all
        of them.
    mass : float
        What the sizes of weights sum to, or of tubes at most; 0: any number.
    level : float
        By how much ``low`` is raised and ``high`` lowered; of tubes, 0 at most.
    """

    own: Array | float
    cap: Array | float = np.inf
    low: Array | float = 1.0
    high: Array | float | None = None
    soft: Array | float = 0.0
    v: Array | float = 0.0
    shared: bool = False
    mass: float = 0.0
    level: float = 0.0

    @cached_property
    def s(self) -> Array | float:
        """By how much a margin must fall for one more unit of weight."""
        return self.own + self.soft if np.any(self.soft) else self.own

    def about(self, v: Array | float, soft: Array | float) -> Slack:
        """The same cost, rounded off about other weights."""
        return replace(self, v=v, soft=soft)

    def weights(self, margins: Array) -> Array:
        """The data player's weights."""
        u = self._weights(margins)[0]
        return u if self.high is None else np.asarray(u[0] - u[1])

    def cost(self, margins: Array, u: Array) -> float:
        """Of all margins, for the weights u that attain it, up to what v alone costs.

        Less what the level earns.
        """
        squares = 0.5 * float(np.vdot(self.s * u, u))
        if isinstance(self.cap, float):
            return squares  # weights are what is missing, over s
        missing = self._missing(margins)
        paid = u if self.high is None else np.stack([np.maximum(u, 0.0), np.maximum(-u, 0.0)])
        slack = float(np.vdot(np.where(paid > 0.0, missing, 0.0), paid))
        return slack - squares - self.mass * self.level

    def curvature(self, margins: Array, u: Array) -> tuple[Array, Array | None]:
        """Derivatives of the weights u in the margins, signs left out.

        Returns
        -------
        a : ndarray of shape rows.shape
            1/s of the rows whose weights are free to move, 0 of the others.
        linked : ndarray of shape rows.shape or None
            Where rows share a cap, and example i has reached it, the sum of its weights does not
            move. The margins of each two of its rows j and l are then held against each other with
            the weight ``linked_ij linked_il``, and a is 0. Where the level is free, the sum of all
            sizes does not move: as if rows i and j, with the signs of their weights, were held
            against each other with the weight ``linked_i linked_j`` besides.
        """
        if self.shared:
            _, free, full = self._weights(margins)
            a, held = free / self.s, full & (np.count_nonzero(free, axis=1) > 1)
            linked = np.zeros(a.shape)
            linked[held] = a[held] / np.sqrt(a[held].sum(axis=1, keepdims=True))
            return np.where(full[:, None], 0.0, a), linked if held.any() else None
        free = u != 0.0
        if not isinstance(self.cap, float):
            free &= np.abs(u) < self.cap
        a = np.asarray(free / self.s)
        if not (self.is_level_free and free.any()):
            return a, None
        return a, a * np.sign(u) / np.sqrt(a.sum())

    @property
    def is_game(self) -> bool:
        """Whether margins have no unit: the level is all that they are to reach."""
        return self.mass > 0.0 and self.high is None

    @property
    def is_level_free(self) -> bool:
        """Whether the level may move either way."""
        return self.is_game or (self.mass > 0.0 and self.level < 0.0)

    def line_search(
        self,
        margins: Array,
        move: Array,
        slope: float = 0.0,
        square: float = 0.0,
        rise: float = 0.0,
    ) -> float:
        """Minimise ``slope t + square t^2/2`` plus the cost of ``margins + t move`` over t.

        The level moves by ``t rise``.
        """
        move, slope = self._sided(move) - rise, slope - self.mass * rise
        ids, some = self._reached(margins, np.where(move < 0.0, np.inf, 0.0))
        return some.lowest(move[ids] if self.shared else move.ravel()[ids], 1.0, slope, square)

    def settled(self, rows: Rows, margins: Array) -> tuple[Slack, Array]:
        """The cost at its best level, and the change of the scores' intercepts that is best then.

        With an intercept, either side has half of the mass, and an end of its own.
        """
        at = self
        if self.mass:
            above, below = self._rises(rows, margins)
            at = replace(self, level=self.level + 0.5 * (above + below))
            if at.high is None or at.level <= 0.0:
                return at, np.full(rows.score_shape[1:], 0.5 * (below - above))
            at = replace(self, level=0.0)
        if rows.balanced:
            return at, at.best_intercept(rows, margins)
        return at, np.zeros(rows.score_shape[1:])

    def _rises(self, rows: Rows, margins: Array) -> tuple[float, float]:
        """By how much the ends of rows of either sign are best raised; alike without intercept."""
        missing = self._missing(margins)
        if not rows.balanced:
            return (self._rise(missing, np.full(missing.shape, True), self.mass),) * 2
        half = 0.5 * self.mass
        first = self._sided(rows.moves(np.ones(rows.score_shape))) > 0.0
        return self._rise(missing, first, half), self._rise(missing, ~first, half)

    def _rise(self, missing: Array, some: Array, mass: float) -> float:
        """By how much the end of some rows is best raised if this earns the mass for a unit."""
        take = partial(_taken, np.flatnonzero(some), missing.shape, False)
        s, raised = take(self.s), take(missing)
        return Pieces(raised / s, s, take(self.cap)).lowest(-np.ones(len(raised)), 0.0, -mass)

    def best_intercept(self, rows: Rows, margins: Array) -> Array:
        """Change of the scores' intercepts that minimises the cost; weights are then balanced."""
        if rows.n_classes == 2:
            one = self._sided(rows.moves(np.ones(rows.score_shape)))
            return np.asarray(self._pieces(margins).lowest(one, 0.0))
        reach, b = 0.0, np.zeros(rows.n_classes)
        while True:
            ids, some = self._reached(margins, reach)
            if isinstance(some, SharedPieces):
                b = some.best_offsets(rows.codes[ids])
            else:
                b = some.best_intercepts(ClassPairs.of(rows, ids), b)
            spread = float(np.ptp(b))
            if spread <= reach:
                return b
            reach = _WIDER * spread

    def intercept_alone(self, rows: Rows) -> Array:
        """The best intercepts at w = 0, where the rows of a group are equal: without caps."""
        if rows.n_classes == 2:
            return self.best_intercept(rows, np.zeros(rows.shape))
        k, ids = rows.n_classes, rows.flat_indices()
        total = np.bincount(
            rows.group(ids), 1.0 / np.broadcast_to(self.s, rows.shape).flat[ids], k * k
        )
        some = np.flatnonzero(total)
        alike = Pieces(total[some], 1.0 / total[some], np.inf)
        return alike.best_intercepts(ClassPairs(k, *np.divmod(some, k)), np.zeros(k))

    def _missing(self, margins: Array) -> Array:
        """By how much margins miss the end where weights begin; of two ends, each."""
        shift = self.soft * self.v
        low = self.low + self.level + shift - margins
        if self.high is None:
            return low
        return np.stack([low, margins - shift - (self.high - self.level)])

    def _sided(self, move: Array) -> Array:
        return move if self.high is None else np.stack([move, -move])

    def _weights(self, margins: Array) -> tuple[Array, Array, Array]:
        pieces = self._pieces(margins)
        return pieces.weights(pieces.raw)

    def _pieces(self, margins: Array) -> Pieces:
        """All rows."""
        kind = SharedPieces if self.shared else Pieces
        return kind(self._missing(margins) / self.s, self.s, self.cap)

    def _reached(self, margins: Array, reach: Array | float) -> tuple[Array, Pieces]:
        """Rows that have weight, or get some if their margins fall by less than ``reach``.

        Returns
        -------
        ids : ndarray of int
            Flat indices of rows; if these share caps, examples, all of whose rows are taken.
        pieces : Pieces
        """
        missing = self._missing(margins)
        near = missing > -reach
        ids = np.flatnonzero(near.any(axis=1) if self.shared else near)
        take = partial(_taken, ids, near.shape, self.shared)
        kind, s = SharedPieces if self.shared else Pieces, take(self.s)
        cap = self.cap if isinstance(self.cap, float) else take(self.cap)
        return ids, kind(take(missing) / s, s, cap)


def _taken(ids: Array, shape: tuple[int, ...], lines: bool, values: Array | float) -> Array:
    """Some entries, or lines, of values that broadcast to a shape; one for all stays one."""
    values = np.asarray(values)
    if values.size == 1:
        return values.reshape(())
    return values[ids] if lines else np.broadcast_to(values, shape).flat[ids]


def signs_and_slack(problem: KernelMatrixAdapter) -> tuple[Array, Array]:
    """Signs of the rows of two classes, and the squares of their extra coordinates."""
    slack = np.zeros(problem.n_rows) if problem.slack is None else problem.slack
    return problem.rows.adjoint(np.ones(problem.n_rows)), slack
