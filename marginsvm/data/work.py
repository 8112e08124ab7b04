"""What a fit has cost so far, counted where the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Work:
    """Counter of passes and kernel evaluations; every problem has one of its own.

    Attributes
    ----------
    kernel_evaluations : int
        Inner products of two examples (values of a kernel, or entries of a column).
    """

    def __init__(self) -> None:
        self.kernel_evaluations = 0
        self._earlier, self._lap = 0.0, 0.0

    @property
    def passes(self) -> float:
        """Passes over the examples; with kernels, products with the Gram matrix.

        Looking at a tenth of the examples is a tenth of a pass.
        """
        return self._earlier + self._lap

    def add_pass(self, fraction: float = 1.0) -> None:
        """Count a pass, or a fraction of one."""
        self._lap += fraction

    def add_kernel_evaluations(self, number: int) -> None:
        """Count inner products of two examples."""
        self.kernel_evaluations += number

    def lap(self) -> float:
        """Return the number of passes since the last lap, and begin another lap.

        It may be a fraction. As laps are added to a total, their rounding does not depend on what
        was counted before: a fit has the same history whether it was interrupted or not.
        """
        lap, self._lap = self._lap, 0.0
        self._earlier += lap
        return lap

    @contextmanager
    def as_one_pass(self) -> Iterator[None]:
        """Count all that happens inside as one pass, however many products it takes."""
        before = self._lap
        yield
        self._lap = before + 1.0
