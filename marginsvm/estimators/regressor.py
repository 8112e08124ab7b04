"""Support vector regression by the exact solver, with certified bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from marginsvm._typing import Array
from marginsvm.certificate.certificate import StatesNorm, StatesObjectives
from marginsvm.estimators.dual_state import DualState
from marginsvm.estimators.exact import ExactMixin
from marginsvm.estimators.fit_blocks import FitsBlocks
from marginsvm.estimators.inputs import refuse_foreign
from marginsvm.estimators.parameters import (
    KernelParameters,
    ShareParameters,
    SignParameters,
    TubeParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.predictions import ScoresMixin
from marginsvm.estimators.results import FittedIntervals
from marginsvm.estimators.to_sklearn import regressor
from marginsvm.estimators.training_data import training_data
from marginsvm.fit import Progress
from marginsvm.problem.adapter import KernelMatrixAdapter


class RegressorState(StatesNorm, ScoresMixin, DualState, RegressorMixin):
    """A regressor around an algorithm; each output is a column of y."""

    _fitted = FittedIntervals
    _is_column: bool  # fitted

    def predict(self, X: Any) -> Array:
        """Predict targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        refuse_foreign(type(self).__name__, X)
        F = self._scores_of(X, "predict")
        return F[:, None] if F.ndim == 1 and self._is_column else F

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
        return regressor(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@with_parameters
class MaxMarginRegressor(
    TubeParameters,
    ShareParameters,
    SignParameters,
    KernelParameters,
    StatesObjectives,
    FitsBlocks,
    ExactMixin,
    RegressorState,
    BaseEstimator,
):
    """Support vector regression by the exact solver, with certified bounds.

    It minimises ``P = |w|^2 / 2 + C sum(loss)`` and proves a lower bound on P. The loss of an
    example is the distance xi of its prediction from the tube ``[y - epsilon, y + epsilon]``, or
    its square. With ``C=inf``, predictions must lie in the tube.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        Epsilon-insensitive loss xi, as in SVR and LinearSVR, or its square.
    C : float
        Cost of slack (units of y over those of the loss; squared: dimensionless). inf: a hard tube.
    nu : float or None
        As in NuSVR, the largest share of examples outside the tube (dimensionless): epsilon is then
        found, at the cost ``C nu n epsilon`` in P. Needs ``C < inf`` and the first loss.
    monotonic_cst : array-like of shape (n_features,) or dict
        Signs of coefficients (1, -1, or 0: any), or a dict by feature name; bounds are for these
        signs. Linear; X becomes dense.
    tol : float
        Relative gap of an output's ``sqrt(2 P)`` at which its fit ends (dimensionless).
    warm_start : bool
        Continue the previous fit (same data, C, weights).

    Attributes
    ----------
    objective_ : float or ndarray of shape (n_outputs,)
        P of this predictor (units of y over X, squared).
    objective_bound_ : float or ndarray of shape (n_outputs,)
        Certified lower bound on P (same units; ``C=inf``: for violations up to ``violation_``).
        inf: proved that none fits.
    epsilon_ : float or ndarray of shape (n_outputs,)
        Half the tube's width, given or found (units of y).
    support_, n_support_ : ndarray of shape (n_support,) and (1,)
        Indices of the support vectors; their number.
    support_vectors_ : ndarray or csr matrix of shape (n_support, n_features)
        The support vectors; empty if the kernel is precomputed.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their coefficients; first loss: C times the weight where they are at this bound. Linear:
        ``dual_coef_ @ X[support_]`` is ``coef_`` up to the gap.

    See Also
    --------
    DualLpRegressor : Tubes of any ends, and other norms.
    sklearn.svm.SVR, sklearn.svm.LinearSVR : The same problem without bounds.

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
    tol: float = 1e-6
    max_iter: int = 200

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Iterate until the predictor is certified.

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
            After the current iteration. The best model so far is kept.
        """
        return self._fit(training_data(self, X, y, sample_weight), X, y)

    def _advice(self, problem: KernelMatrixAdapter, progress: Progress) -> str:
        if np.isinf(self.C):
            return "C < inf gives a soft tube."
        return (
            "Scale X so that its features have similar spreads, or choose a smaller C."
        )
