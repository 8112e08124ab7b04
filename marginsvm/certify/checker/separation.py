"""Whether rows are separated, and others overlap, as a report says; in floats and in integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from marginsvm.certify.checker.face import PATIENT, Face, face_of, vanish
from marginsvm.certify.checker.modular import independent_columns, remainders_are_quick
from marginsvm.certify.checker.positive import direction_is_positive, exact_weights_exist
from marginsvm.certify.checker.signs import Cone, Signs
from marginsvm.certify.checker.triangular import triangular_factor
from marginsvm.certify.exactly.krawczyk import independent_first, is_regular

_RTOL = 1e-9  # of lengths: below, floats count as 0; far above the rounding of float64 sums
_POSITIVE_PRODUCT = 1e-14  # of the same: a product of floats above is positive
# Part of a row that the span of others need not explain: their rounding, amplified.
_SPAN_PART = 1e-7
_FEW_COEFFICIENTS = 1000  # of a sparse design whose null spaces are written out all the same
_NULL_SPACE_NUMBERS = 2**22  # numbers of a sparse design of which null spaces are written out
_PRODUCTS_OF_PROJECTION = 5000  # in a projection at most
_FINITE = "coefficients are called infinite that are finite, or the other way round"
_WRONG_SIGNS = "the weights are negative somewhere, or not 0 on rows that are separated"
_SIGN = {"+inf": 1, "-inf": -1, "inf": 0}
_MOST_SIGNS = 300  # infinite coefficients up to which their signs are looked at
TOO_LARGE = "the design is too large for integers"
_KINDS = {(True, True): "complete", (True, False): "quasi-complete", (False, False): "overlap"}


def flaw_of_kind(report: Any, separated: NDArray, n_coefficients: int) -> str:
    """Whether a report has the kind of its rows, and as many coefficients as it should have."""
    kind = _KINDS[bool(separated.any()), bool(separated.all())]
    if kind == report.kind and len(report.coefficients) == n_coefficients:
        return ""
    return f"the kind of these rows is {kind!r}, not {report.kind!r}"


def flaw_in_floats(
    A: Any,
    equality: NDArray,
    separated: NDArray,
    w: NDArray,
    q: NDArray,
    identified: NDArray,
    finite: NDArray,
) -> str:
    """What is wrong with a split of rows, beyond rounding; an empty string: nothing.

    The parameters are those of :func:`flaw_in_integers`, but that A may be sparse, and that w and q
    themselves must have these properties, up to rounding.
    """
    if np.any(q[~equality] < 0.0) or np.any(q[separated] != 0.0):
        return _WRONG_SIGNS
    unit = _largest(A, 0)  # of columns
    reach = _largest(_times_columns(A, 1.0 / np.where(unit > 0, unit, 1.0)), 1)  # of rows
    m, of_one = A @ w, float(np.abs(w) @ unit)
    if np.any(m[separated] <= _POSITIVE_PRODUCT * reach[separated] * of_one):
        return "the direction does not separate all rows that are called separated"
    if np.any(np.abs(m[~separated]) > _RTOL * reach[~separated] * of_one):
        return "the direction is not 0 on all rows that are called overlapping"
    if np.any(np.abs(A.T @ q) > _RTOL * unit * float(np.abs(q) @ reach)):
        return "the weights do not balance the rows"
    spanning = ~separated & ((q > 0.0) | equality)
    return _flaw_of_spans(A, spanning, separated, finite, identified)


def _largest(A: Any, axis: int) -> NDArray:
    """The largest absolute value along an axis; 0 of none."""
    if 0 in A.shape:
        return np.zeros(A.shape[1 - axis])
    top = abs(A).max(axis=axis)
    return np.asarray(top.toarray() if sp.issparse(top) else top, dtype=float).ravel()


def _flaw_of_spans(
    A: Any, spanning: NDArray, separated: NDArray, finite: NDArray, identified: NDArray
) -> str:
    """What is wrong with the rows that should span the others, and with the coefficients."""
    A = A[:, identified]
    top = _largest(A, 0)
    if not np.all(top > 0):
        return "a column of zeros is called identified"
    A = _times_columns(A, 1.0 / top)
    reach = np.maximum(_largest(A, 1), 1e-300)
    if sp.issparse(A) and np.prod(A.shape) <= _NULL_SPACE_NUMBERS:
        A = A.toarray()
    few = not sp.issparse(A) or A.shape[1] <= _FEW_COEFFICIENTS
    N = (_null_space_in_floats if few else _some_null_vectors)(A[spanning])
    if np.any(np.abs(A[~separated] @ N) > _SPAN_PART * reach[~separated, None]):
        return "some overlapping rows are not combinations of those with weight"
    moved = np.abs(N).max(axis=1, initial=0.0) > _SPAN_PART
    return _FINITE if np.any(moved == finite[identified]) else ""


def _null_space_in_floats(A: Any) -> NDArray:
    """Orthonormal vectors that span the null space."""
    if 0 in A.shape:
        return np.eye(A.shape[1])
    A = sp.diags_array(1.0 / np.maximum(_largest(A, 1), 1e-300)) @ A
    if A.shape[0] > A.shape[1]:  # the same span
        A = triangular_factor(A)
    A = A.toarray() if sp.issparse(A) else A
    order, rank = independent_first(A.T)
    return np.asarray(np.linalg.qr(A[order[:rank]].T, mode="complete")[0][:, rank:])


def _some_null_vectors(A: Any) -> NDArray:
    """Two random vectors of the null space: both are 0 where all of them are."""
    G = np.random.default_rng(1).standard_normal((A.shape[1], 2))
    if A.shape[0]:
        G = np.column_stack(
            [
                g - A.T @ lsmr(A.T, g, atol=1e-14, btol=1e-14, maxiter=_PRODUCTS_OF_PROJECTION)[0]
                for g in G.T
            ]
        )
    return G


def _times_columns(A: Any, factors: NDArray) -> Any:
    return sp.csr_array(A @ sp.diags_array(factors)) if sp.issparse(A) else A * factors


def flaw_in_integers(
    A: NDArray,
    equality: NDArray,
    separated: NDArray,
    w: NDArray,
    q: NDArray,
    identified: NDArray,
    finite: NDArray,
) -> str:
    """What is not proved of a split of rows; nothing is rounded. An empty string: all is.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
    equality, separated : ndarray of bool, shape (n_rows,)
    w : ndarray of shape (n_columns,)
        Near a direction that is positive on the separated rows, and 0 on the others.
    q : ndarray of shape (n_rows,)
        Near weights with ``A^T q = 0``, positive on rows that span the ones not separated.
    identified : ndarray of int
        Columns that count: those that are not combinations of the ones before them.
    finite : ndarray of bool, shape (n_columns,)
        Those of them in which the rows not separated determine all directions.
    """
    some = A[:, identified]
    face = face_of(some[spanning_rows(equality, separated, q)])
    if face is None:
        return TOO_LARGE
    split = some, equality, separated, w[identified], q, finite[identified]
    return flaw_of_split(*split, face) or flaw_of_columns(A, identified)


def spanning_rows(equality: NDArray, separated: NDArray, q: NDArray) -> NDArray:
    """Rows that should span all that are not separated: a mask."""
    return np.asarray(~separated & ((q > 0) | equality))


def flaw_of_split(
    A: NDArray,
    equality: NDArray,
    separated: NDArray,
    w: NDArray,
    q: NDArray,
    finite: NDArray,
    face: Face,
    most: float = PATIENT,
) -> str:
    """What is not proved of a split of rows whose columns should all be independent.

    Parameters
    ----------
    A, equality, separated, w, q, finite : ndarray
        As :func:`flaw_in_integers` has them.
    face : Face
        What is 0 on the rows that should span all that are not separated.
    most : float
        Products of machine words that a proof may take.
    """
    if np.any(q[~equality] < 0.0) or np.any(q[separated] != 0.0):
        return _WRONG_SIGNS
    if not np.array_equal(finite, ~face.moved() if face.vectors else np.ones(len(w), bool)):
        return _FINITE
    rest = ~separated & ~spanning_rows(equality, separated, q)
    if face.vectors and not vanish(A[rest], face.vectors, most):
        return "some rows are not combinations of the rows with weight"
    if separated.any() and not face.vectors:
        return "rows are called separated, but the others leave no direction"
    if not direction_is_positive(A[separated], face, w):
        return "not all rows that are called separated are"
    if not _columns_are_independent(A[separated], face):
        return "the columns that are called identified are not known to be independent"
    if np.any(q[~equality] > 0) and not exact_weights_exist(
        A[~separated][:, face.pivots], equality[~separated], q[~separated]
    ):
        return "no exact weights near these are known"
    return ""


def _columns_are_independent(A: NDArray, face: Face) -> bool:
    """Whether no direction is 0 on all rows: on those of a face, and on others, which are A.

    Of many rows, as many are chosen as the face has dimensions.
    """
    if not face.vectors:
        return True
    rows = np.concatenate([face.basis, A[_spanning(A @ face.table)]])
    if len(rows) == rows.shape[1] and is_regular(rows):
        return True
    if remainders_are_quick(A):
        rows = np.concatenate([face.basis, A])
    return len(independent_columns(rows)) == rows.shape[1]


def flaw_of_columns(A: NDArray, identified: NDArray, most: float = PATIENT) -> str:
    """What is not proved of columns that should depend on the identified ones before them."""
    rest = np.setdiff1d(np.arange(A.shape[1]), identified)
    if len(identified) == len(A):  # they span all columns
        rest = rest[rest < identified[-1]]
    for j in rest:
        before = identified[identified < j]
        rows = _some_rows(A[:, before])
        face = face_of(A[rows][:, [*before, j]], most)
        if face is None or face.free.tolist() != [len(before)]:
            return f"column {j} is not identified only up to rounding"
        if not vanish(A[:, [*before, j]], face.vectors, most):
            return f"column {j} is not identified only up to rounding"
    return ""


def _some_rows(A: NDArray) -> NDArray:
    """Rows that span the others, as far as can be seen quickly; all rows, if there are few."""
    return np.arange(len(A)) if remainders_are_quick(A) else _spanning(A)


def _spanning(A: NDArray) -> NDArray:
    """Rows that span the others, as far as floats can see."""
    if not A.size:
        return np.arange(len(A))
    top = np.abs(A).max(axis=0)
    A = A / np.where(top > 0, top, 1.0)
    order, rank = independent_first(np.linalg.qr(A)[0].T)
    return np.sort(order[:rank])


def flaw_of_signs(
    A: NDArray, separated: NDArray, w: NDArray, identified: NDArray, status: NDArray
) -> str:
    """What is not proved of the signs of infinite coefficients; nothing is rounded.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
    separated : ndarray of bool, shape (n_rows,)
    w : ndarray of shape (n_columns,)
        Near a direction that separates these.
    identified : ndarray of int
    status : ndarray of str, shape (n_columns,)
    """
    places = np.flatnonzero(np.isin(status[identified], list(_SIGN)))
    A = A[:, identified]
    face = face_of(A[~separated])
    if not len(places) or len(places) > _MOST_SIGNS:
        return ""
    if face is None:
        return TOO_LARGE
    cone = Cone.of(A, separated, w[identified])
    for j, sign in zip(places, Signs(cone, A, separated, face).of(places), strict=True):
        if sign is None:
            return f"the sign of coefficient {identified[j]} is not proved"
        if sign != _SIGN[status[identified[j]]]:
            return f"the sign of coefficient {identified[j]} is another one"
    return ""
