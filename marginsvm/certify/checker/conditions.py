"""The conditions on the coefficients of a regression, from its data: rows of each family.

They are written down here once more, independently of ``marginsvm.separability``, of which nothing
is used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Conditions(NamedTuple):
    """Rows a with ``a w >= 0``, or ``a w = 0`` for equalities.

    Attributes
    ----------
    A : ndarray or csr_array of shape (n_rows, n_coefficients)
    equality : ndarray of bool, shape (n_rows,)
    example, column : ndarray of int, shape (n_rows,)
        Where the report's tables have a row.
    """

    A: Any
    equality: NDArray
    example: NDArray
    column: NDArray


def conditions_of(report: Any, X: Any, y: Any, sample_weight: Any) -> Conditions:
    """The conditions of a report's family."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    X, y = X.astype(np.float64), np.asarray(y)
    kept = np.ones(len(y), bool) if sample_weight is None else np.asarray(sample_weight) > 0
    if report.fit_intercept:
        one = np.ones((X.shape[0], 1))
        X = sp.csr_array(sp.hstack([one, X])) if sp.issparse(X) else np.hstack([one, X])
    return _OF[report.family](X, y, kept)


def _of_counts(X: Any, y: NDArray, kept: NDArray) -> Conditions:
    return _of_successes(X, np.column_stack([y, np.ones(len(y))]), kept)


def _of_successes(X: Any, table: NDArray, kept: NDArray) -> Conditions:
    """Of successes and failures."""
    example = np.flatnonzero(kept & (table > 0).any(axis=1))
    table = table[example]
    sign = np.where(table[:, 0] > 0, 1.0, -1.0)
    equality = np.asarray((table > 0).all(axis=1))
    return Conditions(_scaled(X[example], sign), equality, example, np.zeros(len(example), int))


def _of_classes(X: Any, y: NDArray, kept: NDArray) -> Conditions:
    if y.ndim == 2 and y.shape[1] == 2:
        return _of_successes(X, y, kept)
    y = y.ravel()
    classes = np.unique(y[kept])
    if len(classes) == 2:
        second = y == classes[1]
        return _of_successes(X, np.column_stack([second, ~second]), kept)
    example, column = np.nonzero(kept[:, None] & (y[:, None] != classes))
    blocks = [
        _scaled(X[example], 1.0 * (y[example] == c) - (classes[column] == c)) for c in classes[1:]
    ]
    A = sp.csr_array(sp.hstack(blocks)) if sp.issparse(X) else np.hstack(blocks)
    return Conditions(A, np.zeros(len(example), bool), example, column)


_OF = {
    "binomial": _of_classes,
    "multinomial": _of_classes,
    "poisson": _of_counts,
    "negative_binomial": _of_counts,
}


def _scaled(X: Any, sign: NDArray) -> Any:
    return sp.csr_array(sp.diags_array(sign) @ X) if sp.issparse(X) else X * sign[:, None]


def direction_of(report: Any, n_columns: int) -> NDArray:
    """The direction of a report, in the order of the coefficients."""
    if report.direction is None:
        return np.zeros(n_columns)
    table = np.asarray(report.direction.coef)
    if report.fit_intercept:
        table = np.column_stack([report.direction.intercept, table])
    return (table[1:] - table[0] if len(table) > 1 else table).ravel()
