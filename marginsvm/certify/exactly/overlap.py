"""Whether no predictor separates the classes at all, which no small number proves.

No predictor has a positive margin on all rows exactly if weights ``q* >= 0``, not all zero, solve
``M q* = 0`` exactly (Gordan's theorem); the columns of M are the rows of the problem: examples
times the sign of their class, or held against another class, as they were given. Floats ``q`` with
a small ``M q`` only prove that no predictor has a large margin. Whether exact weights exist near
them is decided here, in floats with rigorous error bounds (``krawczyk.py``) where the support of q
spans the space, else in integers (``elimination.py``).

Fits use these three files as well; ``check_separability`` also those that split rows, with signs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import pairwise
from math import fsum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.exactly.elimination import Effort, positive_solution
from marginsvm.certify.exactly.krawczyk import independent_first, positive_solution_is_near

# Weights up to this part of the largest may be rounding: both are tried.
_ROUNDED_WEIGHTS = 1e-13, 1e-8
_MAX_ENTRIES = 2**24  # of M, which is written out as a dense matrix (128 MiB)
_SMALL_FACTOR = 0.01  # a factor below this part of the largest is taken for rounding of 0
_LEAST_PREFERENCE = 1e-3  # weights below this part of the largest are solved for equally late


def nothing_separates(
    X: Any,
    codes: NDArray,
    n_classes: int,
    q: NDArray,
    *,
    intercept: bool,
    effort: Effort | None = None,
) -> bool:
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
    effort : Effort or None
        To which is added what the proof takes.

    Returns
    -------
    bool
        True is a proof. False says nothing.
    """
    if len(codes) == 0:
        return False
    some = _candidates(X, codes, n_classes, q, intercept=intercept)
    return any(has_exact_weights(M, of_rows, effort) for _, M, of_rows in some)


def integer_weights(
    X: Any, codes: NDArray, n_classes: int, q: NDArray, *, intercept: bool
) -> tuple[tuple[NDArray, ...], list[int]] | None:
    """Some rows, and integers as their weights, for which the combination is exactly zero.

    Parameters
    ----------
    X, codes, n_classes, q, intercept
        As there.

    Returns
    -------
    None: none were found. Else:

    rows : tuple of ndarray
        Examples, and columns of q.
    weights : list of int
        Positive.
    """
    for rows, M, of_rows in _candidates(X, codes, n_classes, q, intercept=intercept):
        solved = _ordered(M, of_rows)
        if solved is not None:
            A, short, order, rank = solved
            weights = _integers(A, short, rank) if len(A) else [1] * len(short)
            if weights is not None:
                return tuple(part[order] for part in rows), weights
    return None


def _candidates(
    X: Any, codes: NDArray, n_classes: int, q: NDArray, *, intercept: bool
) -> Iterator[tuple[tuple[NDArray, ...], NDArray, NDArray]]:
    """Rows with weight, their matrix M, and their weights: of all, and without the small ones."""
    q = q.reshape(len(codes), -1)
    if n_classes > 2:
        q = np.where(np.arange(n_classes) == codes[:, None], 0.0, q)  # an own class is no row
    q = q / (q.max(initial=0.0) or 1.0)
    supports = [np.nonzero(q > share) for share in _ROUNDED_WEIGHTS]
    if len(supports[0][0]) == len(supports[1][0]):  # they are the same
        supports = supports[:1]
    for rows in supports:
        M = _matrix(X, codes, n_classes, rows, intercept) if len(rows[0]) else None
        if M is not None:
            yield rows, M, q[rows]


def nothing_separates_with_signs(
    X: Any,
    codes: NDArray,
    q: NDArray,
    signs: NDArray,
    *,
    intercept: bool,
    effort: Effort | None = None,
) -> bool:
    """The same of two classes, for predictors whose coefficients have given signs.

    A sign is one more row: the value of a predictor on ``s_j e_j``, to which an intercept adds
    nothing, must not be below 0. Its weight is what the combination of the examples lacks. With
    weights on such rows alone, everything that is allowed would have to have the value 0 on some;
    so examples must have weight.

    Parameters
    ----------
    X, codes, q, intercept, effort
        As there.
    signs : ndarray of shape (d,)
        -1, 0 for any sign, or 1.
    """
    examples = np.flatnonzero(q)
    bound = np.flatnonzero(signs)
    if len(bound) * X.shape[1] > _MAX_ENTRIES:  # each sign is a row of as many entries as features
        return False
    Z = _written_out(X, examples, every=True) if len(examples) else None
    if Z is None:
        return False
    y, q = np.where(codes[examples] == 1, 1.0, -1.0), q.ravel()[examples]
    unit = np.exp2(np.frexp(np.abs(Z).max(axis=0))[1])[bound]  # so that its weight is like theirs
    lacking = np.maximum(-signs[bound] * ((q * y) @ Z)[bound] / unit, 0.0)
    of_signs = np.zeros((len(bound), Z.shape[1]))
    of_signs[np.arange(len(bound)), bound] = signs[bound] * unit
    ones = np.append(np.ones(len(Z)), np.zeros(len(bound)))[:, None]
    both = np.hstack([np.vstack([Z, of_signs]), ones[:, : int(intercept)]])
    codes = np.append(codes[examples], np.ones(len(bound), int))
    q = np.append(q, lacking)
    return nothing_separates(both, codes, 2, q, intercept=False, effort=effort)


def distinct(X: Any) -> sp.csr_array:
    """Represent examples by indicators of equality: one feature for each distinct example.

    The values of a kernel are rounded. All that is known exactly of examples in its feature space
    is which of them are equal.
    """
    numbers: dict[Any, int] = {}
    of = [numbers.setdefault(key, len(numbers)) for key in _keys(X)]
    return sp.csr_array((np.ones(len(of)), of, np.arange(len(of) + 1)), (len(of), len(numbers)))


def _keys(X: Any) -> Iterator[Any]:
    """What is equal for equal examples only; objects without a hash only equal themselves."""
    if X.ndim == 1:
        yield from (x if isinstance(x, Hashable) else id(x) for x in X)
        return
    X = sp.csr_array(X if sp.issparse(X) else np.asarray(X, dtype=np.float64)).astype(np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    for a, b in pairwise(X.indptr):
        yield X.indices[a:b].tobytes(), X.data[a:b].tobytes()


def _matrix(
    X: Any, codes: NDArray, n_classes: int, rows: tuple[NDArray, ...], intercept: bool
) -> NDArray | None:
    """The equations that weights on some rows must solve; None: they are too many.

    ``rows`` are the examples, and the columns of q that belong to them.
    """
    examples, columns = rows
    Z = _written_out(X, examples)
    if Z is None:
        return None
    Z = _with_indicators(Z, intercept)
    if intercept:
        Z = np.column_stack([_shifted(Z), np.ones(len(Z))])
    Z = Z[:, Z.any(axis=0)]
    Z = Z[:, _without_sums_of_others(Z)]
    if n_classes == 2:
        return np.asarray(Z.T * np.where(codes[examples] == 1, 1.0, -1.0))
    return _against_classes(Z, codes[examples], columns)


def _written_out(X: Any, examples: NDArray, *, every: bool = False) -> NDArray | None:
    """Some examples; None where they are too many.

    Features that none of them has are left out, unless ``every`` one is asked for.
    """
    if sp.issparse(X) and not every:
        X = sp.csr_array(X[examples])
        there = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        X, examples = X[:, there], np.arange(len(examples))
    if len(examples) * X.shape[1] > _MAX_ENTRIES:
        return None
    X = sp.csr_array(X)[examples].toarray() if sp.issparse(X) else np.asarray(X)[examples]
    return np.asarray(X, dtype=np.float64)


def _with_indicators(X: NDArray, intercept: bool) -> NDArray:
    """Write features of two values as 0 and 1: dummies in any units add up exactly then.

    A feature may be multiplied by any number, as weights that cancel it still do. Next to an
    intercept any number may be added as well; without one, 0 must be one of the two values.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    base = low if intercept else np.zeros(len(low))
    other = np.where(high > base, high, low)
    at_base = base == X
    two = np.all(at_base | (other == X), axis=0)
    return np.where(two, ~at_base, X)


def _shifted(X: NDArray) -> NDArray:
    """Shift some features to begin at 0, where that rounds nothing; the intercept makes up for it.

    The difference of two floats is a float if neither is more than twice the other (Sterbenz).
    """
    low, high = X.min(axis=0), X.max(axis=0)
    same_sign = np.sign(low) * np.sign(high) > 0
    near = np.where(low > 0, high <= 2.0 * low, low >= 2.0 * high) & same_sign
    return X - np.where(near, low, 0.0)


def _without_sums_of_others(X: NDArray) -> NDArray:
    """Indices of the features that are not sums or differences of others, exactly.

    Sums are the last of the indicators of a category next to an intercept, copies, and totals. The
    terms may be multiplied by powers of two, which rounds no product.
    """
    scale = np.abs(X).max(axis=0)
    order, rank = independent_first(X / np.where(scale > 0, scale, 1.0))
    chosen, others = order[:rank], order[rank:]
    if len(others) == 0:
        return np.arange(X.shape[1])
    factors = np.linalg.lstsq(X[:, chosen], X[:, others], rcond=None)[0].T
    small = np.abs(factors) < _SMALL_FACTOR * np.abs(factors).max(axis=1, keepdims=True)
    factors[small] = 0.0
    mantissa, exponent = np.frexp(factors)
    powers = np.ldexp(np.round(2.0 * mantissa) / 2.0, exponent)  # the nearest powers of two
    kept = [j for j, f in zip(others, powers, strict=True) if not _is_sum(X[:, j], X[:, chosen], f)]
    return np.sort(np.append(chosen, np.array(kept, dtype=int)))


def _is_sum(x: NDArray, X: NDArray, factors: NDArray) -> bool:
    """Whether ``x = X factors`` without rounding, for factors that are powers of two."""
    few = np.flatnonzero(factors)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = X[:, few] * factors[few]
        if not np.array_equal(products / factors[few], X[:, few]):  # too large, or too small
            return False
    return not any(map(fsum, np.column_stack([-x, products]).tolist()))


def _against_classes(X: NDArray, own: NDArray, other: NDArray) -> NDArray | None:
    """Columns ``x (e_own - e_other)^T``, written out with the classes below each other.

    The last class is left out: its entries are the negated sum of the others'. None: they are too
    many.
    """
    classes, codes = np.unique(np.concatenate([own, other]), return_inverse=True)
    (n, d), each = X.shape, np.arange(len(X))
    if len(classes) * d * n > _MAX_ENTRIES:
        return None
    M = np.zeros((len(classes), d, n))
    M[codes[:n], :, each] = X
    M[codes[n:], :, each] = -X
    return M[:-1].reshape(-1, n)


def has_exact_weights(M: Any, q: NDArray, effort: Effort | None = None) -> bool:
    """Whether some q*, all of whose weights are positive, solves ``M q* = 0``; True is a proof.

    Callers rely on all of them: rows with weight are said to overlap, and a gain to be positive.
    """
    solved = _ordered(M, q)
    if solved is None:
        return False
    A, q, _, rank = solved
    if len(A) == 0:  # the examples are all zeros: any weights solve it
        return True
    near = rank == len(A) and positive_solution_is_near(A, q)
    return near or bool(_integers(A, q, rank, effort))


def _ordered(M: Any, q: NDArray) -> tuple[NDArray, NDArray, NDArray, int] | None:
    """Equations and weights, those to be solved for first, their order, and how many these are.

    None where they are too many, or cannot be scaled without rounding.
    """
    if sp.issparse(M):
        M = M[np.diff(M.indptr) > 0]
    if M.shape[0] * len(q) > _MAX_ENTRIES:
        return None
    A = _scaled(M.toarray() if sp.issparse(M) else M)
    if A is None:
        return None
    if len(A) == 0:
        return A, q, np.arange(len(q)), 0
    A = _distinct_equations(A)
    order, rank = independent_first(A * np.maximum(q, _LEAST_PREFERENCE * q.max()))
    return A[:, order], q[order], order, rank


def _integers(A: NDArray, q: NDArray, rank: int, effort: Effort | None = None) -> list[int] | None:
    """Positive integers that solve equations, whose first columns are independent."""
    equations = independent_first(A[:, :rank].T)[0][:rank]
    return positive_solution(A, q, equations.tolist(), effort)


def _scaled(A: NDArray) -> NDArray | None:
    """Rows that are not 0, scaled by powers of two to entries up to 1; None if that rounds."""
    top = np.abs(A).max(axis=1, initial=0.0)
    A = A[top > 0]
    exponents = np.frexp(top[top > 0])[1][:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.ldexp(A, -exponents)
        return scaled if np.array_equal(np.ldexp(scaled, exponents), A) else None


def _distinct_equations(A: NDArray) -> NDArray:
    """Leave one of those rows that are equal or opposite to each other."""
    first = A[np.arange(len(A)), (A != 0).argmax(axis=1)]
    A = A * np.sign(first)[:, None] + 0.0  # which makes 0 of -0
    return A[list({row.tobytes(): i for i, row in enumerate(A)}.values())]
