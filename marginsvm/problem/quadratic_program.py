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

References
----------
R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang, C.-J. Lin. LIBLINEAR: a library for large linear
classification. JMLR, 2008 (appendices: the same duals by ``upper`` and ``diag``).

B. Schoelkopf, A. Smola, R. Williamson, P. Bartlett. New support vector algorithms. Neural
Computation, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import isfinite, prod, sqrt
from typing import Any, cast

import numpy as np

from marginsvm._rounding import LpNorm
from marginsvm._threads import cached_property
from marginsvm._typing import Array
from marginsvm.problem.design import Design
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.row_maps import (
    ClassPairs,
    IntervalEnds,
    RowMap,
    SignedExamples,
    signed,
)

LINEAR_LOSSES = ("hinge", "epsilon_insensitive")  # the other losses are squared


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
    total: Any = 0
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
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return isinstance(self.rows, ClassPairs)

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

    # The two values.

    def primal(self, w: Array, f: Array, S: Array | None = None) -> Any:
        """Value of the primal; infinite if a hard constraint or a sign is violated.

        S are the scores of w; computed by default.
        """
        if self.signs is not None and np.any(self.signs * w < 0):
            return np.inf
        m = self.matvec(w, f) if S is None else self.values(S, f)
        P = self._half_square(w, self.p) + self.cost(self.target - m)
        return P + self.total * f[-1] if self.level else P

    def _half_square(self, w: Array, p: float) -> Any:
        return (
            self.examples.inner(w, w) / 2 if p == 2.0 else LpNorm(p).length(w) ** 2 / 2
        )

    def cost(self, r: Array) -> Any:
        """``sum_i cost_i(r_i)``."""
        r = self.rows.fill(r.copy(), 0) if self.several else r
        if self.cap is not None:
            return (self.cap * r.max(axis=1)).sum()
        short = ~(r <= 0)  # NaN as well
        r, squared = r[short], np.any(self.ridge)
        price = np.broadcast_to(self.ridge if squared else self.upper, short.shape)[
            short
        ]
        return (r * (r / (2 * price)) if squared else price * r).sum()

    def dual(self, alpha: Array, w: Array | None = None) -> Any:
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
        if P <= 0.0:
            return 0.0 if D >= P else 1.0
        ratio = min(max(D / P, 0.0), 1.0)
        return float(1.0 - sqrt(ratio) if self.by_margins else 1.0 - ratio)

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
        mass = self.level * self.total
        if self.several:
            if not self.level:
                return f
            r = self.rows.fill(
                self.target - self.rows.values(S + self.offsets(f)), -np.inf
            )
            upper = np.full(len(r), np.inf) if self.cap is None else self.cap
            return np.append(f[:-1], self.level * _quantile(r.max(axis=1), upper, mass))
        r, sign = self.target - self.rows.values(S), signed(self.rows).sign
        if not self.intercept:
            return (
                np.array([self.level * _quantile(r, self.upper, mass)])
                if self.level
                else f
            )
        up = sign > 0
        if self.level or self.hard:
            high, low = (_quantile(r[i], self.upper[i], 0.5 * mass) for i in (up, ~up))
            b = 0.5 * (high - low)
            return np.array([b, 0.5 * self.level * (high + low)] if self.level else [b])
        t = sign * r
        if np.any(self.ridge):
            return np.array([_root(t, up, 1.0 / self.ridge)])
        return np.array([-_middle(-t, self.upper, float(self.upper[up].sum()))])

    def feasible(self, alpha: Array) -> Array:
        """A point near alpha with ``0 <= alpha <= upper`` and ``F'alpha = g``, up to rounding.

        The sign with the larger sum is scaled down; if sum(alpha) is given, both are scaled to half
        of it. Several classes: alpha is multiplied by ``1 + F x``, and by one common factor.
        """
        alpha = np.minimum(np.maximum(alpha, 0.0), self.upper)
        mass = self.level * self.total
        if not self.level or self.several:
            return self.balanced(alpha, mass, self.cap)
        if not self.intercept:
            return _with_sum(alpha, self.upper, mass)
        up = signed(self.rows).sign > 0
        for side in (up, ~up):
            alpha[side] = _with_sum(alpha[side], self.upper[side], 0.5 * mass)
        return alpha

    def balanced(
        self, alpha: Array, mass: float = 0.0, cap: Array | None = None
    ) -> Array:
        """A point near alpha, which is not negative, with ``F'alpha = 0`` for the intercepts.

        Several classes: also with a sum of ``mass`` (0: any), and below the caps.
        """
        return self.rows.balanced(alpha, self.intercept, mass, cap)

    def restrict(self, i: Array) -> QuadraticProgram:
        """The program with some rows only (of several classes: of some examples)."""
        few, rows = self.rows.take(i)
        some = {
            name: value if np.ndim(value) == 0 or len(value) == 1 else value[i]
            for name in ("target", "ridge", "upper", "cap")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, examples=self.examples.take(few), rows=rows, **some)


def _quantile(r: Array, upper: Array, mass: float) -> float:
    """The least a for which the upper bounds of rows with ``r > a`` sum to at most ``mass``."""
    if upper[0] == np.inf:  # so are all
        return float(r.max())
    order = np.argsort(-r, kind="stable")
    at = int(np.searchsorted(np.cumsum(upper[order]), mass * (1.0 - 1e-15)))
    return float(r[order[min(at, len(r) - 1)]])


def _middle(r: Array, upper: Array, mass: float) -> float:
    """The middle of the interval of these quantiles."""
    order = np.argsort(-r, kind="stable")
    passed = np.cumsum(upper[order])
    first = int(np.searchsorted(passed, mass * (1.0 - 1e-12)))
    last = int(np.searchsorted(passed, mass * (1.0 + 1e-12)))
    first, last = (min(at, len(r) - 1) for at in (first, last))
    return 0.5 * float(r[order[first]] + r[order[last]])


def _root(t: Array, up: Array, weight: Array) -> float:
    """The b with the least sum of ``weight (t - b)^2`` over t > b (up) and t < b (others)."""
    order = np.argsort(t, kind="stable")
    t, v = t[order], np.where(up, weight, -weight)[order]
    below, total = np.maximum(-v, 0.0), np.maximum(v, 0.0)
    # slope between t[i] and t[i + 1]: b A - B over the terms that are active there
    A = np.cumsum(below) + total.sum() - np.cumsum(total)
    B = np.cumsum(below * t) + (total * t).sum() - np.cumsum(total * t)
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
        alpha + room * min(1.0, (total - found) / max(room.sum(), 1e-300)), upper
    )


def classification(
    examples: FloatExamples,
    codes: Array,
    k: int,
    *,
    C: float = np.inf,
    loss: str = "squared_hinge",
    nu: float | None = None,
    weight: Array | None = None,
    intercept: bool = True,
    signs: Array | None = None,
    p: float = 2.0,
) -> QuadraticProgram:
    """The program of classification.

    Parameters
    ----------
    examples : Design or Gram
    codes : ndarray of shape (n,)
        Classes, in ``0..k-1``.
    k : int
        Number of classes.
    C : float
        Cost of slack in the user's units (dimensionless); infinite: a hard margin.
    loss : {"hinge", "squared_hinge"}
    nu : float or None
        nu of nu-SVC (maximise the mean of the smallest margins), in place of C.
    weight : ndarray of shape (n,) or None
        Sample weights, all positive.
    intercept : bool
    signs : ndarray of shape (d,) or None
        Signs that coefficients must have (two classes).
    p : float
        Of the norm of predictors.
    """
    n, several = examples.n, k > 2
    m = np.ones(n) if weight is None else weight
    zero, free = 0 * m, np.full(n, np.inf)
    soft = isfinite(C)
    game = nu is not None or not soft
    ridge, upper, cap = zero, free, None
    if nu is not None:
        size = nu * m.sum()
        if intercept:  # no class has more than half of the sum of alpha
            size = min([size, *(2 * m[codes != c].sum() for c in range(k))])
        upper = m / size
    elif soft:
        c = C * m * examples.radius * examples.radius
        ridge, upper = (
            (zero, c) if loss == "hinge" else (1 / (c if several else 2 * c), free)
        )
    target = zero if game else zero + 1
    rows: RowMap = SignedExamples(zero + np.where(codes == 1, 1, -1))
    if several:
        rows, cap = ClassPairs(codes, k), None if upper is free else upper
        upper = rows.fill(np.full((n, k), np.inf), 0.0)
        target, ridge = target[:, None], ridge[:, None]
    return QuadraticProgram(
        examples,
        rows,
        target=target,
        ridge=ridge,
        upper=upper,
        cap=cap,
        intercept=intercept,
        level=-1 if game else 0,
        total=-1 if game else 0,
        signs=signs,
        p=p,
    )


def regression(
    examples: FloatExamples,
    low: Array,
    high: Array,
    *,
    C: float = np.inf,
    loss: str = "epsilon_insensitive",
    nu: float | None = None,
    weight: Array | None = None,
    intercept: bool = True,
    signs: Array | None = None,
    p: float = 2.0,
    rounded: bool = True,
) -> QuadraticProgram:
    """The program of regression: scores are to lie in intervals, one row for each end.

    Parameters
    ----------
    examples : Design or Gram
    low, high : ndarray of shape (n,) or (n, k)
        Ends of the intervals: ``y - epsilon`` and ``y + epsilon``; an infinite end has no row. With
        nu, both are y. Several outputs have one norm, without free intercepts and without nu.
    C : float
        Cost of slack in the user's units; infinite: a hard tube.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
    nu : float or None
        nu of nu-SVR: epsilon is an unknown, with ``C nu sum(weight) epsilon`` in the objective.
    weight : ndarray of shape (n,) or None
    intercept : bool
    signs : ndarray of shape (d,) or None
    p : float
        Of the norm of predictors.
    rounded : bool
        Whether some ends are rounded.

    Raises
    ------
    ValueError
        If several outputs have free intercepts, or nu.
    """
    if low.ndim > 1 and (intercept or nu is not None):
        raise ValueError(
            f"no solver takes {low.shape[1]} outputs with one norm and free intercepts or nu: "
            "make a program of each output"
        )
    m = np.ones(examples.n) if weight is None else weight
    below, above = np.nonzero(low > -np.inf), np.nonzero(high < np.inf)
    example, *found = (np.concatenate(pair) for pair in zip(below, above, strict=True))
    output, k = (found[0], low.shape[1]) if found else (0 * example, 1)
    m_rows = m[example]
    zero, free, soft = 0 * m_rows, np.full(len(example), np.inf), isfinite(C)
    c = C * m_rows * examples.radius * examples.radius if soft else free
    squared = loss.startswith("squared")
    sign = zero + np.repeat([1, -1], [len(below[0]), len(above[0])])
    return QuadraticProgram(
        examples,
        IntervalEnds(sign, example, output, examples.n, k),
        target=np.concatenate([low[below], -high[above]]),
        ridge=1 / (2 * c) if soft and squared else zero,
        upper=c if soft and not squared else free,
        intercept=intercept,
        level=0 if nu is None else 1,
        total=0 if nu is None else C * nu * m.sum() * examples.radius * examples.radius,
        signs=signs,
        p=p,
        by_margins=False,
        rounded=rounded,
    )


def one_class(
    examples: FloatExamples, nu: float, weight: Array | None = None
) -> QuadraticProgram:
    """The program of examples without labels: the hull of the examples, held off the origin.

    Parameters
    ----------
    examples : Design or Gram
    nu : float
        nu of the one-class SVM (mean of the smallest scores); 0: the smallest score.
    weight : ndarray of shape (n,) or None
    """
    m = np.ones(examples.n) if weight is None else weight
    zero = 0 * m
    return QuadraticProgram(
        examples,
        SignedExamples(zero + 1),
        target=zero,
        ridge=zero,
        upper=m / (nu * m.sum()) if nu > 0 else np.full(len(m), np.inf),
        intercept=False,
        level=-1,
        total=-1,
    )


@dataclass(frozen=True)
class ProblemSpec:
    """Parameters of a problem and its tolerances; few estimators have all of them.

    Attributes
    ----------
    C : float
        Infinite: a hard margin.
    loss : str
    nu : float or None
        Share of the examples whose mean margin is maximised.
    p : float or str
        Norm of predictors.
    kernel : str or callable
    gamma, degree, coef0, kernel_params
        Parameters of the kernel.
    class_weight : dict, "balanced" or None
    epsilon : float
        Half the width of a tube.
    normalize, fit_intercept : bool
    intercept_scaling : float or None
        Value of the constant feature that makes the intercept a coefficient like any other.
    monotonic_cst : array-like, dict or None
        Signs that coefficients must have.
    tol : float
        Gap at which a fit ends (dimensionless).
    max_iter : int
        Largest number of iterations of a fit.
    cache_size : float
        Memory for kernel values (MB).

    Examples
    --------
    >>> from marginsvm import MaxMarginClassifier
    >>> from marginsvm.problem.quadratic_program import ProblemSpec
    >>> spec = ProblemSpec.of(MaxMarginClassifier(C=2.0, loss="hinge"))
    >>> spec.C, spec.is_soft, spec.slack_is_linear, spec.intercept_is_free
    (2.0, True, True, True)
    """

    C: float = np.inf
    loss: str = "squared_hinge"
    nu: float | None = None
    p: float | str = 2.0
    kernel: Any = "linear"
    gamma: float | str = "scale"
    degree: float = 3
    coef0: float = 0.0
    kernel_params: dict[str, Any] | None = None
    class_weight: Any = None
    epsilon: float = 0.0
    normalize: bool = False
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    monotonic_cst: Any = None
    tol: float = 0.0
    max_iter: int = 0
    cache_size: float = np.inf

    @classmethod
    def of(cls, estimator: Any) -> ProblemSpec:
        """The parameters of an estimator; others have their defaults."""
        read: dict[str, Any] = {
            f.name: getattr(estimator, f.name, f.default) for f in fields(cls)
        }
        return cls(**read)

    @property
    def is_soft(self) -> bool:
        """Whether C makes the margin a soft one."""
        return bool(np.isfinite(self.C))

    @property
    def slack_is_linear(self) -> bool:
        """Whether the loss is linear in the slack (hinge), not squared."""
        return self.loss in LINEAR_LOSSES

    @property
    def constant(self) -> float:
        """The constant feature of a penalised intercept; 0: there is none."""
        return (self.intercept_scaling or 0.0) if self.fit_intercept else 0.0

    @property
    def intercept_is_free(self) -> bool:
        """Whether the intercept is not penalised: ``F'alpha = g`` then constrains it.

        Normalised examples get a constant feature before they are divided by their norms.
        """
        free = self.intercept_scaling is None and not self.normalize
        return bool(self.fit_intercept) and free

    @property
    def outputs_are_apart(self) -> bool:
        """Whether each output of a regression is a problem by itself (exact solver)."""
        return self.intercept_scaling is None
