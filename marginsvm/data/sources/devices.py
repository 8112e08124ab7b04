"""Blocks that every pass copies to a device: data larger than its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import scipy.sparse as sp
from sklearn.utils._array_api import array_api_compat

from marginsvm._typing import Array
from marginsvm.data.device import Device, OnDevice


class DeviceBlocks:
    """Blocks of another source, on which passes compute on a device.

    Every pass copies them there, one while the one before is worked on; for torch and CUDA,
    through pinned memory. So a pass takes as long as the bus does, and the device holds two blocks.
    What is fitted is in NumPy, as the examples are.

    Parameters
    ----------
    source : iterable
        Yields ``(X, y)`` or ``(X, y, sample_weight)`` anew in each iteration, X being dense and
        on the host.
    xp : module
        Library of arrays, such as torch or cupy.
    device : object, default=None
        One of its devices, as the library names it; it must have float64. None: the default one.

    Attributes
    ----------
    bytes_per_second : float or None
        How fast the last pass was (units: bytes of X over seconds, the work included); None before
        the first.

    Raises
    ------
    ValueError
        If the device has no float64.

    References
    ----------
    Python array API standard, https://data-apis.org/array-api/latest/

    Examples
    --------
    Here, the library is NumPy itself; for a GPU it is ``DeviceBlocks(source, xp=torch,
    device="cuda")``.

    >>> import numpy as np
    >>> from marginsvm import MomentumMarginClassifier
    >>> from marginsvm.sources import ArrayBlocks, DeviceBlocks
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 1.0], [4.0, 0.0]])
    >>> source = DeviceBlocks(ArrayBlocks(X, [0, 0, 1, 1], block_rows=2), xp=np)
    >>> MomentumMarginClassifier(tol=0.01).fit_blocks(source).status_
    'certified'
    >>> source.bytes_per_second > 0.0
    True
    """

    def __init__(self, source: Any, *, xp: Any, device: Any = None) -> None:
        self.source = source
        self.bytes_per_second: float | None = None
        compatible = array_api_compat.array_namespace(xp.asarray(0.0))
        self._place = Device(compatible, device)
        types = compatible.__array_namespace_info__().dtypes(kind="real floating", device=device)
        if "float64" not in types:
            raise ValueError(
                f"bounds are computed in float64, which the device {device} does not have: pass "
                "the source itself to fit_blocks"
            )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.source)

    def copied(self, blocks: Iterator[Array]) -> Iterator[OnDevice]:
        """Examples of blocks, copied to the device when their turn comes.

        Parameters
        ----------
        blocks : iterator of ndarray of shape (n_block, n_features)

        Returns
        -------
        iterator of OnDevice

        Raises
        ------
        TypeError
            If a block is sparse.
        """
        begin, size = time.perf_counter(), 0
        for X in blocks:
            if sp.issparse(X):
                raise TypeError("DeviceBlocks copies dense blocks only, but a block is sparse")
            size += X.nbytes
            yield OnDevice(self._there(X), self._place)
        self.bytes_per_second = size / (time.perf_counter() - begin)

    def _there(self, X: Array) -> Any:
        """A block on the device; for CUDA, copied beside the work on another one."""
        there = self._place.device
        if not str(there).startswith("cuda"):
            return self._place.put(X)
        import torch

        pinned = torch.empty(X.shape, dtype=getattr(torch, X.dtype.name), pin_memory=True)
        pinned.numpy()[...] = X
        stream = torch.cuda.Stream(there)
        with torch.cuda.stream(stream):
            block = pinned.to(there, non_blocking=True)
        stream.synchronize()
        return block

    def __repr__(self) -> str:
        return f"DeviceBlocks({self.source!r}, device={self._place.device!r})"
