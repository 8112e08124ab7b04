"""Arrays as they were given, checked, with errors that say what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.estimator.on_device import refuse_foreign

_TABLE = 8  # entries of a table of all integers between items, for each given item


def numbers(X: Any) -> Any:
    """X as an array of floats, dense or CSR."""
    refuse_foreign("check_separability", X)
    check_exact(X)
    try:
        return check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    except ValueError as error:
        text = str(error)
        if "contains NaN" in text:
            advice = "leave out the examples with missing values, as regressions do, or impute them"
            raise ValueError(f"X contains NaN; {advice}") from error
        if "convert string" in text or "could not convert" in text:
            advice = "give categories as dummies: pandas.get_dummies(X, drop_first=True)"
            raise ValueError(f"X holds words, but numbers are needed; {advice}") from error
        raise


def in_an_order(y: Any) -> Array:
    """Labels, however many, that can be sorted."""
    y = column_or_1d(y)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def labels(y: Any) -> Array:
    """Labels of classes."""
    y = in_an_order(y)
    check_classification_targets(y)
    return y


def nonnegative(y: Any) -> Array:
    """Counts, in one column or several."""
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    if y.min() < 0:
        raise ValueError("counts must not be negative, but some in y are")
    return np.asarray(y)


def codes_of(items: Array) -> tuple[list[Any], Array]:
    """The different items, in order, and where each one is among these."""
    if items.dtype.kind == "f" and np.isnan(items).any():
        raise ValueError("an item is NaN")
    if items.dtype.kind in "iu" and items.size:
        low, span = int(items.min()), int(items.max()) - int(items.min()) + 1
        if span <= _TABLE * items.size:  # quicker than to sort
            items = items if items.itemsize == 8 else items.astype(np.int64)
            present, codes = np.zeros(span, bool), np.empty(items.shape, np.min_scalar_type(-span))
            np.subtract(items, items.dtype.type(low), out=codes, casting="unsafe")
            present[codes] = True
            if not present.all():
                codes = (np.cumsum(present, dtype=codes.dtype) - 1)[codes]
            return [int(k) + low for k in np.flatnonzero(present)], codes
    try:
        found, codes = np.unique(items, return_inverse=True)
    except TypeError as error:
        raise ValueError("items must all be words, or all be numbers") from error
    return found.tolist(), codes.reshape(items.shape)
