"""Coordinate ascent and conjugate gradients on sparse rows, compiled when first used."""

from __future__ import annotations

import numpy as np

from marginsvm._compiling import compiled
from marginsvm._typing import Array

_index = np.uint64  # unsigned: no test for an index that counts from the end


@compiled()
def _shuffle(order: Array, n: int, state: np.uint64) -> np.uint64:
    """Shuffle the first n entries, by a generator whose state is passed on."""
    for i in range(n):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = i + int((state >> np.uint64(33)) % np.uint64(n - i))
        order[i], order[j] = order[j], order[i]
    return state


@compiled()
def _dot(indices: Array, values: Array, start: int, stop: int, w: Array) -> float:
    total = 0.0
    for t in range(_index(start), _index(stop)):
        total += w[_index(indices[t])] * values[t]
    return total


@compiled()
def _add(indices: Array, values: Array, start: int, stop: int, step: float, w: Array) -> None:
    for t in range(_index(start), _index(stop)):
        w[_index(indices[t])] += step * values[t]


@compiled()
def coordinate_ascent(
    indptr: Array,
    indices: Array,
    values: Array,
    y: Array,
    curvature: Array,
    slack: Array,
    penalty: float,
    max_epochs: int,
    tol: float,
    d: int,
) -> Array:
    """``min u'(G + slack)u/2 - 1'u, u >= 0``, and ``y'u = 0`` by the method of multipliers.

    The multiplier moves with every step (by ``penalty``) and once more with every epoch;
    penalty 0 leaves the balance out. Rows that look settled at zero are left out until the
    rest is within tol; then all are looked at again.
    """
    n = len(y)
    u, w, b = np.zeros(n), np.zeros(d), 0.0
    order = np.arange(n)
    active, limit, state = n, np.inf, np.uint64(1)
    for _ in range(max_epochs):
        state = _shuffle(order, active, state)
        worst, k = 0.0, 0
        while k < active:
            i = order[k]
            start, stop = indptr[i], indptr[i + 1]
            g = y[i] * (b + _dot(indices, values, start, stop, w)) - 1.0 + slack[i] * u[i]
            if u[i] > 0.0 or g < 0.0:
                worst = max(worst, abs(g))
                new = max(0.0, u[i] - g / curvature[i]) if curvature[i] > 0.0 else 1.0
                step = (new - u[i]) * y[i]
                u[i] = new
                b += penalty * step
                _add(indices, values, start, stop, step, w)
            elif g > limit:
                active -= 1
                order[k], order[active] = order[active], order[k]
                continue
            k += 1
        limit = worst
        b += penalty * np.sum(y * u)
        if worst <= tol:
            if active == n:
                break
            active, limit = n, np.inf
    return u


@compiled()
def _adjoint(indptr: Array, indices: Array, values: Array, y: Array, u: Array, w: Array) -> None:
    """Set w to ``sum u_i y_i x_i``."""
    w[:] = 0.0
    for i in range(len(y)):
        if u[i] != 0.0:
            _add(indices, values, indptr[i], indptr[i + 1], u[i] * y[i], w)


@compiled(error_model="numpy")
def conjugate_gradients(
    indptr: Array,
    indices: Array,
    values: Array,
    y: Array,
    slack: Array,
    inverse: Array,
    u: Array,
    balanced: bool,
    tol: float,
    max_products: int,
    d: int,
) -> tuple[Array, Array, float, int]:
    """``(G + slack) u + b y = 1, y'u = 0`` for the rows ``y_i x_i``, u being a first guess.

    ``inverse`` preconditions. The search stays balanced: residuals are projected, in the
    preconditioner's metric. Gives u, ``sum u_i y_i x_i``, b and the number of products.
    """
    n, w = len(y), np.zeros(d)
    residual, p, r, Hp = np.ones(n), np.zeros(n), np.empty(n), np.empty(n)
    total = np.sum(inverse) if balanced else np.inf
    step, rz, b, count = 1.0, 0.0, np.sum(y * u) / total, 0
    u = u - inverse * y * b
    while True:  # the first product is that of u, the others those of search directions
        search = p if count else u
        _adjoint(indptr, indices, values, y, search, w)
        count += 1
        curvature = 0.0
        for i in range(n):
            Hp[i] = y[i] * _dot(indices, values, indptr[i], indptr[i + 1], w) + slack[i] * search[i]
            curvature += p[i] * Hp[i]
        if count > 1:
            step = rz / curvature if curvature > 0.0 else 0.0  # rows that are zero
        b, old, rz, worst = 0.0, rz, 0.0, 0.0
        for i in range(n):
            u[i] += step * p[i]
            residual[i] -= step * Hp[i]
            b += y[i] * inverse[i] * residual[i] / total
        for i in range(n):
            r[i] = residual[i] - b * y[i]
            rz += r[i] * inverse[i] * r[i]
            worst = max(worst, abs(r[i]))
        if worst <= tol or count >= max_products:
            break
        for i in range(n):
            p[i] = inverse[i] * r[i] + (rz / old * p[i] if count > 1 else 0.0)
    _adjoint(indptr, indices, values, y, u, w)
    return u, w, b, count
