"""The quadratic program of every exact estimator, and its two values.

    primal   min over w, f      |w|^2/2 + g'f + sum_i cost_i(target_i - (A w + F f)_i)
             cost_i(r) = max over 0 <= a <= upper_i of a r - ridge_i a^2/2
    dual     max over alpha     target'alpha - |A'alpha|^2/2 - sum_i ridge_i alpha_i^2/2
             subject to 0 <= alpha <= upper, F'alpha = g

Stationarity is ``w = A'alpha``, ``F'alpha = g``. Weak duality holds for any (w, f) and any feasible
alpha, whatever computed them.

============================  ===========  ======  ==============  =============  =================
problem                       rows         target  ridge           upper          f; g
============================  ===========  ======  ==============  =============  =================
hinge                         y_i x_i      1       0               C m_i          b; 0
squared hinge                 y_i x_i      1       1/(2 C m_i)     inf            b; 0
hard margin                   y_i x_i      0       0               inf            b, rho; 0, -1
nu-SVC                        y_i x_i      0       0               m_i/(nu sum)   b, rho; 0, -1
one class                     x_i          0       0               m_i/(nu sum)   rho; -1
epsilon tube, s = 1 and -1    s x_i        s y - e 0; 1/(2 C m_i)  C m_i; inf     b; 0
hard tube                     s x_i        s y - e 0               inf            b; 0
nu tube                       s x_i        s y     0               C m_i          b, e; 0, C nu sum
Crammer-Singer                x_i(e_c-e_j) 1       0               sum_j <= C m_i b; 0
squared, k classes            x_i(e_c-e_j) 1       1/(C m_i)       inf            b; 0
============================  ===========  ======  ==============  =============  =================

Here ``m_i`` is the sample weight, ``sum`` the sum of these; examples of weight 0 are dropped first.
Hard margins, nu and one class have target 0 and a free level rho; with ``w`` of norm 1, rho is the
(mean of the) smallest margins. Otherwise the margin is ``1/sqrt(2 P)``.

**Examples.** The program asks its examples for products only, whether these have features
(``Design``) or a kernel (``Gram``), see :mod:`~marginsvm.problem.examples`. ``w`` has shape (k, d),
with a kernel (k, n); k is 1 but for several classes or outputs. Rows are :mod:`maps
<marginsvm.problem.row_maps>` of the k scores. Solvers that need features ask these for more:

=====================  =========================================================================
``rows(i)``            features of some examples; of CSR without the mean
``mean``               subtracted from each x by scores, combine and gram; or None
``second_moments(v)``  ``sum_i v_i (x_i, 1)(x_i, 1)'``, of shape (d + 1, d + 1)
=====================  =========================================================================

These, and ``scores_and_combination(w, V)``, both by one pass.

References
----------
R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang, C.-J. Lin. LIBLINEAR: a library for large linear
classification. JMLR, 2008 (appendices: the same duals by ``upper`` and ``diag``).

B. Schoelkopf, A. Smola, R. Williamson, P. Bartlett. New support vector algorithms. Neural
Computation, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import cast

import numpy as np

from marginsvm._threads import cached_property
from marginsvm._typing import Array, Values
from marginsvm.problem.design import Design
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.row_maps import ClassPairs, RowMap, SignedExamples

# Of a sum of upper bounds, that rounding may have put on the wrong side of a mass: less by a little
# for one quantile, and to either side for two.
JUST_BELOW = 1.0 - 1e-15
EITHER_SIDE = np.array([-1e-12, 1e-12])
NO_SUM = 1e-300  # instead of 0, as a divisor

ROWS_AT_ONCE = 2**17  # whose costs are computed at once: arrays of 1 MiB


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """One program; numbers may be float64 or Fractions (arrays of objects).

    Attributes
    ----------
    examples : Design or Gram
    rows : RowMap
        The rows of A, from examples and scores; alpha has its shape.
    target, ridge, upper : ndarray
        They broadcast against alpha; the upper bound of an entry that is no row is 0.
    cap : ndarray of shape (n,) or None
        Upper bounds of ``sum_j alpha_ij`` (several classes, one slack per example).
    intercept : bool
        Whether f begins with intercepts: 1, or k - 1 (that of the last class is 0).
    level : int
        Coefficient of the last entry of f in all rows; 0: there is none.
    total : float
        The last entry of g: the constraint ``level * sum(alpha) = total``.
    signs : ndarray of shape (d,) or None
        Signs that the entries of w must have; 0: any.
    p : float
        The primal has ``|w|_p``, the dual ``|A'alpha|_q``; all methods but ``primal`` and ``dual``
        assume p = 2.
    by_margins : bool
        Whether the gap is that of margins, and not of objectives.
    rounded : bool
        Whether targets are rounded sums, whose error proofs allow for.
    """

    examples: FloatExamples
    rows: RowMap
    target: Array
    ridge: Array
    upper: Array
    cap: Array | None = None
    intercept: bool = True
    level: int = 0
    total: Values = 0
    signs: Array | None = None
    p: float = 2.0
    by_margins: bool = True
    rounded: bool = False

    # Shapes.

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of alpha."""
        return self.rows.shape

    @property
    def k(self) -> int:
        """Number of scores of an example."""
        return self.rows.k

    @property
    def width(self) -> int:
        """Number of entries of a predictor, for one score."""
        return self.examples.n if self.examples.d is None else self.examples.d

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return isinstance(self.rows, ClassPairs)

    @property
    def sign(self) -> Array:
        """Sign of each row, where there are not several classes."""
        assert isinstance(self.rows, SignedExamples)
        return self.rows.sign

    @property
    def size(self) -> int:
        """Number of entries of alpha."""
        return prod(self.shape)

    @property
    def design(self) -> Design:
        """The examples, where these have features."""
        return cast("Design", self.examples)

    @property
    def n_intercepts(self) -> int:
        return self.rows.n_intercepts if self.intercept else 0

    @property
    def n_free(self) -> int:
        """Number of entries of f."""
        return self.n_intercepts + (self.level != 0)

    @property
    def g(self) -> Array:
        g = np.zeros(self.n_free)
        if self.level:
            g[-1] = self.total
        return g

    @cached_property
    def hard(self) -> bool:
        """Whether slack is not allowed: alpha has no upper bound and no ridge."""
        return (
            self.cap is None
            and not np.any(self.ridge)
            and bool(np.any(self.upper == np.inf))
        )

    @property
    def game(self) -> bool:
        """Whether it is the game form: target 0 and a free level."""
        return self.level < 0

    # Products with A and F.

    def offsets(self, f: Array) -> Array:
        """Intercept of each score."""
        b = np.zeros(self.k, dtype=f.dtype)
        b[: self.n_intercepts] = f[: self.n_intercepts]
        return b

    def matvec(self, w: Array, f: Array) -> Array:
        """``A w + F f``; entries without a row are arbitrary."""
        return self.values(self.examples.scores(w), f)

    def values(self, S: Array, f: Array) -> Array:
        """``A w + F f`` from the scores S of the examples without intercepts."""
        m = self.rows.values(S + self.offsets(f) if self.n_intercepts else S)
        return m + self.level * f[-1] if self.level else m

    def rmatvec(self, alpha: Array) -> Array:
        """``A'alpha``."""
        return self.examples.combine(self.rows.coefficients(alpha))

    def balance(self, alpha: Array) -> Array:
        """``F'alpha``."""
        found = self.rows.coefficients(alpha).sum(axis=0)[: self.n_intercepts]
        return np.append(found, self.level * alpha.sum()) if self.level else found

    def project(self, w: Array) -> Array:
        """The nearest vector that has the signs."""
        return w if self.signs is None else np.where(self.signs * w < 0, 0 * w, w)

    def gram(self, i: Array, j: Array) -> Array:
        """``A_i A_j'`` for rows given by their flat indices."""
        return self.rows.gram(self.examples, i, j)

    def of_f(self, ids: Array) -> Array:
        """Rows of F for given flat indices."""
        F = self.rows.of_scores(ids)[:, : self.n_intercepts]
        return np.column_stack([F, np.full(len(ids), self.level)]) if self.level else F

    @property
    def largest_target(self) -> Values:
        """The largest absolute value of a target."""
        return abs(self.target).max(initial=0)

    # The two values.

    def primal(self, w: Array, f: Array, S: Array | None = None) -> Values:
        """Value of the primal; infinite if a hard constraint or a sign is violated.

        S are the scores of w; computed by default.
        """
        if self.signs is not None and np.any(self.signs * w < 0):
            return np.inf
        m = self.matvec(w, f) if S is None else self.values(S, f)
        P = self._half_square(w, self.p) + self.cost(self.target - m)
        return P + self.total * f[-1] if self.level else P

    def _half_square(self, w: Array, p: float) -> Values:
        return (
            self.examples.inner(w, w) / 2 if p == 2.0 else LpNorm(p).length(w) ** 2 / 2
        )

    def cost(self, r: Array) -> Values:
        """``sum_i cost_i(r_i)``."""
        r = self.rows.fill(r.copy(), 0) if self.several else r
        if self.cap is not None:
            return (self.cap * r.max(axis=1)).sum()
        squared = np.any(self.ridge)
        prices = np.broadcast_to(self.ridge if squared else self.upper, r.shape)
        parts = []
        for i in range(0, len(r), ROWS_AT_ONCE):
            some = r[i : i + ROWS_AT_ONCE]
            short = ~(some <= 0)  # NaN counts as well
            some = some[short]
            price = prices[i : i + ROWS_AT_ONCE][short]
            parts.append(
                (some * (some / (2 * price)) if squared else price * some).sum()
            )
        return np.sum(parts)

    def dual(self, alpha: Array, w: Array | None = None) -> Values:
        """Value of the dual, a lower bound if alpha is feasible; w is ``A'alpha`` if known."""
        w = self.project(self.rmatvec(alpha) if w is None else w)
        q = self.p / (self.p - 1)
        value = (self.target * alpha).sum() - self._half_square(w, q)
        return (
            value - (self.ridge * alpha * alpha).sum() / 2
            if np.any(self.ridge)
            else value
        )

    def gap(self, P: float, D: float) -> float:
        """Relative gap of the two values, on margins or objectives; 1 without bounds."""
        if self.game:  # margins are sqrt(-2 P) and sqrt(-2 D)
            P, D = -D, -P
        of_norms = gap_of_norms(P, D)
        return of_norms if self.by_margins else of_norms * (2.0 - of_norms)

    # Feasible points near others, in floats.

    def best_f(self, S: Array, f: Array) -> Array:
        """The f with the least primal value for scores S of the examples.

        Several classes: the intercepts are those of ``f``, and only the level is optimised.

        Parameters
        ----------
        S : ndarray of shape (n, k)
            Scores without intercepts.
        f : ndarray of shape (n_free,)
        """
        mass = self.level * self.total * JUST_BELOW
        if self.several:
            if not self.level:
                return f
            r = self.rows.fill(
                self.target - self.rows.values(S + self.offsets(f)), -np.inf
            )
            upper = np.full(len(r), np.inf) if self.cap is None else self.cap
            return np.append(f[:-1], self.level * quantile(r.max(axis=1), upper, mass))
        r = self.target - self.rows.values(S)
        sign = self.sign
        if not self.intercept:
            return (
                np.array([self.level * quantile(r, self.upper, mass)])
                if self.level
                else f
            )
        up = sign > 0
        if self.level or self.hard:
            high, low = (quantile(r[i], self.upper[i], 0.5 * mass) for i in (up, ~up))
            b = 0.5 * (high - low)
            return np.array([b, 0.5 * self.level * (high + low)] if self.level else [b])
        t = sign * r
        if np.any(self.ridge):
            return np.array([_root(t, up, 1.0 / self.ridge)])
        # the middle of the interval of these quantiles
        near = (1.0 + EITHER_SIDE) * self.upper[up].sum()
        return np.array([-0.5 * quantile(-t, self.upper, near).sum()])

    def feasible(self, alpha: Array) -> Array:
        """A point near alpha with ``0 <= alpha <= upper`` and ``F'alpha = g``, up to rounding.

        The sign with the larger sum is scaled down; if sum(alpha) is given, both are scaled to half
        of it. Several classes: alpha is multiplied by ``1 + F x``, and by one common factor.
        """
        alpha = np.minimum(np.maximum(alpha, 0.0), self.upper)
        mass = self.level * self.total
        if not self.level or self.several:
            return self.rows.balanced(alpha, self.intercept, mass, self.cap)
        if not self.intercept:
            return _with_sum(alpha, self.upper, mass)
        up = self.sign > 0
        for side in (up, ~up):
            alpha[side] = _with_sum(alpha[side], self.upper[side], 0.5 * mass)
        return alpha

    def restrict(self, i: Array) -> QuadraticProgram:
        """The program with some rows only (of several classes: of some examples)."""
        few, rows = self.rows.take(i)
        some = {
            name: value if np.ndim(value) == 0 or len(value) == 1 else value[i]
            for name in ("target", "ridge", "upper", "cap")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, examples=self.examples.take(few), rows=rows, **some)


def gap_of_norms(P: float, D: float) -> float:
    """Relative gap of the norms ``sqrt(2 P)`` and ``sqrt(2 D)``; 1 without bounds."""
    if P <= 0.0:
        return 0.0 if D >= P else 1.0
    return 1.0 - sqrt(min(max(D / P, 0.0), 1.0))


def quantile(r: Array, upper: Array, mass: Values) -> Values:
    """The least a for which the upper bounds of rows with ``r > a`` sum to at most ``mass``.

    An array of masses has one each.
    """
    if upper[0] == np.inf:  # then all are infinite
        return r.max()
    order = np.argsort(-r)  # the order of equal values does not matter
    at = np.searchsorted(np.cumsum(upper[order]), mass)
    return r[order[np.minimum(at, len(r) - 1)]]


def multiple_of_hinge(square: float, v: Array, upper: Array) -> float:
    """The t with the least ``t^2 square / 2 + sum_i upper_i max(0, 1 - t v_i)``, if positive.

    Its slope jumps where ``t v = 1``.
    """
    gain = upper * v
    some = np.flatnonzero(v > 0.0)
    order = some[np.argsort(-v[some])]
    below = float(gain[v <= 0.0].sum())
    pull = below + np.append(np.cumsum(gain[order][::-1])[::-1], 0.0)
    # jumps after which the slope is still negative
    passed = square <= pull[1:] * v[order]
    i = int(np.count_nonzero(np.logical_and.accumulate(passed)))
    with np.errstate(over="ignore"):
        t = float(pull[i]) / square if square > 0.0 else np.inf
        return min(t, 1.0 / float(v[order[i]])) if i < len(order) else t


def _root(t: Array, up: Array, weight: Array) -> float:
    """The b with the least sum of ``weight (t - b)^2`` over t > b (up) and t < b (others)."""
    v = np.where(up, weight, -weight)
    order = np.argsort(t, kind="stable")
    # slope between t[i] and t[i + 1]: b A - B over the terms that are active there
    A = v[up].sum() - np.cumsum(v[order])
    B = (v * t)[up].sum() - np.cumsum((v * t)[order])
    t = t[order]
    i = int(np.searchsorted(np.append(A[:-1] * t[1:] - B[:-1] >= 0.0, True), True))
    return float(B[i] / A[i]) if A[i] > 0.0 else float(t[i])


def _with_sum(alpha: Array, upper: Array, total: float) -> Array:
    """A point near alpha with ``alpha <= upper`` and, where possible, a given sum."""
    found = float(alpha.sum())
    if found >= total or (found > 0.0 and np.isinf(upper).all()):
        return alpha * (total / found)
    if np.isinf(upper).any():
        upper = np.minimum(upper, total)
    room = np.where(alpha > 0.0, upper - alpha, 0.0)
    if room.sum() < total - found:
        room = upper - alpha
    return np.minimum(
        alpha + room * min(1.0, (total - found) / max(room.sum(), NO_SUM)), upper
    )
