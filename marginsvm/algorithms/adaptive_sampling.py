"""Ji, Srebro, Telgarsky (ICML 2021): Fast Margin Maximization via Dual Acceleration, Alg. 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from marginsvm._typing import Array
from marginsvm.algorithms.draws import draw
from marginsvm.algorithms.sampling_state import SamplingState, slack_per_example, uniforms
from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import parameter, with_parameters
from marginsvm.estimator.parameters import (
    MOMENTUM,
    STEP,
    CommonParameters,
    KernelParameters,
    RandomParameters,
)
from marginsvm.estimator.results import Fitted
from marginsvm.fit import Algorithm, Candidate, Requirements
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import with_columns
from marginsvm.kernel_matrix.columns import CACHE_SIZE, ColumnPlan
from marginsvm.rows import Vector
from marginsvm.schedules import MOMENTA, STEPS, Schedule, momentum_at, resolve, step_at, theory_step

_GUESSED_DRAWS = 16  # columns computed together where the next draws can be guessed


@dataclass(frozen=True)
class AdaptiveSampling(Algorithm):
    """Algorithm 2 of Ji et al.

    Attributes
    ----------
    max_draws : int
        The paper's T: draws in all.
    schedule : {"momentum", "theory"}
        Which step and momentum are meant by ``"schedule"``.
    theta, beta : schedule
        Step and momentum; a momentum of None is none.
    cache_size : float
        Memory for columns of the Gram matrix (MB).
    random_state : int, RandomState instance or None
        Seed of the draws.
    """

    max_draws: int
    schedule: str = "momentum"
    theta: Schedule = "schedule"
    beta: Schedule | None = "schedule"
    cache_size: float = CACHE_SIZE
    random_state: int | np.random.RandomState | None = None

    def _schedules(self, n_rows: int) -> tuple[Callable[[int], float], Callable[[int], float]]:
        """Theta and beta as functions of t."""
        theta, beta, theory = self.theta, self.beta, self.schedule == "theory"
        if theta == "schedule":
            theta = theory_step(n_rows, self.max_draws) if theory else "constant"
        if beta == "schedule":
            beta = None if theory else "nesterov"
        return resolve(theta, STEPS), resolve(beta, MOMENTA)

    @property
    def requires(self) -> Requirements:
        """Columns of the Gram matrix, in place of the whole."""
        # With momentum the same examples are drawn for a while, and guesses are good.
        beta = self._schedules(n_rows=2)[1]
        plan = ColumnPlan(self.cache_size, _GUESSED_DRAWS if momentum_at(beta, 1) > 0 else 1)
        return Requirements(by_passes=False, columns=plan)

    def n_rounds(self, n_iter: int) -> int:
        """Draws that are made before bounds are looked at again."""
        return max(1, n_iter // 8)

    def start(self, problem: KernelMatrixAdapter) -> SamplingState:
        """Begin at zero, with a seed for all draws."""
        k, N = problem.rows.n_classes, problem.rows.n_examples
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        order = np.argsort(problem.rows.codes, kind="stable")
        w, g, q_w, q_g = (np.zeros((k, N)) for _ in range(4))
        scalars = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
        return SamplingState(0, seed, order, w, g, q_w, q_g, np.zeros(k), scalars)

    def step(self, problem: KernelMatrixAdapter, state: SamplingState) -> SamplingState:
        """Make some draws."""
        t, T = state.t, min(state.t + self.n_rounds(state.t), self.max_draws)
        step, momentum = self._schedules(problem.n_rows)
        theta = np.array([step_at(step, r) for r in range(t, T)])
        beta = np.array([momentum_at(momentum, r) for r in range(t, T)])
        groups = problem.rows.n_classes if problem.rows.balanced else 1
        u = uniforms(state.seed, t, T, 1 + groups)
        return draw(problem, state, theta, beta, u)

    def candidates(self, problem: KernelMatrixAdapter, state: SamplingState) -> Iterator[Candidate]:
        """Both sequences; the draws are a distribution, and so a proof."""
        c, s, mass_w, mass_g, _ = state.scalars
        w = vector(problem, state, state.w + s * state.g, state.q_w + s * state.q_g)
        min_margin = problem.rows.min_margin(problem.rows.group_min(problem.margins(w)))
        yield Candidate(w, mass_w, min_margin, fallback=True)
        if mass_g > 0:
            yield Candidate(vector(problem, state, c * state.g, c * state.q_g), mass_g)


@with_parameters
class AdaptiveSamplingKernelClassifier(
    RandomParameters, CommonParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Maximum-margin classifier for kernels that draws one example at a time.

    It is for a kernel on so many examples that the kernel matrix does not fit into memory: the
    matrix is never formed. In each round, one example is drawn, the more likely the smaller its
    margin is, and one column of the kernel matrix is computed. (A round of
    :class:`MomentumMarginClassifier` multiplies with the whole matrix.) The same few examples are
    drawn again and again, and their columns are cached.

    Parameters
    ----------
    kernel : str or callable
        ``"linear"``, ``"precomputed"``, a name known to
        ``sklearn.metrics.pairwise.pairwise_kernels``, or ``kernel(X, Y) -> matrix``. If a
        callable has a method ``prepare``, it is called with ``prepare(X)`` in place of X.
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised. A round then draws one example of each
        class (more than two classes: two or three examples, of classes that form a cycle), and
        so computes two or three columns.
    max_iter : int
        Largest number of draws, those before a warm start included.
    schedule : {"momentum", "theory"}
        ``"momentum"``: constant steps with Nesterov's momentum, a heuristic of Ji et al. and the
        best in practice. ``"theory"``: no momentum and the step ``sqrt(ln n / max_iter)``, for
        which their Theorem 4.1 holds; :func:`marginsvm.theory_draws` says how many draws it needs.
    step : {"schedule", "constant", "inv_sqrt"}, float or callable
        Step theta_t of draw t (dimensionless): as ``schedule`` says, another name, a number, a
        function of t, or a schedule object.
    momentum : {"schedule", "nesterov"}, float, callable or None
        Momentum beta_t in [0, 1] of draw t (dimensionless), given in the same ways as ``step``;
        None is no momentum.

    Attributes
    ----------
    n_iter_ : int
        Number of draws. Bounds are computed after every draw at first, and then each time the
        number of draws has grown by an eighth; ``history_`` has these draws.
    n_kernel_evaluations_ : int
        Kernel values computed by the last call of fit; 0 for a precomputed kernel.
    cache_hit_rate_ : float
        Share of the columns used by the last call of fit that were in the cache
        (dimensionless).

    Notes
    -----
    ===========================  ======================================================
    paper                        code
    ===========================  ======================================================
    :math:`z_i`                  minus a row of the data, divided by the radius
    :math:`i_t \sim q_t`         drawn by ``Draws`` from ``share``
    :math:`g_t`                  ``-scalars[C] * g``; coefficients ``q_g``
    :math:`w_t`                  ``w + scalars[S] * g``; coefficients ``q_w``
    :math:`\theta_t, \beta_t`    ``theta`` (``step``), ``beta`` (``momentum``)
    :math:`T`                    ``max_iter``
    ===========================  ======================================================

    The rank-one bookkeeping: with ``g = c g_hat`` and ``w = w_hat + s g_hat``, drawing a
    row a means ``c' = beta c``, ``g_hat += a / c``, ``s' = s + theta c'``,
    ``w_hat += (theta - s / c) a``, so that only the two score columns of the row's classes
    change. The weighted draws are a distribution: ``norm(w) / mass(w)`` is an upper bound.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky. Fast Margin Maximization via Dual Acceleration.
    ICML 2021. Algorithm 2, Theorem 4.1, section 5.2, Appendix F (Figure 3).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import AdaptiveSamplingKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = AdaptiveSamplingKernelClassifier(random_state=0).fit(X[:100], y[:100])
    >>> clf.status_, bool(clf.margin_ <= 0.8175566 <= clf.margin_bound_)
    ('certified', True)
    """

    tol: float = 1e-2
    max_iter: int = 100_000
    schedule: str = parameter(StrOptions({"momentum", "theory"}), default="momentum")
    step: Schedule = parameter(StrOptions({"schedule"}), *STEP, default="schedule")
    momentum: Schedule | None = parameter(StrOptions({"schedule"}), *MOMENTUM, default="schedule")

    def _algorithm(self) -> AdaptiveSampling:
        return AdaptiveSampling(
            self.max_iter,
            schedule=self.schedule,
            theta=self.step,
            beta=self.momentum,
            cache_size=self.cache_size,
            random_state=self.random_state,
        )

    def _own_results(self, fitted: Fitted) -> dict[str, Any]:
        return {
            "n_kernel_evaluations_": fitted.problem.work.kernel_evaluations,
            "cache_hit_rate_": with_columns(fitted.problem).columns().hit_rate,
        }


def vector(problem: KernelMatrixAdapter, state: SamplingState, F: Array, q: Array) -> Vector:
    """Scores and coefficients as a vector of the game; the rows' own coordinates taken out."""
    if problem.slack is not None:
        F = F + np.sqrt(2.0) * slack_per_example(problem)[state.order] * q
    if problem.rows.n_classes == 2:  # one row an example: both classes say the same
        F, q = np.sqrt(2.0) * F[1:], q.sum(axis=0, keepdims=True)
    scores, coefficients = np.empty(F.T.shape), np.empty(q.T.shape)
    scores[state.order], coefficients[state.order] = F.T, q.T
    return with_columns(problem).assemble(
        scores.reshape(problem.rows.score_shape), coefficients.reshape(problem.rows.shape)
    )
