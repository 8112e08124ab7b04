"""Intercepts of many classes, from k x k tables of groups of rows.

The best one for the smallest margin follows from the cycle of groups with the least mean margin:
class offsets cancel along a cycle, so that no intercept makes the smallest margin larger.

Dual variables satisfy the equality constraint of the intercepts (are balanced) if, for every class
c, the sum over groups ``(c, j)`` equals the sum over groups ``(j, c)``: in the k x k table of group
sums, row sums equal column sums. Class offsets ``beta``, added to the margins, multiply the sum of
group ``(c, j)`` by ``exp(beta[j] - beta[c])``; matrix balancing finds the offsets that make row and
column sums equal.

References
----------
J. Cochet-Terrasson et al. Numerical computation of spectral elements in max-plus algebra.
IFAC Conference on System Structure and Control, 1998.

R. Karp. A characterization of the minimum cycle mean in a digraph. Discrete Mathematics 23 (1978).

E. Osborne. On pre-conditioning of matrices. Journal of the ACM 7 (1960).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import log
from typing import TypeVar

import numpy as np
from scipy.linalg.lapack import dposv

from marginsvm._typing import Array

T = TypeVar("T")

CYCLE_ROUNDING = 2.0**-49  # of a cycle's mean, relative to the largest cost
EPS = 2.0**-52
# Classes for which Karp's algorithm, in time k^3 but with few calls, is quicker than Howard's.
FEW_CLASSES = 16
# Iterations of Howard's algorithm, besides one for each class; 700 classes take ten.
MORE_ROUNDS = 50
# Tolerance of the imbalance, relative to the sum of the table; rounding errors of a logarithm of an
# entry; and a regularisation for classes without alpha.
BALANCED = 1e-13
LOGARITHM_UNITS = 8.0
RIDGE = 1e-14
MAX_STEPS = 100
MAX_LINE_STEPS = 60
# Balancing: a longer step is damped; what a full step leaves of the imbalance, relative to its
# square; and an imbalance that is no rounding.
LONG_STEP = 0.5
LEFT_BY_STEP = 0.1
UNBALANCED = 1e-6
# Minimising: regularisation by the gradient over the size of x, and by the curvature; longest move
# (sizes of x, its inverse); and the width of a bracket (steps) that is rounding.
BY_GRADIENT = 1e-3
BY_CURVATURE = 1e-12
SHORTEST = 1e-3
NARROW = 1e-13


def cycle_offsets(low: Array) -> Array:
    """Offsets under which all margins are at least the mean of the cheapest cycle of groups.

    With these, ``low[c, j] + beta[c] - beta[j] >= mean`` for all pairs of classes, where ``low``
    is the smallest margin of each group. The shortest distances from any class are such offsets,
    and so are the negated distances to any class. Their average over all classes is taken, as it
    does not depend on the order of the classes.
    """
    finite = np.abs(low[np.isfinite(low)])
    # a cycle of negative length, by rounding, would leave no shortest paths
    rounding = CYCLE_ROUNDING * float(finite.max(initial=0.0))
    distance = _distances(low - (least_mean(low) - rounding))
    beta = 0.5 * (distance.mean(axis=0) - distance.mean(axis=1))
    return beta - beta.mean()


def _distances(cost: Array) -> Array:
    """Shortest paths between all pairs of classes (Floyd-Warshall; no negative cycles)."""
    distance = cost.copy()
    np.fill_diagonal(distance, 0.0)
    for c in range(len(cost)):
        distance = np.minimum(distance, distance[:, c, None] + distance[c])
    return distance


def least_mean(cost: Array) -> float:
    """Smallest mean cost of a cycle of classes: for few classes by Karp's algorithm.

    It takes k products of k x k, each a call. With D_m the least cost of a walk of m edges that
    ends at a class, the mean is the least over these classes of max_m (D_k - D_m) / (k - m).
    """
    k = len(cost)
    if k > FEW_CLASSES or np.isfinite(cost).sum() != k * (k - 1):
        return min_cycle(cost)[0]
    walks = np.zeros((k + 1, k))
    for m in range(k):
        np.minimum.reduce(walks[m][:, None] + cost, axis=0, out=walks[m + 1])
    means = (walks[k] - walks[:k]) / np.arange(k, 0, -1)[:, None]
    return float(means.max(axis=0).min())


def min_cycle(cost: Array) -> tuple[float, list[tuple[int, int]]]:
    """Smallest mean cost of a cycle of classes, and the edges of that cycle (Howard's algorithm).

    Where costs are the smallest margins of the groups, this mean is the smallest margin under
    the best intercept: class offsets cancel along a cycle, so that no intercept makes the
    smallest margin larger than the mean of any cycle. The data player's best response is
    supported on the groups of the cheapest cycle.

    Policy iteration: each class has one outgoing edge. The cheapest cycle of these edges is the
    candidate, and distances to it show which classes should change their edge. About ten
    iterations of time ``k^2`` suffice, where Karp's algorithm takes k.
    """
    each = np.arange(len(cost))
    rounding = EPS * float(np.abs(cost[np.isfinite(cost)]).max(initial=0.0))
    leads_on = np.isfinite(cost).any(axis=1)
    chosen = np.where(leads_on, cost, np.inf).argmin(axis=1)
    for _ in range(MORE_ROUNDS + len(cost)):
        mean, cycle = _cheapest(cost, chosen)
        if not np.isfinite(mean):
            break
        chosen, distance, edges = _distances_to(cycle[0], cost, mean, chosen)
        through = cost + distance
        best = through.argmin(axis=1)
        better = through[each, best] - mean < distance - edges * rounding
        if not better.any():
            break
        chosen = np.where(better, best, chosen)
    return mean, list(pairwise([*cycle, cycle[0]]))


def _cheapest(cost: Array, chosen: Array) -> tuple[float, list[int]]:
    """The cycle of least mean among those that the chosen edges form."""
    following = chosen.tolist()
    seen = [-1] * len(cost)
    cycles: list[list[int]] = []
    for start in range(len(cost)):
        node = start
        walk = []
        while seen[node] < 0:
            seen[node] = start
            walk.append(node)
            node = following[node]
        if seen[node] == start:  # the walk has closed a cycle of its own
            cycles.append(walk[walk.index(node) :])
    means = [float(np.mean(cost[cycle, chosen[cycle]])) for cycle in cycles]
    least = int(np.argmin(means))
    return means[least], cycles[least]


def _distances_to(
    root: int, cost: Array, mean: float, chosen: Array
) -> tuple[Array, Array, int]:
    """A policy in which all edges lead to the root, distances to the root, and the longest path.

    Edges that do not lead to the root are replaced. The length of an edge is its cost less the
    mean. The last value bounds the number of edges on a path to the root, or around the cycle.
    """
    chosen = chosen.copy()
    distance = np.full(len(cost), np.inf)
    distance[root] = 0.0
    step = cost[np.arange(len(cost)), chosen] - mean
    new = np.array([root])
    edges = 1
    while len(new):
        edges += 1
        reached = step + distance[chosen]
        new = np.flatnonzero(np.isinf(distance) & np.isfinite(reached))
        distance[new] = reached[new]
    far = np.flatnonzero(np.isinf(distance))
    through = cost[far] + distance
    chosen[far] = through.argmin(axis=1)
    distance[far] = through.min(axis=1, initial=np.inf) - mean
    return chosen, distance, edges


def balancing_offsets(table: Array, start: Array | None = None) -> Array:
    """Class offsets that balance a table of groups.

    Parameters
    ----------
    table : ndarray of shape (k, k)
        Logarithms of the group sums. A 1 x 1 table has no intercept.
    start : ndarray of shape (k,), optional
        Warm start: offsets that balance a similar table.

    Returns
    -------
    ndarray of shape (k,)
        Offsets of mean 0; NaN if margins have overflowed.

    Notes
    -----
    Two classes have a closed form. Otherwise Newton's method minimises a convex function of the
    offsets, the logarithm of the sum of the table. If offsets change by d, second derivatives
    change by a factor of at most e^d; so a damped step of log(1 + d) in place of d is a descent
    step. The initial offsets are those of the cycle of groups with the largest mean.
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
    tol = max(BALANCED, LOGARITHM_UNITS * EPS * float(finite.max(initial=0.0)))
    beta = start
    if beta is None:
        beta = cycle_offsets(-table) if finite.size == k * (k - 1) else np.zeros(k)
    first = beta
    table = table.copy()
    table.flat[:: k + 1] = -np.inf
    for _ in range(MAX_STEPS):
        weight = table - differences(beta)
        weight -= weight.max()
        np.exp(weight, out=weight)
        out = weight.sum(axis=1)
        into = weight.sum(axis=0)
        whole = out.sum()
        off = np.abs(out - into).sum()
        if off <= tol * whole:
            break
        hessian = -weight - weight.T + whole / k  # the last term keeps their mean at 0
        hessian.flat[:: k + 1] += out + into + RIDGE * whole
        _, step, _ = dposv(hessian, out - into)
        d = step.max() - step.min()
        beta = beta + step * (np.log1p(d) / d if d > LONG_STEP else 1.0)
        if d * off <= LEFT_BY_STEP * tol * whole:
            break
    else:
        # alpha in one direction: none balance it; or the start was far away
        if off > UNBALANCED * whole:
            beta = first if start is None else balancing_offsets(table)
    return beta - beta.mean() if start is None else beta


def balance(table: Array, start: Array | None = None) -> tuple[Array, float]:
    """Balancing offsets, and the logarithm of the sum of the table that they balance."""
    beta = balancing_offsets(table, start)
    if len(table) == 2:  # half of the sum is in each group
        return beta, 0.5 * float(table[0, 1] + table[1, 0]) + log(2.0)
    return beta, float(logsumexp((table - differences(beta)).ravel()))


def laplacian(table: Array) -> Array:
    """``sum of table_ij (e_i - e_j)(e_i - e_j)'``: how sums of groups change with offsets."""
    return np.diag(table.sum(axis=0) + table.sum(axis=1)) - table - table.T


def balancing_factors(table: Array) -> Array:
    """Factors of the groups that balance nearly balanced dual variables up to rounding.

    Parameters
    ----------
    table : ndarray of shape (k, k)
        Group sums.
    """
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # groups without alpha give log(0)
        beta = balancing_offsets(np.log(table))
        return np.exp(-differences(beta))


def logsumexp(a: Array) -> Array:
    """Logarithm of the sum of exponentials over the first axis.

    SciPy's function of this name takes 0.1 ms on a k x k table, longer than all else here.
    """
    peak = a.max(axis=0)
    return peak + np.log(np.exp(a - peak).sum(axis=0))


def differences(beta: Array) -> Array:
    """Table of ``beta[c] - beta[j]``: the shift of each group's margins by class offsets."""
    return beta[:, None] - beta


def imbalance(table: Array) -> Array:
    """Column sums less row sums: the gradient of the total loss in the class offsets."""
    return table.sum(axis=0) - table.sum(axis=1)


def least_of_convex(
    at: Callable[[Array], tuple[Array, T]],
    curvature: Callable[[T], Array],
    x: Array,
    size: float,
    flat: float,
    most: int = MAX_STEPS,
) -> tuple[Array, T, int]:
    """Minimise a convex function of few unknowns whose gradient is more accurate than its value.

    Newton's method with a line search on the directional derivative.

    Parameters
    ----------
    at : callable
        ``at(x)`` gives the gradient and the argument of ``curvature``.
    curvature : callable
        Second derivatives, of shape (m, m); they may be singular.
    x : ndarray of shape (m,)
        First guess.
    size : float
        Typical size of a change of x.
    flat : float
        Largest entry of a gradient that counts as zero (rounding).
    most : int
        Largest number of Newton steps.

    Returns
    -------
    x : ndarray of shape (m,)
    there : object
        Second value of ``at(x)``.
    steps : int
        Newton steps taken; ``most`` if the gradient is not yet below ``flat``.
    """
    slope, there = at(x)
    for step in range(most):
        steep = float(np.abs(slope).max())
        if not steep > flat:
            return x, there, step
        H = curvature(there)
        most_curved = float(H.max(initial=0.0))
        if steep <= 2.0 * EPS * most_curved * float(np.abs(x).max()):
            return x, there, step  # at the neighbouring floats the gradient is as large
        H.flat[:: len(H) + 1] += max(
            BY_GRADIENT * steep / size, BY_CURVATURE * most_curved
        )
        _, move, failed = dposv(H, -slope)
        if failed:  # indefinite by rounding
            move = -np.linalg.solve(H, slope)
        down = float(slope @ move)
        furthest = size / (SHORTEST * float(np.abs(move).max()))
        t = 1.0
        low = 0.0
        high = np.inf
        for _ in range(MAX_LINE_STEPS):
            slope, there = at(x + t * move)
            along = float(slope @ move)
            near = abs(along) <= max(-0.5 * down, flat * float(np.abs(move).max()))
            if near or high - low <= NARROW or low >= furthest:
                break
            low, high = (t, high) if along < 0.0 else (low, t)
            t = 2.0 * t if high == np.inf else 0.5 * (low + high)
        if np.abs(t * move).max() <= 0.5 * EPS * np.abs(x).max():
            return x, there, step + 1  # flatter than at the numbers beside it
        x = x + t * move
    return x, there, most
