"""Softmax weights of two classes and their products with dense examples, by one compiled pass.

Exponentials are relative to the largest exponent so far, and sums are rescaled when it rises. So
examples are read once: each is added to the sums while the next one's score is computed.

References
----------
M. Milakov, N. Gimelshein. Online normalizer calculation for softmax. arXiv:1805.02867, 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._compiling import compiled
from marginsvm._typing import Array

PART = 64  # examples whose sums are in the precision of the examples
# Exponents below the largest, by this at least, count as this: 1e9 such weights are within
# rounding, and smaller ones would make subnormal products, which are slow.
NEGLIGIBLE = -60.0


@compiled(error_model="numpy", fastmath={"contract", "nsz", "reassoc"})
def one_pass(
    X: Array,
    w: Array,
    shift: float,
    scale: float,
    y: Array,
    weights: Array,
    E: Array,
    largest: Array,
    mass: Array,
    products: Array,
) -> None:
    """Add ``scale y_i (x_i.w - shift)`` to the exponents E; sums over each class.

    ``largest`` is that of the exponents, ``mass`` the sum of the exponentials relative to it, and
    ``products`` the sum of the examples times these.
    """
    n, few, e, x, c = len(E), np.zeros(products.shape, w.dtype), w.dtype.type(0), X[0], 0
    for i in range(n + 1):
        t, coming, out = w.dtype.type(0), X[min(i, n - 1)], few[c]
        for j in range(len(w)):
            out[j] += e * x[j]
            t += coming[j] * w[j]
        if i % PART == 0 or i == n:
            products += few
            few[:] = 0.0
        if i == n:
            return
        E[i] += scale * y[i] * (t - shift)
        x, c = coming, 1 if y[i] > 0.0 else 0
        if not E[i] <= largest[c]:
            smaller = np.exp(largest[c] - E[i])
            mass[c] *= smaller
            products[c] *= smaller
            few[c] *= w.dtype.type(smaller)
            largest[c] = E[i]
        weight = weights[i] * np.exp(max(E[i] - largest[c], NEGLIGIBLE))
        mass[c] += weight
        e = w.dtype.type(weight)


def of_two_classes(
    X: Array, rows: Any, slack: Array | None, coef: Array, shift: Any, mu: float
) -> tuple[Array, ...]:
    """See ``Softmax.of_block``."""
    E = np.zeros(len(X)) if slack is None else slack / -mu
    weights = np.ones(len(X)) if rows.weights is None else rows.weights
    largest, mass, products = np.full(2, -np.inf), np.zeros(2), np.zeros((2, X.shape[1]))
    one_pass(X, coef, float(shift), -1.0 / mu, rows.y, weights, E, largest, mass, products)
    if not rows.balanced:
        top = largest.max(keepdims=True)
        share = np.exp(largest - top)
        signed = np.array([-1.0, 1.0]) * share @ products
        return E, top[None], (share @ mass)[None, None], signed[None, None]
    groups = np.zeros((2, 2, X.shape[1]))
    groups[[0, 1], [1, 0]] = products
    return E, rows.table(largest, -np.inf), rows.table(mass, 0.0), groups
