"""Raj and Bach (2020) for regression: the least-norm predictor with outputs in intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import StrOptions

from marginsvm._typing import Array
from marginsvm.certificate.bounded import Dual, Primal, dual
from marginsvm.certificate.overlap import prove_intervals, refuted
from marginsvm.certificate.publication import FLOATS, Certified, published
from marginsvm.estimators.parameters import (
    CostParameters,
    PNormParameters,
    RandomParameters,
    TubeParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.regressor import RegressorState
from marginsvm.estimators.training_data import training_data
from marginsvm.fit import Candidate, Progress, Stopping
from marginsvm.papers.dual_lp import DualLp, DualLpState
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.quadratic_program import QuadraticProgram, gap_of_norms
from marginsvm.problem.rows import intervals_of, output_rows
from marginsvm.problem.vectors import Predictor, Vector

# Growth of the bound on the norm after which another proof of infeasibility is attempted.
LONGER_BOUND = 1.25
# epochs before the first attempt, which may take longer than all of them
FIRST_TRY = 20
MODEL_EPOCHS = 100  # epochs for the model of infeasible intervals
# C of that model, in units of 1 / radius^2: a single row would be fitted up to a hundredth of its
# distance, and the dual is strongly convex enough for a fast rate.
MODEL_COST = 50.0


class Fit(NamedTuple):
    """A predictor, and its primal values.

    Attributes
    ----------
    vector : Predictor
    primal : Primal
    cost : float
        Root of the sum of squared distances to the intervals; with a soft margin, the norm.
    """

    vector: Predictor
    primal: Primal
    cost: float


class BestFit(NamedTuple):
    """The best primal and dual points so far.

    Attributes
    ----------
    fit : Fit
        The predictor of the least error.
    weights : Vector
        Dual variables of the largest bound.
    dual : Dual
        Their dual values.
    zero : float
        Violation of the zero predictor.
    next_try : float
        Bound at which the next proof of infeasibility is attempted.
    infeasible : bool
        Whether ``weights`` prove it.
    """

    fit: Fit
    weights: Vector
    dual: Dual
    zero: float
    next_try: float = 0.0
    infeasible: bool = False

    def error(self, fit: Fit) -> float:
        """Relative gap of a predictor, or its violation relative to ``zero`` if that is larger.

        With a soft margin, only the gap.
        """
        allowed = (
            0.0
            if np.isfinite(self.dual.multiple) or self.dual.ridge
            else fit.primal.violation
        )
        P = float(fit.primal.objective)
        D = float(self.dual.objective(allowed))
        gap = gap_of_norms(P, D) if P > 0.0 else 0.0
        if allowed == 0.0:
            return gap
        return max(gap, allowed / self.zero if self.zero > 0.0 else np.inf)


def weights_of(qp: QuadraticProgram, signed: Array) -> Array:
    """Dual variables of the ends of intervals, from ``alpha+ - alpha-`` of each target."""
    return qp.rows.stated(signed.reshape(len(signed), -1))


@dataclass(frozen=True)
class IntervalAscent(DualLp):
    """Ours, for scores in intervals (eq. 2): bounds are on the norm."""

    shrinking: bool = False

    def start(self, problem: KernelMatrixAdapter) -> DualLpState:
        """Begin at zero."""
        state = super().start(problem)
        farthest = intervals_of(problem.rows).farthest
        fit = self._fit(problem, state.v)
        dual = self._dual(problem, state.v)
        return replace(state, found=BestFit(fit, state.v, dual, farthest))

    def measured(self, problem: KernelMatrixAdapter, state: DualLpState) -> DualLpState:
        """The dual bound of v, and its predictor.

        A second predictor is that of the largest dual objective along the ray of v.
        """
        alpha = intervals_of(problem.rows).admissible(state.v.coef)
        found = state.found
        v = state.v
        if not np.array_equal(alpha, v.coef):
            v = problem.combine(alpha, precise=True)
        dual = self._dual(problem, v)
        fits = [self._fit(problem, w) for w in (v, float(dual.best_multiple) * v)]
        if dual.objective() > found.dual.objective():
            found = found._replace(weights=v, dual=dual)
        # ties in the error: the lower cost
        best = min(found.fit, *fits, key=lambda fit: (found.error(fit), fit.cost))
        found = found._replace(fit=best)
        soft = problem.ridge is not None
        early = state.t < FIRST_TRY
        tried = (
            soft
            or early
            or found.infeasible
            or found.dual.objective() <= found.next_try
        )
        return replace(state, found=found if tried else self._tried(problem, found))

    def _fit(self, problem: KernelMatrixAdapter, w: Predictor) -> Fit:
        (qp,) = problem.programs
        found = published(qp, problem.w_of(w), np.zeros(qp.k))
        if not qp.hard:
            return Fit(w, found.primal, float(found.primal.objective))
        short = np.maximum(
            qp.target - qp.values(qp.examples.scores(found.w), found.f), 0.0
        )
        return Fit(w, found.primal, float(short @ short))

    def _dual(self, problem: KernelMatrixAdapter, v: Vector) -> Dual:
        (qp,) = problem.programs
        return dual(qp, weights_of(qp, v.coef), FLOATS)

    def _tried(self, problem: KernelMatrixAdapter, found: BestFit) -> BestFit:
        """Attempt a proof of infeasibility."""
        (qp,) = problem.programs
        alpha = refuted(qp, weights_of(qp, found.weights.coef))
        if alpha is None:
            return found._replace(next_try=LONGER_BOUND**2 * found.dual.objective())
        weights = problem.combine(
            qp.rows.coefficients(alpha).reshape(problem.rows.shape), precise=True
        )
        fit = min(found.fit, self._softened(problem), key=lambda fit: fit.cost)
        return found._replace(fit=fit, weights=weights, infeasible=True)

    def _softened(self, problem: KernelMatrixAdapter) -> Fit:
        """The predictor for infeasible intervals: a soft tube with a large C."""
        soft = problem.softened(MODEL_COST / problem.radius**2)
        state = self.start(soft)
        for _ in range(MODEL_EPOCHS):
            state = self.moved(soft, state)
        return self._fit(problem, self.measured(soft, state).found.fit.vector)

    def best_bounds(
        self, problem: KernelMatrixAdapter, state: Any, before: Progress, n_iter: int
    ) -> Progress:
        """The largest bound, and the predictor of the least error."""
        fit = state.found.fit
        found = state.found
        error = found.error(fit) if found.zero > 0.0 else 0.0
        least = (
            np.inf if found.infeasible else float(np.sqrt(2.0 * found.dual.objective()))
        )
        norm = float(np.sqrt(2.0 * fit.primal.objective))
        violation = float(fit.primal.violation)
        return before._replace(
            lower=1.0 / norm if norm > 0.0 else np.inf,
            upper=1.0 / least if least > 0.0 else np.inf,
            best=Candidate(fit.vector),
            proof=Candidate(found.weights),
            violation=violation,
            error=error,
        )

    def certified(self, problem: KernelMatrixAdapter, progress: Progress) -> Certified:
        """Prove the predictor of the least error and the dual variables of the largest bound."""
        found = progress.state.found
        (qp,) = problem.programs
        point = problem.w_of(found.fit.vector), np.zeros(qp.k)
        alpha = weights_of(qp, found.weights.coef)
        return prove_intervals(
            output_rows(problem.rows), [qp], [(*point, alpha)], found.fit.vector
        )


@with_parameters
class DualLpRegressor(
    TubeParameters,
    RandomParameters,
    PNormParameters,
    CostParameters,
    RegressorState,
    BaseEstimator,
):
    r"""Least :math:`\ell_p`-norm predictor within a tube, by accelerated dual coordinate ascent.

    It finds the predictor of least p-norm whose training predictions lie in
    ``[y - epsilon, y + epsilon]``. With ``epsilon=0`` it interpolates; p near 1 leaves few large
    coefficients.

    Parameters
    ----------
    C : float
        Cost of slack (dimensionless): ``1/2 |w|_p^2 + C sum(xi^2)``; p = 2: as in
        ``LinearSVR(loss="squared_epsilon_insensitive")``, with ``epsilon=0`` ``Ridge(alpha=1 / (2
        C))``. inf: predictions lie in the intervals.
    fit_intercept : bool
        Whether to fit an intercept (penalised: see ``intercept_scaling``; subtract the mean of
        targets far from 0 first).
    accelerated : bool
        Algorithm 2 rather than the slower Algorithm 1.
    sampling : {"permutation", "uniform"}
        ``"permutation"``: shuffled epochs; ``"uniform"``: independent draws, as in the theorems.
    restart : bool
        Restart the acceleration after Newton steps on at most 2500 rows and, with ``C=inf``, after
        20, 40, 20, 80, ... epochs.
    tol : float
        Relative gap, and violation of the intervals relative to that of the zero predictor
        (dimensionless), at which a fit ends.
    max_iter : int
        Epoch limit. An epoch has one step per example and output.
    warm_start : bool
        Continue the previous fit (same data, intervals, C, weights), bit for bit as one longer fit.
    verbose : bool or int
        Print the bounds at epochs 1, 2, 4, ...

    Attributes
    ----------
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept (units of y).
    norm_ : float
        Norm of this predictor, the coefficient of the constant feature included; with ``C < inf``,
        ``sqrt(|w|_p^2 + 2 C sum(xi^2))`` (units of y over those of X).
    n_iter_ : int
        Epochs.

    See Also
    --------
    MaxMarginRegressor : The exact solver, for p = 2.

    Notes
    -----
    =======================================  ===========================================
    paper                                    code
    =======================================  ===========================================
    :math:`\mathcal{Y}_i`                    ``intervals_of(problem.rows)``
    :math:`\alpha, v, \gamma` (Algorithm 2)  ``alpha``, ``v``, ``gamma``
    :math:`\theta(\alpha)`                   mirror image of a vector, see ``LpNorm.mirror``
    :math:`L_i`                              ``layout_of(problem).curvature``
    =======================================  ===========================================

    The norm is that of all outputs together. ``feasible_`` is False only with an exact proof: alpha
    with :math:`X^\top \alpha = 0` and a positive dual value (Farkas).

    References
    ----------
    A. Raj, F. Bach. Explicit Regularization of Stochastic Gradient Methods through
    Duality. arXiv:2003.13807, 2020. Equations (2) and (8), Lemma 1, Corollaries C.1 and C.2.

    Qihang Lin, Zhaosong Lu, Lin Xiao. SIAM J. Optim. 25(4), 2015. Algorithm 1.

    Olivier Fercoq, Zheng Qu. Comput. Optim. Appl. 75, 2020 (restarts).

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm import DualLpRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 50))
    >>> y = X[:, 0] - X[:, 1]
    >>> reg = DualLpRegressor(fit_intercept=False, tol=1e-8, random_state=0).fit(X, y)
    >>> least = np.linalg.lstsq(X, y)[0]
    >>> reg.status_, bool(np.abs(reg.coef_ - least).max() < 1e-7)
    ('certified', True)
    >>> bool(reg.norm_bound_ <= np.linalg.norm(least))
    True
    """

    epsilon: float = 0.0
    accelerated: bool = parameter("boolean", default=True)
    sampling: str = parameter(
        StrOptions({"permutation", "uniform"}), default="permutation"
    )
    restart: bool = parameter("boolean", default=True)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, bounds: Any = None) -> Any:
        """Run epochs until the predictor is certified.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data. float32 stays float32.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets. With ``bounds``, only their shape matters, and None stands for zeros.
        sample_weight : array-like of shape (n_samples,), default=None
            With ``C < inf``, slack in an example costs C times its weight; 0 leaves it out.
        bounds : array-like of shape (n_samples, 2) or (n_samples, n_outputs, 2), default=None
            Lower and upper ends of the intervals, in place of ``y - epsilon`` and ``y +
            epsilon``; -inf and inf stand for no end. If requested by metadata routing, searches and
            cross-validation split it like ``sample_weight``.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used; the message says what to do.
        KeyboardInterrupt
            After the current epoch. The best model so far is kept.
        """
        return self._fit(training_data(self, X, y, sample_weight, bounds), X, y)

    def _algorithm(self) -> IntervalAscent:
        return IntervalAscent(
            self.accelerated, self.sampling, self.random_state, restart=self.restart
        )

    def _stopping(self) -> Stopping:
        return Stopping(tol=self.tol, max_iter=self.max_iter)

    def _advice(self, problem: KernelMatrixAdapter, progress: Progress) -> str:
        return (
            "Increase max_iter."
            if self.feasible_ is None
            else "C < inf gives a soft tube."
        )
