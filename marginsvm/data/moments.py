"""Second moments of the differences of scores of many classes, by a pass over the examples."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from marginsvm._typing import Array
from marginsvm.data.passes import WRITTEN_OUT, Block, Centre, have_weight
from marginsvm.rows import Rows

# Numbers that stay in a processor's cache (1 MB), and examples in a product at least.
_CACHE, _AT_LEAST = 2**17, 64
# Share of the pairs of examples and of two classes: if fewer have weight, each pair of classes
# takes a product with its own examples.
_MANY_PAIRS = 0.25


def second_moments_of_classes(
    rows: Rows,
    blocks: Iterable[Block],
    weight: Array,
    linked: Array | None,
    centre: Centre,
    radius: float,
) -> Array:
    """``A' D A`` of more than two classes, with a constant feature if balanced.

    Beside the rows of an example i against its own class, the differences of its scores for other
    classes j and l are weighed, by ``linked_ij linked_il / 2``. That is what rows whose weights
    share a cap come to: the more of it is reached, the more of the weight only moves between them.
    """
    if linked is not None:
        return _linked_moments(rows, blocks, weight, linked, centre, radius)
    k, H, has = rows.n_classes, np.zeros(()), have_weight(weight, None)
    for block, X in blocks:
        d, codes = X.shape[1] + rows.balanced, rows.codes[block]
        H = np.zeros((k, d, k, d)) if H.ndim == 0 else H
        size = max(1, WRITTEN_OUT // d)
        for c in np.unique(codes):
            members = np.flatnonzero((codes == c) & has[block])
            for i in range(0, len(members), size):
                some = members[i : i + size]
                x = _with_constant(rows, centre.written_out(X[some]) / radius)
                _add_pairs(H, int(c), x, 0.5 * weight[block][some])
    return H.reshape(k * d, k * d)


def _add_pairs(H: Array, c: int, x: Array, weight: Array) -> None:
    """Add the rows of examples of class c against every other class."""
    own = np.zeros((x.shape[1], x.shape[1]))
    for j in np.flatnonzero(weight.any(axis=0)):
        few = np.flatnonzero(weight[:, j])
        pairs = (x[few] * weight[few, j, None]).T @ x[few]
        H[c, :, j] -= pairs
        H[j, :, c] -= pairs
        H[j, :, j] += pairs
        own += pairs
    H[c, :, c] += own


def _with_constant(rows: Rows, x: Array) -> Array:
    return np.column_stack([x, np.ones(len(x))]) if rows.balanced else x


def _linked_moments(
    rows: Rows, blocks: Iterable[Block], weight: Array, linked: Array, centre: Centre, radius: float
) -> Array:
    """``second_moments_of_classes`` where any two classes may be held against each other."""
    k, S, has = rows.n_classes, np.zeros(()), have_weight(weight, linked)
    one, other = np.triu_indices(k, 1)
    for block, X in blocks:
        d = X.shape[1] + rows.balanced
        S = np.zeros((len(one), d, d)) if S.ndim == 0 else S
        members, size = np.flatnonzero(has[block]), max(_AT_LEAST, WRITTEN_OUT // (d + len(one)))
        for i in range(0, len(members), size):
            some = members[i : i + size]
            x = _with_constant(rows, centre.written_out(X[some]) / radius)
            T = _of_pairs(rows.codes[block][some], weight[block][some], linked[block][some])
            S += _moments_of_pairs(x, 0.5 * T)
    H = np.zeros((k, d, k, d))
    H[one, :, other] = H[other, :, one] = -S
    for c in range(k):
        H[c, :, c] = S[(one == c) | (other == c)].sum(axis=0)
    return H.reshape(k * d, k * d)


def _of_pairs(codes: Array, weight: Array, linked: Array) -> Array:
    """By how much two scores of an example are held against each other, for each two classes."""
    k = weight.shape[1]
    one, other = np.triu_indices(k, 1)
    T = np.take(linked, one, axis=1) * np.take(linked, other, axis=1)
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        own = np.flatnonzero((one == c) | (other == c))
        T[members[:, None], own] += np.delete(weight[members], c, axis=1)
    return T


def _moments_of_pairs(x: Array, T: Array) -> Array:
    """``x' diag(t) x`` for each column t of an array."""
    (n, d), n_pairs = x.shape, T.shape[1]
    if np.count_nonzero(T) < _MANY_PAIRS * T.size:
        S = np.zeros((n_pairs, d, d))
        for p in np.flatnonzero(T.any(axis=0)):
            some = np.flatnonzero(T[:, p])
            S[p] = (x[some] * T[some, p, None]).T @ x[some]
        return S
    M, size = np.zeros((d, d, n_pairs)), max(_AT_LEAST, _CACHE // (d + n_pairs))
    for i in range(0, n, size):
        columns, t = np.ascontiguousarray(x[i : i + size].T), T[i : i + size]
        for a in range(d):
            M[a, a:] += (columns[a:] * columns[a]) @ t
    for a in range(d):
        M[a:, a] = M[a, a:]
    return np.moveaxis(M, 2, 0)
