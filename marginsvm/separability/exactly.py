"""The split of a small design by the simplex method in integers, where floats cannot tell."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.checker.modular import independent_columns
from marginsvm.certify.checker.simplex import combination
from marginsvm.certify.exactly.elimination import as_integers, dot
from marginsvm.separability.split import Split


def split_exactly(A: Array, equality: Array) -> Split | None:
    """Split the rows, one after the other; None: it takes too long.

    The negative of a row that overlaps is a combination of the others; a row that is not one is
    positive in some direction that no other row forbids.
    """
    identified = independent_columns(A)
    rows = A[:, identified]
    every = np.concatenate([rows, -rows[equality]])
    integers = [as_integers(row) for row in rows]
    open_, separated = ~equality, np.zeros(len(A), bool)
    q, w = np.zeros(len(A)), np.zeros(len(identified))
    while open_.any():
        i = int(np.flatnonzero(open_)[0])
        answer = combination(every, -rows[i])
        if answer is None:
            return None
        if answer.weights is not None:
            new = answer.weights[: len(A)].copy()
            new[equality] -= answer.weights[len(A) :]
            new[i] += 1.0
            q += new / np.abs(new).max()
            open_ &= ~(~equality & (new > 0.0))
        elif answer.direction is not None:
            v = answer.direction
            positive = np.array([dot(row, v) > 0 for row in integers]) & ~equality
            separated |= positive
            open_ &= ~positive
            unit = max(map(abs, v))
            w += [x / unit for x in v]
    direction = np.zeros(A.shape[1])
    direction[identified] = w
    face = np.zeros((A.shape[1], 0))
    return Split(separated, direction, q, identified, face, "")
