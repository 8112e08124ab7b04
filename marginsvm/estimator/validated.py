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
        """Validate X and y, as ``how`` says; the estimator stays as it was until a fit is done."""
        things, seen = as_objects(getattr(estimator, "kernel", "linear"), X), copy(estimator)
        if things is None:
            found = validate_data(seen, X, y, **{**_AS_NUMBERS, **how})
            X, y = (found, None) if y is None else found
            features = {name: getattr(seen, name) for name in _OF_FEATURES if hasattr(seen, name)}
        else:
            X, features = things, {}
            y = None if y is None else check_X_y(np.zeros((len(X), 1)), y, **how)[1]
        return cls(X, y, features, signs_of(seen))


def validated_weight(sample_weight: Any, X: Any) -> Array | None:
    """Sample weights, which are not negative; None: they are all 1."""
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def of_positive_weight(
    X: Any, weight: Array | None, kernel: Any
) -> tuple[Any, Array, Array | None]:
    """The examples that count, their indices, and their weights; None: these are all 1."""
    if weight is None:
        return X, np.arange(X.shape[0]), None
    kept = np.flatnonzero(weight)
    weight = weight[kept]
    return some(X, kept, kernel), kept, weight if np.any(weight != 1.0) else None


def some(X: Any, kept: Array, kernel: Any) -> Any:
    """Some of the examples, or their kernel matrix."""
    if len(kept) == X.shape[0]:
        return X
    return X[kept][:, kept] if kernel == "precomputed" else X[kept]


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
