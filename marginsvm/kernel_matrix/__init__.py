"""The maximum-margin problem as algorithms use it: rows, vectors and best responses."""

from marginsvm.kernel_matrix.adapter import BestResponse, KernelMatrixAdapter
from marginsvm.kernel_matrix.kernel import GramAdapter, about_the_mean
from marginsvm.kernel_matrix.lazy import LazyWeightsAdapter
from marginsvm.kernel_matrix.linear import LinearAdapter
from marginsvm.rows import LpNorm, make_rows

__all__ = [
    "BestResponse",
    "GramAdapter",
    "KernelMatrixAdapter",
    "LazyWeightsAdapter",
    "LinearAdapter",
    "LpNorm",
    "about_the_mean",
    "make_rows",
]
