"""The data as the game sees it."""

from marginsvm.certify.bounds import Predictor
from marginsvm.data.memory import MemoryStore, Store, as_store
from marginsvm.data.normalized import (
    Division,
    NormalizedRows,
    inverse,
    normalized,
    norms,
    norms_in_kernel,
    of_normalized,
)
from marginsvm.data.stream import StreamStore
from marginsvm.kernel_matrix.adapter import BestResponse, KernelMatrixAdapter
from marginsvm.kernel_matrix.flat import FlatRows
from marginsvm.kernel_matrix.kernel import GramAdapter
from marginsvm.kernel_matrix.lazy import LazyWeightsAdapter
from marginsvm.kernel_matrix.linear import LinearAdapter
from marginsvm.rows.norms import LpNorm
from marginsvm.rows.rows import BinaryRows, MulticlassRows, Rows, make_rows
from marginsvm.rows.vector import Vector

__all__ = [
    "BestResponse",
    "BinaryRows",
    "Division",
    "FlatRows",
    "GramAdapter",
    "KernelMatrixAdapter",
    "LazyWeightsAdapter",
    "LinearAdapter",
    "LpNorm",
    "MemoryStore",
    "MulticlassRows",
    "NormalizedRows",
    "Predictor",
    "Rows",
    "Store",
    "StreamStore",
    "Vector",
    "as_store",
    "inverse",
    "make_rows",
    "normalized",
    "norms",
    "norms_in_kernel",
    "of_normalized",
]
