"""The bounds that vectors prove, with rounding allowed for, so that they hold as printed.

A problem asks for the largest margin of a predictor of norm 1. Any vector, taken as a predictor,
bounds it from below by the smallest margin of a row over its norm. Any distribution q over the
rows bounds it from above: the smallest margin of a predictor w of norm 1 is at most its average
margin ``<A^T q, w>``, and that is at most ``|A^T q|``.

Where weights are capped, margins are soft, and mean what :mod:`marginsvm.certify.caps` says.

Bounds on norms, where scores are to lie in intervals, are in
:mod:`marginsvm.certify.interval_bounds`.

Both bounds are in units of the problem's radius, and moved outward by a bound on their rounding
error, which the problem's error model gives. Sums of few terms are computed in extended
precision: they suffice for certificates of high accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from marginsvm._rounding import EXTENDED_TERMS, FEW, PAIRWISE
from marginsvm._typing import Array
from marginsvm.certify.caps import Caps
from marginsvm.certify.certifiable import (
    Certifiable,
    Distribution,
    LowestMargins,
    PublishedPredictor,
)
from marginsvm.certify.own_slack import with_least_slack
from marginsvm.certify.tolerances import IMBALANCE_SURCHARGE, SCALABLE_MARGIN, WORTH_A_PASS
from marginsvm.rows import Predictor, Vector

# Scales at which a predictor is published and measured: the first by margins that rounding has
# moved, which costs C times as much where slack costs its size; the second by those of the first.
_TIMES_PUBLISHED = 2


def upper_bound(problem: Certifiable, vector: Vector) -> float:
    """Upper bound proved by the distribution of a vector, with its rounding error added.

    Weights that are balanced only up to rounding need a surcharge. Let all examples lie within
    a distance r of the origin of the images. A predictor of norm 1 with a positive margin
    then has ``|b| < r`` (two classes: both signs of ``w x + b`` occur), or class offsets that
    differ by less than ``sqrt(2) r``; so its margin is below ``|A^T q| + r imbalance``. The
    check of a certificate may take the mean of the examples as origin. It then finds a longer
    ``A^T q``, by up to ``r imbalance``, and examples at a distance of up to 2 r. With a
    surcharge of ``3 r imbalance``, the bound is no smaller than the one that the check computes.
    """
    proof = problem.distribution(vector)
    length = _proof_length(problem, proof)
    off, farthest = IMBALANCE_SURCHARGE * proof.imbalance(), problem.errors.farthest
    if problem.caps is not None:
        return problem.caps.upper_bound(proof.weights(), length, proof.mass, off, farthest)
    return (length + farthest * off) / proof.mass if proof.mass > 0.0 else np.inf


def _proof_length(problem: Certifiable, proof: Distribution) -> float:
    """``|A^T q|``, slack included, at most."""
    if problem.slack is None:
        return problem.errors.proof_norm(proof)
    squared = np.sum(problem.slack * proof.weights() ** 2)
    return _with_slack(problem.errors.proof_norm(proof, np.sqrt(squared)), squared)


def rounding_error(problem: Certifiable, vector: Vector) -> float:
    """Bound on the rounding error of the margins of a vector in float64.

    This is the quick estimate, which leaves room for rounding accumulated in many rounds.
    """
    norm = problem.errors.predictor_norm(vector)
    return problem.errors.margin_error(vector, norm, np.inf)


def lower_bound(
    problem: Certifiable,
    vector: Predictor,
    offsets: Array | None = None,
    margins: Array | None = None,
) -> PublishedPredictor:
    """Predictor of a vector, and a lower bound on the margin of its published numbers.

    The predictor is scaled to decision values of 1 on the closest examples or, if it does not
    separate, to norm 1. Where weights are capped, the caps say which margin becomes 1.

    Parameters
    ----------
    problem : Certifiable
    vector : Predictor
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
        return _of_caps(problem, measured, offsets, problem.caps)
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
    vector : Predictor
    offsets : ndarray of shape (n_classes,)
    norm : float
        Norm of the vector as a predictor, at most.
    margin : float
        The smallest margin, as computed in float64.
    error : float
        Rounding error of that margin, at most.
    """

    vector: Predictor
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


def _of_hard_margin(
    problem: Certifiable, measured: LowestMargins, offsets: Array
) -> PublishedPredictor:
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
    margin = least / norm
    return predictor._replace(margin=margin, separates=bool(margin > problem.errors.resolution))


def _of_soft_margin(
    problem: Certifiable, measured: LowestMargins, offsets: Array, slack: Array
) -> PublishedPredictor:
    """Lower bound of a soft margin, where each row has a slack coordinate of its own.

    The margin of a row then includes the part of its slack coordinate. So a positive margin does
    not show that the predictor separates the examples; the margin without that part does.
    """
    vector = measured.vector
    u = problem.weights(vector)
    added, length = slack * u, problem.errors.published_norm(vector)
    norm = _with_slack(length, np.sum(added * u))
    smallest = _smallest(problem, measured, offsets, norm)
    rows, own = problem.rows, measured.margins - added
    rounded = smallest.error + FEW * float(np.abs(added).max())
    separates = rows.min_margin_at(rows.group_min(own), offsets) - rounded > 0.0
    scale = _scale(problem, smallest, smallest.quick)
    if norm == 0.0:
        return _published(problem, smallest, scale, separates)
    least = smallest.quick
    if smallest.margin <= smallest.error or not _is_positive(problem, smallest, smallest.quick):
        least = min(least, 0.0)  # rounding hides the sign: no positive margin is claimed
    least /= norm
    own = own + rows.expand(offsets[:, None] - offsets)

    def bound(margins: Array, common: float | None = None) -> tuple[float, float]:
        return with_least_slack(length, margins, slack, common)

    better, common = bound(own - rounded)
    if least > problem.errors.resolution and better > least:
        predictor = _published(problem, smallest, common * rows.unit, separates)
        return _as_published(problem, smallest, predictor._replace(margin=better), own, bound)
    return _published(problem, smallest, scale, separates)._replace(margin=least)


def _of_caps(
    problem: Certifiable, measured: LowestMargins, offsets: Array | None, caps: Caps
) -> PublishedPredictor:
    """Lower bound where weights are capped, so that some rows may miss their margin."""
    rows, margins = problem.rows, measured.margins
    assert margins is not None  # the examples of such a problem are at hand
    if offsets is None:
        offsets = caps.offsets(rows, margins)
    norm = problem.errors.published_norm(measured.vector)
    smallest = _smallest(problem, measured, offsets, norm)
    margins = margins + rows.expand(offsets[:, None] - offsets)
    bound = partial(caps.lower_bound, norm)
    least, common = bound(margins - smallest.error)
    scale = common * rows.unit or norm / problem.radius
    predictor = _published(problem, smallest, scale, smallest.quick > 0.0)
    return _as_published(problem, smallest, predictor._replace(margin=least), margins, bound)


def _as_published(
    problem: Certifiable,
    smallest: _Smallest,
    predictor: PublishedPredictor,
    margins: Array,
    bound: Callable[..., tuple[float, float]],
) -> PublishedPredictor:
    """A predictor or, where rounding costs its bound too much, one by its published numbers.

    Rounding does, where sums of features that are far from 0, or of kernel values, lose digits.
    """
    wanted = WORTH_A_PASS * problem.errors.rounding_rtol * predictor.margin * smallest.norm
    if smallest.error <= wanted:
        return predictor
    for _ in range(_TIMES_PUBLISHED):
        common = bound(margins)[1]
        if common <= 0.0:
            break
        other = _published(problem, smallest, common * problem.rows.unit, predictor.separates)
        found = _margins_of_numbers(problem, smallest, other)
        if found is None:
            break
        other = other._replace(margin=bound(found, common)[0])
        predictor = max(predictor, other, key=lambda some: some.margin)
        margins = found
    return predictor


def _margins_of_numbers(
    problem: Certifiable, smallest: _Smallest, predictor: PublishedPredictor
) -> Array | None:
    """Lower bounds on the margins of published numbers, without slack; None: there are no closer.

    They are in the units of the vector.
    """
    F = problem.published_scores(predictor.coef, predictor.intercept, None)
    if F is None:
        return None
    margins = problem.rows.margins(F.reshape(problem.rows.score_shape)) * predictor.scale
    error = problem.errors.published_margin_error(smallest.vector, smallest.norm)
    error += FEW * float(np.abs(smallest.offsets).max())
    return np.asarray(margins * (1.0 - np.copysign(FEW, margins)) - error, np.float64)


def _sharpened(
    problem: Certifiable,
    predictor: PublishedPredictor,
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
    if near.size * min(problem.width, problem.n_rows) > EXTENDED_TERMS:
        return -np.inf
    examples, signs = problem.rows.locate(near)
    F = problem.published_scores(predictor.coef, predictor.intercept, examples)
    assert F is not None  # they are few
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
) -> PublishedPredictor:
    """The vector in the user's units; its margin is filled in by the caller."""
    numbers, scale = problem.predictor(smallest.vector, smallest.offsets), scale or 1.0
    coef, intercept = (np.atleast_1d(x) / scale for x in numbers)
    return PublishedPredictor(
        0.0, smallest.offsets, np.atleast_2d(coef), intercept, separates, scale
    )


def _with_slack(length: float, squared: float) -> float:
    """Upper bound on a length, given the length without slack and the squared length of slack."""
    return float(np.hypot(length, np.sqrt(squared))) * (1.0 + PAIRWISE)
