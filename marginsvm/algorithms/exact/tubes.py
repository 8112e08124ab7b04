"""The exact solver for scores that are to lie in intervals: each output for itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.memory_needed import refuse_what_cannot_fit
from marginsvm.algorithms.exact.method import Turn
from marginsvm.algorithms.exact.stage import Stage
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.interval_bounds import (
    Fit,
    Weighed,
    measured_fit,
    outputs_apart,
    weighed,
)
from marginsvm.fit import Algorithm, Requirements
from marginsvm.fit.infeasibility import infeasibility
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.problem.threads import single_threaded_blas
from marginsvm.rows import Predictor, output_rows

# Price of slack (over the radius squared) of the soft tube whose predictor is published where none
# fits the hard one: violations are then nearly as small as they can be. And rounds that it gets.
_DEAR, _SOFT_TUBE_ROUNDS = 1e4, 20


@dataclass(frozen=True)
class Output:
    """One output: a method at work, and the best that it has found.

    Attributes
    ----------
    stage : Stage
    fit : Fit
        Its predictor with the least error.
    proof : Weighed
        Its weights with the largest bound.
    infeasible : bool
        Whether these prove that no predictor fits.
    """

    stage: Stage
    fit: Fit
    proof: Weighed
    infeasible: bool = False

    def error(self, zero: float) -> float:
        """Relative gap between both, or the violation relative to that of zero."""
        return self.fit.error(self.proof, zero)


State = tuple[Output, ...]


@dataclass(frozen=True)
class Tubes(Algorithm):
    """The exact solver: in every round, a round of the method that suits each output.

    Attributes
    ----------
    tol : float
        Relative gap of the fit (dimensionless); outputs that have reached it are left as they are.
    portfolio : Portfolio
        Thresholds between the methods.
    """

    tol: float = 1e-6
    portfolio: Portfolio = field(default_factory=Portfolio)

    requires = Requirements(every_row=False)

    @single_threaded_blas()
    def start(self, problem: KernelMatrixAdapter) -> State:
        """Choose a method for problems of this shape, and measure the zero predictor."""
        refuse_what_cannot_fit(problem, self.portfolio)
        if flaw := problem.flaw():
            raise ValueError(flaw)
        return tuple(self._begun(one) for one in self._problems(problem))

    def _begun(self, one: KernelMatrixAdapter) -> Output:
        zero = one.zeros()
        stage = Stage.first(one, self.portfolio)
        return Output(stage, measured_fit(one, zero), weighed(one, zero.coef))

    def _problems(self, problem: KernelMatrixAdapter) -> list[KernelMatrixAdapter]:
        """Those of the outputs, made once."""
        if self not in problem.models:
            apart = outputs_apart(output_rows(problem.rows))
            problem.models[self] = [problem.alone(j) for j in apart] or [problem]
        found: list[KernelMatrixAdapter] = problem.models[self]
        return found

    @single_threaded_blas()
    def step(self, problem: KernelMatrixAdapter, state: State) -> State:
        """A round of each output that is not certified yet."""
        pairs = zip(self._problems(problem), state, strict=True)
        after = tuple(self._advanced(one, output) for one, output in pairs)
        same = all(a is b for a, b in zip(after, state, strict=True))
        return state if same else after

    def _advanced(self, one: KernelMatrixAdapter, output: Output) -> Output:
        zero = output_rows(one.rows).farthest
        if output.infeasible or output.error(zero) <= 0.5 * self.tol:
            return output
        stage = output.stage.advance(one, self.tol, self.portfolio)
        if stage is output.stage:
            return output
        fits = [c.fit for c in stage.candidates if c.fit is not None]
        proofs = [c.proof for c in stage.candidates if c.proof is not None]
        proof = max([output.proof, *proofs], key=lambda proof: proof.norm)
        fit = min([output.fit, *fits], key=lambda fit: (fit.error(proof, zero), fit.cost))
        now = replace(output, stage=stage, fit=fit, proof=proof)
        ended = Turn.STALLED in stage.turn and now.error(zero) > self.tol
        return self._examined(one, now) if ended and np.isinf(one.C) else now

    def _examined(self, one: KernelMatrixAdapter, output: Output) -> Output:
        """The same, with a proof that no predictor fits, if there is one near the weights."""
        decisive = infeasibility(one, output.proof)
        if decisive is None:
            return output
        soft = one.softened(_DEAR / one.radius**2)
        dear = self._begun(soft)
        for _ in range(_SOFT_TUBE_ROUNDS):
            dear = self._advanced(soft, dear)
        fits = output.fit, measured_fit(one, dear.fit.vector)
        return replace(
            output, fit=min(fits, key=lambda fit: fit.cost), proof=decisive, infeasible=True
        )

    def candidates(self, problem: KernelMatrixAdapter, state: State) -> Iterable[Candidate]:
        """The predictor of all outputs, and their weights."""
        infeasible = any(output.infeasible for output in state)
        fit, proof = state[0].fit, state[0].proof
        if len(self._problems(problem)) > 1 or self._problems(problem)[0] is not problem:
            fit, proof = self._together(problem, state, infeasible=infeasible)
        bound = np.inf if infeasible else proof.norm
        yield Candidate(proof.vector, precise=True, norm_bound=bound, proof=proof)
        yield Candidate(fit.vector, norm=fit.norm, fit=fit, fallback=True)

    def _together(
        self, problem: KernelMatrixAdapter, state: State, *, infeasible: bool
    ) -> tuple[Fit, Weighed]:
        def stacked(of: str, wanted: list[bool]) -> Array:
            vectors = [getattr(output, of).vector for output in state]
            pairs = zip(vectors, wanted, strict=True)
            return np.stack([v.coef if some else 0.0 * v.coef for v, some in pairs], axis=1)

        images = [output.fit.vector.image for output in state]
        every = [True] * len(state)
        w = Predictor(problem.together(images), stacked("fit", every))
        decisive = [output.infeasible for output in state] if infeasible else every
        return measured_fit(problem, w), weighed(problem, stacked("proof", decisive))

    def moving(self, state: State) -> bool:
        """Whether some method still comes nearer to its own problem's solution."""
        return any(output.stage.nearer for output in state)

    def phase(self, state: State) -> str:
        """The method of the last round of the first output."""
        return state[0].stage.method.name
