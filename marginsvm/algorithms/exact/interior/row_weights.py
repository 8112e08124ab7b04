"""The weights of the rows in a system of interior points: ``W = (diag(h) + S' diag(pull) S)^-1``.

S sums over the rows of an example, which share a cap. Sherman and Morrison's formula gives W, which
is diagonal where an example has one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.statement import Statement


@dataclass(frozen=True)
class RowWeights:
    """W, of which the inverse is given.

    Attributes
    ----------
    statement : Statement
    h : ndarray of shape (n,)
        The diagonal.
    pull : ndarray of shape (n_examples,) or (0,)
        What is added for all pairs of rows of an example; empty: nothing.
    """

    statement: Statement
    h: Array
    pull: Array

    @cached_property
    def _left(self) -> Array:
        """Share of the weight of an example that moves its sum."""
        return np.asarray(1.0 / (1.0 + self.pull * self.statement.sums(1.0 / self.h)))

    @cached_property
    def own(self) -> Array:
        """Of a row held against the own class of its example."""
        left = self.statement.spread(self._left, 1.0) if self.pull.size else 1.0
        return np.asarray(left / self.h)

    def joined(self) -> RowWeights:
        """Those of rows: of two sides that move together, they add up."""
        if self.statement.sides == 1:
            return self
        return RowWeights(self.statement, 1.0 / self.statement.gross(self.own), np.zeros(0))

    def gathered(self, sides: RowWeights, g: Array) -> Array:
        """What these are to be multiplied with for the weights ``W g`` of both sides."""
        if sides is self:
            return g
        return np.asarray(self.h * self.statement.net(sides.times(g)[0]))

    def of_both(self, g: Array) -> float:
        """What is left of the sum of ``W g`` where no row moves: its two sides move alike."""
        if self.statement.sides == 1:
            return 0.0
        n = len(self.statement.row_ids)
        harmonic = 2.0 / (1.0 / self.own[:n] + 1.0 / self.own[n : 2 * n])
        return float(harmonic @ (g[:n] + g[n : 2 * n]))

    @cached_property
    def linked(self) -> Array | None:
        """Whose products weigh two rows of an example against each other; None: it has one row."""
        if not self.statement.shared:
            return None
        return np.asarray(self.statement.spread(np.sqrt(self.pull * self._left)) / self.h)

    @cached_property
    def _first(self) -> Array:
        """Of the rows of each example, the one with the least h."""
        h = self.h.reshape(self.pull.size, -1)
        return np.asarray(np.arange(len(h)) * h.shape[1] + h.argmin(axis=1))

    def times(self, v: Array) -> tuple[Array, Array]:
        """``W v``, and the sums of that which count against each cap, to all digits."""
        if not self.statement.shared:
            u = self.own * v
            return u, u[: self.pull.size]
        # beside the row that counts most: what moves all rows of an example alike cancels
        statement, first = self.statement, self._first
        more = v - statement.spread(v[first])
        each = more * statement.spread(statement.sums(1.0 / self.h))
        each = each - statement.spread(statement.sums(more / self.h))
        u = self.own * v + statement.spread(self.pull * self._left) * each / self.h
        return u, self._left * statement.sums(v / self.h)

    def inverse_times(self, u: Array) -> Array:
        """``W^-1 u``."""
        if not self.pull.size:
            return np.asarray(self.h * u)
        return np.asarray(self.h * u + self.statement.spread(self.pull * self.statement.sums(u)))

    def added_to(self, K: Array) -> Array:
        """``K + W^-1``."""
        M, each = K.copy(), len(self.h) // max(self.pull.size, 1)
        M.flat[:: len(M) + 1] += self.h
        if self.pull.size:
            blocks = np.arange(len(M)).reshape(-1, each)
            M[blocks[:, :, None], blocks[:, None]] += self.pull[:, None, None]
        return M
