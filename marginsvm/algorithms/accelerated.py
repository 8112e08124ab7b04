"""Wang, Hanashiro, Guha, Abernethy (2023): On Accelerated Perceptrons and Beyond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import with_parameters
from marginsvm.estimator.parameters import CommonParameters, KernelParameters
from marginsvm.fit import Algorithm, Candidate, Requirements
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.responses import softmax
from marginsvm.rows import Vector

# Smoothing of the data player (units of the radius): the least for which what it gains by moving
# pays for what the learner loses by guessing wrong.
_MU = 2.0


@dataclass(frozen=True)
class AcceleratedState:
    """After round ``t``: the last pseudoexample, and the sums of both players, round t weighing t.

    Attributes
    ----------
    t : int
    last : Vector
    total, W : Vector
        Of the data player's pseudoexamples, and of the learner's predictors.
    measured : Candidate or None
    """

    t: int
    last: Vector
    total: Vector
    W: Vector
    measured: Candidate | None = None


@dataclass(frozen=True)
class AcceleratedPlay(Algorithm):
    """The game ``max_w min_p p'Aw - |w|^2 / 2``, in which round t counts t times.

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
        sum_of_weights = t * (t + 1) / 2
        w = (1.0 / sum_of_weights) * (state.total + t * state.last)
        W = state.W + t * w
        best = problem.respond(W, _MU)
        weights = best.weights
        measured = Candidate(W, sum_of_weights, weights.min_margin, True, weights.offsets)
        return AcceleratedState(t, best.vector, state.total + t * best.vector, W, measured)

    def candidates(
        self, problem: KernelMatrixAdapter, state: AcceleratedState
    ) -> Iterator[Candidate]:
        """The sum of the learner's predictors, and that of the data's pseudoexamples."""
        assert state.measured is not None
        yield state.measured
        yield Candidate(state.total, state.t * (state.t + 1) / 2)


@with_parameters
class AcceleratedPerceptron(CommonParameters, KernelParameters, DualStateMixin, BaseEstimator):
    r"""Perceptron of accelerated play, whose margin converges without a logarithm of the rounds.

    Later rounds of optimistic play count more: the margin of the weighted average falls short of
    the maximum by O(log n / (gamma t^2)), where momentum on an exponential loss has another log t.

    Notes
    -----
    ==========================================  =========================================
    paper                                       code
    ==========================================  =========================================
    :math:`\alpha_t = t`                        ``t``
    :math:`A^T p_t`                             ``last``: the best response in round t
    :math:`w_t`                                 ``w``, mass 1
    :math:`p_t`                                 ``problem.respond(W, 2)``: a softmax
    :math:`\sum_{s \le t} \alpha_s w_s`         ``W``: the output, but for its length
    :math:`\sum_{s \le t} \alpha_s A^T p_s`     ``total``
    ==========================================  =========================================

    In units of the radius, with n rows of equal weight, both players together regret no more than
    :math:`2 \ln n`, so that the margin :math:`\gamma_t` after round t satisfies
    :math:`\gamma_t^2 \ge \gamma^2 - 8 \ln(n) / (t (t + 1))`. The upper bound comes as near:
    it is at most :math:`\sqrt{\gamma^2 + 8 \ln(n) / (t (t + 1))}`.

    References
    ----------
    G. Wang, R. Hanashiro, E. Guha, J. Abernethy. On Accelerated Perceptrons and Beyond. ICLR 2023,
    arXiv:2210.09371. Theorem on margin maximization; the constant here is our own.

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
