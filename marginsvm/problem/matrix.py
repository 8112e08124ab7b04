"""Examples as a matrix: dense, in an array of any library with the array API; CSR; or blocks.

An array is never copied as a whole, and products with it are by blocks that stay in cache. Blocks
of files are read again for every pass, by the thread that asks for it.

References
----------
Python array API standard, https://data-apis.org/array-api/latest/
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from typing import NoReturn, TypeAlias, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils._array_api import _convert_to_numpy, array_api_compat

from marginsvm._rounding import product, summed
from marginsvm._threads import (
    n_threads,
    ordered_map,
    single_threaded_blas,
)
from marginsvm._typing import Along, Array, Index, Stored, Values
from marginsvm.problem.norms import LpNorm

T = TypeVar("T")
R = TypeVar("R")
Join: TypeAlias = Callable[[list[T]], list[T]]

FLOAT64 = np.dtype(np.float64)
FLOAT32 = np.dtype(np.float32)
# Memory of a block, which stays in a processor's cache between two products; on a device, where a
# pass waits once for each block.
BLOCK_BYTES = 2**21
DEVICE_BLOCK_BYTES = 2**28
MAX_PARTS = 8  # lists of blocks that threads share
# Entries, zeros included, that are converted to dense float64 at a time (8 MiB), and for products
# of examples with each other, which are quicker in cache.
WRITTEN_OUT = 2**20
IN_CACHE = 2**18
# Examples are taken from the others if fewer than one in so many has a coefficient.
FEW_TAKEN = 20
# Sparse products take as long as dense ones where one product in so many has stored factors.
SPARSE_PRODUCT_COST = 16
# Range of norms (units of x) in which squares neither overflow nor underflow; and the norm below
# which subnormal entries have too few digits for a direction.
SQUARES_VANISH = 1e-145
SQUARES_OVERFLOW = 1e150
LEAST_NORM = 1e-290
RESCALED = 2.0**600  # brings the other norms into this range
HELD_BYTES = 2**28  # memory of the examples of a file that were taken lately


def is_foreign(value: object) -> bool:
    """Whether a value is an array of another library than NumPy."""
    if isinstance(value, np.ndarray | np.generic):
        return False
    return bool(array_api_compat.is_array_api_obj(value))


def on_host(value: T) -> T:
    """Copy an array of another library to NumPy; anything else is returned as it is.

    Numbers of a type that NumPy does not have, such as bfloat16, become float32, which holds them.
    """
    if not is_foreign(value):
        return value
    array = cast("Array", value)
    array = array.detach() if hasattr(array, "detach") else array
    xp = array_api_compat.array_namespace(array)
    of_numpy = array.dtype in (xp.float32, xp.float64)
    if xp.isdtype(array.dtype, "real floating") and not of_numpy:
        array = xp.astype(array, xp.float32)
    return _convert_to_numpy(array, xp)


class Matrix(ABC):
    """Examples in an array that is not copied.

    Parameters
    ----------
    array : array or CSR matrix of shape (n_examples, n_features)

    Attributes
    ----------
    shape, dtype
        NumPy's type in which products are computed, unless the other factor is wider.
    in_memory : bool
        Whether some of the examples can be taken without a pass over all.
    sparse, foreign : bool
        ``foreign``: in an array of another library than NumPy.
    given, factor, constant : Matrix, ndarray of shape (n_examples,) or None, and float
        The user's examples, their divisors, and the constant feature added before the division;
        see ``divided``.
    """

    in_memory = True
    sparse = foreign = False
    given: Matrix | None = None
    factor: Array | None = None
    constant = 0.0
    array: Stored
    shape: tuple[int, int]
    dtype: np.dtype

    def __init__(self, array: Stored) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        if type(array) is not np.ndarray and is_foreign(array):
            self.foreign = True
            self.xp = array_api_compat.array_namespace(array)
            self.dtype = FLOAT64 if array.dtype == self.xp.float64 else FLOAT32

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> Matrix:
        """Some examples, by a slice (a view where that is possible) or by their indices."""
        return type(self)(self.array[index])

    def each(
        self, work: Callable[..., T], *local: Along | None, join: Join[T] = list
    ) -> list[T]:
        """``work(block, *parts)`` for blocks of the examples and of arrays along them, in order.

        Several threads share the blocks. ``local`` are sliceable objects or None. ``join`` may make
        fewer of the results of consecutive blocks.
        """
        n = len(self)
        size = self._block_rows()
        if n <= size:
            return [work(self, *local)]
        blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        few = -(-len(blocks) // MAX_PARTS)

        def part(some: list[slice]) -> list[T]:
            results = (
                [work(self[b], *(a if a is None else a[b] for a in local))]
                for b in some
            )
            return collected(results, join)

        parts = [blocks[i : i + few] for i in range(0, len(blocks), few)]
        return [
            found for part_found in ordered_map(part, parts) for found in part_found
        ]

    def _block_rows(self) -> int:
        return max(1, len(self))

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return self.shape[0] * self.shape[1]

    @abstractmethod
    def written_out(self) -> Array:
        """The examples as a new dense float64 array of NumPy."""

    @abstractmethod
    def about(self, mean: Array) -> Matrix:
        """A float64 copy less a mean; for sparse examples, only stored entries are changed."""

    @abstractmethod
    def stored(self) -> Array:
        """Whether every example stores a feature, so that ``about`` subtracts its mean."""

    # Products; their results are in NumPy, of the wider of both types.

    @abstractmethod
    def times(self, W: Array, chain: int = 0, *, sizes: bool = False) -> Array:
        """``X W``, or of the absolute values of X, the ``sizes``; with ``chain``, NumPy's sums run
        over at most that many terms.
        """

    @abstractmethod
    def adjoint(self, V: Array, chain: int = 0, *, sizes: bool = False) -> Array:
        """``V' X``, for coefficients V of shape (n_examples,) or (n_examples, k)."""

    def products(self, W: Array) -> Array:
        """``W X'``, whose rows are contiguous where that costs nothing."""
        return self.times(W.T).T

    @abstractmethod
    def squared_norms(self, norm: LpNorm, mean: Array | None) -> Array:
        """Squared lengths about a mean in the dual of a norm, or upper bounds on these; float64."""

    @abstractmethod
    def ends(self) -> tuple[Array, Array]:
        """Smallest and largest value of each feature, in float64."""

    def second_moments(self, weight: Array, mean: Array | None) -> Array:
        """``sum weight (x, 1)(x, 1)'`` over the examples about a mean; its last column is 0."""
        d = self.shape[1]
        H = np.zeros((d + 1, d + 1))
        size = max(1, IN_CACHE // (d + 1), min(WRITTEN_OUT // (d + 1), 2 * d))
        # a product x'x of one array costs half as much as one of two
        for sign in (1.0, -1.0):
            chosen = np.flatnonzero(sign * weight > 0)
            every = len(chosen) == len(weight)
            for i in range(0, len(chosen), size):
                # slices are views, no copies
                some: Index = slice(i, i + size) if every else chosen[i : i + size]
                root = np.sqrt(sign * weight[some])
                x = self[some].written_out()
                x = x if mean is None else np.subtract(x, mean, out=x)
                x *= root[:, None]
                H[d, :d] += sign * (root @ x)
                H[:d, :d] += sign * (x.T @ x)
        H[d, d] = weight.sum()
        return H

    def spans(self, entries: int = WRITTEN_OUT) -> Iterator[slice]:
        """Slices of consecutive examples of about ``entries`` entries, zeros included."""
        n = len(self)
        size = max(1, entries // max(1, self.shape[1]))
        return (slice(i, min(i + size, n)) for i in range(0, max(1, n), size))

    # Division by norms.

    def norms(self) -> Array:
        """Norms of the examples in float64, safe against under- and overflow of squares."""
        with np.errstate(over="ignore"):  # ``inverse`` refuses infinite norms
            found = np.sqrt(self.squared_norms(LpNorm(), None))
            odd = np.flatnonzero((found < SQUARES_VANISH) | ~(found < SQUARES_OVERFLOW))
            factor = np.where(found[odd] < 1.0, RESCALED, 1.0 / RESCALED)
            some = self[odd].multiplied(factor)
            found[odd] = np.sqrt(some.squared_norms(LpNorm(), None)) / factor
        return found

    def divided(self, constant: float) -> Matrix:
        """``(x, constant) / norm((x, constant))``, a copy; without a constant where it is 0."""
        scale = inverse(np.hypot(self.norms(), constant))
        other = self.multiplied(scale.astype(np.result_type(self.dtype, 1.0)))
        other = other.extended(constant * scale[:, None]) if constant else other
        other.given = self
        other.factor = scale
        other.constant = constant
        return other

    @abstractmethod
    def multiplied(self, scale: Array) -> Matrix:
        """Each example times a number."""

    @abstractmethod
    def extended(self, columns: Array) -> Matrix:
        """The examples with further features, in the precision of the others."""


class Dense(Matrix):
    """Examples in an array of NumPy or, on any device, of a library that follows the array API."""

    array: Array
    block_rows = 0  # of ``each``; 0: as many as stay in cache

    def __getitem__(self, index: Index) -> Dense:
        if isinstance(index, slice):
            return Dense(self.array[slice(*index.indices(len(self))), :])
        if not self.foreign:
            return Dense(self.array[index])
        there = self.xp.asarray(np.asarray(index, np.int64), device=self.array.device)
        return Dense(self.xp.take(self.array, there, axis=0))

    def __setstate__(self, state: dict[str, object]) -> None:
        """An unpickled array may be unaligned, and products would copy it: copy it once."""
        vars(self).update(state)
        self.array = (
            self.array if self.foreign else np.require(self.array, requirements="A")
        )

    def _block_rows(self) -> int:
        size = DEVICE_BLOCK_BYTES if self.foreign else BLOCK_BYTES
        return self.block_rows or max(
            1, size // max(1, self.shape[1] * self.dtype.itemsize)
        )

    def in_parts(self) -> Dense:
        """The same examples, for work that reads them once: in as many blocks as threads share."""
        other = copy(self)
        other.block_rows = -(-len(self) // MAX_PARTS)
        return other

    def written_out(self) -> Array:
        return np.array(on_host(self.array) if self.foreign else self.array, FLOAT64)

    def about(self, mean: Array) -> Dense:
        X, mean = self._alike(mean.astype(FLOAT64))
        return Dense(X - mean)

    def stored(self) -> Array:
        return np.ones(self.shape[1], bool)

    def _alike(self, other: Array) -> tuple[Array, Array]:
        """The examples and another array in the same library; NumPy brings both to one type."""
        if not self.foreign:
            return self.array, other
        wide = FLOAT64 in (self.dtype, other.dtype)
        dtype = self.xp.float64 if wide else self.xp.float32
        there = self.xp.asarray(
            np.array(other, order="C"), device=self.array.device, dtype=dtype
        )
        return self.xp.astype(self.array, dtype, copy=False), there

    def times(self, W: Array, chain: int = 0, *, sizes: bool = False) -> Array:
        if not self.foreign:
            return product(abs(self.array) if sizes else self.array, W, chain)
        X, W = self._alike(W)
        return on_host((abs(X) if sizes else X) @ W)

    def products(self, W: Array) -> Array:
        return super().products(W) if self.foreign else product(W, self.array.T, 0)

    def adjoint(self, V: Array, chain: int = 0, *, sizes: bool = False) -> Array:
        if not self.foreign:
            return product(V.T, abs(self.array) if sizes else self.array, chain)
        X, V = self._alike(V.T)
        return on_host(V @ (abs(X) if sizes else X))

    def squared_norms(self, norm: LpNorm, mean: Array | None) -> Array:
        if self.foreign and norm.p == 2.0:
            X, mean = self._alike(np.zeros(1) if mean is None else mean)
            X = X - mean
            return on_host(self.xp.sum(X * X, axis=1))
        some = (on_host(self[s].array) for s in self.spans(IN_CACHE))
        return np.concatenate(
            [norm.squared_lengths(X if mean is None else X - mean) for X in some]
        )

    def ends(self) -> tuple[Array, Array]:
        xp = self.xp if self.foreign else np
        low, high = (on_host(f(self.array, axis=0)) for f in (xp.min, xp.max))
        return low.astype(FLOAT64), high.astype(FLOAT64)

    def second_moments(self, weight: Array, mean: Array | None) -> Array:
        if not self.foreign:
            return super().second_moments(weight, mean)
        some = np.flatnonzero(weight)
        d = self.shape[1]
        H = np.zeros((d + 1, d + 1))
        for i in range(0, len(some), max(1, self._block_rows())):
            few = some[i : i + self._block_rows()]
            X, shift = self[few]._alike(np.zeros(1) if mean is None else mean)
            X = X - shift
            weighted = X * self._alike(weight[few, None])[1]
            H[:d, :d] += on_host(X.T @ weighted)
            H[d, :d] += on_host(self.xp.sum(weighted, axis=0))
        H[d, d] = weight.sum()
        return H

    def multiplied(self, scale: Array) -> Dense:
        X, scale = self._alike(scale[:, None])
        return Dense(X * scale)

    def extended(self, columns: Array) -> Dense:
        X, columns = self._alike(columns.astype(self.dtype, copy=False))
        return Dense((self.xp if self.foreign else np).concat([X, columns], axis=1))


class Csr(Matrix):
    """Examples in a CSR matrix or array; only where all store a feature can its mean be taken."""

    sparse = True
    array: sp.csr_array

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        for name in ("data", "indices", "indptr"):
            setattr(
                self.array,
                name,
                np.require(getattr(self.array, name), requirements="A"),
            )

    @property
    def size(self) -> int:
        return int(self.array.nnz)

    def _with(self, values: Array) -> Csr:
        X = copy(self.array)  # places are shared, and what is known of them
        X.data = values
        return Csr(X)

    def __getitem__(self, index: Index) -> Csr:
        if isinstance(index, slice) and index == slice(0, len(self)):
            return self
        return Csr(self.array[index])

    def written_out(self) -> Array:
        return self.array.toarray().astype(FLOAT64, copy=False)

    def about(self, mean: Array) -> Csr:
        return self._with(self.array.data.astype(FLOAT64) - mean[self.array.indices])

    def stored(self) -> Array:
        X = self.array
        if not X.has_canonical_format:  # an entry may be stored in parts
            return np.zeros(self.shape[1], bool)
        return np.bincount(X.indices, minlength=self.shape[1]) == len(self)

    def times(self, W: Array, chain: int = 0, *, sizes: bool = False) -> Array:
        return np.concatenate([X @ W for _, X in self._pieces(W, sizes)])

    def adjoint(self, V: Array, chain: int = 0, *, sizes: bool = False) -> Array:
        parts = (V[some].T @ X for some, X in self._pieces(V, sizes))
        return summed(parts)

    def _pieces(
        self, factor: Array, sizes: bool
    ) -> Iterator[tuple[slice, sp.csr_array]]:
        """Consecutive examples: few, where these or SciPy copy them in the factor's type."""
        X = self.array
        sizes = sizes and X.data.min(initial=0.0) < 0.0
        of = max(1, self.size // max(WRITTEN_OUT, 4 * self.shape[1]))
        if not sizes and (of == 1 or np.can_cast(factor.dtype, X.dtype)):
            yield slice(None), X
            return
        n = len(self)
        for i in range(of):
            some = slice(i * n // of, (i + 1) * n // of)
            ends = X.indptr[some.start : some.stop + 1]
            at = slice(ends[0], ends[-1])
            data = abs(X.data[at]) if sizes else X.data[at]
            parts = data, X.indices[at], ends - ends[0]
            yield some, sp.csr_array(parts, (len(ends) - 1, X.shape[1]))

    def squared_norms(self, norm: LpNorm, mean: Array | None) -> Array:
        X = canonical(self.array)
        if mean is not None and norm.p != 2.0:
            return norm.squared_distances(X, mean)
        squared = norm.squared_lengths(X)
        return (
            squared if mean is None else squared - 2.0 * self.times(mean) + mean @ mean
        )

    def ends(self) -> tuple[Array, Array]:
        X: sp.csr_array = canonical(self.array)
        full = np.bincount(X.indices, minlength=X.shape[1]) == len(self)
        low, high = (
            np.where(full, end, 0.0).astype(X.dtype) for end in (np.inf, -np.inf)
        )
        np.minimum.at(low, X.indices, X.data)  # SciPy would sort all entries by columns
        np.maximum.at(high, X.indices, X.data)
        return low.astype(FLOAT64), high.astype(FLOAT64)

    def second_moments(self, weight: Array, mean: Array | None) -> Array:
        n, d = self.shape
        X: sp.csr_array = canonical(self.array)
        counts = np.diff(X.indptr).astype(FLOAT64)
        # of the products of two features, half are computed
        if SPARSE_PRODUCT_COST * (counts @ counts) > 2.0 * n * float(d) ** 2:
            return super().second_moments(weight, mean)
        # importing numba takes a third of a second
        from marginsvm.problem.csr_loops import add_moments

        H = np.zeros((d + 1, d + 1))
        lower = np.zeros((d, d))
        add_moments(X.data, X.indices, X.indptr, weight, lower)
        H[:d, :d] = lower + np.tril(lower, -1).T
        H[d, :d] = self.adjoint(weight)
        H[d, d] = weight.sum()
        if mean is not None:  # sums are about 0 so far
            total = H[d, :d] - 0.5 * H[d, d] * mean
            H[:d, :d] -= np.outer(mean, total) + np.outer(total, mean)
            H[d, :d] -= H[d, d] * mean
        return H

    def multiplied(self, scale: Array) -> Csr:
        return self._with(
            self.array.data * np.repeat(scale, np.diff(self.array.indptr))
        )

    def extended(self, columns: Array) -> Csr:
        return Csr(
            sp.hstack(
                [self.array, columns.astype(self.dtype, copy=False)], format="csr"
            )
        )


# A place in all examples, and the examples there.
Block: TypeAlias = tuple[slice, Matrix]
Change: TypeAlias = Callable[[slice, Matrix], Matrix]


class Blocks(Matrix):
    """Blocks of examples, read anew for each pass. Indexing takes a pass, unless cached.

    Parameters
    ----------
    read : callable
        ``read()`` gives a new iterator over matrices.
    shape, dtype, sparse
        Of all blocks together.
    changed : callable
        ``changed(place, matrix)`` transforms each block.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.matrix import Blocks
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> read = lambda: iter([X[:2], X[2:]])
    >>> blocks = Blocks(read, X.shape, X.dtype, sparse=False)
    >>> blocks.each(lambda block: float(block.array.sum()))
    [6.0, 9.0]
    >>> blocks[np.array([2, 0])].array
    array([[4., 5.],
           [0., 1.]])
    """

    in_memory = False

    def __init__(
        self,
        read: Callable[[], Iterable[Stored]],
        shape: tuple[int, int],
        dtype: np.dtype,
        sparse: bool,
        changed: Change = lambda place, X: X,
    ) -> None:
        self._read = read
        self._changed = changed
        self.shape = shape
        self.dtype = dtype
        self.sparse = sparse
        # sorted indices, and the examples there that were taken lately
        self._held: tuple[Array, Matrix | None] = (np.empty(0, int), None)

    def blocks(self) -> Iterator[Block]:
        """Places and examples of all blocks, by a pass."""
        return ((place, self._changed(place, X)) for place, X in self._unchanged())

    def _unchanged(self) -> Iterator[Block]:
        start = 0
        for array in self._read():
            X = as_matrix(array)
            place = slice(start, start + len(X))
            if len(X):
                yield place, X
            start = place.stop

    def each(
        self, work: Callable[..., T], *local: Along | None, join: Join[T] = list
    ) -> list[T]:
        def part(block: Block) -> list[T]:
            place, X = block
            parts = (a if a is None else a[place] for a in local)
            return join(self._changed(place, X).each(work, *parts, join=join))

        return collected(in_turn(part, self._unchanged()), join)

    def __getitem__(self, index: Index) -> Matrix:
        wanted, place = np.unique(np.asarray(index), return_inverse=True)
        held, some = self._held
        missing = np.setdiff1d(wanted, held, assume_unique=True)
        if len(missing) or some is None:
            fetched = self._fetched(missing)
            some = fetched if some is None else stacked([some, fetched])
            held = np.concatenate([held, missing])
            order = np.argsort(held)
            held = held[order]
            some = some[order]
            if len(held) > len(wanted) and some.size * self.dtype.itemsize > HELD_BYTES:
                some = some[np.searchsorted(held, wanted)]
                held = wanted
            self._held = held, some
        return some[np.searchsorted(held, wanted)[place]]

    def _fetched(self, index: Array) -> Matrix:
        """Some examples, by their sorted indices, by a pass."""
        parts: list[Matrix] = []
        for place, X in self.blocks() if len(index) else ():
            here = index[slice(*np.searchsorted(index, [place.start, place.stop]))]
            if len(here):
                parts.append(X[here - place.start])
        if parts:
            return stacked(parts)
        none = np.zeros((0, self.shape[1]), self.dtype)
        return Csr(sp.csr_array(none)) if self.sparse else Dense(none)

    def _with(self, change: Change, width: int) -> Blocks:
        before = self._changed
        shape = (len(self), width)
        changed = lambda place, X: change(place, before(place, X))  # noqa: E731
        return Blocks(self._read, shape, self.dtype, self.sparse, changed)

    def about(self, mean: Array) -> Blocks:
        return self._with(lambda place, X: X.about(mean), self.shape[1])

    def divided(self, constant: float) -> Blocks:
        scale = inverse(np.hypot(self.norms(), constant))

        def change(place: slice, X: Matrix) -> Matrix:
            X = X.multiplied(scale[place].astype(np.result_type(X.dtype, 1.0)))
            return X.extended(constant * scale[place, None]) if constant else X

        other = self._with(change, self.shape[1] + (constant != 0.0))
        other.given = self
        other.factor = scale
        other.constant = constant
        return other

    def norms(self) -> Array:
        return np.concatenate(self.each(lambda X: X.norms()))

    def _of_blocks(self, *arguments: object, **named: object) -> NoReturn:
        raise TypeError("Blocks have no products of their own: call each(work)")

    times = adjoint = squared_norms = ends = stored = _of_blocks
    written_out = multiplied = extended = _of_blocks


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Examples of several matrices in memory, one after the other."""
    arrays = [X.array for X in parts]
    if isinstance(parts[0], Csr):
        return Csr(sp.vstack(arrays, format="csr"))
    return Dense(np.concatenate(arrays))


def collected(results: Iterable[list[T]], join: Join[T]) -> list[T]:
    """All results, joined whenever there are many, so that few sums are in memory."""
    found: list[T] = []
    most = MAX_PARTS
    for some in results:
        found += some
        if len(found) >= most:
            found = join(found)
            most = max(MAX_PARTS, 2 * len(found))
    return join(found)


def in_turn(work: Callable[[Block], R], blocks: Iterator[Block]) -> Iterator[R]:
    """Results of ``work`` in the order of the blocks, which are places and matrices.

    This thread reads them all, as a connection may belong to the thread that opened it. Another one
    works on a block meanwhile; while it does so, this thread works on what it has read.
    """
    helped = n_threads() > 1
    found: deque[R | Future[R]] = deque()
    other: Future[R] | None = None
    with single_threaded_blas(), ThreadPoolExecutor(1) as helper:
        for place, X in blocks:
            if helped and (other is None or other.done()):
                if other is not None:
                    other.result()  # its error ends the pass
                other = helper.submit(copy_context().run, work, (place, X))
                found.append(other)
            else:
                found.append(work((place, X)))
            while found and not (isinstance(found[0], Future) and not found[0].done()):
                yield result_of(found.popleft())
    for one in found:
        yield result_of(one)


def result_of(one: R | Future[R]) -> R:
    """Of work that is done here or in another thread."""
    return one.result() if isinstance(one, Future) else one


def canonical(X: Stored) -> Stored:
    """A sparse matrix in canonical form; other examples as they are.

    Duplicate entries are summed, and indices have 32 bits where these suffice.
    """
    if isinstance(X, np.ndarray) or not sp.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 and max(*X.shape, X.nnz) < 2**31:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = type(X)(parts, shape=X.shape)
    return X


def check_format(X: object) -> None:
    """Refuse sparse arrays whose indices lie outside: products would write anywhere."""
    if not hasattr(X, "check_format"):
        return
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        form = getattr(X, "format", "sparse").upper()
        raise ValueError(f"X is no valid {form} matrix: {error}") from error


def support_of(V: Array) -> Array:
    """Indices of the examples with a non-zero coefficient."""
    return np.flatnonzero(V if V.ndim == 1 else V.any(axis=1))


def plain(X: Stored | Matrix) -> Stored:
    """Examples as a kernel function takes them."""
    return X.array if isinstance(X, Matrix) else X


def dense(A: Values) -> Array:
    """A matrix of numbers, which may be sparse, as an array."""
    return np.asarray(A.toarray() if sp.issparse(A) else A)


def as_matrix(X: Stored | Matrix) -> Matrix:
    """Examples as a Matrix, from an array, a CSR matrix or a Matrix."""
    if isinstance(X, Matrix):
        return X
    return Csr(X) if sp.issparse(X) else Dense(X)


def inverse(norms: Array) -> Array:
    """Inverses of norms; 0 where the norm is 0."""
    if not np.isfinite(norms).all():
        raise ValueError("the norms of the examples overflow float64: scale X")
    tiny = np.flatnonzero((norms > 0) & (norms < LEAST_NORM))
    if len(tiny):
        raise ValueError(
            f"normalize=True divides examples by their norms, but that of example {tiny[0]} is "
            f"{norms[tiny[0]]:.3g}, of which float64 holds too few digits: scale it, or set it to 0"
        )
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)


def examples_on_host(X: Stored) -> Stored:
    """Examples of another library in float64, as fits compute kernels on devices."""
    return on_host(X).astype(FLOAT64) if is_foreign(X) else X


def with_attributes_on_host(estimator: T) -> T:
    """A fitted estimator with all arrays among its attributes on the host."""
    found = {name: on_host(value) for name, value in vars(estimator).items()}
    if all(value is vars(estimator)[name] for name, value in found.items()):
        return estimator
    other = copy(estimator)
    vars(other).update(found)
    return other
