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
from marginsvm.dual_state import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter

_BLOCK = 2**20  # entries of X that are written out at a time
_LONG = 200  # features from which conjugate gradients save the first factorizations
_CHEAP_STEPS = 5
_PRODUCTS = 10
_FAR = 0.2  # a change of this fraction of the examples is better answered cheaply


@dataclass(frozen=True)
class Newton:
    """An iterate, and the Hessian of the examples that were active when it was last needed.

    Attributes
    ----------
    margins : ndarray of shape (n,)
        Of ``w``; slack and intercept left out.
    b : float
        Its best intercept.
    separator : ndarray
        Vector: the image ``w``, and the weights ``u`` (slacks over s).
    proof : ndarray
        Vector ``A^T u``.
    active : ndarray of bool, shape (n,)
    hessian : ndarray of shape (d + 1, d + 1)
        ``sum_active (x, 1)(x, 1)' / s``.
    candidates : tuple of Candidate
    cheap : int
        Steps by conjugate gradients that are left.
    settled : bool
        The last step changed nothing.
    """

    margins: Array
    b: float
    separator: Array
    proof: Array
    active: Array
    hessian: Array
    candidates: tuple[Candidate, ...]
    cheap: int = _CHEAP_STEPS
    settled: bool = False

    @classmethod
    def start(cls, data: KernelMatrixAdapter) -> Newton:
        """Begin at w = 0."""
        n, d = data.n_rows, int(data.width)
        return cls._at(data, np.zeros(d), np.zeros(n), np.zeros(n, bool), np.zeros((d + 1, d + 1)))

    @classmethod
    def _at(
        cls,
        data: KernelMatrixAdapter,
        w: Array,
        margins: Array,
        active: Array,
        hessian: Array,
        cheap: int = _CHEAP_STEPS,
    ) -> Newton:
        """Bounds at w, under its best intercept."""
        y, s = signs_and_slack(data)
        b = _best_intercept(margins, y, s) if data.rows.balanced else 0.0
        xi = np.maximum(1.0 - margins - b * y, 0.0)
        separator = np.concatenate([w, xi / s])
        worst = data.rows.worst(data.rows.group_min(margins + xi))
        proof = data.combine(xi / s, precise=True)
        seen = Candidate(separator, worst=worst), Candidate(proof, data.mass(proof))
        return cls(margins, b, separator, proof, active, hessian, seen, cheap)

    def advance(self, data: KernelMatrixAdapter, tol: float) -> Newton:
        """One step along Newton's direction, and the bounds of where it ends."""
        if self.settled:
            return self
        y, s = signs_and_slack(data)
        w, u = data.image(self.separator), data.coefficients(self.separator)
        active = u > 0
        direction, hessian, cheap = self._direction(data, data.image(self.proof) - w, active)
        move = _margins(data, direction)
        shift = _best_shift(move, active / s, y) if data.rows.balanced else 0.0
        slope, square = float(w @ direction), float(direction @ direction)
        t = _line_search(1.0 - self.margins - self.b * y, move + shift * y, s, slope, square)
        known = self.active if hessian is self.hessian else active
        new = self._at(data, w + t * direction, self.margins + t * move, known, hessian, cheap)
        return replace(new, settled=bool(np.array_equal(new.separator, self.separator)))

    def _direction(
        self, data: KernelMatrixAdapter, descent: Array, active: Array
    ) -> tuple[Array, Array, int]:
        """Newton's direction; by few conjugate gradients while the active set still moves."""
        changed = np.flatnonzero(active != self.active)
        if self.cheap and len(descent) > _LONG and len(changed) > _FAR * len(active):
            return _gradients(data, descent, active), self.hessian, self.cheap - 1
        _, s = signs_and_slack(data)
        H, sign = self.hessian, np.where(active, 1.0, -1.0)
        if len(changed) > 0.5 * np.count_nonzero(active):
            changed, H = np.flatnonzero(active), np.zeros_like(H)
        H = H + _outer(data, changed, sign[changed] / s[changed])
        d = len(descent)
        M = H[:d, :d] + np.eye(d)
        if data.rows.balanced and H[d, d] > 0:  # the best intercept follows w
            M -= np.multiply.outer(H[d, :d], H[d, :d] / H[d, d])
        return dposv(M.T, descent, lower=0, overwrite_a=1)[1], H, self.cheap


def signs_and_slack(data: KernelMatrixAdapter) -> tuple[Array, Array]:
    """Signs of the rows, and the squares of their extra coordinates (a hard margin: 0)."""
    slack = data.slack
    return data.rows.signed(np.ones(data.n_rows)), np.zeros(data.n_rows) if slack is None else slack


def _best_intercept(margins: Array, y: Array, s: Array) -> float:
    """Root in b of ``sum y max(0, 1 - margins - y b) / s``, which falls with b.

    Newton's method, kept inside a bracket; the function is piecewise linear.
    """
    at = y * (1.0 - margins)  # where example i becomes active
    low, high = float(at.min()), float(at.max())
    b = 0.5 * (low + high)
    for _ in range(100):
        xi = np.maximum(y * (at - b), 0.0) / s
        value, slope = float(y @ xi), float(np.sum((xi > 0) / s))
        if abs(value) <= 1e-15 * float(xi.sum()):
            break
        low, high = (b, high) if value > 0 else (low, b)
        step = b + value / slope if slope > 0 else low
        step = step if low < step < high else 0.5 * (low + high)
        if step == b:
            break
        b = step
    return b


def _best_shift(move: Array, weight: Array, y: Array) -> float:
    """Change of the intercept that goes with a change of the margins, to second order."""
    return -float(weight @ (y * move)) / max(float(weight.sum()), 1e-300)


def _line_search(xi: Array, move: Array, s: Array, slope: float, square: float) -> float:
    """Exact minimum over t of ``|w + t d|^2 + sum max(0, xi - t move)^2 / s``.

    Newton's method on the derivative, kept inside a bracket; ``slope`` is <w, d> and
    ``square`` is <d, d>.
    """
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(60):
        rest = xi - t * move
        force = np.where(rest > 0, move / s, 0.0)
        first, second = slope + t * square - float(rest @ force), square + float(move @ force)
        if abs(first) <= 1e-14 * (abs(slope) + square):
            break
        low, high = (t, high) if first < 0 else (low, t)
        step = t - first / second if second > 0 else np.inf
        if not low < step < high:
            step = 0.5 * (low + high) if np.isfinite(high) else 2.0 * t
        if abs(step - t) <= 1e-15 * t:
            break
        t = step
    return t


def _gradients(data: KernelMatrixAdapter, descent: Array, active: Array) -> Array:
    """Some conjugate gradients for ``(I + A' diag(active / s) A) x = descent``."""
    y, s = signs_and_slack(data)
    weight = active / s
    x, r = np.zeros_like(descent), descent
    p, rr = r, float(r @ r)
    stop = 1e-2 * rr
    for _ in range(_PRODUCTS):
        c = _margins(data, p)
        if data.rows.balanced:
            c = c + _best_shift(c, weight, y) * y
        Hp = p + data.image(data.combine(weight * c, precise=True))
        step = rr / float(p @ Hp)
        x = x + step * p
        r = r - step * Hp
        rr, old = float(r @ r), rr
        if rr <= stop:
            break
        p = r + (rr / old) * p
    return x


def _margins(data: KernelMatrixAdapter, w: Array) -> Array:
    """Margins of an image, its slack coordinates being 0."""
    return data.margins(np.concatenate([w, np.zeros(data.n_rows)]), precise=True)


def _outer(data: KernelMatrixAdapter, examples: Array, weight: Array) -> Array:
    """``sum weight (x, 1)(x, 1)'`` over these examples, a block at a time."""
    d = int(data.width)
    H = np.zeros((d + 1, d + 1))
    size = max(1, _BLOCK // (d + 1))
    for i in range(0, len(examples), size):
        for sign in (1.0, -1.0):  # x'x is one product of half the price
            part = slice(i, i + size)
            chosen = np.flatnonzero(sign * weight[part] > 0) + i
            if len(chosen):
                root = np.sqrt(sign * weight[chosen])
                x = data.examples(examples[chosen])
                x *= root[:, None]
                H[d, :d] += sign * (root @ x)
                H[:d, :d] += sign * (x.T @ x)
    H[:d, d], H[d, d] = H[d, :d], weight.sum()
    return H
