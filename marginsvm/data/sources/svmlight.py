"""Files in the SVMlight format, by scikit-learn's parser."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from sklearn.datasets import load_svmlight_file

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.data.sources._files import Files, count, listed, positive

_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


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
    >>> from marginsvm.data.sources import SvmlightBlocks
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
            opened = _OPEN.get(Path(path).suffix, open)
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
