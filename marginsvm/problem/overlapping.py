"""Two rows that cancel, which equal examples of two classes have."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.problem.vector import Vector

# Difference of the fingerprints of equal examples, relative to the largest: rounding of long sums.
SAME_FINGERPRINT = 1e-12
MAX_TWINS = 256  # pairs with the same fingerprint that are compared
MAX_TWIN_NUMBERS = 2**20  # in one half of these pairs: of wider rows, fewer are compared


def meeting_rows(problem: Any) -> Vector | None:
    """``A^T q = 0`` for weights of 1/2 on two rows that cancel, if a cheap search finds some.

    Two equal examples of different classes have such rows: each is held against the class of the
    other. So have, without an intercept, two opposite examples of one class, and a zero
    example with itself. The search takes a sort, and a pass where lengths coincide.
    """
    h = problem.fingerprints()
    if h is None:
        return None
    most = max(1, int(MAX_TWIN_NUMBERS / problem.width)) if problem.width < np.inf else MAX_TWINS
    i, j = (x[: min(most, MAX_TWINS)] for x in _twins(problem, h))
    given = problem.given(np.concatenate([i, j])) if len(i) else None
    if given is None:
        return None
    X, factor, _ = given
    codes = problem.rows.codes
    cancel = _cancel(X[: len(i)], X[len(i) :], np.where(codes[i] == codes[j], -1.0, 1.0))
    cancel &= factor[: len(i)] == factor[len(i) :]
    return _half_each(problem, *(int(x[cancel.argmax()]) for x in (i, j))) if cancel.any() else None


def _twins(problem: Any, h: Array) -> tuple[Array, Array]:
    """Pairs of examples whose fingerprints say that they have rows that cancel."""
    balanced, codes = problem.rows.balanced, problem.rows.codes
    key = h if balanced else np.abs(h)
    ordered = np.sort(key)  # without the order, which takes longer and is needed rarely
    near = SAME_FINGERPRINT * max(ordered[-1], -ordered[0])
    nothing = np.flatnonzero(key == 0.0)[: 0 if balanced else 1]
    if not (len(nothing) or np.any(np.diff(ordered) <= near)):
        return nothing, nothing
    order = np.argsort(key)
    i, j = order[:-1], order[1:]
    opposite = np.zeros(len(i), bool) if balanced else np.sign(h[i]) != np.sign(h[j])
    found = np.flatnonzero((np.diff(key[order]) <= near) & ((codes[i] == codes[j]) == opposite))
    return np.append(nothing, i[found]), np.append(nothing, j[found])


def _cancel(X: Any, Z: Any, sign: Array) -> Array:
    """Whether ``x - sign z`` is exactly zero, for each pair of examples."""
    if isinstance(X, np.ndarray):
        Z = Z * sign[:, None].astype(X.dtype)
        return np.asarray(np.all(X == Z, axis=1))
    rest = abs(X - sp.diags_array(sign) @ Z).sum(axis=1)
    return np.asarray(rest).ravel() == 0.0


def _half_each(problem: Any, i: int, j: int) -> Vector:
    rows, ours, theirs = problem.rows, problem.rows.codes[i], problem.rows.codes[j]
    q = np.zeros(rows.shape).reshape(rows.n_examples, -1)
    other = int(ours == theirs)  # then both are held against another class
    q[i, (theirs + other) % rows.n_classes % q.shape[1]] += 0.5  # two classes have one column
    q[j, (ours + other) % rows.n_classes % q.shape[1]] += 0.5
    return problem.combine(q.reshape(rows.shape), precise=True)
