"""Wang, Hanashiro, Guha, Abernethy (2023): On Accelerated Perceptrons and Beyond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import with_parameters
from marginsvm.estimator.parameters import (
    CommonParameters,
    KernelParameters,
    NormParameters,
    ShareParameters,
)
from marginsvm.fit import Algorithm, Candidate, Requirements
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.responses import softmax
from marginsvm.rows import Vector

# Smoothing of the data player (units of the radius), times the strong convexity of the learner's
# loss: the least for which what it gains by moving pays for what the learner loses by guessing
# wrong.
_MU = 2.0


@dataclass(frozen=True)
class AcceleratedState:
    """After round ``t``: the last pseudoexample, and the sums of both players, round t weighing t.

    Attributes
    ----------
    t : int
    last : Vector
    total : Vector
        Of the data player's pseudoexamples.
    W : Vector
        Its predictor is the sum of the learner's.
    measured : Candidate or None
    """

    t: int
    last: Vector
    total: Vector
    W: Vector
    measured: Candidate | None = None


@dataclass(frozen=True)
class AcceleratedPlay(Algorithm):
    """The game ``max_w min_q q'Aw - |w|_p^2 / 2``, in which round t counts t times.

    The learner follows the leader and guesses that the data player moves as in the round before;
    the data player knows the learner's move, and follows the leader regularised by the entropy.
    """

    requires = Requirements(responses=(softmax,))

    def start(self, problem: KernelMatrixAdapter) -> AcceleratedState:
        """Begin with the best response to the zero predictor."""
        zeros = problem.zeros()
        return AcceleratedState(0, problem.respond(zeros).vector, zeros, zeros)

    def step(self, problem: KernelMatrixAdapter, state: AcceleratedState) -> AcceleratedState:
        """One round of both players."""
        t = state.t + 1
        w = (2.0 / (t * (t + 1))) * (state.total + t * state.last)
        W = problem.add_predictors(state.W, t * w)
        best = problem.respond(W, _MU / problem.strong_convexity)
        weights = best.weights
        measured = Candidate(W, 0.0, weights.min_margin, True, weights.offsets)
        return AcceleratedState(t, best.vector, state.total + t * best.vector, W, measured)

    def candidates(
        self, problem: KernelMatrixAdapter, state: AcceleratedState
    ) -> Iterator[Candidate]:
        """The sum of the learner's predictors, and that of the data's pseudoexamples."""
        assert state.measured is not None
        yield state.measured
        yield Candidate(state.total, state.t * (state.t + 1) / 2)


@with_parameters
class AcceleratedPerceptron(
    NormParameters,
    CommonParameters,
    ShareParameters,
    KernelParameters,
    DualStateMixin,
    BaseEstimator,
):
    r"""Perceptron of accelerated play: the margin converges like 1 / t^2.

    It is :class:`~marginsvm.OptimisticPerceptron` with an average in which later rounds count more.
    After t rounds, the margin falls short of the maximum by O(log n / (gamma t^2)); the bound of
    :class:`~marginsvm.MomentumMarginClassifier` has another factor log t. With ``p < 2`` it is the
    accelerated p-norm perceptron.

    Parameters
    ----------
    kernel : str or callable
        ``"linear"`` or, for p = 2 only, ``"precomputed"``, a name known to
        ``sklearn.metrics.pairwise.pairwise_kernels``, or ``kernel(X, Y) -> matrix``.
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless); ``"sparse"`` is 1 + 1 / ln(n_features). Margins are
        then distances to the decision boundary in the dual norm, with 1/p + 1/q = 1. An intercept
        is not penalised, unlike in :class:`~marginsvm.DualLpPerceptron`.

    Notes
    -----
    ==========================================  =========================================
    paper                                       code
    ==========================================  =========================================
    :math:`\alpha_t = t`                        ``t``
    :math:`A^T p_t`                             ``last``: the best response in round t
    :math:`w_t`                                 ``w``, mass 1: its mirror image
    :math:`p_t`                                 ``problem.respond(W, 2 / (p - 1))``: a softmax
    :math:`\sum_{s \le t} \alpha_s w_s`         ``W``: the output, but for its length
    :math:`\sum_{s \le t} \alpha_s A^T p_s`     ``total``
    ==========================================  =========================================

    The p of the paper is the norm of the examples, at least 2. It is called q here.

    In units of the radius, with n rows of equal weight, the regrets of both players add up to at
    most :math:`2 \ln(n) / (p - 1)`. So the margin :math:`\gamma_t` after round t satisfies
    :math:`\gamma_t^2 \ge \gamma^2 - 8 \ln(n) / ((p - 1) t (t + 1))`; it is positive after
    :math:`\sqrt{8 \ln(n) / (p - 1)} / \gamma` rounds. The upper bound is at most
    :math:`\sqrt{\gamma^2 + 8 \ln(n) / ((p - 1) t (t + 1))}`.

    With ``nu``, p_t is the same among weights of at most :math:`1 / (\nu n)` each, and
    :math:`\ln(1 / \nu)` takes the place of :math:`\ln n`.

    For p = 2, ``W / 2`` is the sequence w of :class:`~marginsvm.MomentumMarginClassifier` with
    the step :math:`(t + 1) / (t + 2)` in place of 1.

    References
    ----------
    G. Wang, R. Hanashiro, E. Guha, J. Abernethy. On Accelerated Perceptrons and Beyond. ICLR 2023,
    arXiv:2210.09371. Theorems on margin maximization and on p-norms; the constants here are our
    own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import AcceleratedPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> AcceleratedPerceptron(tol=1e-2).fit(X[:100], y[:100]).status_
    'certified'
    """

    def _algorithm(self) -> AcceleratedPlay:
        return AcceleratedPlay()
