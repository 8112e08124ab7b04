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
        Rows of a working set at most.
    otherwise : Method or None
        The method that goes on where this one has outgrown its room; None: one that begins anew.
    """

    candidates: tuple[Candidate, ...]
    room: int = MAX_ROWS
    otherwise: Method | None = None

    @abstractmethod
    def advance(self, problem: KernelMatrixAdapter, tol: float) -> Method:
        """State after one more round; the same object if there is nothing left to do."""

    @property
    def outgrown(self) -> bool:
        """Whether the method holds so many rows that another one would be quicker."""
        return False

    def looks_overlapping(self, problem: KernelMatrixAdapter) -> bool:
        """Whether it is worth a pass to look for rows that cancel, where nothing separates yet."""
        return True

    @property
    def limit(self) -> str:
        """What other than rounding keeps it from a solution, and what helps; often nothing."""
        return ""

    @property
    def moving(self) -> bool:
        """Whether it comes nearer to a solution although the bounds do not show it yet."""
        return False

    @property
    def strays(self) -> bool:
        """Whether a path of softer margins would lead to the problem's sooner."""
        return False

    @property
    def few_weights(self) -> Array | None:
        """Weights on the rows, if a working set of those with weight would now be quicker."""
        return None

    def to_the_end(self) -> Method:
        """The same, but ``few_weights`` stays None: a working set has been tried."""
        return self

    def full(self) -> Method:
        """The same, if it has outgrown its room and no other method can go on."""
        return self
