"""What a predictor and weights prove where no example may count for too much.

With more than two classes, what counts is an example: its worst value, and the sum of the weights
on its rows.
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
    """Largest weights of the examples.

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
        q : ndarray of shape (n, 1) or (n, k)
            Weights, not all 0; one row an example with two classes.
        length : number
            ``|A^T q|``.
        imbalance : number
            How far the classes are from weighing the same, as a sum of absolute values, where they
            must; else 0.
        farthest : number
            Largest norm of an example.
        """


class PricedSlack(Capped):
    """Slack costs C times the weight of the example: the caps."""

    def lower_bound(self, values: NDArray, norm: Any) -> Any:
        worst = values.min(axis=1)[:, None]
        missing = np.maximum(1 - worst, 0 * worst)
        squared = norm * norm + 2 * (self.caps * missing).sum()
        return 1 / self.numbers.sqrt(squared)

    def upper_bound(self, q: NDArray, length: Any, imbalance: Any, farthest: Any) -> Any:
        """At the best multiple of the weights below the caps.

        At the best offsets of k classes, these are linked by k - 1 examples, each of which has the
        value 1 against another class, or the same value against two. Over a link, offsets differ by
        at most 1 plus the length of a row times the norm of the predictor: imbalance costs mass as
        well as length.
        """
        links = max(q.shape[1] - 1, 1)
        of_example = q.sum(axis=1)[:, None]
        used, mass = of_example > 0, q.sum() - links * imbalance
        length = length + links * farthest * imbalance
        if not mass > 0:
            return np.inf
        with np.errstate(over="ignore"):  # of what is too large, and then is not the least
            s = (self.caps[used] / of_example[used]).min()
        if length > 0:
            s = min(s, mass / (length * length))
        return 1 / self.numbers.sqrt(s * (2 * mass - s * length * length))

    def nu(self, q: NDArray) -> Any:
        """Largest share for which weights that sum to 1 exceed no cap of :class:`WorstShare`."""
        of_example = q.sum(axis=1)[:, None]
        used = of_example > 0
        with np.errstate(over="ignore"):
            return (self.caps[used] / of_example[used]).min() / self.caps.sum()


class WorstShare(Capped):
    """The mean of the worst values of a share of the examples; weights sum to 1."""

    def lower_bound(self, values: NDArray, norm: Any) -> Any:
        """Fill the share, worst values first."""
        worst, caps = values.min(axis=1), self.caps.ravel()
        order = np.argsort(worst, kind="stable")
        worst, caps = worst[order], caps[order]
        left = 1 - (np.cumsum(caps) - caps)
        mean = (np.maximum(np.minimum(caps, left), 0 * caps) * worst).sum()
        return mean / norm if norm > 0 else norm

    def upper_bound(self, q: NDArray, length: Any, imbalance: Any, farthest: Any) -> Any:
        """What exceeds the caps has to go to other rows.

        With two classes, the best intercept gives the value at the edge of the share to an example
        of either class. So it is at most the radius for a predictor of norm 1, and values are at
        most twice that: what moves changes the average by at most four times as much. With k
        classes, the edge and the best offsets are where k examples link the classes, with one
        cycle: the edge is at most k times a link, and offsets differ by at most k squared times it.
        """
        mass = q.sum()
        excess = q.sum(axis=1)[:, None] - mass * self.caps
        excess = np.maximum(excess, 0 * excess).sum()
        links = q.shape[1] ** 2 if q.shape[1] > 1 else 1
        return (length + links * farthest * (imbalance + 4 * excess)) / mass


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
        size = numbers.number(estimator.nu) * weight.sum()
        if free_intercept:  # no class has more than half of the share: the others have the rest
            for c in np.unique(codes):
                size = min(size, 2 * weight[codes != c].sum())
        return WorstShare((weight / size)[:, None], numbers)
    if np.isfinite(estimator.C) and getattr(estimator, "loss", "squared_hinge") == "hinge":
        return PricedSlack((numbers.number(estimator.C) * weight)[:, None], numbers)
    return None
