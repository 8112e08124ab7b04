"""The families of regressions: their arguments, and the rows of their recession cones.

The recession cone holds the directions w in which the likelihood does not decrease. A row a stands
for ``a w >= 0`` or, for an equality, ``a w = 0``. All rows compare two points, ``a = z_p - z_m``: a
point is an example in the columns of one class, a threshold, or zero. So rows are the same function
of floats and of integers.

=================  ================================================================================
family             rows of an example x = (1, features)
=================  ================================================================================
binomial           x for a success, -x for a failure. Counts of trials: likewise if all of them
                   succeed or all fail; else x, as an equality
multinomial        one for each other class: x in the block of the example's class, -x in that of
                   the other; the first class, the reference, has no block
ordinal            ``theta_j - x beta`` and ``x beta - theta_(j-1)`` for category j, except for
                   the last and the first; links with a log-concave density
poisson,           -x if the count is 0; else x, as an equality
negative_binomial
cox                ``x_i - x_j`` for an event of i at which j is at risk (Breslow's ties, and
                   Efron's); by transitivity, few of these imply all (``Cox.pairs``)
conditional        ``x_i - x_j`` for i chosen and j not, in each group
pairs              items, winner - loser: a graph (``of_graph``)
=================  ================================================================================

Examples without trials or of weight 0 have no rows. Offsets have no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

from marginsvm._rounding import check_exact
from marginsvm._threads import cached_property
from marginsvm._typing import Array
from marginsvm._warnings import warn
from marginsvm.estimators.inputs import refuse_foreign

COMPLETE = "complete"
QUASI = "quasi-complete"
OVERLAP = "overlap"
UNDECIDED = "undecided"
FINITE = "finite"
PLUS = "+inf"
MINUS = "-inf"
EITHER = "inf"
UNIDENTIFIED = "not identified"
EXACT = 2_000_000  # largest number of entries of X read as integers, and of rows as integers
_MOST_PAIRS = 2**24  # largest number of comparisons of subjects, some 400 MB
_SPARSE = 4  # entries per non-zero entry above which rows are sparse


class Direction(NamedTuple):
    """A direction of recession: the likelihood increases along it without a maximum.

    Attributes
    ----------
    coef : ndarray of shape (1, n_coefficients) or (n_classes, n_features)
        Multinomial: the first class is the reference, with coefficients 0.
    intercept : ndarray of shape (1,) or (n_classes,)
        Ordinal: the thresholds, of shape (n_classes - 1,).
    """

    coef: Array
    intercept: Array


class Remainder(NamedTuple):
    """Examples and columns of the regression whose estimate gives the finite coefficients.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_samples,)
        Examples that are not separated.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    rows: Array
    columns: Array


class Strata(NamedTuple):
    """Cox's regression whose estimate gives the finite coefficients.

    Attributes
    ----------
    strata : ndarray of int, shape (n_samples,)
        Subdivided strata: subjects that tie along the direction stay together.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    strata: Array
    columns: Array


class OutcomeBounds(NamedTuple):
    """Intervals for the outcomes of an ordinal regression, in the limit.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_samples,)
        Examples with a bound that is not trivial.
    lower, upper : ndarray of int, shape (n_samples,)
        Bounds on the outcome, as indices of the categories that occur; the first and the last one
        are no bounds.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    rows: Array
    lower: Array
    upper: Array
    columns: Array


def kind_of(separated: Array) -> str:
    """The kind of separation, from the mask of separated rows."""
    return OVERLAP if not separated.any() else COMPLETE if separated.all() else QUASI


# ---- examples, numbers, rows


class Data(NamedTuple):
    """The examples used: X, outcomes, indices among the n given ones, names of features.

    ``constant`` is the name of a column of X that is the intercept, where one is asked for.
    """

    X: Any
    y: Any
    example: Array
    n: int
    names: list[str]
    intercept: bool
    more: Mapping[str, Any]
    constant: str | None = None


def as_printed(X: Any) -> tuple[Any, Array, Array] | None:
    """X as printed: columns of integers, each in its own unit.

    Returns X times the units, in float64; the units; and which columns were rounded.

    A column whose entries all leave five bits of float64 unused is exact: integers, halves,
    float32, dates in nanoseconds. Else, if all entries are the floats next to decimals of up to 13
    digits, it is a column of these decimals: 0.1 is a tenth, and three of them are 0.3. Any other
    column was computed and rounded; its entries are taken as the binary fractions they are.
    None: entries are too small or differ too much in size.
    """
    x = dense(X)
    used = x != 0
    mantissa, e = np.frexp(x)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    last = e - 54 + np.frexp((whole & -whole).astype(float))[1]
    high = np.where(used, e, -2000).max(axis=0, initial=-2000)
    low = np.where(used, last, 2000).min(axis=0, initial=2000)
    high, low = np.where(high < low, 0, (high, low))
    if low.min(initial=0) < -1000 or (high - low).max(initial=0) > 1000:
        return None
    out = np.ldexp(x, -low)
    unit = np.ldexp(1.0, -low)
    rounded = high - low > 48
    top = np.abs(x).max(axis=0, initial=0.0)
    digits = 13 - np.ceil(np.log10(np.where(top > 0, top, 1.0)))
    for p in range(23):
        ten = 10.0**p
        some = np.flatnonzero(rounded & (p <= digits))
        for rows in (slice(50), slice(None)):
            some = some[_are_whole(x[rows][:, some] * ten, top[some] * ten)]
        out[:, some] = np.rint(x[:, some] * ten)
        unit[some] = ten
        rounded[some] = False
    return sp.csr_array(out) if sp.issparse(X) else out, unit, rounded


def _are_whole(v: Array, top: Array) -> Array:
    """Columns whose entries are within rounding (1e-15, relative) of integers.

    A non-zero entry smaller than the rounding of the largest one is not an integer.
    """
    size = np.abs(v)
    whole = np.rint(v)
    near = np.abs(v - whole) <= 1e-15 * np.maximum(size, 1e-3 * top)
    return np.asarray(
        (near & ((whole != 0) | (v == 0) | (size >= 2.0**-56 * top))).all(axis=0)
    )


def dense(A: Any) -> Array:
    """Rows as an array."""
    return np.asarray(A.toarray() if sp.issparse(A) else A)


@dataclass
class Design:
    """The rows of a regression, ``z_plus - z_minus``.

    Attributes
    ----------
    data : Data
    X : ndarray or csr_array of shape (n_points, n_columns / n_blocks)
        Of examples and thresholds; the intercept is a feature.
    plus, minus : ndarray of int, shape (n_rows,)
        Points: ``i * n_blocks + b`` for row i of X in block b of the columns; -1 for zero.
    equality : ndarray of bool, shape (n_rows,)
    at, column : ndarray of int, shape (n_rows,)
        Position of each row in the report's tables: index of its example, and column.
    names : list of str
        Of the columns.
    is_whole, unit, rounded
        Whether X is in integers; the factors of its columns; and which columns were rounded (all,
        if X is too large).
    span : tuple of ndarray
        Cox: the first and the last event time at which both subjects of a comparison are at risk.
    """

    data: Data
    X: Any
    plus: Array
    minus: Array
    equality: Array
    at: Array
    column: Array
    names: list[str]
    span: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        n, d = self.X.shape
        self.blocks = len(self.names) // d if d else 1
        self.shape = (len(self.at), len(self.names))
        self.example = self.data.example[self.at]
        printed = as_printed(self.X) if n * d <= EXACT else None
        self.is_whole = printed is not None
        self.X, unit, rounded = printed or (self.X, np.ones(d), np.ones(d, bool))
        self.rounded = np.tile(rounded, self.blocks)
        self.unit = np.tile(unit, self.blocks)
        used = np.count_nonzero([self.plus >= 0, self.minus >= 0])
        if self.shape[0] * self.blocks > _SPARSE * used:  # most blocks are empty
            self.X = sp.csr_array(self.X)

    def rows(self, at: Array) -> Any:
        """Rows in floats."""
        return self._points(self.X, self.plus[at]) - self._points(
            self.X, self.minus[at]
        )

    def integers(self, at: Array) -> Array:
        """Rows in integers."""
        plus, minus = (
            self._points(self._whole, ends[at]) for ends in (self.plus, self.minus)
        )
        return np.asarray(plus - minus)

    def errors(self, at: Array) -> Array:
        """Bounds on the error of rows in floats relative to those of X as printed."""
        plus, minus = (
            abs(self._points(self.X, ends[at])) for ends in (self.plus, self.minus)
        )
        return 2.0**-49 * (dense(plus + minus) + 2.0**-9 * self.reach)

    def _points(self, X: Any, at: Array) -> Any:
        example, block = np.divmod(at, self.blocks)
        some = at >= 0
        d = X.shape[1]
        if sp.issparse(X):
            x = X[example]
            shape = (len(at), self.shape[1])
            size = np.diff(x.indptr)
            columns = x.indices + np.repeat(block * d, size)
            return sp.csr_array(
                (x.data * np.repeat(some, size), columns, x.indptr), shape
            )
        out = np.zeros((len(at), self.blocks, d), X.dtype)
        out[some, block[some]] = X[example[some]]
        return out.reshape(len(at), self.shape[1])

    @cached_property
    def _whole(self) -> Array:
        """X in integers."""
        X = dense(self.X)
        if np.abs(X).max(initial=0.0) < 2.0**61:
            return X.astype(np.int64)
        return np.array([[int(v) for v in x] for x in X.tolist()], object).reshape(
            X.shape
        )

    @cached_property
    def reach(self) -> Array:
        """The largest absolute value of the examples in each column, 1 for zeros."""
        top = np.maximum(dense(self.X.max(axis=0)), -dense(self.X.min(axis=0))).ravel()
        return np.tile(np.where(top > 0, top, 1.0), self.blocks)

    def margins(self, W: Array) -> Array:
        """``A W``, by products with the examples."""
        V = self.X @ np.hstack(np.split(W, self.blocks))
        V = np.vstack(
            [V.reshape(len(V) * self.blocks, W.shape[1]), np.zeros((1, W.shape[1]))]
        )
        return np.asarray(V[self.plus] - V[self.minus])


# ---- families


class Family:
    """A family of regressions; the methods here are those of most families.

    Attributes
    ----------
    name : str
    firth : str
        Software that fits it with Firth's penalty.
    models : tuple of str
        Models of statsmodels.
    takes : tuple of str
        Further arguments of ``check_separability`` for it.
    intercept : bool
        Whether it may have an intercept.
    noun, perfect : str
        Words of the report for examples, and for separated ones.
    compares : bool
        Whether rows are pairs of examples.
    outcomes, rows : callable
        Outcomes as an array, checked; the rows of conditions.
    fills : bool
        Whether entries of the table without a row take the value of the other ones.
    """

    takes: tuple[str, ...] = ("offset",)
    intercept = True
    noun = "examples"
    perfect = "are predicted perfectly"
    compares = fills = False
    outcomes: Callable[[Any], Array]
    rows: Callable[[Data], Design]

    def __init__(self, name: str, firth: str, *models: str) -> None:
        self.name = name
        self.firth = firth
        self.models = models

    def read(
        self, X: Any, y: Any, more: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        """X, outcomes and further arguments, checked."""
        return numbers_of(X), self.outcomes(y), more

    def table(self, design: Design, separated: Array) -> Array:
        """The report's table of separated rows; for pairs of examples, of the winners."""
        at = design.example
        column = 0 * design.column if self.compares else design.column
        rows, out = np.zeros((2, design.data.n, int(column.max(initial=0)) + 1), bool)
        rows[at, column] = True
        out[at[separated], column[separated]] = True
        whole = rows.any(axis=1) & (out >= rows).all(axis=1)
        out[whole] |= self.fills
        return out

    def separated(self, rows: Array) -> Array:
        """Mask of the perfectly predicted examples, from that table."""
        return np.asarray(rows.all(axis=1))

    def direction(self, w: Array, design: Design) -> Direction:
        """A direction as coefficients and intercepts."""
        k = len(w) - design.data.X.shape[1]
        one = int(design.data.intercept)
        if not self.intercept:
            return Direction(w[None, k:], w[:k])
        table: Array = w.reshape(design.blocks, -1)
        if len(table) > 1:
            table = np.concatenate([np.zeros((1, table.shape[1])), table])
        return Direction(table[:, one:], table[:, :one].sum(axis=1))

    def flat(self, coef: Array, intercept: Array, fit_intercept: bool) -> Array:
        """A direction in the order of the design's columns."""
        if not self.intercept:
            return np.concatenate([intercept, coef[0]])
        table = np.column_stack([intercept, coef]) if fit_intercept else coef
        return np.asarray((table[1:] - table[0] if len(table) > 1 else table).ravel())

    def modelled(self, y: Any, used: Array) -> str:
        """Of which outcome the coefficients are, where it needs to be said."""
        return ""

    def warn_of(self, y: Any) -> None:
        """Warn where the outcomes may not mean what they are taken for."""

    def remainder(self, report: Any, data: Data, identified: Any) -> Any:
        """The regression whose estimate gives the finite coefficients."""
        kept = report.used & ~report.separated
        design = self.rows(data)
        return Remainder(kept, identified(design, kept[design.example]))


class Labels(Family):
    """Binomial (labels of two classes, or trials) and multinomial (labels of more classes)."""

    def outcomes(self, y: Any) -> Array:
        if self.name == "binomial" and are_trials(y):
            return nonnegative(y)
        y = labels_of(y)
        check_classification_targets(y)
        n_classes = len(np.unique(y))
        if self.name == "binomial" and n_classes > 2:
            raise ValueError(
                f"y has {n_classes} classes, not two: see family='multinomial'"
            )
        return y

    def rows(self, data: Data) -> Design:
        y = data.y
        names = ["(intercept)"] * data.intercept + data.names
        classes = np.unique(y)
        trials = y.ndim == 2
        codes = y[:, 0] > 0 if trials else np.searchsorted(classes, y)
        k = 2 if trials else len(classes)
        if k < 2:
            raise ValueError(
                f"y has one class, {classes[0]}; there must be at least two classes"
            )
        at, other = np.nonzero(np.arange(k) != codes[:, None])
        plus, minus = (
            np.where(c > 0, at * (k - 1) + c - 1, -1) for c in (codes[at], other)
        )
        equality = (y > 0).all(axis=1) if trials else np.zeros(len(at), bool)
        one = np.ones((len(y), int(data.intercept)))
        X = (
            sp.hstack([one, data.X], "csr")
            if sp.issparse(data.X)
            else np.hstack([one, data.X])
        )
        if k == 2:
            return Design(data, X, plus, minus, equality, at, 0 * other, names)
        if not names:  # all points are alike
            plus = minus = at
        names = [f"{c}: {name}" for c in classes[1:] for name in names]
        return Design(data, X, plus, minus, equality, at, other, names)

    def modelled(self, y: Any, used: Array) -> str:
        columns = list(getattr(y, "columns", ["successes"]))
        if are_trials(y):
            return f", for {columns[0]}"
        name = getattr(y, "name", None) or (
            columns[0] if hasattr(y, "columns") else "y"
        )
        first, *others = np.unique(np.asarray(y)[used]).tolist()
        one = first if len(others) > 1 else others[0]
        one = f"{one:.17g}" if isinstance(one, float) else one
        return f", {'against' if len(others) > 1 else 'for'} {name} = {one}"

    def separated(self, rows: Array) -> Array:
        return np.asarray(rows.sum(axis=1) >= max(rows.shape[1] - 1, 1))

    def remainder(self, report: Any, data: Data, identified: Any) -> Any:
        if report.separated_rows.shape[1] == 1:
            return super().remainder(report, data, identified)
        return np.asarray(report.used[:, None] & ~report.separated_rows)


class Counts(Labels):
    """Poisson, and negative binomial with given dispersion: as y successes and one failure."""

    modelled = Family.modelled

    def outcomes(self, y: Any) -> Array:
        if np.ndim(y) == 2:
            raise ValueError(
                f"counts must have one dimension, but y has the shape {np.shape(y)}"
            )
        return np.column_stack([nonnegative(y), np.ones(len(y))])


class Ordinal(Family):
    """Categories in an order: ``P(y <= j) = F(theta_j - x beta)``. Thresholds come first."""

    intercept = False
    fills = True  # in the first and the last category

    def read(
        self, X: Any, y: Any, more: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        X = numbers_of(X)
        y = getattr(y, "values", y)
        if not hasattr(y, "categories"):
            names, codes = np.unique(labels_of(y), return_inverse=True)
            return X, codes, {**more, "categories": names.tolist()}
        if not y.ordered:
            raise ValueError(
                "the categories of y have no order: see pandas.Categorical(ordered=)"
            )
        if np.any(y.codes < 0):
            raise ValueError("y contains NaN")
        return X, np.asarray(y.codes), {**more, "categories": list(y.categories)}

    def warn_of(self, y: Any) -> None:
        values = getattr(y, "values", y)
        if hasattr(values, "categories") or not isinstance(next(iter(values)), str):
            return
        order = " < ".join(np.unique(values).tolist())
        warn(
            f"y holds words, and these are taken in alphabetical order, {order}: give "
            "pandas.Categorical(y, categories, ordered=True) for another one",
            UserWarning,
        )

    def rows(self, data: Data) -> Design:
        used, j = np.unique(data.y, return_inverse=True)
        k = len(used)
        names = [str(data.more["categories"][c]) for c in used]
        if k < 2:
            raise ValueError(
                f"y has one category, {names[0]}; there must be at least two"
            )
        at, half = np.nonzero(
            np.column_stack([j < k - 1, j > 0])
        )  # y <= j and y >= j may fail
        plus, minus = np.where(half, (k - 1 + at, j[at] - 1), (j[at], k - 1 + at))
        names = [*(f"{a}|{b}" for a, b in pairwise(names)), *data.names]
        X = sp.block_diag([sp.eye_array(k - 1), data.X], format="csr")
        return Design(data, X, plus, minus, np.zeros(len(at), bool), at, half, names)

    def remainder(self, report: Any, data: Data, identified: Any) -> OutcomeBounds:
        design = self.rows(data)
        separated = report.separated_rows
        place = np.zeros(data.n, int)
        place[data.example] = np.unique(data.y, return_inverse=True)[1]
        lower = np.where(separated[:, 1], 0, place)
        upper = np.where(separated[:, 0], place.max(), place)
        rest = identified(design, ~separated[design.example, design.column])
        return OutcomeBounds(report.used & ~report.separated, lower, upper, rest)


class _Compared(Family):
    """Base of Cox's regression and choices: rows ``x_i - x_j``, without an intercept.

    ``pairs`` returns winners, rivals, whether a row is an equality, and further fields.
    """

    intercept = False
    compares = True
    pairs: Callable[[Data], list[Array]]

    def rows(self, data: Data) -> Design:
        winner, rival, equality, *span = self.pairs(data)
        column = data.example[rival]
        more = tuple(span)
        return Design(
            data, data.X, winner, rival, equality, winner, column, data.names, more
        )


class Cox(_Compared):
    """Times of events, strata, late entries."""

    takes = ("strata", "entry", "offset")
    noun = "subjects"
    perfect = "have an event at which others at risk are ruled out"

    def read(
        self, X: Any, y: Any, more: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        if "entry" in more:
            entry = check_array(
                more["entry"], dtype=float, ensure_2d=False, input_name="entry"
            )
            check_consistent_length(entry, y)
            late = np.flatnonzero(entry >= y[:, 0])
            if len(late):
                raise ValueError(
                    f"entry must be before time, but is not for example {late[0]}"
                )
            more["entry"] = entry
        if "strata" in more:
            more["strata"] = codes(more["strata"], "strata", len(y))
        return X, y, more

    def outcomes(self, y: Any) -> Array:
        fields = getattr(getattr(y, "dtype", None), "names", None)
        if fields:  # a structured array
            event = [name for name in fields if y.dtype[name].kind == "b"]
            if len(fields) != 2 or len(event) != 1:
                raise ValueError(
                    "a structured y must have two fields: an event (bool) and a time"
                )
            (time,) = set(fields) - set(event)
            y = np.column_stack([y[time], y[event[0]]])
        table = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError("y must have two columns, time and event, or two fields")
        if not np.isin(table[:, 1], (0.0, 1.0)).all():
            raise ValueError(
                "the second column of y, the events, must hold 1 and 0 only"
            )
        return np.asarray(table)

    def pairs(self, data: Data) -> list[Array]:
        """Winners, rivals, whether a row is an equality; the first and last time of each
        comparison; and each subject's last event time at risk.

        One subject with an event, the head, stands for each event time. Others with an event then
        are equal to it, as each is at risk at the other's event. Any other subject is compared with
        the head of its last event time at risk. This head is at risk at earlier times, so that
        their heads are above it; if it entered late, the comparison continues with the head of the
        time before its entry. By transitivity, these rows imply all others. (Complex numbers sort
        by their real part first.)
        """
        time, event = data.y.T
        strata = data.more.get("strata")
        entry = data.more.get("entry", np.full(len(time), -np.finfo(float).max))
        now, before = (t if strata is None else strata + 1j * t for t in (time, entry))
        dead = np.flatnonzero(event > 0)
        if "entry" in data.more:
            dead = dead[
                np.argsort(entry[dead], kind="stable")
            ]  # early entries last longest
        times, first = np.unique(now[dead], return_index=True)
        heads = dead[first]
        order = np.argsort(now)
        last = np.zeros(len(now), int)
        last[order] = np.searchsorted(times, now[order], side="right") - 1
        since = np.searchsorted(times, before, side="right")
        i = dead[heads[last[dead]] != dead]
        parts = [(heads[last[i]], i, np.ones(len(i), bool), since[i], last[i])]
        at = last.copy()
        at[heads] -= 1
        at[i] = since[heads[last[i]]] - 1  # later times are implied by their head
        i = np.flatnonzero(at >= since)
        total = 0
        while len(i):
            m = at[i]
            total = total + len(i)
            if total > _MOST_PAIRS:
                raise MemoryError("late entries make too many comparisons")
            both = np.maximum(since[i], since[heads[m]])  # since when both are at risk
            parts.append((heads[m], i, np.zeros(len(i), bool), both, m))
            at[i] = since[heads[m]] - 1
            i = i[at[i] >= since[i]]
        return [*(np.concatenate(part) for part in zip(*parts, strict=True)), last]

    def table(self, design: Design, separated: Array) -> Array:
        """Events at which a subject at risk is ruled out."""
        data = design.data
        since, until, last = design.span
        dead = data.y[:, 1] > 0
        out = np.zeros((data.n, 1), bool)
        change = np.zeros(int(last.max()) + 3, int)
        np.add.at(change, since[separated], 1)
        np.add.at(change, until[separated] + 1, -1)
        out[data.example[dead], 0] = np.cumsum(change)[last[dead]] > 0
        return out

    def remainder(self, report: Any, data: Data, identified: Any) -> Strata:
        """Subjects that tie, directly or through others, stay in one stratum."""
        design = self.rows(data)
        tied = ~report.pairs
        n = len(data.example)
        ends = design.plus[tied], design.minus[tied]
        graph = sp.csr_array((np.ones(len(ends[0])), ends), (n, n))
        new = np.full(data.n, -1)
        new[data.example] = connected_components(graph, directed=False)[1]
        return Strata(np.unique(new, return_inverse=True)[1], identified(design, tied))


class Conditional(_Compared):
    """Choices in groups."""

    takes = ("groups", "offset")
    noun = "alternatives"
    perfect = "are chosen where others of the group are ruled out"

    def read(
        self, X: Any, y: Any, more: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        if "groups" not in more:
            raise ValueError(
                "groups is missing: family='conditional' needs the group of each row"
            )
        return X, y, {**more, "groups": codes(more["groups"], "groups", len(y))}

    def outcomes(self, y: Any) -> Array:
        y = column_or_1d(
            check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        )
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError(
                "y must hold 1 for alternatives that were chosen, 0 for others"
            )
        return np.asarray(y)

    def pairs(self, data: Data) -> list[Array]:
        group = np.unique(data.more["groups"], return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        chosen = order[data.y[order] > 0]
        others = order[data.y[order] == 0]
        rivals = np.bincount(group[others], minlength=int(group.max()) + 1)
        count = rivals[group[chosen]]
        start = (np.cumsum(rivals) - rivals)[group[chosen]]
        if count.sum() > _MOST_PAIRS:
            raise MemoryError("many chosen of many make too many comparisons")
        place = np.arange(count.sum()) - np.repeat(
            np.cumsum(count) - count - start, count
        )
        winner = np.repeat(chosen, count)
        return [winner, others[place], np.zeros(len(winner), bool)]

    def remainder(self, report: Any, data: Data, identified: Any) -> Remainder:
        """Alternatives that tie with others, so that their choice is not certain."""
        design = self.rows(data)
        tied = ~report.pairs
        kept = np.zeros(data.n, bool)
        kept[design.example[tied]] = kept[design.column[tied]] = True
        return Remainder(kept, identified(design, tied))


# ---- pairs and rankings


class Pairs(Family):
    """Comparisons of items (Bradley and Terry): two columns; or rankings (Plackett and Luce),
    without outcomes: items in order, and at the end a set of unranked ones.
    """

    intercept = False
    fills = True  # beyond the end of a ranking
    noun = "comparisons"

    def read(
        self, X: Any, y: Any, more: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        if y is None:
            both = [list(ranking) for ranking in X]
            if not both:
                raise ValueError("there are no rankings")
            X = np.empty((len(both), 2), object)
            for i, items in enumerate(both):
                rest = (
                    sorted(items.pop())
                    if isinstance(items[-1], (set, frozenset))
                    else []
                )
                if len({*items, *rest}) < len(items) + len(rest):
                    raise ValueError(f"ranking {i} has an item twice")
                X[i, 0] = items
                X[i, 1] = rest
            return X, None, more
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(
                f"X must have two columns, of items, but its shape is {X.shape}"
            )
        if np.any(X[:, 0] == X[:, 1]):
            raise ValueError("an item is compared with itself")
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if y.ndim != 1 or not np.all((y == 0.0) | (y == 1.0) | (y == 0.5)):
            raise ValueError(
                "y must be 1 if the first item wins, 0 if the second, 0.5 if none"
            )
        return X, y, more

    def rows(self, data: Data) -> Design:
        """Comparisons of items; the strength of the first item is 0."""
        pairs = data.X
        y = data.y
        n = len(data.X)
        at = np.arange(n)
        column = np.zeros(n, int)
        if y is None:
            turns = [
                [*pairwise(x), *((x[-1], z) for z in rest if x)] for x, rest in data.X
            ]
            pairs = np.array([pair for t in turns for pair in t]).reshape(-1, 2)
            at = np.repeat(at, [len(t) for t in turns])
            y = np.ones(len(pairs))
            column = np.array([c for t in turns for c in range(len(t))], dtype=int)
        if not len(y):
            raise ValueError("nothing is compared with anything")
        if pairs.dtype.kind == "f" and np.isnan(pairs).any():
            raise ValueError("an item is NaN")
        try:
            items, places = np.unique(pairs, return_inverse=True)
        except TypeError as error:
            raise ValueError("items must all be words, or all be numbers") from error
        first, second = places.reshape(-1, 2).T
        won, lost = np.flatnonzero(y > 0), np.flatnonzero(y < 1)  # draws are both
        winner = np.append(first[won], second[lost])
        loser = np.append(second[won], first[lost])
        some = np.append(won, lost)
        X = sp.eye_array(len(items) - 1, format="csr")
        names = [str(x) for x in items[1:].tolist()]
        never = np.zeros(len(some), bool)
        table = (at[some], column[some])
        data = data._replace(X=X)
        return Design(data, X, winner - 1, loser - 1, never, *table, names)

    def remainder(self, report: Any, data: Data, identified: Any) -> Any:
        """A mask of comparisons, or the remaining rankings."""
        kept = report.used & ~report.separated
        out = list[list[Any]]()
        if data.y is not None:
            return kept
        for i, (ranked, rest) in zip(data.example, data.X, strict=True):
            gone = report.separated_rows[i]
            last = len(ranked) - 1
            cuts = np.flatnonzero(gone[:last]) + 1
            parts = [
                ranked[a:b] for a, b in zip([0, *cuts], [*cuts, last + 1], strict=True)
            ]
            left = {x for x, cut in zip(rest, gone[last:], strict=False) if not cut}
            parts[-1] = [*parts[-1], left] if left else parts[-1]
            out += [part for part in parts if len(part) > 1 and kept[i]]
        return out


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Labels(
            "binomial",
            "logistf or brglm2 in R, firthmodels in Python",
            "Logit",
            "Probit",
        ),
        Labels("multinomial", "brglm2 in R", "MNLogit"),
        Ordinal("ordinal", "brglm2 in R, of adjacent categories", "OrderedModel"),
        Counts("poisson", "brglm2 in R", "Poisson"),
        Counts("negative_binomial", "brglm2 in R", "NegativeBinomial"),
        Cox("cox", "coxphf in R", "PHReg"),
        Conditional(
            "conditional", "coxphf in R, of strata with one choice", "ConditionalLogit"
        ),
        Pairs(
            "pairs",
            "BradleyTerry2 in R, with br=TRUE; rankings: PlackettLuce, with npseudo",
        ),
    )
}


# ---- arguments


def family_of(name: str | None, y: Any) -> Family:
    """The family by its name; None: binomial or multinomial, from y."""
    if name is not None and name not in FAMILIES:
        raise ValueError(
            f"family must be one of {', '.join(FAMILIES)}, but is {name!r}"
        )
    few = name is None and (are_trials(y) or len(set(np.ravel(y).tolist())) <= 2)
    return FAMILIES[name or ("binomial" if few else "multinomial")]


def data_of(family: Family, X: Any, given: Mapping[str, Any]) -> Data:
    """The examples of positive weight, with trials, read by their family."""
    y = given["y"]
    names = given["feature_names"]
    weight = given["sample_weight"]
    more = {
        k: given[k]
        for k in ("offset", "strata", "entry", "groups")
        if given[k] is not None
    }
    for key in more:
        if key not in family.takes:
            who = ", ".join(repr(f.name) for f in FAMILIES.values() if key in f.takes)
            raise ValueError(
                f"{key} is for family {who}, but the family is {family.name!r}"
            )
    pairs = family.name == "pairs"
    if y is None and not pairs:
        raise ValueError(f"y is missing: family={family.name!r} needs it")
    if "offset" in more:
        offset = check_array(more.pop("offset"), ensure_2d=False, input_name="offset")
        check_consistent_length(offset, X if y is None else y)
    if isinstance(names, str):
        raise ValueError(f"feature_names must be a list of names, but is {names!r}")
    if names is None and hasattr(X, "design_info"):  # a matrix of patsy
        names = X.design_info.column_names
    names = _get_feature_names(X) if names is None else names
    X, y, more = family.read(X, y, more)
    check_consistent_length(X, y)
    n = X.shape[0]
    names = [f"x{j}" for j in range(X.shape[1])] if names is None else names
    if len(names) != X.shape[1] and not pairs:
        raise ValueError(
            f"feature_names has {len(names)} names, but X has {X.shape[1]} columns"
        )
    used = (
        y.any(axis=1)
        if isinstance(family, Labels) and y.ndim == 2
        else np.ones(n, bool)
    )
    if weight is not None:
        used &= (
            _check_sample_weight(weight, used[:, None], ensure_non_negative=True) > 0
        )
    if not used.any():
        raise ValueError(
            "no example counts; there must be at least one non-zero weight"
        )
    if not used.all():
        X = X[used]
        y = None if y is None else y[used]
        more = {k: v[used] if isinstance(v, np.ndarray) else v for k, v in more.items()}
    names = [str(name) for name in names]
    asked = bool(given["fit_intercept"] and family.intercept)
    constant = _constant_of(X, names) if asked else None
    added = asked and constant is None
    return Data(X, y, np.flatnonzero(used), n, names, added, more, constant)


def _constant_of(X: Any, names: list[str]) -> str | None:
    """The first column that has one value in all rows, other than 0."""
    high, low = (dense(end(axis=0)).ravel() for end in (X.max, X.min))
    equal = np.flatnonzero((high == low) & (high != 0.0))
    return names[equal[0]] if len(equal) else None


def labels_of_rows(table: Any) -> Any:
    """The index of a frame or a series; None: it has none."""
    index = getattr(table, "index", None)
    return None if callable(index) else index  # a method of lists


def with_labels_of(X: Any, y: Any) -> Any:
    """Outcomes, with the labels of the rows of a frame X where they have none of their own."""
    index = labels_of_rows(X)
    if y is None or index is None or labels_of_rows(y) is not None:
        return y
    import pandas as pd

    values = np.asarray(y)
    kind = pd.Series if values.ndim == 1 else pd.DataFrame
    return y if values.dtype.names else kind(values, index=index)


def numbers_of(X: Any) -> Any:
    """X as an array of float64, dense or CSR."""
    refuse_foreign("check_separability", X)
    check_exact(X)
    try:
        how: Any = {"accept_sparse": "csr", "ensure_min_features": 0}
        X = check_array(X, dtype=(np.float64, np.float32), **how)
    except ValueError as error:
        advice = {
            "NaN": "X contains NaN; leave out the examples with missing values, or impute them",
            "convert": "X holds words, but numbers are needed; give categories as dummies: "
            "pandas.get_dummies(X, drop_first=True)",
        }
        text = next(
            (text for word, text in advice.items() if word in str(error)), str(error)
        )
        raise ValueError(text) from error
    return X.astype(np.float64, copy=False)


def are_trials(y: Any) -> bool:
    """Whether y has two columns, of successes and failures."""
    return np.ndim(y) == 2 and np.shape(y)[1] == 2


def labels_of(y: Any) -> Array:
    """Labels in one column."""
    y = column_or_1d(y)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def nonnegative(y: Any) -> Array:
    """Counts, in one column or several."""
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    if y.min() < 0:
        raise ValueError("counts must not be negative, but some in y are")
    return np.asarray(y)


def codes(values: Any, name: str, n: int) -> Array:
    """Integers for labels, in one column or several."""
    values = np.asarray(values)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(
            f"{name} contains NaN; give those examples a label of their own"
        )
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(
            f"{name} must have {n} entries, but has the shape {values.shape}"
        )
    columns = values.reshape(n, -1).T
    each = np.column_stack(
        [np.unique(column, return_inverse=True)[1] for column in columns]
    )
    return np.asarray(np.unique(each, axis=0, return_inverse=True)[1]).ravel()
