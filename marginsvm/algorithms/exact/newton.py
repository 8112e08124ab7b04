"""Soft margin with more examples than features: Newton's method in feature space.

``min |w|^2/2 + sum_i max(0, 1 - y_i (x_i w + b))^2 / (2 s_i)``, s the squares of the rows'
extra coordinates. Every iterate brings both bounds: with the slack it needs, w separates,
and the slacks over s are the data player's weights, balanced since b is the best one.

References
----------
S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large scale
linear SVMs. JMLR 2005.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dposv

from marginsvm._typing import Array
from marginsvm.algorithms.exact.working_set import WorkingSet
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import second_moments
from marginsvm.rows import Vector

# Features from which some conjugate gradients are quicker than the first factorization.
_LONG = 200
# Conjugate gradients in that first step at most, each of which takes two passes.
_PRODUCTS = 10
# Residual (squared, relative to that of the start) at which they are close enough.
_RESIDUAL = 1e-2
# Steps after which a working set is quicker, if it starts with no more than so many active rows:
# its Gram matrix then takes 72 MB.
_STEPS = 15
_MAX_ACTIVE = 3000
# Share of the active rows: if more have changed, their second moments are summed anew.
_CHANGED = 0.5
# Steps of a line search at most; a bracket that is halved so often is down to one number.
_SEARCH_STEPS = 60


@dataclass(frozen=True)
class Newton:
    """An iterate, and the Hessian of the examples that were active when it was last needed.

    Attributes
    ----------
    margins : ndarray of shape (n,)
        Of ``w``; slack and intercept left out.
    b : float
        Its best intercept.
    separator : Vector
        The image ``w``, and the weights ``u`` (slacks over s).
    proof : Vector
        ``A^T u``.
    active : ndarray of bool, shape (n,)
    hessian : ndarray of shape (d + 1, d + 1)
        ``sum_active (x, 1)(x, 1)' / s``.
    candidates : tuple of Candidate
    steps : int
        Taken so far.
    settled : bool
        The last step changed nothing.
    """

    margins: Array
    b: float
    separator: Vector
    proof: Vector
    active: Array
    hessian: Array
    candidates: tuple[Candidate, ...]
    steps: int = 0
    settled: bool = False

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Newton:
        """Begin at w = 0."""
        n, d = problem.n_rows, int(problem.width)
        nobody, nothing = np.zeros(n, bool), np.zeros((d + 1, d + 1))
        return cls._at(problem, np.zeros(d), np.zeros(n), 0.0, nobody, nothing)

    @classmethod
    def _at(
        cls,
        problem: KernelMatrixAdapter,
        w: Array,
        margins: Array,
        b: float,
        active: Array,
        hessian: Array,
    ) -> Newton:
        """Bounds at w, under its best intercept, which is near b."""
        y, s = signs_and_slack(problem)
        b = _lowest(1.0 - margins, y, s, b) if problem.rows.balanced else 0.0
        xi = np.maximum(1.0 - margins - b * y, 0.0)
        separator = Vector(w, xi / s)
        smallest = problem.rows.min_margin(problem.rows.group_min(margins + xi))
        proof = problem.combine(xi / s, precise=True)
        upper = Candidate(proof, proof.mass, precise=True)
        seen = Candidate(separator, min_margin=smallest), upper
        return cls(margins, b, separator, proof, active, hessian, seen)

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> Newton | WorkingSet:
        """One step along Newton's direction, and the bounds of where it ends.

        Next to a separator, where C is large, steps may stay short: the rows that are active
        by then are a working set's.
        """
        if self.settled:
            return self
        y, s = signs_and_slack(problem)
        w, u = self.separator.image, self.separator.coef
        active = u > 0
        if self.steps >= _STEPS and np.count_nonzero(active) <= _MAX_ACTIVE:
            ids = np.flatnonzero(active)
            work = WorkingSet.of(ids, u[ids]) if len(ids) else WorkingSet.start(problem)
            return work.advance(problem, tol)
        direction, hessian = self._direction(problem, self.proof.image - w, active)
        move = _margins(problem, direction)
        shift = _best_shift(move, active / s, y) if problem.rows.balanced else 0.0
        slope, square = float(w @ direction), float(direction @ direction)
        xi = 1.0 - self.margins - self.b * y
        t = _lowest(xi, move + shift * y, s, 1.0, slope, square)
        known = self.active if hessian is self.hessian else active
        w, margins, b = w + t * direction, self.margins + t * move, self.b + t * shift
        new = self._at(problem, w, margins, b, known, hessian)
        settled = (new.separator - self.separator).largest_entry() == 0.0
        return replace(new, steps=self.steps + 1, settled=settled)

    def _direction(
        self, problem: KernelMatrixAdapter, descent: Array, active: Array
    ) -> tuple[Array, Array]:
        """Newton's direction; at w = 0, where all are active, few conjugate gradients will do."""
        if len(descent) > _LONG and not self.margins.any():
            return _gradients(problem, descent, active), self.hessian
        changed = np.flatnonzero(active != self.active)
        _, s = signs_and_slack(problem)
        H, sign = self.hessian, np.where(active, 1.0, -1.0)
        if len(changed) > _CHANGED * np.count_nonzero(active):
            changed, H = np.flatnonzero(active), np.zeros_like(H)
        weight = np.zeros(len(active))
        weight[changed] = sign[changed] / s[changed]
        H = H + second_moments(problem, weight)
        d = len(descent)
        M = H[:d, :d] + np.eye(d)
        if problem.rows.balanced and H[d, d] > 0:  # the best intercept follows w
            M -= np.multiply.outer(H[d, :d], H[d, :d] / H[d, d])
        return dposv(M.T, descent, lower=0, overwrite_a=1)[1], H


def signs_and_slack(problem: KernelMatrixAdapter) -> tuple[Array, Array]:
    """Signs of the rows, and the squares of their extra coordinates (a hard margin: 0)."""
    slack = np.zeros(problem.n_rows) if problem.slack is None else problem.slack
    return problem.rows.adjoint(np.ones(problem.n_rows)), slack


def _best_shift(move: Array, weight: Array, y: Array) -> float:
    """Change of the intercept that goes with a change of the margins, to second order."""
    return -float(weight @ (y * move)) / max(float(weight.sum()), 1e-300)


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


def _gradients(problem: KernelMatrixAdapter, descent: Array, active: Array) -> Array:
    """Some conjugate gradients for ``(I + A' diag(active / s) A) x = descent``."""
    y, s = signs_and_slack(problem)
    weight = active / s
    x, r = np.zeros_like(descent), descent
    p, rr = r, float(r @ r)
    stop = _RESIDUAL * rr
    for _ in range(_PRODUCTS):
        if rr <= stop:
            break
        c = _margins(problem, p)
        if problem.rows.balanced:
            c = c + _best_shift(c, weight, y) * y
        Hp = p + problem.combine(weight * c, precise=True).image
        step = rr / float(p @ Hp)
        x = x + step * p
        r = r - step * Hp
        rr, old = float(r @ r), rr
        p = r + (rr / old) * p
    return x


def _margins(problem: KernelMatrixAdapter, w: Array) -> Array:
    """Margins of an image, its slack coordinates being 0."""
    return problem.margins(Vector(w, np.zeros(problem.n_rows)), precise=True)
