"""Regressions as rows of conditions on their coefficients, whatever the family.

A row a of a design stands for the condition ``a w >= 0`` or, for an equality, ``a w = 0``, on the
directions w in which the likelihood does not fall. The columns are the coefficients, the
intercept first.

=================  ==============================================================================
family             rows of an example x = (1, features)
=================  ==============================================================================
binomial, labels   x if it is a success (the second class), -x if not
binomial, counts   x if all trials are successes, -x if none is; else x, as an equality
poisson            -x if the count is 0; else x, as an equality
multinomial        one for each other class j: x in the block of the own class, -x in the block
                   of j, where the first class, the reference, has no block
=================  ==============================================================================

Examples of weight 0, and those of no trials, have no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array


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
        Class that the example is held against (multinomial), else 0.
    names : list of str
        Of the coefficients.
    n_columns : int
        Classes that examples may be held against (multinomial), else 1.
    """

    A: Any
    equality: Array
    example: Array
    column: Array
    names: list[str]
    n_columns: int


def two_classes(X: Any, success: Array) -> tuple[Any, Array]:
    """Rows and equalities of examples that are a success, or not."""
    return _times(X, np.where(success, 1.0, -1.0)), np.zeros(X.shape[0], bool)


def trials(X: Any, counts: Array) -> tuple[Any, Array]:
    """Rows and equalities of counts (successes, failures)."""
    return _times(X, np.where(counts[:, 0] > 0, 1.0, -1.0)), np.asarray((counts > 0).all(axis=1))


def counts(X: Any, y: Array) -> tuple[Any, Array]:
    """Rows and equalities of a Poisson regression."""
    return _times(X, np.where(y > 0, 1.0, -1.0)), np.asarray(y > 0)


def many_classes(X: Any, codes: Array, n_classes: int) -> tuple[Any, Array, Array]:
    """Rows of a multinomial regression, and the examples and other classes of these."""
    others = np.arange(n_classes)[None, :] != codes[:, None]
    example, other = np.nonzero(others)
    unit = np.eye(n_classes)[:, 1:]
    signs = unit[codes[example]] - unit[other]
    if sp.issparse(X):
        blocks = [_times(X[example], s) for s in signs.T]
        return sp.hstack(blocks, format="csr"), example, other
    return np.concatenate([X[example] * s[:, None] for s in signs.T], axis=1), example, other


def with_intercept(X: Any) -> Any:
    """Examples with a 1 in front of their features."""
    one = np.ones((X.shape[0], 1))
    if sp.issparse(X):
        return sp.hstack([sp.csr_array(one), X], format="csr")
    return np.concatenate([one, X], axis=1)


def _times(X: Any, sign: Array) -> Any:
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
