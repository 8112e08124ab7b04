"""Perceptrons and related baselines of the papers: one row or pair of rows a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    ClassParameters,
    CommonParameters,
    KernelParameters,
    LpParameters,
    NormalizeParameters,
    RandomParameters,
    WarmParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.results import Fitted
from marginsvm.fit import (
    NEGLIGIBLE,
    Algorithm,
    Candidate,
    Progress,
    Requirements,
    Stopping,
)
from marginsvm.papers.dual_lp import Pocket, draw, draw_seed, weighted_pocket
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.responses import Weights, WorstRow, worst_row
from marginsvm.problem.rows import Rows
from marginsvm.problem.vectors import BestResponse, Predictor, Vector

LATELY = 1e-6  # of sum(alpha): the difference of two vectors keeps ten digits


@dataclass(frozen=True)
class PerceptronState:
    """After t iterations: ``w_t``, the mean of ``w_1..w_t``, and the best response to ``w_t``."""

    t: int
    w: Vector
    average: Vector
    p: BestResponse


@dataclass(frozen=True)
class Perceptron(Algorithm):
    r"""Supergradient ascent on the smallest margin: each step adds the row that attains it.

    Attributes
    ----------
    projected : bool
        Whether steps fall as 1 / sqrt(t), and ``w`` stays in the unit ball.

    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`w_t`              ``w``
    :math:`\bar w`           ``average``
    supergradient at w       ``problem.respond(w, response=worst_row)``
    :math:`\eta_0`           1: the radius is the unit
    =======================  ==========================================================
    """

    projected: bool = False

    def start(self, problem: KernelMatrixAdapter) -> PerceptronState:
        """Begin at zero."""
        w = problem.zeros()
        return PerceptronState(0, w, w, self.respond(problem, w, None))

    def step(
        self, problem: KernelMatrixAdapter, state: PerceptronState
    ) -> PerceptronState:
        """Add the row on which ``w`` has its smallest margin."""
        t = state.t + 1
        w = state.w + (1.0 / np.sqrt(t) if self.projected else 1.0) * state.p.vector
        if self.projected:
            w = w / max(1.0, problem.norm(w))
        average = state.average + (w - state.average) / t
        return PerceptronState(t, w, average, self.respond(problem, w, state.p))

    def respond(
        self, problem: KernelMatrixAdapter, w: Vector, last: BestResponse | None
    ) -> BestResponse:
        """The row to be added to ``w``; ``last`` was added before."""
        return problem.respond(w, response=worst_row)

    def candidates(
        self, problem: KernelMatrixAdapter, state: PerceptronState
    ) -> Iterator[Candidate]:
        """The sum gives both bounds; the average is the model of inseparable classes."""
        yield Candidate(state.w, state.w.mass, state.p.weights.min_margin)
        yield Candidate(state.average, fallback=True)


STEPS = {"constant": Perceptron(), "cotter": Perceptron(projected=True)}


@with_parameters
class BatchPerceptron(
    CommonParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Batch perceptron: supergradient ascent on the smallest margin.

    Every iteration adds the row of smallest margin. If the classes are not separable, the
    predictors do not converge, and their average is the model.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised. Each iteration then adds the row of
        smallest margin of each class (k > 2: along a cycle of classes).
    steps : {"constant", "cotter"}
        ``"constant"``: the row itself is added, as by Rosenblatt. ``"cotter"``: iteration t adds
        1 / sqrt(t) of it (relative to the largest norm), and the predictor is projected onto the
        unit ball.

    See Also
    --------
    SmoothedKernelPerceptron : Its smoothed, faster version.

    Notes
    -----
    With ``steps="constant"``, w separates after :math:`1 / \gamma^2` iterations. With
    ``steps="cotter"``, the smallest margin of the average of T iterations is at least
    :math:`\gamma - 3 / \sqrt T`.

    References
    ----------
    A. Cotter, S. Shalev-Shwartz, N. Srebro. The Kernelized Stochastic Batch Perceptron.
    ICML 2012. Algorithm 1, without slack, with the worst row in place of a random one. Baseline
    of figures 1 to 3 of Ji et al. (2021).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import BatchPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> BatchPerceptron(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    steps: str = parameter(StrOptions(set(STEPS)), default="constant")

    def _algorithm(self) -> Perceptron:
        return STEPS[self.steps]


@dataclass(frozen=True)
class FirstWorstRow(Perceptron):
    r"""Algorithm 3 of Ramdas and Pena (NKP): of rows with equal margins, the first is added.

    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`w_k, \alpha_k`    ``w / k``: one vector holds both
    :math:`p(\alpha_k)`      ``problem.respond(w, response=WorstRow(first=True))``
    :math:`\theta_k`         1 / (k + 1)
    =======================  ==========================================================
    """

    requires = Requirements(in_order=True)

    def respond(
        self, problem: KernelMatrixAdapter, w: Vector, last: BestResponse | None
    ) -> BestResponse:
        """The first row of smallest margin."""
        return problem.respond(w, response=WorstRow(first=True))


@with_parameters
class NormalizedKernelPerceptron(
    NormalizeParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Normalized (kernel) perceptron (NKP): the average of the rows added so far.

    It is the batch perceptron with a rule for ties: of several rows with the smallest margin, it
    adds the first. In the paper, rows are normalized, as with ``normalize=True,
    fit_intercept=False``. After k iterations its ``w`` is k times
    :math:`\alpha_k = (1 - \theta) \alpha_{k-1} + \theta e_j` with :math:`\theta = 1 / k`. It
    separates within :math:`1 / \rho_K^2` iterations (without ``normalize``, with the best margin
    divided by the largest norm of a row in place of :math:`\rho_K`) and then, as a subgradient
    method, converges to the maximum margin.

    See Also
    --------
    SmoothedKernelPerceptron : Its smoothed, faster version.

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Algorithms 2 (linear) and 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import NormalizedKernelPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> NormalizedKernelPerceptron(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    def _algorithm(self) -> Perceptron:
        return FirstWorstRow()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where classes overlap, the smallest margin is always between the same few classes, and
        # the others never get a coefficient: a property of the method, not an error.
        tags.classifier_tags.poor_score = True
        return tags


@dataclass(frozen=True)
class VonNeumannState:
    """``p_k`` with its predictor ``w_k``, the sum of all so far, and the best response to it."""

    p: Vector
    total: Vector
    worst: BestResponse


@dataclass(frozen=True)
class VonNeumann(Algorithm):
    r"""Algorithm 5 of Ramdas and Pena (NVN).

    =====================  ============================================================
    paper                  code
    =====================  ============================================================
    :math:`p_k, w_k`       ``p``: one vector holds both
    :math:`j`              ``worst_row``; with an intercept, one row of each class
    :math:`\theta_k`       ``theta``
    =====================  ============================================================
    """

    def start(self, problem: KernelMatrixAdapter) -> VonNeumannState:
        """Begin at the uniform distribution."""
        p = problem.respond(problem.zeros()).vector
        return VonNeumannState(p, p, problem.respond(p, response=worst_row))

    def step(
        self, problem: KernelMatrixAdapter, state: VonNeumannState
    ) -> VonNeumannState:
        """Move towards the row of smallest margin, with exact line search."""
        p = state.p
        row = state.worst.vector
        away = p - row
        length = problem.dot(away, away)
        theta = min(max(problem.dot(p, away) / length, 0.0), 1.0) if length > 0 else 0.0
        p = (1.0 - theta) * p + theta * row
        return VonNeumannState(
            p, state.total + p, problem.respond(p, response=worst_row)
        )

    def candidates(
        self, problem: KernelMatrixAdapter, state: VonNeumannState
    ) -> Iterator[Candidate]:
        """``p``, as a primal and a dual point; the sum of the iterates is the fallback."""
        yield Candidate(state.p, 1.0, state.worst.weights.min_margin)
        yield Candidate(state.total, fallback=True)


@with_parameters
class VonNeumannClassifier(
    NormalizeParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Normalized von Neumann algorithm (NVN): Frank-Wolfe towards the point nearest to 0.

    Every iteration moves the point p of the convex hull of the rows towards the row of smallest
    margin, with exact line search. If the classes are not separable, the sum of these points is the
    model.

    See Also
    --------
    PerceptronVonNeumann : Its smoothed, faster version.

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Algorithm 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import VonNeumannClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> VonNeumannClassifier(stopping="separation").fit(X[:100], y[:100]).status_
    'separated'
    """

    def _algorithm(self) -> VonNeumann:
        return VonNeumann()


@dataclass(frozen=True)
class Mistakes(Perceptron):
    r"""Algorithm 1 of Ramdas and Pena, Rosenblatt's: misclassified rows are added one by one.

    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`y_i x_i`          a row of the data, divided by the radius
    :math:`w_k`              ``w``, after k = ``n_mistakes_`` mistakes
    =======================  ==========================================================
    """

    requires = Requirements(by_passes=False, in_order=True)

    def respond(
        self, problem: KernelMatrixAdapter, w: Vector, last: BestResponse | None
    ) -> BestResponse:
        """The next misclassified row after the last one added."""
        visited = -1 if last is None else cast(Mistake, last.weights).visited
        rounding = 2.0 * margin_error(problem, w)  # of two margins
        return problem.respond(w, response=NextMistake(visited + 1, rounding))


def margin_error(problem: KernelMatrixAdapter, w: Vector) -> float:
    """Estimate of the rounding of margins of a vector in float64."""
    examples = problem.examples
    design = problem.design
    norm = problem.norm_of_predictors
    error = UNIT * (examples.additions[0] + 8) + examples.rounding
    if design is None:
        highest = float(np.abs(examples.squared_norms).max())
        mass = float(np.abs(problem.rows.adjoint(w.coef)).sum())
        return 2.0 * error * highest * mass
    offset = 0.0
    if design.centre is not None:
        offset = float(np.sqrt(design.centre @ design.centre)) / problem.radius
    return error * (1.0 + 2.0 * offset) * norm.length(norm.mirror(w.image).ravel())


@dataclass(eq=False)
class Mistake(Weights):
    """Weights on a misclassified row and, if balanced, on its partner.

    Attributes
    ----------
    visited : int
        Flat index of the row from which the search began; the next search begins after it.
    """

    visited: int = -1


@dataclass(frozen=True)
class NextMistake:
    """The first misclassified row from ``start`` on or, without any, the row of smallest margin.

    Balanced rows: each row is paired with the row of smallest margin in the opposite group. If
    all these pairs are classified correctly but a longer cycle of groups is not, the mistake is
    the cycle with the smallest mean margin, and the next search begins at the same row.

    Attributes
    ----------
    start : int
        Flat index of the row from which the search begins.
    rounding : float
        Margins up to this count as 0 (units of the radius).
    """

    start: int
    rounding: float = 0.0

    def respond(self, rows: Rows, margins: Array, mu: float) -> Mistake:
        """Weights on the rows of the next mistake, given the margins of all rows."""
        low = rows.group_min(margins)
        paired = margins if not rows.balanced else margins + rows.expand(low.T)
        mistakes = np.flatnonzero(paired <= self.rounding)
        if mistakes.size == 0:
            worst_rows = worst_row.respond(rows, margins)
            return Mistake(**vars(worst_rows), visited=self.start - 1)
        row = int(mistakes[np.searchsorted(mistakes, self.start) % mistakes.size])
        q = np.zeros(rows.shape)
        q.flat[row] = 1.0
        if rows.balanced:
            groups = np.arange(low.size).reshape(low.shape)
            own = np.broadcast_to(rows.expand(groups), rows.shape).flat[row]
            partner = np.argmin(np.where(rows.expand(groups.T) == own, margins, np.inf))
            q.flat[row] = q.flat[partner] = 0.5
        smallest = rows.min_margin(low)
        return Mistake(
            q, 1.0, smallest, rows.best_offsets(low), -smallest, 1.0, visited=row
        )


@with_parameters
class KernelPerceptron(
    WarmParameters, ClassParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Rosenblatt's perceptron: misclassified examples are added one by one.

    It cycles through the data and adds each misclassified row to the predictor. An iteration is one
    mistake. With an intercept, a row is paired with the row of smallest margin in the opposite
    group (two classes: in the other class). The pair is misclassified if the sum of the two margins
    is not positive, and half of each row is added. The fit ends at any separator. If there is none,
    the average of the predictors is the model.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised.
    tol : float
        Upper bound on the margin at which the fit ends without a separator (relative to the
        radius); it is 1e-6 at most.
    max_iter : int
        Limit on mistakes, including those before a warm start.

    Attributes
    ----------
    n_mistakes_ : int
        Updates made.

    See Also
    --------
    OptimisticPerceptron : A separator in fewer passes.

    References
    ----------
    F. Rosenblatt. The perceptron. Psychological Review 65 (1958). Algorithm 1 of Ramdas
    and Pena (2014); the baseline of Figure 1 of Hanashiro and Abernethy (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm import KernelPerceptron
    >>> X = np.array([[1.0, 0.0], [1.0, -1.0]])
    >>> KernelPerceptron(fit_intercept=False).fit(X, [1, -1]).n_mistakes_
    5
    """

    tol: float = 1e-6

    def _algorithm(self) -> Mistakes:
        return Mistakes()

    def _stopping(self) -> Stopping:
        negligible = min(self.tol, NEGLIGIBLE)
        return Stopping("separation", self.tol, self.max_iter, negligible)

    def _own_results(self, fitted: Fitted) -> dict[str, object]:
        return {"n_mistakes_": fitted.progress.state.t}


@dataclass(frozen=True)
class OnlineState:
    """After t epochs.

    Attributes
    ----------
    t, seed : int
    u : Vector
        Theta is its mirror image.
    total : ndarray
        Sum of theta before all steps so far, if their average is the model.
    origin : Vector
        u at the last power of two.
    late : Vector
        The rows added since then: where u converges, they give the tighter bound.
    pocket : Pocket
    """

    t: int
    seed: int
    u: Vector
    total: Array
    origin: Vector
    late: Vector
    pocket: Pocket


@dataclass(frozen=True)
class OnlineLp(Algorithm):
    r"""Epochs of single rows, drawn uniformly; the predictor is the mirror image of ``u``.

    Attributes
    ----------
    rule : {"perceptron", "descent"}
        Misclassified rows are added once; or by eq. (10) of Raj and Bach.
    average : bool
        Whether the model is the average of all predictors, rather than the last.
    random_state : int, RandomState instance or None
        Seed of the draws.

    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`\theta_t`         mirror image of ``u``, taken by the compiled loop
    :math:`\psi'(\theta_t)`  ``u``: the sum of the misclassified rows
    =======================  ==========================================================
    """

    rule: str = "perceptron"
    average: bool = False
    random_state: Any = None

    requires = Requirements(by_passes=False)

    def start(self, problem: KernelMatrixAdapter) -> OnlineState:
        """Begin at zero."""
        u = problem.zeros()
        seed = draw_seed(self.random_state)
        return OnlineState(0, seed, u, np.zeros(u.image.size), u, u, Pocket(u, 0.0, u))

    def step(self, problem: KernelMatrixAdapter, state: OnlineState) -> OnlineState:
        """An epoch: as many draws as there are rows."""
        t = state.t
        rows = problem.rows
        u = state.u.copy()
        total = state.total.copy()
        order = draw(state.seed, t, rows.flat_indices(), problem.n_rows, "uniform")
        model = self._epoch(problem, order, u, total)
        pocket = state.pocket.after(rows, model, problem.margins(model))
        origin = u if t & (t - 1) == 0 else state.origin
        return OnlineState(
            t + 1, state.seed, u, total, origin, u - state.origin, pocket
        )

    def _epoch(
        self, problem: KernelMatrixAdapter, order: Array, u: Vector, total: Array
    ) -> Predictor:
        """Pass over the rows in ``order``, changing u and total in place; return the model."""
        from marginsvm.papers import coordinates

        rule = (
            coordinates.PERCEPTRON if self.rule == "perceptron" else coordinates.DESCENT
        )
        coordinates.ascend(problem, order, u, rule, total if self.average else None)
        return problem.mirrored(total) if self.average else u

    def candidates(
        self, problem: KernelMatrixAdapter, state: OnlineState
    ) -> Iterator[Candidate]:
        """The measured predictors, and the recently added rows, as a dual point."""
        yield from state.pocket.candidates()
        if state.late.mass > LATELY * state.u.mass:  # else it is the rounding of u
            yield Candidate(state.late, state.late.mass)

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """The model with the least misclassified weight."""
        return weighted_pocket(
            problem, super().fallback(problem, progress), progress.state.seed
        )


@with_parameters
class LpPerceptron(RandomParameters, LpParameters, DualStateMixin, BaseEstimator):
    r"""Online perceptron with a p-norm: misclassified rows are added.

    It stops changing at the first separator, whose margin may be small; with
    ``stopping="separation"``, the fit ends there. If the classes are not separable, the model is
    that of the epoch with the fewest misclassified rows. With sample or class weights, it is the
    one with the least misclassified weight, also among 50 further epochs in which rows are drawn in
    proportion to their weights.

    Parameters
    ----------
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless): 2 is Rosenblatt's perceptron, ``"sparse"`` is
        1 + 1 / ln(n_features).

    See Also
    --------
    DualLpPerceptron : The largest margin in a p-norm.

    References
    ----------
    A. J. Grove, N. Littlestone, D. Schuurmans. General Convergence Results for Linear
    Discriminant Updates. Machine Learning 43, 2001. A. Raj, F. Bach (2020), Appendix B.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import LpPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LpPerceptron(stopping="separation", random_state=0)
    >>> clf.fit(X[:100], y[:100]).status_
    'separated'
    """

    def _algorithm(self) -> OnlineLp:
        return OnlineLp("perceptron", random_state=self.random_state)


@with_parameters
class PrimalMirrorDescent(
    RandomParameters, LpParameters, DualStateMixin, BaseEstimator
):
    r"""Stochastic mirror descent on the squared hinge loss, with the step of Theorem 1.

    Parameters
    ----------
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless): 2 is stochastic gradient descent, ``"sparse"`` is
        1 + 1 / ln(n_features).
    average : bool
        Whether the model is the average of all predictors, to which Theorem 1 applies, or the last
        one, which is better in practice.

    See Also
    --------
    DualLpPerceptron : The dual method of the same paper.

    Notes
    -----
    ================================  =============================================
    paper                             code
    ================================  =============================================
    :math:`\psi'(\theta^{(t)})`       ``u``
    :math:`\gamma`                    1 / largest ``layout_of(problem).curvature``
    :math:`t \overline{\theta_t}`     ``total``
    ================================  =============================================

    References
    ----------
    A. Raj, F. Bach. Explicit Regularization of Stochastic Gradient Methods through
    Duality. arXiv:2003.13807, 2020. Eq. (10) and Theorem 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import PrimalMirrorDescent
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PrimalMirrorDescent(stopping="separation", random_state=0)
    >>> clf.fit(X[:100], y[:100]).status_
    'separated'
    """

    average: bool = parameter("boolean", default=False)

    def _algorithm(self) -> OnlineLp:
        return OnlineLp("descent", self.average, self.random_state)
