"""A minimum of a convex function of few unknowns, by Newton's method with a search along slopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.linalg.lapack import dposv

from marginsvm._typing import Array

# Steps of a search along a line at most: a bracket that is halved so often is down to one number.
_SEARCH_STEPS = 60
# Damping of the system: a step is at most ``size`` over this where the curvature says nothing; and
# the least damping, relative to the largest second derivative.
_STEP_DAMPING, _SINGULAR_DAMPING = 1e-3, 1e-12
# Share of the slope along a line that a search may leave: the next step has another direction.
_SLOPE_LEFT = 0.5
# Width of a bracket, relative to the step, that is rounding.
_NARROW_BRACKET = 1e-13
# Length of a step, relative to the numbers that it changes, that changes none of them.
_LAST_DIGIT = 2.0**-53
# Error of a slope, relative to the most curvature times the largest number in x: it is rounded, and
# the slope's sums once more.
_LAST_DIGITS = 2.0**-51

T = TypeVar("T", bound=Any)


def least_of_convex(
    at: Callable[[Array], tuple[Array, T]],
    curvature: Callable[[T], Array],
    x: Array,
    size: float,
    flat: float,
    most: int,
) -> tuple[Array, T, int]:
    """Minimise a convex function whose slope is known to more digits than its value.

    Parameters
    ----------
    at : callable
        From a point, the slope there, and what the curvature is computed from.
    curvature : callable
        Second derivatives, of shape (m, m); they may be singular.
    x : ndarray of shape (m,)
        First guess.
    size : float
        Typical size of a change of x.
    flat : float
        Largest entry of a slope that is rounding.
    most : int
        Newton steps at most.

    Returns
    -------
    x : ndarray of shape (m,)
    there : object
        What ``at`` says of it besides the slope.
    steps : int
        Newton steps taken; ``most`` if the slope is not flat.
    """
    slope, there = at(x)
    for step in range(most):
        steep = float(np.abs(slope).max())
        if not steep > flat:
            return x, there, step
        H = curvature(there)
        most_curved = float(H.max(initial=0.0))
        if steep <= _LAST_DIGITS * most_curved * float(np.abs(x).max()):
            return x, there, step  # the numbers beside x have slopes as steep
        H.flat[:: len(H) + 1] += max(_STEP_DAMPING * steep / size, _SINGULAR_DAMPING * most_curved)
        _, move, failed = dposv(H, -slope)
        if failed:  # rounding has made it indefinite
            move = -np.linalg.solve(H, slope)
        down, furthest = float(slope @ move), size / (_STEP_DAMPING * float(np.abs(move).max()))
        t, low, high = 1.0, 0.0, np.inf
        for _ in range(_SEARCH_STEPS):
            slope, there = at(x + t * move)
            along = float(slope @ move)
            near = abs(along) <= max(-_SLOPE_LEFT * down, flat * float(np.abs(move).max()))
            if near or high - low <= _NARROW_BRACKET or low >= furthest:
                break
            low, high = (t, high) if along < 0.0 else (low, t)
            t = 2.0 * t if high == np.inf else 0.5 * (low + high)
        if np.abs(t * move).max() <= _LAST_DIGIT * np.abs(x).max():
            return x, there, step + 1  # flatter than at the numbers beside it
        x = x + t * move
    return x, there, most
