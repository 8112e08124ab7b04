"""A store of blocks that are read again for every pass; examples near the margin are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, TypeVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.data.block import Block
from marginsvm.data.csr import as_block
from marginsvm.data.memory import Store, chunks
from marginsvm.data.normalized import normalized
from marginsvm.data.passes import Located
from marginsvm.data.threads import ordered_map
from marginsvm.rows import Rows

T = TypeVar("T")

_KEPT = 512  # examples of each class that a pass keeps, as they are likely to be needed next
_KEPT_BYTES = 2**28  # memory of such examples, of all classes together
_HELD = 4  # examples that stay in memory, in multiples of the number that was asked for last


class StreamStore(Store):
    """Blocks of examples that are read once a pass, the next while one is worked on.

    Single examples are taken from memory if they are there: those needed lately, and those of
    each class with the smallest margins in the last pass that computed margins. Others take
    a pass.

    Parameters
    ----------
    read : callable
        ``read()`` gives an iterator over the examples, as matrices or blocks of one kind.
    codes : ndarray of shape (n_examples,)
        Class of each example.
    n_features : int
    dtype : dtype
    sparse : bool
    """

    one_pass = True  # the examples are not known to be in cache when they are needed again

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        codes: Array,
        n_features: int,
        dtype: np.dtype,
        sparse: bool,
    ) -> None:
        self._read, self._codes, self._constant = read, codes, 0.0
        self.shape, self.dtype, self.sparse = (len(codes), n_features), np.dtype(dtype), sparse
        self._n_classes = int(codes.max(initial=0)) + 1
        row_bytes = 8 * max(1, n_features) * self._n_classes
        self._kept = int(np.clip(_KEPT_BYTES // row_bytes, 1, _KEPT))
        self._smallest: SmallestMargins | None = None
        self._held: dict[int, Block] = {}

    def map(self, work: Callable[..., T], rows: Rows, *local: Array | None) -> Iterator[T]:
        """Blocks as they come, each shared by some threads."""

        def part(blocks: list[Located]) -> T:
            return work(rows, blocks, *local)

        for start, X in self._blocks():
            yield from ordered_map(part, chunks(X, start))

    def _blocks(self) -> Iterator[tuple[int, Block]]:
        start = 0
        for X in ahead(self._read()):
            block = as_block(X)
            yield start, normalized(block, self._constant) if self.normalized else block
            start += len(block)

    def divided(self, constant: float) -> StreamStore:
        """Examples divided by their norms, which are computed anew in every pass."""
        divided = copy(self)
        divided.normalized, divided._constant = True, constant
        divided.shape = (self.shape[0], self.shape[1] + (constant != 0.0))
        divided._smallest, divided._held = None, {}
        return divided

    def block_callback(self) -> SmallestMargins:
        """Track the smallest margins of the pass that begins, and keep their examples."""
        self._smallest = SmallestMargins(self._codes, self._kept)
        return self._smallest

    def take(self, index: Array) -> Block:
        """Some of the examples, with a pass of their own for those that are not at hand."""
        at_hand = dict(self._held)
        if self._smallest is not None:
            at_hand.update(self._smallest.examples())
        wanted = index.tolist()
        if not wanted:
            return as_block(np.zeros((0, self.shape[1]), self.dtype))
        missing = np.unique([i for i in wanted if i not in at_hand]).astype(int)
        if len(missing):
            at_hand.update(self._fetch(missing))
        found = {i: at_hand[i] for i in wanted}
        room = max(_HELD * len(found), 2 * self._kept * self._n_classes) - len(found)
        older = [i for i in self._held if i not in found][:room]
        self._held = {**found, **{i: self._held[i] for i in older}}
        return type(found[wanted[0]]).stacked([found[i] for i in wanted])

    def _fetch(self, index: Array) -> dict[int, Block]:
        found: dict[int, Block] = {}
        for start, X in self._blocks():
            here = index[(index >= start) & (index < start + len(X))]
            if len(here):
                found.update(_by_index(here, X[here - start]))
        return found


class SmallestMargins:
    """The examples of each class with the smallest margins among the blocks of a pass.

    Which these are does not depend on the order of the blocks; several threads may call it.

    Parameters
    ----------
    codes : ndarray of shape (n_examples,)
        Class of each example.
    most : int
        Number of examples of each class.
    """

    def __init__(self, codes: Array, most: int) -> None:
        self._codes, self._most = codes, most
        self._lock = threading.Lock()
        n_classes = int(codes.max(initial=0)) + 1
        self._limit = np.full(n_classes, np.inf)
        self._found: list[dict[int, tuple[float, Block]]] = [{} for _ in range(n_classes)]

    def __call__(self, block: slice, X: Block, margins: Array) -> None:
        """Look at a block and the margins of its rows."""
        least = margins if margins.ndim == 1 else margins.min(axis=1)
        codes = self._codes[block]
        promising = np.flatnonzero(least < self._limit[codes])
        for c in np.unique(codes[promising]):
            mine = promising[codes[promising] == c]
            mine = mine[np.argsort(least[mine], kind="stable")[: self._most]]
            rows = _by_index(mine + block.start, X[mine])
            with self._lock:
                found = self._found[c]
                found.update((i, (float(least[i - block.start]), x)) for i, x in rows.items())
                if len(found) > 2 * self._most:
                    self._cut(c)

    def _cut(self, c: int) -> None:
        order = sorted(self._found[c].items(), key=lambda item: (item[1][0], item[0]))
        self._found[c] = dict(order[: self._most])
        self._limit[c] = np.nextafter(order[self._most - 1][1][0], np.inf)  # equal ones may come

    def examples(self) -> dict[int, Block]:
        """Those that were found, by index."""
        for c, found in enumerate(self._found):
            if len(found) > self._most:
                self._cut(c)
        return {i: x for found in self._found for i, (_, x) in found.items()}


def ahead(blocks: Iterable[T]) -> Iterator[T]:
    """Iterate, the next block being read while one is worked on."""
    end, iterator = object(), iter(blocks)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, iterator, end)
        while (block := coming.result()) is not end:
            coming = reader.submit(next, iterator, end)
            yield block  # type: ignore[misc]


def _by_index(index: Array, X: Block) -> dict[int, Block]:
    """Examples by their index, each in memory of its own."""
    X = X.on_host()
    return {int(i): X[np.array([k])] for k, i in enumerate(index)}
