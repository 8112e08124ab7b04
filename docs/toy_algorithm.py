"""FISTA on the dual: a complete estimator."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from marginsvm.dual_state import Candidate, DualStateMixin
from marginsvm.estimator.declaring import with_parameters
from marginsvm.estimator.parameters import CommonParameters, KernelParameters
from marginsvm.kernel_matrix.responses import euclidean


@dataclass(frozen=True)
class State:
    t: int
    q: Any  # the distribution, as a vector A^T q
    y: Any  # q and its momentum
    total: Any  # sum of all y
    seen: Any = None  # y of the last round, which its pass measured


@with_parameters
class DualFista(CommonParameters, KernelParameters, DualStateMixin, BaseEstimator):
    """Projected gradient on ||A^T q||^2 / 2, with momentum (Beck and Teboulle, 2009)."""

    max_iter: int = 1_000

    def _start(self, data):
        q = data.respond(data.zeros()).vector  # the uniform distribution
        return State(0, q, q, data.zeros())

    def _round(self, data, state):
        project = partial(euclidean, centre=data.coefficients(state.y))
        answer = data.respond(state.y, 1.0, project)  # one pass; rows are at most 1 long
        q, t, total = answer.vector, state.t + 1, state.total + state.y
        y = q + (t - 1) / (t + 2) * (q - state.q)
        seen = Candidate(state.y, worst=answer.weights.worst)
        return State(t, q, y, total, seen)

    def _candidates(self, data, state):
        yield state.seen  # a lower bound: the worst margin of y over its norm
        yield Candidate(state.q, mass=1.0)  # an upper bound: the norm of A^T q
        yield Candidate(state.total, fallback=True)  # the model where nothing separates
