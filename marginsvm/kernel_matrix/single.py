"""Columns of a Gram matrix in float32, for methods that look for weights; bounds are not theirs.

Methods move weights until margins are right to a few digits. Kernel values in float32 are good for
that, and take a third of the time and half of the memory. For a Gaussian kernel, whose values
follow from inner products of at most known length, there is a bound on what is rounded as well: a
row whose margin is beyond 1 by more than that needs no value in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginsvm._rounding import UNIT
from marginsvm._typing import Array

# Columns that are computed at once: a product of as many rows is nearly as fast as a larger one,
# and they are still in cache when their exponentials are taken.
_BATCH = 128
_UNIT = 2.0**-24  # relative rounding error of an operation in float32
# Roundings of an exponential that was computed in float32 (NumPy's, and that of a given float32
# kernel that it is compared with), and of a squared distance beside those of its sum.
_OF_VALUE, _OF_DISTANCE = 16.0, 8.0
# Examples whose kernel values with each other must fit: as many as rounds begin with.
_FEWEST = 400


class Prepared:
    """How far values in float32 may be off, those of a Gaussian kernel by products.

    Parameters
    ----------
    products : marginsvm.problem.kernels.Products
    """

    def __init__(self, products: Any) -> None:
        self._d = products.examples.shape[1]
        squared = products.squared_lengths
        self._lengths = None if squared is None else np.sqrt(squared)
        self._n = len(products.examples)

    def error(self, examples: Array) -> Array:
        """Relative error of the values of all examples with these, at most; infinite: unknown.

        The argument of the exponential is a sum of d + 2 products, of ``(|z| + |w|)^2 / 2``
        together. It rounds by ``(d + 2) u`` times that at most, whatever its order; rounded numbers
        and lengths add some more of it, and what the values are compared with, in float64.
        """
        if self._lengths is None:
            return np.full(self._n, np.inf)
        reach = (self._lengths + self._lengths[examples].max(initial=0.0)) ** 2
        rounded = 1.01 * (_UNIT + UNIT) * (0.5 * self._d + _OF_DISTANCE) * reach
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(rounded + _OF_VALUE * _UNIT))


class SingleColumns:
    """Columns in float32: computed in batches, kept while there is room.

    Half of the memory is for the values of a working set with each other, see ``among``.

    Parameters
    ----------
    compute : callable
        ``compute(examples)`` gives kernel values of these with all.
    n_examples : int
    prepared : Prepared or None
        Their errors.
    cache_size : float
        Memory for values (MB).

    Attributes
    ----------
    room : int
        Columns that may be kept.
    side : int
        Examples of a working set at most.
    values : ndarray of shape (room, n_examples)
        Pages of memory are taken when they are written.
    place : ndarray of shape (n_examples,)
        Where the column of each example is; -1: it is not kept.
    """

    def __init__(
        self,
        compute: Callable[[Array], Array],
        n_examples: int,
        prepared: Prepared | None,
        cache_size: float,
    ) -> None:
        self._compute, self.prepared = compute, prepared
        self._n = n = n_examples
        numbers = int(cache_size * 2**20 / 4)
        batch, few = min(n, _BATCH), min(n, _FEWEST)
        if numbers < 2 * few**2 + batch * n:
            raise ValueError(
                f"cache_size={cache_size:g} MB does not hold {batch} kernel columns of {n} "
                f"examples, and the values of {few} with each other, which take "
                f"{4 * (2 * few**2 + batch * n) / 2**20:.3g} MB: raise cache_size"
            )
        # a block that grows is held twice for a moment
        self.side = min(n, max(few, int(np.sqrt(0.25 * numbers))))
        self.room = min(n, (numbers - 2 * self.side**2) // n)
        self.cache_size = cache_size
        self.drop()

    def drop(self) -> None:
        """Forget all values: others are in need of the memory."""
        n = len(self)
        self.values = np.empty((self.room, n), np.float32)
        self.place = np.full(n, -1)
        self._owner = np.full(self.room, -1)
        self._used = 0
        self._work, self._frame = np.empty(0, int), (0.0, 0.0)
        self._among = np.empty((0, 0), np.float32)

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """Memory that is in use (bytes)."""
        return 4 * (self._used * len(self) + self._among.size)

    def fetch(self, examples: Array) -> Array:
        """Have the columns of these, at most ``room``; where they are. Others may be dropped."""
        new = examples[self.place[examples] < 0]
        free = self._free(len(new), examples)
        for a in range(0, len(new), _BATCH):
            some, there = new[a : a + _BATCH], free[a : a + _BATCH]
            self.values[there] = self._compute(some)
        self.place[new], self._owner[free] = free, new
        return np.asarray(self.place[examples])

    def among(self, examples: Array, scale: float, constant: float) -> Array:
        """``scale`` times the values of a working set with each other, plus a constant.

        It is one block of memory, which holds those of the last call: examples that are still there
        come first, in the same order, or all values are gathered anew.
        """
        from marginsvm.kernel_matrix.compiled_block import gather

        old, n = self._work, len(examples)
        kept = np.flatnonzero(np.isin(old, examples))
        if self._frame != (scale, constant) or not np.array_equal(old[kept], examples[: len(kept)]):
            kept = kept[:0]
        self._make_room(kept, n)
        K, m = self._among[:n, :n], len(kept)
        for a in range(m, n, self.room):
            some = examples[a : a + self.room]
            gather(self.values, self.fetch(some), examples, a, scale, constant, K)
        K[:m, m:] = K[m:, :m].T
        self._work, self._frame = examples, (scale, constant)
        return K

    def _make_room(self, kept: Array, n: int) -> None:
        """A block for n examples, of which these of the last are the first."""
        from marginsvm.kernel_matrix.compiled_block import thin_out

        before = self._among
        if n > len(before):
            size = min(n + n // 2, self.side)
            self._among = np.empty((size, size), np.float32)
        elif len(kept) == len(self._work):
            return
        thin_out(before, kept, self._among)

    def _free(self, size: int, wanted: Array) -> Array:
        """Places of columns that are not wanted: those never used, then all others."""
        if self._used + size <= self.room:
            self._used += size
            return np.arange(self._used - size, self._used)
        idle = np.ones(self.room, bool)
        here = self.place[wanted]
        idle[here[here >= 0]] = False
        free = np.flatnonzero(idle)[-size:]
        owners = self._owner[free]
        self.place[owners[owners >= 0]] = -1
        self._owner[free], self._used = -1, self.room
        return free
