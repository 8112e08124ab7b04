"""Ji, Srebro, Telgarsky (ICML 2021): Fast Margin Maximization via Dual Acceleration, Alg. 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, StrOptions

from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    MOMENTUM,
    POSITIVE,
    STEP,
    CommonParameters,
    KernelParameters,
    ShareParameters,
    parameter,
    with_parameters,
)
from marginsvm.fit import Algorithm, Candidate, Requirements, measured
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.responses import Response, logistic, softmax
from marginsvm.problem.vectors import BestResponse, Vector
from marginsvm.schedules import (
    MOMENTA,
    NORMS,
    STEPS,
    OfIteration,
    Schedule,
    momentum_at,
    resolve,
    step_at,
)

LOSSES: dict[str, Response] = {"exponential": softmax, "logistic": logistic}


@dataclass(frozen=True)
class MomentumState:
    """The paper's ``w_t`` and ``g_{t-1}`` before iteration t, and ``w_{t-1}`` with its margin."""

    t: int
    w: Vector
    g: Vector
    measured: Candidate | None = None


@dataclass(frozen=True)
class Momentum(Algorithm):
    r"""Algorithm 1 of Ji et al.

    Attributes
    ----------
    loss : Response
        Loss of the margins; its gradient gives the dual variables.
    theta, beta : callable
        Step and momentum of iteration t, as functions of t.
    gradient : {"normalized", "theory", "plain"}
        How the gradient of the loss is scaled.
    norm : callable or None
        Norm to which w is scaled after iteration t; None: w is not scaled.

    ====================  =====================================================
    paper                 code
    ====================  =====================================================
    :math:`z_i`           minus a row of the data, divided by the largest norm of a row
    :math:`q_t`           ``q``: the best response to w
    :math:`-Z^T q_t`      ``p``
    :math:`g_t`           ``-g``
    :math:`w_t`           ``w``
    :math:`\theta_t`      ``theta`` (``step``)
    :math:`\beta_t`       ``beta`` (``momentum``)
    ====================  =====================================================
    """

    loss: Response = softmax
    theta: OfIteration = STEPS["constant"]
    beta: OfIteration = MOMENTA["nesterov"]
    gradient: str = "normalized"
    norm: OfIteration | None = None

    @property
    def requires(self) -> Requirements:
        """Best responses only, so that examples may be in files or on devices."""
        return Requirements(responses=(self.loss,))

    def start(self, problem: KernelMatrixAdapter) -> MomentumState:
        """Begin at zero."""
        return MomentumState(0, problem.zeros(), problem.zeros())

    def step(self, problem: KernelMatrixAdapter, state: MomentumState) -> MomentumState:
        """The listing's lines from the last one on: ``q_t``, then g, then w."""
        t, w, g = state.t, state.w, state.g
        theta, beta = step_at(self.theta, t), momentum_at(self.beta, t)
        q = problem.respond(w, 1.0, self.loss)
        p = self.pseudoexample(q)
        g = beta * (g + p)
        w = w + (g + p if theta == 1.0 else theta * (g + p))
        if self.norm is not None and (length := problem.norm(w)) > 0.0:
            w = step_at(self.norm, t, "norm") / length * w
        return MomentumState(t + 1, w, g, measured(state.w, q))

    def pseudoexample(self, q: BestResponse) -> Vector:
        """``-Z^T q``, scaled by ``gradient``."""
        weights = q.weights
        mass = 1.0
        if self.gradient == "theory":
            mass = weights.mass / weights.smoothness
        elif self.gradient == "plain":
            mass = weights.gradient_mass
        return q.vector if mass == weights.mass else q.vector * (mass / weights.mass)

    def candidates(
        self, problem: KernelMatrixAdapter, state: MomentumState
    ) -> Iterator[Candidate]:
        """The predictor before the last iteration, for a lower bound; w and g, for upper bounds."""
        assert state.measured is not None
        yield state.measured
        yield Candidate(state.w, state.w.mass)
        yield Candidate(state.g, state.g.mass)


@with_parameters
class MomentumMarginClassifier(
    CommonParameters, ShareParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Maximum-margin classifier by momentum on an exponentially-tailed loss.

    Gradient descent on the exponential or logistic loss maximises the margin; with normalized
    gradients and momentum in the dual, to within O(log t / t^2) after t iterations.

    Parameters
    ----------
    loss : {"exponential", "logistic"} or Response
        Loss, whose gradient gives the dual variables, or a :class:`marginsvm.extend.Response`.
    step : {"constant", "inv_sqrt"}, float or callable
        Step theta_t relative to the largest norm (dimensionless), or a function of t. Convergence
        proved for 1.
    momentum : {"nesterov"}, float, callable or None
        Momentum beta_t in [0, 1] (dimensionless). None: normalized gradient descent
        (``step="inv_sqrt"``: of Nacson et al.).
    gradient : {"normalized", "theory", "plain"}
        ``"normalized"``: dual variables sum to 1. ``"theory"``: gradient of psi (section 2 of Ji et
        al.) over its smoothness. ``"plain"``: gradient of the loss.
    norm : {"progressive"}, float or callable
        Norm of the predictor after each iteration (dimensionless); None: not scaled.
        ``"progressive"``: times 1.2 every five iterations, after Wang, Min and Wu (with
        ``momentum=None``), without their warm-up by normalized descent, and with the norm set in
        place of a projection.

    See Also
    --------
    MaxMarginClassifier : The exact solver.

    Notes
    -----
    The defaults are Nesterov's method for the logarithm of the exponential loss. With ``nu``,
    :math:`q_t \le 1 / (\nu n)`, and :math:`\ln(1 / \nu)` replaces :math:`\ln n` in the rate.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky. Fast Margin Maximization via Dual Acceleration.
    ICML 2021. Algorithm 1, Theorem 3.1, Theorem 5.1.

    Mingze Wang, Zeping Min, Lei Wu. ICML 2024 (progressive rescaling, after Algorithm 1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MomentumMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MomentumMarginClassifier().fit(X[:100], y[:100])
    >>> clf.status_, bool(clf.margin_ <= 0.8175566 <= clf.margin_bound_)
    ('certified', True)
    """

    loss: str | Response = parameter(
        StrOptions(set(LOSSES)), HasMethods("respond"), default="exponential"
    )
    step: Schedule = parameter(*STEP, default="constant")
    momentum: Schedule | None = parameter(*MOMENTUM, default="nesterov")
    gradient: str = parameter(
        StrOptions({"normalized", "theory", "plain"}), default="normalized"
    )
    norm: Schedule | None = parameter(
        StrOptions(set(NORMS)),
        POSITIVE,
        callable,
        None,
        default=None,
    )

    def _algorithm(self) -> Momentum:
        return Momentum(
            loss=LOSSES[self.loss] if isinstance(self.loss, str) else self.loss,
            theta=resolve(self.step, STEPS),
            beta=resolve(self.momentum, MOMENTA),
            gradient=self.gradient,
            norm=None if self.norm is None else resolve(self.norm, NORMS),
        )
