"""What a working set of pairs says, held against all pairs that are compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginsvm.certify.checker.differences import Differences
from marginsvm.certify.checker.face import QUICK, Face, face_of
from marginsvm.certify.checker.ranks import ranks
from marginsvm.certify.checker.risk_sets import RiskSets
from marginsvm.certify.exactly.elimination import Integers


class Everywhere(NamedTuple):
    """What is exactly true of all subjects.

    Attributes
    ----------
    levels : ndarray of int, shape (n,)
        Ranks along the direction: a winner is separated from a rival of lower rank.
    winner, rival : ndarray of int, shape (n_pairs,)
        Pairs of which the claim is not true; none: it is proved.
    """

    levels: NDArray
    winner: NDArray
    rival: NDArray


class Claim(NamedTuple):
    """Of pairs whose rows are written out.

    Attributes
    ----------
    rows : Differences
    identified : ndarray of int
        Columns of the rows that are not combinations of those before them.
    face : Face
        Of the rows that overlap, in these columns.
    """

    rows: Differences
    identified: NDArray
    face: Face

    def of_features(self, v: Integers) -> Integers:
        """A direction in the identified columns as one of the features."""
        at = dict(zip(self.identified.tolist(), v, strict=True))
        return [at.get(j, 0) for j in self.rows.own.tolist()]

    def combinations(self, A: NDArray) -> list[Integers] | None:
        """For each column that is not identified, a vector that is 0 on all rows."""
        out = []
        for j in sorted(set(self.rows.own.tolist()) - set(self.identified.tolist())):
            some = [*self.identified[self.identified < j].tolist(), j]
            face = face_of(A[:, some], QUICK)
            if face is None or len(face.vectors) != 1:
                return None
            at = dict(zip(some, face.vectors[0], strict=True))
            out.append([at.get(k, 0) for k in self.rows.own.tolist()])
        return out


def everywhere(X: Any, sets: RiskSets, claim: Claim, A: NDArray, w: NDArray) -> Everywhere | None:
    """Whether a direction is positive, or 0 with its face, on all pairs; None: it is too much.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    sets : RiskSets
    claim : Claim
    A : ndarray
        The rows written out.
    w : ndarray
        The direction, in the columns of these.
    """
    combinations = claim.combinations(A)
    if combinations is None:
        return None
    vectors, same = claim.face.vectors, np.zeros(sets.n, np.int64)
    levels: NDArray | None = same
    if vectors:
        direction = claim.face.direction(w[claim.identified])
        levels = ranks(X, claim.of_features(direction))
    if levels is None:
        return None
    tied = [claim.of_features(v) for v in vectors] if len(vectors) > 1 else []
    found = [sets.exceptions(levels)]
    for first, v in [*((levels, v) for v in tied), *((same, v) for v in combinations)]:
        second = ranks(X, v)
        if second is None:
            return None
        found.append(sets.exceptions(first, second))
    winner, rival = (np.concatenate(side) for side in zip(*found, strict=True))
    return Everywhere(levels, winner, rival)


def signs_elsewhere(
    X: Any, sets: RiskSets, claim: Claim, directions: list[Integers]
) -> tuple[NDArray, NDArray] | None:
    """Pairs that forbid some of the directions; None: it is too much."""
    found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for v in directions:
        levels = ranks(X, claim.of_features(v))
        if levels is None:
            return None
        found.append(sets.exceptions(levels))
    winner, rival = (np.concatenate(side) for side in zip(*found, strict=True))
    return winner, rival


def outcome(sets: RiskSets, levels: NDArray) -> tuple[NDArray, str]:
    """Winners that are separated from some rival, a mask of subjects; and the kind of all pairs."""
    separated = np.zeros(sets.n, bool)
    (least, _), (one, two) = (
        sets.top(levels.max(initial=0) - levels, levels),
        sets.top(levels, np.zeros_like(levels)),
    )
    some = least >= 0
    i = sets.winner
    separated[i[some]] = levels[least[some]] < levels[i[some]]
    tie = np.zeros(len(i), bool)
    for rival in (one, two):
        tie |= (rival >= 0) & (rival != i) & (levels[rival] >= levels[i])
    kind = "overlap" if not separated.any() else "quasi-complete" if tie.any() else "complete"
    return separated, kind
