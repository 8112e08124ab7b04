"""The table of bounds that a fit leaves behind, one line a round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Line(NamedTuple):
    """The best bounds after a round.

    Attributes
    ----------
    n_iter : int
        Rounds played.
    n_passes : float
        Passes over the data or, with kernels, products with the Gram matrix, in all so far.
    seconds : float
        Time that the rounds took so far.
    lower, upper : float
        Best bounds so far (units of the radius).
    """

    n_iter: int
    n_passes: float
    seconds: float
    lower: float
    upper: float


class History:
    """Lines of a table: a value that never changes.

    Copying all lines in every round would take time in proportion to the square of their number.
    So a history and the longer ones made from it share one list, of which each holds the first
    lines. The first call of ``grown`` appends to that list; a second call of the same history
    copies it.

    Examples
    --------
    >>> from marginsvm.fit.history import History, Line
    >>> short = History().grown(Line(1, 1.0, 0.1, 0.0, 1.0))
    >>> long, other = (short.grown(Line(2, 2.0, s, 0.0, 1.0)) for s in (0.2, 0.3))
    >>> len(short), long[-1].seconds, other[-1].seconds
    (1, 0.2, 0.3)
    """

    def __init__(self, lines: list[Line] | None = None) -> None:
        self._lines = [] if lines is None else lines
        self._n = len(self._lines)

    def grown(self, line: Line) -> History:
        """History with one line more."""
        lines = self._lines
        if len(lines) == self._n:
            lines.append(line)  # of several threads, only one gets this position
        if lines[self._n] is not line:
            lines = [*self, line]
        longer = History.__new__(History)
        longer._lines, longer._n = lines, self._n + 1
        return longer

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines[: self._n])

    def __getitem__(self, index: int) -> Line:
        """The line at this index, which may count from the end."""
        return self._lines[range(self._n)[index]]

    def __getstate__(self) -> dict[str, Any]:
        return {"_lines": [*self], "_n": self._n}
