"""The conditions on the coefficients of a regression, from its data: rows of each family.

They are written down here once more, independently of ``marginsvm.separability``, of which nothing
is used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.checker.pairs import comparisons

_MANY_CLASSES = 8  # classes: rows of more are sparse
_FEW_THRESHOLDS = 3  # times as many thresholds as features: more of them are sparse


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


def conditions_of(report: Any, X: Any, y: Any, kept: NDArray) -> Conditions:
    """The conditions of a report's family, of the examples that are kept."""
    if report.family == "pairs":
        return _of_outcomes(X, y, kept)
    X = (sp.csr_array(X) if sp.issparse(X) else np.asarray(X)).astype(np.float64)
    if report.fit_intercept:
        one = np.ones((X.shape[0], 1))
        X = sp.csr_array(sp.hstack([one, X])) if sp.issparse(X) else np.hstack([one, X])
    return _OF[report.family](X, y, kept)


def _of_counts(X: Any, y: Any, kept: NDArray) -> Conditions:
    return _of_successes(X, np.column_stack([np.asarray(y), np.ones(len(kept))]), kept)


def _of_successes(X: Any, table: NDArray, kept: NDArray) -> Conditions:
    """Of successes and failures."""
    example = np.flatnonzero(kept & (table > 0).any(axis=1))
    table = table[example]
    sign = np.where(table[:, 0] > 0, 1.0, -1.0)
    equality = np.asarray((table > 0).all(axis=1))
    return Conditions(_scaled(X[example], sign), equality, example, np.zeros(len(example), int))


def _of_classes(X: Any, y: Any, kept: NDArray) -> Conditions:
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 2:
        return _of_successes(X, y, kept)
    y = y.ravel()
    classes = np.unique(y[kept])
    if len(classes) == 2:
        second = y == classes[1]
        return _of_successes(X, np.column_stack([second, ~second]), kept)
    example, column = np.nonzero(kept[:, None] & (y[:, None] != classes))
    X = X if len(classes) <= _MANY_CLASSES else sp.csr_array(X)
    blocks = [
        _block(X, example, 1.0 * (y[example] == c) - (classes[column] == c)) for c in classes[1:]
    ]
    A = sp.csr_array(sp.hstack(blocks)) if sp.issparse(X) else np.hstack(blocks)
    return Conditions(A, np.zeros(len(example), bool), example, column)


def _of_an_order(X: Any, y: Any, kept: NDArray) -> Conditions:
    """Of ordered categories: for each threshold, that those below and above it agree with it."""
    y = getattr(y, "values", y)
    codes = np.asarray(y.codes if hasattr(y, "codes") else np.unique(y, return_inverse=True)[1])
    categories = np.unique(codes[kept])
    place, example = np.searchsorted(categories, codes), np.flatnonzero(kept)
    below = example[place[example] < len(categories) - 1]  # the threshold above them is no lower
    above = example[place[example] > 0]
    sign = np.repeat([1.0, -1.0], [len(below), len(above)])
    at, half = np.concatenate([below, above]), (sign < 0.0).astype(int)
    places = np.arange(len(at)), place[at] - half
    theta = sp.csr_array((sign, places), shape=(len(at), len(categories) - 1))
    parts = theta, _scaled(X[at], -sign)
    if sp.issparse(X) or theta.shape[1] > _FEW_THRESHOLDS * (X.shape[1] + 1):
        A = sp.csr_array(
            sp.hstack([part if sp.issparse(part) else sp.csr_array(part) for part in parts])
        )
    else:
        A = np.hstack([theta.toarray(), parts[1]])
    return Conditions(A, np.zeros(len(at), bool), at, half)


def _of_outcomes(X: Any, y: Any, kept: NDArray) -> Conditions:
    """Of wins and draws, where draws have a coefficient: the last."""
    met = comparisons(X, y, kept)
    n, m = met.n_items, len(met.better)
    every, one, shape = np.arange(m), np.ones(m), (m, n + 1)
    better, worse = (sp.csr_array((one, (every, at)), shape) for at in (met.better, met.worse))
    d, kappa = better - worse, sp.csr_array((one, (every, np.full(m, n))), shape)
    win, drawn, order = ~met.equality, met.equality, np.asarray(y)[kept] > 0
    parts = [
        ((d + d)[win], win, np.where(order, 2, 0)),  # d rather than -d: no loss
        ((d - kappa)[win], win, np.ones(m, int)),  # d rather than kappa: no draw
        ((kappa - d)[drawn], drawn, np.zeros(m, int)),
        ((kappa + d)[drawn], drawn, np.full(m, 2)),
    ]
    A = sp.csr_array(sp.vstack([part for part, _, _ in parts]))[:, 1:]
    example = np.concatenate([met.example[some] for _, some, _ in parts])
    column = np.concatenate([column[some] for _, some, column in parts])
    return Conditions(A, np.zeros(len(example), bool), example, column)


_OF = {
    "binomial": _of_classes,
    "multinomial": _of_classes,
    "poisson": _of_counts,
    "negative_binomial": _of_counts,
    "ordinal": _of_an_order,
}


def _scaled(X: Any, sign: NDArray) -> Any:
    return sp.csr_array(sp.diags_array(sign) @ X) if sp.issparse(X) else X * sign[:, None]


def direction_of(report: Any, n_columns: int) -> NDArray:
    """The direction of a report, in the order of the coefficients."""
    if report.direction is None:
        return np.zeros(n_columns)
    table = np.asarray(report.direction.coef)
    if report.family == "ordinal":
        return np.concatenate([report.direction.intercept, table[0]])
    if report.fit_intercept:
        table = np.column_stack([report.direction.intercept, table])
    return (table[1:] - table[0] if len(table) > 1 else table).ravel()


def _block(X: Any, example: NDArray, sign: NDArray) -> Any:
    """Rows of some examples times signs; without those of sign 0, if they are sparse."""
    if not sp.issparse(X):
        return _scaled(X[example], sign)
    some = np.flatnonzero(sign)
    shape = len(example), X.shape[0]
    return sp.csr_array((sign[some], (some, example[some])), shape) @ X
