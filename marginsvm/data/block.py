"""Blocks of examples: what passes ask of them, whatever form their numbers have.

A new kind of block is one file: a class with a shape, a dtype, ``__getitem__`` and ``toarray``.
All else is computed from these, a few examples at a time, unless the class has a faster way, as
those of :mod:`marginsvm.data.csr` and :mod:`marginsvm.data.device` have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from marginsvm._rounding import product, summed
from marginsvm._typing import Array
from marginsvm.rows import LpNorm

# Entries, zeros included, of the examples that are copied to a float64 array at a time (8 MiB).
WRITTEN_OUT = 2**20
# The same for products of these with each other, which are quicker while the array stays in a cache
# (a9a: 21 ms, not 28), unless there are fewer than two examples for each feature.
_IN_CACHE, _A_FEATURE = 2**18, 2
# Memory of the examples that are copied at a time to convert them or to subtract a far mean.
_WIDENED_BYTES = 2**19
# Examples whose norms are computed at a time.
_NORMS_AT_ONCE = 1024
# Norms (units of x) between which no square overflows, and none that matters underflows.
_SQUARES_VANISH, _SQUARES_OVERFLOW = 1e-145, 1e150


class Centre(NamedTuple):
    """The mean of the examples, if it is subtracted from them.

    Attributes
    ----------
    mean : ndarray of shape (n_features,) or None
    far : bool
        Whether the mean is so far from the origin that it is subtracted from each example before a
        product, as subtracting its share from the product would lose digits.
    stored : bool
        Whether it can be subtracted from sparse examples too: it is 0 but for features that all of
        them store.
    """

    mean: Array | None = None
    far: bool = False
    stored: bool = False

    def before_products(self, X: Block) -> Array | None:
        """The mean, if it is to be subtracted from each of these examples; else None."""
        return self.mean if self.far and (X.takes_a_mean or self.stored) else None


class Block(ABC):
    """Some examples, in one of many forms.

    Attributes
    ----------
    shape : tuple of int
        Examples and features.
    dtype : dtype
        Type of NumPy in which products are computed, unless the other factor is wider.
    dense : ndarray or None
        The examples, if they are one array of NumPy.
    csr : CSR matrix or array, or None
        The examples, if they are one.
    takes_a_mean : bool
        Whether any mean can be subtracted from each example, see ``about``.
    is_whole : bool
        Whether passes take all examples at once, as smaller blocks would not be faster.
    scannable : bool
        Whether compiled loops can read the entries of ``undivided``, as these are contiguous.
    scale, constant : ndarray of shape (n_examples,) or None, and float
        How the examples come from ``undivided``, see :mod:`marginsvm.data.normalized`.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    dense: Array | None = None
    csr: Any = None
    takes_a_mean = True
    is_whole = False
    scannable = False
    scale: Array | None = None
    constant = 0.0
    __array_ufunc__ = None  # NumPy leaves ``V @ X`` to __rmatmul__

    @abstractmethod
    def __getitem__(self, index: Any) -> Self:
        """Some of the examples, by a slice (a view, where that is possible) or their indices."""

    @abstractmethod
    def toarray(self) -> Array:
        """The examples as an array of NumPy."""

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, W: Any) -> Any:
        return self.times(W)

    def __rmatmul__(self, V: Array) -> Array:
        return self.adjoint(V.T)

    # Where the entries are.

    @property
    def matrix(self) -> Any:
        """The array or CSR matrix that kernel functions are called with."""
        return self.csr if self.dense is None else self.dense

    @property
    def undivided(self) -> Block:
        """The examples before they were divided by their norms, if they were."""
        return self

    @property
    def nbytes(self) -> int:
        """Memory of the stored entries."""
        return self.size * self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return self.shape[0] * self.shape[1]

    def examples_in(self, memory: int) -> int:
        """Number of examples in a block of so much memory, in bytes, if this one is cut up."""
        if self.is_whole:
            return max(1, len(self))
        return max(1, memory // max(1, self.shape[1] * self.dtype.itemsize))

    def features(self, index: Any) -> Block:
        """Some of the features, by their indices."""
        return Dense(self.toarray()[:, index])

    def on_host(self) -> Block:
        """The same examples in the memory of this machine, for NumPy and SciPy."""
        return Dense(self.toarray())

    @classmethod
    def stacked(cls, blocks: Sequence[Any]) -> Block:
        """The examples of several blocks of this kind, one after the other, as one block."""
        return Dense(np.concatenate([X.toarray() for X in blocks]))

    def aligned(self, room: Callable[[int], Array]) -> Block:
        """These examples in aligned memory: ``room(bytes)`` gives it where they must be copied."""
        return self

    # Products.

    def about(self, mean: Array | None) -> Iterator[tuple[slice, Block]]:
        """Parts of the examples, in float64 and less a mean, each with its slice of the block.

        Not every kind of block can subtract any mean, see ``takes_a_mean``.
        """
        return self._parts(mean)

    def _parts(self, mean: Array | None = None) -> Iterator[tuple[slice, Dense]]:
        for span in spans(len(self), examples_at_once(self.shape[1])):
            part = self[span].toarray().astype(np.float64)
            yield span, Dense(part if mean is None else part - mean)

    def times(self, W: Array, chain: int = 0) -> Array:
        """``X W``; with ``chain``, dense products are summed in chains of at most so many terms."""
        return joined([part.times(W, chain) for _, part in self._parts()])

    def adjoint(self, V: Array, chain: int = 0) -> Array:
        """``V^T X``, for coefficients of shape (n_examples,) or (n_examples, k)."""
        return summed(part.adjoint(V[span], chain) for span, part in self._parts())

    def squared(self) -> Block:
        """Squares of the entries."""
        return Dense(np.square(self.toarray()))

    def written_out(self, mean: Array | None) -> Array:
        """The examples as a float64 array about a mean; may overwrite this block, a copy."""
        X = self.toarray().astype(np.float64, copy=False)
        if mean is not None:
            X -= mean
        return X

    def second_moments(self, weight: Array, centre: Centre) -> Array:
        """``sum weight (x, 1)(x, 1)'`` over the examples, about the mean; its last column is 0."""
        d = self.shape[1]
        H = np.zeros((d + 1, d + 1))
        size = max(1, _IN_CACHE // (d + 1), min(WRITTEN_OUT // (d + 1), _A_FEATURE * d))
        for sign in (1.0, -1.0):  # a product x'x of one array costs half as much as one of two
            chosen = np.flatnonzero(sign * weight > 0)
            for i in range(0, len(chosen), size):
                some = chosen[i : i + size]
                positive = sign * weight[some]
                root = np.sqrt(positive)
                x = self[some].written_out(centre.mean)
                x *= root[:, None]
                H[d, :d] += sign * (root @ x)
                H[:d, :d] += sign * (x.T @ x)
                H[d, d] += sign * positive.sum()
        return H

    # How long examples are, and their features.

    def squared_lengths(self, norm: LpNorm) -> Array:
        """Squared lengths of the examples in the dual of a norm, in float64."""
        return joined([part.squared_lengths(norm) for _, part in self._parts()])

    def squared_distances(self, norm: LpNorm, mean: Array) -> Array:
        """Squared distances of the examples from a mean; for p other than 2, upper bounds."""
        assert norm.p == 2.0
        return self.squared_lengths(norm) - 2.0 * self.times(mean) + mean @ mean

    def norms(self) -> Array:
        """Norms of the examples in float64, of any size that float64 holds."""
        return joined([self[span]._norms() for span in spans(len(self), _NORMS_AT_ONCE)])

    def _norms(self) -> Array:
        with np.errstate(over="ignore"):  # ``normalized.inverse`` refuses infinite norms
            found = np.sqrt(self._squares(1.0))
            for factor, are_odd in (
                (2.0**600, found < _SQUARES_VANISH),
                (2.0**-600, ~(found < _SQUARES_OVERFLOW)),
            ):
                odd = np.flatnonzero(are_odd)
                if len(odd):
                    found[odd] = np.sqrt(self[odd]._squares(factor)) / factor
        return found

    def _squares(self, factor: float) -> Array:
        """Squared norm of each example times a factor, in float64."""
        return joined([part._squares(factor) for _, part in self._parts()])

    def largest(self) -> float:
        """Largest absolute value of a feature."""
        return max(part.largest() for _, part in self._parts())

    def stored(self) -> Array:
        """Number of the examples that store each feature."""
        return np.full(self.shape[1], len(self))

    def spread(self, mean: Array | float) -> Array:
        """Upper bound on the largest distance of each feature from a mean."""
        return np.max([part.spread(mean) for _, part in self._parts()], axis=0)

    def mean_of_entries(self, share: Array, centre: float, power: int) -> float:
        """``sum_ij share_i (x_ij - centre)^power``: a mean if shares times features sum to 1."""
        parts = self._parts(np.full(self.shape[1], centre))
        return sum(part.mean_of_entries(share[span], 0.0, power) for span, part in parts)


class Dense(Block):
    """Examples in one array of NumPy.

    Parameters
    ----------
    array : ndarray of shape (n_examples, n_features)
        It is not copied.
    """

    def __init__(self, array: Array) -> None:
        self.dense: Array = array
        self.shape, self.dtype = array.shape, array.dtype
        self.scannable = array.flags.forc

    def __getitem__(self, index: Any) -> Dense:
        return Dense(self.dense[index])

    def toarray(self) -> Array:
        return self.dense

    def on_host(self) -> Dense:
        return self

    def aligned(self, room: Callable[[int], Array]) -> Dense:
        X = self.dense
        if X.flags.aligned:
            return self
        place = room(X.nbytes).view(X.dtype).reshape(X.shape)
        np.copyto(place, X)
        return Dense(place)

    def about(self, mean: Array | None) -> Iterator[tuple[slice, Block]]:
        if mean is None and self.dtype == np.float64:
            return iter([(slice(0, len(self)), self)])
        return super().about(mean)

    # Not A @ B: other threads wait for a matmul whose result has at most 500 entries (NumPy 2.4).

    def times(self, W: Array, chain: int = 0) -> Array:
        return product(self.dense, W, chain) if chain else np.dot(self.dense, W)

    def adjoint(self, V: Array, chain: int = 0) -> Array:
        return product(V.T, self.dense, chain) if chain else np.dot(V.T, self.dense)

    def squared_lengths(self, norm: LpNorm) -> Array:
        return norm.squared_lengths(self.dense)

    def _squares(self, factor: float) -> Array:
        # contiguous, so that NumPy sums pairwise: bounds allow for no more rounding
        X = np.ascontiguousarray(self.dense, np.float64)
        X = X if factor == 1.0 else X * factor
        return (X * X).sum(axis=1)

    def largest(self) -> float:
        return float(abs(self.dense).max())

    def spread(self, mean: Array | float) -> Array:
        low, high = (f(axis=0).astype(np.float64) for f in (self.dense.min, self.dense.max))
        return np.maximum(np.abs(high - mean), np.abs(low - mean))

    def mean_of_entries(self, share: Array, centre: float, power: int) -> float:
        entries = self.dense.astype(np.float64, copy=False)
        entries = entries - centre if centre else entries
        return float(share @ (entries if power == 1 else entries**power).sum(axis=1))


def joined(parts: list[Array]) -> Array:
    """Results of consecutive examples as one array; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def examples_at_once(width: int) -> int:
    """Number of examples with so many features that are copied at a time."""
    return max(1, _WIDENED_BYTES // (8 * max(1, width)))


def spans(n: int, size: int) -> Iterator[slice]:
    """Consecutive slices of n examples; of none, one empty slice."""
    return (slice(i, min(i + size, n)) for i in range(0, max(1, n), size))
