"""Data that live elsewhere: a source of blocks, which every pass reads again, under one contract.

A certificate is of one data set: that of the first pass. In every other pass all bytes of a block
are compared with those of the first one, by a checksum that sees their order, before any product
uses the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, NoReturn, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from marginsvm._rounding import check_exact
from marginsvm._typing import Array, Stored
from marginsvm.problem.matrix import FLOAT32, FLOAT64, Blocks, check_format

T = TypeVar("T")


class Digest(NamedTuple):
    """What identifies the examples of a block: shape, type, and a checksum of all bytes."""

    shape: tuple[int, ...]
    dtype: np.dtype
    sum: int

    @classmethod
    def of(cls, X: Stored) -> Digest:
        """The digest of an array or a CSR matrix."""
        return cls(X.shape, X.dtype, checksum(X))

    def fault(self, X: Stored) -> str:
        """The difference of examples read again, in words; empty if there is none."""
        if X.shape[0] == self.shape[0] == 0:
            return ""
        if X.shape != self.shape:
            return f"its shape is {X.shape}, but was {self.shape}"
        if X.dtype != self.dtype:
            return f"its type is {X.dtype}, but was {self.dtype}"
        return "" if checksum(X) == self.sum else "it holds other numbers"


def checksum(X: Stored) -> int:
    """Checksum of the bytes of an array, or of the three arrays of a CSR matrix."""
    # importing numba takes a third of a second
    from marginsvm.problem.checksums import of_words

    found = 0
    arrays = [X] if isinstance(X, np.ndarray) else [X.indptr, X.indices, X.data]
    for array in arrays:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        end = len(data) - len(data) % 8
        found = crc32(data[end:].data, of_words(data[:end].view(np.uint64), found))
    return found


class Layout(NamedTuple):
    """All blocks together: empty ones included, their digests, and the kind of their matrices."""

    digests: list[Digest]
    width: int
    dtype: np.dtype
    sparse: bool

    @property
    def sizes(self) -> list[int]:
        """Numbers of examples."""
        return [digest.shape[0] for digest in self.digests]


class Source:
    """A source of blocks ``(X, y)`` or ``(X, y, sample_weight)``, with a count of its passes.

    Parameters
    ----------
    given : iterable
        Each iteration begins anew. If its iterator is a generator, errors of a block are raised
        there, where the block was yielded: it may add the name of the file. Blocks are copied, as
        the next one may be read into the same memory while a thread works on this one; but not
        the arrays and sparse matrices of a list or tuple, or of a source whose attribute
        ``reuses_memory`` is False.
    """

    def __init__(self, given: Iterable[object]) -> None:
        self.given = given
        self.passes = 0
        lasts = type(given) in (list, tuple)
        self.reuses_memory = not lasts and getattr(given, "reuses_memory", True)

    def first(self, look: Callable[[int, object], T]) -> Iterator[T]:
        """``look(number, block)`` of each block in a pass."""
        blocks = self._begin()
        for number, block in enumerate(blocks):
            try:
                found = look(number, block)
            except (ValueError, TypeError) as error:
                refuse(blocks, error)
            yield found

    def read(self) -> tuple[Callable[[Array], Blocks], Array, Array]:
        """Examples, a function of the indices that are kept; labels and weights. A pass."""
        found = [*self.first(_read_block)]
        digests, y, weight, sparse = zip(*found, strict=True)
        widths = {digest.shape[1] for digest in digests}
        if len(widths) > 1:
            raise ValueError(f"blocks differ in their number of features: {widths}")
        dtype = np.result_type(*(digest.dtype for digest in digests))
        layout = Layout([*digests], widths.pop(), dtype, any(sparse))
        matrix = partial(self.again, layout)
        return matrix, np.concatenate(y), np.concatenate(weight)

    def again(self, layout: Layout, kept: Array) -> Blocks:
        """The examples with these indices, as blocks that each pass reads again."""
        shape = len(kept), layout.width
        read = partial(self._read, layout, kept)
        return Blocks(read, shape, layout.dtype, layout.sparse)

    def _begin(self) -> Iterator[object]:
        self.passes += 1
        try:
            blocks = iter(self.given)
        except TypeError:
            raise TypeError(
                "a source must be iterable, yielding blocks (X, y) or (X, y, sample_weight), but "
                f"got {type(self.given).__name__}"
            ) from None
        if blocks is self.given:
            raise TypeError(
                f"a source is read several times, but this {type(self.given).__name__} can be read "
                "only once; pass a list of blocks, or an object whose __iter__ begins anew"
            )
        return blocks

    def _read(self, layout: Layout, kept: Array) -> Iterator[Stored]:
        """The examples of each block that are kept, once they are those of the first pass."""
        blocks = self._begin()
        end = 0
        number = -1
        every = len(kept) == sum(layout.sizes)
        for number, block in enumerate(blocks):
            try:
                if number == len(layout.digests):
                    raise ValueError("there was no such block")
                X = examples_of(block)
                if fault := layout.digests[number].fault(X):
                    raise ValueError(fault)
            except (ValueError, TypeError) as error:
                refuse(blocks, self._changed(number, error))
            start = end
            end = end + X.shape[0]
            if start == end:
                continue
            assert isinstance(block, tuple)
            lasts = isinstance(block[0], np.ndarray) or sp.issparse(block[0])
            X = X.astype(layout.dtype, copy=self.reuses_memory or not lasts)
            if not every:
                X = X[kept[slice(*np.searchsorted(kept, [start, end]))] - start]
            yield X
        if number + 1 < len(layout.digests):
            raise self._changed(number + 1, ValueError("it is missing"))

    def _changed(self, number: int, error: Exception) -> ValueError:
        return ValueError(
            f"the source changed between two passes: block {number} of pass {self.passes} is not "
            f"that of the first pass: {error}. Every iteration must give the same blocks"
        )


def _read_block(number: int, block: object) -> tuple[Digest, Array, Array, bool]:
    """Digest, copies of labels and weights of a block, and whether it is sparse."""
    X = examples_of(block)
    _, y, weight = unpacked(block)
    m = np.ones(X.shape[0]) if weight is None else np.array(weight, FLOAT64)
    return Digest.of(X), np.array(y), np.broadcast_to(m, X.shape[0]), sp.issparse(X)


def refuse(blocks: Iterator[object], error: Exception) -> NoReturn:
    """Raise an error of the last block where its source yielded it."""
    throw = getattr(blocks, "throw", None)
    if throw is not None:
        throw(error)
    raise error


def unpacked(block: object) -> tuple[Stored, npt.ArrayLike, npt.ArrayLike | None]:
    """Examples, labels and sample weights (or None) of a block."""
    if not isinstance(block, tuple) or len(block) not in (2, 3):
        raise ValueError(
            "a block must be a tuple (X, y) or (X, y, sample_weight), but got "
            f"{type(block).__name__}"
        )
    X, y, weight = (*block, None)[:3]
    return X if hasattr(X, "shape") else np.asarray(X), y, weight


def examples_of(block: object) -> Stored:
    """The examples of a block, as a matrix of floats."""
    X = unpacked(block)[0]
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype in (FLOAT64, FLOAT32):
        return X  # a check takes as long as a product of a small block
    check_format(X)
    check_exact(X)
    how: dict[str, object] = {"ensure_all_finite": False, "ensure_min_samples": 0}
    how["ensure_min_features"] = 0
    return check_array(X, accept_sparse="csr", dtype=[FLOAT64, FLOAT32], **how)
