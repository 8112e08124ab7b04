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

# Memory of the examples that a pass takes together. What it gathers or squares is at most as
# large; and for each such block, it waits for the device.
_DEVICE_BLOCK_BYTES = 2**30


class DeviceStore(Store):
    """Examples on a device, where passes compute.

    Of few examples that are taken out, algorithms get a copy on the host.

    Parameters
    ----------
    rows : OnDevice, or Normalized of them
    """

    one_pass = False  # all margins are computed before the first image
    sparse = False
    at_hand = True

    def __init__(self, rows: Block) -> None:
        self.shape, self.dtype = rows.shape, rows.dtype
        self.normalized = rows.scale is not None
        self._rows = rows
        n, d = rows.shape
        size = max(1, _DEVICE_BLOCK_BYTES // max(1, d * rows.dtype.itemsize))
        parts = (slice(i, min(i + size, n)) for i in range(0, n, size))
        self._blocks: list[Located] = [(part, rows[part] if size < n else rows) for part in parts]

    def map(self, work: Callable[..., T], rows: Rows, *local: Array | None) -> Iterator[T]:
        """All blocks, one after the other."""
        return iter([work(rows, self._blocks, *local)])

    def take(self, index: Array) -> Block:
        """Some of the examples, on the host."""
        return self._rows[index].on_host()

    def few(self, index: Array) -> Block:
        """Some of the examples, on the device."""
        return self._rows[index]

    def divided(self, constant: float) -> DeviceStore:
        """Examples divided by their norms; they are not copied."""
        return DeviceStore(normalized(self._rows, constant))
