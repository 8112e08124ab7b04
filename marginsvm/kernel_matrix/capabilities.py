"""What only some problems can do, each declared by a protocol, and how to ask for it.

An adapter names the protocols that it implements as its bases. Code that can do without a
capability asks a function that gives None where it is lacking (``csr_examples``, ``restricted``,
``written_out``); code that cannot, one that raises a TypeError (``with_columns``, ``row_layout``,
``second_moments``).

All members are methods: to look for one computes nothing.
"""

from __future__ import annotations

from typing import Any, Protocol, cast, runtime_checkable

from marginsvm._typing import Array
from marginsvm.kernel_matrix.adapter import KernelMatrixAdapter
from marginsvm.kernel_matrix.columns import ColumnCache
from marginsvm.kernel_matrix.layout import RowLayout
from marginsvm.rows import Vector


@runtime_checkable
class HasColumns(Protocol):
    """Columns of the Gram matrix, one at a time: what algorithms that draw rows go by."""

    def columns(self) -> ColumnCache:
        """Columns of the examples' Gram matrix, the last used of them kept."""
        ...

    def column_scale(self) -> float:
        """What a value of ``columns`` is multiplied with, to be in units of the radius squared."""
        ...

    def assemble(self, F: Array, q: Array) -> Vector:
        """``combine(q)`` where the scores ``F`` of ``A^T q`` are known (slack left out)."""
        ...


@runtime_checkable
class HasLayout(Protocol):
    """Rows that lie in memory as plain arrays, for compiled loops over coordinates."""

    def layout(self) -> RowLayout:
        """Lay the rows out; images are moved in place along them."""
        ...


@runtime_checkable
class Restrictable(Protocol):
    """A problem that can be posed for some of its examples alone."""

    def restrict(self, examples: Array) -> KernelMatrixAdapter | None:
        """The problem of some of the examples, at hand and in the same units; None: no gain."""
        ...


@runtime_checkable
class SecondMoments(Protocol):
    """Examples with features, whose products can be summed."""

    def second_moments(self, weight: Array) -> Array:
        """``sum weight (x, 1)(x, 1)'`` over the examples, about the mean and over the radius."""
        ...


@runtime_checkable
class CsrExamples(Protocol):
    """A problem whose examples may be a CSR matrix in memory."""

    def csr(self) -> Any:
        """The examples in the user's units if they are a CSR matrix, or None."""
        ...


def _names(problem: KernelMatrixAdapter, capability: type) -> bool:
    """Whether a problem has a capability among its bases.

    These questions are asked in every round, and ``isinstance`` of a protocol takes 30 us.
    """
    return capability in type(problem).__mro__


def csr_examples(problem: KernelMatrixAdapter) -> Any:
    """The examples in the user's units, if they are a CSR matrix in memory; or None."""
    return cast(CsrExamples, problem).csr() if _names(problem, CsrExamples) else None


def restricted(problem: KernelMatrixAdapter, examples: Array) -> KernelMatrixAdapter | None:
    """The problem of some of the examples, in the same units; None: it would be no quicker."""
    if not _names(problem, Restrictable):
        return None
    return cast(Restrictable, problem).restrict(examples)


def with_columns(problem: KernelMatrixAdapter) -> HasColumns:
    """The problem as one that gives columns of its Gram matrix."""
    if not _names(problem, HasColumns):
        raise TypeError(f"{type(problem).__name__} gives no columns of the Gram matrix")
    return cast(HasColumns, problem)


def row_layout(problem: KernelMatrixAdapter) -> RowLayout:
    """The rows as plain arrays."""
    if not _names(problem, HasLayout):
        raise TypeError(f"the rows of a {type(problem).__name__} do not lie in memory")
    return cast(HasLayout, problem).layout()


def second_moments(problem: KernelMatrixAdapter, weight: Array) -> Array:
    """``sum weight (x, 1)(x, 1)'`` over the examples, about the mean and over the radius."""
    if not _names(problem, SecondMoments):
        raise TypeError(f"the examples of a {type(problem).__name__} have no features")
    return cast(SecondMoments, problem).second_moments(weight)
