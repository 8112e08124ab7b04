"""What a predictor and weights prove: both values of the program, moved outward by their rounding.

Weak duality makes any predictor and any feasible weights bound the optimum. So a bound holds as it
is printed if each sum in it is moved to its pessimistic end. Sums are computed in float64 or in
fractions; the error of a sum of products is ``gamma(m)`` times the sum of their absolute values,
where each term passes through m additions at most (Higham, section 3.1), and 0 in fractions.

*The predictor.* The value of each row is lowered by its error, which is where it costs most.

*The weights.* With an intercept, ``F'alpha`` is to be 0. Some row is at its end for the best
intercept, so that ``|b| <= size + radius |w|``, where size is the largest target, and radius the
largest norm of an example. Hence weights that are ``off = |F'alpha|_1`` from balance prove no less
than with ``size off`` less gain and ``radius off`` more length. The intercepts of k classes are
linked by k - 1 rows at most, and either surcharge is k - 1 times as large. For hard margins all
values are positive, and ``|b| < radius |w|``.

*Shares.* What exceeds an upper bound of nu has to go to other rows. With two classes the best
intercept gives the level to an example of either, so that it is below the radius, and values are
below twice that: the average changes by four times the excess. With k classes, k rows link them
with one cycle: the level is below k radii, and offsets differ by less than k squared radii.

References
----------
N. Higham. Accuracy and Stability of Numerical Algorithms. SIAM, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from marginsvm._rounding import UNIT, Extended
from marginsvm._typing import Array
from marginsvm.certificate.numbers import Floats, Numbers
from marginsvm.problem.quadratic_program import QuadraticProgram

EXCESS = 4  # radii that a unit of weight above its bound may cost
# Distance of the origins that the fit and its check count from, and radii about them, in radii.
ORIGINS = 3
LARGEST = 10**300  # multiple of weights
FEW_DIGITS = 1e-8  # of a bound, that the error of a combination of examples may cost in float64
PAIRS = 64  # additions that a term of NumPy's sums passes through, which are in pairs


# Errors, each in the units of what it is the error of.


def error_of_scores(examples: Any, magnitudes: Array, b: Array, numbers: Numbers) -> Any:
    """Of scores with intercepts, for each example and score, given sums of absolute values."""
    error = numbers.gamma(examples.additions[0]) + examples.rounding
    return error * (magnitudes + np.abs(b))


def error_of_square(examples: Any, w: Array, numbers: Numbers) -> Any:
    """Of a squared norm that is a sum of kernel values."""
    if not numbers.unit:
        return 0
    error = numbers.gamma(examples.additions[1]) + examples.rounding
    return error * examples.squared_magnitude(w)


def error_of_image(examples: Any, V: Array, numbers: Numbers) -> Any:
    """Of each entry of ``V'X``. Nothing is rounded where 0 is added."""
    if not numbers.unit:
        return np.zeros(1, int)
    terms = min(examples.additions[1], np.count_nonzero(V.any(axis=1)) + 4)
    error = numbers.gamma(terms + V.shape[1]) + examples.rounding
    return error * examples.combined_magnitudes(V)


def error_of_targets(qp: QuadraticProgram, numbers: Numbers) -> Any:
    """Of ends that are rounded sums of a target, its shift and epsilon."""
    exact = not numbers.unit or not qp.rounded
    return 0 if exact else 8 * numbers.unit * size_of(qp)


def error_of_gain(qp: QuadraticProgram, alpha: Array, numbers: Numbers) -> Any:
    """Of ``target'alpha``."""
    mass = alpha.sum()
    return numbers.gamma(PAIRS) * size_of(qp) * mass + error_of_targets(qp, numbers) * mass


def error_of_cost(numbers: Numbers) -> Any:
    """Relative, of sums of what slack costs, none of which is below 0."""
    return numbers.gamma(2 * PAIRS)


def imbalance(qp: QuadraticProgram, alpha: Array, numbers: Numbers) -> Any:
    """``|F'alpha|_1`` of all intercepts, each sum rounded once."""
    if not qp.intercept:
        return 0
    if qp.codes is None:
        signed = qp.sign * alpha
        parts = [signed] if qp.output is None else [signed[qp.output == o] for o in range(qp.k)]
        off = sum(abs(numbers.sums(part[:, None])[0]) for part in parts)
    else:
        off = 0
        for c in range(qp.k):
            own, other = alpha[qp.codes == c].ravel(), -alpha[qp.codes != c, c]
            off += abs(numbers.sums(np.concatenate([own, other])[:, None])[0])
    return off * (1 + numbers.gamma(qp.k))


def cost_of_imbalance(qp: QuadraticProgram, off: Any, numbers: Numbers) -> Any:
    """What is lost of the gain, and added to the length."""
    if not off:
        return 0, 0
    links = 1 if qp.codes is None else qp.k - 1
    if qp.game:
        links = 1 if caps_of(qp, qp.upper)[0] is None else qp.k * qp.k
    off = off * (ORIGINS if numbers.unit else 1) * links
    return size_of(qp) * off, radius_of(qp, numbers) * off


def cost_of_excess(qp: QuadraticProgram, alpha: Array, numbers: Numbers) -> Any:
    """What weights above the upper bounds of a share add to the length."""
    caps, of = caps_of(qp, alpha)
    if caps is None or not qp.game:
        return 0
    mass = numbers.sums(alpha.reshape(-1, 1))[0]
    most = (mass * (1 - numbers.gamma(2 * PAIRS))) * caps
    over = np.maximum(of * (1 + numbers.gamma(qp.k)) - most, 0 * of).sum()
    if not over:
        return 0
    cycle = 1 if qp.codes is None else qp.k * qp.k
    radius = radius_of(qp, numbers) * (ORIGINS if numbers.unit else 1)
    return over * EXCESS * cycle * radius * (1 + numbers.gamma(PAIRS))


# Sizes.


def size_of(qp: QuadraticProgram) -> Any:
    """The largest target."""
    return abs(np.asarray(qp.target)).max(initial=0)


def radius_of(qp: QuadraticProgram, numbers: Numbers) -> Any:
    """Length of the longest row, at most, from the origin of the examples."""
    examples = qp.examples
    squares = examples.squared_norms if qp.p == 2.0 else examples.squared_dual_norms(qp.p)
    longest = numbers.sqrt(max(squares.tolist()) * (1 if qp.codes is None else 2))
    return longest * (1 + numbers.gamma(examples.d or 0) + numbers.error_of_length(1))


def caps_of(qp: QuadraticProgram, alpha: Array) -> tuple[Array | None, Array]:
    """Upper bounds that are finite, and the weights that they are those of."""
    if qp.cap is not None:
        return qp.cap, alpha.reshape(len(qp.cap), -1).sum(axis=1)
    return (None if qp.codes is not None or qp.upper[0] == inf else qp.upper), alpha


# The two values.


@dataclass(frozen=True)
class Primal:
    """What a predictor is worth.

    Attributes
    ----------
    objective : number
        Value of the program, at most; of the game, at the best multiple of the predictor.
    margin : number
        Of programs by margins: what the predictor reaches, at least; below 0 it says nothing.
    norm : number
        Of the predictor, without slack, at most.
    violation : number
        The most that a row is short of its target, at most; of tubes without their width.
    separation : number
        The smallest value of a row, at least.
    """

    objective: Any
    margin: Any
    norm: Any
    violation: Any
    separation: Any


Known = tuple[Array, Array] | None  # scores, and the sums of the absolute values of their terms


def primal(
    qp: QuadraticProgram, w: Array, f: Array, numbers: Numbers, known: Known = None
) -> Primal:
    """What a predictor proves.

    Parameters
    ----------
    qp : QuadraticProgram
    w : ndarray of shape (k, d)
    f : ndarray
        Intercepts of all k scores and, of tubes of unknown width, this.
    numbers : Floats or Rationals
    known : tuple or None
        Scores of w, and the sums of the absolute values of their terms.
    """
    norm = norm_of(qp, w, numbers)
    v = lowest_values(qp, w, f[: qp.k], numbers, known)
    least = v.min()
    if qp.game:
        mean = mean_of_worst(qp, v, numbers)
        out = numbers.gamma(4) + numbers.error_of_length(1)
        margin = mean / norm - out * abs(mean / norm) if norm > 0 else 0 * norm
        half = 1 / (2 * margin * margin) if margin > 0 else inf
        return Primal(half, margin, norm, -least, least)
    r = qp.target - v + error_of_targets(qp, numbers)
    if qp.codes is not None:
        r[np.arange(len(r)), qp.codes] = 0
    violation = abs(max(r.max(), 0 * least)) * (1 + numbers.gamma(0))
    if qp.level:  # a difference of nearly equal numbers, of which one is rounded
        r = r + 2 * numbers.unit * abs(r) - f[-1]
    square = norm * norm / 2
    if qp.hard:
        return Primal(square * (1 + numbers.gamma(4)), 0, norm, violation, least)
    slack = qp.cost(r) + qp.total * f[-1] if qp.level else qp.cost(r)
    P = (square + slack * (1 + error_of_cost(numbers))) * (1 + 4 * numbers.unit)
    return Primal(P, margin_of(P, numbers, -1), norm, violation, least)


def norm_of(qp: QuadraticProgram, w: Array, numbers: Numbers) -> Any:
    """Norm of a predictor, at most."""
    out = 1 + numbers.error_of_length(w.size, qp.p)
    if qp.examples.d is not None:
        return numbers.length(w, qp.p) * out
    square = qp.examples.inner(w, w) + error_of_square(qp.examples, w, numbers)
    return numbers.sqrt(square) * out


def lowest_values(
    qp: QuadraticProgram, w: Array, b: Array, numbers: Numbers, known: Known = None
) -> Array:
    """Values of all rows, at least; of the own class of an example, infinite."""
    S = known[0] if known is not None else qp.examples.scores(w)
    m = qp.differences(S + b)
    if numbers.unit:
        M = known[1] if known is not None else qp.examples.magnitudes(w)
        E = error_of_scores(qp.examples, M, b, numbers)
        if qp.codes is not None:
            E = E + E[np.arange(len(E)), qp.codes][:, None]
        elif qp.example is not None:
            E = E[qp.example, 0 if qp.output is None else qp.output]
        else:
            E = E[:, 0]
        m = m - E
    if qp.codes is not None:
        m[np.arange(len(m)), qp.codes] = inf
    return m


def mean_of_worst(qp: QuadraticProgram, v: Array, numbers: Numbers) -> Any:
    """The smallest value or, of a share, the mean of the smallest of all examples, at least."""
    caps, level = caps_of(qp, v)[0], level_of(qp, v)
    if caps is None:
        return level
    worst = v if qp.codes is None else v.min(axis=1)
    short = (caps * np.maximum(level - worst, 0 * worst)).sum()
    return level - short - numbers.gamma(2 * PAIRS) * (abs(level) + short)


def level_of(qp: QuadraticProgram, v: Array) -> Any:
    """The smallest value or, of a share, that of the example at its edge."""
    caps, _ = caps_of(qp, v)
    if caps is None:
        return v.min()
    worst = v if qp.codes is None else v.min(axis=1)
    order = np.argsort(worst, kind="stable")
    return worst[order[min(int(np.searchsorted(np.cumsum(caps[order]), 1)), len(order) - 1)]]


@dataclass(frozen=True)
class Dual:
    """What weights prove.

    Attributes
    ----------
    gain : number
        ``target'alpha``, at least, less what imbalance costs.
    length : number
        ``|A'alpha|``, at most, with what imbalance and excess cost.
    ridge : number
        ``sum ridge alpha^2``, at most.
    mass : number
        Sum of the weights.
    multiple : number
        The largest multiple of the weights below their upper bounds; infinite where there are none.
    numbers : Floats or Rationals
    """

    gain: Any
    length: Any
    ridge: Any
    mass: Any
    multiple: Any
    numbers: Numbers

    def objective(self, widened: Any = 0) -> Any:
        """No predictor has a smaller objective, by the best multiple of the weights.

        Targets are less by ``widened``. Infinite: no predictor fits.
        """
        numbers = self.numbers
        gain = self.gain - widened * self.mass * (1 + numbers.gamma(PAIRS))
        if not gain > 0:
            return 0 * gain
        square = (self.length * self.length + self.ridge) * (1 + numbers.gamma(4))
        s = self._multiple(gain, square)
        if not s < inf:
            return inf
        return max(s * (gain - s * square / 2) * (1 - numbers.gamma(8)), 0 * gain)

    @property
    def best_multiple(self) -> Any:
        """The multiple of the weights that proves most."""
        return self._multiple(self.gain, self.length * self.length + self.ridge)

    def _multiple(self, gain: Any, square: Any) -> Any:
        with np.errstate(over="ignore"):
            if not square > 0 or self.multiple * square <= gain:
                return self.multiple
            return min(gain / square, LARGEST)

    @property
    def margin_bound(self) -> Any:
        """Of hard margins and shares: no predictor has a larger one."""
        out = 1 + self.numbers.gamma(8) + self.numbers.error_of_length(1)
        return self.length / self.mass * out if self.mass > 0 else inf


def dual(qp: QuadraticProgram, alpha: Array, numbers: Numbers) -> Dual:
    """What weights on the rows prove; entries without a row are 0."""
    V = qp.coefficients(alpha)
    off = imbalance(qp, alpha, numbers)
    ridge = (qp.ridge * alpha * alpha).sum() * (1 + error_of_cost(numbers))
    if qp.examples.d is None:
        image = qp.examples.combine(V)
        square = qp.examples.inner(image, image) + error_of_square(qp.examples, image, numbers)
        length: Any = numbers.sqrt(square) * (1 + numbers.error_of_length(V.size))
    else:
        length = length_of_image(qp, alpha, V, ridge, numbers)
    lost, longer = cost_of_imbalance(qp, off, numbers)
    length = length + longer + cost_of_excess(qp, alpha, numbers)
    mass: Any = alpha.sum()
    gain, multiple = 0 * mass, inf
    if qp.game:
        mass = numbers.sums(alpha.reshape(-1, 1))[0] * (1 - numbers.unit)
    else:
        gain = (qp.target * alpha).sum() - error_of_gain(qp, alpha, numbers) - lost
        multiple = largest_multiple(qp, alpha) * (1 - numbers.gamma(qp.k + 2 * PAIRS))
    return Dual(gain, length, ridge, mass, multiple, numbers)


def length_of_image(
    qp: QuadraticProgram, alpha: Array, V: Array, ridge: Any, numbers: Numbers
) -> Any:
    """Dual norm of ``V'X``, at most; by extended precision where float64 would cost digits."""
    q, examples = qp.p / (qp.p - 1), qp.examples
    image, error = examples.combine(V), error_of_image(examples, V, numbers)
    if numbers.unit:
        length, off = numbers.length(image, q), numbers.length(error, q)
        if length * off > FEW_DIGITS * (length * length + ridge):
            extended = examples.combine_extended(qp.coefficients(alpha.astype(Extended)))
            image, error = extended or (image, error)
    image = qp.project(image)
    length = numbers.length(image, q) + (numbers.length(error, q) if error.any() else 0)
    return length * (1 + numbers.error_of_length(image.size, q))


def largest_multiple(qp: QuadraticProgram, alpha: Array) -> Any:
    """The largest multiple of weights that keeps to all upper bounds of slack."""
    caps, of = caps_of(qp, alpha)
    found: Any = inf
    if caps is not None and (of > 0).any():
        with np.errstate(over="ignore"):  # of what is too large, and then is not the least
            found = (caps[of > 0] / of[of > 0]).min()
    if qp.level and of.any():
        found = min(found, qp.total / of.sum())
    return found


def margin_of(P: Any, numbers: Numbers, direction: int) -> Any:
    """``1 / sqrt(2 P)``, rounded down (-1) or up (1); 0 for infinity."""
    if not inf > P:
        return 0
    if not P > 0:
        return inf
    root = 1 / numbers.sqrt(2 * P)
    return root * (1 + direction * (numbers.gamma(4) + numbers.error_of_length(1)))


# Points near others that prove more, in float64.


def best_multiple(qp: QuadraticProgram, norm: float, v: Array) -> float:
    """Factor of a predictor of classes, with lowest values v, at which it is published.

    Of hard margins and shares, that at which the smallest value, or the level of the share, is 1;
    of slack, that with the least objective. 1 where there is none.
    """
    level = level_of(qp, v)
    if qp.codes is not None:
        v = v.min(axis=1) if qp.cap is not None else v[np.isfinite(v)]
    if qp.game:
        found = 1.0 / level if level > 0.0 else 1.0 / norm if norm > 0.0 else 1.0
    elif np.any(qp.ridge):
        ridge = np.broadcast_to(qp.ridge, qp.shape)
        if qp.codes is not None:
            ridge = ridge[np.arange(qp.k) != qp.codes[:, None]]
        found = _multiple_of_squares(norm, v, ridge)
    else:
        found = _multiple_of_hinge(norm, v, qp.upper if qp.cap is None else qp.cap)
    return float(found) if 0.0 < found < inf else 1.0


def _multiple_of_squares(norm: float, v: Array, ridge: Array) -> float:
    """Least ``|t w|^2 / 2 + sum max(0, 1 - t v)^2 / (2 ridge)``: Newton's method from below."""
    t = 0.0
    for _ in range(60):
        some = t * v < 1.0
        square = norm * norm + float((v[some] ** 2 / ridge[some]).sum())
        better = float((v[some] / ridge[some]).sum()) / square if square > 0.0 else t
        if not t < better < inf:
            break
        t = better
    return t


def _multiple_of_hinge(norm: float, v: Array, upper: Array) -> float:
    """Least ``|t w|^2 / 2 + sum upper max(0, 1 - t v)``, by its slope, which jumps at 1 / v."""
    gain = upper * v
    some = np.flatnonzero(v > 0.0)
    order = some[np.argsort(-v[some], kind="stable")]
    below = float(gain[v <= 0.0].sum())
    pull = below + np.append(np.cumsum(gain[order][::-1])[::-1], 0.0)
    square = norm * norm
    passed = square <= pull[1:] * v[order]  # at a jump, what is left still pulls on
    i = int(np.count_nonzero(np.logical_and.accumulate(passed)))
    with np.errstate(over="ignore"):
        t = pull[i] / square if square > 0.0 else inf
        # a little beyond the jump, where slack of a rounding error would cost much
        return min(t, (1.0 + 8.0 * UNIT) / v[order[i]]) if i < len(order) else t


def balanced(qp: QuadraticProgram, alpha: Array) -> Array:
    """Weights near feasible ones that balance exactly, or nearly so.

    What is in excess goes to or comes from the smallest weights, whose last digits are finest.
    """
    if not qp.intercept:
        return alpha
    if qp.codes is not None:
        return _even_classes(alpha.copy(), qp.codes, qp.k)
    if qp.output is None:
        return _even(alpha, qp.sign)
    alpha = alpha.copy()
    for o in range(qp.k):
        some = qp.output == o
        alpha[some] = _even(alpha[some], qp.sign[some])
    return alpha


def _even_classes(alpha: Array, codes: Array, k: int) -> Array:
    excess, before = np.array([_excess(alpha, codes, c) for c in range(k)]), -1
    for _ in range(4 * k):
        c = int(excess.argmax())
        # a row of either class against the other: the smallest weights have the finest digits;
        # other classes are between two that have no such row
        for h in np.argsort(excess, kind="stable")[:-1].tolist():
            move = min(excess[c], -excess[h]) if excess[h] < 0.0 else excess[c]
            own = np.flatnonzero((codes == c) & (alpha[:, h] > 2.0 * move))
            other = np.flatnonzero((codes == h) & (alpha[:, c] > 0.0))
            if h not in (c, before) and (len(own) or len(other)):
                break
        else:
            break
        if not move > 0.0:
            break
        if alpha[own, h].min(initial=inf) < alpha[other, c].min(initial=inf):
            alpha[own[alpha[own, h].argmin()], h] -= move
        else:
            alpha[other[alpha[other, c].argmin()], c] += move
        excess[[c, h]], before = (_excess(alpha, codes, c), _excess(alpha, codes, h)), c
    return alpha


def _excess(alpha: Array, codes: Array, c: int) -> float:
    own, other = alpha[codes == c].ravel(), -alpha[codes != c, c]
    return float(Floats().sums(np.concatenate([own, other])[:, None])[0])


def _even(alpha: Array, sign: Array) -> Array:
    """Weights of two signs with equal sums, by the last digits of the smallest."""
    alpha = alpha.copy()
    for _ in range(4):
        excess = float(Floats().sums((sign * alpha)[:, None])[0])
        able = np.flatnonzero(alpha > 2.0 * abs(excess))
        if excess == 0.0 or not len(able):
            break
        i = able[alpha[able].argmin()]
        alpha[i] -= sign[i] * excess
    return alpha
