"""From a design to a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import chained
from marginsvm._typing import Array
from marginsvm.certify.certificate import at_most
from marginsvm.certify.checker.krawczyk import independent_first
from marginsvm.certify.checker.separation import (
    exact_weights_exist,
    flaw_in_floats,
    flaw_in_integers,
)
from marginsvm.separability.centring import of_largest_margin
from marginsvm.separability.coefficients import FINITE, Coefficient, statuses
from marginsvm.separability.data import Question, numbers
from marginsvm.separability.design import Design, distinct
from marginsvm.separability.faces import split_of_separator
from marginsvm.separability.report import (
    COMPLETE,
    OVERLAP,
    QUASI,
    UNDECIDED,
    Direction,
    Separability,
)
from marginsvm.separability.sampling import split_many
from marginsvm.separability.sparse_faces import sparse_split_of_separator, split_sparse
from marginsvm.separability.split import Split

_WRITTEN_OUT = 2**22  # numbers of a sparse design that is written out, in 32 MB
# Weights below this part of the largest may be those that a proof of an overlap goes without.
_SURE = 1e-8
_BALANCED = 1e-11  # of weights that sum to 1, in columns up to 1: what rounding may leave
_SMALL = 200_000  # numbers of a design of which doubts are settled in integers: about a second
_TINY = 20_000  # the same of those that are proved in integers in any case: some milliseconds
_KERNELS = "With kernels, only complete separation is decided."
_THIN = (
    "the classes are separated, or not, by a combination of columns that float64 hardly tells "
    "from 0"
)


def report_of(asked: Question, estimator: Any) -> Separability:
    """The report of a regression; ``estimator`` is fitted to labels, and None for counts."""
    report = Separability(UNDECIDED, None, np.zeros((len(asked.y), 1), bool))
    if estimator is not None:
        shape = estimator.certificate_.weights.shape
        report = _of_labels(estimator, np.zeros(shape, bool))
    report = replace(
        report,
        family=asked.family,
        fit_intercept=asked.fit_intercept,
        used=asked.used(numbers(asked.X)),
    )
    if report.weights is not None:
        some = asked.design(np.unique(report.weights.nonzero()[0]))  # X is not copied
        if _spans(some, report.weights):
            finite = tuple(Coefficient(name, FINITE) for name in some.names)
            return replace(
                report, kind=OVERLAP, coefficients=finite, overlap_weights=report.weights
            )
    design = asked.design()
    if sp.issparse(design.A) and np.prod(design.A.shape) <= _WRITTEN_OUT:
        design = replace(design, A=design.A.toarray())
    sparse = sp.issparse(design.A)
    if report.separable:
        w = _coefficients_of(estimator, asked.fit_intercept)
        found = (sparse_split_of_separator if sparse else split_of_separator)(design.A, w)
    else:
        found = split_sparse(design.A, design.equality) if sparse else _split_distinct(design)
        found = _centred(design.A, found)
    return _with_split(report, design, found)


def _split_distinct(design: Design) -> Split:
    """The split of the rows of a dense design, of which equal ones are looked at once."""
    first, of = distinct(design.A, design.equality)
    found = split_many(design.A[first], design.equality[first])
    weights = np.zeros(len(of))
    weights[first] = found.weights
    return replace(found, separated=found.separated[of], weights=weights)


def of_a_kernel(estimator: Any) -> Separability:
    """The report of a fit in the feature space of a kernel."""
    found, n = estimator.separable_, estimator.certificate_.weights.shape
    reason = "" if found else _KERNELS if found is False else _in_vain(estimator)
    return replace(
        _of_labels(estimator, np.full((n[0], 1), bool(found))),
        kind=COMPLETE if found else UNDECIDED,
        coef=estimator.dual_coef_ if found else None,
        reason=reason,
    )


def _in_vain(estimator: Any) -> str:
    return (
        "neither a separator nor a proof that there is none was found in "
        f"{estimator.n_iter_} rounds. No predictor has a margin above "
        f"{at_most(estimator.margin_bound_, 3)}; the radius of the data is "
        f"{estimator.certificate_.radius:.3g}."
    )


def _centred(A: Any, found: Split) -> Split:
    """The same with the direction of the largest margin, in columns of unit length."""
    if not found.whole or not found.separated.any():
        return found
    T = A[found.separated] @ (found.face / found.lengths[:, None])
    z = of_largest_margin(T, found.face.T @ (found.direction * found.lengths))
    return replace(found, direction=(found.face @ z) / found.lengths)


def _of_labels(estimator: Any, separated_rows: Array) -> Separability:
    found = estimator.separable_
    return Separability(
        UNDECIDED,
        found,
        separated_rows,
        margin=estimator.margin_,
        margin_bound=estimator.margin_bound_,
        coef=getattr(estimator, "coef_", None) if found else None,
        intercept=estimator.intercept_ if found else None,
        weights=estimator.certificate_.weights if found is False else None,
        estimator=estimator,
    )


def _spans(design: Design, weights: sp.csr_array) -> bool:
    """Whether the rows with weight span the space: then all rows overlap with them."""
    q = sp.csr_array(weights)
    used = np.flatnonzero(q[design.example, design.column] > _SURE * q.max())
    A = design.A[used]
    n_columns = design.A.shape[1]
    if len(used) < n_columns:
        return False
    A = A.toarray() if sp.issparse(A) else A
    top = np.abs(A).max(axis=0)
    if not top.min() > 0:
        return False
    A, w = A / top, q[design.example[used], design.column[used]]
    balanced = np.abs(A.T @ w).max() <= _BALANCED * w.sum()
    return bool(balanced and independent_first(A.T)[1] == n_columns)


def _with_split(report: Separability, design: Design, found: Split) -> Separability:
    """Complete a report by what the split of the rows says, as far as rounding allows."""
    separated, shape = found.separated, report.separated_rows.shape
    kind = OVERLAP if not separated.any() else COMPLETE if separated.all() else QUASI
    doubtful, reason = _doubt(design, found)
    if (doubtful and report.separable) or (report.separable is False and kind == COMPLETE):
        doubtful, reason = True, _THIN
    separable = report.separable
    if separable is None and not doubtful:
        separable = _decided(design, found, kind, of_labels=report.estimator is not None)
    table = np.zeros(shape, bool)
    table[design.example, design.column] = separated
    direction = _direction(found.direction, shape[1], report.fit_intercept)
    q = None if kind == COMPLETE else _table_of(found.weights, design, shape)
    out = replace(
        report,
        kind=UNDECIDED if doubtful else kind,
        reason=reason,
        separable=separable,
        separated_rows=table,
        coefficients=_named(design, found),
        direction=direction,
        overlap_weights=q,
    )
    if separable and report.coef is None and direction is not None:
        out = replace(out, coef=direction.coef, intercept=direction.intercept)
    return replace(out, weights=q) if separable is False and report.weights is None else out


def _doubt(design: Design, found: Split) -> tuple[bool, str]:
    """Whether rounding leaves a split open, and what is not proved of it."""
    A, size = design.A, np.prod(design.A.shape)
    each = np.abs(found.face).max(axis=1, initial=0.0) == 0.0
    claim = design.equality, found.separated, found.direction, found.weights, found.identified, each
    flaw = found.doubt or flaw_in_floats(A, *claim)
    if size > (_SMALL if flaw else _TINY):
        return bool(flaw), flaw
    unproved = flaw_in_integers(A.toarray() if sp.issparse(A) else A, *claim)
    if not unproved or flaw:
        return bool(unproved), flaw if unproved else ""
    return False, f"This holds up to the rounding of X; of its numbers as they are, {unproved}."


def _decided(design: Design, found: Split, kind: str, of_labels: bool) -> bool | None:
    """Whether all rows are separated; of labels, with a proof for the numbers of X."""
    if kind == COMPLETE:
        return _is_positive(design.A, found.direction) or None
    proved = not of_labels or exact_weights_exist(design.A, design.equality, found.weights)
    return False if proved else None


def _named(design: Design, found: Split) -> tuple[Coefficient, ...]:
    T = design.A[found.separated] @ (found.face / found.lengths[:, None])
    direction = found.direction * found.lengths
    each = statuses(T, found.face, direction, found.identified, found.whole)
    return tuple(Coefficient(*pair) for pair in zip(design.names, each, strict=True))


def _table_of(q: Array, design: Design, shape: tuple[int, ...]) -> sp.csr_array:
    used = np.flatnonzero(q)
    at = design.example[used], design.column[used]
    return sp.csr_array((q[used] / np.abs(q).sum(), at), shape=shape)


def _direction(w: Array, n_columns: int, fit_intercept: bool) -> Direction | None:
    """Coefficients and intercepts; the first of many classes is the reference."""
    if not w.any():
        return None
    table: Array = w.reshape(max(n_columns - 1, 1), -1)
    if n_columns > 1:
        table = np.concatenate([np.zeros((1, table.shape[1])), table])
    intercept = table[:, 0] if fit_intercept else np.zeros(len(table))
    return Direction(table[:, int(fit_intercept) :], intercept)


def _coefficients_of(estimator: Any, fit_intercept: bool) -> Array:
    """The predictor in the order of a design's coefficients."""
    table = estimator.coef_
    if fit_intercept:
        table = np.column_stack([estimator.intercept_, table])
    return np.asarray((table[1:] - table[0] if len(table) > 1 else table).ravel())


def _is_positive(A: Array, w: Array) -> bool:
    """Whether ``A w > 0``, with rounding allowed for."""
    return bool(np.all(A @ w > chained(A.shape[1]) * (abs(A) @ np.abs(w))))
