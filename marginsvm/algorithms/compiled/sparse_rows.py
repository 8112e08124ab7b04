"""Coordinate ascent and conjugate gradients on sparse rows, compiled when first used."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from marginsvm._compiling import compiled, parts
from marginsvm._typing import Array
from marginsvm.kernel_matrix.compiled_rows import add_multiple, dot, inlined

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}  # nothing here allocates
_part, _loop = parts(**_OPTIONS), compiled(**_OPTIONS)
_B, _ACTIVE, _LIMIT, _WORST, _SETTLED = range(5)  # the numbers of a state, as they change


class SparseRowWeights(NamedTuple):
    """Where coordinate ascent is; arrays are updated in place.

    Attributes
    ----------
    u : ndarray of shape (n,)
        Weights of the rows.
    w : ndarray of shape (d,)
        Their image, ``sum u_i y_i x_i``.
    order : ndarray of shape (n,)
        Rows in the order of the last epoch, those that are left out last.
    b : float
        The multiplier of the balance: an intercept.
    active : int
        Number of rows that are not left out.
    limit : float
        Force from which a row without weight is left out.
    seed : ndarray of uint64, shape (1,)
        State of the generator that shuffles rows.
    worst : float
        Largest violation of a condition of optimality (in units of the margin 1) that the last
        epoch met.
    settled : bool
        All rows were looked at, and are within the tolerance.
    """

    u: Array
    w: Array
    order: Array
    b: float
    active: int
    limit: float
    seed: Array
    worst: float
    settled: bool

    @classmethod
    def start(cls, n: int, d: int) -> SparseRowWeights:
        """No weights."""
        u, w, order, seed = np.zeros(n), np.zeros(d), np.arange(n), np.ones(1, np.uint64)
        return cls(u, w, order, 0.0, n, np.inf, seed, np.inf, False)


@inlined
def shuffle(order: Array, n: int, seed: Array) -> None:
    """Shuffle the first n entries, by a generator whose state is updated in place."""
    state = seed[0]
    for i in range(n):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = i + int((state >> np.uint64(33)) % np.uint64(n - i))
        order[i], order[j] = order[j], order[i]
    seed[0] = state


@_loop
def _ascend(
    indptr, indices, values, y, curvature, slack, penalty, u, w, order, seed, numbers, epochs, tol
):  # fmt: skip
    """Epochs of ``coordinate_ascent``; the numbers of the state are an array."""
    n, b, active, limit = len(y), numbers[_B], int(numbers[_ACTIVE]), numbers[_LIMIT]
    worst, settled = numbers[_WORST], False
    for _ in range(epochs):
        shuffle(order, active, seed)
        worst, k = 0.0, 0
        while k < active:
            i = order[k]
            start, stop = indptr[i], indptr[i + 1]
            g = y[i] * (b + dot(indices, values, start, stop, w)) - 1.0 + slack[i] * u[i]
            if u[i] > 0.0 or g < 0.0:
                worst = max(worst, abs(g))
                new = max(0.0, u[i] - g / curvature[i]) if curvature[i] > 0.0 else 1.0
                step = (new - u[i]) * y[i]
                u[i] = new
                b += penalty * step
                add_multiple(indices, values, start, stop, step, w)
            elif g > limit:
                active -= 1
                order[k], order[active] = order[active], order[k]
                continue
            k += 1
        limit = worst
        b += penalty * _inner(y, u)
        if worst <= tol:
            settled = active == n
            if settled:
                break
            active, limit = n, np.inf
    numbers[_B], numbers[_ACTIVE], numbers[_LIMIT] = b, active, limit
    numbers[_WORST], numbers[_SETTLED] = worst, settled


@_part
def _inner(y: Array, u: Array) -> float:
    total = 0.0
    for i in range(len(y)):
        total += y[i] * u[i]
    return total


def coordinate_ascent(
    indptr: Array,
    indices: Array,
    values: Array,
    y: Array,
    curvature: Array,
    slack: Array,
    penalty: float,
    at: SparseRowWeights,
    epochs: int,
    tol: float,
) -> SparseRowWeights:
    """``min u'(G + slack)u/2 - 1'u, u >= 0``, and ``y'u = 0`` by the method of multipliers.

    The multiplier moves with every step (by ``penalty``) and once more with every epoch;
    penalty 0 leaves the balance out. Rows that look settled at zero are left out until the
    rest is within tol; then all are looked at again. Epochs go on from where others ended,
    which is updated and no longer to be used.
    """
    numbers = np.array([at.b, at.active, at.limit, at.worst, 0.0])
    _ascend(
        indptr, indices, values, y, curvature, slack, penalty,
        at.u, at.w, at.order, at.seed, numbers, epochs, tol,
    )  # fmt: skip
    b, active, limit, worst, settled = numbers.tolist()
    return SparseRowWeights(
        at.u, at.w, at.order, b, int(active), limit, at.seed, worst, settled > 0.0
    )


@_part
def _adjoint(
    starts: Array, stops: Array, indices: Array, values: Array, y: Array, u: Array, w: Array
) -> None:
    """Set w to ``sum u_i y_i x_i``."""
    for j in range(len(w)):
        w[j] = 0.0
    for i in range(len(y)):
        if u[i] != 0.0:
            add_multiple(indices, values, starts[i], stops[i], u[i] * y[i], w)


@_loop
def _solve(
    starts, stops, indices, values, y, slack, inverse, total, tol, most_lost, max_products,
    u, residual, p, r, Hp, w, image,
):  # fmt: skip
    """``conjugate_gradients`` from a balanced u; the last arrays are updated."""
    n, rz, count = len(y), 1.0, 0
    while True:  # the first product is that of u, the others those of search directions
        search, step, curvature = p if count else u, 1.0, 0.0
        _adjoint(starts, stops, indices, values, y, search, w)
        count += 1
        for i in range(n):
            Hp[i] = y[i] * dot(indices, values, starts[i], stops[i], w) + slack[i] * search[i]
            curvature += p[i] * Hp[i]
        if count > 1:
            step = rz / curvature if curvature > 0.0 else 0.0  # rows that are zero
        for j in range(len(w)):
            image[j] += step * w[j]
        b, old, rz, worst, lost = 0.0, rz, 0.0, 0.0, 0.0
        for i in range(n):
            u[i] += step * p[i]
            residual[i] -= step * Hp[i]
            b += y[i] * inverse[i] * residual[i] / total
        for i in range(n):
            r[i] = residual[i] - b * y[i]
            rz += r[i] * inverse[i] * r[i]
            worst = max(worst, abs(r[i]))
            lost += r[i] * r[i] / slack[i] if slack[i] > 0.0 else np.inf
        if worst <= tol or lost <= most_lost or count >= max_products:
            break
        for i in range(n):
            p[i] = inverse[i] * r[i] + (rz / old * p[i] if count > 1 else 0.0)
    return b, count


def conjugate_gradients(
    starts: Array,
    stops: Array,
    indices: Array,
    values: Array,
    y: Array,
    slack: Array,
    inverse: Array,
    u: Array,
    balanced: bool,
    tol: float,
    most_lost: float,
    max_products: int,
    d: int,
) -> tuple[Array, Array, float, int]:
    """``(G + slack) u + b y = 1, y'u = 0`` for the rows ``y_i x_i``, u being a first guess.

    The entries of row i are those from ``starts[i]`` to ``stops[i]``, so that the rows may be
    some of a matrix that is not copied.
    ``inverse`` preconditions. The search stays balanced: residuals are projected, in the
    preconditioner's metric. It ends where none exceeds ``tol``, or where the sum of their squares,
    each over its slack, is at most ``most_lost``. Gives u, ``sum u_i y_i x_i``, b and the number of
    products.
    """
    n, w, image = len(y), np.empty(d), np.zeros(d)
    total = float(np.sum(inverse)) if balanced else np.inf
    u = u - inverse * y * (np.sum(y * u) / total)
    residual, p, r, Hp = np.ones(n), np.zeros(n), np.empty(n), np.empty(n)
    b, count = _solve(
        starts, stops, indices, values, y, slack, inverse, total, tol, most_lost, max_products,
        u, residual, p, r, Hp, w, image,
    )  # fmt: skip
    return u, image, b, count
