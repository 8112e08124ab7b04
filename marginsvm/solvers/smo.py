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

The error of scores from float32 kernel values is their rounding times the sum of alpha. So scores
are recomputed in float64 once the gap is closed, and whenever it stalls; later updates add small
terms only. This is iterative refinement.

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

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from marginsvm._compiling import compiled, parts
from marginsvm._typing import Array
from marginsvm.problem.column_cache import ColumnCache
from marginsvm.problem.gram import Gram
from marginsvm.problem.matrix import FLOAT32, FLOAT64
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
def _scores_moved(t, row, other, slope, not_up, tops):
    """Subtract ``t (row - other)`` from the slopes, and update each lane's maximum."""
    tops[:] = -SHUT
    for k in range(0, len(slope), LANES):
        a = row[k : k + LANES]
        b = other[k : k + LANES]
        s = slope[k : k + LANES]
        shut = not_up[k : k + LANES]
        for r in range(len(s)):
            s[r] -= t * (a[r] - b[r])
            high = s[r] - shut[r]
            tops[r] = high if high > tops[r] else tops[r]


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
    least = 1e-300
    square = np.empty(m)
    not_up = np.empty(m)
    not_down = np.empty(m)
    nothing = np.zeros_like(K[0])
    tops = np.full((2, LANES), -SHUT)
    gains = np.empty(LANES)
    gaps = np.empty(LANES)
    for r in range(m):
        square[r] = K[r, r] + ridge[r]
        least = max(least, 1e-12 * square[r])
        _step(r, 0.0, floor, ceiling, ridge, v, slope, not_up, not_down)
    _scores_moved(
        0.0, nothing[:split], nothing[:split], slope[:split], not_up[:split], tops[0]
    )
    _scores_moved(
        0.0, nothing[split:], nothing[split:], slope[split:], not_up[split:], tops[1]
    )
    for step in range(most):
        i = 0
        j = 0
        best = 0.0
        worst = 0.0
        if balanced:
            for side in range(2):
                a, b = (split, m) if side else (0, split)
                if a == b:
                    continue
                up = a + _highest(slope[a:b], not_up[a:b], tops[side])
                high = slope[up] - not_up[up]
                own = square[up]
                row = K[up, a:b]
                _gains(
                    high,
                    own,
                    row,
                    slope[a:b],
                    not_down[a:b],
                    square[a:b],
                    least,
                    gains,
                    gaps,
                )
                worst = max(worst, gaps.max())
                lane = gains.argmax()
                if gains[lane] > best:
                    best = gains[lane]
                    i = up
                    j = a + _partner(
                        high,
                        own,
                        row,
                        slope[a:b],
                        not_down[a:b],
                        square[a:b],
                        least,
                        lane,
                    )
            if not worst > tol:
                return step
            t = (slope[i] - slope[j]) / max(
                square[i] + square[j] - 2.0 * K[i, j], least
            )
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
        _scores_moved(
            t, row[:split], other[:split], slope[:split], not_up[:split], tops[0]
        )
        _scores_moved(
            t, row[split:], other[split:], slope[split:], not_up[split:], tops[1]
        )
    return most


@part
def _best_of_example(i, q, own, cap, ridge, mean, alpha, F, b, excess, c, new, order):
    """The best variables of an example; the resulting change of its margins, and their sum."""
    mass = alpha.sum()
    off = 0.0
    diagonal = max(q + ridge, 1e-300)
    for j in range(len(alpha)):
        c[j] = F[j, i] + b[j] - mean * excess[j]
    score = c[own]
    for j in range(len(alpha)):
        c[j] = 1.0 - (score - c[j]) + q * (mass + alpha[j])
    found = projected(c, own, q, diagonal, cap, new, order)
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
    c = np.empty(k)
    new = np.empty(k)
    order = np.empty(k, np.int64)
    some = np.arange(m)
    steps = 0
    n = m
    skip = tol
    off_of_all = 0.0
    grand = mean.mean()
    next_time = 0.3  # examples above this fraction of the largest violation stay active
    b += price * excess
    while steps < most:
        worst, kept, steps = (
            0.0,
            0,
            steps + 1,
        )  # so that passes without a change end, too
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
            if off > next_time * skip:
                some[a] = some[kept]
                some[kept] = i
                kept += 1
        unbalanced = price * np.abs(excess).max()
        if n == m:
            off_of_all = worst
            if max(worst, unbalanced) <= tol:
                break
            if worst <= unbalanced:  # update the multipliers, by at most half a margin
                b += price * min(1.0, 0.5 / unbalanced) * excess
        n = m if worst <= max(next_time * off_of_all, unbalanced, tol) else kept
        skip = next_time * max(worst, tol)
    b -= price * excess
    return steps


@loop
def add_columns(columns, slot, examples, v, out):
    """Add ``v_a columns[slot[examples_a]]`` to out, in parts that stay in cache."""
    for begin in range(0, len(out), 4096):
        part = out[begin : begin + 4096]
        for a in range(len(examples)):
            column = columns[slot[examples[a]], begin : begin + 4096]
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
    """Limit of steps on a working set before the scores of all examples are updated."""
    return max(50 * m, 2**21 // max(m, 1))


class RowPairs:
    """Two classes, regression, one class: the working set consists of rows.

    Variables are ``v = y alpha``, whose sum pairs keep: y is the sign with an intercept, and 1 with
    rho alone. With both, the two rows of a pair have the same sign.
    """

    patience = 3

    def __init__(self, qp: QuadraticProgram) -> None:
        self.qp = qp
        self.of = qp.rows.at
        m = qp.size
        sign = qp.sign
        self.y = np.ones(m) if qp.level and not qp.intercept else sign
        self.turn = self.y * sign
        self.side = (sign < 0) & bool(qp.level and qp.intercept)
        self.target, self.ridge, self.upper = (
            np.broadcast_to(a, m) for a in (self.y * qp.target, qp.ridge, qp.upper)
        )
        self.floor = np.where(self.y > 0, 0.0, -self.upper)
        self.ceiling = np.where(self.y > 0, self.upper, 0.0)

    def begin(self) -> Array:
        """Zeros or, if the sum of alpha is given, alpha on few, evenly spread rows."""
        alpha = np.zeros(len(self.y))
        qp = self.qp
        spread = np.argsort(0.6180339887498949 * self.of % 1.0, kind="stable")
        sides = np.unique(self.side) if qp.level else ()
        for side in sides:
            rows = spread[self.side[spread] == side]
            mass = qp.level * qp.total / len(sides)
            upper = np.minimum(self.upper[rows], mass)
            alpha[rows] = np.clip(mass - np.cumsum(upper) + upper, 0.0, upper)
        return alpha

    def first(self) -> Array:
        return _spread_evenly(self.qp.rows.labels, 400)

    def scale(self, alpha: Array, S: Array) -> float:
        """Half the range of slopes where alpha is 0; without targets, the mean score."""
        high = float(self.target[self.ceiling > 0].max(initial=0.0))
        low = float(self.target[self.floor < 0].min(initial=0.0))
        if high - low > 0.0:
            return 0.5 * (high - low)
        V = self.qp.rows.coefficients(alpha)
        return float(V[:, 0] @ S[:, 0]) / max(float(alpha.sum()), 1e-300)

    def ascend(
        self, K: Array, work: Array, alpha: Array, S: Array, tol: float
    ) -> tuple[Array, bool]:
        """Alpha of the working set after some steps, and whether it is solved."""
        v = self.y[work] * alpha[work]
        turn = self.turn[work]
        if (turn < 0).any():
            K = K * np.multiply.outer(turn, turn).astype(K.dtype)
        most = _most_steps(len(work))
        steps = ascend_pairs(
            K, len(work) - np.count_nonzero(self.side[work]), self.qp.n_free > 0,
            self.floor[work], self.ceiling[work], self.ridge[work], tol, most, v,
            self._slope(alpha, S)[work],
        )  # fmt: skip
        return self.y[work] * v, steps < most

    def _slope(self, alpha: Array, S: Array) -> Array:
        return self.target - self.turn * S[self.of, 0] - self.ridge * (self.y * alpha)

    def conditions(self, alpha: Array, S: Array, work: Array) -> tuple[Array, Array]:
        """The best f, and the KKT violation of each row."""
        slope = self._slope(alpha, S)
        v = self.y * alpha
        # an alpha within rounding of a bound counts as at the bound
        rounding = np.minimum(1e-14 * len(v) * float(np.abs(v).max()), 0.5 * self.upper)
        up = v < self.ceiling - rounding
        down = v > self.floor + rounding
        if self.qp.n_free:
            slope = slope.copy()
            for side in (False, True):
                some = work[self.side[work] == side]
                ends = [
                    slope[some][up[some]].max(initial=-np.inf),
                    slope[some][down[some]].min(initial=np.inf),
                ]
                ends = [end for end in ends if np.isfinite(end)]
                slope[self.side == side] -= np.mean(ends) if ends else 0.0
        wrong = np.maximum(
            np.where(up, slope, -np.inf), np.where(down, -slope, -np.inf)
        )
        return self.qp.best_f(S, np.zeros(self.qp.n_free)), wrong


class RowsOfExamples:
    """Several classes: the working set consists of examples."""

    patience = 12

    def __init__(self, qp: QuadraticProgram) -> None:
        n = qp.examples.n
        self.qp = qp
        self.of = np.arange(n)
        self.b = np.zeros(qp.k)
        self.codes = qp.rows.labels
        self.side = np.zeros(n, bool)
        self.cap = np.full(n, np.inf) if qp.cap is None else qp.cap
        self.ridge = np.broadcast_to(qp.ridge[:, 0], n)

    def begin(self) -> Array:
        return np.zeros(self.qp.shape)

    def first(self) -> Array:
        return _spread_evenly(self.codes, min(max(400, 80 * self.qp.k), 4500))

    def scale(self, alpha: Array, S: Array) -> float:
        return 1.0

    def ascend(
        self, K: Array, work: Array, alpha: Array, S: Array, tol: float
    ) -> tuple[Array, bool]:
        """Alpha of the working set after some steps, and whether it is solved."""
        mean = np.zeros(len(work))
        price = 0.0
        some = alpha[work]
        if self.qp.intercept:
            mean = K.mean(axis=0, dtype=np.float64)
            squares = float(np.diagonal(K).mean())
            spread = max(squares - float(mean.mean()), 1e-7 * squares)
            spread += 0.5 * float(self.ridge[work].mean())
            # an excess of 6 % of the sum of caps moves an intercept by the width of the margin
            price = 0.05 * spread + 1.0 / (0.06 * float(self.cap[work].sum()))
        steps = ascend_examples(
            K, mean, self.codes[work], self.cap[work], self.ridge[work], price, tol,
            _most_steps(len(work)), some, np.ascontiguousarray(S[work].T), self.b,
            self.qp.rows.coefficients(alpha).sum(axis=0),
        )  # fmt: skip
        return some, steps < _most_steps(len(work))

    def conditions(self, alpha: Array, S: Array, work: Array) -> tuple[Array, Array]:
        """f, and the KKT violation of each example."""
        f = self.b[:-1] - self.b[-1] if self.qp.intercept else np.zeros(0)
        short = (
            1.0 - self.qp.rows.values(S + self.qp.offsets(f)) - self.qp.ridge * alpha
        )
        self.qp.rows.fill(short, -np.inf)
        wrong = np.where(alpha.sum(axis=1) < self.cap, short.max(axis=1), 0.0)
        wrong = np.maximum(wrong, np.where(alpha > 0.0, -short, 0.0).max(axis=1))
        return f, wrong


def smo(solution: Solution, start: Array | None) -> Iterator[None]:
    """Solve a kernel program; see :mod:`marginsvm.solvers.solution`."""
    qp = solution.qp
    unit = qp.game and qp.several  # solved with target 1, alpha of any sum
    kind = RowsOfExamples(qp) if qp.several else RowPairs(qp)
    examples = cast("Gram", qp.examples)
    of = kind.of

    single = 1e-12 < examples.radius < 1e12  # the range of float32
    compute = examples.single_values if single else examples.values
    dtype = FLOAT32 if single else FLOAT64
    given = None if examples.K is None else np.asarray(examples.K)
    cache = ColumnCache(
        compute, examples.n, dtype, 0.5 * examples.cache_size, 32, whole=given
    )
    units = 1.0 / examples.radius**2, (examples.constant / examples.radius) ** 2
    room = max(400, int(np.sqrt(0.25 * examples.cache_size * 2**20 / 4)))
    alpha = kind.begin() if start is None else start.copy()
    F = np.zeros((qp.k, examples.n))
    _add(cache, units, qp.rows.coefficients(alpha), F)
    if unit and start is not None:  # scaled to margin 1
        alpha, F = (x / np.vdot(qp.rows.coefficients(alpha), F.T) for x in (alpha, F))
    work = (
        kind.first()
        if start is None
        else np.flatnonzero(alpha.reshape(len(of), -1).any(axis=1))
    )
    scale = kind.scale(alpha, F.T)
    precision = 0.1
    K = np.empty((0, 0), np.float32)
    kept = work[:0]
    least = np.inf
    refined = np.inf
    idle = 0
    mark = 1.0

    def valued() -> Array:
        """Record the dual value of alpha and the primal value of its w; returns the violations."""
        f, wrong = kind.conditions(alpha, F.T, work)
        q = qp.feasible(alpha)
        S = F.T
        mass = float(alpha.sum()) + 1e-300
        if unit:  # game units: divide by the sum of alpha
            f = qp.best_f(S / mass, np.append(f / mass, 0.0))
            S = S / mass
        V = qp.rows.coefficients(q)
        squared = float(np.vdot(V, S))
        P = 0.5 * squared + (qp.total * f[-1] if qp.level else 0.0)
        P += 0.0 if qp.hard else qp.cost(qp.target - qp.values(S, f))
        D = float((qp.target * q - 0.5 * qp.ridge * q**2).sum()) - 0.5 * squared
        if P < solution.P:
            solution.w = V.T
            solution.f = f
            solution.P = P
        if D > solution.D:
            solution.alpha = q
            solution.D = D
        return wrong

    def refine() -> Array:
        """Recompute the scores in float64, then as ``valued``."""
        F[...] = examples.scores(qp.rmatvec(alpha)).T
        solution.P = np.inf
        solution.D = -np.inf
        return valued()

    while True:
        # solve on the working set
        if kind.side.any():  # contiguous by sign
            work = work[np.argsort(kind.side[work], kind="stable")]
            kept = kept[:0]
        used = float(alpha[work].reshape(len(work), -1).any(axis=1).mean())
        K = _block(K, kept, cache, compute, units, of[work], used)
        before = alpha
        some, solved = kind.ascend(K, work, alpha, F.T, precision * scale)
        alpha = alpha.copy()
        alpha[work] = some
        if not np.isfinite(alpha).all():  # the dual is unbounded
            return
        if qp.several:  # multiplier steps leave F'alpha near 0 only
            alpha = qp.feasible(alpha) * (float(alpha.sum()) if unit else 1.0)
        _add(cache, units, qp.rows.coefficients(alpha - before), F)
        wrong = valued()
        if (
            solution.gap <= solution.tol and refined < np.inf
        ):  # float32 alone was wrong before
            wrong = refine()
        reached = solution.gap <= solution.tol
        asked = solution.tol
        yield
        # a certified gap above this tolerance is larger than the float32 estimate
        coarse = (
            solution.status == "converged"
            and solution.tol < asked
            and refined == np.inf
        )
        if solution.ended and not coarse:
            return
        # violated rows join, rows far from violation leave
        far = wrong[work] < -0.3 * scale
        wrong[work] = -np.inf
        new = np.flatnonzero(wrong > 0.5 * precision * scale)
        gap = solution.gap
        if len(new) <= 0.1 * len(work):
            idle = idle + 1 if gap > 0.9 * least and precision <= 1e-3 else 0
            less = (
                max(0.1, 0.3 * solution.tol / max(gap, solution.tol)) if solved else 1.0
            )
            precision = max(less * precision, 1e-9)
            least = min(least, gap)
        slow = solution.n_iter % 20 == 0 and gap > 0.5 * mark
        mark = gap if solution.n_iter % 20 == 0 else mark
        if (
            reached
            or slow
            or idle >= kind.patience
            or (precision <= 1e-9 and not len(new))
        ):
            refine()
            if slow or solution.gap > 0.5 * refined:
                return
            refined = solution.gap
            idle = 0
        most = min(max(200, int(0.4 * len(work))), room // 2)
        if len(new) > most:
            new = new[np.argpartition(-wrong[new], most - 1)[:most]]
        kept = np.arange(len(work))
        if far.sum() > 0.5 * len(work) or len(work) + len(new) > room:
            kept = kept[~far]
        kept = kept[
            max(0, len(kept) + len(new) - room) :
        ]  # the oldest rows leave first
        work = np.concatenate([work[kept], new])


def _spread_evenly(group: Array, size: int) -> Array:
    """Evenly spaced members of every group, about ``size`` in total."""
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = max(size // len(members), 2)
    return np.concatenate([m[:: -(-len(m) // each)] for m in members])


def _add(cache: ColumnCache, units: tuple[float, float], V: Array, F: Array) -> None:
    """Add the scores of coefficients V to F."""
    for v, out in zip(V.T, F, strict=True):
        some = np.flatnonzero(v)
        for i in range(0, len(some), cache.capacity):
            part = some[i : i + cache.capacity]
            cache.fetch(part)
            add_columns(cache.columns, cache.slot, part, units[0] * v[part], out)
        out += units[1] * v.sum()


def _block(
    K: Array,
    kept: Array,
    cache: ColumnCache,
    compute: Callable[[Array, Array], Array],
    units: tuple[float, float],
    examples: Array,
    used: float,
) -> Array:
    """Kernel matrix of a working set; entries of rows ``kept`` are copied from the previous K.

    Whole columns are needed where alpha changes. Unless so many do (``used`` is their share so far)
    that it saves time to compute all of them at once, only the entries of new rows are computed.
    """
    m, first = len(examples), len(kept)
    new = np.empty((m, m), K.dtype)
    new[:first, :first] = K if first == len(K) else K[kept[:, None], kept]
    rows = np.arange(first, m)
    if m > (1.0 - used) * len(cache.slot) and m - first <= cache.capacity:
        cache.fetch(np.unique(examples[rows]))
    cached = cache.slot[examples] >= 0
    gather(cache.columns, cache.slot, examples, rows[cached[first:]], *units, new)
    missing = rows[~cached[first:]]
    for some in np.array_split(missing, -(-len(missing) // AT_ONCE) or 1):
        values = compute(examples[some], examples) if len(some) else new[:0]
        new[some] = units[0] * values + units[1]
        new[:, some] = new[some].T
    return new
