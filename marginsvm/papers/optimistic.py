"""Hanashiro, Abernethy (2020): Linear Separation via Optimism, Algorithm 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    CommonParameters,
    KernelParameters,
    NormParameters,
    ShareParameters,
    parameter,
    with_parameters,
)
from marginsvm.fit import Algorithm, Candidate, Requirements, measured
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.responses import softmax
from marginsvm.problem.vectors import Predictor, Vector


@dataclass(frozen=True)
class OptimisticState:
    """After round t: the last pseudoexample, the sum of all, and W, the sum of ``w_1..w_t``."""

    t: int
    last: Vector
    total: Vector
    W: Predictor
    measured: Candidate | None = None


@dataclass(frozen=True)
class OptimisticPlay(Algorithm):
    r"""Algorithm 1 of Hanashiro and Abernethy: both players predict a repetition of the last round.

    With p < 2, it is Algorithm 4 of Wang, Hanashiro, Guha and Abernethy.

    Attributes
    ----------
    r : float
        Bound on the norms of the examples (in units of the largest norm).

    ==========================================  =========================================
    paper                                       code
    ==========================================  =========================================
    :math:`\tilde x^{[t]}`                      ``last``, after round t
    :math:`w_t`                                 ``w``: its mirror image
    :math:`p_t`                                 ``p``, the best response to W: a softmax
    :math:`\sum_{s \le t} w_s`                  ``W``: t times the output
    :math:`\sum_{1 \le s < t} \tilde x^{[s]}`   ``total``
    ==========================================  =========================================
    """

    r: float = 1.0

    requires = Requirements(responses=(softmax,))

    def start(self, problem: KernelMatrixAdapter) -> OptimisticState:
        """Begin with the best response to the zero predictor."""
        zeros = problem.zeros()
        return OptimisticState(0, problem.respond(zeros).vector, zeros, zeros)

    def step(
        self, problem: KernelMatrixAdapter, state: OptimisticState
    ) -> OptimisticState:
        """Line 5 in the form of Appendix A.1, lines 6 to 8 summed over the rounds, and line 9."""
        w = state.total + state.last
        W = problem.add_predictors(state.W, w)
        p = problem.respond(W, self.r**2 / problem.strong_convexity)
        total = state.total + p.vector
        return OptimisticState(state.t + 1, p.vector, total, W, measured(W, p))

    def candidates(
        self, problem: KernelMatrixAdapter, state: OptimisticState
    ) -> Iterator[Candidate]:
        """The sum of the learner's vectors, and that of the pseudoexamples."""
        assert state.measured is not None
        yield state.measured
        yield Candidate(state.total, state.total.mass)


@with_parameters
class OptimisticPerceptron(
    NormParameters,
    CommonParameters,
    ShareParameters,
    KernelParameters,
    DualStateMixin,
    BaseEstimator,
):
    r"""Perceptron of optimistic play: it separates within O(r^2 log n / gamma) iterations.

    It needs about 1 / gamma iterations, gamma being the best margin, where Rosenblatt's perceptron
    needs up to 1 / gamma^2. The learner predicts that the distribution over the examples stays that
    of the last iteration. The margin of its average converges to the maximum.

    Parameters
    ----------
    kernel : str or callable
        ``"linear"`` or, for p = 2, ``"precomputed"``, a name of
        ``sklearn.metrics.pairwise.pairwise_kernels``, or ``kernel(X, Y) -> matrix``.
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless); ``"sparse"`` is 1 + 1 / ln(n_features). Margins are
        distances in the dual norm.
    r : float
        The paper's bound on the norms of the examples, relative to the largest (dimensionless, at
        least 0.001). Theorem 3 asks for 1 or more. A smaller one means longer steps, by 1 / r^2:
        often far fewer iterations, without a promise that they converge; bounds hold for any r.

    See Also
    --------
    AcceleratedPerceptron : Converges faster to the best margin.

    Notes
    -----
    Line 5, summed over the rounds, is Appendix A.1. With p < 2, this is Algorithm 4 of Wang et al.
    (2023), whose p is the q here. For inseparable classes, W tends to the minimiser of the
    exponential loss. With ``nu``, :math:`p_t \le 1 / (\nu n)`.

    References
    ----------
    R. Hanashiro, J. Abernethy. Linear Separation via Optimism. 2020. Algorithm 1,
    Theorem 3.

    G. Wang, R. Hanashiro, E. Guha, J. Abernethy. On Accelerated Perceptrons and Beyond. ICLR 2023.
    Algorithm 4, Theorem 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import OptimisticPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> OptimisticPerceptron(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    r: float = parameter(Interval(Real, 1e-3, None, closed="left"), default=1.0)

    def _algorithm(self) -> OptimisticPlay:
        return OptimisticPlay(self.r)
