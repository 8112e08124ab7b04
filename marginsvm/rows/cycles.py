"""The best intercepts of many classes: cycles of groups, and what offsets can do about them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from marginsvm._typing import Array


def cycle_offsets(low: Array) -> Array:
    """Offsets that lift all groups to the mean of the cheapest cycle of groups.

    With these, ``low[c, j] + beta[c] - beta[j] >= mean`` for all pairs. The distances from
    any class are such potentials, and so are those to any class, negated; where there is
    room left, their average treats all classes alike.
    """
    distance = _distances(low - min_cycle(low)[0])
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
    """Cycle of smallest mean cost, and that mean (Karp): the best that offsets can do.

    Offsets cancel along a cycle, so no intercept lifts the smallest margin above the mean
    of a cycle of groups; the cheapest cycle is the data player's best response.
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
    for m in range(k, 0, -1):  # k edges over k classes: somewhere a class comes again
        node = int(parent[m, path[-1]])
        if node in path:
            cycle = [*path[path.index(node) :], node][::-1]
            break
        path.append(node)
    edges = list(pairwise(cycle))
    return float(np.mean([cost[edge] for edge in edges])), edges
