"""Newton's method on a working set, for the dual of Raj and Bach's problem (ours).

Coordinate ascent soon finds the support, but with nearly dependent rows it takes thousands of
epochs to find alpha. For given signs of alpha, the dual is smooth, and its Hessian on few rows is
a small matrix: one solution of its quadratic model, by block pivoting, replaces those epochs. An
exact line search on the dual objective ends a step; the result is certified like all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv
from scipy.optimize import brentq

from marginsvm._threads import let_interrupts_through
from marginsvm._typing import Array
from marginsvm.papers.layout import layout_of
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.matrix import dense
from marginsvm.problem.rows import intervals_of
from marginsvm.problem.vectors import Vector

LEAST_ADDED = 100  # a working set doubles, or gains this many rows
MOST_ROWS = 2500  # largest working set; its matrices take 200 MB
# Work is counted in coordinate steps, about as measured with dozens of features. It does not depend
# on their number or sparsity, so that a fit takes the same steps for all forms of the same data.
# The matrix of m rows takes m^2 / 10, pivoting m^3 / 10,000, calls from Python 500 in an epoch and
# five times that in a Newton step.
PRODUCT = 10.0
PIVOTING = 10_000.0
CALLS = 500.0
MORE_CALLS = 5.0
POWERS = 6.0  # cost of a coordinate step with powers, relative to one without
# Levenberg-Marquardt damping, relative to the mean curvature: initial, least and largest. It keeps
# the step near the current alpha, where the model is accurate, and makes the model definite where
# rows are dependent. It is divided or multiplied by ten as the step along a line is near 1, where
# the model is right, or near 0.
FIRST_DAMPING = 1e-2
LEAST_DAMPING = 1e-12
MOST_DAMPING = 1e3
RISE = 10.0
FALL = 0.1
RIGHT = 0.5
WRONG = 0.1
TRIES = 8  # attempts at pivoting in one step, each with ten times the damping
FLAT_SLOPE = 1e-3  # slope at a maximum along a step, relative to the initial slope
# Relative error of a shortened step; and the shortest step.
PRECISE = 1e-4
SHORTEST_STEP = 1e-12
# Exchanges without fewer infeasible rows before pivoting stops: it may cycle.
TURNS_WITHOUT_PROGRESS = 3
INFEASIBLE = 1e-10  # rounding, relative to the largest end or alpha


@dataclass(frozen=True)
class Newton:
    """Damping of the next Newton step, and the work since the last one.

    Attributes
    ----------
    damping : float
        Added curvature, relative to the mean (dimensionless).
    spent : float
        Work of coordinate ascent since the last Newton step.
    """

    damping: float = FIRST_DAMPING
    spent: float = 0.0

    def after(self, problem: KernelMatrixAdapter, steps: int) -> Newton:
        """The state after some coordinate steps."""
        work = CALLS + steps * (1.0 if layout_of(problem).q == 2.0 else POWERS)
        return replace(self, spent=self.spent + work)

    def is_due(self, m: int) -> bool:
        """Whether a step on m rows takes at most the work spent since the last one."""
        work = m**2 / PRODUCT + m**3 / PIVOTING + MORE_CALLS * CALLS
        return m <= MOST_ROWS and self.spent >= work

    def step(
        self, problem: KernelMatrixAdapter, v: Vector, chosen: Array
    ) -> tuple[Vector, Newton]:
        """A Newton step on some rows, with exact line search on the dual objective."""
        intervals = intervals_of(problem.rows)
        low = intervals.low.ravel()[chosen]
        high = intervals.high.ravel()[chosen]
        weights = v.coef.ravel()[chosen]
        H = second_derivatives(problem, v, chosen)
        # the margins are those of all rows, also of the ones left out
        pull = H @ weights - problem.margins(v).ravel()[chosen]
        damping = self.damping
        diagonal = H.diagonal().copy()
        for _ in range(TRIES):
            added = damping * diagonal.mean()
            np.fill_diagonal(H, diagonal + added)
            found = pivoted(H, low, high, pull + added * weights, weights)
            if found is not None:
                break
            damping *= RISE
        else:
            return v, Newton(min(damping, MOST_DAMPING))
        coef = v.coef.ravel().copy()
        coef[chosen] = found
        d = problem.combine(coef) - v
        t = _best_step(problem, v, d)
        if t > RIGHT:
            damping *= FALL
        elif t < WRONG:
            damping *= RISE
        newton = Newton(min(max(damping, LEAST_DAMPING), MOST_DAMPING))
        return (v + t * d if t > 0.0 else v), newton


def working_set(problem: KernelMatrixAdapter, v: Vector) -> Array:
    """The support, and as many rows (at least ``LEAST_ADDED``) with the largest violations."""
    flat = problem.rows.flat_indices()
    ends = intervals_of(problem.rows)
    score = problem.margins(v).ravel()[flat]
    weight = v.coef.ravel()[flat]
    inside = np.minimum(score - ends.low.ravel()[flat], ends.high.ravel()[flat] - score)
    n = int(np.count_nonzero(weight))
    size = min(len(flat), n + max(LEAST_ADDED, n))
    chosen = np.argpartition(np.where(weight != 0.0, -np.inf, inside), size - 1)[:size]
    return np.sort(flat[chosen])


def second_derivatives(
    problem: KernelMatrixAdapter, v: Vector, row_ids: Array
) -> Array:
    """Second derivatives at v of half the squared norm, along some rows."""
    design = problem.design
    norm = problem.norm_of_predictors
    if design is None:
        return problem.gram(row_ids, row_ids)
    examples = problem.rows.map.example_of(row_ids)
    signs = problem.rows.map.of_scores(row_ids)
    curvature, rank_one = norm.curvature(v.image)
    H = np.zeros((len(row_ids), len(row_ids)))
    if problem.ridge is not None:
        np.fill_diagonal(H, problem.ridge.ravel()[row_ids])
    for sign, scale in zip(signs.T, np.atleast_2d(np.sqrt(curvature)), strict=True):
        of = np.flatnonzero(sign)
        X = design.rows(examples[of])
        X = X @ sp.diags_array(scale) if design.sparse else X * scale
        G = dense(X @ X.T)
        H[of[:, None], of] += G * np.multiply.outer(sign[of], sign[of])
    if rank_one == 0.0:
        return H
    m = problem.rows.margins(problem.scores(v, precise=False)).ravel()[row_ids]
    return H - rank_one * np.multiply.outer(m, m)


def pivoted(
    H: Array, low: Array, high: Array, pull: Array, near: Array
) -> Array | None:
    """The b that maximises ``gain(b) + pull'b - b'Hb/2``; None if pivoting cycles.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Definite.
    low, high : ndarray of shape (m,)
        Ends of intervals: ``gain(b) = low'max(b, 0) + high'min(b, 0)``.
    pull : ndarray of shape (m,)
    near : ndarray of shape (m,)
        Initial guess; only its signs are used.
    """
    point = low == high
    ends = np.abs(np.append(low, high))
    small = INFEASIBLE * float(ends[np.isfinite(ends)].max(initial=0.0))
    side = np.sign(near)
    fewest = len(H) + 1
    left = TURNS_WITHOUT_PROGRESS
    while left >= 0:
        let_interrupts_through()  # of thousands of rows, a factor takes a second
        face = np.flatnonzero(side)
        b = np.zeros(len(H))
        if len(face):
            load = (np.where(side > 0, low, high) + pull)[face]
            _, b[face], failed = dposv(H[face[:, None], face], load)
            if failed:
                return None
        score = H @ b - pull
        to = np.where(
            score < low - small, 1.0, np.where(score > high + small, -1.0, 0.0)
        )
        gone = ~point & (b * side < -INFEASIBLE * np.abs(b).max(initial=0.0))
        wanted = np.where(side == 0.0, to, np.where(gone, 0.0, side))
        changed = int(np.count_nonzero(wanted != side))
        if changed == 0:
            return np.where(point | (b * side > 0.0), b, 0.0)
        left = TURNS_WITHOUT_PROGRESS if changed < fewest else left - 1
        side = wanted
        fewest = min(changed, fewest)
    return None


def _best_step(problem: KernelMatrixAdapter, v: Vector, d: Vector) -> float:
    """Maximiser in [0, 1] of the (concave) dual objective along d; 1 if the maximum is near.

    The full step makes entries of alpha exactly zero.
    """
    intervals = intervals_of(problem.rows)

    def slope(t: float) -> float:
        """Derivative from within [0, 1]."""
        weights = v.coef + t * d.coef
        side = np.where(weights != 0.0, weights, -d.coef if t > 0.0 else d.coef)
        gain = np.where(
            d.coef == 0.0, 0.0, np.where(side > 0.0, intervals.low, intervals.high)
        )
        return float((gain * d.coef).sum()) - problem.dot(d, v + t * d)

    first = slope(0.0)
    last = slope(1.0)
    if first > 0.0 and last < -FLAT_SLOPE * first:
        return float(brentq(slope, 0.0, 1.0, xtol=SHORTEST_STEP, rtol=PRECISE))
    return 1.0 if last >= -FLAT_SLOPE * first else 0.0
