"""Bounds on the least norm of predictors whose scores lie in given intervals.

Let theta have all its scores ``x_i . theta`` in their intervals ``[l_i, h_i]``. For any weights
alpha, ``<A^T alpha, theta>`` is the sum of the scores with these weights. So it is no less than the
*gain* of alpha: the sum of ``l_i alpha_i`` over positive and of ``h_i alpha_i`` over negative
weights. It is no more than ``|A^T alpha|_q |theta|_p``. Hence every such theta has a norm of at
least ``gain / |A^T alpha|_q`` (weak duality). If the intervals are widened by delta on both sides,
the gain is less by ``delta sum |alpha_i|``. With a soft margin, theta has one more coordinate for
each row, by which its score may leave the interval.

All lengths are in units of the radius of the problem, and all bounds allow for rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE
from marginsvm._typing import Array
from marginsvm.certify.certifiable import Certifiable
from marginsvm.rows import Intervals, Vector


class Regression(Certifiable, Protocol):
    """What these bounds need of a problem."""

    def scores(self, w: Vector) -> Array:
        """Scores of all examples, in float64."""
        ...


@dataclass(frozen=True)
class SignedWeights:
    """Weights of either sign whose absolute values sum to 1, see ``Distribution``."""

    image: Array
    q: Array
    moved = 0.0
    mass = 1.0

    def weights(self) -> Array:
        return self.q

    def imbalance(self) -> float:
        return 0.0


@dataclass(frozen=True)
class NormBound:
    """What some weights prove about the norms of predictors that fit.

    Attributes
    ----------
    vector : Vector
        ``A^T q`` and the weights q, whose absolute values sum to 1, or all are 0.
    length : float
        ``|A^T q|``, slack included, at most.
    gain : float
        Their gain, at least.
    """

    vector: Vector
    length: float
    gain: float

    def widened(self, delta: float) -> float:
        """Lower bound on the norm where the intervals are widened by ``delta``."""
        gain = self.gain - delta * (1.0 + PAIRWISE) * float(np.abs(self.vector.coef).sum())
        if gain <= 0.0:
            return 0.0
        return gain / self.length * (1.0 - FEW) if self.length > 0.0 else np.inf

    @property
    def value(self) -> float:
        """Lower bound on the norm of every predictor that fits."""
        return self.widened(0.0)


def norm_bound(problem: Regression, intervals: Intervals, alpha: Array) -> NormBound:
    """What weights prove, whatever they are."""
    alpha = intervals.admissible(alpha)
    size = float(np.abs(alpha).sum())
    q = alpha / size if size > 0.0 else np.zeros_like(alpha)
    vector = problem.combine(q, precise=True)
    length = problem.errors.proof_norm(SignedWeights(vector.image, q))
    if problem.slack is not None:
        length = float(np.hypot(length, np.sqrt(np.sum(problem.slack * q * q)))) * (1.0 + PAIRWISE)
    return NormBound(vector, length, intervals.gain(q))


@dataclass(frozen=True)
class Fit:
    """A predictor, and how far it is from fitting.

    Attributes
    ----------
    vector : Vector
    norm : float
        Its norm, that of its slack included, at most.
    violation : float
        Largest distance of one of its scores to its interval, at most.
    allowed : float
        What it may be compared with: predictors that violate the intervals by no more than this.
        It is the violation or, with a soft margin, 0, as slack makes up for it.
    cost : float
        Root of the sum of squared distances to the intervals, weighted; with a soft margin, the
        norm.
    """

    vector: Vector
    norm: float
    violation: float
    allowed: float
    cost: float


def measured_fit(problem: Regression, intervals: Intervals, vector: Vector) -> Fit:
    """Norm and violation of the predictor of a vector."""
    norm = problem.errors.predictor_norm(vector)
    error = problem.errors.margin_error(vector, norm, 0.0) + FEW * intervals.size
    excess = intervals.excess(problem.scores(vector)) + error
    violation = max(float(excess.max()), 0.0) * (1.0 + FEW)
    squares = np.maximum(excess, 0.0) ** 2
    if problem.slack is None:
        cost = float(np.sqrt(problem.rows.weighted(squares).sum()))
        return Fit(vector, norm, violation, violation, cost)
    used = float(np.sqrt(np.sum(squares / problem.slack)))
    norm = float(np.hypot(norm, used)) * (1.0 + PAIRWISE)
    return Fit(vector, norm, violation, 0.0, norm)
