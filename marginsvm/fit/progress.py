"""The progress of a fit: the best bounds so far, and the vectors that gave them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import PublishedPredictor
from marginsvm.certify.interval_bounds import Fit, Weighed
from marginsvm.certify.tolerances import OTHER_DATA
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Intervals, OutputRows, Predictor, Vector


@dataclass(frozen=True)
class ConfirmedBounds:
    """The model and the proof, with bounds that allow for all rounding.

    Attributes
    ----------
    model : Predictor
    predictor : PublishedPredictor
        The model as it is published, with its margin.
    proof : Vector
        Its weights on the rows prove the upper bound.
    upper : float
        Upper bound that the proof gives (units of the radius).
    overlap : bool
        Whether weights near those of ``proof`` are proved to exist for which ``A^T q`` is exactly
        zero, so that no predictor separates the classes.
    words : str
        What the model is where no separator was found, for a sentence; may be empty.
    fit : Fit or None
        The model, where scores are to lie in intervals.
    weighed : Weighed or None
        The proof, where scores are to lie in intervals.
    """

    model: Predictor
    predictor: PublishedPredictor
    proof: Vector
    upper: float
    overlap: bool
    words: str = ""
    fit: Fit | None = None
    weighed: Weighed | None = None

    @property
    def lower(self) -> float:
        """Lower bound: the margin of the model, at least (units of the radius)."""
        return self.predictor.margin


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
    violation : float
        Largest distance of a score from its interval, of the best predictor so far.
    """

    n_iter: int
    n_passes: float
    seconds: float
    lower: float
    upper: float
    violation: float = 0.0


class History:
    """Lines of a table: a value that never changes.

    Copying all lines in every round would take time in proportion to the square of their number.
    So a history and the longer ones made from it share one list, of which each holds the first
    lines. The first call of ``grown`` appends to that list; a second call of the same history
    copies it.

    Examples
    --------
    >>> from marginsvm.fit.progress import History, Line
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


def came_nearer(then: tuple[float, float], now: tuple[float, float]) -> bool:
    """Whether a bound, lower or upper, or the gap between them has improved by a hundredth."""
    better = now[1] < 0.99 * then[1] or now[0] > 1.01 * max(then[0], 0.0)
    return bool(better or max(now[1] - now[0], 0.0) < 0.99 * max(then[1] - then[0], 0.0))


Route = tuple[tuple[str, int], ...]


def longer(route: Route, phase: str, rounds: int) -> Route:
    """A route with some more rounds of a phase, which is the last one or another.

    Examples
    --------
    >>> from marginsvm.fit.progress import longer
    >>> longer(longer((), "Newton", 1), "Newton", 2), longer((("Newton", 3),), "multipliers", 1)
    ((('Newton', 3),), (('Newton', 3), ('multipliers', 1)))
    """
    if route and route[-1][0] == phase:
        return (*route[:-1], (phase, route[-1][1] + rounds))
    return (*route, (phase, rounds))


@dataclass(frozen=True)
class Progress:
    """The progress of a fit after a round; every round makes a new value.

    Attributes
    ----------
    state : object
        The state of the algorithm.
    C : float
        Soft margin parameter of the problem.
    loss : str
        What slack costs there: its size, or its square.
    nu : float or None
        Share of the examples whose mean margin is maximised there.
    radius : float
        The problem's, which vectors are in units of.
    weights : ndarray of shape (n_examples,) or None
        Sample weights of the problem, those of classes included; None: they are all 1.
    intervals : Intervals or None
        Those in which scores are to lie; None: there are classes.
    n_iter : int
        Rounds played.
    lower, upper : float
        Best bounds so far (units of the radius), as computed in rounds, with their rounding.
    best, proof : Candidate or None
        The candidates that gave ``lower`` and ``upper``.
    fallback : Candidate or None
        The latest candidate with ``fallback=True``: the model where nothing separates.
    seconds, n_passes : float
        Time and passes that the rounds took.
    confirmed_at : int
        Round in which bounds were confirmed last, as that takes some passes.
    confirmed : ConfirmedBounds or None
        Confirmed bounds of these candidates, once they were computed.
    begun : Progress or None
        The progress before a step of several rounds that ``max_iter`` cut short; a fit that
        continues begins from it and plays that step in full.
    settled : bool
        Whether the last step returned the same state, so that no later one changes it either.
    moving : bool
        Whether the objective still falls, although neither bound has become better.
    history : History
    route : tuple of (str, int)
        The phases of the algorithm, in turn, and how many rounds each has played.
    """

    state: Any
    C: float = np.inf
    radius: float = 1.0
    weights: Array | None = None
    n_iter: int = 0
    lower: float = -np.inf
    upper: float = np.inf
    best: Candidate | None = None
    fallback: Candidate | None = None
    proof: Candidate | None = None
    seconds: float = 0.0
    n_passes: float = 0.0
    confirmed_at: int = 0
    confirmed: ConfirmedBounds | None = None
    begun: Progress | None = None
    settled: bool = False
    moving: bool = False
    history: History = field(default_factory=History)
    route: Route = ()
    loss: str = "squared_hinge"
    nu: float | None = None
    intervals: Intervals | None = None
    signs: Array | None = None

    @property
    def line(self) -> Line:
        """The best bounds, for the history."""
        fit = None if self.best is None else self.best.fit
        violation = 0.0 if fit is None else fit.violation
        counts = self.n_iter, self.n_passes, self.seconds
        return Line(*counts, self.lower, self.upper, violation)

    def stalled(self, patience: int | None) -> bool:
        """Whether the last ``patience`` rounds improved neither a bound nor the gap.

        A change by less than a hundredth counts as none: at that pace, one more digit would
        take 230 times ``patience`` rounds. A fit whose state is still moving has not stalled,
        nor has one without an upper bound whose last round has changed anything, or without a
        proof, even of no bound, that it could end with.
        """
        if self.moving or patience is None or len(self.history) <= patience:
            return False
        then, now = self.history[-1 - patience], self.history[-1]
        near = came_nearer((then.lower, then.upper), (now.lower, now.upper))
        at_an_end = self.settled and self.proof is not None
        return bool(np.isfinite(then.upper) or at_an_end) and not near

    def is_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has the soft margin, signs and sample weights of this one."""
        same = self.C == problem.C and self.loss == problem.loss and self.nu == problem.nu
        same = same and _are_equal(self.signs, problem.signs)
        return same and self.has_weights_of(problem)

    def has_weights_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has the sample weights of this one."""
        return _are_equal(self.weights, problem.rows.weights)

    def vectors_for(self, problem: KernelMatrixAdapter) -> tuple[Predictor, Vector] | None:
        """The best predictor and proof in the units of the problem; None: there is none."""
        if self.best is None or self.proof is None:
            return None
        return (
            problem.converted(self.best.vector, self.radius),
            problem.converted(self.proof.combination, self.radius),
        )

    def _has_ends_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem asks for scores in the same intervals, or for classes as well."""
        rows, mine = problem.rows, self.intervals
        if mine is None or not isinstance(rows, OutputRows):
            return mine is None and not isinstance(rows, OutputRows)
        others = rows.intervals
        return np.array_equal(mine.low, others.low) and np.array_equal(mine.high, others.high)

    def agrees_with(self, problem: KernelMatrixAdapter, error: float = OTHER_DATA) -> bool:
        """Whether the stored image and margins of the best vectors are those on this problem.

        Images and margins that were computed in float64 are not computed again, so that a warm
        start on other data would take over wrong bounds.
        """
        proof, best, same = self.proof, self.best, self._has_ends_of(problem)
        assert proof is not None
        if same and proof.precise:
            vector = proof.combination
            far = error * float(np.abs(vector.coef).sum())
            same = (problem.refresh(vector) - vector).largest_entry() <= far
        if same and best is not None and best.margins is not None:
            margins, far = problem.margins(best.vector, precise=True), problem.norm(best.vector)
            same = np.allclose(margins, best.margins, rtol=0.0, atol=error * far)
        return bool(same)


def _are_equal(mine: Array | None, others: Array | None) -> bool:
    """Whether two arrays are equal, or there are none."""
    if mine is None or others is None:
        return mine is others
    return mine is others or np.array_equal(mine, others)
