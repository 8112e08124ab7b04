"""Caps on the weights of the data player: soft margins in which no example counts for too much.

There are two, and both are those of SVMs with the hinge loss. With the price C of slack
(:class:`HingeCaps`), weights are at most C times those of the examples, and their sum is free. With
the share nu of the examples (:class:`ShareCaps`), weights sum to 1, and each is at most that of the
example over nu times that of all. Both are for two classes.

Everything is in units of the problem's radius, and bounds are moved outward by their rounding.

References
----------
B. Schoelkopf, A. Smola, R. Williamson, P. Bartlett. New support vector algorithms. Neural
Computation, 2000 (nu).

R. T. Rockafellar, S. Uryasev. Optimization of conditional value-at-risk. Journal of Risk, 2000
(the mean of the worst share as a maximum).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, UNIT
from marginsvm._typing import Array
from marginsvm.certify.certificate import at_least
from marginsvm.certify.tolerances import EXCESS_SURCHARGE, ROUNDED_SHARE, SCALABLE_MARGIN
from marginsvm.rows import Rows


class Caps(ABC):
    """Largest weights of the rows, and what they make of the bounds.

    Attributes
    ----------
    largest : ndarray of shape rows.shape
    nu : float or None
        Share of the examples whose mean margin is maximised; None: the price of slack is given.
    """

    largest: Array
    nu: float | None

    @abstractmethod
    def upper_bound(
        self, q: Array, length: float, mass: float, imbalance: float, farthest: float
    ) -> float:
        """Upper bound that weights prove.

        Parameters
        ----------
        q : ndarray of shape rows.shape
        length : float
            Upper bound on ``|A^T q|``, with a surcharge for the imbalance of q.
        mass : float
            Lower bound on the sum of q.
        imbalance : float
            How far q is from weights that are balanced, as a sum of absolute values.
        farthest : float
            Largest norm of an image of an example.
        """

    @abstractmethod
    def offsets(self, rows: Rows, margins: Array) -> Array:
        """Class offsets that are best for these margins; of several, those in the middle."""

    @abstractmethod
    def lower_bound(self, norm: float, margins: Array) -> tuple[float, float]:
        """Lower bound on the margin of a predictor, and its margin that is published as 1.

        Parameters
        ----------
        norm : float
            Upper bound on the norm of the predictor.
        margins : ndarray of shape rows.shape
            Lower bounds on its margins.

        Returns
        -------
        bound, common : float
            ``common`` is 0 where the predictor has no such margin.
        """


@dataclass(frozen=True, eq=False)
class HingeCaps(Caps):
    """Caps that are C times the weights of the examples: slack costs C times its size.

    The margin is ``1 / sqrt(2 P)`` for the objective ``P = |w|^2 / 2 + sum_r c_r max(0, 1 - m_r)``
    of margins m and caps c: as for the squared loss and for hard margins, the inverse length of the
    best predictor, slack included. Weights ``u = s q`` that stay below the caps prove that no
    objective is below ``s - |A^T u|^2 / 2``.
    """

    largest: Array
    nu: None = field(default=None, init=False)

    @classmethod
    def of(cls, rows: Rows, costs: Array) -> HingeCaps:
        """Caps that are the costs of slack.

        Raises
        ------
        ValueError
            If there are more than two classes.
        """
        if rows.n_classes > 2:
            raise ValueError(
                f"loss='hinge' is for two classes, but y has {rows.n_classes}: use "
                "sklearn.multiclass.OneVsOneClassifier(MaxMarginClassifier(...)), the classifier "
                "that SVC is, or loss='squared_hinge', which solves for all classes together"
            )
        return cls(costs)

    def upper_bound(
        self, q: Array, length: float, mass: float, imbalance: float, farthest: float
    ) -> float:
        """By the best multiple of the weights below the caps.

        The best intercept gives some row the margin 1, so that it is below ``1 + r |w|``. So the
        imbalance is taken from the mass as well.
        """
        mass = mass - 2.0 * imbalance
        s = multiple_below_caps(self.largest, q, length, mass)
        objective = s * (mass - 0.5 * s * length**2)
        return (1.0 + FEW) / np.sqrt(2.0 * objective) if 0.0 < objective < np.inf else np.inf

    def offsets(self, rows: Rows, margins: Array) -> Array:
        return hinge_offsets(rows, margins, self.largest)

    def lower_bound(self, norm: float, margins: Array) -> tuple[float, float]:
        """At the best scale of the predictor."""
        t = hinge_scale(norm**2, margins, self.largest)
        slack = np.maximum(1.0 - t * margins, 0.0)
        objective = 0.5 * (t * norm) ** 2 + float(np.sum(self.largest * slack))
        objective *= 1.0 + 2.0 * PAIRWISE
        least = (1.0 - FEW) / np.sqrt(2.0 * objective) if 0.0 < objective < np.inf else 0.0
        return float(least), 1.0 / t


@dataclass(frozen=True, eq=False)
class ShareCaps(Caps):
    """Caps that leave the weights, which sum to 1, to a share of the examples or more.

    The margin is the mean of the worst margins of a share ``nu`` of the examples: the least
    average of margins by such weights. With an unpenalised intercept, each class has half of
    the weight, and so the mean is that of the classes' own worst margins.
    """

    largest: Array
    nu: float

    @classmethod
    def of(cls, rows: Rows, nu: float) -> ShareCaps:
        """Caps of a share of the examples, by their weights.

        Raises
        ------
        ValueError
            If there are more than two classes; or if one of them has too little weight to be
            half of what such weights sum to.
        """
        if rows.n_classes > 2:
            raise ValueError(
                f"nu is for two classes, but y has {rows.n_classes}: use "
                "sklearn.multiclass.OneVsOneClassifier, the classifier that NuSVC is, or nu=None"
            )
        m = np.asarray(rows.weighted(np.ones(rows.shape)), dtype=np.float64)
        size = np.full(rows.shape, nu * m.sum())
        if rows.balanced:
            of_class = 2.0 * np.bincount(rows.codes, m)
            most = float(of_class.min() / m.sum()) * (1.0 + ROUNDED_SHARE)
            if nu > most:
                raise ValueError(
                    f"nu={nu:g} is infeasible, as in NuSVC: with an intercept, each class takes "
                    f"half of the share, and the smaller one is {0.5 * most:.3g} of all. Choose "
                    f"nu <= {at_least(most)}, class_weight='balanced', or "
                    "fit_intercept=False"
                )
            size = np.minimum(size, of_class[rows.codes])
        return cls(m / size, float(nu))

    def upper_bound(
        self, q: Array, length: float, mass: float, imbalance: float, farthest: float
    ) -> float:
        """The norm of ``A^T q``, and a surcharge for weights that exceed the caps.

        Let the excess go to other rows. As the best intercept gives the margin at the edge of the
        share to rows of either class, all margins of a predictor of norm 1 are below twice the
        largest norm of an example, and so the average margin grows by at most four times that for
        each unit of excess. The check of a certificate may count norms from another origin.
        """
        most = (mass * (1.0 - PAIRWISE)) * self.largest
        excess = float(np.sum(np.maximum(q - most, 0.0))) * (1.0 + PAIRWISE)
        return (length + EXCESS_SURCHARGE * farthest * excess) / mass

    def offsets(self, rows: Rows, margins: Array) -> Array:
        """The margins at the edge of either class' share become equal."""
        if not rows.balanced:
            return np.zeros(1)
        first, second = (
            edge_of_share(margins[members], self.largest[members], 0.5)
            for members in (rows.codes == 0, rows.codes == 1)
        )
        return np.array([-0.25, 0.25]) * (first - second)

    def lower_bound(self, norm: float, margins: Array) -> tuple[float, float]:
        """The mean of the worst margins is ``rho - sum_r c_r max(0, rho - m_r)`` at the best rho.

        Any other rho gives less. The best is the margin at the edge of the share.
        """
        rho = edge_of_share(margins, self.largest, 1.0)
        missing = float(np.sum(self.largest * np.maximum(rho - margins, 0.0)))
        mean = rho - missing * (1.0 + 2.0 * PAIRWISE)
        mean -= FEW * (abs(rho) + missing)
        if norm == 0.0:
            return 0.0, 0.0
        return mean / norm, rho if mean > SCALABLE_MARGIN * norm else 0.0


def worst_first(margins: Array, caps: Array, mass: float) -> tuple[Array, Array, int]:
    """Rows in the order of their margins, and which of them share a mass, the worst first.

    Parameters
    ----------
    margins, caps : ndarray of shape (n,)
        The caps sum to the mass or more, up to rounding.
    mass : float

    Returns
    -------
    order : ndarray of shape (n,)
    left : ndarray of shape (n,)
        What of the mass is left for each of these, once those before it have their caps.
    last : int
        Index, in this order, of the last one for which something is left.
    """
    order = np.argsort(margins, kind="stable")
    passed = np.cumsum(caps[order])
    last = min(int(np.searchsorted(passed, mass)), len(order) - 1)
    return order, mass - np.append(0.0, passed[:-1]), last


def edge_of_share(margins: Array, caps: Array, mass: float) -> float:
    """Margin of the row that the worst ones, with their caps as weights, need to reach a mass.

    Where they reach it without a part of another row, it is in the middle between the last one and
    the next.
    """
    order, left, last = worst_first(margins, caps, mass)
    rounding = len(order) * UNIT * mass
    first = last
    if left[last] <= rounding and last > 0:
        first = last - 1
    elif last + 1 < len(order) and left[last + 1] >= -rounding:
        last += 1
    return 0.5 * float(margins[order[first]] + margins[order[last]])


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
