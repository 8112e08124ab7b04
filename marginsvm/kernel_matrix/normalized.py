"""Examples divided by their norms. X is not copied: scales are folded into the products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array

_BLOCK = 1024
_TINY = 1e-290  # shorter rows are denormal, or about
Kernel = Callable[[Any, Any], Array]


class NormalizedRows:
    """``X[i] / norm(X[i])``, a stand-in for X in products from either side and in kernels.

    Parameters
    ----------
    X : ndarray or CSR matrix or array of shape (n, d)
    scale : ndarray of shape (n,)
        Inverses of the norms; 0 for a row of zeros.
    """

    __array_ufunc__ = None  # NumPy leaves ``V.T @ X`` to __rmatmul__

    def __init__(self, X: Any, scale: Array) -> None:
        self.X, self.scale = X, scale
        self.shape, self.dtype, self.itemsize = X.shape, X.dtype, X.dtype.itemsize

    def __len__(self) -> int:
        return len(self.scale)

    def __getitem__(self, index: Any) -> NormalizedRows:
        return NormalizedRows(self.X[index], self.scale[index])

    def __matmul__(self, W: Array) -> Array:
        F = self.X @ W
        return F * (self.scale if F.ndim == 1 else self.scale[:, None])

    def __rmatmul__(self, V: Array) -> Array:
        return (V * self.scale).astype(V.dtype, copy=False) @ self.X

    def squared_norms(self) -> Array:
        """Ones, and zeros for rows of zeros."""
        return (self.scale > 0).astype(np.float64)

    def toarray(self) -> Array:
        """The rows themselves, for few of them."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        return X * self.scale[:, None]


def normalized(X: Any) -> NormalizedRows:
    """Divide the rows of a dense or CSR matrix by their norms."""
    norms = np.concatenate([_norms(X[i : i + _BLOCK]) for i in range(0, X.shape[0], _BLOCK)])
    return NormalizedRows(X, _inverse(norms))


def normalized_in_kernel(kernel: Kernel, X: Any) -> NormalizedRows:
    """Divide examples by their norms in the feature space of a kernel."""
    blocks = [X[i : i + 256] for i in range(0, X.shape[0], 256)]
    diagonal = np.concatenate([np.diagonal(kernel(B, B)) for B in blocks])
    return NormalizedRows(X, _inverse(np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0))))


def of_normalized(kernel: Kernel) -> Kernel:
    """``K(x, x') / sqrt(K(x, x) K(x', x'))``, a kernel of normalized examples."""

    def divided(A: NormalizedRows, B: NormalizedRows) -> Array:
        K = kernel(A.X, B.X)
        return K * A.scale[:, None].astype(K.dtype) * B.scale.astype(K.dtype)

    return divided


def _norms(X: Any) -> Array:
    """Norms of the rows of a block, in float64; no square overflows or vanishes."""
    X = X.astype(np.float64)
    with np.errstate(over="ignore"):
        norms = np.sqrt(_squares(X))
    for factor, odd in ((2.0**600, norms < 1e-145), (2.0**-600, ~(norms < 1e150))):
        if odd.any():
            norms[odd] = np.sqrt(_squares(X[odd] * factor)) / factor
    return norms


def _squares(X: Any) -> Array:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return (X * X).sum(axis=1)


def _inverse(norms: Array) -> Array:
    """Inverses; 0 where there is nothing to normalise."""
    tiny = np.flatnonzero((norms > 0) & (norms < _TINY))
    if len(tiny):
        raise ValueError(
            f"normalize=True divides examples by their norms, but that of example {tiny[0]} is "
            f"{norms[tiny[0]]:.3g}, of which float64 holds too few digits: scale it, or set it to 0"
        )
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)
