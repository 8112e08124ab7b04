"""Caps on the weights of the data player: soft margins in which no example counts for too much.

There are two, and both are those of SVMs with the hinge loss. With the price C of slack
(:class:`HingeCaps`), the weights of an example are at most C times that of the example, and their
sum is free. With the share nu of the examples (:class:`ShareCaps`), weights sum to 1, and those of
an example are at most that of the example over nu times that of all.
With more than two classes, what is capped is the sum over the rows of an example: it has slack
once, for the class that comes nearest (Crammer and Singer).

Everything is in units of the problem's radius.

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

from dataclasses import dataclass, replace

import numpy as np

from marginsvm._rounding import UNIT, at_least
from marginsvm._typing import Array
from marginsvm.problem.capped_offsets import best_capped_offsets
from marginsvm.problem.responses import worst_first
from marginsvm.problem.rows import OutputRows, Rows

# Excess of a share over the largest that the classes allow (relative to it): rounding of both.
ROUNDED_SHARE = 1e-12
# Largest cap (in radii): squares of sums of such weights still are numbers of float64.
LARGEST_CAP = 1e100


@dataclass(frozen=True, eq=False)
class ShareCaps:
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


@dataclass(frozen=True, eq=False)
class HingeCaps:
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
