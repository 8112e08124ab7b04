"""Ready-made sources of blocks for ``fit_blocks``: arrays, memory maps and folders of files.

A source is any object whose ``__iter__`` begins anew each time and yields blocks ``(X, y)`` or
``(X, y, sample_weight)``. Those here are cheap to make and to pickle: files are opened when the
blocks are asked for. Every pass reads again, so text and compressed files cost their parsing
each time; ``numpy.save`` is worth it where there are many passes.
"""

from marginsvm.data.sources import ArrayBlocks, DeviceBlocks, ParquetBlocks, SvmlightBlocks

__all__ = ["ArrayBlocks", "DeviceBlocks", "ParquetBlocks", "SvmlightBlocks"]
