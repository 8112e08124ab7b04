"""The loops of adaptive sampling that touch every score once a draw (compiled on first use).

Examples are sorted by class and scores are class-major, (k, N): the rows of a group (c, j)
are the slice c of two contiguous rows of scores, so nearly all work is plain vector code,
and a draw changes two rows of scores. Nothing is parallel, and sums are taken lane by lane
rather than reordered, so results do not depend on the number of threads. Loops are spelled
out, as array expressions take seconds to compile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from marginsvm.algorithms.compiled.sampling_groups import (
    find_balancing_offsets,
    inlined,
    loop,
    pick_cycle,
    pick_group,
)

LANES = 64  # rows whose weights are worked out together, or skipped together where all vanish
CUT = 43.0  # exp(-43) = 2e-19: a million rows below the cut weigh 2e-13 of the worst one
FOLD = 1e4  # largest cancellation in w = w_hat + s g_hat that is let stand
HALF = math.sqrt(0.5)
C8, C7, C6, C5, C4, C3 = (1.0 / math.factorial(m) for m in range(8, 2, -1))
C, S, MASS_W, MASS_G, COLUMNS = range(5)  # the scalars of a state, as play() changes them


@njit(inline="always", fastmath={"contract"})
def exp_negative(z: float) -> Any:
    """exp(z), z <= 0, as Taylor(z/128)^128: no call, no bits, so it vectorises; 0 below the cut.

    Relative error 2e-12 down to z = -15, 2e-8 at the cut, where the weight itself is 2e-19.
    """
    x = max(z, -CUT) * (1.0 / 128.0)
    p = (((((C8 * x + C7) * x + C6) * x + C5) * x + C4) * x + C3) * x + 0.5
    p = (p * x + 1.0) * x + 1.0
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    return p if z > -CUT else 0.0


@inlined
def minus_margins(w, g, s, c, j, lo, hi, gap):
    """Set gap to -(margins of w = w_hat + s g_hat) of the rows (lo..hi, j), examples of class c."""
    w_j, g_j, w_c, g_c = w[j, lo:hi], g[j, lo:hi], w[c, lo:hi], g[c, lo:hi]
    for i in range(hi - lo):
        gap[i] = HALF * ((w_j[i] - w_c[i]) + s * (g_j[i] - g_c[i]))


@inlined
def worst_of_groups(w, g, s, starts, top):
    """top[c, j] = -(smallest margin of the group (c, j))."""
    k = len(w)
    gap, most = np.empty(LANES), np.empty(LANES)
    for c in range(k):
        for j in range(k):
            top[c, j] = -np.inf
            if j == c:
                continue
            for i in range(LANES):
                most[i] = -np.inf
            for lo in range(starts[c], starts[c + 1], LANES):
                hi = min(lo + LANES, starts[c + 1])
                minus_margins(w, g, s, c, j, lo, hi, gap)
                for i in range(hi - lo):
                    most[i] = gap[i] if gap[i] > most[i] else most[i]
            for i in range(LANES):
                top[c, j] = most[i] if most[i] > top[c, j] else top[c, j]


@inlined
def weights(w, g, s, c, j, lo, hi, top, prior, e):
    """Set e to prior exp(-margins - top) of the rows (lo..hi, j); False where all vanish."""
    minus_margins(w, g, s, c, j, lo, hi, e)
    hot = 0
    for i in range(hi - lo):
        e[i] -= top
        hot += e[i] > -CUT
    if hot == 0:
        return False
    weight = prior[lo:hi]
    for i in range(hi - lo):
        e[i] = weight[i] * exp_negative(e[i])
    return True


@inlined
def sum_of_groups(w, g, s, starts, prior, top, total):
    """total[c, j] = sum of prior exp(-margins - top[c, j]) over the group (c, j)."""
    k = len(w)
    e, lanes = np.empty(LANES), np.empty(LANES)
    for c in range(k):
        for j in range(k):
            total[c, j] = 0.0
            if j == c:
                continue
            for i in range(LANES):
                lanes[i] = 0.0
            for lo in range(starts[c], starts[c + 1], LANES):
                hi = min(lo + LANES, starts[c + 1])
                if weights(w, g, s, c, j, lo, hi, top[c, j], prior, e):
                    for i in range(hi - lo):
                        lanes[i] += e[i]
            for i in range(LANES):
                total[c, j] += lanes[i]


@inlined
def respond(w, g, s, starts, prior, balanced, offsets, top, total, share):
    """Respond by q = softmax(-margins): share[c, j] is a group's mass; top, total weigh within.

    With an intercept, ``offsets`` become those that balance the groups.
    """
    k, high, mass = len(w), -np.inf, 0.0
    worst_of_groups(w, g, s, starts, top)
    for n in range(k * k):
        high = max(high, top.flat[n])
    for n in range(k * k):
        top.flat[n] = top.flat[n] if balanced else high
    sum_of_groups(w, g, s, starts, prior, top, total)
    for n in range(k * k):
        share.flat[n] = top.flat[n] + math.log(total.flat[n]) if total.flat[n] > 0.0 else -np.inf
    if balanced:
        find_balancing_offsets(share, offsets)
    high = -np.inf
    for c in range(k):
        for j in range(k):
            share[c, j] += offsets[j] - offsets[c] if balanced else 0.0
            high = max(high, share[c, j])
    for n in range(k * k):
        share.flat[n] = math.exp(share.flat[n] - high)
        mass += share.flat[n]
    for n in range(k * k):
        share.flat[n] /= mass


@loop
def example_weights(w, g, s, starts, prior, balanced, offsets, weight):
    """weight[i] = mass of all rows of an example under q."""
    k = len(w)
    top, total, share = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    e = np.empty(LANES)
    respond(w, g, s, starts, prior, balanced, offsets, top, total, share)
    for i in range(len(weight)):
        weight[i] = 0.0
    for c in range(k):
        for j in range(k):
            if total[c, j] <= 0.0:
                continue
            x = share[c, j] / total[c, j]
            for lo in range(starts[c], starts[c + 1], LANES):
                hi = min(lo + LANES, starts[c + 1])
                if weights(w, g, s, c, j, lo, hi, top[c, j], prior, e):
                    for i in range(hi - lo):
                        weight[lo + i] += x * e[i]


@inlined
def pick_row(w, g, s, starts, prior, top, total, c, j, u):
    """The example at the quantile u of the group (c, j), in the order by class."""
    rest, chosen = u * total[c, j], starts[c]
    e = np.empty(LANES)
    for lo in range(starts[c], starts[c + 1], LANES):
        hi = min(lo + LANES, starts[c + 1])
        if not weights(w, g, s, c, j, lo, hi, top[c, j], prior, e):
            continue
        for i in range(hi - lo):
            if e[i] > 0.0:  # remembered, so that rounding never runs off the end
                chosen = lo + i
                if rest < e[i]:
                    return chosen
                rest -= e[i]
    return chosen


@inlined
def add_row(scores, coef, kappa, c, j, i, x, slack):
    """Add x a to scores, x to coef: a = (i, c -> j), its kernel column over R^2 is kappa."""
    plus, minus, x_kappa = scores[c], scores[j], x * HALF
    for n in range(len(kappa)):
        plus[n] += x_kappa * kappa[n]
        minus[n] -= x_kappa * kappa[n]
    coef[j, i] += x
    minus[i] -= 2.0 * HALF * x * slack[i]  # the row's own coordinate, seen by this row alone


@inlined
def fold(w, g, q_w, q_g, scalars):
    """w_hat <- w, g_hat <- g, c <- 1, s <- 0: the same w and g, without the cancellation."""
    c, s = scalars[C], scalars[S]
    for j in range(len(w)):
        w_j, g_j, u_j, v_j = w[j], g[j], q_w[j], q_g[j]
        for i in range(len(w_j)):
            w_j[i] += s * g_j[i]
            u_j[i] += s * v_j[i]
            g_j[i] *= c
            v_j[i] *= c
    scalars[C], scalars[S] = 1.0, 0.0


@inlined
def advance(scalars, theta, beta, w, g, q_w, q_g):
    """Set the scalars of g' = beta (g + a), w' = w + theta (g' + a).

    Returns the factors of a in w_hat and g_hat.
    """
    if beta == 0.0 and scalars[MASS_G] > 0.0:  # g' = 0: nothing of g_hat survives
        fold(w, g, q_w, q_g, scalars)
        for n in range(g.size):
            g.flat[n] = q_g.flat[n] = 0.0
    scalars[MASS_G] = beta * (scalars[MASS_G] + 1.0)
    scalars[MASS_W] += theta * (scalars[MASS_G] + 1.0)
    if beta == 0.0:
        return theta, 0.0
    # w' = w_hat + (theta - s/c) a + (s + theta c') (g_hat + a/c)
    x_w, x_g = theta - scalars[S] / scalars[C], 1.0 / scalars[C]
    scalars[C] *= beta
    scalars[S] += theta * scalars[C]
    return x_w, x_g


@loop
def play(
    w, g, q_w, q_g, offsets, scalars, starts, order, prior, slack, balanced,
    columns, slot, used, scale, theta, beta, uniforms, wanted,
):  # fmt: skip
    """Algorithm 2: draws until the schedules end or a column is missing; returns how many.

    ``columns[slot[i]]`` is the kernel column of the example i; ``used`` is stamped whenever one is
    taken. A draw that lacks a column is not made: ``wanted`` are the examples that it needs.
    """
    k, N = w.shape
    top, total, share = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    path, rows, kappa = np.empty(k + 1, np.int64), np.empty(k, np.int64), np.empty(N)
    trial = np.empty(k)
    for t in range(len(theta)):
        s, u, missing = scalars[S], uniforms[t], False
        for c in range(k):
            trial[c], wanted[c] = offsets[c], -1
        respond(w, g, s, starts, prior, balanced, trial, top, total, share)
        m = pick_cycle(share, u[0], path) if balanced else pick_group(share, u[0], path)
        for r in range(m):
            c, j = path[r], path[r + 1]
            u_r = u[1 + c] if balanced else u[1]  # wherever a cycle is said to begin
            rows[r] = pick_row(w, g, s, starts, prior, top, total, c, j, u_r)
            wanted[r] = order[rows[r]]
            missing |= slot[wanted[r]] < 0
        if missing:
            return t
        for c in range(k):
            offsets[c] = trial[c]
        x_w, x_g = advance(scalars, theta[t], beta[t], w, g, q_w, q_g)
        for r in range(m):
            c, j, i = path[r], path[r + 1], rows[r]
            column = columns[slot[wanted[r]]]
            used[-1] += 1
            used[slot[wanted[r]]] = used[-1]
            for n in range(N):
                kappa[n] = scale * column[order[n]]
            add_row(w, q_w, kappa, c, j, i, x_w / m, slack)
            if x_g != 0.0:
                add_row(g, q_g, kappa, c, j, i, x_g / m, slack)
        scalars[COLUMNS] += m
        if scalars[C] * FOLD < 1.0 or abs(scalars[S]) > FOLD * scalars[C]:
            fold(w, g, q_w, q_g, scalars)
    return len(theta)
