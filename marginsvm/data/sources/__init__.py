"""What :mod:`marginsvm.sources` offers."""

from marginsvm.data.sources.arrays import ArrayBlocks
from marginsvm.data.sources.devices import DeviceBlocks
from marginsvm.data.sources.parquet import ParquetBlocks
from marginsvm.data.sources.svmlight import SvmlightBlocks

__all__ = ["ArrayBlocks", "DeviceBlocks", "ParquetBlocks", "SvmlightBlocks"]
