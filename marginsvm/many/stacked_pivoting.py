"""Block principal pivoting on a stack of problems, all of them at once.

Each problem asks for weights u with

    min  u'Ku / 2 + own u^2 / 2 - 1'u    where   0 <= u <= cap,   and  y'u = 0 if balanced

(K with the signs y of the classes), which is a hard margin (own = 0, cap = inf), a soft one with
squared slack (own = 1 / 2C) or one with the hinge loss (cap = C). In a turn, each weight is free,
or at one of its bounds. The free ones solve a linear system; all that come out on the wrong side
change places. Where that does not shorten the list of those for some turns, only the last of them
does, which always ends (Judice and Pires; Kim and Park).

The system may be singular, as that of more examples than features is. Then weights are pulled
towards the last ones by ``soft |u - v|^2 / 2`` (the proximal point method), with less and less of
it. The last solutions are nearly free of it.

References
----------
J. Judice, F. Pires. A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems. Computers & Operations Research, 1994.

J. Kim, H. Park. Fast nonnegative matrix factorization: an active-set-like method and comparisons.
SIAM J. Sci. Comput., 2011.

R. T. Rockafellar. Monotone operators and the proximal point algorithm. SIAM J. Control, 1976.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array

AT_ZERO, FREE, CAPPED = 0, 1, 2

# Turns at most, and turns without a shorter list after which single weights change places.
_TURNS, _TURNS_WITHOUT_PROGRESS = 40, 3
# Weights below 0 or above their cap, relative to the largest, and margins short of 1, that are
# rounding; the latter for each unit of the terms that a margin is a sum of, as well.
_ROUNDED_WEIGHT, _ROUNDED_SUM = 1e-11, 1e-14
# Added to the diagonal, relative to the mean square of the examples: a system that is singular is
# solved all the same, and its solution is judged by its bounds.
_LIFT = 1e-14
# How strongly weights are pulled towards the last ones, in units of the mean square of the
# examples, where the system may be singular. The last number is repeated.
_PULLS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-9)
_REPEATED = 3


@dataclass(frozen=True)
class StackedProblems:
    """A stack of problems that differ by their labels, examples and prices of slack.

    Attributes
    ----------
    K : ndarray of shape (B, n, n)
        Without the signs of the classes.
    y : ndarray of shape (B, n)
        1 and -1.
    own, cap : ndarray of shape (B, n)
    balanced : bool
    """

    K: Array
    y: Array
    own: Array
    cap: Array
    balanced: bool

    def some(self, chosen: Array) -> StackedProblems:
        """Some of the problems."""
        K, y, own, cap = (x[chosen] for x in (self.K, self.y, self.own, self.cap))
        return StackedProblems(K, y, own, cap, self.balanced)


@dataclass
class StackedSolution:
    """Weights with signs ``v = y u`` and intercepts, and where each weight is.

    Attributes
    ----------
    v : ndarray of shape (B, n)
    b : ndarray of shape (B,)
    place : ndarray of int8, shape (B, n)
        AT_ZERO, FREE or CAPPED.
    done : ndarray of bool, shape (B,)
        Whether every weight has found its place.
    """

    v: Array
    b: Array
    place: Array
    done: Array

    def some(self, chosen: Array) -> StackedSolution:
        """Those of some problems."""
        return StackedSolution(
            self.v[chosen], self.b[chosen], self.place[chosen], self.done[chosen]
        )

    def put(self, where: Array, other: StackedSolution) -> None:
        """Replace the solutions of some problems."""
        for name in ("v", "b", "place", "done"):
            getattr(self, name)[where] = getattr(other, name)


def begun(statement: StackedProblems) -> StackedSolution:
    """All weights free."""
    B, n = statement.y.shape
    place = np.full((B, n), FREE, np.int8)
    return StackedSolution(np.zeros((B, n)), np.zeros(B), place, np.zeros(B, bool))


def directly(statement: StackedProblems) -> StackedSolution:
    """Solve problems whose systems are not singular."""
    size = np.einsum("bii->b", statement.K) / statement.y.shape[1]
    return pivoted(statement, begun(statement), _LIFT * size)


def proximal(statement: StackedProblems) -> StackedSolution:
    """Solve problems whose systems may be singular, with less and less of a pull."""
    B, n = statement.y.shape
    size = np.einsum("bii->b", statement.K) / n
    last, live = begun(statement), np.arange(B)
    for soft in (*_PULLS, *[_PULLS[-1]] * _REPEATED):
        part = statement if live.size == B else statement.some(live)
        before = last.some(live)
        now = pivoted(part, before, soft * size[live])
        moved = (soft * size[live]) * np.abs(now.v - before.v).max(axis=1)
        last.put(live, now)
        live = live[~(now.done & (moved <= _ROUNDED_WEIGHT)) & np.isfinite(moved)]
        if live.size == 0:
            break
    return last


@np.errstate(all="ignore")  # of a singular system, whose solution is refused by its bounds
def pivoted(statement: StackedProblems, begun: StackedSolution, soft: Array) -> StackedSolution:
    """Exchange weights until all are in place, with a pull towards those of ``begun``."""
    B = len(soft)
    part, own = statement, statement.own + soft[:, None]
    target = statement.y + soft[:, None] * begun.v
    place, live = begun.place.copy(), np.arange(B)
    fewest, patience = np.full(B, np.iinfo(np.int64).max), np.full(B, _TURNS_WITHOUT_PROGRESS)
    found = StackedSolution(begun.v.copy(), begun.b.copy(), begun.place.copy(), np.zeros(B, bool))
    for _ in range(_TURNS):
        v, b = _free_ones(part, own, target, place)
        wrong = _wrong(part, own, target, place, v, b)
        count = np.count_nonzero(wrong, axis=1)
        found.put(live, StackedSolution(v, b, place, count == 0))
        kept = (count > 0) & np.isfinite(b) & np.isfinite(v).all(axis=1)
        if not kept.any():
            break
        if not kept.all():
            part, own, target, live = part.some(kept), own[kept], target[kept], live[kept]
            place, v, wrong, count = place[kept], v[kept], wrong[kept], count[kept]
            fewest, patience = fewest[kept], patience[kept]
        patience = np.where(count < fewest, _TURNS_WITHOUT_PROGRESS, patience - 1)
        fewest = np.minimum(fewest, count)
        place = _exchanged(part, place, v, _last_only(wrong, patience < 0))
    return found


def _free_ones(
    part: StackedProblems, own: Array, target: Array, place: Array
) -> tuple[Array, Array]:
    """Weights and intercepts with which the margins of the free rows are on target."""
    B, n = place.shape
    free, capped = place == FREE, place == CAPPED
    M, rhs = part.K.copy(), np.zeros((B, n, 2))
    fixed = np.where(capped, part.y * part.cap, 0.0) if capped.any() else None
    rhs[:, :, 0] = target if fixed is None else target - times(part.K, fixed)
    rhs[:, :, 1] = 1.0
    if not free.all():
        M *= free[:, :, None]
        M *= free[:, None, :]
        rhs *= free[:, :, None]
    M.reshape(B, -1)[:, :: n + 1] += own + ~free
    both = solve(M, rhs)
    v = both[:, :, 0]
    if not part.balanced:
        return v if fixed is None else v + fixed, np.zeros(B)
    short = v.sum(axis=1) + (0.0 if fixed is None else fixed.sum(axis=1))
    b = short / both[:, :, 1].sum(axis=1)
    none = ~free.any(axis=1)
    if none.any():
        b[none] = np.median(rhs[none, :, 0] * 0.0 + (target - times(part.K, v))[none], axis=1)
    v = v - b[:, None] * both[:, :, 1]
    return v if fixed is None else v + fixed, b


def _wrong(
    part: StackedProblems, own: Array, target: Array, place: Array, v: Array, b: Array
) -> Array:
    """Which weights are not where they belong."""
    u = part.y * v
    most = np.abs(u).max(axis=1, keepdims=True)
    out = (u < -_ROUNDED_WEIGHT * most) | (u > part.cap + _ROUNDED_WEIGHT * most)
    short = part.y * (target - times(part.K, v) - b[:, None]) - own * u
    size = np.einsum("bii->bi", part.K).max(axis=1) * np.abs(v).sum(axis=1)
    rounded = (_ROUNDED_WEIGHT + _ROUNDED_SUM * size)[:, None]
    inward = np.where(place == AT_ZERO, short > rounded, short < -rounded)
    return np.where(place == FREE, out, inward)


def _last_only(wrong: Array, single: Array) -> Array:
    """The same, for some problems the last one only."""
    if not single.any():
        return wrong
    n = wrong.shape[1]
    last = n - 1 - np.argmax(wrong[:, ::-1], axis=1)
    return np.where(single[:, None], np.arange(n) == last[:, None], wrong)


def _exchanged(part: StackedProblems, place: Array, v: Array, wrong: Array) -> Array:
    """Places after the exchange of some."""
    to = np.where(place == FREE, np.where(part.y * v < 0.0, AT_ZERO, CAPPED), FREE)
    return np.where(wrong, to, place).astype(np.int8)


def times(K: Array, v: Array) -> Array:
    """Products of matrices with a vector each."""
    return np.asarray((K @ v[:, :, None])[:, :, 0])


def solve(M: Array, rhs: Array) -> Array:
    """Solutions of linear systems, of shape (B, n, 2); no numbers where one is singular."""
    try:
        return np.linalg.solve(M, rhs)
    except np.linalg.LinAlgError:
        if len(M) == 1:
            return np.full_like(rhs, np.nan)
        return np.concatenate([solve(M[i : i + 1], rhs[i : i + 1]) for i in range(len(M))])
