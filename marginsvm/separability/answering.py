"""From a split of rows to an answer: kind, coefficients with their signs, and proofs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import chained
from marginsvm._typing import Array
from marginsvm.certify.checker.positive import exact_weights_exist
from marginsvm.problem.threads import single_threaded_blas
from marginsvm.separability.answer import COMPLETE, UNDECIDED, Answer, Direction, kind_of
from marginsvm.separability.coefficients import Coefficient, open_signs, statuses
from marginsvm.separability.design import Design
from marginsvm.separability.family import Data, Family
from marginsvm.separability.proving import PROVED_NUMBERS, centred, proved
from marginsvm.separability.split import Split

_THIN_COMBINATION = (
    "the classes are separated, or not, by a combination of columns that float64 hardly tells "
    "from 0"
)


def answer_of(
    family: Family, data: Data, design: Design, found: Split, separable: bool | None = None
) -> Answer:
    """Complete what a split of the rows says, as far as rounding allows.

    Parameters
    ----------
    family : Family
    data : Data
    design : Design
        All rows, or a working set of them that decides.
    found : Split
    separable : bool or None
        Whether all rows are separated, if that is proved already.
    """
    found, face, doubtful, reason = proved(design, found)
    kind = kind_of(found.separated)
    if (doubtful and separable) or (separable is False and kind == COMPLETE):
        doubtful, reason = True, _THIN_COMBINATION
    if separable is None and not doubtful:
        known = face is not None and not reason
        separable = _separable(design, found, kind, known)
    written = design.A.toarray() if face is not None and sp.issparse(design.A) else design.A

    @cache
    @single_threaded_blas()
    def signs() -> tuple[tuple[Coefficient, ...], str]:
        each, unknown = statuses(written, found, face)
        left = open_signs([design.names[j] for j in unknown])
        return tuple(map(Coefficient, design.names, each)), reason or left

    @single_threaded_blas()
    def direction() -> Direction | None:
        central = doubtful and found.rays is not None
        w = (found if central else centred(written, found, face)).direction
        return family.direction(w, data, design) if w.any() else None

    # Until it is read, the report holds A.
    later = found.separated.any() and design.A.size <= PROVED_NUMBERS
    return Answer(
        UNDECIDED if doubtful else kind,
        separable,
        family.separated_rows(design, found.separated, data.n_examples),
        direction if later else direction(),
        (lambda: signs()[0]) if later else signs()[0],
        None if kind == COMPLETE else _table_of(found.weights, design, data.n_examples),
        (lambda: signs()[1]) if later else signs()[1],
    )


def _separable(design: Design, found: Split, kind: str, known: bool) -> bool | None:
    """Whether all rows are separated, with a proof for the numbers of X; equalities never are."""
    if kind == COMPLETE:
        return _is_positive(design.A, found.direction) or (True if known else None)
    if known or design.equality.any():
        return False
    return False if exact_weights_exist(design.A, design.equality, found.weights) else None


def _is_positive(A: Any, w: Array) -> bool:
    """Whether ``A w > 0``, with rounding allowed for."""
    return bool(np.all(A @ w > chained(A.shape[1]) * (abs(A) @ np.abs(w))))


def _table_of(q: Array, design: Design, n_examples: int) -> sp.csr_array:
    used = np.flatnonzero(q)
    at = design.example[used], design.column[used]
    return sp.csr_array((q[used] / np.abs(q).sum(), at), shape=(n_examples, design.n_columns))
