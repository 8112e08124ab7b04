"""Rounds of Algorithm 2 of Ji, Srebro and Telgarsky in one compiled loop, ``play``.

Examples are sorted by class. Rows are in groups (c, j), the examples of class c against class j,
each a slice of row j of the scores (two classes: of the only row). The loop returns where a column
of the Gram matrix is missing; it goes on there, with the same draw, once the column is cached.

Two classes balance each other, and have no cycles: ``offsets`` is None, and numba leaves out what
is for several classes. Importing this module imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginsvm._compiling import compiled, parts
from marginsvm._typing import Array
from marginsvm.papers.coordinates import OPTIONS, REORDER, exp2
from marginsvm.problem.intercepts import (
    BALANCED,
    EPS,
    LOGARITHM_UNITS,
    LONG_STEP,
    MAX_STEPS,
    RIDGE,
    UNBALANCED,
)

LEAST_EXPONENT = -1000.0  # of 2: near it, numbers are subnormal, inaccurate and slow
LOG2_E = 1.4426950408889634
RUN = 128  # weights summed at a time: a quantile is searched for among sums, then in a run

_part = parts(fastmath=REORDER, **OPTIONS)


class Game(NamedTuple):
    """The examples, sorted by class, and the cached columns of their Gram matrix.

    Attributes
    ----------
    starts : ndarray of shape (n_classes + 1,)
        First example of each class.
    prior : ndarray of shape (n,)
        Sample weights; empty: all are 1.
    slack : ndarray of shape (n,)
        Squared length of each row's own coordinate.
    scale : float
        Factor from a column to a change of scores.
    balanced : bool
        Whether there is an intercept.
    order : ndarray of shape (n,)
        The examples' own numbers.
    columns, slot, used : ndarray
        See ``ColumnCache``.
    by_number : bool
        Whether the numbers of a column are in the examples' own order.
    """

    starts: Array
    prior: Array
    slack: Array
    scale: float
    balanced: bool
    order: Array
    columns: Array
    slot: Array
    used: Array
    by_number: bool


class Response(NamedTuple):
    """The distribution q of a round, and room for work.

    Attributes
    ----------
    e : ndarray of the shape of the scores
        Exponentials of minus the margins, relative to the largest one of their group.
    runs : ndarray of shape (len(e), n_runs)
        Their sums over runs of examples.
    totals, share : ndarray of shape (n_classes, n_classes)
        Their sums over groups, and the share of each group in q.
    groups : ndarray of shape (1, n_classes ** 2)
        The same shares in one row.
    logs, table, step, walk, path : ndarray
    """

    e: Array
    runs: Array
    totals: Array
    share: Array
    groups: Array
    logs: Array
    table: Array
    step: Array
    walk: Array
    path: Array

    @classmethod
    def room(cls, starts: Array, n_rows: int) -> Response:
        """Room for examples of these classes, and so many rows of scores."""
        k = len(starts) - 1
        n = int(starts[-1])
        totals, share, logs, table = np.zeros((4, k, k))
        return cls(
            e=np.zeros((n_rows, n)),
            runs=np.zeros((n_rows, n // RUN + k)),
            totals=totals,
            share=share,
            groups=share.reshape(1, -1),
            logs=logs,
            table=table,
            step=np.zeros((2, k)),
            walk=np.zeros(k + 1, np.int64),
            path=np.zeros(k + 1, np.int64),
        )


class Rounds(NamedTuple):
    """Rounds t = 0, 1, ... of a call, and what is drawn in them.

    Attributes
    ----------
    theta, beta : ndarray of shape (T,)
        Step and momentum.
    u : ndarray of shape (T, n_classes + 1)
        Uniform numbers.
    sizes : ndarray of shape (T,)
        Number of rows that are drawn; 0: not drawn yet.
    rows : ndarray of shape (T, n_classes, 3)
        Example, class and row of scores of each.
    traces : ndarray of shape (T + 1, 2)
        Coefficients of g before round t in w and g after the last round, so (0, 1) at T.
    """

    theta: Array
    beta: Array
    u: Array
    sizes: Array
    rows: Array
    traces: Array


@_part
def respond(game, w, offsets, q):
    """The softmax of minus the margins of w.

    With an intercept, it is balanced by offsets, with a warm start at those given.
    """
    k = len(q.share)
    for c in range(k):
        for j in range(k):
            q.totals[c, j] = 0.0
            q.logs[c, j] = -np.inf
            if j != c and game.starts[c] < game.starts[c + 1]:
                _weigh(game, w, c, j, q)
    if offsets is None:
        if game.balanced:
            q.logs[0, 1] = q.logs[1, 0] = 0.0
    elif game.balanced:
        _balance(q, offsets)
    _divide(q, offsets)


@_part
def _weigh(game, w, c, j, q):
    """Weights of a group, and their sums."""
    two = len(w) == 1
    begin = game.starts[c]
    end = game.starts[c + 1]
    r = 0 if two else j
    run = begin // RUN + c
    total = 0.0
    e = q.e[r, begin:end]
    x = w[r, begin:end]
    own = w[0 if two else c, begin:end]
    if two:
        sign = 2.0 * j - 1.0
        for i in range(len(e)):
            e[i] = sign * x[i]
    else:
        for i in range(len(e)):
            e[i] = x[i] - own[i]
    top = _largest(e)
    for a in range(0, len(e), RUN):
        part = e[a : a + RUN]
        weights = 0.0
        for i in range(len(part)):
            part[i] = exp2(max(LOG2_E * (part[i] - top), LEAST_EXPONENT))
            weights += part[i]
        if game.prior.shape[0]:
            prior = game.prior[begin + a : end]
            weights = 0.0
            for i in range(len(part)):
                part[i] *= prior[i]
                weights += part[i]
        q.runs[r, run] = weights
        total += weights
        run += 1
    q.totals[c, j] = total
    q.logs[c, j] = np.log(total) + top


@_part
def _largest(x):
    """In four parts: one maximum would wait for the one before."""
    a = b = c = d = x[0]
    for m in range(len(x) // 4):
        i = 4 * m
        a = max(a, x[i])
        b = max(b, x[i + 1])
        c = max(c, x[i + 2])
        d = max(d, x[i + 3])
    for i in range(len(x) // 4 * 4, len(x)):
        a = max(a, x[i])
    return max(max(a, b), max(c, d))


@_part
def _divide(q, offsets):
    """Shares of the groups, whose margins are shifted by the offsets."""
    k = len(q.share)
    top = -np.inf
    total = 0.0
    for c in range(k):
        for j in range(k):
            x = q.logs[c, j]
            if offsets is not None:
                x -= offsets[c] - offsets[j]
            q.share[c, j] = x
            top = max(top, x)
    for c in range(k):
        for j in range(k):
            q.share[c, j] = np.exp(q.share[c, j] - top)
            total += q.share[c, j]
    for c in range(k):
        for j in range(k):
            q.share[c, j] /= total


@_part
def _balance(q, beta):
    """``intercepts.balancing_offsets`` with a warm start, in place."""
    k = len(beta)
    largest = 0.0
    off = 0.0
    H = q.table
    step = q.step[0]
    first = q.step[1]
    for c in range(k):
        first[c] = beta[c]
        for j in range(k):
            if abs(q.logs[c, j]) < np.inf:
                largest = max(largest, abs(q.logs[c, j]))
    tol = max(BALANCED, LOGARITHM_UNITS * EPS * largest)
    for _ in range(MAX_STEPS):
        _divide(q, beta)
        off = 0.0
        for c in range(k):
            out = 0.0
            into = 0.0
            for j in range(k):
                H[c, j] = 1.0 / k - q.share[c, j] - q.share[j, c]
                out += q.share[c, j]
                into += q.share[j, c]
            H[c, c] += out + into + RIDGE
            step[c] = out - into
            off += abs(step[c])
        if off <= tol:
            return
        _solve(H, step)
        high = low = step[0]
        for c in range(k):
            high = max(high, step[c])
            low = min(low, step[c])
        d = high - low
        factor = np.log1p(d) / d if d > LONG_STEP else 1.0
        for c in range(k):
            beta[c] += factor * step[c]
    if off > UNBALANCED:  # weights in one direction
        for c in range(k):
            beta[c] = first[c]


@_part
def _solve(H, x):
    """``x = H^-1 x`` by Cholesky's factors, in place."""
    k = len(x)
    for c in range(k):
        for j in range(c + 1):
            t = H[c, j]
            for m in range(j):
                t -= H[c, m] * H[j, m]
            H[c, j] = np.sqrt(t) if c == j else t / H[j, j]
        for m in range(c):
            x[c] -= H[c, m] * x[m]
        x[c] /= H[c, c]
    for c in range(k - 1, -1, -1):
        for m in range(c + 1, k):
            x[c] -= H[m, c] * x[m]
        x[c] /= H[c, c]


@_part
def draw(game, offsets, q, rounds, t):
    """A row or, with an intercept, one row of each group of a cycle, which is balanced.

    Each class has its own uniform number, so that the start of the cycle does not matter.
    """
    k = len(q.share)
    u = rounds.u[t]
    path = q.path
    size = 2
    path[0] = 0
    path[1] = 1
    path[2] = 0
    if not game.balanced:
        group, _ = _find(q.groups, 0, 0, k * k, u[0])
        path[0] = group // k
        path[1] = group % k
        size = 1
    elif offsets is not None:
        size = cycle(q, u[0])
    rounds.sizes[t] = size
    for a in range(size):
        c = path[a]
        j = path[a + 1]
        r = j if len(q.e) > 1 else 0
        begin = game.starts[c]
        end = game.starts[c + 1]
        first = begin // RUN + c
        last = first + (end - begin + RUN - 1) // RUN
        run, rest = _find(q.runs, r, first, last, u[1 + c] * q.totals[c, j])
        begin += (run - first) * RUN
        i, _ = _find(q.e, r, begin, min(begin + RUN, end), rest)
        rounds.rows[t, a, 0] = i
        rounds.rows[t, a, 1] = c
        rounds.rows[t, a, 2] = r


@_part
def _find(x, r, begin, end, at):
    """First number of row r at which the running sum exceeds ``at``; never one that is 0.

    And ``at`` less the sum before it.
    """
    running = 0.0
    before = 0.0
    found = begin
    for i in range(begin, end):
        if x[r, i] > 0.0:
            found = i
            before = running
            running += x[r, i]
            if running > at:
                break
    return found, at - before


@_part
def cycle(q, u):
    """Draw a cycle of groups: classes path[0] -> path[1] -> ... -> path[0]; their number.

    A balanced table is a sum of cycles. Cycles along the largest entries are subtracted one by one,
    and the one at the quantile u is drawn: the mean over u is ``share``, and every draw is
    balanced. What rounding leaves is followed to its dead end, and dropped.
    """
    k = len(q.share)
    rest = q.table
    heaviest = q.step
    walk = q.walk
    size = 2
    for c in range(k):
        for j in range(k):
            rest[c, j] = q.share[c, j]
        heaviest[0, c] = rest[c, _argmax(rest, c)]
    while u >= 0.0:
        walk[0] = _argmax(heaviest, 0)
        m = 0
        around = -1
        while heaviest[0, walk[m]] > 0.0 and around < 0:
            m += 1
            walk[m] = _argmax(rest, walk[m - 1])
            for a in range(m):
                if walk[a] == walk[m]:
                    around = a
        if m == 0:
            break
        begin = around if around >= 0 else m - 1
        least = rest[walk[begin], walk[begin + 1]]
        for a in range(begin, m):
            least = min(least, rest[walk[a], walk[a + 1]])
        for a in range(begin, m):
            rest[walk[a], walk[a + 1]] -= least
            heaviest[0, walk[a]] = rest[walk[a], _argmax(rest, walk[a])]
        if around >= 0:
            size = m - around
            u -= least * size
            for a in range(size + 1):
                q.path[a] = walk[around + a]
    return size


@_part
def _argmax(x, r):
    best = 0
    for j in range(x.shape[1]):
        if x[r, j] > x[r, best]:
            best = j
    return best


@_part
def move(game, w, g, rounds, t):
    """``g = beta (g + z)`` and ``w = w + theta (g + z)``, z the mean of the drawn rows.

    In a row of scores, z is a combination of at most two columns.
    """
    size = rounds.sizes[t]
    theta = rounds.theta[t]
    beta = rounds.beta[t]
    two = len(w) == 1
    drawn = rounds.rows[t]
    game.used[-1] += 1
    for a in range(size):  # the rows' own coordinates
        i = drawn[a, 0]
        c = drawn[a, 1]
        r = drawn[a, 2]
        own = (2.0 * c - 1.0 if two else -1.0) * game.slack[i] / size
        g[r, i] += own
        w[r, i] += theta * own
        game.used[game.slot[game.order[i]]] = game.used[-1]
    for r in range(len(w)):
        one = other = game.slot[game.order[drawn[0, 0]]]
        factor = last = 0.0
        for a in range(size):
            c = drawn[a, 1]
            if drawn[a, 2] == r or (c == r and not two):
                other = one
                last = factor
                one = game.slot[game.order[drawn[a, 0]]]
                sign = 2.0 * c - 1.0 if two else 1.0 if c == r else -1.0
                factor = sign * game.scale / size
        _advance(game, w[r], g[r], factor, one, last, other, theta, beta)


@_part
def _advance(game, w, g, factor, one, last, other, theta, beta):
    if factor == 0.0 and last == 0.0:
        for m in range(len(w)):
            g[m] *= beta
            w[m] += theta * g[m]
        return
    x = game.columns[one]
    y = game.columns[other]
    for m in range(len(w)):
        i = game.order[m] if game.by_number else m
        z = factor * x[i] + last * y[i]
        new = beta * (g[m] + z)
        w[m] += theta * (new + z)
        g[m] = new


@_part
def trace(rounds):
    """Fill ``traces``, backwards."""
    theta = rounds.theta
    beta = rounds.beta
    traces = rounds.traces
    T = len(rounds.u)
    traces[T, 0] = 0.0
    traces[T, 1] = 1.0
    for t in range(T - 1, -1, -1):
        traces[t, 0] = beta[t] * (theta[t] + traces[t + 1, 0])
        traces[t, 1] = beta[t] * traces[t + 1, 1]


@compiled(fastmath=REORDER, **OPTIONS)
def play(game, w, g, offsets, q, rounds, t):
    """Rounds t, t + 1, ... in place, until one that lacks a column; the number of this one."""
    while t < len(rounds.u):
        if rounds.sizes[t] == 0:
            respond(game, w, offsets, q)  # q_t
            draw(game, offsets, q, rounds, t)  # i_t
            for a in range(rounds.sizes[t]):
                if game.slot[game.order[rounds.rows[t, a, 0]]] < 0:
                    return t
        move(game, w, g, rounds, t)  # g_t, w_{t+1}
        t += 1
    trace(rounds)
    return t
