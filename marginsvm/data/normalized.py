"""Examples divided by their norms. X is not copied: scales are folded into the products.

With an intercept, a constant feature s joins every example before the division. Rows are then
``(x, s) / ||(x, s)||``, each a positive multiple of ``(x, s)``: they can be separated from the
origin if and only if X can be separated by a hyperplane. With s the largest norm of an example,
the best margin rho of these rows and the best margin gamma of X satisfy
``gamma / 2 <= rho * s <= gamma``, and no other s promises as much in all cases; the rows do
not depend on the units of X, nor on how often an example is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import is_dense
from marginsvm._typing import Array
from marginsvm.data.device import DeviceRows

# Examples whose norms are computed at a time.
_BLOCK = 1024
# Norm (units of x) below which an example's numbers are denormal, or nearly: float64 holds too few
# of their digits for the direction to mean anything.
_TINY = 1e-290
# Norms (units of x) between which no square that counts vanishes or overflows.
_SMALL, _LARGE = 1e-145, 1e150
Kernel = Callable[[Any, Any], Array]


class NormalizedRows:
    """``(X[i], s) / norm((X[i], s))``, a stand-in for X in products from either side.

    Parameters
    ----------
    X : ndarray, CSR matrix or array, or DeviceRows, of shape (n, d)
    scale : ndarray of shape (n,)
        Inverses of the norms; 0 for a row of zeros.
    constant : float
        The constant feature s; 0: there is none, and rows are ``X[i] / norm(X[i])``.
    """

    __array_ufunc__ = None  # NumPy leaves ``V.T @ X`` to __rmatmul__

    def __init__(self, X: Any, scale: Array, constant: float = 0.0) -> None:
        self.X, self.scale, self.constant = X, scale, constant
        self.shape = (X.shape[0], X.shape[1] + (constant != 0.0))
        self.dtype, self.itemsize = X.dtype, X.dtype.itemsize

    @property
    def last(self) -> Array:
        """The constant feature after the division."""
        return self.constant * self.scale

    def __len__(self) -> int:
        return len(self.scale)

    def __getitem__(self, index: Any) -> NormalizedRows:
        return NormalizedRows(self.X[index], self.scale[index], self.constant)

    def __matmul__(self, W: Array) -> Array:
        F = self.X @ W[: self.X.shape[1]]
        F = F * (self.scale if F.ndim == 1 else self.scale[:, None])
        return F + np.multiply.outer(self.last, W[-1]) if self.constant else F

    def __rmatmul__(self, V: Array) -> Array:
        image = (V * self.scale).astype(V.dtype, copy=False) @ self.X
        if not self.constant:
            return image
        return np.append(image, (V @ self.last)[..., None], axis=-1).astype(V.dtype, copy=False)

    def squared_norms(self) -> Array:
        """Ones, and zeros for rows of zeros."""
        return (self.scale > 0).astype(np.float64)

    def toarray(self) -> Array:
        """The rows themselves, for few of them."""
        X = self.X if is_dense(self.X) else self.X.toarray()
        rows = X * self.scale[:, None]
        return np.column_stack([rows, self.last]) if self.constant else rows


@dataclass(frozen=True)
class Division:
    """What ``normalize=True`` makes of the examples, settled once in fit.

    Attributes
    ----------
    constant : float
        The constant feature s (units of x); 0: there is none.
    scale : ndarray of shape (n_examples,) or None
        Inverses of the norms in the feature space of a kernel; None: the kernel is linear,
        and the norms are computed where the examples are.
    """

    constant: float
    scale: Array | None = None

    def undone(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients and intercept for the examples as given: ``w.x + b`` of ``(w, b / s)``."""
        if self.scale is not None:
            coef = coef * self.scale
            return coef, self.constant**2 * coef.sum(axis=1)
        if self.constant:
            return coef[:, :-1], self.constant * coef[:, -1]
        return coef, intercept


def normalized(X: Any, constant: float = 0.0) -> NormalizedRows:
    """Divide the rows of a dense or CSR matrix, a constant joined to each, by their norms."""
    return NormalizedRows(X, inverse(np.hypot(norms(X), constant)), constant)


def of_normalized(kernel: Kernel) -> Kernel:
    """``(K(x, x') + s^2) / (||(x, s)|| ||(x', s)||)``, a kernel of normalized examples."""

    def divided(A: NormalizedRows, B: NormalizedRows) -> Array:
        K = kernel(A.X, B.X)
        K = K + A.constant**2 if A.constant else K
        return K * A.scale[:, None].astype(K.dtype) * B.scale.astype(K.dtype)

    return divided


def norms(X: Any) -> Array:
    """Norms of the rows of a dense or CSR matrix, or of examples on a device, in float64."""
    if isinstance(X, DeviceRows):
        with np.errstate(over="ignore"):
            found = np.sqrt(X.squared_lengths())
        odd = np.flatnonzero(~((found > _SMALL) & (found < _LARGE)))
        if len(odd):
            found[odd] = norms(X[odd].toarray())
        return found
    return np.concatenate([_norms(X[i : i + _BLOCK]) for i in range(0, X.shape[0], _BLOCK)])


def norms_in_kernel(kernel: Kernel, X: Any) -> Array:
    """Norms of examples in the feature space of a kernel, in float64."""
    blocks = [X[i : i + 256] for i in range(0, X.shape[0], 256)]
    diagonal = np.concatenate([np.diagonal(kernel(B, B)) for B in blocks])
    return np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0))


def _norms(X: Any) -> Array:
    """Norms of the rows of a block, in float64; no square overflows or vanishes.

    Rows are contiguous, so that NumPy adds pairwise: bounds allow for no more rounding.
    """
    X = X.astype(np.float64) if sp.issparse(X) else np.ascontiguousarray(X, np.float64)
    with np.errstate(over="ignore"):  # what still does is refused where it is inverted
        norms = np.sqrt(_squares(X))
        for factor, odd in ((2.0**600, norms < _SMALL), (2.0**-600, ~(norms < _LARGE))):
            if odd.any():
                norms[odd] = np.sqrt(_squares(X[odd] * factor)) / factor
    return norms


def _squares(X: Any) -> Array:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return (X * X).sum(axis=1)


def inverse(norms: Array) -> Array:
    """Inverses of norms; 0 where there is nothing to normalise."""
    if not np.isfinite(norms).all():
        raise ValueError("the norms of the examples overflow float64: scale X")
    tiny = np.flatnonzero((norms > 0) & (norms < _TINY))
    if len(tiny):
        raise ValueError(
            f"normalize=True divides examples by their norms, but that of example {tiny[0]} is "
            f"{norms[tiny[0]]:.3g}, of which float64 holds too few digits: scale it, or set it to 0"
        )
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)
