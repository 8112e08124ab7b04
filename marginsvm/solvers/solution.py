"""The interface of all solvers: their record of the best point so far.

A solver is a generator ``method(solution, start)``; ``start`` is alpha or None. It records better
points in ``solution``, and yields at the end of each iteration. Its caller may then lower the
tolerance, or stop: the certified gap of the rounded point may be larger than the solver's, and the
solver continues from where it is. It returns once ``solution.ended``, or where it stalls.
"""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from marginsvm._typing import Array, Values
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.row_maps import IntervalEnds

# |A'alpha| (in radii, sum of alpha 1) below which it is rounding, so that the classes overlap. With
# a kernel its square is a sum with cancellation.
NOTHING = 1e-14
NOTHING_OF_KERNEL = 1e-7
# Targets of hard tubes are met only up to rounding: solvers tighten them by this, relative to their
# size. In tubes that are not wider, w fits if it violates no target by more than rounding.
INWARD = 1e-11
ROUNDING = 1e-13
OFF = 1e-9  # relative error of the sum of alpha above which none feasible is near


class Solution:
    """The best primal and the best dual point so far, and the stopping tests.

    Attributes
    ----------
    w : ndarray of shape (k, d); of a kernel (k, n)
    f : ndarray of shape (n_free,)
    alpha : ndarray of shape qp.shape
        Feasible up to rounding; w and alpha may be of different iterates.
    P, D : float
        Their primal and dual values.
    violation, rounding : float
        Of a hard tube: the largest violation of a target by w, and that of a w that fits: 0, but in
        narrow tubes, which no float w may fit exactly. Of a soft tube: NaN, as nobody asks.
    tol : float
        Gap at which a solver stops; the caller may lower it.
    max_iter, n_iter : int
    idle : int
        Iterations in a row without progress, by the method's own measure of it.
    stopped : bool
        Whether the caller has stopped the solver.
    """

    def __init__(self, qp: QuadraticProgram, tol: float, max_iter: int) -> None:
        self.qp = qp
        self.tol = tol
        self.max_iter = max_iter
        self.alpha = np.broadcast_to(0.0, qp.shape)
        self.f = np.zeros(qp.n_free)
        self.w = np.zeros((qp.k, qp.width))
        self.P = np.inf
        self.D = -np.inf if qp.level else 0.0
        self.n_iter = 0
        self.idle = 0
        self.stopped = False
        self.tube = qp.hard and not qp.by_margins
        self.rounding = 0.0
        self.violation = 0.0 if self.tube or qp.by_margins else np.nan
        if self.tube:
            assert isinstance(qp.rows, IntervalEnds)
            size = float(qp.largest_target)
            width = -float(np.bincount(qp.rows.example, qp.target).max())
            self.rounding = ROUNDING * size if width <= 2.0 * INWARD * size else 0.0
        if not qp.by_margins:  # w = 0 is optimal for wide tubes
            self.primal(self.w, self.f)

    @property
    def gap(self) -> float:
        return self.gap_of(self.P, self.D)

    def gap_of(self, P: float, D: float) -> float:
        """The gap of two values; of a hard tube, for one that is as wide as w needs."""
        if self.violation > self.rounding:
            return 1.0
        D -= self.price(self.violation)
        return self.qp.gap(P, D) if isfinite(P) and isfinite(D) else 1.0

    def price(self, violation: float) -> float:
        """What the dual value of a hard tube falls by if it is wider by a violation."""
        if not violation > 0.0:
            return 0.0
        return violation * float(np.abs(self.qp.rows.coefficients(self.alpha)).sum())

    @property
    def nothing_separates(self) -> bool:
        return self.vanishes(self.D)

    def vanishes(self, D: float) -> bool:
        """Whether A'alpha is at rounding level at the dual value D: the classes overlap."""
        nothing = NOTHING_OF_KERNEL if self.qp.examples.is_kernel else NOTHING
        return self.qp.game and 2.0 * D + nothing**2 >= 0.0

    def primal(
        self, w: Array, f: Array, S: Values = None, settled: bool = False
    ) -> float:
        """Primal value of w at the best f; S are its scores without intercepts.

        Minimising over f takes a sort, unless ``settled``: f is the minimiser already.
        """
        qp = self.qp
        w = qp.project(w)
        S = qp.examples.scores(w) if S is None else S
        if not settled:
            f = qp.best_f(S, f)
        if self.tube:
            return self._of_tube(w, f, S)
        if not qp.game:
            P = qp.primal(w, f, S)
        else:  # the best scaling; 1 for a negative margin
            square = float(qp.examples.inner(w, w))
            size = float(np.abs(w).sum())
            if not NOTHING * size * size < square < np.inf:
                return np.inf
            length = sqrt(square)
            cost = qp.total * f[-1] if qp.hard else qp.primal(w, f, S) - 0.5 * square
            margin = -cost / length
            t = (margin if margin > 0.0 else 1.0) / length
            w = t * w
            f = t * f
            P = -0.5 * margin * abs(margin)
        if P < self.P:
            self.w = w
            self.f = f
            self.P = P
        return P

    def _of_tube(self, w: Array, f: Array, S: Array) -> float:
        """Primal value in a hard tube: w that fits come first, then the price of a violation."""
        qp = self.qp
        v = max(float((qp.target - qp.values(S, f)).max()), 0.0)
        P = 0.5 * float(qp.examples.inner(w, w))
        before = self.violation > self.rounding, self.P + self.price(self.violation)
        found = v > self.rounding, P + self.price(v)
        if not isfinite(self.P) or found < before:
            self.w = w
            self.f = f
            self.P = P
            self.violation = v
        return P

    def feasible(self, alpha: Array) -> tuple[Array, float]:
        """A feasible alpha nearby and its dual value; minus infinity: none is near."""
        qp = self.qp
        alpha = qp.feasible(alpha)
        off = abs(qp.level * float(alpha.sum()) - qp.total) if qp.level else 0.0
        return alpha, qp.dual(alpha) if off <= OFF * abs(qp.total) else -np.inf

    def dual(self, alpha: Array, image: Array | None = None) -> float:
        """Dual value of a feasible alpha nearby; of alpha itself, if A'alpha is given."""
        if image is None:
            alpha, D = self.feasible(alpha)
        else:
            D = self.qp.dual(alpha, image)
        if D > self.D:
            self.alpha = alpha
            self.D = D
        return D

    def progress(self, made: bool) -> None:
        """Note whether an iteration made progress; a method has its own patience without."""
        self.idle = 0 if made else self.idle + 1

    @property
    def status(self) -> str:
        """``stopped``, ``converged``, ``max_iter`` or, if none of these, ``stalled``.

        ``converged`` also if the classes overlap: then A'alpha is at rounding level, and the gap 1.
        """
        if self.stopped:
            return "stopped"
        if self.gap <= self.tol or self.nothing_separates:
            return "converged"
        return "max_iter" if self.n_iter >= self.max_iter else "stalled"

    @property
    def ended(self) -> bool:
        return self.status != "stalled"
