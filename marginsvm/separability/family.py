"""A family of regressions, as a value: all that the families differ in.

A new family is a file in ``families/`` with an object of a subclass, a line in
``families/__init__.py``, and its rows once more, independently, in
``certify/checker/conditions.py``.

Rows that are few enough to be written out are a ``design``; all the rest (split, proofs, signs,
report) is done for them. A family whose rows are too many (pairs of subjects) has an ``answer`` of
its own instead: it keeps a working set of rows as a design, splits it
(:func:`marginsvm.separability.faces.split`), looks for rows that the direction found violates, or
that are 0 in it but not on its face, and adds these until there are none; then
:func:`marginsvm.separability.answering.answer_of` proves and names what was found. ``example`` and
``column`` of its design say which pair of subjects a row is about, so that ``overlap_weights`` are
a sparse table of pairs; ``separated_rows`` says what of it the report shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from marginsvm._typing import Array
from marginsvm.separability.answer import Answer, Direction
from marginsvm.separability.design import Design, with_intercept
from marginsvm.separability.reading import numbers
from marginsvm.separability.remainder import remainder_of

INTERCEPT = "(intercept)"


@dataclass(frozen=True)
class Data:
    """The examples that count.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, n_features)
        In float64.
    y : ndarray of shape (n,) or (n, 2)
        As :meth:`Family.outcomes` has checked them.
    example : ndarray of int, shape (n,)
        Their indices among the given ones.
    n_examples : int
        How many are given.
    names : list of str
        Of the columns of X.
    fit_intercept : bool
    more : mapping
        Further arguments that the family takes; arrays are those of these examples.
    """

    X: Any
    y: Any
    example: Array
    n_examples: int
    names: list[str]
    fit_intercept: bool
    more: Mapping[str, Any]

    def columns(self) -> tuple[Any, list[str]]:
        """X and the names of its columns, with the intercept in front if there is one."""
        if not self.fit_intercept:
            return self.X, self.names
        return with_intercept(self.X), [INTERCEPT, *self.names]


@dataclass(frozen=True)
class Family:
    """What a family is; methods that a subclass does not override are those of most families.

    Attributes
    ----------
    name : str
    firth : str
        Who fits it with Firth's penalty.
    takes : tuple of str
        Further arguments of ``check_separability`` that it knows.
    intercept : bool
        Whether it may have an intercept.
    noun : str
        What an example is called.
    perfect : str
        What separated examples are.
    otherwise : str
        What to do if a fit does not converge for another reason.
    partly : str
        What is known of examples of which some rows are separated.
    """

    name: str
    firth: str
    takes: tuple[str, ...] = ("offset",)
    intercept: bool = True
    noun: str = "examples"
    perfect: str = "are predicted perfectly"
    otherwise: str = "scale the features, or raise max_iter"
    partly: str = ""

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        """What was given, checked; X is checked by :meth:`examples` when it is needed."""
        if y is None:
            raise ValueError(f"y is missing: family={self.name!r} needs it")
        if "offset" in more:
            offset = check_array(more["offset"], ensure_2d=False, input_name="offset")
            check_consistent_length(offset, y)
            more = {**more, "offset": offset}
        return X, self.outcomes(y), more

    def outcomes(self, y: Any) -> Array:
        """Outcomes as an array, checked."""
        raise NotImplementedError

    def examples(self, X: Any) -> Any:
        """X as an array of floats, dense or CSR."""
        return numbers(X)

    def has_classes(self, y: Array) -> bool:
        """Whether these are labels, of which the exact solver knows if they are separable."""
        return False

    def used(self, y: Array) -> Array:
        """Outcomes that count: a mask."""
        return np.ones(len(y), bool)

    def design(self, data: Data) -> Design:
        """The rows of conditions."""
        raise NotImplementedError

    def answer(self, data: Data) -> Answer | None:
        """The answer of a family whose rows are not written out; None: they are."""
        return None

    def direction(self, w: Array, data: Data, design: Design) -> Direction:
        """A direction by coefficients and intercepts."""
        table: Array = w.reshape(max(design.n_columns - 1, 1), -1)
        if design.n_columns > 1:
            table = np.concatenate([np.zeros((1, table.shape[1])), table])
        intercept = table[:, 0] if data.fit_intercept else np.zeros(len(table))
        return Direction(table[:, int(data.fit_intercept) :], intercept)

    def flat(self, direction: Direction, n: int) -> Array:
        """The n entries of a direction in the order of the coefficients."""
        table = np.column_stack([direction.intercept, direction.coef])
        table = (table - table[0])[1:] if len(table) > 1 else table
        return np.asarray(table[:, -n // len(table) :].ravel())

    def planes(self, direction: Direction) -> list[tuple[Array, float]]:
        """The places of X where a score of a direction is 0: those with ``x w + b = 0``."""
        return list(zip(*direction, strict=True))

    def separated_rows(self, design: Design, separated: Array, n_examples: int) -> Array:
        """The table of the report, of the rows of a design that are separated.

        Where an example has no row, the table has whether all of its rows are separated.
        """
        shape = n_examples, design.n_columns
        table, rows = np.zeros(shape, bool), np.zeros(shape, bool)
        at = design.example, design.column
        table[at], rows[at] = separated, True
        every = np.asarray(rows.any(axis=1) & (table >= rows).all(axis=1))
        return table | every[:, None]

    def separated(self, rows: Array) -> Array:
        """Examples that are predicted perfectly, of the table of separated rows: a mask."""
        return np.asarray(rows.all(axis=1))

    def remainder(self, report: Any, X: Any) -> Any:
        """What to fit for the finite coefficients, of a report that is decided."""
        X = same_examples(report, self.examples(X))
        return remainder_of(X, report.used & ~report.separated, report.fit_intercept)


def same_examples(report: Any, X: Any) -> Any:
    """X, if it has as many examples as the report."""
    if X.shape[0] != len(report.used):
        raise ValueError(f"X has {X.shape[0]} examples, but the report {len(report.used)}")
    return X
