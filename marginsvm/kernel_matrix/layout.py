"""The rows of a problem as plain arrays, for compiled loops over coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix.scale import Scale
from marginsvm.rows import LpNorm, Rows

DENSE, SPARSE, GRAM = 0, 1, 2


class RowLayout(NamedTuple):
    """Where each row lies in memory, and how adding it changes the image of a vector.

    One type for dense, CSR and Gram matrices, so that one compiled loop serves all. Rows
    have flat indices into the margins: i for two classes, else ``i k + j`` (example i
    held against class j).

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
        Factors of a row's inner product with an image, and of what it adds to one.
    constant : float
        The constant feature (Gram: its square, added to all kernel values).
    block, stride : int
        An image's entry j for class c is at ``c * block + j * stride``.
    slack : ndarray
        Square of each row's own extra coordinate; zeros without a soft margin.
    curvature : ndarray
        Largest second derivative of half a vector's squared norm along each row's
        coordinate, ``(q - 1) |a_r|_q^2 + slack_r``.
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
    slack: Array
    curvature: Array
    q: float


def common_layout(rows: Rows, scale: Scale, norm: LpNorm) -> dict[str, Any]:
    """Fields of a :class:`RowLayout` that do not depend on how the examples lie in memory."""
    # with more than two classes, two share a row: (x, -x) / sqrt(2)
    lengths = scale.lengths * rows.unit ** (4.0 / norm.q - 2.0)
    curvature = rows.per_example((norm.q - 1.0) * lengths)
    slack = np.broadcast_to(0.0 if scale.slack is None else scale.slack, rows.shape)
    return {
        "codes": rows.codes,
        "n_classes": rows.n_classes,
        "slack": slack.ravel(),
        "curvature": (curvature + slack).ravel(),
        "q": norm.q,
    }
