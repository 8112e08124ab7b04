"""Which rows can be positive, and which have to cancel: one loop of interior points.

For rows T there are z = T w >= 0 and q >= 0 with T^T q = 0 and z + q > 0 (Goldman and Tucker). The
path of the self-dual embedding ``z = T w + theta r, T^T q = theta s`` ends in such a pair: the rows
of which z is the larger one are separated, and the others overlap.

References
----------
A. J. Goldman, A. W. Tucker. Theory of linear programming. In Linear Inequalities and Related
Systems, 1956.

S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM Journal on
Optimization 1992.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

_PARTITION_STEPS = 60  # 12 to 27 are usual
_BOUNDARY_SHARE = 0.99  # share of the way to the boundary: nearer to it, weights lose digits
_LEAST_AIM, _MOST_AIM = 1e-4, 0.9  # share of complementarity that a step aims at
_SOLVED_PRODUCT = 1e-20  # mean product of q and z at which both have their digits
_CLEAR_RATIO = 1e10  # ratio of q and z, on all rows, at which no step is needed any more
_ALL_POSITIVE = 1e-3  # entries of q, or of z, above which all are positive; their mean is about 1
_LIFTS = 1e-14, 1e-10, 1e-6  # of the diagonal, so that a system can be factorized


class Pair(NamedTuple):
    """A strictly complementary pair, up to rounding.

    Attributes
    ----------
    w : ndarray of shape (k,)
    z, q : ndarray of shape (n,)
    """

    w: NDArray
    z: NDArray
    q: NDArray


def partition(T: NDArray) -> Pair:
    """The pair of rows of unit length, of which all columns are independent.

    Parameters
    ----------
    T : ndarray of shape (n, k)
    """
    n, k = T.shape
    q, z, w = np.ones(n), np.ones(n), np.zeros(k)
    for _ in range(_PARTITION_STEPS):
        rest, sums, mu = z - T @ w, -(T.T @ q), float(q @ z) / n
        if mu < _SOLVED_PRODUCT or (np.maximum(q, z) >= _CLEAR_RATIO * np.minimum(q, z)).all():
            break
        factor = _factor(T, q / z)
        if factor is None:
            break

        def step(share: float, second: NDArray | float) -> tuple[NDArray, NDArray, NDArray]:
            aim = (1.0 - share) * mu - q * z - second  # noqa: B023
            dw = cho_solve(factor, T.T @ ((aim + share * q * rest) / z) - share * sums)  # noqa: B023
            dz = T @ dw - share * rest  # noqa: B023
            return dw, dz, (aim - q * dz) / z  # noqa: B023

        dw, dz, dq = step(1.0, 0.0)
        ended = _ended(w + dw, -z * dq / q, -q * dz / z)
        if ended is not None:
            return ended
        left = 1.0 - min(_longest(q, dq), _longest(z, dz))
        left = min(max(left**2 * min(left, 0.5), _LEAST_AIM), _MOST_AIM)
        dw, dz, dq = step(1.0 - left, dq * dz)
        t = _BOUNDARY_SHARE * min(_longest(q, dq), _longest(z, dz))
        w, z, q = w + t * dw, z + t * dz, q + t * dq
        unit = (q.sum() + z.sum()) / (2.0 * n)
        w, z, q = w / unit, z / unit, q / unit
    return Pair(w, z, q)


def _ended(w: NDArray, z: NDArray, q: NDArray) -> Pair | None:
    """The pair, if a whole step towards ``q z = 0`` leaves all of z, or all of q, positive.

    It ends with ``z = T w`` and ``T^T q = 0``.
    """
    if q.min() > _ALL_POSITIVE:
        return Pair(0.0 * w, 0.0 * z, q)
    return Pair(w, z, 0.0 * q) if z.min() > _ALL_POSITIVE else None


def _longest(x: NDArray, dx: NDArray) -> float:
    """The step at which x + t dx first reaches 0; 1 at most."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return float(np.where(dx < 0.0, -x / dx, 1.0).min(initial=1.0))


def _factor(T: NDArray, weight: NDArray) -> tuple[NDArray, bool] | None:
    half = T * np.sqrt(weight)[:, None]
    return lifted_factor(half.T @ half)


def lifted_factor(H: NDArray) -> tuple[NDArray, bool] | None:
    """The Cholesky factor of a matrix, whose diagonal is raised until it has one."""
    diagonal = H.diagonal().copy()
    for lift in _LIFTS:
        H.flat[:: len(H) + 1] = diagonal * (1.0 + lift * len(H))
        try:
            return cho_factor(H, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
    return None
