"""Raj and Bach (2020): Explicit Regularization through Duality, Algorithms 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from marginsvm._typing import Array
from marginsvm.algorithms.dual_ascent import (
    Sequences,
    draw,
    draw_seed,
    margin_intervals,
    margin_sequences,
)
from marginsvm.algorithms.dual_newton import NewtonTimetable, working_set
from marginsvm.algorithms.pocket import misclassified_weight, weighted_pocket
from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import parameter, with_parameters
from marginsvm.estimator.parameters import KernelParameters, LpParameters, RandomParameters
from marginsvm.fit import Algorithm, Candidate, Progress, Requirements, Stopping
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import row_layout
from marginsvm.rows import Vector


@dataclass(frozen=True)
class DualLpState:
    """The sequences after ``t`` epochs, and what was last measured of ``v``, the predictor.

    ``pocket`` is the ``v`` that misclassified the least weight of rows. It is the model where
    nothing separates, as the sequences diverge there.
    """

    seed: int  # with t, it determines the coordinates of an epoch
    sequences: Sequences
    v: Vector
    active: Array  # coordinates that are drawn from
    t: int = 0
    steps: int = 0  # since the acceleration began
    next_measurement: int = 1
    gap: float = np.inf
    min_margin: float | None = None
    pocket: Vector | None = None
    mistakes: float = np.inf
    newton: NewtonTimetable = field(default_factory=NewtonTimetable)


@dataclass(frozen=True)
class DualLp(Algorithm):
    """Algorithms 1 (plain) and 2 (accelerated) of Raj and Bach, by epochs.

    Attributes
    ----------
    accelerated : bool
        Algorithm 2 rather than 1.
    sampling : {"permutation", "uniform", "curvature"}
        How the coordinates of an epoch are drawn.
    restart : bool
        Whether the acceleration begins again where the gap grows, and where Newton's method gets.
    shrinking : bool
        Whether coordinates are drawn from a working set.
    random_state : int, RandomState instance or None
        Seed of the draws.
    """

    accelerated: bool = True
    sampling: str = "permutation"
    restart: bool = True
    shrinking: bool = True
    random_state: Any = None

    requires = Requirements(by_passes=False)

    def start(self, problem: KernelMatrixAdapter) -> DualLpState:
        """Begin at zero; all rows are drawn from."""
        seed, zero = draw_seed(self.random_state), problem.zeros()
        sequences = margin_sequences(problem, zero)
        return DualLpState(seed, sequences, zero, problem.rows.flat_indices())

    def step(self, problem: KernelMatrixAdapter, state: DualLpState) -> DualLpState:
        """Play an epoch, as many coordinates as rows, or a step of Newton's method."""
        from marginsvm.algorithms.compiled import coordinates as loops

        # with a soft margin, the strong convexity is known, and the rate linear without restarts
        restarts = self.accelerated and self.restart and problem.slack is None
        if restarts and state.newton.is_due(state.active.size):
            return self._by_newton(problem, state)
        sequences = state.sequences
        curvature = row_layout(problem).curvature if self.sampling == "curvature" else None
        order = draw(state.seed, state.t, state.active, problem.n_rows, self.sampling, curvature)
        choosing = self.shrinking and state.t == 0  # plain steps leave most weights at zero
        if self.accelerated and not choosing:
            sequences = sequences.epoch(problem, order)
        else:
            alpha = sequences.answer.copy()
            loops.ascend(problem, order, alpha)
            sequences = sequences.begun(alpha, state.active.size)
        state = replace(
            state,
            sequences=sequences,
            v=sequences.answer,
            t=state.t + 1,
            steps=state.steps + order.size,
            min_margin=None,
            newton=state.newton.after(problem, order.size),
        )
        return self._measured(problem, state) if state.t >= state.next_measurement else state

    def candidates(self, problem: KernelMatrixAdapter, state: DualLpState) -> Iterator[Candidate]:
        """``v``, as a predictor and a proof."""
        assert state.pocket is not None
        yield Candidate(state.v, state.v.mass, state.min_margin)
        yield Candidate(state.pocket, fallback=True)

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """The pocket; of weighted rows, or a model of ``weighted_pocket`` that is better."""
        return weighted_pocket(problem, super().fallback(problem, progress), progress.state.seed)

    def _measured(self, problem: KernelMatrixAdapter, state: DualLpState) -> DualLpState:
        """Measure the gap of ``v``, and restart the acceleration where the gap has grown."""
        margins, t = problem.margins(state.v).ravel(), state.t
        lowest = int(margins.argmin())
        norm = max(problem.norm(state.v), 1e-150)
        gap = 1.0 - margins[lowest] / norm * (state.v.mass / norm)
        grown = self.restart and state.steps >= 10 * state.active.size
        grown = grown and 1.5 * state.gap < gap < 1.0
        mistakes = misclassified_weight(problem.rows, margins)
        if mistakes < state.mistakes:
            state = replace(state, pocket=state.v, mistakes=mistakes)
        state = replace(
            state,
            min_margin=float(margins[lowest]),
            gap=gap,
            next_measurement=max(t + 1, int(1.1 * t)),
        )
        if self.shrinking and (grown or t == 1 or not np.isin(lowest, state.active)):
            return self._choose(problem, state, margins)
        return begin_again(problem, state, state.v) if grown else state

    def _choose(
        self, problem: KernelMatrixAdapter, state: DualLpState, margins: Array
    ) -> DualLpState:
        """Make a working set: the support of v, and as many others of smallest margin."""
        v = without_traces(problem, state.v)
        chosen = working_set(v.coef.reshape(-1) > 0.0, margins)
        return begin_again(problem, replace(state, active=chosen), v)

    def _by_newton(self, problem: KernelMatrixAdapter, state: DualLpState) -> DualLpState:
        """Begin again at the point that a step of Newton's method on a working set gives."""
        v = without_traces(problem, state.sequences.answer)
        chosen = working_set(v.coef.reshape(-1) > 0.0, problem.margins(v).ravel())
        better, newton = state.newton.step(problem, margin_intervals(problem), v, chosen)
        state = replace(state, newton=newton, t=state.t + 1)
        if better is v:  # nothing was found, and the acceleration goes on
            return state
        active = chosen if self.shrinking else state.active
        state = begin_again(problem, replace(state, active=active), better)
        v = state.sequences.answer
        return self._measured(problem, replace(state, v=v, min_margin=None))


@with_parameters
class DualLpPerceptron(
    RandomParameters, LpParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Maximum :math:`\ell_p`-margin classifier by accelerated dual coordinate ascent.

    Finds the predictor of least p-norm for which all decision values are at least 1 on the right
    side. With p = 2 this is the maximum-margin classifier; with p near 1, few features have large
    coefficients. Each step changes the weight of one row.

    Parameters
    ----------
    C : float
        Cost of slack (dimensionless) in the objective ``1/2 |w|_p^2 + C sum(xi^2)``, which is that
        of ``LinearSVC(loss="squared_hinge")`` for p = 2. ``inf`` asks for a hard margin: no
        training errors.
    kernel : str or callable
        ``"linear"`` or, for p = 2 only, ``"precomputed"``, a name known to
        ``sklearn.metrics.pairwise.pairwise_kernels``, or ``kernel(X, Y) -> matrix``. The
        kernel matrix is held in memory.
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless); ``"sparse"`` is 1 + 1 / ln(n_features).
        With p < 2, each step computes one power for each feature, also if X is sparse.
    accelerated : bool
        Whether to use Algorithm 2 of Raj and Bach, which is faster, rather than Algorithm 1.
    sampling : {"permutation", "uniform", "curvature"}
        Whether an epoch goes through all rows once, in random order, or draws rows
        independently, for which the guarantees of Raj and Bach hold. ``"curvature"``, with
        ``accelerated=False``: it draws them in proportion to the roots of the curvatures
        :math:`L_i`, that is to their lengths, which is better where these differ much.
    restart : bool
        Whether to restart the acceleration when the certified gap has grown by half and, with
        ``C=inf``, at points that are found by Newton's method on a working set of at most 2500
        rows, each of which counts as an epoch.
    shrinking : bool
        Whether to go through only the rows that matter: those of positive weight, and others of
        smallest margin, chosen again whenever the row of smallest margin is not among them. With
        ``restart=False``, ``shrinking=False`` and uniform sampling, the fit is the paper's.

    Notes
    -----
    ======================================  ===========================================
    paper                                   code
    ======================================  ===========================================
    :math:`x_i`                             a row of the data, divided by the radius
    :math:`\alpha` (Algorithm 2)            ``zeta``
    :math:`v`                               ``v = zeta + before(gamma) * s``, or ``answer``
    :math:`y`                               ``zeta + gamma**2 * s``
    :math:`\gamma`                          ``gamma``
    :math:`\theta(\alpha)`                  mirror image of a vector, see ``LpNorm.mirror``
    :math:`L_i`                             ``problem.layout().curvature``
    ======================================  ===========================================

    Algorithm 2 is written in two sequences that move in one coordinate a step (``s``
    carries what the third one has in excess); the certified predictor is v, which eq.
    (8) is about, not the sequence that the paper's listing returns. Bounds are computed
    each time the number of epochs has grown by a tenth.

    With ``C < inf``, the dual is strongly convex, by a constant that is known. Then the accelerated
    algorithm is Lin, Lu and Xiao's Algorithm 1 with that constant, whose rate is linear.


    References
    ----------
    A. Raj, F. Bach. Explicit Regularization of Stochastic Gradient Methods through
    Duality. arXiv:2003.13807, 2020. Algorithms 1 and 2, Proposition 1, eq. (8).

    Q. Lin, Z. Lu, L. Xiao. An Accelerated Randomized Proximal Coordinate Gradient Method.
    SIAM J. Optim. 25(4), 2015. Algorithm 1.

    Y. Nesterov. Efficiency of Coordinate Descent Methods on Huge-Scale Optimization Problems.
    SIAM J. Optim. 22(2), 2012. Theorem 1, for draws in proportion to the roots of curvatures.

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

    def _stopping(self) -> Stopping:
        # the margins of text may be below tol, and acceleration soon finds them
        return replace(super()._stopping(), negligible=0.1 * self.tol)


def without_traces(problem: KernelMatrixAdapter, v: Vector) -> Vector:
    """The vector after plain steps along its rows.

    Accelerated sequences keep a trace of every row that they ever touched; a plain step takes it
    away from those whose margin is above 1.
    """
    from marginsvm.algorithms.compiled import coordinates as loops

    v = problem.combine(np.maximum(v.coef, 0.0)).copy()  # whose image is in C order
    loops.ascend(problem, np.flatnonzero(v.coef.reshape(-1)), v)
    return v


def begin_again(problem: KernelMatrixAdapter, state: DualLpState, v: Vector) -> DualLpState:
    """Restart the acceleration at ``v``, computed again from its coefficients."""
    v = problem.combine(np.maximum(v.coef, 0.0))
    sequences = state.sequences.begun(v, state.active.size)
    return replace(state, sequences=sequences, steps=0, gap=np.inf)
