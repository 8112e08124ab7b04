"""What the methods of the exact solver have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from enum import Flag, auto
from typing import ClassVar

from marginsvm._typing import Array
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter

# Rows of a working set at most: their Gram matrix takes 72 MB, and its factor half a second.
MAX_ROWS = 3000


class Turn(Flag):
    """What a method has found in a round: whether it comes nearer, and what would be quicker.

    Several may hold.
    """

    GO_ON = 0  # none of the others: its bounds show how far it has come
    NEARER = auto()  # its objective falls, whether or not the bounds show it
    FEW = auto()  # a working set of the rows with weight is quicker by now, if they are few
    MANY = auto()  # it holds so many rows that another method is quicker
    SHORT = auto()  # its steps hardly reduce a large gap
    STALLED = auto()  # nothing is left to do but for rounding, or its bounds hardly come nearer


class Method(ABC):
    """State of one of the methods that the exact solver chooses from.

    Attributes
    ----------
    name : str
        What it is called in a fit's route.
    candidates : tuple of Candidate
        Candidates of the last round.
    """

    name: ClassVar[str]
    candidates: tuple[Candidate, ...]

    @abstractmethod
    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Method, Turn]:
        """State after one more round, the same object if it is left as it is, and what it found."""

    @property
    def begun(self) -> Turn:
        """What it finds before its first round."""
        return Turn.GO_ON

    @property
    def weights(self) -> Array | None:
        """Weights on the rows that a working set may begin with; None: unknown or unbounded."""
        return None

    @property
    def limit(self) -> str:
        """Why it cannot reach a solution, if not for rounding, and what helps; or nothing."""
        return ""


def best_bounds(
    problem: KernelMatrixAdapter,
    candidates: tuple[Candidate, ...],
    known: tuple[float, float] = (0.0, math.inf),
) -> tuple[float, float]:
    """The best lower and upper bound of candidates, and of those that are known (in radii)."""
    lower, upper = known
    for candidate in candidates:
        norm = problem.norm(candidate.vector)
        lower = max(lower, candidate.lower(norm) or 0.0)
        upper = min(upper, candidate.upper(norm))
    return lower, upper


def is_proved(problem: KernelMatrixAdapter, candidates: tuple[Candidate, ...], tol: float) -> bool:
    """Whether candidates prove a relative gap of ``tol``."""
    lower, upper = best_bounds(problem, candidates)
    return lower >= (1.0 - tol) * upper
