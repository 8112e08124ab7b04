"""Raj and Bach's Algorithms 1 and 2 for scores that are to lie in intervals (their eq. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marginsvm.algorithms.dual_ascent import ProximalSequences, draw, draw_seed
from marginsvm.algorithms.dual_newton import NewtonTimetable
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.infeasibility import infeasibility
from marginsvm.certify.interval_bounds import Fit, Weighed, measured_fit, weighed
from marginsvm.fit import Algorithm, Requirements
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Vector, intervals_of

# Epochs after which the acceleration begins again, times 1, 2, 1, 4, 1, 2, 1, 8 and so on: the
# powers of two of Fercoq and Qu, by which the rate is linear without knowing the strong
# convexity, where there is some. In twenty epochs, the bound of eq. (8) falls by a hundred.
_PERIOD = 20
# Growth of the bound on the norm that calls for another try to prove infeasibility.
_LONGER_BOUND = 1.25
_FIRST_TRY = 10  # epochs before the first, in which a model is found for the case that none fits
_MODEL_EPOCHS = 100  # epochs for the model where none fits
# Soft margin parameter of that model, in units of 1 / radius^2: a row would be fitted up to a
# hundredth of its distance if it were alone, and the dual is strongly convex enough for its rate.
_MODEL_COST = 50.0


@dataclass(frozen=True)
class AscentState:
    """The sequences after ``t`` epochs, and the best that was measured of them.

    Attributes
    ----------
    sequences : ProximalSequences
    seed : int
        With t, it determines the coordinates of an epoch.
    t : int
    begun, n_runs : int
        Epoch in which the acceleration began, and how many times it has.
    slope : float
        Gain over length of the answer: the bound that it proves, but for rounding.
    next_measurement : int
    fit : Fit
        The best predictor so far, see ``error``.
    proof : Weighed
        The largest bound so far.
    zero : float
        Violation of the zero predictor.
    next_try : float
        Bound from which on it is tried to prove that no predictor fits.
    infeasible : bool
        Whether ``proof`` has weights that prove it.
    newton : NewtonTimetable
        When a step of Newton's method, on all rows, is due.
    """

    sequences: ProximalSequences
    seed: int
    fit: Fit
    proof: Weighed
    zero: float
    t: int = 0
    begun: int = 0
    n_runs: int = 1
    slope: float = 0.0
    next_measurement: int = 1
    next_try: float = 0.0
    infeasible: bool = False
    newton: NewtonTimetable = field(default_factory=NewtonTimetable)

    def error(self, fit: Fit) -> float:
        """Relative gap of a predictor, or its violation relative to ``zero`` if that is larger.

        With a soft margin, slack makes up for the violation.
        """
        return fit.error(self.proof, self.zero)

    def with_best(self, *fits: Fit) -> AscentState:
        """Keep the predictor of the least error; of two that are equal, the less costly one."""
        best = min(self.fit, *fits, key=lambda fit: (self.error(fit), fit.cost))
        return replace(self, fit=best)


@dataclass(frozen=True)
class IntervalAscent(Algorithm):
    """Algorithms 1 (plain) and 2 (accelerated), by epochs; parameters as of ``DualLp``.

    Bounds are computed each time the number of epochs has grown by a tenth.
    """

    accelerated: bool = True
    sampling: str = "permutation"
    restart: bool = True
    random_state: Any = None

    @property
    def requires(self) -> Requirements:
        return Requirements(by_passes=False)

    def start(self, problem: KernelMatrixAdapter) -> AscentState:
        """Begin at zero."""
        zero, intervals = problem.zeros(), intervals_of(problem.rows)
        return AscentState(
            ProximalSequences.at(problem, intervals, zero),
            draw_seed(self.random_state),
            measured_fit(problem, zero),
            weighed(problem, zero.coef),
            intervals.farthest,
        )

    def candidates(self, problem: KernelMatrixAdapter, state: AscentState) -> Iterator[Candidate]:
        fit, proof = state.fit, state.proof
        norm_bound = np.inf if state.infeasible else proof.norm
        yield Candidate(proof.vector, precise=True, norm_bound=norm_bound, proof=proof)
        yield Candidate(fit.vector, norm=fit.norm, fit=fit, fallback=True)

    def step(self, problem: KernelMatrixAdapter, state: AscentState) -> AscentState:
        """Play an epoch, or a step of Newton's method, and measure the answer where that is due."""
        state = self._moved(problem, state)
        return self.measured(problem, state) if state.t >= state.next_measurement else state

    def _moved(self, problem: KernelMatrixAdapter, state: AscentState) -> AscentState:
        """Play an epoch, as many coordinates as rows, or a step of Newton's method."""
        from marginsvm.algorithms.compiled import interval_steps as loops

        n, sequences, intervals = problem.n_rows, state.sequences, intervals_of(problem.rows)
        # with the strong convexity known, no restart is needed for the linear rate
        restarts = self.accelerated and self.restart and sequences.mu == 0.0
        if restarts and state.newton.is_due(n):
            return self._by_newton(problem, state)
        order = draw(state.seed, state.t, np.arange(n), n, self.sampling)
        if self.accelerated:
            sequences = sequences.epoch(problem, order)
        else:
            alpha = sequences.answer.copy()
            loops.ascend(problem, order, intervals, alpha)
            sequences = sequences.begun(alpha, n)
        slope, t = _slope(problem, sequences.answer), state.t + 1
        if restarts:
            falls = slope < state.slope and t > state.begun + 1
            if falls or t >= state.begun + _PERIOD * (state.n_runs & -state.n_runs):
                sequences = sequences.begun(problem.refresh(sequences.answer), n)
                state = replace(state, begun=t, n_runs=state.n_runs + 1)
        newton = state.newton.after(problem, n)
        return replace(state, sequences=sequences, slope=slope, t=t, newton=newton)

    def _by_newton(self, problem: KernelMatrixAdapter, state: AscentState) -> AscentState:
        """Begin again at the point that a step of Newton's method gives, and measure it."""
        intervals = intervals_of(problem.rows)
        v = problem.combine(intervals.admissible(state.sequences.answer.coef))
        better, newton = state.newton.step(problem, intervals, v, np.arange(problem.n_rows))
        t = state.t + 1
        if better is v:  # nothing was found, and the acceleration goes on
            return replace(state, t=t, newton=newton)
        v = problem.refresh(better)
        return replace(
            state,
            sequences=state.sequences.begun(v, problem.n_rows),
            slope=_slope(problem, v),
            t=t,
            begun=t,
            next_measurement=t,
            newton=newton,
        )

    def measured(self, problem: KernelMatrixAdapter, state: AscentState) -> AscentState:
        """Measure the answer: the bound that it proves, and its predictor.

        Another predictor is that of the largest dual objective along the ray of the answer.
        """
        alpha = intervals_of(problem.rows).admissible(state.sequences.answer.coef)
        proof = weighed(problem, alpha)
        squared = problem.dot(proof.vector, proof.vector)
        best = max(proof.gain, 0.0) / squared if squared > 0.0 else 0.0
        scales = (best, float(np.abs(alpha).sum()))
        fits = [measured_fit(problem, scale * proof.vector) for scale in scales]
        state = replace(
            state,
            proof=max(state.proof, proof, key=lambda proof: proof.norm),
            next_measurement=max(state.t + 1, int(1.1 * state.t)),
        ).with_best(*fits)
        soft, early = problem.slack is not None, state.t < _FIRST_TRY
        if soft or early or not state.proof.norm > state.next_try:
            return state
        decisive = infeasibility(problem, state.proof)
        state = replace(state, next_try=_LONGER_BOUND * state.proof.norm)
        if decisive is None:
            return state
        fit = min(state.fit, self._softened(problem), key=lambda fit: fit.cost)
        return replace(state, fit=fit, proof=decisive, infeasible=True)

    def _softened(self, problem: KernelMatrixAdapter) -> Fit:
        """A predictor for the case that none fits: that of a soft tube, whose slack is dear."""
        soft = problem.softened(_MODEL_COST / problem.radius**2)
        state = self.start(soft)
        for _ in range(_MODEL_EPOCHS):
            state = self._moved(soft, state)
        return measured_fit(problem, self.measured(soft, state).fit.vector)


def _slope(problem: KernelMatrixAdapter, answer: Vector) -> float:
    """Gain over length: the largest value of the dual along a ray, up to a square and a half."""
    length, intervals = problem.norm(answer), intervals_of(problem.rows)
    gain = float(intervals.terms(intervals.admissible(answer.coef)).sum())
    return gain / length if length > 0.0 else 0.0
