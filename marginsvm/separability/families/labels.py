"""Binomial and multinomial regressions.

==================  =============================================================================
outcome             rows of an example x = (1, features)
==================  =============================================================================
one of two labels   x if it is a success (the second class), -x if not
trials, as counts   x if all of them are successes, -x if none is; else x, as an equality
one of more labels  one for each other class j: x in the block of the own class, -x in the block
                    of j, where the first class, the reference, has no block
==================  =============================================================================

Examples of no trials have no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.separability.design import Design, times
from marginsvm.separability.family import Data, Family, same_examples
from marginsvm.separability.reading import labels, nonnegative

_MANY_CLASSES = 8  # classes: the rows of more are sparse, as two blocks of each are not 0 at most


@dataclass(frozen=True)
class Labels(Family):
    """Of labels, however many; or of trials."""

    most: float = np.inf  # number of classes

    def outcomes(self, y: Any) -> Array:
        if self.most == 2 and are_trials(y):
            return nonnegative(y)
        y = labels(y)
        n_classes = len(np.unique(y))
        if n_classes > self.most:
            raise ValueError(
                f"a binomial y has two classes, but this one has {n_classes}; use "
                "family='multinomial', or two columns (successes, failures) for counts"
            )
        return y

    def has_classes(self, y: Array) -> bool:
        return y.ndim == 1

    def used(self, y: Array) -> Array:
        return np.asarray(y.any(axis=1)) if y.ndim == 2 else super().used(y)

    def design(self, data: Data) -> Design:
        (X, names), y, one = data.columns(), data.y, np.zeros(len(data.y), int)
        if y.ndim == 2:
            A, equality = times(X, np.where(y[:, 0] > 0, 1.0, -1.0)), (y > 0).all(axis=1)
            return Design(A, np.asarray(equality), data.example, one, names)
        classes = np.unique(y)
        if len(classes) == 2:
            A = times(X, np.where(y == classes[1], 1.0, -1.0))
            return Design(A, one.astype(bool), data.example, one, names)
        A, of, column = many_classes(X, np.searchsorted(classes, y), len(classes))
        names = [f"{c}: {name}" for c in classes[1:] for name in names]
        nothing = np.zeros(len(of), bool)
        return Design(A, nothing, data.example[of], column, names, len(classes))

    def separated_rows(self, design: Design, separated: Array, n_examples: int) -> Array:
        table = np.zeros((n_examples, design.n_columns), bool)
        table[design.example, design.column] = separated
        return table

    def separated(self, rows: Array) -> Array:
        return np.asarray(rows.sum(axis=1) >= max(rows.shape[1] - 1, 1))

    def remainder(self, report: Any, X: Any) -> Any:
        if report.separated_rows.shape[1] == 1:
            return super().remainder(report, X)
        same_examples(report, self.examples(X))
        return np.asarray(report.used[:, None] & ~report.separated_rows)


def are_trials(y: Any) -> bool:
    """Whether y has two columns, of successes and failures."""
    return np.ndim(y) == 2 and np.shape(y)[1] == 2


def many_classes(X: Any, codes: Array, n_classes: int) -> tuple[Any, Array, Array]:
    """Rows of a multinomial regression, and the examples and other classes of these."""
    others = np.arange(n_classes)[None, :] != codes[:, None]
    example, other = np.nonzero(others)
    unit = np.eye(n_classes)[:, 1:]
    signs = unit[codes[example]] - unit[other]
    if sp.issparse(X) or n_classes > _MANY_CLASSES:
        X, shape = sp.csr_array(X), (len(example), X.shape[0])
        rows = [(np.flatnonzero(s), s[s != 0.0]) for s in signs.T]
        blocks = [sp.csr_array((s, (at, example[at])), shape=shape) @ X for at, s in rows]
        return sp.hstack(blocks, format="csr"), example, other
    return np.concatenate([X[example] * s[:, None] for s in signs.T], axis=1), example, other


BINOMIAL = Labels("binomial", "logistf or brglm2 in R, firthmodels in Python", most=2)
MULTINOMIAL = Labels("multinomial", "brglm2 in R", partly="some classes are ruled out")
