"""The families of regressions: their arguments, and the rows of their recession cones.

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

Rows are conditions on directions, see :mod:`marginsvm.separation.regression`. Examples without
trials or of weight 0 have no rows. Offsets have no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

from marginsvm._typing import Array
from marginsvm._warnings import warn
from marginsvm.separation.arguments import (
    Arguments,
    are_trials,
    codes,
    constant_of,
    features_of,
    floats_of,
    labels_of,
    nonnegative,
)
from marginsvm.separation.program import identified
from marginsvm.separation.regression import Regression

# Kinds of separation.
COMPLETE = "complete"
QUASI = "quasi-complete"
OVERLAP = "overlap"
UNDECIDED = "undecided"
# What a coefficient can be.
FINITE = "finite"
PLUS = "+inf"
MINUS = "-inf"
EITHER = "inf"
UNIDENTIFIED = "not identified"
MOST_PAIRS = 2**24  # comparisons of subjects, some 400 MB
LONG_AGO = -np.finfo(float).max  # entry of whoever is at risk from the start

More = dict[str, Any]  # a family's own arguments
Read = tuple[Any, Any, More]  # X, outcomes and these, checked


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
    rows: Callable[[Arguments], Regression]

    def __init__(self, name: str, firth: str, *models: str) -> None:
        self.name = name
        self.firth = firth
        self.models = models

    def read(self, X: Any, y: Any, more: More) -> Read:
        """X, outcomes and further arguments, checked."""
        return features_of(X), self.outcomes(y), more

    def table(self, regression: Regression, separated: Array) -> Array:
        """The report's table of separated rows; for pairs of examples, of the winners."""
        at = regression.example
        column = 0 * regression.column if self.compares else regression.column
        shape = (regression.arguments.n, int(column.max(initial=0)) + 1)
        rows = np.zeros(shape, bool)
        rows[at, column] = True
        out = np.zeros(shape, bool)
        out[at[separated], column[separated]] = True
        whole = rows.any(axis=1) & (out >= rows).all(axis=1)
        out[whole] |= self.fills
        return out

    def separated(self, rows: Array) -> Array:
        """Mask of the perfectly predicted examples, from that table."""
        return np.asarray(rows.all(axis=1))

    def direction(self, w: Array, regression: Regression) -> Direction:
        """A direction as coefficients and intercepts."""
        if not self.intercept:
            thresholds = len(w) - regression.arguments.X.shape[1]
            return Direction(w[None, thresholds:], w[:thresholds])
        one = int(regression.arguments.intercept)
        table: Array = w.reshape(regression.blocks, -1)
        if len(table) > 1:
            table = np.concatenate([np.zeros((1, table.shape[1])), table])
        return Direction(table[:, one:], table[:, :one].sum(axis=1))

    def flat(self, coef: Array, intercept: Array, fit_intercept: bool) -> Array:
        """A direction in the order of the regression's columns."""
        if not self.intercept:
            return np.concatenate([intercept, coef[0]])
        table = np.column_stack([intercept, coef]) if fit_intercept else coef
        if len(table) > 1:
            table = table[1:] - table[0]
        return np.asarray(table.ravel())

    def modelled(self, y: Any, used: Array) -> str:
        """Of which outcome the coefficients are, where it needs to be said."""
        return ""

    def warn_of(self, y: Any) -> None:
        """Warn where the outcomes may not mean what they are taken for."""

    def remainder(self, report: Any, arguments: Arguments) -> Any:
        """The regression whose estimate gives the finite coefficients."""
        kept = report.used & ~report.separated
        regression = self.rows(arguments)
        return Remainder(kept, identified(regression, kept[regression.example]))


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

    def rows(self, arguments: Arguments) -> Regression:
        y = arguments.y
        trials = y.ndim == 2
        classes = np.unique(y)
        code = y[:, 0] > 0 if trials else np.searchsorted(classes, y)
        k = 2 if trials else len(classes)
        if k < 2:
            raise ValueError(
                f"y has one class, {classes[0]}; there must be at least two classes"
            )
        at, other = np.nonzero(np.arange(k) != code[:, None])
        # The first class has no block: its points are zero.
        plus, minus = (
            np.where(c > 0, at * (k - 1) + c - 1, -1) for c in (code[at], other)
        )
        equality = (y > 0).all(axis=1) if trials else np.zeros(len(at), bool)
        parts = [np.ones((len(y), int(arguments.intercept))), arguments.X]
        X = sp.hstack(parts, "csr") if sp.issparse(arguments.X) else np.hstack(parts)
        names = ["(intercept)"] * arguments.intercept + arguments.names
        if k > 2:
            if not names:  # without columns, a row compares a point with itself
                plus = minus = at
            names = [f"{c}: {name}" for c in classes[1:] for name in names]
        column = other * (k > 2)
        return Regression(arguments, X, plus, minus, equality, at, column, names)

    def modelled(self, y: Any, used: Array) -> str:
        name = next(iter(getattr(y, "columns", [getattr(y, "name", None)])))
        if are_trials(y):
            return f", for {name or 'successes'}"
        first, *others = np.unique(np.asarray(y)[used]).tolist()
        several = len(others) > 1
        one = first if several else others[0]
        one = f"{one:.17g}" if isinstance(one, float) else one
        return f", {'against' if several else 'for'} {name or 'y'} = {one}"

    def separated(self, rows: Array) -> Array:
        return np.asarray(rows.sum(axis=1) >= max(rows.shape[1] - 1, 1))

    def remainder(self, report: Any, arguments: Arguments) -> Any:
        if report.separated_rows.shape[1] == 1:
            return super().remainder(report, arguments)
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
    fills = True  # the first and the last category lack a row

    def modelled(self, y: Any, used: Array) -> str:
        return ", for higher categories"

    def read(self, X: Any, y: Any, more: More) -> Read:
        X = features_of(X)
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

    def rows(self, arguments: Arguments) -> Regression:
        used, j = np.unique(arguments.y, return_inverse=True)
        k = len(used)
        categories = [str(arguments.more["categories"][c]) for c in used]
        if k < 2:
            raise ValueError(
                f"y has one category, {categories[0]}; there must be at least two"
            )
        # Column 0: y <= j, and column 1: y >= j, for all j that this may fail for.
        at, column = np.nonzero(np.column_stack([j < k - 1, j > 0]))
        x = k - 1 + at  # points of examples come after the thresholds
        plus, minus = np.where(column, (x, j[at] - 1), (j[at], x))
        names = [*(f"{a}|{b}" for a, b in pairwise(categories)), *arguments.names]
        X = sp.block_diag([sp.eye_array(k - 1), arguments.X], format="csr")
        equality = np.zeros(len(at), bool)
        return Regression(arguments, X, plus, minus, equality, at, column, names)

    def remainder(self, report: Any, arguments: Arguments) -> OutcomeBounds:
        regression = self.rows(arguments)
        separated = report.separated_rows
        place = np.zeros(arguments.n, int)
        place[arguments.example] = np.unique(arguments.y, return_inverse=True)[1]
        lower = np.where(separated[:, 1], 0, place)
        upper = np.where(separated[:, 0], place.max(), place)
        rest = identified(regression, ~separated[regression.example, regression.column])
        return OutcomeBounds(report.used & ~report.separated, lower, upper, rest)


class _Compared(Family):
    """Base of Cox's regression and choices: rows ``x_i - x_j``, without an intercept.

    ``pairs`` returns winners, rivals, whether a row is an equality, and further fields.
    """

    intercept = False
    compares = True
    pairs: Callable[[Arguments], list[Array]]

    def rows(self, arguments: Arguments) -> Regression:
        winner, rival, equality, *span = self.pairs(arguments)
        return Regression(
            arguments,
            arguments.X,
            plus=winner,
            minus=rival,
            equality=equality,
            at=winner,
            column=arguments.example[rival],
            names=arguments.names,
            span=tuple(span),
        )


class Cox(_Compared):
    """Times of events, strata, late entries."""

    takes = ("strata", "entry", "offset")
    noun = "subjects"
    perfect = "have an event at which others at risk are ruled out"

    def read(self, X: Any, y: Any, more: More) -> Read:
        X, y, more = super().read(X, y, more)
        if "entry" in more:
            entry = floats_of(more["entry"], "entry")
            check_consistent_length(entry, y)
            never = np.flatnonzero(entry >= y[:, 0])
            if len(never):
                raise ValueError(
                    f"entry must be before time, but is not for example {never[0]}"
                )
            more["entry"] = entry
        if "strata" in more:
            more["strata"] = codes(more["strata"], "strata", len(y))
        return X, y, more

    def outcomes(self, y: Any) -> Array:
        fields = getattr(getattr(y, "dtype", None), "names", None)
        if fields:
            event = [name for name in fields if y.dtype[name].kind == "b"]
            if len(fields) != 2 or len(event) != 1:
                raise ValueError(
                    "a structured y must have two fields: an event (bool) and a time"
                )
            (time,) = set(fields) - set(event)
            y = np.column_stack([y[time], y[event[0]]])
        table = floats_of(y, "y")
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError("y must have two columns, time and event, or two fields")
        if not np.isin(table[:, 1], (0.0, 1.0)).all():
            raise ValueError(
                "the second column of y, the events, must hold 1 and 0 only"
            )
        return table

    def pairs(self, arguments: Arguments) -> list[Array]:
        """Winners, rivals, whether a row is an equality; the first and last time of each
        comparison; and each subject's last event time at risk.

        One subject with an event, the head, stands for each event time. Others with an event then
        are equal to it, as each is at risk at the other's event. Any other subject is compared with
        the head of its last event time at risk. This head is at risk at earlier times, so that
        their heads are above it; if it entered late, the comparison continues with the head of the
        time before its entry. By transitivity, these rows imply all others.
        """
        time, event = arguments.y.T
        strata = arguments.more.get("strata")
        late = "entry" in arguments.more
        entry = arguments.more["entry"] if late else np.full(len(time), LONG_AGO)
        dead = np.flatnonzero(event > 0)
        if late:  # heads are those that entered first
            dead = dead[np.argsort(entry[dead], kind="stable")]
        if strata is not None:  # complex numbers sort by their real part first
            time = strata + 1j * time
            entry = strata + 1j * entry
        times, first = np.unique(time[dead], return_index=True)
        heads = dead[first]
        # The first and the last event time, as indices, at which each subject is at risk.
        since = np.searchsorted(times, entry, side="right")
        last = np.searchsorted(times, time, side="right") - 1

        tied = dead[heads[last[dead]] != dead]
        head = heads[last[tied]]
        parts = [(head, tied, np.ones(len(tied), bool), since[tied], last[tied])]
        at = last.copy()  # the event time with whose head each subject is compared next
        at[heads] -= 1
        at[tied] = since[head] - 1  # at later times, their head is compared
        left = np.flatnonzero(at >= since)
        total = 0
        while len(left):
            total += len(left)
            if total > MOST_PAIRS:
                raise MemoryError("late entries make too many comparisons")
            until = at[left]
            head = heads[until]
            both = np.maximum(since[left], since[head])  # since when both are at risk
            parts.append((head, left, np.zeros(len(left), bool), both, until))
            at[left] = since[head] - 1
            left = left[at[left] >= since[left]]
        return [*(np.concatenate(part) for part in zip(*parts, strict=True)), last]

    def table(self, regression: Regression, separated: Array) -> Array:
        """Events at which a subject at risk is ruled out."""
        arguments = regression.arguments
        since, until, last = regression.span
        dead = arguments.y[:, 1] > 0
        out = np.zeros((arguments.n, 1), bool)
        change = np.zeros(int(last.max()) + 3, int)
        np.add.at(change, since[separated], 1)
        np.add.at(change, until[separated] + 1, -1)
        out[arguments.example[dead], 0] = np.cumsum(change)[last[dead]] > 0
        return out

    def remainder(self, report: Any, arguments: Arguments) -> Strata:
        """Subjects that tie, directly or through others, stay in one stratum."""
        regression = self.rows(arguments)
        tied = ~report.pairs
        n = len(arguments.example)
        ends = (regression.plus[tied], regression.minus[tied])
        graph = sp.csr_array((np.ones(len(ends[0])), ends), (n, n))
        new = np.full(arguments.n, -1)
        new[arguments.example] = connected_components(graph, directed=False)[1]
        return Strata(
            np.unique(new, return_inverse=True)[1], identified(regression, tied)
        )


class Conditional(_Compared):
    """Choices in groups."""

    takes = ("groups", "offset")
    noun = "alternatives"
    perfect = "are chosen where others of the group are ruled out"

    def read(self, X: Any, y: Any, more: More) -> Read:
        X, y, more = super().read(X, y, more)
        if "groups" not in more:
            raise ValueError(
                "groups is missing: family='conditional' needs the group of each row"
            )
        return X, y, {**more, "groups": codes(more["groups"], "groups", len(y))}

    def outcomes(self, y: Any) -> Array:
        y = column_or_1d(floats_of(y, "y"))
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError(
                "y must hold 1 for alternatives that were chosen, 0 for others"
            )
        return np.asarray(y)

    def pairs(self, arguments: Arguments) -> list[Array]:
        """Chosen alternatives, others of their groups; no row is an equality."""
        group = np.unique(arguments.more["groups"], return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        is_chosen = arguments.y[order] > 0
        chosen = order[is_chosen]
        others = order[~is_chosen]  # group by group
        rivals = np.bincount(group[others], minlength=int(group.max()) + 1)
        start = np.cumsum(rivals) - rivals  # where each group begins among them
        count = rivals[group[chosen]]
        if count.sum() > MOST_PAIRS:
            raise MemoryError("many chosen of many make too many comparisons")
        before = np.cumsum(count) - count  # number of rows of the winners before
        winner = np.repeat(chosen, count)
        shift = np.repeat(start[group[chosen]] - before, count)
        rival = others[np.arange(len(winner)) + shift]
        return [winner, rival, np.zeros(len(winner), bool)]

    def remainder(self, report: Any, arguments: Arguments) -> Remainder:
        """Alternatives that tie with others, so that their choice is not certain."""
        regression = self.rows(arguments)
        tied = ~report.pairs
        kept = np.zeros(arguments.n, bool)
        kept[regression.example[tied]] = kept[regression.column[tied]] = True
        return Remainder(kept, identified(regression, tied))


# ---- pairs and rankings


class Pairs(Family):
    """Comparisons of items (Bradley and Terry): two columns; or rankings (Plackett and Luce),
    without outcomes: items in order, and at the end a set of unranked ones.
    """

    intercept = False
    fills = True  # rankings of few items lack rows of longer ones
    noun = "comparisons"

    def read(self, X: Any, y: Any, more: More) -> Read:
        if y is None:
            return _rankings(X), None, more
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(
                f"X must have two columns, of items, but its shape is {X.shape}"
            )
        if np.any(X[:, 0] == X[:, 1]):
            raise ValueError("an item is compared with itself")
        y = floats_of(y, "y")
        if y.ndim != 1 or not np.all((y == 0.0) | (y == 1.0) | (y == 0.5)):
            raise ValueError(
                "y must be 1 if the first item wins, 0 if the second, 0.5 if none"
            )
        return X, y, more

    def rows(self, arguments: Arguments) -> Regression:
        """Comparisons of items; the strength of the first item is 0."""
        pairs = arguments.X
        y = arguments.y
        at = np.arange(len(pairs))
        column = np.zeros(len(pairs), int)
        if y is None:
            turns = [_turns(*ranking) for ranking in arguments.X]
            pairs = np.array([pair for turn in turns for pair in turn]).reshape(-1, 2)
            y = np.ones(len(pairs))
            at = np.repeat(at, [len(turn) for turn in turns])
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
        # A draw has both rows.
        won = np.flatnonzero(y > 0)
        lost = np.flatnonzero(y < 1)
        some = np.append(won, lost)
        winner = np.append(first[won], second[lost])
        loser = np.append(second[won], first[lost])
        X = sp.eye_array(len(items) - 1, format="csr")
        return Regression(
            arguments._replace(X=X),
            X,
            plus=winner - 1,
            minus=loser - 1,
            equality=np.zeros(len(some), bool),
            at=at[some],
            column=column[some],
            names=[str(item) for item in items[1:].tolist()],
        )

    def remainder(self, report: Any, arguments: Arguments) -> Any:
        """A mask of comparisons, or the remaining rankings."""
        kept = report.used & ~report.separated
        if arguments.y is not None:
            return kept
        out = list[list[Any]]()
        for i in np.flatnonzero(kept[arguments.example]):
            ranked, rest = arguments.X[i]
            separated = report.separated_rows[arguments.example[i]]
            last = len(ranked) - 1
            cuts = np.flatnonzero(separated[:last]) + 1
            ends = [0, *cuts, last + 1]
            parts = [ranked[a:b] for a, b in pairwise(ends)]
            left = {
                x for x, cut in zip(rest, separated[last:], strict=False) if not cut
            }
            if left:
                parts[-1] = [*parts[-1], left]
            out += [part for part in parts if len(part) > 1]
        return out


def _rankings(given: Any) -> Array:
    """Rankings as two columns: the ranked items in order, and the unranked ones, sorted."""
    rankings = [list(ranking) for ranking in given]
    if not rankings:
        raise ValueError("there are no rankings")
    out = np.empty((len(rankings), 2), object)
    for i, items in enumerate(rankings):
        ends_with_set = isinstance(items[-1], (set, frozenset))
        rest = sorted(items.pop()) if ends_with_set else []
        if len({*items, *rest}) < len(items) + len(rest):
            raise ValueError(f"ranking {i} has an item twice")
        out[i, 0] = items
        out[i, 1] = rest
    return out


def _turns(ranked: list[Any], rest: list[Any]) -> list[tuple[Any, Any]]:
    """The comparisons of a ranking: each item with the next, the last one with unranked ones."""
    return [*pairwise(ranked), *((ranked[-1], item) for item in rest if ranked)]


# What some families take beside X, y and sample weights.
OWN = ("offset", "strata", "entry", "groups")

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


def arguments_for(family: Family, X: Any, given: Mapping[str, Any]) -> Arguments:
    """The examples of positive weight, with trials, read by their family."""
    y = given["y"]
    names = given["feature_names"]
    pairs = isinstance(family, Pairs)
    more = {key: given[key] for key in OWN if given[key] is not None}
    for key in more:
        if key not in family.takes:
            who = ", ".join(repr(f.name) for f in FAMILIES.values() if key in f.takes)
            raise ValueError(
                f"{key} is for family {who}, but the family is {family.name!r}"
            )
    if y is None and not pairs:
        raise ValueError(f"y is missing: family={family.name!r} needs it")
    if "offset" in more:
        offset = floats_of(more.pop("offset"), "offset")
        check_consistent_length(offset, X if y is None else y)
    if isinstance(names, str):
        raise ValueError(f"feature_names must be a list of names, but is {names!r}")
    if names is None and hasattr(X, "design_info"):  # a matrix of patsy
        names = X.design_info.column_names
    if names is None:
        names = _get_feature_names(X)
    X, y, more = family.read(X, y, more)
    check_consistent_length(X, y)
    n, d = X.shape
    if names is None:
        names = [f"x{j}" for j in range(d)]
    if len(names) != d and not pairs:
        raise ValueError(f"feature_names has {len(names)} names, but X has {d} columns")
    names = [str(name) for name in names]
    used = np.ones(n, bool)
    if isinstance(family, Labels) and y.ndim == 2:
        used = y.any(axis=1)
    if given["sample_weight"] is not None:
        used &= (
            _check_sample_weight(
                given["sample_weight"], used[:, None], ensure_non_negative=True
            )
            > 0
        )
    if not used.any():
        raise ValueError(
            "no example counts; there must be at least one non-zero weight"
        )
    if not used.all():
        X = X[used]
        y = None if y is None else y[used]
        more = {k: v[used] if isinstance(v, np.ndarray) else v for k, v in more.items()}
    asked = bool(given["fit_intercept"] and family.intercept)
    constant = constant_of(X, names) if asked else None
    added = asked and constant is None
    return Arguments(X, y, np.flatnonzero(used), n, names, added, more, constant)
