"""Which coefficients an estimate has at infinity, and with which sign.

The directions of the cone that are 0 on all overlapping rows make up a face; one of them is
strictly positive on all separated rows. A coefficient is finite exactly if all directions of the
face are 0 in it. Otherwise its sign is the same in the whole cone exactly if its unit vector, or
the negative of it, is on the face a nonnegative combination of separated rows (Farkas' lemma).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from marginsvm._typing import Array

FINITE, PLUS, MINUS, EITHER, UNIDENTIFIED = "finite", "+inf", "-inf", "inf", "not identified"

_SAME = 1e-9  # of unit lengths: what is no longer than this is rounding of 0
_CLEAR = 1e-6  # a coefficient of a unit direction with a sign that is not chance
_MOST_SIGNS = 300  # signs of so many coefficients are determined one by one: some seconds
_ADDED = 2  # rows that join a working set in a round, times the dimension of the face
_MAX_ROUNDS = 50


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


def statuses(T: Array, face: Array, direction: Array, identified: Array, whole: bool) -> list[str]:
    """The status of each coefficient.

    Parameters
    ----------
    T : ndarray of shape (n_separated, k)
        Separated rows, in coordinates of the face.
    face : ndarray of shape (n_coefficients, k)
        Basis of the face, orthonormal where columns have unit length; lines of zeros belong to
        finite coefficients.
    direction : ndarray of shape (n_coefficients,)
        The direction that separates, in the same units.
    identified : ndarray of int
        Coefficients that are identified.
    whole : bool
        Whether the basis spans the whole face. If not, and with very many infinite coefficients,
        only those signs are determined that a single separated row determines.
    """
    out = [UNIDENTIFIED] * len(face)
    for j in identified:
        out[j] = FINITE
    infinite = identified[np.abs(face[identified]).max(axis=1, initial=0.0) > 0.0]
    if not len(infinite) or not len(T):
        return out
    lengths = np.sqrt(np.einsum("ij,ij->i", T, T))
    T = T[lengths > 0.0] / lengths[lengths > 0.0][:, None]
    z = face.T @ direction
    z /= np.sqrt(z @ z)
    slack = T @ z
    whole = whole and len(infinite) <= _MOST_SIGNS
    for j in infinite:
        unit = face[j] / np.sqrt(face[j] @ face[j])
        value = float(unit @ z)
        signs = [np.sign(value)] if abs(value) > _CLEAR else [1.0, -1.0]
        fixed = [s for s in signs if _is_fixed(T, s * unit, slack, s * value, whole)]
        out[j] = (PLUS if fixed[0] > 0.0 else MINUS) if fixed else EITHER
    return out


def _is_fixed(T: Array, unit: Array, slack: Array, value: float, whole: bool) -> bool:
    """Whether ``unit z >= 0`` for all z with ``T z >= 0``; at one, it is ``value``."""
    along = T @ unit
    if along.max() >= 1.0 - _SAME:  # one row is enough
        return True
    shrinking = along > 0.0
    ratio = slack[shrinking] / along[shrinking]
    free = ratio.min(initial=np.inf) > (1.0 + _SAME) * value  # the straight way to below 0
    if not whole or not shrinking.any() or (value > _CLEAR and free):
        return False
    rows = np.flatnonzero(shrinking)[np.argsort(ratio, kind="stable")[: 4 * T.shape[1]]]
    for _ in range(_MAX_ROUNDS):
        rest = unit - T[rows].T @ nnls(T[rows].T, unit, maxiter=100 * sum(T.shape))[0]
        length = float(np.sqrt(rest @ rest))
        if length <= _SAME:  # it is a combination of rows
            return True
        against = T @ (-rest / length)
        new = np.setdiff1d(np.flatnonzero(against < -_SAME), rows)
        if not len(new):
            return False
        new = new[np.argsort(against[new], kind="stable")[: _ADDED * T.shape[1]]]
        rows = np.append(rows, new)
    return False
