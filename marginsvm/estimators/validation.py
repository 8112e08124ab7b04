"""What the arguments of a fit are checked for: examples, weights, classes, kernels, signs."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import combinations_with_replacement
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils.validation import (
    _check_monotonic_cst,
    _check_sample_weight,
    check_X_y,
    validate_data,
)

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.estimators.inputs import as_objects
from marginsvm.problem.matrix import as_matrix
from marginsvm.problem.norms import LpNorm, SignedNorm
from marginsvm.problem.quadratic_program import ProblemSpec

# Side of the squares (0.5 MB in float64) in which a matrix and its mirror image are compared: two
# of them stay in cache.
_SQUARE = 256


def check_gram(K: Any) -> None:
    """Refuse a matrix that is no kernel matrix: sparse, not square, or not symmetric."""
    if sp.issparse(K):
        raise TypeError("Sparse precomputed kernels are not supported: pass a dense matrix")
    n, m = K.shape
    if n != m:
        raise ValueError(
            f"a precomputed kernel must be a square matrix, one row and one column an example, "
            f"but it has shape {K.shape}"
        )
    tolerance = _tolerance(K)
    scale = max(float(np.abs(np.diagonal(K)).max()), 1e-300)
    blocks = [slice(i, i + _SQUARE) for i in range(0, n, _SQUARE)]
    for i, j in combinations_with_replacement(blocks, 2):
        off = float(np.abs(K[i, j] - K[j, i].T).max())
        if off > tolerance * scale:
            raise ValueError(
                f"a precomputed kernel must be symmetric, but entries differ by {off:.3g} from "
                "their mirror images; pass (K + K.T) / 2 if that is what you mean"
            )


def _tolerance(K: Array) -> float:
    """Rounding error to be expected of given kernel values, relative to the largest."""
    return 1e-4 if K.dtype == np.float32 else 1e-8


def check_norms(diagonal: Array, *, zeros: bool) -> None:
    """Refuse a precomputed kernel of examples that have not been divided by their norms."""
    one = np.abs(diagonal - 1.0) <= _tolerance(diagonal)
    if not np.all(one | (zeros & (diagonal == 0.0))):
        raise ValueError(
            "normalize=True needs K(x, x) = 1 of a precomputed kernel, as the K(x, x) of new "
            "examples cannot be known, but its diagonal goes from "
            f"{diagonal.min():.3g} to {diagonal.max():.3g}; divide K by "
            "sqrt(outer(diagonal, diagonal)), in predict too, or set normalize=False"
        )


@dataclass(frozen=True)
class ClassWeights:
    """The factors that ``class_weight`` gives to the labels.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
        Labels, sorted; empty with ``class_weight=None``.
    factors : ndarray of shape (n_labels,)
        Factors of the weights of examples with these labels.
    """

    labels: Array
    factors: Array

    @classmethod
    def of(cls, class_weight: Any, y: Array, weight: Array | None) -> ClassWeights:
        """Factors for None, "balanced" or a dict, given the labels and weights of all examples."""
        if class_weight is None:
            return cls(np.empty(0), np.empty(0))
        labels, codes = np.unique(y, return_inverse=True)
        if isinstance(class_weight, dict):
            return cls(labels, _looked_up(class_weight, labels.tolist()))
        totals = np.bincount(codes, weight).astype(np.float64)
        present = totals > 0.0  # a class without positive weight takes no part in the fit
        factors = np.ones(len(labels))
        factors[present] = totals.sum() / (present.sum() * totals[present])
        return cls(labels, factors)

    def applied(self, y: Array, weight: Array | None) -> Array | None:
        """Final weights of examples with these labels; None: they are all 1."""
        if np.all(self.factors == 1.0):
            return weight
        factor = self.factors[np.searchsorted(self.labels, y)]
        with np.errstate(over="ignore", invalid="ignore"):
            final = factor if weight is None else weight * factor
        if not np.isfinite(final).all():
            raise ValueError(
                "sample_weight times class_weight is too large for float64; only the ratios of "
                "weights matter where C = inf, and otherwise C may be larger: divide the weights"
            )
        return final


def _looked_up(class_weight: dict[Any, Any], labels: list[Any]) -> Array:
    """Factors of labels; 1 for labels that the dict does not name."""
    unknown = [label for label in class_weight if label not in set(labels)]
    if unknown:
        raise ValueError(
            f"class_weight has a weight for {unknown}, but the classes in y are {labels}"
        )
    for label, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0.0 <= float(weight) < np.inf):
            raise ValueError(
                "class_weight must have weights that are finite and not negative, but that of "
                f"{label!r} is {weight!r}"
            )
    return np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)


def signs_of(estimator: Any) -> Array | None:
    """Signs that ``monotonic_cst`` gives to features: -1, 1, or 0 for any; None: any for all.

    Parameters
    ----------
    estimator : estimator
        With ``n_features_in_`` and, if features have names, ``feature_names_in_``.

    Raises
    ------
    ValueError
        If ``monotonic_cst`` does not fit the features, or a kernel leaves them no coefficients.
    """
    given = getattr(estimator, "monotonic_cst", None)
    if given is None:
        return None
    if estimator.kernel != "linear":
        raise ValueError(
            "monotonic_cst is about coefficients of features, which a model with "
            f"kernel={estimator.kernel!r} has not: use kernel='linear', or monotonic_cst=None"
        )
    signs = _check_monotonic_cst(estimator, given)
    return signs if signs.any() else None


def norm_of(spec: ProblemSpec, X: Any, signs: Array | None = None, n_classes: int = 2) -> LpNorm:
    """The norm of predictors, with the signs that their coefficients must have.

    Raises
    ------
    ValueError
        If signs were given, but there are more than two classes, or X is not in memory.
    """
    if spec.monotonic_cst is not None and n_classes > 2:
        raise ValueError(
            f"monotonic_cst says how the decision value of the second of two classes changes, but "
            f"y has {n_classes}: use sklearn.multiclass.OneVsRestClassifier, with signs for each "
            "class"
        )
    X = as_matrix(X)
    if spec.monotonic_cst is not None and (not X.in_memory or getattr(X, "foreign", False)):
        raise ValueError("monotonic_cst needs the examples in memory, as arrays of NumPy or SciPy")
    if signs is None:
        return LpNorm.named(spec.p, X.shape[-1])
    return SignedNorm(feature_signs=signs)


_AS_NUMBERS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
_OF_FEATURES = ("n_features_in_", "feature_names_in_")


class Validated(NamedTuple):
    """Arguments of a fit that scikit-learn has validated.

    Attributes
    ----------
    X : ndarray, CSR matrix, array on a device, or ndarray of objects
    y : ndarray or None
    features : dict
        Fitted attributes: number and names of the features.
    signs : ndarray of shape (n_features,) or None
        What ``monotonic_cst`` says of each feature: -1, 0 or 1; None: nothing of any.
    """

    X: Any
    y: Any
    features: dict[str, Any]
    signs: Array | None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any = None, **how: Any) -> Validated:
        """Validate X and y; ``how`` are scikit-learn's arguments for it.

        Attributes that scikit-learn sets are those of a copy, so that the estimator stays as it was
        until a fit is done.
        """
        objects, of = as_objects(getattr(estimator, "kernel", "linear"), X), copy(estimator)
        if objects is None:
            check_exact(X)
            if how.get("y_numeric"):
                check_exact(y, "y")
            found = validate_data(of, X, y, **{**_AS_NUMBERS, **how})
            X, y = (found, None) if y is None else found
            features = {name: getattr(of, name) for name in _OF_FEATURES if hasattr(of, name)}
        else:
            X, features = objects, {}
            y = None if y is None else check_X_y(np.zeros((len(X), 1)), y, **how)[1]
        return cls(X, y, features, signs_of(of))


def validated_weight(sample_weight: Any, X: Any) -> Array | None:
    """Sample weights, none of which may be negative; None: they are all 1."""
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def positive(weight: Array | None, n_examples: int) -> tuple[Array, Array | None]:
    """Indices of the examples of positive weight, and their weights; None: these are all 1."""
    if weight is None:
        return np.arange(n_examples), None
    kept = np.flatnonzero(weight)
    weight = weight[kept]
    return kept, weight if np.any(weight != 1.0) else None


def examples_at(X: Any, kept: Array, kernel: Any) -> Any:
    """The examples with these indices or, of a given kernel matrix, their part of it."""
    if len(kept) == X.shape[0]:
        return X
    return X[kept][:, kept] if kernel == "precomputed" else X[kept]


def check_kernel_params(estimator: Any) -> None:
    """Refuse ``kernel_params`` that a named kernel does not have, as it would ignore them."""
    kernel, given = estimator.kernel, estimator.kernel_params or {}
    if callable(kernel):
        return
    valid = sorted(KERNEL_PARAMS.get(kernel, ()))
    unknown = sorted(set(given) - set(valid))
    if unknown:
        known = f"its parameters are {valid}" if valid else "it has no parameters"
        raise ValueError(f"kernel_params has {unknown}, which kernel={kernel!r} does not: {known}")
