"""What methods ask of a problem, if it has features."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix.adapter import KernelMatrixAdapter, LinearAdapter
from marginsvm.kernel_matrix.curvature import LinearCurvature
from marginsvm.problem.adapter import LARGEST_FLOAT32

Curvature = LinearCurvature


def csr_examples(problem: KernelMatrixAdapter) -> Any:
    """The examples in the user's units if they are a CSR matrix in memory, else None."""
    return problem.csr() if isinstance(problem, LinearAdapter) else None


def are_dense(problem: KernelMatrixAdapter) -> bool:
    """Whether the examples are a dense array in memory."""
    return isinstance(problem, LinearAdapter) and problem.are_dense()


def has_floats(problem: KernelMatrixAdapter) -> bool:
    """Whether the largest value of a kernel has its digits in float32."""
    highest = (problem.errors.farthest * problem.radius) ** 2
    return bool(1.0 / LARGEST_FLOAT32 < highest < LARGEST_FLOAT32)


def side_in_cache(problem: KernelMatrixAdapter, bytes_of_two: int) -> float:
    """How many examples ``cache_size`` holds, of which each two take so many bytes."""
    return float(np.sqrt(2**20 * getattr(problem, "cache_size", np.inf) / bytes_of_two))


def two_classes(problem: KernelMatrixAdapter, a: int, b: int) -> KernelMatrixAdapter | None:
    """The hard-margin problem of two of the classes, in the same units; None if there is none."""
    return problem.two_classes(a, b) if isinstance(problem, LinearAdapter) else None


def has_curvature(problem: KernelMatrixAdapter) -> bool:
    """Whether ``curvature`` is there: whether the examples have features."""
    return problem.design is not None


def curvature(
    problem: KernelMatrixAdapter, weight: Array, linked: Array | None = None
) -> LinearCurvature:
    """``A' diag(weight) A``, see ``LinearCurvature``."""
    if not isinstance(problem, LinearAdapter):
        raise TypeError(f"the examples of a {type(problem).__name__} have no features")
    return LinearCurvature(problem, weight, linked)
