"""The check of a separation report: each of its fields is compared with the data, or derived.

What is to be checked is which regression the data are used for (``family``, ``fit_intercept`` and
``given``); all else follows. Of what the report has not, nothing is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._threads import single_threaded_blas
from marginsvm._typing import Array
from marginsvm.separation import families, program
from marginsvm.separation.families import EXACT, FINITE, UNIDENTIFIED, Design, dense
from marginsvm.separation.program import Parts, Split
from marginsvm.separation.proof import (
    face_in_floats,
    flaw_in_floats,
    is_separable,
    of_graph,
    prove,
    statuses,
)
from marginsvm.separation.report import Coefficient

LOW = 2.0**-50  # largest low part of a number, relative to its high part
ARGUMENTS = {
    *("y", "fit_intercept", "sample_weight", "offset", "strata", "entry", "groups"),
    "feature_names",
}
# How reasons begin: what holds up to rounding, and which signs are open.
UP_TO_ROUNDING = "This holds up to the rounding"
OPEN_SIGNS = "The signs of these"


@dataclass(frozen=True)
class SeparabilityCheck:
    """Result of :func:`~marginsvm.check_separability_proof`; true if the report holds.

    Attributes
    ----------
    valid : bool
    reason : str
        The error or the unproved part, or an empty string.
    exact : bool
        Whether nothing was rounded.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from marginsvm import check_separability, check_separability_proof
    >>> X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> false = replace(check_separability(X, y), kind="overlap")
    >>> check_separability_proof(false, X, y).reason
    "kind is 'overlap', not 'quasi-complete'"
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

    The report holds if three conditions do. Its ``direction`` is positive on the separated rows,
    and 0 on all others: this proves separation. Its ``overlap_weights`` q satisfy ``A^T q = 0``,
    and are positive on rows that span all others: this proves overlap. The infinite coefficients
    are those that are not 0 in all directions that are 0 on the overlapping rows. All other fields
    are compared with what follows from the data.

    Parameters
    ----------
    report : Separability
        As :func:`marginsvm.check_separability` returned it. Its ``family``, ``fit_intercept`` and
        ``given`` (strata, entries, groups, names) say which regression it is about.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        As given to :func:`marginsvm.check_separability`.
    y : array-like of shape (n_samples,) or (n_samples, 2)
        As given there.
    sample_weight : array-like of shape (n_samples,), default=None
        As given there.
    exact : bool, default=False
        Accept no rounding: prove that a direction and q near those of the report satisfy all of
        this exactly, for the numbers of X as printed; also prove the signs of infinite
        coefficients, and that columns called not identified are combinations of those before them.

    Returns
    -------
    SeparabilityCheck
        True if the report holds, else with a reason.

    Raises
    ------
    ValueError
        If the report is undecided; or if the data cannot be used for the regression that it names.

    Notes
    -----
    Without ``exact``, where a proof would take too long, sums of up to 1e-9 relative to their terms
    count as 0, and rows may be combinations of others up to 1e-7.

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
    flaw, exact = _flaw(report, X, y, sample_weight, exact)
    return SeparabilityCheck(not flaw, flaw, exact)


def _flaw(report: Any, X: Any, y: Any, weight: Any, exact: bool) -> tuple[str, bool]:
    """An error of a report, or an empty string; and whether nothing is rounded."""
    for name, fits in FORMS.items():
        if not fits(getattr(report, name)):
            return f"{name} is {getattr(report, name)!r:.60}, which it cannot be", exact
    if report.kind == families.UNDECIDED:
        raise ValueError(
            "the report is undecided, and claims nothing that could be checked here"
        )
    kind = families.FAMILIES[report.family]
    given = report.given
    try:
        data = families.data_of(kind, X, {**given, "y": y, "sample_weight": weight})
        design = own = kind.rows(data)
    except (AttributeError, LookupError, TypeError) as error:
        return f"given cannot be used: {error!r:.80}", exact
    if given["y"] is not y or given["sample_weight"] is not weight:
        try:
            own = kind.rows(families.data_of(kind, X, given))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            return f"given cannot be used: {error!r:.80}", exact
    for name in ("plus", "minus", "equality", "example", "column"):
        if not np.array_equal(getattr(own, name), getattr(design, name)):
            return "the outcomes or weights in given are others than these", exact
    if [c.name for c in report.coefficients] != own.names:
        return f"the coefficients are {', '.join(own.names):.60}", exact
    separated = report.pairs
    used = np.zeros(data.n, bool)
    if separated.shape != design.shape[:1]:
        return "pairs has another number of rows", exact
    if (separated & design.equality).any():
        return "rows that are to be fitted exactly are called separated", exact
    used[data.example] = True
    flaw = _difference(
        report,
        kind=families.kind_of(separated),
        separated_rows=kind.table(design, separated),
        used=used,
        fit_intercept=data.intercept,
        constant=data.constant,
    )
    if flaw:
        return flaw, exact
    direction = _direction(report, design)
    weights = _weights(report, design)
    if direction is None or weights is None:
        name = "overlap_weights" if direction else "the direction, or its tail,"
        return f"{name} is none of these rows and columns", exact
    if isinstance(kind, families.Pairs):
        return _flaw_of_pairs(report, design, direction[0]), True
    return _flaw_of_rows(report, design, direction, weights, exact)


# ---- what fields may be


def _is_array(x: Any, kind: str) -> bool:
    right = isinstance(x, np.ndarray) and x.dtype.kind == kind
    return right and bool(np.isfinite(x).all())


def _is_direction(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 2 and all(_is_array(w, "f") for w in x)


def _are_coefficients(x: Any) -> bool:
    """Pairs of texts."""
    return isinstance(x, tuple) and all(
        isinstance(c, Coefficient) and [*map(type, c)] == [str, str] for c in x
    )


def _are_weights(x: Any) -> bool:
    """A sparse array that can be indexed."""
    if not isinstance(x, sp.csr_array) or not _is_array(x.data, "f"):
        return False
    try:
        x.check_format(full_check=True)
    except ValueError:
        return False
    return True


def _is_text(x: Any) -> bool:
    return isinstance(x, str)


FORMS: dict[str, Callable[[Any], bool]] = {
    "kind": _is_text,
    "family": lambda x: _is_text(x) and x in families.FAMILIES,
    "given": lambda x: isinstance(x, Mapping) and {*x} == ARGUMENTS,
    "coefficients": _are_coefficients,
    "pairs": lambda x: _is_array(x, "b"),
    "direction": lambda x: x is None or _is_direction(x),
    "tail": lambda x: x is None or _is_array(x, "f"),
    "overlap_weights": lambda x: x is None or _are_weights(x),
    "reason": _is_text,
}


def _difference(report: Any, **truth: Any) -> str:
    """A field that is not what it is to be, of its type; or an empty string."""
    for name, value in truth.items():
        found = getattr(report, name)
        same = type(found) is type(value)
        if same and isinstance(value, np.ndarray):
            same = found.dtype == value.dtype
        if not same or not np.array_equal(found, value):
            return f"{name} is {found!r:.60}, not {value!r:.60}"
    return ""


# ---- what the report claims of rows and columns


def _direction(report: Any, design: Design) -> Parts | None:
    """High and low part, in the units of X as printed; None: they are none of these columns.

    There is one exactly if some row is separated. No entry stands where there is no coefficient.
    """
    kind = report._family
    direction = report.direction
    d = design.shape[1]
    w = np.zeros(d)
    low = np.zeros(d) if report.tail is None else report.tail
    if (direction is not None) != report.pairs.any():
        return None
    if direction is not None:
        try:
            w = kind.flat(*direction, design.data.intercept)
            same = map(np.array_equal, direction, kind.direction(w, design))
        except (IndexError, ValueError):
            return None
        if w.shape != (d,) or not all(same):
            return None
        w = w / design.unit
    is_low = low.shape == (d,) and (np.abs(low) <= LOW * np.abs(w)).all()
    return (w, low) if is_low else None


def _weights(report: Any, design: Design) -> Array | None:
    """The weights q of the rows; None: there are some of what is no row."""
    q = report.overlap_weights
    n = design.data.n
    if q is None:
        return np.zeros(design.shape[0])
    shape = (n, n) if report._family.compares else report.separated_rows.shape
    if q.shape != shape:
        return None
    weights = dense(q[design.example, design.column]).ravel()
    return weights if q.count_nonzero() == np.count_nonzero(weights) else None


def _flaw_of_pairs(report: Any, design: Design, w: Array) -> str:
    """An error of a report on comparisons, which a graph decides without rounding."""
    truth = of_graph(design)
    rise = design.margins(w[:, None])[:, 0]
    if not np.array_equal(report.pairs, truth.found.separated):
        return "other comparisons are separated"
    if not np.array_equal(report.pairs, rise > 0) or (rise < 0).any():
        return "the direction does not separate exactly these comparisons"
    if truth.signs != ([c.status for c in report.coefficients], []):
        return "the status of a coefficient is another one"
    derived = {"exact": True, "separable": truth.separable, "overlap_weights": None}
    return _difference(report, **derived, reason="", nearly_collinear=())


def _flaw_of_rows(
    report: Any, design: Design, direction: Parts, q: Array, exact: bool
) -> tuple[str, bool]:
    """An error of a report's proofs, or of what they imply; and whether all is without rounding.

    Of many rows, those with q > 0 and a sample are looked at.
    """
    n, d = design.shape
    status = [c.status for c in report.coefficients]
    separated = report.pairs
    known = np.array(status) != UNIDENTIFIED
    some = np.ones(n, bool)
    none = np.zeros((d, 0))
    if n * d > EXACT / 2:
        order = np.random.default_rng(0).permutation(n)
        size = program.A_COLUMN * d + program.FEW
        some = (order < size) | (separated & (np.cumsum(separated) <= size))
    at = np.flatnonzero(some | (q != 0))
    kept = np.flatnonzero(known)
    loose = kept[:0]
    found = Split(at, separated, direction, q[at], kept, loose, none, none, none)
    if separated.any():
        found.face = face_in_floats(design, found)
    doubt, face = prove(design, found)
    moved = (found.face if face is None else face.floats(face.vectors)).any(axis=1)
    flaw = doubt if exact else "" if face is not None else flaw_in_floats(design, found)
    if exact and not flaw and statuses(design, found, face) != (status, []):
        flaw = "the sign of a coefficient is another one, or not proved"
    if not flaw and (moved != (known & (np.array(status) != FINITE))).any():
        flaw = (
            "coefficients are called infinite that are finite, or the other way round"
        )
    if not flaw and face is not None and direction[0][~known].any():
        flaw = "the direction has entries in columns that are not identified"
    proved = face is not None and not doubt
    if flaw:
        return flaw, exact or proved
    close = program.nearly_collinear(design, kept).tolist()
    flaw = _difference(
        report,
        exact=proved,
        separable=is_separable(design, found, face, doubt),
        nearly_collinear=tuple(design.names[j] for j in close),
    )
    return flaw or _flaw_of_reason(report, exact), exact or proved


def _flaw_of_reason(report: Any, exact: bool) -> str:
    """An error of what is said not to be proved, or an empty string."""
    if (report.overlap_weights is None) != (report.separable is True):
        return "overlap_weights are missing, or prove nothing"
    allowed = report.reason.startswith(UP_TO_ROUNDING)
    if report.exact:  # only signs may be open
        open_ = families.EITHER in [c.status for c in report.coefficients] and not exact
        allowed = not report.reason or (open_ and report.reason.startswith(OPEN_SIGNS))
    return "" if allowed else f"the reason is {report.reason!r:.60}, which is not open"
