"""The interface of an algorithm, its candidates for bounds, and the progress of a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.certificate.proof import Confirmed
from marginsvm.problem.adapter import BestResponse, ColumnPlan, KernelMatrixAdapter, Predictor
from marginsvm.problem.matrix import FLOAT64
from marginsvm.problem.responses import Response
from marginsvm.problem.rows import Intervals, OutputRows

# Change of an entry of A'alpha (in radii, relative to the sum of alpha) above rounding in float64
# and in float32: a warm start was given other data.
OTHER_DATA, OTHER_DATA_IN_SINGLE = 1e-9, 1e-3


@dataclass(frozen=True)
class Requirements:
    """Requirements of an algorithm on the problem.

    Attributes
    ----------
    by_passes : bool
        Whether each step is a pass over all rows, so that the examples may be anywhere: in
        memory, in files, on a cluster, on a device. False: a step visits single rows, and needs the
        examples in memory.
    every_row : bool
        Whether every step uses all rows. False: it uses few rows, so that computing the whole
        kernel matrix, or the mean of all examples, would cost more than it saves.
    in_order : bool
        Whether the result depends on the order of the examples.
    columns : ColumnPlan or None
        How columns of the Gram matrix are computed and cached, for an algorithm that uses single
        columns; the whole matrix is then never formed. None: it does not use columns.
    responses : tuple of Response or None
        The best responses that the algorithm uses, if each of its vectors is a combination of
        these. None: its vectors are combinations of rows that it chooses itself.
    """

    by_passes: bool = True
    every_row: bool = True
    in_order: bool = False
    columns: ColumnPlan | None = None
    responses: tuple[Response, ...] | None = None


@dataclass
class Candidate:
    """A primal or dual point of an iteration, with the values for its bounds.

    Attributes
    ----------
    vector : Predictor
        The predictor w. For an upper bound it has to be a Vector: ``w = A'alpha``.
    mass : float
        Sum of alpha (dimensionless). If positive, ``|A'alpha| / sum(alpha)`` is an upper bound; 0:
        the vector gives none.
    min_margin : float or None
        Smallest margin of w (units of the radius). If given, the margin over the norm is a lower
        bound; None: the vector gives none.
    fallback : bool
        Whether it may be the model of a fit that finds no separator.
    offsets : ndarray of shape (n_classes,) or None
        Its intercept as that model, as class offsets. None: the intercept and the scale of w are
        those with the least exponential loss.

    Examples
    --------
    A sum of two rows, whose norm over 2 bounds the margin from above:

    >>> import numpy as np
    >>> from marginsvm.fit import Candidate
    >>> from marginsvm.problem.adapter import LinearAdapter
    >>> from marginsvm.problem.rows import make_rows
    >>> problem = LinearAdapter(np.eye(2), make_rows(np.array([0, 1]), 2, balanced=False))
    >>> pair = Candidate(problem.row(0) + problem.row(1), mass=2.0)
    >>> round(problem.norm(pair.vector) / pair.mass, 6)
    0.707107
    """

    vector: Any
    mass: float = 0.0
    min_margin: float | None = None
    fallback: bool = False
    offsets: Array | None = None


class Line(NamedTuple):
    """The best bounds after an iteration.

    Attributes
    ----------
    n_iter : int
        Iterations so far.
    n_passes : float
        Passes over the data or, with kernels, products with the Gram matrix, so far.
    seconds : float
        Time of the iterations so far.
    lower, upper : float
        Best bounds so far (units of the radius).
    violation : float
        Largest distance of a score from its interval, for the best predictor so far.
    """

    n_iter: int
    n_passes: float
    seconds: float
    lower: float
    upper: float
    violation: float = 0.0


@dataclass
class Progress:
    """The progress of a fit, updated at the end of each iteration.

    Attributes
    ----------
    state : object
        The state of the algorithm, never modified in place.
    C, radius, loss, nu, signs, weights, intervals
        Parameters of the problem and its rows, by which a warm start recognises it.
    n_iter : int
        Iterations so far.
    lower, upper : float
        Best bounds so far (units of the radius), in plain floats: rounding is not accounted for.
    best, proof : Candidate or None
        The candidates that gave ``lower`` and ``upper``.
    fallback : Candidate or None
        The latest candidate with ``fallback=True``: the model where nothing separates.
    violation : float
        Largest distance of a score of the best predictor from its interval (units of the targets).
    error : float or None
        The quantity compared with ``tol`` for regression.
    seconds, n_passes : float
        Time and passes of the iterations.
    confirmed_at : int
        Iteration of the last verification of the bounds, which takes some passes.
    confirmed : Confirmed or None
        Certified values of these candidates, once computed.
    begun : Progress or None
        The progress before a step of several iterations that ``max_iter`` cut short; a resumed fit
        starts from it and makes that step in full.
    settled : bool
        Whether the last step returned the same state: the algorithm has reached a fixed point.
    history : list of Line
    """

    state: Any
    C: float = inf
    radius: float = 1.0
    loss: str = "squared_hinge"
    nu: float | None = None
    signs: Array | None = None
    weights: Array | None = None
    intervals: Intervals | None = None
    n_iter: int = 0
    lower: float = -inf
    upper: float = inf
    best: Candidate | None = None
    proof: Candidate | None = None
    fallback: Candidate | None = None
    violation: float = 0.0
    error: float | None = None
    seconds: float = 0.0
    n_passes: float = 0.0
    confirmed_at: int = 0
    confirmed: Confirmed | None = None
    begun: Progress | None = None
    settled: bool = False
    history: list[Line] = field(default_factory=list)

    @property
    def line(self) -> Line:
        """The best bounds, for the history."""
        counts = self.n_iter, self.n_passes, self.seconds
        return Line(*counts, self.lower, self.upper, self.violation)

    def copy(self) -> Progress:
        """A copy that later iterations do not change."""
        return replace(self, history=[*self.history])

    def is_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has this C, loss, nu, signs and sample weights."""
        mine: Any = self.C, self.loss, self.nu, self.signs
        others: Any = problem.C, problem.loss, problem.nu, problem.signs
        return all(map(np.array_equal, mine, others)) and self.has_weights_of(problem)

    def has_weights_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has these sample weights."""
        return np.array_equal(self.weights, problem.rows.weights)  # type: ignore[arg-type]

    def agrees_with(self, problem: KernelMatrixAdapter, error: float = OTHER_DATA) -> bool:
        """Whether the problem has these intervals, and A'alpha of the proof is the same there."""
        mine, proof = self.intervals, self.proof
        others = problem.rows.intervals if isinstance(problem.rows, OutputRows) else None
        if mine is not None and others is not None:
            if not all(map(np.array_equal, (mine.low, mine.high), (others.low, others.high))):
                return False
        elif mine is not others or proof is None:
            return False
        assert proof is not None
        if problem.precision != FLOAT64:
            error = OTHER_DATA_IN_SINGLE
        change = (problem.refresh(proof.vector) - proof.vector).largest_entry()
        return bool(change <= error * float(np.abs(proof.vector.coef).sum()))


class Algorithm(ABC):
    """An algorithm of a paper, with its parameters: a frozen dataclass.

    It defines ``start`` (the initial state), ``step`` (one iteration of the paper), ``candidates``
    (the vectors for the bounds) and ``requires``. States are immutable: a step returns a new state
    and leaves the old one unchanged, so that a fit may be interrupted at any time.

    Examples
    --------
    The batch perceptron. Each iteration adds the row with the smallest margin to w:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from marginsvm.fit import Algorithm, Candidate, Stopping, play
    >>> from marginsvm.problem.adapter import LinearAdapter
    >>> from marginsvm.problem.rows import make_rows
    >>> from marginsvm.problem.responses import worst_row
    >>> @dataclass(frozen=True)
    ... class Perceptron(Algorithm):
    ...     def start(self, problem):
    ...         return problem.zeros()
    ...     def step(self, problem, w):
    ...         return w + problem.respond(w, response=worst_row).vector
    ...     def candidates(self, problem, w):
    ...         yield Candidate(w, w.mass, problem.margins(w).min(), fallback=True)
    >>> rows = make_rows(np.array([1, 0]), 2, balanced=False)
    >>> problem = LinearAdapter(np.array([[1.0, 0.0], [1.0, -1.0]]), rows)
    >>> play(Perceptron(), problem, Stopping("separation")).status
    'separated'
    """

    @property
    def requires(self) -> Requirements:
        """Requirements of the algorithm on the problem."""
        return Requirements()

    @abstractmethod
    def start(self, problem: KernelMatrixAdapter) -> Any:
        """Initial state."""

    def continued(self, problem: KernelMatrixAdapter, before: Progress) -> Any:
        """Warm start from a fit of the same examples at another C; None: cold start."""
        return None

    @abstractmethod
    def step(self, problem: KernelMatrixAdapter, state: Any) -> Any:
        """State after one more iteration; the same object at a fixed point."""

    @abstractmethod
    def candidates(self, problem: KernelMatrixAdapter, state: Any) -> Iterable[Candidate]:
        """Vectors for the bounds after an iteration, and the model for overlapping classes."""

    def best_bounds(
        self, problem: KernelMatrixAdapter, state: Any, before: Progress
    ) -> dict[str, Any]:
        """Updates of the progress by a state: better bounds, and their candidates."""
        found: dict[str, Any] = {}
        lower, upper = before.lower, before.upper
        for candidate in self.candidates(problem, state):
            norm = problem.norm(candidate.vector)
            if not isfinite(norm):
                raise ValueError(
                    f"{type(self).__name__} diverged in round {before.n_iter + 1}: its vectors "
                    "overflow float64; choose a smaller step size, if it has one, or scale X"
                )
            if candidate.fallback:
                found["fallback"] = candidate
            low = candidate.min_margin
            if low is not None and norm > 0.0 and low / norm > lower:
                lower = low / norm
                found["lower"], found["best"] = lower, candidate
            if candidate.mass > 0.0 and norm / candidate.mass < upper:
                upper = norm / candidate.mass
                found["upper"], found["proof"] = upper, candidate
        return found

    def confirmed(self, problem: KernelMatrixAdapter, progress: Progress) -> Confirmed | None:
        """Certified results of a fit; None: computed from its candidates."""
        return None

    def n_rounds(self, n_iter: int) -> int:
        """Number of iterations of the step that follows ``n_iter`` iterations."""
        return 1

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """Model of a fit without a separator: the last candidate with ``fallback=True``."""
        if progress.fallback is None:
            raise ValueError(
                f"no candidate of {type(self).__name__} has fallback=True; one must have it: "
                "the model where nothing separates the classes"
            )
        return progress.fallback


def measured(w: Predictor, best: BestResponse) -> Candidate:
    """A predictor as candidate, with the smallest margin found by the best response to it.

    It gives a lower bound, and may be the model of a fit that finds no separator, with the
    intercept of the response.

    Parameters
    ----------
    w : Predictor
    best : BestResponse
        The best response to ``w``.

    Returns
    -------
    Candidate
    """
    low, offsets = best.weights.min_margin, best.weights.offsets
    return Candidate(w, min_margin=low, fallback=True, offsets=offsets)
