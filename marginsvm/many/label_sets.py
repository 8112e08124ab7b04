"""Labels of problems of two classes, as signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.estimator.weights import ClassWeights
from marginsvm.many.stacked_bounds import Loss


@dataclass(frozen=True)
class LabelSets:
    """Labels of some problems with as many examples each.

    Attributes
    ----------
    y : ndarray of shape (B, n)
        1 for the second class of a problem, else -1.
    classes : ndarray of shape (B, 2)
    """

    y: Array
    classes: Array

    @classmethod
    def of(cls, given: Sequence[Array], ids: Array) -> LabelSets:
        """Signs of labels.

        Raises
        ------
        ValueError
            If a problem has not two classes.
        """
        both = [np.unique(labels, return_inverse=True) for labels in given]
        for i, (classes, _) in zip(ids, both, strict=True):
            if len(classes) != 2:
                raise ValueError(
                    f"every problem needs two classes, but problem {i} has {len(classes)}: "
                    f"{classes.tolist()[:5]}"
                )
        y = np.stack([2.0 * codes - 1.0 for _, codes in both])
        return cls(y, np.stack([classes for classes, _ in both]))

    @property
    def have_both(self) -> bool:
        """Whether every problem has examples of both classes."""
        return bool(np.all(np.abs(self.y.sum(axis=1)) < self.y.shape[1]))

    def loss(self, estimator: Any) -> Loss:
        """What slack costs in these problems."""
        costs = np.full(self.y.shape, float(estimator.C))
        soft = bool(np.isfinite(estimator.C))
        if estimator.class_weight is not None and soft:
            for line, signs, classes in zip(costs, self.y, self.classes, strict=True):
                given = classes[(signs > 0.0).astype(int)]
                factor = ClassWeights.of(estimator.class_weight, given, None).applied(given, None)
                line *= 1.0 if factor is None else factor
        return Loss(estimator.loss == "hinge" and soft, costs)
