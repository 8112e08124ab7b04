"""The rows of a labelled data set, by the number of its classes."""

from __future__ import annotations

from marginsvm._typing import Array
from marginsvm.rows.binary import BinaryRows
from marginsvm.rows.multiclass import MulticlassRows
from marginsvm.rows.rows import Rows


def make_rows(
    codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
) -> Rows:
    """Binary rows for two classes, multiclass rows for more."""
    kind = BinaryRows if n_classes == 2 else MulticlassRows
    return kind(codes, n_classes, balanced=balanced, weights=weights)
