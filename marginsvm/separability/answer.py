"""What is known of a regression in the end: the parts of a report that hang on its rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import scipy.sparse as sp

from marginsvm._cached import Later
from marginsvm._typing import Array
from marginsvm.separability.coefficients import Coefficient
from marginsvm.separability.compared import Comparisons

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

    A direction, coefficients and a reason that are functions are made when they are first read.

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
    direction: Later[Direction | None] = Later(None)
    coefficients: Later[tuple[Coefficient, ...]] = Later(())
    overlap_weights: sp.csr_array | None = None
    reason: Later[str] = Later("")
    comparisons: Comparisons | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All that it says, with what is made when it is first read."""
        return vars(self) | {field.name: getattr(self, field.name) for field in fields(self)}


def kind_of(separated: Array) -> str:
    """The kind of rows of which these are separated."""
    return OVERLAP if not separated.any() else COMPLETE if separated.all() else QUASI
