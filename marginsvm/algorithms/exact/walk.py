"""Soft margins of the same examples for one C after another, each from the solutions before it.

Neither bounds that hold with all rounding nor a choice of methods: this is for cross-validation,
where held-out examples have the last word. What does not depend on C is computed once: the units,
Gram matrices, second moments of rows that stay active, the spans of preconditioners.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginsvm._rounding import inner
from marginsvm._typing import Array
from marginsvm.algorithms.exact.gram_newton import Gram, GramNewton, Leading, Point, Span
from marginsvm.algorithms.exact.method import MAX_ROWS
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.span import best_combination
from marginsvm.algorithms.exact.systems import System
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Rows

# Solutions whose span the next is looked for in: with three, it contains the parabola through them.
_SPAN = 3
# Newton steps for each C at most, and those after which a decrease of the objective by less than
# the tolerance ends them. Next to a separator, where C is large, more may be needed for the gap,
# but the predictor hardly changes any more; once that was so, a single such step ends them.
_STEPS, _FEW = 15, 4
# Operations of a working set of m rows, about m^3 with its rounds, in the time in which a product
# reads one number of a Gram matrix.
_READ = 5.0
# Products with the Gram matrix in a step at most, and directions in which a system is solved
# directly, as a share of the examples: next to a product, that then takes little time.
_PRODUCTS, _SHARE = 100, 4


@dataclass(frozen=True)
class Solution:
    """A soft margin's solution, up to a gap.

    Attributes
    ----------
    coef : ndarray of shape rows.score_shape[1:] + (n_features,) or rows.score_shape
        The predictor in the user's units; in the span of the examples, their coefficients.
    margins : ndarray of shape rows.shape
        With its intercept.
    weights : ndarray of shape rows.shape
        The data player's weights (only their ratios matter).
    gap : float
        Relative gap between the bounds on the margin, rounding neglected.
    laboured : bool
        Whether a working set of the rows with weight would have taken less time.
    """

    coef: Array
    margins: Array
    weights: Array
    gap: float
    laboured: bool = False


@dataclass(frozen=True)
class _Proof:
    """Weights on the rows, by the numbers from which they bound the margin for any C.

    Attributes
    ----------
    mass : float
        Their sum.
    squared : float
        Squared norm of their image.
    slack : float
        Squared length in the slack coordinates that rows have for C = 1.
    """

    mass: float
    squared: float
    slack: float

    def bound(self, C: float) -> float:
        """Upper bound on the margin."""
        return float(np.sqrt(self.squared + self.slack / C)) / max(self.mass, 1e-300)


class Walk(ABC):
    """The solutions for several C, in the order in which they are asked for.

    Attributes
    ----------
    rows : Rows
    """

    rows: Rows

    def __init__(self) -> None:
        self._last: list[tuple[Any, Array]] = []  # predictors, and their margins
        self._proofs: list[_Proof] = []  # one for each C so far
        self._C, self._patience = np.nan, _FEW

    def solve(self, C: float, tol: float) -> Solution:
        """Newton's method from the best predictor in the span of the last solutions."""
        slack = Slack(self._slack(C))
        if self._last:
            predictors = [predictor for predictor, _ in self._last]
            products = np.array([[self._dot(v, w) for w in predictors] for v in predictors])
            c, known = best_combination(self.rows, slack, [m for _, m in self._last], products)
            parts = [factor * v for factor, v in zip(c, predictors, strict=True)]
            state = self._at(slack, sum(parts[1:], parts[0]), known)
        else:
            state = self._first(slack)
        before = np.inf
        for steps in range(_STEPS):
            objective = sum(self._lengths(state))
            idle = steps >= self._patience and before - objective <= tol * objective
            if idle or self._gap(state, C) <= tol or state.settled:
                break
            state, before = self._step(state, tol), objective
        self._keep(state, C)
        self._last = [*self._last, self._seen(state)][-_SPAN:]
        self._proofs.append(self._proof(state, C))
        if self._gap(state, C) > tol:
            self._patience = 1
        weights, margins = self._weights(state), self._last[-1][1]
        gap, laboured = self._gap(state, C), self._laboured(state)
        return Solution(self._coef(state), margins, weights, gap, laboured)

    def _laboured(self, state: Any) -> bool:
        """Whether a working set of the rows with weight would have taken less time."""
        return False

    @abstractmethod
    def _slack(self, C: float) -> Array:
        """Squares of the rows' extra coordinates for another C, which is the present one now."""

    @abstractmethod
    def _dot(self, v: Any, w: Any) -> float:
        """Inner product of two predictors, without intercepts."""

    @abstractmethod
    def _first(self, slack: Slack) -> Any:
        """An iterate without anything known."""

    @abstractmethod
    def _at(self, slack: Slack, predictor: Any, margins: Array) -> Any:
        """The iterate at a predictor with these margins."""

    @abstractmethod
    def _step(self, state: Any, tol: float) -> Any:
        """The next iterate."""

    @abstractmethod
    def _seen(self, state: Any) -> tuple[Any, Array]:
        """Predictor and margins of an iterate."""

    @abstractmethod
    def _keep(self, state: Any, C: float) -> None:
        """Keep of a solution what the next C can use."""

    @abstractmethod
    def _coef(self, state: Any) -> Array:
        """Coefficients of an iterate in the user's units."""

    @abstractmethod
    def _weights(self, state: Any) -> Array:
        """The data player's weights."""

    @abstractmethod
    def _lengths(self, state: Any) -> tuple[float, float]:
        """Squared norm of the predictor, and squared length of its slack coordinates."""

    @abstractmethod
    def _proof(self, state: Any, C: float) -> _Proof:
        """What the weights of an iterate prove."""

    def _gap(self, state: Any, C: float) -> float:
        """Relative gap; weights that were found for another C bound the margin as well."""
        squared, slack = self._lengths(state)
        lower = 1.0 / np.sqrt(max(squared + slack, 1e-300))
        upper = min(proof.bound(C) for proof in [*self._proofs, self._proof(state, C)])
        return max(1.0 - lower / upper, 0.0) if upper > 0.0 else 1.0


class FeatureWalk(Walk):
    """With features: Newton's method in as many unknowns.

    Parameters
    ----------
    problem : KernelMatrixAdapter
        Without slack.
    system : System
        Solves Newton's systems.
    """

    def __init__(self, problem: KernelMatrixAdapter, system: System) -> None:
        super().__init__()
        self.rows, self._hard, self._system = problem.rows, problem, system

    def _slack(self, C: float) -> Array:
        self._system = self._system.anew(C / self._C)
        self._problem = self._hard.softened(C)
        slack = self._problem.slack
        assert slack is not None
        return slack

    def _dot(self, v: Array, w: Array) -> float:
        return inner(v, w)

    def _first(self, slack: Slack) -> Newton:
        return Newton.start(self._problem, slack, self._system)

    def _at(self, slack: Slack, predictor: Array, margins: Array) -> Newton:
        return Newton.at(self._problem, slack, self._system, predictor, margins)

    def _step(self, state: Newton, tol: float) -> Newton:
        return state.advance(self._problem, tol)[0]

    def _seen(self, state: Newton) -> tuple[Array, Array]:
        return state.separator.image, state.margins

    def _keep(self, state: Newton, C: float) -> None:
        self._system, self._C = state.system, C

    def _coef(self, state: Newton) -> Array:
        zero = np.zeros(max(1, self.rows.n_groups))
        return self._problem.predictor(state.separator, zero)[0]

    def _weights(self, state: Newton) -> Array:
        return state.separator.coef

    def _lengths(self, state: Newton) -> tuple[float, float]:
        w, u = state.separator.image, state.separator.coef
        return inner(w, w), float(np.sum(state.slack.s * u * u))

    def _proof(self, state: Newton, C: float) -> _Proof:
        proof, slack = state.proof, C * self._lengths(state)[1]
        return _Proof(proof.mass, inner(proof.image, proof.image), slack)


class GramWalk(Walk):
    """In the span of the examples: Newton's method with their Gram matrix.

    Parameters
    ----------
    K : ndarray of shape (n_examples, n_examples)
        The Gram matrix, which is overwritten.
    rows : Rows
    """

    def __init__(self, K: Array, rows: Rows) -> None:
        super().__init__()
        self.rows = rows
        self._gram = Gram.of(K, rows, Slack(np.ones(1)))
        nothing = np.zeros(rows.shape)  # for which it will be outdated
        self._leading = Leading(Span.of(self._gram, _SHARE), nothing, np.zeros((0, 0)))

    def _slack(self, C: float) -> Array:
        weights = self.rows.weights
        each = np.ones(1) if weights is None else weights
        return self.rows.per_example(0.5 / C / each)

    def _dot(self, v: Point, w: Point) -> float:
        return float(np.vdot(v.V, w.F))

    def _first(self, slack: Slack) -> GramNewton:
        zero = np.zeros(self.rows.score_shape)
        gram = replace(self._gram, slack=slack)
        state = GramNewton.start(gram, zero, np.zeros(self.rows.score_shape[1:]))
        return replace(state, leading=self._leading)

    def _at(self, slack: Slack, predictor: Point, margins: Array) -> GramNewton:
        state = GramNewton.at(replace(self._gram, slack=slack), predictor)
        return replace(state, leading=self._leading)

    def _step(self, state: GramNewton, tol: float) -> GramNewton:
        return state.advanced(most=_PRODUCTS)

    def _seen(self, state: GramNewton) -> tuple[Point, Array]:
        return state.w, self.rows.margins(state.w.scores)

    def _keep(self, state: GramNewton, C: float) -> None:
        self._leading, self._C = state.leading or self._leading, C

    def _coef(self, state: GramNewton) -> Array:
        V = state.w.V  # on examples about their mean, where rows are balanced
        return np.asarray(V - V.mean(axis=0)) if self.rows.balanced else V

    def _weights(self, state: GramNewton) -> Array:
        return state.u

    def _laboured(self, state: GramNewton) -> bool:
        m, read = np.count_nonzero(state.u), state.products * state.w.V.size * len(state.w.V)
        return bool(m <= MAX_ROWS and _READ * read > float(m) ** 3)

    def _lengths(self, state: GramNewton) -> tuple[float, float]:
        u = state.u
        return self._dot(state.w, state.w), float(np.sum(state.gram.slack.s * u * u))

    def _proof(self, state: GramNewton, C: float) -> _Proof:
        squared, slack = self._dot(state.proof, state.proof), C * self._lengths(state)[1]
        return _Proof(float(state.u.sum()), squared, slack)
