"""Semismooth Newton on the primal, within an augmented Lagrangian if the loss has kinks.

    min over w, f      |w|^2/2 + g'f + sum_i cost_i(target_i - (A w + F f)_i)
    cost_i(r) = max over 0 <= a <= upper_i of a r - ridge_i a^2/2 - rho_i (a - v_i)^2/2

The maximiser a is the best response to ``r = target - A w - F f``. With rho = 0, cost is the loss
itself; with rho > 0, the term of the augmented Lagrangian with multipliers v. Several classes: an
example has no row for its own class, and if its rows share a cap, the best response is the
projection onto ``{a >= 0, sum a <= cap}``.

The squared hinge loss is smooth and needs no proximal term. Otherwise, and for very large C, each
proximal problem is solved about as precisely as its multipliers v are known, and v becomes its best
response; rho is decreased if that took few steps. With alpha the best response and f the minimiser
for given w (``F'alpha = g``), the gradient is ``w - A'alpha``. A step solves
``(R + E'DE) (dw, df) = (A'alpha - w, 0)`` with D the derivative of the best response, by the free
rows, by the features, or by conjugate gradients, and is followed by an exact line search.

References
----------
S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large scale linear
SVMs. JMLR, 2005.

X. Li, D. Sun, K.-C. Toh. A highly efficient semismooth Newton augmented Lagrangian method for
solving Lasso problems. SIAM Journal on Optimization, 2018.

R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research, 1976.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.solution import INWARD, Solution
from marginsvm.solvers.systems import NewtonSystem, curvature_of_f

EPS = float(np.finfo(np.float64).eps)
SMALLEST = 1e-20  # least scale (radii squared) of values where classes overlap

# Without another scale (radii squared), rho is first the ridge of the squared hinge loss at C = 10;
# after a warm start it is smaller by a factor, down to KNOWN. It is multiplied by SMALLER if the
# last proximal problem took at most FEW_STEPS steps, and is never below LEAST.
RHO = 0.05
KNOWN = 0.01
SMALLER = 0.2
FEW_STEPS = 2
LEAST = 1e-13
SMOOTH = 1e-11  # ridge of a single score from which on Newton's method needs no rho

ROUNDING = 1e-14  # relative decrease of the objective that counts as rounding
# Progress is a gap (or, without a separator, |A'alpha|^2) that has fallen to this part.
NEARER = 0.9
PATIENCE = 30
# the next step moves f by at most so many times the change that settles it
NARROW = 4.0

# Many examples start at the solution of a sample of SAMPLE, if they are LONG times as many.
SAMPLE = 20_000
LONG = 10
OF_SAMPLE = 1e-3  # gap of this start


def newton(solution: Solution, start: Array | None) -> Iterator[None]:
    """Solve a program of any size, without sign constraints on coefficients."""
    qp = solution.qp
    examples = qp.examples
    unit = unit_of(qp)
    if qp.hard and not qp.game:  # hard targets are met only up to rounding
        qp = replace(qp, target=qp.target + INWARD * unit)
    system = NewtonSystem(qp)
    # The state: w (k, d) and its scores S (n, k); the multipliers v, and the factor of rho, which
    # is 1 at first. Below, f (n_free,) minimises the loss for given w, and m are the rows' values.
    w = np.zeros_like(solution.w)
    f = np.zeros(qp.n_free)
    S = np.zeros((examples.n, qp.k))
    v = np.broadcast_to(0.0, qp.shape)
    narrow = 1.0
    may_be_sampled = examples.n >= LONG * SAMPLE and not (qp.hard or qp.level)
    may_be_sampled = may_be_sampled and not examples.is_kernel and qp.by_margins
    if start is None and may_be_sampled and qp.design.X.in_memory:
        w, f = of_sample(qp)
        S = examples.scores(w)
    elif start is not None:
        solution.dual(start)
        v = solution.alpha
        w = qp.rmatvec(v)
        S = examples.scores(w)
        if qp.game:
            unit = max(examples.inner(w, w), SMALLEST)
        # as large as the violations of the start, relative to unit
        loss = Loss(qp, rho_of(qp, KNOWN, unit), v)
        off = loss.raw(loss.settle(qp.values(S, f), f)[1]) - v
        off = np.maximum(np.where(v < qp.upper, off, 0.0), np.where(v > 0.0, -off, 0.0))
        narrow = min(1.0, max(KNOWN, float((off * loss.s).max()) / unit))
    loss = Loss(qp, rho_of(qp, narrow, unit), v)
    f, m = loss.settle(qp.values(S, f), f)
    best = (1.0, -np.inf)  # the gap and the dual value at the last progress
    J = np.inf  # objective of the proximal problem
    taken = 0  # steps in this problem
    reach = np.inf  # change of f in the last step, and some more
    while True:
        # The best response, as a feasible alpha, and w are offered.
        response = loss.best_response(m)
        alpha = qp.feasible(response)  # a change by rounding only
        image = qp.rmatvec(alpha)
        solution.dual(alpha, image)
        solution.primal(w, f, S, settled=not (qp.hard or qp.level))
        nearer = solution.gap <= NEARER * best[0]
        nearer = nearer or (qp.game and solution.D - NEARER * best[1] >= 0.0)
        if nearer:
            best = (solution.gap, solution.D)
        solution.progress(nearer)
        yield
        if solution.ended or solution.idle > PATIENCE:
            return

        # The next proximal problem, once this one is solved to the accuracy of v.
        r = image - w
        before = J
        J = 0.5 * examples.inner(w, w) + float(qp.g @ f) + loss.value(m, response)
        still = before - J <= ROUNDING * abs(J)
        if np.any(loss.rho):
            inner = 0.5 * examples.inner(r, r)
            missed = 0.5 * float(np.sum(loss.rho * (alpha - v) ** 2))
            if inner <= missed or still:
                if taken <= FEW_STEPS:
                    narrow *= SMALLER
                v = alpha
                J = np.inf
                taken = 0
                loss = Loss(qp, rho_of(qp, narrow, unit), v)
                f, m = loss.settle(m, f)
                response = loss.best_response(m)
                r = qp.rmatvec(response) - w

        # Newton's step, and the minimum along it; then f settles again.
        dw, df = system.direction(*loss.derivative(m, response), loss.s, r)
        T = examples.scores(dw)
        slope = examples.inner(w, dw) + float(qp.g @ df)
        square = max(examples.inner(dw, dw), 0.0)
        t = loss.search(m, qp.values(T, df), slope, square)
        w = w + t * dw
        T *= t
        S += T
        moved = f + t * df
        taken += 1
        f, m = loss.settle(qp.values(S, moved), moved, reach)
        reach = NARROW * float(np.abs(f - moved).max(initial=0.0))


def of_sample(qp: QuadraticProgram) -> tuple[Array, Array]:
    """Solution w, f for some of the examples, with weights of the same sum."""
    n = qp.examples.n
    part = qp.restrict(np.random.RandomState(0).randint(n, size=SAMPLE))
    share = SAMPLE / n
    cap = None if part.cap is None else part.cap / share
    part = replace(part, ridge=part.ridge * share, upper=part.upper / share, cap=cap)
    found = Solution(part, OF_SAMPLE, PATIENCE)
    for _ in newton(found, None):
        pass
    return found.w, found.f


def unit_of(qp: QuadraticProgram) -> float:
    """The scale of the rows' values: the size of targets or, in a game, of margins."""
    if qp.game:
        w = qp.rmatvec(qp.feasible(qp.rows.fill(np.ones(qp.shape), 0.0)))
        return max(qp.examples.inner(w, w), SMALLEST)
    if qp.by_margins:
        return 1.0
    S = np.zeros((qp.examples.n, qp.k))
    r = qp.target - qp.values(S, qp.best_f(S, np.zeros(qp.n_free)))
    return float(np.abs(r).mean()) or 1.0


def rho_of(qp: QuadraticProgram, narrow: float, unit: float) -> Array:
    """The proximal parameter rho; 0 if the ridge alone makes the loss smooth enough.

    With upper bounds, rho starts so large that rows whose values differ by one unit are free.
    """
    if not qp.several and np.min(qp.ridge) >= SMOOTH:
        return np.zeros(())
    upper = qp.upper if qp.cap is None else qp.cap[:, None]
    if np.any(qp.ridge):
        base = RHO * qp.ridge / np.mean(qp.ridge)
    elif not qp.several or qp.cap is not None:
        base = np.maximum(unit / upper, RHO)
    else:
        base = np.full((1, 1), RHO)
    if np.all(SMALLER * narrow * base <= qp.ridge):
        return np.zeros(())
    return np.maximum(narrow * base - qp.ridge, LEAST)


# The loss.

SEARCH_STEPS = 100  # along a line: more than bisection takes
SETTLE_STEPS = 50  # Newton steps for f
BALANCED = 1e-14  # rounding of F'alpha - g, relative to the sum of alpha
LONE = 1e-12  # damping without free rows, relative to the largest change of an alpha
PART = 2**15  # rows whose arrays stay in cache
NO_SUM = 1e-300  # instead of 0, as a divisor


class Loss:
    """The loss of a program, with a proximal term.

    Attributes
    ----------
    s : ndarray
        ``ridge + rho``: the inverse slope of the best response on free rows.
    """

    def __init__(
        self, qp: QuadraticProgram, rho: Array | float = 0.0, v: Array | float = 0.0
    ) -> None:
        self.qp = qp
        self.rho = np.asarray(rho)
        self.v = np.asarray(v)
        # The program without X, for f and alpha only.
        self.light = replace(qp, examples=cast("FloatExamples", Count(qp.examples.n)))
        self.s = qp.ridge
        self.target = qp.target
        if np.any(self.rho):
            self.s = qp.ridge + self.rho
            self.target = qp.target + self.rho * self.v
        if qp.several:
            target = np.array(np.broadcast_to(self.target, qp.shape))
            self.target = qp.rows.fill(target, -np.inf)

    def raw(self, m: Array) -> Array:
        """Unconstrained maximisers a, for values m of the rows."""
        found = self.target - m
        found /= self.s
        return found

    def best_response(self, m: Array) -> Array:
        """Maximisers a within their bounds, for values m of the rows."""
        return within(self.raw(m), self.qp.upper, self.qp.cap)

    def value(self, m: Array, alpha: Array) -> float:
        """The sum of the losses of all rows."""
        qp = self.qp
        more = alpha - self.v
        linear = float(np.vdot(alpha, qp.target - m))
        of_ridge = 0.5 * float(np.sum(qp.ridge * alpha * alpha))
        return linear - of_ridge - 0.5 * float(np.sum(self.rho * more * more))

    def derivative(self, m: Array, alpha: Array) -> tuple[Array, Array | None]:
        """Generalised derivative of the best response with respect to -m.

        Returns
        -------
        own : ndarray
            1/s for free rows, 0 for the others.
        linked : ndarray or None
            The free rows of an example at its cap keep their sum: the quadratic form has the terms
            ``linked_j linked_l (v_j - v_l)^2`` for pairs of them, and own is 0.
        """
        if self.qp.cap is None:
            free = (alpha > 0.0) & (alpha < self.qp.upper)
            return np.where(free, 1.0 / self.s, 0.0), None
        own = np.where(alpha > 0.0, 1.0 / self.s, 0.0)
        full = is_full(self.raw(m), self.qp.cap)
        linked = np.where(full[:, None], own, 0.0)
        linked /= np.sqrt(np.maximum(linked.sum(axis=1), NO_SUM))[:, None]
        own[full] = 0.0
        return own, linked if full.any() else None

    def search(
        self,
        m: Array,
        move: Array,
        slope: float = 0.0,
        square: float = 0.0,
        t: float = 1.0,
        low: float = 0.0,
    ) -> float:
        """The t >= low that minimises ``slope t + square t^2/2`` plus the loss at ``m + t move``.

        Newton's method inside a bracket. With ``low = 0``, rows inactive for all t are left out.
        """
        raw = self.raw(m)
        rate = move / self.s
        cap = self.qp.cap
        upper = np.broadcast_to(self.qp.upper, raw.shape)
        if low == 0.0:
            reached = (raw > 0.0) | (rate < 0.0)
            if cap is not None:
                reached = np.asarray(reached.any(axis=1))
            if 2 * np.count_nonzero(reached) < reached.size:
                raw, rate, move, upper = (v[reached] for v in (raw, rate, move, upper))
                cap = None if cap is None else cap[reached]
        high = np.inf  # the minimum is between low and high
        wide = max(1.0, abs(t))  # the next step without a bracket
        parts = [slice(i, i + PART) for i in range(0, len(raw), PART)]
        for _ in range(SEARCH_STEPS):
            # Over all rows: the loss's force, the sum of its terms' sizes, and its curvature.
            pull = 0.0
            size = 0.0
            bend = 0.0
            for some in parts:
                at = raw[some] - t * rate[some]
                across = move[some]
                bounds = upper[some], None if cap is None else cap[some]
                alpha = within(at, *bounds)
                pull += float(np.vdot(across, alpha))
                size += float(np.vdot(np.abs(across), alpha))
                bend += _bend(at, alpha, rate[some], across, *bounds)
            force = pull - slope - square * t
            curvature = square + bend
            if abs(force) <= EPS * (abs(slope) + abs(square * t) + size):
                break
            if force > 0.0:
                low = t
            else:
                high = t
            new = t + force / curvature if curvature > 0.0 else np.nan
            if not low < new < high:
                if np.isfinite(low) and np.isfinite(high):
                    new = 0.5 * (low + high)
                else:
                    new = t + float(np.copysign(wide, force))
                    wide = 4.0 * wide
            if abs(new - t) <= EPS * abs(t):
                break
            t = new
        return t

    def settle(self, m: Array, f: Array, reach: float = np.inf) -> tuple[Array, Array]:
        """The minimising f for fixed scores, where ``F'alpha = g``, and the values m at it.

        Rows with alpha = 0 unless m decreases by ``reach`` are left out if f moves m by less.
        """
        qp = self.qp
        if qp.n_free == 0:
            return f, m
        df = None
        near = self.target - m > -reach
        some = np.flatnonzero(near if near.ndim == 1 else near.any(axis=1))
        if 2 * len(some) < len(m):
            rho, v = (
                x[some] if x.ndim and len(x) == len(m) else x
                for x in (self.rho, self.v)
            )
            df = Loss(self.light.restrict(some), rho, v)._settled(m[some])
        if df is None or 2.0 * np.abs(df).max() > reach:
            df = self._settled(m)
        moved = self.light.values(np.zeros((qp.examples.n, qp.k)), df)
        moved += m
        return f + df, moved

    def _settled(self, m: Array) -> Array:
        """The change of f, by Newton's method."""
        qp = self.light
        f = np.zeros(self.qp.n_free)
        S = np.zeros((qp.examples.n, qp.k))
        least = np.inf  # the smallest force so far
        if qp.n_free == 1:
            move = qp.values(S, np.ones(1))
            return f + self.search(m, move, float(qp.g[0]), t=0.0, low=-np.inf)
        for _ in range(SETTLE_STEPS):
            alpha = self.best_response(m)
            force = qp.balance(alpha) - qp.g
            size = float(np.abs(force).max())
            if size <= BALANCED * float(alpha.sum()):
                break
            H = curvature_of_f(qp, *self.derivative(m, alpha))
            # without free rows, the step is bounded by the largest change of an alpha
            damping = EPS * H.trace() + LONE * float(np.mean(1.0 / self.s))
            df = np.linalg.solve(H + damping * np.eye(len(H)), force)
            move = qp.values(S, df)
            # near the solution, a full step halves the force
            t = 1.0 if size <= 0.5 * least else self.search(m, move, float(qp.g @ df))
            f = f + t * df
            m = m + t * move
            least = min(size, least)
        return f


class Count(NamedTuple):
    """Stands for examples where only their number is needed."""

    n: int

    def take(self, index: Array) -> Count:
        """The number of chosen examples."""
        return Count(len(index))


def within(raw: Array, upper: Array, cap: Array | None) -> Array:
    """Projection of alpha onto its bounds."""
    if cap is None:
        found = np.maximum(raw, 0.0)
        return np.minimum(found, upper, out=found)
    alpha = np.maximum(raw, 0.0)
    full = np.flatnonzero(is_full(raw, cap))
    if full.size:
        order = -np.sort(-raw[full], axis=1)
        excess = np.cumsum(order, axis=1) - cap[full, None]
        count = np.arange(1, raw.shape[1] + 1)
        last = np.maximum(np.count_nonzero(order * count > excess, axis=1), 1)
        level = np.take_along_axis(excess, last[:, None] - 1, axis=1) / last[:, None]
        alpha[full] = np.maximum(raw[full] - level, 0.0)
    return alpha


def is_full(raw: Array, cap: Array) -> Array:
    """Whether the alpha of an example reach their cap."""
    return np.asarray(np.maximum(raw, 0.0).sum(axis=1) > cap)


def _bend(
    raw: Array, alpha: Array, rate: Array, move: Array, upper: Array, cap: Array | None
) -> float:
    """Second derivative of the loss along a line."""
    free = alpha > 0.0
    if cap is None:
        free &= alpha < upper
        return float(np.vdot(np.where(free, rate, 0.0), move))
    rate = np.where(free, rate, 0.0)
    full = is_full(raw, cap)
    # at a cap, less the mean over the example's free rows, which all have the same s
    mean = (free * move).sum(axis=1) / np.maximum(free.sum(axis=1), 1)
    return float(np.vdot(rate, move - np.where(full, mean, 0.0)[:, None]))
