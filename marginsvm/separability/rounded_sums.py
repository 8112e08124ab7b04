"""Columns that are combinations of others up to the rounding of their numbers.

Subjects are compared by differences, which are exact. Numbers such as 0.1 are not: of columns that
are meant to be sums of others, the differences miss the sums by much more than their own rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.certify.checker.coordinates import identified_columns
from marginsvm.certify.checker.modular import are_exact
from marginsvm.separability.answer import Answer
from marginsvm.separability.coefficients import UNIDENTIFIED, Coefficient
from marginsvm.separability.design import with_intercept
from marginsvm.separability.family import Data

_NEARLY = 1e-7  # least singular value of columns of unit length that are far from dependent
_SUMMED_NUMBERS = 2**23  # numbers of X of which sums of columns are looked for, in 64 MB
_SUMS_UP_TO_ROUNDING = (
    "This holds up to the rounding of X; of its numbers as they are, some columns that are not "
    "identified are no combinations of others."
)


def nearly_dependent(A: Array) -> bool:
    """Whether columns may be combinations of others up to rounding."""
    length = np.sqrt(np.einsum("ij,ij->j", A, A))
    A, length = A[:, length > 0.0], length[length > 0.0]
    if len(A) < A.shape[1]:
        return True
    return bool(np.linalg.svd(A / length, compute_uv=False).min(initial=1.0) < _NEARLY)


def not_sums(X: Any) -> Array:
    """Columns that are no combinations of those before them, and of 1, up to their own rounding.

    Differences of numbers that are rounded are rounded much more. Exact numbers are what they are.
    """
    every = np.arange(X.shape[1])
    if X.shape[0] * X.shape[1] > _SUMMED_NUMBERS:
        return every
    X = X.toarray() if sp.issparse(X) else X
    if are_exact(X).all():
        return every
    found = identified_columns(with_intercept(X)) - 1
    constant = (X.max(axis=0) == X.min(axis=0)) | are_exact(X)
    return np.union1d(found[found >= 0], every[constant])


def with_sums(answer: Answer, data: Data, kept: Array) -> Answer:
    """The same, with the columns that are combinations of others up to rounding."""
    status = dict(zip(kept.tolist(), answer.coefficients, strict=True))
    each = tuple(status.get(j, Coefficient(n, UNIDENTIFIED)) for j, n in enumerate(data.names))
    direction = answer.direction
    if direction is not None:
        coef = np.zeros((1, len(each)))
        coef[:, kept] = direction.coef
        direction = direction._replace(coef=coef)
    return replace(
        answer,
        separable=answer.separable or None,  # what overlaps without them may not with them
        coefficients=each,
        direction=direction,
        reason=answer.reason or _SUMS_UP_TO_ROUNDING,
    )
