"""Methods that the papers compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginsvm._typing import Array
from marginsvm.dual_state import Candidate, DualStateMixin
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.responses import worst_row


@dataclass(frozen=True)
class PerceptronState:
    """``w``, its mass, the average of all w, and what the last round saw of w."""

    w: Array
    average: Array
    mass: float = 0.0
    seen: Candidate | None = None


class BatchPerceptron(DualStateMixin, BaseEstimator):
    """Batch perceptron: supergradient ascent on the worst margin.

    Every round adds the row that the predictor is worst at. Where nothing separates, the
    iterates wander about the origin, and their average is the model.

    Parameters
    ----------
    C : float, default=inf
        Soft margin (dimensionless); inf asks for a separator.
    kernel, gamma, degree, coef0, kernel_params
        As in :class:`marginsvm.MomentumMarginClassifier`.
    fit_intercept : bool, default=True
        Unpenalised; each round then adds the worst rows of a balanced set of groups.
    stopping : {"gap", "separation"}, default="gap"
        Stop at the certified relative gap ``tol``, or at any separator.
    tol : float, default=1e-3
        Relative gap between the certified bounds (dimensionless).
    max_iter : int, default=10000
        Rounds in all, those before a warm start included.
    warm_start : bool, default=False
    verbose : bool or int, default=False

    Attributes
    ----------
    coef_, intercept_, margin_, margin_bound_, certificate_, ... : see
        :class:`marginsvm.MomentumMarginClassifier`.

    References
    ----------
    A. Cotter, S. Shalev-Shwartz, N. Srebro. The Kernelized Stochastic Batch Perceptron.
    ICML 2012. Baseline of figures 1 to 3 of Ji et al. (2021).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import BatchPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> BatchPerceptron(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    def __init__(
        self,
        *,
        C: float = np.inf,
        kernel: str | Callable[..., Array] = "linear",
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        stopping: str = "gap",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _start(self, data: KernelMatrixAdapter) -> PerceptronState:
        return PerceptronState(data.zeros(), data.zeros())

    def _round(self, data: KernelMatrixAdapter, state: PerceptronState) -> PerceptronState:
        answer = data.respond(state.w, response=worst_row)
        seen = Candidate(state.w, worst=answer.weights.worst)
        w, mass = state.w + answer.vector, state.mass + 1.0
        return PerceptronState(w, state.average + (w - state.average) / mass, mass, seen)

    def _candidates(self, data: KernelMatrixAdapter, state: PerceptronState) -> Iterator[Candidate]:
        assert state.seen is not None
        yield state.seen
        yield Candidate(state.w, state.mass)
        yield Candidate(state.average, fallback=True)
