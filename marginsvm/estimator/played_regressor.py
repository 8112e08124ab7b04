"""What regressors share: predictions, conversion, tags."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from marginsvm._typing import Array
from marginsvm.certificate.certificate import StatesNorm
from marginsvm.estimator.interval_results import FittedIntervals
from marginsvm.estimator.on_device import refuse_foreign
from marginsvm.estimator.played import Played
from marginsvm.estimator.to_sklearn import kernel_regressor, linear_regressor


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
