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
from marginsvm.kernel_matrix.responses import softmax
from marginsvm.rows import Rows, Vector
from marginsvm.schedules import MOMENTA, STEPS, Schedule, momentum_at, resolve, step_at, theory_step

GUESSED_DRAWS = 16  # columns computed together where the next draws can be guessed


@dataclass(frozen=True)
class State:
    """After t draws: the paper's ``w_t`` and ``g_{t-1}``, whose images are scores."""

    t: int
    seed: int
    w: Vector
    g: Vector


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

    def schedules(self, n_rows: int) -> tuple[Callable[[int], float], Callable[[int], float]]:
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
        beta = self.schedules(n_rows=2)[1]
        plan = ColumnPlan(self.cache_size, GUESSED_DRAWS if momentum_at(beta, 1) > 0 else 1)
        return Requirements(by_passes=False, columns=plan)

    def n_rounds(self, n_iter: int) -> int:
        """Draws that are made before bounds are looked at again."""
        return max(1, n_iter // 8)

    def start(self, problem: KernelMatrixAdapter) -> State:
        """Begin at zero, with a seed for all draws."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        zero = Vector(np.zeros(problem.rows.score_shape), np.zeros(problem.rows.shape))
        return State(0, seed, zero, zero)

    def step(self, problem: KernelMatrixAdapter, state: State) -> State:
        """Make some draws."""
        end = min(state.t + self.n_rounds(state.t), self.max_draws)
        step, momentum = self.schedules(problem.n_rows)
        w, g = state.w, state.g
        u = uniforms(state.seed, state.t, end, 1 + problem.rows.n_classes)
        for t in range(state.t, end):
            theta, beta = step_at(step, t), momentum_at(momentum, t)
            q = softmax(problem.rows, margins(problem, w)).q
            a = drawn_row(problem, q, u[t - state.t])
            g = beta * (g + a)
            w = w + theta * (g + a)
        return State(end, state.seed, w, g)

    def candidates(self, problem: KernelMatrixAdapter, state: State) -> Iterator[Candidate]:
        """Both sequences; the draws are a distribution, and so a proof."""
        w, g, assemble = state.w, state.g, with_columns(problem).assemble
        low = problem.rows.group_min(margins(problem, w))
        yield Candidate(
            assemble(w.image, w.coef), w.mass, problem.rows.min_margin(low), fallback=True
        )
        if g.mass > 0:
            yield Candidate(assemble(g.image, g.coef), g.mass)


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
    :math:`q_t`                  ``q``, the softmax of minus the margins of ``w``
    :math:`i_t \sim q_t`         ``a``, the row that is drawn
    :math:`g_t, w_{t+1}`         ``-g``, ``w``
    :math:`\theta_t, \beta_t`    ``theta`` (``step``), ``beta`` (``momentum``)
    :math:`T`                    ``max_iter``
    ===========================  ======================================================

    The weighted draws are a distribution: ``norm(w) / mass(w)`` is an upper bound.

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


def margins(problem: KernelMatrixAdapter, w: Vector) -> Array:
    """Margins of all rows, from scores."""
    found = problem.rows.margins(w.image)
    return found if problem.slack is None else found + problem.slack * w.coef


def drawn_row(problem: KernelMatrixAdapter, q: Array, u: Array) -> Vector:
    """The row that is drawn from q at uniform numbers u; its image is its scores.

    With an intercept it is the mean of two or more rows that balance.
    """
    rows, cache = problem.rows, with_columns(problem).columns()
    ids = sample(rows, q, u)
    examples, signs = rows.locate(ids)

    def likely() -> Array:
        """Examples without a column that are drawn next if q stays: the heaviest."""
        weight = np.where(cache.slot < 0, q.reshape(len(q), -1).sum(axis=1), 0.0)
        top = np.argpartition(-weight, cache.batch - 1)[: cache.batch]
        return top[np.argsort(-weight[top], kind="stable")]

    cache.fetch(examples, likely)
    cache.n_used += len(ids)
    problem.work.add_pass(len(ids) * cache.passes)
    K = cache.columns[cache.slot[examples]].astype(np.float64, copy=False)
    F = K.T @ (signs * (with_columns(problem).column_scale() / len(ids)))
    coef = np.zeros(rows.shape)
    coef.flat[ids] = 1.0 / len(ids)
    return Vector(F.reshape(rows.score_shape), coef)


def sample(rows: Rows, q: Array, u: Array) -> Array:
    """Flat indices of the rows that are drawn: one or, with an intercept, a cycle of groups.

    Each class has a uniform number of its own, wherever the cycle is said to begin.
    """
    if not rows.balanced:
        return np.array([quantile(q.ravel(), u[0])])
    path, several = cycle_at(rows.group_sum(q), u[0]), q.ndim > 1
    ids = []
    for c, j in pairwise(path):
        members = np.flatnonzero(rows.codes == c)
        i = members[quantile(q[members, j] if several else q[members], u[1 + c])]
        ids.append(i * q.shape[1] + j if several else i)
    return np.array(ids)


def quantile(weights: Array, u: float) -> int:
    """Where the running sum of the weights exceeds the share u of all; never at a weight of 0."""
    running = weights.cumsum()
    i = running.searchsorted(u * running[-1], side="right")
    return int(min(i, running.searchsorted(running[-1])))


def cycle_at(share: Array, u: float) -> list[int]:
    """Draw a cycle of groups: classes path[0] -> path[1] -> ... -> path[0].

    Balanced masses are a sum of cycles. Those found by following the heaviest groups from class to
    class are subtracted one by one, and the one at the quantile u is drawn: the mean over u is
    ``share``, and every draw is balanced.
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
        else:  # a dead end: what rounding left of the balance
            taken = [(walk[-2], walk[-1])]
            least = rest[walk[-2]][walk[-1]]
        for c, j in taken:
            rest[c][j] -= least
            heaviest[c] = max(rest[c])
    return path


def uniforms(seed: int, t: int, end: int, n: int) -> Array:
    """N uniform numbers for each of the draws t, ..., end - 1: the same for every split of them."""
    return np.random.Generator(np.random.PCG64(seed).advance(t * n)).random((end - t, n))
