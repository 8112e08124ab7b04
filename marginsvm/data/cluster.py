"""Examples on the workers of a cluster, reached through a client's map, submit and gather."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.data.memory import Store, chunks
from marginsvm.data.normalized import NormalizedRows, normalized
from marginsvm.data.passes import Block
from marginsvm.data.threads import single_threaded_blas
from marginsvm.rows import Rows

T = TypeVar("T")

# Results that a worker merges at once: with fewer, messages cost more than merging saves.
_BRANCHES = 8


@dataclass
class Chunk:
    """Examples on a worker, with their rows."""

    X: Any
    rows: Rows

    def blocks(self) -> list[Block]:
        """Pieces that stay in cache."""
        return [block for some in chunks(self.X) for block in some]


class RemoteStore(Store):
    """Chunks on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client, or what maps and gathers like it
    chunks : list of Future
        Of Chunk.
    sizes : list of int
        Examples in each.
    n_features : int
    dtype : dtype
    sparse : bool
    normalized : bool, default=False
    """

    n_blocks = 2  # or more
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
        parts = self._client.map(_run, self._chunks, self._cut(local), work=work, pure=False)
        yield from self._client.gather(parts)

    def fold(
        self, work: Callable[..., T], merge: Callable[[T, T], T], rows: Rows, *local: Array | None
    ) -> T:
        arrays = self._cut(local)
        parts = [
            self._client.submit(
                _fold,
                [self._chunks[c] for c in group],
                [arrays[c] for c in group],
                work,
                merge,
                pure=False,
            )
            for group in self._groups
        ]
        while len(parts) > _BRANCHES:
            groups = [parts[i : i + _BRANCHES] for i in range(0, len(parts), _BRANCHES)]
            parts = self._client.map(partial(reduce, merge), groups, pure=False)
        return reduce(merge, self._client.gather(parts))

    def take(self, index: Array) -> Any:
        where = np.searchsorted(self._ends, index, side="right")
        order = np.argsort(where, kind="stable")
        found = self._client.gather(
            [
                self._client.submit(
                    _take, self._chunks[c], index[where == c] - self._parts[c].start, pure=False
                )
                for c in np.unique(where)
            ]
        )
        sparse = sp.issparse(found[0])  # normalised examples come written out
        stacked = sp.vstack(found, format="csr") if sparse else np.concatenate(found)
        return stacked[np.argsort(order, kind="stable")]

    def divided(self, constant: float) -> RemoteStore:
        chunks = self._client.map(_divided, self._chunks, constant=constant)
        width = self.shape[1] + (constant != 0.0)
        return RemoteStore(
            self._client, chunks, self._sizes, width, self.dtype, self.sparse, normalized=True
        )

    def _cut(self, local: tuple[Array | None, ...]) -> list[list[Array | None]]:
        """What belongs to each chunk."""
        return [[None if a is None else a[part] for a in local] for part in self._parts]

    @cached_property
    def _groups(self) -> list[list[int]]:
        """Chunks by the worker that holds them, one list a thread: a task each."""
        self._client.gather(self._client.map(_size, self._chunks, pure=False))  # all are there
        holders, threads = self._client.who_has(self._chunks), self._client.nthreads()
        held: dict[str, list[int]] = {}
        for c, chunk in enumerate(self._chunks):
            held.setdefault(min(holders[chunk.key]), []).append(c)
        lists = [mine[t :: threads[w]] for w, mine in held.items() for t in range(threads[w])]
        return [some for some in lists if some]


def _run(chunk: Chunk, local: list[Array | None], work: Callable[..., T]) -> T:
    with single_threaded_blas():
        return work(chunk.rows, chunk.blocks(), *local)


def _fold(
    chunks: list[Chunk],
    local: list[list[Array | None]],
    work: Callable[..., T],
    merge: Callable[[T, T], T],
) -> T:
    return reduce(merge, (_run(c, a, work) for c, a in zip(chunks, local, strict=True)))


def _size(chunk: Chunk) -> int:
    return len(chunk.rows.codes)


def _divided(chunk: Chunk, constant: float) -> Chunk:
    return replace(chunk, X=normalized(chunk.X, constant))


def _take(chunk: Chunk, index: Array) -> Any:
    X = chunk.X[index]
    return X.toarray() if isinstance(X, NormalizedRows) else X
