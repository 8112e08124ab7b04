"""Exact linear algebra: proofs in integers, or in floats with error bounds.

====================  =============================================================================
``positive_weights``  whether positive weights near given ones solve ``A q = 0`` exactly: the proof
                      that rows overlap (Gordan), or that nothing fits (Farkas)
``refuting_weights``  such weights for the rows of a program: no predictor satisfies all of them
``independent``       rows and columns of a largest regular block, modulo a prime
``null_space``        integers that span the null space
``combination``       a nonnegative combination of rows, or a direction that excludes one (Farkas)
====================  =============================================================================

True is a proof; False and None mean undecided. Floats are read as exact fractions. A matrix of
integers is an array of int64 or of Python's integers; ``multiplied`` and ``floats`` keep it exact.

References
----------
E. Bareiss. Sylvester's identity and multistep integer-preserving Gaussian elimination.
Mathematics of Computation, 1968.

S. Rump. Verification methods: rigorous results using floating-point arithmetic. Acta Numerica,
2010 (Krawczyk's argument for linear systems).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, lcm

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lu, qr

from marginsvm._rounding import UNIT, Extended
from marginsvm._typing import Array, Stored, Values
from marginsvm.problem.matrix import dense

HIGHER = 1.01  # covers errors of higher order in the unit roundoff
CLEARLY = 1e-6  # numbers below minus this, relative to the largest, are negative beyond rounding
NEGLIGIBLE = (1e-13, 1e-8)  # shares of the largest weight that may be rounding of 0
# Of pivoted factors: columns for each row, or rows for each column, that are many; a pivot of LU
# that shows full rank, relative to the largest entry, and one of QR that is no rounding. Columns of
# small weights count as if they had this part of the largest.
MANY = 4
FULL_RANK = 1e-6
RANK = 1e-11
SMALL = 1e-3
MOST_NUMBERS = 2**24  # entries of a system that is looked at
SHORT = 1000  # a denominator that is tried first
LARGEST_SYSTEM = 110  # equations solved in integers: some seconds
DIGITS = (20, 53)  # bits of the weights that are kept: short integers are tried first
PRIME = 2**31 - 19  # not 2^k - 1, which divides differences of powers of two


def integers(x: Iterable[Values]) -> list[int]:
    """Floats, fractions or integers times the least number that makes all of them integers."""
    ratios = [
        v.as_integer_ratio() for v in (x.tolist() if isinstance(x, np.ndarray) else x)
    ]
    common = lcm(*(d for _, d in ratios))
    return [n * (common // d) for n, d in ratios]


def rows_of_integers(A: Array) -> Array:
    """Rows of floats, each times a power of two of its own."""
    out = np.empty(A.shape, dtype=object)
    for i, row in enumerate(A):
        out[i] = integers(row)
    return out


def largest(M: Array) -> int:
    """The largest absolute value of integers."""
    return max(int(M.max()), -int(M.min())) if M.size else 0


def multiplied(A: Array, B: Array) -> Array:
    """``A B`` of integers: in float64 as long as its sums are exact, else by Python's integers."""
    if largest(A) * largest(B) * max(A.shape[1], 1) < 2**53:
        return (A.astype(float) @ B.astype(float)).astype(np.int64)
    return np.asarray(A.astype(object) @ B.astype(object))


def floats(M: Array, axis: int = 1) -> tuple[Array, Array]:
    """Integers over powers of two that make the largest of each row (or column) about 1.

    Each number is rounded once. Also returns the exponents.
    """
    if M.dtype != object:
        e = np.frexp(np.abs(M).max(axis=axis, keepdims=True, initial=0).astype(float))[
            1
        ]
        return np.ldexp(M.astype(float), -e), e
    top = np.abs(M).max(axis=axis, keepdims=True, initial=0)
    e = np.array([int(x).bit_length() for x in top.ravel()]).reshape(top.shape)
    return np.array(M / 2 ** e.astype(object), dtype=float).reshape(M.shape), e


# ---- regular matrices and positive weights, by floats with error bounds


def independent_first(A: Array) -> tuple[Array, int]:
    """Columns in the order of a pivoted QR, and the numerical rank.

    Of very many columns, the pivots of an LU decomposition come first, if these have full rank.
    """
    n, k = A.shape
    if k > MANY * n:
        place, _, U = lu(A.T, p_indices=True, check_finite=False)
        least = np.abs(U.diagonal()).min(initial=np.inf)
        if least > FULL_RANK * np.abs(A).max(initial=0.0):
            return np.argsort(place), n
    R = np.linalg.qr(A, mode="r") if n > MANY * k else A
    R, order = qr(R, mode="r", pivoting=True, check_finite=False)
    pivots = np.abs(R.diagonal())
    return order, int(np.count_nonzero(pivots > RANK * pivots[:1]))


def is_regular(B: Array, error: Values = 0.0) -> bool:
    """Whether a square matrix is proved to be regular for all errors of its entries.

    ``error`` bounds their absolute errors: an array, or one bound for all entries.
    """
    return _inverse(B, np.broadcast_to(error, B.shape)) is not None


def _inverse(B: Array, given: Array) -> tuple[Array, float] | None:
    """An approximate inverse R, and a bound below 1/2 on the largest row sum of ``I - R B``."""
    n = len(B)
    with np.errstate(all="ignore"):
        try:
            R = np.linalg.inv(B)
        except np.linalg.LinAlgError:
            return None
        size = 1 + np.abs(R) @ np.abs(B).sum(axis=1)
        error = np.abs(np.eye(n) - R @ B).sum(axis=1) + _of_sums(n) * size
        error += HIGHER * np.abs(R) @ given.sum(axis=1)
        defect = float(np.max(error, initial=0.0))
    return (R, defect) if defect < 0.5 else None


def _of_sums(n: int) -> float:
    """Error of a sum of n products, in any order, relative to the sum of absolute values."""
    return HIGHER * UNIT * (n + 4)


def solution_is_near(A: Array, q: Array, error: Values = 0.0) -> bool:
    """Whether positive weights near q solve ``A q* = 0``, see ``change_to_solution``.

    The first columns form a square matrix, which has to be regular; only their weights change.

    Parameters
    ----------
    A : ndarray of shape (n_equations, n_weights)
    q : ndarray of shape (n_weights,)
        Positive.
    error : ndarray or float
        Bounds on the errors of A's entries: True is a proof for all errors within them.
    """
    return change_to_solution(A, q, error) < q[: len(A)].min(initial=np.inf)


def change_to_solution(A: Array, q: Array, error: Values = 0.0) -> float:
    """Bound on the change of the first weights with which ``A q* = 0``, by Krawczyk's argument.

    The first columns form a square matrix B. With ``R B`` near I, the change is at most
    ``|R A q| / (1 - |I - R B|)``; infinite: B is not proved to be regular.
    """
    n = len(A)
    wide = Extended
    given = np.broadcast_to(error, A.shape)
    found = _inverse(A[:, :n], given[:, :n])
    if found is None:
        return np.inf
    R, defect = found
    with np.errstate(all="ignore"):
        rest = A.astype(wide) @ q.astype(wide)
        error = HIGHER * (
            float(np.finfo(wide).eps) * (len(q) + 4) * (np.abs(A) @ q) + given @ q
        )
        bound = np.abs(rest).astype(float) * (1 + 2 * UNIT) + error
        change = np.abs(R @ rest.astype(float)) + np.abs(R) @ (
            error + _of_sums(n) * bound
        )
        return HIGHER * float(np.max(change, initial=0.0)) / (1 - defect)


def positive_weights(
    A: Array,
    q: Array,
    *,
    gains: Array | None = None,
    integers_wanted: bool = False,
) -> list[int] | None:
    """Whether positive weights on all columns, near q, solve ``A q* = 0`` exactly.

    Gains only have to be positive in sum: they decide nothing else, so that a proof found in some
    units is found again in others.

    Parameters
    ----------
    A : ndarray of shape (n_equations, n_weights)
        Floats, or integers.
    q : ndarray of shape (n_weights,)
        Positive floats with ``A q`` near 0.
    gains : ndarray of shape (n_weights,) or None
        Floats with ``gains'q* > 0``; None: that is not asked.
    integers_wanted : bool
        If False, an empty list may be returned: weights are proved to exist.

    Returns
    -------
    list of int or None
        None: nothing is proved, or it takes too long.
    """
    A = A[(A != 0).any(axis=1)]
    if not len(A):
        return _gaining(integers(q), gains)
    whole = A.dtype.kind != "f"
    if whole:
        F = floats(A)[0]
    else:
        with np.errstate(all="ignore"):
            e = np.frexp(np.abs(A).max(axis=1, keepdims=True))[1]
            F = np.ldexp(A, -e)
            if not np.array_equal(np.ldexp(F, e), A):
                return None  # small numbers would be lost
    first = np.sign(F[np.arange(len(F)), (F != 0).argmax(axis=1)])
    equations = F * first[:, None] + 0.0
    some = list({row.tobytes(): i for i, row in enumerate(equations)}.values())
    F = F[some]
    A = A[some]
    in_floats = len(F) <= F.shape[1] and not integers_wanted
    small = min(A.shape) <= LARGEST_SYSTEM
    if not (small or in_floats):
        return None
    order, rank = independent_first(F * np.maximum(q, SMALL * q.max()))
    if rank == len(F) and not integers_wanted:
        error = 2 * UNIT * np.abs(F[:, order]) if whole else 0.0
        change = change_to_solution(F[:, order], q[order], error)
        if change < q[order[:rank]].min() and (
            gains is None or _gains_more(gains, q, order[:rank], change)
        ):
            return []
    if not small:
        return None
    first = order[:rank]
    rest = order[rank:]
    x = np.linalg.lstsq(F[:, first], -F[:, rest] @ q[rest], rcond=None)[0]
    if x.min(initial=0.0) < -CLEARLY * np.abs(x).max(initial=0.0):
        return None  # exact integers would be negative as well
    found = _solved(A if whole else rows_of_integers(A), q, order)
    return None if found is None else _gaining(found, gains)


def _gains_more(gains: Array, q: Array, changed: Array, change: float) -> bool:
    """Whether gains are positive in sum, if some weights change by at most ``change``."""
    lost = np.abs(gains[changed]).sum() * change + _of_sums(len(q)) * np.abs(gains) @ q
    return bool(gains @ q > HIGHER * lost)


def _gaining(q: list[int], gains: Array | None) -> list[int] | None:
    """Integer weights; None: their gains are not positive in sum."""
    if gains is None:
        return q
    parts = zip(integers(gains), q, strict=True)
    return q if sum(gain * x for gain, x in parts) > 0 else None


def _solved(M: Array, q: Array, order: Array) -> list[int] | None:
    """Integers near q: dependent columns keep their weights, independent ones are solved for."""
    rows, first = independent(M[:, order])
    rest = np.delete(order, first)
    cols = order[first]
    mantissa, e = np.frexp(q)
    for bits in DIGITS if len(rest) else ():
        short = np.ldexp(np.round(np.ldexp(mantissa, bits)), e - bits)
        kept = np.array(integers(short[rest]), dtype=object)
        right = -(M[np.ix_(rows, rest)].astype(object) @ kept)
        found = solve(M[np.ix_(rows, cols)], right[:, None])
        if found is not None and (found[1] > 0).all():
            x = np.zeros(len(q), dtype=object)
            x[rest] = found[0] * kept
            x[cols] = found[1][:, 0]
            return None if (M.astype(object) @ x).any() else [v // gcd(*x) for v in x]
    return None


# ---- integers


def independent(M: Array) -> tuple[Array, Array]:
    """Lexicographically first rows and columns of a largest block regular modulo a prime.

    Regular modulo a prime implies regular. The rank may be larger; that is unlikely, and not
    excluded.
    """
    R = (M % PRIME).astype(np.int64)
    cols = list[int]()
    order = np.arange(len(M))
    top = 0
    for j in range(R.shape[1] if len(R) else 0):
        at = np.flatnonzero(R[top:, j])
        if not len(at):
            continue
        i = top + int(at[0])
        R[[top, i]] = R[[i, top]]
        order[[top, i]] = order[[i, top]]
        R[top] = R[top] * pow(int(R[top, j]), -1, PRIME) % PRIME
        below = top + 1 + np.flatnonzero(R[top + 1 :, j])
        R[below, j:] = (R[below, j:] - R[below, j, None] * R[top, j:]) % PRIME
        cols.append(j)
        top += 1
        if top == len(R):
            break
    return order[:top], np.array(cols, dtype=int)


def solve(B: Array, right: Array) -> tuple[int, Array] | None:
    """The positive integer D and integers Y with ``B Y = D right``; None: B is singular (Bareiss).

    Parameters
    ----------
    B : ndarray of int, shape (n, n)
    right : ndarray of int, shape (n, m)
    """
    T = np.concatenate([B, right], axis=1).astype(object)
    n = len(B)
    last = 1
    for j in range(n):
        some = [i for i in range(j, n) if T[i, j]]
        if not some:
            return None
        # a pivot row of short integers
        i = min(some, key=lambda i: max(abs(v) for v in T[i]))
        T[[j, i]] = T[[i, j]]
        others = np.arange(n) != j
        T[others] = (T[j, j] * T[others] - T[others, j, None] * T[j]) // last
        last = T[j, j]
    return (last, T[:, n:]) if last > 0 else (-last, -T[:, n:])


def null_space(M: Array, near: Array | None = None) -> tuple[Array, Array] | None:
    """Integer basis (rows) of the null space of M, and the column in which only that row is not 0.

    Parameters
    ----------
    M : ndarray of int, shape (n_rows, n_columns)
        Few rows.
    near : ndarray of shape (n_columns, n_vectors) or None
        Floats that span it; fractions with small denominators near them are tried first.

    Returns
    -------
    tuple or None
        None: nothing is proved, or it takes too long.
    """
    rows, cols = independent(M)
    free = np.setdiff1d(np.arange(M.shape[1]), cols)
    N = np.zeros((len(free), M.shape[1]), dtype=object)
    if not len(free):
        return N, free
    if near is not None and near.shape[1] == len(free):
        N = short_fractions(np.linalg.lstsq(near[free].T, near.T, rcond=None)[0])
        own = N[:, free].diagonal()
        if (
            own.all()
            and (N[:, free] == np.diag(own)).all()
            and not multiplied(M, N.T).any()
        ):
            return N, free
    if len(cols) > LARGEST_SYSTEM:
        return None
    found = solve(M[np.ix_(rows, cols)], -M[np.ix_(rows, free)])
    if found is None:
        return None
    N[:, cols] = found[1].T
    N[:, free] = found[0] * np.eye(len(free), dtype=object)
    N = N // np.array([[gcd(*row)] for row in N], dtype=object)
    return None if multiplied(M, N.T).any() else (N, free)


def short_fractions(T: Array) -> Array:
    """Rows of floats, rounded to fractions with small denominators and scaled to integers."""
    N = np.zeros(T.shape, dtype=object)
    for row, line in zip(N, T, strict=True):
        row[:] = integers([Fraction(float(x)).limit_denominator(SHORT) for x in line])
    return N


def combination(
    M: Array, b: Array, most: int = 1000
) -> tuple[Array | None, Array | None] | None:
    """(q, None) with ``M'q`` along b, q >= 0; or (None, v) with ``M v >= 0 > b v``: Farkas' lemma.

    The simplex method in integers, by Bland's rule; None: not solved within ``most`` steps.
    """
    n, d = M.shape
    T = np.zeros((d + 1, n + d + 1), dtype=object)
    sign = np.where(np.array(b) < 0, -1, 1).astype(object)
    T[:d, :n] = M.T * sign[:, None]
    T[:d, -1] = np.array(b, dtype=object) * sign
    T[np.arange(d), n + np.arange(d)] = 1
    T[d] = -T[:d].sum(axis=0)
    T[d, n:-1] = 0
    basis = np.arange(n, n + d)
    last = 1
    for _ in range(most):
        if T[d, -1] == 0:
            q = np.zeros(n, dtype=object)
            q[basis[basis < n]] = T[:d, -1][basis < n]
            return q, None
        enter = np.flatnonzero(T[d, :n] < 0)
        if not len(enter):
            return None, (T[d, n:-1] - last) * sign
        j = enter[0]
        some = [i for i in range(d) if T[i, j] > 0]
        i = min(some, key=lambda i: (Fraction(T[i, -1], T[i, j]), basis[i]))
        row = T[i].copy()
        p = T[i, j]
        T = (p * T - T[:, j, None] * row) // last
        T[i] = row
        basis[i] = j
        last = p
    return None


# ---- that no predictor separates, or fits


def refuting_weights(
    X: Stored,
    S: Array,
    q: Array,
    *,
    intercept: bool,
    signs: Array | None = None,
    gains: Array | None = None,
    integers_wanted: bool = False,
) -> list[int] | None:
    """Exact weights near q that prove that no predictor satisfies all rows.

    Row r has the value ``v_r = sum_k S_rk (w_k x_r + b_k)``. The system ``v > 0`` is infeasible if
    a nonnegative combination of the rows is exactly 0 (Gordan); ``v >= gains`` is infeasible if
    such a combination has a positive sum of gains (Farkas).

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, d)
        The example of each row.
    S : ndarray of shape (n_rows, k)
        -1, 0 or 1. Two classes: the sign of the class. k classes: 1 for the example's class, -1
        for the other class of the row; one column may be omitted.
    q : ndarray of shape (n_rows,)
        Nonnegative weights.
    intercept : bool
        Whether predictors have an intercept b.
    signs : ndarray of shape (d,) or None
        Sign constraints on the coefficients of a single score: -1, 0 (none) or 1. They are further
        rows ``signs_j w_j >= 0``, whose weights make up for the rest of the combination.
    gains : ndarray of shape (n_rows,) or None
    integers_wanted : bool
        If False, an empty list may be returned: weights are proved to exist.

    Returns
    -------
    list of int, or None
        One weight per row; None: nothing is proved, or it takes too long.
    """
    for least in NEGLIGIBLE:
        some = np.flatnonzero(q > least * q.max(initial=0.0))
        if not len(some) or (
            gains is not None and not 0 < gains[some] @ q[some] < np.inf
        ):
            return None
        Z = X[some]
        if signs is None and sp.issparse(Z):
            Z = Z[:, np.unique(Z.nonzero()[1])]
        if Z.shape[0] * Z.shape[1] * S.shape[1] > MOST_NUMBERS:
            return None
        Z = dense(Z).astype(float)
        x = Z if signs is not None else _without_offsets(Z, intercept)
        x = np.column_stack([x, np.ones(len(x))]) if intercept else x
        A = np.einsum("rk,rd->kdr", S[some], x).reshape(-1, len(some))
        w = q[some]
        gain = None if gains is None else gains[some]
        if signs is not None:
            bound = np.flatnonzero(signs)
            units = np.exp2(np.frexp(np.abs(Z).max(axis=0))[1])[bound]
            lacking = np.maximum(-signs[bound] * (A @ w)[bound] / units, 0.0)
            E = np.zeros((len(A), len(bound)))
            E[bound, np.arange(len(bound))] = signs[bound] * units
            A = np.hstack([A, E[:, lacking > 0]])
            w = np.append(w, lacking[lacking > 0])
            gain = None if gain is None else np.append(gain, 0.0 * w[len(gain) :])
        found = positive_weights(A, w, gains=gain, integers_wanted=integers_wanted)
        if found is not None:
            # rows of signs have weights as well, which come after these
            whole = dict(zip(some.tolist(), found, strict=False))
            return [whole.get(r, 0) for r in range(len(q))] if found else []
    return None


def _without_offsets(X: Array, intercept: bool) -> Array:
    """Features after exact, invertible changes: two-valued to 0 and 1, nearly constant shifted."""
    low = X.min(axis=0)
    high = X.max(axis=0)
    base = low if intercept else np.zeros(len(low))
    other = np.where(high > base, high, low)
    X = np.where(((base == X) | (other == X)).all(axis=0), base != X, X)
    if not intercept:
        return X
    low = X.min(axis=0)
    high = X.max(axis=0)
    near = np.where(low > 0, high <= 2 * low, (high < 0) & (low >= 2 * high))
    return np.asarray(X - np.where(near, low, 0.0))
