"""Groups of rows as the sampling loops see them: k x k tables, balanced and drawn from.

Nothing here allocates: scratch space comes from the caller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from marginsvm._compiling import compiled, parts

# "contract" lets a product and a sum be one instruction, with one rounding, where the compiler
# likes. Only one function is called from Python, and all others are parts of it: with an entry of
# its own, a part would be there twice, rounding differently.
# _nrt=False: no reference counts, as nothing here allocates.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}
inlined, loop = parts(forceinline=True, **_OPTIONS), compiled(**_OPTIONS)

SWEEPS, BALANCED = 200, 1e-10  # Osborne's iteration: sweeps at most; largest step when done


@inlined
def log_ratio(table, offsets, c):
    """Logarithm of what flows out of the class c over what flows into it."""
    high_out, high_in, out, into = -np.inf, -np.inf, 0.0, 0.0
    for j in range(len(table)):
        if j != c:
            high_out = max(high_out, table[c, j] + offsets[j])
            high_in = max(high_in, table[j, c] - offsets[j])
    for j in range(len(table)):
        if j != c:
            out += math.exp(table[c, j] + offsets[j] - high_out)
            into += math.exp(table[j, c] - offsets[j] - high_in)
    return high_out + math.log(out) - (high_in + math.log(into))


@inlined
def balance(table, start, offsets):
    """Offsets at which exp(table[c, j] - offsets[c] + offsets[j]) is balanced: matrix balancing.

    They begin at ``start``, and are added to the table.
    """
    k, largest = len(table), np.inf
    for c in range(k):
        offsets[c] = start[c]
    for _ in range(SWEEPS):
        if largest < BALANCED:
            break
        largest = 0.0
        for c in range(k):
            step = 0.5 * log_ratio(table, offsets, c) - offsets[c]
            offsets[c] += step
            largest = max(largest, abs(step))
    first = offsets[0]
    for c in range(k):  # only differences count
        offsets[c] -= first
    for c in range(k):
        for j in range(k):
            table[c, j] += offsets[j] - offsets[c]


@inlined
def pick_group(share, u, path):
    """The group (path[0], path[1]) at the quantile u."""
    k = len(share)
    for c in range(k):
        for j in range(k):
            if share[c, j] > 0.0:
                path[0], path[1] = c, j
                if u < share[c, j]:
                    return 1
                u -= share[c, j]
    return 1


@inlined
def heaviest(table, best):
    """The class c of the heaviest group (c, j), and best[c] = j for each class."""
    k, node = len(table), 0
    for c in range(k):
        best[c] = 0
        for j in range(k):
            if table[c, j] > table[c, best[c]]:
                best[c] = j
        if table[c, best[c]] > table[node, best[node]]:
            node = c
    return node


@inlined
def pick_cycle(share, u, path, rest, walk, seen, best):
    """Draw a cycle of groups path[0] -> path[1] -> ... -> path[0]; returns its length.

    Balanced masses are a sum of cycles. Those found by following the heaviest groups from class to
    class are taken off one by one, and the one at the quantile u is drawn: the mean over u is
    ``share``, and every draw is balanced.
    """
    k, length = len(share), 0
    for c in range(k):
        for j in range(k):
            rest[c, j] = share[c, j]
    while u >= 0.0:
        node, n = heaviest(rest, best), 0
        for c in range(k):
            seen[c] = -1
        while seen[node] < 0 and rest[node, best[node]] > 0.0:
            seen[node], walk[n] = n, node
            node, n = best[node], n + 1
        if n == 0:
            break
        walk[n], first, least = node, seen[node], np.inf
        if first < 0:  # a dead end: what rounding left of the balance
            rest[walk[n - 1], node] = 0.0
            continue
        for m in range(first, n):
            least = min(least, rest[walk[m], walk[m + 1]])
        length = n - first
        path[length] = node
        for m in range(first, n):
            path[m - first] = walk[m]
            rest[walk[m], walk[m + 1]] -= least
        u -= least * length
    return length
