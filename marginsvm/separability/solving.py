"""From a design to a report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import chained
from marginsvm._typing import Array
from marginsvm.certify.certificate import at_most
from marginsvm.certify.checker.coordinates import power_of_two
from marginsvm.certify.checker.face import QUICK, Face, face_of
from marginsvm.certify.checker.krawczyk import independent_first
from marginsvm.certify.checker.modular import are_exact
from marginsvm.certify.checker.positive import (
    direction_is_positive,
    exact_weights_exist,
    overlap_in_all_directions,
)
from marginsvm.certify.checker.separation import flaw_in_floats, flaw_in_integers
from marginsvm.separability.centring import of_largest_margin
from marginsvm.separability.coefficients import FINITE, Coefficient, statuses
from marginsvm.separability.data import Question
from marginsvm.separability.design import Design, distinct
from marginsvm.separability.exactly import split_exactly
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
_DIRECT = 2**17  # numbers of a design up to which the exact solver is not asked first
# Weights below this part of the largest may be those that a proof of an overlap goes without.
_SURE = 1e-8
_BALANCED = 1e-11  # of weights that sum to 1, in columns up to 1: what rounding may leave
_SMALL = 200_000  # numbers of a design that is proved without rounding
_BY_SIMPLEX = 2000  # numbers of a design that is split by the simplex method, if it has to be
_KERNELS = "With kernels, only complete separation is decided."
_THIN = (
    "the classes are separated, or not, by a combination of columns that float64 hardly tells "
    "from 0"
)


def report_of(asked: Question) -> Separability:
    """The report of a regression."""
    design, estimator = None, None
    if asked.labels and asked.n_numbers() > _DIRECT:
        estimator = asked.fitted()
        if estimator.separable_ is False:
            weights = estimator.certificate_.weights
            design = asked.design(np.unique(weights.nonzero()[0]))  # X is not copied
            if _spans(design, weights):
                return _Reporter(asked, design, estimator).overlap()
    design = asked.design()
    if sp.issparse(design.A) and np.prod(design.A.shape) <= _WRITTEN_OUT:
        design = replace(design, A=design.A.toarray())
    reporter, sparse = _Reporter(asked, design, estimator), sp.issparse(design.A)
    if estimator is not None and estimator.separable_:
        w = _coefficients_of(estimator, asked.fit_intercept)
        return reporter.report(
            (sparse_split_of_separator if sparse else split_of_separator)(design.A, w)
        )
    return reporter.report(
        split_sparse(design.A, design.equality) if sparse else _split_distinct(design)
    )


def of_a_kernel(estimator: Any) -> Separability:
    """The report of a fit in the feature space of a kernel."""
    found, n = estimator.separable_, estimator.certificate_.weights.shape
    reason = "" if found else _KERNELS if found is False else _in_vain(estimator)
    return Separability(
        COMPLETE if found else UNDECIDED,
        found,
        np.full((n[0], 1), bool(found)),
        reason=reason,
        coef=estimator.dual_coef_ if found else None,
        intercept=estimator.intercept_ if found else None,
        weights=estimator.certificate_.weights if found is False else None,
        fit=partial(_same, estimator),
    )


def _same(estimator: Any) -> Any:
    return estimator


def _split_distinct(design: Design) -> Split:
    """The split of the rows of a dense design, of which equal ones are looked at once."""
    first, of = distinct(design.A, design.equality)
    found = split_many(design.A[first], design.equality[first])
    weights = np.zeros(len(of))
    weights[first] = found.weights
    return replace(found, separated=found.separated[of], weights=weights)


def _in_vain(estimator: Any) -> str:
    return (
        "neither a separator nor a proof that there is none was found in "
        f"{estimator.n_iter_} rounds. No predictor has a margin above "
        f"{at_most(estimator.margin_bound_, 3)}; the radius of the data is "
        f"{estimator.certificate_.radius:.3g}."
    )


@dataclass(frozen=True)
class _Reporter:
    """What is known of a regression before its rows are split.

    Attributes
    ----------
    asked : Question
    design : Design
    estimator : MaxMarginClassifier or None
        Fitted, if the exact solver was asked.
    """

    asked: Question
    design: Design
    estimator: Any

    def overlap(self) -> Separability:
        """The report of classes that overlap by weights that span the space."""
        weights = self.estimator.certificate_.weights
        finite = tuple(Coefficient(name, FINITE) for name in self.design.names)
        return self._report(
            OVERLAP,
            False,
            np.zeros(weights.shape, bool),
            coefficients=finite,
            weights=weights,
            overlap_weights=weights,
        )

    def report(self, found: Split) -> Separability:
        """Complete a report by what the split of the rows says, as far as rounding allows."""
        asked, design = self.asked, self.design
        shape = len(asked.y), design.n_columns
        found, face, doubtful, reason = self._proved(found)
        kind = _kind_of(found.separated)
        separable = self.estimator.separable_ if self.estimator is not None else None
        if (doubtful and separable) or (separable is False and kind == COMPLETE):
            doubtful, reason = True, _THIN
        if separable is None and not doubtful:
            separable = self._separable(found, kind, proved=face is not None)
        written = design.A.toarray() if face is not None and sp.issparse(design.A) else design.A
        each, unknown = statuses(written, found, face)
        if unknown and not reason:
            names = ", ".join(design.names[j] for j in unknown)
            reason = f"The signs of these are not decided: {names}."
        if not doubtful or found.rays is None:
            found = _centred(written, found, face)
        table = np.zeros(shape, bool)
        table[design.example, design.column] = found.separated
        direction = _direction(found.direction, shape[1], asked.fit_intercept)
        q = None if kind == COMPLETE else _table_of(found.weights, design, shape)
        weights = q
        if self.estimator is not None:
            weights = self.estimator.certificate_.weights
        return self._report(
            UNDECIDED if doubtful else kind,
            separable,
            table,
            direction=direction,
            coefficients=tuple(map(Coefficient, design.names, each)),
            reason=reason,
            weights=weights if separable is False else None,
            overlap_weights=q,
        )

    def _report(self, kind: str, separable: bool | None, rows: Array, **parts: Any) -> Separability:
        direction, asked = parts.get("direction"), self.asked
        fit = asked.fitted if self.estimator is None else partial(_same, self.estimator)
        return Separability(
            kind,
            separable,
            rows,
            family=asked.family,
            fit_intercept=asked.fit_intercept,
            used=asked.used(),
            coef=direction.coef if separable and direction else None,
            intercept=direction.intercept if separable and direction else None,
            fit=fit if asked.labels else None,
            **parts,
        )

    def _proved(self, found: Split) -> tuple[Split, Face | None, bool, str]:
        """The same, as exactly as can be; what is 0 on the overlap; whether it is open, and why."""
        design, unproved = self.design, "it is not proved"
        A, size = design.A, np.prod(design.A.shape)
        if size <= _SMALL:
            A = A.toarray() if sp.issparse(A) else A
            exact, face, unproved = self._checked(A, found)
            if unproved and A.size <= _BY_SIMPLEX and are_exact(A).all():
                other = split_exactly(A, design.equality)
                if other is not None:
                    exact, face, unproved = self._checked(A, other)
                if unproved:
                    return found, None, True, f"no proof in float64 is known: {unproved}"
            if not unproved:
                return exact, face, False, ""
        flaw = found.doubt or flaw_in_floats(design.A, *_claim(design, found))
        if flaw or size > _SMALL:
            return found, None, bool(flaw), flaw
        reason = f"This holds up to the rounding of X; of its numbers as they are, {unproved}."
        return found, None, False, reason

    def _checked(self, A: Array, found: Split) -> tuple[Split, Face | None, str]:
        """A split with what is exactly 0 on the overlap, and what is not proved of it."""
        nothing = not (found.separated.any() or self.design.equality.any())
        if nothing and overlap_in_all_directions(A, found.weights):
            every = np.arange(A.shape[1])
            point = Face(np.zeros(0, int), every, [], A[:0])
            return replace(found, face=point.table, identified=every), point, ""
        found, face = _on_exact_face(A, found)
        if face is None:
            return found, face, "it takes too long"
        return found, face, flaw_in_integers(A, *_claim(self.design, found), QUICK)

    def _separable(self, found: Split, kind: str, proved: bool) -> bool | None:
        """Whether all rows are separated; of labels, with a proof for the numbers of X."""
        if kind == COMPLETE:
            return _is_positive(self.design.A, found.direction) or (True if proved else None)
        design = self.design
        if proved or not self.asked.labels:
            return False
        return False if exact_weights_exist(design.A, design.equality, found.weights) else None


def _kind_of(separated: Array) -> str:
    return OVERLAP if not separated.any() else COMPLETE if separated.all() else QUASI


def _claim(design: Design, found: Split) -> tuple[Array, Array, Array, Array, Array, Array]:
    return (
        design.equality,
        found.separated,
        found.direction,
        found.weights,
        found.identified,
        found.finite,
    )


def _on_exact_face(A: Array, found: Split) -> tuple[Split, Face | None]:
    """A split whose direction is on the face of the overlapping rows, and which face that is."""
    A = A[:, found.identified]
    face = face_of(A[~found.separated], QUICK)
    if face is None:
        return found, None
    basis, direction = np.zeros((len(found.face), len(face.free))), np.zeros(len(found.face))
    basis[found.identified] = face.table
    direction[found.identified] = face.table @ found.direction[found.identified][face.free]
    if not len(face.free):
        basis = np.zeros((len(found.face), 0))
    return replace(found, face=basis, direction=direction, rays=None), face


def _centred(A: Any, found: Split, face: Face | None) -> Split:
    """The same with the direction of the largest margin, in columns of unit length.

    If the face is known exactly, that must hold exactly of the new direction, too.
    """
    if found.rays is not None or not found.separated.any() or not found.face.any():
        return found
    units = power_of_two(A.T)
    basis = np.linalg.qr(found.face * units[:, None])[0]
    T = A[found.separated] @ (basis / units[:, None])
    start = basis.T @ (found.direction * units)
    if not np.all(T @ start > 0.0):
        return found
    w = basis @ of_largest_margin(T, start) / units
    w[found.finite] = 0.0
    if face is not None:
        some = found.identified
        w[some] = face.table @ w[some][face.free]
        if not direction_is_positive(A[found.separated][:, some], face, w[some]):
            return found
    return replace(found, direction=w)


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
