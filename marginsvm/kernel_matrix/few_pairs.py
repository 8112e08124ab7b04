"""Products with the rows of a few pairs of an example and a class, of many classes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.problem.rows import Rows

# Share of all pairs up to which products with these alone are faster: two to thirty times, from 26
# to 700 classes and 10 to 784 features. With a tenth of all pairs, they were as often slower.
_SHARE_OF_PAIRS = 0.02
# Entries of the examples of pairs that are copied at a time: 8 MB.
_GATHERED = 2**20


class FewPairs:
    """The rows with weight of dense examples, as pairs of an example and a class.

    Parameters
    ----------
    X : ndarray of shape (n_examples, d)
    rows : Rows
        Of more than two classes.
    weight : ndarray of shape rows.shape
    """

    def __init__(self, X: Array, rows: Rows, weight: Array) -> None:
        self._X, self._k = X, rows.n_classes
        self._examples, self._other = np.nonzero(weight)
        self._own = rows.codes[self._examples]
        # halved, as a row is a difference over sqrt(2)
        self._half_weight = 0.5 * weight[self._examples, self._other]
        small = len(self._own) * X.shape[1] <= _GATHERED
        self._copies = X[self._examples] if small else None
        both = np.concatenate([self._own, self._other])
        self._order = np.argsort(both, kind="stable")
        self._indices = np.tile(self._examples, 2)[self._order]
        self._indptr = np.concatenate([[0], np.cumsum(np.bincount(both, minlength=self._k))])

    @staticmethod
    def suit(weight: Array) -> bool:
        """Whether so few rows have weight that products with these alone are quicker."""
        return weight.ndim == 2 and bool(np.count_nonzero(weight) < _SHARE_OF_PAIRS * weight.size)

    def curvature(self, W: Array, shift: Array) -> tuple[Array, Array]:
        """See ``passes.curvature``."""
        v = self._half_weight * (self._differences(W) - (shift[self._own] - shift[self._other]))
        values = np.concatenate([v, -v])[self._order].astype(self._X.dtype, copy=False)
        shape = (self._k, len(self._X))
        V = sp.csr_array((values, self._indices, self._indptr), shape=shape)
        total = np.bincount(self._own, v, self._k) - np.bincount(self._other, v, self._k)
        return V @ self._X, total

    def _differences(self, W: Array) -> Array:
        """Scores for the own class less those for the other one."""
        found, size = np.empty(len(self._own)), max(1, _GATHERED // self._X.shape[1])
        for start in range(0, len(found), size):
            some = slice(start, start + size)
            between = W.take(self._own[some], axis=0)
            between -= W.take(self._other[some], axis=0)
            X = self._X[self._examples[some]] if self._copies is None else self._copies
            found[some] = np.einsum("ij,ij->i", X, between)
        return found
