"""What a precomputed kernel must be."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array

# Side of the squares (0.5 MB in float64) in which a matrix and its mirror image are compared: two
# of them stay in cache.
_SQUARE = 256


def check_gram(K: Any) -> None:
    """Refuse a matrix that is no kernel matrix: sparse, not square, or not symmetric."""
    if sp.issparse(K):
        raise TypeError("Sparse precomputed kernels are not supported: pass a dense matrix")
    n, m = K.shape
    if n != m:
        raise ValueError(
            f"a precomputed kernel must be a square matrix, one row and one column an example, "
            f"but it has shape {K.shape}"
        )
    tolerance = _tolerance(K)
    scale = max(float(np.abs(np.diagonal(K)).max()), 1e-300)
    blocks = [slice(i, i + _SQUARE) for i in range(0, n, _SQUARE)]
    for i, j in combinations_with_replacement(blocks, 2):
        off = float(np.abs(K[i, j] - K[j, i].T).max())
        if off > tolerance * scale:
            raise ValueError(
                f"a precomputed kernel must be symmetric, but entries differ by {off:.3g} from "
                "their mirror images; pass (K + K.T) / 2 if that is what you mean"
            )


def _tolerance(K: Array) -> float:
    """Rounding error to be expected of given kernel values, relative to the largest."""
    return 1e-4 if K.dtype == np.float32 else 1e-8


def check_norms(diagonal: Array, *, zeros: bool) -> None:
    """Refuse a precomputed kernel of examples that have not been divided by their norms."""
    one = np.abs(diagonal - 1.0) <= _tolerance(diagonal)
    if not np.all(one | (zeros & (diagonal == 0.0))):
        raise ValueError(
            "normalize=True needs K(x, x) = 1 of a precomputed kernel, as the K(x, x) of new "
            "examples cannot be known, but its diagonal goes from "
            f"{diagonal.min():.3g} to {diagonal.max():.3g}; divide K by "
            "sqrt(outer(diagonal, diagonal)), in predict too, or set normalize=False"
        )
