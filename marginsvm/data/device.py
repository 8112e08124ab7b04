"""Examples that lie on a device, in arrays of torch, CuPy or another library.

They stay there: products with them are computed on the device, and only results are copied to the
host. Only operations of the array API standard are used.

A product is computed in the wider of the types of its factors: in float64 where bounds are computed
from it, else in float32 if X is float32 or narrower. Float32 may mean three digits, where
TensorFloat-32 is allowed. Examples of another type are converted a part at a time.

References
----------
Python array API standard, https://data-apis.org/array-api/latest/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import config_context

from marginsvm._typing import Array
from marginsvm.certify.host import is_foreign, on_host
from marginsvm.data.block import Block, Centre
from marginsvm.rows import LpNorm

# Memory of the examples that are converted to float64 at a time. A product with these takes long
# beside its launch, some 10 microseconds.
_PART_BYTES = 2**24
_FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Device:
    """A device that has float64, and the array library that it is used by.

    Attributes
    ----------
    xp : module
        Namespace of the library, as scikit-learn wraps it.
    device : object
        As the library names it.
    """

    xp: Any
    device: Any

    @property
    def float_types(self) -> list[Any]:
        """Types that examples may have, the widest first."""
        names = ("float64", "float32", "float16", "bfloat16")
        return [getattr(self.xp, name) for name in names if hasattr(self.xp, name)]

    def put(self, array: Any, dtype: np.dtype | None = None) -> Any:
        """Copy an array to the device; one that is there already is only converted."""
        if not is_foreign(array):
            if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
                return self.put(array.T, dtype).T
            array = np.array(array, order="C")  # libraries may share memory, or want to write
            array = self.xp.asarray(array, device=self.device)
        return array if dtype is None else self.cast(array, dtype)

    def cast(self, array: Any, dtype: np.dtype) -> Any:
        """Convert an array on the device."""
        return self.xp.astype(array, getattr(self.xp, dtype.name), copy=False)


@dataclass(frozen=True, eq=False)
class OnDevice(Block):
    """Examples on a device.

    The result of a product is where the other factor is: of an array of NumPy, in NumPy.

    Attributes
    ----------
    array : array of shape (n, d)
        Of float64, float32 or a narrower type.
    place : Device
        Where it is.
    wide : bool
        Whether it stands for an array of float64, whatever the type of the numbers.
    mean : ndarray of shape (d,) or None
        Subtracted from each example.
    power : {1, 2}
        2: stands for the squares of the entries.
    """

    array: Any
    place: Device
    wide: bool = False
    mean: Array | None = None
    power: int = 1

    is_whole = True

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Examples and features."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """Type of NumPy in which products are computed, unless the other factor is wider."""
        wide = self.wide or self.array.dtype == self.place.xp.float64
        return _FLOAT64 if wide else np.dtype(np.float32)

    @property
    def matrix(self) -> OnDevice:
        """The block itself, which ``kernel_on_device`` takes."""
        return self

    def __getitem__(self, index: Any) -> OnDevice:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return replace(self, array=self.array[start:stop, :])
        there = self.place.put(np.asarray(index, dtype=np.int64))
        return replace(self, array=self.place.xp.take(self.array, there, axis=0))

    def features(self, index: Any) -> OnDevice:
        """Some of the features, by an array of their indices on the device."""
        return replace(self, array=self.place.xp.take(self.array, index, axis=1))

    def widened(self, mean: Array | None = None) -> OnDevice:
        """The same in float64, with a mean subtracted from each example."""
        return replace(self, wide=True, mean=mean)

    def about(self, mean: Array | None) -> Iterator[tuple[slice, Block]]:
        return iter([(slice(0, len(self)), self.widened(mean))])

    def squared(self) -> OnDevice:
        """Squares of the entries."""
        return replace(self, power=2)

    def toarray(self) -> Array:
        """The examples as a new array of NumPy, for few of them."""
        return np.concatenate([on_host(part) for _, part in self._on_device(self.dtype)])

    def times(self, W: Any, chain: int = 0) -> Any:
        dtype = self._common(W)
        there = self.place.put(W, dtype)
        found = [part @ there for _, part in self._on_device(dtype)]
        F = found[0] if len(found) == 1 else self.place.xp.concat(found)
        return F if is_foreign(W) else on_host(F)

    def adjoint(self, V: Array, chain: int = 0) -> Array:
        dtype = self._common(V)
        total = np.zeros((*V.T.shape[:-1], self.shape[1]), dtype)
        for rows, part in self._on_device(dtype):
            total += on_host(self.place.put(V.T[..., rows], dtype) @ part)
        return total

    def norms(self) -> Array:
        return self._norms()  # all at once

    def _squares(self, factor: float) -> Array:
        if factor == 1.0:
            return self._sums(lambda x: x * x)
        return self.on_host()._squares(factor)

    def squared_lengths(self, norm: LpNorm) -> Array:
        if norm.p == 2.0:
            return self._sums(lambda x: x * x)
        q = norm.q
        low, high = self.extremes()
        mean = 0.0 if self.mean is None else self.mean
        top = float(max(np.abs(low - mean).max(), np.abs(high - mean).max())) or 1.0
        relative = self._sums(lambda x: (self.place.xp.abs(x) / top) ** q) ** (2.0 / q)
        with np.errstate(over="ignore"):  # infinite, as with q = 2
            return np.asarray(np.square(np.float64(top)) * relative)

    def extremes(self) -> tuple[Array, Array]:
        """Smallest and largest value of each feature, no mean being subtracted, in float64."""
        xp = self.place.xp
        low, high = (on_host(f(self.array, axis=0)) for f in (xp.min, xp.max))
        return low.astype(np.float64), high.astype(np.float64)

    def largest(self) -> float:
        return float(abs(np.array(self.extremes())).max())

    def spread(self, mean: Array | float) -> Array:
        low, high = self.extremes()
        return np.maximum(np.abs(high - mean), np.abs(low - mean))

    def mean_of_entries(self, share: Array, centre: float, power: int) -> float:
        X = self.widened(np.full(self.shape[1], centre))
        of_rows = X.times(np.ones(self.shape[1])) if power == 1 else X._squares(1.0)
        return float(share @ of_rows)

    def second_moments(self, weight: Array, centre: Centre) -> Array:
        some, d = np.flatnonzero(weight), self.shape[1]
        H, weight = np.zeros((d + 1, d + 1)), weight[some]
        for rows, x in self[some].widened(centre.mean)._on_device(_FLOAT64):
            weighted = x * self.place.put(weight[rows, None], _FLOAT64)
            H[:d, :d] += on_host(x.T @ weighted)
            H[d, :d] += on_host(self.place.xp.sum(weighted, axis=0))
        H[d, d] = weight.sum()
        return H

    def _sums(self, function: Callable[[Any], Any]) -> Array:
        """Sums of a function of the entries of each row, in float64.

        They are added in pairs, so that each term passes through few additions on any device.
        """
        found, xp = [], self.place.xp
        for _, part in self.widened(self.mean)._on_device(_FLOAT64):
            terms = function(part)
            while terms.shape[1] > 1:
                half = terms.shape[1] // 2
                rest = terms[:, 2 * half :]
                terms = terms[:, :half] + terms[:, half : 2 * half]
                terms = xp.concat([terms, rest], axis=1) if rest.shape[1] else terms
            found.append(on_host(terms)[:, 0])
        return np.concatenate(found)

    def _common(self, other: Any) -> np.dtype:
        """The wider type of this block and another factor."""
        xp = self.place.xp if is_foreign(other) else np
        return _FLOAT64 if other.dtype == xp.float64 else self.dtype

    def _on_device(self, dtype: np.dtype) -> Iterator[tuple[slice, Any]]:
        """Parts of the examples as arrays of a type on the device, with their slices."""
        place, (n, d) = self.place, self.shape
        mean = None if self.mean is None else place.put(self.mean, dtype)
        same = self.array.dtype == getattr(place.xp, dtype.name)
        as_it_is = same and mean is None and self.power == 1
        size = max(1, n if as_it_is else _PART_BYTES // (8 * max(1, d)))
        for i in range(0, max(1, n), size):
            rows = slice(i, min(i + size, n))
            part = place.cast(self.array[rows, :] if size < n else self.array, dtype)
            part = part if mean is None else part - mean
            yield rows, part * part if self.power == 2 else part


def kernel_on_device(kernel: Callable[[Any, Any], Any]) -> Callable[[OnDevice, OnDevice], Any]:
    """One of scikit-learn's named kernels, for examples on a device; its values stay there.

    They are computed in float64, so that they are as precise as the examples, even where products
    of float32 are not.
    """

    def values(A: OnDevice, B: OnDevice) -> Any:
        place = A.place
        with config_context(array_api_dispatch=True):  # here: each thread has its own setting
            return kernel(place.cast(A.array, _FLOAT64), place.cast(B.array, _FLOAT64))

    return values


def kernel_on_host(kernel: Callable[[Any, Any], Any]) -> Callable[[OnDevice, OnDevice], Array]:
    """``kernel_on_device``, with its values copied to the host."""
    values = kernel_on_device(kernel)
    return lambda A, B: on_host(values(A, B))
