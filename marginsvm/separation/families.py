"""The families of regressions: their arguments, and the rows of their recession cones.

The recession cone holds the directions w in which the likelihood does not decrease. A row a stands
for ``a w >= 0`` or, for an equality, ``a w = 0``. All rows are signed sums of examples, in blocks
of columns,

    A = [T, S_1 (1, X), ..., S_k (1, X)],

with sparse S of -1, 0 and 1, and T for thresholds: the same function of floats and of integers.

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
pairs              a graph (``Met``)
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
from scipy.sparse.csgraph import breadth_first_order, connected_components
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

from marginsvm._rounding import check_exact
from marginsvm._threads import cached_property
from marginsvm._typing import Array
from marginsvm.estimators.inputs import refuse_foreign

COMPLETE, QUASI, OVERLAP, UNDECIDED = "complete", "quasi-complete", "overlap", "undecided"
FINITE, PLUS, MINUS, EITHER, UNIDENTIFIED = "finite", "+inf", "-inf", "inf", "not identified"
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


def completed(separated: Array, rows: Array) -> Array:
    """A table in which entries without a row are true where all rows of the example are."""
    every = rows.any(axis=1, keepdims=True) & (separated >= rows)
    return np.asarray(separated | np.all(every, axis=1, keepdims=True))


class TooLargeError(Exception):
    """Too many rows."""


# ---- examples, numbers, rows


class Data(NamedTuple):
    """The examples used: X, outcomes, indices among the n given ones, names of features."""

    X: Any
    y: Any
    example: Array
    n: int
    names: list[str]
    intercept: bool
    more: Mapping[str, Any]


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
    out, unit, rounded = np.ldexp(x, -low), np.ldexp(1.0, -low), high - low > 48
    top = np.abs(x).max(axis=0, initial=0.0)
    digits = 13 - np.ceil(np.log10(np.where(top > 0, top, 1.0)))
    for p in range(23):
        ten = 10.0**p
        some = np.flatnonzero(rounded & (p <= digits))
        for rows in (slice(50), slice(None)):
            some = some[_are_whole(x[rows][:, some] * ten, top[some] * ten)]
        out[:, some], unit[some], rounded[some] = np.rint(x[:, some] * ten), ten, False
    return sp.csr_array(out) if sp.issparse(X) else out, unit, rounded


def _are_whole(v: Array, top: Array) -> Array:
    """Columns whose entries are within rounding (1e-15, relative) of integers.

    A non-zero entry smaller than the rounding of the largest one is not an integer.
    """
    size, whole = np.abs(v), np.rint(v)
    near = np.abs(v - whole) <= 1e-15 * np.maximum(size, 1e-3 * top)
    return np.asarray((near & ((whole != 0) | (v == 0) | (size >= 2.0**-56 * top))).all(axis=0))


def dense(A: Any) -> Array:
    """Rows as an array."""
    return np.asarray(A.toarray() if sp.issparse(A) else A)


def signs_of(at: Array, sign: Array, n: int) -> sp.csr_array:
    """Signed examples as rows: one non-zero of n each, none where the sign is 0."""
    indptr = np.append(0, np.cumsum(sign != 0))
    some = sign != 0
    return sp.csr_array((sign[some].astype(np.int64), at[some], indptr), shape=(len(sign), n))


@dataclass
class Design:
    """The rows of a regression.

    Attributes
    ----------
    data : Data
    select : list of csr_array of int, shape (n_rows, n_examples)
        S, one for each block.
    equality : ndarray of bool, shape (n_rows,)
    at, column : ndarray of int, shape (n_rows,)
        Position of each row in the report's tables: index of its example, and column.
    names : list of str
        Of the columns.
    fixed : csr_array of int, shape (n_rows, n_fixed)
        T.
    is_whole, unit, rounded
        Whether X is in integers; the factors of its columns; and which columns were rounded (all,
        if X is too large).
    span : tuple of ndarray
        Cox: the first and the last event time at which both subjects of a comparison are at risk.
    """

    data: Data
    select: list[Any]
    equality: Array
    at: Array
    column: Array
    names: list[str]
    fixed: Any = None
    span: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        self.shape = len(self.equality), len(self.names)
        self.example = self.data.example[self.at]
        if self.fixed is None:
            self.fixed = sp.csr_array((self.shape[0], 0), dtype=np.int64)
        X, d = self.data.X, self.data.X.shape[1]
        printed = as_printed(X) if X.shape[0] * d <= EXACT else None
        self.is_whole = printed is not None
        self.X, unit, rounded = printed or (X, np.ones(d), np.ones(d, bool))
        self.unit, self.rounded = self._of_columns(unit, 1.0), self._of_columns(rounded, False)

    @cached_property
    def is_sparse(self) -> bool:
        """Whether rows in floats are sparse: X is, or most of their blocks are empty."""
        used = self.fixed.nnz + (self.X.shape[1] + 1) * sum(S.nnz for S in self.select)
        return sp.issparse(self.X) or self.shape[0] * self.shape[1] > _SPARSE * used

    def rows(self, at: Array) -> Any:
        """Rows in floats."""
        parts = self._parts(at, lambda used: self.X[used])
        if self.is_sparse:
            return sp.csr_array(sp.hstack(parts, format="csr"), dtype=float)
        return np.hstack([dense(part) for part in parts]).astype(float, copy=False)

    def integers(self, at: Array) -> Array:
        """Rows in integers."""

        def whole(used: Array) -> Array:
            X = dense(self.X[used])
            if np.abs(X).max(initial=0.0) < 2.0**61:
                return X.astype(np.int64)
            return np.array([[int(v) for v in x] for x in X.tolist()], object).reshape(X.shape)

        return np.hstack([dense(part) for part in self._parts(at, whole)])

    def errors(self, at: Array) -> Array:
        """Bounds on the error of rows in floats relative to those of X as printed."""
        sizes = self._parts(at, lambda used: abs(self.X[used]), abs)
        return 2.0**-49 * (np.hstack([dense(part) for part in sizes]) + 2.0**-9 * self.reach)

    def _parts(
        self, at: Array, examples: Callable[[Array], Any], sign: Any = sp.csr_array
    ) -> list[Any]:
        parts = [sign(self.fixed[at])]
        for S in self.select:
            some = sign(S[at])
            used = np.unique(some.indices)
            if self.data.intercept:
                parts.append(sp.csr_array(some.sum(axis=1)[:, None]))
            parts.append(_times(some[:, used], examples(used)))
        return parts

    @cached_property
    def reach(self) -> Array:
        """The largest absolute value of the examples in each column, 1 for zeros."""
        top = np.maximum(dense(self.X.max(axis=0)), -dense(self.X.min(axis=0))).ravel()
        return self._of_columns(np.where(top > 0, top, 1.0), 1.0)

    def _of_columns(self, values: Array, one: Any) -> Array:
        block = np.append(np.full(int(self.data.intercept), one), values)
        return np.concatenate([np.full(self.fixed.shape[1], one), *[block] * len(self.select)])

    def margins(self, W: Array) -> Array:
        """``A W``, by products with the examples."""
        t, one = self.fixed.shape[1], int(self.data.intercept)
        out = self.fixed @ W[:t]
        for S, w in zip(self.select, np.split(W[t:], len(self.select)), strict=True):
            out = out + S @ (self.X @ w[one:] + w[:one].sum(axis=0))
        return np.asarray(out)

    def features(self, columns: Array) -> Array:
        """The features of some columns."""
        one, at = int(self.data.intercept), columns - self.fixed.shape[1]
        feature = at[at >= 0] % (self.X.shape[1] + one) - one
        return np.unique(feature[feature >= 0])


def _times(S: Any, X: Any) -> Any:
    """``S X``, also for Python integers."""
    if X.dtype != object:
        return S @ X
    out = np.zeros((S.shape[0], X.shape[1]), object)
    row = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    np.add.at(out, row, S.data.astype(object)[:, None] * X[S.indices])
    return out


# ---- families


class Family:
    """A family of regressions; the methods here are those of most families.

    Attributes
    ----------
    name : str
    firth : str
        Software that fits it with Firth's penalty.
    takes : tuple of str
        Further arguments of ``check_separability`` for it.
    intercept : bool
        Whether it may have an intercept.
    noun, perfect : str
        Words of the report for examples, and for separated ones.
    compares : bool
        Whether rows are pairs of examples.
    """

    takes: tuple[str, ...] = ("offset",)
    intercept = True
    noun, perfect = "examples", "are predicted perfectly"
    compares = False

    def __init__(self, name: str, firth: str) -> None:
        self.name, self.firth = name, firth

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        """X, outcomes and further arguments, checked."""
        return numbers_of(X), self.outcomes(y), more

    def outcomes(self, y: Any) -> Array:
        """Outcomes as an array, checked."""
        raise NotImplementedError

    def rows(self, data: Data) -> Design:
        """The rows of conditions."""
        raise NotImplementedError

    def table(self, design: Design, separated: Array) -> Array:
        """The report's table of separated rows; for pairs of examples, of the winners."""
        column = 0 * design.column if self.compares else design.column
        out = np.zeros((design.data.n, int(column.max(initial=0)) + 1), bool)
        out[design.example[separated], column[separated]] = True
        return out

    def separated(self, rows: Array) -> Array:
        """Mask of the perfectly predicted examples, from that table."""
        return np.asarray(rows.all(axis=1))

    def direction(self, w: Array, design: Design) -> Direction:
        """A direction as coefficients and intercepts."""
        k, one = design.fixed.shape[1], int(design.data.intercept)
        if not self.intercept:
            return Direction(w[None, k:], w[:k])
        table: Array = w.reshape(len(design.select), -1)
        if len(table) > 1:
            table = np.concatenate([np.zeros((1, table.shape[1])), table])
        return Direction(table[:, one:], table[:, :one].sum(axis=1))

    def flat(self, coef: Array, intercept: Array, fit_intercept: bool) -> Array:
        """A direction in the order of the design's columns."""
        if not self.intercept:
            return np.concatenate([intercept, coef[0]])
        table = np.column_stack([intercept, coef]) if fit_intercept else coef
        return np.asarray((table[1:] - table[0] if len(table) > 1 else table).ravel())

    def remainder(self, report: Any, data: Data, identified: Any) -> Any:
        """The regression whose estimate gives the finite coefficients."""
        kept, design = report.used & ~report.separated, self.rows(data)
        return Remainder(kept, identified(design, kept[design.example]))


class Labels(Family):
    """Binomial (labels of two classes, or trials) and multinomial (labels of more classes)."""

    def outcomes(self, y: Any) -> Array:
        if self.name == "binomial" and are_trials(y):
            return nonnegative(y)
        y = column_or_1d(y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        n_classes = len(np.unique(y))
        if self.name == "binomial" and n_classes > 2:
            raise ValueError(f"y has {n_classes} classes, not two: see family='multinomial'")
        return np.asarray(y)

    def rows(self, data: Data) -> Design:
        y, n, titles = data.y, len(data.y), ["(intercept)"] * data.intercept + data.names
        classes = np.unique(y) if y.ndim == 1 else np.arange(2)
        k, every = len(classes), np.arange(n)
        if k < 2:
            raise ValueError(f"y has one class, {classes[0]}; there must be at least two classes")
        if k == 2:
            won, lost = (y > 0).T if y.ndim == 2 else (y == classes[1], y == classes[0])
            S = signs_of(every, np.where(won, 1, -1), n)
            return Design(data, [S], won & lost, every, 0 * every, titles)
        codes = np.searchsorted(classes, y)
        at, other = np.nonzero(np.arange(k) != codes[:, None])
        own = codes[at]
        select = [signs_of(at, (own == c) * 1 - (other == c), n) for c in range(1, k)]
        names = [f"{c}: {name}" for c in classes[1:] for name in titles]
        return Design(data, select, np.zeros(len(at), bool), at, other, names)

    def separated(self, rows: Array) -> Array:
        return np.asarray(rows.sum(axis=1) >= max(rows.shape[1] - 1, 1))

    def remainder(self, report: Any, data: Data, identified: Any) -> Any:
        if report.separated_rows.shape[1] == 1:
            return super().remainder(report, data, identified)
        return np.asarray(report.used[:, None] & ~report.separated_rows)


class Counts(Labels):
    """Poisson, and negative binomial with given dispersion: as y successes and one failure."""

    def outcomes(self, y: Any) -> Array:
        if np.ndim(y) == 2:
            raise ValueError(f"counts must have one dimension, but y has the shape {np.shape(y)}")
        return np.column_stack([nonnegative(y), np.ones(len(y))])


class Ordinal(Family):
    """Categories in an order: ``P(y <= j) = F(theta_j - x beta)``. Thresholds come first."""

    intercept = False

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        X, y = numbers_of(X), getattr(y, "values", y)
        if not hasattr(y, "categories"):
            y = column_or_1d(y)
            assert_all_finite(y, input_name="y")
            names, codes = np.unique(y, return_inverse=True)
            return X, codes, {**more, "categories": names.tolist()}
        if not y.ordered:
            raise ValueError("the categories of y have no order: see pandas.Categorical(ordered=)")
        if np.any(y.codes < 0):
            raise ValueError("y contains NaN")
        return X, np.asarray(y.codes), {**more, "categories": list(y.categories)}

    def rows(self, data: Data) -> Design:
        used, j = np.unique(data.y, return_inverse=True)
        k, names = len(used), [str(data.more["categories"][c]) for c in used]
        if k < 2:
            raise ValueError(f"y has one category, {names[0]}; there must be at least two")
        at, half = np.nonzero(np.column_stack([j < k - 1, j > 0]))  # y <= j and y >= j may fail
        sign = 1 - 2 * half
        theta, S = signs_of(j[at] - half, sign, k - 1), signs_of(at, -sign, len(j))
        names = [*(f"{a}|{b}" for a, b in pairwise(names)), *data.names]
        return Design(data, [S], np.zeros(len(at), bool), at, half, names, theta)

    def table(self, design: Design, separated: Array) -> Array:
        """In the first and last category, the missing row takes the value of the other one."""
        out, known = np.zeros((2, design.data.n, 2), bool)
        at = design.example, design.column
        out[at], known[at] = separated, True
        return completed(out, known)

    def remainder(self, report: Any, data: Data, identified: Any) -> OutcomeBounds:
        design, separated = self.rows(data), report.separated_rows
        place = np.zeros(data.n, int)
        place[data.example] = np.unique(data.y, return_inverse=True)[1]
        lower = np.where(separated[:, 1], 0, place)
        upper = np.where(separated[:, 0], place.max(), place)
        rest = identified(design, ~separated[design.example, design.column])
        return OutcomeBounds(report.used & ~report.separated, lower, upper, rest)


class _Compared(Family):
    """Base of Cox's regression and choices: rows ``x_i - x_j``, without an intercept."""

    intercept = False
    compares = True

    def pairs(self, data: Data) -> list[Array]:
        """Winners, rivals, whether a row is an equality, and further fields."""
        raise NotImplementedError

    def rows(self, data: Data) -> Design:
        winner, rival, equality, *span = self.pairs(data)
        both, sign = np.column_stack([winner, rival]).ravel(), np.tile([1, -1], len(winner))
        n, at = len(data.example), np.arange(0, len(both) + 1, 2)
        S = sp.csr_array((sign, both, at), shape=(len(winner), n))
        names, column = data.names, data.example[rival]
        return Design(data, [S], equality, winner, column, names, None, tuple(span))


class Cox(_Compared):
    """Times of events, strata, late entries."""

    takes = ("strata", "entry", "offset")
    noun, perfect = "subjects", "have an event at which others at risk are ruled out"

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        if "entry" in more:
            entry = check_array(more["entry"], dtype=float, ensure_2d=False, input_name="entry")
            check_consistent_length(entry, y)
            late = np.flatnonzero(entry >= y[:, 0])
            if len(late):
                raise ValueError(f"entry must be before time, but is not for example {late[0]}")
            more["entry"] = entry
        if "strata" in more:
            more["strata"] = codes(more["strata"], "strata", len(y))
        return X, y, more

    def outcomes(self, y: Any) -> Array:
        fields = getattr(getattr(y, "dtype", None), "names", None)
        if fields:  # a structured array
            event = [name for name in fields if y.dtype[name].kind == "b"]
            if len(fields) != 2 or len(event) != 1:
                raise ValueError("a structured y must have two fields: an event (bool) and a time")
            (time,) = set(fields) - set(event)
            y = np.column_stack([y[time], y[event[0]]])
        table = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError("y must have two columns, time and event, or two fields")
        if not np.isin(table[:, 1], (0.0, 1.0)).all():
            raise ValueError("the second column of y, the events, must hold 1 and 0 only")
        return np.asarray(table)

    def pairs(self, data: Data) -> list[Array]:
        """Winners, rivals, whether a row is an equality; the first and last time of each
        comparison; and each subject's last event time at risk.

        One subject with an event, the head, stands for each event time. Others with an event then
        are equal to it, as each is at risk at the other's event. Any other subject is compared with
        the head of its last event time at risk. This head is at risk at earlier times, so that
        their heads are above it; if it entered late, the comparison continues with the head of the
        time before its entry. By transitivity, these rows imply all others.
        """
        (time, event), strata = data.y.T, data.more.get("strata")
        entry = data.more.get("entry", np.full(len(time), -np.inf))
        now, before = _keys(strata, time), _keys(strata, entry)
        dead = np.flatnonzero(event > 0)
        if "entry" in data.more:
            dead = dead[np.argsort(entry[dead], kind="stable")]  # early entries last longest
        times, first = np.unique(now[dead], return_index=True)
        heads, order, last = dead[first], np.argsort(now), np.zeros(len(now), int)
        last[order] = np.searchsorted(times, now[order], side="right") - 1
        since = np.searchsorted(times, before, side="right")
        i = dead[heads[last[dead]] != dead]
        parts = [(heads[last[i]], i, np.ones(len(i), bool), since[i], last[i])]
        at = last.copy()
        at[heads] -= 1
        at[i] = since[heads[last[i]]] - 1  # later times are implied by their head
        i, total = np.flatnonzero(at >= since), 0
        while len(i):
            m, total = at[i], total + len(i)
            if total > _MOST_PAIRS:
                raise TooLargeError("late entries make too many comparisons")
            both = np.maximum(since[i], since[heads[m]])  # since when both are at risk
            parts.append((heads[m], i, np.zeros(len(i), bool), both, m))
            at[i] = since[heads[m]] - 1
            i = i[at[i] >= since[i]]
        return [*(np.concatenate(part) for part in zip(*parts, strict=True)), last]

    def table(self, design: Design, separated: Array) -> Array:
        """Events at which a subject at risk is ruled out."""
        data, (since, until, last) = design.data, design.span
        dead, out = data.y[:, 1] > 0, np.zeros((data.n, 1), bool)
        change = np.zeros(int(last.max()) + 3, int)
        np.add.at(change, since[separated], 1)
        np.add.at(change, until[separated] + 1, -1)
        out[data.example[dead], 0] = np.cumsum(change)[last[dead]] > 0
        return out

    def remainder(self, report: Any, data: Data, identified: Any) -> Strata:
        """Subjects that tie, directly or through others, stay in one stratum."""
        design, tied, n = self.rows(data), ~report.pairs, len(data.example)
        graph = sp.csr_array(abs(design.select[0][tied]))
        new = np.full(data.n, -1)
        new[data.example] = connected_components(graph.T @ graph, directed=False)[1][:n]
        return Strata(np.unique(new, return_inverse=True)[1], identified(design, tied))


def _keys(strata: Any, time: Array) -> Array:
    """Keys that sort times within strata: complex numbers sort by their real part first."""
    if strata is None:
        return time
    out = np.empty(len(time), dtype=complex)
    out.real, out.imag = strata, time
    return out


class Conditional(_Compared):
    """Choices in groups."""

    takes = ("groups", "offset")
    noun, perfect = "alternatives", "are chosen where others of the group are ruled out"

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        if "groups" not in more:
            raise ValueError("groups is missing: family='conditional' needs the group of each row")
        return X, y, {**more, "groups": codes(more["groups"], "groups", len(y))}

    def outcomes(self, y: Any) -> Array:
        y = column_or_1d(check_array(y, dtype=np.float64, ensure_2d=False, input_name="y"))
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError("y must hold 1 for alternatives that were chosen, 0 for others")
        return np.asarray(y)

    def pairs(self, data: Data) -> list[Array]:
        group = np.unique(data.more["groups"], return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        chosen, others = order[data.y[order] > 0], order[data.y[order] == 0]
        rivals = np.bincount(group[others], minlength=int(group.max()) + 1)
        count, start = rivals[group[chosen]], (np.cumsum(rivals) - rivals)[group[chosen]]
        if count.sum() > _MOST_PAIRS:
            raise TooLargeError("many chosen of many make too many comparisons")
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count - start, count)
        winner = np.repeat(chosen, count)
        return [winner, others[place], np.zeros(len(winner), bool)]

    def remainder(self, report: Any, data: Data, identified: Any) -> Remainder:
        """Alternatives that tie with others, so that their choice is not certain."""
        design, tied = self.rows(data), ~report.pairs
        kept = np.zeros(data.n, bool)
        kept[design.example[tied]] = kept[design.column[tied]] = True
        return Remainder(kept, identified(design, tied))


# ---- pairs and rankings


class Met(NamedTuple):
    """Comparisons: names of items, indices of items, and positions in the report's table.

    The graph has an edge from each winner to the loser, and both ways for a draw; a ranking has an
    edge from each item to the next, and from the last to all unranked ones. A direction of the cone
    does not increase along any edge. So it is constant on each strongly connected component, and
    can decrease along all edges between components.
    """

    names: list[str]
    winner: Array
    loser: Array
    example: Array
    column: Array

    @property
    def graph(self) -> sp.csr_array:
        edges = np.ones(len(self.winner)), (self.winner, self.loser)
        return sp.csr_array(edges, shape=2 * (len(self.names),))

    def levels(self) -> Array:
        """Strengths of items in such a direction, equal in a strongly connected component."""
        return np.asarray(connected_components(self.graph, connection="strong")[1])

    def statuses(self, levels: Array) -> list[str]:
        """Of all items but the first: -inf if reachable from it, +inf if it is reachable."""
        graph = self.graph
        out = np.full(len(self.names), EITHER, dtype=object)
        out[breadth_first_order(graph, 0, return_predecessors=False)] = MINUS
        out[breadth_first_order(graph.T.tocsr(), 0, return_predecessors=False)] = PLUS
        out[levels == levels[0]] = FINITE
        part = connected_components(graph, connection="weak")[1]
        out[part != part[0]] = UNIDENTIFIED
        return [str(status) for status in out[1:]]


class Pairs(Family):
    """Comparisons of items (Bradley and Terry): two columns; or rankings (Plackett and Luce),
    without outcomes: items in order, and at the end a set of unranked ones.
    """

    intercept = False
    noun = "comparisons"

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        if y is None:
            both = [list(ranking) for ranking in X]
            if not both:
                raise ValueError("there are no rankings")
            X = np.empty((len(both), 2), object)
            for i, items in enumerate(both):
                rest = sorted(items.pop()) if isinstance(items[-1], (set, frozenset)) else []
                if len({*items, *rest}) < len(items) + len(rest):
                    raise ValueError(f"ranking {i} has an item twice")
                X[i, 0], X[i, 1] = items, rest
            return X, None, more
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(f"X must have two columns, of items, but its shape is {X.shape}")
        if np.any(X[:, 0] == X[:, 1]):
            raise ValueError("an item is compared with itself")
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if y.ndim != 1 or not np.all((y == 0.0) | (y == 1.0) | (y == 0.5)):
            raise ValueError("y must be 1 if the first item wins, 0 if the second, 0.5 if none")
        return X, y, more

    def met(self, data: Data) -> Met:
        pairs, y, example, column = data.X, data.y, data.example, np.zeros(len(data.X), int)
        if y is None:
            turns = [[*pairwise(x), *((x[-1], z) for z in rest if x)] for x, rest in data.X]
            pairs = np.array([pair for t in turns for pair in t]).reshape(-1, 2)
            example, y = np.repeat(example, [len(t) for t in turns]), np.ones(len(pairs))
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
        winner, loser = np.append(first[won], second[lost]), np.append(second[won], first[lost])
        at, names = np.append(won, lost), [str(x) for x in items.tolist()]
        return Met(names, winner, loser, example[at], column[at])

    def remainder(self, report: Any, data: Data, identified: Any) -> Any:
        """A mask of comparisons, or the remaining rankings."""
        kept, out = report.used & ~report.separated, list[list[Any]]()
        if data.y is not None:
            return kept
        for i, (ranked, rest) in zip(data.example, data.X, strict=True):
            gone, last = report.separated_rows[i], len(ranked) - 1
            cuts = np.flatnonzero(gone[:last]) + 1
            parts = [ranked[a:b] for a, b in zip([0, *cuts], [*cuts, last + 1], strict=True)]
            left = {x for x, cut in zip(rest, gone[last:], strict=False) if not cut}
            parts[-1] = [*parts[-1], left] if left else parts[-1]
            out += [part for part in parts if len(part) > 1 and kept[i]]
        return out


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Labels("binomial", "logistf or brglm2 in R, firthmodels in Python"),
        Labels("multinomial", "brglm2 in R"),
        Ordinal("ordinal", "brglm2 in R, of adjacent categories"),
        Counts("poisson", "brglm2 in R"),
        Counts("negative_binomial", "brglm2 in R"),
        Cox("cox", "coxphf in R"),
        Conditional("conditional", "coxphf in R, of groups with one choice as strata"),
        Pairs("pairs", "BradleyTerry2 in R, with br=TRUE; rankings: PlackettLuce, with npseudo"),
    )
}


# ---- arguments


def family_of(name: str | None, y: Any) -> Family:
    """The family by its name; None: binomial or multinomial, from y."""
    if name is not None and name not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, but is {name!r}")
    if name is not None:
        return FAMILIES[name]
    if y is None:
        raise ValueError("y is missing; only some families go without, see family")
    try:
        few = are_trials(y) or len(np.unique(np.asarray(y))) <= 2
    except TypeError:  # words and numbers, which the family refuses
        few = False
    return FAMILIES["binomial" if few else "multinomial"]


def data_of(
    family: Family,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    feature_names: Any = None,
    **more: Any,
) -> Data:
    """The examples of positive weight, with trials, read by their family."""
    given = {key: value for key, value in more.items() if value is not None}
    for key in given:
        if key not in family.takes:
            who = ", ".join(repr(f.name) for f in FAMILIES.values() if key in f.takes)
            raise ValueError(f"{key} is for family {who}, but the family is {family.name!r}")
    pairs = family.name == "pairs"
    if y is None and not pairs:
        raise ValueError(f"y is missing: family={family.name!r} needs it")
    if "offset" in given:
        offset = check_array(given.pop("offset"), ensure_2d=False, input_name="offset")
        check_consistent_length(offset, X if y is None else y)
    names = _get_feature_names(X) if feature_names is None else feature_names
    X, y, given = family.read(X, y, given)
    check_consistent_length(X, y)
    n, names = X.shape[0], [f"x{j}" for j in range(X.shape[1])] if names is None else names
    if len(names) != X.shape[1] and not pairs:
        raise ValueError(f"feature_names has {len(names)} names, but X has {X.shape[1]} columns")
    trials = isinstance(family, Labels) and y.ndim == 2
    used = y.any(axis=1) if trials else np.ones(n, bool)
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, used[:, None], ensure_non_negative=True)
        used = used & (weight > 0)
    if not used.any():
        raise ValueError("no example counts; there must be at least one non-zero weight")
    if not used.all():
        X, y = X[used], None if y is None else y[used]
        given = {k: v[used] if isinstance(v, np.ndarray) else v for k, v in given.items()}
    one = bool(fit_intercept and family.intercept)
    return Data(X, y, np.flatnonzero(used), n, [str(name) for name in names], one, given)


def numbers_of(X: Any) -> Any:
    """X as an array of float64, dense or CSR."""
    refuse_foreign("check_separability", X)
    check_exact(X)
    try:
        X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    except ValueError as error:
        advice = {
            "NaN": "X contains NaN; leave out the examples with missing values, or impute them",
            "convert": "X holds words, but numbers are needed; give categories as dummies: "
            "pandas.get_dummies(X, drop_first=True)",
        }
        known = [text for word, text in advice.items() if word in str(error)]
        raise ValueError((known or [str(error)])[0]) from error
    return X.astype(np.float64, copy=False)


def are_trials(y: Any) -> bool:
    """Whether y has two columns, of successes and failures."""
    return np.ndim(y) == 2 and np.shape(y)[1] == 2


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
        raise ValueError(f"{name} contains NaN; give those examples a label of their own")
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(f"{name} must have {n} entries, but has the shape {values.shape}")
    if values.ndim == 1:
        return np.asarray(np.unique(values, return_inverse=True)[1])
    each = np.column_stack([np.unique(column, return_inverse=True)[1] for column in values.T])
    return np.asarray(np.unique(each, axis=0, return_inverse=True)[1]).ravel()
