"""Linear predictors: the examples are walked through in blocks, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property, partial, reduce
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import assert_all_finite

from marginsvm._typing import Array
from marginsvm.certify.rounding import (
    FEW,
    LONG,
    PAIRWISE,
    SMALL,
    UNIT,
    Extended,
    chained,
    extended,
)
from marginsvm.data import passes
from marginsvm.data.memory import as_store
from marginsvm.data.normalized import NormalizedRows
from marginsvm.data.passes import Centre, Sums
from marginsvm.data.threads import single_threaded_blas
from marginsvm.kernel_matrix.adapter import BestResponse, KernelMatrixAdapter, support_of
from marginsvm.kernel_matrix.columns import ColumnPlan
from marginsvm.kernel_matrix.flat import DENSE, SPARSE, FlatRows
from marginsvm.kernel_matrix.responses import Response, settle, softmax
from marginsvm.rows.norms import LpNorm
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

T = TypeVar("T")

_MAX_SUMS = 2**22  # numbers in the sums over the groups of many classes
_CENTRE = 256  # examples whose mean may stand for that of all
_FAR = 8.0  # a mean this many radii away would cost digits if it were subtracted late


class LinearAdapter(KernelMatrixAdapter):
    """Rows of a design matrix, dense or CSR; vectors live in feature space.

    X is never copied. A dense ``respond`` reads it once: the scores of a block and its
    part of ``A^T q`` are computed while the block is in cache, and parts merge by
    rescaling to the smaller margin. A sparse X, which cannot be sliced for free, and
    responses that need all the margins at once take two products.

    Parameters
    ----------
    X : ndarray, CSR matrix or array, NormalizedRows, or Store, of shape (n_examples, n_features)
    rows : Rows
    C : float
    norm : LpNorm
    constant : float
        The last entry of every image belongs to it, unless it is 0.
    plan : ColumnPlan or None
    whole : bool
        Whether all rows take part in rounds, whose number then depends on the radius; False:
        the mean of some examples is as good a centre, and saves a pass.
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
        whole: bool = True,
    ) -> None:
        self._store = as_store(X)
        width = self._store.shape[1] + (constant != 0.0)
        super().__init__(rows, C, (*rows.score_shape[1:], width), norm, constant, plan)
        self.precision = np.dtype(self._store.dtype)
        # sums for each group take more work than a second product, but no second reading
        groups = rows.n_groups**2 if rows.n_groups > 2 else 1
        elsewhere = self._store.whole is None and groups * width <= _MAX_SUMS
        self._merges = self._store.n_blocks > 1 and (groups == 1 or elsewhere)
        with np.errstate(over="ignore", invalid="ignore"):  # _set_radius will tell
            self._measure(rows.n_examples if whole else _CENTRE)

    def _tallest(self) -> float:
        return 1.0 if self._store.normalized else max(self._map(passes.tallest))

    def _map(self, work: Callable[..., T], *local: Array | None) -> Iterator[T]:
        return self._store.map(work, self.rows, *local)

    @single_threaded_blas()
    def _measure(self, n_central: int) -> None:
        """Centre and radius. Balanced rows do not see a shift of x: they are centred."""
        self._centre = Centre()
        if self.rows.balanced:
            self._centre = Centre(self._mean(n_central), far=self._norm.p != 2.0)
        squared, (mean, far) = self._squared_lengths(), self._centre
        if not np.isfinite(squared.max()):
            assert_all_finite(self._store.whole, input_name="X")
            raise ValueError("the squared norms of the examples overflow float64: scale X")
        if mean is not None and not far and squared.max() * _FAR**2 < mean @ mean:
            self._centre = Centre(mean, far=True)
            squared = self._squared_lengths()
        unit = 0.0 if mean is None else float(np.sqrt(mean @ mean))
        self._set_radius(self._norm.longer(np.maximum(squared, 0.0), self._constant), unit)
        # longest example, and as much again for what the mean does to it
        self._reach = 1.0 + 2.0 * unit / self.radius
        self._row_error = PAIRWISE * self._reach if self._store.normalized else 0.0

    def _mean(self, size: int) -> Array:
        """Mean of all examples, or of some that are evenly spread."""
        n, weights = self.rows.n_examples, self.rows.weights
        v = np.ones(n) if weights is None else weights
        with np.errstate(all="ignore"):  # what is not finite is named later
            if 4 * size >= n:
                return self._accumulate(v / v.sum(), precise=True)
            some = np.arange(size) * n // size
            v = v[some]
            return np.asarray((v / v.sum()) @ self._store.take(some), dtype=np.float64)

    def _squared_lengths(self) -> Array:
        work = partial(passes.squared_lengths, norm=self._norm, centre=self._centre)
        return np.concatenate(list(self._map(work)))

    def _accumulate(self, V: Array, precise: bool) -> Array:
        """``V^T X`` in user's units, summed in float64 over the blocks."""
        dtype = np.dtype(np.float64) if precise else self._store.dtype
        work = partial(passes.weighted_sum, dtype=dtype, centre=self._centre)
        return self._store.fold(work, np.add, self.rows, V).astype(np.float64, copy=False)

    def _adjoint(self, V: Array, precise: bool) -> Array:
        self.n_passes += 1
        if np.count_nonzero(V) < 0.05 * V.size:
            few = support_of(V)
            some = [(slice(None), self._store.take(few))]
            image = passes.weighted_sum(self.rows, some, V[few], np.float64, self._centre)
        else:
            image = self._accumulate(V, precise)
        if self._centre.mean is not None and not self._mean_is_taken_first:
            rest = V.sum(axis=0)
            if precise or np.abs(rest).max() > 1e-12 * np.abs(V).max():  # else it is rounding
                image -= np.multiply.outer(rest, self._centre.mean)
        return self._with_constant(image, V) / self.radius

    @property
    def _mean_is_taken_first(self) -> bool:
        """Whether passes subtract the mean from the examples, and not from what they sum to."""
        return self._centre.far and not (self._store.sparse or self._store.normalized)

    def _with_constant(self, image: Array, V: Array) -> Array:
        """``V^T (X, constant)`` from ``V^T X``."""
        if self._constant == 0.0:
            return image
        return np.append(image, self._constant * V.sum(axis=0)[..., None], axis=-1)

    def _weights(self, image: Array, precise: bool) -> tuple[Array, Array | float]:
        """Predictor in units of x, and what mean and constant take from every score."""
        W = self._norm.mirror(image) / self.radius
        shift = 0.0 if self._centre.mean is None else W @ self._centre.mean
        if self._constant != 0.0:
            W, shift = W[..., :-1], -self._constant * W[..., -1]
        return W.astype(np.float64 if precise else self._store.dtype, copy=False), shift

    def _scores(self, image: Array, precise: bool) -> Array:
        self.n_passes += 1
        W, shift = self._weights(image, precise)
        work = partial(
            passes.scores,
            W=W,
            shift=shift,
            centre=self._centre,
            precise=precise,
            offer=self._store.watch(),
        )
        return np.concatenate(list(self._map(work)))

    def _inner(self, w: Vector, u: Vector) -> float:
        return float(w.image.ravel() @ self._norm.mirror(u.image).ravel())

    def _length(self, w: Vector) -> float:
        return self._norm.length(self._norm.mirror(w.image).ravel()) * (1.0 + PAIRWISE)

    def _dual_length(self, image: Array, q: Array, moved: float) -> float:
        few, norm = support_of(q), self._norm.dual.length(image.ravel())
        dense = isinstance(self._store.whole, np.ndarray)
        sums = (chained(len(q)) if dense else UNIT * (few.size + 8)) + FEW
        cheap = few.size * self._image_shape[-1] <= SMALL
        offset = 1.0  # how much of the mean is in the terms of the sums
        if cheap and (sums + moved) * self._reach > self.enough * norm:
            V = self.rows.adjoint(q.astype(Extended))
            image = self._extended_pull(few, V[few])
            norm = self._norm.dual.length(image.ravel())
            sums, offset, moved = extended(few.size), 0.0, 0.0
        coarse = (sums + moved) * self._reach
        length = norm + coarse
        if coarse > self.enough * norm and self._extent is not None:
            weight = sums * np.abs(self.rows.adjoint(q)).sum(axis=0) + moved
            error = np.multiply.outer(weight, self._extent[0] + offset * self._extent[1])
            length = min(length, self._norm.dual.length((np.abs(image) + error).ravel()))
        return length * (1.0 + PAIRWISE) + self._row_error

    @cached_property
    def _extent(self) -> tuple[Array, Array] | None:
        """For each feature, its largest distance from the mean and what the mean may cost.

        Both are in units of the radius. Rounding of one feature's terms is relative to these,
        so that a feature in large units does not hide what the others prove.
        """
        if self._store.normalized:  # no feature is longer than the example
            return None
        d, mean = self._store.shape[1], self._centre.mean
        spread = reduce(np.maximum, self._map(partial(passes.spread, centre=self._centre)))
        late = np.zeros(d) if mean is None else 2.0 * np.abs(mean)
        if self._constant != 0.0:
            spread, late = np.append(spread, abs(self._constant)), np.append(late, 0.0)
        return spread / self.radius, late / self.radius

    def _extended_pull(self, few: Array, V: Array) -> Array:
        X = self._store.take(few)
        if self._centre.mean is not None:  # first, so that its digits are not lost
            X = (X if isinstance(X, np.ndarray) else X.toarray()).astype(Extended)
            X = X - self._centre.mean
        image = np.asarray(V.T @ X)
        return (self._with_constant(image, V) / self.radius).astype(np.float64)

    def _extended_scores(self, examples: Array, coef: Array) -> Array:
        return np.asarray(self._store.take(examples) @ coef.T.astype(Extended))

    def _doubt(self, w: Vector, length: float, *, sharp: bool, enough: float) -> float:
        n, offset = self._image_shape[-1], 0.5 * (self._reach - 1.0)  # of the mean, in radii
        sums = chained(n, LONG) if isinstance(self._store.whole, np.ndarray) else UNIT * (n + 8)
        # of a term as it is about the mean, and of the mean's part of it
        inner, outer = sums + FEW, sums + 2.0 * FEW
        if self._centre.far:  # the intercept's sum
            outer = UNIT * (n + 8) + sums + 2.0 * FEW
        if sharp:
            inner = outer = 2.0 * extended(n)
        error = (inner + outer * offset + self._row_error) * length
        if error > enough and self._extent is not None:
            W = np.abs(self._norm.mirror(w.image)).reshape(-1, n).max(axis=0)
            spread, late = self._extent
            terms = inner * float(W @ spread) + 0.5 * outer * float(W @ late)
            error = min(error, self.rows.unit * (1.0 + PAIRWISE) * terms)
        return error

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        X = self._store.take(examples)
        if not self._store.normalized:
            return X, np.ones(len(examples)), self.rows.balanced or self._constant != 0.0
        if not isinstance(X, NormalizedRows):  # rounded already
            return None
        return X.X, np.where(X.scale > 0, X.scale, 1.0), X.constant != 0.0

    def respond(self, w: Vector, mu: float = 1.0, response: Response = softmax) -> BestResponse:
        n_passes = self.n_passes
        if response is softmax and self._merges:
            margins, sums = self._respond_in_one_pass(w, mu)
            weights = response(self.rows, margins, mu)
            image = sums.mixed(self.rows, settle(sums.logs)[0]).astype(np.float64, copy=False)
            image = self._with_constant(image, self.rows.adjoint(weights.q))
            answer = BestResponse(Vector(image / self.radius, weights.q), weights)
        else:
            answer = super().respond(w, mu, response)
        self.n_passes = n_passes + 1
        return answer

    def _respond_in_one_pass(self, w: Vector, mu: float) -> tuple[Array, Sums]:
        """Margins of all rows and the sums of their softmax weights, X read once."""
        W, shift = self._weights(w.image, precise=False)
        slack = None if self._slack is None else self._slack * w.coef
        prior = self.rows.prior if isinstance(self.rows.prior, np.ndarray) else None
        work = partial(passes.softmax_sums, W=W, shift=shift, mu=mu)
        margins, sums = [], Sums(self.rows.n_groups)
        for part, more in self._map(work, prior, slack):
            margins.append(part)
            sums = sums.merged(more)
        return np.concatenate(margins), sums

    def _kernel_block(self, i: Array, j: Array) -> Array:
        left = self._written_out(i)
        right = left if i is j else self._written_out(j)
        return left @ right.T / self.radius**2

    def _few(self, index: Array) -> Iterator[passes.Block]:
        """Some of the examples, in blocks of their own."""
        size = max(1, passes.WRITTEN_OUT // (self._store.shape[1] + 1))
        for i in range(0, len(index), size):
            few = index[i : i + size]
            yield slice(i, i + len(few)), self._store.take(few)

    def second_moments(self, weight: Array) -> Array:
        self.n_passes += np.count_nonzero(weight) / weight.size
        work = partial(passes.second_moments, centre=self._centre)
        some = np.flatnonzero(weight)
        if self._store.whole is not None and 0 < 2 * some.size <= weight.size:
            H = work(self.rows, self._few(some), weight[some])  # a few in each block are dear
        else:
            H = self._store.fold(work, np.add, self.rows, weight)
        d = len(H) - 1
        H[d, :d] /= self.radius
        H[:d, d] = H[d, :d]
        H[:d, :d] /= self.radius**2
        return H

    @property
    def spread(self) -> Array | None:
        return None if self._extent is None else self._extent[0]

    @property
    def width(self) -> float:
        return float(np.prod(self._image_shape))

    @property
    def csr(self) -> Any:
        return self._store.whole if self._store.sparse else None

    def examples(self, index: Array) -> Array:
        X = self._written_out(index)
        X /= self.radius
        return X

    def _written_out(self, index: Array) -> Array:
        X = self._centre.written_out(self._store.take(index))
        return np.column_stack([X, np.full(len(X), self._constant)]) if self._constant else X

    def restrict(self, examples: Array) -> LinearAdapter | None:
        if len(examples) == 0 or self._store.sparse:
            return None
        part = copy(self)
        for name in ("_flat", "columns", "_extent"):  # what was made of all examples
            vars(part).pop(name, None)
        part._store, part.n_passes = as_store(self.examples(examples)), 0.0  # as they are there:
        part._centre, part._constant, part.radius = Centre(), 0.0, 1.0
        part.rows, part._lengths = self.rows.restrict(examples), self._lengths[examples]
        part.n_rows = part.rows.n_rows
        if self._slack is not None and len(self._slack) > 1:
            part._slack = self._slack[examples]
        return part

    @cached_property
    def _flat(self) -> FlatRows:
        X, sparse, none = self._store.whole, self._store.sparse, np.empty(0, np.int32)
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
        right = self.examples(examples)[:, : self._store.shape[1]] / self.radius
        parts = self._map(partial(passes.columns, right=right, centre=self._centre))
        out = np.concatenate(list(parts), axis=1)
        if self._centre.mean is not None and not self._mean_is_taken_first:
            out -= (right @ self._centre.mean)[:, None]
        self.n_kernel_evaluations += out.size
        return out

    def predictor(self, w: Vector, offsets: Array) -> tuple[Array, Array]:
        W, shift = self._weights(w.image, precise=True)
        return W, np.asarray(self.rows.score_offsets(offsets) - shift)
