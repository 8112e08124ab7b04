"""The work of a fit, as passes over the examples and kernel evaluations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Work:
    """Passes and kernel evaluations of a fit so far.

    Attributes
    ----------
    passes : float
        Passes over the examples; with kernels, products with the Gram matrix. Looking at a tenth of
        the examples is a tenth of a pass.
    kernel_evaluations : int
        Inner products of two examples (values of a kernel, or entries of a column).
    """

    passes: float = 0.0
    kernel_evaluations: int = 0

    def count(self, number: int) -> None:
        """Count inner products of two examples."""
        self.kernel_evaluations += number
