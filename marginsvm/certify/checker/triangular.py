"""Triangular factors of many rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FACTORED_ROWS = 8192  # rows that are factorized at once


def triangular_factor(A: NDArray) -> NDArray:
    """The factor R of ``A = QR``, without Q, block by block, so that A is not copied as a whole."""
    parts = [_factor(A[i : i + _FACTORED_ROWS]) for i in range(0, len(A), _FACTORED_ROWS)]
    return parts[0] if len(parts) == 1 else _factor(np.concatenate(parts))


def _factor(A: NDArray) -> NDArray:
    return np.asarray(np.linalg.qr(A, mode="r"))
