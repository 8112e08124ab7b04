"""Training data: validated examples with labels, targets or neither, and their problem."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, assert_all_finite

from marginsvm._typing import Array
from marginsvm.estimators.inputs import (
    HOST,
    KINDS_OF_CLASSES,
    Device,
    check_gram,
    check_kernel_params,
    class_weighted,
    given_intervals,
    place_of_training,
    refuse_foreign,
    validated,
)
from marginsvm.fit import Requirements
from marginsvm.problem.adapter import GramAdapter, KernelMatrixAdapter, LinearAdapter
from marginsvm.problem.gram import diagonal_of
from marginsvm.problem.kernel_functions import Kernel, kernel_on
from marginsvm.problem.matrix import (
    FLOAT64,
    as_matrix,
    canonical,
    inverse,
    on_host,
)
from marginsvm.problem.norms import LpNorm, SignedNorm
from marginsvm.problem.programs import LARGEST_NORM, NotFinite, ProblemSpec
from marginsvm.problem.responses import below
from marginsvm.problem.rows import Intervals, OutputRows, Rows, make_rows, share_caps

# sample weights are between its inverse and it: they are squared
LARGEST_WEIGHT = 1e100
INLIER = 1  # class of all examples where there are no labels


class Division(NamedTuple):
    """How ``normalize=True`` divides the examples of a fit.

    With an intercept, a constant feature s is added to every example before the division. Examples
    are then ``(x, s) / |(x, s)|``, positive multiples of ``(x, s)``: some hyperplane through the
    origin separates their classes if and only if some hyperplane separates those of X. With s the
    largest norm of an example, their best margin rho and the best margin gamma of X satisfy
    ``gamma / 2 <= rho * s <= gamma``; no other s gives a better guarantee in the worst case.

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

    @classmethod
    def of(cls, kernel: Kernel, X: Any, *, with_constant: bool) -> Division:
        """The division of these examples; the constant is their largest norm."""
        norms = norms_of(kernel, X)
        constant = float(norms.max()) or 1.0 if with_constant else 0.0
        linear = kernel.metric == "linear"
        return cls(constant, None if linear else inverse(np.hypot(norms, constant)))

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


@dataclass(frozen=True)
class TrainingData:
    """Validated examples of positive weight, and their rows.

    Attributes
    ----------
    spec : ProblemSpec
        The parameters of the estimator.
    X : Matrix of shape (n_kept, n_features), kernel matrix, or array of objects
    rows : Rows
        Of a regression ``OutputRows``, whose intervals are in units of ``units``.
    kernel : Kernel
    kept : ndarray of shape (n_kept,)
        Indices of these examples among the given ones.
    n_given : int
    features : dict
        Fitted attributes: number and names of the features.
    classes : ndarray or None
        None: there are no labels.
    signs : ndarray of shape (n_features,) or None
        Signs that coefficients must have.
    division : Division or None
        With ``normalize=True``: how examples are divided by their norms.
    place : Device
        Device of the examples and of fitted arrays.
    wide : bool
        Whether named kernels are stored in float64 for any dtype of X.
    name : str
        Of the estimator, for messages.
    units : ndarray of shape () or (n_outputs,)
        Powers of two, the size of the ends of the intervals of each output (units of y); equal for
        outputs with one norm.
    epsilon : float
        Half the width added to the intervals (units of y).
    single : bool
        Whether y is one-dimensional.
    """

    spec: ProblemSpec
    X: Any
    rows: Rows
    kernel: Kernel
    kept: Array
    n_given: int
    features: dict[str, object]
    classes: Array | None = None
    signs: Array | None = None
    division: Division | None = None
    place: Device = HOST
    wide: bool = False
    name: str = ""
    units: Any = 1.0
    epsilon: float = 0.0
    single: bool = True

    @classmethod
    def of(
        cls,
        estimator: Any,
        spec: ProblemSpec,
        examples: Callable[[Array], Any],
        n: int,
        y: Array | None,
        weight: Array | None,
        bounds: Any = None,
        **more: Any,
    ) -> TrainingData:
        """Training data from the labels, targets or intervals of n examples.

        ``examples(kept)`` gives the examples; ``more`` are further attributes.
        """
        labels = y if isinstance(estimator, ClassifierMixin) else None
        if labels is not None:
            weight = class_weighted(spec.class_weight, labels, weight)
        kept = np.arange(n) if weight is None else np.flatnonzero(weight)
        weight = None if weight is None or np.all(weight[kept] == 1.0) else weight[kept]
        free = spec.intercept_is_free
        if labels is not None:
            classes, codes = np.unique(labels[kept], return_inverse=True)
            if len(classes) < 2:
                raise ValueError(
                    f"fit needs at least 2 classes among the examples of positive weight, but got "
                    f"{len(classes)} class: {classes.tolist()}"
                )
            more["classes"] = classes
            rows = make_rows(codes, len(classes), balanced=free, weights=weight)
        elif len(kept) == 0:
            raise ValueError(
                "all sample weights are 0: fit needs an example of positive weight"
            )
        elif y is None:  # the rows of the second of two classes
            rows = make_rows(
                np.full(len(kept), INLIER), 2, balanced=False, weights=weight
            )
        else:
            tubes = _tubes(spec, y, bounds, kept)
            units = tubes.units
            more |= {"units": units, "epsilon": tubes.epsilon, "single": y.ndim == 1}
            rows = OutputRows(
                tubes.intervals,
                weight,
                balanced=free,
                origin=tubes.origin / units,
                scales=units / np.max(units) if spec.outputs_are_apart else None,
            )
        low, high = (1.0, 1.0) if weight is None else (weight.min(), weight.max())
        if not 1.0 / LARGEST_WEIGHT <= low <= high <= LARGEST_WEIGHT:
            raise ValueError(
                f"sample weights (times class weights) are between {low:.3g} and {high:.3g}, and "
                f"fits compute with {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}: scale them; "
                "a weight of 0 leaves an example out"
            )
        X = examples(kept)
        kernel = Kernel() if spec.kernel == "linear" else kernel_on(spec, X, weight)
        if spec.normalize:
            more["division"] = Division.of(kernel, X, with_constant=spec.fit_intercept)
        more |= {"wide": estimator._widens_kernels, "name": type(estimator).__name__}
        return cls(spec, X, rows, kernel, kept, n, **more)

    @property
    def unit(self) -> float:
        """The largest of the units."""
        return float(np.max(self.units))

    def problem(self, requires: Requirements) -> KernelMatrixAdapter:
        """Make the problem of an algorithm."""
        spec = self.spec
        rows = self.rows
        problem: LinearAdapter | GramAdapter
        norm = self._norm()
        plan = requires.columns
        whole = requires.every_row
        if self.kernel.metric != "linear":
            problem = self._of_kernel(norm, requires)
        else:
            X = self.X
            try:
                X = X if self.division is None else X.divided(self.division.constant)
                problem = LinearAdapter(
                    X, rows, spec.C, norm, spec.constant, plan, whole
                )
            except NotFinite:
                if X.in_memory:
                    assert_all_finite(
                        self.X.array, estimator_name=self.name, input_name="X"
                    )
                raise
        if isinstance(rows, OutputRows):
            return self._of_tubes(problem)
        if spec.nu is None and spec.slack_is_linear:
            return problem.with_hinge_loss()
        if problem.ridge is not None and problem.ridge.min() < np.finfo(FLOAT64).tiny:
            raise ValueError(
                f"C={spec.C:g} times sample weights and squared norms of the examples overflows: "
                "scale X, or choose a smaller C, or C=inf for a hard margin"
            )
        if spec.nu is None:
            return problem
        if spec.is_soft:
            raise ValueError(
                f"nu={spec.nu:g} is a soft margin by itself, in place of C, but C={spec.C:g}: "
                "leave C=inf, or set nu=None"
            )
        upper = share_caps(rows, spec.nu)
        for response in requires.responses or ():
            # raises an error if it has no form for capped weights
            below(response, upper)
        return problem.with_share(spec.nu)

    def _norm(self) -> LpNorm:
        """The norm of predictors, with the sign constraints."""
        spec = self.spec
        X = self.X
        if spec.monotonic_cst is None:
            return LpNorm.named(spec.p, X.shape[-1])
        if self.classes is not None and len(self.classes) > 2:
            raise ValueError(
                f"monotonic_cst says how the decision value of the second of two classes changes, "
                f"but y has {len(self.classes)}: use sklearn.multiclass.OneVsRestClassifier, with "
                "signs for each class"
            )
        if not X.in_memory or X.foreign:
            raise ValueError(
                "monotonic_cst needs the examples in memory, as arrays of NumPy or SciPy"
            )
        if self.signs is None:
            return LpNorm.named(spec.p, X.shape[-1])
        return SignedNorm(feature_signs=self.signs)

    def _of_kernel(self, norm: LpNorm, requires: Requirements) -> GramAdapter:
        """The problem of a non-linear or precomputed kernel."""
        function: Any = self.kernel
        X = self.X
        metric = self.kernel.metric
        division = self.division
        constant = self.spec.constant
        scale = None
        dtype = None
        if metric == "precomputed":
            function = None
        elif X.dtype == np.dtype(object):
            # index of the first of equal objects; without a hash, of the object itself
            first: dict[Any, int] = {}
            keys = (x if isinstance(x, Hashable) else id(x) for x in X)
            alike = np.array([first.setdefault(key, i) for i, key in enumerate(keys)])
            function = partial(_of_objects, self.kernel, X)
            X = alike[:, None]
        elif hasattr(metric, "prepare"):
            X = metric.prepare(X.array)
        if division is not None and (function is not None or division.constant):
            constant = division.constant
            scale = division.scale
        if not callable(metric) and function is not None:
            dtype = FLOAT64 if self.wide else np.dtype(X.dtype)
        return GramAdapter(
            function,
            X,
            self.rows,
            self.spec.C,
            norm,
            constant,
            requires.columns,
            requires.every_row,
            cache_size=self.spec.cache_size,
            dtype=dtype,
            scale=scale,
        )

    def _of_tubes(self, problem: LinearAdapter | GramAdapter) -> KernelMatrixAdapter:
        """The problem with the loss of tubes; C is divided by the units of y."""
        ridge = problem.ridge
        nu = self.spec.nu
        if ridge is None:
            return problem
        if ridge.min() < LARGEST_NORM**-1:
            raise ValueError(
                "C and sample weights times squared norms of the examples come to "
                f"{0.5 / max(ridge.min(), 1e-308):.3g}, and soft intervals compute with "
                f"{0.5 * LARGEST_NORM:g} at most: scale X, or choose a smaller C, or none"
            )
        if not self.spec.slack_is_linear:
            return problem
        # nu = 1: the tube of width 0 is optimal, among others
        return problem.with_hinge_loss(None if nu == 1.0 else nu, self.units)


def training_data(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, bounds: Any = None
) -> TrainingData:
    """Validate the arguments of ``fit`` before a fit begins.

    Parameters
    ----------
    estimator : classifier, regressor or detector of outliers, which has no y
    X, y, sample_weight
        As ``fit`` gets them.
    bounds : array-like of shape (n_samples, 2) or (n_samples, n_outputs, 2), or None
        Intervals in place of targets.
    """
    spec = ProblemSpec.of(estimator)
    place = HOST
    how = dict[str, object]()
    check_kernel_params(spec)
    of_labels, of_targets = (
        isinstance(estimator, kind) for kind in (ClassifierMixin, RegressorMixin)
    )
    if of_labels:
        place = place_of_training(estimator, spec, X)
        y = on_host(y)
        sample_weight = on_host(sample_weight)
        # a linear adapter that gets all examples refuses non-finite entries when it measures X
        later = spec.kernel == "linear" and not spec.normalize and place is HOST
        later = later and sample_weight is None and spec.class_weight is None
        how = {"dtype": place.float_types, "ensure_all_finite": not later}
        # a tensor of torch may be part of a graph
        X = X.detach() if place is not HOST and hasattr(X, "detach") else X
    else:
        refuse_foreign(type(estimator).__name__, X)
    if of_targets:
        how = {"multi_output": True, "y_numeric": True}
        if y is None and bounds is not None:
            y = np.asarray(bounds)[..., 0]
            y = np.where(np.isfinite(y), y, 0.0)
    if spec.kernel == "precomputed":  # check_gram refuses non-finite entries
        how["ensure_all_finite"] = False
    X, y, features, signs = validated(estimator, spec, X, y, **how)
    if of_labels and y.dtype.kind not in KINDS_OF_CLASSES:
        check_classification_targets(y)
    if of_targets:
        y = y.astype(np.float64)
        assert_all_finite(y, input_name="y")  # None is NaN from here on
    if spec.kernel == "precomputed":
        X = on_host(X)
        check_gram(X, spec, type(estimator).__name__)
    elif X.dtype != object:
        X = as_matrix(canonical(X))
    weight = None
    n = X.shape[0]
    if sample_weight is not None:
        like = X if y is None else y
        weight = _check_sample_weight(
            sample_weight, like, dtype=np.float64, ensure_non_negative=True
        )

    def examples(kept: Array) -> Any:
        if len(kept) == n:
            return X
        return X[kept][:, kept] if spec.kernel == "precomputed" else X[kept]

    more = {"features": features, "signs": signs, "place": place}
    return TrainingData.of(estimator, spec, examples, n, y, weight, bounds, **more)


class Tubes(NamedTuple):
    """Intervals of size about 1, their units, and the origin subtracted from their ends.

    ``epsilon`` is half the width that was added.
    """

    intervals: Intervals
    units: Array
    origin: Array
    epsilon: float


def _tubes(spec: ProblemSpec, y: Array, bounds: Any, kept: Array) -> Tubes:
    """The intervals of targets, or the given ones.

    The origin is subtracted before they are widened by epsilon, so that this rounds small numbers
    only.

    Raises
    ------
    ValueError
        If ``nu`` is given without a finite C and the epsilon-insensitive loss.
    """
    intervals = Intervals(y, y)
    epsilon = spec.epsilon
    if spec.nu is not None:
        epsilon = 0.0
        if not (spec.is_soft and spec.slack_is_linear):
            raise ValueError(
                f"nu={spec.nu:g} needs C < inf and loss='epsilon_insensitive', as in NuSVR, but "
                f"C={spec.C:g} and loss={spec.loss!r}: set these, or nu=None for a tube of the "
                "width epsilon"
            )
    if bounds is not None:
        intervals = given_intervals(bounds, y.shape)
        epsilon = 0.0
    intervals = intervals.column(0) if y.shape[1:] == (1,) else intervals
    intervals = intervals.restrict(kept) if len(kept) < len(y) else intervals
    outputs = intervals.low.shape[1:]
    origin = np.zeros(outputs)
    if spec.intercept_is_free:
        origin = np.asarray(
            0.5 * intervals.low.min(axis=0) + 0.5 * intervals.high.max(axis=0)
        )
        intervals = intervals.moved(-origin, -origin)
    intervals = intervals.moved(-epsilon, epsilon) if epsilon else intervals
    sizes = np.broadcast_to(intervals.size, outputs)
    if spec.outputs_are_apart:
        sizes = np.maximum(np.abs(intervals.low), np.abs(intervals.high)).max(axis=0)
    units = np.ldexp(1.0, np.frexp(sizes)[1])
    return Tubes(intervals.scaled(1.0 / units), units, origin, float(epsilon))


def norms_of(kernel: Kernel, X: Any) -> Array:
    """Norms of examples in the feature space of a kernel, in float64."""
    if kernel.metric == "linear":
        return as_matrix(X).norms()
    if kernel.metric == "precomputed":  # fit refuses a matrix of which this is not true
        return np.ones(X.shape[0])
    X = as_matrix(X)
    diagonal = diagonal_of(lambda i, j: kernel(X[i].array, X[j].array), len(X))
    return np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0))


def _of_objects(kernel: Any, X: Array, i: Array, j: Array) -> Array:
    """Kernel values of objects given by their indices."""
    i, j = i[:, 0].astype(int), j[:, 0].astype(int)  # numbers reach kernels as floats
    return np.asarray(kernel(X[i], X[j]))
