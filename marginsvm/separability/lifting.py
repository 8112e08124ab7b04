"""What a split of pairs says of the columns that their exact differences are written out in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.checker.differences import Differences
from marginsvm.certify.checker.face import Face
from marginsvm.certify.checker.positive import sign_of_entry
from marginsvm.certify.checker.signs import Cone, Signs
from marginsvm.certify.exactly.elimination import Integers
from marginsvm.separability.coefficients import EITHER, FINITE, MINUS, PLUS, UNIDENTIFIED
from marginsvm.separability.split import Split

_MOST_SIGNS = 300  # signs of so many coefficients are determined one by one: some seconds


def lifted(rows: Differences, found: Split) -> Split:
    """A split of differences as one of the rows that are written out."""
    d, k = rows.A.shape[1], len(rows.rounded)
    if not k:
        return found
    both = np.concatenate([rows.first, rows.own])
    of = np.concatenate([np.arange(d), np.arange(d)])
    direction, face = np.zeros(d + k), np.zeros((d + k, found.face.shape[1]))
    direction[both], face[both] = found.direction[of], found.face[of]
    identified = np.zeros(d + k, bool)
    identified[rows.own[found.identified]] = True
    identified[rows.first[rows.rounded]] = True
    return Split(
        np.append(found.separated, np.zeros(k, bool)),
        direction,
        rows.weights(found.weights),
        np.flatnonzero(identified),
        face,
        found.doubt,
    )


def along_one_column(rows: Differences, equality: Array, found: Split) -> tuple[Split, Face] | None:
    """The proof of a split by one column, that is 0 on all pairs that overlap in all others.

    It needs no numbers but the rounded ones.
    """
    infinite, d = np.flatnonzero(~found.finite), rows.A.shape[1]
    tied = ~found.separated
    if len(infinite) != 1 or len(found.identified) < d or rows.A[tied, infinite[0]].any():
        return None
    others = np.setdiff1d(np.arange(d), infinite)
    if len(others) and not rows.overlap(equality, found.weights, tied, others):
        return None
    w = np.zeros(d)
    w[infinite] = np.sign(found.direction[infinite])
    unit = [int(j == infinite[0]) for j in range(d)]
    return replace(found, direction=w), Face(infinite, others, [unit], rows.A[:0])


def one_ray(found: Split, face: Face, A: Array) -> Split:
    """The same with simple numbers, if there is only one direction."""
    if len(face.vectors) != 1:
        return found
    w = np.zeros(A.shape[1])
    w[found.identified] = face.table[:, 0]
    turn = np.sign(found.direction @ w)
    return replace(found, direction=turn * w) if turn else found


def signs_of(
    A: Array, rows: Differences, found: Split, face: Face
) -> tuple[list[str], list[int], list[Integers]]:
    """The status of each coefficient, those not decided, and directions that show either sign."""
    each = [UNIDENTIFIED] * len(rows.own)
    place = {int(j): k for k, j in enumerate(found.identified)}
    moved = face.moved() if face.vectors else np.zeros(len(found.identified), bool)
    infinite = []
    for j, own in enumerate(rows.own.tolist()):
        if own in place:
            each[j] = FINITE
            if moved[place[own]]:
                infinite.append(j)
    if not infinite or not found.separated.any():
        return each, [], []
    if len(infinite) > _MOST_SIGNS:
        return [EITHER if j in infinite else s for j, s in enumerate(each)], infinite, []
    if len(face.vectors) == 1:
        turn = sign_of_entry(face, found.direction[found.identified], int(face.free[0]))
        for j in infinite:
            each[j] = PLUS if turn * face.vectors[0][place[int(rows.own[j])]] > 0 else MINUS
        return each, [], []
    some = A[:, found.identified]
    cone = Cone.of(some, found.separated, found.direction[found.identified])
    signs = Signs(cone, some, found.separated, face)
    said = signs.of(np.array([place[int(rows.own[j])] for j in infinite]))
    for j, sign in zip(infinite, said, strict=True):
        each[j] = {1: PLUS, -1: MINUS}.get(sign or 0, EITHER)
    unknown = [j for j, sign in zip(infinite, said, strict=True) if sign is None]
    return each, unknown, signs.witnesses


def proof_of_nothing(found: Split) -> tuple[Split, Face, bool, str]:
    """The proof of a split of no pairs."""
    nothing = np.zeros(0, int)
    return found, Face(nothing, nothing, [], np.zeros((0, 0))), False, ""
