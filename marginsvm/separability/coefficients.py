"""Which coefficients an estimate has at infinity, and with which sign.

The directions of the cone that are 0 on all overlapping rows make up a face; one of them is
strictly positive on all separated rows. A coefficient is finite exactly if all directions of the
face are 0 in it. Otherwise its sign is the same in the whole cone exactly if its unit vector, or
the negative of it, is on the face a nonnegative combination of separated rows (Farkas' lemma).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.checker.face import Face
from marginsvm.certify.checker.signs import Cone, Signs
from marginsvm.separability.split import Split

FINITE, PLUS, MINUS, EITHER, UNIDENTIFIED = "finite", "+inf", "-inf", "inf", "not identified"

_SAME = 1e-9  # of unit lengths: what is no longer than this is rounding of 0
_MOST_NUMBERS = 200_000  # of rows that are written in coordinates of their own, a second time
_NAMED = 20  # coefficients that a sentence names
_MOST_SIGNS = 300  # signs of so many coefficients are determined one by one: some seconds


class Coefficient(NamedTuple):
    """A coefficient of the estimate.

    Attributes
    ----------
    name : str
    status : {"finite", "+inf", "-inf", "inf", "not identified"}
        ``inf``: infinite, and the data does not determine the sign. ``not identified``: its
        column is a combination of those before it.
    """

    name: str
    status: str


def statuses(A: Array, found: Split, face: Face | None) -> tuple[list[str], list[int]]:
    """The status of each coefficient, and those whose sign is not decided.

    Parameters
    ----------
    A : ndarray or csr_array of shape (n_rows, n_columns)
        The rows of a design.
    found : Split
    face : Face or None
        What is exactly 0 on the overlapping rows, in the identified columns; None: signs hold up
        to rounding.
    """
    out = [UNIDENTIFIED] * len(found.face)
    for j in found.identified:
        out[j] = FINITE
    infinite = found.identified[~found.finite[found.identified]]
    if not len(infinite) or not found.separated.any():
        return out, []
    some, w = A[:, found.identified], found.direction[found.identified]
    places = np.searchsorted(found.identified, infinite)
    if not found.is_spanned or len(infinite) > _MOST_SIGNS:
        signs = _by_single_rows(A, found, infinite)
    else:
        if face is not None or (found.rays is None and some.size <= _MOST_NUMBERS):
            cone = Cone.of(some, found.separated, w)
        elif found.rays is not None:
            cone = Cone.of_rays(found.rays, w, found.face[found.identified])
        else:
            cone = Cone.spanned(some, found.separated, w, found.face[found.identified])
        signs = Signs(cone, some, found.separated, face).of(places)
    for j, sign in zip(infinite, signs, strict=True):
        out[j] = {1: PLUS, -1: MINUS}.get(sign or 0, EITHER)
    return out, [int(j) for j, sign in zip(infinite, signs, strict=True) if sign is None]


def open_signs(names: list[str]) -> str:
    """What is said of infinite coefficients whose signs are not decided."""
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = ", ".join(names[:_NAMED]) + more
    return f"The signs of these are not decided: {named}." if names else ""


def _by_single_rows(A: Array, found: Split, infinite: Array) -> list[int | None]:
    """1 or -1 where a single row determines the sign; None: none does."""
    T = found.rays if found.rays is not None else A[found.separated] @ found.face
    lengths = np.sqrt(np.einsum("ij,ij->i", T, T))
    T = T[lengths > 0.0] / lengths[lengths > 0.0][:, None]
    out = list[int | None]()
    for line in found.face[infinite]:
        along = T @ (line / np.sqrt(line @ line))
        sign = int(along.max() >= 1.0 - _SAME) - int(along.min() <= _SAME - 1.0)
        out.append(sign or None)
    return out
