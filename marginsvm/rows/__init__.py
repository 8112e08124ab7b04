"""The rows of a labelled data set, whose smallest margin is maximised, and predictors of them."""

from marginsvm._typing import Array
from marginsvm.rows.binary import BinaryRows
from marginsvm.rows.intervals import Intervals, OutputRows, intervals_of, output_rows
from marginsvm.rows.multiclass import MulticlassRows
from marginsvm.rows.norms import LpNorm, SignedNorm
from marginsvm.rows.rows import Rows, support_of
from marginsvm.rows.vector import AnyPredictor, Predictor, Vector

__all__ = [
    "AnyPredictor",
    "BinaryRows",
    "Intervals",
    "LpNorm",
    "MulticlassRows",
    "OutputRows",
    "Predictor",
    "Rows",
    "SignedNorm",
    "Vector",
    "intervals_of",
    "make_rows",
    "output_rows",
    "support_of",
]


def make_rows(
    codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
) -> Rows:
    """Binary rows for two classes, multiclass rows for more."""
    kind = BinaryRows if n_classes == 2 else MulticlassRows
    return kind(codes, n_classes, balanced=balanced, weights=weights)
