"""Products in twice the precision of float64, by transformations without error.

References
----------
T. Ogita, S. Rump, S. Oishi. Accurate sum and dot product. SIAM Journal on Scientific Computing,
2005.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SPLITTER = 2.0**27 + 1.0
_STEP_ROWS = 4096  # rows at once, so that the ten arrays of a step stay in the cache


def product(A: NDArray, M: NDArray) -> NDArray:
    """``A M``, as if it were computed with 32 digits and then rounded."""
    out = np.empty((len(A), M.shape[1]))
    for i in range(0, len(A), _STEP_ROWS):
        out[i : i + _STEP_ROWS] = _block(A[i : i + _STEP_ROWS], M)
    return out


def _block(A: NDArray, M: NDArray) -> NDArray:
    total = np.zeros((len(A), M.shape[1]))
    error = np.zeros_like(total)
    for a, m in zip(A.T[:, :, None], M, strict=True):
        p = a * m
        a_high, m_high = _high(a), _high(m)
        a_low, m_low = a - a_high, m - m_high
        error += a_low * m_low - (((p - a_high * m_high) - a_low * m_high) - a_high * m_low)
        new = total + p
        back = new - total
        error += (total - (new - back)) + (p - back)
        total = new
    return np.asarray(total + error)


def _high(a: NDArray) -> NDArray:
    scaled = _SPLITTER * a
    return np.asarray(scaled - (scaled - a))
