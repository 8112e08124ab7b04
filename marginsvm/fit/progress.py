"""The progress of a fit: the best bounds so far, and the vectors that gave them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certificate.proof import FLOATS, Proof
from marginsvm.fit.candidate import Candidate
from marginsvm.problem.adapter import KernelMatrixAdapter, Predictor
from marginsvm.problem.rows import Intervals, OutputRows

# Difference of two entries of a vector per unit of its mass (in radii) that no rounding makes: it
# shows that a warm start was given other data.
OTHER_DATA = 1e-9


@dataclass(frozen=True)
class Confirmed:
    """What a fit publishes, in units of the problem, and what that proves.

    Attributes
    ----------
    model : Predictor
        The predictor as rounds have found it.
    proofs : tuple of Proof
        One, or one for each output that is a problem of its own.
    unit : float
        A margin of the program in those of rows.
    scales : ndarray of shape (len(proofs),)
        Units of the outputs, relative to the largest.
    words : str
        What the model is where no separator was found, for a sentence; may be empty.
    """

    model: Predictor
    proofs: tuple[Proof, ...]
    unit: float
    scales: Array
    words: str = ""

    @property
    def refuted(self) -> bool:
        """Whether it is proved that no predictor separates, or that none fits."""
        return any(proof.refuted for proof in self.proofs)

    @property
    def separates(self) -> bool:
        """Whether the predictor separates, or fits; a soft margin is positive in either case."""
        if self.proofs[0].qp.by_margins:
            return bool(self.proofs[0].primal.separation > 0.0)
        return self.violation == 0.0

    @cached_property
    def lower(self) -> float:
        """The margin of the predictor, at least; of intervals, one over its norm."""
        if self.proofs[0].qp.by_margins:
            return self.proofs[0].margin / self.unit
        return 1.0 / self.norm if self.norm > 0.0 else inf

    @cached_property
    def upper(self) -> float:
        """No predictor has a larger margin; of intervals, a larger inverse of its norm."""
        if self.proofs[0].qp.by_margins:
            return self.proofs[0].margin_bound / self.unit
        return 1.0 / self.norm_bound() if self.norm_bound() > 0.0 else inf

    # Of intervals.

    @cached_property
    def norm(self) -> float:
        """Of the predictor and its slack, at most."""
        parts = zip(self.scales, self.proofs, strict=True)
        square = 2.0 * sum(s * s * float(proof.primal.objective) for s, proof in parts)
        return float(np.sqrt(square) * (1.0 + FLOATS.gamma(len(self.proofs) + 4)))

    @cached_property
    def violation(self) -> float:
        """Largest distance of a score from its interval, at most."""
        parts = zip(self.scales, self.proofs, strict=True)
        return float(max(s * proof.primal.violation for s, proof in parts))

    @property
    def allowed(self) -> float:
        """Violation of the predictors that it is compared with; slack makes up for it."""
        return self.violation if self.proofs[0].qp.hard else 0.0

    def objective_bounds(self, widened: float = 0.0) -> Array:
        """Least objectives of the outputs, where the intervals are widened by so much."""
        parts = zip(self.scales, self.proofs, strict=True)
        return np.array([proof.dual.objective(widened / s) for s, proof in parts], dtype=float)

    def norm_bound(self, widened: float = 0.0) -> float:
        """No predictor that fits intervals that are widened by so much is shorter."""
        square = 2.0 * float((self.scales**2 * self.objective_bounds(widened)).sum())
        return float(np.sqrt(square) * (1.0 - FLOATS.gamma(len(self.proofs) + 4)))

    def error(self, zero: float) -> float:
        """The largest relative gap of norms, or the violation relative to that of zero."""
        P = np.array([float(proof.primal.objective) for proof in self.proofs])
        D = self.objective_bounds(self.allowed)
        P, D = np.append(P, self.norm**2), np.append(D, self.norm_bound(self.allowed) ** 2)
        gaps = [1.0 - np.sqrt(min(max(d / p, 0.0), 1.0)) for p, d in zip(P, D, strict=True) if p]
        far = self.allowed / zero if zero > 0.0 else inf
        return float(max([0.0, *gaps, far if self.allowed > 0.0 else 0.0]))


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
    confirmed : Confirmed or None
        What these candidates prove, once that was computed.
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
    confirmed: Confirmed | None = None
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
        violation = 0.0 if self.best is None else self.best.violation
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
