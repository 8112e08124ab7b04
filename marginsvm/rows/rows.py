"""Labels become rows: the signed examples whose smallest margin the game maximises.

A row belongs to a *group* ``(c, j)``: an example of class ``c`` held against class
``j``. An unpenalised intercept shifts all the margins of a group together, by
``beta[c] - beta[j]``; so everything about intercepts is said in k x k tables of groups.
Without an intercept there is a single group, and the tables are 1 x 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from marginsvm._rounding import times
from marginsvm._typing import Array
from marginsvm.rows.cycles import cycle_offsets, min_cycle


class Rows(ABC):
    """The rows of a labelled data set, never formed.

    Scores ``F`` are what a linear predictor says of every example; ``margins(F)`` are
    the margins of the rows, and ``adjoint(q)`` carries weights on the rows back to
    coefficients on the examples: the two maps are adjoint.

    Parameters
    ----------
    codes : ndarray of shape (n_examples,)
        Class of each example, in ``0..n_classes-1``.
    n_classes : int
    balanced : bool
        True for an unpenalised intercept: the data player keeps to weights with
        ``adjoint(q).sum(axis=0) == 0``.
    weights : ndarray of shape (n_examples,) or None
        Sample weights; the prior of a response is proportional to them.
    """

    shape: tuple[int, ...]  # of margins and of weights on the rows
    n_rows: int
    score_shape: tuple[int, ...]  # of F, and of coefficients on the examples
    unit: float  # what a margin of 1 is in the user's terms

    def __init__(
        self, codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
    ) -> None:
        self.codes = codes
        self.n_classes = n_classes
        self.balanced = balanced
        self.weights = weights
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.searchsorted(codes[self._order], np.arange(n_classes))

    @property
    def n_examples(self) -> int:
        return self.codes.size

    def flat_indices(self) -> Array:
        """Flat indices of the rows: an example has none against its own class."""
        return np.flatnonzero(np.isfinite(self.margins(np.zeros(self.score_shape))))

    @property
    def prior(self) -> float | Array:
        """Distribution over the rows before any data is seen; broadcasts to ``shape``."""
        if self.weights is None:
            return 1.0 / self.n_rows
        prior = self.weights / (self.weights.sum() * self.n_rows / self.n_examples)
        return self.per_example(prior)

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights of all rows (without weights, the number of rows)."""
        total = self.n_examples if self.weights is None else float(self.weights.sum())
        return total * (self.n_rows / self.n_examples)

    def per_example(self, values: Array) -> Array:
        """Give a value of each example a shape that broadcasts against the rows."""
        return values.reshape((-1,) + (1,) * (len(self.shape) - 1))

    @abstractmethod
    def margins(self, F: Array, block: slice = slice(None)) -> Array:
        """Margins of the rows of the examples in ``block``, from their scores."""

    @abstractmethod
    def adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        """Coefficients on the examples of ``block`` from weights on their rows."""

    @abstractmethod
    def expand(self, table: Array, block: slice = slice(None)) -> Array | float:
        """Each row's entry of a table of groups; broadcasts against the rows of ``block``."""

    @abstractmethod
    def locate(self, row_ids: Array) -> tuple[Array, Array]:
        """Examples of the rows with these flat indices, and their coefficients on the scores."""

    @abstractmethod
    def renamed(self, row_ids: Array, names: Array) -> Array:
        """Flat indices that these rows have where the example i is called ``names[i]``."""

    def restrict(self, examples: Array) -> Rows:
        """Rows of some of the examples, without weights."""
        return type(self)(self.codes[examples], self.n_classes, balanced=self.balanced)

    @abstractmethod
    def group(self, row_ids: Array) -> Array:
        """Number of the group that each row, named by its flat index, belongs to."""

    def balance_conditions(self, row_ids: Array) -> Array:
        """Conditions B on weights q on these rows: they are balanced if ``B.T @ q == 0``."""
        signs = self.locate(row_ids)[1]
        return signs[:, : max(1, signs.shape[1] - 1) if self.balanced else 0]

    @abstractmethod
    def offsets_of_multipliers(self, b: Array) -> Array:
        """Class offsets that add ``B @ b`` to the margins, B being ``balance_conditions``."""

    @abstractmethod
    def table(self, reduced: Array, diagonal: float) -> Array:
        """Arrange what was reduced class by class as a table of groups."""

    @abstractmethod
    def score_offsets(self, beta: Array) -> Array | float:
        """What the class offsets ``beta`` add to the scores."""

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
    def n_groups(self) -> int:
        """Rows and columns of a table of groups."""
        return self.n_classes if self.balanced else 1

    # What a block of examples contributes to each group. A class may have no example in it.

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
        """``V^T X`` of the weights of each group, V being ``adjoint`` of these alone.

        Parameters
        ----------
        q : ndarray of shape (n_block, ...)
            Weights on the rows of a block.
        X : array-like of shape (n_block, n_features)
        block : slice

        Returns
        -------
        ndarray of shape (n_groups, n_groups, ...)
            A table of what ``sum_of_groups`` takes.
        """
        if self.balanced:
            return self._products_by_class(q, X, block)
        V = self.adjoint(q, block).astype(X.dtype, copy=False)
        return times(V.T, X)[None, None]

    @abstractmethod
    def _products_by_class(self, q: Array, X: Any, block: slice) -> Array: ...

    def sum_of_groups(self, products: Array, factors: Array) -> Array:
        """``V^T X`` of all weights, those of each group multiplied with one of ``factors``."""
        groups = factors.reshape(factors.shape + (1,) * (products.ndim - 2)) * products
        return self._sum_of_groups(groups) if self.balanced else groups[0, 0]

    @abstractmethod
    def _sum_of_groups(self, groups: Array) -> Array: ...

    def min_margin(self, low: Array) -> float:
        """Smallest margin once the best intercept is added, from that of each group."""
        if not self.balanced:
            return float(low[0, 0])
        if len(low) == 2:
            return 0.5 * float(low[0, 1] + low[1, 0])
        return min_cycle(low)[0]

    def best_offsets(self, low: Array) -> Array:
        """Class offsets that reach ``min_margin(low)``: the midpoint, for two classes."""
        if not self.balanced:
            return np.zeros(1)
        if len(low) == 2:
            return np.array([-0.25, 0.25]) * (low[0, 1] - low[1, 0])
        return cycle_offsets(low)

    def min_margin_at(self, low: Array, beta: Array) -> float:
        """Smallest margin at given class offsets."""
        return float((low + beta[:, None] - beta).min() if self.balanced else low[0, 0])


def support_of(V: Array) -> Array:
    """Examples with a weight or a coefficient other than zero."""
    return np.flatnonzero(V if V.ndim == 1 else V.any(axis=1))
