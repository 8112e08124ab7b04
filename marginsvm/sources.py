"""Ready-made sources of blocks for ``fit_blocks``: arrays and files.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from marginsvm._threads import cached_property
from marginsvm._typing import Array

__all__ = ["ArrayBlocks", "ParquetBlocks", "SvmlightBlocks"]

StrPath: TypeAlias = str | os.PathLike[str]
Files: TypeAlias = StrPath | Iterable[StrPath]

# Large enough to hide the cost of a block, small enough to stay in cache and for malloc to reuse.
BLOCK_BYTES = 2**21


class ArrayBlocks:
    """Blocks of arrays in memory or in ``.npy`` and ``.npz`` files.

    Files are read block by block, not mapped: a file that shrinks is an error, and does not end
    the process. A block is read when it is asked for, and its memory is released afterwards.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_examples, n_features), or path of a ``.npy`` file
    y : array-like of shape (n_examples,), or path of a ``.npy`` file
    sample_weight : array-like of shape (n_examples,), or path of a ``.npy`` file; default None
    block_rows : int, default None
        Examples in a block; by default as many as fill 2 MiB.

    Attributes
    ----------
    shape : (n_examples, n_features)

    Raises
    ------
    ValueError
        If shapes do not match, or a file cannot be read; the message names it.

    Notes
    -----
    Give the path of a file rather than an open ``numpy.memmap``: pickling a memmap writes the
    whole file, and what was read of it stays in memory. A file in Fortran order works, but
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

    reuses_memory = False  # of a block, for the next one

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        block_rows: int | None = None,
    ) -> None:
        first = _sliceable("X", X, 2)
        self._parts = [first, _sliceable("y", y, 1)]
        if sample_weight is not None:
            self._parts.append(_sliceable("sample_weight", sample_weight, 1))
        sizes = [part.shape[0] for part in self._parts]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"X, y and sample_weight must be as long as one another: {sizes}"
            )
        self.shape: tuple[int, int] = first.shape
        size = (
            first.data.nbytes + first.indices.nbytes
            if sp.issparse(first)
            else first.nbytes
        )
        self.block_rows = _rows_in_block(block_rows, size / max(1, self.shape[0]))

    @classmethod
    def from_npz(
        cls,
        path: StrPath,
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
            Examples in a block; by default as many as fill 2 MiB.

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
        names = (X, y) if sample_weight is None else (X, y, sample_weight)
        return cls(*(_Stored(path, name) for name in names), block_rows=block_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        with ExitStack() as files:
            readers = [
                part.opened(files) if isinstance(part, _Stored) else part.__getitem__
                for part in self._parts
            ]
            for start in range(0, self.shape[0], self.block_rows):
                rows = slice(start, start + self.block_rows)
                block = tuple(read(rows) for read in readers)
                with _naming(getattr(self._parts[0], "path", "")):
                    yield block

    def __repr__(self) -> str:
        X = self._parts[0]
        n, d = self.shape
        rows = self.block_rows
        where = repr(Path(X.path).name) if isinstance(X, _Stored) else "in memory"
        return f"ArrayBlocks({n} x {d} {X.dtype}, {-(-n // rows)} blocks of {rows} rows, {where})"


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name a file in errors of reading it, and in those of its blocks that are raised there."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if path in str(error):
            raise
        kind = type(error) if type(error) in (OSError, TypeError) else ValueError
        raise kind(f"{path}: {error}") from error


class _Stored:
    """An array in an ``.npy`` file, or of this name in an ``.npz`` file, read slice by slice."""

    def __init__(self, path: StrPath, name: str = "") -> None:
        self.path = os.path.abspath(path)
        self.name = name
        self._is_examined = not name
        with _naming(self.path), open(path, "rb") as file:
            file.seek(self._place() if name else 0)
            try:
                version = np.lib.format.read_magic(file)
                read = getattr(
                    np.lib.format, f"read_array_header_{version[0]}_{version[1]}"
                )
                self.shape, self.fortran, self.dtype = read(file)
            except ValueError as error:
                raise ValueError(
                    f"{path} is not a file of np.save (for np.savez, use from_npz): {error}"
                ) from error
            self.offset = file.tell()
        if self.dtype.hasobject:
            raise ValueError(
                f"{path} holds Python objects, which cannot be read so; save numbers"
            )
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        size = os.path.getsize(path)
        wanted = self.offset + self.nbytes
        if size < wanted:
            raise ValueError(
                f"{path} is cut short: it has {size} bytes instead of {wanted}"
            )

    def opened(self, files: ExitStack) -> Callable[[slice], Array]:
        """What reads rows, until the files are closed."""
        self._examine()
        with _naming(self.path):
            return partial(self._rows, files.enter_context(open(self.path, "rb")))

    def _rows(self, file: Any, rows: slice) -> Array:
        n = self.shape[0]
        start, end, _ = rows.indices(n)
        order: Any = "F" if self.fortran else "C"
        part = np.empty((end - start, *self.shape[1:]), self.dtype, order)
        runs = part.T if self.fortran else part[None]  # each lies in one piece
        # of a row there
        width = self.dtype.itemsize if self.fortran else self.nbytes // max(1, n)
        with _naming(self.path):
            for j, run in enumerate(runs):
                file.seek(self.offset + (j * n + start) * width)
                if file.readinto(run.reshape(-1).view(np.uint8)) < run.nbytes:
                    raise ValueError("it has become shorter")
        return part

    def _place(self) -> int:
        """Where the array begins in a file of ``numpy.savez``."""
        path = self.path
        name = self.name
        with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
            members = {
                info.filename.removesuffix(".npy"): info for info in archive.infolist()
            }
            if name not in members:
                raise ValueError(
                    f"{path} has no array {name!r}, but {', '.join(members)}"
                )
            info = members[name]
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(
                    f"{name!r} in {path} is compressed: use np.savez instead of "
                    "np.savez_compressed"
                )
            # the local header: 30 bytes, a name, extra fields
            file.seek(info.header_offset + 26)
            lengths = np.frombuffer(file.read(4), "<u2")
            return info.header_offset + 30 + int(lengths.sum())

    def _examine(self) -> None:
        """Compare the checksum that ``numpy.savez`` has written, before the first pass."""
        if self._is_examined:
            return
        with (
            _naming(self.path),
            zipfile.ZipFile(self.path) as archive,
            archive.open(f"{self.name}.npy") as member,
        ):
            while member.read(BLOCK_BYTES):
                pass
        self._is_examined = True


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
        Examples in a block, at most; by default as many as fill 2 MiB.

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

    reuses_memory = False

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
        self.files = _listed(files, "*.parquet")
        self.target = target
        self.sample_weight = sample_weight
        self._rest = [target] if sample_weight is None else [target, sample_weight]
        with _naming(self.files[0]):
            schema = parquet.read_schema(self.files[0])
        others = [name for name in schema.names if name not in self._rest]
        self.columns = others if columns is None else list(columns)
        if not self.columns or not set(self.columns).isdisjoint(self._rest):
            raise ValueError(
                f"features {self.columns} must be columns besides {target!r} and {sample_weight!r}"
            )
        self._wanted(self.files[0], schema)
        self.block_rows = _rows_in_block(block_rows, 8 * len(self.columns))

    def _wanted(self, path: str, schema: Any) -> Any:
        """The schema of the matrix, once it is clear that the file has all that is wanted."""
        pa = _pyarrow()
        kinds = pa.types
        numeric = (
            kinds.is_integer,
            kinds.is_floating,
            kinds.is_boolean,
            kinds.is_decimal,
        )
        for name in [*self.columns, *self._rest]:
            if schema.names.count(name) != 1:
                raise ValueError(
                    f"{path} must have one column {name!r}, but its columns are "
                    f"{', '.join(schema.names)}"
                )
            kind = schema.field(name).type
            if name != self.target and not any(test(kind) for test in numeric):
                raise ValueError(
                    f"column {name!r} of {path} is of type {kind}, not numeric: encode or omit it"
                )
        found = [schema.field(name).type.to_pandas_dtype() for name in self.columns]
        narrow = all(np.can_cast(dtype, np.float32) for dtype in found)
        return pa.schema(
            [(name, pa.float32() if narrow else pa.float64()) for name in self.columns]
        )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        how = {"page_checksum_verification": True, "buffer_size": 2**20}
        for path in self.files:
            with _naming(path), _pyarrow().parquet.ParquetFile(path, **how) as file:
                wanted = self._wanted(path, file.schema_arrow)
                for batch in file.iter_batches(
                    self.block_rows, columns=wanted.names + self._rest
                ):
                    yield self._block(path, batch, wanted)

    def _block(self, path: str, batch: Any, wanted: Any) -> tuple[Any, ...]:
        for name in wanted.names + self._rest:
            if nulls := batch.column(name).null_count:
                raise ValueError(
                    f"column {name!r} of {path} has nulls ({nulls} in {batch.num_rows} rows): fill "
                    "them, or drop the rows or the column"
                )
        X = (
            batch.select(wanted.names)
            .cast(wanted, safe=False)
            .to_tensor(row_major=True)
        )
        rest = (
            batch.column(name).to_numpy(zero_copy_only=False) for name in self._rest
        )
        return X.to_numpy(), *rest

    def __repr__(self) -> str:
        weight = (
            ""
            if self.sample_weight is None
            else f", sample_weight={self.sample_weight!r}"
        )
        features = f"{_count(self.files)}, {len(self.columns)} features"
        return f"ParquetBlocks({features}, target={self.target!r}{weight})"


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "ParquetBlocks needs pyarrow: pip install marginsvm[parquet]"
        ) from error
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

    reuses_memory = False

    def __init__(
        self,
        files: Files,
        n_features: int | None = None,
        *,
        zero_based: bool = False,
        block_bytes: int = 2**23,
    ) -> None:
        self.files = _listed(files)
        self.zero_based = zero_based
        self.block_bytes = _positive("block_bytes", block_bytes)
        if n_features is not None:
            self.n_features = _positive("n_features", n_features)

    @cached_property
    def n_features(self) -> int:
        return max((X.shape[1] for X, _ in self._read(None)), default=1)

    def __iter__(self) -> Iterator[tuple[Any, Array]]:
        return self._read(self.n_features)

    def _read(self, n_features: int | None) -> Iterator[tuple[Any, Array]]:
        for path in self.files:
            opened: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(
                Path(path).suffix, open
            )
            with _naming(path), opened(path, "rb") as file:
                while text := file.read(self.block_bytes) + file.readline():
                    how = {"n_features": n_features, "zero_based": self.zero_based}
                    end = file.tell()
                    try:
                        if not text.endswith(b"\n"):
                            raise ValueError(
                                "the file ends inside a line, so that it may be cut short; if it "
                                "is not, add a line end"
                            )
                        block = load_svmlight_file(BytesIO(text), **how)
                    except (ValueError, OverflowError) as error:
                        where = f"{path}, bytes {end - len(text)} to {end}"
                        raise ValueError(f"{where}: {error}") from error
                    yield block

    def __repr__(self) -> str:
        known = self.__dict__.get("n_features", "not counted yet")
        return f"SvmlightBlocks({_count(self.files)}, n_features={known})"


def _sliceable(name: str, given: Any, dimensions: int) -> Any:
    """What gives rows by a slice."""
    part: Any = _Stored(given) if isinstance(given, (str, os.PathLike)) else given
    if sp.issparse(part):
        if part.format != "csr":
            raise ValueError(
                f"{name} is in the format {part.format}: pass {name}.tocsr()"
            )
    elif not isinstance(part, _Stored):
        part = np.asarray(part)
    if len(part.shape) != dimensions:
        raise ValueError(
            f"{name} must have {dimensions} dimensions, but its shape is {part.shape}"
        )
    return part


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, but got {value}")
    return value


def _rows_in_block(given: int | None, row_bytes: float) -> int:
    """Rows in a block: as given, or as many as fill it."""
    filled = max(1, int(BLOCK_BYTES / max(1.0, row_bytes)))
    return _positive("block_rows", filled if given is None else given)


def _listed(files: Files, pattern: str = "") -> list[str]:
    """Absolute paths of files that are there; of a folder, those that match the pattern."""
    paths = [
        Path(p) for p in ([files] if isinstance(files, (str, os.PathLike)) else files)
    ]
    if pattern and len(paths) == 1 and paths[0].is_dir():
        paths = sorted(paths[0].rglob(pattern))
    if not paths:
        raise ValueError(f"there is no file {pattern} in {files}")
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file")
    return [os.path.abspath(path) for path in paths]


def _count(files: list[str]) -> str:
    """In words."""
    return f"{len(files)} file{'s' * (len(files) > 1)}"
