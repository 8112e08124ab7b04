"""Draws of adaptive sampling: the rounds between two looks at the bounds, by NumPy or compiled.

Both make the same draws, to rounding. The first ones are by NumPy; the compiled loop, which takes
half a second to load and seconds to compile, makes those of longer fits.

Examples are sorted by class and scores are class by class, (n_classes, n_examples). So the rows of
a group (c, j), examples of class c held against class j, are the slice j of some columns, and what
is known of the groups are tables of k x k numbers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.sampling_state import (
    COLUMNS,
    HALF,
    MASS_G,
    S,
    SamplingState,
    add_row,
    advance,
    fold,
    slack_per_example,
)
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import with_columns
from marginsvm.kernel_matrix.responses.balancing import balancing_offsets, shifted_table

# What the compiled loop takes of every process, to import numba and to load what it has compiled
# (seconds), and by how much its draws are quicker: for each class, and for each score (seconds).
_LOADING, _QUICKER_BY_CLASS, _QUICKER_BY_SCORE = 0.5, 4e-5, 3e-9
LEAST_EXPONENT = -700.0  # least exponent: below it, numbers lose digits, and arithmetic its speed
_CHUNK = 256  # weights that are summed before those that a quantile is among are looked for


def draws_by_numpy(k: int, n_examples: int) -> int:
    """Draws after which the compiled loop would have paid for being loaded.

    A number, and not a look at a clock, so that fits repeat bit for bit.
    """
    return int(_LOADING / (k * (_QUICKER_BY_CLASS + _QUICKER_BY_SCORE * n_examples)))


def draw(
    problem: KernelMatrixAdapter, state: SamplingState, theta: Array, beta: Array, u: Array
) -> SamplingState:
    """Make some draws.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    state : SamplingState
    theta, beta : ndarray of shape (n_draws,)
        Steps and momenta (dimensionless).
    u : ndarray of shape (n_draws, n_uniforms)
        Uniform numbers in [0, 1).
    """
    state, n = replace(state.copy(), t=state.t + len(theta)), len(theta)
    first = min(max(draws_by_numpy(*state.w.shape) - (state.t - n), 0), n)
    if first:
        Draws(problem, state).play(theta[:first], beta[:first], u[:first])
    if first < n:
        CompiledDraws(problem, state).play(theta[first:], beta[first:], u[first:])
    return state


class Draws:
    """Draws by NumPy, set up for some data and a state that they change.

    Attributes
    ----------
    starts : ndarray of int, shape (k + 1,)
        Where the examples of each class begin.
    prior : ndarray of shape (n,)
        Sample weights, the largest being 1.
    slack : ndarray of shape (n,)
        Squared extra coordinates of the examples' rows.
    top, total, share : ndarray of shape (k, k)
        Of each group: what its exponents are counted from, the sum of its weights, and the
        probability that it is drawn; those of the last draw.
    """

    def __init__(self, problem: KernelMatrixAdapter, state: SamplingState) -> None:
        rows, order, k = problem.rows, state.order, problem.rows.n_classes
        self.problem, self.state = problem, state
        self.columns = with_columns(problem).columns()
        self.starts = np.searchsorted(rows.codes[order], np.arange(k + 1))
        weights = np.ones(rows.n_examples) if rows.weights is None else rows.weights
        self.prior = weights[order] / weights.max()
        self.slack = slack_per_example(problem)[order]
        self.top, self.total, self.share = (np.zeros((k, k)) for _ in range(3))
        self.trial = np.empty(k) if rows.balanced else None
        self.wanted = np.empty(k, dtype=np.int64)
        self._weight = np.empty((k, rows.n_examples))
        self._blocks = [slice(*ends) for ends in pairwise(self.starts.tolist())]
        self._others = [slice(1, 2), slice(0, 1)] if k == 2 else [slice(None)] * k

    def play(self, theta: Array, beta: Array, u: Array) -> None:
        """Draw at these steps, momenta and uniforms; fetch columns as they are needed."""
        problem, columns = self.problem, self.columns
        before, n = self.state.scalars[COLUMNS], 0
        while n < len(theta):
            n += self.made(theta[n:], beta[n:], u[n:])
            if n < len(theta):
                columns.fetch(self.wanted[self.wanted >= 0], self.likely)
        used = int(self.state.scalars[COLUMNS] - before)
        columns.n_used += used
        problem.work.add_pass(used * columns.passes)

    def made(self, theta: Array, beta: Array, u: Array) -> int:
        """Draw until the schedules end or a column is missing, whose draw is not made.

        ``wanted`` are the examples that the last draw needs. Returns the number of draws.
        """
        slot = self.columns.slot
        for t in range(len(theta)):
            self._measure()
            self._respond()
            path = self._path(float(u[t, 0]))
            rows = self._rows(path, u[t, 1:])
            self.wanted[:] = -1
            self.wanted[: len(rows)] = self.state.order[rows]
            if (slot[self.wanted[: len(rows)]] < 0).any():
                return t
            if self.trial is not None:
                self.state.offsets[:] = self.trial
            self._move(path, rows, float(theta[t]), float(beta[t]))
        return len(theta)

    def _measure(self) -> None:
        """The weights exp(-margins) of all rows, and what is known of their groups."""
        state, weight, top = self.state, self._weight, self.top
        np.multiply(state.g, state.scalars[S], out=weight)
        weight += state.w
        weight *= HALF
        parts = [weight[part] for part in zip(self._others, self._blocks, strict=True)]
        for c, part in enumerate(parts):
            part -= weight[c, self._blocks[c]].copy()
            if len(part) > 1:
                part[c] = -np.inf  # no rows
            top[c, self._others[c]] = part.max(axis=1, initial=-np.inf)
        set_diagonal(top, -np.inf)
        if self.trial is None:
            top[:] = top.max()
        set_diagonal(top, 0.0)
        for c, part in enumerate(parts):
            others, block = self._others[c], self._blocks[c]
            part -= top[c, others, None]
            np.maximum(part, LEAST_EXPONENT, out=part)
            np.exp(part, out=part)
            part *= self.prior[block]
            self.total[c, others] = part.sum(axis=1)
        set_diagonal(self.total, 0.0)

    def _respond(self) -> None:
        """The probabilities of groups, q = softmax(-margins) summed over each.

        With an intercept, ``trial`` becomes the offsets that balance them.
        """
        share = np.full(self.total.shape, -np.inf)
        np.log(self.total, out=share, where=self.total > 0.0)
        share += self.top
        if self.trial is not None:
            offsets = balancing_offsets(share, self.state.offsets)
            self.trial[:] = offsets - offsets[0]  # only differences count
            share = shifted_table(share, self.trial)
        share -= share.max()
        np.exp(share, out=self.share)
        self.share /= self.share.sum()

    def _path(self, u: float) -> list[int]:
        """The classes of the groups at the quantile u: (c, j), or with an intercept a cycle."""
        if self.trial is not None:
            return cycle_at(self.share, u)
        return list(divmod(quantile(self.share.ravel(), u), len(self.share)))

    def _rows(self, path: list[int], u: Array) -> list[int]:
        """One row of each group of a path, at quantiles by class."""
        rows = []
        for c, j in pairwise(path):
            at = float(u[0 if self.trial is None else c]) * self.total[c, j]
            rows.append(quantile(self._weight[j, self._blocks[c]], at) + int(self.starts[c]))
        return rows

    def _move(self, path: list[int], rows: list[int], theta: float, beta: float) -> None:
        """Add the rows that were drawn."""
        state, columns = self.state, self.columns
        scale = with_columns(self.problem).column_scale()
        ends = beta == 0.0 and state.scalars[MASS_G] > 0.0
        x_w, x_g = (x / len(rows) for x in advance(state.scalars, theta, beta))
        for (c, j), i in zip(pairwise(path), rows, strict=True):
            at = columns.slot[state.order[i]]
            columns.used[-1] += 1
            columns.used[at] = columns.used[-1]
            kappa = columns.columns[at][state.order].astype(np.float64)
            kappa *= scale
            add_row(state.w, state.q_w, x_w, (i, c, j), kappa, self.slack[i])
            add_row(state.g, state.q_g, x_g, (i, c, j), kappa, self.slack[i])
        state.scalars[COLUMNS] += len(rows)
        fold(state.w, state.g, state.q_w, state.q_g, state.scalars, ends)

    def likely(self) -> Array:
        """Examples, heaviest under q_t first: those that are drawn next, with momentum.

        The tables are those of the draw that lacked a column.
        """
        state, weight = self.state, np.empty(self.problem.rows.n_examples)
        w = state.w + state.scalars[S] * state.g
        for c, (first, last) in enumerate(pairwise(self.starts)):
            gap = HALF * (w[:, first:last] - w[c, first:last]) - self.top[c][:, None]
            share, total = self.share[c], self.total[c]
            within = np.divide(share, total, np.zeros(len(share)), where=total > 0.0)
            weight[first:last] = within @ np.exp(np.minimum(gap, 0.0)) * self.prior[first:last]
        return state.order[np.argsort(-weight, kind="stable")]


class CompiledDraws(Draws):
    """The same draws, to rounding, in one compiled loop."""

    def __init__(self, problem: KernelMatrixAdapter, state: SamplingState) -> None:
        from marginsvm.algorithms.compiled import sampling as loops

        super().__init__(problem, state)
        k, n = state.w.shape
        cycle = tuple(np.empty(k + 1, np.int64) for _ in range(5))
        tables = self.top, self.total, self.share, np.empty((k, k))
        vectors = np.empty(n), np.empty(loops.LANES), np.empty(loops.LANES)
        self.loops, self.scratch = loops, (tables, cycle, vectors)
        self.starts = self.starts.astype(np.uint64)

    def made(self, theta: Array, beta: Array, u: Array) -> int:
        state, columns = self.state, self.columns
        stored = columns.columns.view()
        stored.flags.writeable = False  # one compiled loop for all kernels, memory maps too
        flat = [array.reshape(-1) for array in (state.w, state.g, state.q_w, state.q_g)]
        return self.loops.play(
            *(*flat, state.offsets, self.trial, state.scalars, self.starts, state.order),
            *(self.prior, self.slack, stored, columns.slot, columns.used),
            *(with_columns(self.problem).column_scale(), theta, beta, u, self.wanted),
            *self.scratch,
        )


def set_diagonal(table: Array, value: float) -> None:
    """Set the entries of the groups that have no rows."""
    table.flat[:: len(table) + 1] = value


def quantile(weights: Array, u: float) -> int:
    """Where the running sum of the weights exceeds u, or the last weight that is not 0."""
    if len(weights) > 2 * _CHUNK:
        sums = np.add.reduceat(weights, np.arange(0, len(weights), _CHUNK))
        chunk = quantile(sums, u)
        first = chunk * _CHUNK
        inside = weights[first : first + _CHUNK]
        return first + quantile(inside, u - float(sums[:chunk].sum()))
    running = weights.cumsum()
    i = int(running.searchsorted(u, side="right"))
    return i if i < len(running) else int(running.searchsorted(running[-1]))


def cycle_at(share: Array, u: float) -> list[int]:
    """Draw a cycle of groups: classes path[0] -> path[1] -> ... -> path[0].

    Balanced masses are a sum of cycles. Those found by following the heaviest groups from class to
    class are taken off one by one, and the one at the quantile u is drawn: the mean over u is
    ``share``, and every draw is balanced.
    """
    rest, path = share.tolist(), [0, 1, 0]
    heaviest = [max(row) for row in rest]
    while u >= 0.0:
        walk = [heaviest.index(max(heaviest))]
        while heaviest[walk[-1]] > 0.0:
            walk.append(rest[walk[-1]].index(heaviest[walk[-1]]))
            if walk[-1] in walk[:-1]:
                break
        if len(walk) == 1:
            break
        around = walk.index(walk[-1])
        least = 0.0
        if around < len(walk) - 1:
            path = walk[around:]
            least = min(rest[c][j] for c, j in pairwise(path))
            u -= least * (len(path) - 1)
            taken = list(pairwise(path))
        else:  # a dead end: what rounding left of the balance
            taken = [(walk[-2], walk[-1])]
            least = rest[walk[-2]][walk[-1]]
        for c, j in taken:
            rest[c][j] -= least
            heaviest[c] = max(rest[c])
    return path
