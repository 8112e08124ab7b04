"""The intercept at which scores that are to lie in intervals cost least."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array

# Shares of the sum of all prices at which a sum of prices is that of a half, but for rounding.
_ROUNDED_PRICE = 1e-13
# Steps of a search for a zero at most: nearly all are Newton's, others halve a bracket.
_ZERO_STEPS = 100


def best_shift(
    low: Array, high: Array, price: Array | None, *, squared: bool, share: float = 1.0
) -> float:
    """Minimise the price of the distances of a number from intervals.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Ends of the intervals; -inf and inf where there is none.
    price : ndarray of shape (n,) or None
        Price of a unit of distance, or of half its square; None: the largest distance counts.
    squared : bool
        Whether squares count.
    share : float, default=1.0
        With less than 1, only the largest distances count: as many as have this share of the
        prices. Intervals are points then.

    Returns
    -------
    float
        The middle one, of several.
    """
    first, last = float(high.min()), float(low.max())
    if last <= first or price is None:  # some number is in all intervals
        middle = 0.5 * (np.clip(first, -1e300, 1e300) + np.clip(last, -1e300, 1e300))
        return float(middle)
    if share < 1.0:  # half of what counts is on either side of a tube: its ends are quantiles
        few = 0.5 * share * float(price.sum())
        return 0.5 * (_quantile(low, price, few) - _quantile(-high, price, few))
    return _of_squares(low, high, price) if squared else _of_sizes(low, high, price)


def _of_sizes(low: Array, high: Array, price: Array) -> float:
    """A weighted median of the ends: the slope grows by the price at each of them."""
    total = float(price[np.isfinite(low)].sum())  # of the slope, far to the left
    return _quantile(np.concatenate([low, high]), np.concatenate([price, price]), total)


def _quantile(ends: Array, prices: Array, total: float) -> float:
    """The end at which the sum of prices, from below, reaches a total; the middle, of several."""
    some = np.isfinite(ends)
    order = np.argsort(ends[some], kind="stable")
    ends, sums = ends[some][order], np.cumsum(prices[some][order])
    first = int(np.searchsorted(sums, total * (1.0 - _ROUNDED_PRICE)))
    last = int(np.searchsorted(sums, total * (1.0 + _ROUNDED_PRICE), side="right"))
    return float(0.5 * (ends[min(first, len(ends) - 1)] + ends[min(last, len(ends) - 1)]))


def _of_squares(low: Array, high: Array, price: Array) -> float:
    """Where the weighted distances to both sides balance, by Newton's method in a bracket."""
    left, right = float(high.min()), float(low.max())
    b = 0.5 * (left + right)
    for _ in range(_ZERO_STEPS):
        below, above = np.maximum(low - b, 0.0), np.maximum(b - high, 0.0)
        force = float(price @ below - price @ above)
        curvature = float(price @ ((below > 0.0) | (above > 0.0)))
        left, right = (b, right) if force > 0.0 else (left, b)
        step = b + force / curvature if curvature > 0.0 else b
        if not left < step < right:
            step = 0.5 * (left + right)
        if step == b or force == 0.0:
            break
        b = step
    return b
