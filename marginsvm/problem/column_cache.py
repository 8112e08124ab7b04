"""Cache of columns of a Gram matrix that is never formed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.matrix import FLOAT64

CACHE_SIZE = 2000.0  # MB: columns of 8,700 of 30,000 examples
FOR_COLUMNS = 0.75  # of the memory, where blocks of a solver take the rest
TAKEN = 32  # columns that are computed at once where they are not kept
FIRST_GUESSES = 16  # columns; and two more for each that has been used


class ColumnCache:
    """LRU cache of columns of a Gram matrix that is never formed.

    Columns are always computed ``batch`` at a time, as products of another width round differently:
    a recomputed column has the same bits. So the cache size changes the time of a fit and nothing
    else. Compiled loops read the arrays: ``columns[slot[i]]`` is the column of example i.

    Parameters
    ----------
    compute : callable
        ``compute(examples) -> (len(examples), n)`` columns.
    n : int
    dtype : dtype
    size : float
        Memory (MB).
    batch : int
        Columns that are computed together: 16 cost about as much as four single ones.
    at_least : int
        Least capacity (columns), whatever the size.
    whole : ndarray of shape (n, n) or None
        The whole matrix, if it is in memory.
    order : ndarray of shape (n,) or None
        Order of the numbers of a column, unless the whole matrix is in memory.

    Attributes
    ----------
    capacity : int
        Columns at most.
    columns : ndarray of shape (capacity, n)
    slot : ndarray of shape (n,)
        Position of each example's column; -1 if not cached.
    used : ndarray of shape (capacity + 1,)
        Time of the last use of each column and, as the last entry, the present time.
    n_used, n_missed : int
        Columns used so far, and cache misses among them.
    passes : float
        Passes that one column counts as.
    """

    n_used = n_missed = _n_guesses = _n_guesses_used = 0
    passes = 1.0

    def __init__(
        self,
        compute: Callable[[Array], Array],
        n: int,
        dtype: np.dtype = FLOAT64,
        size: float = CACHE_SIZE,
        batch: int = 1,
        at_least: int = 1,
        whole: Array | None = None,
        order: Array | None = None,
    ) -> None:
        self.order = order if whole is None else None
        self._place = (
            np.argsort(self.order) if self.order is not None else np.empty(0, int)
        )
        self._compute = compute
        self.batch = min(batch, n)
        capacity = n
        self.slot = np.arange(n)
        if whole is None:
            room = int(size * 2**20 / (n * np.dtype(dtype).itemsize))
            capacity = min(max(room, self.batch + at_least), n)
            self.slot = np.full(n, -1)
            # what is not written to takes no memory
            whole = np.empty((capacity, n), dtype)
        self.columns = whole if whole.flags.c_contiguous else whole.T  # they are equal
        self.capacity = capacity
        self.used = np.zeros(capacity + 1, np.int64)
        self._owner = np.full(capacity, -1)
        self._guessed = np.zeros(capacity, np.int64)

    @property
    def hit_rate(self) -> float:
        """Cache hits per used column."""
        return 1.0 - self.n_missed / max(self.n_used, 1)

    def has(self, examples: Array) -> bool:
        """Whether the columns of these examples are cached."""
        return bool((self.slot[examples] >= 0).all())

    def fetch(
        self, wanted: Array, likely: Callable[[int], Array] | None = None
    ) -> None:
        """Cache the columns ``wanted``; if one is missing, also some of ``likely(most)``.

        These are guesses of what will be wanted: few, and more while half of them are used.
        """
        places = self.slot[wanted]
        self._stamp(places)
        missing = wanted[places < 0]
        self.n_missed += len(missing)
        most = 0
        guesses = missing[:0]
        if likely is not None and len(missing):
            used = (self._guessed > 0) & (self.used[:-1] > self._guessed)
            self._guessed[used] = 0
            self._n_guesses_used += int(np.count_nonzero(used))
            most = FIRST_GUESSES + 2 * self._n_guesses_used - self._n_guesses
            most = min(most, self.capacity - len(wanted))
        if likely is not None and most > 0:
            guesses = likely(most)
            guesses = guesses[(guesses[:, None] != missing).all(axis=1)]
        chosen = np.concatenate([missing, guesses])
        for i in range(0, len(chosen), self.batch):
            some = chosen[i : i + self.batch]
            self._keep(some, self._computed(some))
        self._guessed[self.slot[guesses]] = self.used[-1]
        self._n_guesses += len(guesses)

    def take(self, examples: Array) -> Iterator[tuple[Array, Array]]:
        """Columns of any number of examples, batch by batch, which are kept while there is room.

        Their numbers are in the order of the cache, see ``given``; a later batch overwrites them.
        """
        # always as many, so that sums keep their bits
        columns = np.empty(
            (min(TAKEN, len(examples)), len(self.slot)), self.columns.dtype
        )
        for i in range(0, len(examples), TAKEN):
            part = examples[i : i + TAKEN]
            places = self.slot[part]
            some = columns[: len(part)]
            # kept side by side: a view
            if places[0] >= 0 and np.all(np.diff(places) == 1):
                yield part, self.columns[places[0] : places[-1] + 1]
                continue
            here = np.flatnonzero(places >= 0)
            missing = np.flatnonzero(places < 0)
            some[here] = self.columns[places[here]]
            for m in range(0, len(missing), self.batch):
                new = missing[m : m + self.batch]
                some[new] = self._computed(part[new])
                if np.count_nonzero(self._owner < 0) >= len(new):
                    self._keep(part[new], some[new])
            yield part, some

    def given(self, F: Array) -> Array:
        """Numbers of all examples in the order of the cache, in the examples' own order."""
        return F if self.order is None else F[self._place]

    def _computed(self, examples: Array) -> Array:
        """At most a batch of columns."""
        columns = self._compute(np.resize(examples, self.batch))
        return (
            columns[: len(examples)]
            if self.order is None
            else np.stack([column[self.order] for column in columns[: len(examples)]])
        )

    def block(self, i: Array, j: Array | slice = slice(None)) -> Array:
        """Kernel values of cached columns i, at the examples j."""
        return self.columns[self.slot[i]][
            :, j if self.order is None else self._place[j]
        ]

    def _keep(self, examples: Array, columns: Array) -> None:
        oldest = np.flatnonzero(self._owner < 0)[: len(examples)]
        if len(oldest) < len(examples):  # not enough places are free
            oldest = np.argsort(self.used[:-1], kind="stable")[: len(examples)]
        evicted = self._owner[oldest]
        self.slot[evicted[evicted >= 0]] = -1
        self._owner[oldest] = examples
        self.slot[examples] = oldest
        self.columns[oldest] = columns
        self._guessed[oldest] = 0
        self._stamp(oldest)

    def _stamp(self, places: Array) -> None:
        self.used[-1] += 1
        self.used[places[places >= 0]] = self.used[-1]


class ColumnPlan(NamedTuple):
    """How columns of the Gram matrix are kept: memory in MB, columns in a batch."""

    cache_size: float = 0.0
    batch: int = 1
