"""Regressions that compare subjects: Cox's, and choices among alternatives.

A condition is ``(x_i - x_j) w >= 0``, for each pair of a winner i and a rival j. They are never
written out for all pairs (``comparing.py``):

===========  ====================================================================================
family       pairs
===========  ====================================================================================
cox          who has an event, and everybody at risk at that time, in the same stratum: subjects
             with events at the same time are compared both ways, with Breslow's ties and Efron's
conditional  in each group, each chosen alternative and each that is not chosen
===========  ====================================================================================

Neither has an intercept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from marginsvm._typing import Array
from marginsvm.certify.checker.coordinates import identified_columns
from marginsvm.certify.checker.differences import Differences
from marginsvm.certify.checker.risk_sets import RiskSets
from marginsvm.separability.answer import Answer
from marginsvm.separability.coefficients import UNIDENTIFIED
from marginsvm.separability.comparing import answer_of_pairs
from marginsvm.separability.family import Data, Family, same_examples
from marginsvm.separability.remainder import Remainder


class Strata(NamedTuple):
    """What to fit for the finite coefficients of Cox's regression.

    Attributes
    ----------
    strata : ndarray of int, shape (n_samples,)
        New strata: the old ones, divided by the score along the direction.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    strata: Array
    columns: Array


class _Compared(Family):
    """What both families share."""

    def sets(self, y: Array, more: Any) -> RiskSets:
        """Who is compared with whom."""
        raise NotImplementedError

    def answer(self, data: Data) -> Answer:
        return answer_of_pairs(data, self.sets(data.y, data.more))

    def _columns(self, report: Any, X: Any) -> Array:
        """Columns that are identified where nothing is separated."""
        found = report.comparisons
        tied = found.levels[found.winner] == found.levels[found.rival]
        some = [j for j, c in enumerate(report.coefficients) if c.status != UNIDENTIFIED]
        if not tied.any() or not some:
            return np.zeros(0, int)
        A = Differences.of(X, found.winner[tied], found.rival[tied]).A
        return np.array(some, dtype=int)[identified_columns(A[:, some])]


class Cox(_Compared):
    """Times of events."""

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
        y = _columns_of(y)
        table = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError(
                "y must have two columns, time and event, or be a structured array of an event and "
                f"a time, but it has the shape {table.shape}"
            )
        if not np.isin(table[:, 1], (0.0, 1.0)).all():
            raise ValueError("the second column of y, the events, must hold 1 and 0 only")
        return np.asarray(table)

    def sets(self, y: Array, more: Any) -> RiskSets:
        strata = more.get("strata", np.zeros(len(y), int))
        return RiskSets.of_times(y[:, 0], y[:, 1] > 0.0, more.get("entry"), strata)

    def remainder(self, report: Any, X: Any) -> Strata:
        X = same_examples(report, self.examples(X))
        old = report.more.get("strata", np.zeros(len(report.used), int))
        levels = report.comparisons.levels
        new = np.unique(np.column_stack([old, levels]), axis=0, return_inverse=True)[1]
        return Strata(new.ravel(), self._columns(report, X))


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

    def sets(self, y: Array, more: Any) -> RiskSets:
        return RiskSets.of_groups(y > 0.0, more["groups"])

    def remainder(self, report: Any, X: Any) -> Remainder:
        """Alternatives that are neither certain to be chosen nor certain not to be."""
        X = same_examples(report, self.examples(X))
        kept = report.comparisons.tied()
        return Remainder(kept, self._columns(report, X))


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


COX = Cox(
    "cox",
    "coxphf in R",
    takes=("strata", "entry", "offset"),
    intercept=False,
    noun="subjects",
    perfect="have an event at which others at risk are ruled out",
)
CONDITIONAL = Conditional(
    "conditional",
    "coxphf in R, of groups with one choice as strata",
    takes=("groups", "offset"),
    intercept=False,
    noun="alternatives",
    perfect="are chosen where others of the group are ruled out",
)
