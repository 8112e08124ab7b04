"""The data as the game sees it."""

from marginsvm.kernel_matrix.adapter import Answer, KernelMatrixAdapter
from marginsvm.kernel_matrix.gram import GramAdapter
from marginsvm.kernel_matrix.linear import LinearAdapter
from marginsvm.kernel_matrix.rows import BinaryRows, MulticlassRows, Rows, make_rows

__all__ = [
    "Answer",
    "BinaryRows",
    "GramAdapter",
    "KernelMatrixAdapter",
    "LinearAdapter",
    "MulticlassRows",
    "Rows",
    "make_rows",
]
