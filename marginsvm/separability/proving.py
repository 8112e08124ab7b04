"""The proof of a split of rows: exactly where that can be, else up to rounding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.certify.checker.coordinates import power_of_two
from marginsvm.certify.checker.face import QUICK, Face, face_of
from marginsvm.certify.checker.modular import are_exact
from marginsvm.certify.checker.positive import direction_is_positive, overlap_in_all_directions
from marginsvm.certify.checker.separation import (
    flaw_in_floats,
    flaw_of_columns,
    flaw_of_split,
    spanning_rows,
)
from marginsvm.separability.centring import of_largest_margin
from marginsvm.separability.design import Design
from marginsvm.separability.exactly import split_exactly
from marginsvm.separability.split import Split

_UP_TO_ROUNDING = "This holds up to the rounding of X; of its numbers as they are, {}."
PROVED_NUMBERS = 200_000  # numbers of a design that is proved without rounding
_BY_SIMPLEX = 2000  # numbers of a design that is split by the simplex method, if it has to be


def proved(design: Design, found: Split) -> tuple[Split, Face | None, bool, str]:
    """The same, as exactly as can be; what is 0 on the overlap; whether it is open, and why.

    With a face and a reason, columns are left out as sums of others up to rounding; all the rest
    holds exactly without these.
    """
    unproved, A, size = "it is not proved", design.A, np.prod(design.A.shape)
    if size <= PROVED_NUMBERS:
        A = A.toarray() if sp.issparse(A) else A
        exact, face, unproved = _checked(A, design, found)
        if unproved and A.size <= _BY_SIMPLEX and are_exact(A).all():
            other = split_exactly(A, design.equality)
            if other is not None:
                exact, face, unproved = _checked(A, design, other)
            if unproved:
                return found, None, True, f"no proof in float64 is known: {unproved}"
        if face is not None:
            return exact, face, False, _UP_TO_ROUNDING.format(unproved) if unproved else ""
    flaw = found.doubt or flaw_in_floats(design.A, *_claim(design, found))
    if flaw or size > PROVED_NUMBERS:
        return found, None, bool(flaw), flaw
    return found, None, False, _UP_TO_ROUNDING.format(unproved)


def _checked(A: Array, design: Design, found: Split) -> tuple[Split, Face | None, str]:
    """A split with what is exactly 0 on the overlap, and what is not proved of it.

    With a face, only columns are not proved to be combinations of others.
    """
    nothing = not (found.separated.any() or design.equality.any())
    if nothing and overlap_in_all_directions(A, found.weights):
        every = np.arange(A.shape[1])
        point = Face(np.zeros(0, int), every, [], A[:0])
        return replace(found, face=point.table, identified=every), point, ""
    some = found.identified
    B, rows = A[:, some], spanning_rows(design.equality, found.separated, found.weights)
    face = face_of(B[rows], QUICK)
    if face is None:
        return found, None, "it takes too long"
    found = _on_face(found, face)
    equality, separated, w, q, _, finite = _claim(design, found)
    flaw = flaw_of_split(B, equality, separated, w[some], q, finite[some], face, QUICK)
    if flaw:
        return found, None, flaw
    return found, face, flaw_of_columns(A, some, QUICK)


def _on_face(found: Split, face: Face) -> Split:
    """A split whose direction is exactly on a face, in the identified columns."""
    some = found.identified
    basis, direction = np.zeros((len(found.face), len(face.free))), np.zeros(len(found.face))
    if len(face.free):
        basis[some] = face.table
        direction[some] = face.table @ found.direction[some][face.free]
    return replace(found, face=basis, direction=direction, rays=None, is_spanned=True)


def centred(A: Any, found: Split, face: Face | None) -> Split:
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


def _claim(design: Design, found: Split) -> tuple[Array, Array, Array, Array, Array, Array]:
    return (
        design.equality,
        found.separated,
        found.direction,
        found.weights,
        found.identified,
        found.finite,
    )
