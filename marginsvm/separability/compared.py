"""Subjects that are compared in pairs, along the direction of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.checker.risk_sets import RiskSets


@dataclass(frozen=True, repr=False)
class Comparisons:
    """Who is compared with whom, and which pairs were needed.

    Attributes
    ----------
    winner, rival : ndarray of int, shape (n_pairs,)
        The pairs on which the proofs rest, as indices of examples.
    levels : ndarray of int, shape (n_samples,)
        Ranks along the direction, equal only for equal scores; -1 for examples that do not count.
        A winner is separated from its rivals of lower rank.

    Examples
    --------
    >>> from marginsvm import check_separability
    >>> X, y = [[0.0], [1.0], [0.0], [0.0]], [[1.0, 1], [2, 0], [3, 1], [4, 0]]
    >>> report = check_separability(X, y, family="cox")
    >>> report.kind, report.coefficients
    ('quasi-complete', (Coefficient(name='x0', status='-inf'),))
    >>> report.comparisons.beaten_by(0).tolist()
    [1]
    """

    winner: Array
    rival: Array
    levels: Array
    _sets: RiskSets
    _example: Array

    @classmethod
    def of(
        cls, data: Any, sets: RiskSets, winner: Array, rival: Array, levels: Array
    ) -> Comparisons:
        """Of pairs and ranks of the examples that count."""
        every = np.full(data.n_examples, -1)
        every[data.example] = levels
        return cls(data.example[winner], data.example[rival], every, sets, data.example)

    def beaten_by(self, example: int) -> Array:
        """The rivals that an example is strictly separated from.

        Parameters
        ----------
        example : int

        Returns
        -------
        ndarray of int
        """
        place = np.searchsorted(self._example, example)
        rival = self._sets.rival
        pairs = self._sets.covers(np.full(len(rival), place), rival)
        found = self._example[rival[pairs]]
        return np.asarray(found[self.levels[found] < self.levels[example]])

    def tied(self) -> Array:
        """Examples that are as high as some rival, or some winner, but no more: a mask."""
        kept = np.zeros(len(self.levels), bool)
        level = self.levels[self._example]
        sets = self._sets
        one = sets.top(level, np.zeros_like(level))[0]
        met = (one >= 0) & (level[one] >= level[sets.winner])
        worst = np.full(len(sets.end), -1)
        worst[sets.cell[met]] = level[sets.winner[met]]
        kept[self._example[sets.winner[level[sets.winner] == worst[sets.cell]]]] = True
        kept[self._example[sets.rival[level[sets.rival] == worst[sets.first]]]] = True
        return kept
