"""Pairs (Bradley and Terry; a draw is half a win each) and rankings (Plackett and Luce) as a graph.

An edge goes from each winner to the loser, and both ways for a draw; a ranking has one from each
item to the next, and from the last to all that were not ranked. A direction of the cone does not
grow along any edge, so it is constant on each strongly connected component, and can fall along all
edges between components. The coefficients are strengths of all items against the first one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components
from sklearn.utils import check_array

from marginsvm._typing import Array
from marginsvm.separation.families import Data, Family
from marginsvm.separation.signs import EITHER, FINITE, MINUS, PLUS, UNIDENTIFIED


class Met(NamedTuple):
    """Who met whom: names of items, places among these, draws, and places in the report's table."""

    names: list[str]
    winner: Array
    loser: Array
    drawn: Array
    example: Array
    column: Array

    @property
    def graph(self) -> sp.csr_array:
        tail = np.append(self.winner, self.loser[self.drawn])
        head = np.append(self.loser, self.winner[self.drawn])
        return sp.csr_array((np.ones(len(tail)), (tail, head)), shape=2 * (len(self.names),))

    def levels(self) -> Array:
        """Of items, the same in a strongly connected component: who wins is no lower."""
        return np.asarray(connected_components(self.graph, connection="strong")[1])

    def statuses(self, levels: Array) -> list[str]:
        """Of all items but the first: what is reached from it falls, and the other way round."""
        graph = self.graph
        out = np.full(len(self.names), EITHER, dtype=object)
        out[breadth_first_order(graph, 0, return_predecessors=False)] = MINUS
        out[breadth_first_order(graph.T.tocsr(), 0, return_predecessors=False)] = PLUS
        out[levels == levels[0]] = FINITE
        part = connected_components(graph, connection="weak")[1]
        out[part != part[0]] = UNIDENTIFIED
        return [str(status) for status in out[1:]]


class Pairs(Family):
    """Of items that are compared: two columns, or rankings without outcomes."""

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        if y is None:
            y = np.ones(len(X))
            both = [_ranked(ranking) for ranking in X]
            if not both:
                raise ValueError("there are no rankings")
            for i, (ranked, rest) in enumerate(both):
                if len({*ranked, *rest}) < len(ranked) + len(rest):
                    raise ValueError(f"ranking {i} has an item twice")
            X = np.empty((len(both), 1), object)
            X[:, 0] = both
        else:
            X = np.asarray(X)
            if X.ndim != 2 or X.shape[1] != 2:
                raise ValueError(f"X must have two columns, of items, but its shape is {X.shape}")
            if np.any(X[:, 0] == X[:, 1]):
                raise ValueError("an item is compared with itself")
        return super().read(X, y, more)

    def outcomes(self, y: Any) -> Array:
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if y.ndim != 1 or not np.all((y == 0.0) | (y == 1.0) | (y == 0.5)):
            raise ValueError(
                "y must be 1 if the first item wins, 0 if the second does, 0.5 if none"
            )
        return np.asarray(y)

    def met(self, data: Data) -> Met:
        y, example, column = data.y, data.example, np.zeros(len(data.y), int)
        pairs = data.X
        if data.X.shape[1] == 1:
            turns = [_turns(*x) for x in data.X[:, 0]]
            lengths = [len(t) for t in turns]
            pairs, y = np.array([p for t in turns for p in t]).reshape(-1, 2), np.ones(sum(lengths))
            example = np.repeat(example, lengths)
            column = np.array([c for n in lengths for c in range(n)], dtype=int)
        if not len(y):
            raise ValueError("nothing is compared with anything")
        items, codes = codes_of(pairs)
        winner = np.where(y > 0, codes[:, 0], codes[:, 1])
        loser = np.where(y > 0, codes[:, 1], codes[:, 0])
        return Met([str(x) for x in items], winner, loser, y == 0.5, example, column)

    def remainder(self, report: Any, data: Data) -> Any:
        """A mask of comparisons, or what is left of rankings."""
        kept = report.used & ~report.separated
        if data.X.shape[1] == 2:
            return kept
        some = zip(data.example, data.X[:, 0], strict=True)
        return [part for i, x in some if kept[i] for part in _parts(x, report.separated_rows[i])]


def _ranked(ranking: Any) -> tuple[list[Any], list[Any]]:
    """Items in their order, and those not ranked: a set at the end."""
    items = list(ranking)
    if items and isinstance(items[-1], (set, frozenset)):
        return items[:-1], sorted(items[-1])
    return items, []


def _turns(ranked: list[Any], rest: list[Any]) -> list[tuple[Any, Any]]:
    """Each item with the next, and the last one with those not ranked."""
    return [*pairwise(ranked), *((ranked[-1], other) for other in rest if ranked)]


def _parts(ranking: tuple[list[Any], list[Any]], separated: Array) -> Iterable[list[Any]]:
    """A ranking without the comparisons that are separated."""
    ranked, rest = ranking
    cuts = np.flatnonzero(separated[: len(ranked) - 1]) + 1
    parts = [ranked[a:b] for a, b in zip([0, *cuts], [*cuts, len(ranked)], strict=True)]
    kept = {x for x, gone in zip(rest, separated[len(ranked) - 1 :], strict=False) if not gone}
    parts[-1] = [*parts[-1], kept] if kept else parts[-1]
    return [part for part in parts if len(part) > 1]


def codes_of(items: Array) -> tuple[list[Any], Array]:
    """The different items, in order, and where each one is among these."""
    if items.dtype.kind == "f" and np.isnan(items).any():
        raise ValueError("an item is NaN")
    try:
        found, codes = np.unique(items, return_inverse=True)
    except TypeError as error:
        raise ValueError("items must all be words, or all be numbers") from error
    return found.tolist(), codes.reshape(items.shape)
