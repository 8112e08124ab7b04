"""What fit is given, checked once and made ready: labels, weights, kernels."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from marginsvm._prediction import canonical
from marginsvm._typing import Array
from marginsvm.kernel_matrix import (
    AnswersAdapter,
    GramAdapter,
    KernelMatrixAdapter,
    LinearAdapter,
    LpNorm,
    Rows,
    Store,
    make_rows,
    normalized,
    normalized_in_kernel,
    of_normalized,
)

_SPARE = 8  # answers beside those of the rounds
KERNELS = {*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}


class Labels(NamedTuple):
    """What the labels and weights of all examples say.

    Attributes
    ----------
    codes : ndarray of shape (n_kept,)
        Class of each example of positive weight.
    classes : ndarray of shape (n_classes,)
    kept : ndarray of shape (n_kept,)
        Which of the given examples these are.
    weights : ndarray of shape (n_kept,) or None
        None: they are all 1.
    n_dropped : int
        Examples of weight 0.
    """

    codes: Array
    classes: Array
    kept: Array
    weights: Array | None
    n_dropped: int


def balances(estimator: Any) -> bool:
    """Whether the intercept is not penalised, so that the rows are balanced."""
    return bool(estimator.fit_intercept) and estimator.intercept_scaling is None


@dataclass(frozen=True)
class TrainingSet:
    """Validated training data: the examples of positive weight, and their rows."""

    X: Any
    rows: Rows
    classes: Array
    kept: Array  # which of the given examples these are
    n_given: int
    gamma: float
    features: dict[str, Any]  # their number and names, to be published

    @classmethod
    def of(cls, estimator: Any, X: Any, labels: Labels, features: dict[str, Any]) -> TrainingSet:
        """Make labels into rows."""
        codes, classes, kept, weights, n_dropped = labels
        rows = make_rows(codes, len(classes), balanced=balances(estimator), weights=weights)
        named = estimator.kernel not in ("linear", "precomputed")
        gamma = _gamma(estimator.gamma, X, weights) if named else 0.0
        return cls(X, rows, classes, kept, kept.size + n_dropped, gamma, features)

    def adapter(self, estimator: Any) -> KernelMatrixAdapter:
        """Choose how the game sees the data."""
        constant = (estimator.intercept_scaling or 0.0) if estimator.fit_intercept else 0.0
        norm, X = LpNorm.named(estimator.p, self.X.shape[1]), self.X
        common = (
            self.rows,
            estimator.C,
            norm,
            constant,
            estimator._column_plan,
            estimator._all_rows,
        )
        if estimator.kernel == "linear":
            if not isinstance(X, Store):
                return LinearAdapter(normalized(X) if estimator.normalize else X, *common)
            if X.remote and estimator._softmax_only and np.isinf(estimator.C):
                return AnswersAdapter(X, *common, capacity=estimator.max_iter + _SPARE)
            return LinearAdapter(X, *common)
        kernel = None
        if estimator.kernel != "precomputed":
            estimator = copy(estimator)  # which stays as it was until there is a result
            estimator._gamma = self.gamma
            kernel = estimator._kernel_matrix
            if estimator.normalize:
                X, kernel = normalized_in_kernel(kernel, X), of_normalized(kernel)
            elif hasattr(estimator.kernel, "prepare"):
                X = estimator.kernel.prepare(X)
        return GramAdapter(kernel, X, *common)

    def embed(self, q: Array) -> sp.csr_array:
        """Weights on the rows, as a sparse array over all the examples that were given."""
        q = q.reshape(len(q), -1)
        examples, j = np.nonzero(q > 0.0)
        indptr = np.searchsorted(self.kept[examples], np.arange(self.n_given + 1))
        return sp.csr_array((q[examples, j], j, indptr), shape=(self.n_given, q.shape[1]))

    def support_vectors(self, support: Array, kernel: Any) -> Any:
        """Examples that a kernel predictor needs; as in SVC, none if precomputed."""
        return np.empty((0, 0)) if kernel == "precomputed" else self.X[support]


def training_set(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
    """Validate what fit is given, before any work."""
    check_kernel_params(estimator)
    # a linear adapter sees every entry when it measures X, and refuses what is not finite
    measured = estimator.kernel == "linear" and not estimator.normalize and sample_weight is None
    floats = [np.float64, np.float32]
    probe = copy(estimator)  # so that the estimator stays as it was
    X, y = validate_data(
        probe, X, y, accept_sparse="csr", dtype=floats, ensure_all_finite=not measured
    )
    X = canonical(X)
    check_classification_targets(y)
    if estimator.kernel == "precomputed":
        _check_gram(X, normalize=estimator.normalize)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    labels = labelled(y, weight)
    if labels.n_dropped:
        kept = labels.kept
        X = X[kept][:, kept] if estimator.kernel == "precomputed" else X[kept]
    names = ("n_features_in_", "feature_names_in_")
    features = {name: getattr(probe, name) for name in names if hasattr(probe, name)}
    return TrainingSet.of(estimator, X, labels, features)


def labelled(y: Array, weight: Array | None) -> Labels:
    """Look at the examples of positive weight."""
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    classes, codes = np.unique(y[kept], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"fit needs at least 2 classes among the examples of positive weight, but got "
            f"{len(classes)} class: {classes.tolist()}"
        )
    if weight is not None:
        weight = weight[kept] if np.any(weight[kept] != 1.0) else None
    return Labels(codes, classes, kept, weight, len(y) - kept.size)


def _check_gram(K: Any, *, normalize: bool) -> None:
    if sp.issparse(K):
        raise TypeError("a precomputed kernel must be dense, but a sparse matrix was passed")
    n, m = K.shape
    if n != m:
        raise ValueError(
            f"a precomputed kernel must be a square matrix, one row and one column an example, "
            f"but it has shape {K.shape}"
        )
    tolerance = 1e-4 if K.dtype == np.float32 else 1e-8
    scale = max(float(np.abs(np.diagonal(K)).max()), 1e-300)
    for i in range(0, n, 512):
        off = float(np.abs(K[i : i + 512] - K[:, i : i + 512].T).max())
        if off > tolerance * scale:
            raise ValueError(
                f"a precomputed kernel must be symmetric, but entries differ by {off:.3g} from "
                "their mirror images; pass (K + K.T) / 2 if that is what you mean"
            )
    diagonal = np.diagonal(K)
    if normalize and not np.all((np.abs(diagonal - 1.0) <= tolerance) | (diagonal == 0.0)):
        raise ValueError(
            "normalize=True needs K(x, x) = 1 of a precomputed kernel, as the K(x, x) of new "
            "examples cannot be known, but its diagonal goes from "
            f"{diagonal.min():.3g} to {diagonal.max():.3g}; divide K by "
            "sqrt(outer(diagonal, diagonal)), in predict too, or set normalize=False"
        )


def _gamma(gamma: str | float, X: Any, weights: Array | None) -> float:
    """``gamma`` as SVC understands it; a row of weight m counts like m copies."""
    if not isinstance(gamma, str):
        return gamma
    if gamma == "auto":
        return 1.0 / X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):  # a kernel that is not finite is refused
        variance = _variance(X.astype(np.float64, copy=False), weights)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _variance(X: Any, weights: Array | None) -> float:
    """Variance of all entries of X, its rows weighted."""

    def mean(Z: Any) -> float:
        return float(np.average(np.asarray(Z.mean(axis=1)).ravel(), weights=weights))

    centre = mean(X)
    return mean(X.multiply(X)) - centre**2 if sp.issparse(X) else mean((X - centre) ** 2)


def check_kernel_params(estimator: Any) -> None:
    """Refuse parameters that a named kernel does not have: it would ignore them."""
    kernel, given = estimator.kernel, estimator.kernel_params or {}
    if callable(kernel):
        return
    valid = sorted(KERNEL_PARAMS.get(kernel, ()))
    unknown = sorted(set(given) - set(valid))
    if unknown:
        known = f"its parameters are {valid}" if valid else "it has no parameters"
        raise ValueError(f"kernel_params has {unknown}, which kernel={kernel!r} does not: {known}")
