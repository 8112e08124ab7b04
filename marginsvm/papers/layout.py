"""Memory layout of rows, for compiled loops over coordinates; importing it imports no numba."""

from __future__ import annotations

from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.gram import Gram
from marginsvm.problem.matrix import Csr
from marginsvm.problem.rows import intervals_of

DENSE, SPARSE, GRAM = 0, 1, 2


class RowLayout(NamedTuple):
    """Memory layout of the rows, for compiled loops that add multiples of rows to vectors.

    One type for dense, CSR and Gram matrices, so that one compiled loop serves all. Rows
    have flat indices into the margins: i for two classes, else ``i k + j`` (example i
    against class j).

    Attributes
    ----------
    form : int
        ``DENSE``, ``SPARSE`` or ``GRAM``.
    values, indices, indptr : ndarray
        Dense, Gram: the C-ordered matrix, flattened, and two empty arrays; or the CSR.
    n_columns : int
        Columns of that matrix.
    codes : ndarray of int64
        Class of each example; empty if rows are several outputs: j of example i is i k + j.
    n_classes : int
        Classes, or outputs.
    read, push : float
        Factors of a row's inner product with a primal vector, and of a row added to one.
    constant : float
        The constant feature (Gram: its square, added to all kernel values).
    block, stride : int
        Entry j of a primal vector for class c is at ``c * block + j * stride``.
    ridge : ndarray
        Added to each row's squared norm; zeros for a hard margin.
    curvature : ndarray
        Largest second derivative of half a vector's squared norm along each row's
        coordinate, ``(q - 1) |a_r|_q^2 + ridge_r``.
    low, high : ndarray
        Ends of the interval of each row's score.
    mu : float
        Strong convexity of the dual relative to the curvatures; 0 for a hard margin.
    q : float
        Exponent of the dual norm: predictors are mirror images unless it is 2.
    """

    form: int
    values: Array
    indices: Array
    indptr: Array
    n_columns: int
    codes: Array
    n_classes: int
    read: float
    push: float
    constant: float
    block: int
    stride: int
    ridge: Array
    curvature: Array
    low: Array
    high: Array
    mu: float
    q: float


_LAYOUTS: WeakKeyDictionary[KernelMatrixAdapter, RowLayout] = WeakKeyDictionary()


def layout_of(problem: KernelMatrixAdapter) -> RowLayout:
    """The rows of a problem as plain arrays, made once."""
    found = _LAYOUTS.get(problem)
    if found is None:
        rows = problem.rows
        q = problem.norm_of_predictors.q
        # with more than two classes, two share a row: (x, -x)
        lengths = problem.lengths * rows.square ** (2.0 / q)
        curvature = rows.per_example((q - 1.0) * lengths)
        ridge = 0.0 if problem.ridge is None else problem.ridge
        ridge = np.broadcast_to(ridge, rows.shape)
        curvature = curvature + ridge
        intervals = intervals_of(rows)
        convexity = ridge / np.maximum(curvature, np.finfo(float).tiny)
        found = _LAYOUTS[problem] = RowLayout(
            codes=rows.codes,
            n_classes=rows.n_classes,
            ridge=ridge.ravel(),
            curvature=curvature.ravel(),
            low=intervals.low.ravel(),
            high=intervals.high.ravel(),
            mu=float(convexity.min()),
            q=q,
            **_arrays(problem),
        )
    return found


def _arrays(problem: KernelMatrixAdapter) -> dict[str, Any]:
    """Fields that depend on how the examples are stored."""
    design = problem.design
    none = np.empty(0, np.int32)
    if design is None:
        gram = cast("Gram", problem.examples)
        K = gram.whole()
        return {
            "form": GRAM,
            "values": np.asarray(K, order="C").reshape(-1),
            "indices": none,
            "indptr": none,
            "n_columns": len(K),
            "read": 1.0,
            "push": 1.0 / problem.radius**2,
            "constant": gram.constant**2,
            "block": 1,
            "stride": int(np.prod(problem.rows.score_shape[1:])),
        }
    X = design.X
    assert design.centre is None
    arrays = (np.ravel(X.array), none, none)
    if isinstance(X, Csr):
        arrays = (X.array.data, X.array.indices, X.array.indptr)
    values, indices, indptr = arrays
    return {
        "form": SPARSE if X.sparse else DENSE,
        "values": values,
        "indices": indices,
        "indptr": indptr,
        "n_columns": X.shape[1],
        "read": 1.0 / problem.radius,
        "push": 1.0 / problem.radius,
        "constant": design.constant,
        "block": problem.image_shape[-1],
        "stride": 1,
    }
