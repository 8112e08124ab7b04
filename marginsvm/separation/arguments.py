"""Arguments of ``check_separability`` as families read them: numbers, labels, counts, codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import assert_all_finite, check_array, column_or_1d

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.estimators.inputs import refuse_foreign
from marginsvm.problem.matrix import dense


class Arguments(NamedTuple):
    """The examples that are used, and which regression they are for.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_used, n_features)
        Pairs: the items, of shape (n_used, 2).
    y : ndarray of shape (n_used,) or (n_used, 2), or None
        Outcomes, as the family reads them. None: rankings.
    example : ndarray of int, shape (n_used,)
        Indices of the examples among the n given ones.
    n : int
    names : list of str
        Of the columns of X.
    intercept : bool
        Whether a column of ones is added to X.
    more : mapping
        The family's own arguments: strata, entry, groups, categories.
    constant : str or None
        The name of a column of X that is the intercept, where one is asked for.
    """

    X: Any
    y: Any
    example: Array
    n: int
    names: list[str]
    intercept: bool
    more: Mapping[str, Any]
    constant: str | None = None

    @property
    def used(self) -> Array:
        """Mask of the examples that are used, among the given ones."""
        return np.isin(np.arange(self.n), self.example)


def features_of(X: Any) -> Any:
    """X as an array of float64, dense or CSR."""
    refuse_foreign("check_separability", X)
    check_exact(X)
    try:
        how: Any = {"accept_sparse": "csr", "ensure_min_features": 0}
        X = check_array(X, dtype=(np.float64, np.float32), **how)
    except ValueError as error:
        advice = {
            "NaN": "X contains NaN; leave out the examples with missing values, or impute them",
            "convert": "X holds words, but numbers are needed; give categories as dummies: "
            "pandas.get_dummies(X, drop_first=True)",
        }
        found = [text for word, text in advice.items() if word in str(error)]
        raise ValueError(*found[:1] or error.args) from error
    return X.astype(np.float64, copy=False)


def constant_of(X: Any, names: list[str]) -> str | None:
    """The first column that has one value in all rows, other than 0."""
    high = dense(X.max(axis=0)).ravel()
    low = dense(X.min(axis=0)).ravel()
    equal = np.flatnonzero((high == low) & (high != 0.0))
    return names[equal[0]] if len(equal) else None


def labels_of_rows(table: Any) -> Any:
    """The index of a frame or a series; None: it has none."""
    index = getattr(table, "index", None)
    return None if callable(index) else index  # lists have a method of this name


def with_labels_of(X: Any, y: Any) -> Any:
    """Outcomes, with the labels of the rows of a frame X where they have none of their own."""
    index = labels_of_rows(X)
    if y is None or index is None or labels_of_rows(y) is not None:
        return y
    import pandas as pd

    values = y if hasattr(y, "categories") else np.asarray(y)
    if getattr(values.dtype, "names", None):
        return y
    kind = pd.Series if values.ndim == 1 else pd.DataFrame
    return kind(values, index=index)


def are_trials(y: Any) -> bool:
    """Whether y has two columns, of successes and failures."""
    return np.ndim(y) == 2 and np.shape(y)[1] == 2


def floats_of(values: Any, name: str) -> Array:
    """Numbers in one column or several, under their name in error messages."""
    return np.asarray(
        check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    )


def labels_of(y: Any) -> Array:
    """Labels in one column."""
    y = column_or_1d(y)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def nonnegative(y: Any) -> Array:
    """Counts, in one column or several."""
    y = floats_of(y, "y")
    if y.min() < 0:
        raise ValueError("counts must not be negative, but some in y are")
    return y


def codes(values: Any, name: str, n: int) -> Array:
    """Integers for labels, in one column or several."""
    values = np.asarray(values)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(
            f"{name} contains NaN; give those examples a label of their own"
        )
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(
            f"{name} must have {n} entries, but has the shape {values.shape}"
        )
    columns = values.reshape(n, -1).T
    each = np.column_stack([np.unique(c, return_inverse=True)[1] for c in columns])
    return np.asarray(np.unique(each, axis=0, return_inverse=True)[1]).ravel()
