"""Folders of Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from marginsvm.data.sources._files import Files, count, listed, rows_in_block


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
    >>> from marginsvm.data.sources import ParquetBlocks
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
