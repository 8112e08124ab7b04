"""What is asked: data, outcomes, and the family; and its design."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_sample_weight,
    _get_feature_names,
    check_consistent_length,
)

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.separability.design import Design
from marginsvm.separability.families import FAMILIES, family_of
from marginsvm.separability.family import Data, Family


@dataclass(frozen=True)
class Question:
    """Data of a regression.

    Attributes
    ----------
    X, sample_weight, feature_names : object
        As given.
    y : ndarray of shape (n_samples,) or (n_samples, 2)
        Labels or counts.
    family : Family
    fit_intercept : bool
    more : mapping
        Further arguments that the family takes.
    kernel, max_iter : object
        Of the exact solver.
    """

    X: Any
    y: Array
    family: Family
    fit_intercept: bool
    sample_weight: Any
    feature_names: Any
    more: Mapping[str, Any]
    kernel: Any = "linear"
    max_iter: int = 200

    @cached_property
    def given(self) -> Any:
        """X as an array of floats, dense or CSR."""
        return self.family.examples(self.X)

    @property
    def labels(self) -> bool:
        """Whether y has labels, which the exact solver may be asked about."""
        return self.family.has_classes(self.y)

    @cached_property
    def estimator(self) -> MaxMarginClassifier:
        """The exact solver, asked for any separator."""
        estimator = MaxMarginClassifier(
            kernel=self.kernel,
            fit_intercept=self.fit_intercept,
            stopping="separation",
            max_iter=self.max_iter,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return estimator.fit(self.X, self.y, self.sample_weight)

    def data(self, only: Array | None = None) -> Data:
        """The examples of positive weight; or those of some of them alone."""
        given = self.given
        check_consistent_length(given, self.y)
        kept = np.flatnonzero(self.used())
        if not len(kept):
            raise ValueError(
                "no example has a positive weight; there must be at least one non-zero weight"
            )
        if self.labels and len(classes := np.unique(self.y[kept])) < 2:
            raise ValueError(
                f"all examples are of one class, {classes[0]}; there must be at least two classes"
            )
        names, n = self._feature_names(given), given.shape[0]
        kept = kept if only is None else only
        some = slice(None) if len(kept) == n else kept  # nothing is copied that is not needed
        X = given if len(kept) == n else given[kept]
        more = {
            name: value[some] if _each(value, n) else value for name, value in self.more.items()
        }
        X = X.astype(np.float64, copy=False) if X.dtype.kind == "f" else X
        return Data(X, self.y[some], kept, n, names, self.fit_intercept, more)

    def design(self, only: Array | None = None) -> Design:
        """The rows, without those of examples of weight 0; or those of some examples alone."""
        return self.family.design(self.data(only))

    def n_numbers(self) -> int:
        """Numbers in the rows of labels, as if all were written out."""
        return int(np.prod(self.given.shape) * max(len(np.unique(self.y)) - 1, 1) ** 2)

    def used(self) -> Array:
        """Examples that count: those of positive weight, and with trials."""
        used = self.family.used(self.y)
        if self.sample_weight is None:
            return used
        weight = _check_sample_weight(self.sample_weight, self.given, ensure_non_negative=True)
        return np.asarray(used & (weight > 0))

    def _feature_names(self, X: Any) -> list[str]:
        names = self.feature_names
        if names is None:
            names = _get_feature_names(self.X)
        if names is None:
            return [f"x{j}" for j in range(X.shape[1])]
        if len(names) != X.shape[1]:
            raise ValueError(
                f"feature_names has {len(names)} names, but X has {X.shape[1]} columns; give one "
                "name for each, without the intercept"
            )
        return [str(name) for name in names]


def question(
    X: Any,
    y: Any,
    name: str | None,
    fit_intercept: bool,
    sample_weight: Any,
    names: Any,
    more: dict[str, Any],
) -> Question:
    """Recognise the family, and check what y and the further arguments hold."""
    family = family_of(name, y)
    given = {key: value for key, value in more.items() if value is not None}
    for key in given:
        if key not in family.takes:
            who = ", ".join(repr(f.name) for f in FAMILIES.values() if key in f.takes)
            raise ValueError(f"{key} is for family {who}, but the family is {family.name!r}")
    X, y, given = family.read(X, y, given)
    intercept = fit_intercept and family.intercept
    return Question(X, y, family, intercept, sample_weight, names, given)


def _each(value: Any, n: int) -> bool:
    """Whether an argument has an entry for each example."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and len(value) == n
