"""Kernel predictors: vectors are coefficients on the examples, with their scores beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn import config_context

from marginsvm._typing import Array
from marginsvm.certify.bounds import Predictor
from marginsvm.certify.checker.overlap import distinct
from marginsvm.certify.rounding import (
    FEW,
    PAIRWISE,
    SMALL,
    Extended,
    chained,
    extended,
    product,
    times,
)
from marginsvm.data.normalized import NormalizedRows
from marginsvm.data.threads import ordered_map, single_threaded_blas
from marginsvm.kernel_matrix.adapter import KernelMatrixAdapter, support_of
from marginsvm.kernel_matrix.columns import ColumnCache, ColumnPlan, KeptColumns, WholeMatrix
from marginsvm.kernel_matrix.flat import GRAM, FlatRows
from marginsvm.rows.norms import LpNorm
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

_MAX_STORED_BYTES = 2**31  # a larger Gram matrix is computed anew for every product
_STRIPS = 8  # whatever the number of threads, as sums depend on it
_STRIP_BYTES = 2**24
_BLOCK_BYTES = 2**22  # of a stored matrix that a thread works on at once
_COLUMN_BLOCK = 4096  # rows a thread works on at once, for columns
_EXAMINED = 500  # examples on which the kernel is asked for its eigenvalues: a tenth of a second
_CENTRE = 256  # examples whose mean stands for that of all, where products are dear


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
    plan : ColumnPlan or None
    whole : bool
        Whether rounds need products with the whole matrix; False: only with columns of
        it, which are computed when asked for and kept.
    """

    resolution = 1e-7  # norms are square roots of sums that cancel
    vanishing = 1e-6

    def __init__(
        self,
        kernel: Callable[[Any, Any], Array] | None,
        X: Any,
        rows: Rows,
        C: float = np.inf,
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        plan: ColumnPlan | None = None,
        whole: bool = True,
    ) -> None:
        if norm.p != 2.0:
            raise ValueError(
                f"p={norm.p:.4g} needs the features themselves, which a kernel does not give; "
                "use kernel='linear', or p=2"
            )
        super().__init__(rows, C, rows.score_shape, norm, constant, plan)
        self._X = X
        # of kernel values that are divided here, and of coefficients when that is undone
        self._value_error = PAIRWISE if isinstance(X, NormalizedRows) else 0.0
        self._extra_bytes = getattr(X, "extra_bytes", 0)
        self._kernel = kernel
        self._K = X if kernel is None else None
        self.cheap_sums = whole or kernel is None
        self._kept = None
        if not self.cheap_sums:
            whole_columns = partial(self._block, j=slice(None))
            self._kept = KeptColumns(whole_columns, rows.n_examples, _MAX_STORED_BYTES)
        diagonal = self._diagonal()
        self.column_dtype = self.precision = diagonal.dtype
        self._highest = float(np.abs(diagonal).max()) + constant**2
        squared = self._squared_norms(diagonal.astype(np.float64))
        self._set_radius(squared, self._tallest())
        self.column_scale = 1.0 / self.radius**2
        self.column_passes = 1.0 / rows.n_examples

    @single_threaded_blas()
    def _squared_norms(self, squared: Array) -> Array:
        if self.rows.balanced and self.cheap_sums:  # about the mean: a shift is not seen
            v = np.ones(len(squared)) if self.rows.weights is None else self.rows.weights
            if self._plan and self._kernel and len(v) > _CENTRE:
                some = np.linspace(0, len(v) - 1, _CENTRE).astype(int)
                v = np.bincount(some, v[some], minlength=len(v))
            v = v / v.sum()
            from_mean = self._multiply(v, precise=True)
            squared = squared - 2.0 * from_mean + v @ from_mean
        return np.maximum(squared, 0.0) + self._constant**2

    def _tallest(self) -> float:
        return float(np.sqrt(self._highest))

    def _diagonal(self) -> Array:
        if self._kernel is None:
            return np.diagonal(self._X)
        n = self.rows.n_examples
        if self.cheap_sums and (K := self._stored()) is not None:
            return np.diagonal(K)
        size = 128
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
        block = self._computed(i, j)
        self.n_kernel_evaluations += block.size
        return block

    def _stored(self) -> Array | None:
        """The whole kernel matrix, if it may be kept."""
        n = self.rows.n_examples
        few = n * n * self._X.dtype.itemsize <= _MAX_STORED_BYTES
        if self._K is None and self._plan is None and few:
            self._K = self._block(slice(None), slice(None))
        return self._K

    def _product(self, V: Array, precise: bool) -> Array:
        """``K V``, from the stored matrix or strip by strip, shared by some threads."""
        n, F = self.rows.n_examples, np.empty(V.shape)
        K = self._stored()
        if K is None:
            size, right = max(1, _STRIP_BYTES // (8 * n)), V
            self.n_kernel_evaluations += n * n
        else:
            size = max(1, _BLOCK_BYTES // (K.itemsize * n))
            if not precise:  # nothing is widened; few strips, as handing one over takes time
                size = max(size, -(-n // _STRIPS))
            right = V.astype(np.float64 if precise else K.dtype, copy=False)

        def work(i: int) -> None:
            strip = slice(i, min(i + size, n))
            rows = self._computed(strip, slice(None)) if K is None else K[strip]
            multiply = product if precise else times  # what bounds rest on, in short chains
            F[strip] = multiply(rows.astype(right.dtype, copy=False), right)

        ordered_map(work, range(0, n, size))
        return F

    def _computed(self, i: Any, j: Any) -> Array:
        assert self._kernel is not None
        with config_context(assume_finite=True):  # fit has looked at X
            return self._kernel(self._X[i], self._X[j])

    def _multiply(self, V: Array, precise: bool) -> Array:
        """``K V``, from the columns of the examples that take part where these are few."""
        many = np.count_nonzero(V) >= 0.05 * V.size
        if self._plan is None and self.cheap_sums and many:
            self.n_passes += 1
            return self._product(V, precise)
        few = support_of(V)
        self.n_passes += few.size / len(V)
        if self._kept is not None and self._kept.keep(few):
            return self._kept.multiply(few, V[few])
        F = np.zeros(V.shape)
        for part, columns in self._some_columns(few):
            F += product(columns.T.astype(np.float64, copy=False), V[part])
        return F

    def _some_columns(self, examples: Array) -> Iterator[tuple[Array, Array]]:
        if self._plan is not None:
            yield from self.columns.take(examples)
            return
        size = max(1, _STRIP_BYTES // (8 * self.rows.n_examples))
        for i in range(0, examples.size, size):
            part = examples[i : i + size]
            yield part, self._block(slice(None), part).T

    def _columns(self, examples: Array) -> Array:
        n = self.rows.n_examples
        out = np.empty((len(examples), n), self.column_dtype)
        self.n_kernel_evaluations += out.size

        def work(i: int) -> None:
            block = slice(i, min(i + _COLUMN_BLOCK, n))
            out[:, block] = self._computed(block, examples).T

        ordered_map(work, range(0, n, _COLUMN_BLOCK))
        return out

    @cached_property
    def columns(self) -> ColumnCache:
        return super().columns if self._K is None else WholeMatrix(self._K)

    def assemble(self, F: Array, q: Array) -> Vector:
        return Vector(F, q)

    def _adjoint(self, V: Array, precise: bool) -> Array:
        product = self._multiply(V, precise)
        return (product + self._constant**2 * V.sum(axis=0)) / self.radius**2

    def _scores(self, image: Array, precise: bool) -> Array:
        return image

    def _inner(self, w: Vector, u: Vector) -> float:
        return float(np.vdot(self.rows.adjoint(w.coef), u.image))

    def norm(self, w: Vector) -> float:
        squared = self.dot(w, w)
        mass = np.float64(w.mass)  # whose square may overflow
        if squared < -1e-5 * mass**2 * max(1.0, self._steepness):  # not rounding
            raise ValueError(self._indefinite(f"a squared norm is {squared:.3g}"))
        return float(np.sqrt(max(squared, 0.0)))

    def flaw(self) -> str:
        least, rounding = self._least_eigenvalue(centred=self.rows.balanced)
        if least >= -rounding:
            return ""
        return self._indefinite(f"on some examples it has the eigenvalue {least:.3g}")

    def _least_eigenvalue(self, *, centred: bool) -> tuple[float, float]:
        """That of the kernel matrix of some examples, and what rounding makes of zero.

        Centred: on weights that sum to 0, which are all that an intercept leaves.
        """
        n = self.rows.n_examples
        some = np.unique(np.linspace(0, n - 1, min(n, _EXAMINED)).astype(int))
        K = self._block(some, some).astype(np.float64) + self._constant**2
        eps = float(np.finfo(self.column_dtype).eps)
        rounding = len(some) * eps * float(np.abs(K).max())
        if centred:
            K = K - K.mean(axis=0)
            K = K - K.mean(axis=1)[:, None]
        return float(np.linalg.eigvalsh(K)[0]), rounding

    def _indefinite(self, evidence: str) -> str:
        text = (
            f"The kernel matrix is not positive semidefinite ({evidence}): it holds no inner "
            "products, and margins mean nothing. Choose another kernel, such as 'rbf', or other "
            "parameters of this one"
        )
        least, rounding = self._least_eigenvalue(centred=True)
        conditionally = least >= -rounding and not (self.rows.balanced or self._constant)
        return text + (", or set fit_intercept=True, which helps here." if conditionally else ".")

    def lower_bound(
        self, w: Vector, offsets: Array | None = None, margins: Array | None = None
    ) -> Predictor:
        return super().lower_bound(self.refresh(w) if margins is None else w, offsets, margins)

    def _length(self, w: Vector) -> float:
        V = self.rows.adjoint(w.coef)
        return _root(np.sum(V * w.image), self._sums(V) * np.abs(V).sum() ** 2)

    def _dual_length(self, image: Array, q: Array, moved: float) -> float:
        V, few = self.rows.adjoint(q), support_of(q)
        off = self._sums(V) + 4.0 * moved * self._steepness
        squared, error = np.sum(V * image), off * np.abs(V).sum() ** 2
        if error <= self.enough * squared or few.size**2 > SMALL:
            return max(_root(squared, error), self._finest)
        V = self.rows.adjoint(q.astype(Extended))[few]
        squared = np.sum(V * (self._values(few, few) @ V)) + np.sum(
            (self._constant * V.sum(0)) ** 2
        )
        error = (4.0 * extended(few.size) + self._value_error) * self._steepness
        return max(_root(squared / self.radius**2, error), self._finest)

    @property
    def _finest(self) -> float:
        """Norm that is lost in the rounding of kernel values, if we computed these."""
        eps = 0.0 if self._kernel is None else float(np.finfo(self.column_dtype).eps)
        return float(np.sqrt(16.0 * eps * self._steepness))

    def _doubt(self, w: Vector, length: float, *, sharp: bool, enough: float) -> float:
        V = self.rows.adjoint(w.coef)
        values = (extended(len(support_of(V))) + self._value_error) * self._steepness
        return (values if sharp else 2.0 * self._sums(V)) * float(np.abs(V).sum())

    def _extended_scores(self, examples: Array, coef: Array) -> Array:
        few = np.flatnonzero(coef.any(axis=0))
        return self._values(examples, few) @ coef[:, few].T.astype(Extended)

    def _sums(self, V: Array) -> float:
        """Rounding error of scores per unit of weight, given kernel values taken as exact."""
        return (2.0 * chained(len(V)) + FEW + self._value_error) * self._steepness

    @property
    def _farthest(self) -> float:
        return float(np.sqrt(1.0 + self._steepness))  # images count from the origin

    @property
    def _steepness(self) -> float:
        """Largest kernel value, in units of the radius squared."""
        return self._highest / self.radius**2

    def _values(self, i: Array, j: Array) -> Array:
        """Kernel values of the examples i with the examples j."""
        if self._kept is not None and self._kept.keep(i):
            return self._kept.block(i, j)
        return self._block(i, j).astype(np.float64)

    def _kernel_block(self, i: Array, j: Array) -> Array:
        K = self._values(i, j)
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

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Rows of a kernel matrix that was given.

        The values of a kernel that is computed are rounded, and prove nothing of it; but
        equal examples are equal for any kernel: each is a feature of its own.
        """
        factor, intercept = np.ones(len(examples)), self.rows.balanced or self._constant != 0.0
        if self._kernel is None:
            return self._X[examples], factor, intercept
        X = self._X[examples]
        if isinstance(X, NormalizedRows):
            X, intercept = X.X, X.constant != 0.0  # multiples of equal examples are equal
        X = getattr(X, "X", X)  # of a kernel that has prepared its examples
        return distinct(X), factor, intercept

    def predictor(self, w: Vector, offsets: Array) -> tuple[Array, Array]:
        V = self.rows.adjoint(w.coef) / self.radius**2
        intercept = self.rows.score_offsets(offsets) + self._constant**2 * V.sum(axis=0)
        return V.T, np.asarray(intercept)


def _root(squared: float, error: float) -> float:
    """Square root at most, the square being off by no more than ``error``."""
    return float(np.sqrt(max(squared, 0.0) + error)) * (1.0 + PAIRWISE)
