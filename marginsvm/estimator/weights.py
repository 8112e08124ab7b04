"""Weights of classes: factors of the weights of their examples."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from marginsvm._typing import Array


@dataclass(frozen=True)
class ClassWeights:
    """The factors that ``class_weight`` gives to the labels.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
        Labels, sorted; empty with ``class_weight=None``.
    factors : ndarray of shape (n_labels,)
        Factors of the weights of examples with these labels.
    """

    labels: Array
    factors: Array

    @classmethod
    def of(cls, class_weight: Any, y: Array, weight: Array | None) -> ClassWeights:
        """Factors for None, "balanced" or a dict, given the labels and weights of all examples."""
        if class_weight is None:
            return cls(np.empty(0), np.empty(0))
        labels, codes = np.unique(y, return_inverse=True)
        if isinstance(class_weight, dict):
            return cls(labels, _looked_up(class_weight, labels.tolist()))
        totals = np.bincount(codes, weight).astype(np.float64)
        present = totals > 0.0  # a class without positive weight takes no part in the fit
        factors = np.ones(len(labels))
        factors[present] = totals.sum() / (present.sum() * totals[present])
        return cls(labels, factors)

    def applied(self, y: Array, weight: Array | None) -> Array | None:
        """Final weights of examples with these labels; None: they are all 1."""
        if np.all(self.factors == 1.0):
            return weight
        factor = self.factors[np.searchsorted(self.labels, y)]
        with np.errstate(over="ignore", invalid="ignore"):
            final = factor if weight is None else weight * factor
        if not np.isfinite(final).all():
            raise ValueError(
                "sample_weight times class_weight is too large for float64; only the ratios of "
                "weights matter where C = inf, and otherwise C may be larger: divide the weights"
            )
        return final


def _looked_up(class_weight: dict[Any, Any], labels: list[Any]) -> Array:
    """Factors of labels; 1 for labels that the dict does not name."""
    unknown = [label for label in class_weight if label not in set(labels)]
    if unknown:
        raise ValueError(
            f"class_weight has a weight for {unknown}, but the classes in y are {labels}"
        )
    for label, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0.0 <= float(weight) < np.inf):
            raise ValueError(
                "class_weight must have weights that are finite and not negative, but that of "
                f"{label!r} is {weight!r}"
            )
    return np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
