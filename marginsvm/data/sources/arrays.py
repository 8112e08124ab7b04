"""Arrays in memory, or in files of NumPy's."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.data.sources._files import rows_in_block

_PAGE_BYTES = 4096


class ArrayBlocks:
    """Blocks of arrays that lie in memory or in ``.npy`` and ``.npz`` files.

    Files are mapped into memory block by block. A block is read when it is asked for (in
    ``fit_blocks``, by the thread that reads ahead), and its memory is released afterwards.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_examples, n_features), or path of a ``.npy`` file
    y : array-like of shape (n_examples,), or path of a ``.npy`` file
    sample_weight : array-like of shape (n_examples,), or path of a ``.npy`` file; default None
    block_rows : int, default None
        Examples in a block; by default as many as fill 32 MiB.

    Attributes
    ----------
    shape : (n_examples, n_features)

    Raises
    ------
    ValueError
        If shapes do not match, or a file cannot be mapped; the message says what to do.

    Notes
    -----
    Give the path of a file rather than an open ``numpy.memmap``: pickling a memmap writes all that
    is in the file, and what was read of it stays in memory. A file in Fortran order works, but
    reading its rows is slower.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from marginsvm.data.sources import ArrayBlocks
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", np.arange(10.0).reshape(5, 2))
    >>> np.save(folder / "y.npy", [0, 1, 0, 1, 1])
    >>> source = ArrayBlocks(folder / "X.npy", folder / "y.npy", block_rows=2)
    >>> [X.shape for X, y in source]
    [(2, 2), (2, 2), (1, 2)]
    >>> source
    ArrayBlocks(5 x 2 float64, 3 blocks of 2 rows, 'X.npy')
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any = None, *, block_rows: int | None = None
    ) -> None:
        first = _sliceable("X", X, 2)
        self._parts = [first, _sliceable("y", y, 1)]
        if sample_weight is not None:
            self._parts.append(_sliceable("sample_weight", sample_weight, 1))
        sizes = [part.shape[0] for part in self._parts]
        if len(set(sizes)) > 1:
            raise ValueError(f"X, y and sample_weight must be as long as one another: {sizes}")
        self.shape: tuple[int, int] = first.shape
        self.block_rows = rows_in_block(block_rows, _row_bytes(first))

    @classmethod
    def from_npz(
        cls,
        path: str | os.PathLike[str],
        *,
        X: str = "X",
        y: str = "y",
        sample_weight: str | None = None,
        block_rows: int | None = None,
    ) -> ArrayBlocks:
        """Blocks of arrays that ``numpy.savez`` wrote into one file, read where they lie.

        Parameters
        ----------
        path : path of the ``.npz`` file
        X, y, sample_weight : str
            The names under which they were saved.
        block_rows : int, default None
            Examples in a block; by default as many as fill 32 MiB.

        Returns
        -------
        ArrayBlocks

        Raises
        ------
        ValueError
            If the file is compressed, or lacks a name.

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> from pathlib import Path
        >>> from marginsvm.data.sources import ArrayBlocks
        >>> path = Path(tempfile.mkdtemp()) / "set.npz"
        >>> np.savez(path, X=np.eye(3), labels=[0, 1, 1])
        >>> [y.tolist() for X, y in ArrayBlocks.from_npz(path, y="labels", block_rows=2)]
        [[0, 1], [1]]
        """
        weight = None if sample_weight is None else _Stored.member(path, sample_weight)
        return cls(_Stored.member(path, X), _Stored.member(path, y), weight, block_rows=block_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for start in range(0, self.shape[0], self.block_rows):
            yield tuple(part[start : start + self.block_rows] for part in self._parts)

    def __repr__(self) -> str:
        n, d = self.shape
        X, blocks = self._parts[0], -(-n // self.block_rows)
        where = repr(Path(X.path).name) if isinstance(X, _Stored) else "in memory"
        return (
            f"ArrayBlocks({n} x {d} {X.dtype}, {blocks} blocks of {self.block_rows} rows, {where})"
        )


@dataclass(frozen=True)
class _Stored:
    """An array in a file, mapped slice by slice."""

    path: str
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool

    @classmethod
    def at(cls, path: str | os.PathLike[str], start: int = 0) -> _Stored:
        """The array whose ``.npy`` header is at this place of the file."""
        path = os.path.abspath(path)
        with open(path, "rb") as file:
            file.seek(start)
            try:
                shape, fortran, dtype = _header(file)
            except ValueError as error:
                raise ValueError(
                    f"{path} is not a file of np.save (for np.savez, use from_npz): {error}"
                ) from error
            found = cls(path, file.tell(), dtype, shape, fortran)
        if dtype.hasobject:
            raise ValueError(f"{path} holds Python objects, which cannot be mapped; save numbers")
        size, wanted = os.path.getsize(path), found.offset + found.nbytes
        if size < wanted:
            raise ValueError(f"{path} is cut short: it has {size} bytes instead of {wanted}")
        return found

    @classmethod
    def member(cls, path: str | os.PathLike[str], name: str) -> _Stored:
        """An array in an uncompressed ``.npz`` file."""
        with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if name not in members:
                raise ValueError(f"{path} has no array {name!r}, but {', '.join(members)}")
            info = members[name]
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(
                    f"{name!r} in {path} is compressed and cannot be mapped: write the file with "
                    "np.savez instead of np.savez_compressed"
                )
            file.seek(info.header_offset + 26)  # the local header: 30 bytes, a name, extra fields
            lengths = np.frombuffer(file.read(4), "<u2")
        return cls.at(path, info.header_offset + 30 + int(lengths.sum()))

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __getitem__(self, rows: slice) -> Array:
        order: Any = "F" if self.fortran else "C"
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)
        part = np.require(mapped[rows], requirements=["ALIGNED", "ENSUREARRAY"])
        if part.flags.c_contiguous and part.size:
            part.reshape(-1).view(np.uint8)[::_PAGE_BYTES].max()  # reads the pages here and now
        return part


def _sliceable(name: str, given: Any, dimensions: int) -> Any:
    """What gives rows by a slice."""
    part: Any = _Stored.at(given) if isinstance(given, (str, os.PathLike)) else given
    if sp.issparse(part):
        if part.format != "csr":
            raise ValueError(f"{name} is in the format {part.format}: pass {name}.tocsr()")
    elif not isinstance(part, _Stored):
        part = np.asarray(part)
    if len(part.shape) != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, but its shape is {part.shape}")
    return part


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran's order, and dtype; the file stands at the data then."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _row_bytes(X: Any) -> float:
    size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
    return size / max(1, X.shape[0])
