"""Matrix balancing: the intercept under which weights on groups of rows are balanced.

Weights are balanced if, for every class, the groups that hold it against others weigh as much
as the groups that hold others against it. In a table of the groups' weights these are row
sums and column sums. Class offsets ``beta``, added to the margins, multiply the weight of group
``(c, j)`` by ``exp(beta[j] - beta[c])``; matrix balancing finds the offsets that make the sums
equal.

References
----------
E. Osborne. On pre-conditioning of matrices. Journal of the ACM 7 (1960).
"""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.rows.cycles import cycle_offsets
from marginsvm.rows.rows import Rows

# Range of the logarithms of the groups' weights (dimensionless). In tables of a wider range one
# cycle of groups outweighs all others by e^20 or more, so the search starts at its offsets.
_WIDE_RANGE = 20.0
# Imbalance relative to the sum of all weights (dimensionless). Below it the quadratic model of
# Newton's method is good; above it Newton's steps may overshoot.
_NEWTON_IMBALANCE = 0.1
# Imbalance relative to the sum of all weights (dimensionless) at which the search ends: some
# hundred times the rounding of one weight.
_TOL = 1e-13
# Multiples of float64's resolution that logarithms of weights are trusted to, relative to the
# largest of them (dimensionless): a few operations each.
_LOGARITHM_UNITS = 8.0
# Curvature that keeps Newton's system regular for classes without weight, as a share of all weights
# (dimensionless).
_RIDGE = 1e-14
# Change of offsets (units of margins) within which second derivatives hardly change.
_SAME_CURVATURE = 0.1
_MAX_ITER = 100  # steps; Newton's method needs fewer than ten once it is near


def balancing_offsets(table: Array, start: Array | None = None) -> Array:
    """Class offsets that balance a table of groups.

    Parameters
    ----------
    table : ndarray of shape (k, k)
        Logarithms of the groups' weights. A 1 x 1 table has no intercept.
    start : ndarray of shape (k,), optional
        Offsets that balanced a table like this one.

    Returns
    -------
    ndarray of shape (k,)
        Offsets of mean 0; NaN if margins have overflowed, so that the vectors show it.

    Notes
    -----
    Two classes have a closed form. Otherwise the offsets minimise a convex function: the
    logarithm of the sum of all weights.
    """
    k = len(table)
    if k == 1:
        return np.zeros(1)
    if k == 2:
        half = 0.25 * (table[0, 1] - table[1, 0])
        return np.array([half, -half])
    if not np.all(table < np.inf):
        return np.full(k, np.nan)
    finite = np.abs(table[np.isfinite(table)])
    rounding = _LOGARITHM_UNITS * np.finfo(float).eps * float(finite.max(initial=0.0))
    wide = finite.size == k * (k - 1) and np.ptp(finite) > _WIDE_RANGE
    tol = max(_TOL, rounding)
    if start is not None:
        return _followed(table, start, tol)
    beta = _improved(table, cycle_offsets(-table) if wide else np.zeros(k), tol)
    return beta - beta.mean()


def _followed(table: Array, beta: Array, tol: float) -> Array:
    """The same from offsets of another table: Newton's steps, shortened where they are long.

    Where offsets change by d, second derivatives change by e^d at most, so that log(1 + d) of
    a step that would change them by d lessens the sum of the weights.
    """
    for _ in range(_MAX_ITER):
        weight = shifted_table(table, beta)
        weight = np.exp(weight - weight.max())
        out, into = weight.sum(axis=1), weight.sum(axis=0)
        whole = out.sum()
        if np.abs(out - into).sum() <= tol * whole:
            break
        hessian = -weight - weight.T + whole / len(beta)  # the last: offsets of mean 0
        hessian.flat[:: len(beta) + 1] += out + into + _RIDGE * whole
        step = np.linalg.solve(hessian, out - into)
        d = np.ptp(step)
        beta = beta + step * (np.log1p(d) / d if d > _SAME_CURVATURE else 1.0)
    return beta


def _improved(table: Array, beta: Array, tol: float) -> Array:
    """Offsets, improved until the imbalance is at most ``tol`` of the sum of all weights.

    Far from the solution, damped simultaneous steps of Osborne's matrix balancing; near
    it, Newton's.
    """
    for _ in range(_MAX_ITER):
        shifted = shifted_table(table, beta)
        weight = np.exp(shifted - shifted.max())
        out, into = weight.sum(axis=1), weight.sum(axis=0)
        off = np.abs(out - into).sum() / weight.sum()
        if off <= tol:
            break
        if off > _NEWTON_IMBALANCE:
            with np.errstate(divide="ignore", invalid="ignore"):  # of a class without weight
                step = 0.25 * (logsumexp(shifted.T) - logsumexp(shifted))
            step[np.isnan(step)] = 0.0
        else:
            hessian = np.diag(out + into) - weight - weight.T
            step = np.linalg.lstsq(hessian, out - into)[0]
        if not np.isfinite(step).all():  # a class has weight in one direction: none balance it
            break
        beta = beta + step
    return beta


def balancing_factors(table: Array) -> Array:
    """Factors of the groups that take the last rounding out of nearly balanced weights.

    Parameters
    ----------
    table : ndarray of shape (k, k)
        Sums of the groups' weights.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # of groups without weight
        beta = balancing_offsets(np.log(table))
        return np.exp(-differences(beta))


def balanced(rows: Rows, q: Array) -> Array:
    """Nearly balanced weights without what is left of their imbalance: groups are multiplied.

    Where a class has weight in one direction only, none balance it: they stay.
    """
    factors = balancing_factors(rows.group_sum(q))
    some = np.isfinite(factors) & (factors > 0.0)
    return np.asarray(q * rows.expand(np.where(some, factors, 1.0)))


def shifted_table(table: Array, beta: Array) -> Array:
    """Logarithms of the groups' weights once their margins are shifted by ``beta``."""
    shifted = table - differences(beta)
    if len(beta) > 1:
        np.fill_diagonal(shifted, -np.inf)
    return shifted


def logsumexp(a: Array) -> Array:
    """Logarithm of the sum of exponentials over the first axis.

    SciPy's function of this name takes 0.1 ms on a k x k table, longer than all else here.
    """
    peak = a.max(axis=0)
    return peak + np.log(np.exp(a - peak).sum(axis=0))


def differences(beta: Array) -> Array:
    """Table of ``beta[c] - beta[j]``: what class offsets add to the margins of each group."""
    return beta[:, None] - beta


def imbalance(table: Array) -> Array:
    """Column sums less row sums of a table of weights.

    This is the gradient of the total loss with respect to the class offsets.
    """
    return table.sum(axis=0) - table.sum(axis=1)
