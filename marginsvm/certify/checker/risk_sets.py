"""Who is compared with whom, where all pairs are too many: winners, rivals, and their cells.

A condition says that a winner is nowhere below a rival. In Cox's regression, winners have an event,
their rivals are at risk at that time; where alternatives are chosen in groups, the chosen ones win
against the others. A cell is a time of events in a stratum, or a group. A winner is in one cell,
and a rival covers an interval of them: its best key in each cell is found from blocks of
``2 ** k`` cells, of which each interval is the union of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RiskSets:
    """Winners and rivals, by their indices among n subjects.

    Attributes
    ----------
    n : int
    winner, cell : ndarray of int, shape (n_winners,)
    rival, first, last : ndarray of int, shape (n_rivals,)
        Those that cover the cells from ``first`` to, but without, ``last``.
    end : ndarray of int, shape (n_cells,)
        First cell of the next stratum.
    """

    n: int
    winner: NDArray
    cell: NDArray
    rival: NDArray
    first: NDArray
    last: NDArray
    end: NDArray

    @classmethod
    def of_times(
        cls, time: NDArray, event: NDArray, entry: NDArray | None, strata: NDArray
    ) -> RiskSets:
        """At risk at a time t are those with entry < t <= time in the same stratum.

        Parameters
        ----------
        time, entry : ndarray of shape (n,)
            Without entry, all are at risk from the beginning.
        event : ndarray of bool, shape (n,)
        strata : ndarray of int, shape (n,)
        """
        winner, times = np.flatnonzero(event), np.unique(time[event])
        begin = strata.astype(np.int64) * (len(times) + 1)
        until = begin + np.searchsorted(times, time, side="right")
        cells, cell = np.unique(until[winner], return_inverse=True)
        since = begin if entry is None else begin + np.searchsorted(times, entry, side="right")
        first = np.searchsorted(cells, since, side="right")
        last = np.searchsorted(cells, until, side="right")
        rival = np.flatnonzero(first < last)
        after = (cells // (len(times) + 1) + 1) * (len(times) + 1)
        end = np.searchsorted(cells, after)
        return cls(len(time), winner, cell, rival, first[rival], last[rival], end)

    @classmethod
    def of_groups(cls, chosen: NDArray, groups: NDArray) -> RiskSets:
        """In each group, the chosen alternatives are held against the others.

        Parameters
        ----------
        chosen : ndarray of bool, shape (n,)
        groups : ndarray of int, shape (n,)
        """
        both = np.zeros((groups.max(initial=-1) + 1, 2), bool)
        both[groups, chosen.astype(int)] = True
        counts = np.asarray(both.all(axis=1))
        cell = (np.cumsum(counts) - 1)[groups]
        winner, rival = (np.flatnonzero(counts[groups] & some) for some in (chosen, ~chosen))
        first = cell[rival]
        end = np.arange(1, np.count_nonzero(counts) + 1)
        return cls(len(chosen), winner, cell[winner], rival, first, first + 1, end)

    @cached_property
    def _blocks(self) -> list[tuple[int, NDArray, NDArray, NDArray]]:
        """The rivals whose intervals are unions of two blocks of some length, longest first."""
        level = np.frexp((self.last - self.first).astype(float))[1] - 1
        order = np.argsort(level, kind="stable")
        out = []
        for k in range(int(level.max(initial=0)), -1, -1):
            some = order[slice(*np.searchsorted(level[order], [k, k + 1]))]
            out.append((2**k, self.rival[some], self.first[some], self.last[some] - 2**k))
        return out

    def best(self, key: NDArray) -> NDArray:
        """For each cell, the largest key of its rivals; -1 if it has none.

        Parameters
        ----------
        key : ndarray of int, shape (n,)
            Not negative.
        """
        table = np.full(len(self.end), -1)
        for length, rival, one, two in self._blocks:
            np.maximum.at(table, one, key[rival])
            np.maximum.at(table, two, key[rival])
            if (half := length // 2) and len(table) > half:
                shifted = table[:-half].copy()
                np.maximum(table[half:], shifted, out=table[half:])
        return table

    def top(self, first: NDArray, second: NDArray) -> tuple[NDArray, NDArray]:
        """For each winner, two rivals of the highest rank: of the highest second, and of the least.

        They are the same only if it has no other rival of the highest rank, and -1 if it has none.
        """
        return tuple(  # type: ignore[return-value]
            self._highest(first, ranks, last) for ranks, last in ((second, 1), (-second, -1))
        )

    def _highest(self, first: NDArray, second: NDArray, turn: int) -> NDArray:
        second = second - second.min(initial=0)
        key = (first.astype(np.int64) * (second.max(initial=0) + 1) + second)[::turn]
        order = np.argsort(key, kind="stable")
        order = order if turn > 0 else self.n - 1 - order
        place = np.empty(self.n, np.int64)
        place[order] = np.arange(self.n)
        best = self.best(place)[self.cell]
        return np.where(best >= 0, order[best], -1)

    def exceptions(self, first: NDArray, second: NDArray | None = None) -> tuple[NDArray, NDArray]:
        """Pairs in which the rival is above the winner in rank, or equal, with another second rank.

        Two for each winner that has any, at most.

        Parameters
        ----------
        first, second : ndarray of int, shape (n,)
            Ranks, not negative.

        Returns
        -------
        winner, rival : ndarray of int, shape (n_pairs,)
        """
        second = np.zeros(self.n, np.int64) if second is None else second
        winners, rivals = [], []
        for rival in self.top(first, second):
            i, j = self.winner[rival >= 0], rival[rival >= 0]
            bad = (first[j] > first[i]) | ((first[j] == first[i]) & (second[j] != second[i]))
            winners.append(i[bad])
            rivals.append(j[bad])
        return np.concatenate(winners), np.concatenate(rivals)

    def covers(self, winner: NDArray, rival: NDArray) -> NDArray:
        """Whether these pairs are compared: a mask."""
        cell, first, last = (np.full(self.n, value) for value in (-1, 0, 0))
        cell[self.winner] = self.cell
        first[self.rival], last[self.rival] = self.first, self.last
        at = cell[winner]
        return np.asarray((at >= first[rival]) & (at < last[rival]) & (winner != rival))

    def some(self, size: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
        """Random pairs: winners, and rivals of theirs."""
        order = np.argsort(self.last, kind="stable")
        last = self.last[order]
        k = rng.integers(0, max(len(self.winner), 1), size if len(self.winner) else 0)
        winner, cell = self.winner[k], self.cell[k]
        low = np.searchsorted(last, cell, side="right")
        high = np.searchsorted(last, self.end[cell], side="right")
        found: list[tuple[NDArray, NDArray]] = []
        for _ in range(_TRIES):
            at = order[
                np.minimum(low + (rng.random(len(low)) * (high - low)).astype(int), high - 1)
            ]
            rival = self.rival[at]
            fits = (self.first[at] <= cell) & (cell < self.last[at]) & (rival != winner)
            found.append((winner[fits], rival[fits]))
            winner, cell, low, high = (v[~fits] for v in (winner, cell, low, high))
        return tuple(np.concatenate(side) for side in zip(*found, strict=True))  # type: ignore[return-value]


_TRIES = 8  # of random rivals: those who come late are not at risk early
