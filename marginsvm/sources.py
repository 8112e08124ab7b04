"""Ready-made sources of blocks for ``fit_blocks``: arrays, memory maps and folders of files.

A source is any object whose ``__iter__`` begins anew each time and yields blocks ``(X, y)`` or
``(X, y, sample_weight)``. Those here are cheap to make and to pickle: files are opened when the
blocks are asked for. Every pass reads again, so text and compressed files cost their parsing
each time; ``numpy.save`` is worth it where there are many passes.
"""

from __future__ import annotations

import bz2
import gzip
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from marginsvm._typing import Array

__all__ = ["ArrayBlocks", "ParquetBlocks", "SvmlightBlocks"]

Files: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

BLOCK_BYTES = 2**25  # to begin a block costs nothing next to it, and a few are soon held
PAGE_BYTES = 4096


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
    >>> from marginsvm.sources import ArrayBlocks
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
        >>> from marginsvm.sources import ArrayBlocks
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
                version = np.lib.format.read_magic(file)
                read = getattr(np.lib.format, f"read_array_header_{version[0]}_{version[1]}")
                shape, fortran, dtype = read(file)
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
            part.reshape(-1).view(np.uint8)[::PAGE_BYTES].max()  # reads the pages here and now
        return part


class ParquetBlocks:
    """Blocks of rows of Parquet files: numeric columns become a matrix.

    Parameters
    ----------
    files : path of a folder or of a file, or a list of paths of files
        Of a folder, all ``.parquet`` files in it and below it, sorted by path.
    target : str
        Column with the labels.
    sample_weight : str, default None
        Column with the weights of the examples.
    columns : list of str, default None
        The features. By default all columns of the first file but the target and the weights.
    block_rows : int, default None
        Examples in a block, at most; by default as many as fill 32 MiB.

    Attributes
    ----------
    columns : list of str
        The features, in the order of the matrix's columns: that of the first file, or as given.

    Raises
    ------
    ImportError
        Without pyarrow, which comes with the extra ``parquet``.
    ValueError
        If there is no file; if one lacks a column, has one that is not numeric, or has a null.
        The text names file and column.

    Notes
    -----
    The blocks of a file are float32 if that holds all its features, else float64. Most of the time
    of a pass is decoding. If many passes are needed, write the blocks to a ``.npy`` file first.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> import pyarrow.parquet
    >>> from marginsvm.sources import ParquetBlocks
    >>> folder = Path(tempfile.mkdtemp())
    >>> table = pa.table({"height": [1.8, 1.6], "weight": [80, 50], "label": ["a", "b"]})
    >>> pa.parquet.write_table(table, folder / "0.parquet")
    >>> source = ParquetBlocks(folder, target="label")
    >>> source
    ParquetBlocks(1 file, 2 features, target='label')
    >>> [(X.tolist(), y.tolist()) for X, y in source]
    [([[1.8, 80.0], [1.6, 50.0]], ['a', 'b'])]
    """

    def __init__(
        self,
        files: Files,
        target: str,
        sample_weight: str | None = None,
        *,
        columns: list[str] | None = None,
        block_rows: int | None = None,
    ) -> None:
        parquet = _pyarrow().parquet
        self.files = listed(files, "*.parquet")
        self.target, self.sample_weight = target, sample_weight
        schema = parquet.read_schema(self.files[0])
        others = [name for name in schema.names if name not in (target, sample_weight)]
        self.columns = others if columns is None else list(columns)
        if not self.columns or not set(self.columns).isdisjoint((target, sample_weight)):
            raise ValueError(
                f"the features must be columns besides {target!r} and {sample_weight!r}, but they "
                f"are {self.columns}"
            )
        self._dtype(self.files[0], schema)
        self.block_rows = rows_in_block(block_rows, 8 * len(self.columns))

    @property
    def _used(self) -> list[str]:
        extra = [] if self.sample_weight is None else [self.sample_weight]
        return [*self.columns, self.target, *extra]

    def _dtype(self, path: str, schema: Any) -> np.dtype:
        """What the features need, once it is clear that the file has all that is wanted."""
        kinds = _pyarrow().types
        numeric = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
        for name in self._used:
            if schema.names.count(name) != 1:
                raise ValueError(
                    f"{path} must have one column {name!r}, but its columns are "
                    f"{', '.join(schema.names)}"
                )
            kind = schema.field(name).type
            if name != self.target and not any(test(kind) for test in numeric):
                raise ValueError(
                    f"column {name!r} of {path} is of type {kind}, not numeric: encode it, or "
                    "leave it out by columns="
                )
        found = [schema.field(name).type.to_pandas_dtype() for name in self.columns]
        narrow = all(np.can_cast(dtype, np.float32) for dtype in found)
        return np.dtype(np.float32 if narrow else np.float64)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for path in self.files:
            with _pyarrow().parquet.ParquetFile(path, memory_map=True) as file:
                dtype = self._dtype(path, file.schema_arrow)
                for batch in file.iter_batches(self.block_rows, columns=self._used):
                    yield self._block(path, batch, dtype)

    def _block(self, path: str, batch: Any, dtype: np.dtype) -> tuple[Any, ...]:
        pa = _pyarrow()
        for name in self._used:
            nulls = batch.column(name).null_count
            if nulls:
                raise ValueError(
                    f"column {name!r} of {path} has nulls ({nulls} in a block of "
                    f"{batch.num_rows} rows): fill them, or drop the rows or the column"
                )
        wanted = pa.schema([(name, pa.from_numpy_dtype(dtype)) for name in self.columns])
        X = batch.select(self.columns).cast(wanted, safe=False).to_tensor(row_major=True)
        rest = self._used[len(self.columns) :]
        return X.to_numpy(), *(batch.column(name).to_numpy(zero_copy_only=False) for name in rest)

    def __repr__(self) -> str:
        weight = "" if self.sample_weight is None else f", sample_weight={self.sample_weight!r}"
        return (
            f"ParquetBlocks({count(self.files)}, {len(self.columns)} features, "
            f"target={self.target!r}{weight})"
        )


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("ParquetBlocks needs pyarrow: pip install marginsvm[parquet]") from error
    return pyarrow


class SvmlightBlocks:
    r"""Blocks of CSR rows of files in the SVMlight (LibSVM) format.

    Parameters
    ----------
    files : path of a file, plain, ``.gz`` or ``.bz2``; or a list of paths
    n_features : int, default None
        Without it, the first iteration begins with a pass that looks for the largest index.
    zero_based : bool, default False
        Whether the first feature's index in the files is 0 rather than 1.
    block_bytes : int, default 2**23
        Length of the text in a block, which ends with the next line.

    Attributes
    ----------
    n_features : int
        Number of columns.

    Raises
    ------
    ValueError
        If there is no file, or one cannot be parsed; the text names it.

    Notes
    -----
    Blocks are parsed by :func:`sklearn.datasets.load_svmlight_file`, which takes most of the time
    of a pass. They are cut at the ends of lines here, because its own ``offset`` and ``length``
    give rows twice if a comment or a long line lies across a border.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginsvm.sources import SvmlightBlocks
    >>> path = Path(tempfile.mkdtemp()) / "set.svm"
    >>> _ = path.write_text("1 1:0.5 3:2\n-1 2:1\n")
    >>> source = SvmlightBlocks(path)
    >>> [(X.toarray().tolist(), y.tolist()) for X, y in source]
    [([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])]
    >>> source
    SvmlightBlocks(1 file, n_features=3)
    """

    def __init__(
        self,
        files: Files,
        n_features: int | None = None,
        *,
        zero_based: bool = False,
        block_bytes: int = 2**23,
    ) -> None:
        self.files = listed(files)
        self.zero_based, self.block_bytes = zero_based, positive("block_bytes", block_bytes)
        if n_features is not None:
            self.n_features = positive("n_features", n_features)

    @cached_property
    def n_features(self) -> int:
        return max((X.shape[1] for X, _ in self._read(None)), default=1)

    def __iter__(self) -> Iterator[tuple[Any, Array]]:
        return self._read(self.n_features)

    def _read(self, n_features: int | None) -> Iterator[tuple[Any, Array]]:
        for path in self.files:
            suffixes: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
            opened = suffixes.get(Path(path).suffix, open)
            with opened(path, "rb") as file:
                start = 0
                while text := file.read(self.block_bytes) + file.readline():
                    try:
                        X, y = load_svmlight_file(
                            BytesIO(text), n_features=n_features, zero_based=self.zero_based
                        )
                    except ValueError as error:
                        stop = start + len(text)
                        raise ValueError(f"{path}, bytes {start} to {stop}: {error}") from error
                    start += len(text)
                    yield X, y

    def __repr__(self) -> str:
        known = self.__dict__.get("n_features", "not counted yet")
        return f"SvmlightBlocks({count(self.files)}, n_features={known})"


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


def _row_bytes(X: Any) -> float:
    size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
    return size / max(1, X.shape[0])


def positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, but got {value}")
    return value


def rows_in_block(given: int | None, row_bytes: float) -> int:
    """Rows in a block: as given, or as many as fill it."""
    if given is not None:
        return positive("block_rows", given)
    return max(1, int(BLOCK_BYTES / max(1.0, row_bytes)))


def listed(files: Files, pattern: str = "") -> list[str]:
    """Absolute paths of files that are there; of a folder, those that match the pattern."""
    if isinstance(files, (str, os.PathLike)):
        path = Path(files)
        paths = sorted(path.rglob(pattern)) if pattern and path.is_dir() else [path]
    else:
        paths = [Path(path) for path in files]
    if not paths:
        raise ValueError(f"there is no file {pattern} in {files}")
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file")
    return [os.path.abspath(path) for path in paths]


def count(files: list[str]) -> str:
    """In words."""
    return f"{len(files)} file{'s' * (len(files) > 1)}"
