"""The intercepts of many classes at which capped slack is least: an exact search in k unknowns.

Slack is counted once for each example, ``xi_i = max(0, max_j (edge - m_ij))``, and costs ``c_i``
times its size. Its sum is convex and piecewise linear in the class offsets. The proximal point
method for its dual, whose unknowns are shares p of the caps with ``p >= 0, sum_j p_ij <= 1``, ends
at the minimiser after finitely many steps; each step is a smooth problem in as many unknowns as
there are classes, solved by Newton's method.

References
----------
R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research 1976.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.intercepts import least_of_convex

# Steps of the proximal point method, and of Newton's method in each, at most: they are reached by
# degenerate data only, and any offsets make a valid bound.
_PROXIMAL_STEPS, _NEWTON_STEPS = 60, 20
# Factor by which the smoothing (in units of margins) falls where a smooth problem took few steps.
_SHARPER, _FEW_STEPS = 0.1, 4
# Slope of a smooth problem, relative to the sum of the caps, that is rounding; and gap of the sum
# of the slack, relative to it and to the spread of the margins, at which the search ends.
_FLAT_SLACK, _EXACT = 1e-13, 1e-12
# Examples, about, that a first guess is made from.
_GUESS_EXAMPLES = 2000
# Examples are looked at whose shares may change if offsets move this many times further than in
# the last proximal step.
_WIDER_OFFSETS = 8.0


def best_capped_offsets(
    margins: Array, codes: Array, caps: Array, edge: float | None
) -> tuple[Array, float]:
    """Class offsets of least capped slack, and the edge below which an example has slack.

    Parameters
    ----------
    margins : ndarray of shape (n, k)
        At offsets 0; infinite for the own class of an example.
    codes : ndarray of int, shape (n,)
    caps : ndarray of shape (n,)
        What a unit of slack costs, for each example.
    edge : float or None
        Margin from which on there is no slack. None: the one that maximises ``edge - slack``, for
        costs that sum to 1 or more.

    Returns
    -------
    offsets : ndarray of shape (k,)
        Their mean is 0.
    edge : float
    """
    rows = margins[np.isfinite(margins)]
    first = float(np.median(margins.min(axis=1))) if edge is None else edge
    x = np.append(np.zeros(margins.shape[1]), first)
    spread = 2.0 * float(np.abs(rows - first).mean()) or 1.0
    smoothing, step = spread, len(margins) // _GUESS_EXAMPLES
    if step > 1:  # a sample says nearly where the offsets are
        few = slice(None, None, step)
        x = np.append(*best_capped_offsets(margins[few], codes[few], step * caps[few], edge))
        smoothing *= _SHARPER
    x = _least(CappedSlack.of(margins, codes, caps, free_edge=edge is None), x, smoothing, spread)
    return x[:-1] - x[:-1].mean(), float(x[-1])


def _least(every: CappedSlack, x: Array, smoothing: float, spread: float) -> Array:
    """Offsets and edge of least slack, by the proximal point method from a first guess."""
    shares, reach = np.zeros(every.margins.shape), np.inf
    best, least = x, every.slack(x)
    for _ in range(_PROXIMAL_STEPS):
        few, kept = every.movable(x, shares, smoothing, reach)
        new, steps = few.smooth_minimum(x, shares[kept], smoothing, spread)
        moved = float(np.abs(new - x).max())
        if moved > reach:  # an example that was left out might have had a part in it
            reach = np.inf
            continue
        shares = on_capped_simplex(shares + every.missing(new) / smoothing)
        x, reach, now = new, max(_WIDER_OFFSETS * moved, _FLAT_SLACK * spread), every.slack(new)
        if now < least:
            best, least = x, now
        enough = _EXACT * max(abs(now), float(every.caps.sum()) * spread)
        if steps < _NEWTON_STEPS and every.gap(x, shares) <= enough:
            break
        smoothing *= _SHARPER if steps <= _FEW_STEPS else 1.0
    return best


@dataclass(frozen=True)
class CappedSlack:
    """The slack of some examples, times their caps, as a function of ``x = (offsets, edge)``.

    Attributes
    ----------
    margins : ndarray of shape (n, k)
    own : ndarray of float, shape (n, k)
        1 for the own class of each example, 0 for the others.
    caps : ndarray of shape (n, 1)
    free_edge : bool
        Whether the edge is an unknown.
    pull : ndarray of shape (k + 1,)
        Slope of what is left out: examples whose shares stay as they are.
    """

    margins: Array
    own: Array
    caps: Array
    free_edge: bool
    pull: Array

    @classmethod
    def of(cls, margins: Array, codes: Array, caps: Array, *, free_edge: bool) -> CappedSlack:
        """All examples."""
        k = margins.shape[1]
        own = (codes[:, None] == np.arange(k)).astype(float)
        pull = np.append(np.zeros(k), -1.0 if free_edge else 0.0)
        return cls(margins, own, caps[:, None], free_edge, pull)

    @property
    def lowest(self) -> Array:
        """The smallest margin of each example at offsets 0."""
        return np.asarray(self.margins.min(axis=1))

    def missing(self, x: Array) -> Array:
        """What each row lacks of the edge; minus infinity for the own class."""
        beta, edge = x[:-1], x[-1]
        return np.asarray(edge + beta - self.margins - self.own @ beta[:, None])

    def slack(self, x: Array) -> float:
        """The sum of the slack; less the edge, where that is an unknown."""
        worst = np.maximum(self.missing(x).max(axis=1), 0.0)
        return float(self.caps[:, 0] @ worst + self.pull[-1] * x[-1])

    def gap(self, x: Array, shares: Array) -> float:
        """How far the slack is above what these shares prove, which balance."""
        missing = self.missing(x)
        proved = (shares * np.where(shares > 0.0, missing, 0.0)).sum(axis=1)
        return float(self.caps[:, 0] @ (np.maximum(missing.max(axis=1), 0.0) - proved))

    def movable(
        self, x: Array, shares: Array, smoothing: float, reach: float
    ) -> tuple[CappedSlack, Array]:
        """The examples whose shares may change if x changes by ``reach``, and where they are."""
        z = shares + self.missing(x) / smoothing
        z.sort(axis=1)
        far = 2.0 * reach / smoothing
        alone = z[:, -1] - 1.0 > np.maximum(z[:, -2], 0.0) + far
        kept = np.flatnonzero(~(alone | (z[:, -1] < -far)))
        rest = np.flatnonzero(alone)
        p = on_capped_simplex(shares[rest] + self.missing(x)[rest] / smoothing)
        pull = self.pull + _slope(self.caps[rest] * p, self.own[rest], self.free_edge)
        few = CappedSlack(self.margins[kept], self.own[kept], self.caps[kept], self.free_edge, pull)
        return few, kept

    def smooth_minimum(
        self,
        x: Array,
        before: Array | float,
        smoothing: Array | float,
        spread: float,
        flat: float | None = None,
    ) -> tuple[Array, int]:
        """Minimise the sum with its dual held near known shares.

        Parameters
        ----------
        x : ndarray of shape (k + 1,)
            First guess.
        before : ndarray of shape (n, k), or float
            The shares.
        smoothing : ndarray of shape (n, 1), or float
            By how much a row must lack more for the whole cap as its weight.
        spread : float
            Typical size of a change of x.
        flat : float, default=None
            Slope that is rounding.

        Returns
        -------
        x : ndarray of shape (k + 1,)
        steps : int
            Newton's.
        """
        flat = _FLAT_SLACK * float(self.caps.sum()) if flat is None else flat

        def at(x: Array) -> tuple[Array, Array]:
            p = on_capped_simplex(before + self.missing(x) / smoothing)
            return self.pull + _slope(self.caps * p, self.own, self.free_edge), p

        rate = self.caps / smoothing
        x, _, steps = least_of_convex(
            at, lambda p: self._curvature(p, rate), x, spread, flat, _NEWTON_STEPS
        )
        return x, steps

    def _curvature(self, p: Array, rate: Array) -> Array:
        """Second derivatives; an example at its cap only moves weight between its rows."""
        k, some = p.shape[1], np.flatnonzero(np.count_nonzero(p, axis=1))
        p, own, caps = p[some], self.own[some], rate[some]
        free = (p > 0.0).astype(float)
        count = free.sum(axis=1, keepdims=True)
        left = p.sum(axis=1, keepdims=True) < 1.0 - _FLAT_SLACK
        H, at_cap = np.zeros((k + 1, k + 1)), np.where(left, 0.0, np.sqrt(caps / count)) * free
        U = np.where(left, caps, 0.0) * free
        cross = U.T @ own
        H[:k, :k] = np.diag((caps * free).sum(axis=0)) - at_cap.T @ at_cap - cross - cross.T
        H[:k, :k] += np.diag((own * U.sum(axis=1, keepdims=True)).sum(axis=0))
        if self.free_edge:
            H[:k, k] = H[k, :k] = _slope(U, own, False)[:k]
            H[k, k] = U.sum()
        return H


def _slope(u: Array, own: Array, free_edge: bool) -> Array:
    """Derivatives of the slack's sum in the offsets and the edge, given the rows' weights."""
    of_example = u.sum(axis=1)
    return np.append(u.sum(axis=0) - of_example @ own, of_example.sum() if free_edge else 0.0)


def on_capped_simplex(z: Array) -> Array:
    """Project each line of an array on ``p >= 0, sum p <= 1`` (entries may be minus infinity)."""
    p = np.maximum(z, 0.0)
    over = np.flatnonzero(p.sum(axis=1) > 1.0)
    if len(over):
        top = z[over] - z[over].max(axis=1, keepdims=True)  # at most 0: nothing overflows
        sorted_z = -np.sort(-np.maximum(top, -2.0), axis=1)
        excess = np.cumsum(sorted_z, axis=1) - 1.0
        size = np.arange(1, z.shape[1] + 1)
        last = np.count_nonzero(sorted_z * size > excess, axis=1) - 1
        level = excess[np.arange(len(over)), last] / (last + 1)
        p[over] = np.maximum(top - level[:, None], 0.0)
    return p
