"""The penalty of a soft margin: squared slack, along a line and under the best intercept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Rows

# Steps of a line search at most; a bracket that is halved so often is down to one number.
_SEARCH_STEPS = 60
# Newton steps for the intercepts of more than two classes, from those of the last iterate.
_INTERCEPT_STEPS = 30
# Imbalance of weights, relative to their sum, that is rounding: the intercepts are the best ones.
_BALANCED = 1e-15
# Step of the intercepts, relative to their size, that is rounding.
_NO_STEP = 1e-16
# Curvature in the intercepts, relative to the largest, up to which they are not connected.
_LOOSE = 1e-12
# Rows are looked at whose slack would begin at a spread of the intercepts this many times larger.
_WIDER = 4.0
# Length of a step up to which a line search looks at rows that are without slack at its start.
_FAR = 2.0


@dataclass(frozen=True)
class SquaredSlack:
    """``sum_r max(0, target_r - m_r)^2 / (2 s_r)`` of the margins m of all rows.

    Attributes
    ----------
    s : ndarray that broadcasts against the rows
        Squares of the rows' extra coordinates, which may be those of a path of soft margins.
    target : ndarray that broadcasts against the rows, or float
        Margin from which on a row has no slack.
    """

    s: Array
    target: Array | float = 1.0

    def missing(self, margins: Array) -> Array:
        """Target minus margins: positive where there is slack."""
        return self.target - margins

    def weights(self, margins: Array) -> Array:
        """The data player's weights: slack over s."""
        return np.maximum(self.missing(margins), 0.0) / self.s

    def line_search(
        self, margins: Array, move: Array, slope: float = 0.0, square: float = 0.0
    ) -> float:
        """Minimise ``slope t + square t^2/2`` plus the squared slack of ``margins + t move``."""
        s = np.broadcast_to(self.s, move.shape)
        xi = self.missing(margins)
        for far in (_FAR, np.inf):
            with np.errstate(invalid="ignore"):
                reach = np.where(move < 0, far * move, 0.0)
            few = np.flatnonzero(xi > reach)
            t = _lowest(xi.flat[few], move.flat[few], s.flat[few], 1.0, slope, square)
            if 0.0 <= t <= far:
                break
        return t

    def best_intercept(self, rows: Rows, margins: Array) -> Array:
        """Change of the scores' intercept that minimises the squared slack, and balances."""
        if rows.n_classes == 2:
            y = rows.moves(np.ones(rows.score_shape))
            s = np.broadcast_to(self.s, margins.shape)
            return np.asarray(_lowest(self.missing(margins), y, s, 0.0))
        return self._best_intercepts(rows, margins)

    def intercept_alone(self, rows: Rows) -> Array:
        """Intercept of the scores that is best at w = 0, where the rows of a group are equal."""
        if rows.n_classes == 2:
            return self.best_intercept(rows, np.zeros(rows.shape))
        k, row_ids = rows.n_classes, rows.flat_indices()
        s = np.broadcast_to(self.s, rows.shape).flat[row_ids]
        total = np.bincount(rows.group(row_ids), 1.0 / s, k * k)
        some = np.flatnonzero(total)
        alike = _Rows(ClassPairs.of(rows, some), np.full(len(some), 1.0), 1.0 / total[some])
        return alike.best(np.zeros(k))

    def _best_intercepts(self, rows: Rows, margins: Array) -> Array:
        """More than two classes: Newton's method in as many unknowns as there are classes.

        Only rows that have slack, or may get some, are looked at.
        """
        xi, s, reach = self.missing(margins), np.broadcast_to(self.s, margins.shape), 0.0
        while True:
            few = np.flatnonzero(xi > -reach)
            near = _Rows(ClassPairs.of(rows, rows.group(few)), xi.flat[few], s.flat[few])
            b = near.best(np.zeros(rows.n_classes))
            spread = float(np.ptp(b))
            if spread <= reach:
                return b
            reach = _WIDER * spread


@dataclass(frozen=True)
class ClassPairs:
    """The own and the other class of some rows of more than two classes.

    Intercepts b of the scores change the margins of these rows by ``B b``.
    """

    n_classes: int
    own: Array
    other: Array

    @classmethod
    def of(cls, rows: Rows, groups: Array) -> ClassPairs:
        """Pairs of given numbers."""
        return cls(rows.n_classes, *np.divmod(groups, rows.n_classes))

    def moves(self, b: Array) -> Array:
        """``B b``: what intercepts add to the margins."""
        return np.sqrt(0.5) * (b[self.own] - b[self.other])

    def imbalance(self, u: Array) -> Array:
        """``B' u``: by how much weights on the rows are out of balance."""
        own, other = (np.bincount(c, u, self.n_classes) for c in (self.own, self.other))
        return np.sqrt(0.5) * (own - other)

    def curvature(self, weight: Array) -> Array:
        """``B' diag(weight) B``."""
        k = self.n_classes
        return _laplacian(np.bincount(self.own * k + self.other, weight, k * k).reshape(k, k))


@dataclass(frozen=True)
class _Rows:
    """Some rows of more than two classes, with what they miss, for the best intercepts."""

    classes: ClassPairs
    xi: Array
    s: Array

    def best(self, b: Array) -> Array:
        """The best intercepts, from a first guess."""
        for _ in range(_INTERCEPT_STEPS):
            step = self.step(b)
            if not step.any():
                break
            b = b + step
        return b

    def step(self, b: Array) -> Array:
        """One Newton step, shorter where that is needed; 0 where weights are balanced."""
        classes, xi = self.classes, self.xi - self.classes.moves(b)
        u, force = self._force(xi)
        if np.abs(force).max() <= _BALANCED * u.sum():
            return np.zeros(len(b))
        step = InterceptSystem.of(classes.curvature((u > 0) / self.s)).solve(force)
        move = classes.moves(step)
        left = np.abs(self._force(xi - move)[1]).max()
        t = 1.0 if left < 0.5 * np.abs(force).max() else _lowest(xi, move, self.s, 1.0)
        small = np.abs(t * step).max() <= _NO_STEP * max(float(np.abs(b).max()), float(xi.max()))
        return np.zeros(len(b)) if small else t * step

    def _force(self, xi: Array) -> tuple[Array, Array]:
        """Weights of the rows, and by how much they are out of balance."""
        u = np.maximum(xi, 0.0) / self.s
        return u, self.classes.imbalance(u)


def intercept_curvature(rows: Rows, weight: Array) -> Array:
    """Second derivatives of the weighted squares of margins in the intercepts of the scores."""
    if rows.n_classes == 2:
        return np.asarray(weight.sum())
    return _laplacian(rows.group_sum(np.broadcast_to(weight, rows.shape)))


def _laplacian(table: Array) -> Array:
    """Second derivatives in the intercepts, from the weights of each pair of classes."""
    return 0.5 * (np.diag(table.sum(axis=0) + table.sum(axis=1)) - table - table.T)


@dataclass(frozen=True)
class InterceptSystem:
    """Systems with the curvature in the intercepts, by its Cholesky factor.

    A shift of all intercepts changes nothing. Steps have mean 0, and classes that no row connects
    are left where they are, up to rounding.
    """

    factor: Array

    @classmethod
    def of(cls, curvature: Array) -> InterceptSystem:
        """Factor the curvature in k > 2 intercepts, or in one of two classes."""
        L = np.atleast_2d(curvature)
        M = L + (L.trace() / L.size if len(L) > 1 else 0.0)
        M.flat[:: len(L) + 1] += _LOOSE * L.diagonal().max()
        return cls(cholesky(M))

    def solve(self, force: Array) -> Array:
        """The step that a force asks for."""
        step = dpotrs(self.factor, force, lower=0)[0]
        return np.asarray(step - step.mean() if len(step) > 1 else step)


def signs_and_slack(problem: KernelMatrixAdapter) -> tuple[Array, Array]:
    """Signs of the rows of two classes, and the squares of their extra coordinates."""
    slack = np.zeros(problem.n_rows) if problem.slack is None else problem.slack
    return problem.rows.adjoint(np.ones(problem.n_rows)), slack


def _lowest(
    xi: Array, move: Array, s: Array, t: float, slope: float = 0.0, square: float = 0.0
) -> float:
    """Minimise ``slope t + square t^2/2 + sum max(0, xi - t move)^2 / (2 s)`` over t.

    Newton's method from ``t``, kept inside a bracket. A step that leaves the examples with
    slack as they are is the last: between such changes the function is quadratic.
    """
    scaled = move / s
    force, curvature = xi * scaled, move * scaled
    low, high, last = -np.inf, np.inf, np.empty(0, bool)
    for _ in range(_SEARCH_STEPS):
        active = xi > t * move
        if np.array_equal(active, last):
            break
        weight = active.astype(np.float64)
        second, first = square + float(curvature @ weight), float(force @ weight) - slope
        if second <= 0.0:
            break
        low, high = (t, high) if t * second < first else (low, t)
        step = first / second
        if abs(step - t) <= 1e-15 * abs(t):
            break
        inside = low < step < high
        t, last = (step, active) if inside else (0.5 * (low + high), last[:0])
    return t
