"""From a question to a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import at_most
from marginsvm._typing import Array
from marginsvm.certify.exactly.krawczyk import independent_first
from marginsvm.separability.answer import COMPLETE, OVERLAP, UNDECIDED, Answer
from marginsvm.separability.answering import answer_of
from marginsvm.separability.coefficients import FINITE, Coefficient
from marginsvm.separability.data import Question
from marginsvm.separability.design import Design, distinct
from marginsvm.separability.faces import split_of_separator
from marginsvm.separability.report import Separability
from marginsvm.separability.sparse_faces import sparse_split_of_separator
from marginsvm.separability.split import Split
from marginsvm.separability.split_of_samples import split_many, split_many_sparse

_NULL_SPACE_NUMBERS = 2**22  # numbers of a sparse design that is written out, in 32 MB
_FACTORED = 2**29  # products of its factorisation, half a second; else it stays sparse
_DIRECT = 2**17  # numbers of a design up to which the exact solver is not asked first
# Weights below this part of the largest may be those that a proof of an overlap goes without.
_SURE = 1e-8
_BALANCED = 1e-11  # of weights that sum to 1, in columns up to 1: what rounding may leave
_ONLY_COMPLETE = "With kernels, only complete separation is decided."


def report_of(asked: Question) -> Separability:
    """The report of a regression."""
    answer, estimator = None, None
    if asked.labels and asked.n_numbers() > _DIRECT:
        estimator = asked.estimator
        if estimator.separable_ is False:
            answer = _overlap(asked, estimator.certificate_.weights)
    answer = answer or _answer(asked, estimator)
    fit = partial(getattr, asked, "estimator") if estimator is None else partial(_same, estimator)
    return Separability(
        **vars(answer),
        family=asked.family.name,
        fit_intercept=asked.fit_intercept,
        used=asked.used(),
        coef=partial(_of_separator, answer, "coef"),
        intercept=partial(_of_separator, answer, "intercept"),
        weights=partial(_weights, answer, fit) if asked.labels else _weights(answer),
        more=asked.more,
        fit=fit if asked.labels else None,
    )


def _weights(answer: Answer, fit: Callable[[], Any] | None = None) -> sp.csr_array | None:
    """The proof that not all rows are separated, on few of them if the exact solver has one."""
    if answer.separable is not False or fit is None or fit().separable_ is not False:
        return answer.overlap_weights if answer.separable is False else None
    return sp.csr_array(fit().certificate_.weights)


def _of_separator(answer: Answer, part: str) -> Array | None:
    """A part of the direction, if that separates all rows."""
    return getattr(answer.direction, part) if answer.separable and answer.direction else None


def _answer(asked: Question, estimator: Any) -> Answer:
    """The answer of a family that has its own, or that of its rows."""
    family, data = asked.family, asked.data()
    answer = family.answer(data)
    if answer is not None:
        return answer
    design = family.design(data)
    size = np.prod(design.A.shape, dtype=float)
    few = size <= _NULL_SPACE_NUMBERS and size * min(design.A.shape) <= _FACTORED
    if sp.issparse(design.A) and few:
        design = replace(design, A=design.A.toarray())
    return answer_of(
        family,
        data,
        design,
        _split(design, asked, estimator),
        None if estimator is None else estimator.separable_,
    )


def _split(design: Design, asked: Question, estimator: Any) -> Split:
    sparse = sp.issparse(design.A)
    if estimator is not None and estimator.separable_:
        w = _coefficients_of(estimator, asked.fit_intercept)
        return (sparse_split_of_separator if sparse else split_of_separator)(design.A, w)
    return split_many_sparse(design.A, design.equality) if sparse else split_distinct(design)


def _overlap(asked: Question, weights: sp.csr_array) -> Answer | None:
    """The answer of classes that overlap, if rows with weights span the space."""
    design = asked.design(np.unique(weights.nonzero()[0]))  # X is not copied
    if not _spans(design, weights):
        return None
    finite = tuple(Coefficient(name, FINITE) for name in design.names)
    return Answer(OVERLAP, False, np.zeros(weights.shape, bool), None, finite, weights)


def of_a_kernel(estimator: Any) -> Separability:
    """The report of a fit in the feature space of a kernel."""
    found, n = estimator.separable_, estimator.certificate_.weights.shape
    reason = "" if found else _ONLY_COMPLETE if found is False else _in_vain(estimator)
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


def split_distinct(design: Design) -> Split:
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


def _coefficients_of(estimator: Any, fit_intercept: bool) -> Array:
    """The predictor in the order of a design's coefficients."""
    table = estimator.coef_
    if fit_intercept:
        table = np.column_stack([estimator.intercept_, table])
    return np.asarray((table[1:] - table[0] if len(table) > 1 else table).ravel())
