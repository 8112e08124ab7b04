"""Rounds for more than two classes: an example's weights against all other classes at a time.

The same working sets, columns and exchange as for two classes, see
:mod:`marginsvm.algorithms.exact.climb`. Steps are those of
:mod:`marginsvm.algorithms.compiled.classes`: they leave the classes out of balance, which the
intercepts, as multipliers, mend little by little.
"""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.climb import STEPS_AN_EXAMPLE, Climb, Dual
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.rows import make_rows

# An excess of a class moves its intercept by this share of the squares about the mean: little
# beside the steps of examples, which a higher price makes short. And an excess of this share of all
# caps moves it by 1 at least, as the width of margins: where C is small, nothing else would.
_PRICE, _SHARE_OF_CAPS = 0.05, 0.03
_ROOT = np.sqrt(0.5)  # a row is an example in its own class, and minus it in another, times this


class ClimbOfClasses(Climb):
    """The rounds of one call."""

    patience, aim = 12, 0.3

    @classmethod
    def start(cls, dual: Dual, work: Array) -> Climb:
        n, k = len(dual.y), int(dual.y.max()) + 1
        return cls(dual, np.zeros((n, k)), np.zeros((k, n)), work)

    @property
    def scores(self) -> Array:
        return (self.f + self._intercepts[:, None]).T

    @property
    def _intercepts(self) -> Array:
        return np.broadcast_to(self.b, len(self.f))

    def _coefficients(self, examples: Array, u: Array) -> Array:
        """Of examples in each class, from weights on their rows."""
        V = -_ROOT * u
        V[np.arange(len(u)), self.y[examples]] = _ROOT * u.sum(axis=1)
        return V

    def _excess(self) -> Array:
        used = np.flatnonzero(self.u.any(axis=1))
        return self._coefficients(used, self.u[used]).sum(axis=0)

    def _ascended(self, K: Array) -> Array:
        from marginsvm.algorithms.compiled.classes import ascend_classes

        work, u, b = self.work, self.u[self.work], self._intercepts.copy()
        mean, price = self._about_the_mean(K)
        steps, _ = ascend_classes(
            K, mean, self.y[work], self.caps[work], self.slack[work], price,
            self.precision, STEPS_AN_EXAMPLE * len(work), u, self.f.take(work, axis=1), b,
            self._excess(),
        )  # fmt: skip
        self.b = b
        self.read += 6.0 * steps * len(work)
        return u

    def _about_the_mean(self, K: Array) -> tuple[Array, float]:
        """Means of the columns, and the price of half the squared excess of a class."""
        if not self.dual.balanced:
            return np.zeros(len(K)), 0.0
        mean, squares = K.mean(axis=0, dtype=np.float64), float(np.diagonal(K).mean())
        spread = max(squares - float(mean.mean()), float(np.finfo(K.dtype).eps) * squares)
        spread += float(self.slack[self.work].mean())
        return mean, _PRICE * spread + 1.0 / (_SHARE_OF_CAPS * float(self.caps[self.work].sum()))

    def add(self, examples: Array, change: Array) -> None:
        for v, f in zip(self._coefficients(examples, change).T, self.f, strict=True):
            moved = np.flatnonzero(v)
            self.add_products(examples[moved], v[moved], f)

    def _best_intercepts(self) -> Array:
        """Those of the working set; under the best of all, outside nothing may look short."""
        work = self.work
        rows = make_rows(self.y[work], len(self.f), balanced=True)
        margins = rows.margins(np.ascontiguousarray(self.f[:, work].T))
        return Slack(self.slack[work][:, None]).best_intercept(rows, margins)

    def _measure(self) -> None:
        everyone, u = np.arange(len(self.u)), self.u
        if self._soft and self.dual.balanced:
            self.b = self._best_intercepts()
        own, F = (self.y, everyone), self.f + self._intercepts[:, None]
        M = _ROOT * (F[own] - F)
        M[own] = np.inf
        self.margins, self.mass = M.T, u.sum(axis=1)
        short = 1.0 - self.margins - self.slack[:, None] * u
        self.missing = short.max(axis=1)
        wrong = np.where(self.mass < self.caps, self.missing, 0.0)
        self.wrong = np.maximum(wrong, np.where(u > 0.0, -short, 0.0).max(axis=1))
        squared = float(np.vdot(self._coefficients(everyone, u).T, self.f))
        less = 0.5 * float(self.slack @ np.square(u).sum(axis=1))
        self.price_of_excess = float(np.abs(self._intercepts * self._excess()).sum())
        self._compare(squared, less + self.price_of_excess)
