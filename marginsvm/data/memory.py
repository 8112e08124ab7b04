"""Stores of examples, which passes read block by block, and the store of examples in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.data.block import Block
from marginsvm.data.csr import as_block
from marginsvm.data.normalized import normalized
from marginsvm.data.passes import BlockCallback, Located
from marginsvm.data.threads import ordered_map
from marginsvm.rows import Rows

T = TypeVar("T")

# Memory of a block of examples: it stays in cache between its two products. In smaller blocks,
# threads would wait for one another.
_BLOCK_BYTES = 2**22
# Lists of blocks that threads share: fixed, so that sums do not depend on the number of threads.
_MAX_CHUNKS = 8
# Memory of examples from which on compiled loops, which take half a second to load for the first
# time, are worth it: that is some tens of passes through BLAS.
_SCANNED_BYTES = 2**25
# Numbers of a part for each feature at least, as each part has its own sums over all features.
_PER_FEATURE = 32


class Store(ABC):
    """Examples, in blocks that are visited in order.

    Attributes
    ----------
    shape : (n_examples, n_features)
    dtype : dtype
    sparse : bool
    one_pass : bool
        Whether a response is to be computed block by block, as a block is quicker to read for its
        second product than all examples are.
    whole : Block or None
        All examples, if they are in memory.
    normalized : bool
        Whether the examples are divided by their norms, see ``divided``.
    at_hand : bool
        Whether some of the examples can be taken without a pass over all.
    remote : bool
        Whether they are on other machines, so that what is sent should not grow with their number.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    sparse: bool
    one_pass: bool
    whole: Block | None = None
    normalized: bool = False
    at_hand: bool = False
    remote: bool = False

    @abstractmethod
    def map(self, work: Callable[..., T], rows: Rows, *local: Array | None) -> Iterator[T]:
        """``work(rows, blocks, *local)`` for parts of the examples, results in order."""

    def fold(
        self, work: Callable[..., T], merge: Callable[[T, T], T], rows: Rows, *local: Array | None
    ) -> T:
        """Results of ``map``, merged."""
        return reduce(merge, self.map(work, rows, *local))

    @abstractmethod
    def take(self, index: Array) -> Block:
        """Some of the examples, in the memory of this machine."""

    def few(self, index: Array) -> Block:
        """Some of the examples, for a product with them where they are."""
        return self.take(index)

    @abstractmethod
    def divided(self, constant: float) -> Store:
        """Examples divided by their norms, after a constant feature joined each (0: none)."""

    def block_callback(self) -> BlockCallback | None:
        """What is to be called with every block of a pass that computes margins, if anything is."""
        return None


class MemoryStore(Store):
    """A matrix in memory (or mapped into it), never copied.

    Parameters
    ----------
    X : Block of shape (n_examples, n_features)
    """

    at_hand = True

    whole: Block

    def __init__(self, X: Block) -> None:
        self.whole = X
        self.shape, self.dtype = X.shape, X.dtype
        self.sparse, self.normalized = X.csr is not None, X.scale is not None
        self._chunks = chunks(X)
        self.one_pass = sum(len(chunk) for chunk in self._chunks) > 1

    def map(self, work: Callable[..., T], rows: Rows, *local: Array | None) -> Iterator[T]:
        """Blocks in some threads."""

        def part(blocks: list[Located]) -> T:
            return work(rows, blocks, *local)

        if self.sparse:  # no BLAS to confine
            return iter([part(chunk) for chunk in self._chunks])
        return iter(ordered_map(part, self._chunks))

    def take(self, index: Array) -> Block:
        return self.whole[index].on_host()

    def divided(self, constant: float) -> MemoryStore:
        """Examples divided by their norms; X is not copied."""
        return MemoryStore(normalized(self.whole, constant))


def chunks(X: Block, start: int = 0) -> list[list[Located]]:
    """Blocks of X, in lists for threads to share; its rows count from ``start``."""
    n, size = len(X), X.examples_in(_BLOCK_BYTES)
    blocks = [
        (slice(start + i, start + min(i + size, n)), X[i : i + size] if size < n else X)
        for i in range(0, n, size)
    ]
    per_chunk = max(1, -(-len(blocks) // _MAX_CHUNKS))
    return [blocks[i : i + per_chunk] for i in range(0, len(blocks), per_chunk)]


def parts_to_scan(X: Block | None) -> list[slice]:
    """Parts of the examples for compiled loops, of which threads take one after the other.

    Their number depends on the shape alone, so that sums do not depend on the number of threads.
    There are none where X is so small that the time to load such a loop is not made up for, nor
    where its numbers do not lie side by side.
    """
    if X is None or not X.scannable or X.undivided.nbytes < _SCANNED_BYTES:
        return []
    X = X.undivided
    n, d = X.shape
    n_parts = min(_MAX_CHUNKS, max(1, X.size // (_PER_FEATURE * d)), n)
    ends = [n * i // n_parts for i in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]


def as_store(X: Any) -> Store:
    """Examples as a store: a matrix or a block is one in memory."""
    return X if isinstance(X, Store) else MemoryStore(as_block(X))
