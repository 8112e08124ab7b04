"""The computations of passes, as functions of some blocks of examples.

Each takes the rows of the labels, blocks with the slices that their examples are of all, and arrays
with a value for each example, which are indexed by those slices. The results of consecutive blocks
are concatenated or added. So the blocks may lie anywhere: slices of an array in memory, parts of a
file, or chunks on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from marginsvm._rounding import CHAIN, LONG, summed
from marginsvm._typing import Array
from marginsvm.data.block import Block, Centre, joined
from marginsvm.rows import Rows

T = TypeVar("T")

Located = tuple[slice, Block]  # a block, and where its examples are among all
BlockCallback = Callable[[slice, Block, Array], None]  # called with a block and its margins

# If a smaller share of a block's examples has weight, these are copied, and used alone.
_SHARE_WITH_WEIGHT = 0.8


def span_of(blocks: list[Located]) -> slice:
    """Where the examples of consecutive blocks are."""
    return slice(blocks[0][0].start, blocks[-1][0].stop)


def weighted_sum(
    rows: Rows, blocks: Iterable[Located], V: Array, dtype: Any, centre: Centre
) -> Array:
    """``V^T X``, summed in ``dtype``; about the mean where ``Centre.before_products`` says so."""

    def of(V: Array, X: Block) -> Array:
        mean = centre.before_products(X)
        if mean is None:
            return X.adjoint(V, CHAIN)
        return summed(part.adjoint(V[span], CHAIN) for span, part in X.about(mean))

    return summed(of(V[block].astype(dtype, copy=False), X) for block, X in blocks)


def scores(
    rows: Rows,
    blocks: Iterable[Located],
    W: Array,
    shift: Array | float,
    centre: Centre,
    precise: bool,
    on_block: BlockCallback | None,
) -> Array:
    """``X W^T - shift``, where ``shift`` is the mean's share in the scores.

    Precise scores leave it out where a far mean is subtracted from the examples instead.
    ``on_block`` is called with every block and its margins.
    """
    F: list[Array] = []
    for block, X in blocks:
        mean = centre.before_products(X) if precise else None
        if precise:
            part = joined([some.times(W.T, LONG) for _, some in X.about(mean)])
        else:
            part = X.times(W.T)
        part = part if mean is not None else part - shift
        if on_block is not None:
            on_block(block, X, rows.margins(part, block))
        F.append(part)
    return np.concatenate(F).astype(np.float64, copy=False)


def margins(
    rows: Rows, blocks: Iterable[Located], slack: Array | None, W: Array, shift: Array | float
) -> Array:
    """Margins of the rows of the blocks, computed in the precision of the examples.

    ``slack`` is what the slack coordinates of a soft margin add to the margins.
    """

    def of(block: slice, X: Block) -> Array:
        M = rows.margins(X.times(W.T) - shift, block).astype(np.float64, copy=False)
        return M if slack is None else np.add(M, slack[block], out=M)

    return np.concatenate([of(block, X) for block, X in blocks])


def margins_and_sums(
    rows: Rows,
    blocks: Iterable[Located],
    slack: Array | None,
    W: Array,
    shift: Array | float,
    block_sums: Callable[[Rows, slice, Any, Array], T],
    merge: Callable[[T, T], T],
) -> tuple[Array, T]:
    """Margins, and the sums that a response needs of margins and examples; X is read once.
    ``block_sums(rows, block, X, margins)`` and ``merge`` are those of the response.
    """
    found: list[Array] = []

    def of(block: slice, X: Block) -> T:
        found.append(margins(rows, [(block, X)], slack, W, shift))
        return block_sums(rows, block, X, found[-1])

    sums = reduce(merge, (of(block, X) for block, X in blocks))
    return np.concatenate(found), sums


def image(rows: Rows, blocks: Iterable[Located], V: Array, first: int) -> Array:
    """``V^T X`` in the precision of the examples, where V begins with the example ``first``."""

    def of(block: slice, X: Block) -> Array:
        some = V[block.start - first : block.stop - first].astype(X.dtype, copy=False)
        return X.adjoint(some).astype(np.float64, copy=False)

    return summed(of(block, X) for block, X in blocks)


def columns(rows: Rows, blocks: Iterable[Located], right: Array, centre: Centre) -> Array:
    """Inner products of the examples with those of ``right``, one row for each of these."""
    out: list[Array] = []
    for _, X in blocks:
        out += [part.times(right.T).T for _, part in X.about(centre.before_products(X))]
    return np.concatenate(out, axis=1)


def second_moments(rows: Rows, blocks: Iterable[Located], weight: Array, centre: Centre) -> Array:
    """``sum weight (x, 1)(x, 1)'`` over the examples of weight other than 0, about the mean."""
    return summed(X.second_moments(weight[block], centre) for block, X in blocks)


def curvature(
    rows: Rows,
    blocks: Iterable[Located],
    weight: Array,
    linked: Array | None,
    W: Array,
    shift: Array,
    centre: Centre,
) -> tuple[Array, Array]:
    """``V^T X`` and the sum of V, for ``V = adjoint(weight * moves(X W^T - shift))``.

    Examples without weight are not read, where there are many. What ``linked`` adds to V is
    explained in ``moments.linked_moments``.
    """

    def of(index: Array | slice, X: Block) -> tuple[Array, Array]:
        F = X.times(W.T.astype(X.dtype, copy=False)) - shift
        V = rows.adjoint(weight[index] * rows.moves(F, index), index)
        if linked is not None:
            B = linked[index]
            each, both = B.sum(axis=1, keepdims=True), (B * F).sum(axis=1, keepdims=True)
            V += 0.5 * B * (each * F - both)
        return X.adjoint(V.astype(X.dtype, copy=False)), V.sum(axis=0)

    image, total = np.zeros(W.shape), np.zeros(W.shape[:-1])
    for part in _with_weight(blocks, have_weight(weight, linked), centre):
        more = of(*part)
        image += more[0]
        total += more[1]
    return image, total


def squares(
    rows: Rows, blocks: Iterable[Located], weight: Array, linked: Array | None, centre: Centre
) -> tuple[Array, Array, Array]:
    """``T^T X^2``, ``T^T X`` and the sum of T, for T of ``squared_adjoint``."""
    found: list[tuple[Array, Array, Array]] = []
    for index, X in _with_weight(blocks, have_weight(weight, linked), centre):
        T = squared_adjoint(rows, weight[index], linked, index)
        found.append((X.squared().adjoint(T), X.adjoint(T), T.sum(axis=0)))
    first, second, third = zip(*found, strict=True)
    return summed(first), summed(second), summed(third)


def squared_adjoint(
    rows: Rows, weight: Array, linked: Array | None, index: Array | slice = slice(None)
) -> Array:
    """``Rows.squared_adjoint``, with what ``linked`` adds; see ``moments.linked_moments``."""
    T = rows.squared_adjoint(weight, index)
    if linked is not None:
        B = linked[index]
        T = T + 0.5 * B * (B.sum(axis=1, keepdims=True) - B)
    return np.asarray(T)


def have_weight(weight: Array, linked: Array | None) -> Array:
    """Whether each example has weight, of either sign, or is linked."""
    has = weight != 0 if weight.ndim == 1 else weight.any(axis=1)
    return np.asarray(has if linked is None else has | linked.any(axis=1))


def _with_weight(
    blocks: Iterable[Located], has: Array, centre: Centre
) -> Iterator[tuple[Array | slice, Block]]:
    """Indices of examples with weight, and these; whole blocks where most examples have weight."""
    for block, X in blocks:
        some, start = np.flatnonzero(has[block]), block.start
        if few := len(some) < _SHARE_WITH_WEIGHT * len(X):
            X = X[some]
        parts = X.about(centre.mean) if centre.far else [(slice(0, len(X)), X)]
        for part, Y in parts:
            yield some[part] + start if few else slice(start + part.start, start + part.stop), Y
