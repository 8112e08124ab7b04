"""Examples in a sparse matrix: most of their entries are 0 and not stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import summed
from marginsvm._typing import Array
from marginsvm.data.block import Block, Centre, Dense, examples_at_once, spans
from marginsvm.rows import LpNorm

# A product of sparse matrices takes as long as one of dense arrays if one entry in so many is
# stored. With one in 25 (50,000 x 300, 12 entries a row), it took 15 ms, the dense one 50 ms.
SPARSE_PRODUCT_COST = 16
# Products of two entries in a process that take SciPy about half a second, as long as importing
# numba, whose loop takes a tenth of SciPy's time (50,000 x 300, 12 entries a row).
_PRODUCTS_BY_SCIPY = 1e8


class Csr(Block):
    """A CSR matrix or array; a mean is subtracted from sums, as it would fill the matrix.

    But one that is 0 where entries are not stored can be subtracted from the examples.

    Parameters
    ----------
    csr : CSR matrix or array of shape (n_examples, n_features)
        It is not copied.
    """

    takes_a_mean = False
    is_whole = True
    scannable = True

    def __init__(self, csr: Any) -> None:
        self.csr = csr
        self.shape, self.dtype = csr.shape, csr.dtype

    @property
    def nbytes(self) -> int:
        return int(self.csr.data.nbytes + self.csr.indices.nbytes)

    @property
    def size(self) -> int:
        return int(self.csr.nnz)

    def __getitem__(self, index: Any) -> Csr:
        return Csr(self.csr[index])

    def toarray(self) -> Array:
        return np.asarray(self.csr.toarray())

    def features(self, index: Any) -> Csr:
        return Csr(self.csr[:, index])

    def on_host(self) -> Csr:
        return self

    @classmethod
    def stacked(cls, blocks: Sequence[Csr]) -> Csr:
        return cls(sp.vstack([X.csr for X in blocks], format="csr"))

    def about(self, mean: Array | None) -> Iterator[tuple[slice, Csr]]:
        if mean is None:
            return iter([(slice(0, len(self)), self)])
        some = examples_at_once(self.size // max(1, len(self)))
        return ((span, self[span]._less(mean)) for span in spans(len(self), some))

    def _less(self, mean: Array) -> Csr:
        """These examples less a mean in the features that they store, in float64."""
        X = self.csr
        values = X.data.astype(np.float64) - mean[X.indices]
        return Csr(type(X)((values, X.indices, X.indptr), shape=X.shape))

    def times(self, W: Array, chain: int = 0) -> Array:
        return np.asarray(self.csr @ W)

    def adjoint(self, V: Array, chain: int = 0) -> Array:
        return np.asarray(V.T @ self.csr)

    def squared(self) -> Csr:
        X = self.csr
        return Csr(type(X)((X.data**2, X.indices, X.indptr), shape=X.shape))

    def second_moments(self, weight: Array, centre: Centre) -> Array:
        filled = SPARSE_PRODUCT_COST * self.size > self.shape[0] * self.shape[1]
        if filled or (centre.far and not centre.stored):
            return super().second_moments(weight, centre)
        if centre.far:
            return summed(X._second_moments(weight[i]) for i, X in self.about(centre.mean))
        H, d = self._second_moments(weight), self.shape[1]  # about 0, then about the mean
        if centre.mean is not None:
            mean, total = centre.mean, H[d, :d] - 0.5 * H[d, d] * centre.mean
            H[:d, :d] -= np.outer(mean, total) + np.outer(total, mean)
            H[d, :d] -= H[d, d] * mean
        return H

    def _second_moments(self, weight: Array) -> Array:
        """``sum weight (x, 1)(x, 1)'``, the last column 0; compiled if many were computed."""
        X, d = self.csr, self.shape[1]
        H = np.zeros((d + 1, d + 1))
        if _Products.are_many(X):
            from marginsvm.data.compiled_rows import lower_moments

            lower_moments(X.indptr, X.indices, X.data, weight, H)
            H[:d, :d] += H[:d, :d].T.copy()
        else:
            some = np.flatnonzero(weight)
            X = X if len(some) == len(weight) else X[some]
            values = X.data * np.repeat(weight[some], np.diff(X.indptr))
            weighted = type(X)((values, X.indices, X.indptr), shape=X.shape)
            H[:d, :d], H[d, :d] = (weighted.T @ X).toarray(), weighted.sum(axis=0)
        H[d, d] = weight.sum()
        return H

    def squared_lengths(self, norm: LpNorm) -> Array:
        return norm.squared_lengths_of_csr(self.csr)

    def squared_distances(self, norm: LpNorm, mean: Array) -> Array:
        if norm.p == 2.0:
            return super().squared_distances(norm, mean)
        return norm.squared_distances(self.csr, mean)

    def _squares(self, factor: float) -> Array:
        X = self.csr.astype(np.float64) * factor
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()

    def largest(self) -> float:
        return float(abs(self.csr).max())

    def spread(self, mean: Array | float) -> Array:
        X = self.csr
        if not X.has_canonical_format:  # an entry may be stored in parts
            X = X.copy()
            X.sum_duplicates()
        full = np.bincount(X.indices, minlength=X.shape[1]) == len(self)
        low, high = (np.where(full, end, 0.0).astype(X.dtype) for end in (np.inf, -np.inf))
        np.minimum.at(low, X.indices, X.data)  # SciPy would sort all entries by columns
        np.maximum.at(high, X.indices, X.data)
        return np.maximum(*(np.abs(end.astype(np.float64) - mean) for end in (low, high)))

    def stored(self) -> Array:
        X = self.csr
        if not X.has_canonical_format:  # an entry may be stored in parts
            return np.zeros(self.shape[1], int)
        return np.bincount(X.indices, minlength=self.shape[1])

    def mean_of_entries(self, share: Array, centre: float, power: int) -> float:
        stored = np.diff(self.csr.indptr)
        entries = (self.csr.data.astype(np.float64) - centre) ** power
        zeros = share @ (self.shape[1] - stored) * np.power(-centre, power)
        return float(np.repeat(share, stored) @ entries + zeros)


class _Products:
    """Counter of the products of two entries of a row, for the whole process.

    The compiled loop gives the same bits as SciPy's, so that no result depends on this count.
    """

    _number = 0.0

    @classmethod
    def are_many(cls, X: Any) -> bool:
        """Count those of X; whether all so far are worth numba's import."""
        cls._number += float(np.square(np.diff(X.indptr).astype(np.float64)).sum())
        return cls._number > _PRODUCTS_BY_SCIPY


def as_block(X: Any) -> Block:
    """Examples as a block: an array, a CSR matrix, or what is one already."""
    if isinstance(X, Block):
        return X
    return Csr(X) if sp.issparse(X) else Dense(X)
