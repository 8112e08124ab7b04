"""Compiled loops that gather the kernel values of a working set in one block of memory."""

from marginsvm._compiling import compiled
from marginsvm._typing import Array


@compiled()
def gather(
    columns: Array,
    places: Array,
    examples: Array,
    first: int,
    scale: float,
    constant: float,
    K: Array,
) -> None:
    """Rows of K from ``first`` on: ``scale`` times values of all examples, plus a constant."""
    for a in range(len(places)):
        column = columns[places[a]]
        for b in range(len(examples)):
            K[first + a, b] = scale * column[examples[b]] + constant


@compiled()
def thin_out(before: Array, kept: Array, K: Array) -> None:
    """Rows and columns that are kept, in ascending order; K may be the same memory."""
    for a in range(len(kept)):
        row = before[kept[a]]
        for b in range(len(kept)):
            K[a, b] = row[kept[b]]
