"""The training set of a regression: validated examples, their intervals and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import assert_all_finite, check_array

from marginsvm._typing import Array
from marginsvm.estimator.kernel_function import kernel_on
from marginsvm.estimator.kernel_problem import common_arguments, kernel_problem
from marginsvm.estimator.on_device import refuse_foreign
from marginsvm.estimator.precomputed import check_gram
from marginsvm.estimator.signs import norm_of
from marginsvm.estimator.validated import (
    Validated,
    check_kernel_params,
    examples_at,
    positive,
    validated_weight,
)
from marginsvm.fit import Requirements
from marginsvm.fit.progress import Line
from marginsvm.problem.adapter import LARGEST_NORM, GramAdapter, KernelMatrixAdapter, LinearAdapter
from marginsvm.problem.caps import HingeCaps
from marginsvm.problem.kernels import Kernel
from marginsvm.problem.matrix import canonical
from marginsvm.problem.rows import Intervals, OutputRows
from marginsvm.problem.spec import ProblemSpec


@dataclass(frozen=True)
class IntervalSet:
    """Validated training data of a regression: the examples of positive weight.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_kept, n_features)
    intervals : Intervals
        Where their scores are to lie, in units of ``units``, with ``origin`` subtracted.
    units : ndarray of shape () or (n_outputs,)
        Powers of two, the size of the ends of the intervals of each output (units of y); the same
        for all outputs that have one norm.
    origin : ndarray of shape () or (n_outputs,)
        Middle of the targets, where there is an intercept that is not penalised (units of y).
    weights : ndarray of shape (n_kept,) or None
        Sample weights; None: they are all 1.
    kept : ndarray of shape (n_kept,)
        Indices of these examples among the given ones.
    n_given : int
    is_column : bool
        Whether y has a single column, and so have predictions.
    features : dict
        Fitted attributes: number and names of the features.
    epsilon : float
        By how much the intervals were widened (units of y).
    kernel : Kernel
    signs : ndarray of shape (n_features,) or None
        Signs that coefficients must have.
    """

    X: Any
    intervals: Intervals
    units: Array
    origin: Array
    weights: Array | None
    kept: Array
    n_given: int
    is_column: bool
    features: dict[str, Any]
    epsilon: float
    kernel: Kernel
    signs: Array | None
    classes = place = None  # a regression has none, and fits run where the package does

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        intervals: Intervals,
        kept: Array,
        weight: Array | None,
        *,
        features: dict[str, Any],
        signs: Array | None = None,
        epsilon: float | None = None,
    ) -> IntervalSet:
        """Make a training set of the kept examples, of the intervals of all, and their weights.

        ``epsilon`` is that of the estimator, unless another one is given.
        """
        if len(kept) == 0:
            raise ValueError("all sample weights are 0: fit needs an example of positive weight")
        n_given, shape = len(intervals.low), intervals.low.shape
        is_column = shape[1:] == (1,)
        if is_column:
            intervals = intervals.column(0)
        if len(kept) < n_given:
            intervals = intervals.restrict(kept)
        epsilon = given_epsilon(estimator) if epsilon is None else epsilon
        intervals, units, origin = _in_units(ProblemSpec.of(estimator), intervals, epsilon)
        return cls(
            X,
            intervals,
            units,
            origin,
            weight,
            kept,
            n_given,
            is_column,
            features,
            epsilon,
            kernel_on(estimator, X, weight),
            signs,
        )

    def problem(self, spec: ProblemSpec, requires: Requirements) -> LinearAdapter | GramAdapter:
        """Make the problem: the rows that are to lie in the intervals."""
        rows = OutputRows(
            self.intervals,
            self.weights,
            balanced=spec.intercept_is_free,
            origin=self.origin / self.units,
            scales=self.units / self.unit if spec.outputs_are_apart else None,
        )
        common = common_arguments(spec, rows, norm_of(spec, self.X, self.signs), requires)
        problem: LinearAdapter | GramAdapter
        if self.kernel.metric == "linear":
            problem = LinearAdapter(self.X, **common)
        else:
            common["cache_size"] = spec.cache_size
            problem = kernel_problem(self.kernel, self.X, wide=True, **common)
        if problem.slack is not None and problem.slack.min() < LARGEST_NORM**-1:
            raise ValueError(
                "C and sample weights times squared norms of the examples come to "
                f"{0.5 / max(problem.slack.min(), 1e-308):.3g}, and soft intervals compute with "
                f"{0.5 * LARGEST_NORM:g} at most: scale X, or choose a smaller C, or none"
            )
        if not spec.slack_is_linear:
            return problem
        # of all weights, a share of 1 is none: the tube of width 0 is best, among others
        return self._capped(problem, None if spec.nu == 1.0 else spec.nu)

    @property
    def unit(self) -> float:
        """The largest of the units."""
        return float(self.units.max())

    def _capped(
        self, problem: LinearAdapter | GramAdapter, nu: float | None
    ) -> LinearAdapter | GramAdapter:
        """The problem in which slack costs its size: in larger units of y, it costs less."""
        if problem.slack is None:
            return problem
        return problem.below(HingeCaps.of(problem.rows, problem.slack * self.units, nu))

    def embed(self, q: Array) -> sp.csr_array:
        """Weights on the rows, as a sparse array with one row for each given example."""
        q = q.reshape(len(q), -1)
        examples, j = np.nonzero(q)
        shape = self.n_given, q.shape[1]
        return sp.csr_array((q[examples, j], (self.kept[examples], j)), shape=shape)

    def words(self, problem: KernelMatrixAdapter, line: Line) -> str:
        """The bounds after an epoch, in words."""
        norm, bound = in_norms(line.lower, line.upper, self.unit / problem.radius)
        violation = line.violation * self.unit
        return (
            f"epoch {line.n_iter}: {bound:.6g} <= least norm, norm {norm:.6g}, "
            f"violation {violation:.3g}"
        )

    def in_units(self, coef: Array) -> Array:
        """Coefficients of each output in the units of y."""
        return (coef.T * self.units).T


def in_norms(lower: Any, upper: Any, length: float) -> tuple[Any, Any]:
    """The norm of a predictor and the least norm, from bounds on margins, which are one over them.

    Parameters
    ----------
    lower, upper : float or ndarray
        Units of the problem.
    length : float
        One over the unit of a margin.
    """
    with np.errstate(divide="ignore"):
        return length / np.asarray(lower), length / np.asarray(upper)


def interval_set(
    estimator: Any, X: Any, y: Any, sample_weight: Any, bounds: Any = None
) -> IntervalSet:
    """Validate the arguments of ``fit`` before a fit begins."""
    refuse_foreign(type(estimator).__name__, X)
    kernel = getattr(estimator, "kernel", "linear")
    if kernel != "linear":
        check_kernel_params(estimator)
    if y is None and bounds is not None:
        y = np.asarray(bounds)[..., 0]
        y = np.where(np.isfinite(y), y, 0.0)
    given = Validated.of(estimator, X, y, multi_output=True, y_numeric=True)
    X, y = canonical(given.X), given.y.astype(np.float64)
    assert_all_finite(y, input_name="y")  # None is NaN from here on
    if kernel == "precomputed":
        check_gram(X)
    weight = validated_weight(sample_weight, X)
    intervals, epsilon = Intervals(y, y), None
    if bounds is not None:
        intervals, epsilon = _given(bounds, y.shape), 0.0
    kept, weight = positive(weight, len(y))
    return IntervalSet.of(
        estimator,
        examples_at(X, kept, kernel),
        intervals,
        kept,
        weight,
        features=given.features,
        signs=given.signs,
        epsilon=epsilon,
    )


def given_epsilon(estimator: Any) -> float:
    """Half the width of the tube that a fit begins with: 0 where ``nu`` is to find it.

    Raises
    ------
    ValueError
        If ``nu`` is given, and slack has no price that it could be compared with.
    """
    spec = ProblemSpec.of(estimator)
    if spec.nu is None:
        return float(estimator.epsilon)
    if not (spec.is_soft and spec.slack_is_linear):
        raise ValueError(
            f"nu={spec.nu:g} needs C < inf and loss='epsilon_insensitive', as in NuSVR, but "
            f"C={spec.C:g} and loss={spec.loss!r}: set these, or nu=None for a tube of the width "
            "epsilon"
        )
    return 0.0


def _in_units(
    spec: ProblemSpec, intervals: Intervals, epsilon: float
) -> tuple[Intervals, Array, Array]:
    """Intervals about 1 in size, their units, and what was subtracted from their ends before.

    It is subtracted before they are widened by epsilon: what that rounds is then rounding of small
    numbers.
    """
    outputs = intervals.low.shape[1:]
    origin = np.zeros(outputs)
    if spec.intercept_is_free:
        origin = np.asarray(0.5 * intervals.low.min(axis=0) + 0.5 * intervals.high.max(axis=0))
        intervals = intervals.moved(-origin)
    intervals = intervals.widened(epsilon) if epsilon else intervals
    sizes = np.broadcast_to(intervals.size, outputs)
    if spec.outputs_are_apart:
        sizes = np.maximum(np.abs(intervals.low), np.abs(intervals.high)).max(axis=0)
    units = np.ldexp(1.0, np.frexp(sizes)[1])
    return intervals.scaled(1.0 / units), units, origin


def _given(bounds: Any, shape: tuple[int, ...]) -> Intervals:
    """Intervals as the user gave them, one pair of ends for each value of y."""
    bounds = check_array(
        bounds, dtype=np.float64, ensure_all_finite=False, allow_nd=True, input_name="bounds"
    )
    if bounds.shape != (*shape, 2):
        raise ValueError(
            f"bounds must hold a lower and an upper end for each value of y, in an array of shape "
            f"{(*shape, 2)}, but its shape is {bounds.shape}"
        )
    low, high = np.ascontiguousarray(bounds[..., 0]), np.ascontiguousarray(bounds[..., 1])
    wrong = ~((low <= high) & (low < np.inf) & (high > -np.inf))  # NaN is wrong as well
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"the lower end of an interval must not be above the upper one, but bounds{[*first]} "
            f"is {[float(low[first]), float(high[first])]}; -inf and inf stand for no end"
        )
    return Intervals(low, high)
