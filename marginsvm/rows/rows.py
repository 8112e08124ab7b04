"""The rows of a labelled data set, whose smallest margin is maximised.

A row is an example of some class ``c`` held against another class ``j``: its margin is the
difference of the two scores. It belongs to the *group* ``(c, j)``. An unpenalised intercept is an
offset ``beta[c]`` for each class, which shifts all the margins of a group by
``beta[c] - beta[j]``. So everything about intercepts is computed from k x k tables with one entry
for each group. Without an unpenalised intercept there is a single group, and tables are 1 x 1.

Maximising the smallest margin is a zero-sum game of a predictor against a *data player*, who
distributes weights over the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.rows.cycles import cycle_offsets, min_cycle


class Rows(ABC):
    """The rows of a labelled data set, as two linear maps; they are never formed as a matrix.

    ``margins(F)`` maps the scores F of a predictor on all examples to the margins of the rows.
    ``adjoint(q)``, the adjoint map, takes weights on the rows to coefficients on the examples.
    Where it is given, ``block`` says to which of the examples the arrays belong.

    A *flat index* of a row is its index in the flattened array of margins.

    Parameters
    ----------
    codes : ndarray of shape (n_examples,)
        Class of each example, in ``0..n_classes-1``.
    n_classes : int
    balanced : bool
        Whether there is an unpenalised intercept: the data player then chooses among balanced
        weights only, those with ``adjoint(q).sum(axis=0) == 0``.
    weights : ndarray of shape (n_examples,) or None
        Sample weights, to which ``prior`` is proportional; None: they are all equal.
    """

    shape: tuple[int, ...]  # of margins and of weights on the rows
    n_rows: int
    score_shape: tuple[int, ...]  # of F, and of coefficients on the examples
    unit: float  # margins of rows times this and the problem's radius are in the user's units

    def __init__(
        self, codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
    ) -> None:
        self.codes = codes
        self.n_classes = n_classes
        self.balanced = balanced
        self.weights = weights
        self._order = np.argsort(codes, kind="stable")  # one class after the other, for reduceat
        self._starts = np.searchsorted(codes[self._order], np.arange(n_classes))

    @property
    def n_examples(self) -> int:
        return self.codes.size

    def flat_indices(self) -> Array:
        """Flat indices of all rows (an example has no row against its own class)."""
        return np.flatnonzero(np.isfinite(self.margins(np.zeros(self.score_shape))))

    @property
    def prior(self) -> float | Array:
        """Distribution over the rows in proportion to sample weights; broadcasts to ``shape``."""
        if self.weights is None:
            return 1.0 / self.n_rows
        prior = self.weights / (self.weights.sum() * self.n_rows / self.n_examples)
        return self.per_example(prior)

    @property
    def total_weight(self) -> float:
        """Sum over all rows of their sample weights (without weights, the number of rows)."""
        total = self.n_examples if self.weights is None else float(self.weights.sum())
        return total * (self.n_rows / self.n_examples)

    def per_example(self, values: Array) -> Array:
        """Reshape values of the examples so that they broadcast against the rows."""
        return values.reshape((-1,) + (1,) * (len(self.shape) - 1))

    def margins(self, F: Array, block: slice | Array = slice(None)) -> Array:
        """Margins of the rows, from the scores of the examples; infinite where there is no row."""
        return self.moves(F, block)

    @abstractmethod
    def moves(self, F: Array, block: slice | Array = slice(None)) -> Array:
        """Change of the margins where the scores change by F; 0 where there is no row."""

    @abstractmethod
    def adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        """Coefficients on the examples from weights on their rows."""

    @abstractmethod
    def weights_of(self, V: Array) -> Array:
        """The only weights q with ``adjoint(q) == V``, of any sign; V is some ``adjoint``."""

    @abstractmethod
    def squared_adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        """Coefficients of the squares of scores in ``sum(q * moves(F)**2)``, for weights q."""

    @abstractmethod
    def expand(self, table: Array, block: slice = slice(None)) -> Array | float:
        """For each row the table's entry of its group; broadcasts against the rows."""

    @abstractmethod
    def locate(self, row_ids: Array) -> tuple[Array, Array]:
        """Examples of the rows with these flat indices, and the rows' coefficients on scores."""

    def restrict(self, examples: Array) -> Rows:
        """Rows of some of the examples, without sample weights, which no product needs."""
        return type(self)(self.codes[examples], self.n_classes, balanced=self.balanced)

    @abstractmethod
    def group(self, row_ids: Array) -> Array:
        """Number of the group of each row that is given by its flat index."""

    def balance_conditions(self, row_ids: Array) -> Array:
        """Conditions B on weights q on these rows: they are balanced if ``B.T @ q == 0``."""
        signs = self.locate(row_ids)[1]
        return signs[:, : max(1, signs.shape[1] - 1) if self.balanced else 0]

    @abstractmethod
    def offsets_of_multipliers(self, b: Array) -> Array:
        """Class offsets that add ``B @ b`` to the margins, where B is ``balance_conditions``."""

    @abstractmethod
    def table(self, reduced: Array, diagonal: float) -> Array:
        """Table of groups from values that were reduced over the examples of each class.

        Its diagonal has no rows; for two classes, it is filled with ``diagonal``.
        """

    @abstractmethod
    def score_offsets(self, beta: Array) -> Array | float:
        """Intercept of the scores that corresponds to the class offsets ``beta``."""

    def group_min(self, margins: Array) -> Array:
        """Smallest margin of each group (infinite where there is no row)."""
        if not self.balanced:
            return np.full((1, 1), margins.min())
        reduced = np.minimum.reduceat(margins.take(self._order, axis=0), self._starts, axis=0)
        return self.table(reduced, np.inf)

    def group_sum(self, values: Array) -> Array:
        """Sum over each group."""
        if not self.balanced:
            return np.full((1, 1), values.sum())
        return self.table(
            np.add.reduceat(values.take(self._order, axis=0), self._starts, axis=0), 0.0
        )

    @property
    def n_offsets(self) -> int:
        """Number of class offsets, and so of rows and of columns of a table of groups."""
        return self.n_classes if self.balanced else 1

    # Contributions of a block of examples to each group. A class may have no example in the block.

    def weighted(self, values: Array, block: slice = slice(None)) -> Array:
        """Values of the rows of a block, multiplied with the sample weights."""
        return values if self.weights is None else values * self.per_example(self.weights[block])

    def block_min(self, values: Array, block: slice) -> Array:
        """Smallest value of each group among the rows of a block (infinite where there is none)."""
        if not self.balanced:
            return np.full((1, 1), values.min())
        return self.table(self._block_reduced(np.minimum, values, block, np.inf), np.inf)

    def block_sum(self, values: Array, block: slice) -> Array:
        """Sum over each group of the rows of a block."""
        if not self.balanced:
            return np.full((1, 1), values.sum())
        return self.table(self._block_reduced(np.add, values, block, 0.0), 0.0)

    @abstractmethod
    def _block_reduced(self, ufunc: np.ufunc, values: Array, block: slice, none: float) -> Array:
        """Reduce over the examples of each class; ``none`` where a class has none."""

    def group_products(self, q: Array, X: Any, block: slice) -> Array:
        """``V^T X`` for each group, where V is ``adjoint`` of the weights of that group alone.

        Parameters
        ----------
        q : ndarray of shape (n_block, ...)
            Weights on the rows of a block.
        X : Block of shape (n_block, n_features)
        block : slice

        Returns
        -------
        ndarray of shape (n_offsets, n_offsets, ...)
            Table of the products of the groups, for ``sum_of_groups``.
        """
        if self.balanced:
            return self._products_by_class(q, X, block)
        V = self.adjoint(q, block).astype(X.dtype, copy=False)
        return X.adjoint(V)[None, None]

    @abstractmethod
    def _products_by_class(self, q: Array, X: Any, block: slice) -> Array:
        """``group_products`` with an unpenalised intercept."""

    def sum_of_groups(self, products: Array, factors: Array) -> Array:
        """``V^T X`` of all weights, where those of each group are multiplied by its factor."""
        groups = factors.reshape(factors.shape + (1,) * (products.ndim - 2)) * products
        return self._sum_of_groups(groups) if self.balanced else groups[0, 0]

    @abstractmethod
    def _sum_of_groups(self, groups: Array) -> Array:
        """Sum of a table of ``_products_by_class``."""

    def min_margin(self, low: Array) -> float:
        """Smallest margin under the best intercept, given the smallest margin of each group."""
        if not self.balanced:
            return float(low[0, 0])
        if len(low) == 2:
            return 0.5 * float(low[0, 1] + low[1, 0])
        return min_cycle(low)[0]

    def best_offsets(self, low: Array) -> Array:
        """Class offsets that attain ``min_margin(low)``: for two classes, the midpoint."""
        if not self.balanced:
            return np.zeros(1)
        if len(low) == 2:
            return np.array([-0.25, 0.25]) * (low[0, 1] - low[1, 0])
        return cycle_offsets(low)

    def min_margin_at(self, low: Array, beta: Array) -> float:
        """Smallest margin under given class offsets, given that of each group."""
        return float((low + beta[:, None] - beta).min() if self.balanced else low[0, 0])


def support_of(V: Array) -> Array:
    """Indices of the examples with a weight or coefficient other than zero."""
    return np.flatnonzero(V if V.ndim == 1 else V.any(axis=1))
