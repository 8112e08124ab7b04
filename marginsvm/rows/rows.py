"""Labels become rows: the signed examples whose worst margin the game maximises.

A row belongs to a *group* ``(c, j)``: an example of class ``c`` held against class
``j``. An unpenalised intercept shifts all the margins of a group together, by
``beta[c] - beta[j]``; so everything about intercepts is said in k x k tables of groups.
Without an intercept there is a single group, and the tables are 1 x 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import fsum
from typing import Any

import numpy as np
from scipy.linalg import qr

from marginsvm._typing import Array
from marginsvm.certify.rounding import Extended, times
from marginsvm.rows.cycles import cycle_offsets, min_cycle

_FEW = 1024  # examples whose weights are held with more digits
_CORRECTIONS = 4  # of an imbalance: each leaves the rounding of the weights that it changes
_SMALL = 1e-12  # an imbalance that is the rounding of some thousand weights
_ABLE = 100.0  # times the imbalance: weights that can take it and stay positive


class Rows(ABC):
    """The rows of a labelled data set, never formed.

    Scores ``F`` are what a linear predictor says of every example; ``margins(F)`` are
    the margins of the rows, and ``signed(q)`` carries weights on the rows back to
    coefficients on the examples: the two maps are adjoint.

    Parameters
    ----------
    codes : ndarray of shape (n_examples,)
        Class of each example, in ``0..n_classes-1``.
    n_classes : int
    balanced : bool
        True for an unpenalised intercept: the data player keeps to weights with
        ``signed(q).sum(axis=0) == 0``.
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
    def locate(self, rows: Array) -> tuple[Array, Array]:
        """Examples of the rows with these flat indices, and their coefficients on the scores."""

    @abstractmethod
    def renamed(self, rows: Array, names: Array) -> Array:
        """Flat indices that these rows have where the example i is called ``names[i]``."""

    def restrict(self, examples: Array) -> Rows:
        """Rows of some of the examples, without weights."""
        return type(self)(self.codes[examples], self.n_classes, balanced=self.balanced)

    @abstractmethod
    def group(self, rows: Array) -> Array:
        """Number of the group that each row, named by its flat index, belongs to."""

    def balance(self, rows: Array) -> Array:
        """Conditions on weights q on these rows: ``balance(rows).T @ q == 0``."""
        signs = self.locate(rows)[1]
        return signs[:, : max(1, signs.shape[1] - 1) if self.balanced else 0]

    @abstractmethod
    def balance_offsets(self, b: Array) -> Array:
        """Class offsets that add ``balance(rows) @ b`` to the margins."""

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

    def softmax_sums(
        self, block: slice, X: Any, exponents: Array, prior: Array | None
    ) -> tuple[Array, Array, Array]:
        """Tables of the largest exponent of each group, of ``sum exp``, and its products with X.

        Sums count from the largest exponent, and each row as often as ``prior`` says; the
        products are what ``mixed`` makes ``V^T X`` of. X holds the examples of ``block``.
        """
        if self.balanced:
            return self._softmax_sums_of_groups(block, X, exponents, prior)
        high = exponents.max()
        e = _weighted(np.exp(exponents - high), prior)
        V = self.adjoint(e, block).astype(X.dtype, copy=False)
        one = np.ones((1, 1))
        return high * one, e.sum() * one, times(V.T, X)[None, None]

    @abstractmethod
    def _softmax_sums_of_groups(
        self, block: slice, X: Any, exponents: Array, prior: Array | None
    ) -> tuple[Array, Array, Array]: ...

    def mixed(self, image: Array, factors: Array) -> Array:
        """``V^T X`` of weights that are ``factors`` times those of ``softmax_sums``."""
        groups = factors.reshape(factors.shape + (1,) * (image.ndim - 2)) * image
        return self._mixed(groups) if self.balanced else groups[0, 0]

    @abstractmethod
    def _mixed(self, groups: Array) -> Array: ...

    def min_margin(self, low: Array) -> float:
        """Worst margin once the best intercept is added, from each group's minimum."""
        if not self.balanced:
            return float(low[0, 0])
        if len(low) == 2:
            return 0.5 * float(low[0, 1] + low[1, 0])
        return min_cycle(low)[0]

    def best_offsets(self, low: Array) -> Array:
        """Class offsets that reach ``worst(low)``: the midpoint, for two classes."""
        if not self.balanced:
            return np.zeros(1)
        if len(low) == 2:
            return np.array([-0.25, 0.25]) * (low[0, 1] - low[1, 0])
        return cycle_offsets(low)

    def min_margin_at(self, low: Array, beta: Array) -> float:
        """Worst margin at given class offsets."""
        return float((low + beta[:, None] - beta).min() if self.balanced else low[0, 0])

    def rebalanced(self, q: Array) -> Array:
        """Change weights in their last digits until they balance exactly, if few carry weight.

        Small weights are changed, as floats are the finer the smaller they are.
        """
        rows = np.flatnonzero(q)
        if not self.balanced or not 0 < len(rows) <= _FEW:
            return q
        few, B = q.ravel()[rows], np.sign(self.balance(rows))
        for _ in range(_CORRECTIONS):
            excess = np.array([fsum(column) for column in (B * few[:, None]).T])
            able = np.flatnonzero(few > _ABLE * np.abs(excess).max())
            if not 0 < np.abs(excess).max() <= _SMALL or len(able) < B.shape[1]:
                break
            if len(excess) == 1:
                some = able[few[able].argmin()]
                few[some] -= B[some, 0] * excess[0]
                continue
            order = qr((B[able] / few[able, None]).T, mode="r", pivoting=True)[1]
            some = able[order[: len(excess)]]
            few[some] -= np.linalg.lstsq(B[some].T, excess, rcond=None)[0]
        q = q.copy()
        q.flat[rows] = few
        return q

    def imbalance(self, q: Array) -> float:
        """How far weights are from the balanced set, as a sum of absolute values."""
        if not self.balanced:
            return 0.0
        support = np.flatnonzero(q.reshape(len(q), -1).any(axis=1))
        parts = (support[i : i + _FEW] for i in range(0, len(support), _FEW))
        sums = [self.adjoint(q[part].astype(Extended), part).sum(axis=0) for part in parts]
        return float(np.abs(np.sum(sums, axis=0)).sum())


class BinaryRows(Rows):
    """One row an example: ``y_i phi(x_i)`` with ``y_i = 1`` for class 1, else -1."""

    unit = 1.0

    def __init__(
        self, codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
    ) -> None:
        super().__init__(codes, n_classes, balanced=balanced, weights=weights)
        self.shape = self.score_shape = (codes.size,)
        self.n_rows = codes.size
        self._y = np.where(codes == 1, 1.0, -1.0)

    def margins(self, F: Array, block: slice = slice(None)) -> Array:
        return self._y[block] * F

    def adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        return self._y[block] * q

    def locate(self, rows: Array) -> tuple[Array, Array]:
        return rows, self._y[rows, None]

    def renamed(self, rows: Array, names: Array) -> Array:
        return names[rows]

    def group(self, rows: Array) -> Array:
        return self.codes[rows]

    def balance_offsets(self, b: Array) -> Array:
        return np.array([-0.5, 0.5]) * b

    def expand(self, table: Array, block: slice = slice(None)) -> Array | float:
        if not self.balanced:
            return table[0, 0]
        return np.array([table[0, 1], table[1, 0]]).take(self.codes[block])

    def table(self, reduced: Array, diagonal: float) -> Array:
        return np.array([[diagonal, reduced[0]], [reduced[1], diagonal]])

    def score_offsets(self, beta: Array) -> Array | float:
        return float(beta[1] - beta[0]) if self.balanced else 0.0

    def _softmax_sums_of_groups(
        self, block: slice, X: Any, exponents: Array, prior: Array | None
    ) -> tuple[Array, Array, Array]:
        codes = self.codes[block]
        first = codes == 0
        high = np.array([exponents.max(initial=-np.inf, where=m) for m in (first, ~first)])
        e = _weighted(np.exp(exponents - high.take(codes)), prior)
        v = self.adjoint(e, block).astype(X.dtype, copy=False)
        image = np.zeros((2, 2, X.shape[1]), X.dtype)
        # two products of a vector are faster than one of a matrix that thin
        image[0, 1], image[1, 0] = times(v * first, X), times(v * ~first, X)
        mass = np.bincount(codes, e, minlength=2)
        return self.table(high, -np.inf), self.table(mass, 0.0), image

    def _mixed(self, groups: Array) -> Array:
        return groups[0, 1] + groups[1, 0]


class MulticlassRows(Rows):
    """Ji's section 5.2: row ``(i, j)`` is ``phi(x_i) (e_{c_i} - e_j)^T / sqrt(2)``, j != c_i.

    Arrays over the rows are n_examples x k; an example's own class is no row: its
    margin is infinite and its weight zero.
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
        return self._examples[: len(F)], self.codes[block]

    def margins(self, F: Array, block: slice = slice(None)) -> Array:
        own = self._own(F, block)
        margins = (F[own][:, None] - F) * np.sqrt(0.5)
        margins[own] = np.inf
        return margins

    def adjoint(self, q: Array, block: slice | Array = slice(None)) -> Array:
        V = q * -np.sqrt(0.5)
        V[self._own(q, block)] = q.sum(axis=1) * np.sqrt(0.5)
        return V

    def locate(self, rows: Array) -> tuple[Array, Array]:
        examples, j = np.divmod(rows, self.n_classes)
        identity = np.eye(self.n_classes) * np.sqrt(0.5)
        return examples, identity[self.codes[examples]] - identity[j]

    def renamed(self, rows: Array, names: Array) -> Array:
        examples, j = np.divmod(rows, self.n_classes)
        return names[examples] * self.n_classes + j

    def group(self, rows: Array) -> Array:
        examples, j = np.divmod(rows, self.n_classes)
        return self.codes[examples] * self.n_classes + j

    def balance_offsets(self, b: Array) -> Array:
        return np.append(b, 0.0) * np.sqrt(0.5)

    def expand(self, table: Array, block: slice = slice(None)) -> Array | float:
        return table.take(self.codes[block], axis=0) if self.balanced else table[0, 0]

    def table(self, reduced: Array, diagonal: float) -> Array:
        return reduced

    def score_offsets(self, beta: Array) -> Array | float:
        return np.sqrt(2.0) * beta if self.balanced else np.zeros(self.n_classes)

    def _softmax_sums_of_groups(
        self, block: slice, X: Any, exponents: Array, prior: Array | None
    ) -> tuple[Array, Array, Array]:
        k, codes = self.n_classes, self.codes[block]
        high, mass = np.full((k, k), -np.inf), np.zeros((k, k))
        image = np.zeros((k, k, X.shape[1]), X.dtype)
        for c in np.unique(codes):
            mine = np.flatnonzero(codes == c)
            high[c] = exponents[mine].max(axis=0)
            finite = np.where(high[c] > -np.inf, high[c], 0.0)
            e = _weighted(np.exp(exponents[mine] - finite), None if prior is None else prior[mine])
            mass[c], image[c] = e.sum(axis=0), times(e.T.astype(X.dtype, copy=False), X[mine])
        return high, mass, image

    def _mixed(self, groups: Array) -> Array:
        return np.sqrt(0.5) * (groups.sum(axis=1) - groups.sum(axis=0))


def _weighted(e: Array, prior: Array | None) -> Array:
    return e if prior is None else e * prior


def make_rows(
    codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
) -> Rows:
    """Two classes always take the binary rows."""
    kind = BinaryRows if n_classes == 2 else MulticlassRows
    return kind(codes, n_classes, balanced=balanced, weights=weights)
