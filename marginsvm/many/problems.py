"""What ``fit_many`` is given, as a list of problems: their examples, labels and Gram matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from marginsvm._cached import cached_property
from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.many.label_sets import LabelSets
from marginsvm.many.stack import Stack

# Numbers of the Gram matrices and examples of a batch (8 MB): a few batches stay in a cache that
# processors share, and a batch takes long beside the calls that it consists of. Of twice as many,
# the system takes memory back and gives it again, page by page (a sixth of the time, measured).
_BATCH_NUMBERS = 2**20
# Examples whose inner products are all computed at once (128 MB) where problems share them.
_SHARED_EXAMPLES = 4096


@dataclass(frozen=True)
class Problems:
    """A list of problems with two classes each.

    Attributes
    ----------
    X : ndarray of shape (n, d) or (B, n, d)
    y : ndarray of shape (n,) or (B, n)
    columns, rows : sequence of index arrays, or None
        As many as problems, or one.
    n_problems : int
    balanced : bool
        Whether there is an intercept.
    """

    X: Array
    y: Array
    columns: Sequence[Any] | None
    rows: Sequence[Any] | None
    n_problems: int
    balanced: bool

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, columns: Any, rows: Any) -> Problems:
        """Check the arguments of ``fit_many``, as far as that takes no look at each problem."""
        X, y = _examples(X), np.asarray(y)
        if y.ndim not in (1, 2):
            raise ValueError(f"y must have one or two dimensions, but has shape {y.shape}")
        if X.shape[-2] != y.shape[-1]:
            raise ValueError(f"X has {X.shape[-2]} examples, but y has {y.shape[-1]} labels")
        given = {"X": X if X.ndim == 3 else None, "y": y if y.ndim == 2 else None}
        given |= {"columns": columns, "rows": rows}
        lengths = {name: len(x) for name, x in given.items() if x is not None}
        B = max(lengths.values(), default=1)
        wrong = {name: length for name, length in lengths.items() if length not in (1, B)}
        if wrong or B == 0:
            raise ValueError(
                f"X, y, columns and rows are taken together, one of each for a problem, but come "
                f"in numbers of {lengths}: give as many of each, or one for all"
            )
        return cls(X, y, columns, rows, B, bool(estimator.fit_intercept))

    def some(self, chosen: slice) -> Problems:
        """Problems one after the other."""
        n = len(range(self.n_problems)[chosen])

        def part(given: Any, several: bool) -> Any:
            return given[chosen] if several and len(given) > 1 else given

        return Problems(
            part(self.X, self._has_many_X),
            part(self.y, self.has_many_y),
            part(self.columns, self.columns is not None),
            part(self.rows, self.rows is not None),
            n,
            self.balanced,
        )

    @property
    def _has_many_X(self) -> bool:  # noqa: N802
        return self.X.ndim == 3

    @property
    def has_many_y(self) -> bool:
        """Whether labels differ from problem to problem."""
        return self.y.ndim == 2

    def _all_of(self, i: int) -> Any:
        """X of a problem, before rows and columns are chosen."""
        return self.X[i % len(self.X)] if self._has_many_X else self.X

    def _all_labels_of(self, i: int) -> Any:
        return self.y[i % len(self.y)] if self.has_many_y else self.y

    def _rows_of(self, i: int) -> Array | None:
        return None if self.rows is None else _indices(self.rows[i % len(self.rows)], "rows", i)

    def _indices_of(self, i: int) -> Array:
        r = self._rows_of(i)
        return np.arange(len(self._all_of(i))) if r is None else r

    def _columns_of(self, i: int) -> Array | None:
        if self.columns is None:
            return None
        return _indices(self.columns[i % len(self.columns)], "columns", i)

    def examples(self, i: int) -> Array:
        """X of a problem: what a fit to it alone is given."""
        X, r, c = self._all_of(i), self._rows_of(i), self._columns_of(i)
        X = X if r is None else X[r]
        return np.asarray(X if c is None else X[:, c])

    def labels(self, i: int) -> Array:
        """Labels of a problem, as they were given."""
        y, r = self._all_labels_of(i), self._rows_of(i)
        return np.asarray(y if r is None else y[r])

    @cached_property
    def shapes(self) -> Array:
        """Number of examples, and of features, of each problem; of shape (B, 2)."""
        if self.rows is None and self.columns is None:
            return np.broadcast_to(self._shape(0), (self.n_problems, 2))
        return np.array([self._shape(i) for i in range(self.n_problems)])

    def _shape(self, i: int) -> tuple[int, int]:
        n, d = self._all_of(i).shape
        r, c = self._rows_of(i), self._columns_of(i)
        n = n if r is None else len(r)
        return n, d if c is None else len(c)

    def batches(self) -> Iterator[Array]:
        """Problems of the same shape together, in their order as far as that goes."""
        order = np.lexsort((np.arange(self.n_problems), *self.shapes.T))
        changes = np.flatnonzero(np.diff(self.shapes[order], axis=0).any(axis=1)) + 1
        for run in np.split(order, changes):
            n, d = self.shapes[run[0]]
            size = max(1, int(_BATCH_NUMBERS / (n * n + (d if self._shared else n * d))))
            yield from (run[i : i + size] for i in range(0, len(run), size))

    def labelled(self, ids: Array) -> LabelSets:
        """Labels of some problems of the same shape.

        Raises
        ------
        ValueError
            If a problem has not two classes.
        """
        if self._labels_of_all is not None:
            classes, signs = self._labels_of_all
            if self.rows is None and not self.has_many_y:
                y = np.broadcast_to(signs, (len(ids), len(signs)))
            else:
                y = np.stack([self._chosen(signs, i) for i in ids])
            labels = LabelSets(y, np.broadcast_to(classes, (len(ids), 2)))
            if labels.have_both:
                return labels
        return LabelSets.of([self.labels(i) for i in ids], ids)

    def _chosen(self, signs: Any, i: int) -> Array:
        y, r = signs[i % len(signs)] if self.has_many_y else signs, self._rows_of(i)
        return np.asarray(y if r is None else y[r])

    @cached_property
    def _labels_of_all(self) -> tuple[Array, Any] | None:
        """The classes of all problems, and signs in the form of y; None: they are more than two."""
        classes = np.unique(self.y)
        return (classes, np.where(self.y == classes[1], 1.0, -1.0)) if len(classes) == 2 else None

    def stack(self, ids: Array) -> Stack:
        """Gram matrices of some problems of the same shape."""
        shared = self._shared
        if shared is not None:
            if self.rows is None:
                return shared.repeated(len(ids))
            return shared.chosen(np.stack([self._indices_of(i) for i in ids]))
        if self.rows is None and self.columns is None:
            in_turn = ids[-1] - ids[0] == len(ids) - 1
            Z = self.X[ids[0] : ids[-1] + 1] if in_turn else self.X[ids]
        else:
            Z = np.stack([self.examples(i) for i in ids])
        return Stack.of(Z.astype(np.float64, copy=False), balanced=self.balanced)

    @cached_property
    def _shared(self) -> Stack | None:
        """Inner products of all examples, if problems share these and their features."""
        if self._has_many_X or self.columns is not None:
            return None
        n = len(self.X)
        if n > _SHARED_EXAMPLES or n * n > np.sum(self.shapes[:, 0] ** 2):
            return None
        return Stack.of(self.X[None].astype(np.float64, copy=False), balanced=self.balanced)

    def coef(self, stack: Stack, ids: Array, v: Array) -> Array:
        """Coefficients of the features."""
        if stack.Z is not None:
            return np.asarray((v[:, None, :] @ stack.Z)[:, 0])
        assert self._shared is not None
        assert self._shared.Z is not None
        Z = self._shared.Z[0]
        if self.rows is None:
            return np.asarray(v @ Z)
        return np.stack([c @ Z[self._indices_of(i)] for i, c in zip(ids, v, strict=True)])


def _examples(X: Any) -> Array:
    """X as an array of two or three dimensions."""
    if sp.issparse(X):
        raise TypeError("fit_many needs dense examples: convert X by toarray()")
    check_exact(X)
    if np.ndim(X) != 3:
        return np.asarray(check_array(X, dtype=[np.float64, np.float32]))
    X = np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _indices(index: Any, name: str, i: int) -> Array:
    index = np.asarray(index)
    if index.dtype == bool:
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.size == 0 or not np.issubdtype(index.dtype, np.integer):
        raise ValueError(
            f"{name} must hold lists of indices or masks, but {name}[{i}] is of shape "
            f"{index.shape} and type {index.dtype}"
        )
    return index
