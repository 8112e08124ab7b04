"""What a predictor and weights prove where no example may count for too much.

Both are for two classes: each example has one row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginsvm.certify.checker.numbers import Numbers


@dataclass(frozen=True)
class Capped(ABC):
    """Largest weights of the rows.

    Attributes
    ----------
    caps : ndarray of shape (n, 1)
    numbers : Floats or Rationals
    """

    caps: NDArray
    numbers: Numbers

    @abstractmethod
    def lower_bound(self, values: NDArray, norm: Any) -> Any:
        """Margin of a predictor with these values on the rows."""

    @abstractmethod
    def upper_bound(self, q: NDArray, length: Any, imbalance: Any, farthest: Any) -> Any:
        """Bound that weights q prove.

        Parameters
        ----------
        q : ndarray of shape (n, 1)
            Weights, not all 0.
        length : number
            ``|A^T q|``, with a surcharge for the imbalance.
        imbalance : number
            Difference of the weights of the classes, where they must be the same; else 0.
        farthest : number
            Largest norm of an example.
        """


class PricedSlack(Capped):
    """Slack costs C times the weight of the example: the caps."""

    def lower_bound(self, values: NDArray, norm: Any) -> Any:
        missing = np.maximum(1 - values, 0 * values)
        squared = norm * norm + 2 * (self.caps * missing).sum()
        return 1 / self.numbers.sqrt(squared)

    def upper_bound(self, q: NDArray, length: Any, imbalance: Any, farthest: Any) -> Any:
        """At the best multiple of the weights below the caps.

        The best intercept gives some example the value 1, so that it is at most 1 plus the radius
        times the norm of the predictor: imbalance costs mass as well as length.
        """
        used, mass = q > 0, q.sum() - imbalance
        if not mass > 0:
            return np.inf
        s = (self.caps[used] / q[used]).min()
        if length > 0:
            s = min(s, mass / (length * length))
        return 1 / self.numbers.sqrt(s * (2 * mass - s * length * length))


class WorstShare(Capped):
    """The mean of the worst values of a share of the examples; weights sum to 1."""

    def lower_bound(self, values: NDArray, norm: Any) -> Any:
        """Fill the share, worst values first."""
        order = np.argsort(values.ravel(), kind="stable")
        values, caps = values.ravel()[order], self.caps.ravel()[order]
        left = 1 - (np.cumsum(caps) - caps)
        mean = (np.maximum(np.minimum(caps, left), 0 * caps) * values).sum()
        return mean / norm if norm > 0 else norm

    def upper_bound(self, q: NDArray, length: Any, imbalance: Any, farthest: Any) -> Any:
        """What exceeds the caps has to go to other rows.

        The best intercept gives the value at the edge of the share to an example of either class.
        So it is at most the radius for a predictor of norm 1, and values are at most twice that:
        what moves changes the average by at most four times as much.
        """
        mass = q.sum()
        excess = np.maximum(q - mass * self.caps, 0 * q).sum()
        return (length + 4 * farthest * excess) / mass


def capped(
    estimator: Any, codes: NDArray, weight: NDArray, numbers: Numbers, free_intercept: bool
) -> Capped | None:
    """The caps of a fitted estimator's problem; None: weights are not capped.

    Parameters
    ----------
    estimator : fitted estimator
    codes : ndarray of shape (n,)
        Classes of the examples.
    weight : ndarray of shape (n,)
        Weights of the examples.
    numbers : Floats or Rationals
    free_intercept : bool
        Whether the classes must weigh the same.
    """
    weight = numbers.array(weight)
    if getattr(estimator, "nu", None) is not None:
        share = numbers.number(estimator.nu) * weight.sum()
        size = share + 0 * weight
        if free_intercept:  # a class has half of the share, or all of itself, if that is less
            for c in (0, 1):
                size[codes == c] = min(2 * weight[codes == c].sum(), share)
        return WorstShare((weight / size)[:, None], numbers)
    if np.isfinite(estimator.C) and getattr(estimator, "loss", "squared_hinge") == "hinge":
        return PricedSlack((numbers.number(estimator.C) * weight)[:, None], numbers)
    return None
