"""Caps on the weights of the data player that are prices: slack costs its size.

This is the hinge loss of SVMs and, where scores are to lie in intervals, the tube of SVR. With a
share nu, the width of the tube is found as well (NuSVR): the sum of weights then has a cap, too.

Everything is in units of the problem's radius, and bounds are moved outward by their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, UNIT
from marginsvm._typing import Array
from marginsvm.certify.capped_offsets import best_capped_offsets
from marginsvm.certify.caps import (
    Caps,
    edge_of_share,
    n_classes_of,
    of_examples,
    room_below,
    sums_of_examples,
)
from marginsvm.certify.tolerances import LARGEST_CAP
from marginsvm.rows import OutputRows, Rows


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
        if isinstance(rows, OutputRows):
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

    def lower_bound(
        self, norm: float, margins: Array, common: float | None = None
    ) -> tuple[float, float]:
        """At the best scale of the predictor, or at a given one."""
        margins = of_examples(margins)
        t = 1.0 / common if common else hinge_scale(norm**2, margins, self.largest)
        slack = np.maximum(1.0 - t * margins, 0.0)
        objective = 0.5 * (t * norm) ** 2 + float(np.sum(self.largest * slack))
        objective *= 1.0 + 2.0 * PAIRWISE
        least = (1.0 - FEW) / np.sqrt(2.0 * objective) if 0.0 < objective < np.inf else 0.0
        return float(least), 1.0 / t


def hinge_caps(caps: Caps | None) -> HingeCaps:
    """The caps of a problem whose slack costs its size."""
    assert isinstance(caps, HingeCaps)
    return caps


def sums_of_columns(values: Array) -> Array:
    """Over all examples, in pairs."""
    return np.asarray(np.ascontiguousarray(values.T).sum(axis=-1))


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
    s = room_below(caps, q) * (1.0 - FEW)
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
    positive, gains = margins > 0.0, caps * margins
    m, gain, below = margins[positive], gains[positive], float(np.sum(gains[~positive]))
    order = np.argsort(-m, kind="stable")
    m, gain = m[order], gain[order]
    pull = below + np.append(np.cumsum(gain[::-1])[::-1], 0.0)  # before each jump
    reached = squared <= pull[1:] * m  # at the jump itself, what is left still pulls on
    i = int(np.count_nonzero(np.logical_and.accumulate(reached)))
    t = pull[i] / squared if squared > 0.0 else np.inf
    # a little beyond the jump, as slack of a rounding error would cost much there
    t = min(t, (1.0 + FEW) / m[i]) if i < len(m) else t
    return float(t) if 0.0 < t < np.inf else 1.0
