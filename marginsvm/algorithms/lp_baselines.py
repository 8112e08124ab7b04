"""What Raj and Bach compare with: primal mirror descent and the lp perceptron."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginsvm._typing import Array
from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import parameter, with_parameters
from marginsvm.estimator.parameters import LpParameters, RandomParameters
from marginsvm.fit import Algorithm, Candidate, Progress, Requirements
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.papers.dual_lp import draw, draw_seed, misclassified_weight, weighted_pocket
from marginsvm.rows import Predictor, Vector

_LATELY = 1e-6  # of all the mass: the difference of two vectors keeps ten digits


@dataclass(frozen=True)
class OnlineState:
    """``u`` and the sum of its mirror images after ``t`` epochs.

    ``pocket`` is the model that misclassified the least weight of rows: the model where nothing
    separates.
    """

    seed: int
    u: Vector
    total: Array
    origin: Vector  # u when t was last a power of two
    t: int = 0
    pocket: Predictor | None = None
    mistakes: float = np.inf
    found: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class OnlineLp(Algorithm):
    """Epochs of single rows, drawn uniformly, on the image ``u`` of ``theta``.

    Attributes
    ----------
    rule : {"perceptron", "descent"}
        Which rows are added, and how often: those that are misclassified, once; or as eq. (10) of
        Raj and Bach says.
    average : bool
        Whether the model is the average of all predictors, rather than the last.
    random_state : int, RandomState instance or None
        Seed of the draws.
    """

    rule: str = "perceptron"
    average: bool = False
    random_state: Any = None

    requires = Requirements(by_passes=False)

    def start(self, problem: KernelMatrixAdapter) -> OnlineState:
        """Begin at zero."""
        u = problem.zeros()
        return OnlineState(draw_seed(self.random_state), u, np.zeros(u.image.size), u)

    def step(self, problem: KernelMatrixAdapter, state: OnlineState) -> OnlineState:
        """Play an epoch: as many rows as there are."""
        u, total, t = state.u.copy(), state.total.copy(), state.t
        order = draw(state.seed, t, problem.rows.flat_indices(), problem.n_rows, "uniform")
        model = self._epoch(problem, order, u, total)
        margins = problem.margins(model)
        late = u - state.origin  # rows added lately: where u settles, the smaller bound
        mass = late.mass
        proves = mass > _LATELY * u.mass  # else it is the rounding of u
        pocket, mistakes = state.pocket, misclassified_weight(problem.rows, margins)
        if mistakes < state.mistakes:
            pocket = model
        assert pocket is not None
        return OnlineState(
            state.seed,
            u,
            total,
            origin=u if t & (t - 1) == 0 else state.origin,
            t=t + 1,
            pocket=pocket,
            mistakes=min(mistakes, state.mistakes),
            found=(
                Candidate(model, min_margin=float(margins.min())),
                Candidate(late, mass if proves else 0.0),
                Candidate(pocket, fallback=True),
            ),
        )

    def _epoch(
        self, problem: KernelMatrixAdapter, order: Array, u: Vector, total: Array
    ) -> Predictor:
        """Pass over the rows in ``order``, changing u and total in place; give the model."""
        from marginsvm.papers import coordinates as loops

        rule = loops.PERCEPTRON if self.rule == "perceptron" else loops.DESCENT
        loops.ascend(problem, order, u, rule, total if self.average else None)
        return problem.mirrored(total) if self.average else u

    def candidates(self, problem: KernelMatrixAdapter, state: OnlineState) -> Iterator[Candidate]:
        """What the last epoch found."""
        yield from state.found

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """The model with the least misclassified weight."""
        return weighted_pocket(problem, super().fallback(problem, progress), progress.state.seed)


@with_parameters
class LpPerceptron(RandomParameters, LpParameters, DualStateMixin, BaseEstimator):
    r"""Online perceptron with a p-norm: a row that is misclassified is added.

    It stops changing at the first separator, whose margin may be small; with
    ``stopping="separation"``, the fit ends there. If nothing separates the classes, the model is
    that of the epoch after which the fewest rows were misclassified. With sample or class weights,
    it is the one whose misclassified rows have the least weight, and the models of 50 further
    epochs, in which rows are drawn in proportion to their weights, are candidates as well.

    Parameters
    ----------
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless): 2 is Rosenblatt's perceptron, ``"sparse"`` is
        1 + 1 / ln(n_features).

    Notes
    -----
    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`\theta_t`         mirror image of ``u``, taken by the compiled loop
    :math:`\psi'(\theta_t)`  ``u``: the sum of the misclassified rows
    =======================  ==========================================================

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
class PrimalMirrorDescent(RandomParameters, LpParameters, DualStateMixin, BaseEstimator):
    r"""Stochastic mirror descent on the squared hinge loss, with the step of Theorem 1.

    Parameters
    ----------
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless): 2 is stochastic gradient descent, ``"sparse"`` is
        1 + 1 / ln(n_features).
    average : bool
        Whether the model is the average of all predictors, to which Theorem 1 applies, or the last
        one, which is better in practice.

    Notes
    -----
    ================================  =============================================
    paper                             code
    ================================  =============================================
    :math:`\psi'(\theta^{(t)})`       ``u``
    :math:`\gamma`                    1 / largest ``problem.layout().curvature``
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
