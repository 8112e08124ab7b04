"""Ji, Srebro, Telgarsky (ICML 2021): Fast Margin Maximization via Dual Acceleration, Alg. 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

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
from marginsvm.problem.adapter import (
    CACHE_SIZE,
    ColumnPlan,
    KernelMatrixAdapter,
    Vector,
)
from marginsvm.problem.intercepts import balancing_offsets, shifted_table
from marginsvm.schedules import (
    MOMENTA,
    STEPS,
    Schedule,
    momentum_at,
    resolve,
    step_at,
    theory_step,
)

GUESSED_DRAWS = 16  # columns computed together where the next draws can be predicted
LEAST_EXPONENT = -700.0  # near it, numbers are subnormal: inaccurate and slow
RUN = 256  # weights summed at a time in the search for a quantile


@dataclass(frozen=True)
class State:
    """After t draws; examples are sorted by class.

    ``w`` and ``g`` are the scores of the paper's ``w_t`` and ``g_{t-1}``, of shape (1, n) or, for
    k > 2 classes, (k, n), divided by the square root of 2 so that a margin is a difference.
    ``c_w`` and ``c_g`` are their coefficients on the rows.
    """

    t: int
    seed: int
    w: Array
    g: Array
    c_w: Array
    c_g: Array
    offsets: Array  # class offsets that balanced the last draw


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

    def schedules(
        self, n_rows: int
    ) -> tuple[Callable[[int], float], Callable[[int], float]]:
        """Theta and beta as functions of t."""
        theta, beta, theory = self.theta, self.beta, self.schedule == "theory"
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
            self.cache_size, GUESSED_DRAWS if momentum_at(beta, 1) > 0 else 1
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
        return State(0, seed, zeros, zeros, zeros, zeros, np.zeros(k))

    def step(self, problem: KernelMatrixAdapter, state: State) -> State:
        """Some rounds of the listing, each from ``q_t``: the draw, g and w."""
        draws, t0 = Draws(problem), state.t
        T = min(t0 + self.n_rounds(t0), self.max_draws)
        step, momentum = self.schedules(problem.n_rows)
        theta = [step_at(step, t) for t in range(t0, T)]
        beta = [momentum_at(momentum, t) for t in range(t0, T)]
        w, g, offsets, drawn = state.w.copy(), state.g.copy(), state.offsets, []
        u = uniforms(state.seed, t0, T, 1 + problem.rows.n_classes)
        for t in range(T - t0):
            q, offsets = draws.respond(w, offsets)
            z = draws.draw(q, u[t])
            draws.move(
                w, g, z, theta[t], beta[t]
            )  # g = beta (g + z), w = w + theta (g + z)
            drawn.append([(j, i) for i, _, j, _ in z])
        # coefficients of each draw, and of the initial g, accumulated backwards
        c_w, c_g, in_w, in_g = np.zeros_like(w), np.zeros_like(w), 0.0, 1.0
        for t in reversed(range(T - t0)):
            in_w, in_g = beta[t] * (theta[t] + in_w), beta[t] * in_g
            for row in drawn[t]:
                c_w[row] += (theta[t] + in_w) / len(drawn[t])
                c_g[row] += in_g / len(drawn[t])
        c_w += state.c_w + in_w * state.c_g
        c_g += in_g * state.c_g
        return State(T, state.seed, w, g, c_w, c_g, offsets)

    def candidates(
        self, problem: KernelMatrixAdapter, state: State
    ) -> Iterator[Candidate]:
        """Both sequences; the weighted draws are a distribution, and so dual feasible."""
        draws = Draws(problem)
        w, g = draws.vector(state.w, state.c_w), draws.vector(state.g, state.c_g)
        low = problem.rows.group_min(problem.margins(w))
        yield Candidate(w, w.mass, problem.rows.min_margin(low), fallback=True)
        if g.mass > 0:
            yield Candidate(g, g.mass)


@with_parameters
class AdaptiveSamplingKernelClassifier(
    RandomParameters, CommonParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Maximum-margin classifier for kernels that draws one example at a time.

    For kernel matrices that do not fit in memory. Each round draws one example, with a higher
    probability for a smaller margin, and computes its column of the matrix. Usually few different
    examples are drawn; their columns are cached.

    Parameters
    ----------
    kernel : str or callable
        ``"linear"``, ``"precomputed"``, a name of ``sklearn.metrics.pairwise.pairwise_kernels``, or
        ``kernel(X, Y) -> matrix``. If it has a method ``prepare``, it gets ``prepare(X)``.
    fit_intercept : bool
        Whether to fit an intercept (not penalised). A round then draws one example of each class
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
        Momentum beta_t in [0, 1] (dimensionless), given as ``step``; None: none.

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

    tol: float = 1e-2
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

    def _own_results(self, fitted: Fitted) -> dict[str, Any]:
        return {
            "n_kernel_evaluations_": fitted.problem.work.kernel_evaluations,
            "cache_hit_rate_": fitted.problem.columns().hit_rate,
        }


# Weights by class, with their ``sums_of_runs``; and the share of each group, a k x k table.
Distribution = tuple[list[tuple[Array, Array]], Array]
Drawn = list[
    tuple[int, int, int, int]
]  # rows: example, class, row of scores, and place of column


class Draws:
    """Responses to scores, and draws from these, for examples sorted by class.

    The rows of a group (c, j), examples of class c against class j, are then a slice of row j of
    the scores (two classes: of the only row).
    """

    def __init__(self, problem: KernelMatrixAdapter) -> None:
        rows, n = problem.rows, problem.rows.n_examples
        self.problem, self.balanced, self.k = problem, rows.balanced, rows.n_classes
        self.two = self.k == 2
        self.order = rows.by_class[0]
        starts = np.searchsorted(rows.codes[self.order], np.arange(self.k + 1))
        self.blocks = [slice(*ends) for ends in pairwise(starts.tolist())]
        self.cache = problem.columns()
        self.scale = problem.column_scale()
        self.prior = None if rows.weights is None else rows.weights[self.order]
        self.slack = (
            np.zeros(n) if problem.ridge is None else problem.ridge.reshape(n, -1)[:, 0]
        )
        self.slack = self.slack[self.order]
        sizes, rows_of_scores = np.diff(starts).tolist(), 1 if self.two else self.k
        self.weights = [
            np.empty((rows_of_scores, size)) for size in sizes
        ]  # of the last response

    def respond(self, w: Array, offsets: Array) -> tuple[Distribution, Array]:
        """Weights ``exp(-margins)`` by class, and the table of group sums of q.

        With an intercept, q is balanced by offsets, with a warm start at those given.
        """
        tops, totals, weights = (
            np.zeros((self.k, self.k)),
            np.zeros((self.k, self.k)),
            [],
        )
        for c, block in enumerate(self.blocks):
            part, e, others = w[:, block], self.weights[c], self.others(c)
            if self.two and c == 0:  # minus the margins, less the largest
                top = part.max(axis=1, initial=-np.inf)
                np.subtract(part, top[:, None], out=e)
            elif self.two:
                top = -part.min(axis=1, initial=np.inf)
                np.subtract(-top[:, None], part, out=e)
            else:
                np.subtract(part, part[c], out=e)
                top = e.max(axis=1, initial=-np.inf)
                e -= top[:, None]
            np.maximum(e, LEAST_EXPONENT, out=e)
            np.exp(e, out=e)
            if self.prior is not None:
                e *= self.prior[block]
            if not self.two:
                e[c] = 0.0  # no rows
            sums = sums_of_runs(e)
            tops[c, others], totals[c, others] = top, sums.sum(axis=1)
            weights.append((e, sums))
        with np.errstate(divide="ignore"):
            logs = np.log(totals) + tops
        if self.balanced:
            offsets = balancing_offsets(logs, offsets)
            logs = shifted_table(logs, offsets)
        share = np.exp(logs - logs.max())
        return (weights, share / share.sum()), offsets

    def others(self, c: int) -> Any:
        """The opponent classes of class c, as rows of scores; its own row has weight 0."""
        return [1 - c] if self.two else slice(None)

    def draw(self, q: Distribution, u: Array) -> Drawn:
        """A row or, with an intercept, one row of each group of a cycle, which is balanced.

        Each class has its own uniform number, so that the start of the cycle does not matter.
        """
        weights, share = q
        if self.balanced:
            path = cycle_at(share, u[0])
        else:
            path = list(
                divmod(
                    quantile(share.ravel(), sums_of_runs(share.ravel()), u[0]), self.k
                )
            )
        rows = []
        for c, j in pairwise(path):
            e, sums = (of_all[0 if self.two else j] for of_all in weights[c])
            i = quantile(e, sums, u[1 + c]) + self.blocks[c].start
            rows.append((i, c, 0 if self.two else j))
        examples, cache = self.order[[i for i, _, _ in rows]], self.cache
        cache.fetch(examples, lambda: self.likely(weights, share))
        cache.n_used += len(rows)
        self.problem.work.passes += len(rows) * cache.passes
        return [
            (*row, slot)
            for row, slot in zip(rows, cache.slot[examples].tolist(), strict=True)
        ]

    def move(self, w: Array, g: Array, z: Drawn, theta: float, beta: float) -> None:
        """``g = beta (g + z)`` and ``w = w + theta (g + z)``, z the mean of the drawn rows."""
        from marginsvm.papers.coordinates import move

        factors, columns = np.zeros((len(z), len(w))), self.cache.columns
        for a, (i, c, j, _) in enumerate(z):
            sign = 2.0 * c - 1.0 if self.two else -1.0
            if not self.two:
                factors[a, c] = self.scale / len(z)
            factors[a, j] = sign * self.scale / len(z)
            own = sign * self.slack[i] / len(z)  # the row's own coordinate
            g[j, i], w[j, i] = g[j, i] + own, w[j, i] + theta * own
        places = np.array([place for *_, place in z])
        if self.cache.order is None:
            columns, places = (
                columns[places].take(self.order, axis=1),
                np.arange(len(z)),
            )
        move(columns, places, factors, theta, beta, g, w)

    def likely(self, weights: list[tuple[Array, Array]], share: Array) -> Array:
        """Uncached examples by their probability under the current q, largest first."""
        weight = np.empty(len(self.order))
        for c, block in enumerate(self.blocks):
            e, sums = weights[c]
            total, mass = sums.sum(axis=1), share[c, self.others(c)]
            weight[block] = (
                np.divide(mass, total, np.zeros(len(total)), where=total > 0) @ e
            )
        weight[self.cache.slot[self.order] >= 0] = 0.0
        top = np.argpartition(-weight, self.cache.batch - 1)[: self.cache.batch]
        return self.order[top[np.argsort(-weight[top], kind="stable")]]

    def vector(self, F: Array, q: Array) -> Vector:
        """Scores and coefficients as a vector of the problem; the ridge's part is removed."""
        if self.two:
            y = np.repeat(
                [-1.0, 1.0], [block.stop - block.start for block in self.blocks]
            )
            F = F - y * self.slack * q
        else:
            F = F + self.slack * q
        scores, coefficients = np.empty(F.T.shape), np.empty(q.T.shape)
        scores[self.order], coefficients[self.order] = F.T, q.T
        rows = self.problem.rows
        return self.problem.assemble(
            scores.reshape(rows.score_shape), coefficients.reshape(rows.shape)
        )


def sums_of_runs(weights: Array) -> Array:
    """Sums of runs of weights: a running sum of all would take longer than the exponentials."""
    return np.add.reduceat(weights, np.arange(0, weights.shape[-1], RUN), axis=-1)


def quantile(weights: Array, sums: Array, u: float) -> int:
    """Index of the u-quantile of the weights, by their ``sums_of_runs``; never of a weight of 0."""
    r, rest = _find(sums, u * float(sums.sum()))
    return r * RUN + _find(weights[r * RUN : (r + 1) * RUN], rest)[0]


def _find(weights: Array, at: float) -> tuple[int, float]:
    """First index at which the running sum exceeds ``at``, and ``at`` less the sum before it."""
    running = weights.cumsum()
    i = running.searchsorted(at, side="right")
    i = i if i < len(running) else running.searchsorted(running[-1])
    return int(i), at - (float(running[i - 1]) if i else 0.0)


def cycle_at(share: Array, u: float) -> list[int]:
    """Draw a cycle of groups: classes path[0] -> path[1] -> ... -> path[0].

    A balanced table is a sum of cycles. Cycles along the largest entries are subtracted one by one,
    and the one at the quantile u is drawn: the mean over u is ``share``, and every draw is
    balanced.
    """
    rest, path = share.tolist(), [0, 1, 0]
    heaviest = [max(row) for row in rest]
    while u >= 0.0:
        walk = [heaviest.index(max(heaviest))]
        while heaviest[walk[-1]] > 0.0:
            walk.append(rest[walk[-1]].index(heaviest[walk[-1]]))
            if walk[-1] in walk[:-1]:
                break
        if len(walk) == 1:
            break
        around = walk.index(walk[-1])
        least = 0.0
        if around < len(walk) - 1:
            path = walk[around:]
            least = min(rest[c][j] for c, j in pairwise(path))
            u -= least * (len(path) - 1)
            taken = list(pairwise(path))
        else:  # no cycle found, due to rounding
            taken = [(walk[-2], walk[-1])]
            least = rest[walk[-2]][walk[-1]]
        for c, j in taken:
            rest[c][j] -= least
            heaviest[c] = max(rest[c])
    return path


def uniforms(seed: int, t: int, end: int, n: int) -> Array:
    """N uniform numbers for each of the draws t, ..., end - 1, however these are split."""
    return np.random.Generator(np.random.PCG64(seed).advance(t * n)).random(
        (end - t, n)
    )
