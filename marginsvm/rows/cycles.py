"""The best intercept of many classes, from the cycle of groups with the least mean margin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from marginsvm._typing import Array

# Rounding of the mean of a cycle, relative to the largest cost.
_ROUNDING = 2.0**-49


def cycle_offsets(low: Array) -> Array:
    """Offsets under which all margins are at least the mean of the cheapest cycle of groups.

    With these, ``low[c, j] + beta[c] - beta[j] >= mean`` for all pairs of classes. The shortest
    distances from any class are such offsets, and so are the negated distances to any class. If
    there are several solutions, the average of all of these does not depend on the order of
    the classes.
    """
    finite = np.abs(low[np.isfinite(low)])
    # a cycle of negative length, if only by rounding, would have no shortest walk around it
    rounding = _ROUNDING * float(finite.max(initial=0.0))
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
    """Smallest mean cost of a cycle of classes, and the edges of that cycle (Karp's algorithm).

    Where costs are the smallest margins of the groups, this mean is the smallest margin under
    the best intercept: class offsets cancel along a cycle, so that no intercept makes the
    smallest margin larger than the mean of any cycle. The data player's best response puts its
    weight on the groups of the cheapest cycle.
    """
    k = len(cost)
    walks = np.zeros((k + 1, k))  # walks[m, v]: the cheapest walk of m edges that ends in v
    parent = np.zeros((k + 1, k), dtype=int)
    for m in range(k):
        through = walks[m][:, None] + cost
        parent[m + 1] = through.argmin(axis=0)
        walks[m + 1] = through.min(axis=0)
    means = ((walks[k] - walks[:k]) / (k - np.arange(k))[:, None]).max(axis=0)
    path = [int(means.argmin())]
    for m in range(k, 0, -1):  # k edges visit k + 1 classes, so that one occurs twice
        node = int(parent[m, path[-1]])
        if node in path:
            cycle = [*path[path.index(node) :], node][::-1]
            break
        path.append(node)
    edges = list(pairwise(cycle))
    return float(np.mean([cost[edge] for edge in edges])), edges
