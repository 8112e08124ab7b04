"""The data as the game sees it."""

from marginsvm.kernel_matrix.adapter import Answer, KernelMatrixAdapter
from marginsvm.kernel_matrix.answers import AnswersAdapter
from marginsvm.kernel_matrix.bounds import Predictor
from marginsvm.kernel_matrix.flat import FlatRows
from marginsvm.kernel_matrix.gram import GramAdapter
from marginsvm.kernel_matrix.linear import LinearAdapter
from marginsvm.kernel_matrix.normalized import (
    Division,
    NormalizedRows,
    inverse,
    normalized,
    norms,
    norms_in_kernel,
    of_normalized,
)
from marginsvm.kernel_matrix.norms import LpNorm
from marginsvm.kernel_matrix.rows import BinaryRows, MulticlassRows, Rows, make_rows
from marginsvm.kernel_matrix.stores import MemoryStore, Store, as_store
from marginsvm.kernel_matrix.streams import StreamStore

__all__ = [
    "Answer",
    "AnswersAdapter",
    "BinaryRows",
    "Division",
    "FlatRows",
    "GramAdapter",
    "KernelMatrixAdapter",
    "LinearAdapter",
    "LpNorm",
    "MemoryStore",
    "MulticlassRows",
    "NormalizedRows",
    "Predictor",
    "Rows",
    "Store",
    "StreamStore",
    "as_store",
    "inverse",
    "make_rows",
    "normalized",
    "norms",
    "norms_in_kernel",
    "of_normalized",
]
