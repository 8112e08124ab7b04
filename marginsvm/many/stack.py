"""Problems of two classes with as many examples each, as one stack of Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array

# Mean of the examples, in units of their distances from it, from which on it is subtracted: nearer
# ones cost hardly a digit.
_FAR_MEAN = 8.0


@dataclass(frozen=True)
class Stack:
    """Gram matrices, and what they are made of.

    Attributes
    ----------
    K : ndarray of shape (B, n, n)
        Inner products of the examples, in the user's units, without the signs of classes.
    terms : int
        Terms that each of their entries is a sum of, at most.
    Z : ndarray of shape (B, n, d), or None
        The examples, in float64; None: they are part of others.
    shift : ndarray of shape (B, d), or None
        What was subtracted from the examples; None: nothing.
    """

    K: Array
    terms: int
    Z: Array | None = None
    shift: Array | None = None

    @classmethod
    def of(cls, Z: Array, *, balanced: bool) -> Stack:
        """Inner products of examples; about the mean where that is far, and does not matter."""
        stack = cls(Z @ Z.transpose(0, 2, 1), Z.shape[2], Z)
        if not balanced or not np.any(stack.mean_square > _FAR_MEAN**2 * stack.spread):
            return stack
        shift = Z.mean(axis=1)
        Z = Z - shift[:, None]
        return cls(Z @ Z.transpose(0, 2, 1), Z.shape[2], Z, shift)

    def chosen(self, rows: Array) -> Stack:
        """Problems of some examples of a stack of one: of those of each line of indices."""
        K = self.K[0][rows[:, :, None], rows[:, None, :]]
        return Stack(K, self.terms, shift=_repeated(self.shift, len(rows)))

    def repeated(self, times: int) -> Stack:
        """The only problem of a stack, several times."""
        K = np.broadcast_to(self.K, (times, *self.K.shape[1:]))
        return Stack(K, self.terms, shift=_repeated(self.shift, times))

    @cached_property
    def squares(self) -> Array:
        """Squared lengths of the examples, of shape (B, n)."""
        return np.asarray(np.einsum("bii->bi", self.K))

    @cached_property
    def mean_square(self) -> Array:
        """Squared length of the mean of each problem's examples."""
        return np.asarray(self.K.sum(axis=(1, 2)) / self.K.shape[1] ** 2)

    @property
    def spread(self) -> Array:
        """Mean square of the distances from the mean, up to rounding; of shape (B,)."""
        return np.maximum(self.squares.mean(axis=1) - self.mean_square, 0.0)

    @cached_property
    def far(self) -> Array:
        """Length of what was subtracted, at most; of shape (B,)."""
        if self.shift is None:
            return np.zeros(len(self.K))
        return np.asarray(np.sqrt(np.einsum("bd,bd->b", self.shift, self.shift)))


def _repeated(shift: Array | None, times: int) -> Array | None:
    return None if shift is None else np.broadcast_to(shift, (times, shift.shape[1]))
