"""The split of many rows, by that of some of them.

Rows that overlap do so among more rows as well. So a split of some rows is one of all if its
direction is strictly positive on each of the others, or its face is 0 there; rows for which
neither holds join the some.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.checker.coordinates import power_of_two
from marginsvm.separability.faces import split
from marginsvm.separability.sparse_faces import split_sparse
from marginsvm.separability.split import Split

_ROWS = 10_000  # rows to begin with, which take a tenth of a second
_ROWS_PER_COLUMN = 20  # the same, for each column: with fewer, random rows are often separated
_TIMES_AS_MANY = 4  # times as many rows are split at once
_ROUNDS_OF_SAMPLES = 20
_ZERO = 1e-11  # of the length of a row: a product up to this counts as 0
_CLEARLY_POSITIVE = 1e-8  # of the same: a product above this is positive


def split_many(A: Array, equality: Array) -> Split:
    """Split the rows of a dense design; see :func:`marginsvm.separability.faces.split`."""
    n, d = A.shape
    size = max(_ROWS, _ROWS_PER_COLUMN * d)
    chosen = np.zeros(n, bool)
    chosen[np.random.default_rng(0).permutation(n)[:size]] = True
    for _ in range(_ROUNDS_OF_SAMPLES):
        if n <= _TIMES_AS_MANY * np.count_nonzero(chosen):
            break
        rows = np.flatnonzero(chosen)
        found = split(A[rows], equality[rows])
        if found.doubt or len(found.identified) < d:
            break
        on_face, margins = _products(A, found)
        positive = (margins > _CLEARLY_POSITIVE) & ~equality
        new = np.flatnonzero(~chosen & ~positive & (on_face > _ZERO))
        if not len(new):
            separated, weights = (on_face > _ZERO) & positive, np.zeros(n)
            separated[rows], weights[rows] = found.separated, found.weights
            return replace(found, separated=separated, weights=weights)
        chosen[new[np.argsort(margins[new], kind="stable")[:size]]] = True
    return split(A, equality)


def split_many_sparse(A: Any, equality: Array) -> Split:
    """The same of a sparse design, where some rows leave no direction to the others."""
    n, d = A.shape
    size = max(_ROWS, _ROWS_PER_COLUMN * d)
    if n > _TIMES_AS_MANY * size:
        rows = np.sort(np.random.default_rng(0).permutation(n)[:size])
        found = split_sparse(A[rows], equality[rows])
        if not found.doubt and len(found.identified) == d and not found.separated.any():
            weights = np.zeros(n)
            weights[rows] = found.weights
            return replace(found, separated=np.zeros(n, bool), weights=weights)
    return split_sparse(A, equality)


def _products(A: Array, found: Split) -> tuple[Array, Array]:
    """The longest product of each row with the face, and that with the direction, of unit rows."""
    units = power_of_two(A.T)
    table = np.column_stack([found.direction, found.face])
    most = np.abs(table * units[:, None]).max(axis=0)
    reach = np.abs(A[:, :1]) / units[0]
    for j in range(1, A.shape[1]):
        np.maximum(reach, np.abs(A[:, j : j + 1]) / units[j], out=reach)
    products = A @ (table / np.where(most > 0.0, most, 1.0))
    products /= np.where(reach > 0.0, reach, 1.0)
    return np.abs(products[:, 1:]).max(axis=1, initial=0.0), products[:, 0]
