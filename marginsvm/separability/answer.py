"""What is known of a regression in the end: the parts of a report that hang on its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.separability.coefficients import Coefficient

COMPLETE, QUASI, OVERLAP, UNDECIDED = "complete", "quasi-complete", "overlap", "undecided"


class Direction(NamedTuple):
    """A direction in which the likelihood grows without end.

    Attributes
    ----------
    coef : ndarray of shape (1, n_coefficients) or (n_classes, n_features)
        Multinomial: the first class is the reference, and its line is 0.
    intercept : ndarray of shape (1,) or (n_classes,)
        Ordinal: the thresholds, of shape (n_classes - 1,).
    """

    coef: Array
    intercept: Array


@dataclass(frozen=True)
class Answer:
    """Kind, rows, coefficients and proofs, as :class:`Separability` has them.

    Attributes
    ----------
    kind, reason : str
    separable : bool or None
        Whether all rows are separated.
    separated_rows : ndarray of bool, shape (n_examples, n_columns)
    direction : Direction or None
    coefficients : tuple of Coefficient
    overlap_weights : csr_array or None
    comparisons : Comparisons or None
        Of families whose rows are pairs of subjects.
    """

    kind: str
    separable: bool | None
    separated_rows: Array
    direction: Direction | None
    coefficients: tuple[Coefficient, ...]
    overlap_weights: sp.csr_array | None
    reason: str = ""
    comparisons: Any = None


def kind_of(separated: Array) -> str:
    """The kind of rows of which these are separated."""
    return OVERLAP if not separated.any() else COMPLETE if separated.all() else QUASI
