"""The check of a separation report: each of its fields is compared with the data, or derived.

What is to be checked is which regression the data are used for (``family``, ``fit_intercept`` and
``given``); all else follows. Of what the report has not, nothing is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from marginsvm._threads import single_threaded_blas
from marginsvm._typing import Array
from marginsvm.problem.matrix import dense
from marginsvm.separation import families, program
from marginsvm.separation.families import FINITE, UNIDENTIFIED
from marginsvm.separation.program import DoubleDouble, Split
from marginsvm.separation.proof import (
    face_in_floats,
    flaw_in_floats,
    is_separable,
    of_graph,
    prove,
)
from marginsvm.separation.regression import MOST_INTEGERS, Regression
from marginsvm.separation.report import Coefficient, Separability
from marginsvm.separation.signs import statuses

LOW = 2.0**-50  # largest low part of a number, relative to its high part
ARGUMENTS = {"y", "fit_intercept", "sample_weight", "feature_names", *families.OWN}
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
    report: Separability,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    exact: bool = False,
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
        coefficients (of up to two million numbers), and that columns called not identified are
        combinations of those before them.

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


def _flaw(
    report: Separability, X: object, y: object, weight: object, exact: bool
) -> tuple[str, bool]:
    """An error of a report, or an empty string; and whether nothing is rounded."""
    for name, fits in FORMS.items():
        value = getattr(report, name)
        if not fits(value):
            return f"{name} is {value!r:.60}, which it cannot be", exact
    if report.kind == families.UNDECIDED:
        raise ValueError(
            "the report is undecided, and claims nothing that could be checked here"
        )
    kind = families.FAMILIES[report.family]
    given = report.given
    # Rows of the data to be checked, and of what the report says that it is about.
    try:
        arguments = families.arguments_for(
            kind, X, {**given, "y": y, "sample_weight": weight}
        )
        regression = own = kind.rows(arguments)
    except (AttributeError, LookupError, TypeError) as error:
        return f"given cannot be used: {error!r:.80}", exact
    if given["y"] is not y or given["sample_weight"] is not weight:
        try:
            own = kind.rows(families.arguments_for(kind, X, given))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            return f"given cannot be used: {error!r:.80}", exact
    for name in ("plus", "minus", "equality", "example", "column"):
        if not np.array_equal(getattr(own, name), getattr(regression, name)):
            return "the outcomes or weights in given are others than these", exact
    if [c.name for c in report.coefficients] != own.names:
        return f"the coefficients are {', '.join(own.names):.60}", exact

    separated = report.pairs
    if separated.shape != regression.shape[:1]:
        return "pairs has another number of rows", exact
    if (separated & regression.equality).any():
        return "rows that are to be fitted exactly are called separated", exact
    flaw = _difference(
        report,
        kind=families.kind_of(separated),
        separated_rows=kind.table(regression, separated),
        used=arguments.used,
        fit_intercept=arguments.intercept,
        constant=arguments.constant,
    )
    if flaw:
        return flaw, exact
    direction = _direction(report, regression)
    if direction is None:
        return "the direction, or its tail, is none of these rows and columns", exact
    weights = _weights(report, regression)
    if weights is None:
        return "overlap_weights is none of these rows and columns", exact
    if isinstance(kind, families.Pairs):
        return _flaw_of_pairs(report, regression, direction[0]), True
    return _flaw_of_rows(report, regression, direction, weights, exact)


# ---- what fields may be


def _is_array(x: object, kind: str) -> bool:
    if not isinstance(x, np.ndarray) or x.dtype.kind != kind:
        return False
    return bool(np.isfinite(x).all())


def _is_direction(x: object) -> bool:
    return isinstance(x, tuple) and len(x) == 2 and all(_is_array(w, "f") for w in x)


def _are_coefficients(x: object) -> bool:
    """Pairs of texts."""
    return isinstance(x, tuple) and all(
        isinstance(c, Coefficient) and [*map(type, c)] == [str, str] for c in x
    )


def _are_weights(x: object) -> bool:
    """A sparse array that can be indexed."""
    if not isinstance(x, sp.csr_array) or not _is_array(x.data, "f"):
        return False
    try:
        x.check_format(full_check=True)
    except ValueError:
        return False
    return True


def _is_text(x: object) -> bool:
    return isinstance(x, str)


FORMS: dict[str, Callable[[object], bool]] = {
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


def _difference(report: Separability, **truth: object) -> str:
    """A field that is not what it is to be, of its type; or an empty string."""
    for name, value in truth.items():
        found = getattr(report, name)
        same = type(found) is type(value)
        if same and isinstance(value, np.ndarray):
            same = found.dtype == value.dtype
        if not same or not np.array_equal(found, np.asarray(value)):
            return f"{name} is {found!r:.60}, not {value!r:.60}"
    return ""


# ---- what the report claims of rows and columns


def _direction(report: Separability, regression: Regression) -> DoubleDouble | None:
    """High and low part, in the units of X as printed; None: they are none of these columns.

    There is one exactly if some row is separated. No entry stands where there is no coefficient.
    """
    kind = report._family
    direction = report.direction
    d = regression.shape[1]
    w = np.zeros(d)
    low = np.zeros(d) if report.tail is None else report.tail
    if (direction is not None) != report.pairs.any():
        return None
    if direction is not None:
        try:
            w = kind.flat(*direction, regression.arguments.intercept)
            same = map(np.array_equal, direction, kind.direction(w, regression))
        except (IndexError, ValueError):
            return None
        if w.shape != (d,) or not all(same):
            return None
        w = w / regression.unit
    is_low = low.shape == (d,) and (np.abs(low) <= LOW * np.abs(w)).all()
    return (w, low) if is_low else None


def _weights(report: Separability, regression: Regression) -> Array | None:
    """The weights q of the rows; None: there are some of what is no row."""
    q = report.overlap_weights
    n = regression.arguments.n
    if q is None:
        return np.zeros(regression.shape[0])
    shape = (n, n) if report._family.compares else report.separated_rows.shape
    if q.shape != shape:
        return None
    weights = dense(q[regression.example, regression.column]).ravel()
    return weights if q.count_nonzero() == np.count_nonzero(weights) else None


def _flaw_of_pairs(report: Separability, regression: Regression, w: Array) -> str:
    """An error of a report on comparisons, which a graph decides without rounding."""
    truth = of_graph(regression)
    rise = regression.margins(w[:, None])[:, 0]
    if not np.array_equal(report.pairs, truth.found.separated):
        return "other comparisons are separated"
    if not np.array_equal(report.pairs, rise > 0) or (rise < 0).any():
        return "the direction does not separate exactly these comparisons"
    if truth.signs != ([c.status for c in report.coefficients], []):
        return "the status of a coefficient is another one"
    derived = {"exact": True, "separable": truth.separable, "overlap_weights": None}
    return _difference(report, **derived, reason="", nearly_collinear=())


def _flaw_of_rows(
    report: Separability,
    regression: Regression,
    direction: DoubleDouble,
    q: Array,
    exact: bool,
) -> tuple[str, bool]:
    """An error of a report's proofs, or of what they imply; and whether all is without rounding.

    Of many rows, those with q > 0 and a sample are looked at.
    """
    n, d = regression.shape
    status = [c.status for c in report.coefficients]
    known = np.array(status) != UNIDENTIFIED
    infinite = known & (np.array(status) != FINITE)
    separated = report.pairs
    some = np.ones(n, bool)
    if n * d > MOST_INTEGERS / 2:
        order = np.random.default_rng(0).permutation(n)
        size = program.A_COLUMN * d + program.FEW
        some = (order < size) | (separated & (np.cumsum(separated) <= size))
    found = Split.of_nothing(n, d)
    found.sample = np.flatnonzero(some | (q != 0))
    found.separated = separated
    found.direction = direction
    found.weights = q[found.sample]
    found.independent = np.flatnonzero(known)
    if separated.any():
        found.face = face_in_floats(regression, found)

    doubt, face = prove(regression, found)
    proved = face is not None and not doubt
    unrounded = exact or proved
    flaw = doubt if exact else ""
    if face is None and not exact:
        flaw = flaw_in_floats(regression, found)
    if flaw:
        return flaw, unrounded
    signed = not {families.PLUS, families.MINUS}.isdisjoint(status)
    proves = regression.is_whole or not signed
    if exact and not (proves and statuses(regression, found, face) == (status, [])):
        return "the sign of a coefficient is another one, or not proved", unrounded
    directions = found.face if face is None else face.floats(face.vectors)
    if (directions.any(axis=1) != infinite).any():
        flaw = (
            "coefficients are called infinite that are finite, or the other way round"
        )
        return flaw, unrounded
    if face is not None and direction[0][~known].any():
        return "the direction has entries in columns that are not identified", unrounded
    collinear = program.nearly_collinear(regression, found.independent).tolist()
    flaw = _difference(
        report,
        exact=proved,
        separable=is_separable(regression, found, face, doubt),
        nearly_collinear=tuple(regression.names[j] for j in collinear),
    )
    return flaw or _flaw_of_reason(report, exact), unrounded


def _flaw_of_reason(report: Separability, exact: bool) -> str:
    """An error of what is said not to be proved, or an empty string."""
    if (report.overlap_weights is None) != (report.separable is True):
        return "overlap_weights are missing, or prove nothing"
    allowed = report.reason.startswith(UP_TO_ROUNDING)
    if report.exact:
        allowed = not report.reason
        either = families.EITHER in [c.status for c in report.coefficients]
        if either and not exact:  # their signs may be open
            allowed = allowed or report.reason.startswith(OPEN_SIGNS)
    return "" if allowed else f"the reason is {report.reason!r:.60}, which is not open"
