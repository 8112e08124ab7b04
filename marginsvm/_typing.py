"""The types that every module uses.

SciPy has no types: where a sparse matrix may be meant, mypy takes any value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp

Array: TypeAlias = np.ndarray[Any, Any]
# A number, or an array of numbers: float64 in fits, Fractions in exact checks.
Values: TypeAlias = Any
# Some of the examples.
Index: TypeAlias = slice | Array
# Examples in memory: an array of any library, whose operators are those of NumPy; or CSR.
Stored: TypeAlias = Array | sp.csr_array
KernelFunction: TypeAlias = Callable[[Stored, Stored], Array]


class Along(Protocol):
    """Something that has an entry for each example, of which blocks are taken."""

    def __getitem__(self, index: slice, /) -> Along: ...
