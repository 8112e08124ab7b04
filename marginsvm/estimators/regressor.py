"""Support vector regression by the exact solver, with a proof of how good it is."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from marginsvm._typing import Array
from marginsvm.certificate.certificate import StatesNorm, StatesObjectives
from marginsvm.estimators.dual_state import Played
from marginsvm.estimators.exact import Exact, solved
from marginsvm.estimators.fit_blocks import FitsBlocks
from marginsvm.estimators.inputs import refuse_foreign
from marginsvm.estimators.parameters import (
    KernelParameters,
    SignParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.prediction import ScoresMixin
from marginsvm.estimators.results import FittedIntervals, FittedOutputs
from marginsvm.estimators.to_sklearn import kernel_regressor, linear_regressor
from marginsvm.estimators.training_data import interval_set
from marginsvm.fit import Algorithm, Progress, Stopping
from marginsvm.problem.adapter import KernelMatrixAdapter


class PlayedRegressor(StatesNorm, Played, RegressorMixin):
    """A regressor around an algorithm; each output is a column of y."""

    _fitted = FittedIntervals

    @abstractmethod
    def _predicted(self, X: Any) -> Array:
        """Predictions, in the shape that y had."""

    def predict(self, X: Any) -> Array:
        """Predict targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        refuse_foreign(type(self).__name__, X)
        return self._predicted(X)

    def to_sklearn(self) -> Any:
        """Convert this regressor to one of scikit-learn with the same predictions.

        Returns
        -------
        LinearSVR or SVR
            Fitted; it has no certificate. With a kernel, an SVR.

        Raises
        ------
        NotFittedError
            If this regressor has not been fitted.
        ValueError
            If it was fitted to several outputs.
        """
        check_is_fitted(self)
        linear = getattr(self, "kernel", "linear") == "linear"
        return (linear_regressor if linear else kernel_regressor)(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


_PATIENCE = 10  # rounds without progress, as of MaxMarginClassifier


@with_parameters
class MaxMarginRegressor(
    SignParameters,
    KernelParameters,
    StatesObjectives,
    ScoresMixin,
    FitsBlocks,
    PlayedRegressor,
    BaseEstimator,
):
    """Support vector regression by the exact solver, with a proof of how good it is.

    It minimises ``P = |w|^2 / 2 + C sum(loss)`` over predictors whose intercept is not penalised,
    and proves a lower bound on the least P. The loss of an example is the distance xi of its
    prediction from the tube ``[y - epsilon, y + epsilon]``, or the square of it. With ``C=inf``,
    all predictions are to lie in the tube.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        What slack costs with ``C < inf``: xi, as in SVR and LinearSVR, or its square.
    C : float
        Cost of slack (units of y over those of the loss; with the square, dimensionless). inf: a
        hard tube.
    epsilon : float
        Half the width of the tube (units of y).
    nu : float or None
        Share of the examples (dimensionless) that may be outside of the tube, at most, as in NuSVR
        with the same C: epsilon is then found, in place of the given one, at a cost of ``C nu n
        epsilon`` in P, where n is the number of examples, or the sum of their weights. It needs
        ``C < inf`` and the first loss.
    monotonic_cst : array-like of shape (n_features,) or dict
        Signs of the coefficients, as in scikit-learn's trees. For each feature, 1: 0 or positive,
        so that predictions do not fall as the feature grows; -1: 0 or negative; 0: any. A dict
        gives them by the names of features; those without a name are 0. The bound and
        ``feasible_`` are then about predictors with these signs. Linear predictors only; the
        examples become a dense matrix.
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised, as in SVR. LinearSVR penalises it.
    tol : float
        Relative gap of each output, between the norms that the bounds on P amount to
        (``sqrt(2 P)``), at which the fit ends (dimensionless). The relative gap of P is at most
        twice as large.
    max_iter : int
        Largest number of rounds, those before a warm start included.
    warm_start : bool
        Continue from the end of the previous fit on the same data. With another C, or other sample
        weights, a new fit starts.
    verbose : bool or int
        Print the bounds after rounds 1, 2, 4, 8 and so on.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Linear predictor (units of y over those of X).
    intercept_ : ndarray of shape (1,) or (n_outputs,)
        Its constant term (units of y).
    objective_ : float or ndarray of shape (n_outputs,)
        P of this predictor, at most; of each output, as they are problems of their own (units of y
        over those of X, squared).
    objective_bound_ : float or ndarray of shape (n_outputs,)
        Certified: no predictor has a smaller P (same units) or, with ``C=inf``, none whose
        predictions are as far outside of the tube as ``violation_``. inf: it is proved that none
        fits.
    epsilon_ : float or ndarray of shape (n_outputs,)
        Half the width of the tube: the one given or, with ``nu``, the one found (units of y).
    support_, n_support_ : ndarray of shape (n_support,), and of shape (1,)
        Indices of the training examples that have weight; with a kernel, also how many.
    support_vectors_ : ndarray or csr matrix of shape (n_support, n_features)
        Kernel predictor: those examples; empty if precomputed.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Kernel predictor: coefficients of those examples, in place of ``coef_``. Linear: their
        weights; ``dual_coef_ @ X[support_]`` is ``coef_``, up to what is left of the gap.
    norm_ : float
        ``sqrt(2 P)`` of all outputs together: the norm of this predictor with its slack (units of y
        over those of X).
    norm_bound_ : float
        Certified: no predictor of a smaller norm fits (same units). inf: none fits at all.
    gap_ : float
        Relative gap, from 0 to 1 (dimensionless), between ``norm_`` and a lower bound on the norm
        of predictors that violate the tube by ``violation_`` or less (with ``C < inf``, of all).
    violation_ : float
        Largest distance of a prediction on the training examples from its tube, at most
        (units of y).
    feasible_ : bool or None
        Whether some predictor fits the tube without slack: True: this one does. False: it is proved
        that none does. None: neither is known.
    status_ : str
        ``certified``, ``infeasible``, ``stalled``, ``max_iter``, ``stopped`` or ``interrupted``.
    n_iter_ : int
        Rounds played.
    certificate_ : Certificate
        Bounds, status and the weights that prove them, in one object.
    history_ : dict of ndarray
        ``n_iter``, ``n_passes``, ``seconds``, ``norm``, ``norm_bound``, ``violation``: of the best
        predictor and the best bound so far, after each round.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has names that are strings.

    See Also
    --------
    DualLpRegressor : Tubes of any ends, and other norms.
    sklearn.svm.SVR, sklearn.svm.LinearSVR : The same problem without a proof.

    References
    ----------
    H. Drucker, C. Burges, L. Kaufman, A. Smola, V. Vapnik. Support vector regression machines.
    NIPS 1996.

    A. Smola, B. Schoelkopf. A tutorial on support vector regression. Statistics and Computing,
    2004.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from marginsvm import MaxMarginRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = MaxMarginRegressor(C=10.0).fit(X, y)
    >>> print(reg.status_, f"{reg.objective_bound_:.6g} <= {reg.objective_:.6g}")
    certified 26970... <= 26970...
    """

    loss: str = parameter(
        StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"}),
        default="epsilon_insensitive",
    )
    C: float = 1.0
    epsilon: float = parameter(Interval(Real, 0.0, None, closed="left"), default=0.1)
    nu: float | None = parameter(Interval(Real, 0.0, 1.0, closed="right"), None, default=None)
    fit_intercept: bool = parameter("boolean", default=True)
    tol: float = parameter(Interval(Real, 0.0, None, closed="left"), default=1e-6)
    max_iter: int = parameter(Interval(Integral, 1, None, closed="left"), default=200)
    warm_start: bool = parameter("boolean", default=False)
    verbose: bool | int = parameter("verbose", default=False)

    # What the data and the check ask of any regressor.
    p: ClassVar[float] = 2.0
    intercept_scaling: ClassVar[None] = None

    _fitted = FittedOutputs
    _widens_kernels = True

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Play rounds until the predictor is certified.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data, or the kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. float32 stays float32.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            With ``C < inf``, slack in an example costs C times its weight; 0 leaves it out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used; the message says what to do.
        KeyboardInterrupt
            After the round that was interrupted. The best model so far is kept.
        """
        return self._fit(interval_set(self, X, y, sample_weight), X, y)

    _run = staticmethod(solved)

    def _algorithm(self) -> Exact:
        return Exact(self.tol)

    def _stopping(self) -> Stopping:
        return Stopping(tol=self.tol, max_iter=self.max_iter, patience=_PATIENCE)

    def _advice(
        self, algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
    ) -> str:
        if np.isinf(self.C):
            return "C < inf gives a soft tube."
        return "Scale X so that its features have similar spreads, or choose a smaller C."

    def _predicted(self, X: Any) -> Array:
        F = self._scores_of(X, "predict")
        return F[:, None] if F.ndim == 1 and np.ndim(self.objective_) else F
