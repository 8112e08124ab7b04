"""The training set of a regression: validated examples, their intervals and weights."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, check_array, check_X_y, validate_data

from marginsvm._typing import Array
from marginsvm.certify.prices import HingeCaps
from marginsvm.certify.spec import ProblemSpec
from marginsvm.certify.tolerances import LARGEST_NORM, ROUNDING_RTOL_OF_TOL
from marginsvm.estimator.kernel_function import canonical
from marginsvm.estimator.objects import as_objects
from marginsvm.estimator.on_device import refuse_foreign
from marginsvm.estimator.precomputed import check_gram
from marginsvm.estimator.signs import norm_of
from marginsvm.estimator.training_set import check_kernel_params, gamma_of, kernel_and_examples
from marginsvm.fit import Requirements
from marginsvm.fit.progress import Line
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter, LinearAdapter
from marginsvm.kernel_matrix.single import Formula
from marginsvm.rows import Intervals, OutputRows


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
    kernel : str or callable
        The estimator's parameter, if it has it.
    gamma : float
        Its coefficient, as a number.
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
    kernel: Any = "linear"
    gamma: float = 0.0
    classes = place = None  # a regression has none, and fits run where the package does

    def problem(self, estimator: Any, requires: Requirements) -> LinearAdapter | GramAdapter:
        """Make the problem: the rows that are to lie in the intervals."""
        spec = ProblemSpec.of(estimator)
        rows = OutputRows(
            self.intervals,
            self.weights,
            balanced=spec.intercept_is_free,
            origin=self.origin / self.units,
            scales=self.units / self.unit if spec.outputs_are_apart else None,
        )
        norm = norm_of(estimator, self)
        rtol = ROUNDING_RTOL_OF_TOL * estimator.tol
        common = rows, spec.C, norm, spec.constant
        problem: LinearAdapter | GramAdapter
        if self.kernel == "linear":
            problem = LinearAdapter(self.X, *common, rounding_rtol=rtol)
        else:
            kernel, X = kernel_and_examples(estimator, self.X, self.gamma)
            formula = Formula.of(estimator, self.gamma, X)
            problem = GramAdapter(
                kernel,
                X,
                *common,
                whole=requires.every_row,
                rounding_rtol=rtol,
                formula=formula,
                cache_size=estimator.cache_size,
            )
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
    if hasattr(estimator, "kernel"):
        check_kernel_params(estimator)
    probe, floats = copy(estimator), [np.float64, np.float32]
    if y is None and bounds is not None:
        y = np.asarray(bounds)[..., 0]
        y = np.where(np.isfinite(y), y, 0.0)
    kernel = getattr(estimator, "kernel", "linear")
    things, numeric = as_objects(kernel, X), {"multi_output": True, "y_numeric": True}
    if things is None:
        X, y = validate_data(probe, X, y, accept_sparse="csr", dtype=floats, **numeric)
    else:
        X, (_, y) = things, check_X_y(np.zeros((len(things), 1)), y, **numeric)
    X, y = canonical(X), y.astype(np.float64)
    if kernel == "precomputed":
        check_gram(X)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    intervals, epsilon = Intervals(y, y), given_epsilon(estimator)
    if bounds is not None:
        intervals, epsilon = _given(bounds, y.shape), 0.0
    is_column = y.ndim == 2 and y.shape[1] == 1
    if is_column:
        intervals = Intervals(intervals.low[:, 0], intervals.high[:, 0])
    given = np.ones(len(y)) if weight is None else weight
    kept = np.flatnonzero(given)
    if len(kept) < len(y):
        X, intervals = X[kept], intervals.restrict(kept)
        X = X[:, kept] if kernel == "precomputed" else X
    weight = given[kept] if np.any(given[kept] != 1.0) else None
    intervals, units, origin = _in_units(estimator, intervals, epsilon)
    names = ("n_features_in_", "feature_names_in_")
    features = {name: getattr(probe, name) for name in names if hasattr(probe, name)}
    gamma = 0.0 if kernel == "linear" else gamma_of(estimator, X, weight)
    of_data = weight, kept, len(y), is_column, features, epsilon, kernel, gamma
    return IntervalSet(X, intervals, units, origin, *of_data)


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
    estimator: Any, intervals: Intervals, epsilon: float
) -> tuple[Intervals, Array, Array]:
    """Intervals about 1 in size, their units, and what was subtracted from their ends before.

    It is subtracted before they are widened by epsilon: what that rounds is then rounding of small
    numbers.
    """
    outputs = intervals.low.shape[1:]
    origin = np.zeros(outputs)
    if ProblemSpec.of(estimator).intercept_is_free:
        origin = np.asarray(0.5 * intervals.low.min(axis=0) + 0.5 * intervals.high.max(axis=0))
        intervals = intervals.moved(-origin)
    intervals = intervals.widened(epsilon) if epsilon else intervals
    sizes = np.broadcast_to(intervals.size, outputs)
    if ProblemSpec.of(estimator).outputs_are_apart:
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
