"""Whether rows are separated, and others overlap, as a report says; in floats and in integers."""

from __future__ import annotations

from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from marginsvm.certify.checker.elimination import Integers, as_integers, dot, null_space
from marginsvm.certify.checker.krawczyk import independent_first
from marginsvm.certify.checker.overlap import has_exact_weights

_MAX_ENTRIES = 20_000_000  # of a design that is written out in integers: some tens of seconds
_RTOL = 1e-9  # of lengths: below, floats count as 0; far above the rounding of float64 sums
_ROUNDING = 1e-14  # of the same: a product of floats above is positive
_SPAN = 1e-7  # part of a row that the span of others need not explain: their rounding, amplified
_WRITTEN_OUT = 2**22  # numbers of a sparse design of which null spaces are written out
_PRODUCTS = 5000  # in a projection at most
_FINITE = "coefficients are called infinite that are finite, or the other way round"
_SIGNS = "the weights are negative somewhere, or not 0 on rows that are separated"
_MAX_SPAN = 120  # columns of which null spaces are computed in integers: some seconds


def exact_weights_exist(A: Any, equality: NDArray, q: NDArray) -> bool:
    """Whether weights near q are proved to exist with ``A^T q = 0`` exactly.

    Those of equalities may have any sign: each counts as two opposite rows. True is a proof.
    """
    used = np.flatnonzero(np.where(equality, True, q > 0))
    if not np.any(q[~equality] > 0):
        return False
    free = used[equality[used]]
    rows, both = A[used[~equality[used]]], A[free]
    stack = sp.vstack if sp.issparse(A) else np.concatenate
    M = sp.csr_array(stack([rows, both, -both]).T)
    largest = np.abs(q).max()
    weights = np.concatenate([q[used[~equality[used]]], *(_two_sides(q[free], largest))])
    return has_exact_weights(M, weights)


def _two_sides(q: NDArray, largest: float) -> tuple[NDArray, NDArray]:
    return largest + np.maximum(q, 0.0), largest + np.maximum(-q, 0.0)


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
        return _SIGNS
    unit = _largest(A, 0)  # of columns
    reach = _largest(_times_columns(A, 1.0 / np.where(unit > 0, unit, 1.0)), 1)  # of rows
    m, of_one = A @ w, float(np.abs(w) @ unit)
    if np.any(m[separated] <= _ROUNDING * reach[separated] * of_one):
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
    large = np.prod(A.shape) > _WRITTEN_OUT
    if sp.issparse(A) and not large:
        A = A.toarray()
    N = (_some_null_vectors if sp.issparse(A) else _null_space_in_floats)(A[spanning])
    if np.any(np.abs(A[~separated] @ N) > _SPAN * reach[~separated, None]):
        return "some overlapping rows are not combinations of those with weight"
    moved = np.abs(N).max(axis=1, initial=0.0) > _SPAN
    return _FINITE if np.any(moved == finite[identified]) else ""


def _null_space_in_floats(A: NDArray) -> NDArray:
    """Orthonormal vectors that span the null space."""
    if not A.size:
        return np.eye(A.shape[1])
    A = A / np.maximum(_largest(A, 1), 1e-300)[:, None]
    if A.shape[0] > A.shape[1]:  # the same span
        A = np.asarray(np.linalg.qr(A, mode="r"))
    order, rank = independent_first(A.T)
    return np.asarray(np.linalg.qr(A[order[:rank]].T, mode="complete")[0][:, rank:])


def _some_null_vectors(A: Any) -> NDArray:
    """Two random vectors of the null space: both are 0 where all of them are."""
    G = np.random.default_rng(1).standard_normal((A.shape[1], 2))
    if A.shape[0]:
        G = np.column_stack(
            [g - A.T @ lsmr(A.T, g, atol=1e-14, btol=1e-14, maxiter=_PRODUCTS)[0] for g in G.T]
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
        Columns that count.
    finite : ndarray of bool, shape (n_columns,)
        Those of them in which the rows not separated determine all directions.
    """
    if np.any(q[~equality] < 0.0) or np.any(q[separated] != 0.0):
        return _SIGNS
    A, w, finite = A[:, identified], w[identified], finite[identified]
    spanning = ~separated & ((q > 0) | equality)
    if A.shape[1] > _MAX_SPAN or A[spanning].size > _MAX_ENTRIES:
        return "the design is too large for integers"
    N = _null_space(A[spanning], A.shape[1])
    if N and A.size > _MAX_ENTRIES:
        return "the design is too large for integers"
    if np.any(finite != np.array([not any(column) for column in zip(*N, strict=True)] or True)):
        return _FINITE
    direction = _combination(N, w)
    for i in np.flatnonzero(~spanning) if N else []:
        row = as_integers(A[i])
        if separated[i] and dot(row, direction) <= 0:
            return f"row {i} is not separated"
        if not separated[i] and any(dot(row, v) for v in N):
            return f"row {i} is not a combination of the rows with weight"
    if not N and separated.any():
        return "rows are called separated, but the others leave no direction"
    if np.any(q[~equality] > 0) and not exact_weights_exist(
        np.where(separated[:, None], 0.0, A), equality & ~separated, np.where(separated, 0.0, q)
    ):
        return "no exact weights near these are known"
    return ""


def _null_space(A: NDArray, n_columns: int) -> list[Integers]:
    order, rows = np.arange(n_columns), np.arange(len(A))
    if A.size:
        top = np.abs(A).max(axis=0)
        scaled = A / np.where(top > 0, top, 1.0)
        order, rows = independent_first(scaled)[0], independent_first(scaled.T)[0]
    return null_space([as_integers(A[i]) for i in rows], order.tolist())


def _combination(N: list[Integers], w: NDArray) -> Integers:
    """The vector of a null space that has the entries of w where only one basis vector has any."""
    total = [0] * len(w)
    integers = as_integers(w)
    owners = [_own_column(N, i) for i in range(len(N))]
    common = lcm(*(v[c] for v, c in zip(N, owners, strict=True)))
    for v, c in zip(N, owners, strict=True):
        factor = integers[c] * (common // v[c])
        total = [a + factor * b for a, b in zip(total, v, strict=True)]
    return total


def _own_column(N: list[Integers], i: int) -> int:
    return next(
        c for c, x in enumerate(N[i]) if x > 0 and not any(v[c] for j, v in enumerate(N) if j != i)
    )
