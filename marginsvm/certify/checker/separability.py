"""Whether a report of separability is true of its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm.certify.checker.comparisons import FAMILIES as COMPARED
from marginsvm.certify.checker.comparisons import flaw_of_comparisons
from marginsvm.certify.checker.conditions import conditions_of, direction_of
from marginsvm.certify.checker.pairs import flaw_of_pairs
from marginsvm.certify.checker.separation import (
    TOO_LARGE,
    flaw_in_floats,
    flaw_in_integers,
    flaw_of_kind,
    flaw_of_signs,
)

_INTEGER_NUMBERS = 200_000  # numbers of a design that takes about a second in integers
_FACTOR_PRODUCTS = 2**35  # products of a factorisation of the rows: some ten seconds
_LEFT_OUT = "not identified"


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
    if report.family in COMPARED:
        flaw, exact = flaw_of_comparisons(report, X, y, sample_weight, exact)
        return SeparabilityCheck(not flaw, flaw, exact)
    kept = np.ones(len(report.used), bool)
    if sample_weight is not None:
        kept = np.asarray(sample_weight) > 0
    if report.family == "pairs":
        found = flaw_of_pairs(report, X, y, kept)
        if found is not None:
            return SeparabilityCheck(not found, found, True)
    A, equality, example, column = conditions_of(report, X, y, kept)
    separated = report.separated_rows[example, column]
    reason = flaw_of_kind(report, separated, A.shape[1])
    if reason:
        return SeparabilityCheck(False, reason, exact)
    status = np.array([c.status for c in report.coefficients])
    w, q = direction_of(report, A.shape[1]), np.zeros(len(equality))
    if report.overlap_weights is not None:
        q = np.asarray(sp.csr_array(report.overlap_weights)[example, column]).ravel()
    claim = equality, separated, w, q, np.flatnonzero(status != _LEFT_OUT), status == "finite"
    flaw = "" if exact else flaw_in_floats(A, *claim)
    exact = exact or (bool(flaw) and np.prod(A.shape) <= _INTEGER_NUMBERS)
    if exact and np.prod(A.shape, dtype=float) * min(A.shape) > _FACTOR_PRODUCTS:
        return SeparabilityCheck(False, TOO_LARGE, exact)
    if exact:
        A = A.toarray() if sp.issparse(A) else A
        flaw = flaw_in_integers(A, *claim) or flaw_of_signs(A, separated, w, claim[4], status)
    return SeparabilityCheck(not flaw, flaw, exact)
