"""Wins as a graph: what is separated, how far infinite, and the cycles that prove the rest.

An edge goes from each winner to the loser; a draw is an edge each way. A direction of the cone
does not grow along any edge, so it is constant on each strongly connected component, and a
potential that falls along all edges between components separates these. All of it takes time in
proportion to the number of edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.separability.coefficients import EITHER, FINITE, MINUS, PLUS, UNIDENTIFIED

_FIRST_EDGES = 16  # edges for each item, of which the components are found first


@dataclass(frozen=True)
class Wins:
    """A graph of wins.

    Attributes
    ----------
    n : int
        Number of items.
    winner, loser : ndarray of int, shape (n_edges,)
    """

    n: int
    winner: Array
    loser: Array

    @cached_property
    def few(self) -> Array:
        """Edges without which no item can be reached from fewer others: indices.

        An edge inside a component of some others is none of these.
        """
        first = np.arange(min(len(self.winner), _FIRST_EDGES * self.n))
        component = connected_components(self._matrix(first), connection="strong")[1]
        between = component[self.winner] != component[self.loser]
        between[first] = True
        return np.flatnonzero(between)

    def _matrix(self, edges: Array) -> sp.csr_array:
        one = np.ones(len(edges))
        at = self.winner[edges], self.loser[edges]
        return sp.csr_array((one, at), shape=(self.n, self.n))

    @cached_property
    def _graph(self) -> sp.csr_array:
        return self._matrix(self.few)

    @cached_property
    def component(self) -> Array:
        """The strongly connected component of each item; losers have the lower numbers."""
        return np.asarray(connected_components(self._graph, connection="strong")[1])

    def statuses(self) -> list[str]:
        """Of all items but the first, held against it."""
        G = self._graph
        weak = connected_components(G, connection="weak")[1]
        out = np.full(self.n, EITHER, dtype=object)
        out[breadth_first_order(G, 0, return_predecessors=False)] = MINUS
        out[breadth_first_order(G.T.tocsr(), 0, return_predecessors=False)] = PLUS
        out[self.component == self.component[0]] = FINITE
        out[weak != weak[0]] = UNIDENTIFIED
        return [str(status) for status in out[1:]]

    def cycles(self) -> Array:
        """How often cycles pass each edge, which lead through all that have one.

        Each edge is closed by a path from the root of its component, and one back to it.
        """
        inside = self.component[self.winner] == self.component[self.loser]
        some = self.few[inside[self.few]]
        out = inside.astype(float)
        for tail, head in ((self.winner, self.loser), (self.loser, self.winner)):
            parents, order = self._trees(tail[some], head[some])
            passed = np.bincount(tail[inside], minlength=self.n).tolist()
            for x in order[::-1]:
                if parents[x] < self.n:
                    passed[parents[x]] += passed[x]
            branch, edge = some[parents[head[some]] == tail[some]], np.zeros(self.n, int)
            edge[head[branch]] = branch
            below = np.flatnonzero(parents < self.n)
            out[edge[below]] += np.array(passed)[below]
        return out

    def _trees(self, tail: Array, head: Array) -> tuple[Array, list[int]]:
        """A tree of edges for each component: parents of the items, n of a root; and an order."""
        roots = np.unique(self.component, return_index=True)[1]
        starts, ends = np.append(tail, np.full(len(roots), self.n)), np.append(head, roots)
        shape = self.n + 1, self.n + 1
        G = sp.csr_array((np.ones(len(ends)), (starts, ends)), shape=shape)
        order, parents = breadth_first_order(G, self.n)
        return parents[: self.n], order[1:].tolist()
