"""Wang, Hanashiro, Guha, Abernethy (2023): On Accelerated Perceptrons and Beyond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

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
from marginsvm.problem.responses import Response, softmax
from marginsvm.problem.vectors import Predictor, Vector


@dataclass(frozen=True)
class AcceleratedState:
    """After round t: the last pseudoexample, and the sums of both players' moves.

    Attributes
    ----------
    t : int
    last : Vector
    total : Vector
        The sum of the pseudoexamples, ``sum of alpha_s A^T p_s``.
    W : Predictor
        The sum of the learner's predictors, ``sum of alpha_s w_s``.
    measured : Candidate or None
        The predictor of the last response, with its smallest margin.
    """

    t: int
    last: Vector
    total: Vector
    W: Predictor
    measured: Candidate | None = None

    @property
    def weight(self) -> float:
        """Sum of ``alpha_s = s`` (dimensionless)."""
        return self.t * (self.t + 1) / 2.0


@dataclass(frozen=True)
class AcceleratedPlay(Algorithm):
    r"""The game ``max_w min_p p'Aw - |w|_p^2 / 2``, in which round t counts ``alpha_t = t`` times.

    The learner plays optimistic follow-the-leader: it predicts that the data player repeats its
    last move. The data player sees the learner's move, and plays follow-the-leader with entropy
    regularisation. It is Algorithms 1 and 2 of the paper, and Algorithm 4 of Ramdas and Pena.

    Attributes
    ----------
    smoothing : float
        Of the data player (units of the radius), times the strong convexity of the learner's loss.
        2, Ramdas and Pena's first mu, is the least for which the data player's negative regret
        terms cancel the learner's prediction errors. The paper has 4: its steps are half as long,
        and its bounds twice as large.
    response : Response
        That of the data player.

    ==========================================  =========================================
    paper                                       code
    ==========================================  =========================================
    :math:`\alpha_t = t`                        ``t``
    :math:`A^T p_t`                             ``last``, after round t
    :math:`w_t`                                 ``w``: its mirror image
    :math:`p_t`                                 ``p``, the best response to W: a softmax
    :math:`\sum_{s \le t} \alpha_s w_s`         ``W``: the output, but for its length
    :math:`\sum_{s \le t} \alpha_s A^T p_s`     ``total``
    ==========================================  =========================================
    """

    smoothing: float = 2.0
    response: Response = softmax

    @property
    def requires(self) -> Requirements:
        """Best responses only, so that examples may be in files or on devices."""
        return Requirements(responses=(self.response,))

    def start(self, problem: KernelMatrixAdapter) -> AcceleratedState:
        """Begin with the best response to the zero predictor."""
        zeros = problem.zeros()
        return AcceleratedState(0, problem.respond(zeros).vector, zeros, zeros)

    def step(
        self, problem: KernelMatrixAdapter, state: AcceleratedState
    ) -> AcceleratedState:
        """One round: ``w_t``, and ``p_t``, the response to the sum of the learner's moves."""
        t = state.t + 1
        w = 2.0 / (t * (t + 1)) * (state.total + t * state.last)
        W = problem.add_predictors(state.W, t * w)
        p = problem.respond(W, self.smoothing / problem.strong_convexity, self.response)
        total = state.total + t * p.vector
        return AcceleratedState(t, p.vector, total, W, measured(W, p))

    def candidates(
        self, problem: KernelMatrixAdapter, state: AcceleratedState
    ) -> Iterator[Candidate]:
        """The predictor of the last response, and the sum of the pseudoexamples."""
        assert state.measured is not None
        yield state.measured
        yield Candidate(state.total, state.total.mass)


@dataclass(frozen=True)
class NesterovPlay(AcceleratedPlay):
    """Algorithm 3: Nesterov's method on the exponential loss, in the weights of the paper.

    The same game with the roles exchanged: the data player predicts that the learner repeats its
    last move, and the learner sees the data player's move. ``total`` is the paper's v, and ``W``
    its s times ``smoothing``. That is 4: as the data player predicts, ``t^2 / (2 smoothing)`` of
    round t must be at most t (t - 1) / 4.
    """

    smoothing: float = 4.0

    def step(
        self, problem: KernelMatrixAdapter, state: AcceleratedState
    ) -> AcceleratedState:
        """One round: a gradient at u, and the sums v and s."""
        t, v, s = state.t + 1, state.total, state.W
        u = s + 2.0 / state.t * v if state.t else s
        p = problem.respond(u, self.smoothing, self.response)
        v = v + t * p.vector
        s = s + 2.0 / (t + 1) * v
        return AcceleratedState(t, p.vector, v, s, measured(u, p))


@dataclass(frozen=True)
class MirrorProxState:
    """After round t: both players' second moves, and the sums of their first ones.

    Attributes
    ----------
    t : int
    w_hat : Vector
        The learner's second move, in the unit ball.
    last : Vector
        The pseudoexample of the data player's second move.
    total, W : Vector
        Sums of the first moves: of the data player's pseudoexamples, and of the learner's.
    measured : Candidate or None
    """

    t: int
    w_hat: Vector
    last: Vector
    total: Vector
    W: Vector
    measured: Candidate | None = None


@dataclass(frozen=True)
class MirrorProx(Algorithm):
    """Algorithm 5, of Yu, Kilinc-Karzan and Carbonell: mirror-prox for ``max_|w|<=1 min_p p'Aw``.

    Both players move, look at each other's moves, and move again from where they were. A round is
    two passes.
    """

    requires = Requirements(responses=(softmax,))

    def start(self, problem: KernelMatrixAdapter) -> MirrorProxState:
        """Begin at the zero predictor and the uniform distribution."""
        zeros = problem.zeros()
        return MirrorProxState(0, zeros, problem.respond(zeros).vector, zeros, zeros)

    def step(
        self, problem: KernelMatrixAdapter, state: MirrorProxState
    ) -> MirrorProxState:
        """``w_t`` and ``p_t``, and then ``w_hat_t`` and ``p_hat_t``."""
        eta = 1.0 / np.sqrt(np.log(max(problem.n_rows, 2)))
        w = in_the_ball(problem, state.w_hat + eta * state.last)
        p = problem.respond(state.W + state.w_hat, eta).vector
        w_hat = in_the_ball(problem, state.w_hat + eta * p)
        W = state.W + w
        total = state.total + p
        p_hat = problem.respond(W, eta)
        return MirrorProxState(
            state.t + 1, w_hat, p_hat.vector, total, W, measured(W, p_hat)
        )

    def candidates(
        self, problem: KernelMatrixAdapter, state: MirrorProxState
    ) -> Iterator[Candidate]:
        """The sum of the learner's predictors, and that of the pseudoexamples."""
        assert state.measured is not None
        yield state.measured
        yield Candidate(state.total, state.total.mass)


def in_the_ball(problem: KernelMatrixAdapter, w: Vector) -> Vector:
    """The nearest vector of norm 1 at most."""
    return w / max(1.0, problem.norm(w))


PLAYS: dict[str, Algorithm] = {
    "optimistic": AcceleratedPlay(),
    "nesterov": NesterovPlay(),
    "mirror_prox": MirrorProx(),
}


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

    It is :class:`~marginsvm.OptimisticPerceptron` with an average weighted by the number of the
    iteration: after t iterations, the margin falls short of the maximum by O(log n / (gamma t^2)).

    Parameters
    ----------
    kernel : str or callable
        ``"linear"`` or, for p = 2, ``"precomputed"``, a name of
        ``sklearn.metrics.pairwise.pairwise_kernels``, or ``kernel(X, Y) -> matrix``.
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless); ``"sparse"`` is 1 + 1 / ln(n_features). Margins are
        distances in the dual norm.
    play : {"optimistic", "nesterov", "mirror_prox"}
        ``"optimistic"``: the learner is optimistic (Algorithms 1 and 2). For p = 2 also
        ``"nesterov"``: the data player (Algorithm 3, Nesterov's method on the exponential loss);
        ``"mirror_prox"``: both, two passes an iteration (Algorithm 5), guaranteed only to find a
        separator or a proof that there is none.

    See Also
    --------
    MomentumMarginClassifier : Much the same sequence, from gradient descent.

    Notes
    -----
    The paper's q-norms of predictors are p-norms here. With ``nu``, the weights of p_t are at most
    :math:`1 / (\nu n)`. For p = 2, ``W / 2`` is the sequence w of
    :class:`~marginsvm.MomentumMarginClassifier` with the step :math:`(t + 1) / (t + 2)`.

    References
    ----------
    G. Wang, R. Hanashiro, E. Guha, J. Abernethy. On Accelerated Perceptrons and Beyond. ICLR 2023,
    arXiv:2210.09371. Algorithms 1 to 3 and 5, Theorems 3, 4, 6 and 9. Algorithm 4 is
    :class:`~marginsvm.OptimisticPerceptron`; the rate for p-norms here is our own.

    A. W. Yu, F. Kilinc-Karzan, J. Carbonell. Saddle Points and Accelerated Perceptron Algorithms.
    ICML 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import AcceleratedPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> AcceleratedPerceptron().fit(X[:100], y[:100]).status_
    'certified'
    """

    play: str = parameter(StrOptions(set(PLAYS)), default="optimistic")

    def _algorithm(self) -> Algorithm:
        if self.play != "optimistic" and self.p != 2.0:
            raise ValueError(
                f'play="{self.play}" is for p=2, but p={self.p!r}: take play="optimistic"'
            )
        return PLAYS[self.play]
