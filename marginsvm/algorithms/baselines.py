"""Methods that the papers compare with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import parameter, with_parameters
from marginsvm.estimator.parameters import CommonParameters, KernelParameters, NormalizeParameters
from marginsvm.fit import Algorithm, Candidate, Requirements
from marginsvm.kernel_matrix import BestResponse, KernelMatrixAdapter
from marginsvm.kernel_matrix.responses import WorstRow, worst_row
from marginsvm.rows import Vector


@dataclass(frozen=True)
class PerceptronState:
    """``w``, its mass, the average of all ``w`` in ``t`` rounds, and the best response to ``w``."""

    w: Vector
    average: Vector
    mass: float
    best_response: BestResponse
    t: int = 0


@dataclass(frozen=True)
class Perceptron(Algorithm):
    """Supergradient ascent on the smallest margin: add the row that has it, again and again.

    Attributes
    ----------
    projected : bool
        Whether steps fall as 1 / sqrt(t), and ``w`` stays in the unit ball.
    """

    projected: bool = False

    def start(self, problem: KernelMatrixAdapter) -> PerceptronState:
        """Begin at zero."""
        w = problem.zeros()
        return PerceptronState(w, w, 0.0, self.respond(problem, w, None))

    def step(self, problem: KernelMatrixAdapter, state: PerceptronState) -> PerceptronState:
        """Add the row on which ``w`` has its smallest margin."""
        t = state.t + 1
        step = 1.0 / np.sqrt(t) if self.projected else 1.0
        w, mass = state.w + step * state.best_response.vector, state.mass + step
        if self.projected and (length := problem.norm(w)) > 1.0:
            w, mass = w / length, mass / length
        average = state.average + (w - state.average) / t
        return PerceptronState(w, average, mass, self.respond(problem, w, state.best_response), t)

    def respond(
        self, problem: KernelMatrixAdapter, w: Vector, last: BestResponse | None
    ) -> BestResponse:
        """The row to be added to ``w``, where ``last`` is the one that was added before."""
        return problem.respond(w, response=worst_row)

    def candidates(
        self, problem: KernelMatrixAdapter, state: PerceptronState
    ) -> Iterator[Candidate]:
        """The sum gives both bounds; the average is the model where nothing separates."""
        yield Candidate(state.w, state.mass, state.best_response.weights.min_margin)
        yield Candidate(state.average, fallback=True)


STEPS = {"constant": Perceptron(), "cotter": Perceptron(projected=True)}


@dataclass(frozen=True)
class FirstWorstRow(Perceptron):
    """Algorithm 3 of Ramdas and Pena (NKP): of rows with equal margins, the first is added."""

    requires = Requirements(in_order=True)

    def respond(
        self, problem: KernelMatrixAdapter, w: Vector, last: BestResponse | None
    ) -> BestResponse:
        """The first of the rows that have the smallest margin."""
        return problem.respond(w, response=WorstRow(first=True))


@with_parameters
class BatchPerceptron(CommonParameters, KernelParameters, DualStateMixin, BaseEstimator):
    r"""Batch perceptron: supergradient ascent on the smallest margin.

    Every round adds the row on which the predictor has its smallest margin. If nothing separates
    the classes, the predictors of the rounds do not converge, and their average is the model.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised. Each round then adds one row of
        each class, that of smallest margin (more than two classes: one row of each group along
        a cycle of groups).
    steps : {"constant", "cotter"}
        ``"constant"``: the row is added as it is, as by Rosenblatt. ``"cotter"``: round t adds
        1 / sqrt(t) of it (relative to the largest norm of an example), and the predictor is
        projected onto the unit ball, as by Cotter et al. Their predictor is the average of all
        rounds; here it is the model if nothing separates the classes.

    Notes
    -----
    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`w_t`              ``w``; ``mass`` is the sum of its coefficients
    :math:`\bar w`           ``average``
    supergradient at w       ``problem.respond(w, response=worst_row)``
    :math:`\eta_0`           1: the radius is the unit
    =======================  ==========================================================

    With ``steps="constant"``, w separates after :math:`1 / \gamma^2` rounds. With
    ``steps="cotter"``, the smallest margin of the average of T rounds is at least
    :math:`\gamma - 3 / \sqrt T`.

    References
    ----------
    A. Cotter, S. Shalev-Shwartz, N. Srebro. The Kernelized Stochastic Batch Perceptron.
    ICML 2012. Algorithm 1, without slack, with the worst row in place of a random one. Baseline
    of figures 1 to 3 of Ji et al. (2021).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import BatchPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> BatchPerceptron(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    steps: str = parameter(StrOptions(set(STEPS)), default="constant")

    def _algorithm(self) -> Perceptron:
        return STEPS[self.steps]


@with_parameters
class NormalizedKernelPerceptron(NormalizeParameters, BatchPerceptron):
    r"""Normalized (kernel) perceptron (NKP): the average of the rows added so far.

    It is the batch perceptron with a rule for ties: of several rows with the smallest margin, it
    adds the first. In the paper, rows are normalized, as with
    ``normalize=True, fit_intercept=False``.
    After k rounds its ``w`` is k times
    :math:`\alpha_k = (1 - \theta) \alpha_{k-1} + \theta e_j` with :math:`\theta = 1 / k`.
    It separates within :math:`1 / \rho_K^2` rounds (without
    ``normalize``, with the best margin divided by the largest norm of a row in place of
    :math:`\rho_K`) and then, as a subgradient method, converges to the maximum margin.

    Notes
    -----
    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`w_k, \alpha_k`    ``w / k``: one vector holds both
    :math:`p(\alpha_k)`      ``problem.respond(w, response=WorstRow(first=True))``
    :math:`\theta_k`         1 / (k + 1)
    =======================  ==========================================================

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Algorithms 2 (linear) and 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import NormalizedKernelPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> NormalizedKernelPerceptron(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    steps: str = field(default="constant", init=False)  # no parameter of this estimator

    def _algorithm(self) -> Perceptron:
        return FirstWorstRow()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where classes overlap, the smallest margin is always between the same few classes, and
        # the others never get a coefficient: a property of the method, not an error.
        tags.classifier_tags.poor_score = True
        return tags


@dataclass(frozen=True)
class VonNeumannState:
    """``p``, the sum of all ``p`` so far, and the best response to ``p``."""

    p: Vector
    total: Vector
    best_response: BestResponse


@dataclass(frozen=True)
class VonNeumann(Algorithm):
    """Algorithm 5 of Ramdas and Pena (NVN)."""

    def start(self, problem: KernelMatrixAdapter) -> VonNeumannState:
        """Begin at the uniform distribution."""
        p = problem.respond(problem.zeros()).vector
        return VonNeumannState(p, p, problem.respond(p, response=worst_row))

    def step(self, problem: KernelMatrixAdapter, state: VonNeumannState) -> VonNeumannState:
        """Move towards the row of smallest margin, by the best step length."""
        p, row = state.p, state.best_response.vector
        away = p - row
        length = problem.dot(away, away)
        theta = min(max(problem.dot(p, away) / length, 0.0), 1.0) if length > 0 else 0.0
        p = (1.0 - theta) * p + theta * row
        return VonNeumannState(p, state.total + p, problem.respond(p, response=worst_row))

    def candidates(
        self, problem: KernelMatrixAdapter, state: VonNeumannState
    ) -> Iterator[Candidate]:
        """``p``, as a predictor and a proof; the sum of the iterates is the fallback."""
        yield Candidate(state.p, 1.0, state.best_response.weights.min_margin)
        yield Candidate(state.total, fallback=True)


@with_parameters
class VonNeumannClassifier(NormalizeParameters, KernelParameters, DualStateMixin, BaseEstimator):
    r"""Normalized von Neumann algorithm (NVN): Frank-Wolfe towards the point nearest to 0.

    Every round moves the point p of the convex hull of the rows towards the row of smallest margin,
    by an exact line search. If nothing separates the classes, the sum of these points is the model.

    Notes
    -----
    =====================  ============================================================
    paper                  code
    =====================  ============================================================
    :math:`p_k, w_k`       ``p``: one vector holds both
    :math:`j`              ``worst_row``; with an intercept, one row of each class
    :math:`\theta_k`       ``theta``
    =====================  ============================================================

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Algorithm 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import VonNeumannClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> VonNeumannClassifier(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    def _algorithm(self) -> VonNeumann:
        return VonNeumann()
