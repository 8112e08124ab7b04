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

# Memory of a block of examples: it stays in cache between the two products of a response. With
# smaller blocks, threads would wait for one another.
_BLOCK_BYTES = 2**22
# Lists of blocks that threads share: fixed, so that sums do not depend on the number of threads.
_MAX_CHUNKS = 8
# Memory of examples from which on compiled loops are worth the half second that loading them takes,
# some tens of passes through BLAS.
_SCANNED_BYTES = 2**25
# Least number of entries for each feature in a part, as each part has sums over all features.
_PER_FEATURE = 32


class Store(ABC):
    """Examples, in blocks that are visited in order.

    Attributes
    ----------
    shape : (n_examples, n_features)
    dtype : dtype
    sparse : bool
    one_pass : bool
        Whether the margins and the image of a response are computed block by block. For the second
        product, a block may still be in cache, which the examples as a whole are not.
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
        """Results of ``work(rows, blocks, *local)`` for parts of the examples, in order.

        ``local`` are arrays with a value for each example, or None.
        """

    def fold(
        self, work: Callable[..., T], merge: Callable[[T, T], T], rows: Rows, *local: Array | None
    ) -> T:
        """Results of ``map``, merged."""
        return reduce(merge, self.map(work, rows, *local))

    @abstractmethod
    def take(self, index: Array) -> Block:
        """Some of the examples, in the memory of this machine."""

    def few(self, index: Array) -> Block:
        """Some of the examples, left where they are, for a product with them."""
        return self.take(index)

    @abstractmethod
    def divided(self, constant: float) -> Store:
        """Examples divided by their norms, a constant feature being added first (0: none)."""

    def block_callback(self) -> BlockCallback | None:
        """What a pass that computes margins calls with every block and its margins, if anything."""
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
    """Blocks of X, in lists for threads to share; its first example has the index ``start``."""
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
    There are none where X is too small to make up for the time that loading such a loop takes, nor
    where its entries are not contiguous.
    """
    if X is None or not X.scannable or X.undivided.nbytes < _SCANNED_BYTES:
        return []
    X = X.undivided
    n, d = X.shape
    n_parts = min(_MAX_CHUNKS, max(1, X.size // (_PER_FEATURE * d)), n)
    ends = [n * i // n_parts for i in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]


def as_store(X: Any) -> Store:
    """Examples as a store: that of a matrix or a block is in memory."""
    return X if isinstance(X, Store) else MemoryStore(as_block(X))
