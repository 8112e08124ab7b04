"""Caps on the weights of the data player: soft margins in which no example counts for too much.

There are two, and both are those of SVMs with the hinge loss. With the price C of slack
(:class:`~marginsvm.certify.prices.HingeCaps`), the weights of an example are at most C times that
of the example, and their sum is free. With the share nu of the examples (:class:`ShareCaps`),
weights sum to 1, and those of an example are at most that of the example over nu times that of all.
With more than two classes, what is capped is the sum over the rows of an example: it has slack
once, for the class that comes nearest (Crammer and Singer).

Everything is in units of the problem's radius, and bounds are moved outward by their rounding.

References
----------
B. Schoelkopf, A. Smola, R. Williamson, P. Bartlett. New support vector algorithms. Neural
Computation, 2000 (nu).

K. Crammer, Y. Singer. On the algorithmic implementation of multiclass kernel-based vector machines.
JMLR, 2001.

R. T. Rockafellar, S. Uryasev. Optimization of conditional value-at-risk. Journal of Risk, 2000
(the mean of the worst share as a maximum).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, UNIT, at_least
from marginsvm._typing import Array
from marginsvm.certify.capped_offsets import best_capped_offsets
from marginsvm.certify.tolerances import (
    EXCESS_SURCHARGE,
    ROUNDED_SHARE,
    SCALABLE_MARGIN,
)
from marginsvm.problem.responses import worst_first
from marginsvm.rows import Rows


class Caps(ABC):
    """Largest weights of the examples, and what they make of the bounds.

    Attributes
    ----------
    largest : ndarray of shape (n_examples,)
    nu : float or None
        Share of the examples whose mean margin is maximised or, where scores are to lie in
        intervals, that may be outside of a tube; None: the price of slack is given, and the width
        of the tube.
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
            Upper bound on ``|A^T q|``.
        mass : float
            Lower bound on the sum of q.
        imbalance : float
            How far q is from weights that are balanced, as a sum of absolute values, times the
            surcharge for a unit of it of two classes.
        farthest : float
            Largest norm of an image of an example.
        """

    @abstractmethod
    def offsets(self, rows: Rows, margins: Array) -> Array:
        """Class offsets that are best for these margins; of several, those in the middle."""

    @abstractmethod
    def lower_bound(
        self, norm: float, margins: Array, common: float | None = None
    ) -> tuple[float, float]:
        """Lower bound on the margin of a predictor, and its margin that is published as 1.

        Parameters
        ----------
        norm : float
            Upper bound on the norm of the predictor.
        margins : ndarray of shape rows.shape
            Lower bounds on its margins.
        common : float, default=None
            Its margin that is published as 1, if that is chosen already; None: the best one.

        Returns
        -------
        bound, common : float
            ``common`` is 0 where the predictor has no such margin.
        """


def of_examples(margins: Array) -> Array:
    """The smallest margin of each example, from those of its rows."""
    return np.asarray(margins.reshape(len(margins), -1).min(axis=1))


def sums_of_examples(q: Array) -> Array:
    """The weight of each example, from those of its rows."""
    return np.asarray(q.reshape(len(q), -1).sum(axis=1))


def room_below(caps: Array, q: Array) -> float:
    """Largest factor of weights that leaves none above its cap; infinite where none has weight."""
    used = q > 0.0
    return float((caps[used] / q[used]).min(initial=np.inf))


def n_classes_of(values: Array) -> int:
    """Number of classes, from an array over all rows: with two, an example has one row."""
    return 2 if values.ndim == 1 else values.shape[1]


@dataclass(frozen=True, eq=False)
class ShareCaps(Caps):
    """Caps that leave the weights, which sum to 1, to a share of the examples or more.

    The margin is the mean of the worst margins of a share ``nu`` of the examples, each its smallest
    of all classes: the least average of margins by such weights. With an unpenalised intercept, the
    rows of each class have as much of the weight as those held against it: of two classes half, so
    that the mean is that of the classes' own worst margins.
    """

    largest: Array
    nu: float

    @classmethod
    def of(cls, rows: Rows, nu: float) -> ShareCaps:
        """Caps of a share of the examples, by their weights.

        Raises
        ------
        ValueError
            If the examples of a class outweigh the others, so that these have too little weight to
            be half of what balanced weights sum to.
        """
        m = np.ones(rows.n_examples) if rows.weights is None else rows.weights.astype(np.float64)
        size = nu * m.sum()
        if rows.balanced:
            others = 2.0 * float((m.sum() - np.bincount(rows.codes, m)).min())
            most = others / float(m.sum()) * (1.0 + ROUNDED_SHARE)
            if nu > most:
                raise ValueError(
                    f"nu={nu:g} is infeasible, as in NuSVC: with an intercept, no class takes "
                    f"more than half of the share, and all but the largest are {0.5 * most:.3g} of "
                    f"all examples. Choose nu <= {at_least(most)}, class_weight='balanced', or "
                    "fit_intercept=False"
                )
            size = min(size, others)
        return cls(m / size, float(nu))

    def upper_bound(
        self, q: Array, length: float, mass: float, imbalance: float, farthest: float
    ) -> float:
        """The norm of ``A^T q``, and a surcharge for weights that exceed the caps.

        Let the excess go to other rows. With two classes, the best intercept gives the margin at
        the edge of the share to rows of either class, so that all margins of a predictor of norm 1
        are below twice the largest norm r of an example, and the average margin grows by at most
        four times that for each unit of excess. With k classes, the offsets and the edge are where
        k rows reach the edge or another row of their example: links of at most r that connect the
        classes with one cycle. So the edge is below k r, offsets differ by less than k^2 r, and
        either surcharge is larger by that square. The check of a certificate may count norms from
        another origin.
        """
        k = n_classes_of(q)
        links = 1.0 if k == 2 else float(k * k)
        most = (mass * (1.0 - PAIRWISE)) * self.largest
        excess = np.maximum(sums_of_examples(q) - most, 0.0).sum() * (1.0 + PAIRWISE)
        surcharge = imbalance + EXCESS_SURCHARGE * float(excess)
        return (length + links * farthest * surcharge) / mass

    def offsets(self, rows: Rows, margins: Array) -> Array:
        """Of two classes, the margins at the edge of either class' share become equal."""
        if not rows.balanced:
            return np.zeros(1)
        if rows.n_classes > 2:
            return best_capped_offsets(margins, rows.codes, self.largest, edge=None)[0]
        first, second = (
            edge_of_share(margins[members], self.largest[members], 0.5)
            for members in (rows.codes == 0, rows.codes == 1)
        )
        return np.array([-0.25, 0.25]) * (first - second)

    def lower_bound(
        self, norm: float, margins: Array, common: float | None = None
    ) -> tuple[float, float]:
        """The mean of the worst margins is ``rho - sum_i c_i max(0, rho - m_i)`` at the best rho.

        Any other rho gives less. The best is the margin at the edge of the share.
        """
        margins = of_examples(margins)
        rho = edge_of_share(margins, self.largest, 1.0)
        missing = float(np.sum(self.largest * np.maximum(rho - margins, 0.0)))
        mean = rho - missing * (1.0 + 2.0 * PAIRWISE)
        mean -= FEW * (abs(rho) + missing)
        if norm == 0.0:
            return 0.0, 0.0
        return mean / norm, rho if mean > SCALABLE_MARGIN * norm else 0.0

    def filled(self, q: Array) -> Array:
        """Weights near q, none of them below 0, that sum to 1 and keep their caps.

        What they lack goes to those that have some weight and room, in proportion to the room; and
        to all others only where these are full.
        """
        q = np.minimum(q / q.sum(), self.largest)
        for some in (q > 0.0, np.full(q.shape, True)):
            room = np.where(some, self.largest - q, 0.0)
            free, missing = float(room.sum()), 1.0 - float(q.sum())
            if free > 0.0 and missing > PAIRWISE:
                q = q + room * min(missing / free, 1.0)
        return q


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
