"""Regressions as rows of conditions on their coefficients, whatever the family.

A row a of a design stands for the condition ``a w >= 0`` or, for an equality, ``a w = 0``, on the
directions w in which the likelihood does not fall. The columns are the coefficients, the
intercept first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array

_SPARSE = 4.0  # numbers for each one that is not 0, above which a design is sparse


@dataclass(frozen=True)
class Design:
    """The rows of a regression.

    Attributes
    ----------
    A : ndarray or csr_array of shape (n_rows, n_coefficients)
    equality : ndarray of bool, shape (n_rows,)
    example : ndarray of int, shape (n_rows,)
        The example of each row, among the given ones.
    column : ndarray of int, shape (n_rows,)
        What the example is held against: another class (multinomial), else 0.
    names : list of str
        Of the coefficients.
    n_columns : int
        What examples may be held against: the number of classes (multinomial), else 1.
    """

    A: Any
    equality: Array
    example: Array
    column: Array
    names: list[str]
    n_columns: int = 1


def with_intercept(X: Any) -> Any:
    """Examples with a 1 in front of their features."""
    one = np.ones((X.shape[0], 1))
    if sp.issparse(X):
        return sp.hstack([sp.csr_array(one), X], format="csr")
    return np.concatenate([one, X], axis=1)


def beside(left: sp.csr_array, X: Any) -> Any:
    """Columns side by side: sparse if most of their numbers are zeros of the left ones."""
    dense = left.shape[1] + X.shape[1]
    if sp.issparse(X) or dense > _SPARSE * (left.nnz / left.shape[0] + X.shape[1]):
        return sp.csr_array(sp.hstack([left, sp.csr_array(X)]))
    return np.hstack([left.toarray(), X])


def times(X: Any, sign: Array) -> Any:
    """Rows times signs."""
    return sp.csr_array(sp.diags_array(sign) @ X) if sp.issparse(X) else X * sign[:, None]


def distinct(A: Array, equality: Array) -> tuple[Array, Array]:
    """Indices of rows that differ from each other, and which of these each row is equal to.

    Rows are compared where their products with a random vector are equal; should rounding make
    these differ for equal rows, both are kept, which costs only time.
    """
    key = A @ np.random.default_rng(0).standard_normal(A.shape[1]) + equality
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    same = np.all(A[first[of]] == A, axis=1) & (equality[first[of]] == equality)
    if not same.all():
        return np.arange(len(A)), np.arange(len(A))
    return first, of
