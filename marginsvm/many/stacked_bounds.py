"""Both bounds of a stack of fits, with rounding allowed for, so that they hold as printed.

They prove what :mod:`marginsvm.certify.bounds` and :mod:`marginsvm.certify.caps` prove of one
problem, for many problems of two classes at once. Those measure a problem in its radius, ask it for
passes over its examples, allow for the rounding of its geometry, and take other sums in extended
precision where that is not enough. Here are only inner products, in the user's units, of the
numbers that are published, and one allowance: every sum, whatever its order, of ``t`` terms is off
by at most ``t`` roundings of the sum of their absolute values. So the two share constants and
formulas of a line, and no function: with an axis of problems in front, each number of a single fit
would be an array, and what only one of the two has would be most of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, UNIT
from marginsvm._typing import Array
from marginsvm.certify.tolerances import IMBALANCE_SURCHARGE
from marginsvm.many.stack import Stack
from marginsvm.many.stacked_pivoting import StackedProblems

# Roundings beside those of sums: subtracting the mean, scaling, signs.
_OTHERS = 32
# Squared lengths between which nothing of a bound overflows or loses digits (units of x, squared).
_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-100, 1e100


@dataclass(frozen=True)
class Loss:
    """What slack costs.

    Attributes
    ----------
    hinge : bool
        Its size, in place of its square.
    costs : ndarray of shape (B, n)
        For each unit; infinite: there is no slack.
    """

    hinge: bool
    costs: Array

    @property
    def hard(self) -> bool:
        """Whether there is no slack."""
        return bool(np.isinf(self.costs).any())

    def statement(self, K: Array, y: Array, *, balanced: bool) -> StackedProblems:
        """The problems of these Gram matrices and labels."""
        none = np.zeros_like(self.costs)
        own = none if self.hinge else 0.5 / self.costs
        cap = self.costs if self.hinge else none + np.inf
        return StackedProblems(K, y, own, cap, balanced)


@dataclass(frozen=True)
class Fits:
    """A stack of fits: what is published of each.

    Attributes
    ----------
    dual : ndarray of shape (B, n)
        Coefficients of the examples in the predictor, with signs.
    intercept : ndarray of shape (B,)
        About what was subtracted from the examples.
    margin, bound : ndarray of shape (B,)
        Lower and upper bound on the best margin (margin units).
    separates : ndarray of bool, shape (B,)
        Whether the predictor separates the examples, without slack.
    radius : ndarray of shape (B,)
        Largest length of an example, at most.
    """

    dual: Array
    intercept: Array
    margin: Array
    bound: Array
    separates: Array
    radius: Array

    @property
    def gap(self) -> Array:
        """Relative gaps between the bounds; 1 where nothing is proved."""
        above = np.maximum(self.bound - self.margin, 0.0)
        with np.errstate(invalid="ignore"):
            return np.where(self.bound < np.inf, above / self.bound, 1.0)


@np.errstate(all="ignore")  # what overflows or is no number proves nothing, and is not certified
def proved(stack: Stack, statement: StackedProblems, loss: Loss, v: Array, b: Array) -> Fits:
    """Scale the solutions, and bound the best margins from both sides.

    Parameters
    ----------
    stack : Stack
    statement : Statement
        Of the same problems.
    loss : Loss
    v : ndarray of shape (B, n)
        Weights with the signs of the classes.
    b : ndarray of shape (B,)
        Intercepts.

    Returns
    -------
    Fits
        With bounds of 0 and infinity where the numbers prove nothing.
    """
    y, balanced = statement.y, statement.balanced
    u = np.clip(y * v, 0.0, statement.cap)
    if balanced:
        u = _evened(u, y)
    v, g = y * u, _times(stack.K, y * u)
    if loss.hard:
        b = _middle(g, y) if balanced else b
        least = (y * (g + b[:, None])).min(axis=1)
        scale = np.where(least > 0.0, least, 1.0)
        v, g, b = v / scale[:, None], g / scale[:, None], b / scale
    elif loss.hinge and balanced:
        b = _least_slack(g, y, loss.costs)
    squares = stack.squares.max(axis=1)
    n, mass = v.shape[1], np.abs(v).sum(axis=1)
    # of inner products, and of sums of them and of examples, for each unit of their size
    sums = 1.01 * UNIT * (2 * stack.terms + 3 * n + _OTHERS)
    highest = squares * (1.0 + sums)
    squared = (v * g).sum(axis=1)
    norm = np.sqrt(squared + 3.0 * sums * highest * mass**2) * (1.0 + PAIRWISE)
    # the part of what was subtracted is in the intercept
    error = sums * (highest * mass + norm * stack.far) + FEW * np.abs(b)
    margins = y * (g + b[:, None]) - error[:, None]
    lower = _lower(loss, norm, margins)
    upper = _upper(loss, statement, v, squared, sums, np.sqrt(highest))
    separates = margins.min(axis=1) > 0.0
    sane = (squares > _SMALLEST_SQUARE) & (squares < _LARGEST_SQUARE) & np.isfinite(v).all(axis=1)
    sane &= np.isfinite(b) & np.isfinite(lower) & (upper > 0.0) & (squared > 0.0)
    sane &= separates if loss.hard else mass > 0.0
    lower, upper = np.where(sane, lower, 0.0), np.where(sane, upper, np.inf)
    return Fits(v, b, lower, upper, separates & sane, _radius(stack, balanced))


def weights_of(dual: Array) -> Array:
    """The distributions over the examples that dual coefficients are multiples of."""
    q = np.abs(dual)
    return np.asarray(q / q.sum(axis=-1, keepdims=True))


def _lower(loss: Loss, norm: Array, margins: Array) -> Array:
    """Lower bounds on margins, from norms and from margins that are no larger than the true ones.

    Of a soft margin, it is ``1 / sqrt(2 P)`` for the objective ``P``.
    """
    if loss.hard:
        return margins.min(axis=1) / norm
    slack = np.maximum(1.0 - margins, 0.0)
    slack = loss.costs * (slack if loss.hinge else slack * slack)
    twice = (norm**2 + 2.0 * slack.sum(axis=1)) * (1.0 + 2.0 * PAIRWISE)
    return np.asarray((1.0 - FEW) / np.sqrt(twice))


def _upper(
    loss: Loss, statement: StackedProblems, v: Array, squared: Array, sums: float, farthest: Array
) -> Array:
    """Upper bounds that the weights prove, see :func:`marginsvm.certify.bounds.upper_bound`."""
    q, mass = weights_of(v), np.abs(v).sum(axis=1)
    n = v.shape[1]
    total = q.sum(axis=1) * (1.0 - UNIT * (n + 8))
    squared = squared / mass**2 + 3.0 * sums * farthest**2
    if not (loss.hard or loss.hinge):
        squared = squared + (statement.own * q * q).sum(axis=1)
    length = np.sqrt(squared) * (1.0 + 2.0 * PAIRWISE)
    off = np.zeros(len(v))
    if statement.balanced:
        off = np.abs((statement.y * q).sum(axis=1)) + UNIT * (n + 8)
        off = IMBALANCE_SURCHARGE * off
    if not loss.hinge or loss.hard:
        return np.asarray((length + farthest * off) / total * (1.0 + FEW))
    total, length = total - off, length + farthest * off
    used = np.where(q > 0.0, statement.cap / np.where(q > 0.0, q, 1.0), np.inf)
    s = np.minimum(used.min(axis=1) * (1.0 - FEW), total / length**2)
    objective = s * (total - 0.5 * s * length**2)
    return np.where(objective > 0.0, (1.0 + FEW) / np.sqrt(2.0 * objective), np.inf)


def _evened(u: Array, y: Array) -> Array:
    """Weights of which either class has the same sum, up to rounding: the smaller one."""
    one = np.where(y > 0.0, u, 0.0).sum(axis=1, keepdims=True)
    other = np.where(y < 0.0, u, 0.0).sum(axis=1, keepdims=True)
    least = np.minimum(one, other)
    return u * np.where(y > 0.0, least / one, least / other)


def _middle(g: Array, y: Array) -> Array:
    """Intercepts halfway between the classes."""
    above = np.where(y > 0.0, g, np.inf).min(axis=1)
    below = np.where(y < 0.0, g, -np.inf).max(axis=1)
    return np.asarray(-0.5 * (above + below))


def _least_slack(g: Array, y: Array, costs: Array) -> Array:
    """Intercepts with the least slack; see :func:`marginsvm.certify.prices.hinge_offsets`."""
    lines, at = np.arange(len(g)), y - g
    order = np.argsort(at, axis=1, kind="stable")
    at, passed = np.take_along_axis(at, order, 1), np.cumsum(costs[lines[:, None], order], axis=1)
    slope = passed - np.where(y > 0.0, costs, 0.0).sum(axis=1, keepdims=True)
    slope[np.abs(slope) <= slope.shape[1] * UNIT * passed[:, -1:]] = 0.0
    low, high = (slope < 0.0).sum(axis=1), (slope <= 0.0).sum(axis=1)
    return np.asarray(0.5 * (at[lines, low] + at[lines, np.minimum(high, g.shape[1] - 1)]))


def _radius(stack: Stack, balanced: bool) -> Array:
    """Largest length of an example; counted from the mean where predictors are balanced."""
    squares = stack.squares
    if balanced:
        squares = squares - 2.0 * stack.K.mean(axis=2) + stack.mean_square[:, None]
    return np.asarray(np.sqrt(np.maximum(squares.max(axis=1), 0.0)))


def _times(K: Array, v: Array) -> Array:
    return np.asarray((K @ v[:, :, None])[:, :, 0])
