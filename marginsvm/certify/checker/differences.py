"""Differences of rows as rows of floats, although floats round them.

Where a difference is not a float, its column is two: the rounded difference, and what it misses;
an equality says that both have the same coefficient. Statuses and directions of the column are
those of the second of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.checker.coordinates import UNIT_ROUNDOFF, power_of_two
from marginsvm.certify.checker.positive import overlap_in_all_directions

_EVERY = slice(None)


@dataclass(frozen=True)
class Differences:
    """Rows ``x_i - x_j``, exactly.

    Attributes
    ----------
    A : ndarray of shape (n_pairs, d)
        Rounded.
    rest : ndarray of shape (n_pairs, n_rounded)
        What the columns that are rounded miss.
    rounded : ndarray of int, shape (n_rounded,)
    """

    A: NDArray
    rest: NDArray
    rounded: NDArray

    @classmethod
    def of(cls, X: Any, winner: NDArray, rival: NDArray) -> Differences:
        """Of pairs of rows of X."""
        a, b = (X[k].toarray() if sp.issparse(X) else X[k] for k in (winner, rival))
        A = a - b
        back = A - a
        rest = (a - (A - back)) - (b + back)
        rounded = np.flatnonzero(rest.any(axis=0))
        return cls(A, rest[:, rounded], rounded)

    @property
    def first(self) -> NDArray:
        """Places of the columns of A among those of :meth:`written_out`."""
        d = self.A.shape[1]
        return np.arange(d) + np.searchsorted(self.rounded, np.arange(d))

    @property
    def own(self) -> NDArray:
        """Places there of the columns that have the statuses."""
        return self.first + np.isin(np.arange(self.A.shape[1]), self.rounded)

    def written_out(self) -> NDArray:
        """Rows of floats, with an equality below them for each column that is two."""
        if not len(self.rounded):
            return self.A
        (n, d), k = self.A.shape, len(self.rounded)
        rows, first, second = n + np.arange(k), self.first[self.rounded], self.own[self.rounded]
        out = np.zeros((n + k, d + k))
        out[:n, self.first], out[:n, second] = self.A, self.rest
        units = power_of_two(self.A[:, self.rounded].T)
        out[rows, first], out[rows, second] = units, -units
        return out

    def in_floats(self) -> Differences:
        """The same where what is rounded does not matter."""
        return Differences(self.A, self.rest[:, :0], self.rounded[:0])

    def overlap(
        self,
        equality: NDArray,
        q: NDArray,
        some: NDArray | slice = _EVERY,
        columns: NDArray | slice = _EVERY,
    ) -> bool:
        """Whether floats prove that weights near q balance pairs that span some columns.

        Weights of equalities may have any sign.
        """
        A, q, equality = self.A[some][:, columns], q[some], equality[some]
        if np.any(q[~equality] < 0.0):
            return False
        sign = np.where(q < 0.0, -1.0, 1.0)
        rounding = UNIT_ROUNDOFF if len(self.rounded) else 0.0
        return overlap_in_all_directions(A * sign[:, None], sign * q, rounding)

    def weights(self, q: NDArray) -> NDArray:
        """Weights of the rows written out that balance as those of pairs do."""
        some = self.A[:, self.rounded]
        return np.append(q, -(q @ some) / power_of_two(some.T))
