"""Whether a report is true of its data: a direction, weights, and what they leave.

The rows are written down again, from the data alone, and hold the direction and the weights that
the report has. How it found them does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.problem.threads import single_threaded_blas
from marginsvm.separation.asking import FAMILIES, data_of
from marginsvm.separation.design import Design
from marginsvm.separation.families import Family
from marginsvm.separation.pairs import Met, Pairs
from marginsvm.separation.program import A_COLUMN, FEW, Split, null_vectors
from marginsvm.separation.proof import Face, balances, flaw_in_floats, prove
from marginsvm.separation.report import kind_of
from marginsvm.separation.signs import FINITE, UNIDENTIFIED, statuses

ROWS = 1_000_000  # numbers of a design whose rows are all taken into the proof


@dataclass(frozen=True)
class SeparabilityCheck:
    """What :func:`~marginsvm.check_separability_proof` found; true if the report holds.

    Attributes
    ----------
    valid : bool
    reason : str
        What is wrong or not proved, or an empty string.
    exact : bool
        Whether nothing was rounded.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from marginsvm import check_separability, check_separability_proof
    >>> X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> false = replace(check_separability(X, y), kind="overlap")
    >>> check_separability_proof(false, X, y).reason
    "the kind of these rows is 'quasi-complete', not 'overlap'"
    """

    valid: bool
    reason: str
    exact: bool

    def __bool__(self) -> bool:
        return self.valid


@single_threaded_blas()
def check_separability_proof(
    report: Any, X: Any, y: Any, sample_weight: Any = None, *, exact: bool = False
) -> SeparabilityCheck:
    """Check the report of :func:`marginsvm.check_separability` from the data alone.

    The report holds if its ``direction`` is strictly on the right side of the rows that it calls
    separated, and on the boundary for all others; if its ``overlap_weights`` are positive on some
    of the others, with ``A^T q = 0``, and all others are combinations of these; and if the
    coefficients that it calls infinite are those that some direction on that boundary changes.
    The first shows that these rows are separated, the second that no others are.

    Parameters
    ----------
    report : Separability
    X : array-like or sparse matrix of shape (n_samples, n_features)
        As given to :func:`marginsvm.check_separability`.
    y : array-like of shape (n_samples,) or (n_samples, 2)
        As given there.
    sample_weight : array-like of shape (n_samples,), default=None
        As given there.
    exact : bool, default=False
        Accept no rounding: a direction and weights near those of the report are proved to exist
        that do all of this exactly, for the numbers of X as they are printed; so are the signs of
        infinite coefficients, and that columns that are called not identified are combinations of
        those before them.

    Returns
    -------
    SeparabilityCheck
        True if the report holds, else with what is wrong or not proved.

    Raises
    ------
    ValueError
        If the report is undecided.

    Notes
    -----
    Without ``exact``, where a proof would take too long, lengths of up to 1e-9 of those of the
    terms that are added count as 0, and rows may be combinations of others up to 1e-7.

    References
    ----------
    A. Albert, J. A. Anderson. On the existence of maximum likelihood estimates in logistic
    regression models. Biometrika, 1984. Theorems 1 to 3.

    Examples
    --------
    >>> from marginsvm import check_separability, check_separability_proof
    >>> X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> report = check_separability(X, y)
    >>> report.kind, report.separated.tolist()
    ('quasi-complete', [True, False, False, True])
    >>> bool(check_separability_proof(report, X, y, exact=True))
    True
    """
    if report.kind == "undecided":
        raise ValueError("the report is undecided, and claims nothing that could be checked here")
    kind = FAMILIES[report.family]
    data = data_of(kind, X, **{**report.given, "y": y, "sample_weight": sample_weight})
    status = [c.status for c in report.coefficients]
    if isinstance(kind, Pairs):
        flaw = _flaw_of_pairs(report, kind.met(data), status)
        return SeparabilityCheck(not flaw, flaw, True)
    design = kind.rows(data)
    separated, table = report.pairs, report.separated_rows
    if not kind.compares:
        separated = table[design.example, design.column]
    elif (
        len(separated) != len(design.equality)
        or (kind.table(design, separated, data) != table).any()
    ):
        return SeparabilityCheck(False, "other pairs are compared, or are separated", exact)
    if kind_of(separated) != report.kind or len(status) != design.shape[1]:
        flaw = f"the kind of these rows is {kind_of(separated)!r}, not {report.kind!r}"
        return SeparabilityCheck(False, flaw, exact)
    found = _claim(report, kind, design, separated, np.array(status))
    proof = prove(design, found)
    if proof.face is None or (exact and proof.flaw):
        flaw = proof.flaw if exact else flaw_in_floats(design, found)
        moved, exactly = found.face.any(axis=1), exact
    else:
        flaw, exactly = _flaw_of_direction(found, proof.face), not proof.flaw
        if not flaw and not balances(design, found):
            flaw = "the weights do not balance the rows"
        moved = np.zeros(design.shape[1], bool)
        moved[found.kept] = proof.face.vectors.any(axis=0)
        if exact and not flaw and statuses(design, found, proof.face) != (status, []):
            flaw = "the sign of a coefficient is another one, or not proved"
    infinite = ~np.isin(status, (FINITE, UNIDENTIFIED))
    if not flaw and not np.array_equal(moved, infinite):
        flaw = "coefficients are called infinite that are finite, or the other way round"
    return SeparabilityCheck(not flaw, flaw, exactly)


def _flaw_of_pairs(report: Any, met: Met, status: list[str]) -> str:
    levels, w = met.levels(), np.zeros(len(met.names))
    if report.direction is not None:
        w[1:] = report.direction.coef[0]
    separated, rise = levels[met.winner] != levels[met.loser], w[met.winner] - w[met.loser]
    if not np.array_equal(report.separated_rows[met.example, met.column], separated):
        return "other comparisons are separated"
    if kind_of(separated) != report.kind:
        return f"the kind of these rows is {kind_of(separated)!r}, not {report.kind!r}"
    if not np.array_equal(rise > 0, separated) or (rise < 0).any():
        return "the direction does not separate exactly these comparisons"
    return "" if status == met.statuses(levels) else "the status of a coefficient is another one"


def _flaw_of_direction(found: Split, face: Face) -> str:
    """Whether a direction is what is proved of one that is near."""
    w = found.direction[0] * face.design.reach
    v = (
        w
        if face.is_all
        else face.floats(face.near(found.direction)[None])[:, 0] * face.design.reach
    )
    same = np.allclose(w / (np.abs(w).max() or 1.0), v / (np.abs(v).max() or 1.0), atol=1e-6)
    return "" if same else "the direction is not 0 on all rows that are called overlapping"


def _claim(report: Any, kind: Family, design: Design, separated: Array, status: Array) -> Split:
    """The report's direction and weights, of all rows or, of many, those with weight and some."""
    (n, d), w, reach = design.shape, np.zeros(design.shape[1]), design.reach
    some, q = np.ones(n, bool), np.zeros(n)
    if n * d > ROWS:
        some = np.random.default_rng(0).permutation(n) < A_COLUMN * d + FEW
    if report.overlap_weights is not None:
        table = report.overlap_weights.tocoo()
        places = design.example * table.shape[1] + design.column
        order = np.argsort(places, kind="stable")
        where = np.asarray(table.row, dtype=np.int64) * table.shape[1] + table.col
        q[order[np.minimum(np.searchsorted(places[order], where), n - 1)]] = table.data
    if report.direction is not None:
        coef, intercept = report.direction
        w = kind.flat(coef, intercept, design.intercept)
    low = report.tail if np.shape(report.tail) == (d,) else 0.0 * w
    at, kept = np.flatnonzero(some | (q != 0)), np.flatnonzero(status != UNIDENTIFIED)
    face = np.zeros((d, 0))
    if separated.any():
        spanning = at[~separated[at] & ((q[at] > 0) | design.equality[at])]
        S = sp.csr_array(design.rows(spanning)[:, kept] / reach[kept])
        N = null_vectors(S)[0]
        N[np.abs(N).max(axis=1, initial=0.0) <= 1e-9] = 0.0
        face = np.zeros((d, N.shape[1]))
        face[kept] = N / reach[kept, None]
    none = np.zeros((d, 0))
    return Split(at, separated, (w, low), q[at], kept, at[:0], face, none, none)
