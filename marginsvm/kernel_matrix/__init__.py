"""The maximum-margin problem as algorithms use it: rows, vectors and best responses."""

from marginsvm.certify.certifiable import Predictor
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
from marginsvm.kernel_matrix.kernel import GramAdapter
from marginsvm.kernel_matrix.layout import RowLayout
from marginsvm.kernel_matrix.lazy import LazyWeightsAdapter
from marginsvm.kernel_matrix.linear import LinearAdapter
from marginsvm.rows.binary import BinaryRows
from marginsvm.rows.make_rows import make_rows
from marginsvm.rows.multiclass import MulticlassRows
from marginsvm.rows.norms import LpNorm
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

__all__ = [
    "BestResponse",
    "BinaryRows",
    "Division",
    "GramAdapter",
    "KernelMatrixAdapter",
    "LazyWeightsAdapter",
    "LinearAdapter",
    "LpNorm",
    "MemoryStore",
    "MulticlassRows",
    "NormalizedRows",
    "Predictor",
    "RowLayout",
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
