"""Outlier detection by the exact solver: the one-class SVM with certified bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from marginsvm._typing import Array
from marginsvm.certificate.certificate import StatesMargin
from marginsvm.estimators.dual_state import DualState
from marginsvm.estimators.exact import Exact, ExactMixin
from marginsvm.estimators.inputs import refuse_foreign
from marginsvm.estimators.parameters import (
    NamedKernelParameters,
    ShareParameters,
    WarmParameters,
    with_parameters,
)
from marginsvm.estimators.predictions import ScoresMixin
from marginsvm.estimators.results import FittedOneClass
from marginsvm.estimators.to_sklearn import outlier_detector
from marginsvm.estimators.training_data import training_data
from marginsvm.fit import Progress
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.solve import FEWEST


class OneClass(Exact):
    """The exact solver for examples of one class."""

    def tol_of(self, qp: QuadraticProgram, tol: float) -> float:
        """Small enough for ``offset_`` to be as accurate as margins, where that is cheap."""
        return 1e-5 * tol if qp.examples.n <= FEWEST else tol

    def model(
        self, problem: KernelMatrixAdapter, qp: QuadraticProgram
    ) -> tuple[Array, Array, Array, str]:
        """The zero predictor: if the hull of the examples holds the origin, no margin exists."""
        alpha = np.zeros(qp.shape)
        return qp.rmatvec(alpha), np.zeros(qp.n_free), alpha, ""


@with_parameters
class MaxMarginOutlierDetector(
    WarmParameters,
    ShareParameters,
    NamedKernelParameters,
    StatesMargin,
    ExactMixin,
    ScoresMixin,
    DualState,
    OutlierMixin,
    BaseEstimator,
):
    """Outlier detection by the exact solver: the problem of OneClassSVM, with a proof.

    It finds the linear or kernel predictor of norm 1 for which the mean of the smallest values, on
    a share ``nu`` of the examples, is largest, and proves how close to the largest it is. At most
    that share are outliers, and at least that share are support vectors.

    Parameters
    ----------
    nu : float in (0, 1] or None
        Largest share of outliers (dimensionless), as in OneClassSVM. None: no outliers, as with
        ``nu = 1 / n_samples``.
    kernel : str or callable
        As in OneClassSVM. ``"linear"`` only makes sense where X lies on one side of the origin.
    warm_start : bool
        Continue the previous fit, if data, ``nu`` and weights are the same.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients; 0 if there is no margin.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this (units of X, squared; of the kernel).
    intercept_ : ndarray of shape (1,)
        ``-offset_``, as OneClassSVM has it (same units).
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the support vectors, on libsvm's scale: their sum is nu times the sum of the
        sample weights (``nu=None``: 1). Linear: ``dual_coef_ @ X[support_]`` is ``coef_`` up to the
        gap.
    support_, n_support_ : ndarray of shape (n_support,) and (1,)
        Indices of the support vectors; their number.
    support_vectors_ : ndarray or csr matrix of shape (n_support, n_features)
        The support vectors; empty if the kernel is precomputed.
    margin_ : float
        Certified lower bound on the mean of the smallest values of this predictor at norm 1 (units
        of X; kernels: of the root of their values). Hard: the distance of the convex hull from the
        origin.
    margin_bound_ : float
        Certified upper bound for any predictor (same units).
    gap_ : float
        Relative gap, from 0 to 1 (dimensionless).
    separable_ : bool or None
        Whether some predictor is positive on all examples. True: this one. False: proved that the
        convex hull holds the origin. None: unknown.
    status_ : str
        ``"certified"``, ``"no_margin"`` (all examples are inliers), ``"stalled"``, ``"max_iter"``,
        ``"stopped"`` or ``"interrupted"``.
    n_iter_ : int
        Iterations.
    certificate_ : Certificate
        Bounds, status and dual variables.
    history_ : dict of ndarray
        ``n_iter``, ``n_passes``, ``seconds``, ``margin``, ``margin_bound`` of each iteration.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features; their names, if any.

    See Also
    --------
    sklearn.svm.OneClassSVM : The same problem without a proof.
    marginsvm.check_certificate : Compute the bounds again from the data alone.

    Notes
    -----
    With sample weights m of sum M, OneClassSVM minimises
    ``|w|^2 / 2 - nu M rho + sum m max(0, rho - w.x)`` over w and rho (``offset_``). The minimum is
    ``-(nu M margin)^2 / 2``, so that bounds on the margin are bounds on it.

    References
    ----------
    B. Schoelkopf, J. Platt, J. Shawe-Taylor, A. Smola, R. Williamson. Estimating the support of a
    high-dimensional distribution. Neural Computation, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm import MaxMarginOutlierDetector
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0]])
    >>> detector = MaxMarginOutlierDetector().fit(X)
    >>> detector.predict(X)
    array([ 1,  1,  1,  1, -1])
    >>> print(detector.status_, f"{detector.margin_:.4f} <= {detector.margin_bound_:.4f}")
    certified 0.7189 <= 0.7189
    """

    kernel: Any = "rbf"
    nu: float | None = 0.5
    tol: float = 1e-6
    max_iter: int = 200

    _fitted = FittedOneClass

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Iterate until the predictor is certified.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data, or the kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. float32 stays float32.
        y : object
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight m counts like m copies; 0 leaves the example out.

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
        return self._fit(training_data(self, X, sample_weight=sample_weight), X, y)

    def _algorithm(self) -> OneClass:
        return OneClass(self.tol)

    def _advice(self, problem: KernelMatrixAdapter, progress: Progress) -> str:
        if self.status_ == "no_margin":
            return "With kernel='rbf', there is a margin."
        return (
            "Scale X so that its features have similar spreads, or choose a larger tol."
        )

    def score_samples(self, X: Any) -> Array:
        """Values of the predictor: the smaller, the more abnormal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            ``w.x``, as OneClassSVM has it.
        """
        return np.asarray(self.decision_function(X) + self.offset_)

    def decision_function(self, X: Any) -> Array:
        """Signed distance to the boundary, times ``norm(coef_)``; negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Precomputed kernels: of shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        refuse_foreign(type(self).__name__, X)
        return self._scores_of(X, "decision_function")

    def predict(self, X: Any) -> Array:
        """Tell inliers from outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def to_sklearn(self) -> Any:
        """Convert this detector to one of scikit-learn with the same decision values.

        Returns
        -------
        OneClassSVM
            Fitted; it has no certificate. With a linear kernel, its support vector is ``coef_``.

        Raises
        ------
        NotFittedError
            If this detector has not been fitted.
        """
        check_is_fitted(self)
        return outlier_detector(self)
