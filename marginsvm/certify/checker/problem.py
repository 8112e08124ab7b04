"""The problem that a fit was set, from its estimator and the data that it was given.

The check computes everything itself. With the fit it shares the proofs that nothing separates or
fits (``certify/exactly``), the reading of parameters (``certify/spec``), the definition of the
relative gap and the copying of arrays to NumPy. Named kernels are scikit-learn's in both.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_outlier_detector, is_regressor

from marginsvm.certify.checker.examples import Examples, Setting, labels_and_weights
from marginsvm.certify.checker.kernel_space import KernelSpace
from marginsvm.certify.checker.linear_space import LinearSpace
from marginsvm.certify.checker.numbers import Numbers
from marginsvm.certify.checker.proof import Proved, Slack, largest_share, proved
from marginsvm.certify.checker.rows import ClassRows, IntervalRows, Rows
from marginsvm.certify.spec import ProblemSpec

_READ_OF_ESTIMATORS = (
    "gamma",
    "degree",
    "coef0",
    "kernel_params",
    "_widens_kernels",
    "support_",
    "dual_coef_",
    "epsilon_",
    "n_features_in_",
    "feature_names_in_",
)
_SUM_TOLERANCE = 1e-9  # from 1, of weights that sum to 1 but for the rounding of each
_SURCHARGE = 3.0  # norms of the mean in the scale: see ``Problem.scale``


class Problem:
    """Rows, what is asked of their values, and what slack costs.

    Parameters
    ----------
    setting : Setting
        The estimator, the examples and the numbers to compute in.
    rows : ClassRows or IntervalRows

    Attributes
    ----------
    numbers : Floats or Rationals
    rows : ClassRows or IntervalRows
    radius : number
        Largest norm of a row (counted from the mean, with an unpenalised intercept), in the units
        of margins.
    is_hard : bool
        Whether there is no C.
    scale : float
        The radius and, where rows are counted from the mean, three times the norm of the mean: what
        the rounding of floats is relative to.
    """

    def __init__(self, setting: Setting, rows: Rows) -> None:
        estimator, examples, numbers = setting.estimator, setting.examples, setting.numbers
        self.numbers, self.rows, self._examples = numbers, rows, examples
        self._space = (LinearSpace if hasattr(estimator, "coef_") else KernelSpace)(setting)
        spec, self._balanced = setting.spec, setting.free_intercept
        self._fit_intercept, self._normalized = bool(spec.fit_intercept), bool(spec.normalize)
        self._scores = self._space.scores()
        self.is_hard = not spec.is_soft
        norms = self._space.example_norms(self._balanced)
        weight = numbers.array(examples.weight)
        coordinate = None
        if spec.is_soft:
            cost = numbers.number(spec.C) * weight
            coordinate = numbers.sqrt(1 / (2 * cost))
            norms = numbers.norms(np.column_stack([norms, coordinate]), 2.0)
        self._tube = np.atleast_1d(getattr(estimator, "epsilon_", 0.0))
        self._slack = self._priced(spec, weight, coordinate)
        self._farthest = norms.max()
        self.radius = self._farthest * rows.length
        offset = self._space.distance_from_origin() if self._balanced else 0.0
        self.scale = float(self.radius) + _SURCHARGE * float(rows.length) * offset or 1.0

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        numbers: Numbers,
        bounds: Any = None,
    ) -> Problem:
        """The problem of a fitted estimator, from the arguments of its fit."""
        if is_regressor(estimator):
            return cls.of_intervals(estimator, X, y, sample_weight, numbers, bounds)
        if is_outlier_detector(estimator):
            return cls.of_one_class(estimator, X, sample_weight, numbers)
        return cls.of_classes(estimator, X, y, sample_weight, numbers)

    @classmethod
    def of_classes(
        cls, estimator: Any, X: Any, y: Any, sample_weight: Any, numbers: Numbers
    ) -> Problem:
        """The same of a classifier, or of anything with the attributes that are read of one."""
        examples = Examples.of(estimator, X, y, sample_weight)
        rows = ClassRows(examples.codes, len(estimator.classes_), numbers)
        return cls(Setting(estimator, examples, numbers), rows)

    @classmethod
    def of_intervals(
        cls, estimator: Any, X: Any, y: Any, sample_weight: Any, numbers: Numbers, bounds: Any
    ) -> Problem:
        """The same of a regressor: of a matrix X, or of a source of blocks and no y."""
        in_memory = y is not None or bounds is not None
        if not in_memory:
            y, sample_weight = labels_and_weights(X)
        examples = Examples.of_one_kind(X, sample_weight, in_memory)
        regression = _predictor(estimator, np.atleast_1d(estimator.intercept_))
        low, high = _ends(y, bounds, examples.n_given)
        found = bounds is not None or regression.nu is not None
        epsilon = 0.0 if found else estimator.epsilon
        outputs = np.shape(y)[1:] if bounds is None else np.shape(bounds)[1:-1]
        rows = IntervalRows(low[examples.kept], high[examples.kept], epsilon, numbers, outputs)
        return cls(Setting(regression, examples, numbers), rows)

    def of_output(self, one: Any, j: int) -> Problem:
        """The problem of one output, whose estimator is given."""
        assert isinstance(self.rows, IntervalRows)
        regression = _predictor(one, np.atleast_1d(one.intercept_))
        return Problem(Setting(regression, self._examples, self.numbers), self.rows.output(j))

    @classmethod
    def of_one_class(cls, estimator: Any, X: Any, sample_weight: Any, numbers: Numbers) -> Problem:
        """All examples are of the second of two classes, and no intercept helps."""
        examples = Examples.of_one_kind(X, sample_weight)
        rows = ClassRows(examples.codes, 2, numbers)
        return cls(Setting(_predictor(estimator, np.zeros(1)), examples, numbers), rows)

    def _priced(self, spec: ProblemSpec, weight: NDArray, coordinate: NDArray | None) -> Slack:
        """What slack costs.

        Parameters
        ----------
        spec : ProblemSpec
        weight : ndarray of shape (n,)
            Weights of the examples, as numbers.
        coordinate : ndarray of shape (n,) or None
            The coordinate that C gives to a row of length 1 of each example.
        """
        numbers, rows = self.numbers, self.rows
        if spec.nu is not None and isinstance(rows, IntervalRows):
            caps = numbers.number(spec.C) * weight
            most = numbers.number(spec.nu) * caps.sum()
            return Slack(caps=caps[:, None], most=most, tube=numbers.array(self._tube))
        if spec.nu is not None:
            size = numbers.number(spec.nu) * weight.sum()
            if self._balanced:  # no class has more than half of the share: the others have the rest
                for c in np.unique(self._examples.codes):
                    size = min(size, 2 * weight[self._examples.codes != c].sum())
            return Slack(caps=(weight / size)[:, None], share=True)
        if coordinate is None:
            return Slack(share=isinstance(rows, ClassRows))
        if spec.slack_is_linear:
            return Slack(caps=(numbers.number(spec.C) * weight)[:, None])
        return Slack(own=(coordinate * rows.length)[:, None])

    def weights(self, weights: Any) -> NDArray | None:
        """Weights on the rows of the examples that take part, as floats; None: they can be none."""
        if not self.rows.are_weights(weights, self._examples.n_given):
            return None
        return self.rows.of_rows(weights, self._examples.kept)

    def proved(self, q: NDArray | None) -> Proved:
        """What the predictor and weights prove; None stands for weights of 0."""
        if q is None:
            q = np.zeros((len(self._examples.kept), self.rows.n_columns))
        data = self._space, self._scores, self.rows, self._slack, self.numbers.array(q)
        return proved(*data, self._farthest, balanced=self._balanced)

    def is_distribution(self, weights: sp.csr_array, q: NDArray | None) -> bool:
        """Whether the rows' weights are none below 0 and sum to 1; there are no others."""
        if q is None:
            return False
        mass = self.numbers.up(self.numbers.array(q).sum())
        return abs(mass - 1.0) <= _SUM_TOLERANCE and abs(weights.sum() - 1.0) <= _SUM_TOLERANCE

    def nu(self, q: NDArray | None) -> Any:
        """Parameter of NuSVC that goes with weights of classes, where slack costs its size."""
        caps, priced = self._slack.caps, not self._slack.share
        if q is None or caps is None or not priced or isinstance(self.rows, IntervalRows):
            return None
        return largest_share(self.numbers.array(q), caps)

    def none_fits(self, q: NDArray | None) -> bool:
        """Whether exact weights near these are proved to show that no predictor fits, or separates.

        That is asked of the examples as they were given, without slack.
        """
        if q is None:
            return False
        few = np.flatnonzero(q.any(axis=1))
        X, factor = self._space.as_given(few)
        of_few, intercept = q[few] * factor[:, None], self._fit_intercept
        return self.rows.none_fits(X, few, of_few, self._space.signs, intercept=intercept)

    def wrong_signs(self) -> bool:
        """Whether a coefficient has a sign that it must not have."""
        return self._space.has_wrong_signs()

    def separation(self) -> Any:
        """Smallest value of the predictor on a row without slack; its norm does not matter."""
        return self.rows.values(self._scores).min()

    def violation_of_zero(self) -> float:
        """Violation of the zero predictor, with its best intercept if norms do not count it."""
        if not (self._balanced and isinstance(self.rows, IntervalRows)):
            return float(self.rows.distances(0 * self._scores).max())
        low, high = self.rows.ends
        spread = (low.max(axis=0) - high.min(axis=0)) / 2
        return max(float(spread.max()), 0.0)

    def weight_below(self, offset: float, rtol: float) -> Any:
        """Weight of the examples whose score is below an offset, as a part of that of all.

        ``rtol`` allows for rounding, relative to the largest score.
        """
        scores, level = self._scores[:, 0], self.numbers.number(offset)
        rounded = self.numbers.number(rtol) * (abs(scores).max() + abs(level))
        weight = self.numbers.array(self._examples.weight)
        return (weight * (scores < level - rounded)).sum() / weight.sum()

    def size_of_values(self) -> float:
        """The largest value of the predictor or end of an interval."""
        assert isinstance(self.rows, IntervalRows)
        return self.rows.size(self._scores)

    def rounded(self, bound: Any, direction: int) -> Any:
        """The bound at the pessimistic end of what roots and powers may have rounded.

        Their error is relative to the bound, as all terms under a root are positive; but sums of
        normalised examples may cancel.
        """
        if not bound < np.inf:
            return bound
        size = abs(bound) + self.radius if self._normalized else abs(bound)
        return bound + direction * self.numbers.rounding_error * size


def _predictor(estimator: Any, intercept: NDArray) -> Any:
    """What is read of an estimator without classes, with an intercept."""
    found = {
        name: getattr(estimator, name) for name in _READ_OF_ESTIMATORS if hasattr(estimator, name)
    }
    if hasattr(estimator, "coef_"):
        found["coef_"] = np.atleast_2d(estimator.coef_)
    return SimpleNamespace(**vars(ProblemSpec.of(estimator)), **found, intercept_=intercept)


def _ends(y: Any, bounds: Any, n: int) -> tuple[NDArray, NDArray]:
    """Ends of the intervals, without epsilon, a column for each output."""
    if bounds is None:
        y = np.asarray(y, dtype=np.float64).reshape(n, -1)
        return y, y
    bounds = np.asarray(bounds, dtype=np.float64)
    return bounds[..., 0].reshape(n, -1), bounds[..., 1].reshape(n, -1)
