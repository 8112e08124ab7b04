"""The best intercept of many classes, from the cycle of groups with the least mean margin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from marginsvm._typing import Array

# Allowance for the rounding of a cycle's mean, relative to the largest cost: 8 times epsilon.
_CYCLE_ROUNDING = 2.0**-49
# Rounding of a sum, for each of its terms, relative to the largest.
_EPS = 2.0**-52
# Limit on the rounds of Howard's algorithm, besides one for each class: 700 classes took ten.
_MORE_ROUNDS = 50


def cycle_offsets(low: Array) -> Array:
    """Offsets under which all margins are at least the mean of the cheapest cycle of groups.

    With these, ``low[c, j] + beta[c] - beta[j] >= mean`` for all pairs of classes, where ``low``
    is the smallest margin of each group. The shortest distances from any class are such offsets,
    and so are the negated distances to any class. Their average over all classes is taken, as it
    does not depend on the order of the classes.
    """
    finite = np.abs(low[np.isfinite(low)])
    # if rounding made the length of a cycle negative, there would be no shortest paths
    rounding = _CYCLE_ROUNDING * float(finite.max(initial=0.0))
    distance = _distances(low - (min_cycle(low)[0] - rounding))
    beta = 0.5 * (distance.mean(axis=0) - distance.mean(axis=1))
    return beta - beta.mean()


def _distances(cost: Array) -> Array:
    """Shortest paths between all pairs of classes (Floyd-Warshall; no negative cycles)."""
    distance = cost.copy()
    np.fill_diagonal(distance, 0.0)
    for c in range(len(cost)):
        distance = np.minimum(distance, distance[:, c, None] + distance[c])
    return distance


def min_cycle(cost: Array) -> tuple[float, list[tuple[int, int]]]:
    """Smallest mean cost of a cycle of classes, and the edges of that cycle (Howard's algorithm).

    Where costs are the smallest margins of the groups, this mean is the smallest margin under
    the best intercept: class offsets cancel along a cycle, so that no intercept makes the
    smallest margin larger than the mean of any cycle. The data player's best response puts its
    weight on the groups of the cheapest cycle.

    Each class chooses an edge. The cheapest of the cycles that these form is the candidate, and
    distances to it show which classes should choose another edge. This takes some ten rounds of
    time ``k^2``, where Karp's algorithm takes k such rounds.

    References
    ----------
    J. Cochet-Terrasson et al. Numerical computation of spectral elements in max-plus algebra.
    IFAC Conference on System Structure and Control, 1998.
    """
    each = np.arange(len(cost))
    rounding = _EPS * float(np.abs(cost[np.isfinite(cost)]).max(initial=0.0))
    leads_on = np.isfinite(cost).any(axis=1)
    chosen = np.where(leads_on, cost, np.inf).argmin(axis=1)
    for _ in range(_MORE_ROUNDS + len(cost)):
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
    following, seen = chosen.tolist(), [-1] * len(cost)
    cycles: list[list[int]] = []
    for start in range(len(cost)):
        node, walk = start, []
        while seen[node] < 0:
            seen[node] = start
            walk.append(node)
            node = following[node]
        if seen[node] == start:  # and not one of an earlier walk
            cycles.append(walk[walk.index(node) :])
    means = [float(np.mean(cost[cycle, chosen[cycle]])) for cycle in cycles]
    least = int(np.argmin(means))
    return means[least], cycles[least]


def _distances_to(root: int, cost: Array, mean: float, chosen: Array) -> tuple[Array, Array, int]:
    """Chosen edges that all lead to the root, the distances to it along these, and a number.

    Edges that did not lead there are changed. The length of an edge is its cost less the mean. The
    number is that of the edges on the longest path to the root, or around the cycle, at most.
    """
    chosen, distance = chosen.copy(), np.full(len(cost), np.inf)
    distance[root] = 0.0
    step, new, edges = cost[np.arange(len(cost)), chosen] - mean, np.array([root]), 1
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
