"""Directions and weights that are positive, without rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.checker.face import Face
from marginsvm.certify.checker.simplex import has_positive_weights
from marginsvm.certify.exactly.elimination import as_integers, dot
from marginsvm.certify.exactly.krawczyk import independent_first, positive_solution_is_near
from marginsvm.certify.exactly.overlap import has_exact_weights

_UNIT_ROUNDOFF = 2.0**-53
# Numbers of rows whose weights the simplex method finds, if floats are no help.
_SIMPLEX_NUMBERS = 2000
_MAX_ENTRIES = 2_000_000  # of rows that are written out in integers: some seconds


def direction_is_positive(A: NDArray, face: Face, w: NDArray) -> bool:
    """Whether the direction of a face that has the values of w is positive on all rows."""
    margins, error = _products(A, face, w)
    unclear = np.flatnonzero(~(margins > error))
    if not len(unclear):
        return True
    if len(unclear) * A.shape[1] > _MAX_ENTRIES or np.any(margins < -error):
        return False
    direction = face.direction(w)
    return all(dot(as_integers(A[i]), direction) > 0 for i in unclear)


def overlap_in_all_directions(A: NDArray, q: NDArray, rounding: float = 0.0) -> bool:
    """Whether floats prove that positive weights near q balance rows that span the space.

    So no row is positive in any direction, and no column is a combination of others. The numbers
    of A may have a relative error.
    """
    A, q = A[q > 0.0], q[q > 0.0]
    top = np.abs(A).max(axis=0, initial=0.0)
    if len(A) < A.shape[1] or not np.all(top > 0.0):
        return False
    units = np.frexp(top)[1][:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        M = np.ldexp(A.T, -units)
        if not np.array_equal(np.ldexp(M, units), A.T):
            return False
    order, rank = independent_first(M * q)
    return rank == len(M) and positive_solution_is_near(M[:, order], q[order], rounding)


def sign_of_entry(face: Face, w: NDArray, j: int) -> int:
    """The sign of an entry of the direction of a face that has the values of w."""
    unit = np.eye(1, len(w), j)
    (value,), (error,) = _products(unit, face, w)
    exact = face.direction(w)[j] if abs(value) <= error or np.isnan(value) else value
    return int(exact > 0) - int(exact < 0)


def _products(A: NDArray, face: Face, w: NDArray) -> tuple[NDArray, NDArray]:
    """Products with the direction, and what rounding may have made of them."""
    table, chosen = face.table, w[face.free]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        margins = A @ (table @ chosen)
        terms = np.abs(A) @ (np.abs(table) @ np.abs(chosen))
        return margins, _UNIT_ROUNDOFF * (2.0 * sum(table.shape) + 8.0) * terms


def exact_weights_exist(A: Any, equality: NDArray, q: NDArray) -> bool:
    """Whether weights on the rows of q are proved to exist with ``A^T q = 0`` exactly.

    Those of equalities may have any sign: each counts as two opposite rows. True is a proof.
    """
    used = np.flatnonzero(np.where(equality, True, q > 0))
    if not np.any(q[~equality] > 0):
        return False
    free = used[equality[used]]
    rows, both = A[used[~equality[used]]], A[free]
    if sp.issparse(A):
        M: Any = sp.csr_array(sp.vstack([rows, both, -both]).T)
    else:
        M = np.concatenate([rows, both, -both]).T
    largest = np.abs(q).max()
    weights = np.concatenate([q[used[~equality[used]]], *(_two_sides(q[free], largest))])
    if has_exact_weights(M, weights):
        return True
    if M.shape[0] * M.shape[1] > _SIMPLEX_NUMBERS:
        return False
    return has_positive_weights((M.toarray() if sp.issparse(M) else M).T)


def _two_sides(q: NDArray, largest: float) -> tuple[NDArray, NDArray]:
    return largest + np.maximum(q, 0.0), largest + np.maximum(-q, 0.0)
