"""Comparisons of pairs (Bradley and Terry), with draws, and rankings (Plackett and Luce).

The coefficients are the strengths of all items but the first, against it. A win has the row
(winner - loser), and a ranking one for each item and the next one. A draw is half a win each way,
which is an equality. If the draws have a parameter kappa of their own (Davidson; Rao and Kupper),
a comparison has three outcomes with scores d, kappa, and -d, where d is the difference of the
strengths (twice Davidson's scores, up to the unit of kappa), and a row for each of the two that
did not happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from marginsvm._typing import Array
from marginsvm.separability.answer import Answer, Direction, kind_of
from marginsvm.separability.coefficients import Coefficient
from marginsvm.separability.design import Design
from marginsvm.separability.families.rankings import comparisons_of, parts_of, table_of
from marginsvm.separability.family import Data, Family
from marginsvm.separability.graph import Wins
from marginsvm.separability.reading import codes_of

DRAWS = "(draws)"


class Comparisons(NamedTuple):
    """Who met whom.

    Attributes
    ----------
    items : list
        Those that occur.
    first, second : ndarray of int, shape (n,)
        Places among these.
    score : ndarray of shape (n,)
        Of the first.
    example, column : ndarray of int, shape (n,)
        Where the comparison was given.
    n_columns : int
    """

    items: list[Any]
    first: Array
    second: Array
    score: Array
    example: Array
    column: Array
    n_columns: int

    @classmethod
    def of(cls, data: Data) -> Comparisons:
        """Those of the examples that count."""
        if data.more["ranked"]:
            first, second, of, column = comparisons_of(data.X[:, 0])
            score, example = np.ones(len(of)), data.example[of]
        else:
            (first, second), score, example = data.X.T, data.y, data.example
            column = np.zeros(len(score), int)
        if not len(score):
            raise ValueError("nothing is compared with anything")
        n = len(data.more["items"])
        used = np.zeros(n, bool)
        used[first] = used[second] = True
        items = data.more["items"]
        if not used.all():
            place = np.cumsum(used) - 1
            first, second = place[first], place[second]
            items = [items[i] for i in np.flatnonzero(used)]
        return cls(items, first, second, score, example, column, int(column.max()) + 1)


@dataclass(frozen=True)
class ItemPairs(Family):
    """Of items that are compared."""

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        if more.get("draws", "estimated") != "estimated":
            raise ValueError(f"draws must be 'half' or 'estimated', but is {more['draws']!r}")
        ranked = y is None
        if ranked:
            X, items = table_of(X)
            y = np.ones(len(X))
        else:
            X = np.asarray(X)
            if X.ndim != 2 or X.shape[1] != 2:
                raise ValueError(f"X must have two columns, of items, but its shape is {X.shape}")
            items, X = codes_of(X)
            if np.any(X[:, 0] == X[:, 1]):
                raise ValueError("an item is compared with itself")
        X, y, more = super().read(X, y, more)
        return X, y, {**more, "items": items, "ranked": ranked}

    def outcomes(self, y: Any) -> Array:
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if y.ndim != 1 or not np.all((y == 0.0) | (y == 1.0) | (y == 0.5)):
            raise ValueError(
                "y must be 1 if the first item wins, 0 if the second does, 0.5 if none"
            )
        return np.asarray(y)

    def examples(self, X: Any) -> Any:
        return X

    def answer(self, data: Data) -> Answer | None:
        met = Comparisons.of(data)
        drawn = np.flatnonzero(met.score == 0.5)
        if len(drawn) and "draws" in data.more:
            return None
        wins, n = np.array([met.first, met.second]), len(met.score)
        wins[:, met.score == 0.0] = wins[::-1, met.score == 0.0]
        edges = np.append(wins, wins[::-1, drawn], axis=1) if len(drawn) else wins
        graph = Wins(len(met.items), *edges)
        separated = graph.component[wins[0]] != graph.component[wins[1]]
        q = graph.cycles()
        q[drawn] -= q[n:]
        names = [str(x) for x in met.items[1:]]
        design = Design(None, met.score == 0.5, met.example, met.column, names, met.n_columns)
        w = (graph.component - graph.component[0])[1:].astype(float)
        starts = np.searchsorted(met.example, np.arange(data.n_examples + 1))
        shape = data.n_examples, met.n_columns
        weights = sp.csr_array((q[:n], met.column, starts), shape=shape)
        return Answer(
            kind_of(separated),
            bool(separated.all()),
            self.separated_rows(design, separated, data.n_examples),
            self.direction(w, data, design) if separated.any() else None,
            tuple(map(Coefficient, names, graph.statuses())),
            None if separated.all() else weights,
        )

    def design(self, data: Data) -> Design:
        """Of comparisons whose draws have a parameter: three outcomes."""
        met = Comparisons.of(data)
        own, n = (2.0 - 2.0 * met.score).astype(int), len(met.items)
        of, other = np.nonzero(own[:, None] != np.arange(3))
        score = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])  # of the outcomes
        columns = np.column_stack([met.first[of], met.second[of], np.full(len(of), n)])
        at = np.repeat(np.arange(len(of)), 3), columns.ravel()
        values = (score[own[of]] - score[other]).ravel()
        A = sp.csr_array((values, at), shape=(len(of), n + 1))[:, 1:]
        names = [*(str(x) for x in met.items[1:]), DRAWS]
        return Design(A, np.zeros(len(of), bool), met.example[of], other, names, 3)

    def direction(self, w: Array, data: Data, design: Design) -> Direction:
        return Direction(w[None], np.zeros(1))

    def planes(self, direction: Direction) -> list[tuple[Array, float]]:
        return []

    def remainder(self, report: Any, X: Any) -> Any:
        if len(X) != len(report.used):
            raise ValueError(f"X has {len(X)} examples, but the report {len(report.used)}")
        kept = report.used & ~report.separated
        if report.more["ranked"]:
            rows = report.separated_rows
            return [part for i in np.flatnonzero(kept) for part in parts_of(X[i], rows[i])]
        if report.separated_rows.shape[1] > 1:
            return kept[:, None] & ~report.separated_rows
        return kept


PAIRS = ItemPairs(
    "pairs",
    "BradleyTerry2 in R, with br=TRUE; rankings: PlackettLuce in R, with npseudo",
    takes=("offset", "draws"),
    intercept=False,
    noun="comparisons",
    otherwise="raise max_iter",
    partly="some outcomes are ruled out",
)
