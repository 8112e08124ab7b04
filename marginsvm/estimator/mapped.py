"""Memory maps of integers or of half precision, which are converted to floats in parts.

Converted as a whole, as scikit-learn's validation does, a file of bytes would take eight times its
size in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from marginsvm._typing import Array

_CONVERTED_BYTES = 2**23  # size of a part in float64


def rows_in_part(X: Any) -> int:
    """Number of rows of X to be converted together; 0: X is no such map."""
    if not isinstance(X, np.memmap) or X.ndim != 2 or X.dtype.kind not in "biuf":
        return 0
    if X.dtype in (np.float32, np.float64):
        return 0
    return max(1, _CONVERTED_BYTES // (8 * max(1, X.shape[1])))


def parts(X: Array, size: int) -> Iterator[Array]:
    """Consecutive parts of a memory map, of ``size`` rows each, as plain arrays."""
    return (np.asarray(X[i : i + size]) for i in range(0, len(X), size))
