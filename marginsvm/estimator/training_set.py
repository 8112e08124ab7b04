"""The training set: validated examples, labels and weights, and the problem made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from marginsvm._typing import Array
from marginsvm.certificate.certificate import bounds_text, quantity, relative_gap
from marginsvm.estimator.kernel_function import kernel_on, norms_of
from marginsvm.estimator.kernel_problem import Division, common_arguments, kernel_problem
from marginsvm.estimator.on_device import Device, place_of_training, plain, types_of
from marginsvm.estimator.precomputed import check_gram, check_norms
from marginsvm.estimator.signs import norm_of
from marginsvm.estimator.validated import (
    Validated,
    check_kernel_params,
    examples_at,
    positive,
    validated_weight,
)
from marginsvm.estimator.weights import ClassWeights
from marginsvm.fit import Requirements
from marginsvm.fit.progress import Line
from marginsvm.problem.adapter import KernelMatrixAdapter, LinearAdapter, NotFinite
from marginsvm.problem.caps import ShareCaps
from marginsvm.problem.kernels import Kernel
from marginsvm.problem.matrix import as_matrix, canonical, inverse, is_foreign, on_host
from marginsvm.problem.responses import below
from marginsvm.problem.rows import Rows, make_rows
from marginsvm.problem.spec import ProblemSpec

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
        if spec.nu is not None:
            caps = self._caps(spec.nu, spec.C, requires)
            return self._problem(spec, requires).below(caps)
        problem = self._problem(spec, requires)
        return problem.with_hinge_loss() if spec.slack_is_linear else problem

    def _caps(self, nu: float, C: float, requires: Requirements) -> ShareCaps:
        """Caps of the weights by ``nu``; refuse parameters and responses that it cannot go with."""
        if np.isfinite(C):
            raise ValueError(
                f"nu={nu:g} is a soft margin by itself, in place of C, but C={C:g}: leave C=inf, "
                "or set nu=None"
            )
        caps = ShareCaps.of(self.rows, nu)
        for response in requires.responses or ():
            below(response, caps.largest)  # raises an error if it has no form for capped weights
        return caps

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
