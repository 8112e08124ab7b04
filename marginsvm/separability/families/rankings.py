"""Rankings as comparisons: each item with the next, and the last one with those not ranked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.separability.reading import codes_of


def table_of(rankings: Iterable[Any]) -> tuple[Array, list[Any]]:
    """A table of one column, of pairs of places: those ranked, and those not; and the items."""
    both = [_both(ranking) for ranking in rankings]
    if not both:
        raise ValueError("there are no rankings")
    table, lengths = np.empty((len(both), 1), object), [len(x) + len(rest) for x, rest in both]
    items, codes = codes_of(np.array([item for x, rest in both for item in [*x, *rest]]))
    for i, part in enumerate(np.split(codes, np.cumsum(lengths)[:-1])):
        if len(np.unique(part)) < len(part):
            raise ValueError(f"ranking {i} has an item twice")
        table[i, 0] = part[: len(both[i][0])], part[len(both[i][0]) :]
    return table, items


def _both(ranking: Any) -> tuple[list[Any], list[Any]]:
    """Items in their order, and those not ranked: a set at the end."""
    items = list(ranking)
    if items and isinstance(items[-1], (set, frozenset)):
        return items[:-1], sorted(items[-1])
    return items, []


def comparisons_of(table: Array) -> tuple[Array, Array, Array, Array]:
    """First and second items, the rankings of these, and their places in the rankings."""
    parts = list[Array]()
    for i, (ranked, rest) in enumerate(table):
        better, worse = ranked[:-1], ranked[1:]
        if len(ranked):
            better = np.append(better, np.full(len(rest), ranked[-1]))
            worse = np.append(worse, rest)
        n = len(better)
        parts.append(np.array([better, worse, np.full(n, i), np.arange(n)], dtype=int))
    first, second, of, column = np.concatenate(parts, axis=1)
    return first, second, of, column


def parts_of(ranking: Any, separated: Array) -> list[list[Any]]:
    """A ranking without the comparisons that are separated."""
    ranked, rest = _both(ranking)
    cuts = np.flatnonzero(separated[: len(ranked) - 1]) + 1
    parts = [ranked[a:b] for a, b in zip([0, *cuts], [*cuts, len(ranked)], strict=True)]
    kept = [x for x, gone in zip(rest, separated[len(ranked) - 1 :], strict=False) if not gone]
    if kept:
        parts[-1] = [*parts[-1], set(kept)]
    return [part for part in parts if len(part) > 1]
