"""Problems for the rooms that are still to be rewritten: see :mod:`marginsvm.problem.adapter`."""

from marginsvm.kernel_matrix.adapter import (
    GramAdapter,
    KernelMatrixAdapter,
    LinearAdapter,
    about_the_mean,
    in_units,
)
from marginsvm.problem.adapter import BestResponse
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.rows import make_rows

__all__ = [
    "BestResponse",
    "GramAdapter",
    "KernelMatrixAdapter",
    "LinearAdapter",
    "LpNorm",
    "about_the_mean",
    "in_units",
    "make_rows",
]
