"""Regression as rows: the outputs of examples, and the intervals in which they are to lie."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.rows.binary import BinaryRows
from marginsvm.rows.rows import Rows


class OutputRows(BinaryRows):
    """One row for each example and output: the example itself, held against no class.

    Parameters
    ----------
    intervals : Intervals
        Where their scores are to lie.
    weights : ndarray of shape (n_examples,) or None
        Sample weights; None: they are all equal.
    balanced : bool
        Whether each output has an intercept of its own, which is not penalised: the weights of its
        rows, which have either sign, then sum to 0.
    origin : float or ndarray of shape (n_outputs,)
        What was subtracted from the ends of the intervals, and is added to the intercept.
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
        self.intervals, shape = intervals, intervals.low.shape
        self.origin = np.broadcast_to(origin, shape[1:])
        self.scales = None if scales is None else np.broadcast_to(scales, shape[1:])
        # as if all examples were of class 1, so that rows are the examples themselves
        super().__init__(np.ones(shape[0], int), 2, balanced=balanced, weights=weights)
        self._y = np.ones((shape[0],) + (1,) * (len(shape) - 1))
        self.shape = self.score_shape = shape
        self.n_rows = int(np.prod(shape))
        if len(shape) == 2:  # what compiled loops take for several outputs: see ``RowLayout``
            self.n_classes, self.codes = shape[1], np.empty(0, int)

    @property
    def n_examples(self) -> int:
        return self.shape[0]

    def locate(self, row_ids: Array) -> tuple[Array, Array]:
        n_outputs = self.n_rows // self.n_examples
        return row_ids // n_outputs, np.eye(n_outputs)[row_ids % n_outputs]

    def restrict(self, examples: Array) -> OutputRows:
        intervals = self.intervals.restrict(examples)
        balanced, origin, scales = self.balanced, self.origin, self.scales
        return OutputRows(intervals, balanced=balanced, origin=origin, scales=scales)

    def output(self, j: int) -> OutputRows:
        """The rows of one output."""
        ends, origin = self.intervals.column(j), self.origin[j]
        return OutputRows(ends, self.weights, balanced=self.balanced, origin=origin, scales=1.0)

    @property
    def farthest(self) -> float:
        """Largest violation of the zero predictor, with the best intercept if it is balanced."""
        if not self.balanced:
            return self.intervals.farthest
        spread = self.intervals.low.max(axis=0) - self.intervals.high.min(axis=0)
        return max(0.5 * float(np.max(spread)), 0.0)

    def score_offsets(self, beta: Array) -> Array | float:
        """Intercepts of the outputs, with what was subtracted from the intervals."""
        return beta + self.origin if self.balanced else 0.0


@dataclass(frozen=True)
class Intervals:
    """A closed interval for each row, in which its score is to lie.

    Attributes
    ----------
    low, high : ndarray of shape (n_examples,) or (n_examples, n_outputs)
        Their ends; -inf and inf where there is none.
    """

    low: Array
    high: Array

    @classmethod
    def around(cls, y: Array, radius: float) -> Intervals:
        """Intervals ``[y - radius, y + radius]``, whose ends are rounded outward.

        An exact end is kept: 5e-324 in place of 0 would be an end that no proof can scale.
        """
        return cls(y, y).widened(radius)

    @property
    def size(self) -> float:
        """Largest absolute value of an end that is not infinite."""
        ends = np.append(self.low, self.high)
        return float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0))

    @property
    def farthest(self) -> float:
        """Upper bound on the distance of 0 from an interval, the zero predictor's violation."""
        excess = self.excess(np.zeros_like(self.low)) + FEW * self.size
        return float(excess.max(initial=0.0)) * (1.0 + FEW)

    def excess(self, F: Array) -> Array:
        """How far scores F are outside of their intervals; negative inside."""
        return np.maximum(self.low - F, F - self.high)

    def terms(self, alpha: Array) -> Array:
        """Each weight times an end of its interval: ``low`` if it is positive, else ``high``."""
        end = np.where(alpha > 0, self.low, self.high)
        return np.where(alpha != 0, end, 0.0) * alpha

    def gain(self, alpha: Array) -> float:
        """Lower bound on ``sum alpha_r f_r`` over all scores f in the intervals; may be -inf."""
        terms = self.terms(alpha).ravel()
        if not np.isfinite(terms).all():
            return -np.inf
        return fsum(terms) - FEW * fsum(np.abs(terms))

    def admissible(self, alpha: Array) -> Array:
        """Weights without those that belong to infinite ends, which are due to rounding."""
        return np.where(np.isfinite(self.terms(alpha)), alpha, 0.0)

    def scaled(self, factor: float | Array) -> Intervals:
        """All ends multiplied by powers of two; those that underflow are rounded outward."""
        return Intervals(
            -_product_rounded_up(-self.low, factor), _product_rounded_up(self.high, factor)
        )

    def widened(self, radius: float) -> Intervals:
        """Both ends moved outward by the radius, and rounded as in ``around``."""
        return Intervals(-_sum_rounded_up(-self.low, radius), _sum_rounded_up(self.high, radius))

    def moved(self, shift: float | Array) -> Intervals:
        """All ends moved by a number for each output, and rounded as in ``around``."""
        return Intervals(-_sum_rounded_up(-self.low, -shift), _sum_rounded_up(self.high, shift))

    def restrict(self, examples: Array) -> Intervals:
        """The intervals of some examples."""
        return Intervals(self.low[examples], self.high[examples])

    def column(self, j: int) -> Intervals:
        """The intervals of one output."""
        return Intervals(self.low[:, j].copy(), self.high[:, j].copy())


def output_rows(rows: Rows) -> OutputRows:
    """The same rows, known to be those of a problem whose scores are to lie in intervals."""
    assert isinstance(rows, OutputRows)
    return rows


def intervals_of(rows: Rows) -> Intervals:
    """Where the scores of rows of outputs are to lie; margins of labels in ``[1, inf)``."""
    if isinstance(rows, OutputRows):
        return rows.intervals
    return Intervals(np.ones(rows.shape), np.full(rows.shape, np.inf))


def _sum_rounded_up(x: Array, y: float | Array) -> Array:
    """The smallest float that is no less than ``x + y``; the error is exact (Knuth's TwoSum)."""
    total = x + y
    rest = total - x
    error = (x - (total - rest)) + (y - rest)
    return np.where(error > 0.0, np.nextafter(total, np.inf), total)


def _product_rounded_up(x: Array, factor: float | Array) -> Array:
    """The smallest float that is no less than x times a power of two."""
    product = x * factor
    return np.where(product / factor < x, np.nextafter(product, np.inf), product)
