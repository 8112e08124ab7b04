"""The families of regressions: what is asked of outcomes, and the rows of their conditions.

=================  ================================================================================
family             rows of an example x = (1, features)
=================  ================================================================================
binomial           x for a success, -x for a failure. Trials, as counts: the same if all of them
                   are alike; else x, as an equality
multinomial        one for each other class: x in the block of the own, -x in that of the other;
                   the first class, the reference, has no block
ordinal            ``theta_j - x beta`` and ``x beta - theta_(j-1)`` for category j, but for the
                   last and the first; links whose density is log-concave
poisson,           -x if the count is 0; else x, as an equality
negative_binomial
cox                ``x_i - x_j`` for an event of i at which j is at risk (Breslow's ties, and
                   Efron's): by transitivity, few of these are all (``Cox.rows``)
conditional        ``x_i - x_j`` for i chosen and j not, in each group
=================  ================================================================================

An example without trials, and one of weight 0, has no rows. Offsets change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.estimators.inputs import refuse_foreign
from marginsvm.separation.design import Design
from marginsvm.separation.program import identified

INTERCEPT = "(intercept)"
_MOST_PAIRS = 2**24  # comparisons of subjects, some 400 MB


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


class Remainder(NamedTuple):
    """Examples and columns of the regression that has the finite coefficients.

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
    """What to fit for the finite coefficients of Cox's regression.

    Attributes
    ----------
    strata : ndarray of int, shape (n_samples,)
        The old strata, divided: subjects stay together who tie along the direction.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    strata: Array
    columns: Array


class OutcomeBounds(NamedTuple):
    """What is still known of each outcome of an ordinal regression.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_samples,)
        Examples of which something is.
    lower, upper : ndarray of int, shape (n_samples,)
        Places, among the categories that occur, that the outcome is between; the first and the
        last one bound nothing.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    rows: Array
    lower: Array
    upper: Array
    columns: Array


@dataclass(frozen=True)
class Data:
    """The examples that count.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_used, n_features), float64; pairs: the items
    y : ndarray of shape (n_used,) or (n_used, 2)
        As their family has read them.
    example : ndarray of int, shape (n_used,)
        Their places among the n given ones.
    n : int
    names : list of str
        Of the features.
    fit_intercept : bool
    more : mapping
        Further arguments, of these examples.
    """

    X: Any
    y: Any
    example: Array
    n: int
    names: list[str]
    fit_intercept: bool
    more: Mapping[str, Any]

    @property
    def titles(self) -> list[str]:
        """Names of the columns of a block."""
        return [INTERCEPT] * self.fit_intercept + self.names

    def signed(self, at: Array, sign: Array) -> sp.csr_array:
        """Rows that are examples with signs."""
        n = len(at)
        return sp.csr_array((sign, at, np.arange(n + 1)), shape=(n, self.X.shape[0]))


@dataclass(frozen=True)
class Family:
    """What the families differ in; methods that a subclass does not override are those of most.

    Attributes
    ----------
    name : str
    firth : str
        Who fits it with Firth's penalty.
    takes : tuple of str
        Further arguments of ``check_separability`` that it knows.
    intercept : bool
        Whether it may have an intercept.
    noun, perfect, partly : str
        What an example is called, what separated ones are, and those of which some rows are.
    otherwise : str
        What to do if a fit does not converge for another reason.
    compares : bool
        Whether rows are pairs of examples.
    """

    name: str
    firth: str
    takes: tuple[str, ...] = ("offset",)
    intercept: bool = True
    noun: str = "examples"
    perfect: str = "are predicted perfectly"
    partly: str = ""
    otherwise: str = "scale the features, or raise max_iter"
    compares: bool = False

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        """Outcomes and further arguments, checked; and X where it has no features."""
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

    def used(self, y: Array) -> Array:
        """Outcomes that count: a mask."""
        return np.ones(len(y), bool)

    def rows(self, data: Data) -> Design:
        """The rows of conditions."""
        raise NotImplementedError

    def table(self, design: Design, separated: Array, data: Data) -> Array:
        """The report's table of separated rows."""
        out = np.zeros((data.n, int(design.column.max(initial=0)) + 1), bool)
        out[design.example, design.column] = separated
        return out

    def separated(self, rows: Array) -> Array:
        """Examples that are predicted perfectly, of that table: a mask."""
        return np.asarray(rows.all(axis=1))

    def direction(self, w: Array, design: Design) -> Direction:
        """A direction by coefficients and intercepts."""
        k, one = design.fixed.shape[1], int(design.intercept)
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

    def remainder(self, report: Any, data: Data) -> Any:
        """What to fit for the finite coefficients."""
        kept, design = report.used & ~report.separated, self.rows(data)
        return Remainder(kept, identified(design, kept[design.example]))


# ---- labels, trials and counts


class Labels(Family):
    """Binomial: labels of two classes, or trials. Multinomial: of more classes."""

    def outcomes(self, y: Any) -> Array:
        if self.name == "binomial" and are_trials(y):
            return nonnegative(y)
        y = in_an_order(y)
        check_classification_targets(y)
        n_classes = len(np.unique(y))
        if self.name == "binomial" and n_classes > 2:
            raise ValueError(
                f"a binomial y has two classes, but this one has {n_classes}; use "
                "family='multinomial', or two columns (successes, failures) for counts"
            )
        return y

    def used(self, y: Array) -> Array:
        return np.asarray(y.any(axis=1)) if y.ndim == 2 else super().used(y)

    def rows(self, data: Data) -> Design:
        y, n, one = data.y, len(data.y), data.fit_intercept
        classes = np.unique(y) if y.ndim == 1 else np.arange(2)
        k, every, names = len(classes), np.arange(n), data.titles
        if k < 2:
            raise ValueError(
                f"all examples are of one class, {classes[0]}; there must be at least two classes"
            )
        if k == 2:
            won, lost = (y > 0).T if y.ndim == 2 else (y == classes[1], y == classes[0])
            S = data.signed(every, np.where(won, 1.0, -1.0))
            return Design(data.X, [S], won & lost, data.example, 0 * every, names, one)
        codes = np.searchsorted(classes, y)
        example, other = np.nonzero(np.arange(k) != codes[:, None])
        select, equality = [], np.zeros(len(example), bool)
        for c in range(1, k):
            sign = (codes[example] == c) * 1.0 - (other == c)
            at = np.flatnonzero(sign)
            select.append(sp.csr_array((sign[at], (at, example[at])), shape=(len(sign), n)))
        names = [f"{c}: {name}" for c in classes[1:] for name in names]
        return Design(data.X, select, equality, data.example[example], other, names, one)

    def separated(self, rows: Array) -> Array:
        return np.asarray(rows.sum(axis=1) >= max(rows.shape[1] - 1, 1))

    def remainder(self, report: Any, data: Data) -> Any:
        if report.separated_rows.shape[1] == 1:
            return super().remainder(report, data)
        return np.asarray(report.used[:, None] & ~report.separated_rows)


class Counts(Family):
    """Poisson, and negative binomial of a given dispersion: log links."""

    def outcomes(self, y: Any) -> Array:
        if np.ndim(y) == 2:
            raise ValueError(f"counts must have one dimension, but y has the shape {np.shape(y)}")
        return nonnegative(y)

    def rows(self, data: Data) -> Design:
        positive, every = data.y > 0, np.arange(len(data.y))
        S = data.signed(every, np.where(positive, 1.0, -1.0))
        one = data.fit_intercept
        return Design(data.X, [S], positive, data.example, 0 * every, data.titles, one)


class Ordinal(Family):
    """Categories in an order: ``P(y <= j) = F(theta_j - x beta)``. Thresholds come first."""

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        if hasattr(y, "categories"):
            return X, np.asarray(y.codes), {**more, "categories": list(y.categories)}
        names, codes = np.unique(y, return_inverse=True)
        return X, codes, {**more, "categories": names.tolist()}

    def outcomes(self, y: Any) -> Any:
        y = getattr(y, "values", y)
        if not hasattr(y, "categories"):
            return in_an_order(y)
        if not y.ordered:
            raise ValueError("the categories of y have no order: see pandas.Categorical(ordered=)")
        if np.any(y.codes < 0):
            raise ValueError("y contains NaN")
        return y

    def rows(self, data: Data) -> Design:
        used, j = np.unique(data.y, return_inverse=True)
        k, names = len(used), [str(data.more["categories"][c]) for c in used]
        if k < 2:
            raise ValueError(
                f"all examples are of one category, {names[0]}; there must be two at least"
            )
        of, half = np.nonzero(np.column_stack([j < k - 1, j > 0]))  # y <= j and y >= j may fail
        sign, every = 1.0 - 2.0 * half, np.arange(len(of) + 1)
        theta = sp.csr_array((sign, j[of] - half, every), shape=(len(of), k - 1))
        names = [*(f"{a}|{b}" for a, b in pairwise(names)), *data.names]
        S, equality = data.signed(of, -sign), np.zeros(len(of), bool)
        return Design(data.X, [S], equality, data.example[of], half, names, fixed=theta)

    def table(self, design: Design, separated: Array, data: Data) -> Array:
        """Where an example has no row (in an end category), whether its other one is separated."""
        out, known = np.zeros((data.n, 2), bool), np.zeros((data.n, 2), bool)
        at = design.example, design.column
        out[at], known[at] = separated, True
        return out | np.all(
            known.any(axis=1, keepdims=True) & (out >= known), axis=1, keepdims=True
        )

    def remainder(self, report: Any, data: Data) -> OutcomeBounds:
        design, separated = self.rows(data), report.separated_rows
        place = np.zeros(data.n, int)
        place[data.example] = np.unique(data.y, return_inverse=True)[1]
        lower = np.where(separated[:, 1], 0, place)
        upper = np.where(separated[:, 0], place.max(), place)
        rest = identified(design, ~separated[design.example, design.column])
        return OutcomeBounds(report.used & ~report.separated, lower, upper, rest)


# ---- subjects that are compared


class TooLargeError(Exception):
    """There are too many rows."""


class _Compared(Family):
    """What Cox's regression and choices share: rows ``x_i - x_j``, without an intercept."""

    def pairs(self, data: Data) -> list[Array]:
        """Winners, rivals, whether they are equal."""
        raise NotImplementedError

    def rows(self, data: Data) -> Design:
        winner, rival, equality = self.pairs(data)[:3]
        both, sign = np.column_stack([winner, rival]).ravel(), np.tile([1.0, -1.0], len(winner))
        at = np.arange(0, len(both) + 1, 2)
        S = sp.csr_array((sign, both, at), shape=(len(winner), len(data.example)))
        i, j = data.example[winner], data.example[rival]
        return Design(data.X, [S], equality, i, j, data.names)


class Cox(_Compared):
    """Times of events, strata, late entries."""

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        if "entry" in more:
            entry = check_array(
                more["entry"], dtype=np.float64, ensure_2d=False, input_name="entry"
            )
            check_consistent_length(entry, y)
            late = np.flatnonzero(entry >= y[:, 0])
            if len(late):
                raise ValueError(
                    f"entry must be before time, but is not for example {late[0]}: "
                    f"{entry[late[0]]:g} and {y[late[0], 0]:g}"
                )
            more = {**more, "entry": entry}
        if "strata" in more:
            more = {**more, "strata": codes(more["strata"], "strata", len(y))}
        return X, y, more

    def outcomes(self, y: Any) -> Array:
        table = check_array(_columns_of(y), dtype=np.float64, ensure_2d=False, input_name="y")
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError(
                "y must have two columns, time and event, or be a structured array of an event and "
                f"a time, but it has the shape {table.shape}"
            )
        if not np.isin(table[:, 1], (0.0, 1.0)).all():
            raise ValueError("the second column of y, the events, must hold 1 and 0 only")
        return np.asarray(table)

    def pairs(self, data: Data) -> list[Array]:
        """Winners, rivals, whether they are equal; since when they compare, and until when.

        One subject with an event, the head, stands for each time. Others with an event at that
        time are equal to it, as each is at risk for the other. Everybody else is compared with the
        head of the last time at which he is at risk: it is at risk at the times before, so their
        heads are above it. If it entered late, the comparison goes on with the head of the time
        before its entry. By transitivity, these are all conditions.
        """
        (time, event), strata = data.y.T, data.more.get("strata")
        entry = data.more.get("entry", np.full(len(time), -np.inf))
        now, before = _keys(strata, time), _keys(strata, entry)
        dead = np.flatnonzero(event > 0)
        if "entry" in data.more:
            dead = dead[np.argsort(entry[dead], kind="stable")]  # who entered early lasts longest
        times, first = np.unique(now[dead], return_index=True)
        heads, last = dead[first], np.searchsorted(times, now, side="right") - 1
        since = np.searchsorted(times, before, side="right")
        i = dead[heads[last[dead]] != dead]
        parts = [(heads[last[i]], i, np.ones(len(i), bool), since[i], last[i])]
        at = last.copy()
        at[heads] -= 1
        at[i] = since[heads[last[i]]] - 1  # of later times, their head says all
        i, total = np.flatnonzero(at >= since), 0
        while len(i):
            m, total = at[i], total + len(i)
            if total > _MOST_PAIRS:
                raise TooLargeError("late entries make too many comparisons")
            both = np.maximum(since[i], since[heads[m]])  # since when both are at risk
            parts.append((heads[m], i, np.zeros(len(i), bool), both, m))
            at[i] = since[heads[m]] - 1
            i = i[at[i] >= since[i]]
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def table(self, design: Design, separated: Array, data: Data) -> Array:
        """Events at which somebody at risk is ruled out."""
        _, _, _, since, until = self.pairs(data)
        dead, now = data.y[:, 1] > 0, _keys(data.more.get("strata"), data.y[:, 0])
        times, at = np.unique(now[dead], return_inverse=True)
        change = np.zeros(len(times) + 1, int)
        np.add.at(change, since[separated], 1)
        np.add.at(change, until[separated] + 1, -1)
        out = np.zeros((data.n, 1), bool)
        out[data.example[dead], 0] = np.cumsum(change)[at] > 0
        return out

    def remainder(self, report: Any, data: Data) -> Strata:
        """Subjects who tie, directly or through others, stay together."""
        winner, rival = self.pairs(data)[:2]
        tied, n = ~report.pairs, len(data.example)
        one = np.ones(int(tied.sum()))
        graph = sp.csr_array((one, (winner[tied], rival[tied])), shape=(n, n))
        new = np.full(data.n, -1)
        new[data.example] = connected_components(graph, directed=False)[1]
        return Strata(np.unique(new, return_inverse=True)[1], identified(self.rows(data), tied))


def _keys(strata: Any, time: Array) -> Array:
    """Times that are sorted within strata: complex numbers are, by real parts first."""
    if strata is None:
        return time
    out = np.empty(len(time), dtype=complex)
    out.real, out.imag = strata, time
    return out


class Conditional(_Compared):
    """Choices in groups."""

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        if "groups" not in more:
            raise ValueError("groups is missing: family='conditional' needs the group of each row")
        return X, y, {**more, "groups": codes(more["groups"], "groups", len(y))}

    def outcomes(self, y: Any) -> Array:
        y = column_or_1d(check_array(y, dtype=np.float64, ensure_2d=False, input_name="y"))
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError(
                "y must hold 1 for alternatives that were chosen, and 0 for the others"
            )
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

    def table(self, design: Design, separated: Array, data: Data) -> Array:
        """Choices that rule out another alternative."""
        out = np.zeros((data.n, 1), bool)
        out[design.example[separated]] = True
        return out

    def remainder(self, report: Any, data: Data) -> Remainder:
        """Alternatives that tie with others: neither certain to be chosen, nor not to be."""
        design, tied = self.rows(data), ~report.pairs
        kept = np.zeros(data.n, bool)
        kept[design.example[tied]] = kept[design.column[tied]] = True
        return Remainder(kept, identified(design, tied))


# ---- arrays as they are given


def numbers_of(X: Any) -> Any:
    """X as an array of float64, dense or CSR."""
    refuse_foreign("check_separability", X)
    check_exact(X)
    try:
        X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    except ValueError as error:
        text = str(error)
        if "contains NaN" in text:
            advice = "leave out the examples with missing values, as regressions do, or impute them"
            raise ValueError(f"X contains NaN; {advice}") from error
        if "convert string" in text or "could not convert" in text:
            advice = "give categories as dummies: pandas.get_dummies(X, drop_first=True)"
            raise ValueError(f"X holds words, but numbers are needed; {advice}") from error
        raise
    return X.astype(np.float64, copy=False)


def are_trials(y: Any) -> bool:
    """Whether y has two columns, of successes and failures."""
    return np.ndim(y) == 2 and np.shape(y)[1] == 2


def in_an_order(y: Any) -> Array:
    """Labels, however many, that can be sorted."""
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
        raise ValueError(f"{name} contains NaN; give those examples a label of their own")
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(f"{name} must have {n} entries, but has the shape {values.shape}")
    if values.ndim == 1:
        return np.asarray(np.unique(values, return_inverse=True)[1])
    each = np.column_stack([np.unique(column, return_inverse=True)[1] for column in values.T])
    return np.asarray(np.unique(each, axis=0, return_inverse=True)[1]).ravel()


def _columns_of(y: Any) -> Any:
    """A structured array of an event and a time, in any order, as columns of time and event."""
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if not fields:
        return y
    event = [name for name in fields if y.dtype[name].kind == "b"]
    if len(fields) != 2 or len(event) != 1:
        raise ValueError("a structured y must have two fields: an event (bool) and a time")
    (time,) = set(fields) - set(event)
    return np.column_stack([y[time], y[event[0]]]).astype(np.float64)
