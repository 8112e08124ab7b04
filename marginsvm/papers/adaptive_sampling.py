"""Ji, Srebro, Telgarsky (ICML 2021): Fast Margin Maximization via Dual Acceleration, Alg. 2."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from marginsvm._typing import Array
from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    MOMENTUM,
    STEP,
    CommonParameters,
    KernelParameters,
    RandomParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.results import Fitted
from marginsvm.fit import Algorithm, Candidate, Requirements
from marginsvm.problem.adapter import CACHE_SIZE, KernelMatrixAdapter
from marginsvm.problem.column_cache import ColumnPlan
from marginsvm.problem.matrix import FLOAT64
from marginsvm.problem.vectors import Vector
from marginsvm.schedules import (
    MOMENTA,
    STEPS,
    OfIteration,
    Schedule,
    each_of,
    momentum_at,
    resolve,
    step_at,
    theory_step,
)

if TYPE_CHECKING:
    from marginsvm.papers.draws import Response, Rounds

COMPUTED_TOGETHER = 4  # columns, where the next draws can be predicted
WORTH_A_COLUMN = 0.5  # expected number of draws of an example whose column is guessed


@dataclass(frozen=True)
class State:
    """After t draws; examples are sorted by class.

    ``w`` and ``g`` are the scores of the paper's ``w_t`` and ``g_{t-1}``, of shape (1, n) or, for
    k > 2 classes, (k, n).
    ``c_w`` and ``c_g`` are their coefficients on the rows. ``offsets`` are the class offsets that
    balanced the last draw; None for two classes.
    """

    t: int
    seed: int
    w: Array
    g: Array
    c_w: Array
    c_g: Array
    offsets: Array | None


@dataclass(frozen=True)
class AdaptiveSampling(Algorithm):
    r"""Algorithm 2 of Ji et al.

    Attributes
    ----------
    max_draws : int
        The paper's T: total number of draws.
    schedule : {"momentum", "theory"}
        Step and momentum if these are ``"schedule"``.
    theta, beta : schedule
        Step and momentum; None: no momentum.
    cache_size : float
        Memory for columns of the Gram matrix (MB).
    random_state : int, RandomState instance or None
        Seed of the draws.

    ===========================  ======================================================
    paper                        code
    ===========================  ======================================================
    :math:`z_i`                  minus a row of the data, divided by the radius
    :math:`q_t`                  ``q``, the softmax of minus the margins of ``w``
    :math:`i_t \sim q_t`         ``z``, the row that is drawn (or a cycle of rows)
    :math:`g_t, w_{t+1}`         ``-g``, ``w``
    :math:`\theta_t, \beta_t`    ``theta`` (``step``), ``beta`` (``momentum``)
    :math:`T`                    ``max_iter``
    ===========================  ======================================================
    """

    max_draws: int
    schedule: str = "momentum"
    theta: Schedule = "schedule"
    beta: Schedule | None = "schedule"
    cache_size: float = CACHE_SIZE
    random_state: int | np.random.RandomState | None = None

    def schedules(self, n_rows: int) -> tuple[OfIteration, OfIteration]:
        """Theta and beta as functions of t."""
        theta = self.theta
        beta = self.beta
        theory = self.schedule == "theory"
        if theta == "schedule":
            theta = theory_step(n_rows, self.max_draws) if theory else "constant"
        if beta == "schedule":
            beta = None if theory else "nesterov"
        return resolve(theta, STEPS), resolve(beta, MOMENTA)

    @property
    def requires(self) -> Requirements:
        """Columns of the Gram matrix, not the whole."""
        # With momentum, draws repeat the same examples for a while, and predictions are good.
        beta = self.schedules(n_rows=2)[1]
        plan = ColumnPlan(
            self.cache_size, COMPUTED_TOGETHER if momentum_at(beta, 1) > 0 else 1
        )
        return Requirements(by_passes=False, columns=plan)

    def n_rounds(self, n_iter: int) -> int:
        """Number of draws until the next computation of bounds."""
        return max(1, n_iter // 8)

    def start(self, problem: KernelMatrixAdapter) -> State:
        """Begin at zero, with a seed for all draws."""
        seed = int(
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        )
        k = problem.rows.n_classes
        zeros = np.zeros((1 if k == 2 else k, problem.rows.n_examples))
        offsets = None if k == 2 else np.zeros(k)
        return State(0, seed, zeros, zeros, zeros, zeros, offsets)

    def step(self, problem: KernelMatrixAdapter, state: State) -> State:
        """Rounds of the listing, by the compiled loop ``papers.draws.play``.

        ::

            q_t = softmax(-margins of w_t)         respond
            i_t ~ q_t, with its row z              draw
            g_t = beta_t (g_{t-1} + z)             move
            w_{t+1} = w_t + theta_t (g_t + z)
        """
        t0 = state.t
        T = min(t0 + self.n_rounds(t0), self.max_draws)
        step, momentum = self.schedules(problem.n_rows)
        theta = each_of(step_at, step, range(t0, T))
        beta = each_of(momentum_at, momentum, range(t0, T))
        u = uniforms(state.seed, t0, T, 1 + problem.rows.n_classes)
        w = state.w.copy()
        g = state.g.copy()
        offsets = copy(state.offsets)
        drawn = Draws(problem).play(w, g, offsets, t0, u, theta, beta)
        in_w, in_g = drawn.traces[0]  # of the g given; a draw adds z to w, too
        c_w = state.c_w + in_w * state.c_g
        c_g = in_g * state.c_g
        share_of_w = theta + drawn.traces[:-1, 0]
        share_of_g = drawn.traces[:-1, 1]
        for a in range(drawn.rows.shape[1]):
            some = drawn.sizes > a
            i, _, r = drawn.rows[some, a].T
            at = r * problem.rows.n_examples + i
            for c, share in ((c_w, share_of_w), (c_g, share_of_g)):
                np.add.at(c.reshape(-1), at, share[some] / drawn.sizes[some])
        return State(T, state.seed, w, g, c_w, c_g, offsets)

    def candidates(
        self, problem: KernelMatrixAdapter, state: State
    ) -> Iterator[Candidate]:
        """Both sequences; the weighted draws are a distribution, and so dual feasible."""
        draws = Draws(problem)
        w = draws.vector(state.w, state.c_w)
        g = draws.vector(state.g, state.c_g)
        low = problem.rows.group_min(problem.margins(w))
        yield Candidate(w, w.mass, problem.rows.min_margin(low), fallback=True)
        if g.mass > 0:
            yield Candidate(g, g.mass)


@with_parameters
class AdaptiveSamplingKernelClassifier(
    RandomParameters, CommonParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Maximum-margin classifier for kernels that draws one example at a time.

    For kernel matrices that do not fit in memory. Each iteration draws one example, with a higher
    probability for a smaller margin, and computes its column of the matrix. Usually few different
    examples are drawn; their columns are cached.

    Parameters
    ----------
    kernel : str or callable
        ``"linear"``, ``"precomputed"``, a name of ``sklearn.metrics.pairwise.pairwise_kernels``, or
        ``kernel(X, Y) -> matrix``. If it has a method ``prepare``, it gets ``prepare(X)``.
    fit_intercept : bool
        Whether to fit an intercept (not penalised). A draw then is one example of each class
        (k > 2: of two or three classes that form a cycle).
    max_iter : int
        Limit on draws, including those before a warm start.
    schedule : {"momentum", "theory"}
        ``"momentum"``: constant steps with Nesterov's momentum, best in practice. ``"theory"``: no
        momentum and the step ``sqrt(ln n / max_iter)`` of Theorem 4.1 (see
        :func:`marginsvm.theory_draws`); warm starts then need the same ``max_iter``.
    step : {"schedule", "constant", "inv_sqrt"}, float or callable
        Step theta_t (dimensionless): that of ``schedule``, a name, a number, or a function of the
        draw t.
    momentum : {"schedule", "nesterov"}, float, callable or None
        Momentum beta_t in [0, 1] (dimensionless), given as ``step``. None: no momentum, whatever
        ``schedule`` is.

    Attributes
    ----------
    n_iter_ : int
        Draws. Bounds are computed each time their number has grown by an eighth.
    n_kernel_evaluations_ : int
        Kernel values computed by the last fit; 0 if precomputed.
    cache_hit_rate_ : float
        Share of the columns of the last fit that were in the cache (dimensionless).

    See Also
    --------
    theory_draws : Number of draws of Theorem 4.1.

    Notes
    -----
    The upper bound is ``norm(w)`` over the sum of the weights of the draws.

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

    max_iter: int = 100_000
    schedule: str = parameter(StrOptions({"momentum", "theory"}), default="momentum")
    step: Schedule = parameter(StrOptions({"schedule"}), *STEP, default="schedule")
    momentum: Schedule | None = parameter(
        StrOptions({"schedule"}), *MOMENTUM, default="schedule"
    )

    def _algorithm(self) -> AdaptiveSampling:
        return AdaptiveSampling(
            self.max_iter,
            schedule=self.schedule,
            theta=self.step,
            beta=self.momentum,
            cache_size=self.cache_size,
            random_state=self.random_state,
        )

    def _own_results(self, fitted: Fitted) -> dict[str, object]:
        return {
            "n_kernel_evaluations_": fitted.problem.work.kernel_evaluations,
            "cache_hit_rate_": fitted.problem.columns().hit_rate,
        }


class Draws:
    """Rounds on the scores of examples sorted by class, and vectors of such scores."""

    def __init__(self, problem: KernelMatrixAdapter) -> None:
        rows = problem.rows
        n = problem.rows.n_examples
        self.problem = problem
        self.k = rows.n_classes
        self.two = rows.n_classes == 2
        self.order = rows.by_class[0]
        self.cache = problem.columns()
        self.starts = np.searchsorted(rows.codes[self.order], np.arange(self.k + 1))
        slack = (
            np.zeros(n) if problem.ridge is None else problem.ridge.reshape(n, -1)[:, 0]
        )
        self.slack = slack[self.order]

    def play(
        self,
        w: Array,
        g: Array,
        offsets: Array | None,
        t0: int,
        u: Array,
        theta: Array,
        beta: Array,
    ) -> Rounds:
        """Rounds in place, one for each row of u, and what is drawn in them."""
        from marginsvm.papers import draws

        problem = self.problem
        cache = self.cache
        T = len(u)
        rows = problem.rows
        sizes = np.zeros(T, np.int64)
        drawn = np.zeros((T, self.k, 3), np.int64)
        rounds = draws.Rounds(theta, beta, u, sizes, drawn, np.empty((T + 1, 2)))
        weights = np.empty(0) if rows.weights is None else rows.weights[self.order]
        game = draws.Game(
            starts=self.starts,
            prior=weights.astype(FLOAT64),
            slack=self.slack,
            scale=1.0 if problem.design is not None else 1.0 / problem.radius**2,
            balanced=rows.balanced,
            order=self.order,
            columns=cache.columns,
            slot=cache.slot,
            used=cache.used,
            by_number=cache.order is None,
        )
        q = draws.Response.room(self.starts, len(w))
        t = draws.play(game, w, g, offsets, q, rounds, 0)
        while t < T:
            examples = self.order[drawn[t, : sizes[t], 0]]
            cache.fetch(examples, partial(self.likely, q, t0 + t))
            t = draws.play(game, w, g, offsets, q, rounds, t)
        used = int(sizes.sum())
        cache.n_used += used
        self.problem.work.passes += used * cache.passes
        return rounds

    def likely(self, q: Response, t: int, most: int) -> Array:
        """Uncached examples that q draws within as many draws as before, the likeliest first."""
        weight = np.empty(len(self.order))
        none = np.zeros((self.k, self.k))
        rates = np.divide(q.share, q.totals, none, where=q.totals > 0)
        for c, block in enumerate(pairwise(self.starts)):
            of = rates[c, 1 - c : 2 - c] if self.two else rates[c]
            weight[slice(*block)] = of @ q.e[:, slice(*block)]
        some = np.flatnonzero(weight * t >= WORTH_A_COLUMN)
        some = some[self.cache.slot[self.order[some]] < 0]
        first = np.argsort(-weight[some], kind="stable")[:most]
        return self.order[some[first]]

    def vector(self, F: Array, q: Array) -> Vector:
        """Scores and coefficients as a vector of the problem; the ridge's part is removed."""
        if self.two:
            y = np.repeat([-1.0, 1.0], np.diff(self.starts))
            F = F - y * self.slack * q
        else:
            F = F + self.slack * q
        scores = np.empty(F.T.shape)
        coefficients = np.empty(q.T.shape)
        scores[self.order] = F.T
        coefficients[self.order] = q.T
        problem = self.problem
        rows = self.problem.rows
        if problem.design is not None:
            return problem.combine(coefficients)
        return Vector(
            scores.reshape(rows.score_shape), coefficients.reshape(rows.shape)
        )


def uniforms(seed: int, t: int, end: int, n: int) -> Array:
    """N uniform numbers for each of the draws t, ..., end - 1, however these are split."""
    return np.random.Generator(np.random.PCG64(seed).advance(t * n)).random(
        (end - t, n)
    )
