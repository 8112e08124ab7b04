"""A matrix that gets more rows and columns round by round, and yet is a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix import KernelMatrixAdapter


class GrowingMatrix:
    """A symmetric matrix, with memory behind it in which one larger matrix may be laid out.

    Growing by copying would cost a few percent of a fit. So the memory behind the matrix
    goes to the first who asks for a larger one. Whoever asks later, from a copy of a state or
    after an interrupted round, gets new memory: what a matrix holds never changes.

    Parameters
    ----------
    values : ndarray of shape (m, m)
        The matrix; it is made read-only.
    room : ndarray or None
        Square array whose top left corner is ``values``.
    """

    def __init__(self, values: Array, room: Array | None = None) -> None:
        self.values = values
        self.values.flags.writeable = False
        self._room = [] if room is None else [room]

    def grown(self, strip: Array) -> GrowingMatrix:
        """Matrix with the rows of ``strip``, of shape (n - m, n), below this one."""
        m, n = len(self.values), strip.shape[1]
        try:
            whole = self._room.pop()  # at once: of two threads, only one gets it
        except IndexError:
            whole = np.empty((0, 0))
        if len(whole) < n:
            whole = np.empty((n + n // 2, n + n // 2))
            whole[:m, :m] = self.values
        whole[m:n, :n] = strip
        whole[:m, m:n] = strip[:, :m].T
        return GrowingMatrix(whole[:n, :n], whole)

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values, "_room": []}  # a copy has no share in the memory


def block_of(problem: KernelMatrixAdapter, row_ids: Array, others: Array) -> Array:
    """A block of the matrix of a working set of rows, see ``WorkingSet.gram``."""
    H = problem.gram(row_ids, others)
    H += 1.0
    if problem.rows.balanced:
        H += problem.rows.balance_conditions(row_ids) @ problem.rows.balance_conditions(others).T
    return H
