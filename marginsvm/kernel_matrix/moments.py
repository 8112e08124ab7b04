"""Second moments of the differences of scores of many classes, by a pass over the examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.matrix import WRITTEN_OUT
from marginsvm.problem.rows import Rows

# Examples in a product, at least and at most: sums over fewer take longer to add than to compute,
# more leave the cache. Products of two features at a time.
_AT_LEAST, _AT_MOST, _FEATURE_PRODUCTS = 64, 1024, 512
# Products of two features, which serve all pairs of classes, take as long as products of the
# examples of about 20 pairs: they are used for more pairs, if this share of ``linked`` is not 0.
_MANY_LINKS, _MANY_PAIRS = 0.5, 20


def second_moments_of_classes(written: Any, rows: Rows, X: Any, weight: Array) -> Array:
    """``A' diag(weight) A`` for the rows A of many classes, with a constant feature if balanced."""
    k, d, has = rows.n_classes, X.shape[1] + rows.balanced, weight.any(axis=1)
    H, size = np.zeros((k, d, k, d)), max(1, WRITTEN_OUT // d)
    for c in np.unique(rows.codes):
        members = np.flatnonzero((rows.codes == c) & has)
        for i in range(0, len(members), size):
            some = members[i : i + size]
            _add_pairs(H, int(c), _with_constant(rows, written(X[some])), 0.5 * weight[some])
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


def linked_moments(written: Any, rows: Rows, X: Any, weight: Array, linked: Array) -> Array:
    """Second moments ``sum_i t_i x_i x_i'`` of the examples for each pair of classes j < l.

    The weight t_i is that of the squared difference of the example's scores for these: ``weight /
    2`` of its row if one of them is its own class, else ``linked_ij linked_il / 2``. The latter is
    there where rows share a cap on their weights, between which weight moves if it is reached.

    Returns
    -------
    ndarray of shape (k (k - 1) / 2, d, d)
        For ``of_differences``.
    """
    n_pairs, codes = rows.n_classes * (rows.n_classes - 1) // 2, rows.codes
    d = X.shape[1] + rows.balanced
    S = np.zeros((n_pairs, d, d))
    many = n_pairs > _MANY_PAIRS and np.mean(linked > 0.0) > _MANY_LINKS
    size = int(np.clip(WRITTEN_OUT // (d + n_pairs), _AT_LEAST, _AT_MOST))
    members = np.flatnonzero(weight.any(axis=1) | linked.any(axis=1))
    members = members[np.argsort(codes[members], kind="stable")]  # each class has few pairs
    for i in range(0, len(members), size):
        some = members[i : i + size]
        T = 0.5 * _weights_of_pairs(codes[some], weight[some], linked[some])
        (_add_all if many else _add_some)(S, _with_constant(rows, written(X[some])), T)
    return S


def of_differences(S: Array, k: int) -> Array:
    """Second moments for the scores of all k classes, from those for their differences."""
    one, other = np.triu_indices(k, 1)
    H = np.zeros((k, S.shape[1], k, S.shape[1]))
    H[one, :, other] = H[other, :, one] = -S
    for c in range(k):
        H[c, :, c] = S[(one == c) | (other == c)].sum(axis=0)
    return H.reshape(k * S.shape[1], -1)


def _weights_of_pairs(codes: Array, weight: Array, linked: Array) -> Array:
    """Twice the weights of ``linked_moments`` for examples in order of class: a row for each pair.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        The classes of the examples, increasing.
    weight, linked : ndarray of shape (n, k)
    """
    k, B = linked.shape[1], np.ascontiguousarray(linked.T)
    one, other = np.triu_indices(k, 1)
    T, last = np.empty((len(one), len(linked))), 0
    for j in range(k - 1):
        first, last = last, last + k - 1 - j
        np.multiply(B[j], B[j + 1 :], out=T[first:last])
    for c in np.unique(codes):
        of_class = slice(*np.searchsorted(codes, [c, c + 1]))
        T[(one == c) | (other == c), of_class] += np.delete(weight[of_class].T, c, axis=0)
    return T


def _add_some(S: Array, x: Array, T: Array) -> None:
    """Add ``x' diag(t) x`` to S for each row t of T, most of which is 0."""
    for p in np.flatnonzero(T.any(axis=1)):
        some = np.flatnonzero(T[p])
        S[p] += (x[some] * T[p, some, None]).T @ x[some]


def _add_all(S: Array, x: Array, T: Array) -> None:
    """The same for all rows of T at once, from the products of any two features."""
    columns, T = np.ascontiguousarray(x.T), T.T
    one, other = np.triu_indices(x.shape[1])
    for i in range(0, len(one), _FEATURE_PRODUCTS):
        a, b = one[i : i + _FEATURE_PRODUCTS], other[i : i + _FEATURE_PRODUCTS]
        moments = ((columns[a] * columns[b]) @ T).T
        S[:, a, b] += moments
        off = a != b
        S[:, b[off], a[off]] += moments[:, off]


def _with_constant(rows: Rows, x: Array) -> Array:
    return np.column_stack([x, np.ones(len(x))]) if rows.balanced else x
