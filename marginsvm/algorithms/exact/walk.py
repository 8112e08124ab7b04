"""Soft margins of the same examples for one C after another, each from the one before it.

Neither bounds that hold with all rounding nor a choice of methods: this is for cross-validation,
where held-out examples have the last word. What does not depend on C is computed once: the units,
Gram matrices, second moments of rows that stay active.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import best_bounds
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems.gram import ByProducts
from marginsvm.algorithms.exact.systems.system import System
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter, about_the_mean
from marginsvm.rows import Rows

# Newton steps for each C at most.
_STEPS_FOR_COST = 15
# Steps for each C before one that lowers the objective by less than the tolerance is the last: next
# to a separator, where C is large, more would close the gap, but hardly change the predictor.
_LEAST_STEPS = 3


@dataclass(frozen=True)
class Solution:
    """A soft margin's solution, up to a gap.

    Attributes
    ----------
    coef : ndarray of shape (1, n_coefs) or (n_classes, n_coefs)
        The predictor in the user's units; in the span of the examples, their coefficients.
    intercept : ndarray of shape (1,) or (n_classes,)
    weights : ndarray of shape rows.shape
        The data player's weights (only their ratios matter).
    gap : float
        Relative gap between the bounds on the margin.
    """

    coef: Array
    intercept: Array
    weights: Array
    gap: float


class Walk:
    """The solutions for several C, in the order in which they are asked for.

    Parameters
    ----------
    problem : KernelMatrixAdapter
        Without slack.
    system : System
        Solves Newton's systems.
    """

    def __init__(self, problem: KernelMatrixAdapter, system: System) -> None:
        self._hard, self._system = problem, system
        self._last: Newton | None = None

    def solve(self, C: float, tol: float) -> Solution:
        """Newton's method from the last solution."""
        problem = self._hard.softened(C)
        newton, before = self._begun(problem), np.inf
        for steps in range(_STEPS_FOR_COST):
            idle = steps >= _LEAST_STEPS and before - newton.objective <= tol * newton.objective
            if idle or _gap(problem, newton) <= tol or newton.settled:
                break
            before = newton.objective
            newton, _ = newton.advance(problem, tol)
        self._last, self._system = newton, newton.system
        coef, intercept = self._model(newton)
        return Solution(coef, intercept, newton.weights, _gap(problem, newton))

    def _begun(self, problem: KernelMatrixAdapter) -> Newton:
        """The last predictor, with the intercept that is best for it."""
        assert problem.slack is not None
        slack, system = Slack(problem.slack), self._system
        if (last := self._last) is None:
            return Newton.start(problem, slack, system)
        return Newton.at(problem, slack, system, last.w, last.b, last.margins)

    def _model(self, newton: Newton) -> tuple[Array, Array]:
        """Coefficients and intercept in the user's units."""
        zero = np.zeros(max(1, self._hard.rows.n_offsets))
        coef, intercept = self._hard.predictor(newton.w, zero)
        return np.atleast_2d(coef), np.atleast_1d(intercept + newton.b)


class GramWalk(Walk):
    """The same in the span of the examples.

    Parameters
    ----------
    K : ndarray of shape (n_examples, n_examples)
        The Gram matrix, which is overwritten.
    rows : Rows
    """

    def __init__(self, K: Array, rows: Rows) -> None:
        self._mean = K.mean(axis=0)
        problem = GramAdapter(None, about_the_mean(K, rows), rows)
        super().__init__(problem, ByProducts.of(problem))

    def _model(self, newton: Newton) -> tuple[Array, Array]:
        V, intercept = super()._model(newton)
        if not self._hard.rows.balanced:
            return V, intercept
        V = V - V.mean(axis=1)[:, None]  # of examples about their mean
        return V, intercept - V @ self._mean


def _gap(problem: KernelMatrixAdapter, newton: Newton) -> float:
    """Relative gap between the bounds on the margin."""
    lower, upper = best_bounds(problem, newton.candidates)
    return max(1.0 - lower / upper, 0.0) if upper > 0.0 else 1.0
