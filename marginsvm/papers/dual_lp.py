"""Raj and Bach (2020): Explicit Regularization through Duality, Algorithms 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv
from scipy.optimize import brentq
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from marginsvm._threads import let_interrupts_through
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
from marginsvm.papers.layout import layout_of
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.rows import Rows, intervals_of
from marginsvm.problem.vectors import Predictor, Vector

# Epochs between restarts, times 1, 2, 1, 4, 1, 2, 1, 8 and so on: the schedule of Fercoq and Qu,
# with a linear rate for unknown strong convexity. In twenty epochs, the bound of eq. (8) falls by
# a factor of a hundred.
PERIOD = 20
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
    r"""Algorithms 1 (plain) and 2 (accelerated) of Raj and Bach; a round is an epoch.

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

        layout, seed, t = layout_of(problem), state.seed, state.t
        order = draw(seed, t, rows, problem.n_rows, self.sampling, layout.curvature)
        if accelerated and rows.size > 1:
            now, mu = (state.alpha, state.v, state.gamma), layout.mu
            alpha, v, gamma = coordinates.accelerate(
                problem, order, rows.size, mu, *now
            )
        else:
            alpha, gamma = state.v.copy(), 1.0 / rows.size
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


# Newton's method on a working set.
#
# Coordinate ascent soon finds the support, but with nearly dependent rows it takes thousands of
# epochs to find alpha. For given signs of alpha, the dual is smooth, and its Hessian on few rows is
# a small matrix: one solution of its quadratic model, by block pivoting, replaces those epochs. An
# exact line search on the dual objective ends a step; the result is certified like all others.
_LEAST_ADDED = 100  # a working set doubles, or gains this many rows
_MOST_ROWS = 2500  # largest working set; its matrices take 200 MB
# Work is counted in coordinate steps, about as measured with dozens of features. It does not depend
# on their number or sparsity, so that a fit takes the same steps for all forms of the same data.
# The matrix of m rows takes m^2 / 10, pivoting m^3 / 10,000, calls from Python 500 in an epoch and
# five times that in a Newton step.
_PRODUCT, _PIVOTING, _CALLS, _MORE_CALLS = 10.0, 10_000.0, 500.0, 5.0
_POWERS = 6.0  # cost of a coordinate step with powers, relative to one without
# Levenberg-Marquardt damping, relative to the mean curvature: initial, least and largest. It keeps
# the step near the current alpha, where the model is accurate, and makes the model definite where
# rows are dependent. It is divided or multiplied by ten as the model is right or wrong.
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-12, 1e3
_TRIES = 8  # attempts at pivoting in one step, each with ten times the damping
_FLAT_SLOPE = 1e-3  # slope at a maximum along a step, relative to the initial slope
# Relative error of a shortened step; and the shortest step.
_PRECISE, _SHORTEST_STEP = 1e-4, 1e-12
# Exchanges without fewer infeasible rows before pivoting stops: it may cycle.
_TURNS_WITHOUT_PROGRESS = 3
_INFEASIBLE = 1e-10  # rounding, relative to the largest end or alpha


@dataclass(frozen=True)
class Newton:
    """Damping of the next Newton step, and the work since the last one.

    Attributes
    ----------
    damping : float
        Added curvature, relative to the mean (dimensionless).
    spent : float
        Work of coordinate ascent since the last Newton step.
    """

    damping: float = _FIRST_DAMPING
    spent: float = 0.0

    def after(self, problem: KernelMatrixAdapter, steps: int) -> Newton:
        """The state after some coordinate steps."""
        work = _CALLS + steps * (1.0 if layout_of(problem).q == 2.0 else _POWERS)
        return replace(self, spent=self.spent + work)

    def is_due(self, m: int) -> bool:
        """Whether a step on m rows takes at most the work spent since the last one."""
        work = m**2 / _PRODUCT + m**3 / _PIVOTING + _MORE_CALLS * _CALLS
        return m <= _MOST_ROWS and self.spent >= work

    def step(
        self, problem: KernelMatrixAdapter, v: Vector, chosen: Array
    ) -> tuple[Vector, Newton]:
        """A Newton step on some rows, with exact line search on the dual objective."""
        intervals = intervals_of(problem.rows)
        low, high = intervals.low.ravel()[chosen], intervals.high.ravel()[chosen]
        weights, H = v.coef.ravel()[chosen], second_derivatives(problem, v, chosen)
        pull = (
            H @ weights - problem.margins(v).ravel()[chosen]
        )  # also of the rows left out
        damping, diagonal = self.damping, H.diagonal().copy()
        for _ in range(_TRIES):
            added = damping * diagonal.mean()
            np.fill_diagonal(H, diagonal + added)
            found = pivoted(H, low, high, pull + added * weights, weights)
            if found is not None:
                break
            damping *= 10.0
        else:
            return v, Newton(min(damping, _MOST_DAMPING))
        coef = v.coef.ravel().copy()
        coef[chosen] = found
        d = problem.combine(coef) - v
        t = _best_step(problem, v, d)
        damping *= 0.1 if t > 0.5 else 10.0 if t < 0.1 else 1.0
        newton = Newton(min(max(damping, _LEAST_DAMPING), _MOST_DAMPING))
        return (v + t * d if t > 0.0 else v), newton


def working_set(problem: KernelMatrixAdapter, v: Vector) -> Array:
    """The support, and as many rows (at least ``_LEAST_ADDED``) with the largest violations."""
    flat, ends = problem.rows.flat_indices(), intervals_of(problem.rows)
    score, weight = problem.margins(v).ravel()[flat], v.coef.ravel()[flat]
    inside = np.minimum(score - ends.low.ravel()[flat], ends.high.ravel()[flat] - score)
    n = int(np.count_nonzero(weight))
    size = min(len(flat), n + max(_LEAST_ADDED, n))
    chosen = np.argpartition(np.where(weight != 0.0, -np.inf, inside), size - 1)[:size]
    return np.sort(flat[chosen])


def second_derivatives(
    problem: KernelMatrixAdapter, v: Vector, row_ids: Array
) -> Array:
    """Second derivatives at v of half the squared norm, along some rows."""
    design, norm = problem.design, problem.norm_of_predictors
    if design is None:
        return problem.gram(row_ids, row_ids)
    examples, signs = problem.rows.locate(row_ids)
    curvature, rank_one = norm.curvature(v.image)
    H = np.zeros((len(row_ids), len(row_ids)))
    if problem.ridge is not None:
        np.fill_diagonal(H, problem.ridge.ravel()[row_ids])
    for sign, scale in zip(signs.T, np.atleast_2d(np.sqrt(curvature)), strict=True):
        of = np.flatnonzero(sign)
        X = design.rows(examples[of])
        X = X @ sp.diags_array(scale) if design.sparse else X * scale
        G = X @ X.T
        G = G.toarray() if design.sparse else G
        H[of[:, None], of] += G * np.multiply.outer(sign[of], sign[of])
    if rank_one == 0.0:
        return H
    m = problem.rows.margins(problem.scores(v, precise=False)).ravel()[row_ids]
    return H - rank_one * np.multiply.outer(m, m)


def pivoted(
    H: Array, low: Array, high: Array, pull: Array, near: Array
) -> Array | None:
    """The b that maximises ``gain(b) + pull'b - b'Hb/2``; None if pivoting cycles.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Definite.
    low, high : ndarray of shape (m,)
        Ends of intervals: ``gain(b) = low'max(b, 0) + high'min(b, 0)``.
    pull : ndarray of shape (m,)
    near : ndarray of shape (m,)
        Initial guess; only its signs are used.
    """
    point, ends = low == high, np.abs(np.append(low, high))
    small = _INFEASIBLE * float(ends[np.isfinite(ends)].max(initial=0.0))
    side, fewest, left = np.sign(near), len(H) + 1, _TURNS_WITHOUT_PROGRESS
    while left >= 0:
        let_interrupts_through()  # of thousands of rows, a factor takes a second
        face, b = np.flatnonzero(side), np.zeros(len(H))
        if len(face):
            load = (np.where(side > 0, low, high) + pull)[face]
            _, b[face], failed = dposv(H[face[:, None], face], load)
            if failed:
                return None
        score = H @ b - pull
        to = np.where(
            score < low - small, 1.0, np.where(score > high + small, -1.0, 0.0)
        )
        gone = ~point & (b * side < -_INFEASIBLE * np.abs(b).max(initial=0.0))
        wanted = np.where(side == 0.0, to, np.where(gone, 0.0, side))
        changed = int(np.count_nonzero(wanted != side))
        if changed == 0:
            return np.where(point | (b * side > 0.0), b, 0.0)
        left = _TURNS_WITHOUT_PROGRESS if changed < fewest else left - 1
        side, fewest = wanted, min(changed, fewest)
    return None


def _best_step(problem: KernelMatrixAdapter, v: Vector, d: Vector) -> float:
    """Maximiser in [0, 1] of the (concave) dual objective along d; 1 if the maximum is near.

    The full step makes entries of alpha exactly zero.
    """
    intervals = intervals_of(problem.rows)

    def slope(t: float) -> float:
        """Derivative from within [0, 1]."""
        weights = v.coef + t * d.coef
        side = np.where(weights != 0.0, weights, -d.coef if t > 0.0 else d.coef)
        gain = np.where(
            d.coef == 0.0, 0.0, np.where(side > 0.0, intervals.low, intervals.high)
        )
        return float((gain * d.coef).sum()) - problem.dot(d, v + t * d)

    first, last = slope(0.0), slope(1.0)
    if first > 0.0 and last < -_FLAT_SLOPE * first:
        return float(brentq(slope, 0.0, 1.0, xtol=_SHORTEST_STEP, rtol=_PRECISE))
    return 1.0 if last >= -_FLAT_SLOPE * first else 0.0


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
        state, rows = super().start(problem), problem.rows.flat_indices()
        return DualLpState(
            **vars(state), rows=rows, found=Pocket(state.v, 0.0, state.v)
        )

    def step(self, problem: KernelMatrixAdapter, state: Any) -> DualLpState:
        """Move, and measure v each time the number of epochs has grown by a tenth."""
        state = self.moved(problem, state)
        if state.t < state.next_measurement:
            return state
        after = max(state.t + 1, int(1.1 * state.t))
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
        lowest, pocket = (
            int(margins.argmin()),
            state.found.after(problem.rows, state.v, margins),
        )
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

    tol: float = 1e-2
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
                "equal probabilities"
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

    flat, u, w = rows.flat_indices(), problem.zeros(), known.vector
    weights = rows.weighted(np.ones(rows.shape)).ravel()[flat]
    pocket = Pocket(w, 0.0, w).after(rows, w, problem.margins(w))
    for t in range(LAST_RESORT):
        draws, u = np.random.default_rng((seed, t)), u.copy()
        order = draws.choice(flat, size=problem.n_rows, p=weights / weights.sum())
        coordinates.ascend(problem, order, u)
        pocket = pocket.after(rows, u, problem.margins(u))
    return Candidate(pocket.model, fallback=True)
