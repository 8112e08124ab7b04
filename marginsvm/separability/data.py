"""What is asked: data, labels or counts, and the family; and its design."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _get_feature_names,
    check_consistent_length,
)

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.estimator.on_device import refuse_foreign
from marginsvm.separability.design import Design, counts, many_classes, trials, two_classes
from marginsvm.separability.design import with_intercept as _with_intercept

INTERCEPT = "(intercept)"
_COUNTS = ("poisson", "negative_binomial")  # which have the same rows
_FAMILIES = ("binomial", "multinomial", *_COUNTS)


@dataclass(frozen=True)
class Question:
    """Data of a regression.

    Attributes
    ----------
    X, sample_weight, feature_names : object
        As given.
    y : ndarray of shape (n_samples,) or (n_samples, 2)
        Labels or counts.
    family : str
    labels : bool
        Whether y has labels.
    fit_intercept : bool
    kernel, max_iter : object
        Of the exact solver.
    """

    X: Any
    y: Array
    family: str
    labels: bool
    fit_intercept: bool
    sample_weight: Any
    feature_names: Any
    kernel: Any = "linear"
    max_iter: int = 200

    @cached_property
    def given(self) -> Any:
        """X as an array of floats, dense or CSR."""
        return numbers(self.X)

    def fitted(self) -> MaxMarginClassifier:
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

    def design(self, only: Array | None = None) -> Design:
        """The rows, without those of examples of weight 0; or those of some examples alone."""
        given = self.given
        check_consistent_length(given, self.y)
        kept = np.flatnonzero(self.used())
        if not len(kept):
            raise ValueError(
                "no example has a positive weight; there must be at least one non-zero weight"
            )
        classes, names = np.unique(self.y[kept]), self._feature_names(given)
        if self.labels and len(classes) < 2:
            raise ValueError(
                f"all examples are of one class, {classes[0]}; there must be at least two classes"
            )
        kept = kept if only is None else only
        X, y = given if len(kept) == given.shape[0] else given[kept], self.y[kept]
        X = X.astype(np.float64, copy=False)
        if self.fit_intercept:
            X, names = _with_intercept(X), [INTERCEPT, *names]
        example, column = kept, np.zeros(len(kept), int)
        if not self.labels:
            A, equality = (trials if y.ndim == 2 else counts)(X, y)
        elif len(classes) == 2:
            A, equality = two_classes(X, y == classes[1])
        else:
            codes = np.searchsorted(classes, y)
            A, of, column = many_classes(X, codes, len(classes))
            equality, example = np.zeros(len(of), bool), kept[of]
            names = [f"{c}: {name}" for c in classes[1:] for name in names]
        n_columns = len(classes) if self.labels and len(classes) > 2 else 1
        return Design(A, equality, example, column, names, n_columns)

    def n_numbers(self) -> int:
        """Numbers in the rows, as if all were written out."""
        others = len(np.unique(self.y)) - 1 if self.labels else 1
        return int(np.prod(self.given.shape) * max(others, 1) ** 2)

    def used(self) -> Array:
        """Examples that count: those of positive weight, and with trials."""
        used = np.ones(len(self.y), bool)
        if self.sample_weight is not None:
            weight = _check_sample_weight(self.sample_weight, self.given, ensure_non_negative=True)
            used = weight > 0
        return np.asarray(used & self.y.any(axis=1) if self.y.ndim == 2 else used)

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


def numbers(X: Any) -> Any:
    """X as an array of floats, dense or CSR; if that cannot be, the error says what to do."""
    refuse_foreign("check_separability", X)
    try:
        return check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    except ValueError as error:
        text = str(error)
        if "contains NaN" in text:
            advice = "leave out the examples with missing values, as regressions do, or impute them"
            raise ValueError(f"X contains NaN; {advice}") from error
        if "convert string" in text or "could not convert" in text:
            advice = "give categories as dummies: pandas.get_dummies(X, drop_first=True)"
            raise ValueError(f"X holds words, but numbers are needed; {advice}") from error
        raise


def question(
    X: Any, y: Any, family: str | None, fit_intercept: bool, sample_weight: Any, names: Any
) -> Question:
    """Recognise the family, and check what y holds."""
    y = np.asarray(y)
    if family not in (None, *_FAMILIES):
        raise ValueError(f"family must be one of {', '.join(_FAMILIES)}, but is {family!r}")
    trials = y.ndim == 2 and y.shape[1] == 2 and family in (None, "binomial")
    if trials or family in _COUNTS:
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if y.ndim == 2 and not trials:
            raise ValueError(f"counts must have one dimension, but y has the shape {y.shape}")
        if y.min() < 0:
            raise ValueError("counts must not be negative, but some in y are")
        family = "binomial" if trials or family is None else family
        return Question(X, y, family, False, fit_intercept, sample_weight, names)
    y = column_or_1d(y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    n_classes = len(np.unique(y))
    if family == "binomial" and n_classes > 2:
        raise ValueError(
            f"a binomial y has two classes, but this one has {n_classes}; use "
            "family='multinomial', or two columns (successes, failures) for counts"
        )
    if family is None:
        family = "binomial" if n_classes <= 2 else "multinomial"
    return Question(X, y, family, True, fit_intercept, sample_weight, names)
