"""Rows of conditions on the coefficients of a regression, whatever the family.

A row a stands for ``a w >= 0`` or, for an equality, ``a w = 0``, on the directions w in which the
likelihood does not fall. All families are sums of examples, with signs, in blocks of columns,

    A = [T, S_1 (1, X), ..., S_k (1, X)],

with sparse S of -1, 0 and 1, and T for thresholds: the same for floats and for integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.separation.numbers import Numbers

_SPARSE = 4  # numbers for each one that is not 0, above which rows are sparse


def dense(A: Any) -> Array:
    """Rows as an array."""
    return np.asarray(A.toarray() if sp.issparse(A) else A)


@dataclass
class Design:
    """The rows of a regression.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_examples, n_features), float64
    select : list of csr_array of shape (n_rows, n_examples)
        S, one a block.
    equality : ndarray of bool, shape (n_rows,)
    example, column : ndarray of int, shape (n_rows,)
        Where the report's tables have a row.
    names : list of str
        Of the columns.
    intercept : bool
        Whether blocks have a column of ones.
    fixed : csr_array of shape (n_rows, n_fixed)
        T.
    """

    X: Any
    select: list[Any]
    equality: Array
    example: Array
    column: Array
    names: list[str]
    intercept: bool = False
    fixed: Any = None

    def __post_init__(self) -> None:
        self.fixed = sp.csr_array((len(self.equality), 0)) if self.fixed is None else self.fixed
        self.numbers = Numbers(self.X)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.equality), len(self.names)

    @cached_property
    def is_sparse(self) -> bool:
        """Whether rows of floats are: as X, or as most of their blocks are empty."""
        used = self.fixed.nnz + (self.X.shape[1] + 1) * sum(S.nnz for S in self.select)
        return sp.issparse(self.X) or self.shape[0] * self.shape[1] > _SPARSE * used

    def rows(self, at: Array) -> Any:
        """Rows in floats."""
        return self._sums(at, lambda used: self.X[used])

    def errors(self, at: Array) -> Array:
        """Bounds on what rows of floats miss of those of the numbers.

        A decimal is 1e-15 of it away, or of a thousandth of the largest; two of them may differ.
        """
        sizes = self._sums(at, lambda used: abs(self.X[used]), sign=abs)
        return 2.0**-49 * (dense(sizes) + 2.0**-9 * self.reach)

    def rest(self, at: Array) -> Array:
        """What rows of floats miss of those of the numbers."""
        return dense(self._sums(at, self.numbers.rest, ones=0.0))

    def _sums(
        self, at: Array, examples: Callable[[Array], Any], sign: Any = sp.csr_array, ones: float = 1
    ) -> Any:
        parts = [ones * sign(self.fixed[at])]
        for S in self.select:
            some = sign(S[at])
            used = np.unique(some.indices)
            if self.intercept:
                parts.append(sp.csr_array(ones * some.sum(axis=1)[:, None]))
            parts.append(some[:, used] @ examples(used))
        if self.is_sparse:
            return sp.csr_array(sp.hstack(parts, format="csr"))
        return np.hstack([dense(part) for part in parts])

    @cached_property
    def reach(self) -> Array:
        """The largest absolute value of the examples in each column, 1 for zeros."""
        top = np.maximum(dense(self.X.max(axis=0)), -dense(self.X.min(axis=0))).ravel()
        one = np.append(np.ones(int(self.intercept)), np.where(top > 0, top, 1.0))
        return np.concatenate([np.ones(self.fixed.shape[1]), *[one] * len(self.select)])

    def margins(self, W: Array) -> Array:
        """``A W``, by products with the examples."""
        t, one = self.fixed.shape[1], int(self.intercept)
        out = self.fixed @ W[:t]
        for S, w in zip(self.select, np.split(W[t:], len(self.select)), strict=True):
            out = out + S @ (self.X @ w[one:] + w[:one].sum(axis=0))
        return np.asarray(out)

    def places(self, columns: Array) -> tuple[Array, Array]:
        """The block of each column, -1 for fixed ones, and its feature, -1 for ones."""
        wide, at = self.X.shape[1] + self.intercept, columns - self.fixed.shape[1]
        return np.where(at < 0, -1, at // wide), np.where(at < 0, -1, at % wide - self.intercept)

    def are_rounded(self, columns: Array) -> Array:
        """Columns whose numbers have been rounded: a mask."""
        features = self.places(columns)[1].tolist()
        return np.array([j >= 0 and self.numbers.column(j).is_rounded for j in features], bool)

    def integers(self, at: Array, columns: Array) -> tuple[Array, Array]:
        """Some columns of rows as integers, and the units of these: ``A = integers / units``."""
        block, feature = self.places(columns)
        some = np.unique(feature[feature >= 0])
        every = [S[at].astype(np.int64) for S in self.select]
        used = np.unique(np.concatenate([S.indices for S in every]))
        X, unit = self.numbers.integers(used, some)
        units, out = np.ones(len(columns)), np.zeros((len(at), len(columns)), dtype=X.dtype)
        here = np.flatnonzero(block < 0)
        out[:, here] = self.fixed[at][:, columns[here]].toarray().astype(np.int64)
        for b, S in enumerate(every):
            out[:, (block == b) & (feature < 0)] = S.sum(axis=1)[:, None]
            here = np.flatnonzero((block == b) & (feature >= 0))
            place = np.searchsorted(some, feature[here])
            out[:, here], units[here] = _times(S[:, used], X[:, place]), unit[place]
        return out, units


def _times(S: Any, X: Array) -> Array:
    """``S X`` of integers, long ones as well."""
    if X.dtype != object:
        return np.asarray(S @ X)
    out, rows = (
        np.zeros((S.shape[0], X.shape[1]), object),
        np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)),
    )
    np.add.at(out, rows, S.data.astype(object)[:, None] * X[S.indices])
    return out
