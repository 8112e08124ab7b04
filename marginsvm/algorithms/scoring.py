"""Scores of classifiers whose decision values are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_method_params

from marginsvm._typing import Array


class Decided(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose decision values on the examples to be scored are known.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    scores : ndarray of shape (n_test, 1) or (n_test, n_classes)
    """

    def __init__(self, classes: Array, scores: Array) -> None:
        self.classes, self.scores = classes, scores
        self.classes_ = classes

    def decision_function(self, X: Any) -> Array:
        """The known values, one line for each example."""
        return self.scores[:, 0] if self.scores.shape[1] == 1 else self.scores

    def predict(self, X: Any) -> Array:
        """Class labels."""
        F = self.decision_function(X)
        winner = (F > 0).astype(int) if F.ndim == 1 else F.argmax(axis=1)
        return self.classes_[winner]


Scorer = Callable[[Decided, Any, Array, Array], float]


@dataclass(frozen=True)
class Scoring:
    """The score of decided examples.

    Attributes
    ----------
    scorer : callable or None
        None: accuracy, without the checks of scikit-learn's, which take longer than a small fit.
    params : dict
        For the scorer; those with a value for each example are cut to the examples scored.
    y : ndarray of shape (n_samples,)
        All labels.
    """

    scorer: Any
    params: dict[str, Any]
    y: Array

    def __call__(self, decided: Decided, X: Any, y: Array, test: Array) -> float:
        params = _check_method_params(self.y, self.params, indices=test)
        if self.scorer is not None:
            return float(self.scorer(decided, X, y, **params))
        weight = params.get("sample_weight")
        right = decided.predict(X) == y
        if weight is None:
            return float(np.mean(right))
        with np.errstate(invalid="ignore"):  # no weight: no score
            return float(np.divide(np.sum(right * weight), np.sum(weight)))
