"""The bounds of :mod:`~marginsvm.certificate.bounded` for stacks of small problems, in floats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array, Values
from marginsvm.certificate.bounded import ORIGINS, Floats

GAMMA = Floats().gamma  # relative error of a sum of products


class Slack(NamedTuple):
    """The ridge of the squared hinge loss or the upper bounds of the hinge loss, of each row."""

    ridge: Array | None = None
    upper: Array | None = None


def balanced(alpha: Array, y: Array, upper: Values) -> Array:
    """Alpha with equal sums for both classes, up to rounding.

    The class with the larger sum is reduced, at entries below their upper bounds if these suffice.
    """
    excess = (y * alpha).sum(axis=1, keepdims=True)
    heavy = alpha * (y * excess > 0.0)
    free = heavy * (alpha < upper)
    free = np.where(free.sum(axis=1, keepdims=True) > np.abs(excess), free, heavy)
    size = free.sum(axis=1, keepdims=True)
    return alpha - free * np.divide(
        np.abs(excess), size, out=np.zeros_like(size), where=size > 0.0
    )


def proved(
    Z: Array,
    squares: Array,
    shift: Array,
    y: Array,
    w: Array,
    b: Array,
    alpha: Array,
    slack: Slack,
    off: bool,
) -> tuple[Array, Array, Array]:
    """Bounds on best margins, and which predictors separate; proof in ``certificate.bounded``.

    Parameters
    ----------
    Z, shift : ndarray of shape (1 or B, n, d) and (1 or B, d)
        The examples less ``shift``, rounded.
    squares : ndarray of shape (1 or B, n)
        Their squared lengths, rounded.
    y, alpha : ndarray of shape (B, n)
    w, b : ndarray of shape (B, d) and (B,)
    slack : Slack
        None at all: hard margins, scaled to 1.
    off : bool
        Whether ``y'alpha = 0`` is required.
    """
    n, d = Z.shape[1:]
    norms = np.sqrt(squares)
    length = np.sqrt(np.vecdot(w, w))
    reach = norms + np.sqrt(np.vecdot(shift, shift))[:, None]
    # errors: of the shifted examples, of products with them, and of the published intercept
    error = GAMMA(d + 8) * (reach * length[:, None] + np.abs(b)[:, None])
    least = y * ((Z @ w[..., None])[..., 0] + b[:, None]) - error
    short = np.maximum(1.0 - least, 0.0)
    ridge: Values = 0.0
    upper: Values = np.inf
    if slack.upper is not None:
        upper = slack.upper
        P = 0.5 * length**2 + (upper * short).sum(axis=1)
    elif slack.ridge is not None:
        ridge = slack.ridge
        P = 0.5 * length**2 + (0.5 * short * short / ridge).sum(axis=1)
    else:
        P = np.where(
            least.min(axis=1) > 0.0, 0.5 * (length / least.min(axis=1)) ** 2, np.inf
        )
    margin = (1.0 - FEW) / np.sqrt(2.0 * P * (1.0 + GAMMA(n + d)))
    total = alpha.sum(axis=1, keepdims=True)
    radius = norms.max(axis=1) * (1.0 + GAMMA(d))
    q = alpha / total
    u = ((y * q)[:, None] @ Z)[:, 0]
    # the bound pays for y'alpha other than 0
    imbalance = ORIGINS * (np.abs((y * q).sum(axis=1)) + GAMMA(n)) * off
    length = np.sqrt(np.vecdot(u, u)) * (1.0 + GAMMA(d))
    length = length + radius * (GAMMA(n + 8) + imbalance)
    square = length**2 + (ridge * q * q).sum(axis=1) * (1.0 + GAMMA(n))
    gain = 1.0 - GAMMA(n) - imbalance
    most = np.where(q > 0.0, upper / q, np.inf).min(axis=1) * (1.0 - FEW)
    s = np.minimum(most, gain / square)
    D = s * (gain - 0.5 * s * square) * (1.0 - FEW)
    bound = np.where(D > 0.0, (1.0 + FEW) / np.sqrt(2.0 * D), np.inf)
    return margin, bound, least.min(axis=1) > 0.0
