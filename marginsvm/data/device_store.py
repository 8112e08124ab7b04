"""A store of examples on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from marginsvm._typing import Array
from marginsvm.data.block import Block
from marginsvm.data.memory import Store
from marginsvm.data.normalized import normalized
from marginsvm.data.passes import Located
from marginsvm.rows import Rows

T = TypeVar("T")

# Memory of a block. Copies and squares of its examples take at most as much again; and a pass waits
# for the device once for each block.
_DEVICE_BLOCK_BYTES = 2**30


class DeviceStore(Store):
    """Examples on a device, where passes compute; ``take`` copies some to the host.

    Parameters
    ----------
    X : OnDevice, or Normalized of it
    """

    one_pass = False  # all margins are computed before the first image
    sparse = False
    at_hand = True

    def __init__(self, X: Block) -> None:
        self.shape, self.dtype = X.shape, X.dtype
        self.normalized = X.scale is not None
        self._X = X
        n, d = X.shape
        size = max(1, _DEVICE_BLOCK_BYTES // max(1, d * X.dtype.itemsize))
        parts = (slice(i, min(i + size, n)) for i in range(0, n, size))
        self._blocks: list[Located] = [(part, X[part] if size < n else X) for part in parts]

    def map(self, work: Callable[..., T], rows: Rows, *local: Array | None) -> Iterator[T]:
        """All blocks, one after the other."""
        return iter([work(rows, self._blocks, *local)])

    def take(self, index: Array) -> Block:
        """Some of the examples, on the host."""
        return self._X[index].on_host()

    def few(self, index: Array) -> Block:
        """Some of the examples, on the device."""
        return self._X[index]

    def divided(self, constant: float) -> DeviceStore:
        """Examples divided by their norms; they are not copied."""
        return DeviceStore(normalized(self._X, constant))
