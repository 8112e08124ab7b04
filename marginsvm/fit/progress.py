"""The progress of a fit: the best bounds so far, the vectors that gave them, and what is proved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certificate.proof import FLOATS, Proof
from marginsvm.problem.adapter import KernelMatrixAdapter, Predictor
from marginsvm.problem.matrix import FLOAT64
from marginsvm.problem.rows import Intervals, OutputRows

# Difference of two entries of a vector per unit of its mass (in radii) that no rounding makes, in
# float64 and in float32: it shows that a warm start was given other data.
OTHER_DATA, OTHER_DATA_IN_SINGLE = 1e-9, 1e-3


@dataclass(slots=True)
class Candidate:
    """A vector of a round, and what is known of it for its bounds.

    Attributes
    ----------
    vector : Predictor
        A Vector, where it is used for an upper bound: only combinations of rows give one.
    mass : float
        Sum of its coefficients (dimensionless). If it is positive, the norm over the mass is an
        upper bound; 0: the vector is not used for one.
    min_margin : float or None
        Its smallest margin (units of the radius). If it is known, the margin over the norm is a
        lower bound; None: the vector is not used for one.
    fallback : bool
        Whether it may be the model of a fit that finds no separator.
    offsets : ndarray of shape (n_classes,) or None
        Its intercept as that model, as class offsets. None: that of the least exponential loss, at
        the scale of the predictor where this loss is least.

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


@dataclass
class Progress:
    """The progress of a fit. Rounds change it all at once, when they have ended.

    Attributes
    ----------
    state : object
        The state of the algorithm, a value.
    C, radius, loss, nu, signs, weights, intervals
        Those of the problem and of its rows, by which it is known again.
    n_iter : int
        Rounds played.
    lower, upper : float
        Best bounds so far (units of the radius), as computed in rounds, with their rounding.
    best, proof : Candidate or None
        The candidates that gave ``lower`` and ``upper``.
    fallback : Candidate or None
        The latest candidate with ``fallback=True``: the model where nothing separates.
    violation : float
        Largest distance of a score of the best predictor from its interval (units of the targets).
    error : float or None
        What is compared with ``tol`` where scores are to lie in intervals.
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
        """The same, which later rounds do not change."""
        return replace(self, history=[*self.history])

    def is_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has the soft margin, signs and sample weights of this one."""
        mine: Any = self.C, self.loss, self.nu, self.signs
        others: Any = problem.C, problem.loss, problem.nu, problem.signs
        return all(map(np.array_equal, mine, others)) and self.has_weights_of(problem)

    def has_weights_of(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has the sample weights of this one."""
        return np.array_equal(self.weights, problem.rows.weights)  # type: ignore[arg-type]

    def agrees_with(self, problem: KernelMatrixAdapter) -> bool:
        """Whether the problem has these intervals, and the proof the same image there."""
        mine, proof = self.intervals, self.proof
        others = problem.rows.intervals if isinstance(problem.rows, OutputRows) else None
        if mine is not None and others is not None:
            if not all(map(np.array_equal, (mine.low, mine.high), (others.low, others.high))):
                return False
        elif mine is not others or proof is None:
            return False
        assert proof is not None
        error = OTHER_DATA if problem.precision == FLOAT64 else OTHER_DATA_IN_SINGLE
        change = (problem.refresh(proof.vector) - proof.vector).largest_entry()
        return bool(change <= error * float(np.abs(proof.vector.coef).sum()))
