"""How far a matrix is from being symmetric, by one compiled pass over its tiles."""

from __future__ import annotations

from marginsvm._compiling import compiled
from marginsvm._typing import Array

# Side of the tiles, two of which stay in cache, and of the parts of these that are compared:
# columns of more rows would evict each other.
TILE = 64
PART = 32


@compiled(error_model="numpy", fastmath={"contract", "nsz", "reassoc"})
def asymmetry(K: Array, most: Array) -> float:
    """Largest ``|K - K'|``, or NaN if an entry is not finite.

    A tile and its mirror image are first read along rows, as memory serves them best. ``most`` are
    PART zeros: a maximum for each lane, so that compilers vectorise it.
    """
    n = len(K)
    zero = 0.0
    for a in range(0, n, TILE):
        for b in range(a, n, TILE):
            for first, other in ((a, b), (b, a)):
                for i in range(first, min(first + TILE, n)):
                    row = K[i, other : other + TILE]
                    for c in range(len(row)):
                        zero += 0.0 * row[c]
            for i in range(a, min(a + TILE, n)):
                for q in range(b, min(b + TILE, n), PART):
                    row = K[i, q : min(q + PART, n)]
                    column = K[q : min(q + PART, n), i]
                    for c in range(len(row)):
                        change = abs(row[c] - column[c])
                        most[c] = change if change > most[c] else most[c]
    return most.max() + zero
