"""Kernel predictors: vectors are coefficients on the examples, with their scores beside."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix.adapter import KernelMatrixAdapter, support_of
from marginsvm.kernel_matrix.flat import GRAM, FlatRows
from marginsvm.kernel_matrix.norms import LpNorm
from marginsvm.kernel_matrix.rows import Rows

_MAX_STORED_BYTES = 2**31  # a larger Gram matrix is computed anew for every product
_STRIP_BYTES = 2**26


class GramAdapter(KernelMatrixAdapter):
    """Rows in the feature space of a kernel, known by inner products only.

    The image of a vector is its scores ``K V``. Scores are linear in the coefficients,
    so a round costs the one product that ``combine`` makes; norms and margins are free.

    Parameters
    ----------
    kernel : callable or None
        ``kernel(X, Y)`` gives a block of the kernel matrix; None: X is that matrix.
    X : array-like
        Examples, or their kernel matrix.
    rows : Rows
    C : float
    norm : LpNorm
        Of p = 2, as a kernel knows no other.
    constant : float
        Its square is added to all kernel values.
    whole : bool
        Whether rounds need products with the whole matrix; False: only with columns of
        it, which are computed when asked for and kept.
    """

    resolution = 1e-7  # norms are square roots of sums that cancel

    def __init__(
        self,
        kernel: Callable[[Any, Any], Array] | None,
        X: Any,
        rows: Rows,
        C: float = np.inf,
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        whole: bool = True,
    ) -> None:
        if norm.p != 2.0:
            raise ValueError(
                f"p={norm.p:.4g} needs the features themselves, which a kernel does not give; "
                "use kernel='linear', or p=2"
            )
        super().__init__(rows, C, rows.score_shape, norm, constant)
        self._X = X
        self._kernel = kernel
        self._K = X if kernel is None else None
        self.cheap_sums = whole or kernel is None
        self._batches: list[Array] = []  # columns of the matrix, as they were asked for
        self._batch_of = np.full(rows.n_examples, -1)
        self._place = np.zeros(rows.n_examples, int)
        self._set_radius(self._squared_norms())

    def _squared_norms(self) -> Array:
        weights = self.rows.weights
        squared = self._diagonal().astype(np.float64)
        if (
            self.rows.balanced and self.cheap_sums
        ):  # about the mean, as balanced rows do not see a shift
            v = np.ones(self.rows.n_examples) if weights is None else weights
            v = v / v.sum()
            from_mean = self._product(v, precise=True)
            squared = squared - 2.0 * from_mean + v @ from_mean
        return np.maximum(squared, 0.0) + self._constant**2

    def _diagonal(self) -> Array:
        if self._kernel is None:
            return np.diagonal(self._X)
        n = self.rows.n_examples
        if self.cheap_sums and (K := self._stored()) is not None:
            return np.diagonal(K)
        size = 256
        return np.concatenate(
            [
                np.diagonal(self._block(slice(i, i + size), slice(i, i + size)))
                for i in range(0, n, size)
            ]
        )

    def _block(self, i: Any, j: Any) -> Array:
        """Entries of the kernel matrix for two selections of the examples."""
        if self._K is not None:
            return self._K[i][:, j]
        assert self._kernel is not None
        return self._kernel(self._X[i], self._X[j])

    def _stored(self) -> Array | None:
        """The whole kernel matrix, if it may be kept."""
        n = self.rows.n_examples
        if self._K is None and n * n * self._X.dtype.itemsize <= _MAX_STORED_BYTES:
            self._K = self._block(slice(None), slice(None))
        return self._K

    def _product(self, V: Array, precise: bool) -> Array:
        """``K V``, from the stored matrix or strip by strip."""
        n = self.rows.n_examples
        K = self._stored()
        if K is not None and (K.dtype == np.float64 or not precise):
            return (K @ V.astype(K.dtype, copy=False)).astype(np.float64, copy=False)
        size = max(1, _STRIP_BYTES // (8 * n))
        product = np.empty(V.shape)
        for i in range(0, n, size):
            strip = slice(i, i + size)
            product[strip] = self._block(strip, slice(None)).astype(np.float64) @ V
        return product

    def _pull(self, V: Array, precise: bool) -> Array:
        if not self.cheap_sums or np.count_nonzero(V) < 0.05 * V.size:
            few = support_of(V)
            self.n_passes += few.size / len(V)
            product = self._column_sum(few, V[few])
        else:
            self.n_passes += 1
            product = self._product(V, precise)
        return (product + self._constant**2 * V.sum(axis=0)) / self.radius**2

    def _column_sum(self, few: Array, V: Array) -> Array:
        """``K[:, few] V``."""
        if self._K is not None:
            return self._K[few].astype(np.float64, copy=False).T @ V
        total = np.zeros((self.rows.n_examples, *V.shape[1:]))
        if not self._cached(few):
            size = max(1, _STRIP_BYTES // (8 * self.rows.n_examples))
            for i in range(0, len(few), size):
                strip = self._block(few[i : i + size], slice(None)).astype(np.float64)
                total += strip.T @ V[i : i + size]
            return total
        for k, batch in enumerate(self._batches):
            mine = np.flatnonzero(self._batch_of[few] == k)
            if len(mine):
                scattered = np.zeros((len(batch), *V.shape[1:]))
                scattered[self._place[few[mine]]] = V[mine]
                total += batch.T @ scattered
        return total

    def _cached(self, examples: Array) -> bool:
        """Keep the columns of these examples, or say that there is no room."""
        new = np.unique(examples[self._batch_of[examples] < 0])
        stored = sum(len(batch) for batch in self._batches)
        if (stored + len(new)) * self.rows.n_examples * 8 > _MAX_STORED_BYTES:
            return False
        if len(new):
            self._batch_of[new], self._place[new] = len(self._batches), np.arange(len(new))
            self._batches.append(self._block(new, slice(None)).astype(np.float64, copy=False))
        return True

    def _scores(self, image: Array, precise: bool) -> Array:
        return image

    def _inner(self, w: Array, u: Array) -> float:
        return float(np.sum(self.rows.signed(self.coefficients(w)) * self.image(u)))

    def norm(self, w: Array) -> float:
        squared = self.dot(w, w)
        if squared < -1e-5 * self.mass(w) ** 2:  # rows are no longer than 1: not rounding
            raise ValueError(
                "the kernel is not positive semidefinite on these examples (a squared norm is "
                f"{squared:.3g}): it is no inner product, and margins mean nothing. Choose other "
                "kernel parameters, or fit_intercept=True if it is conditionally so"
            )
        return float(np.sqrt(max(squared, 0.0)))

    def lower_bound(self, w: Array, offsets: Array | None = None) -> tuple[float, Array]:
        return super().lower_bound(self.refresh(w), offsets)

    def _kernel_block(self, i: Array, j: Array) -> Array:
        if self.cheap_sums or not self._cached(i):
            return (self._block(i, j).astype(np.float64) + self._constant**2) / self.radius**2
        K = np.empty((len(i), len(j)))
        for k in np.unique(self._batch_of[i]):
            mine = np.flatnonzero(self._batch_of[i] == k)
            K[mine] = self._batches[k][self._place[i[mine]][:, None], j]
        K += self._constant**2
        K /= self.radius**2
        return K

    @cached_property
    def _flat(self) -> FlatRows:
        K, none = self._stored(), np.empty(0, np.int32)
        if K is None:
            raise ValueError(
                f"the kernel matrix of {self.rows.n_examples} examples would take more than "
                f"{_MAX_STORED_BYTES / 2**30:.0f} GiB, and coordinate ascent needs all of it; "
                "use fewer examples, or another estimator"
            )
        return self._flat_rows(
            form=GRAM,
            values=np.asarray(K, order="C").reshape(-1),
            indices=none,
            indptr=none,
            n_columns=len(K),
            read=1.0,
            push=1.0 / self.radius**2,
            constant=self._constant**2,
            block=1,
            stride=int(np.prod(self.rows.score_shape[1:])),
        )

    def flat(self) -> FlatRows:
        return self._flat

    def predictor(self, w: Array, offsets: Array) -> tuple[Array, Array]:
        V = self.rows.signed(self.coefficients(w)) / self.radius**2
        intercept = self.rows.score_offsets(offsets) + self._constant**2 * V.sum(axis=0)
        return V.T, np.asarray(intercept)
