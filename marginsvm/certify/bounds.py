"""The bounds that vectors prove, with rounding allowed for, so that they hold as printed.

A problem asks for the largest margin of a predictor of norm 1. Any vector, taken as a predictor,
bounds it from below by the smallest margin of a row over its norm. Any distribution q over the
rows bounds it from above: the smallest margin of a predictor w of norm 1 is at most its average
margin ``<A^T q, w>``, and that is at most ``|A^T q|``.

With the hinge loss, a soft margin is ``1 / sqrt(2 P)`` for the objective ``P = |w|^2 / 2 + sum_r
c_r max(0, 1 - m_r)`` of margins m, the caps c being C times the weights of the rows: as for the
squared loss and for hard margins, the inverse length of the best predictor, slack included. Weights
``u = s q`` that stay below the caps prove that no objective is below ``s - |A^T u|^2 / 2``.

Both bounds are in units of the problem's radius, and moved outward by a bound on their rounding
error, which the problem's error model gives. Sums of few terms are computed in extended
precision: they suffice for certificates of high accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, SMALL, UNIT
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Certifiable, LowestMargins, Predictor
from marginsvm.certify.tolerances import IMBALANCE_SURCHARGE, SCALABLE_MARGIN
from marginsvm.rows import Rows, Vector


def upper_bound(problem: Certifiable, vector: Vector) -> float:
    """Upper bound proved by the distribution of a vector, with its rounding error added.

    Weights that are balanced only up to rounding need a surcharge. Let all examples lie within
    a distance r of the origin of the images. A predictor of norm 1 with a positive margin
    then has ``|b| < r`` (two classes: both signs of ``w x + b`` occur), or class offsets that
    differ by less than ``sqrt(2) r``; so its margin is below ``|A^T q| + r imbalance``. The
    check of a certificate may take the mean of the examples as origin. It then finds a longer
    ``A^T q``, by up to ``r imbalance``, and examples at a distance of up to 2 r. With a
    surcharge of ``3 r imbalance``, the bound is no smaller than the one that the check computes.

    With the hinge loss, the best intercept gives some row the margin 1, so that it is below
    ``1 + r |w|``. So the imbalance is taken from the mass as well.
    """
    proof = problem.distribution(vector)
    length = problem.errors.proof_norm(proof)
    if problem.slack is not None:
        q = proof.weights()
        length = _with_slack(length, np.sum(problem.slack * q * q))
    bound = length + IMBALANCE_SURCHARGE * problem.errors.farthest * proof.imbalance()
    if problem.caps is not None:
        mass = proof.mass - 2.0 * proof.imbalance()
        return _of_capped_weights(problem.caps, proof.weights(), bound, mass)
    return bound / proof.mass


def _of_capped_weights(caps: Array, q: Array, length: float, mass: float) -> float:
    """Upper bound that weights prove at their best multiple below the caps."""
    s = multiple_below_caps(caps, q, length, mass)
    objective = s * (mass - 0.5 * s * length**2)
    return (1.0 + FEW) / np.sqrt(2.0 * objective) if 0.0 < objective < np.inf else np.inf


def multiple_below_caps(caps: Array, q: Array, length: float, mass: float) -> float:
    """The factor of weights at which they prove most, all of them below their caps.

    Parameters
    ----------
    caps, q : ndarray
        Largest weights, and weights.
    length : float
        ``|A^T q|``.
    mass : float
        Sum of the weights.
    """
    used = q > 0.0
    s = float((caps[used] / q[used]).min(initial=np.inf)) * (1.0 - FEW)
    return min(s, mass / length**2) if length > 0.0 else s


def rounding_error(problem: Certifiable, vector: Vector) -> float:
    """Bound on the rounding error of the margins of a vector in float64.

    This is the quick estimate, which leaves room for rounding accumulated in many rounds.
    """
    norm = problem.errors.predictor_norm(vector)
    return problem.errors.margin_error(vector, norm, np.inf)


def lower_bound(
    problem: Certifiable,
    vector: Vector,
    offsets: Array | None = None,
    margins: Array | None = None,
) -> Predictor:
    """Predictor of a vector, and a lower bound on the margin of its published numbers.

    The predictor is scaled to decision values of 1 on the closest examples or, if it does not
    separate, to norm 1. With the hinge loss, it keeps the scale of the vector.

    Parameters
    ----------
    problem : Certifiable
    vector : Vector
    offsets : ndarray of shape (n_classes,) or None
        Class offsets; None: the best ones.
    margins : ndarray or None
        Margins of all rows in float64, if they are known; None: they are computed.
    """
    if margins is None:
        measured = problem.lowest_margins(vector)
    else:
        measured = LowestMargins(vector, problem.rows.group_min(margins), margins)
    if problem.caps is not None:
        return _of_hinge_loss(problem, measured, offsets, problem.caps)
    if offsets is None:
        offsets = problem.rows.best_offsets(measured.low)
    if problem.slack is None:
        return _of_hard_margin(problem, measured, offsets)
    return _of_soft_margin(problem, measured, offsets, problem.slack)


@dataclass(frozen=True)
class _Smallest:
    """The smallest margin of a vector at given class offsets, and its rounding error.

    Attributes
    ----------
    vector : Vector
    offsets : ndarray of shape (n_classes,)
    norm : float
        Norm of the vector as a predictor, at most.
    margin : float
        The smallest margin, as computed in float64.
    error : float
        Rounding error of that margin, at most.
    """

    vector: Vector
    offsets: Array
    norm: float
    margin: float
    error: float

    @property
    def quick(self) -> float:
        """Lower bound on the margin, by the estimate of its rounding error."""
        return self.margin - self.error


def _smallest(
    problem: Certifiable, measured: LowestMargins, offsets: Array, norm: float
) -> _Smallest:
    margin = problem.rows.min_margin_at(measured.low, offsets)
    wanted = problem.errors.rounding_rtol * margin
    error = problem.errors.margin_error(measured.vector, norm, wanted)
    error += FEW * float(np.abs(offsets).max())
    return _Smallest(measured.vector, offsets, norm, margin, error)


def _of_hard_margin(problem: Certifiable, measured: LowestMargins, offsets: Array) -> Predictor:
    """Lower bound where every example must be on its own side."""
    norm = problem.errors.predictor_norm(measured.vector)
    smallest = _smallest(problem, measured, offsets, norm)
    scale = _scale(problem, smallest, smallest.margin)
    predictor = _published(problem, smallest, scale, smallest.margin > 0.0)
    if norm == 0.0:
        return predictor
    least = smallest.quick
    too_coarse = smallest.error > problem.errors.rounding_rtol * smallest.margin
    if measured.margins is not None and too_coarse:
        least = max(least, _sharpened(problem, predictor, measured.margins, smallest, scale))
    if smallest.margin <= smallest.error:
        least = min(least, 0.0)  # rounding hides the sign: no positive margin is claimed
    return predictor._replace(margin=least / norm)


def _of_soft_margin(
    problem: Certifiable, measured: LowestMargins, offsets: Array, slack: Array
) -> Predictor:
    """Lower bound of a soft margin, where each row has a slack coordinate of its own.

    The margin of a row then includes the part of its slack coordinate. So a positive margin does
    not show that the predictor separates the examples; the margin without that part does.
    """
    vector = measured.vector
    added = slack * problem.weights(vector)
    norm = problem.errors.predictor_norm(vector)
    norm = _with_slack(norm, np.sum(added * problem.weights(vector)))
    smallest = _smallest(problem, measured, offsets, norm)
    own = problem.rows.min_margin_at(problem.rows.group_min(measured.margins - added), offsets)
    own -= smallest.error + FEW * float(np.abs(added).max())
    scale = _scale(problem, smallest, smallest.quick)
    predictor = _published(problem, smallest, scale, own > 0.0)
    if norm == 0.0:
        return predictor
    least = smallest.quick
    if smallest.margin <= smallest.error or not _is_positive(problem, smallest, smallest.quick):
        least = min(least, 0.0)  # rounding hides the sign: no positive margin is claimed
    return predictor._replace(margin=least / norm)


def _of_hinge_loss(
    problem: Certifiable, measured: LowestMargins, offsets: Array | None, caps: Array
) -> Predictor:
    """Lower bound of a soft margin whose slack is not squared, at the best scale of the vector."""
    vector, rows, margins = measured.vector, problem.rows, measured.margins
    assert margins is not None  # the examples of this loss are at hand
    if offsets is None:
        offsets = hinge_offsets(rows, margins, caps)
    norm = problem.errors.predictor_norm(vector)
    smallest = _smallest(problem, measured, offsets, norm)
    margins = margins + rows.expand(offsets[:, None] - offsets) - smallest.error
    t = hinge_scale(norm**2, margins, caps)
    slack = np.maximum(1.0 - t * margins, 0.0)
    objective = (0.5 * (t * norm) ** 2 + float(np.sum(caps * slack))) * (1.0 + 2.0 * PAIRWISE)
    predictor = _published(problem, smallest, rows.unit / t, smallest.quick > 0.0)
    least = (1.0 - FEW) / np.sqrt(2.0 * objective) if 0.0 < objective < np.inf else 0.0
    return predictor._replace(margin=float(least))


def hinge_offsets(rows: Rows, margins: Array, caps: Array) -> Array:
    """Class offsets of two classes at which the capped slack of these margins is least.

    The slack is linear between the intercepts that give some row the margin 1. Of several best
    ones, the middle is taken.
    """
    if not rows.balanced:
        return np.zeros(1)
    y = rows.moves(np.ones(rows.score_shape))
    at = y * (1.0 - margins)
    order = np.argsort(at, kind="stable")
    passed, first = np.cumsum(caps[order]), float(caps[y > 0.0].sum())
    slope = passed - first
    slope[np.abs(slope) <= len(slope) * UNIT * passed[-1]] = 0.0
    low, high = np.searchsorted(slope, 0.0, "left"), np.searchsorted(slope, 0.0, "right")
    b = 0.5 * float(at[order[low]] + at[order[min(int(high), len(at) - 1)]])
    return np.array([-0.5, 0.5]) * b


def hinge_scale(squared: float, margins: Array, caps: Array) -> float:
    """Factor of a predictor at which its objective is least; 1 where that would be 0.

    The derivative of ``squared t^2 / 2 + sum caps max(0, 1 - t m)`` grows with t, by jumps where a
    row reaches the margin 1.

    Parameters
    ----------
    squared : float
        Squared norm of the predictor.
    margins, caps : ndarray
        Of all rows.
    """
    positive = margins > 0.0
    m, gain = margins[positive], (caps * margins)[positive]
    order = np.argsort(-m, kind="stable")
    m, gain = m[order], gain[order]
    pull = float(np.sum(caps * margins)) - np.append(0.0, np.cumsum(gain))  # before each jump
    reached = squared <= pull[1:] * m  # at the jump itself, what is left still pulls on
    i = int(np.count_nonzero(np.logical_and.accumulate(reached)))
    t = pull[i] / squared if squared > 0.0 else np.inf
    if i < len(m):
        t = min(t, 1.0 / m[i])
    return float(t) if 0.0 < t < np.inf else 1.0


def _sharpened(
    problem: Certifiable,
    predictor: Predictor,
    margins: Array,
    smallest: _Smallest,
    scale: float,
) -> float:
    """Lower bound on the smallest margin, from margins in extended precision.

    They are computed for the rows whose margin is within twice the rounding error of the
    smallest. The result is minus infinity where these rows are too many.
    """
    offsets = predictor.offsets
    margins = margins + problem.rows.expand(offsets[:, None] - offsets)
    near = np.flatnonzero(margins.ravel() <= smallest.margin + 2.0 * smallest.error)
    if near.size * min(problem.width, problem.n_rows) > SMALL:
        return -np.inf
    examples, signs = problem.rows.locate(near)
    F = problem.extended_scores(examples, predictor.coef) + predictor.intercept
    least = float((signs * F).sum(axis=1).min()) * scale
    wanted = problem.errors.rounding_rtol * smallest.margin
    least -= problem.errors.extended_margin_error(smallest.vector, smallest.norm, wanted)
    return min(least, smallest.margin + smallest.error)


def _is_positive(problem: Certifiable, smallest: _Smallest, margin: float) -> bool:
    """Whether a margin is large enough for the predictor to be scaled by it."""
    return margin > max(problem.errors.resolution, SCALABLE_MARGIN) * smallest.norm


def _scale(problem: Certifiable, smallest: _Smallest, margin: float) -> float:
    """Divisor of the vector, so that the closest examples get 1 or, else, the norm becomes 1."""
    if _is_positive(problem, smallest, margin):
        return margin * problem.rows.unit
    return smallest.norm / problem.radius


def _published(
    problem: Certifiable, smallest: _Smallest, scale: float, separates: bool
) -> Predictor:
    """The vector in the user's units; its margin is filled in by the caller."""
    numbers, scale = problem.predictor(smallest.vector, smallest.offsets), scale or 1.0
    coef, intercept = (np.atleast_1d(x) / scale for x in numbers)
    return Predictor(0.0, smallest.offsets, np.atleast_2d(coef), intercept, separates, scale)


def _with_slack(length: float, squared: float) -> float:
    """Upper bound on a length, given the length without slack and the squared length of slack."""
    return float(np.hypot(length, np.sqrt(squared))) * (1.0 + PAIRWISE)
