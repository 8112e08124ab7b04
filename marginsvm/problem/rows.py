"""Labels or targets as rows: the multiclass reduction.

A row is a pair of an example, of class ``c``, and another class ``j``: its margin is the difference
of the two scores. It belongs to the *group* ``(c, j)``. An unpenalised intercept is an offset
``beta[c]`` for each class, which shifts all margins of a group by ``beta[c] - beta[j]``. So
intercepts are computed from k x k tables with one entry for each group. Without an unpenalised
intercept there is a single group, and tables are 1 x 1.

With two classes, each example has one row, and there are two groups. With one class, and in
regressions, rows are the examples themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from marginsvm._rounding import FEW, at_least
from marginsvm._threads import cached_property, copied
from marginsvm._typing import Array, Index
from marginsvm.problem.intercepts import cycle_offsets, least_mean
from marginsvm.problem.matrix import Matrix
from marginsvm.problem.row_maps import ClassPairs, IntervalEnds, RowMap, SignedExamples

# Relative excess of nu over its largest feasible value that counts as rounding.
ROUNDED_SHARE = 1e-12


class Rows(ABC):
    """The rows of a labelled data set, as two linear maps; they are never formed as a matrix.

    ``margins(F)`` maps the scores F of a predictor on all examples to the margins of the rows.
    ``adjoint(q)``, the adjoint map, takes dual variables of the rows to coefficients of the
    examples. ``rows[index]`` are the rows of some examples. A *flat index* of a row is its index in
    the flattened array of margins.

    Parameters
    ----------
    codes : ndarray of shape (n_examples,)
        Class of each example, in ``0..n_classes-1``.
    n_classes : int
    balanced : bool
        Whether there is an unpenalised intercept: dual variables q then satisfy the equality
        constraint ``adjoint(q).sum(axis=0) == 0``.
    weights : ndarray of shape (n_examples,) or None
        Sample weights, to which ``prior`` is proportional; None: they are all equal.
    """

    square = SignedExamples.square  # squared norm of a row, relative to its example's

    def __init__(
        self,
        codes: Array,
        n_classes: int,
        *,
        balanced: bool,
        weights: Array | None = None,
    ) -> None:
        self.codes = codes
        self.n_classes = n_classes
        self.balanced = balanced
        self.weights = weights

    def __getitem__(self, index: Index) -> Self:
        other = copied(self)
        other.codes = self.codes[index]
        other.weights = None if self.weights is None else self.weights[index]
        return other

    @property
    def n_examples(self) -> int:
        return self.codes.size

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of margins and of dual variables."""

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @property
    def score_shape(self) -> tuple[int, ...]:
        """Shape of scores, and of coefficients of the examples."""
        return self.shape

    def flat_indices(self) -> Array:
        """Flat indices of all rows, example by example."""
        return np.sort(self.map.ids, kind="stable")

    # Sample weights.

    @property
    def prior(self) -> float | Array:
        """Distribution over the rows in proportion to sample weights; broadcasts to ``shape``."""
        if self.weights is None:
            return 1.0 / self.n_rows
        prior = self.weights / (self.weights.sum() * self.n_rows / self.n_examples)
        return self.per_example(prior)

    @cached_property
    def total_weight(self) -> float:
        """Sum over all rows of their sample weights (without weights, the number of rows)."""
        total = self.n_examples if self.weights is None else float(self.weights.sum())
        return total * (self.n_rows / self.n_examples)

    def per_example(self, values: Array) -> Array:
        """Reshape values of the examples so that they broadcast against the rows."""
        return values.reshape((-1,) + (1,) * (len(self.shape) - 1))

    def weighted(self, values: Array) -> Array:
        """Values of the rows, multiplied by the sample weights."""
        return (
            values if self.weights is None else values * self.per_example(self.weights)
        )

    # The two maps.

    @property
    @abstractmethod
    def map(self) -> RowMap:
        """The rows one by one."""

    def margins(self, F: Array) -> Array:
        """Margins of the rows, from the scores of the examples; infinite where there is no row."""
        return self.moves(F)

    @abstractmethod
    def moves(self, F: Array) -> Array:
        """Change of the margins where the scores change by F; 0 where there is no row."""

    @abstractmethod
    def adjoint(self, q: Array) -> Array:
        """Coefficients of the examples from dual variables of their rows."""

    # Groups.

    @abstractmethod
    def expand(self, table: Array) -> Array | float:
        """For each row the table's entry of its group; broadcasts against the rows."""

    @abstractmethod
    def table(self, reduced: Array, diagonal: float) -> Array:
        """Table of groups from values that were reduced over the examples of each class.

        Its diagonal has no rows; for two classes, it is filled with ``diagonal``.
        """

    @cached_property
    def by_class(self) -> tuple[Array, Array, Array]:
        """Examples by class, the classes that occur, and where each of them begins."""
        order = np.argsort(self.codes.astype(np.uint16), kind="stable")  # radix sort
        starts = np.searchsorted(self.codes[order], np.arange(self.n_classes + 1))
        present = np.flatnonzero(np.diff(starts))
        return order, present, starts[present]

    def over_classes(self, ufunc: np.ufunc, values: Array, none: float) -> Array:
        """Values reduced over the examples of each class, ``none`` where it has none.

        Without groups, they are reduced over all rows, to the shape (1,).
        """
        if not self.balanced:
            return np.array(ufunc.reduce(values, axis=None), ndmin=1)
        order, present, starts = self.by_class
        reduced = ufunc.reduceat(values.take(order, axis=0), starts, axis=0)
        if len(present) < self.n_classes:
            some = reduced
            reduced = np.full((self.n_classes, *values.shape[1:]), none)
            reduced[present] = some
        return reduced

    def _reduced(self, ufunc: np.ufunc, values: Array, none: float) -> Array:
        reduced = self.over_classes(ufunc, values, none)
        return self.table(reduced, none) if self.balanced else reduced[None]

    def group_min(self, margins: Array) -> Array:
        """Smallest margin of each group (infinite where there is no row)."""
        return self._reduced(np.minimum, margins, np.inf)

    def group_sum(self, values: Array) -> Array:
        """Sum over each group."""
        return self._reduced(np.add, values, 0.0)

    def group_products(self, q: Array, X: Matrix) -> Array:
        """``q' X`` over the examples of each group, of shape (k, k, d); without groups, ``V' X``
        for the coefficients V, of shape (1, 1, ..., d). See ``sum_of_groups``.
        """
        if not self.balanced:
            return X.adjoint(self.adjoint(q).astype(X.dtype, copy=False))[None, None]
        products = np.zeros((self.n_classes, self.n_classes, X.shape[1]), X.dtype)
        q = q.astype(X.dtype, copy=False)
        if q.ndim == 1:  # products with all examples are quicker than copies of some
            for c in (0, 1):
                products[c, 1 - c] = X.adjoint(q * (self.codes == c))
            return products
        order, present, starts = self.by_class
        for c, mine in zip(present, np.split(order, starts[1:]), strict=True):
            products[c] = X[mine].adjoint(q[mine])
        return products

    def sum_of_groups(self, products: Array, factors: Array) -> Array:
        """``V' X`` after multiplying the dual variables of each group by a factor."""
        if not self.balanced:
            return factors[0, 0] * products[0, 0]
        groups = factors[:, :, None] * products
        moved = groups.sum(axis=1) - groups.sum(axis=0)
        return moved[1] if len(self.shape) == 1 else moved

    # Intercepts.

    def min_margin(self, low: Array) -> float:
        """Smallest margin under the best intercept, given the smallest margin of each group."""
        if len(low) <= 2:
            return 0.5 * float(low[0, -1] + low[-1, 0])
        return least_mean(low)

    def best_offsets(self, low: Array) -> Array:
        """Class offsets that attain ``min_margin(low)``: for two classes, the midpoint."""
        if not self.balanced:
            return np.zeros(1)
        if len(low) == 2:
            return np.array([-0.25, 0.25]) * (low[0, 1] - low[1, 0])
        return cycle_offsets(low)

    @abstractmethod
    def score_offsets(self, beta: Array) -> Array | float:
        """Intercept of the scores that corresponds to the class offsets ``beta``."""


class BinaryRows(Rows):
    """One row for each example: ``y_i phi(x_i)``, with ``y_i = 1`` for class 1, else -1."""

    @cached_property
    def map(self) -> SignedExamples:
        return SignedExamples(2.0 * self.codes - 1.0)

    @property
    def y(self) -> Array:
        """Signs of the examples, which broadcast against the rows."""
        return self.map.sign

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.codes.size,)

    @property
    def n_rows(self) -> int:
        return self.codes.size

    def moves(self, F: Array) -> Array:
        return self.y * F

    def adjoint(self, q: Array) -> Array:
        return self.y * q

    def expand(self, table: Array) -> Array | float:
        if not self.balanced:
            return table[0, 0]
        return np.array([table[0, 1], table[1, 0]]).take(self.codes)

    def table(self, reduced: Array, diagonal: float) -> Array:
        return np.array([[diagonal, reduced[0]], [reduced[1], diagonal]])

    def score_offsets(self, beta: Array) -> Array | float:
        return float(beta[1] - beta[0]) if self.balanced else 0.0


class MulticlassRows(Rows):
    """Row ``(i, j)`` is ``phi(x_i) (e_{c_i} - e_j)^T``, j != c_i, sqrt(2) times as long as x_i.

    Margins and weights are arrays of shape (n_examples, k). The entry of an example's own
    class is not a row: its margin is infinite and its weight zero.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky. Fast Margin Maximization via Dual Acceleration.
    ICML 2021. Section 5.2.
    """

    square = ClassPairs.square

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.codes.size, self.n_classes)

    @property
    def n_rows(self) -> int:
        return self.codes.size * (self.n_classes - 1)

    @cached_property
    def map(self) -> ClassPairs:
        return ClassPairs(self.codes, self.n_classes)

    def margins(self, F: Array) -> Array:
        return self.map.fill(self.moves(F), np.inf)

    def moves(self, F: Array) -> Array:
        return self.map.values(F)

    def adjoint(self, q: Array) -> Array:
        return self.map.coefficients(q)

    def expand(self, table: Array) -> Array | float:
        return table.take(self.codes, axis=0) if self.balanced else table[0, 0]

    def table(self, reduced: Array, diagonal: float) -> Array:
        return reduced

    def score_offsets(self, beta: Array) -> Array | float:
        return beta if self.balanced else np.zeros(self.n_classes)


class OutputRows(BinaryRows):
    """One row for each example and output: the example itself, held against no class.

    Parameters
    ----------
    intervals : Intervals
        Intervals for the scores.
    weights : ndarray of shape (n_examples,) or None
        Sample weights; None: they are all equal.
    balanced : bool
        Whether each output has an unpenalised intercept: the (signed) dual variables of its rows
        then sum to 0.
    origin : float or ndarray of shape (n_outputs,)
        Subtracted from the ends of the intervals, and added to the intercept.
    scales : float or ndarray of shape (n_outputs,) or None
        Units of the outputs, relative to the largest one, if outputs are separate problems, each
        with a norm of its own. None: one norm of all outputs is minimised.
    """

    def __init__(
        self,
        intervals: Intervals,
        weights: Array | None = None,
        *,
        balanced: bool = False,
        origin: float | Array = 0.0,
        scales: float | Array | None = None,
    ) -> None:
        self.intervals = intervals
        outputs = intervals.low.shape[1:]
        self.origin = np.broadcast_to(origin, outputs)
        self.scales = None if scales is None else np.broadcast_to(scales, outputs)
        # all examples are of class 1, so that rows are the examples themselves; with several
        # outputs, compiled loops take these for classes, of which no example has one
        codes = np.ones(len(intervals.low), int) if outputs == () else np.empty(0, int)
        super().__init__(
            codes, outputs[0] if outputs else 2, balanced=balanced, weights=weights
        )

    def __getitem__(self, index: Index) -> Self:
        other = copied(self)
        other.intervals = self.intervals.restrict(index)
        other.weights = None if self.weights is None else self.weights[index]
        other.codes = self.codes[index] if self.codes.size else self.codes
        return other

    @property
    def y(self) -> Array:
        return np.ones((self.n_examples,) + (1,) * (len(self.shape) - 1))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.intervals.low.shape

    @property
    def n_rows(self) -> int:
        return self.intervals.low.size

    @property
    def n_examples(self) -> int:
        return self.shape[0]

    @cached_property
    def map(self) -> IntervalEnds:
        """The map of all examples and outputs, whose intervals may have no end."""
        n = self.n_examples
        k = self.n_rows // self.n_examples
        example, output = np.divmod(np.arange(n * k), k)
        return IntervalEnds(np.ones(n * k), example, output, n, k)

    @property
    def farthest(self) -> float:
        """Largest violation of the zero predictor, with the best intercept if it is balanced.

        In units of the largest output.
        """
        ends = self.intervals
        ends = ends if self.scales is None else ends.scaled(self.scales)
        if not self.balanced:
            return ends.farthest
        spread = ends.low.max(axis=0) - ends.high.min(axis=0)
        return max(0.5 * float(np.max(spread)), 0.0)

    @property
    def middle(self) -> Array | float:
        """Best intercepts of the zero predictor."""
        if not self.balanced:
            return 0.0
        low = self.intervals.low.max(axis=0)
        high = self.intervals.high.min(axis=0)
        return np.asarray(0.5 * low + 0.5 * high)

    def score_offsets(self, beta: Array) -> Array | float:
        """Intercepts of the outputs, plus ``origin``."""
        return beta + self.origin if self.balanced else 0.0


@dataclass(frozen=True)
class Intervals:
    """A closed interval for each row, in which its score is to lie.

    Attributes
    ----------
    low, high : ndarray of shape (n_examples,) or (n_examples, n_outputs)
        Their ends; -inf and inf where there is none.
    rounded : bool
        Whether some end is rounded, which proofs allow for.
    """

    low: Array
    high: Array
    rounded: bool = False

    @property
    def size(self) -> float:
        """Largest absolute value of an end that is not infinite."""
        ends = np.append(self.low, self.high)
        return float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0))

    @property
    def farthest(self) -> float:
        """Upper bound on the distance of 0 from an interval, the zero predictor's violation."""
        excess = np.maximum(self.low, -self.high) + FEW * self.size * self.rounded
        return float(excess.max(initial=0.0)) * (1.0 + FEW)

    def admissible(self, alpha: Array) -> Array:
        """Alpha, set to 0 at infinite ends, where it is not 0 by rounding only."""
        end = np.where(alpha > 0, self.low, self.high)
        return np.where(np.isfinite(end), alpha, 0.0)

    def scaled(self, factor: float | Array) -> Intervals:
        """All ends multiplied by powers of two."""
        ends = self.low * factor, self.high * factor
        exact = all(
            np.array_equal(new / factor, old)
            for new, old in zip(ends, (self.low, self.high), strict=True)
        )
        return Intervals(*ends, self.rounded or not exact)

    def moved(self, low: float | Array, high: float | Array) -> Intervals:
        """The intervals with numbers, one for each output, added to their ends."""
        ends = (self.low + low, self.high + high)
        exact = True
        for new, old, shift in zip(
            ends, (self.low, self.high), (low, high), strict=True
        ):
            finite = np.isfinite(new)
            back = (new - shift == old) & (new - np.where(finite, old, 0.0) == shift)
            exact &= bool(np.all(back | ~finite))
        return Intervals(*ends, self.rounded or not exact)

    def restrict(self, examples: Index) -> Intervals:
        """The intervals of some examples."""
        return Intervals(self.low[examples], self.high[examples], self.rounded)

    def column(self, j: int) -> Intervals:
        """The intervals of one output."""
        return Intervals(self.low[:, j].copy(), self.high[:, j].copy(), self.rounded)


def output_rows(rows: Rows) -> OutputRows:
    """The rows, cast to those of intervals."""
    assert isinstance(rows, OutputRows)
    return rows


def intervals_of(rows: Rows) -> Intervals:
    """Intervals for the scores of outputs; for labels, ``[1, inf)`` for margins."""
    if isinstance(rows, OutputRows):
        return rows.intervals
    return Intervals(np.ones(rows.shape), np.full(rows.shape, np.inf))


def make_rows(
    codes: Array, n_classes: int, *, balanced: bool, weights: Array | None = None
) -> Rows:
    """Binary rows for two classes, multiclass rows for more."""
    kind = BinaryRows if n_classes == 2 else MulticlassRows
    return kind(codes, n_classes, balanced=balanced, weights=weights)


def share_caps(rows: Rows, nu: float) -> Array:
    """Upper bounds ``m_i / (nu sum m)`` of dual variables that sum to 1, as in nu-SVC.

    The least average of margins under these bounds is the mean of the worst share nu (the
    conditional value-at-risk), where the margin of an example is its smallest over classes. With an
    unpenalised intercept, alpha also satisfies the equality constraint of each class.

    Raises
    ------
    ValueError
        If a class outweighs the others: their upper bounds sum to less than 1/2, which the equality
        constraint asks of them.

    References
    ----------
    R. T. Rockafellar, S. Uryasev. Optimization of conditional value-at-risk. Journal of Risk, 2000
    (the mean of the worst share as a maximum).
    """
    m = (
        np.ones(rows.n_examples)
        if rows.weights is None
        else rows.weights.astype(np.float64)
    )
    size = nu * m.sum()
    if rows.balanced:
        others = 2.0 * float((m.sum() - np.bincount(rows.codes, m)).min())
        most = others / float(m.sum()) * (1.0 + ROUNDED_SHARE)
        if nu > most:
            raise ValueError(
                f"nu={nu:g} is infeasible, as in NuSVC: with an intercept, no class takes more "
                f"than half of the share, and all but the largest are {0.5 * most:.3g} of all "
                f"examples. Choose nu <= {at_least(most)}, class_weight='balanced', or "
                "fit_intercept=False"
            )
        size = min(size, others)
    return np.asarray(m / size)
