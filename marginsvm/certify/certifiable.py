"""Problems whose rows can be written out."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from marginsvm._typing import Array


@runtime_checkable
class WrittenOut(Protocol):
    """A problem whose rows can be written out, as those of features can and a kernel's cannot."""

    def spread(self) -> Array | None:
        """Largest distance of each feature from its mean; the first call takes a pass.

        None: it is not needed, as no feature is longer than its example.
        """
        ...

    def written(self, index: Array) -> Array:
        """Examples written out in float64, with the mean subtracted."""
        ...

    def points(self, row_ids: Array) -> Array:
        """Images of rows as a matrix, without slack coordinates."""
        ...


def written_out(problem: object) -> WrittenOut | None:
    """The problem, if its rows can be written out; else None."""
    return problem if isinstance(problem, WrittenOut) else None
