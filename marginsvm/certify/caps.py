"""Caps on the weights of the data player: soft margins in which no example counts for too much.

There are two, and both are those of SVMs with the hinge loss. With the price C of slack
(:class:`HingeCaps`), the weights of an example are at most C times that of the example, and their
sum is free. With the share nu of the examples (:class:`ShareCaps`), weights sum to 1, and those of
an example are at most that of the example over nu times that of all. With more than two classes,
what is capped is the sum over the rows of an example: it has slack once, for the class that comes
nearest (Crammer and Singer).

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
from dataclasses import dataclass, replace

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, UNIT
from marginsvm._typing import Array
from marginsvm.certify.capped_offsets import best_capped_offsets
from marginsvm.certify.certificate import at_least
from marginsvm.certify.tolerances import (
    EXCESS_SURCHARGE,
    LARGEST_CAP,
    ROUNDED_SHARE,
    SCALABLE_MARGIN,
)
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


def of_examples(margins: Array) -> Array:
    """The smallest margin of each example, from those of its rows."""
    return np.asarray(margins.reshape(len(margins), -1).min(axis=1))


def sums_of_examples(q: Array) -> Array:
    """The weight of each example, from those of its rows."""
    return np.asarray(q.reshape(len(q), -1).sum(axis=1))


def sums_of_columns(values: Array) -> Array:
    """Over all examples, in pairs."""
    return np.asarray(np.ascontiguousarray(values.T).sum(axis=-1))


def n_classes_of(values: Array) -> int:
    """Number of classes, from an array over all rows: with two, an example has one row."""
    return 2 if values.ndim == 1 else values.shape[1]


@dataclass(frozen=True, eq=False)
class HingeCaps(Caps):
    """Caps that are C times the weights of the examples: slack costs C times its size.

    The margin is ``1 / sqrt(2 P)`` for the objective ``P = |w|^2 / 2 + sum_i c_i max(0, 1 - m_i)``
    of caps c and smallest margins m of the examples: as for the squared loss and for hard margins,
    the inverse length of the best predictor, slack included. Weights ``u = s q`` that stay below
    the caps prove that no objective is below ``s - |A^T u|^2 / 2``.

    Where scores are to lie in intervals, the share ``nu`` limits the sum of the weights of an
    output besides, to nu times the sum of their caps. What costs then is the part of the distances
    that is above some epsilon, and epsilon itself that sum: at the best epsilon, which is as wide
    as all but the worst share of the distances.
    """

    largest: Array
    nu: float | None = None

    @classmethod
    def of(cls, rows: Rows, slack: Array, nu: float | None = None) -> HingeCaps:
        """Caps that are the costs of slack, given the extra coordinates that squared slack has."""
        with np.errstate(over="ignore", divide="ignore"):
            costs = 0.5 * rows.unit**2 / slack  # the same for all rows of an example
        if not costs.max() <= LARGEST_CAP:
            raise ValueError(
                f"C and sample weights times squared norms come to {costs.max():.3g}, and loss="
                f"'hinge' computes with {LARGEST_CAP:g} at most: scale X, or choose a smaller C"
            )
        if rows.reading == "norm":
            return cls(costs, nu)
        return cls(costs.reshape(rows.n_examples, -1)[:, 0])

    def output(self, j: int) -> HingeCaps:
        """The caps of one output."""
        return replace(self, largest=self.largest[:, j])

    @property
    def most(self) -> Array:
        """Largest sum of the weights of each output."""
        share = 1.0 if self.nu is None else self.nu
        return np.asarray(share * sums_of_columns(self.largest) * (1.0 - PAIRWISE))

    def width(self, distances: Array) -> Array:
        """The best epsilon for the distances of scores from intervals, for each output."""
        if self.nu is None:
            return np.zeros(distances.shape[1:])
        columns = (x.reshape(len(x), -1).T for x in (distances, self.largest))
        shares = zip(*columns, np.ravel(self.most), strict=True)
        edges = [-edge_of_share(-x, c, most) for x, c, most in shares]
        return np.maximum(np.array(edges), 0.0).reshape(distances.shape[1:])

    def upper_bound(
        self, q: Array, length: float, mass: float, imbalance: float, farthest: float
    ) -> float:
        """By the best multiple of the weights below the caps.

        The slack is linear in the offsets of k classes between those at which some row of an
        example reaches the margin 1 or another row of it. At the best ones, k - 1 such rows link
        the classes. A link is at most ``1 + r |w|``, where r is the largest norm of an example, so
        that imbalance costs mass as well as length.
        """
        links = n_classes_of(q) - 1
        mass = mass - links * imbalance
        length = length + links * farthest * imbalance
        s = multiple_below_caps(self.largest, sums_of_examples(q), length, mass)
        objective = s * (mass - 0.5 * s * length**2)
        return (1.0 + FEW) / np.sqrt(2.0 * objective) if 0.0 < objective < np.inf else np.inf

    def offsets(self, rows: Rows, margins: Array) -> Array:
        if rows.balanced and rows.n_classes > 2:
            return best_capped_offsets(margins, rows.codes, self.largest, edge=1.0)[0]
        return hinge_offsets(rows, margins, self.largest)

    def lower_bound(self, norm: float, margins: Array) -> tuple[float, float]:
        """At the best scale of the predictor."""
        margins = of_examples(margins)
        t = hinge_scale(norm**2, margins, self.largest)
        slack = np.maximum(1.0 - t * margins, 0.0)
        objective = 0.5 * (t * norm) ** 2 + float(np.sum(self.largest * slack))
        objective *= 1.0 + 2.0 * PAIRWISE
        least = (1.0 - FEW) / np.sqrt(2.0 * objective) if 0.0 < objective < np.inf else 0.0
        return float(least), 1.0 / t


def hinge_caps(caps: Caps | None) -> HingeCaps:
    """The caps of a problem whose slack costs its size."""
    assert isinstance(caps, HingeCaps)
    return caps


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

    def lower_bound(self, norm: float, margins: Array) -> tuple[float, float]:
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


def worst_first(margins: Array, caps: Array, mass: float) -> tuple[Array, Array, int]:
    """Rows in the order of their margins, as far as a mass goes that the worst have first.

    Parameters
    ----------
    margins, caps : ndarray of shape (n,)
        The caps sum to the mass or more, up to rounding.
    mass : float

    Returns
    -------
    order : ndarray of shape (n,)
        Sorted up to the one after ``last`` and further; those after it have no smaller margins.
    left : ndarray of shape (n,)
        What of the mass is left for each of these, once those before it have their caps.
    last : int
        Index, in this order, of the last one for which something is left.
    """
    order = np.arange(len(margins))
    enough = int(min(mass / float(caps.min()) + 3.0, len(order)))  # rows, whatever their caps
    if enough < len(order):
        order = np.argpartition(margins, enough)
    order[:enough] = order[:enough][np.argsort(margins[order[:enough]])]
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


@np.errstate(over="ignore")  # of what is too large, and then is not the least
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
    return min(s, mass / length**2) if length**2 > 0.0 else s


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


@np.errstate(over="ignore")
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
    t = min(t, 1.0 / m[i]) if i < len(m) else t
    return float(t) if 0.0 < t < np.inf else 1.0
