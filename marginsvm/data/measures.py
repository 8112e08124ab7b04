"""How long examples and features are: the passes that measure a problem before its first round.

They are functions of blocks, as those in :mod:`marginsvm.data.passes` are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from marginsvm._rounding import times
from marginsvm._typing import Array
from marginsvm.data.device import DeviceRows, is_full
from marginsvm.data.normalized import NormalizedRows, norms
from marginsvm.data.passes import Block, Centre
from marginsvm.rows import LpNorm, Rows


def squared_lengths(rows: Rows, blocks: Iterable[Block], norm: LpNorm, centre: Centre) -> Array:
    """Squared lengths of the examples, about the mean."""

    def of(X: Any) -> Array:
        if isinstance(X, NormalizedRows):
            squared = X.squared_norms()
        else:
            there = isinstance(X, DeviceRows)
            squared = X.squared_lengths(norm.q) if there else norm.squared_lengths(X)
        if centre.mean is None or (centre.far and is_full(X)):
            return squared
        if norm.p != 2.0:
            return norm.squared_distances(X, centre.mean)
        return squared - 2.0 * times(X, centre.mean) + centre.mean @ centre.mean

    lengths: list[Array] = []
    with np.errstate(all="ignore"):  # X may hold anything: this is the first look at it
        for _, X in blocks:
            lengths += centre.widened(of, X) if is_full(X) else [of(X)]
    return np.concatenate(lengths)


def tallest(rows: Rows, blocks: Iterable[Block]) -> float:
    """Largest absolute value of a feature."""

    def of(X: Any) -> float:
        return float(abs(np.array(X.extremes()) if isinstance(X, DeviceRows) else X).max())

    return max(of(X) for _, X in blocks)


def spread(rows: Rows, blocks: Iterable[Block], centre: Centre) -> Array:
    """Largest distance of each feature from the mean, at most (sparse: from 0, plus the mean)."""
    offset = 0.0 if centre.mean is None else centre.mean

    def of(X: Any) -> Array:
        if is_full(X):
            low, high = _extremes(X)
            return np.maximum(np.abs(high - offset), np.abs(low - offset))
        return abs(X).max(axis=0).toarray().ravel().astype(np.float64) + np.abs(offset)

    return reduce(np.maximum, (of(X) for _, X in blocks))


def _extremes(X: Any) -> tuple[Array, Array]:
    """Smallest and largest value of each feature, in float64."""
    if isinstance(X, DeviceRows):
        return X.extremes()
    return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)


def longest(rows: Rows, blocks: Iterable[Block]) -> float:
    """Largest norm of an example, none of which has been divided by it."""
    return max(float(norms(X).max()) for _, X in blocks)
