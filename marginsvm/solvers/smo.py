"""Sequential minimal optimisation on kernel columns, in growing working sets.

    max over alpha   target'alpha - |A'alpha|^2/2 - sum_i ridge_i alpha_i^2/2
    subject to       0 <= alpha <= upper, F'alpha = g     (several classes: sum_j alpha_ij <= cap_i)

An outer iteration solves the problem on a working set, whose kernel matrix is one float32 block,
updates the scores of all examples by the columns of the changed alpha, and updates the working set:
rows that violate the KKT conditions join, some rows far from violating them leave.

On the block each step changes two variables, selected by second-order information (Fan, Chen, Lin);
for nu-SVM and nu-SVR two of the same sign, so that both sums are kept (Chang, Lin); one variable
without an equality constraint. The epsilon-insensitive loss has two rows per example, with signs 1
and -1. For several classes each step changes all variables of an example, by one projection
(Crammer, Singer; Keerthi et al.), and intercepts are the multipliers of an augmented Lagrangian.

A block in float32 rounds steps, and each update rounds scores. So scores are recomputed once the
gap is closed, and whenever it stalls; later updates add small terms only. This is iterative
refinement. Where the whole matrix is in memory, or a quarter of few rows are support vectors, steps
are first made on all rows.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin. Working set selection using second order information for training
support vector machines. JMLR, 2005.

C.-C. Chang, C.-J. Lin. Training nu-support vector classifiers: theory and algorithms. Neural
Computation, 2001.

K. Crammer, Y. Singer. On the algorithmic implementation of multiclass kernel-based vector machines.
JMLR, 2001.

S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin. A sequential dual method for large
scale multi-class linear SVMs. KDD, 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from marginsvm._compiling import compiled, parts
from marginsvm._typing import Array, Values
from marginsvm.problem.column_cache import FOR_COLUMNS, TAKEN, ColumnCache
from marginsvm.problem.gram import Gram
from marginsvm.problem.matrix import FLOAT32
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.dual_cd import OPTIONS, projected
from marginsvm.solvers.solution import Solution

part = parts(**OPTIONS)
loop = compiled(**OPTIONS)

# Compilers vectorise a loop for a maximum, but not for its index: so the maximum of each of 64
# interleaved lanes is kept, and its index is searched for afterwards.
LANES = 64
AT_ONCE = 256  # rows of a working set whose entries are computed together
SHUT = 1e100  # offset that excludes a variable at its bound from the selection
NOTHING = 1e-300  # instead of 0, as a divisor
FLAT = 1e-12  # least curvature of a step, relative to the largest square of a row


@part
def _highest(slope, not_up, tops):
    """Index of the largest slope among variables below their ceiling, given each lane's maximum."""
    i = lane = tops.argmax()
    for r in range(lane, len(slope), LANES):
        if slope[r] - not_up[r] > slope[i] - not_up[i]:
            i = r
    return i


@part
def _gain(gap, square, least):
    """Twice the gain of a step with the directional derivative ``gap`` and curvature ``square``."""
    gap = gap if gap > 0.0 else 0.0
    return gap * gap / (square if square > least else least)


@part
def _gains(high, own, row, slope, not_down, square, least, gains, gaps):
    """The largest gain and violation of pairs with a given row, per lane."""
    gains[:] = 0.0
    gaps[:] = 0.0
    for k in range(0, len(slope), LANES):
        a = row[k : k + LANES]
        q = square[k : k + LANES]
        s = slope[k : k + LANES]
        shut = not_down[k : k + LANES]
        for r in range(len(s)):
            gap = high - s[r] - shut[r]
            gaps[r] = gap if gap > gaps[r] else gaps[r]
            gain = _gain(gap, own + q[r] - 2.0 * a[r], least)
            gains[r] = gain if gain > gains[r] else gains[r]


@part
def _partner(high, own, row, slope, not_down, square, least, lane):
    """The row of a lane whose pair with the given row has the largest gain."""
    best = -1.0
    j = lane
    for r in range(lane, len(slope), LANES):
        gain = _gain(
            high - slope[r] - not_down[r], own + square[r] - 2.0 * row[r], least
        )
        if gain > best:
            best = gain
            j = r
    return j


@part
def _single(slope, not_up, not_down, square, least):
    """The row whose single step has the largest gain, and the largest violation."""
    best = -1.0
    j = 0
    worst = 0.0
    for r in range(len(slope)):
        gap = max(slope[r] - not_up[r], -slope[r] - not_down[r])
        worst = max(worst, gap)
        gain = _gain(gap, square[r], least)
        if gain > best:
            best = gain
            j = r
    return j, worst


@part
def _step(r, t, floor, ceiling, ridge, v, slope, not_up, not_down):
    """Move v_r by t, and update its flags for the bounds."""
    v[r] = min(max(v[r] + t, floor[r]), ceiling[r])
    slope[r] -= ridge[r] * t
    not_up[r] = SHUT if v[r] >= ceiling[r] else 0.0
    not_down[r] = SHUT if v[r] <= floor[r] else 0.0


@part
def _scores_moved(t, row, other, split, slope, not_up, tops):
    """Subtract ``t (row - other)`` from the slopes, and update each side's and lane's maximum."""
    tops[:] = -SHUT
    for side in range(2):
        top = tops[side]
        end = len(slope) if side else split
        for k in range(split if side else 0, end, LANES):
            last = min(k + LANES, end)
            a = row[k:last]
            b = other[k:last]
            s = slope[k:last]
            shut = not_up[k:last]
            for r in range(len(s)):
                s[r] -= t * (a[r] - b[r])
                high = s[r] - shut[r]
                top[r] = high if high > top[r] else top[r]


@loop
def ascend_pairs(K, split, balanced, floor, ceiling, ridge, tol, most, v, slope):
    """Maximise ``e'v - v'Kv/2 - sum ridge v^2/2`` over floor <= v <= ceiling.

    Parameters
    ----------
    K : ndarray of shape (m, m)
    split : int
        The sums of v before and from this row on are kept.
    balanced : bool
        Whether these equality constraints exist; otherwise single variables move.
    floor, ceiling, ridge : ndarray of shape (m,)
    tol : float
        Tolerance of the largest violating pair.
    most : int
        Limit of steps.
    v, slope : ndarray of shape (m,)
        Variables, and the gradient there; changed in place.

    Returns
    -------
    int
        Steps taken.
    """
    m = len(v)
    # Of each row: its curvature, and offsets that are SHUT where v is at its ceiling, or floor.
    square = np.empty(m)
    not_up = np.empty(m)
    not_down = np.empty(m)
    # Of each lane: the largest slope below the ceiling, on either side of split; and of the pairs
    # with one row, the largest gain and violation.
    tops = np.full((2, LANES), -SHUT)
    gains = np.empty(LANES)
    gaps = np.empty(LANES)
    nothing = np.zeros_like(K[0])
    least = NOTHING
    for r in range(m):
        square[r] = K[r, r] + ridge[r]
        least = max(least, FLAT * square[r])
        _step(r, 0.0, floor, ceiling, ridge, v, slope, not_up, not_down)
    _scores_moved(0.0, nothing, nothing, split, slope, not_up, tops)
    for step in range(most):
        # The step moves v_i up and v_j down, by the pair of the largest gain.
        i = 0
        j = 0
        best = 0.0
        worst = 0.0
        if balanced:
            for side in range(2):
                a, b = (split, m) if side else (0, split)
                if a == b:
                    continue
                s = slope[a:b]
                shut = not_down[a:b]
                q = square[a:b]
                up = a + _highest(s, not_up[a:b], tops[side])
                high = slope[up] - not_up[up]
                own = square[up]
                row = K[up, a:b]
                _gains(high, own, row, s, shut, q, least, gains, gaps)
                worst = max(worst, gaps.max())
                lane = gains.argmax()
                if gains[lane] > best:
                    best = gains[lane]
                    i = up
                    j = a + _partner(high, own, row, s, shut, q, least, lane)
            if not worst > tol:
                return step
            curvature = square[i] + square[j] - 2.0 * K[i, j]
            t = (slope[i] - slope[j]) / max(curvature, least)
            t = min(t, ceiling[i] - v[i], v[j] - floor[j])
            _step(j, -t, floor, ceiling, ridge, v, slope, not_up, not_down)
            other = K[j]
        else:
            i, worst = _single(slope, not_up, not_down, square, least)
            if not worst > tol:
                return step
            t = slope[i] / max(square[i], least)
            t = min(max(t, floor[i] - v[i]), ceiling[i] - v[i])
            other = nothing
        _step(i, t, floor, ceiling, ridge, v, slope, not_up, not_down)
        row = K[i]
        _scores_moved(t, row, other, split, slope, not_up, tops)
    return most


@part
def _best_of_example(i, q, own, cap, ridge, mean, alpha, F, b, excess, c, new, order):
    """The best variables of an example; the resulting change of its margins, and their sum."""
    mass = alpha.sum()
    diagonal = max(q + ridge, NOTHING)
    for j in range(len(alpha)):
        c[j] = F[j, i] + b[j] - mean * excess[j]
    score = c[own]
    for j in range(len(alpha)):
        c[j] = 1.0 - (score - c[j]) + q * (mass + alpha[j])
    found = projected(c, own, q, diagonal, cap, new, order)
    off = 0.0
    for j in range(len(alpha)):
        if j != own:
            off = max(off, abs(q * (found - mass) + diagonal * (new[j] - alpha[j])))
    return off, found


@part
def _take(row, own, mass, new, alpha, F, price, b, excess):
    """Replace the variables of an example, and update scores, intercepts and excess."""
    before = alpha.sum()
    for j in range(len(alpha)):
        t = mass - before if j == own else alpha[j] - new[j]
        if t != 0.0:
            alpha[j] = new[j]
            excess[j] += t
            b[j] += price * t
            scores = F[j]
            for r in range(len(row)):
                scores[r] += t * row[r]


ACTIVE = 0.3  # examples above this part of the largest violation stay active
HALF_A_MARGIN = 0.5  # the most that an update of multipliers moves an intercept by


@loop
def ascend_examples(K, mean, codes, cap, ridge, price, tol, most, alpha, F, b, excess):
    """Maximise ``sum alpha - |A'alpha|^2/2 - sum_i ridge_i |alpha_i|^2/2``, an example at a time.

    The rows of example i are ``x_i (e_c - e_j)'``. Intercepts are the multipliers of
    ``F'alpha = 0`` in an augmented Lagrangian. Its penalty, ``price``, acts like a constant added
    to the kernel, so that each step accounts for its effect on the intercepts. A large penalty
    shortens all steps, and so does a constant in the kernel itself: K is centred, which changes
    nothing where ``F'alpha = 0``. Shrinking: examples with small violation are skipped until the
    next full pass.

    Parameters
    ----------
    K : ndarray of shape (m, m)
    mean : ndarray of shape (m,)
        Mean of each column of K; zeros without intercepts.
    codes, cap, ridge : ndarray of shape (m,)
    price : float
        Penalty on half the squared excess of each class; 0: without intercepts.
    tol : float
        Tolerance of the KKT violation (units of margins).
    most : int
        Limit of steps, tested after each pass.
    alpha : ndarray of shape (m, k)
        Changed in place, as are F, b and excess.
    F : ndarray of shape (k, m)
        Scores without intercepts.
    b, excess : ndarray of shape (k,)
        Intercepts, and ``F'alpha``.

    Returns
    -------
    int
        Steps taken.
    """
    m, k = alpha.shape
    # Of one example: gradients, best variables, and classes in order.
    c = np.empty(k)
    new = np.empty(k)
    order = np.empty(k, np.int64)
    # The active examples are the first n of some. Of the last pass over them, and over all: the
    # largest violation.
    some = np.arange(m)
    n = m
    worst_of_all = 0.0
    skip = tol  # violation above which an example takes a step
    steps = 0
    grand = mean.mean()
    b += price * excess
    while steps < most:
        worst = 0.0
        kept = 0
        steps += 1  # so that passes without a change end, too
        for a in range(n):
            i = some[a]
            from_mean = price + grand - mean[i]
            off, mass = _best_of_example(
                i, K[i, i] - mean[i] + from_mean, codes[i], cap[i], ridge[i], mean[i], alpha[i],
                F, b, excess, c, new, order,
            )  # fmt: skip
            worst = max(worst, off)
            if off > skip:
                steps += 1
                _take(K[i], codes[i], mass, new, alpha[i], F, from_mean, b, excess)
            if off > ACTIVE * skip:
                some[a] = some[kept]
                some[kept] = i
                kept += 1
        unbalanced = price * np.abs(excess).max()
        if n == m:
            worst_of_all = worst
            if max(worst, unbalanced) <= tol:
                break
            if worst <= unbalanced:  # update the multipliers
                b += price * min(1.0, HALF_A_MARGIN / unbalanced) * excess
        n = m if worst <= max(ACTIVE * worst_of_all, unbalanced, tol) else kept
        skip = ACTIVE * max(worst, tol)
    b -= price * excess
    return steps


IN_CACHE = 4096  # entries of a column


@loop
def add_columns(columns, slot, examples, v, out):
    """Add ``v_a columns[slot[examples_a]]`` to out, in parts that stay in cache."""
    for begin in range(0, len(out), IN_CACHE):
        part = out[begin : begin + IN_CACHE]
        for a in range(len(examples)):
            column = columns[slot[examples[a]], begin : begin + IN_CACHE]
            for r in range(len(part)):
                part[r] += v[a] * column[r]


@loop
def gather(columns, slot, examples, rows, factor, shift, K):
    """Fill some rows of K, and by symmetry the columns; values are scaled."""
    for a in rows:
        column = columns[slot[examples[a]]]
        for c in range(len(examples)):
            K[a, c] = factor * column[examples[c]] + shift
            K[c, a] = K[a, c]


def _most_steps(m: int) -> int:
    """Limit of steps on a working set before the scores of all examples are updated.

    Fifty for each of m rows, or as many as take a second; and what takes two million additions.
    """
    return max(min(50 * m, 2**30 // m), 2**21 // m) if m else 0


GOLDEN = 0.6180339887498949  # its multiples modulo 1 are evenly spread
ROUNDED = 1e-14  # an alpha this near to a bound, in times of the largest and the rows, is at it


# Size of the first working set: in all, for each of several classes, and at most for these.
FIRST = 400
FIRST_OF_CLASS = 80
FIRST_OF_CLASSES = 4500
# Iterations without progress, while precise steps find few violated rows, before scores are
# refined.
PATIENCE = 3
PATIENCE_OF_CLASSES = 12


class RowPairs:
    """Two classes, regression, one class: the working set consists of rows.

    Variables are ``v = y alpha``, whose sum pairs keep: y is the sign with an intercept, and 1 with
    rho alone. With both, the two rows of a pair have the same sign.
    """

    patience = PATIENCE

    def __init__(self, qp: QuadraticProgram) -> None:
        self.qp = qp
        self.of = qp.rows.at
        m = qp.size
        sign = qp.sign
        self.y = np.ones(m) if qp.level and not qp.intercept else sign
        self.turn = self.y * sign
        self.side = (sign < 0) & bool(qp.level and qp.intercept)
        self.target, self.ridge, self.upper = (
            np.ascontiguousarray(np.broadcast_to(a, m))
            for a in (self.y * qp.target, qp.ridge, qp.upper)
        )
        self.floor = np.where(self.y > 0, 0.0, -self.upper)
        self.ceiling = np.where(self.y > 0, self.upper, 0.0)

    def begin(self) -> Array:
        """Zeros or, if the sum of alpha is given, alpha on few, evenly spread rows."""
        alpha = np.zeros(len(self.y))
        qp = self.qp
        spread = np.argsort(GOLDEN * self.of % 1.0, kind="stable")
        sides = np.unique(self.side) if qp.level else ()
        for side in sides:
            rows = spread[self.side[spread] == side]
            mass = qp.level * qp.total / len(sides)
            upper = np.minimum(self.upper[rows], mass)
            alpha[rows] = np.clip(mass - np.cumsum(upper) + upper, 0.0, upper)
        return alpha

    def first(self) -> Array:
        return _spread_evenly(self.qp.rows.labels, FIRST)

    def scale(self, alpha: Array, S: Array) -> float:
        """Half the range of slopes where alpha is 0; without targets, the mean score."""
        high = float(self.target[self.ceiling > 0].max(initial=0.0))
        low = float(self.target[self.floor < 0].min(initial=0.0))
        if high - low > 0.0:
            return 0.5 * (high - low)
        V = self.qp.rows.coefficients(alpha)
        return float(V[:, 0] @ S[:, 0]) / max(float(alpha.sum()), NOTHING)

    @property
    def takes_whole(self) -> bool:
        """Whether steps on all rows take the kernel matrix as it is."""
        examples = self.qp.examples
        as_it_is = np.array_equal(self.of, np.arange(examples.n)) and np.all(
            self.turn > 0
        )
        return bool(as_it_is) and not self.side.any() and not examples.constant

    def ascend(
        self,
        K: Array,
        work: Array,
        alpha: Array,
        S: Array,
        tol: float,
        unit: float = 1.0,
    ) -> tuple[Array, Array, bool]:
        """Alpha of the working set after some steps, its scores, and whether it is solved.

        ``unit`` turns values of K into inner products of examples in radii.
        """
        turn = self.turn[work]
        if (turn < 0).any():
            K = K * np.multiply.outer(turn, turn).astype(K.dtype)
        most = _most_steps(len(work))
        split = len(work) - np.count_nonzero(self.side[work])
        floor, ceiling, ridge = self.floor[work], self.ceiling[work], self.ridge[work]
        v = unit * (self.y * alpha)[work]
        slope = self._slope(alpha, S)[work]
        steps = ascend_pairs(
            K, split, self.qp.n_free > 0, unit * floor, unit * ceiling, ridge / unit, tol, most,
            v, slope,
        )  # fmt: skip
        v = np.minimum(np.maximum(v / unit, floor), ceiling)
        scores = turn * (self.target[work] - ridge * v - slope)
        return self.y[work] * v, scores, steps < most

    def _slope(self, alpha: Array, S: Array) -> Array:
        return self.target - self.turn * S[self.of, 0] - self.ridge * (self.y * alpha)

    def conditions(self, alpha: Array, S: Array, work: Array) -> tuple[Array, Array]:
        """The best f, and the KKT violation of each row."""
        slope = self._slope(alpha, S)
        v = self.y * alpha
        of_largest = ROUNDED * len(v) * float(np.abs(v).max())
        rounding = np.minimum(of_largest, 0.5 * self.upper)
        up = v < self.ceiling - rounding
        down = v > self.floor + rounding
        if self.qp.n_free:
            slope = slope.copy()
            for side in (False, True):
                some = work[self.side[work] == side]
                highest = slope[some][up[some]].max(initial=-np.inf)
                lowest = slope[some][down[some]].min(initial=np.inf)
                ends = [end for end in (highest, lowest) if np.isfinite(end)]
                if ends:
                    slope[self.side == side] -= np.mean(ends)
        too_low = np.where(up, slope, -np.inf)
        too_high = np.where(down, -slope, -np.inf)
        wrong = np.maximum(too_low, too_high)
        return self.qp.best_f(S, np.zeros(self.qp.n_free)), wrong


# The price of an excess: this part of the squares' spread, so that steps stay long; and an excess
# of 6 % of the sum of caps moves an intercept by the width of the margin.
OF_SPREAD = 0.05
LEAST_SPREAD = 1e-7  # relative to the squares: the rounding of float32
EXCESS = 0.06


class RowsOfExamples:
    """Several classes: the working set consists of examples."""

    patience = PATIENCE_OF_CLASSES

    def __init__(self, qp: QuadraticProgram) -> None:
        n = qp.examples.n
        self.qp = qp
        self.of = np.arange(n)
        self.b = np.zeros(qp.k)
        self.codes = qp.rows.labels
        self.side = np.zeros(n, bool)
        self.cap = (
            np.full(n, np.inf) if qp.cap is None else np.ascontiguousarray(qp.cap)
        )
        self.ridge = np.ascontiguousarray(np.broadcast_to(qp.ridge[:, 0], n))

    def begin(self) -> Array:
        return np.zeros(self.qp.shape)

    def first(self) -> Array:
        size = min(max(FIRST, FIRST_OF_CLASS * self.qp.k), FIRST_OF_CLASSES)
        return _spread_evenly(self.codes, size)

    def scale(self, alpha: Array, S: Array) -> float:
        return 1.0

    def ascend(
        self, K: Array, work: Array, alpha: Array, S: Array, tol: float
    ) -> tuple[Array, None, bool]:
        """Alpha of the working set after some steps, and whether it is solved."""
        mean = np.zeros(len(work))
        price = 0.0
        some = alpha[work]
        most = _most_steps(len(work))
        if self.qp.intercept:
            mean = K.mean(axis=0, dtype=np.float64)
            squares = float(np.diagonal(K).mean())
            spread = max(squares - float(mean.mean()), LEAST_SPREAD * squares)
            spread += 0.5 * float(self.ridge[work].mean())
            of_caps = EXCESS * float(self.cap[work].sum())
            price = OF_SPREAD * spread + 1.0 / of_caps
        steps = ascend_examples(
            K, mean, self.codes[work], self.cap[work], self.ridge[work], price, tol,
            most, some, np.ascontiguousarray(S[work].T), self.b,
            self.qp.rows.coefficients(alpha).sum(axis=0),
        )  # fmt: skip
        return some, None, steps < most

    def conditions(self, alpha: Array, S: Array, work: Array) -> tuple[Array, Array]:
        """f, and the KKT violation of each example."""
        f = self.b[:-1] - self.b[-1] if self.qp.intercept else np.zeros(0)
        values = self.qp.rows.values(S + self.qp.offsets(f))
        short = 1.0 - values - self.qp.ridge * alpha
        self.qp.rows.fill(short, -np.inf)
        wrong = np.where(alpha.sum(axis=1) < self.cap, short.max(axis=1), 0.0)
        wrong = np.maximum(wrong, np.where(alpha > 0.0, -short, 0.0).max(axis=1))
        return f, wrong


FOR_BLOCK = 0.25  # of the kernel's cache, for the block of a working set
# Share of support vectors from which on the whole matrix of few examples is computed.
MANY = 0.25

# Steps on a working set end at a violation of this part of the scale: first, and at least. Where
# few rows join (a part of the working set) it is lowered: by TENTH at most, and less where the gap
# is near the tolerance.
PRECISION = 0.1
MOST_PRECISE = 1e-9
FINE = 1e-3  # precision from which on an iteration without progress is an idle one
FEW = 0.1
TENTH = 0.1
NEAR = 0.3
# Progress is a gap that has fallen to this part; where half of it is left after so many iterations,
# or after a refinement, the method has stalled.
NEARER = 0.9
HALF = 0.5
SLOW = 20
# Rows join if their violation is above this part of the precision, and leave if it is so far below
# 0, in times of the scale. Only if more than half of them may leave, or if there is no room.
JOIN = 0.5
LEAVE = 0.3
MOST_FAR = 0.5
# Rows that join in an iteration: at least, and relative to the working set; half of the room at
# most.
JOINING = 200
GROWTH = 0.4


class Columns:
    """Kernel columns by examples, which certificates take from the same cache.

    Attributes
    ----------
    units : tuple of float
        Factor and constant that turn kernel values into inner products of examples in radii.
    """

    def __init__(self, examples: Gram) -> None:
        self.examples = examples
        constant = (examples.constant / examples.radius) ** 2
        self.units = (1.0 / examples.radius**2, constant)
        self.cache = self._cache()

    def _cache(self) -> ColumnCache:
        examples = self.examples
        kept = examples.kept
        if kept is not None and kept.order is None:
            return kept
        size = FOR_COLUMNS * examples.cache_size
        given = None if examples.K is None else np.asarray(examples.K)
        n = examples.n
        return ColumnCache(examples.values, n, examples.dtype, size, TAKEN, whole=given)

    def whole(self, used: float) -> Array | None:
        """The whole matrix, if it is in memory or worth computing; None: it is not.

        ``used`` is the share of support vectors so far.
        """
        examples = self.examples
        if examples.K is None and used > MANY and examples.is_cheap:
            examples.whole()
        if examples.K is None:
            return None
        if not np.may_share_memory(self.cache.columns, examples.K):
            self.cache = self._cache()
        return self.cache.columns

    def add(self, V: Array, F: Array) -> None:
        """Add the scores of coefficients V to F."""
        cache = self.cache
        factor, constant = self.units
        for v, out in zip(V.T, F, strict=True):
            some = np.flatnonzero(v)
            for i in range(0, len(some), cache.capacity):
                part = some[i : i + cache.capacity]
                cache.fetch(part)
                add_columns(cache.columns, cache.slot, part, factor * v[part], out)
            out += constant * v.sum()

    def block(self, K: Array, kept: Array, examples: Array, used: float) -> Array:
        """Kernel matrix of a working set; rows ``kept`` are copied from the previous K.

        Whole columns are needed where alpha changes. Unless so many do (``used`` is their share so
        far) that it saves time to compute all of them at once, only the entries of new rows are
        computed.
        """
        cache = self.cache
        factor, constant = self.units
        m = len(examples)
        first = len(kept)
        new = np.empty((m, m), FLOAT32)
        new[:first, :first] = K if first == len(K) else K[kept[:, None], kept]
        rows = np.arange(first, m)
        if m > (1.0 - used) * len(cache.slot) and m - first <= cache.capacity:
            cache.fetch(np.unique(examples[rows]))
        cached = cache.slot[examples] >= 0
        some = rows[cached[first:]]
        gather(cache.columns, cache.slot, examples, some, factor, constant, new)
        missing = rows[~cached[first:]]
        for some in np.array_split(missing, max(-(-len(missing) // AT_ONCE), 1)):
            if not len(some):
                break
            part = self.examples.values(examples[some], examples)
            new[some] = factor * part + constant
            new[:, some] = new[some].T
        return new


class Scored:
    """Alpha with its scores, which it offers to the solution.

    Attributes
    ----------
    alpha : ndarray
        Of variables of the kind: of a game of several classes with target 1, and of any sum.
    F : ndarray of shape (k, n)
        Scores of all examples without intercepts, up to the rounding of the kernel's columns.
    """

    def __init__(
        self, solution: Solution, kind: RowPairs | RowsOfExamples, columns: Columns
    ) -> None:
        self.solution = solution
        self.qp = solution.qp
        self.kind = kind
        self.columns = columns
        self.any_sum = self.qp.game and self.qp.several

    def begin(self, start: Array | None) -> None:
        """Set alpha, and compute its scores."""
        coefficients = self.qp.rows.coefficients
        self.alpha = self.kind.begin() if start is None else start.copy()
        self.F = np.zeros((self.qp.k, self.qp.examples.n))
        self.columns.add(coefficients(self.alpha), self.F)
        if self.any_sum and start is not None:  # scaled to margin 1
            square = np.vdot(coefficients(self.alpha), self.F.T)
            self.alpha = self.alpha / square
            self.F = self.F / square

    def move(self, work: Array, some: Array, S: Values = None) -> bool:
        """Replace alpha of a working set, and the scores S; False: it is not finite."""
        before = self.alpha
        alpha = before.copy()
        alpha[work] = some
        if not np.isfinite(alpha).all():  # the dual is unbounded
            return False
        if self.qp.several:  # multiplier steps leave F'alpha near 0 only
            size = float(alpha.sum()) if self.any_sum else 1.0
            alpha = self.qp.feasible(alpha) * size
        self.alpha = alpha
        if S is not None:
            self.F[0] = S
            return True
        self.columns.add(self.qp.rows.coefficients(alpha - before), self.F)
        return True

    def offer(self, work: Array) -> Array:
        """Offer alpha and its w; returns the violations of all rows."""
        qp = self.qp
        S = self.F.T
        f, wrong = self.kind.conditions(self.alpha, S, work)
        moved = qp.several and not self.any_sum  # to a feasible point, by ``move``
        q = self.alpha if moved else qp.feasible(self.alpha)
        if self.any_sum:  # game units: divide by the sum of alpha
            mass = float(self.alpha.sum()) + NOTHING
            f = qp.best_f(S / mass, np.append(f / mass, 0.0))
            S = S / mass
        V = qp.rows.coefficients(q)
        squared = float(np.vdot(V, S))
        P = 0.5 * squared
        if qp.level:
            P += qp.total * f[-1]
        if not qp.hard:
            P += qp.cost(qp.target - qp.values(S, f))
        D = float((qp.target * q - 0.5 * qp.ridge * q**2).sum()) - 0.5 * squared
        solution = self.solution
        if P < solution.P:
            solution.w = V.T
            solution.f = f
            solution.P = P
        if D > solution.D:
            solution.alpha = q
            solution.D = D
        return wrong

    def refine(self, work: Array) -> Array:
        """Recompute the scores in float64, and offer the point anew."""
        self.F[...] = self.qp.examples.scores(self.qp.rmatvec(self.alpha)).T
        self.solution.P = np.inf
        self.solution.D = -np.inf
        return self.offer(work)


def smo(solution: Solution, start: Array | None) -> Iterator[None]:
    """Solve a kernel program; see :mod:`marginsvm.solvers.solution`."""
    qp = solution.qp
    examples = cast("Gram", qp.examples)
    kind = RowsOfExamples(qp) if qp.several else RowPairs(qp)
    columns = Columns(examples)
    point = Scored(solution, kind, columns)
    point.begin(start)
    # Rows of the largest block of float32 that has a part of the cache (MiB).
    room = max(FIRST, int(np.sqrt(FOR_BLOCK * examples.cache_size * 2**20 / 4)))
    # The state: the working set, shape (m,), its kernel matrix, and which of its rows have entries
    # there; the precision of its steps; the best gap of steps that found few violated rows; the gap
    # after the last refinement of scores; the gap some iterations ago; and whether all rows may be
    # the working set: none has left.
    sample = kind.first()
    work = sample
    if start is not None:
        work = np.flatnonzero(point.alpha.reshape(len(kind.of), -1).any(axis=1))
    K = np.empty((0, 0), FLOAT32)
    kept = work[:0]
    scale = kind.scale(point.alpha, point.F.T)
    precision = PRECISION
    least = np.inf
    refined = np.inf
    mark = 1.0
    on_all = isinstance(kind, RowPairs) and kind.takes_whole
    while True:
        # Solve on the working set, and offer the point.
        if kind.side.any():  # contiguous by sign
            work = work[np.argsort(kind.side[work], kind="stable")]
            kept = kept[:0]
        at = point.alpha, point.F.T, precision * scale
        active = np.any(point.alpha.reshape(len(kind.of), -1), axis=1)
        scores = None
        whole = columns.whole(float(active[sample].mean())) if on_all else None
        if whole is not None and isinstance(kind, RowPairs):
            work = np.arange(len(kind.of))
            some, scores, solved = kind.ascend(whole, work, *at, columns.units[0])
        else:
            K = columns.block(K, kept, kind.of[work], float(active[work].mean()))
            some, _, solved = kind.ascend(K, work, *at)
        if not point.move(work, some, scores):
            return
        wrong = point.offer(work)
        if solution.gap <= solution.tol and refined < np.inf:
            wrong = point.refine(work)  # float32 alone was wrong before
        reached = solution.gap <= solution.tol
        asked = solution.tol
        yield
        # A certified gap above this tolerance is larger than the float32 estimate.
        lowered = solution.status == "converged" and solution.tol < asked
        if solution.ended and not (lowered and refined == np.inf):
            return

        # More precise steps, where few rows are violated.
        far = wrong[work] < -LEAVE * scale
        wrong[work] = -np.inf
        new = np.flatnonzero(wrong > JOIN * precision * scale)
        gap = solution.gap
        if len(new) <= FEW * len(work):
            solution.progress(not (gap > NEARER * least and precision <= FINE))
            if solved:
                lower = max(TENTH, NEAR * solution.tol / max(gap, solution.tol))
                precision = lower * precision
            precision = max(precision, MOST_PRECISE)
            least = min(least, gap)

        # Scores in float64, where the gap is closed or stalls.
        slow = False
        if solution.n_iter % SLOW == 0:
            slow = gap > HALF * mark
            mark = gap
        stalled = slow or solution.idle >= kind.patience
        if reached or stalled or (precision <= MOST_PRECISE and not len(new)):
            point.refine(work)
            if slow or solution.gap > HALF * refined:
                return
            refined = solution.gap
            solution.idle = 0

        # The next working set: the most violated rows join; far ones leave, the oldest first.
        most = min(max(JOINING, int(GROWTH * len(work))), room // 2)
        if len(new) > most:
            new = new[np.argpartition(-wrong[new], most - 1)[:most]]
        kept = np.arange(len(work))
        if far.sum() > MOST_FAR * len(work) or len(work) + len(new) > room:
            kept = kept[~far]
        kept = kept[max(0, len(kept) + len(new) - room) :]
        work = np.concatenate([work[kept], new])
        if whole is not None:
            on_all = len(work) == len(kind.of)
            kept = kept[:0]


def _spread_evenly(group: Array, size: int) -> Array:
    """Evenly spaced members of every group, about ``size`` in total."""
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = max(size // len(members), 2)
    return np.concatenate([m[:: -(-len(m) // each)] for m in members])
