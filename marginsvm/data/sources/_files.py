"""What the sources share: lists of files, and the length of a block."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Files: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_FILE_BLOCK_BYTES = 2**25  # to begin one costs nothing next to it, and a few are soon held


def positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, but got {value}")
    return value


def rows_in_block(given: int | None, row_bytes: float) -> int:
    """Rows in a block: as given, or as many as fill it."""
    if given is not None:
        return positive("block_rows", given)
    return max(1, int(_FILE_BLOCK_BYTES / max(1.0, row_bytes)))


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
