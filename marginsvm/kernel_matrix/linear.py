"""Linear predictors: X is walked through in blocks, dense or as a whole where sparse."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from marginsvm._threads import n_threads, ordered_map
from marginsvm._typing import Array
from marginsvm.kernel_matrix.adapter import Answer, KernelMatrixAdapter, support_of
from marginsvm.kernel_matrix.columns import ColumnPlan
from marginsvm.kernel_matrix.flat import DENSE, SPARSE, FlatRows
from marginsvm.kernel_matrix.normalized import NormalizedRows
from marginsvm.kernel_matrix.norms import LpNorm
from marginsvm.kernel_matrix.rows import Rows
from marginsvm.responses import Response, softmax

T = TypeVar("T")
Block = tuple[slice, Any]

_BLOCK_BYTES = 2**22  # a block stays in cache between its products; less, and threads wait in line
_CENTRED_BYTES = 2**19  # held beside X where float64 and the mean matter
_FAR = 8.0  # a mean this many radii away would cost digits if it were subtracted late
_MAX_CHUNKS = 8  # what threads share; fixed, so that sums do not depend on their number


class LinearAdapter(KernelMatrixAdapter):
    """Rows of a design matrix, dense or CSR; vectors live in feature space.

    X is never copied. A dense ``respond`` reads it once: the scores of a block and its
    part of ``A^T q`` are computed while the block is in cache, and parts merge by
    rescaling to the smaller margin. A sparse X, which cannot be sliced for free, and
    responses that need all the margins at once take two products.

    Parameters
    ----------
    X : ndarray, CSR matrix or array, or NormalizedRows, of shape (n_examples, n_features)
    rows : Rows
    C : float
    norm : LpNorm
    constant : float
        The last entry of every image belongs to it, unless it is 0.
    """

    column_scale = column_passes = 1.0
    column_dtype = np.dtype(np.float64)

    def __init__(
        self,
        X: Any,
        rows: Rows,
        C: float = np.inf,
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        plan: ColumnPlan | None = None,
    ) -> None:
        width = X.shape[1] + (constant != 0.0)
        super().__init__(rows, C, (*rows.score_shape[1:], width), norm, constant, plan)
        self._X = X
        self._blocks = _blocks(X)
        per_chunk = -(-len(self._blocks) // _MAX_CHUNKS)
        self._chunks = [
            self._blocks[i : i + per_chunk] for i in range(0, len(self._blocks), per_chunk)
        ]
        workers = min(n_threads(), len(self._chunks))
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None
        self._absent = None
        if rows.balanced and rows.n_classes == 2:
            self._absent = np.where(rows.codes == np.arange(2)[:, None], 0.0, -np.inf)
        many_groups = rows.balanced and rows.n_classes > 2  # their balance needs all margins
        self._merges = len(self._blocks) > 1 and not many_groups
        self._measure()

    def _map(self, work: Callable[[list[Block]], T]) -> list[T]:
        if sp.issparse(self._X):  # no BLAS to confine
            return [work(chunk) for chunk in self._chunks]
        return ordered_map(work, self._chunks, self._pool)

    def _measure(self) -> None:
        """Mean and radius. Balanced rows do not see a shift of x: they are centred."""
        weights = self.rows.weights
        self._mean = None
        if self.rows.balanced:
            v = np.ones(self.rows.n_examples) if weights is None else weights
            self._mean = self._accumulate(v / v.sum(), precise=True)
        self._far = self._mean is not None and self._norm.p != 2.0
        squared = np.concatenate(self._map(self._squared_norms))
        if self._mean is not None and not self._far:
            self._far = bool(squared.max() * _FAR**2 < self._mean @ self._mean)
            if self._far:
                squared = np.concatenate(self._map(self._squared_norms))
        squared = np.maximum(squared, 0.0)
        self._set_radius(self._norm.longer(squared, self._constant))

    def _squared_norms(self, blocks: list[Block]) -> Array:
        return np.concatenate(
            [
                self._in_float64(self._squared_lengths, X)
                if isinstance(X, np.ndarray)
                else self._squared_lengths(X)
                for _, X in blocks
            ]
        )

    def _squared_lengths(self, X: Any) -> Array:
        """Of rows of X, about the mean; a dense X far from the origin comes centred."""
        known = isinstance(X, NormalizedRows)
        squared = X.squared_norms() if known else self._norm.squared_lengths(X)
        if self._mean is None or (self._far and isinstance(X, np.ndarray)):
            return squared
        return squared - 2.0 * (X @ self._mean) + self._mean @ self._mean

    def _in_float64(self, work: Callable[[Array], Array], X: Array) -> Array:
        """Apply ``work`` to a dense block, about the mean if that is far from the origin.

        Where this takes a copy, it is of a few rows at a time.
        """
        if X.dtype == np.float64 and not self._far:
            return work(X)
        size = max(1, _CENTRED_BYTES // (8 * max(1, X.shape[1])))
        shift = self._mean if self._far and self._mean is not None else 0.0
        parts = (X[i : i + size].astype(np.float64) - shift for i in range(0, len(X), size))
        return np.concatenate([work(part) for part in parts])

    def _accumulate(self, V: Array, precise: bool) -> Array:
        """``V^T X`` in user's units, summed in float64 over the blocks."""
        dtype = np.float64 if precise else self._X.dtype

        def work(blocks: list[Block]) -> Array:
            return _total(_product(V[block].astype(dtype, copy=False), X) for block, X in blocks)

        return _total(self._map(work)).astype(np.float64, copy=False)

    def _pull(self, V: Array, precise: bool) -> Array:
        self.n_passes += 1
        if np.count_nonzero(V) < 0.05 * V.size:
            few = support_of(V)
            image = np.array(V[few].T @ self._X[few], dtype=np.float64)
        else:
            image = self._accumulate(V, precise)
        if self._mean is not None:
            rest = V.sum(axis=0)
            if precise or np.abs(rest).max() > 1e-12 * np.abs(V).max():  # else it is rounding
                image -= np.multiply.outer(rest, self._mean)
        return self._with_constant(image, V) / self.radius

    def _with_constant(self, image: Array, V: Array) -> Array:
        """``V^T (X, constant)`` from ``V^T X``."""
        if self._constant == 0.0:
            return image
        return np.append(image, self._constant * V.sum(axis=0)[..., None], axis=-1)

    def _weights(self, image: Array, precise: bool) -> tuple[Array, Array | float]:
        """Predictor in units of x, and what mean and constant take from every score."""
        W = self._norm.mirror(image) / self.radius
        shift = 0.0 if self._mean is None else W @ self._mean
        if self._constant != 0.0:
            W, shift = W[..., :-1], -self._constant * W[..., -1]
        return W.astype(np.float64 if precise else self._X.dtype, copy=False), shift

    def _scores(self, image: Array, precise: bool) -> Array:
        self.n_passes += 1
        W, shift = self._weights(image, precise)

        def work(blocks: list[Block]) -> None:
            for block, X in blocks:
                if precise and isinstance(X, np.ndarray):
                    shifted = self._in_float64(lambda A: A @ W.T, X)
                    F[block] = shifted if self._far else shifted - shift
                else:
                    F[block] = X @ W.T - shift

        F = np.empty(self.rows.score_shape)
        self._map(work)
        return F

    def _inner(self, w: Array, u: Array) -> float:
        return float(w[: self._cut] @ self._norm.mirror(u[: self._cut]))

    def respond(self, w: Array, mu: float = 1.0, response: Response = softmax) -> Answer:
        passes = self.n_passes
        if response is softmax and self._merges:
            margins, image = self._respond_in_one_pass(w, mu)
            weights = response(self.rows, margins, mu)
            image = self._with_constant(image, self.rows.signed(weights.q))
            answer = Answer(self._vector(image / self.radius, weights.q), weights)
        else:
            answer = super().respond(w, mu, response)
        self.n_passes = passes + 1
        return answer

    def _respond_in_one_pass(self, w: Array, mu: float) -> tuple[Array, Array]:
        """Margins of all rows and ``V^T X`` of their softmax weights, X read once."""
        W, shift = self._weights(self.image(w), precise=False)
        slack = None if self._slack is None else self._slack * self.coefficients(w)
        prior = self.rows.prior
        margins = np.empty(self.rows.shape)
        groups = [None] if self._absent is None else list(self._absent)

        def work(blocks: list[Block]) -> list[_Sum]:
            sums = [_Sum() for _ in groups]
            for block, X in blocks:
                M = self.rows.margins(X @ W.T - shift, block)
                if slack is not None:
                    M += slack[block]
                margins[block] = M
                for absent, total in zip(groups, sums, strict=True):
                    a = -M if absent is None else absent[block] - M
                    high = float(a.max())
                    if high == -np.inf:  # no row of this group in the block
                        continue
                    a -= high
                    e = np.exp(a * (1.0 / mu), out=a)
                    if isinstance(prior, np.ndarray):
                        e *= prior[block]
                    V = self.rows.signed(e, block).astype(X.dtype, copy=False)
                    total.add(high / mu, float(e.sum()), V.T @ X)
            return sums

        parts = list(zip(*self._map(work), strict=True))
        image = np.mean([_merged(part).average() for part in parts], axis=0)
        return margins, image

    def _kernel_block(self, i: Array, j: Array) -> Array:
        left = self.examples(i)
        right = left if i is j else self.examples(j)
        return left @ right.T

    @property
    def width(self) -> float:
        return self._cut

    @property
    def csr(self) -> Any:
        return self._X if sp.issparse(self._X) else None

    def examples(self, index: Array) -> Array:
        X = self._X[index]
        X = (X if isinstance(X, np.ndarray) else X.toarray()).astype(np.float64, copy=False)
        if self._mean is not None:
            X -= self._mean
        if self._constant != 0.0:
            X = np.column_stack([X, np.full(len(X), self._constant)])
        X /= self.radius
        return X

    @cached_property
    def _flat(self) -> FlatRows:
        X, sparse, none = self._X, sp.issparse(self._X), np.empty(0, np.int32)
        return self._flat_rows(
            form=SPARSE if sparse else DENSE,
            values=X.data if sparse else np.asarray(X, order="C").reshape(-1),
            indices=X.indices if sparse else none,
            indptr=X.indptr if sparse else none,
            n_columns=X.shape[1],
            read=1.0 / self.radius,
            push=1.0 / self.radius,
            constant=self._constant,
            block=self._image_shape[-1],
            stride=1,
        )

    def flat(self) -> FlatRows:
        return self._flat  # X in Fortran's order is copied, once

    def _columns(self, examples: Array) -> Array:
        right = self.examples(examples)[:, : self._X.shape[1]] / self.radius
        out = np.empty((len(examples), self.rows.n_examples))

        def work(blocks: list[Block]) -> None:
            for block, X in blocks:
                if sp.issparse(X):
                    out[:, block] = (X @ right.T).T
                else:
                    out[:, block] = self._in_float64(lambda A: A @ right.T, X).T

        self._map(work)
        if self._mean is not None and (sp.issparse(self._X) or not self._far):
            out -= (right @ self._mean)[:, None]
        self.n_kernel_evaluations += out.size
        return out

    def predictor(self, w: Array, offsets: Array) -> tuple[Array, Array]:
        W, shift = self._weights(self.image(w), precise=True)
        return W, np.asarray(self.rows.score_offsets(offsets) - shift)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class _Sum:
    """``sum_r exp(-margin_r - high) a_r`` and its mass, relative to the largest exponent."""

    def __init__(self) -> None:
        self.high, self.mass, self.image = -np.inf, 0.0, np.float64(0.0)

    def add(self, high: float, mass: float, image: Any) -> None:
        """Merge with another sum: both at the larger of the two exponents."""
        if high > self.high:
            fade = math.exp(self.high - high)
            self.high, self.mass, self.image = high, self.mass * fade, self.image * fade
        grow = math.exp(high - self.high)
        self.mass += mass * grow
        self.image = self.image + image * grow

    def average(self) -> Array:
        return np.asarray(self.image / self.mass)


def _merged(parts: Sequence[_Sum]) -> _Sum:
    total = _Sum()
    for part in parts:
        if part.mass > 0:
            total.add(part.high, part.mass, part.image)
    return total


def _blocks(X: Any) -> list[Block]:
    n, d = X.shape
    if sp.issparse(X.X if isinstance(X, NormalizedRows) else X):
        return [(slice(0, n), X)]
    size = max(1, _BLOCK_BYTES // max(1, d * X.itemsize))
    return [(slice(i, min(i + size, n)), X[i : i + size]) for i in range(0, n, size)]


def _product(V: Array, X: Any) -> Array:
    """``V^T X``, float64 if V is; a float32 block is then widened a few rows at a time."""
    if sp.issparse(X) or V.dtype == X.dtype:
        return V.T @ X
    size = max(1, _CENTRED_BYTES // (8 * max(1, X.shape[1])))
    return _total(V[i : i + size].T @ X[i : i + size] for i in range(0, len(X), size))


def _total(parts: Iterable[Array]) -> Array:
    return reduce(np.add, parts)
