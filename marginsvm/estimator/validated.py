"""What all fits have in common before they begin: validated examples and sample weights."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils.validation import (
    _check_sample_weight,
    check_X_y,
    validate_data,
)

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.estimator.objects import as_objects
from marginsvm.estimator.signs import signs_of

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
