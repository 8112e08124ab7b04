"""Alpha at its bounds: what a solver leaves within rounding of them is published as them.

A solver ends with alpha near its bounds, where the support vectors are those with alpha > 0, and
the bounded ones those with ``alpha = C m``. An alpha within a small part of ``C m`` of a bound, and
on that side by its margin, becomes the bound: by stationarity, the dual value then increases. The
other ones restore ``F'alpha = g`` and, if they are few, give their rows the values that are
optimal between the bounds, which ``w = A'alpha`` then has, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from marginsvm._typing import Array, Values
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.row_maps import ClassPairs
from marginsvm.solvers.active_set import by_rows

# The part of the upper bound (without one: of the largest alpha) that is near, if the value agrees.
NEAR = 1e-2
TINY = 1e-6  # alpha, relative to the largest, that is rounding without upper bounds
# Entries between their bounds whose system takes less than a few milliseconds.
FEW = 200
EXCHANGES = 3
WRONG = 1e-9  # value of a row beyond its target, relative to the largest target
BALANCED = 1e-12  # rounding of F'alpha - g, relative to the sum of alpha
SAME = 1e-15  # rounding of a sum of alpha at its upper bound


def at_bounds(qp: QuadraticProgram, alpha: Array, values: Array) -> tuple[Array, Array]:
    """Alpha, with entries at their bounds that are near and on that side; and which sums are full.

    Parameters
    ----------
    qp : QuadraticProgram
        With slack.
    alpha : ndarray of shape qp.shape
        Feasible up to rounding.
    values : ndarray of shape qp.shape
        ``A w + F f`` of a predictor nearby.
    """
    caps = caps_of(qp)
    over = qp.rows.fill(values - qp.target, np.inf)
    size = float(np.abs(qp.target).max(initial=0.0)) or 1.0
    unit: Values = alpha.max(initial=0.0) if caps is None else caps
    if qp.cap is not None:
        unit = qp.cap[:, None]
    # nearer to the bound than the value is to the target
    near = np.minimum(NEAR, over / size) * unit
    alpha = np.where((over > 0.0) & (alpha <= near), 0.0, alpha)
    if caps is None:
        return alpha, np.zeros(len(alpha), bool)
    sums = sums_of(qp, alpha)
    least = qp.rows.least(over)
    near = np.minimum(NEAR, -least / size) * caps
    full = (least < 0.0) & (caps - sums <= near)
    if qp.cap is None:
        return np.where(full, caps, alpha), full
    alpha[full] *= (caps[full] / sums[full])[:, None]
    return alpha, full


def caps_of(qp: QuadraticProgram) -> Array | None:
    """Upper bounds of alpha, or of its sums over the rows of an example; None: there are none."""
    caps = qp.upper if qp.cap is None else qp.cap
    return caps if np.isfinite(caps).all() else None


def sums_of(qp: QuadraticProgram, alpha: Array) -> Array:
    """The sums of alpha that have an upper bound."""
    return alpha if qp.cap is None else alpha.sum(axis=1)


def balanced(qp: QuadraticProgram, alpha: Array, full: Array) -> Array | None:
    """Alpha with ``F'alpha = g``, by entries between their bounds, in proportion to their room.

    None: they cannot.
    """
    caps = caps_of(qp)
    if qp.n_free and isinstance(qp.rows, ClassPairs):
        alpha = qp.rows.balanced(alpha, True, 0.0, caps)
    elif qp.n_free:
        room = alpha
        if caps is not None:
            room = np.where(full, 0.0, np.minimum(alpha, caps - alpha))
        F = qp.of_f(qp.rows.ids)
        off = qp.balance(alpha) - qp.g
        x = np.linalg.lstsq(F.T @ (room[:, None] * F), -off)[0]
        alpha = alpha + room * (F @ x)
    return alpha if _is_feasible(qp, alpha) else None


def _is_feasible(qp: QuadraticProgram, alpha: Array) -> bool:
    """Whether alpha is feasible up to rounding."""
    caps = caps_of(qp)
    left = np.abs(qp.balance(alpha) - qp.g).max(initial=0.0)
    inside = caps is None or np.all(sums_of(qp, alpha) <= (1.0 + SAME) * caps)
    even = left <= BALANCED * float(alpha.sum())
    return bool(inside and even and alpha.any() and alpha.min() >= 0.0)


def met(qp: QuadraticProgram, alpha: Array, full: Array) -> tuple[Array, Array] | None:
    """Alpha and f for which rows between their bounds have the values that are optimal there.

    Rows of two classes and of tubes that are then beyond a bound, or at the wrong one, change.
    None: many rows are between their bounds, or too many change sides.
    """
    caps = np.broadcast_to(qp.upper, qp.shape)
    several = qp.several
    size = float(np.abs(qp.target).max(initial=0.0)) or 1.0
    free = alpha > 0.0 if several else (alpha > 0.0) & ~full
    for _ in range(1 if several else EXCHANGES):
        if not 0 < np.count_nonzero(free) <= FEW:
            return None
        alpha, f = _solved(qp, alpha, np.flatnonzero(free), full)
        beyond = (alpha < 0.0) | (alpha > caps)
        if beyond.any() and not several:
            alpha = np.clip(alpha, 0.0, caps)
            free &= ~beyond
            continue
        if not several:
            over = (qp.matvec(qp.rmatvec(alpha), f) - qp.target) / size
            wrong = ~free & np.where(alpha > 0.0, over > WRONG, over < -WRONG)
            if wrong.any():
                free |= wrong
                continue
        return (alpha, f) if _is_feasible(qp, alpha) else None
    return None


def _solved(
    qp: QuadraticProgram, alpha: Array, free: Array, full: Array
) -> tuple[Array, Array]:
    """Alpha and f with optimal values of some rows, given by their flat indices."""
    S = qp.examples.scores(qp.rmatvec(alpha))
    ridge = np.broadcast_to(qp.ridge, qp.shape)
    missing = qp.target - qp.rows.values(S) - ridge * alpha
    B = qp.of_f(free)
    off = qp.g - qp.balance(alpha)
    if qp.cap is not None:  # the slack of an example at its upper bound is free
        of = qp.rows.example_of(free)
        slack = (of[:, None] == np.flatnonzero(full)).astype(float)
        B = np.column_stack([B, slack])
        off = np.append(off, np.zeros(slack.shape[1]))
    solve = by_rows(qp.gram(free, free), B, missing.flat[free], ridge.flat[free], off)
    move, f, _ = solve(np.ones(len(free), bool))
    found = alpha.copy()
    found.flat[free] += move
    return found, f[: qp.n_free]


def candidates(
    qp: QuadraticProgram, w: Array, f: Array, alpha: Array
) -> Iterator[tuple[Array, Array, Array]]:
    """w, f and feasible alpha at its bounds, the best first, from a solver's w, f and alpha.

    w is ``A'alpha`` where its optimal values are known, and with a kernel; else the solver's.
    """
    if caps_of(qp) is None and not _is_rounded(qp, w, alpha):
        return
    values = qp.values(qp.examples.scores(w), f)
    if not (np.isfinite(values).all() and np.isfinite(alpha).all()):
        return
    rounded = at_bounds(qp, alpha, values)
    found = met(qp, *rounded)
    if found is not None:
        yield qp.rmatvec(found[0]), found[1], found[0]
    near = balanced(qp, *rounded)
    if near is not None:
        yield qp.rmatvec(near) if qp.examples.is_kernel else w, f, near


def _is_rounded(qp: QuadraticProgram, w: Array, alpha: Array) -> bool:
    """Whether alpha without upper bounds, or the coefficients w of a kernel, are nearly 0."""
    if np.any((alpha > 0.0) & (alpha <= TINY * alpha.max())):
        return True
    used = qp.rows.coefficients(alpha).any(axis=1)
    return bool(qp.examples.is_kernel and np.any(w[:, ~used]))
