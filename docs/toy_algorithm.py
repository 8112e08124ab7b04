"""FISTA on the dual: a complete algorithm, and the estimator that offers it."""

from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from marginsvm.extend import (
    Algorithm,
    Candidate,
    CommonParameters,
    DualStateMixin,
    Euclidean,
    KernelParameters,
    with_parameters,
)


@dataclass(frozen=True)
class State:
    t: int
    q: Any  # the distribution, as a vector A^T q
    y: Any  # q and its momentum
    total: Any  # sum of all y
    measured: Any = None  # y of the last round, with the smallest margin from its pass


class Fista(Algorithm):
    """Projected gradient on ||A^T q||^2 / 2, with momentum (Beck and Teboulle, 2009)."""

    def start(self, problem):
        q = problem.respond(problem.zeros()).vector  # the uniform distribution
        return State(0, q, q, problem.zeros())

    def step(self, problem, state):
        project = Euclidean(centre=state.y.coef)
        # one pass; the norm of a row is at most 1
        best = problem.respond(state.y, 1.0, project)
        q, t, total = best.vector, state.t + 1, state.total + state.y
        y = q + (t - 1) / (t + 2) * (q - state.q)
        measured = Candidate(state.y, min_margin=best.weights.min_margin)
        return State(t, q, y, total, measured)

    def candidates(self, problem, state):
        yield state.measured  # a lower bound: the smallest margin of y over its norm
        yield Candidate(state.q, mass=1.0)  # an upper bound: the norm of A^T q
        yield Candidate(state.total, fallback=True)  # the model where nothing separates


@with_parameters
class DualFista(CommonParameters, KernelParameters, DualStateMixin, BaseEstimator):
    """Maximum-margin classifier by FISTA."""

    max_iter: int = 1_000

    def _algorithm(self):
        return Fista()
