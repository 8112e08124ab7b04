"""Columns of a Gram matrix in float32, for methods that look for weights; bounds are not theirs.

Methods move weights until margins are right to a few digits. Kernel values in float32 are good for
that, and take a third of the time and half of the memory. For a Gaussian kernel, whose values
follow from inner products of at most known length, there is a bound on what is rounded as well: a
row whose margin is beyond 1 by more than that needs no value in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.data.csr import as_block
from marginsvm.rows import LpNorm

# Columns that are computed at once: a product of as many rows is nearly as fast as a larger one,
# and they are still in cache when their exponentials are taken.
_BATCH = 128
_UNIT = 2.0**-24  # relative rounding error of an operation in float32
# Roundings of an exponential that was computed in float32 (NumPy's, and that of a given float32
# kernel that it is compared with), and of a squared distance beside those of its sum: the examples
# are rounded, and half of their squared lengths.
_OF_VALUE, _OF_DISTANCE = 16.0, 8.0
_LARGEST_POWER = 9  # degree of polynomials that are computed by products
# Examples whose kernel values with each other must fit: as many as rounds begin with.
_FEWEST = 400
# Examples that are written in float32 at once.
_WRITTEN_AT_ONCE = 4096


@dataclass(frozen=True)
class Formula:
    """A kernel that is a function of inner products: ``exp(-gamma |x - y|^2)``, or a polynomial.

    Attributes
    ----------
    gamma : float
    degree : int
        Of ``(gamma x'y + coef0)^degree``; 0: the Gaussian kernel.
    coef0 : float
    """

    gamma: float
    degree: int = 0
    coef0: float = 0.0

    @classmethod
    def named(cls, name: str, gamma: float, degree: float, coef0: float) -> Formula | None:
        """That of a kernel's name, if it has one."""
        if name == "rbf":
            return cls(gamma)
        power = float(degree)
        if name in ("poly", "polynomial") and power.is_integer() and 0 < power <= _LARGEST_POWER:
            return cls(gamma, int(power), coef0)
        return None

    def dimensions(self, d: int) -> float:
        """Of the feature space: monomials in d features; of the Gaussian kernel, infinite."""
        return float(comb(d + self.degree, d)) if self.degree else np.inf

    @property
    def is_definite(self) -> bool:
        """Whether its values are inner products, whatever the examples are."""
        return self.gamma >= 0.0 and (self.degree == 0 or self.coef0 >= 0.0)

    def diagonal(self, X: Any) -> Array:
        """Values of the examples with themselves."""
        if self.degree == 0:
            return np.ones(X.shape[0])
        return np.asarray((self.gamma * _lengths(X) ** 2 + self.coef0) ** self.degree)


class PreparedSingle:
    """Examples in float32 such that one product gives the kernel's argument, and its values.

    Parameters
    ----------
    formula : Formula
    X : ndarray or csr_matrix of shape (n, d)

    Attributes
    ----------
    lengths : ndarray of shape (n,)
        Norms of the examples about their mean, times ``sqrt(2 gamma)``.
    """

    def __init__(self, formula: Formula, X: Any) -> None:
        self._formula, gaussian = formula, formula.degree == 0
        scale = np.sqrt((2.0 if gaussian else 1.0) * formula.gamma)
        self._sparse = sparse = sp.issparse(X)
        mean = 0.0 if sparse or not gaussian else np.mean(X, axis=0, dtype=np.float64)
        if sparse:
            Z = (X * scale).astype(np.float32)
        else:
            Z = np.empty(X.shape, np.float32)
            for some in gen_batches(len(X), _WRITTEN_AT_ONCE):
                Z[some] = (X[some] - mean) * scale
        self.lengths, self._raw = _lengths(Z), np.sqrt(formula.gamma) * _lengths(X)
        self._raw += self._raw.max()  # values may be computed about a mean of some examples
        if gaussian and not sparse:
            near = (self.lengths + self.lengths.max()) / np.sqrt(2.0)
            self._raw = np.minimum(self._raw, 4.0 * near)
        if gaussian:  # an inner product gives z'w - |z|^2 / 2 - |w|^2 / 2
            ends = np.column_stack([np.ones(len(self.lengths)), -0.5 * self.lengths**2])
            stack = sp.hstack if sparse else np.hstack
            Z = stack([Z, ends.astype(np.float32)])
        self._Z = Z.tocsr() if sparse else Z

    def columns(self, examples: Array, out: Array) -> None:
        """Kernel values of some examples with all."""
        Z, formula = self._Z, self._formula
        some = Z[examples].toarray() if self._sparse else Z[examples]
        if formula.degree == 0:
            some[:, -2:] = some[:, :-3:-1]
        if self._sparse:
            out[:] = (Z @ some.T).T
        else:
            np.dot(some, Z.T, out=out)
        if formula.degree == 0:
            np.exp(out, out=out)
            return
        out += np.float32(formula.coef0)
        base = out.copy() if formula.degree > 1 else out
        for _ in range(formula.degree - 1):
            out *= base

    def error(self, examples: Array) -> Array:
        """Relative error of the values of all examples with these, at most; infinite: unknown.

        The argument of the exponential is ``z'w - |z|^2 / 2 - |w|^2 / 2``, a sum of d + 2 products.
        It rounds by ``(d + 2) u`` times the sum of their sizes at most, whatever its order, which
        is at most ``(|z| + |w|)^2 / 2``; rounded numbers and lengths add some more of that. What
        the values are compared with has such errors in float64, of examples about another mean.
        """
        if self._formula.degree:
            return np.full(len(self.lengths), np.inf)
        reach = (self.lengths + self.lengths[examples].max(initial=0.0)) ** 2
        rounded = 1.01 * _UNIT * (0.5 * self._Z.shape[1] + _OF_DISTANCE) * reach
        raw = (self._raw + self._raw[examples].max(initial=0.0)) ** 2
        given = UNIT * (self._Z.shape[1] + _OF_DISTANCE) * raw
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(rounded + given + _OF_VALUE * _UNIT))


def _lengths(X: Any) -> Array:
    """Norms of examples."""
    return np.asarray(np.sqrt(as_block(X).squared_lengths(LpNorm())))


class SingleColumns:
    """Columns in float32: computed in batches, kept while there is room.

    Half of the memory is for the values of a working set with each other, see ``among``.

    Parameters
    ----------
    block : callable
        ``block(examples, slice(None))`` gives kernel values.
    n_examples : int
    prepared : Prepared or None
        Gives them in its place.
    cache_size : float
        Memory for values (MB).
    count : callable
        Told how many kernel values are computed.

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
        block: Callable[[Array, slice], Array],
        n_examples: int,
        prepared: PreparedSingle | None,
        cache_size: float,
        count: Callable[[int], None],
    ) -> None:
        self._block, self.prepared, self._count = block, prepared, count
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
            one_block = there[-1] - there[0] == len(there) - 1
            out = self.values[there[0] : there[-1] + 1] if one_block else None
            found = self._computed(some, out)
            if out is None:
                self.values[there] = found
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

    def _computed(self, examples: Array, out: Array | None) -> Array:
        n = len(self.place)
        out = np.empty((len(examples), n), np.float32) if out is None else out
        if self.prepared is None:
            out[:] = self._block(examples, slice(None))
        else:
            self._count(out.size)
            self.prepared.columns(examples, out)
        return out
