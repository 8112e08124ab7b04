"""The training set: validated examples, labels and weights, and the problem made of them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_X_y, validate_data

from marginsvm._typing import Array
from marginsvm.certify.caps import ShareCaps
from marginsvm.certify.certificate import bounds_text, quantity
from marginsvm.certify.claims import relative_gap
from marginsvm.certify.host import on_host
from marginsvm.certify.spec import ProblemSpec
from marginsvm.certify.tolerances import ROUNDING_RTOL_OF_TOL
from marginsvm.data.csr import as_block
from marginsvm.data.device import Device, OnDevice
from marginsvm.data.device_store import DeviceStore
from marginsvm.data.measures import longest
from marginsvm.data.memory import as_store
from marginsvm.data.normalized import Division, Normalized, inverse, of_normalized
from marginsvm.estimator.kernel_function import KernelFunction, canonical
from marginsvm.estimator.objects import as_objects, first_equal, of_objects
from marginsvm.estimator.on_device import place_of_training, plain, rows_of, types_of
from marginsvm.estimator.precomputed import check_gram, check_norms
from marginsvm.estimator.signs import norm_of
from marginsvm.estimator.weights import ClassWeights
from marginsvm.fit import Requirements
from marginsvm.fit.progress import Line
from marginsvm.kernel_matrix import (
    GramAdapter,
    KernelMatrixAdapter,
    LazyWeightsAdapter,
    LinearAdapter,
)
from marginsvm.kernel_matrix.responses import OnePassResponse
from marginsvm.kernel_matrix.responses.response import below
from marginsvm.kernel_matrix.scale import NotFinite
from marginsvm.kernel_matrix.single import Formula
from marginsvm.rows import Rows, make_rows

# Kinds of types of labels that name classes in any case: a look at them is a tenth of a small fit.
_KINDS_OF_CLASSES = "biuUS"
# Best responses beside those of the rounds, such as the one of the first state.
_SPARE_RESPONSES = 8


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
        Factors of the sample weights, for stores that multiply them themselves.
    """

    codes: Array
    classes: Array
    kept: Array
    weights: Array | None
    n_dropped: int
    class_weights: ClassWeights


@dataclass(frozen=True)
class TrainingSet:
    """Validated training data: the examples of positive weight, and their rows."""

    X: Any
    rows: Rows
    classes: Array | None  # None: there are no labels
    kept: Array  # indices of these examples among the given ones
    n_given: int
    gamma: float
    division: Division | None  # with normalize=True: how examples are divided by their norms
    features: dict[str, Any]  # fitted attributes: number and names of the features
    kernel: Any  # the estimator's parameter
    place: Device | None = None  # where examples on a device are, and fitted arrays go

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        labels: ClassLabels,
        features: dict[str, Any],
        place: Device | None = None,
    ) -> TrainingSet:
        """Make a training set of examples and their labels."""
        codes, classes, kept, weights, n_dropped, _ = labels
        spec = ProblemSpec.of(estimator)
        rows = make_rows(codes, len(classes), balanced=spec.intercept_is_free, weights=weights)
        gamma, division = gamma_of(estimator, X, weights), None
        if spec.normalize:
            division = _division(KernelFunction.of(estimator, gamma), spec, X, rows)
        n_given = kept.size + n_dropped
        of_data = rows, classes, kept, n_given, gamma, division, features
        return cls(X, *of_data, estimator.kernel, place)

    def problem(self, estimator: Any, requires: Requirements) -> KernelMatrixAdapter:
        """Make the problem of an algorithm, with the loss of its slack, or with capped weights."""
        spec = ProblemSpec.of(estimator)
        if spec.nu is not None:
            caps = self._caps(spec.nu, spec.C, requires)
            return self._problem(estimator, spec, requires).below(caps)
        problem = self._problem(estimator, spec, requires)
        return problem.with_hinge_loss() if spec.slack_is_linear else problem

    def _caps(self, nu: float, C: float, requires: Requirements) -> ShareCaps:
        """Caps of the weights by ``nu``, where all that it needs is given."""
        if np.isfinite(C):
            raise ValueError(
                f"nu={nu:g} is a soft margin by itself, in place of C, but C={C:g}: leave C=inf, "
                "or set nu=None"
            )
        caps = ShareCaps.of(self.rows, nu)
        for response in requires.responses or ():
            below(caps.largest, response)  # there is such a response
        return caps

    def _problem(
        self, estimator: Any, spec: ProblemSpec, requires: Requirements
    ) -> KernelMatrixAdapter:
        """Choose the adapter for the kernel and the store."""
        X = self.X
        common = (
            self.rows,
            spec.C,
            norm_of(estimator, self),
            spec.constant,
            requires.columns,
            requires.every_row,
            ROUNDING_RTOL_OF_TOL * estimator.tol,
        )
        if self.kernel == "linear":
            store = as_store(X)
            if self.division is not None:
                store = store.divided(self.division.constant)
            used = requires.responses
            one_pass = used is not None and all(isinstance(r, OnePassResponse) for r in used)
            if store.remote and one_pass and not spec.is_soft and spec.nu is None:
                capacity = requires.n_responses * estimator.max_iter + _SPARE_RESPONSES
                return LazyWeightsAdapter(store, *common, capacity=capacity)
            try:
                return LinearAdapter(store, *common)
            except NotFinite:
                if store.whole is not None:
                    name = type(estimator).__name__
                    assert_all_finite(self.X, estimator_name=name, input_name="X")
                raise
        kernel, X = kernel_and_examples(estimator, X, self.gamma, self.division)
        formula = None if self.division is not None else Formula.of(estimator, self.gamma, X)
        size = estimator.cache_size
        return GramAdapter(kernel, X, *common, formula=formula, cache_size=size)

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
        if self.kernel == "precomputed":
            return np.empty((0, 0))
        some = self.X[support]
        return some.array if isinstance(some, OnDevice) else some


def training_set(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
    """Validate the arguments of ``fit`` before a fit begins."""
    check_kernel_params(estimator)
    place = place_of_training(estimator, X)
    y, sample_weight = on_host(y), on_host(sample_weight)
    # a linear adapter reads every entry when it measures X, and refuses non-finite ones then
    all_kept = sample_weight is None and estimator.class_weight is None
    measured = estimator.kernel == "linear" and not estimator.normalize and all_kept
    measured &= place is None
    probe = copy(estimator)  # so that the estimator stays as it was
    things = as_objects(estimator.kernel, X)
    if things is None:
        X, dtype, finite = plain(X, place), types_of(place), not measured
        X, y = validate_data(
            probe, X, y, accept_sparse="csr", dtype=dtype, ensure_all_finite=finite
        )
    else:
        X, (_, y) = things, check_X_y(np.zeros((len(things), 1)), y)
    X = on_host(X) if estimator.kernel == "precomputed" else rows_of(canonical(X), place)
    if y.dtype.kind not in _KINDS_OF_CLASSES:
        check_classification_targets(y)
    if estimator.kernel == "precomputed":
        check_gram(X)
        if estimator.normalize:
            check_norms(np.diagonal(X), zeros=not estimator.fit_intercept)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    labels = labelled(y, weight, estimator.class_weight)
    if labels.n_dropped:
        kept = labels.kept
        X = X[kept][:, kept] if estimator.kernel == "precomputed" else X[kept]
    names = ("n_features_in_", "feature_names_in_")
    features = {name: getattr(probe, name) for name in names if hasattr(probe, name)}
    if isinstance(X, OnDevice):  # kernels are computed in float64
        X = DeviceStore(X) if estimator.kernel == "linear" else X.widened()
    return TrainingSet.of(estimator, X, labels, features, place)


def labelled(y: Array, weight: Array | None, class_weight: Any = None) -> ClassLabels:
    """Classes and final weights of the examples of positive weight."""
    class_weights = ClassWeights.of(class_weight, y, weight)
    weight = class_weights.applied(y, weight)
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    classes, codes = np.unique(y[kept], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"fit needs at least 2 classes among the examples of positive weight, but got "
            f"{len(classes)} class: {classes.tolist()}"
        )
    if weight is not None:
        weight = weight[kept] if np.any(weight[kept] != 1.0) else None
    return ClassLabels(codes, classes, kept, weight, len(y) - kept.size, class_weights)


def kernel_and_examples(
    estimator: Any, X: Any, gamma: float, division: Division | None = None
) -> tuple[Any, Any]:
    """Kernel function and its examples; for a given matrix, None and the matrix."""
    kernel = KernelFunction.of(estimator, gamma).on_host(X)
    if estimator.kernel == "precomputed":
        if division is None or not division.constant:
            return None, X  # all norms are 1
        X, kernel = np.arange(X.shape[0])[:, None], partial(_entries, X)
    if division is not None and division.scale is not None:
        return of_normalized(kernel), Normalized(X, division.scale, division.constant)
    if X.dtype == object:
        return partial(of_objects, kernel, X), first_equal(X)[:, None]
    if hasattr(estimator.kernel, "prepare"):
        X = estimator.kernel.prepare(X)
    return kernel, X


def gamma_of(estimator: Any, X: Any, weights: Array | None) -> float:
    """``gamma`` of a named kernel as a number; 0 for others."""
    named = not callable(estimator.kernel) and estimator.kernel not in ("linear", "precomputed")
    return _gamma(estimator.gamma, X, weights) if named else 0.0


def _division(kernel: KernelFunction, spec: ProblemSpec, X: Any, rows: Rows) -> Division:
    """Divisors for ``normalize=True``; the constant feature is the largest norm of an example."""
    norms = None if spec.kernel == "linear" else kernel.norms(X)
    constant = 0.0
    if spec.fit_intercept:
        largest = max(as_store(X).map(longest, rows)) if norms is None else float(norms.max())
        constant = largest or 1.0  # if all examples are zero, any constant does
    return Division(constant, None if norms is None else inverse(np.hypot(norms, constant)))


def _entries(K: Array, i: Array, j: Array) -> Array:
    """Entries of a given kernel matrix, for examples that are given by their indices."""
    return K[i[:, 0]][:, j[:, 0]].astype(np.float64, copy=False)


def _gamma(gamma: str | float, X: Any, weights: Array | None) -> float:
    """``gamma`` as SVC understands it; a row of weight m counts like m copies."""
    if not isinstance(gamma, str):
        return gamma
    if gamma == "auto":
        return 1.0 / X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):  # a kernel that is not finite is refused
        variance = _variance(X, weights)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _variance(X: Any, weights: Array | None) -> float:
    """Variance of all entries of X, its rows weighted; exactly 0 where they are equal."""
    n, d = X.shape
    share = np.ones(n) if weights is None else weights
    share = share / share.sum() / d
    X = as_block(X)
    centre = X.mean_of_entries(share, 0.0, 1)
    centre += X.mean_of_entries(share, centre, 1)  # what rounding has left
    return X.mean_of_entries(share, centre, 2)


def check_kernel_params(estimator: Any) -> None:
    """Refuse parameters that a named kernel does not have, as it would ignore them."""
    kernel, given = estimator.kernel, estimator.kernel_params or {}
    if callable(kernel):
        return
    valid = sorted(KERNEL_PARAMS.get(kernel, ()))
    unknown = sorted(set(given) - set(valid))
    if unknown:
        known = f"its parameters are {valid}" if valid else "it has no parameters"
        raise ValueError(f"kernel_params has {unknown}, which kernel={kernel!r} does not: {known}")
