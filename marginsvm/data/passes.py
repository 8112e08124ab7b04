"""The computations of passes, as functions of some blocks of examples.

Each takes the rows (labels), blocks ``(slice, X)`` of examples, and arrays with a value for
each example, which are indexed by those slices. The results of consecutive blocks are
concatenated or added. So the blocks may lie anywhere: slices of an array in memory, parts of a
file, or chunks on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import LONG, is_dense, product, summed, times
from marginsvm._typing import Array
from marginsvm.data.device import DeviceRows, is_full
from marginsvm.data.normalized import NormalizedRows
from marginsvm.rows import Rows

T = TypeVar("T")

Block = tuple[slice, Any]
BlockCallback = Callable[[slice, Any, Array], None]  # called with a block and its margins

# Numbers of examples that are written out in float64 at a time (8 MiB).
WRITTEN_OUT = 2**20
# Memory of the rows that are copied at a time where float64, or a far mean, asks for a copy.
_WIDENED_BYTES = 2**19
# Entries of sparse rows, times this, up to which products of sparse matrices are quicker than of
# those written out: 50,000 x 300, 12 entries a row: 15 ms for 50.
_SHORT = 16
# Share of the examples of a block: if fewer have weight, they are taken out of it.
_MOST = 0.8


class Centre(NamedTuple):
    """The mean of the examples, if it is subtracted from them.

    Attributes
    ----------
    mean : ndarray of shape (n_features,) or None
    far : bool
        Whether the mean is so far from the origin that it is subtracted from each example, as
        subtracting it from sums would lose digits.
    """

    mean: Array | None = None
    far: bool = False

    def widened(self, work: Callable[[Any], Array], X: Any) -> list[Array]:
        """Apply ``work`` in float64 to a dense block, about the mean if that is far.

        Where this takes a copy, it is of a few rows at a time.
        """
        if isinstance(X, DeviceRows):
            return [work(X.about(self.mean if self.far else None))]
        if X.dtype == np.float64 and not self.far:
            return [work(X)]
        size = max(1, _WIDENED_BYTES // (8 * max(1, X.shape[1])))
        shift = self.mean if self.far and self.mean is not None else 0.0
        parts = (X[i : i + size].astype(np.float64) - shift for i in range(0, len(X), size))
        return [work(part) for part in parts]

    def written_out(self, X: Any) -> Array:
        """Some examples, taken out of the others, as a dense float64 array about the mean."""
        X = (X if is_dense(X) else X.toarray()).astype(np.float64, copy=False)
        if self.mean is not None:
            X -= self.mean
        return X


def span_of(blocks: list[Block]) -> slice:
    """Where the examples of consecutive blocks are."""
    return slice(blocks[0][0].start, blocks[-1][0].stop)


def weighted_sum(
    rows: Rows, blocks: Iterable[Block], V: Array, dtype: Any, centre: Centre
) -> Array:
    """``V^T X``, summed in ``dtype``; dense blocks are taken about the mean if that is far."""

    def of(V: Array, X: Any) -> Array:
        if isinstance(X, DeviceRows):
            return V.T @ (X.about(centre.mean) if centre.far else X)
        if not is_dense(X):
            return V.T @ X
        return summed(about_the_mean(V, X)) if centre.far and len(X) else product(V.T, X)

    def about_the_mean(V: Array, X: Array) -> Iterator[Array]:
        start = 0
        for part in centre.widened(lambda A: A, X):
            yield product(V[start : start + len(part)].T, part)
            start += len(part)

    return summed(of(V[block].astype(dtype, copy=False), X) for block, X in blocks)


def scores(
    rows: Rows,
    blocks: Iterable[Block],
    W: Array,
    shift: Array | float,
    centre: Centre,
    precise: bool,
    on_block: BlockCallback | None,
) -> Array:
    """``X W^T - shift``; ``on_block`` is called with every block and its margins."""
    F: list[Array] = []
    for block, X in blocks:
        if precise and is_full(X):
            part = np.concatenate(centre.widened(lambda A: product(A, W.T, LONG), X))
            part = part if centre.far else part - shift
        else:
            part = times(X, W.T) - shift
        if on_block is not None:
            on_block(block, X, rows.margins(part, block))
        F.append(part)
    return np.concatenate(F).astype(np.float64, copy=False)


def margins(
    rows: Rows, blocks: Iterable[Block], slack: Array | None, W: Array, shift: Array | float
) -> Array:
    """Margins of the rows of the blocks, about as precise as the examples are."""

    def of(block: slice, X: Any) -> Array:
        M = rows.margins(times(X, W.T) - shift, block).astype(np.float64, copy=False)
        return M if slack is None else np.add(M, slack[block], out=M)

    return np.concatenate([of(block, X) for block, X in blocks])


def margins_and_sums(
    rows: Rows,
    blocks: Iterable[Block],
    slack: Array | None,
    W: Array,
    shift: Array | float,
    block_sums: Callable[[Rows, slice, Any, Array], T],
    merge: Callable[[T, T], T],
) -> tuple[Array, T]:
    """Margins, and what a response sums up of them and of the examples; X is read once.

    ``block_sums(rows, block, X, margins)`` and ``merge`` are those of the response.
    """
    found: list[Array] = []

    def of(block: slice, X: Any) -> T:
        found.append(margins(rows, [(block, X)], slack, W, shift))
        return block_sums(rows, block, X, found[-1])

    sums = reduce(merge, (of(block, X) for block, X in blocks))
    return np.concatenate(found), sums


def image(rows: Rows, blocks: Iterable[Block], V: Array, first: int) -> Array:
    """``V^T X`` in the precision of the examples, V beginning with the example ``first``."""

    def of(block: slice, X: Any) -> Array:
        some = V[block.start - first : block.stop - first].astype(X.dtype, copy=False)
        return np.asarray(times(some.T, X)).astype(np.float64, copy=False)

    return summed(of(block, X) for block, X in blocks)


def columns(rows: Rows, blocks: Iterable[Block], right: Array, centre: Centre) -> Array:
    """Inner products of the examples with those of ``right``, one row for each of these."""
    out: list[Array] = []
    for _, X in blocks:
        if is_full(X):
            out += [part.T for part in centre.widened(lambda A: times(A, right.T), X)]
        else:
            out.append((X @ right.T).T)
    return np.concatenate(out, axis=1)


def second_moments(rows: Rows, blocks: Iterable[Block], weight: Array, centre: Centre) -> Array:
    """``sum weight (x, 1)(x, 1)'`` over the examples of weight other than 0, about the mean."""
    H = np.zeros(())
    for block, X in blocks:
        d = X.shape[1]
        H = np.zeros((d + 1, d + 1)) if H.ndim == 0 else H
        if isinstance(X, DeviceRows):
            some = np.flatnonzero(weight[block])
            H += X[some].about(centre.mean).second_moments(weight[block][some])
            continue
        if sp.issparse(X) and not centre.far and _SHORT * X.nnz <= X.shape[0] * d:
            H += _sparse_moments(X, weight[block], centre)
            continue
        size = max(1, WRITTEN_OUT // (d + 1))
        for sign in (1.0, -1.0):  # x'x is one product of half the price
            signed = sign * weight[block]
            chosen = np.flatnonzero(signed > 0)
            for i in range(0, len(chosen), size):
                some = chosen[i : i + size]
                root = np.sqrt(signed[some])
                x = centre.written_out(X[some])
                x *= root[:, None]
                H[d, :d] += sign * (root @ x)
                H[:d, :d] += sign * (x.T @ x)
                H[d, d] += sign * signed[some].sum()
    return H


def _sparse_moments(X: Any, weight: Array, centre: Centre) -> Array:
    """The same of a CSR matrix of short rows, by sparse products: about 0 first."""
    some = np.flatnonzero(weight)
    X, d = X if len(some) == len(weight) else X[some], X.shape[1]
    weighted = X.multiply(weight[some][:, None]).tocsr()
    H = np.zeros((d + 1, d + 1))
    H[:d, :d], H[d, :d], H[d, d] = (weighted.T @ X).toarray(), weighted.sum(axis=0), weight.sum()
    if centre.mean is not None:
        mean, total = centre.mean, H[d, :d] - 0.5 * H[d, d] * centre.mean
        H[:d, :d] -= np.outer(mean, total) + np.outer(total, mean)
        H[d, :d] -= H[d, d] * mean
    return H


def curvature(
    rows: Rows,
    blocks: Iterable[Block],
    weight: Array,
    linked: Array | None,
    W: Array,
    shift: Array,
    centre: Centre,
) -> tuple[Array, Array]:
    """``V^T X`` and the sum of V, for coefficients V of weight times what W adds to margins.

    Examples without weight are not read, where there are many. For ``linked``, see
    ``moments``.
    """

    def of(index: Array | slice, X: Any) -> tuple[Array, Array]:
        F = times(X, W.T.astype(X.dtype, copy=False)) - shift
        V = rows.adjoint(weight[index] * rows.moves(F, index), index)
        if linked is not None:
            B = linked[index]
            each, both = B.sum(axis=1, keepdims=True), (B * F).sum(axis=1, keepdims=True)
            V += 0.5 * B * (each * F - both)
        return times(V.T.astype(X.dtype, copy=False), X), V.sum(axis=0)

    image, total = np.zeros(W.shape), np.zeros(W.shape[:-1])
    for part in _with_weight(blocks, have_weight(weight, linked), centre):
        more = of(*part)
        image += more[0]
        total += more[1]
    return image, total


def squares(
    rows: Rows, blocks: Iterable[Block], weight: Array, linked: Array | None, centre: Centre
) -> tuple[Array, Array, Array]:
    """``T^T X^2``, ``T^T X`` and the sum of T, the weights of the squares of each class' scores."""
    found: list[tuple[Array, Array, Array]] = []
    for index, X in _with_weight(blocks, have_weight(weight, linked), centre):
        T = squared_adjoint(rows, weight[index], linked, index)
        squared = X * X if is_dense(X) else _squared(X)
        found.append((times(T.T, squared), times(T.T, X), T.sum(axis=0)))
    first, second, third = zip(*found, strict=True)
    return summed(first), summed(second), summed(third)


def squared_adjoint(
    rows: Rows, weight: Array, linked: Array | None, index: Array | slice = slice(None)
) -> Array:
    """``Rows.squared_adjoint`` with links; see ``moments``."""
    T = rows.squared_adjoint(weight, index)
    if linked is not None:
        B = linked[index]
        T = T + 0.5 * B * (B.sum(axis=1, keepdims=True) - B)
    return np.asarray(T)


def _squared(X: Any) -> Any:
    """Squares of the entries of a stand-in for a matrix, or of a CSR matrix."""
    if isinstance(X, DeviceRows):
        return X.squared()
    if isinstance(X, NormalizedRows):
        return NormalizedRows(_squared(X.X), X.scale**2, X.constant**2)
    return X * X if is_dense(X) else type(X)((X.data**2, X.indices, X.indptr), shape=X.shape)


def have_weight(weight: Array, linked: Array | None) -> Array:
    """Whether examples have weight, which may be negative: a change."""
    has = weight != 0 if weight.ndim == 1 else weight.any(axis=1)
    return np.asarray(has if linked is None else has | linked.any(axis=1))


def _with_weight(
    blocks: Iterable[Block], has: Array, centre: Centre
) -> Iterator[tuple[Array | slice, Any]]:
    """Examples with weight and their indices; the blocks themselves where most have some."""
    for block, X in blocks:
        some = np.flatnonzero(has[block])
        index: Array | slice = block
        if len(some) < _MOST * X.shape[0]:
            index, X = some + block.start, X[some]
        if centre.far:
            there = isinstance(X, DeviceRows)
            X = X.about(centre.mean) if there else X.astype(np.float64) - centre.mean
        yield index, X
