"""Separation where subjects are compared in pairs that are too many to be written out.

A working set of pairs is split. The direction that is found, and the face that it is from, are
held against all pairs by the best rival of each winner (``certify/checker/risk_sets.py``), in
floats and, once no pair is missing, in integers; pairs that forbid them join the set. Rows that
overlap do so among more rows as well, so that what is true of all pairs in the end is proved by the
working set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certify.checker.differences import Differences
from marginsvm.certify.checker.everywhere import Claim, everywhere, outcome, signs_elsewhere
from marginsvm.certify.checker.face import Face
from marginsvm.certify.checker.risk_sets import RiskSets
from marginsvm.separability.answer import COMPLETE, OVERLAP, UNDECIDED, Answer, Direction
from marginsvm.separability.coefficients import EITHER, FINITE, Coefficient, open_signs, statuses
from marginsvm.separability.compared import Comparisons
from marginsvm.separability.design import Design
from marginsvm.separability.faces import split
from marginsvm.separability.family import Data
from marginsvm.separability.lifting import (
    along_one_column,
    lifted,
    one_ray,
    proof_of_nothing,
    signs_of,
)
from marginsvm.separability.proving import proved
from marginsvm.separability.rounded_sums import nearly_dependent, not_sums, with_sums
from marginsvm.separability.split import Split

_PAIRS_PER_COLUMN = 8  # random pairs to begin with: with fewer, they are often separated
_FIRST_PAIRS = 60  # pairs to begin with
_ADDED = 4  # pairs that join in a round, for each column: the worst, and as many random ones
_ROUNDS_OF_PAIRS = 100
_ZERO = 1e-11  # of the largest score: closer ones count as equal in floats
_LARGEST = 2**25  # numbers of the pairs, in 256 MB: their split takes minutes
_BLOCK = 2**16  # rows of X of which scores are computed at once
_TAKES_TOO_LONG = "it is not proved for all pairs: it takes too long"
_UP_TO_ROUNDING = "This holds up to the rounding of X; of its numbers as they are, {}."


def answer_of_pairs(data: Data, sets: RiskSets) -> Answer:
    """The answer of a regression whose conditions are comparisons of subjects."""
    try:
        return _answer(data, sets)
    except _TooLargeError:
        reason = f"{data.X.shape[1]} columns are too many for comparisons"
        table = np.zeros((data.n_examples, 1), bool)
        return Answer(UNDECIDED, None, table, None, (), None, reason)


class _TooLargeError(Exception):
    """Pairs take too much memory, and their split too much time."""


def _answer(data: Data, sets: RiskSets) -> Answer:
    search = _PairSearch(data, sets)
    pairs = search.first_pairs()
    kept = not_sums(data.X) if nearly_dependent(pairs.rows.A) else np.arange(data.X.shape[1])
    if len(kept) == data.X.shape[1]:
        return search.answer(pairs)
    names = [data.names[j] for j in kept]
    search = _PairSearch(replace(data, X=data.X[:, kept], names=names), sets)
    return with_sums(search.answer(search.first_pairs()), data, kept)


@dataclass(frozen=True)
class _Pairs:
    """A working set.

    Attributes
    ----------
    winner, rival : ndarray of int, shape (n_pairs,)
    equality : ndarray of bool, shape (n_pairs,)
        Pairs that are compared both ways.
    rows : Differences
    """

    winner: Array
    rival: Array
    equality: Array
    rows: Differences


class _PairSearch:
    """Grows a working set until its answer is one of all pairs."""

    def __init__(self, data: Data, sets: RiskSets) -> None:
        self._data, self._sets, self._X = data, sets, data.X
        self._rng = np.random.default_rng(0)
        self._d = data.X.shape[1]
        self._centre = self._row(0)

    def _row(self, i: int) -> Array:
        row = self._X[[i]]
        return np.asarray(row.toarray() if sp.issparse(row) else row)[0]

    def first_pairs(self) -> _Pairs:
        """Random ones."""
        return self._pairs(
            *self._sets.some(max(_FIRST_PAIRS, _PAIRS_PER_COLUMN * self._d), self._rng)
        )

    def answer(self, pairs: _Pairs) -> Answer:
        """That of all pairs."""
        for _ in range(_ROUNDS_OF_PAIRS):
            found = _split(pairs)
            if self._is_overlap(pairs, found):
                return self._overlap(pairs, found)
            grown = self._with(pairs, *self._exceptions_in_floats(pairs, found))
            if len(grown.winner) == len(pairs.winner):
                answer = self._proved(pairs, found)
                if isinstance(answer, Answer):
                    return answer
                grown = self._with(pairs, *answer)
                if len(grown.winner) == len(pairs.winner):
                    return self._undecided(pairs, found, "pairs as thin as rounding decide")
            pairs = grown
        return self._undecided(pairs, found, f"it takes more than {_ROUNDS_OF_PAIRS} rounds")

    def _pairs(self, winner: Array, rival: Array) -> _Pairs:
        """Pairs that differ, each of them once."""
        equality = self._sets.covers(rival, winner)
        turned = equality & (winner > rival)
        winner, rival = np.where(turned, rival, winner), np.where(turned, winner, rival)
        first = np.unique(winner * self._sets.n + rival, return_index=True)[1]
        winner, rival, equality = winner[first], rival[first], equality[first]
        if len(winner) * self._d > _LARGEST:
            raise _TooLargeError
        rows = Differences.of(self._X, winner, rival)
        some = rows.A.any(axis=1)
        rows = replace(rows, A=rows.A[some], rest=rows.rest[some])
        return _Pairs(winner[some], rival[some], equality[some], rows)

    def _with(self, pairs: _Pairs, winner: Array, rival: Array) -> _Pairs:
        most = _ADDED * self._d + _FIRST_PAIRS
        if len(winner) > 2 * most:
            some = self._rng.choice(len(winner), 2 * most, replace=False)
            winner, rival = winner[some], rival[some]
        return self._pairs(np.append(pairs.winner, winner), np.append(pairs.rival, rival))

    def _is_overlap(self, pairs: _Pairs, found: Split) -> bool:
        """Whether floats prove that all pairs overlap, and that all columns are identified."""
        if found.separated.any() or found.face.size or len(found.identified) < self._d:
            return False
        return pairs.rows.overlap(pairs.equality, found.weights)

    def _overlap(self, pairs: _Pairs, found: Split) -> Answer:
        each = [FINITE] * self._d
        levels = np.zeros(self._sets.n, np.int64)
        return self._answer(pairs, OVERLAP, found, levels, np.zeros(0, bool), each, "", True)

    def _exceptions_in_floats(self, pairs: _Pairs, found: Split) -> tuple[Array, Array]:
        """The worst pairs that forbid a direction or its face, up to rounding, and random ones."""
        mixed = [found.direction]
        if found.face.shape[1]:
            mixed.append(found.face @ self._rng.standard_normal(found.face.shape[1]))
        scores = self._scores(np.column_stack([*mixed, self._combination(pairs, found)]))
        level = [_grouped(s) for s in scores.T]
        same = np.zeros(self._sets.n, np.int64)
        winner, rival = self._sets.exceptions(level[0], level[1] if len(mixed) > 1 else None)
        others = [self._sets.exceptions(same, column) for column in level[len(mixed) :]]
        gap = scores[rival, 0] - scores[winner, 0]
        order = np.argsort(-gap, kind="stable")
        most = _ADDED * self._d + _FIRST_PAIRS
        chosen = order[:most]
        if len(order) > most:
            chosen = np.append(chosen, self._rng.choice(order, most, replace=False))
        parts = [(winner[chosen], rival[chosen]), *others]
        return tuple(np.concatenate(side) for side in zip(*parts, strict=True))  # type: ignore[return-value]

    def _combination(self, pairs: _Pairs, found: Split) -> Array:
        """A random direction that is 0 on the pairs, where columns are not identified."""
        rest = np.setdiff1d(np.arange(self._d), found.identified)
        if not len(rest):
            return np.zeros((self._d, 0))
        A = pairs.rows.A
        unit = np.abs(A).max(axis=0, initial=0.0)
        unit[unit == 0.0] = 1.0
        table = np.zeros((self._d, len(rest)))
        table[rest, np.arange(len(rest))] = 1.0
        if len(found.identified):
            factors = np.linalg.lstsq((A / unit)[:, found.identified], (A / unit)[:, rest])[0]
            table[found.identified] = -factors
        mixed = table @ self._rng.standard_normal(len(rest)) / unit
        return np.asarray(mixed[:, None])

    def _scores(self, W: Array) -> Array:
        """Products with rows of X about one of them, relative to the largest terms."""
        unit = np.abs(W).max(axis=0, initial=0.0)
        W = W / np.where(unit > 0.0, unit, 1.0)
        if sp.issparse(self._X):
            S = self._X @ W - self._centre @ W
        else:
            n = len(self._X)
            S = np.empty((n, W.shape[1]))
            for i in range(0, n, _BLOCK):
                S[i : i + _BLOCK] = (self._X[i : i + _BLOCK] - self._centre) @ W
        top = self._reach @ np.abs(W)
        return np.asarray(S / np.where(top > 0.0, top, 1.0))

    @cached_property
    def _reach(self) -> Array:
        """The largest entries of the columns of X about that row."""
        highest, lowest = self._X.max(axis=0), self._X.min(axis=0)
        if sp.issparse(self._X):
            highest, lowest = highest.toarray(), lowest.toarray()
        return np.asarray(np.maximum(highest - self._centre, self._centre - lowest))

    def _proved(self, pairs: _Pairs, found: Split) -> Answer | tuple[Array, Array]:
        """The answer, as exactly as can be, or pairs that it needs."""
        rows = pairs.rows
        quick = along_one_column(rows, pairs.equality, found)
        if quick is not None:
            return self._held(pairs, found, rows.in_floats(), rows.A, *quick)
        A, claim = rows.written_out(), lifted(rows, found)
        equality = np.append(pairs.equality, np.ones(len(A) - len(rows.A), bool))
        nowhere = np.zeros(len(A), int)
        design = Design(A, equality, nowhere, nowhere, [""] * A.shape[1])
        exact, face, doubtful, reason = proved(design, claim) if len(A) else proof_of_nothing(found)
        if doubtful:
            return self._undecided(pairs, found, reason)
        if face is None:
            return self._up_to_rounding(pairs, found, reason)
        return self._held(pairs, found, rows, A, one_ray(exact, face, A), face)

    def _held(
        self, pairs: _Pairs, found: Split, rows: Differences, A: Array, exact: Split, face: Face
    ) -> Answer | tuple[Array, Array]:
        """What is proved of the pairs, held against all others."""
        about = Claim(rows, exact.identified, face)
        held = everywhere(self._X, self._sets, about, A, exact.direction)
        if held is None:
            return self._up_to_rounding(pairs, found, _UP_TO_ROUNDING.format(_TAKES_TOO_LONG))
        if len(held.winner):
            return held.winner, held.rival
        each, unknown, directions = signs_of(A, rows, exact, face)
        more = signs_elsewhere(self._X, self._sets, about, directions)
        if more is not None and len(more[0]):
            return more
        if more is None:
            unknown = [j for j, status in enumerate(each) if status == EITHER]
        separated, kind = outcome(self._sets, held.levels)
        n = len(rows.A)
        found = replace(
            exact,
            separated=exact.separated[:n],
            weights=exact.weights[:n],
            direction=exact.direction[rows.own],
        )
        return self._answer(
            pairs, kind, found, held.levels, separated, each, self._open_signs(unknown), True
        )

    def _open_signs(self, unknown: list[int]) -> str:
        return open_signs([self._data.names[j] for j in unknown])

    def _up_to_rounding(self, pairs: _Pairs, found: Split, reason: str) -> Answer:
        levels = _grouped(self._scores(found.direction[:, None])[:, 0])
        separated, kind = outcome(self._sets, levels)
        each, unknown = statuses(pairs.rows.A, found, None)
        either = [j for j, status in enumerate(each) if status == EITHER]
        open_ = self._open_signs(sorted({*unknown, *either}))
        reason = " ".join(text for text in (reason, open_) if text)
        return self._answer(pairs, kind, found, levels, separated, each, reason)

    def _undecided(self, pairs: _Pairs, found: Split, reason: str) -> Answer:
        levels = np.zeros(self._sets.n, np.int64)
        each = statuses(pairs.rows.A, found, None)[0]
        nothing = np.zeros(0, bool)
        return self._answer(pairs, UNDECIDED, found, levels, nothing, each, reason)

    def _answer(
        self,
        pairs: _Pairs,
        kind: str,
        found: Split,
        levels: Array,
        separated: Array,
        each: list[str],
        reason: str,
        is_proved: bool = False,
    ) -> Answer:
        data, n = self._data, self._data.n_examples
        table = np.zeros((n, 1), bool)
        table[data.example[np.flatnonzero(separated)]] = True
        used = np.flatnonzero(found.weights)
        at = data.example[pairs.winner[used]], data.example[pairs.rival[used]]
        q = found.weights[used]
        w = found.direction
        return Answer(
            kind,
            kind == COMPLETE if is_proved else None,
            table,
            Direction(w[None], np.zeros(1)) if w.any() else None,
            tuple(map(Coefficient, data.names, each)),
            sp.csr_array((q / (np.abs(q).sum() or 1.0), at), shape=(n, n)),
            reason,
            Comparisons.of(data, self._sets, pairs.winner, pairs.rival, levels),
        )


def _split(pairs: _Pairs) -> Split:
    """The split of the pairs; without any, nothing is identified."""
    A = pairs.rows.A
    if len(A):
        return split(A, pairs.equality)
    d = A.shape[1]
    nothing = np.zeros(0, int)
    return Split(nothing.astype(bool), np.zeros(d), np.zeros(0), nothing, np.zeros((d, 0)), "")


def _grouped(scores: Array) -> Array:
    """Ranks of scores, the same for those that are equal up to rounding."""
    order = np.argsort(scores, kind="stable")
    out = np.empty(len(scores), np.int64)
    steps = np.diff(scores[order], prepend=scores[order[:1]])
    out[order] = np.cumsum(steps > _ZERO)
    return out
