"""What is asked of the values of a predictor on the rows, which the check works out for itself.

A row of two classes is an example times the sign of its class, one of more an example held against
another class; their values are to be 1 or more. A row of a regression is an example, whose value
is to lie in an interval. ``docs/certificate.rst`` says why both are one problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.checker.numbers import Numbers, Rationals
from marginsvm.certify.checker.published import is_csr
from marginsvm.certify.exactly.infeasible import nothing_fits
from marginsvm.certify.exactly.overlap import nothing_separates, nothing_separates_with_signs


@dataclass(frozen=True)
class ClassRows:
    """Examples of classes; values are to be 1 or more.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Class of each example.
    n_classes : int
    numbers : Floats or Rationals
    """

    codes: NDArray
    n_classes: int
    numbers: Numbers
    reach = 1  # the largest finite end, in absolute value

    @property
    def binary(self) -> bool:
        return self.n_classes == 2

    @cached_property
    def own_class(self) -> NDArray:
        """Which entries of a table of examples and classes belong to the example's own class."""
        return np.asarray(self.codes[:, None] == np.arange(self.n_classes))

    @cached_property
    def length(self) -> Any:
        """``|e_c - e_j|``, the length of a row over that of its example."""
        return self.numbers.sqrt(self.numbers.number(1.0 if self.binary else 2.0))

    @property
    def n_columns(self) -> int:
        return 1 if self.binary else self.n_classes

    @property
    def links(self) -> int:
        return self.n_classes - 1

    @property
    def cycle(self) -> int:
        return self.n_columns**2

    def values(self, F: NDArray) -> NDArray:
        """Differences of decision values, one line an example, one entry a row."""
        if self.binary:
            return np.where(self.codes == 1, F[:, 0], -F[:, 0])[:, None]
        return F[self.own_class][:, None] - F[~self.own_class].reshape(len(F), -1)

    def distances(self, values: NDArray) -> NDArray:
        """How far values are from where they are to be."""
        return np.maximum(1 - values, 0 * values)

    def slack(self, distances: NDArray) -> NDArray:
        """Slack that has a price: an example has it once, for the class that comes nearest."""
        return distances.max(axis=1)[:, None]

    def under_a_cap(self, sizes: NDArray) -> NDArray:
        """Sizes of weights that share a cap: those of an example."""
        return sizes.sum(axis=1)[:, None]

    def coefficients(self, q: NDArray) -> NDArray:
        """What ``A^T q`` multiplies the examples with, a column for each score."""
        if self.binary:
            return np.where(self.codes == 1, q[:, 0], -q[:, 0])[:, None]
        V = -q
        V[self.own_class] = q.sum(axis=1)
        return V

    def gain(self, q: NDArray) -> Any:
        """Least sum of values that are where they are to be, with these weights."""
        return q.sum()

    def are_weights(self, weights: Any, n_given: int) -> bool:
        """Whether there is a finite number, not below 0, for each row."""
        fits = is_csr(weights, (n_given, self.n_columns))
        return fits and bool(np.all((weights.data >= 0) & (weights.data < np.inf)))

    def of_rows(self, weights: sp.csr_array, kept: NDArray) -> NDArray:
        """Weights of the examples that take part; an example is not held against its own class."""
        q = weights.toarray()[kept]
        if not self.binary:
            q[self.own_class] = 0.0
        return q

    def none_fits(
        self, X: Any, few: NDArray, q: NDArray, signs: NDArray | None, *, intercept: bool
    ) -> bool:
        """Whether exact weights near q, on few examples X, prove that nothing separates these.

        That is, no predictor whose coefficients have the given signs.
        """
        if signs is not None:
            codes = self.codes[few]
            return nothing_separates_with_signs(X, codes, q, signs, intercept=intercept)
        return nothing_separates(X, self.codes[few], self.n_classes, q, intercept=intercept)


@dataclass(frozen=True)
class IntervalRows:
    """Examples whose outputs are to lie in intervals.

    Attributes
    ----------
    low, high : ndarray of shape (n, n_outputs)
        Ends of the intervals as floats, without epsilon; -inf and inf where there is none.
    epsilon : float
        By how much the intervals are wider at either end.
    numbers : Floats or Rationals
    outputs : tuple of int
        Shape of what is given of each output: (n_outputs,); or (), if the targets are one column.
    """

    low: NDArray
    high: NDArray
    epsilon: float
    numbers: Numbers
    outputs: tuple[int, ...] = ()
    length = links = cycle = 1  # each output has an intercept for itself

    @property
    def n_columns(self) -> int:
        return int(self.low.shape[1])

    def output(self, j: int) -> IntervalRows:
        """The intervals of one output."""
        return replace(self, low=self.low[:, j : j + 1], high=self.high[:, j : j + 1])

    @cached_property
    def ends(self) -> tuple[NDArray, NDArray]:
        """Ends of the intervals as numbers; 0 where there is none."""
        epsilon = self.numbers.number(self.epsilon)
        low, high = (
            self.numbers.array(np.where(np.isfinite(end), end, 0.0))
            for end in (self.low, self.high)
        )
        return low - epsilon, high + epsilon

    @property
    def reach(self) -> Any:
        """The largest finite end, in absolute value."""
        below, above = np.isfinite(self.low), np.isfinite(self.high)
        return max(abs(self.ends[0] * below).max(), abs(self.ends[1] * above).max())

    def values(self, F: NDArray) -> NDArray:
        return F

    def distances(self, values: NDArray) -> NDArray:
        below, above = self._outside(values)
        return np.maximum(np.maximum(below, above), 0 * values)

    def _outside(self, values: NDArray) -> tuple[NDArray, NDArray]:
        low, high = self.ends
        below = np.where(np.isfinite(self.low), low - values, 0 * values)
        return below, np.where(np.isfinite(self.high), values - high, 0 * values)

    def size(self, values: NDArray) -> float:
        """The largest value or end of an interval."""
        below, above = self._outside(values)
        sizes = abs(values).max(), abs(values + below).max(), abs(values - above).max()
        return float(max(sizes)) or 1.0

    def slack(self, distances: NDArray) -> NDArray:
        return distances  # each output has it for itself

    def under_a_cap(self, sizes: NDArray) -> NDArray:
        return sizes

    def coefficients(self, q: NDArray) -> NDArray:
        return q

    def gain(self, q: NDArray) -> Any:
        """None where an end is infinite: such weights prove nothing."""
        end = np.where(q > 0, self.low, self.high)
        if not np.isfinite(np.where(q != 0, end, 0.0)).all():
            return self.numbers.number(0.0)
        return (np.where(q > 0, *self.ends) * q).sum()

    def are_weights(self, weights: Any, n_given: int) -> bool:
        """Whether there is a finite number for each row."""
        fits = is_csr(weights, (n_given, self.n_columns))
        return fits and bool(np.isfinite(weights.data).all())

    def of_rows(self, weights: sp.csr_array, kept: NDArray) -> NDArray:
        return np.asarray(weights.toarray()[kept])

    def none_fits(
        self, X: Any, few: NDArray, q: NDArray, signs: NDArray | None, *, intercept: bool
    ) -> bool:
        """Whether exact weights near q prove that no predictor fits some output."""
        low, high = self.ends_outward(few)
        return any(
            nothing_fits(X, low[:, j], high[:, j], q[:, j], intercept=intercept, signs=signs)
            for j in range(q.shape[1] if len(few) else 0)
        )

    def ends_outward(self, few: NDArray) -> tuple[NDArray, NDArray]:
        """Ends of some examples as floats; what does not fit these does not fit the exact ones.

        Ends that are sums are moved outward to the next floats, unless they are floats.
        """
        low, high = self.low[few], self.high[few]
        if self.epsilon == 0.0:
            return low, high
        exact = Rationals()
        epsilon = exact.number(self.epsilon)
        low = np.vectorize(exact.down, otypes=[float])(exact.array(low) - epsilon)
        return low, np.vectorize(exact.up, otypes=[float])(exact.array(high) + epsilon)


Rows = ClassRows | IntervalRows
