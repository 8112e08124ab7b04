"""Softmax weights of two classes and their products with dense examples, by one compiled pass.

Weights are relative to the largest so far, and sums are rescaled when it rises. So
examples are read once, in pairs, one from each half, since memory serves two streams faster: a pair
is added to the sums while the scores of the next one are computed.

References
----------
M. Milakov, N. Gimelshein. Online normalizer calculation for softmax. arXiv:1805.02867, 2018.
"""

from __future__ import annotations

import numpy as np

from marginsvm._compiling import compiled
from marginsvm._typing import Array, Values
from marginsvm.problem.rows import BinaryRows, Rows

PAIRS = 32  # whose sums are in the precision of the examples
# Logarithms of weights below the largest, by this at least, count as this: 1e9 such weights are
# within rounding, and smaller ones would make subnormal products, which are slow.
NEGLIGIBLE = -60.0


@compiled(error_model="numpy", fastmath={"contract", "nsz", "reassoc"})
def one_pass(X, w, shift, scale, y, log_weights, E, largest, heaviest, mass, products):
    """Add ``scale y_i (x_i.w - shift)`` to the exponents E; sums over each class.

    ``largest`` is that of the exponents, ``heaviest`` that of their sums with ``log_weights``;
    ``mass`` is the sum of the exponentials of these sums relative to the heaviest one, and
    ``products`` that of the examples times them.
    """
    half = (len(E) + 1) // 2
    few = np.zeros(products.shape, w.dtype)  # products of the last pairs
    # The pair before, whose products are due: its examples, and its weights by class and example.
    u = X[0]
    v = X[0]
    e = np.zeros((2, 2), w.dtype)
    low = few[0]
    high = few[1]
    for i in range(half + 1):
        s = w.dtype.type(0)
        t = w.dtype.type(0)
        x = X[min(i, half - 1)]
        z = X[min(i + half, len(E) - 1)]
        low_u = e[0, 0]
        low_v = e[0, 1]
        high_u = e[1, 0]
        high_v = e[1, 1]
        for j in range(len(w)):
            low[j] += low_u * u[j] + low_v * v[j]
            high[j] += high_u * u[j] + high_v * v[j]
            s += x[j] * w[j]
            t += z[j] * w[j]
        if i % PAIRS == 0 or i == half:
            products += few
            few[:] = 0.0
        if i == half:
            return
        u = x
        v = z
        e[:] = 0.0
        for r in range(2 if i + half < len(E) else 1):
            k = i + r * half
            c = 1 if y[k] > 0.0 else 0
            E[k] += scale * y[k] * ((t if r else s) - shift)
            largest[c] = max(largest[c], E[k])
            a = E[k] + log_weights[k]
            if not a <= heaviest[c]:
                smaller = np.exp(heaviest[c] - a)
                mass[c] *= smaller
                products[c] *= smaller
                few[c] *= w.dtype.type(smaller)
                e[c] *= w.dtype.type(smaller)
                heaviest[c] = a
            weight = np.exp(max(a - heaviest[c], NEGLIGIBLE))
            mass[c] += weight
            e[c, r] = weight


def of_two_classes(
    X: Array,
    rows: Rows,
    slack: Array | None,
    coef: Array,
    shift: Values,
    mu: float,
) -> tuple[Array, ...]:
    """See ``one_pass.of_block``."""
    assert isinstance(rows, BinaryRows)
    E = np.zeros(len(X)) if slack is None else slack / -mu
    logs = np.zeros(len(X)) if rows.weights is None else np.log(rows.weights)
    largest, heaviest = np.full((2, 2), -np.inf)
    mass = np.zeros(2)
    products = np.zeros((2, X.shape[1]))
    one_pass(
        X,
        coef,
        float(shift),
        -1.0 / mu,
        rows.y,
        logs,
        E,
        largest,
        heaviest,
        mass,
        products,
    )
    unit = np.exp(heaviest - np.where(mass > 0.0, largest, 0.0))
    mass = unit * mass
    products = unit[:, None] * products
    if not rows.balanced:
        top = largest.max(keepdims=True)
        share = np.exp(largest - top)
        signed = np.array([-1.0, 1.0]) * share @ products
        return E, top[None], (share @ mass)[None, None], signed[None, None]
    groups = np.zeros((2, 2, X.shape[1]))
    groups[[0, 1], [1, 0]] = products
    return E, rows.table(largest, -np.inf), rows.table(mass, 0.0), groups
