"""Operations that only some problems have, each declared by a protocol.

An adapter has the protocols that it implements among its base classes. Code that can do without an
operation calls a function that returns None where it is missing (``csr_examples``,
``written_out``); code that needs it calls a function that raises a TypeError
(``with_columns``, ``row_layout``, ``curvature``).

All members of the protocols are methods, not properties, so that a check for one computes nothing.
"""

from __future__ import annotations

from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.tolerances import LARGEST_FLOAT32
from marginsvm.kernel_matrix.adapter import KernelMatrixAdapter
from marginsvm.kernel_matrix.columns import ColumnCache
from marginsvm.kernel_matrix.layout import RowLayout
from marginsvm.rows import Vector


@runtime_checkable
class HasColumns(Protocol):
    """A problem that gives single columns of the Gram matrix, for algorithms that draw rows."""

    def columns(self) -> ColumnCache:
        """Cache of columns of the examples' Gram matrix."""
        ...

    def column_scale(self) -> float:
        """Factor from the values of ``columns`` to units of the radius squared."""
        ...

    def assemble(self, F: Array, q: Array) -> Vector:
        """``combine(q)``, given the scores ``F`` of ``A^T q`` without slack."""
        ...


@runtime_checkable
class HasLayout(Protocol):
    """A problem with rows in memory as plain arrays, for compiled loops over coordinates."""

    def layout(self) -> RowLayout:
        """The rows as plain arrays, along which compiled loops change images in place."""
        ...


@runtime_checkable
class HasTwoClasses(Protocol):
    """A problem of many classes that can be restricted to two of them."""

    def two_classes(self, a: int, b: int) -> KernelMatrixAdapter | None:
        """The problem of the examples of two classes; None: they are not in memory."""
        ...


class Curvature(Protocol):
    """``A' diag(weight) A``, where the intercept is a further entry of images, the last.

    Images are those of the problem; where rows are balanced, one entry is appended for the constant
    feature 1 that an unpenalised intercept amounts to. Examples without weight are not read.
    """

    def __call__(self, Z: Array) -> Array:
        """Product with an image: a pass over the examples with weight."""
        ...

    def diagonal(self) -> Array:
        """The diagonal, in the shape of an image."""
        ...

    def dense(self) -> Array:
        """The matrix itself, over the entries of an image in C order; weights may be negative."""
        ...

    def of_class(self, c: int, most: int) -> Array:
        """The block of class c, from about ``most`` of its examples."""
        ...


@runtime_checkable
class HasCurvature(Protocol):
    """A problem that multiplies with its weighted second moments, without forming them."""

    def curvature(self, weight: Array, linked: Array | None = None) -> Curvature:
        """``A' D A`` for non-negative weights of the rows, see ``LinearCurvature``."""
        ...


@runtime_checkable
class CsrExamples(Protocol):
    """A problem whose examples may be a CSR matrix in memory."""

    def csr(self) -> Any:
        """The examples in the user's units if they are a CSR matrix, or None."""
        ...

    def are_dense(self) -> bool:
        """Whether they are a dense array in memory."""
        ...


def _has(problem: KernelMatrixAdapter, capability: type) -> bool:
    """Whether a problem has a protocol among its base classes.

    This is checked in every round, and ``isinstance`` of a protocol takes 30 microseconds.
    """
    return capability in type(problem).__mro__


def csr_examples(problem: KernelMatrixAdapter) -> Any:
    """The examples in the user's units if they are a CSR matrix in memory, else None."""
    return cast(CsrExamples, problem).csr() if _has(problem, CsrExamples) else None


def are_dense(problem: KernelMatrixAdapter) -> bool:
    """Whether the examples are a dense array in memory."""
    return _has(problem, CsrExamples) and cast(CsrExamples, problem).are_dense()


def has_floats(problem: KernelMatrixAdapter) -> bool:
    """Whether the largest value of a kernel has its digits in float32."""
    highest = (problem.errors.farthest * problem.radius) ** 2
    return bool(1.0 / LARGEST_FLOAT32 < highest < LARGEST_FLOAT32)


def side_in_cache(problem: KernelMatrixAdapter, bytes_of_two: int) -> float:
    """How many examples ``cache_size`` holds, of which each two take so many bytes."""
    return float(np.sqrt(2**20 * getattr(problem, "cache_size", np.inf) / bytes_of_two))


def two_classes(problem: KernelMatrixAdapter, a: int, b: int) -> KernelMatrixAdapter | None:
    """The hard-margin problem of two of the classes, in the same units; None if there is none."""
    if not _has(problem, HasTwoClasses):
        return None
    return cast(HasTwoClasses, problem).two_classes(a, b)


def with_columns(problem: KernelMatrixAdapter) -> HasColumns:
    """The problem, if it gives columns of its Gram matrix; else a TypeError."""
    if not _has(problem, HasColumns):
        raise TypeError(f"{type(problem).__name__} gives no columns of the Gram matrix")
    return cast(HasColumns, problem)


def row_layout(problem: KernelMatrixAdapter) -> RowLayout:
    """The rows as plain arrays, if they are in memory; else a TypeError."""
    if not _has(problem, HasLayout):
        raise TypeError(f"the rows of a {type(problem).__name__} do not lie in memory")
    return cast(HasLayout, problem).layout()


def has_curvature(problem: KernelMatrixAdapter) -> bool:
    """Whether ``curvature`` is there: whether the examples have features."""
    return _has(problem, HasCurvature)


def curvature(
    problem: KernelMatrixAdapter, weight: Array, linked: Array | None = None
) -> Curvature:
    """``A' diag(weight) A``, for problems whose examples have features.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    weight : ndarray of shape rows.shape
        Non-negative.
    linked : ndarray of shape rows.shape or None
        More than two classes, whose rows share a cap: scores of example i for classes j and l other
        than its own are held against each other with the weight ``linked_ij linked_il``.
    """
    if not _has(problem, HasCurvature):
        raise TypeError(f"the examples of a {type(problem).__name__} have no features")
    return cast(HasCurvature, problem).curvature(weight, linked)
