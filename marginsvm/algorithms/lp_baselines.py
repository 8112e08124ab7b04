"""What Raj and Bach compare with: primal mirror descent and the lp perceptron."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from marginsvm._typing import Array
from marginsvm.algorithms.dual_lp import DualLpPerceptron, draw, draw_seed
from marginsvm.dual_state import DualStateMixin
from marginsvm.fit import Algorithm, Candidate, Requirements
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows.vector import Vector

_LATELY = 1e-6  # of all the mass: the difference of two vectors keeps ten digits


@dataclass(frozen=True)
class OnlineState:
    """``u`` and the sum of its mirror images after ``t`` epochs.

    ``pocket`` is the model that misjudged the fewest rows, for where nothing separates.
    """

    seed: int
    u: Vector
    total: Array
    origin: Vector  # u when t was last a power of two
    t: int = 0
    pocket: Vector | None = None
    mistakes: float = np.inf
    seen: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class OnlineLp(Algorithm):
    """Epochs of single rows, drawn uniformly, on the image ``u`` of ``theta``.

    Attributes
    ----------
    rule : {"perceptron", "descent"}
        Which rows are added, and how often: those that are misjudged, once; or as eq. (10) of
        Raj and Bach says.
    average : bool
        Whether the model is the average of all predictors, rather than the last.
    random_state : int, RandomState instance or None
        Seed of the draws.
    """

    rule: str = "perceptron"
    average: bool = False
    random_state: Any = None

    @property
    def requires(self) -> Requirements:
        """Rows in memory: an epoch goes from one to the other."""
        return Requirements(by_passes=False)

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
        pocket, mistakes = state.pocket, float(np.count_nonzero(margins <= 0.0))
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
            seen=(
                Candidate(model, min_margin=float(margins.min())),
                Candidate(late, mass if proves else 0.0),
                Candidate(pocket, fallback=True),
            ),
        )

    def _epoch(self, problem: KernelMatrixAdapter, order: Array, u: Vector, total: Array) -> Vector:
        """Go along the rows in ``order``, changing u and total in place; give the model."""
        from marginsvm.algorithms.compiled import coordinates as loops

        rule = loops.PERCEPTRON if self.rule == "perceptron" else loops.DESCENT
        loops.ascend(problem, order, u, rule, total if self.average else None)
        return problem.mirrored(total) if self.average else u

    def candidates(self, problem: KernelMatrixAdapter, state: OnlineState) -> Iterator[Candidate]:
        """What the last epoch saw."""
        yield from state.seen


_SHARED: dict[str, list[Any]] = {
    name: DualLpPerceptron._parameter_constraints[name]
    for name in (
        "p",
        "fit_intercept",
        "intercept_scaling",
        "stopping",
        "tol",
        "max_iter",
        "warm_start",
        "random_state",
        "verbose",
    )
}


class LpPerceptron(DualStateMixin, BaseEstimator):
    r"""Online perceptron with a p-norm: a row that is misjudged is added.

    It stops changing at the first separator, whose margin may be small;
    ``stopping="separation"`` stops there. Where nothing separates, the model is that
    of the epoch after which the fewest rows were misjudged.

    Parameters
    ----------
    p : float in (1, 2] or "sparse", default=2.0
        Norm of the predictor (dimensionless); 2 is Rosenblatt's perceptron.
    fit_intercept, intercept_scaling, stopping, tol, max_iter, warm_start, random_state, verbose
        As in :class:`marginsvm.DualLpPerceptron`.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The predictor, as in :class:`marginsvm.DualLpPerceptron`.
    margin_, margin_bound_, gap_, separable_, status_, n_iter_, certificate_, history_
        What is proved of it and how the fit ended, as there.
    classes_, n_features_in_, feature_names_in_ : ndarray, int, ndarray
        What was seen in fit, as there.

    Notes
    -----
    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`\theta_t`         mirror image of ``u``, taken by the compiled loop
    :math:`\psi'(\theta_t)`  ``u``: the sum of the misjudged rows
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _SHARED

    def __init__(
        self,
        *,
        p: float | str = 2.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        stopping: str = "gap",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.p = p
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _algorithm(self) -> OnlineLp:
        return OnlineLp("perceptron", random_state=self.random_state)


class PrimalMirrorDescent(DualStateMixin, BaseEstimator):
    r"""Stochastic mirror descent on the squared hinge loss, with the step of Theorem 1.

    Parameters
    ----------
    p : float in (1, 2] or "sparse", default=2.0
        Norm of the predictor (dimensionless); 2 is stochastic gradient descent.
    average : bool, default=False
        Whether the model is the average of all predictors, of which Theorem 1 speaks;
        the last one is better in practice.
    fit_intercept, intercept_scaling, stopping, tol, max_iter, warm_start, random_state, verbose
        As in :class:`marginsvm.DualLpPerceptron`.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The predictor, as in :class:`marginsvm.DualLpPerceptron`.
    margin_, margin_bound_, gap_, separable_, status_, n_iter_, certificate_, history_
        What is proved of it and how the fit ended, as there.
    classes_, n_features_in_, feature_names_in_ : ndarray, int, ndarray
        What was seen in fit, as there.

    Notes
    -----
    ================================  =============================================
    paper                             code
    ================================  =============================================
    :math:`\psi'(\theta^{(t)})`       ``u``
    :math:`\gamma`                    1 / largest ``data.flat().curvature``
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**_SHARED, "average": ["boolean"]}

    def __init__(
        self,
        *,
        p: float | str = 2.0,
        average: bool = False,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        stopping: str = "gap",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.p = p
        self.average = average
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _algorithm(self) -> OnlineLp:
        return OnlineLp("descent", self.average, self.random_state)
