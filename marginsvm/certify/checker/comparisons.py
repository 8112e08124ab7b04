"""Whether a report about comparisons of subjects is true: of the pairs it names, and of all pairs.

Who is compared with whom is taken from the data once more. The pairs that the report names prove
what it says; then each winner's best rival along the direction and its face shows that no other
pair forbids it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.checker.coordinates import power_of_two
from marginsvm.certify.checker.differences import Differences
from marginsvm.certify.checker.everywhere import Claim, everywhere, outcome, signs_elsewhere
from marginsvm.certify.checker.face import face_of
from marginsvm.certify.checker.risk_sets import RiskSets
from marginsvm.certify.checker.separation import flaw_in_floats, flaw_in_integers
from marginsvm.certify.checker.signs import Cone, Signs

FAMILIES = "cox", "conditional"
_INTEGER_NUMBERS = 200_000  # numbers of the pairs' rows that take about a second in integers
_RTOL = 1e-9  # of the largest score: in floats, closer ones count as equal
_SIGN = {"+inf": 1, "-inf": -1, "inf": 0}
_MOST_SIGNS = 300  # infinite coefficients up to which their signs are looked at
_LEFT_OUT = "not identified"
_LEVELS = "the ranks are not those of the scores along the direction"
_FORBIDDEN = "other pairs forbid the direction, or are not combinations of those with weight"
_TOO_LARGE = "there are too many pairs, or subjects, for integers"


def flaw_of_comparisons(
    report: Any, X: Any, y: Any, sample_weight: Any, exact: bool
) -> tuple[str, bool]:
    """What is wrong or not proved, or an empty string; and whether nothing was rounded."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    kept = np.ones(X.shape[0], bool) if sample_weight is None else np.asarray(sample_weight) > 0
    X = X[kept].astype(np.float64)
    sets = _sets_of(report, y, kept)
    named = _named(report, X, sets, np.cumsum(kept) - 1, kept)
    if named is None:
        return "some pairs are of subjects that are not compared", exact
    flaw = "" if exact else _flaw_in_floats(report, X, sets, named)
    exact = exact or (bool(flaw) and named.rows.A.size <= _INTEGER_NUMBERS)
    if exact:
        flaw = _flaw_in_integers(X, sets, named)
    return flaw or _flaw_of_tables(report, sets, named, kept), exact


def _sets_of(report: Any, y: Any, kept: NDArray) -> RiskSets:
    """Who is compared with whom."""
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields:
        (event,) = (name for name in fields if y.dtype[name].kind == "b")
        (time,) = (name for name in fields if name != event)
        y = np.column_stack([y[time], y[event]])
    y, more = np.asarray(y, dtype=float)[kept], report.more
    if report.family == "conditional":
        return RiskSets.of_groups(y.ravel() > 0.0, np.asarray(more["groups"])[kept])
    entry, strata = more.get("entry"), more.get("strata")
    strata = np.zeros(len(y), int) if strata is None else np.asarray(strata)[kept]
    entry = None if entry is None else np.asarray(entry)[kept]
    return RiskSets.of_times(y[:, 0], y[:, 1] > 0.0, entry, strata)


@dataclass(frozen=True)
class _Named:
    """What the report claims, of the pairs that it names.

    Attributes
    ----------
    rows : Differences
    equality, separated : ndarray of bool, shape (n_pairs,)
    w : ndarray of shape (d,)
    q : ndarray of shape (n_pairs,)
    status : ndarray of str, shape (d,)
    levels : ndarray of int
        Of the subjects.
    """

    rows: Differences
    equality: NDArray
    separated: NDArray
    w: NDArray
    q: NDArray
    status: NDArray
    levels: NDArray


def _named(report: Any, X: Any, sets: RiskSets, place: NDArray, kept: NDArray) -> _Named | None:
    winner, rival = np.asarray(report.comparisons.winner), np.asarray(report.comparisons.rival)
    some = np.concatenate([winner, rival])
    if not (kept[some].all() and sets.covers(place[winner], place[rival]).all()):
        return None
    i, j = place[winner], place[rival]
    levels = np.asarray(report.comparisons.levels)[kept]
    q, d = np.zeros(len(i)), X.shape[1]
    if report.overlap_weights is not None and len(i):
        q = np.asarray(sp.csr_array(report.overlap_weights)[winner, rival]).ravel()
    return _Named(
        Differences.of(X, i, j),
        sets.covers(j, i),
        levels[i] > levels[j],
        np.zeros(d) if report.direction is None else np.asarray(report.direction.coef)[0],
        q,
        np.array([c.status for c in report.coefficients]),
        levels,
    )


def _flaw_of_tables(report: Any, sets: RiskSets, named: _Named, kept: NDArray) -> str:
    """Whether kind and rows are those of the ranks, which are proved."""
    separated, kind = outcome(sets, named.levels)
    table = np.zeros(len(kept), bool)
    table[np.flatnonzero(kept)[separated]] = True
    if kind != report.kind:
        return f"the kind of these pairs is {kind!r}, not {report.kind!r}"
    return "" if np.array_equal(table, report.separated) else "other winners are separated"


def _flaw_in_floats(report: Any, X: Any, sets: RiskSets, named: _Named) -> str:
    A, finite = named.rows.A, named.status == "finite"
    identified = np.flatnonzero(named.status != _LEFT_OUT)
    if len(A) and len(identified):
        claim = named.equality, named.separated, named.w, named.q, identified, finite
        flaw = flaw_in_floats(A, *claim)
        if flaw:
            return flaw
    scores = _scores(X, named.w[:, None])[:, 0]
    order = np.lexsort((scores, named.levels))
    steps, new = np.diff(scores[order]), np.diff(named.levels[order]) > 0
    if np.any(steps[new] <= 0.0) or np.any(steps[~new] > _RTOL):
        return _LEVELS
    if len(sets.exceptions(named.levels)[0]):
        return _FORBIDDEN
    same = np.zeros(sets.n, np.int64)
    for first, rows in ((named.levels, A[~named.separated]), (same, A)):
        N = _null_space(rows)
        for s in _scores(X, N).T:
            if len(sets.exceptions(first, _grouped(s))[0]):
                return _FORBIDDEN
    return ""


def _null_space(A: NDArray) -> NDArray:
    """Vectors that span the null space, up to rounding, in the units of the columns."""
    units = power_of_two(A.T)
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(np.linalg.qr(A / units, mode="r"))
    rank = int(np.count_nonzero(s > _RTOL * s[0])) if len(s) else 0
    return np.asarray((Vt[rank:] / units).T)


def _scores(X: Any, W: NDArray) -> NDArray:
    """Products with the rows of X about the first, relative to the largest terms."""
    first, highest, lowest = X[[0]], X.max(axis=0), X.min(axis=0)
    S = X @ W - first @ W
    if sp.issparse(X):
        first, highest, lowest = (part.toarray() for part in (first, highest, lowest))
    top = np.maximum(highest - first, first - lowest).ravel() @ np.abs(W)
    return np.asarray(S / np.where(top > 0.0, top, 1.0))


def _grouped(scores: NDArray) -> NDArray:
    order = np.argsort(scores, kind="stable")
    out = np.empty(len(scores), np.int64)
    out[order] = np.cumsum(np.diff(scores[order], prepend=scores[order[:1]]) > _RTOL)
    return out


class _Lifted(NamedTuple):
    """The claim for the rows written out."""

    A: NDArray
    equality: NDArray
    separated: NDArray
    w: NDArray
    q: NDArray
    identified: NDArray
    finite: NDArray


def _lifted(named: _Named) -> _Lifted:
    rows = named.rows
    A = rows.written_out()
    more, d = np.ones(len(A) - len(rows.A), bool), A.shape[1]
    w, identified, finite = np.zeros(d), np.zeros(d, bool), np.zeros(d, bool)
    w[rows.first] = named.w
    w[rows.own] = named.w
    finite[rows.first] = (named.status == "finite") | (named.status == _LEFT_OUT)
    finite[rows.own] = named.status == "finite"
    identified[rows.first] = True
    identified[rows.own] = named.status != _LEFT_OUT
    return _Lifted(
        A,
        np.append(named.equality, more),
        np.append(named.separated, ~more),
        w,
        rows.weights(named.q),
        np.flatnonzero(identified),
        finite,
    )


def _flaw_in_integers(X: Any, sets: RiskSets, named: _Named) -> str:
    """What is not proved; nothing is rounded."""
    if _is_overlap(named):
        return _LEVELS if named.levels.any() else ""
    lifted = _lifted(named)
    flaw = flaw_in_integers(*lifted) if len(lifted.A) and len(lifted.identified) else ""
    if flaw:
        return flaw
    A, some = lifted.A, lifted.A[:, lifted.identified]
    face = face_of(some[~lifted.separated])
    if face is None:
        return _TOO_LARGE
    claim = Claim(named.rows, lifted.identified, face)
    held = everywhere(X, sets, claim, A, lifted.w)
    if held is None:
        return _TOO_LARGE
    if len(held.winner):
        return _FORBIDDEN
    if not np.array_equal(held.levels, named.levels):
        return _LEVELS
    return _flaw_of_signs(X, sets, named, lifted, claim)


def _flaw_of_signs(X: Any, sets: RiskSets, named: _Named, lifted: _Lifted, claim: Claim) -> str:
    """What is not proved of the signs of infinite coefficients."""
    A, separated = lifted.A[:, lifted.identified], lifted.separated
    places = np.searchsorted(lifted.identified, named.rows.own)
    infinite = np.flatnonzero(np.isin(named.status, list(_SIGN)))
    if not len(infinite) or len(infinite) > _MOST_SIGNS:
        return ""
    cone = Cone.of(A, separated, lifted.w[lifted.identified])
    signs = Signs(cone, A, separated, claim.face)
    for j, sign in zip(infinite, signs.of(places[infinite]), strict=True):
        if sign is None:
            return f"the sign of coefficient {j} is not proved"
        if sign != _SIGN[named.status[j]]:
            return f"the sign of coefficient {j} is another one"
    elsewhere = signs_elsewhere(X, sets, claim, signs.witnesses)
    if elsewhere is None:
        return _TOO_LARGE
    return "other pairs decide some signs" if len(elsewhere[0]) else ""


def _is_overlap(named: _Named) -> bool:
    """Whether floats prove that all pairs overlap, and that all columns are identified."""
    if named.separated.any() or not (named.status == "finite").all():
        return False
    return named.rows.overlap(named.equality, named.q)
