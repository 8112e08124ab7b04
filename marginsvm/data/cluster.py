"""Examples on the workers of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.data.block import Block
from marginsvm.data.csr import as_block
from marginsvm.data.memory import Store, chunks
from marginsvm.data.messages import ChunkQuestion, Part, ask
from marginsvm.data.normalized import normalized
from marginsvm.data.passes import Located
from marginsvm.data.threads import single_threaded_blas
from marginsvm.rows import Rows

T = TypeVar("T")

_NO_MEMORY = np.empty(0)


@dataclass
class Chunk:
    """Examples on a worker, with their rows."""

    X: Any
    rows: Rows

    def blocks(self) -> Sequence[Located]:
        """Blocks that stay in a processor's cache."""
        return AlignedBlocks([block for some in chunks(as_block(self.X)) for block in some])


class AlignedBlocks(Sequence[Located]):
    """Blocks that are copied to aligned memory, if they are not aligned, when their turn comes.

    An array that Dask has received from another process lies as it was in the message, often not
    aligned. NumPy then copies it for every product into new memory, which costs a worker of Dask
    ten times as much as the copy itself. Here each thread has memory for one block, which is
    overwritten by the next.
    """

    _memory = threading.local()

    def __init__(self, blocks: list[Located]) -> None:
        self._blocks = blocks

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, i: Any) -> Any:
        return self._blocks[i]

    def __iter__(self) -> Iterator[Located]:
        return ((part, X.aligned(self._room)) for part, X in self._blocks)

    def _room(self, size: int) -> Array:
        """Memory of this thread."""
        if getattr(self._memory, "bytes", _NO_MEMORY).nbytes < size:
            self._memory.bytes = np.empty(size, np.uint8)
        return self._memory.bytes[:size]


class RemoteStore(Store):
    """Chunks on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client, or what maps and gathers like it
    chunks : list of Future
        Each of a Chunk.
    sizes : ndarray of int
        Number of examples in each.
    n_features : int
    dtype : dtype
    sparse : bool
    normalized : bool, default=False
    """

    one_pass = True
    remote = True

    def __init__(
        self,
        client: Any,
        chunks: list[Any],
        sizes: Array,
        n_features: int,
        dtype: np.dtype,
        sparse: bool,
        normalized: bool = False,
    ) -> None:
        self._client, self._chunks, self._sizes = client, chunks, sizes
        self.normalized, self._ends = normalized, np.cumsum(sizes)
        self._parts = [slice(e - n, e) for e, n in zip(self._ends, sizes, strict=True)]
        self.shape, self.dtype, self.sparse = (int(self._ends[-1]), n_features), dtype, sparse

    def map(self, work: Callable[..., T], rows: Rows, *local: Array | None) -> Iterator[T]:
        question = ChunkQuestion(partial(_run, work), len(self._chunks))
        yield from (result for _, result in self._ask(question, self._cut(local)))

    def fold(
        self, work: Callable[..., T], merge: Callable[[T, T], T], rows: Rows, *local: Array | None
    ) -> T:
        question = ChunkQuestion(partial(_run, work), len(self._chunks), merge)
        return question.merged(self._ask(question, self._cut(local)))

    def take(self, index: Array) -> Block:
        where = np.searchsorted(self._ends, index, side="right")
        order = np.argsort(where, kind="stable")
        given = {int(c): (index[where == c] - self._parts[c].start,) for c in np.unique(where)}
        found = [x for _, x in self._ask(ChunkQuestion(_take, len(self._chunks)), given)]
        stacked = type(found[0]).stacked(found)
        return stacked[np.argsort(order, kind="stable")]

    def divided(self, constant: float) -> RemoteStore:
        chunks = self._client.map(_divided, self._chunks, constant=constant)
        width = self.shape[1] + (constant != 0.0)
        return RemoteStore(
            self._client, chunks, self._sizes, width, self.dtype, self.sparse, normalized=True
        )

    def _ask(self, question: ChunkQuestion[T], given: dict[int, tuple[Any, ...]]) -> list[Part[T]]:
        return ask(self._client, self._chunks, question, given)

    def _cut(self, local: tuple[Array | None, ...]) -> dict[int, tuple[Array | None, ...]]:
        """The parts of arrays with a value for each example that belong to each chunk."""
        parts = enumerate(self._parts)
        return {c: tuple(None if a is None else a[part] for a in local) for c, part in parts}


def _run(work: Callable[..., T], chunk: Chunk, *local: Array | None) -> T:
    with single_threaded_blas():
        return work(chunk.rows, chunk.blocks(), *local)


def _divided(chunk: Chunk, constant: float) -> Chunk:
    return replace(chunk, X=normalized(chunk.X, constant))


def _take(chunk: Chunk, index: Array) -> Block:
    return as_block(chunk.X)[index].on_host()
