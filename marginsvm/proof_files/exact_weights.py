"""Weights in fractions near those of a certificate, for which nothing is left to rounding.

They balance exactly, between classes or for each output, and those of a share are below their caps.
Or they are integers under which all rows cancel.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.checker.numbers import Rationals
from marginsvm.certify.checker.rows import IntervalRows
from marginsvm.certify.exactly.infeasible import integers_that_prove_it
from marginsvm.certify.exactly.overlap import integer_weights

Weights = dict[tuple[int, int], Fraction]  # by example and column

_MOST_BITS = 10_000  # of an integer in a file: Python reads decimal numbers of up to 4,300 digits


def as_fractions(table: Array) -> Weights:
    """The weights that are not 0."""
    places = zip(*map(np.ndarray.tolist, np.nonzero(table)), strict=True)
    return {(i, j): Fraction(float(table[i, j])) for i, j in places}


def balanced_outputs(q: Weights) -> Weights:
    """Weights of which those of each output sum to 0, by the last digits of the largest."""
    found = dict(q)
    for o in {o for _, o in q}:
        column = {place: x for place, x in q.items() if place[1] == o}
        found[max(column, key=lambda place: abs(column[place]))] -= sum(column.values())
    return found


class ExactClassWeights:
    """Weights on rows of classes, which grow by what is missing.

    Parameters
    ----------
    q : dict of (int, int) to Fraction
        Weights by example and column, of kept examples only.
    codes : ndarray of shape (n,)
        Class of each example; -1: it takes no part.
    k : int
        Number of classes.
    """

    def __init__(self, q: Weights, codes: Array, k: int) -> None:
        self.q, self._codes, self._k = dict(q), codes, k
        self._room: list[Any] = [inf] * len(codes)  # how much more an example may have

    def balance(self) -> None:
        """Change weights until those of each class and those held against it are equal."""
        excess = [Fraction(0)] * self._k  # what a class has, less what is held against it
        for (i, j), x in self.q.items():
            c = int(self._codes[i])
            excess[c] += x
            excess[(1 - c) if self._k == 2 else j] -= x
        for _ in range(self._k):
            light, heavy = (excess.index(find(excess)) for find in (min, max))
            move = min(-excess[light], excess[heavy])
            if move <= 0:
                break
            self._add(light, heavy, move - self._turned(light, heavy, move))
            excess[light], excess[heavy] = excess[light] + move, excess[heavy] - move

    def keep_to(self, caps: list[Fraction], share: Fraction, *, balanced: bool) -> None:
        """Scale weights to those of a share, of which an example has at most its cap.

        With an intercept, no class has more than half of the share, and they are balanced: two
        classes first, after which the same is added to both, and more by what they are held
        against, which changes no sum.
        """
        size = share * sum(caps, Fraction(0))
        if balanced:
            of_class = (
                sum((caps[i] for i in self._members(c)), Fraction(0)) for c in range(self._k)
            )
            size = min(size, *(2 * (sum(caps) - total) for total in of_class))
        scale, self._room = Fraction(float(size / sum(self.q.values()))), list(caps)
        for (i, j), x in sorted(self.q.items(), key=lambda item: item[1]):
            self.q[i, j] = min(scale * x, self._room[i])
            self._room[i] -= self.q[i, j]
        both = balanced and self._k == 2
        if both:
            self.balance()
        missing = max(size - sum(self.q.values()), Fraction(0))
        for c in range(self._k):
            part = missing / 2 if both else min(missing, self._room_of(c))
            self._add(c, (c + 1) % self._k, part)
            missing -= 0 if both else part
        if balanced and not both:
            self.balance()

    def _turned(self, light: int, heavy: int, weight: Fraction) -> Fraction:
        """Hold examples of third classes against another one; how much weight was moved so."""
        left = weight
        if self._k > 2:
            for (i, j), x in sorted(self.q.items(), key=lambda item: -item[1]):
                if j == light and self._codes[i] != heavy:
                    step = min(left, x)
                    self.q[i, light] -= step
                    self.q[i, heavy] = self.q.get((i, heavy), Fraction(0)) + step
                    left -= step
        return weight - left

    def _room_of(self, c: int) -> Fraction:
        return sum((self._room[i] for i in self._members(c)), Fraction(0))

    def _members(self, c: int) -> list[int]:
        found: list[int] = np.flatnonzero(self._codes == c).tolist()
        return found

    def _add(self, c: int, other: int, weight: Fraction) -> None:
        """Add to examples of a class held against another, where they have the largest weights."""
        column = 0 if self._k == 2 else other
        of = {i: self.q.get((i, column), Fraction(0)) for i in self._members(c)}
        for i in sorted(of, key=lambda i: -of[i]):
            step = min(weight, self._room[i])
            if step > 0:
                self.q[i, column] = of[i] + step
                self._room[i] -= step
                weight -= step
        if weight > 0:
            raise ValueError(
                "the weights of the certificate cannot be made to balance without exceeding their "
                "caps: fit with another nu"
            )


def meeting_rows(X: Array, codes: Array, k: int, table: Array, *, intercept: bool) -> Weights:
    """Integers as weights of rows of classes, under which all of these cancel.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        All examples.
    codes : ndarray of shape (n,)
        Class of each; -1: it takes no part.
    k : int
        Number of classes.
    table : ndarray of shape (n, 1) or (n, k)
        Weights of a certificate.
    intercept : bool
        Whether predictors may have one.

    Returns
    -------
    dict
        Empty: none were found, or they are too long.
    """
    few = np.flatnonzero(table.any(axis=1) & (codes >= 0))
    found = integer_weights(X[few], codes[few], k, table[few], intercept=intercept)
    if found is None:
        return {}
    (examples, columns), weights = found
    return _short(zip(few[examples].tolist(), columns.tolist(), weights, strict=True))


def meeting_targets(
    X: Array, y: Array, epsilon: float, table: Array, *, intercept: bool
) -> Weights:
    """The same of targets of shape (n, n_outputs): of one that no predictor fits."""
    rows = IntervalRows(y, y, epsilon, Rationals())
    for o in np.flatnonzero(table.any(axis=0)).tolist():
        few = np.flatnonzero(table[:, o])
        low, high = (ends[:, o] for ends in rows.ends_outward(few))
        weights = integers_that_prove_it(X[few], low, high, table[few, o], intercept=intercept)
        if weights is not None:
            return _short((i, o, x) for i, x in zip(few.tolist(), weights, strict=True))
    return {}


def _short(weights: Iterable[tuple[int, int, int]]) -> Weights:
    found = {(i, j): Fraction(x) for i, j, x in weights if x}
    longest = max((x.numerator.bit_length() for x in found.values()), default=0)
    return found if longest <= _MOST_BITS else {}
