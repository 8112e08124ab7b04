"""The loops of adaptive sampling that touch every score once a draw (compiled on first use).

Examples are sorted by class and scores are class-major, k x N numbers in a row: the rows of a
group (c, j) are the slice c of two contiguous pieces of scores, so nearly all work is plain vector
code, and a draw changes two pieces of scores. Nothing is parallel, and sums are taken lane by lane
rather than reordered, so results do not depend on the number of threads. Loops are spelled
out, as array expressions take seconds to compile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from marginsvm._compiling import parts
from marginsvm.algorithms.compiled.sampling_groups import (
    balance,
    inlined,
    loop,
    pick_cycle,
    pick_group,
)
from marginsvm.algorithms.sampling_state import COLUMNS, FOLD, HALF, MASS_G, C, S
from marginsvm.algorithms.sampling_state import advance as advance_scalars

_index = np.uint64  # unsigned: no test for an index that counts from the end
LANES = 64  # rows whose weights are worked out together, or skipped together where all vanish
CUT = 43.0  # exp(-43) = 2e-19: a million rows below the cut weigh 2e-13 of the worst one
C8, C7, C6, C5, C4, C3 = (1.0 / math.factorial(m) for m in range(8, 2, -1))
advance = inlined(advance_scalars)  # compiled here, and plain Python where NumPy draws


@parts(inline="always", fastmath={"contract"})
def exp_negative(z: float) -> Any:
    """exp(z), z <= 0, as Taylor(z/128)^128: no call, no bits, so it vectorises; 0 below the cut.

    Relative error 2e-12 down to z = -15, 2e-8 at the cut, where the weight itself is 2e-19.
    """
    x = max(z, -CUT) * (1.0 / 128.0)
    p = (((((C8 * x + C7) * x + C6) * x + C5) * x + C4) * x + C3) * x + 0.5
    p = (p * x + 1.0) * x + 1.0
    return p**128 if z > -CUT else 0.0


@inlined
def minus_margin(w, g, s, own, other):
    """-(margin of w = w_hat + s g_hat) of the row whose scores are at ``own`` and ``other``."""
    return HALF * ((w[other] - w[own]) + s * (g[other] - g[own]))


@inlined
def largest(w, g, s, own, other, size, lanes):
    """-(smallest margin of a group), whose scores begin at ``own`` and ``other``."""
    most = -np.inf
    for i in range(LANES):
        lanes[i] = most
    for lo in range(_index(0), size, _index(LANES)):
        for i in range(min(_index(LANES), size - lo)):
            x = minus_margin(w, g, s, own + lo + i, other + lo + i)
            lanes[i] = x if x > lanes[i] else lanes[i]
    for i in range(LANES):
        most = lanes[i] if lanes[i] > most else most
    return most


@inlined
def add_weights(w, g, s, own, other, m, top, prior, first, lanes, e):
    """Add the weights prior exp(-margins - top) of at most ``LANES`` rows to lanes, e being them.

    False where all vanish.
    """
    hot = 0
    for i in range(m):
        e[i] = minus_margin(w, g, s, own + i, other + i) - top
        hot += e[i] > -CUT
    if hot == 0:
        return False
    for i in range(m):
        e[i] = prior[first + i] * exp_negative(e[i])
        lanes[i] += e[i]
    return True


@inlined
def weigh(w, g, s, own, other, size, top, prior, first, u, lanes, e):
    """Weights of a group, whose examples begin at ``first``.

    Where u is negative, ``lanes[0]`` is set to their sum. Otherwise the example is returned where
    their running sum exceeds u.
    """
    chosen, total = first, 0.0
    for i in range(LANES):
        lanes[i] = total
    for lo in range(_index(0), size, _index(LANES)):
        m = min(_index(LANES), size - lo)
        hot = add_weights(w, g, s, own + lo, other + lo, m, top, prior, first + lo, lanes, e)
        if u < 0.0 or not hot:
            continue
        for i in range(m):
            if e[i] > 0.0:  # remembered, so that rounding never runs off the end
                chosen = first + lo + i
                if u < e[i]:
                    return chosen
                u -= e[i]
    for i in range(LANES):
        total += lanes[i]
    lanes[0] = total
    return chosen


@inlined
def measure(w, g, s, starts, prior, balanced, top, total, lanes, e):
    """top[c, j] = -(smallest margin of the group (c, j)), or of all rows unless balanced.

    total[c, j] = sum of prior exp(-margins - top[c, j]) over the group.
    """
    k, N, high = len(top), _index(len(prior)), -np.inf
    for c in range(k):
        own, size = _index(c) * N + starts[c], starts[c + 1] - starts[c]
        for j in range(k):
            top[c, j] = -np.inf
            if j != c:
                top[c, j] = largest(w, g, s, own, _index(j) * N + starts[c], size, lanes)
                high = max(high, top[c, j])
    for c in range(k):
        own, size, first = _index(c) * N + starts[c], starts[c + 1] - starts[c], starts[c]
        for j in range(k):
            total[c, j], top[c, j] = 0.0, top[c, j] if balanced else high
            if j != c:
                other = _index(j) * N + first
                weigh(w, g, s, own, other, size, top[c, j], prior, first, -1.0, lanes, e)
                total[c, j] = lanes[0]


@inlined
def respond(top, total, offsets, trial, share):
    """Respond by q = softmax(-margins): share[c, j] is a group's mass; top, total weigh within.

    With an intercept, ``trial`` becomes the offsets that balance the groups, begun at ``offsets``;
    without, it is None.
    """
    k, high, mass = len(share), -np.inf, 0.0
    for c in range(k):
        for j in range(k):
            share[c, j] = top[c, j] + math.log(total[c, j]) if total[c, j] > 0.0 else -np.inf
    if trial is not None:
        balance(share, offsets, trial)
    for c in range(k):
        for j in range(k):
            high = max(high, share[c, j])
    for c in range(k):
        for j in range(k):
            share[c, j] = math.exp(share[c, j] - high)
            mass += share[c, j]
    for c in range(k):
        for j in range(k):
            share[c, j] /= mass


@inlined
def pick_rows(w, g, s, starts, prior, top, total, path, m, u, unbalanced, rows, lanes, e):
    """One row of each of the groups path[0] -> path[1] -> ..., at quantiles u[1:] by class."""
    N = _index(len(prior))
    for r in range(m):
        c, j = path[r], path[r + 1]
        x = total[c, j] * u[1 if unbalanced else 1 + c]  # wherever a cycle is said to begin
        first, size = starts[c], starts[c + 1] - starts[c]
        own, other = _index(c) * N + first, _index(j) * N + first
        rows[r] = weigh(w, g, s, own, other, size, top[c, j], prior, first, x, lanes, e)


@inlined
def add_row(scores, coef, x, own, other, i, kappa, slack):
    """Add x a to scores, x to coef: a = (i, c -> j), its kernel column over R^2 is kappa."""
    x_kappa = x * HALF
    if x == 0.0:
        return
    for n in range(_index(len(kappa))):
        scores[own + n] += x_kappa * kappa[n]
        scores[other + n] -= x_kappa * kappa[n]
    coef[other + i] += x
    # the row's own coordinate, seen by this row alone
    scores[other + i] -= 2.0 * HALF * x * slack[i]


@inlined
def fold(w, g, q_w, q_g, scalars, ends):
    """w_hat <- w, g_hat <- g, c <- 1, s <- 0: the same w and g, without the cancellation.

    Where g ends, as beta is 0, nothing of it survives.
    """
    c, s = scalars[C], scalars[S]
    if not ends and c * FOLD >= 1.0 and abs(s) <= FOLD * c:
        return
    c = 0.0 if ends else c
    for i in range(len(w)):
        w[i] += s * g[i]
        q_w[i] += s * q_g[i]
        g[i] *= c
        q_g[i] *= c
    scalars[C], scalars[S] = 1.0, 0.0


@loop
def play(
    w, g, q_w, q_g, offsets, trial, scalars, starts, order, prior, slack,
    columns, slot, used, scale, theta, beta, uniforms, wanted, tables, cycle, vectors,
):  # fmt: skip
    """Algorithm 2: draws until the schedules end or a column is missing; returns how many.

    ``columns[slot[i]]`` is the kernel column of the example i; ``used`` is stamped whenever one is
    taken. A draw that lacks a column is not made: ``wanted`` are the examples that it needs.
    ``trial`` is None without an intercept. The last three are scratch space.
    """
    (top, total, share, rest), (path, walk, seen, best, rows) = tables, cycle
    k, N, (kappa, lanes, e) = len(share), _index(len(prior)), vectors
    for t in range(len(theta)):
        s, u, missing = scalars[S], uniforms[t], False
        measure(w, g, s, starts, prior, trial is not None, top, total, lanes, e)
        respond(top, total, offsets, trial, share)
        if trial is None:
            m = pick_group(share, u[0], path)
        else:
            m = pick_cycle(share, u[0], path, rest, walk, seen, best)
        pick_rows(w, g, s, starts, prior, top, total, path, m, u, trial is None, rows, lanes, e)
        for r in range(k):
            wanted[r] = order[rows[r]] if r < m else -1
            missing |= r < m and slot[wanted[r]] < 0
        if missing:
            return t
        if trial is not None:
            for c in range(k):
                offsets[c] = trial[c]
        ends = beta[t] == 0.0 and scalars[MASS_G] > 0.0
        x_w, x_g = advance(scalars, theta[t], beta[t])
        for r in range(m):
            own, other = _index(path[r]) * N, _index(path[r + 1]) * N
            at, i = _index(slot[wanted[r]]), _index(rows[r])
            used[-1] += 1
            used[at] = used[-1]
            for n in range(N):
                kappa[n] = scale * columns[at, _index(order[n])]
            add_row(w, q_w, x_w / m, own, other, i, kappa, slack)
            add_row(g, q_g, x_g / m, own, other, i, kappa, slack)
        scalars[COLUMNS] += m
        fold(w, g, q_w, q_g, scalars, ends)
    return len(theta)
