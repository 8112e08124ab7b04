"""Whether a report of separability is true of its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.checker.separation import flaw_in_floats, flaw_in_integers, flaw_of_signs

_SMALL = 200_000  # numbers of a design that takes about a second in integers
_LEFT_OUT = "not identified"
_KINDS = {(True, True): "complete", (True, False): "quasi-complete", (False, False): "overlap"}


@dataclass(frozen=True)
class SeparabilityCheck:
    """What :func:`check_separability_proof` found; true if the report holds.

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


def check_separability_proof(
    report: Any, X: Any, y: Any, sample_weight: Any = None, *, exact: bool = False
) -> SeparabilityCheck:
    """Check the report of :func:`marginsvm.check_separability` from the data alone.

    The report holds if its ``direction`` is strictly on the right side of the rows that it calls
    separated, and on the boundary for all others; if its ``overlap_weights`` are positive on some
    of the others, with ``A^T q = 0``, and all others are combinations of these; and if the
    coefficients that it calls infinite are those that some direction on that boundary changes.
    The first shows that these rows are separated, the second that no others are. With ``exact``,
    the signs of up to 300 infinite coefficients are checked, too: each is proved by a combination
    of rows, or refuted by directions of both signs; and columns that are called not identified are
    proved to be combinations of those before them.

    Parameters
    ----------
    report : Separability
        Of a linear problem.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        As given to :func:`marginsvm.check_separability`.
    y : array-like of shape (n_samples,) or (n_samples, 2)
        As given there.
    sample_weight : array-like of shape (n_samples,), default=None
        As given there.
    exact : bool, default=False
        Compute in integers, in which nothing is rounded: a direction and weights near those of
        the report are proved to exist that do all of this exactly, for the numbers of X in
        float64. Takes about a microsecond for each number of X; null spaces that would take more
        than some fifteen seconds are not proved.

    Returns
    -------
    SeparabilityCheck
        True if the report holds, else with what is wrong or not proved.

    Raises
    ------
    ValueError
        If the report is one of a kernel, or undecided.

    Notes
    -----
    Without ``exact``, lengths of up to 1e-9 of those of the terms that are added count as 0, and
    rows may be combinations of others up to 1e-7. Small designs of which floats cannot tell are
    checked in integers all the same.

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
    if report.kind == "undecided" or not report.coefficients:
        raise ValueError(
            "the report is undecided or of a kernel, and claims nothing that could be checked here"
        )
    A, equality, example, column = _rows(report, X, y, sample_weight)
    separated = report.separated_rows[example, column]
    status = np.array([c.status for c in report.coefficients])
    kind = _KINDS[bool(separated.any()), bool(separated.all())]
    if kind != report.kind or len(status) != A.shape[1]:
        reason = f"the kind of these rows is {kind!r}, not {report.kind!r}"
        return SeparabilityCheck(False, reason, exact)
    w, q = _direction(report, A.shape[1]), np.zeros(len(equality))
    if report.overlap_weights is not None:
        q = np.asarray(sp.csr_array(report.overlap_weights)[example, column]).ravel()
    claim = equality, separated, w, q, np.flatnonzero(status != _LEFT_OUT), status == "finite"
    flaw = "" if exact else flaw_in_floats(A, *claim)
    exact = exact or (bool(flaw) and np.prod(A.shape) <= _SMALL)
    if exact:
        A = A.toarray() if sp.issparse(A) else A
        flaw = flaw_in_integers(A, *claim) or flaw_of_signs(A, separated, w, claim[4], status)
    return SeparabilityCheck(not flaw, flaw, exact)


def _rows(report: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray, NDArray, NDArray]:
    """Conditions on the coefficients: rows, which are equalities, examples, and other classes."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    X, y = X.astype(np.float64), np.asarray(y)
    if report.fit_intercept:
        one = np.ones((X.shape[0], 1))
        X = sp.csr_array(sp.hstack([one, X])) if sp.issparse(X) else np.hstack([one, X])
    kept = np.ones(len(y), bool) if sample_weight is None else np.asarray(sample_weight) > 0
    if report.family in ("poisson", "negative_binomial") or (y.ndim == 2 and y.shape[1] == 2):
        table = y if y.ndim == 2 else np.column_stack([y, np.ones(len(y))])
        kept &= (table > 0).any(axis=1)
        sign = np.where(table[:, 0] > 0, 1.0, -1.0)
        equality, column = np.asarray((table > 0).all(axis=1)), np.zeros(len(y), int)
        example = np.flatnonzero(kept)
        return _scaled(X, sign)[example], equality[example], example, column[example]
    y = y.ravel()
    classes = np.unique(y[kept])
    if len(classes) == 2:
        example = np.flatnonzero(kept)
        sign = np.where(y[example] == classes[1], 1.0, -1.0)
        zeros = np.zeros(len(example), int)
        return _scaled(X[example], sign), zeros.astype(bool), example, zeros
    example, column = np.nonzero(kept[:, None] & (y[:, None] != classes))
    blocks = [
        _scaled(X[example], 1.0 * (y[example] == c) - (classes[column] == c)) for c in classes[1:]
    ]
    A = sp.csr_array(sp.hstack(blocks)) if sp.issparse(X) else np.hstack(blocks)
    return A, np.zeros(len(example), bool), example, column


def _scaled(X: Any, sign: NDArray) -> Any:
    return sp.csr_array(sp.diags_array(sign) @ X) if sp.issparse(X) else X * sign[:, None]


def _direction(report: Any, n_columns: int) -> NDArray:
    if report.direction is None:
        return np.zeros(n_columns)
    table = np.asarray(report.direction.coef)
    if report.fit_intercept:
        table = np.column_stack([report.direction.intercept, table])
    return (table[1:] - table[0] if len(table) > 1 else table).ravel()
