"""Rows of more than two classes: one for each example and each class other than its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.rows.rows import Rows


class MulticlassRows(Rows):
    """Row ``(i, j)`` is ``phi(x_i) (e_{c_i} - e_j)^T / sqrt(2)``, j != c_i: as long as its example.

    Margins and weights are arrays of shape (n_examples, k). The entry of an example's own
    class is not a row: its margin is infinite and its weight zero.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky. Fast Margin Maximization via Dual Acceleration.
    ICML 2021. Section 5.2.
    """

    unit = np.sqrt(2.0)

    def __init__(
        self, codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
    ) -> None:
        super().__init__(codes, n_classes, balanced=balanced, weights=weights)
        self.shape = self.score_shape = (codes.size, n_classes)
        self.n_rows = codes.size * (n_classes - 1)
        self._examples = np.arange(codes.size)

    def _own(self, F: Array, block: slice | Array) -> tuple[Array, Array]:
        """Index of the entries of F that belong to the examples' own classes."""
        return self._examples[: len(F)], self.codes[block]

    def margins(self, F: Array, block: slice | Array = slice(None)) -> Array:
        margins = self.moves(F, block)
        margins[self._own(F, block)] = np.inf
        return margins

    def moves(self, F: Array, block: slice | Array = slice(None)) -> Array:
        return (F[self._own(F, block)][:, None] - F) * np.sqrt(0.5)

    def adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        V = q * -np.sqrt(0.5)
        V[self._own(q, block)] = q.sum(axis=1) * np.sqrt(0.5)
        return V

    def weights_of(self, V: Array) -> Array:
        q = V * -np.sqrt(2.0)
        q[self._examples, self.codes] = 0.0
        return q

    def squared_adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        T = 0.5 * q
        T[self._own(q, block)] = 0.5 * q.sum(axis=1)
        return T

    def locate(self, row_ids: Array) -> tuple[Array, Array]:
        examples, j = np.divmod(row_ids, self.n_classes)
        identity = np.eye(self.n_classes) * np.sqrt(0.5)
        return examples, identity[self.codes[examples]] - identity[j]

    def group(self, row_ids: Array) -> Array:
        examples, j = np.divmod(row_ids, self.n_classes)
        return self.codes[examples] * self.n_classes + j

    def offsets_of_multipliers(self, b: Array) -> Array:
        return np.append(b, 0.0) * np.sqrt(0.5)

    def expand(self, table: Array, block: slice = slice(None)) -> Array | float:
        return table.take(self.codes[block], axis=0) if self.balanced else table[0, 0]

    def table(self, reduced: Array, diagonal: float) -> Array:
        return reduced

    def score_offsets(self, beta: Array) -> Array | float:
        return np.sqrt(2.0) * beta if self.balanced else np.zeros(self.n_classes)

    def _block_reduced(self, ufunc: np.ufunc, values: Array, block: slice, none: float) -> Array:
        reduced = np.full((self.n_classes, self.n_classes), none)
        for c, mine in self._by_class(block):
            reduced[c] = ufunc.reduce(values[mine], axis=0)
        return reduced

    def _products_by_class(self, q: Array, X: Any, block: slice) -> Array:
        products = np.zeros((self.n_classes, self.n_classes, X.shape[1]), X.dtype)
        for c, mine in self._by_class(block):
            products[c] = X[mine].adjoint(q[mine].astype(X.dtype, copy=False))
        return products

    def _by_class(self, block: slice) -> Iterator[tuple[int, Array]]:
        """Classes that occur in a block, and the indices of their examples there."""
        codes = self.codes[block]
        for c in np.unique(codes):
            yield c, np.flatnonzero(codes == c)

    def _sum_of_groups(self, groups: Array) -> Array:
        return np.sqrt(0.5) * (groups.sum(axis=1) - groups.sum(axis=0))
