"""Examples divided by their norms. X is not copied: scales are folded into the products.

With an intercept, a constant feature s is added to every example before the division. Examples are
then ``(x, s) / ||(x, s)||``, positive multiples of ``(x, s)``: some hyperplane through the origin
separates their classes if and only if some hyperplane separates those of X. With s the largest norm
of an example, their best margin rho and the best margin gamma of X satisfy
``gamma / 2 <= rho * s <= gamma``, and no other s promises as much in all cases. Normalized examples
do not depend on the units of X, nor on how often an example is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.data.block import Block
from marginsvm.data.csr import as_block
from marginsvm.rows import LpNorm

# Norm (units of x) below which an example's numbers are denormal, or nearly: float64 holds too few
# of their digits for the direction to mean anything.
_LEAST_NORM = 1e-290
Kernel = Callable[[Any, Any], Array]


class Normalized(Block):
    """``(X[i], s) / norm((X[i], s))``, for examples of any kind.

    Parameters
    ----------
    X : Block, ndarray, CSR matrix or array, of shape (n, d)
    scale : ndarray of shape (n,)
        Inverses of the norms; 0 for an example of zeros.
    constant : float
        The constant feature s; 0: there is none, and examples are ``X[i] / norm(X[i])``.
    """

    scale: Array
    takes_a_mean = False

    def __init__(self, X: Any, scale: Array, constant: float = 0.0) -> None:
        self.X, self.scale, self.constant = as_block(X), scale, constant
        self.shape = (X.shape[0], X.shape[1] + (constant != 0.0))
        self.dtype, self.scannable, self.is_whole = self.X.dtype, self.X.scannable, self.X.is_whole

    @property
    def undivided(self) -> Block:
        return self.X

    @property
    def last(self) -> Array:
        """The constant feature of each example after the division."""
        return self.constant * self.scale

    def _of(self, X: Block) -> Normalized:
        """The same with X in another place."""
        return Normalized(X, self.scale, self.constant)

    def __getitem__(self, index: Any) -> Normalized:
        return Normalized(self.X[index], self.scale[index], self.constant)

    def toarray(self) -> Array:
        """The examples after the division, for few of them."""
        divided = self.X.toarray() * self.scale[:, None]
        return np.column_stack([divided, self.last]) if self.constant else divided

    def on_host(self) -> Normalized:
        return self._of(self.X.on_host())

    def aligned(self, room: Callable[[int], Array]) -> Normalized:
        return self._of(self.X.aligned(room))

    @classmethod
    def stacked(cls, blocks: Sequence[Normalized]) -> Normalized:
        X = type(blocks[0].X).stacked([block.X for block in blocks])
        return cls(X, np.concatenate([block.scale for block in blocks]), blocks[0].constant)

    def about(self, mean: Array | None) -> Iterator[tuple[slice, Block]]:
        assert mean is None
        return iter([(slice(0, len(self)), self)])

    def times(self, W: Array, chain: int = 0) -> Array:
        F = self.X.times(W[: self.X.shape[1]])
        F = F * (self.scale if F.ndim == 1 else self.scale[:, None])
        return F + np.multiply.outer(self.last, W[-1]) if self.constant else F

    def adjoint(self, V: Array, chain: int = 0) -> Array:
        scaled = (V.T * self.scale).astype(V.dtype, copy=False)
        image = self.X.adjoint(scaled.T)
        if not self.constant:
            return image
        return np.append(image, (V.T @ self.last)[..., None], axis=-1).astype(V.dtype, copy=False)

    def squared(self) -> Normalized:
        return Normalized(self.X.squared(), self.scale**2, self.constant**2)

    def squared_lengths(self, norm: LpNorm) -> Array:
        """Ones, and zeros for examples of zeros."""
        return (self.scale > 0).astype(np.float64)

    def largest(self) -> float:
        return 1.0  # at most

    def spread(self, mean: Array | float) -> Array:
        return np.ones(self.shape[1]) + np.abs(mean)  # at most


@dataclass(frozen=True)
class Division:
    """How ``normalize=True`` divides the examples of a fit.

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
        """Coefficients and intercept for the examples as given, from those after the division.

        Of a linear predictor ``(w, b / s)``, whose last entry is that of the constant feature s,
        they are w and b; of a kernel predictor, ``coef`` has one entry for each example.
        """
        if self.scale is not None:
            coef = coef * self.scale
            return coef, self.constant**2 * coef.sum(axis=1)
        if self.constant:
            return coef[:, :-1], self.constant * coef[:, -1]
        return coef, intercept


def normalized(X: Any, constant: float = 0.0) -> Normalized:
    """Divide examples by their norms, after a constant feature was added to each (0: none)."""
    X = as_block(X)
    return Normalized(X, inverse(np.hypot(X.norms(), constant)), constant)


def of_normalized(kernel: Kernel) -> Kernel:
    """``(K(x, x') + s^2) / (||(x, s)|| ||(x', s)||)``, a kernel of normalized examples."""

    def divided(A: Normalized, B: Normalized) -> Array:
        K = kernel(A.X.matrix, B.X.matrix)
        K = K + A.constant**2 if A.constant else K
        return K * A.scale[:, None].astype(K.dtype) * B.scale.astype(K.dtype)

    return divided


def norms_in_kernel(kernel: Kernel, X: Any) -> Array:
    """Norms of examples in the feature space of a kernel, in float64."""
    blocks = [X[i : i + 256] for i in range(0, X.shape[0], 256)]
    diagonal = np.concatenate([np.diagonal(kernel(B, B)) for B in blocks])
    return np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0))


def inverse(norms: Array) -> Array:
    """Inverses of norms; 0 where the norm is 0."""
    if not np.isfinite(norms).all():
        raise ValueError("the norms of the examples overflow float64: scale X")
    tiny = np.flatnonzero((norms > 0) & (norms < _LEAST_NORM))
    if len(tiny):
        raise ValueError(
            f"normalize=True divides examples by their norms, but that of example {tiny[0]} is "
            f"{norms[tiny[0]]:.3g}, of which float64 holds too few digits: scale it, or set it to 0"
        )
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)
