"""Blocks of examples that are read again for every pass, the next while one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.problem.matrix import Csr, Dense, Matrix, as_matrix, inverse

T = TypeVar("T")

HELD_BYTES = 2**28  # memory of the examples that were taken lately


class Blocks(Matrix):
    """Blocks of examples. Some of the examples take a pass, unless they were taken lately.

    Parameters
    ----------
    read : callable
        ``read()`` gives an iterator over matrices, anew each time.
    shape, dtype, sparse
        Those of all blocks together.
    changed : callable
        What is done to each block, by its place and its matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.blocks import Blocks
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> blocks = Blocks(lambda: iter([X[:2], X[2:]]), X.shape, X.dtype, sparse=False)
    >>> blocks.each(lambda block: float(block.array.sum()))
    [6.0, 9.0]
    >>> blocks[np.array([2, 0])].array
    array([[4., 5.],
           [0., 1.]])
    """

    in_memory = False

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        shape: tuple[int, int],
        dtype: Any,
        sparse: bool,
        changed: Callable[[slice, Any], Any] = lambda place, X: X,
    ) -> None:
        self._read, self._changed = read, changed
        self.shape, self.dtype, self.sparse = shape, np.dtype(dtype), sparse
        self._held: tuple[Array, Any] = (np.empty(0, int), None)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        start = 0
        for array in ahead(self._read()):
            X = as_matrix(array)
            place = slice(start, start + len(X))
            if len(X):
                yield place, self._changed(place, X)
            start = place.stop

    def each(self, work: Callable[..., T], *local: Any) -> list[T]:
        found: list[T] = []
        for place, X in self._blocks():
            found += X.each(work, *(a if a is None else a[place] for a in local))
        return found

    def __getitem__(self, index: Any) -> Any:
        wanted, place = np.unique(np.asarray(index), return_inverse=True)
        held, some = self._held
        missing = np.setdiff1d(wanted, held, assume_unique=True)
        if len(missing) or some is None:
            fetched = self._fetched(missing)
            some = fetched if some is None else stacked([some, fetched])
            held = np.concatenate([held, missing])
            order = np.argsort(held)
            held, some = held[order], some[order]
            if len(held) > len(wanted) and some.size * self.dtype.itemsize > HELD_BYTES:
                some, held = some[np.searchsorted(held, wanted)], wanted
            self._held = held, some
        return some[np.searchsorted(held, wanted)[place]]

    def _fetched(self, index: Array) -> Any:
        """Some examples, by their sorted indices, by a pass."""
        parts: list[Any] = []
        for place, X in self._blocks() if len(index) else ():
            here = index[slice(*np.searchsorted(index, [place.start, place.stop]))]
            if len(here):
                parts.append(X[here - place.start])
        if parts:
            return stacked(parts)
        none = np.zeros((0, self.shape[1]), self.dtype)
        return Csr(sp.csr_array(none)) if self.sparse else Dense(none)

    def _with(self, change: Callable[[slice, Any], Any], width: int) -> Any:
        before, shape = self._changed, (len(self), width)
        changed = lambda place, X: change(place, before(place, X))  # noqa: E731
        return Blocks(self._read, shape, self.dtype, self.sparse, changed)

    def about(self, mean: Array) -> Any:
        return self._with(lambda place, X: X.about(mean), self.shape[1])

    def absolute(self) -> Any:
        return self._with(lambda place, X: X.absolute(), self.shape[1])

    def divided(self, constant: float) -> Any:
        scale = inverse(np.hypot(self.norms(), constant))

        def change(place: slice, X: Any) -> Any:
            X = X.multiplied(scale[place].astype(X.dtype))
            return X.extended(constant * scale[place, None]) if constant else X

        other = self._with(change, self.shape[1] + (constant != 0.0))
        other.given, other.factor, other.constant = self, scale, constant
        return other

    def norms(self) -> Array:
        return np.concatenate(self.each(lambda X: X.norms()))

    def _of_blocks(self, *arguments: Any) -> Any:
        raise TypeError("this is asked of blocks, see each")

    written_out: Any = _of_blocks
    times = adjoint = squared = squared_norms = ends = stored = multiplied = extended = written_out


def stacked(parts: Sequence[Any]) -> Any:
    """Examples of several matrices in memory, one after the other."""
    arrays = [X.array for X in parts]
    if isinstance(parts[0], Csr):
        return Csr(sp.vstack(arrays, format="csr"))
    return Dense(np.concatenate(arrays))


def ahead(blocks: Iterable[T]) -> Iterator[T]:
    """Iterate, the next block being read while one is worked on."""
    end, iterator = object(), iter(blocks)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, iterator, end)
        while (block := coming.result()) is not end:
            coming = reader.submit(next, iterator, end)
            yield block  # type: ignore[misc]
