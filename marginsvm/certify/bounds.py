"""What vectors prove: bounds that allow for rounding, so that none is ever wrong.

A problem asks for the largest margin of a predictor of norm 1. Any vector, taken as a predictor,
bounds it from below by the smallest margin of a row. Any distribution q over the rows bounds it
from above: no predictor of norm 1 has more than the average margin ``<A^T q, w> <= |A^T q|``.

Both bounds are in units of the problem's radius, and moved outward by all that rounding may
have done, as the problem's error model says. Sums of few terms, which are all that a certificate
of high accuracy rests on, are done in extended precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, SMALL
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Certifiable, LowestMargins, Predictor
from marginsvm.certify.tolerances import IMBALANCE_SURCHARGE, SCALABLE_MARGIN
from marginsvm.rows.vector import Vector


def upper_bound(problem: Certifiable, vector: Vector) -> float:
    """Bound proved by the distribution of a vector, with all that may be rounding.

    Weights that are balanced only up to rounding pay for it. Let all examples lie within
    r of the point from which images count. A unit predictor with a positive margin then
    has ``|b| < r`` (two classes: both signs of ``w x + b`` occur), or class offsets that
    differ by less than ``sqrt(2) r``; so its margin is below ``|A^T q| + r imbalance``. A check
    that counts from the mean finds a longer ``A^T q``, by up to ``r imbalance``, and examples
    up to 2 r away. What is claimed here is no less than what it finds: 3 r.
    """
    proof = problem.distribution(vector)
    length = problem.errors.proof_norm(proof)
    if problem.slack is not None:
        q = proof.weights()
        length = _with_slack(length, np.sum(problem.slack * q * q))
    bound = length + IMBALANCE_SURCHARGE * problem.errors.farthest * proof.imbalance()
    return bound / proof.mass


def distribution(problem: Certifiable, vector: Vector) -> Array:
    """Weights on the rows in proportion to a vector's coefficients, as they are published."""
    return problem.distribution(vector).weights()


def rounding_error(problem: Certifiable, vector: Vector) -> float:
    """Most that float64 may have changed a margin of a vector by.

    The quick estimate leaves room for what many rounds have added up.
    """
    norm = problem.errors.predictor_norm(vector)
    return problem.errors.margin_error(vector, norm, np.inf)


def lower_bound(
    problem: Certifiable,
    vector: Vector,
    offsets: Array | None = None,
    margins: Array | None = None,
) -> Predictor:
    """Predictor of a vector, and the margin that its published numbers reach at least.

    It is scaled so that the closest examples get 1 (no separator: to unit norm).

    Parameters
    ----------
    problem : Certifiable
    vector : Vector
    offsets : ndarray of shape (n_classes,) or None
        Class offsets; None: the best ones.
    margins : ndarray or None
        Margins of all rows, where they are known in float64: they are not computed again.
    """
    if margins is None:
        measured = problem.lowest_margins(vector)
    else:
        measured = LowestMargins(vector, problem.rows.group_min(margins), margins)
    if offsets is None:
        offsets = problem.rows.best_offsets(measured.low)
    if problem.slack is None:
        return _of_hard_margin(problem, measured, offsets)
    return _of_soft_margin(problem, measured, offsets, problem.slack)


@dataclass(frozen=True)
class _Smallest:
    """The smallest margin of a vector at some class offsets, and how sure it is.

    Attributes
    ----------
    vector : Vector
    offsets : ndarray of shape (n_classes,)
    norm : float
        Of the vector as a predictor, at most.
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
        """The margin at least, by the quick estimate of its rounding error."""
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
        least = _of_no_separator(least)
    return predictor._replace(margin=least / norm)


def _of_soft_margin(
    problem: Certifiable, measured: LowestMargins, offsets: Array, slack: Array
) -> Predictor:
    """Lower bound where each row has a coordinate of its own, by which it may give way.

    The margin of a row then includes what its coordinate adds, so that a positive one does not
    say that the predictor separates the examples: their own margins do.
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
        least = _of_no_separator(least)
    return predictor._replace(margin=least / norm)


def _sharpened(
    problem: Certifiable,
    predictor: Predictor,
    margins: Array,
    smallest: _Smallest,
    scale: float,
) -> float:
    """Margin at least, the rows that may have the smallest one done in extended precision.

    These are the rows within twice the rounding error of it. Minus infinity: they are too many.
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


def _of_no_separator(least: float) -> float:
    """Margin at least where rounding hides its sign: that the digits separate would be luck."""
    return min(least, 0.0)


def _is_positive(problem: Certifiable, smallest: _Smallest, margin: float) -> bool:
    """Whether a margin is large enough for the predictor to be scaled by it."""
    return margin > max(problem.errors.resolution, SCALABLE_MARGIN) * smallest.norm


def _scale(problem: Certifiable, smallest: _Smallest, margin: float) -> float:
    """What the vector is divided by: the closest examples get 1, or the norm becomes 1."""
    if _is_positive(problem, smallest, margin):
        return margin * problem.rows.unit
    return smallest.norm / problem.radius


def _published(
    problem: Certifiable, smallest: _Smallest, scale: float, separates: bool
) -> Predictor:
    """The vector as the user applies it; of its margin, nothing is claimed yet."""
    numbers = problem.predictor(smallest.vector, smallest.offsets)
    coef, intercept = (np.atleast_1d(x) / (scale or 1.0) for x in numbers)
    return Predictor(0.0, smallest.offsets, np.atleast_2d(coef), intercept, separates)


def _with_slack(length: float, squared: float) -> float:
    """Length with the rows' own coordinates, at most, whose squared length is given."""
    return float(np.hypot(length, np.sqrt(squared))) * (1.0 + PAIRWISE)
