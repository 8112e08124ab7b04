"""What a pass over the examples computes: functions of some blocks of them.

Each takes the rows (labels), blocks ``(slice, X)`` of examples, and arrays with a value for
each example, which are indexed by those slices; results of consecutive blocks are put
one behind the other or added. So the blocks may be anywhere: slices of an array in
memory, pieces of a file, or chunks on another machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix.normalized import NormalizedRows
from marginsvm.kernel_matrix.norms import LpNorm
from marginsvm.kernel_matrix.rows import Rows

Block = tuple[slice, Any]
Offer = Callable[[slice, Any, Array], None]

_WIDENED_BYTES = 2**19  # held beside X where float64 or the mean matter


class Centre(NamedTuple):
    """The mean of the examples, where these count from it.

    Attributes
    ----------
    mean : ndarray of shape (n_features,) or None
    far : bool
        It is so far from the origin that it would cost digits if it were subtracted late.
    """

    mean: Array | None = None
    far: bool = False

    def widened(self, work: Callable[[Array], Array], X: Array) -> list[Array]:
        """Apply ``work`` in float64 to a dense block, about the mean if that is far.

        Where this takes a copy, it is of a few rows at a time.
        """
        if X.dtype == np.float64 and not self.far:
            return [work(X)]
        size = max(1, _WIDENED_BYTES // (8 * max(1, X.shape[1])))
        shift = self.mean if self.far and self.mean is not None else 0.0
        parts = (X[i : i + size].astype(np.float64) - shift for i in range(0, len(X), size))
        return [work(part) for part in parts]


def squared_lengths(rows: Rows, blocks: Iterable[Block], norm: LpNorm, centre: Centre) -> Array:
    """Squared lengths of the examples, about the mean."""

    def of(X: Any) -> Array:
        known = isinstance(X, NormalizedRows)
        squared = X.squared_norms() if known else norm.squared_lengths(X)
        if centre.mean is None or (centre.far and isinstance(X, np.ndarray)):
            return squared
        return squared - 2.0 * (X @ centre.mean) + centre.mean @ centre.mean

    lengths: list[Array] = []
    with np.errstate(all="ignore"):  # X may hold anything: this is the first look at it
        for _, X in blocks:
            lengths += centre.widened(of, X) if isinstance(X, np.ndarray) else [of(X)]
    return np.concatenate(lengths)


def weighted_sum(rows: Rows, blocks: Iterable[Block], V: Array, dtype: Any) -> Array:
    """``V^T X``, summed in ``dtype``; a float32 block is widened a few rows at a time."""

    def product(V: Array, X: Any) -> Array:
        if not isinstance(X, np.ndarray) or V.dtype == X.dtype:
            return V.T @ X
        size = max(1, _WIDENED_BYTES // (8 * max(1, X.shape[1])))
        return total(V[i : i + size].T @ X[i : i + size] for i in range(0, len(X), size))

    return total(product(V[block].astype(dtype, copy=False), X) for block, X in blocks)


def scores(
    rows: Rows,
    blocks: Iterable[Block],
    W: Array,
    shift: Array | float,
    centre: Centre,
    precise: bool,
    offer: Offer | None,
) -> Array:
    """``X W^T - shift``; ``offer`` is shown the blocks and their margins."""
    F: list[Array] = []
    for block, X in blocks:
        if precise and isinstance(X, np.ndarray):
            part = np.concatenate(centre.widened(lambda A: A @ W.T, X))
            part = part if centre.far else part - shift
        else:
            part = X @ W.T - shift
        if offer is not None:
            offer(block, X, rows.margins(part, block))
        F.append(part)
    return np.concatenate(F).astype(np.float64, copy=False)


def softmax_sums(
    rows: Rows,
    blocks: Iterable[Block],
    prior: Array | None,
    slack: Array | None,
    W: Array,
    shift: Array | float,
    mu: float,
) -> tuple[Array, list[Sum]]:
    """Margins, and for each group ``V^T X`` of their softmax weights, X read once."""
    margins = []
    sums = [Sum() for _ in rows.absent]
    for block, X in blocks:
        M = rows.margins(X @ W.T - shift, block).astype(np.float64, copy=False)
        if slack is not None:
            M += slack[block]
        margins.append(M)
        for absent, group in zip(rows.absent, sums, strict=True):
            a = -M if absent is None else absent[block] - M
            high = float(a.max())
            if high == -np.inf:  # no row of this group in the block
                continue
            a -= high
            e = np.exp(a * (1.0 / mu), out=a)
            if prior is not None:
                e *= prior[block]
            V = rows.signed(e, block).astype(X.dtype, copy=False)
            group.add(high / mu, float(e.sum()), V.T @ X)
    return np.concatenate(margins), sums


def columns(rows: Rows, blocks: Iterable[Block], right: Array, centre: Centre) -> Array:
    """Inner products of the examples with those of ``right``, one row for each of these."""
    out: list[Array] = []
    for _, X in blocks:
        if isinstance(X, np.ndarray):
            out += [part.T for part in centre.widened(lambda A: A @ right.T, X)]
        else:
            out.append((X @ right.T).T)
    return np.concatenate(out, axis=1)


class Sum:
    """``sum_r exp(-margin_r - high) a_r`` and its mass, relative to the largest exponent."""

    def __init__(self) -> None:
        self.high, self.mass, self.image = -np.inf, 0.0, np.float64(0.0)

    def add(self, high: float, mass: float, image: Any) -> None:
        """Merge with another sum: both at the larger of the two exponents."""
        if mass == 0.0:
            return
        if high > self.high:
            fade = math.exp(self.high - high)
            self.high, self.mass, self.image = high, self.mass * fade, self.image * fade
        grow = math.exp(high - self.high)
        self.mass += mass * grow
        self.image = self.image + image * grow

    def merged(self, other: Sum) -> Sum:
        """Merge with the sum over the blocks that follow."""
        self.add(other.high, other.mass, other.image)
        return self

    def average(self) -> Array:
        """Mean of the rows under their weights."""
        return np.asarray(self.image / self.mass)


def total(parts: Iterable[Any]) -> Any:
    """Sum, in order."""
    return reduce(np.add, parts)
