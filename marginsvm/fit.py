"""Iterative algorithms, and the one loop of their fits: iterate, keep the best bounds, verify them.

Independent of scikit-learn.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from marginsvm._threads import let_interrupts_through
from marginsvm._typing import Array
from marginsvm.certificate import publication
from marginsvm.certificate.certificate import relative_gap
from marginsvm.certificate.overlap import (
    PrimalDual,
    of_outputs,
    scales_of,
    with_refutation,
)
from marginsvm.certificate.publication import WORTH_A_PROOF, Certified, vanishing
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.column_cache import ColumnPlan
from marginsvm.problem.matrix import FLOAT64
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.responses import Response, Weights, softmax
from marginsvm.problem.rows import Intervals, OutputRows, Rows
from marginsvm.problem.vectors import BestResponse, Predictor, Vector

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

    vector: Predictor
    mass: float = 0.0
    min_margin: float | None = None
    fallback: bool = False
    offsets: Array | None = None


State = TypeVar("State")  # an algorithm's own, immutable


class Line(NamedTuple):
    """The best bounds after some iterations.

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


class Progress(NamedTuple):
    """The progress of a fit after some iterations.

    Attributes
    ----------
    state : object
        The state of the algorithm, never modified in place.
    history : list of Line
        The list is that of the whole fit: lines after ``n_iter`` are of later progress.
    C, radius, loss, nu, signs, weights, balanced, intervals
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
    certified_at : int
        Iteration of the last verification of the bounds, which takes some passes.
    certified : Certified or None
        Certified values of these candidates, once computed.
    begun : Progress or None
        The progress at the last look, if ``max_iter`` cut the way to the next one short; a resumed
        fit starts from it, and looks at the same iterations as a longer fit.
    settled : bool
        Whether the last step returned the same state: the algorithm has reached a fixed point.
    """

    state: Any = None
    history: Any = ()
    C: float = inf
    radius: float = 1.0
    loss: str = "squared_hinge"
    nu: float | None = None
    signs: Array | None = None
    weights: Array | None = None
    balanced: bool = True
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
    certified_at: int = 0
    certified: Certified | None = None
    begun: Progress | None = None
    settled: bool = False

    def __setstate__(self, state: object) -> None:
        """Read nothing: only 1.0.0rc1 wrote a state; its fits are begun anew."""

    @property
    def line(self) -> Line:
        """The best bounds, for the history."""
        counts = self.n_iter, self.n_passes, self.seconds
        return Line(*counts, self.lower, self.upper, self.violation)

    def copy(self) -> Progress:
        """The same progress, as the first of another fit."""
        lines = [line for line in self.history if line.n_iter <= self.n_iter]
        return self._replace(history=lines)

    def is_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has this C, loss, nu, signs and sample weights."""
        mine = self.C, self.loss, self.nu
        same = mine == (problem.C, problem.loss, problem.nu)
        return (
            same
            and are_equal(self.signs, problem.signs)
            and self.has_weights_of(problem)
        )

    def has_weights_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has these sample weights."""
        return are_equal(self.weights, problem.rows.weights)

    def agrees_with(
        self, problem: KernelMatrixAdapter, error: float = OTHER_DATA
    ) -> bool:
        """Whether the problem has these intervals, and A'alpha of the proof is the same there."""
        mine = self.intervals
        proof = self.proof
        others = (
            problem.rows.intervals if isinstance(problem.rows, OutputRows) else None
        )
        if mine is not None and others is not None:
            if not all(
                map(np.array_equal, (mine.low, mine.high), (others.low, others.high))
            ):
                return False
        elif mine is not others or proof is None:
            return False
        assert proof is not None
        assert isinstance(proof.vector, Vector)
        if problem.precision != FLOAT64:
            error = OTHER_DATA_IN_SINGLE
        change = (problem.refresh(proof.vector) - proof.vector).largest_entry()
        return bool(change <= error * float(np.abs(proof.vector.coef).sum()))


def are_equal(mine: Array | None, others: Array | None) -> bool:
    """Whether two arrays are equal, or both are absent."""
    if mine is None or others is None:
        return mine is others
    return np.array_equal(mine, others)


class Method(ABC, Generic[State]):
    """A way to solve a problem: its first state, and what is published of later ones."""

    @property
    def requires(self) -> Requirements:
        """Requirements on the problem."""
        return Requirements()

    @abstractmethod
    def start(self, problem: KernelMatrixAdapter) -> State:
        """Initial state."""

    def continued(self, problem: KernelMatrixAdapter, before: Progress) -> State | None:
        """Warm start from a fit of the same examples at another C; None: cold start."""
        return None

    def recognisable(
        self, problem: KernelMatrixAdapter, progress: Progress
    ) -> Progress:
        """The progress with a ``proof``, by which a warm start recognises other data."""
        return progress

    @abstractmethod
    def certified(self, problem: KernelMatrixAdapter, progress: Progress) -> Certified:
        """Published results of a fit, with certified bounds."""

    @abstractmethod
    def points(
        self, problem: KernelMatrixAdapter, progress: Progress
    ) -> list[PrimalDual]:
        """Predictor, intercepts and alpha of each program so far, without a pass."""


class Algorithm(Method[State]):
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

    @abstractmethod
    def step(self, problem: KernelMatrixAdapter, state: State) -> State:
        """State after one more iteration; the same object at a fixed point."""

    @abstractmethod
    def candidates(
        self, problem: KernelMatrixAdapter, state: State
    ) -> Iterable[Candidate]:
        """Vectors for the bounds after an iteration, and the model for overlapping classes."""

    def best_bounds(
        self,
        problem: KernelMatrixAdapter,
        state: State,
        before: Progress,
        n_iter: int,
    ) -> Progress:
        """The progress before, with better bounds by the state after ``n_iter`` iterations."""
        lower = before.lower
        best = before.best
        upper = before.upper
        proof = before.proof
        fallback = before.fallback
        for candidate in self.candidates(problem, state):
            norm = problem.norm(candidate.vector)
            if not isfinite(norm):
                problem.reread()
                first = before.n_iter + 1
                when = f"iteration {n_iter}"
                if first < n_iter:
                    when = f"iterations {first} to {n_iter}"
                also = "" if problem.in_memory else ". Or a pass read other numbers"
                raise ValueError(
                    f"{type(self).__name__} diverged in {when}: its vectors overflow float64; "
                    f"choose a smaller step size, if it has one, or scale X{also}"
                )
            if candidate.fallback:
                fallback = candidate
            low = candidate.min_margin
            if low is not None and norm > 0.0 and low / norm > lower:
                lower = low / norm
                best = candidate
            if candidate.mass > 0.0 and norm / candidate.mass < upper:
                upper = norm / candidate.mass
                proof = candidate
        return before._replace(
            lower=lower, upper=upper, best=best, proof=proof, fallback=fallback
        )

    def certified(self, problem: KernelMatrixAdapter, progress: Progress) -> Certified:
        """Publish the best model and the best alpha so far, with certified bounds."""
        found = progress.proof
        (qp,) = problem.programs
        assert found is not None
        model, predictor = _best_model(self, problem, progress, qp)
        proof = publication.with_weights(qp, predictor, found.vector.coef)
        if proof.may_be_refuted:
            proof = with_refutation(proof, SHARE_OF_PROOFS * progress.n_passes)
        return Certified(model, (proof,), np.ones(1))

    def points(
        self, problem: KernelMatrixAdapter, progress: Progress
    ) -> list[PrimalDual]:
        """Those of the best candidates."""
        best = progress.best if progress.lower > 0.0 else None
        best = best or self.fallback(problem, progress)
        offsets = np.zeros(1) if best.offsets is None else best.offsets
        b = np.atleast_1d(problem.rows.score_offsets(offsets))
        assert progress.proof is not None
        return [(problem.w_of(best.vector), b, progress.proof.vector.coef)]

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
    low = best.weights.min_margin
    offsets = best.weights.offsets
    return Candidate(w, min_margin=low, fallback=True, offsets=offsets)


# The loop.

# Bounds are computed once the number of iterations has grown by one in so many: for few examples
# they take as long as two or three iterations.
GROWTH = 32
# Largest margin (in radii) that may be rounding alone.
NOISE = 1e-14
# Rounding of a relative gap: with ``tol=0`` all iterations are made even if bounds are equal.
GAP_ROUNDING = 1e-15
# Upper bound (in radii) at which the search for a separator stops: for a smaller margin a
# perceptron may need 1e12 mistakes.
NEGLIGIBLE = 1e-6
# Least number of iterations between verifications without a reason to stop.
UNPROMISED = 10
OnRound = Callable[[Progress], bool]


@dataclass(frozen=True)
class Stopping:
    """When a fit ends.

    Attributes
    ----------
    goal : {"gap", "separation", "iterations"}
        What ends the fit: the relative gap ``tol``, any separator of the examples, or only
        ``max_iter``.
    tol : float
        Relative gap between the certified bounds (dimensionless).
    max_iter : int
        Limit of iterations, including those of a resumed fit.
    negligible : float or None
        Upper bound (in radii) at which a fit without a separator stops. Once the bound is below
        1e-2 (with the goal "separation": below ``tol``), a proof of overlap is tried now and then.
        None: a proof is tried once the bound is below the threshold of the problem's error model
        (``vanishing``); without a proof the fit continues.
    """

    goal: str = "gap"
    tol: float = 1e-3
    max_iter: int = 10_000
    negligible: float | None = None

    def next_look(self, n_iter: int) -> int:
        """Iterations at which bounds are computed next, if last at ``n_iter``; ``max_iter`` may
        come first.

        Every iteration up to 64, then whenever their number has grown by 1/32. Theorems count the
        iterations to a separator: with this goal, all are looked at.
        """
        return n_iter + (1 if self.goal == "separation" else max(1, n_iter // GROWTH))

    def promised(self, problem: KernelMatrixAdapter, progress: Progress) -> str | None:
        """The status for stopping by the unverified bounds, or None."""
        if progress.error is not None:
            return self._of_intervals(progress.error, infeasible=progress.upper == 0.0)
        lower = progress.lower if progress.lower > NOISE else 0.0
        if self.negligible is None:
            small = vanishing(problem.examples)
        else:
            wanted = (
                WORTH_A_PROOF if self.goal == "gap" else min(self.tol, WORTH_A_PROOF)
            )
            small = max(self.negligible, wanted) if self.tol > 0 else self.negligible
        return self._status(problem, lower, progress.upper, small, separates=True)

    def status_of(
        self, problem: KernelMatrixAdapter, progress: Progress, bounds: Certified
    ) -> str | None:
        """The status for stopping by certified bounds, or None."""
        if isinstance(problem.rows, OutputRows):
            error = bounds.error(problem.rows.farthest)
            return self._of_intervals(error, infeasible=bounds.refuted)
        at_the_end = progress.settled or progress.n_iter >= self.max_iter
        small = (
            vanishing(problem.examples) if self.negligible is None else self.negligible
        )
        if bounds.refuted:
            small = np.inf
            if self.tol == 0 and not at_the_end:
                return None  # max_iter alone ends the fit, also a resumed one
        separates = bounds.separates
        status = self._status(
            problem, bounds.lower, bounds.upper, small, separates=separates
        )
        proved = bounds.refuted or self.negligible is not None or at_the_end
        return None if status == "no_margin" and not proved else status

    def _of_intervals(self, error: float, *, infeasible: bool) -> str | None:
        """The status for stopping a regression, or None."""
        reached = "certified" if error + GAP_ROUNDING <= self.tol else None
        return "infeasible" if infeasible else reached

    def _status(
        self,
        problem: KernelMatrixAdapter,
        lower: float,
        upper: float,
        negligible: float,
        *,
        separates: bool,
    ) -> str | None:
        """The status for stopping at these bounds, or None.

        A soft margin is positive even if the classes overlap; ``separates`` tells whether the
        predictor separates the examples without slack (True if not checked yet).
        """
        if self.goal == "iterations":
            return None
        positive = lower > 0.0
        if self.goal == "separation" and positive and separates:
            return "separated"
        if positive and relative_gap(lower, upper) + GAP_ROUNDING <= self.tol:
            return "certified"
        if not positive and upper <= negligible and np.isinf(problem.C):
            return "no_margin"
        return None


@dataclass(frozen=True)
class Outcome:
    """Result of :func:`play`.

    Attributes
    ----------
    status : str
        ``certified``, ``separated``, ``no_margin``, ``infeasible``, ``stalled``, ``stopped`` or
        ``max_iter``.
    progress : Progress
        The state, the bounds and the history at the end.
    """

    status: str
    progress: Progress


def play(
    algorithm: Algorithm,
    problem: KernelMatrixAdapter,
    stopping: Stopping,
    on_round: OnRound | None = None,
    resume: Progress | None = None,
) -> Outcome:
    """Iterate until the stopping rule, ``max_iter`` or ``on_round`` ends the fit.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    stopping : Stopping
        The stopping rule.
    on_round : callable, default=None
        Called with the progress each time bounds have been computed, see ``Stopping.next_look``;
        it stops the fit by returning True.
    resume : Progress, default=None
        Progress of an earlier fit of the same algorithm to the same problem, to be continued; None:
        start from scratch.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If vectors overflow float64.
    KeyboardInterrupt
        Between two iterations. The progress last passed to ``on_round`` has the results so far.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.papers.momentum import Momentum
    >>> from marginsvm.fit import Stopping, play
    >>> from marginsvm.problem.adapter import LinearAdapter
    >>> from marginsvm.problem.rows import make_rows
    >>> rows = make_rows(np.array([1, 0]), 2, balanced=False)
    >>> problem = LinearAdapter(np.array([[1.0, 0.0], [1.0, -1.0]]), rows)
    >>> outcome = play(Momentum(), problem, Stopping(tol=0.01))
    >>> outcome.status, outcome.progress.upper <= 1.01 * outcome.progress.lower
    ('certified', True)
    """
    progress = begin(algorithm, problem) if resume is None else resume.copy()
    known = progress.certified
    stopped = False
    # a resumed fit may have reached the goal already
    status = stopping.status_of(problem, progress, known) if known else None
    while not (
        status or stopped or progress.settled or progress.n_iter >= stopping.max_iter
    ):
        # Only a caller with on_round can keep the progress before an interrupt.
        interruptible = on_round is not None
        progress = advance(
            algorithm, problem, stopping, progress, interruptible=interruptible
        )
        progress, status = check(algorithm, problem, stopping, progress)
        stopped = on_round is not None and on_round(progress)
    if status is None and stopping.goal != "iterations":
        # the certified bounds may reach the goal
        found = progress.certified or certify(algorithm, problem, progress)
        progress = progress._replace(certified=found)
        status = stopping.status_of(problem, progress, found)
    without = "stopped" if stopped else "stalled" if progress.settled else "max_iter"
    return Outcome(status or without, progress)


# best_bounds checks the norms for overflow
@np.errstate(over="ignore", invalid="ignore")
def begin(
    method: Method, problem: KernelMatrixAdapter, before: Progress | None = None
) -> Progress:
    """Progress before the first iteration.

    Parameters
    ----------
    method : Method
    problem : KernelMatrixAdapter
    before : Progress, default=None
        Progress on the same examples with another C, for a warm start; all bounds are recomputed.
    """
    rows = problem.rows
    problem.work.passes = 0.0
    near = None if before is None else method.continued(problem, before)
    state = method.start(problem) if near is None else near
    return Progress(
        state,
        [],
        C=problem.C,
        radius=problem.radius,
        loss=problem.loss,
        nu=problem.nu,
        signs=problem.signs,
        weights=rows.weights,
        n_passes=problem.work.passes,
        balanced=rows.balanced,
        intervals=rows.intervals if isinstance(rows, OutputRows) else None,
    )


@np.errstate(over="ignore", invalid="ignore")
def advance(
    algorithm: Algorithm,
    problem: KernelMatrixAdapter,
    stopping: Stopping,
    progress: Progress,
    *,
    interruptible: bool = False,
) -> Progress:
    """Make the steps up to the next look at the bounds, and keep the best of them."""
    begun = time.perf_counter()
    problem.work.passes = 0.0
    state = progress.state
    n = progress.n_iter
    limit = stopping.max_iter
    end = stopping.next_look(n)
    while n < min(end, limit):
        if interruptible:
            let_interrupts_through()
        before = state
        state = algorithm.step(problem, state)
        if state is before and n > progress.n_iter:
            # the bounds of a fixed point may end the fit; it is no iteration yet
            end = n
        else:
            n += algorithm.n_rounds(n)
    n_iter = min(n, limit)
    after = algorithm.best_bounds(problem, state, progress, n_iter)._replace(
        state=state,
        n_iter=n_iter,
        begun=progress if n < end or n > limit else None,
        settled=state is progress.state,
        n_passes=progress.n_passes + problem.work.passes,
        certified=None,
        seconds=progress.seconds + time.perf_counter() - begun,
    )
    after.history.append(after.line)
    return after


def looks(algorithm: Algorithm, stopping: Stopping, n_iter: int) -> int:
    """How many times ``play`` computes bounds from ``n_iter`` iterations to ``max_iter``."""
    count = 0
    while n_iter < stopping.max_iter:
        end = stopping.next_look(n_iter)
        while n_iter < end:
            n_iter += algorithm.n_rounds(n_iter)
        count += 1
    return count


def check(
    algorithm: Algorithm,
    problem: KernelMatrixAdapter,
    stopping: Stopping,
    progress: Progress,
) -> tuple[Progress, str | None]:
    """Verify the bounds if they would end the fit; returns its status, or None, too.

    The bounds of an iteration are unverified (and may be in float32). If they would stop the fit,
    they are verified in float64. If that fails, the next verification comes after 10 % more
    iterations, as it takes passes, and for a proof of overlap after twice as many. Soft margins are
    also verified every 25 % more iterations: with optimal slack the bound of a predictor is better
    than in its iteration.
    """
    status = stopping.promised(problem, progress)
    n = progress.n_iter
    before = progress.certified_at
    wait = before if status == "no_margin" else before // 10  # a proof takes longer
    promising = status is not None and n > before + wait
    is_soft = (
        np.isfinite(problem.C) or problem.nu is not None
    ) and stopping.goal != "iterations"
    if not (promising or (is_soft and n >= before + before // 4 + UNPROMISED)):
        return progress, None
    bounds = certify(algorithm, problem, progress)
    ended = stopping.status_of(problem, progress, bounds)
    lower = progress.lower
    upper = progress.upper
    if status == "no_margin":  # keep the bound of this proof
        upper = min(upper, bounds.upper)
    elif ended is None and status is not None and progress.error is None:
        # the unverified bounds were too optimistic: reset, so that later ones can replace them
        lower = min(lower, bounds.lower)
        upper = max(upper, bounds.upper)
    after = progress._replace(
        certified_at=n, certified=bounds, lower=lower, upper=upper
    )
    return after, ended


# The end of a fit: its best predictor and alpha are published, with certified bounds.

# Passes that a proof of overlap may take, for each pass of the iterations. Each comes after twice
# as many of them, and one at the end, so that all take no longer than the iterations.
SHARE_OF_PROOFS = 1.0 / 3.0
# |A'alpha| over the sum of alpha (in radii) below which it is rounding.
NOTHING_LEFT = 1e-13
# Range of the logarithm of the factor of the margins (relative to the largest) in the search for
# the least loss: from e^-5, where the loss is flat, to e^10, where the smallest margins dominate.
LOG_SCALES = (-5.0, 10.0)


@np.errstate(over="ignore", invalid="ignore")  # vectors that overflow give no bounds
def certify(
    method: Method, problem: KernelMatrixAdapter, progress: Progress
) -> Certified:
    """Publish the results after at least one iteration, with certified bounds."""
    return method.certified(problem, progress)


def unproved(
    method: Method, problem: KernelMatrixAdapter, progress: Progress
) -> Certified:
    """The model so far by its floats, with bounds that claim nothing: no example is read."""
    programs = problem.programs
    rows = problem.rows
    scales = np.ones(1)
    points = method.points(problem, progress)
    publish = partial(publication.unproved, total=1.0 / len(programs))
    if isinstance(rows, OutputRows):
        scales = scales_of(rows, programs)
        found = [
            publish(*of_output) for of_output in of_outputs(rows, programs, points)
        ]
    else:
        found = [publish(qp, *p) for qp, p in zip(programs, points, strict=True)]
    model = Predictor(problem.zeros().image, found[0].alpha)
    return Certified(model, tuple(found), scales)


def _best_model(
    algorithm: Algorithm,
    problem: KernelMatrixAdapter,
    progress: Progress,
    qp: QuadraticProgram,
) -> tuple[Predictor, publication.PublishedPredictor]:
    """Vector and predictor of the best separator or, if there is none, of the fallback."""
    best = progress.best
    if best is not None:
        found = _published(problem, qp, best.vector, partial(best_offsets, problem))
        if found.primal.margin > 0.0:
            return best.vector, found
    last = algorithm.fallback(problem, progress)
    model = last.vector
    known = last.offsets
    if problem.norm(model) <= NOTHING_LEFT * float(model.coef.sum()):
        model = problem.zeros()

    def offsets_of(margins: Array) -> Array:
        return least_loss(problem.rows, margins).offsets if known is None else known

    return model, _published(problem, qp, model, offsets_of)


def _published(
    problem: KernelMatrixAdapter,
    qp: QuadraticProgram,
    vector: Predictor,
    offsets_of: Callable[[Array], Array],
) -> publication.PublishedPredictor:
    """The predictor with the offsets that a function finds for its margins, by one pass."""
    w = problem.w_of(vector)
    known = qp.examples.bounded_scores(w)
    offsets = offsets_of(problem.margins_of(known[0], vector))
    b = np.atleast_1d(problem.rows.score_offsets(offsets))
    return publication.published(qp, w, b, known=known)


def best_offsets(problem: KernelMatrixAdapter, margins: Array) -> Array:
    """Class offsets that are optimal for these margins under the problem's loss."""
    if problem.upper is not None:
        return softmax.below(problem.upper).respond(problem.rows, margins, 0.0).offsets
    return problem.rows.best_offsets(problem.rows.group_min(margins))


def least_loss(rows: Rows, margins: Array) -> Weights:
    """Softmax weights of the margins, scaled by the factor with the least exponential loss.

    Their offsets are the best intercept of the predictor at that scale, in the units of the given
    margins. Without scaling, the minimiser for small margins would be an intercept that predicts
    the larger class for all examples.

    Parameters
    ----------
    rows : Rows
    margins : ndarray of shape rows.shape

    Returns
    -------
    Weights
    """
    size = float(np.abs(margins[np.isfinite(margins)]).max(initial=0.0)) or 1.0

    def response(log_scale: float) -> Weights:
        return softmax(rows, margins, size * float(np.exp(-log_scale)))

    least = minimize_scalar(
        lambda s: response(s).log_risk, bounds=LOG_SCALES, method="bounded"
    )
    return response(float(least.x))
