"""Certified values of a primal and a dual point: objectives of the program, rounded outward.

By weak duality any predictor and any feasible alpha bound the optimum. So a bound holds as printed
if each sum in it is moved to its pessimistic end. Sums are computed in float64 or in
fractions; the error of a sum of products is ``gamma(m)`` times the sum of their absolute values,
where each term passes through m additions at most (Higham, section 3.1), and 0 in fractions.

*Primal.* The value of each row is lowered by its rounding error, the worst case for the loss.

*Dual.* With an intercept, feasibility requires ``F'alpha = 0``. At the best intercept some row
meets its target with equality, so that ``|b| <= size + radius |w|``, where size is the largest
target and radius the largest norm of an example. Hence an alpha with the residual
``off = |F'alpha|_1`` still proves the dual value with ``target'alpha`` reduced by ``size off`` and
``|A'alpha|`` increased by ``radius off``. The intercepts of k classes are linked by at most k - 1
rows, and both corrections are k - 1 times as large. For hard margins all values are positive, and
``|b| < radius |w|``.

*nu.* Alpha above an upper bound of nu-SVM is moved to other rows. With two classes the best
intercept gives one example of each class the value rho, so that rho is below the radius and values
are below twice the radius: the mean changes by at most four times the excess. With k classes, k
rows link them in one cycle: rho is below k radii, and offsets differ by less than k squared radii.

References
----------
N. Higham. Accuracy and Stability of Numerical Algorithms. SIAM, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import inf, isfinite, isqrt, nextafter

import numpy as np

from marginsvm._rounding import UNIT, Extended, exact_sum
from marginsvm._typing import Array, Values
from marginsvm.problem.examples import Examples
from marginsvm.problem.matrix import dense
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.quadratic_program import (
    ROWS_AT_ONCE,
    QuadraticProgram,
    multiple_of_hinge,
    quantile,
)
from marginsvm.problem.row_maps import ClassPairs

EXCESS = 4  # radii that |A'alpha| may change per unit of alpha above its upper bound
# Distance of the origins that the fit and its check count from, and radii about them, in radii.
ORIGINS = 3
LARGEST = 10**300  # largest factor of alpha
# largest relative loss of a bound through the float64 error of A'alpha
FEW_DIGITS = 1e-8
PAIRS = 64  # additions that a term passes through in NumPy's pairwise summation

DECIMALS = Context(prec=90, Emax=MAX_EMAX, Emin=MIN_EMIN)  # for powers with p != 2
ROOT_BITS = 512  # of the integer whose root is taken
ROOT_ERROR = Fraction(1, 10**60)  # relative, of such roots and powers
# Covers errors of higher order in the unit roundoff.
HIGHER = 1.01
LENGTH_UNITS = 128.0  # roundings of a length: of pairwise sums, powers and a root
# Steps: of Newton's method for the best multiple, of balancing by last digits for each class, and
# for two signs; an alpha that absorbs an excess is so much larger.
MULTIPLE_STEPS = 60
CLASS_STEPS = 4
SIGN_STEPS = 4
LARGER = 2.0


# Arithmetic: float64, or fractions. Both classes have the same operations, so that each bound is
# written once. Errors are multiples of the unit roundoff, which is 0 for fractions.


class Floats:
    """float64.

    Parameters
    ----------
    unit : float
        Unit roundoff; 0: rounding is not accounted for, as the caller has a tolerance.
    """

    exact = False

    def __init__(self, unit: float = UNIT) -> None:
        self.unit = unit

    def gamma(self, n: int) -> float:
        """Relative error of a sum of products in which each term passes through <= n additions."""
        return HIGHER * self.unit * (n + 8)

    def array(self, x: Values) -> Array:
        return np.asarray(x, dtype=np.float64)

    def number(self, x: Values) -> float:
        return float(x)

    def total(self, values: Array) -> float:
        """Sum of all entries, rounded once."""
        return exact_sum(values)

    def sqrt(self, x: Values) -> float:
        """Square root; 0 for negative numbers, which are rounding errors."""
        return float(np.sqrt(max(float(x), 0.0)))

    def length(self, x: Array, p: float = 2.0) -> float:
        """p-norm of all entries, up to ``error_of_length``."""
        return LpNorm(p).length(x)

    def error_of_length(self, n: int, p: float = 2.0) -> float:
        """Relative error of the p-norm of n numbers: pairwise sums, powers and a root."""
        return self.unit * (min(n + 8.0, LENGTH_UNITS) if p == 2.0 else LENGTH_UNITS)

    def down(self, x: Values) -> float:
        """The largest float ``<= x``."""
        return float(x)

    def up(self, x: Values) -> float:
        """The smallest float ``>= x``."""
        return float(x)


class Rationals:
    """Fractions, in arrays of objects; roots and powers have 60 digits."""

    exact = True
    unit = 0

    def gamma(self, n: int) -> int:
        return 0

    def array(self, x: Values) -> Array:
        """Array of fractions; infinities are kept."""
        if getattr(x, "dtype", None) == np.dtype(object):
            return np.asarray(x)
        x = dense(x).astype(np.float64)
        out = np.empty(x.size, dtype=object)
        out[:] = [Fraction(v) if isfinite(v) else v for v in x.ravel().tolist()]
        return out.reshape(x.shape)

    def number(self, x: Values) -> Values:
        return Fraction(x) if x not in (inf, -inf) else x

    def total(self, values: Array) -> Values:
        return values.sum()

    def sqrt(self, x: Values) -> Fraction:
        """Square root, rounded down, as an integer over a power of two."""
        if x <= 0:
            return Fraction(0)
        bits = x.denominator.bit_length() - x.numerator.bit_length() + ROOT_BITS
        shift = max(0, bits // 2 + 1)
        return Fraction(isqrt((x.numerator << 2 * shift) // x.denominator), 1 << shift)

    def length(self, x: Array, p: float = 2.0) -> Fraction:
        if p == 2.0:
            return self.sqrt((x * x).sum())
        top = max(map(abs, x.flat))
        total = Decimal(0)
        if not top:
            return Fraction(0)
        for v in filter(None, x.flat):
            part = Fraction(abs(v) / top)
            ratio = DECIMALS.divide(Decimal(part.numerator), Decimal(part.denominator))
            total = DECIMALS.add(total, DECIMALS.power(ratio, Decimal(p)))
        return top * Fraction(
            DECIMALS.power(total, DECIMALS.divide(Decimal(1), Decimal(p)))
        )

    def error_of_length(self, n: int, p: float = 2.0) -> Fraction:
        return ROOT_ERROR

    def down(self, x: Values) -> float:
        near = float(x)
        return near if near <= x else nextafter(near, -inf)

    def up(self, x: Values) -> float:
        near = float(x)
        return near if near >= x else nextafter(near, inf)


Numbers = Floats | Rationals


# Rounding errors, each in the units of its quantity.


def error_of_scores(
    examples: Examples, magnitudes: Array, b: Array, numbers: Numbers
) -> Values:
    """Error of scores with intercepts, per example and score, given sums of absolute values."""
    found = magnitudes + np.abs(b)
    found *= numbers.gamma(examples.additions[0]) + examples.rounding
    return found


def error_of_square(examples: Examples, w: Array, numbers: Numbers) -> Values:
    """Error of a squared norm that is a sum of kernel values."""
    if not numbers.unit:
        return 0
    error = numbers.gamma(examples.additions[1]) + examples.rounding
    return error * examples.squared_magnitude(w)


def error_of_combined(
    examples: Examples, V: Array, magnitudes: Array, numbers: Numbers
) -> Values:
    """Error of each entry of ``V'X``, given sums of absolute values; or norms of their rows.

    Adding 0 does not round.
    """
    terms = min(examples.additions[1], np.count_nonzero(V.any(axis=1)) + 4)
    error = numbers.gamma(terms + V.shape[1]) + examples.rounding
    return error * magnitudes


def error_of_targets(qp: QuadraticProgram, numbers: Numbers) -> Values:
    """Error of targets that are rounded sums of y, its shift and epsilon."""
    exact = not numbers.unit or not qp.rounded
    return 0 if exact else 8 * numbers.unit * qp.largest_target


def error_of_gain(qp: QuadraticProgram, alpha: Array, numbers: Numbers) -> Values:
    """Error of ``target'alpha``."""
    mass = alpha.sum()
    return (
        numbers.gamma(PAIRS) * qp.largest_target * mass
        + error_of_targets(qp, numbers) * mass
    )


def error_of_cost(numbers: Numbers) -> Values:
    """Relative error of the loss, a sum of nonnegative terms."""
    return numbers.gamma(2 * PAIRS)


def imbalance(qp: QuadraticProgram, alpha: Array, numbers: Numbers) -> Values:
    """Residual ``|F'alpha|_1`` over all intercepts, each sum rounded once."""
    if not qp.intercept:
        return 0
    off = sum(abs(x) for x in qp.rows.sums(alpha, numbers.total))
    return off * (1 + numbers.gamma(qp.k))


def cost_of_imbalance(qp: QuadraticProgram, off: Values, numbers: Numbers) -> Values:
    """Corrections of ``target'alpha`` and of ``|A'alpha|`` for a residual of ``F'alpha = 0``."""
    if not off:
        return 0, 0
    links = qp.rows.links
    if qp.game:
        links = 1 if caps_of(qp, qp.upper)[0] is None else qp.k * qp.k
    off = off * (ORIGINS if numbers.unit else 1) * links
    return qp.largest_target * off, radius_of(qp, numbers) * off


def cost_of_excess(qp: QuadraticProgram, alpha: Array, numbers: Numbers) -> Values:
    """Correction of ``|A'alpha|`` for alpha above the upper bounds of nu-SVM."""
    caps, of = caps_of(qp, alpha)
    if caps is None or not qp.game:
        return 0
    mass = numbers.total(alpha)
    most = (mass * (1 - numbers.gamma(2 * PAIRS))) * caps
    over = np.maximum(of * (1 + numbers.gamma(qp.k)) - most, 0 * of).sum()
    if not over:
        return 0
    radius = radius_of(qp, numbers) * (ORIGINS if numbers.unit else 1)
    return over * EXCESS * qp.rows.cycle * radius * (1 + numbers.gamma(PAIRS))


# Sizes.


def radius_of(qp: QuadraticProgram, numbers: Numbers) -> Values:
    """Upper bound on the norm of the rows, from the origin of the examples."""
    examples = qp.examples
    squares = (
        examples.squared_norms if qp.p == 2.0 else examples.squared_dual_norms(qp.p)
    )
    longest = numbers.sqrt(squares.max() * qp.rows.square)
    return longest * (1 + numbers.gamma(examples.d or 0) + numbers.error_of_length(1))


def caps_of(qp: QuadraticProgram, alpha: Array) -> tuple[Array | None, Array]:
    """Finite upper bounds, and the sums of alpha that they bound."""
    if qp.cap is not None:
        return qp.cap, alpha.reshape(len(qp.cap), -1).sum(axis=1)
    return (None if qp.several or qp.upper[0] == inf else qp.upper), alpha


# The two values.


@dataclass(frozen=True)
class Primal:
    """Certified values of a predictor.

    Attributes
    ----------
    objective : number
        Upper bound on its primal objective; of a game, at the best multiple of the predictor.
    margin : number
        Lower bound on its margin, in programs that maximise one; vacuous below 0.
    norm : number
        Upper bound on ``|w|``, without slack.
    violation : number
        Upper bound on the largest violation of a target; of a tube, without its width.
    separation : number
        Lower bound on the smallest value of a row.
    """

    objective: Values
    margin: Values
    norm: Values
    violation: Values
    separation: Values


# scores, and the sums of the absolute values of their terms
Known = tuple[Array, Array] | None


def primal(
    qp: QuadraticProgram, w: Array, f: Array, numbers: Numbers, known: Known = None
) -> Primal:
    """Bounds on the values of a predictor.

    Parameters
    ----------
    qp : QuadraticProgram
    w : ndarray of shape (k, d)
    f : ndarray
        Intercepts of all k scores and, for nu-SVR, the width of the tube.
    numbers : Floats or Rationals
    known : tuple or None
        Scores of w, and the sums of the absolute values of their terms.
    """
    norm = norm_of(qp, w, numbers, None if known is None else known[0])
    v = lowest_values(qp, w, f[: qp.k], numbers, known)
    least = v.min()
    if qp.game:
        mean = mean_of_worst(qp, v, numbers)
        out = numbers.gamma(4) + numbers.error_of_length(1)
        margin = mean / norm - out * abs(mean / norm) if norm > 0 else 0 * norm
        half = 1 / (2 * margin * margin) if margin > 0 else inf
        return Primal(half, margin, norm, -least, least)
    r = np.subtract(qp.target, v, out=v)
    r += error_of_targets(qp, numbers)
    r = qp.rows.fill(r, 0)
    violation = abs(max(r.max(), 0 * least)) * (1 + numbers.gamma(0))
    if qp.level:  # a difference of nearly equal numbers, of which one is rounded
        r = r + 2 * numbers.unit * abs(r) - f[-1]
    square = norm * norm / 2
    if qp.hard:
        return Primal(square * (1 + numbers.gamma(4)), 0, norm, violation, least)
    slack = qp.cost(r) + qp.total * f[-1] if qp.level else qp.cost(r)
    P = (square + slack * (1 + error_of_cost(numbers))) * (1 + 4 * numbers.unit)
    return Primal(P, margin_of(P, numbers, -1), norm, violation, least)


def norm_of(
    qp: QuadraticProgram, w: Array, numbers: Numbers, S: Array | None = None
) -> Values:
    """Upper bound on the norm of a predictor, by its scores S with a kernel."""
    out = 1 + numbers.error_of_length(w.size, qp.p)
    if not qp.examples.is_kernel:
        return numbers.length(w, qp.p) * out
    square = qp.examples.inner(w, w) if S is None else (w.T * S).sum()
    return numbers.sqrt(square + error_of_square(qp.examples, w, numbers)) * out


def lowest_values(
    qp: QuadraticProgram, w: Array, b: Array, numbers: Numbers, known: Known = None
) -> Array:
    """Lower bounds on the values of all rows; infinite for the own class of an example."""
    if not numbers.unit:
        S = qp.examples.scores(w) if known is None else known[0]
        return qp.rows.fill(qp.rows.values(S + b), inf)
    S, M = qp.examples.bounded_scores(w) if known is None else known
    error = error_of_scores(qp.examples, M, b, numbers)
    v = qp.rows.values(S + b)
    v -= qp.rows.bounds(error)
    return qp.rows.fill(v, inf)


def mean_of_worst(qp: QuadraticProgram, v: Array, numbers: Numbers) -> Values:
    """Lower bound on the smallest value or, with nu, on the mean of the smallest values."""
    caps = caps_of(qp, v)[0]
    level = level_of(qp, v)
    if caps is None:
        return level
    worst = qp.rows.least(v)
    short = (caps * np.maximum(level - worst, 0 * worst)).sum()
    return level - short - numbers.gamma(2 * PAIRS) * (abs(level) + short)


def level_of(qp: QuadraticProgram, v: Array) -> Values:
    """rho: the smallest value or, with nu, the nu-quantile of the values."""
    caps, _ = caps_of(qp, v)
    return v.min() if caps is None else -quantile(-qp.rows.least(v), caps, 1)


@dataclass(frozen=True)
class Dual:
    """Certified values of a dual point alpha.

    Attributes
    ----------
    gain : number
        Lower bound on ``target'alpha``, corrected for ``F'alpha != 0``.
    length : number
        Upper bound on ``|A'alpha|``, corrected for ``F'alpha != 0`` and alpha above nu's bounds.
    ridge : number
        Upper bound on ``sum ridge alpha^2``.
    mass : number
        Sum of alpha.
    multiple : number
        The largest t with ``t alpha`` below the upper bounds; infinite without upper bounds.
    numbers : Floats or Rationals
    """

    gain: Values
    length: Values
    ridge: Values
    mass: Values
    multiple: Values
    numbers: Numbers

    def objective(self, widened: Values = 0) -> Values:
        """Lower bound on the objective of any predictor, at the best multiple of alpha.

        Targets are reduced by ``widened``. Infinite: no predictor fits.
        """
        numbers = self.numbers
        gain = self.gain - widened * self.mass * (1 + numbers.gamma(PAIRS))
        if not gain > 0:  # also if ``widened`` is infinite
            return 0 * self.gain
        square = (self.length * self.length + self.ridge) * (1 + numbers.gamma(4))
        s = self._multiple(gain, square)
        if not s < inf:
            return inf
        return max(s * (gain - s * square / 2) * (1 - numbers.gamma(8)), 0 * gain)

    @property
    def best_multiple(self) -> Values:
        """The t for which ``t alpha`` has the largest dual value."""
        return self._multiple(self.gain, self.length * self.length + self.ridge)

    def _multiple(self, gain: Values, square: Values) -> Values:
        with np.errstate(over="ignore"):
            if not square > 0 or self.multiple * square <= gain:
                return self.multiple
            return min(gain / square, LARGEST)

    @property
    def margin_bound(self) -> Values:
        """Upper bound on the margin of any predictor, for hard margins and with nu."""
        out = 1 + self.numbers.gamma(8) + self.numbers.error_of_length(1)
        return self.length / self.mass * out if self.mass > 0 else inf


LONGER = 1e-10  # by which a norm may be longer, relative to it, where that saves a pass
# a predictor, and an upper bound on its norm
Near = tuple[Array, Values] | None


def dual(
    qp: QuadraticProgram, alpha: Array, numbers: Numbers, near: Near = None
) -> Dual:
    """Bounds on the values of alpha; entries without a row are 0.

    ``near`` saves a product with the kernel matrix, if it is nearly a multiple of ``A'alpha``.
    """
    V = qp.rows.coefficients(alpha)
    off = imbalance(qp, alpha, numbers)
    ridge = (qp.ridge * alpha * alpha).sum() * (1 + error_of_cost(numbers))
    if qp.examples.is_kernel:
        w = qp.examples.combine(V)
        length = None if near is None else length_by_another(qp, w, near, numbers)
        if length is None:
            square = qp.examples.inner(w, w) + error_of_square(qp.examples, w, numbers)
            length = numbers.sqrt(square) * (1 + numbers.error_of_length(V.size))
    else:
        length = length_of_combined(qp, alpha, V, ridge, numbers)
    lost, longer = cost_of_imbalance(qp, off, numbers)
    length = length + longer + cost_of_excess(qp, alpha, numbers)
    mass: Values = alpha.sum()
    gain = 0 * mass
    multiple = inf
    if qp.game:
        mass = numbers.total(alpha) * (1 - numbers.unit)
    else:
        gain = (qp.target * alpha).sum() - error_of_gain(qp, alpha, numbers) - lost
        multiple = largest_multiple(qp, alpha) * (1 - numbers.gamma(qp.k + 2 * PAIRS))
    return Dual(gain, length, ridge, mass, multiple, numbers)


def length_by_another(
    qp: QuadraticProgram, w: Array, near: tuple[Array, Values], numbers: Numbers
) -> Values:
    """Upper bound on the norm of w in the space of a kernel, ``t |u| + |w - t u|``.

    None: w is not near a multiple of u.
    """
    u, length = near
    size = abs(u).sum()
    t = abs(w).sum() / size if size > 0 else size
    far = abs(w - t * u) + 4 * numbers.unit * (abs(w) + abs(t * u))
    longest = radius_of(qp, numbers)
    off = far.sum() * longest * (1 + numbers.gamma(2 * PAIRS))
    near_enough = off <= LONGER * t * length < inf
    return (t * length + off) * (1 + numbers.gamma(4)) if near_enough else None


def length_of_combined(
    qp: QuadraticProgram, alpha: Array, V: Array, ridge: Values, numbers: Numbers
) -> Values:
    """Upper bound on the dual norm of ``V'X``, in extended precision if float64 is too coarse."""
    q = qp.p / (qp.p - 1)
    examples = qp.examples
    if numbers.unit:
        w, magnitudes = examples.bounded_combine(V)
        error = error_of_combined(examples, V, magnitudes, numbers)
    else:
        w = examples.combine(V)
        error = np.zeros(1, int)
    w = qp.project(w)
    length = numbers.length(w, q)
    off = numbers.length(error, q)
    if numbers.unit and length * off > FEW_DIGITS * (length * length + ridge):
        extended = examples.combine_extended(
            qp.rows.coefficients(alpha.astype(Extended))
        )
        if extended is not None:
            length = numbers.length(qp.project(extended[0]), q)
            off = numbers.length(extended[1], q)
    return (length + off) * (1 + numbers.error_of_length(w.size, q))


def largest_multiple(qp: QuadraticProgram, alpha: Array) -> Values:
    """The largest t for which ``t alpha`` satisfies all upper bounds of the hinge loss."""
    caps, of = caps_of(qp, alpha)
    found: Values = inf
    if caps is not None and (of > 0).any():
        with np.errstate(over="ignore"):  # quotients that overflow are not the minimum
            found = (caps[of > 0] / of[of > 0]).min()
    if qp.level and of.any():
        found = min(found, qp.total / of.sum())
    return found


def margin_of(P: Values, numbers: Numbers, direction: int) -> Values:
    """``1 / sqrt(2 P)``, rounded down (-1) or up (1); 0 for infinity."""
    if not inf > P:
        return 0
    if not P > 0:
        return inf
    root = 1 / numbers.sqrt(2 * P)
    return root * (1 + direction * (numbers.gamma(4) + numbers.error_of_length(1)))


# Nearby points with better values, in float64.


def best_multiple(qp: QuadraticProgram, norm: float, v: Array) -> float:
    """Factor by which a classifier with lowest values v is scaled for publication.

    For hard margins and with nu, the smallest value, or rho, becomes 1; with slack, the objective
    is minimised. 1 where no such factor exists.
    """
    if qp.game:
        level = level_of(qp, v)
        found = 1.0 / level if level > 0.0 else 1.0 / norm if norm > 0.0 else 1.0
    elif np.any(qp.ridge):
        found = _multiple_of_squares(norm, qp.rows.flat(v), qp.rows.flat(qp.ridge))
    else:
        upper = qp.upper if qp.cap is None else qp.cap
        found = multiple_of_hinge(norm * norm, qp.rows.least(v), upper)
        # slightly beyond a jump, as C times the rounding of a margin of 1 may be large
        found *= 1.0 + 8.0 * UNIT
    return float(found) if 0.0 < found < inf else 1.0


def _multiple_of_squares(norm: float, v: Array, ridge: Array) -> float:
    """Least ``|t w|^2 / 2 + sum max(0, 1 - t v)^2 / (2 ridge)``: Newton's method.

    It starts at 1, which is near the best; from its first step on, it rises.
    """
    t = -inf
    better = 1.0
    for step in range(MULTIPLE_STEPS):
        total = 0.0
        square = norm * norm
        for i in range(0, len(v), ROWS_AT_ONCE):
            some = v[i : i + ROWS_AT_ONCE]
            short = better * some < 1.0
            some = some[short]
            pull = some / ridge[i : i + ROWS_AT_ONCE][short]
            total += float(pull.sum())
            square += float(pull @ some)
        t = better
        better = max(total / square, 0.0) if square > 0.0 else better
        if not better < inf or (step and not t < better):
            break
    return t


def balanced(qp: QuadraticProgram, alpha: Array) -> Array:
    """Alpha with ``F'alpha = 0`` exactly or nearly so, from a nearly feasible one.

    The smallest alpha of a class absorb the residual, since their last digits are finest.
    """
    if not qp.intercept:
        return alpha
    if isinstance(qp.rows, ClassPairs):
        return _even_classes(alpha.copy(), qp.rows)
    return _even(alpha, qp.sign)


def _even_classes(alpha: Array, rows: ClassPairs) -> Array:
    total = Floats().total
    codes = rows.codes
    before = -1  # the class with the largest excess in the last step
    excess = np.array(rows.sums(alpha, total))
    moved = False  # since these sums were computed
    for _ in range(CLASS_STEPS * rows.k):
        c = int(excess.argmax())
        # From class c to the class h with the smallest excess that has a row of either class
        # against the other; classes without such a row are linked through others. The smallest
        # alpha have the finest digits.
        for h in np.argsort(excess, kind="stable")[:-1].tolist():
            move = min(excess[c], -excess[h]) if excess[h] < 0.0 else excess[c]
            own = np.flatnonzero((codes == c) & (alpha[:, h] > LARGER * move))
            other = np.flatnonzero((codes == h) & (alpha[:, c] > 0.0))
            if h not in (c, before) and (len(own) or len(other)):
                break
        else:
            move = 0.0
        if move > 0.0:
            if alpha[own, h].min(initial=inf) < alpha[other, c].min(initial=inf):
                at = own[alpha[own, h].argmin()], h
                found = alpha[at] - move
            else:
                at = other[alpha[other, c].argmin()], c
                found = alpha[at] + move
            change = abs(found - alpha[at])
            alpha[at] = found
            excess[c] -= change
            excess[h] += change
            before = c
        elif moved:
            excess = np.array(rows.sums(alpha, total))
        else:
            break
        moved = move > 0.0
    return alpha


def _even(alpha: Array, sign: Array) -> Array:
    """Alpha with equal sums for both signs, by the last digits of the smallest entries."""
    alpha = alpha.copy()
    for _ in range(SIGN_STEPS):
        excess = Floats().total(sign * alpha)
        able = np.flatnonzero(alpha > LARGER * abs(excess))
        if excess == 0.0 or not len(able):
            break
        i = able[alpha[able].argmin()]
        alpha[i] -= sign[i] * excess
    return alpha
