"""The values of a kernel: a given matrix, a stored one, or computed when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn import config_context

from marginsvm._cached import cached_property
from marginsvm._rounding import (
    EXTENDED_TERMS,
    EXTENDED_TERMS_OF_ALL,
    PAIRWISE,
    Extended,
    product,
    times,
)
from marginsvm._typing import Array
from marginsvm.data.threads import ordered_map
from marginsvm.data.work import Work
from marginsvm.kernel_matrix.columns import (
    CACHE_SIZE,
    ColumnCache,
    ColumnPlan,
    KeptColumns,
    WholeMatrix,
)
from marginsvm.kernel_matrix.single import Formula, PreparedSingle, SingleColumns
from marginsvm.problem.gaussian import extended_gaussian, extended_values
from marginsvm.rows import Rows, support_of

# Strips into which a product is cut at least, whatever the number of threads: sums depend on it.
_STRIPS = 8
# Memory of the kernel values that are computed at once, where they are not kept.
_STRIP_BYTES = 2**24
# Memory of the strip of a stored matrix that a thread works on at once: it stays in cache.
_BLOCK_BYTES = 2**22
# Examples of a column that a thread works on at once.
_COLUMN_BLOCK = 4096
# Examples of a block on the diagonal, of which only the diagonal is kept.
_DIAGONAL_BLOCK = 128
# Share of the coefficients: if fewer are not zero, their columns alone are used.
_SHARE_OF_COEFFICIENTS = 0.05


class KernelValues:
    """The kernel matrix K of some examples: blocks, columns and products of it.

    Parameters
    ----------
    kernel : callable or None
        ``kernel(X, Y)`` gives a block of the kernel matrix; None: X is that matrix.
    X : array-like
        Examples, or their kernel matrix.
    rows : Rows
        Their labels.
    constant : float
        Its square is added to all kernel values, in ``extended_square`` only.
    plan : ColumnPlan or None
        For algorithms that use columns of the matrix, which then is never formed.
    whole : bool
        Whether rounds need products with the whole matrix. False: only with some columns, which
        are computed when they are needed, and kept.
    work : Work
    formula : Formula or None
        What the kernel is, if that is known.
    cache_size : float
        Memory for values that are kept (MB).

    Attributes
    ----------
    dtype : dtype
        Type of the kernel's values.
    value_error : float
        Relative error of values that are divided here by the norms of their examples, and of
        coefficients when that is undone.
    whole : bool
        Whether products with the whole matrix cost no more than a pass.
    """

    def __init__(
        self,
        kernel: Callable[[Any, Any], Array] | None,
        X: Any,
        rows: Rows,
        constant: float,
        plan: ColumnPlan | None,
        whole: bool,
        work: Work,
        formula: Formula | None = None,
        cache_size: float = CACHE_SIZE,
    ) -> None:
        self._formula = formula
        self.kernel, self.X, self._rows, self._work = kernel, X, rows, work
        self._constant, self._plan = constant, plan
        self.value_error = PAIRWISE if getattr(X, "scale", None) is not None else 0.0
        self._K = X if kernel is None else None
        self.whole = whole or kernel is None
        self._kept, self.cache_size = None, cache_size
        self._cache = int(cache_size * 2**20)  # bytes
        if not self.whole:
            whole_columns = partial(self.block, j=slice(None))
            self._kept = KeptColumns(whole_columns, rows.n_examples)
        self._single: SingleColumns | None = None
        self.diagonal = self._diagonal()
        self.dtype = self.diagonal.dtype

    def _diagonal(self) -> Array:
        if self.kernel is None:
            return np.diagonal(self.X)
        n = self._rows.n_examples
        if self.whole and (K := self.stored()) is not None:
            return np.diagonal(K)
        if self._formula is not None and not self.whole:
            return self._formula.diagonal(self.X)
        size = _DIAGONAL_BLOCK
        blocks = (slice(i, i + size) for i in range(0, n, size))
        return np.concatenate([np.diagonal(self.block(some, some)) for some in blocks])

    def block(self, i: Any, j: Any) -> Array:
        """Entries of the kernel matrix for two selections of the examples."""
        if self._K is not None:
            return self._K[i][:, j]
        block = self._computed(i, j)
        self._work.add_kernel_evaluations(block.size)
        return block

    def values(self, i: Array, j: Array) -> Array:
        """Kernel values of the examples i with the examples j, in float64."""
        if (kept := self._keeping(i)) is not None:
            return kept.block(i, j)
        if self._single is not None and self._single.nbytes + 12 * len(i) * len(j) > self._cache:
            self._single.drop()
        return self.block(i, j).astype(np.float64)

    def _keeping(self, examples: Array) -> KeptColumns | None:
        """Columns in float64 with those of these examples; None where no memory is left for them.

        Where it is those in float32 that take it, they go.
        """
        kept = self._kept
        if kept is None:
            return None
        taken = self._single.nbytes if self._single is not None else 0
        if kept.keep(examples, self._cache - taken):
            return kept
        if taken and kept.keep(examples, self._cache):
            assert self._single is not None
            self._single.drop()
            return kept
        return None

    def _computed(self, i: Any, j: Any) -> Array:
        assert self.kernel is not None
        with config_context(assume_finite=True):  # fit has looked at X
            return self.kernel(self.X[i], self.X[j])

    def stored(self) -> Array | None:
        """The whole kernel matrix, if it may be kept."""
        n = self._rows.n_examples
        few = n * n * self.X.dtype.itemsize <= self._cache
        if self._K is None and self._plan is None and few:
            self._K = self.block(slice(None), slice(None))
        return self._K

    def must_be_stored(self) -> Array:
        """The whole kernel matrix; an error says what to do where it cannot be kept."""
        K = self.stored()
        if K is None:
            raise ValueError(
                f"the kernel matrix of {self._rows.n_examples} examples takes more than "
                f"cache_size={self.cache_size:g} MB, and coordinate ascent needs all of it: raise "
                "cache_size, or use fewer examples or another estimator"
            )
        return K

    def multiply(self, V: Array, precise: bool) -> Array:
        """``K V``, from the columns of the examples that take part where these are few."""
        many = np.count_nonzero(V) >= _SHARE_OF_COEFFICIENTS * V.size
        if self._plan is None and self.whole and many:
            self._work.add_pass()
            return self._product(V, precise)
        few = support_of(V)
        self._work.add_pass(few.size / len(V))
        if (kept := self._keeping(few)) is not None:
            return kept.multiply(few, V[few])
        F = np.zeros(V.shape)
        for part, columns in self._some_columns(few):
            F += product(columns.T.astype(np.float64, copy=False), V[part])
        return F

    def _product(self, V: Array, precise: bool) -> Array:
        """``K V``, from the stored matrix or strip by strip, shared by some threads."""
        n, F = self._rows.n_examples, np.empty(V.shape)
        K = self.stored()
        if K is None:
            size, right = max(1, _STRIP_BYTES // (8 * n)), V
            self._work.add_kernel_evaluations(n * n)
        else:
            size = max(1, _BLOCK_BYTES // (K.itemsize * n))
            if not precise:  # no copy in float64; few strips, as each costs a call
                size = max(size, -(-n // _STRIPS))
            right = V.astype(np.float64 if precise else K.dtype, copy=False)

        def work(i: int) -> None:
            strip = slice(i, min(i + size, n))
            block = self._computed(strip, slice(None)) if K is None else K[strip]
            multiply = product if precise else times  # bounds need short chains
            F[strip] = multiply(block.astype(right.dtype, copy=False), right)

        ordered_map(work, range(0, n, size))
        return F

    def _some_columns(self, examples: Array) -> Iterator[tuple[Array, Array]]:
        if self._plan is not None:
            yield from self.columns.take(examples)
            return
        size = max(1, _STRIP_BYTES // (8 * self._rows.n_examples))
        for i in range(0, examples.size, size):
            part = examples[i : i + size]
            yield part, self.block(slice(None), part).T

    @cached_property
    def columns(self) -> ColumnCache:
        """Columns of the matrix, the last used of them kept."""
        if self._K is not None:
            return WholeMatrix(self._K)
        (size, batch), n = self._plan or ColumnPlan(), self._rows.n_examples
        size -= getattr(self.X, "extra_bytes", 0) / 2**20  # of a kernel that prepared its examples
        k = self._rows.n_classes
        return ColumnCache(self._columns, n, self.dtype, size, batch, at_least=k, passes=1.0 / n)

    def _columns(self, examples: Array) -> Array:
        n = self._rows.n_examples
        out = np.empty((len(examples), n), self.dtype)
        self._work.add_kernel_evaluations(out.size)

        def work(i: int) -> None:
            block = slice(i, min(i + _COLUMN_BLOCK, n))
            out[:, block] = self._computed(block, examples).T

        ordered_map(work, range(0, n, _COLUMN_BLOCK))
        return out

    @property
    def single(self) -> SingleColumns:
        """Columns of the matrix in float32: while they grow, none in float64 are kept."""
        n = self._rows.n_examples
        if self._single is None:
            prepared = None if self._formula is None else PreparedSingle(self._formula, self.X)
            count = self._work.add_kernel_evaluations
            self._single = SingleColumns(self.block, n, prepared, self.cache_size, count)
        if self._kept is not None and self._kept.nbytes + 4 * self._single.room * n > self._cache:
            self._kept.drop()
        return self._single

    @property
    def dimensions(self) -> float:
        """Of the feature space, where it is known; else infinite."""
        return np.inf if self._formula is None else self._formula.dimensions(self.X.shape[1])

    @property
    def is_definite(self) -> bool:
        """Whether the kernel is known to be one of inner products."""
        return self._formula is not None and self._formula.is_definite

    @cached_property
    def extended_values(self) -> int:
        """How many values are computed in extended precision, where sums are."""
        gaussian = self._formula is not None and self._formula.degree == 0
        return extended_values(self.X) if gaussian else 0

    def scores_of(self, examples: Array, few: Array, V: Array) -> Array:
        """``K[examples, few] V`` in float64."""
        F = np.empty((len(examples), *V.shape[1:]))
        size = max(1, _STRIP_BYTES // (8 * max(1, len(few))))
        self._work.add_pass(len(examples) * len(few) / self._rows.n_examples**2)
        for i in range(0, len(examples), size):
            block = self.block(examples[i : i + size], few).astype(np.float64, copy=False)
            F[i : i + size] = product(block, V)
        return F

    def extended_square(self, few: Array, V: Array) -> float:
        """``V' (K + constant^2) V`` of extended coefficients on few examples."""
        squared = np.sum(V * self._extended(few, few, V))
        return squared + np.sum((self._constant * V.sum(0)) ** 2)

    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        """Scores in extended precision; None: those of all are sums of too many kernel values."""
        some = np.flatnonzero(coef.any(axis=0))
        n = self._rows.n_examples
        if few is None and n * len(some) > EXTENDED_TERMS_OF_ALL:
            return None
        examples = np.arange(n) if few is None else few
        return self._extended(examples, some, coef[:, some].T.astype(Extended)) + intercept

    def _extended(self, examples: Array, few: Array, V: Array) -> Array:
        """``K[examples, few] V``, some examples at a time."""
        size = max(1, EXTENDED_TERMS // max(1, len(few)))
        some = [examples[i : i + size] for i in range(0, len(examples), size)]
        if len(examples) * len(few) <= self.extended_values:
            assert self._formula is not None
            self._work.add_kernel_evaluations(len(examples) * len(few))
            kernel = partial(extended_gaussian, self.X, j=few, gamma=self._formula.gamma)
            return np.concatenate([kernel(part) @ V for part in some])
        return np.concatenate([self.values(part, few) @ V for part in some])
