"""The two sequences of accelerated dual coordinate ascent, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import row_layout
from marginsvm.rows import Intervals, Vector


@dataclass(frozen=True)
class Sequences:
    """The sequences of Lin, Lu and Xiao's Algorithm 1 (APCG).

    With a soft margin, the dual objective is strongly convex, by ``mu`` relative to the
    curvatures of the coordinates. After k steps along uniform draws from n coordinates, its
    expected gap is below a multiple of ``min((1 - sqrt(mu) / n)^k, (2n / (2n + k))^2)``. The
    first is the linear rate of Raj and Bach's Corollary C.2, the second that of their eq. (8).

    Attributes
    ----------
    proximal : Vector
        The sequence of proximal steps (z in the paper).
    answer : Vector
        The sequence that the rates are about (x in the paper).
    gamma : float
        Weight of the distance in the paper's estimate sequence (dimensionless): 1 at first, and
        then falling to mu.
    """

    proximal: Vector
    answer: Vector
    gamma: float = 1.0

    @classmethod
    def at(cls, vector: Vector) -> Sequences:
        """The sequences where the acceleration begins."""
        return cls(vector, vector)

    def epoch(
        self, problem: KernelMatrixAdapter, order: Array, intervals: Intervals, n: int, mu: float
    ) -> Sequences:
        """Move along some coordinates, one after the other, drawn from n."""
        from marginsvm.algorithms.compiled import intervals as loops

        found = loops.accelerate(
            problem, order, n, intervals, self.proximal, self.answer, self.gamma, mu
        )
        return Sequences(*found)


def strong_convexity(problem: KernelMatrixAdapter) -> float:
    """Strong convexity of the dual relative to the curvatures of its coordinates; 0 if C is inf."""
    rows = row_layout(problem)
    return float((rows.slack / np.maximum(rows.curvature, np.finfo(float).tiny)).min())
