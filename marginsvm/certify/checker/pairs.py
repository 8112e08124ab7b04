"""Whether a report of comparisons is true of them: a potential, and weights that cancel.

Nothing is rounded: rows are differences of two items, so that signs are comparisons of numbers,
and weights are integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components

from marginsvm.certify.checker.separation import flaw_of_kind

_EXACT = 2.0**53  # sums of integers up to this are exact in float64


class Comparisons(NamedTuple):
    """Comparisons of items, by their places among those that occur.

    Attributes
    ----------
    better, worse : ndarray of int, shape (n,)
    equality : ndarray of bool, shape (n,)
        Draws.
    example, column : ndarray of int, shape (n,)
        Where the report's tables have a comparison.
    n_items : int
    """

    better: NDArray
    worse: NDArray
    equality: NDArray
    example: NDArray
    column: NDArray
    n_items: int


def flaw_of_pairs(report: Any, X: Any, y: Any, kept: NDArray) -> str | None:
    """What is wrong with a report of comparisons; None: its draws have a coefficient."""
    rows = comparisons(X, y, kept)
    n, equality = rows.n_items, rows.equality
    if len(report.coefficients) == n and equality.any():
        return None
    separated = report.separated_rows[rows.example, rows.column]
    flaw = flaw_of_kind(report, separated, n - 1)
    if flaw:
        return flaw
    potential = np.zeros(n)
    if report.direction is not None:
        potential[1:] = report.direction.coef[0]
    higher, lower = potential[rows.better], potential[rows.worse]
    if not np.array_equal(higher > lower, separated) or np.any(higher < lower):
        return "the direction does not separate exactly the rows that are called separated"
    if np.any(separated & equality):
        return "a draw is called separated"
    q = np.zeros(len(separated))
    if report.overlap_weights is not None:
        table = sp.csr_array(report.overlap_weights)
        q = np.asarray(table[rows.example, rows.column]).ravel()
    flaw = _flaw_of_weights(rows, separated, q)
    if flaw:
        return flaw
    if [c.status for c in report.coefficients] != _statuses(rows, separated):
        return "the status of a coefficient is another one"
    return ""


def comparisons(X: Any, y: Any, kept: NDArray) -> Comparisons:
    """The comparisons of examples, or of rankings if there is no y."""
    if y is None:
        found = [
            (i, place, *pair)
            for i in np.flatnonzero(kept)
            for place, pair in enumerate(_in_turn(list(X[i])))
        ]
        example, column = np.array([f[:2] for f in found]).T
        names, codes = np.unique(np.array([f[2:] for f in found]), return_inverse=True)
        better, worse = codes.reshape(len(found), 2).T
        return Comparisons(better, worse, np.zeros(len(found), bool), example, column, len(names))
    example, y = np.flatnonzero(kept), np.asarray(y)[kept]
    names, codes = np.unique(np.asarray(X)[kept], return_inverse=True)
    first, second = codes.reshape(len(y), 2).T
    better, worse = np.where(y > 0, first, second), np.where(y > 0, second, first)
    return Comparisons(better, worse, y == 0.5, example, np.zeros(len(y), int), len(names))


def _in_turn(ranking: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs of a ranking, of which a set at the end has not been ranked."""
    rest = ranking.pop() if ranking and isinstance(ranking[-1], (set, frozenset)) else ()
    yield from pairwise(ranking)
    yield from ((ranking[-1], other) for other in sorted(rest) if ranking)


def _flaw_of_weights(rows: Comparisons, separated: NDArray, q: NDArray) -> str:
    if np.any(q[~rows.equality] < 0.0) or np.any(q[separated] != 0.0):
        return "the weights are negative somewhere, or not 0 on rows that are separated"
    if not np.array_equal(q, np.rint(q)) or np.abs(q).sum() >= _EXACT:
        return "the weights are not integers that can be added"
    n = rows.n_items
    out, into = (np.bincount(at, q, minlength=n) for at in (rows.better, rows.worse))
    if not np.array_equal(out, into):
        return "the weights do not balance the rows"
    spanned, needed = _parts(rows, rows.equality | (q > 0)), _parts(rows, ~separated)
    if not np.array_equal(spanned, needed):
        return "some overlapping rows are not combinations of those with weight"
    return ""


def _graph(rows: Comparisons, some: NDArray) -> sp.csr_array:
    at = rows.better[some], rows.worse[some]
    return sp.csr_array((np.ones(len(at[0])), at), shape=(rows.n_items, rows.n_items))


def _parts(rows: Comparisons, some: NDArray) -> NDArray:
    """Which items these rows connect, as the first of each part."""
    part = connected_components(_graph(rows, some), directed=False)[1]
    return np.asarray(np.unique(part, return_index=True)[1][part])


def _statuses(rows: Comparisons, separated: NDArray) -> list[str]:
    """Of all items against the first; of proved rows."""
    every = np.ones(len(separated), bool)
    G = _graph(rows, every) + _graph(rows, rows.equality).T
    up, down = np.zeros(rows.n_items, bool), np.zeros(rows.n_items, bool)
    down[breadth_first_order(G, 0, return_predecessors=False)] = True
    up[breadth_first_order(sp.csr_array(G.T), 0, return_predecessors=False)] = True
    met, fixed = _parts(rows, every) == 0, _parts(rows, ~separated) == 0
    out = np.select(
        [fixed, ~met, up, down], ["finite", "not identified", "+inf", "-inf"], default="inf"
    )
    return out[1:].tolist()
