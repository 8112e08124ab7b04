"""Rows of two classes: each example, multiplied by the sign of its class."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.rows.rows import Rows


class BinaryRows(Rows):
    """One row for each example: ``y_i phi(x_i)``, with ``y_i = 1`` for class 1, else -1."""

    unit = 1.0

    def __init__(
        self, codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
    ) -> None:
        super().__init__(codes, n_classes, balanced=balanced, weights=weights)
        self.shape = self.score_shape = (codes.size,)
        self.n_rows = codes.size
        self._y = np.where(codes == 1, 1.0, -1.0)

    def moves(self, F: Array, block: slice | Array = slice(None)) -> Array:
        return self._y[block] * F

    def adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        return self._y[block] * q

    def weights_of(self, V: Array) -> Array:
        return self._y * V

    def squared_adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        return q

    def locate(self, row_ids: Array) -> tuple[Array, Array]:
        return row_ids, self._y[row_ids, None]

    def group(self, row_ids: Array) -> Array:
        return self.codes[row_ids]

    def offsets_of_multipliers(self, b: Array) -> Array:
        return np.array([-0.5, 0.5]) * b

    def expand(self, table: Array, block: slice = slice(None)) -> Array | float:
        if not self.balanced:
            return table[0, 0]
        return np.array([table[0, 1], table[1, 0]]).take(self.codes[block])

    def table(self, reduced: Array, diagonal: float) -> Array:
        return np.array([[diagonal, reduced[0]], [reduced[1], diagonal]])

    def score_offsets(self, beta: Array) -> Array | float:
        return float(beta[1] - beta[0]) if self.balanced else 0.0

    def _block_reduced(self, ufunc: np.ufunc, values: Array, block: slice, none: float) -> Array:
        reduced = np.full(2, none)
        ufunc.at(reduced, self.codes[block], values)  # faster than one mask for each class
        return reduced

    def _products_by_class(self, q: Array, X: Any, block: slice) -> Array:
        first = self.codes[block] == 0
        v = self.adjoint(q, block).astype(X.dtype, copy=False)
        products = np.zeros((2, 2, X.shape[1]), X.dtype)
        # two products with vectors are faster than one with a matrix of two columns
        products[0, 1], products[1, 0] = X.adjoint(v * first), X.adjoint(v * ~first)
        return products

    def _sum_of_groups(self, groups: Array) -> Array:
        return groups[0, 1] + groups[1, 0]
