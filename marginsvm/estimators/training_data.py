"""Training data: validated examples with labels, intervals or neither, and the problem of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array

from marginsvm._typing import Array
from marginsvm.certificate.certificate import bounds_text, quantity, relative_gap
from marginsvm.estimators.inputs import (
    Device,
    first_equal,
    of_objects,
    place_of_training,
    plain,
    refuse_foreign,
    types_of,
)
from marginsvm.estimators.validation import (
    ClassWeights,
    Validated,
    check_gram,
    check_kernel_params,
    check_norms,
    examples_at,
    norm_of,
    positive,
    validated_weight,
)
from marginsvm.fit import Requirements
from marginsvm.fit.progress import Line
from marginsvm.problem.adapter import (
    LARGEST_NORM,
    GramAdapter,
    KernelMatrixAdapter,
    LinearAdapter,
    NotFinite,
)
from marginsvm.problem.kernels import Kernel
from marginsvm.problem.matrix import FLOAT64, as_matrix, canonical, inverse, is_foreign, on_host
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.quadratic_program import ProblemSpec
from marginsvm.problem.responses import below
from marginsvm.problem.rows import Intervals, OutputRows, Rows, make_rows, share_caps


def kernel_with(estimator: Any, gamma: float) -> Kernel:
    """The kernel of an estimator, with the ``gamma`` that its data gives it."""
    params = dict(estimator.kernel_params or {})
    named = {"gamma": gamma, "degree": estimator.degree, "coef0": estimator.coef0}
    if not callable(estimator.kernel):
        named |= {name: params.pop(name) for name in tuple(named) if name in params}
    return Kernel(estimator.kernel, **named, params=params)


def kernel_on(estimator: Any, X: Any, weights: Array | None) -> Kernel:
    """The kernel of an estimator on these examples; one of weight m counts like m copies."""
    metric = getattr(estimator, "kernel", "linear")
    if metric == "linear":
        return Kernel()
    has_gamma = not callable(metric) and metric != "precomputed"
    return kernel_with(estimator, _gamma(estimator.gamma, X, weights) if has_gamma else 0.0)


def norms_of(kernel: Kernel, X: Any) -> Array:
    """Norms of examples in the feature space of a kernel, in float64."""
    if kernel.metric == "linear":
        return as_matrix(X).norms()
    if kernel.metric == "precomputed":  # fit refuses a matrix of which this is not true
        return np.ones(X.shape[0])
    blocks = [as_matrix(X)[i : i + 256].array for i in range(0, X.shape[0], 256)]
    diagonal = np.concatenate([np.diagonal(kernel(B, B)) for B in blocks])
    return np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0))


def _gamma(gamma: str | float, X: Any, weights: Array | None) -> float:
    """``gamma`` as SVC understands it; an example of weight m counts like m copies."""
    if not isinstance(gamma, str):
        return gamma
    if gamma == "auto":
        return 1.0 / X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):  # a kernel that is not finite is refused
        variance = _variance(X, weights)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _variance(X: Any, weights: Array | None) -> float:
    """Variance of all entries of X, its examples weighted; exactly 0 if all are equal."""
    n, d = X.shape
    share = np.ones(n) if weights is None else weights
    share = share / share.sum() / d
    X = as_matrix(X)
    centre = X.mean_of_entries(share, 0.0, 1)
    centre += X.mean_of_entries(share, centre, 1)  # what rounding has left
    return X.mean_of_entries(share, centre, 2)


class Division(NamedTuple):
    """How ``normalize=True`` divides the examples of a fit.

    With an intercept, a constant feature s is added to every example before the division. Examples
    are then ``(x, s) / |(x, s)|``, positive multiples of ``(x, s)``: some hyperplane through the
    origin separates their classes if and only if some hyperplane separates those of X. With s the
    largest norm of an example, their best margin rho and the best margin gamma of X satisfy
    ``gamma / 2 <= rho * s <= gamma``, and no other s promises as much in all cases.

    Attributes
    ----------
    constant : float
        The constant feature s (units of x); 0: there is none.
    scale : ndarray of shape (n_examples,) or None
        Inverses of the norms in the feature space of a kernel; None: the kernel is linear,
        and the norms are computed where the examples are.
    """

    constant: float
    scale: Array | None = None

    def undone(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients and intercept for the examples as given, from those after the division.

        Of a linear predictor ``(w, b / s)``, whose last entry is that of the constant feature s,
        they are w and b; of a kernel predictor, ``coef`` has one entry for each example.
        """
        if self.scale is not None:
            coef = coef * self.scale
            return coef, self.constant**2 * coef.sum(axis=1)
        if self.constant:
            return coef[:, :-1], self.constant * coef[:, -1]
        return coef, intercept


def common_arguments(
    spec: ProblemSpec, rows: Rows, norm: LpNorm, requires: Requirements
) -> dict[str, Any]:
    """Arguments of all kinds of problems, beside their examples."""
    return {
        "rows": rows,
        "C": spec.C,
        "norm": norm,
        "constant": spec.constant,
        "plan": requires.columns,
        "whole": requires.every_row,
    }


def kernel_problem(
    kernel: Kernel, X: Any, division: Division | None = None, wide: bool = False, **given: Any
) -> GramAdapter:
    """The problem of examples and a kernel that is not linear, or of a given kernel matrix.

    ``wide``: whether values of named kernels are kept in float64, whatever the examples are in.
    """
    function: Any = kernel
    if kernel.metric == "precomputed":
        function = None
    elif getattr(X, "dtype", None) == np.dtype(object):
        function, X = partial(of_objects, kernel, X), first_equal(X)[:, None]
    elif hasattr(kernel.metric, "prepare"):
        X = kernel.metric.prepare(X)
    if division is not None and (function is not None or division.constant):
        given |= {"scale": division.scale, "constant": division.constant}
    if not callable(kernel.metric) and function is not None:
        given["dtype"] = FLOAT64 if wide else np.dtype(X.dtype)
    return GramAdapter(function, X, **given)


INLIER, _OUTLIERS_FIRST = 1, np.array([-1, 1])  # the class of all examples, and what is predicted
# NumPy's kinds of labels that are always classes: checking these would take a tenth of a small fit.
_KINDS_OF_CLASSES = "biuUS"


class ClassLabels(NamedTuple):
    """Classes and weights of the examples of positive weight.

    Attributes
    ----------
    codes : ndarray of shape (n_kept,)
        Class of each example of positive weight.
    classes : ndarray of shape (n_classes,)
    kept : ndarray of shape (n_kept,)
        Indices of these examples among the given ones.
    weights : ndarray of shape (n_kept,) or None
        Sample weights times class weights. None: they are all 1.
    n_dropped : int
        Examples of weight 0.
    class_weights : ClassWeights
        Factors of the sample weights, for workers of a cluster, who apply them to their examples.
    """

    codes: Array
    classes: Array
    kept: Array
    weights: Array | None
    n_dropped: int
    class_weights: ClassWeights


@dataclass(frozen=True)
class TrainingSet:
    """Validated training data: the examples of positive weight, and their rows.

    Attributes
    ----------
    X : array, CSR matrix or Matrix of shape (n_kept, n_features); or the kernel matrix
    rows : Rows
    classes : ndarray or None
        None: there are no labels.
    kept : ndarray of shape (n_kept,)
        Indices of these examples among the given ones.
    n_given : int
        Number of given examples.
    kernel : Kernel
    features : dict
        Fitted attributes: number and names of the features.
    division : Division or None
        With ``normalize=True``: how examples are divided by their norms.
    signs : ndarray of shape (n_features,) or None
        Signs that coefficients must have.
    place : Device or None
        Where examples on a device are, and fitted arrays go.
    estimator_name : str
        For messages.
    wide : bool
        Whether named kernels are kept in float64, whatever the examples are in.
    """

    X: Any
    rows: Rows
    classes: Array | None
    kept: Array
    n_given: int
    kernel: Kernel
    features: dict[str, Any] = field(default_factory=dict)
    division: Division | None = None
    signs: Array | None = None
    place: Device | None = None
    estimator_name: str = ""
    wide: bool = False

    @classmethod
    def of(cls, estimator: Any, X: Any, labels: ClassLabels, **more: Any) -> TrainingSet:
        """Make a training set of examples and labels; ``more`` are attributes of it."""
        spec, codes, weights = ProblemSpec.of(estimator), labels.codes, labels.weights
        balanced, k = spec.intercept_is_free, len(labels.classes)
        rows = make_rows(codes, k, balanced=balanced, weights=weights)
        kernel = kernel_on(estimator, X, weights)
        return cls(
            X,
            rows,
            labels.classes,
            labels.kept,
            labels.kept.size + labels.n_dropped,
            kernel,
            division=_division(kernel, spec, X) if spec.normalize else None,
            wide=estimator._widens_kernels,
            estimator_name=type(estimator).__name__,
            **more,
        )

    def problem(self, spec: ProblemSpec, requires: Requirements) -> KernelMatrixAdapter:
        """Make the problem of an algorithm, with capped weights by ``nu``, or with its loss."""
        nu = spec.nu
        if nu is None:
            problem = self._problem(spec, requires)
            return problem.with_hinge_loss() if spec.slack_is_linear else problem
        if spec.is_soft:
            raise ValueError(
                f"nu={nu:g} is a soft margin by itself, in place of C, but C={spec.C:g}: leave "
                "C=inf, or set nu=None"
            )
        upper = share_caps(self.rows, nu)
        for response in requires.responses or ():
            below(response, upper)  # raises an error if it has no form for capped weights
        return self._problem(spec, requires).with_share(nu)

    def _problem(self, spec: ProblemSpec, requires: Requirements) -> KernelMatrixAdapter:
        """Choose the adapter for the kernel."""
        n_classes = 1 if self.classes is None else len(self.classes)
        norm = norm_of(spec, self.X, self.signs, n_classes)
        common = common_arguments(spec, self.rows, norm, requires)
        if self.kernel.metric != "linear":
            common["cache_size"] = spec.cache_size
            return kernel_problem(self.kernel, self.X, self.division, self.wide, **common)
        X = as_matrix(self.X)
        if self.division is not None:
            X = X.divided(self.division.constant)
        try:
            return LinearAdapter(X, **common)
        except NotFinite:
            if X.in_memory:
                assert_all_finite(self.X, estimator_name=self.estimator_name, input_name="X")
            raise

    def embed(self, q: Array) -> sp.csr_array:
        """Weights on the rows, as a sparse array with one row for each given example."""
        q = q.reshape(len(q), -1)
        examples, j = np.nonzero(q > 0.0)
        indptr = np.searchsorted(self.kept[examples], np.arange(self.n_given + 1))
        return sp.csr_array((q[examples, j], j, indptr), shape=(self.n_given, q.shape[1]))

    def words(self, problem: KernelMatrixAdapter, line: Line) -> str:
        """The bounds after a round, in words."""
        unit = problem.radius * problem.rows.unit
        bounds = bounds_text(line.lower * unit, line.upper * unit, quantity(problem.nu))
        gap = relative_gap(line.lower, line.upper)
        return f"round {line.n_iter}: {bounds} (relative gap {gap:.3g})"

    def support_vectors(self, support: Array) -> Any:
        """Support vectors of a kernel predictor; as in SVC, none if precomputed."""
        if self.kernel.metric == "precomputed":
            return np.empty((0, 0))
        if self.X.dtype == object:
            return self.X[support]
        return as_matrix(self.X)[support].array


def training_set(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
    """Validate the arguments of ``fit`` before a fit begins."""
    check_kernel_params(estimator)
    place, kernel = place_of_training(estimator, X), estimator.kernel
    y, sample_weight = on_host(y), on_host(sample_weight)
    # a linear adapter that gets all examples refuses non-finite entries when it measures X
    checked_later = kernel == "linear" and not estimator.normalize and place is None
    checked_later &= sample_weight is None and estimator.class_weight is None
    how = {"dtype": types_of(place), "ensure_all_finite": not checked_later}
    given = Validated.of(estimator, plain(X, place), y, **how)
    y = given.y
    X = on_host(given.X) if kernel == "precomputed" else canonical(given.X)
    if y.dtype.kind not in _KINDS_OF_CLASSES:
        check_classification_targets(y)
    if kernel == "precomputed":
        check_gram(X)
        if estimator.normalize:
            check_norms(np.diagonal(X), zeros=not estimator.fit_intercept)
    labels = labelled(y, validated_weight(sample_weight, y), estimator.class_weight)
    X = examples_at(as_matrix(X) if is_foreign(X) else X, labels.kept, kernel)
    more = {"features": given.features, "signs": given.signs, "place": place}
    return TrainingSet.of(estimator, X, labels, **more)


def labelled(y: Array, weight: Array | None, class_weight: Any = None) -> ClassLabels:
    """Classes and final weights of the examples of positive weight."""
    class_weights = ClassWeights.of(class_weight, y, weight)
    weight = class_weights.applied(y, weight)
    kept, weight = positive(weight, len(y))
    classes, codes = np.unique(y[kept], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"fit needs at least 2 classes among the examples of positive weight, but got "
            f"{len(classes)} class: {classes.tolist()}"
        )
    return ClassLabels(codes, classes, kept, weight, len(y) - kept.size, class_weights)


def _division(kernel: Kernel, spec: ProblemSpec, X: Any) -> Division:
    """Divisors for ``normalize=True``; the constant feature is the largest norm of an example."""
    norms = norms_of(kernel, X)
    constant = 0.0
    if spec.fit_intercept:
        constant = float(norms.max()) or 1.0  # if all examples are zero, any constant does
    linear = kernel.metric == "linear"
    return Division(constant, None if linear else inverse(np.hypot(norms, constant)))


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
        return problem.with_hinge_loss(None if spec.nu == 1.0 else spec.nu, self.units)

    @property
    def unit(self) -> float:
        """The largest of the units."""
        return float(self.units.max())

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
        intervals = intervals.moved(-origin, -origin)
    intervals = intervals.moved(-epsilon, epsilon) if epsilon else intervals
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


def one_class_set(estimator: Any, X: Any, sample_weight: Any) -> TrainingSet:
    """Examples of one class, without labels.

    Each example is a row, as those of the second of two classes are, and there is no intercept:
    the margin is how far a predictor of norm 1 keeps the examples from the origin.
    """
    refuse_foreign(type(estimator).__name__, X)
    check_kernel_params(estimator)
    given = Validated.of(estimator, X)
    X = canonical(given.X)
    if estimator.kernel == "precomputed":
        check_gram(X)
    n = X.shape[0]
    kept, weights = positive(validated_weight(sample_weight, X), n)
    X = examples_at(X, kept, estimator.kernel)
    if len(kept) == 0:
        raise ValueError("all sample weights are 0: fit needs an example of positive weight")
    codes, none = np.full(len(kept), INLIER), ClassWeights(np.empty(0), np.empty(0))
    labels = ClassLabels(codes, _OUTLIERS_FIRST, kept, weights, n - len(kept), none)
    training = TrainingSet.of(estimator, X, labels, features=given.features)
    return replace(training, classes=None)
