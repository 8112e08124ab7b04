"""The training data as the checker reads them: features in blocks, classes and weights.

Weights of classes are worked out here once more, by their definition, and not by the fit's code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from marginsvm.certify.checker.numbers import Numbers
from marginsvm.certify.spec import ProblemSpec


@dataclass(frozen=True)
class Examples:
    """The training examples; those of weight 0 take no part.

    Attributes
    ----------
    X : array-like, sparse matrix or source of blocks
        Features of all examples, as they were given.
    in_memory : bool
        Whether X is one matrix, and not a source, of which each pass reads the blocks again.
    codes : ndarray of shape (n_kept,)
        Class of each example of positive weight, as an index of the estimator's ``classes_``.
    weight : ndarray of shape (n_kept,)
        Their weights in float64: sample weight times the weight of the class.
    kept : ndarray of shape (n_kept,)
        Which of all examples these are.
    n_given : int
        Number of all examples.
    """

    X: Any
    in_memory: bool
    codes: NDArray
    weight: NDArray
    kept: NDArray
    n_given: int

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Examples:
        """Read what a fitted estimator was given: X and y, or a source of blocks and no y."""
        in_memory = y is not None
        if in_memory:
            y = np.asarray(y)
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        else:
            y, weight = labels_and_weights(X)
        weight = weight * class_weights(estimator.class_weight, y, weight)
        kept = np.flatnonzero(weight > 0)
        classes, codes = np.unique(y[kept], return_inverse=True)
        if not np.array_equal(classes, estimator.classes_):
            raise ValueError(
                f"the examples of positive weight have the classes {classes.tolist()}, but "
                f"{type(estimator).__name__} was fitted to {estimator.classes_.tolist()}"
            )
        return cls(X, in_memory, codes, weight[kept], kept, len(y))

    @classmethod
    def of_one_kind(cls, X: Any, sample_weight: Any, in_memory: bool = True) -> Examples:
        """Examples without classes, all of which have the code 1."""
        weight = sample_weight
        if in_memory:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        kept = np.flatnonzero(weight > 0)
        return cls(X, in_memory, np.ones(len(kept), int), weight[kept], kept, len(weight))

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield the features of the kept examples, with their place among these."""
        start = end = 0
        for X in [self.X] if self.in_memory else (block[0] for block in self.X):
            X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
            first, last = np.searchsorted(self.kept, [start, start + X.shape[0]])
            here = self.kept[first:last] - start
            start, end = start + X.shape[0], end + len(here)
            if len(here):
                yield slice(end - len(here), end), X if len(here) == X.shape[0] else X[here]

    def some(self, few: NDArray) -> sp.csr_array:
        """Features of some of the kept examples, given by their places in ascending order."""
        parts = []
        for block, X in self.blocks():
            here = few[(few >= block.start) & (few < block.stop)] - block.start
            part = X[here] if sp.issparse(X) else np.asarray(X[here], dtype=np.float64)
            parts.append(sp.csr_array(part))
        return sp.vstack(parts, format="csr").astype(np.float64)


@dataclass(frozen=True)
class Setting:
    """A fitted estimator, the examples that it was given, and the numbers to compute in."""

    estimator: Any
    examples: Examples
    numbers: Numbers

    @cached_property
    def spec(self) -> ProblemSpec:
        """What the estimator's parameters ask for."""
        return ProblemSpec.of(self.estimator)

    @property
    def constant(self) -> float:
        """Value of a feature that all examples share; 0: there is none.

        It makes the intercept a coefficient like any other: in normalised rows, and where an
        ``intercept_scaling`` says that the intercept is penalised.
        """
        divided = self.spec.fit_intercept and self.spec.normalize
        return self.estimator.constant_ if divided else self.spec.constant

    @property
    def free_intercept(self) -> bool:
        """Whether predictors have an intercept that their norm does not count."""
        return bool(self.spec.fit_intercept) and self.constant == 0.0

    @cached_property
    def shares(self) -> NDArray:
        """Weights of the examples in their mean."""
        weight = self.numbers.array(self.examples.weight)
        return np.asarray(weight / weight.sum())


def labels_and_weights(source: Any) -> tuple[NDArray, NDArray]:
    """Labels or targets of all blocks ``(X, y)`` or ``(X, y, sample_weight)``, and weights."""
    labels, weights = [], []
    for X, y, *rest in source:
        labels.append(np.asarray(y))
        weights.append(np.asarray(rest[0], dtype=np.float64) if rest else np.ones(X.shape[0]))
    return np.concatenate(labels), np.concatenate(weights)


def class_weights(class_weight: Any, y: NDArray, sample_weight: NDArray) -> NDArray:
    """Weight of the class of each example.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        None: all weights are 1. ``"balanced"``: ``n / (k n_c)``, where k is the number of classes
        that have an example of positive weight, ``n_c`` the sum of the sample weights of class c
        and n the sum of all; so a sample weight m counts like m copies. A dict gives the weights
        of labels; those that it does not name have weight 1.
    y : ndarray of shape (n,)
        Labels.
    sample_weight : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    if class_weight is None:
        return np.ones(len(y))
    labels, codes = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str):
        totals = np.bincount(codes, weights=sample_weight)
        present = totals > 0
        of_label = np.ones(len(labels))
        of_label[present] = totals.sum() / (np.count_nonzero(present) * totals[present])
    else:
        of_label = np.array([class_weight.get(label, 1.0) for label in labels.tolist()], float)
    return of_label[codes]
