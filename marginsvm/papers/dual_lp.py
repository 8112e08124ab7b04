"""Raj and Bach (2020): Explicit Regularization through Duality, Algorithms 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from marginsvm._typing import Array
from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    KernelParameters,
    LpParameters,
    RandomParameters,
    parameter,
    with_parameters,
)
from marginsvm.fit import Algorithm, Candidate, Progress, Requirements
from marginsvm.papers.dual_lp_newton import Newton, working_set
from marginsvm.papers.layout import layout_of
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.rows import Rows, intervals_of
from marginsvm.problem.vectors import Predictor, Vector

# Epochs between restarts, times 1, 2, 1, 4, 1, 2, 1, 8 and so on: the schedule of Fercoq and Qu,
# with a linear rate for unknown strong convexity. In twenty epochs, the bound of eq. (8) falls by
# a factor of a hundred.
PERIOD = 20
LATER = 1.1  # growth of the number of epochs between two measurements
LAST_RESORT = 50  # epochs of Algorithm 1, for a model of weighted examples

State = TypeVar("State", bound="RajBachState")


@dataclass(frozen=True)
class RajBachState:
    """After t epochs: the paper's alpha, v and gamma, and the seed of all draws."""

    seed: int
    t: int
    alpha: Vector
    v: Vector
    gamma: float


@dataclass(frozen=True)
class RajBach(Algorithm):
    r"""Algorithms 1 (plain) and 2 (accelerated) of Raj and Bach; an iteration is an epoch.

    The lines of the listings, for each draw, are the loops of ``papers/coordinates.py``. Eq. (8) is
    about v, not about alpha, which the listing of Algorithm 2 returns. With a soft margin, the
    strong convexity of the dual is known, and Algorithm 2 becomes Algorithm 1 of Lin, Lu and Xiao,
    whose rate is linear.

    Attributes
    ----------
    accelerated : bool
        Algorithm 2 rather than 1.
    sampling : {"permutation", "uniform", "curvature"}
        How the coordinates of an epoch are drawn.
    random_state : int, RandomState instance or None
        Seed of the draws.

    =======================================  ===========================================
    paper                                    code
    =======================================  ===========================================
    :math:`x_i`                              a row of the data, divided by the radius
    :math:`\alpha, v, \gamma` (Algorithm 2)  ``alpha``, ``v``, ``gamma``
    :math:`z`                                ``z``, in ``papers/coordinates.py``
    :math:`\theta(\alpha)`                   mirror image of a vector, see ``LpNorm.mirror``
    :math:`L_i`                              ``layout_of(problem).curvature``
    =======================================  ===========================================
    """

    accelerated: bool = True
    sampling: str = "uniform"
    random_state: Any = None

    requires = Requirements(by_passes=False)

    def start(self, problem: KernelMatrixAdapter) -> RajBachState:
        """Begin at zero."""
        zero = problem.zeros()
        return RajBachState(
            draw_seed(self.random_state), 0, zero, zero, 1.0 / problem.n_rows
        )

    def step(self, problem: KernelMatrixAdapter, state: RajBachState) -> RajBachState:
        """An epoch: as many draws as there are rows."""
        rows = problem.rows.flat_indices()
        return self.epoch(problem, state, rows, accelerated=self.accelerated)

    def epoch(
        self,
        problem: KernelMatrixAdapter,
        state: State,
        rows: Array,
        *,
        accelerated: bool,
    ) -> State:
        """Draw from some rows, as often as there are rows in all."""
        from marginsvm.papers import coordinates

        layout = layout_of(problem)
        seed = state.seed
        t = state.t
        order = draw(seed, t, rows, problem.n_rows, self.sampling, layout.curvature)
        if accelerated and rows.size > 1:
            now = (state.alpha, state.v, state.gamma)
            mu = layout.mu
            alpha, v, gamma = coordinates.accelerate(
                problem, order, rows.size, mu, *now
            )
        else:
            alpha = state.v.copy()
            gamma = 1.0 / rows.size
            coordinates.ascend(problem, order, alpha)
            v = alpha
        return replace(state, t=t + 1, alpha=alpha, v=v, gamma=gamma)

    def candidates(
        self, problem: KernelMatrixAdapter, state: Any
    ) -> Iterator[Candidate]:
        """``v``, as a primal and a dual point."""
        yield Candidate(
            state.v, state.v.mass, float(problem.margins(state.v).min()), True
        )


def draw_seed(random_state: Any) -> int:
    """Seed of a fit's draws."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def draw(
    seed: int,
    t: int,
    rows: Array,
    n: int,
    sampling: str,
    curvature: Array | None = None,
) -> Array:
    """N draws from some rows, for epoch t; ``curvature`` is that of all coordinates."""
    from marginsvm.papers import coordinates

    if sampling == "permutation":
        return coordinates.shuffled(rows, n, seed, t)
    rng = np.random.default_rng((seed, t))
    if sampling == "curvature" and curvature is not None:
        weights = np.sqrt(curvature[rows])
        return rng.choice(rows, size=n, p=weights / weights.sum())
    return rows[rng.integers(rows.size, size=n)]


class Pocket(NamedTuple):
    """The last measured predictor, and the best so far by misclassified weight (Gallant's pocket).

    The latter is the model of inseparable classes, for which sequences diverge.
    """

    last: Predictor
    min_margin: float
    model: Predictor
    mistakes: float = np.inf

    def after(self, rows: Rows, w: Predictor, margins: Array) -> Pocket:
        """The pocket after another predictor with these margins."""
        right = margins.reshape(rows.shape) > 0.0  # not so of what has overflowed
        mistakes = float(rows.weighted(~right).sum())
        best = (
            (w, mistakes) if mistakes < self.mistakes else (self.model, self.mistakes)
        )
        return Pocket(w, float(margins.min()), *best)

    def candidates(self) -> Iterator[Candidate]:
        """The last measured predictor, and the model of inseparable classes."""
        yield Candidate(self.last, min_margin=self.min_margin)
        yield Candidate(self.model, fallback=True)


# Ours.


@dataclass(frozen=True)
class DualLpState(RajBachState):
    """The paper's state, and ours.

    Attributes
    ----------
    rows : ndarray
        Coordinates that are drawn from, by their flat indices.
    begun, n_runs : int
        Epoch of the last restart, and the number of restarts.
    next_measurement : int
        Epoch of the next computation of all margins.
    newton : Newton
        Damping and due time of Newton steps.
    found : object
        Best points so far.
    """

    rows: Array
    found: Any
    begun: int = 0
    n_runs: int = 1
    next_measurement: int = 1
    newton: Newton = field(default_factory=Newton)


@dataclass(frozen=True)
class DualLp(RajBach):
    """Ours: the paper's algorithms on a working set, with restarts and Newton steps.

    Attributes
    ----------
    restart : bool
        Whether the acceleration restarts after Newton steps and, for hard margins, after some
        epochs.
    shrinking : bool
        Whether coordinates are drawn from a working set.
    """

    restart: bool = True
    shrinking: bool = True

    def start(self, problem: KernelMatrixAdapter) -> DualLpState:
        """Begin at zero; all rows are drawn from."""
        state = super().start(problem)
        rows = problem.rows.flat_indices()
        return DualLpState(
            **vars(state), rows=rows, found=Pocket(state.v, 0.0, state.v)
        )

    def step(self, problem: KernelMatrixAdapter, state: Any) -> DualLpState:
        """Move, and measure v each time the number of epochs has grown by a tenth."""
        state = self.moved(problem, state)
        if state.t < state.next_measurement:
            return state
        after = max(state.t + 1, int(LATER * state.t))
        return self.measured(problem, replace(state, next_measurement=after))

    def moved(self, problem: KernelMatrixAdapter, state: DualLpState) -> DualLpState:
        """An epoch, or a Newton step."""
        restarts = self.accelerated and self.restart
        if restarts and state.newton.is_due(state.rows.size):  # on a working set
            v = without_traces(problem, state.v)
            rows = working_set(problem, v) if self.shrinking else state.rows
            better, newton = state.newton.step(problem, v, rows)
            state = replace(state, newton=newton, t=state.t + 1)
            if better is v:  # no progress: the acceleration continues
                return state
            return begin_again(
                problem, replace(state, rows=rows, next_measurement=state.t), better
            )
        # plain steps keep alpha sparse, so that the first epoch finds a working set
        accelerated = self.accelerated and not (self.shrinking and state.t == 0)
        state = self.epoch(problem, state, state.rows, accelerated=accelerated)
        if not restarts:
            return state
        state = replace(state, newton=state.newton.after(problem, problem.n_rows))
        # with a soft margin, the strong convexity is known, and the rate linear without restarts
        end = state.begun + PERIOD * (state.n_runs & -state.n_runs)
        over = problem.ridge is None and state.t >= end
        return begin_again(problem, state, state.v) if over else state

    def measured(self, problem: KernelMatrixAdapter, state: DualLpState) -> DualLpState:
        """Compute all margins; choose another working set if it lacks the smallest one."""
        margins = problem.margins(state.v)
        lowest = int(margins.argmin())
        pocket = state.found.after(problem.rows, state.v, margins)
        state = replace(state, found=pocket)
        if self.shrinking and (state.t == 1 or not np.isin(lowest, state.rows)):
            v = without_traces(problem, state.v)
            return begin_again(problem, replace(state, rows=working_set(problem, v)), v)
        return state

    def candidates(
        self, problem: KernelMatrixAdapter, state: Any
    ) -> Iterator[Candidate]:
        """``v``, as a dual point, and the measured predictors."""
        yield Candidate(state.v, state.v.mass)
        yield from state.found.candidates()

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """The pocket or, with sample weights, a better model of ``weighted_pocket``."""
        return weighted_pocket(
            problem, super().fallback(problem, progress), progress.state.seed
        )


@with_parameters
class DualLpPerceptron(
    RandomParameters, LpParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Maximum :math:`\ell_p`-margin classifier by accelerated dual coordinate ascent.

    It minimises the p-norm of the predictor, with functional margins of at least 1: p = 2 is the
    maximum-margin classifier, p near 1 leaves few large coefficients.

    Parameters
    ----------
    C : float
        Cost of slack in ``1/2 |w|_p^2 + C sum(xi^2)`` (dimensionless). ``inf``: a hard margin.
    kernel : str or callable
        ``"linear"`` or, for p = 2, ``"precomputed"``, a name of
        ``sklearn.metrics.pairwise.pairwise_kernels``, or ``kernel(X, Y) -> matrix``.
    accelerated : bool
        Algorithm 2 rather than the slower Algorithm 1.
    sampling : {"permutation", "uniform", "curvature"}
        ``"permutation"``: shuffled epochs; ``"uniform"``: independent draws, as in the theorems;
        ``"curvature"`` (``accelerated=False``): in proportion to :math:`\sqrt{L_i}`.
    restart : bool
        Restart the acceleration after Newton steps on at most 2500 rows and, with ``C=inf``, after
        20, 40, 20, 80, ... epochs.
    shrinking : bool
        Skip rows with alpha = 0 and large margin. The paper has neither shrinking nor restarts.

    See Also
    --------
    DualLpRegressor : Targets instead of labels.

    Notes
    -----
    The predictor is v of eq. (8), not the alpha that the listing returns.

    References
    ----------
    A. Raj, F. Bach. Explicit Regularization of Stochastic Gradient Methods through
    Duality. arXiv:2003.13807, 2020. Algorithms 1 and 2, Proposition 1, eq. (8).

    Qihang Lin, Zhaosong Lu, Lin Xiao. SIAM J. Optim. 25(4), 2015. Algorithm 1 (``C < inf``).

    Yurii Nesterov. SIAM J. Optim. 22(2), 2012. Theorem 1 (``sampling="curvature"``).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import DualLpPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DualLpPerceptron(random_state=0).fit(X[:100], y[:100])
    >>> clf.status_, bool(clf.margin_ <= 0.749117 <= clf.margin_bound_)
    ('certified', True)
    """

    accelerated: bool = parameter("boolean", default=True)
    sampling: str = parameter(
        StrOptions({"permutation", "uniform", "curvature"}), default="permutation"
    )
    restart: bool = parameter("boolean", default=True)
    shrinking: bool = parameter("boolean", default=True)

    def _algorithm(self) -> DualLp:
        if self.sampling == "curvature" and self.accelerated:
            raise ValueError(
                'sampling="curvature" is for accelerated=False: Algorithm 2 draws its rows with '
                "equal probabilities. A grid over both is a list of two: [{'accelerated': [True]}, "
                "{'accelerated': [False], 'sampling': ['permutation', 'curvature']}]"
            )
        return DualLp(
            accelerated=self.accelerated,
            sampling=self.sampling,
            restart=self.restart,
            shrinking=self.shrinking,
            random_state=self.random_state,
        )


def without_traces(problem: KernelMatrixAdapter, v: Vector) -> Vector:
    """The vector after plain steps along its rows.

    Accelerated sequences leave small non-zero alpha on every row they have visited; a plain step
    sets it to zero where scores are inside their intervals.
    """
    from marginsvm.papers import coordinates

    v = problem.combine(intervals_of(problem.rows).admissible(v.coef)).copy()
    coordinates.ascend(problem, np.flatnonzero(v.coef.reshape(-1)), v)
    return v


def begin_again(
    problem: KernelMatrixAdapter, state: DualLpState, v: Vector
) -> DualLpState:
    """Restart the acceleration at v, recomputed from its coefficients."""
    v = problem.combine(intervals_of(problem.rows).admissible(v.coef), precise=True)
    return replace(
        state,
        alpha=v,
        v=v,
        gamma=1.0 / state.rows.size,
        begun=state.t,
        n_runs=state.n_runs + 1,
    )


def weighted_pocket(
    problem: KernelMatrixAdapter, known: Candidate, seed: int
) -> Candidate:
    """The known model of inseparable classes or, with sample weights, a better one.

    Sample weights change neither a hard margin nor the sequence of a fit. So the model ignores
    them, unless rows are drawn in proportion to them, here by Algorithm 1.
    """
    rows = problem.rows
    if rows.weights is None:
        return known
    from marginsvm.papers import coordinates

    flat = rows.flat_indices()
    u = problem.zeros()
    w = known.vector
    weights = rows.weighted(np.ones(rows.shape)).ravel()[flat]
    pocket = Pocket(w, 0.0, w).after(rows, w, problem.margins(w))
    for t in range(LAST_RESORT):
        draws = np.random.default_rng((seed, t))
        u = u.copy()
        order = draws.choice(flat, size=problem.n_rows, p=weights / weights.sum())
        coordinates.ascend(problem, order, u)
        pocket = pocket.after(rows, u, problem.margins(u))
    return Candidate(pocket.model, fallback=True)
