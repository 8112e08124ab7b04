"""What the methods of the exact solver have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from marginsvm._typing import Array
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter

# Rows of a working set at most: their Gram matrix takes 72 MB, and its factor half a second.
MAX_ROWS = 3000


class Method(ABC):
    """State of one of the methods that the exact solver chooses from.

    Attributes
    ----------
    candidates : tuple of Candidate
        Candidates of the last round.
    room : int
        Rows that the method may hold, see ``rows_held``.
    """

    candidates: tuple[Candidate, ...]
    room: int = MAX_ROWS

    @abstractmethod
    def advance(self, problem: KernelMatrixAdapter, tol: float) -> Method:
        """State after one more round; the same object if there is nothing left to do."""

    @property
    def rows_held(self) -> int:
        """Number of rows whose square the method keeps numbers of."""
        return 0

    @property
    def few_weights(self) -> Array | None:
        """Weights on the rows, if a working set of those with weight would now be quicker."""
        return None
