"""Columns of a Gram matrix that is never formed: computed in batches, the last used kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from marginsvm._rounding import product
from marginsvm._typing import Array

# Memory for kernel values (MB) where no other is asked for: columns of 8,700 of 30,000 examples.
CACHE_SIZE = 2000.0
_TAKEN = 48  # columns that are computed at once where they are not kept


class ColumnPlan(NamedTuple):
    """How columns are computed for an algorithm: cache in MB, columns in a batch."""

    cache_size: float = 0.0
    batch: int = 1


class ColumnCache:
    """Cache of the last used columns of a Gram matrix, of ``cache_size`` MB.

    A column has the same bits whenever it is computed: always ``batch`` columns together (a
    product of another width rounds differently), in the same blocks, on one BLAS thread.
    So the size of the cache changes the time of a fit and nothing else. Compiled loops read the
    arrays directly: ``columns[slot[i]]`` is the column of example i.

    Parameters
    ----------
    compute : callable
        ``compute(examples) -> (len(examples), n_examples)`` columns.
    n_examples : int
    dtype : dtype
        Type of the columns.
    cache_size : float
        Memory in MB.
    batch : int
        Columns computed together; 16 cost about as much as four single ones.
    at_least : int
        Columns that must be in the cache at the same time, whatever ``cache_size`` is.
    passes : float
        Number of passes that the use of a column counts as.

    Attributes
    ----------
    columns : ndarray of shape (capacity, n_examples)
    slot : ndarray of shape (n_examples,)
        Position of each example's column; -1 if it is not in the cache.
    used : ndarray of shape (capacity + 1,)
        Time of the last use of each column and, as the last entry, the present time.
    n_used, n_missed : int
        Columns that were used so far, and those of them that were not in the cache.
    """

    n_used = n_missed = 0

    def __init__(
        self,
        compute: Callable[[Array], Array],
        n_examples: int,
        dtype: np.dtype,
        cache_size: float,
        batch: int,
        at_least: int,
        passes: float = 1.0,
    ) -> None:
        self.passes = passes
        self._compute = compute
        self.batch = min(batch, n_examples)
        room = int(cache_size * 2**20 / (n_examples * dtype.itemsize))
        capacity = min(max(room, self.batch + at_least), n_examples)
        self.columns = np.empty((capacity, n_examples), dtype)  # pages are taken when written
        self.slot = np.full(n_examples, -1)
        self.used = np.zeros(capacity + 1, dtype=np.int64)
        self._owner = np.full(capacity, -1)

    @property
    def hit_rate(self) -> float:
        """Share of the used columns that were there."""
        return 1.0 - self.n_missed / max(self.n_used, 1)

    def fetch(self, wanted: Array, likely: Callable[[], Array] | None = None) -> None:
        """Have the columns of ``wanted``; free places of a batch go to those expected next."""
        self._stamp(self.slot[wanted])
        missing = wanted[self.slot[wanted] < 0]
        self.n_missed += len(missing)
        for i in range(0, len(missing), self.batch):
            chosen = missing[i : i + self.batch]
            if likely is not None and len(chosen) < self.batch:
                guesses = likely()
                guesses = guesses[(self.slot[guesses] < 0) & ~np.isin(guesses, chosen)]
                chosen = np.concatenate([chosen, guesses[: self.batch - len(chosen)]])
            self._keep(chosen, self._padded(chosen))

    def take(self, examples: Array) -> Iterator[tuple[Array, Array]]:
        """Give the columns of any number of examples, some at a time; the cache stays as it is."""
        for i in range(0, len(examples), _TAKEN):
            part = examples[
                i : i + _TAKEN
            ]  # always as many, so that sums over parts keep their bits
            columns = np.empty((len(part), len(self.slot)), self.columns.dtype)
            here = self.slot[part] >= 0
            columns[here] = self.columns[self.slot[part[here]]]
            missing = np.flatnonzero(~here)
            for m in range(0, len(missing), self.batch):
                some = missing[m : m + self.batch]
                columns[some] = self._padded(part[some])
            yield part, columns

    def _padded(self, examples: Array) -> Array:
        """Columns of up to ``batch`` examples; the width of the product never changes."""
        batch = np.resize(examples, self.batch)
        return self._compute(batch)[: len(examples)]

    def _keep(self, examples: Array, columns: Array) -> None:
        oldest = np.argsort(self.used[:-1], kind="stable")[: len(examples)]
        evicted = self._owner[oldest]
        self.slot[evicted[evicted >= 0]] = -1
        self._owner[oldest] = examples
        self.slot[examples] = oldest
        self.columns[oldest] = columns
        self._stamp(oldest)

    def _stamp(self, places: Array) -> None:
        self.used[-1] += 1
        self.used[places[places >= 0]] = self.used[-1]


class WholeMatrix(ColumnCache):
    """A precomputed kernel matrix, read as a cache that lacks nothing."""

    batch = 1

    def __init__(self, K: Array) -> None:
        self.passes = 1.0 / len(K)
        self.columns = K if K.flags.c_contiguous else K.T  # symmetric; never copied
        self.slot = np.arange(len(K))
        self.used = np.zeros(len(K) + 1, dtype=np.int64)


class KeptColumns:
    """Columns of a Gram matrix for a working set: computed once, in float64, all of them kept.

    Parameters
    ----------
    compute : callable
        ``compute(examples) -> (len(examples), n_examples)`` columns.
    n_examples : int

    Attributes
    ----------
    nbytes : int
        Memory that they take (bytes).
    """

    def __init__(self, compute: Callable[[Array], Array], n_examples: int) -> None:
        self._compute = compute
        self._batch_of = np.full(n_examples, -1)
        self._place = np.zeros(n_examples, int)
        self.drop()

    def drop(self) -> None:
        """Forget all columns: others are in need of the memory."""
        self._batches: list[Array] = []  # as they were asked for
        self._batch_of[:] = -1
        self.nbytes = 0

    def keep(self, examples: Array, most: int) -> bool:
        """Compute and keep these examples' columns; False where this would take more bytes."""
        new = np.unique(examples[self._batch_of[examples] < 0])
        taken = self.nbytes + 8 * len(new) * len(self._place)
        if taken > most:
            return False
        if len(new):
            self.nbytes = taken
            self._batch_of[new], self._place[new] = len(self._batches), np.arange(len(new))
            self._batches.append(self._compute(new).astype(np.float64, copy=False))
        return True

    def multiply(self, examples: Array, V: Array) -> Array:
        """``K[:, examples] V`` of kept columns."""
        total = np.zeros((len(self._place), *V.shape[1:]))
        for k, mine in self._by_batch(examples):
            scattered = np.zeros((len(self._batches[k]), *V.shape[1:]))
            scattered[self._place[examples[mine]]] = V[mine]
            total += product(self._batches[k].T, scattered)
        return total

    def block(self, i: Array, j: Array) -> Array:
        """``K[i, j]``, the columns of ``i`` being kept."""
        K = np.empty((len(i), len(j)))
        for k, mine in self._by_batch(i):
            K[mine] = self._batches[k][self._place[i[mine]][:, None], j]
        return K

    def _by_batch(self, examples: Array) -> Iterator[tuple[int, Array]]:
        for k in np.unique(self._batch_of[examples]):
            yield int(k), np.flatnonzero(self._batch_of[examples] == k)
