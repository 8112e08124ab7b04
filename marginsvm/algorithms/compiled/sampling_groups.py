"""Groups of rows as the sampling loops see them: k x k tables, balanced and drawn from."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from marginsvm._compiling import compiled

# "contract" lets a product and a sum be one instruction, with one rounding, where the compiler
# likes. A function that is called would be there twice, alone and in its caller's module, rounding
# differently, and which of them a process takes depends on what it found in the cache on disk.
# Inlined, it is there once; draws take 0.6 to 0.75 of the time, too.
inlined = njit(forceinline=True, error_model="numpy", fastmath={"contract"})
loop = compiled(error_model="numpy", fastmath={"contract"})

SWEEPS, BALANCED = 200, 1e-10  # Osborne's iteration: sweeps at most; largest step when done


@inlined
def log_flow(table, offsets, c, out):
    """Logarithm of all that flows out of the class c, or into it."""
    k, high, total = len(table), -np.inf, 0.0
    for j in range(k):
        x = table[c, j] + offsets[j] if out else table[j, c] - offsets[j]
        high = max(high, x) if j != c else high
    for j in range(k):
        x = table[c, j] + offsets[j] if out else table[j, c] - offsets[j]
        total += math.exp(x - high) if j != c else 0.0
    return high + math.log(total)


@inlined
def find_balancing_offsets(table, offsets):
    """Offsets at which exp(table[c, j] - offsets[c] + offsets[j]) is balanced: matrix balancing."""
    k = len(table)
    for _ in range(SWEEPS):
        largest = 0.0
        for c in range(k):
            out, into = log_flow(table, offsets, c, True), log_flow(table, offsets, c, False)
            step = 0.5 * (out - into) - offsets[c]
            offsets[c] += step
            largest = max(largest, abs(step))
        if largest < BALANCED:
            break
    for c in range(k - 1, -1, -1):  # only differences count
        offsets[c] -= offsets[0]


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
def heaviest_from(share, c):
    """The class j of the heaviest group (c, j)."""
    best = 0
    for j in range(len(share)):
        best = j if share[c, j] > share[c, best] else best
    return best


@inlined
def heaviest(share):
    """The class c of the heaviest group (c, j)."""
    best = 0
    for c in range(len(share)):
        if share[c, heaviest_from(share, c)] > share[best, heaviest_from(share, best)]:
            best = c
    return best


@inlined
def next_cycle(rest, walk, seen):
    """Follow the heaviest groups from class to class until one comes again.

    Returns where the cycle begins and ends in ``walk``: equal if nothing is left.
    """
    while True:
        for c in range(len(rest)):
            seen[c] = -1
        node, n = heaviest(rest), 0
        while seen[node] < 0 and rest[node, heaviest_from(rest, node)] > 0.0:
            seen[node], walk[n] = n, node
            node, n = heaviest_from(rest, node), n + 1
        if n == 0:
            return 0, 0
        if seen[node] >= 0:
            walk[n] = node
            return seen[node], n
        rest[walk[n - 1], node] = 0.0  # a dead end: what rounding left of the balance


@inlined
def pick_cycle(share, u, path):
    """Draw a cycle of groups path[0] -> path[1] -> ... -> path[0]; returns its length.

    Balanced masses are a sum of cycles. Those found by following the heaviest groups are
    taken off one by one, and the one at the quantile u is drawn: the mean over u is
    ``share``, and every draw is balanced.
    """
    k, length = len(share), 0
    rest, walk, seen = np.empty((k, k)), np.empty(k + 1, np.int64), np.empty(k, np.int64)
    for n in range(k * k):
        rest.flat[n] = share.flat[n]
    while u >= 0.0:
        first, last = next_cycle(rest, walk, seen)
        if first == last:
            break
        length, least = last - first, np.inf
        for m in range(length + 1):
            path[m] = walk[first + m]
        for m in range(length):
            least = min(least, rest[path[m], path[m + 1]])
        for m in range(length):
            rest[path[m], path[m + 1]] -= least
        u -= least * length
    return length
