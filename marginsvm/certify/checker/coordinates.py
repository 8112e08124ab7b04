"""Rows in coordinates in which units and correlations of columns do not matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr, solve_triangular

from marginsvm.certify.checker.modular import are_exact, independent_columns
from marginsvm.certify.checker.precise import product
from marginsvm.certify.checker.triangular import triangular_factor

UNIT_ROUNDOFF = 2.0**-53
_PERHAPS = 1e-5  # columns of which no more than this part is new are looked at in twice the digits
# Units in the last place of its terms, by which a sum of columns may miss another.
_ULPS_OF_SUM = 32.0
_NO_PART = 1e-15  # part of a column of rounded numbers that is rounding in any case
_FACTOR_CORRECTIONS = 3  # of the factors of such a sum
_WELL_CONDITIONED = 1e4  # condition up to which products of float64 have the digits needed
ZERO = 1e-11  # of rows of unit length: no longer than this counts as 0


class Coordinates(NamedTuple):
    """Rows in coordinates in which they are as round as can be: ``Z = A M`` up to row lengths.

    Attributes
    ----------
    Z : ndarray of shape (n_rows, k)
        Rows of unit length, or of zeros.
    M : ndarray of shape (n_columns, k)
        Lines of columns that are not identified are 0.
    identified : ndarray of int
    lengths : ndarray of shape (n_rows,)
        That rows of A had.
    """

    Z: NDArray
    M: NDArray
    identified: NDArray
    lengths: NDArray


def coordinates(A: NDArray) -> Coordinates:
    """Coordinates of rows in which units and correlations of columns do not matter."""
    units = power_of_two(A.T)
    scaled = A / units
    of_rows = power_of_two(scaled)
    scaled /= of_rows[:, None]
    R = triangular_factor(scaled)
    identified = _identified(A, scaled, R)
    if len(identified) < A.shape[1]:
        R, scaled = triangular_factor(R[:, identified]), scaled[:, identified]
    M = _inverse(R)
    Z, condition = scaled @ M, _condition(R, M)
    if condition > _WELL_CONDITIONED:
        Z = product(scaled, M)
        R = triangular_factor(Z)
        if np.all(R.diagonal() != 0.0):
            M = M @ _inverse(R)
            Z = product(scaled, M)
    norms = row_lengths(Z)
    every = np.zeros((A.shape[1], len(identified)))
    every[identified] = M / units[identified, None]
    return Coordinates(Z / norms[:, None], every, identified, of_rows * norms)


def _inverse(R: NDArray) -> NDArray:
    return np.asarray(solve_triangular(R, np.eye(len(R))))


def _condition(R: NDArray, inverse: NDArray) -> float:
    return float(np.linalg.norm(R) * np.linalg.norm(inverse)) if len(R) else 1.0


def identified_columns(A: NDArray) -> NDArray:
    """Indices of the columns that are not combinations of those before them, up to rounding."""
    scaled = A / power_of_two(A.T)
    scaled /= power_of_two(scaled)[:, None]
    return _identified(A, scaled, triangular_factor(scaled))


def _identified(A: NDArray, scaled: NDArray, R: NDArray) -> NDArray:
    """As in R, the later ones of collinear columns are left out."""
    regular = R.shape[0] == R.shape[1] and np.all(R.diagonal() != 0.0)
    if regular and _condition(R, _inverse(R)) < _WELL_CONDITIONED:
        return np.arange(len(R))
    room = min(R.shape)
    Q, kept = np.zeros((room, R.shape[0])), list[int]()
    for j, column in enumerate(R.T):
        v, length = column.copy(), float(np.sqrt(column @ column))
        for _ in range(2):
            v -= (Q[: len(kept)] @ v) @ Q[: len(kept)]
        rest = float(np.sqrt(v @ v))
        if len(kept) == room or length == 0.0:
            continue
        nearly = rest <= _PERHAPS * length
        if rest == 0.0 or (nearly and _depends(A, scaled, R, kept, j, rest / length)):
            continue
        Q[len(kept)] = v / rest
        kept.append(j)
    return np.array(kept, dtype=int)


def _depends(A: NDArray, scaled: NDArray, R: NDArray, kept: list[int], j: int, rest: float) -> bool:
    """Whether a column is a sum of others; if numbers may be rounded, up to their rounding."""
    both = [*kept, j]
    if are_exact(A[:, both]).all():
        return len(independent_columns(A[:, both])) < len(both)
    if rest <= _NO_PART:
        return True
    factors = lstsq(R[:, kept], R[:, j], check_finite=False)[0]
    least = _ULPS_OF_SUM * UNIT_ROUNDOFF * np.abs(factors).max(initial=0.0)
    some = [k for k, factor in zip(kept, factors, strict=True) if abs(factor) > least]
    return _is_sum(scaled, R, some, j) or _is_sum(scaled, R, kept, j)


def _is_sum(A: NDArray, R: NDArray, some: list[int], j: int) -> bool:
    """Whether a column is a sum of others, up to rounding of the terms in each row."""
    x, factors = A[:, [*some, j]], lstsq(R[:, some], R[:, j], check_finite=False)[0]
    for _ in range(_FACTOR_CORRECTIONS):  # each row is weighted by what its terms may be rounded
        rest, terms = _rest(x, factors)
        unit = np.where(terms > 0.0, terms, 1.0)
        factors = factors + lstsq(A[:, some] / unit[:, None], rest / unit, check_finite=False)[0]
    rest, terms = _rest(x, factors)
    return bool(np.all(np.abs(rest) <= _ULPS_OF_SUM * UNIT_ROUNDOFF * terms))


def _rest(x: NDArray, factors: NDArray) -> tuple[NDArray, NDArray]:
    """What a sum of columns misses of the last one, and the sum of absolute values of the terms."""
    weights = np.append(-factors, 1.0)
    return product(x, weights[:, None])[:, 0], np.abs(x) @ np.abs(weights)


def null_space(T: NDArray) -> NDArray:
    """Orthonormal vectors that span the null space of rows of unit length."""
    Q, r, _ = qr(triangular_factor(T).T, pivoting=True)
    return np.asarray(Q[:, int(np.count_nonzero(np.abs(r.diagonal()) > ZERO)) :])


def power_of_two(A: NDArray) -> NDArray:
    """For each row, the power of two next to its largest entry; 1 for rows of zeros."""
    top = np.maximum(A.max(axis=1, initial=0.0), -A.min(axis=1, initial=0.0))
    return np.asarray(np.ldexp(1.0, np.frexp(top)[1]) * (top > 0.0) + (top == 0.0))


def row_lengths(A: NDArray, unit: float = 1.0) -> NDArray:
    """Lengths of the rows; ``unit`` for rows of zeros."""
    norms = np.sqrt(np.einsum("ij,ij->i", A, A))
    return np.where(norms > 0.0, norms, unit)
