"""A proof that nothing separates, and not only that no margin is above rounding.

No predictor has a positive margin on all rows if weights ``q* >= 0``, not all zero, solve
``M q* = 0`` exactly, the columns of M being the rows of the problem as they were given. Floats
``q`` with a small ``M q`` are no such proof: whether exact weights exist near them is decided
here. This file imports nothing of the fit, so that a fit and the check of its certificate may
both stand on it.

References
----------
S. Rump. Verification methods: rigorous results using floating-point arithmetic. Acta
Numerica, 2010 (Krawczyk's argument for linear systems).

E. Bareiss. Sylvester's identity and multistep integer-preserving Gaussian elimination.
Mathematics of Computation, 1968.
"""

from __future__ import annotations

from itertools import pairwise
from math import fsum
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from marginsvm._typing import Array

_UNIT = 2.0**-53
_ROUNDING = (1e-13, 1e-8)  # weights this small next to the largest may be rounding: left out
_DEPENDENT = 1e-11  # of a row's length: what is left of one that depends on others, at most
_MAX_ENTRIES = 2**24  # of M where it is written out (128 MiB)
_MAX_WORK = 5e7  # products of machine words in an exact elimination: some seconds
_PRODUCT = 1.6  # integers of m words are multiplied in about m ** 1.6 steps (Karatsuba)
_MAX_STEPS = 1e9  # products in an elimination modulo a prime: some seconds
_PRIME = 2**31 - 1  # whose square is an int64
_BITS = 20  # to which weights that may be chosen freely are rounded: short numbers are quick
_FLOOR = 1e-3  # weights below this part of the largest are not shunned more as a basis


def nothing_separates(X: Any, codes: Array, n_classes: int, q: Array, *, intercept: bool) -> bool:
    """Whether exact weights near q prove that no predictor has a positive margin.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
        Examples, or some of them: those with weight are enough.
    codes : ndarray of shape (n,)
        Class of each example, in ``0..n_classes-1``.
    n_classes : int
    q : ndarray of shape (n,) or (n, n_classes)
        Weights, none negative; more than two classes: entry ``(i, j)`` belongs to example i
        held against class j.
    intercept : bool
        Whether predictors may have one.

    Returns
    -------
    bool
        True is a proof. False says nothing.
    """
    q = q.reshape(len(codes), -1)
    if n_classes > 2:
        q = np.where(np.arange(n_classes) == codes[:, None], 0.0, q)  # an own class is no row
    q = q / (q.max(initial=0.0) or 1.0)
    supports = [np.nonzero(q > share) for share in _ROUNDING]
    if len(supports[0][0]) == len(supports[1][0]):
        supports = supports[:1]
    return any(
        len(examples) > 0 and _meet(X, codes, n_classes, q, examples, others, intercept)
        for examples, others in supports
    )


def distinct(X: Any) -> sp.csr_array:
    """Give each distinct example a feature of its own, 1 for all that are equal to it.

    That is all that is exactly known of examples in the feature space of a rounded kernel.
    """
    X = sp.csr_array(X).astype(np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    numbers: dict[tuple[bytes, bytes], int] = {}
    of = [
        numbers.setdefault((X.indices[a:b].tobytes(), X.data[a:b].tobytes()), len(numbers))
        for a, b in pairwise(X.indptr)
    ]
    return sp.csr_array((np.ones(len(of)), of, np.arange(len(of) + 1)), (len(of), len(numbers)))


def _meet(
    X: Any, codes: Array, n_classes: int, q: Array, examples: Array, others: Array, intercept: bool
) -> bool:
    """Whether exact weights exist near those of some rows."""
    X = sp.csr_array(X)[examples].astype(np.float64)
    if intercept:
        X = sp.hstack([_without_offset(X), np.ones((X.shape[0], 1))], format="csr")
    X = X[:, np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))]
    if X.shape[0] * X.shape[1] <= _MAX_ENTRIES:
        X = X[:, _needed(X.toarray())]
    if n_classes == 2:
        M = X.T @ sp.diags_array(np.where(codes[examples] == 1, 1.0, -1.0))
    else:
        M = _against_classes(X, codes[examples], others, n_classes)
    return _has_exact_weights(sp.csr_array(M), q[examples, others])


def _without_offset(X: sp.csr_array) -> sp.csr_array:
    """Examples with some features shifted, where that rounds nothing: an intercept sees no shift.

    The difference of two floats is a float if neither is more than twice the other (Sterbenz).
    """
    X = X.tocsc()
    full = np.flatnonzero(np.diff(X.indptr) == X.shape[0])
    columns = X[:, full].toarray()
    low, high = columns.min(axis=0), columns.max(axis=0)
    same_sign = np.sign(low) * np.sign(high) > 0
    near = np.where(low > 0, high <= 2.0 * low, low >= 2.0 * high) & same_sign
    shift = np.zeros(X.shape[1])
    shift[full[near]] = low[near]
    X.data = X.data - np.repeat(shift, np.diff(X.indptr))
    return X.tocsr()


def _needed(X: Array) -> Array:
    """Features without those that are sums and differences of others, exactly.

    Such are the last of some dummies next to an intercept, copies, and totals. Powers of two
    may multiply them, so that no product is rounded.
    """
    scale = np.abs(X).max(axis=0)
    order, rank = _basis(X / np.where(scale > 0, scale, 1.0))
    chosen, others = order[:rank], order[rank:]
    if len(others) == 0:
        return np.arange(X.shape[1])
    factors = np.linalg.lstsq(X[:, chosen], X[:, others], rcond=None)[0].T
    factors[np.abs(factors) < 0.01 * np.abs(factors).max(axis=1, keepdims=True)] = 0.0
    mantissa, exponent = np.frexp(factors)
    nearest = np.ldexp(np.round(2.0 * mantissa) / 2.0, exponent)
    left = [
        j for j, f in zip(others, nearest, strict=True) if not _is_sum(X[:, j], X[:, chosen], f)
    ]
    return np.sort(np.append(chosen, np.array(left, dtype=int)))


def _is_sum(x: Array, X: Array, factors: Array) -> bool:
    """Whether ``x = X factors`` without rounding, for factors that are powers of two."""
    few = np.flatnonzero(factors)
    with np.errstate(over="ignore", under="ignore"):
        products = X[:, few] * factors[few]
        if not np.array_equal(products / factors[few], X[:, few]):  # too large, or too small
            return False
    return not any(map(fsum, np.column_stack([-x, products]).tolist()))


def _against_classes(X: Any, own: Array, other: Array, n_classes: int) -> sp.csr_array:
    """Columns ``x (e_own - e_other)^T``, class below class.

    The last class is left out: its entries are the negated sum of the others'.
    """
    entries, d = X.tocoo(), X.shape[1]
    example, feature = entries.coords
    at = np.concatenate([own[example] * d + feature, other[example] * d + feature])
    values = np.concatenate([entries.data, -entries.data])
    shape = (n_classes * d, X.shape[0])
    M = sp.coo_array((values, (at, np.tile(example, 2))), shape=shape)
    return M.tocsr()[: (n_classes - 1) * d]


def _has_exact_weights(M: sp.csr_array, q: Array) -> bool:
    """Whether some ``q* >= 0`` other than 0 solves ``M q* = 0``."""
    M = M[np.diff(M.indptr) > 0]
    if M.shape[0] * len(q) > _MAX_ENTRIES:
        return False
    A = _scaled(M.toarray())
    if A is None:
        return False
    if len(A) == 0:  # examples of zeros
        return True
    A = _distinct(A)
    order, rank = _basis(A * np.maximum(q, _FLOOR * q.max()))
    A, q = A[:, order], q[order]
    if rank == len(A) and _corrected_by_little(A, q, rank):
        return True
    return _solved(A, q, _basis(A[:, :rank].T)[0][:rank].tolist())


def _scaled(A: Array) -> Array | None:
    """Rows other than 0, scaled by powers of two to entries up to 1; None if that rounds."""
    top = np.abs(A).max(axis=1, initial=0.0)
    A = A[top > 0]
    exponents = np.frexp(top[top > 0])[1][:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.ldexp(A, -exponents)
        return scaled if np.array_equal(np.ldexp(scaled, exponents), A) else None


def _distinct(A: Array) -> Array:
    """The rows that are neither equal nor opposite to others."""
    first = A[np.arange(len(A)), (A != 0).argmax(axis=1)]
    return np.unique(A * np.sign(first)[:, None], axis=0)


def _basis(A: Array) -> tuple[Array, int]:
    """Order of the columns in which independent ones come first, and their number."""
    R, order = qr(A, mode="r", pivoting=True, check_finite=False)
    pivots = np.abs(R.diagonal())
    return order, int(np.count_nonzero(pivots > _DEPENDENT * pivots[:1]))


def _corrected_by_little(A: Array, q: Array, rank: int) -> bool:
    """Krawczyk's argument on the first columns, B, which are as many as rows.

    With R near the inverse of B and ``eps = |I - R B| < 1``, B is invertible, and the weights
    that ``A q`` asks for change by no more than ``|R A q| / (1 - eps)``.
    """
    B = A[:, :rank]
    try:
        R = np.linalg.inv(B)
    except np.linalg.LinAlgError:
        return False
    absolute = np.abs(R)
    sums = 1.01 * _UNIT * (rank + 4)  # relative error of sums of so many terms, in any order
    eps = np.abs(np.eye(rank) - R @ B).sum(axis=1) + sums * (1.0 + absolute @ np.abs(B).sum(axis=1))
    wide = np.longdouble
    residual = np.asarray(A.astype(wide) @ q.astype(wide))
    unsure = float(np.finfo(wide).eps) * (len(q) + 4) * (np.abs(A) @ q)
    rest = np.abs(residual).astype(np.float64) * (1.0 + 2.0 * _UNIT) + unsure
    change = np.abs(R @ residual.astype(np.float64)) + absolute @ (unsure + sums * rest)
    worst = float(eps.max())
    if not worst < 0.5:
        return False
    return bool(1.01 * change.max() / (1.0 - worst) < q[:rank].min())


def _solved(A: Array, q: Array, chosen: list[int]) -> bool:
    """Solve some rows for as many weights in integers, the others given, and look at all rows.

    A row that does not hold then does not depend on the chosen ones, as little as it may be
    that it adds to them: it joins them.
    """
    mantissa, exponent = np.frexp(q)
    q = np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    if A.size * len(q) > _MAX_STEPS:
        return False
    rows = [_integers(row) for row in A]
    if _independent_columns(rows):
        return False
    while (rank := len(chosen)) < len(q):
        given = _integers(q[rank:])
        load = [-_product(rows[i][rank:], given) for i in chosen]
        solution = _cramer([rows[i][:rank] for i in chosen], load)
        if solution is None or not all(x > 0 for x in solution[0]):
            return False
        exact = solution[0] + [solution[1] * x for x in given]
        wrong = next((i for i, row in enumerate(rows) if _product(row, exact)), None)
        if wrong is None:
            return True
        chosen = [*chosen, wrong]
    return False


def _independent_columns(rows: list[list[int]]) -> bool:
    """Whether no weights but 0 solve the equations, as they do not modulo a prime."""
    A = np.array([[x % _PRIME for x in row] for row in rows])
    for j in range(A.shape[1]):
        below = np.flatnonzero(A[j:, j]) + j
        if len(below) == 0:
            return False
        A[[j, below[0]]] = A[[below[0], j]]
        A[j] = A[j] * pow(int(A[j, j]), -1, _PRIME) % _PRIME
        A[j + 1 :] = (A[j + 1 :] - A[j + 1 :, j, None] * A[j]) % _PRIME
    return True


def _integers(x: Array) -> list[int]:
    """Floats times the smallest power of two that makes all of them integers."""
    ratios = [value.as_integer_ratio() for value in x.tolist()]
    common = max((d for _, d in ratios), default=1)
    return [n * (common // d) for n, d in ratios]


def _product(x: list[int], y: list[int]) -> int:
    return sum(a * b for a, b in zip(x, y, strict=True) if a and b)


def _cramer(B: list[list[int]], load: list[int]) -> tuple[list[int], int] | None:
    """Integers x and a positive d with ``B x = d load``, by Bareiss's elimination.

    Short numbers come first, so that dummies cost nothing. None where B is singular, or where
    that would take too long.
    """
    n = len(B)
    work, left = [[*row, rhs] for row, rhs in zip(B, load, strict=True)], set(range(n))
    heads: list[tuple[list[int], int]] = []
    before, cost = 1, 0.0
    while left:
        k = min(left, key=lambda i: max(map(int.bit_length, work[i])))
        left.remove(k)
        head = work[k]
        columns = [j for j in range(n) if head[j]]
        if not columns or cost > _MAX_WORK:
            return None
        column = min(columns, key=lambda j: head[j].bit_length())
        p = head[column]
        for i in left:
            row, f = work[i], work[i][column]
            work[i] = [(p * a - f * b) // before for a, b in zip(row, head, strict=True)]
        cost += len(left) * (n + 1) * (1.0 + (max(map(int.bit_length, head)) / 64) ** _PRODUCT)
        heads.append((head, column))
        before = p
    x = [0] * n
    for head, column in reversed(heads):
        rest = before * head[n] - sum(a * b for a, b in zip(head, x, strict=False) if a and b)
        x[column] = rest // head[column]
    return ([-value for value in x], -before) if before < 0 else (x, before)
