"""Predictions of fitted estimators, with features or with kernels."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils._array_api import get_namespace
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from marginsvm._typing import Array
from marginsvm._version import __version__
from marginsvm.estimators.inputs import (
    Device,
    as_objects,
    check_same_namespace,
    fitted_there,
    labels_of,
    parts_of_map,
    place_of,
    plain,
    rows_in_part,
    types_of,
)
from marginsvm.estimators.to_sklearn import classifier
from marginsvm.estimators.training_data import kernel_with, norms_of
from marginsvm.problem.kernels import Kernel
from marginsvm.problem.matrix import canonical, inverse

_KERNEL_BYTES = 2**25  # memory of the kernel values of a test set that are computed together


class ScoresMixin:
    """Scores of examples, from ``coef_`` or ``dual_coef_``."""

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    normalize: bool = False  # some estimators have it as a parameter
    # Whether named kernels are computed in float64, whatever the examples are in: bounds of the
    # exact solver are closer than the rounding of kernel values in float32.
    _widens_kernels: bool = False
    _runs_on_devices: bool = False  # whether fits are by passes, which run where the examples are
    constant_: float  # fitted with normalize=True
    classes_: Array
    coef_: Array
    intercept_: Array
    support_: Array
    support_vectors_: Any
    dual_coef_: Array
    _gamma: float

    @property
    def _kernel_function(self) -> Kernel:
        return kernel_with(self, self._gamma)

    def _kernel_matrix(self, X: Any, Y: Any) -> Array:
        """Kernel of all pairs of two sets of examples."""
        return self._kernel_function(X, Y)

    def _scores_of(self, X: Any, method: str) -> Array:
        """``w.x + b`` of some examples, for a method of that name."""
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="intercept_", method=method)
        size = rows_in_part(X)
        if size and len(X) > 0:
            return np.concatenate([self._scores_of(x, method) for x in parts_of_map(X, size)])
        place, things = place_of(X), as_objects(self.kernel, X)
        if things is None:
            X, dtype = plain(X, place), types_of(place)
            X = canonical(validate_data(self, X, accept_sparse="csr", dtype=dtype, reset=False))
        else:
            X = things
        F = self._linear_scores(X, place) if self.kernel == "linear" else self._by_kernel(X, place)
        F = F + fitted_there(self.intercept_, place)
        if self.normalize:
            norms = norms_of(self._kernel_function, X)
            factor = inverse(np.hypot(norms, self.constant_))
            F = F * fitted_there(factor[:, None], place)
        return F[:, 0] if F.shape[1] == 1 else F

    def _linear_scores(self, X: Any, place: Device | None) -> Any:
        """Scores before the intercept is added, of shape (n_samples, 1) or (.., n_classes)."""
        W = fitted_there(self.coef_, place)
        W = W.T if W.ndim > 1 else W[:, None]
        return safe_sparse_dot(X, W, dense_output=True) if place is None else X @ W

    def _by_kernel(self, X: Any, place: Device | None) -> Any:
        """The same with a kernel, for some examples at a time."""
        support, V = (fitted_there(a, place) for a in (self.support_, self.dual_coef_.T))
        n_support = int(support.shape[0])
        size = int(min(max(1, _KERNEL_BYTES // (8 * max(1, n_support))), 1024))
        of = partial(self._kernel_values, support=support, place=place)
        parts = [slice(i, min(i + size, X.shape[0])) for i in range(0, X.shape[0], size)]
        F = [of(X[part] if place is None else X[part, :]) @ V for part in parts]
        return np.concatenate(F) if place is None else place.xp.concat(F)

    def _kernel_values(self, X: Any, support: Any, place: Device | None) -> Any:
        """Kernel of some examples with the support vectors."""
        if support.shape[0] == 0:  # the zero predictor; pairwise_kernels refuses an empty set
            return fitted_there(np.empty((X.shape[0], 0)), place)
        if self.kernel == "precomputed":
            return X[:, support] if place is None else place.xp.take(X, support, axis=1)
        others = fitted_there(self.support_vectors_, place)
        return fitted_there(self._kernel_matrix(X, others), place)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_marginsvm_version": __version__}  # type: ignore[dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        written_by = state.pop("_marginsvm_version", "unknown")
        if written_by != __version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=f"marginsvm.{type(self).__name__}",
                    current_sklearn_version=__version__,
                    original_sklearn_version=written_by,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.array_api_support = self._runs_on_devices and not callable(self.kernel)
        return tags


class PredictorMixin(ScoresMixin):
    """decision_function and predict of classifiers."""

    def decision_function(self, X: Any) -> Array:
        """Signed distance to the boundary, relative to that of the closest training example.

        With ``normalize=True``, ``w.x + b`` is divided by the norm of x or, if there is an
        intercept, by that of ``(x, constant_)``, which does not move the boundary.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Precomputed kernels: of shape (n_samples, n_training_samples). With scikit-learn's
            ``array_api_dispatch``: an array where those of ``fit`` were.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive means ``classes_[1]``. Divide by ``norm(coef_)`` for
            distances in the units of X (unless ``normalize=True``).
        """
        return self._scores_of(X, "decision_function")

    def predict(self, X: Any) -> Array:
        """Predict class labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_same_namespace(X, self, attribute="intercept_", method="predict")
        F = self.decision_function(X)
        xp = get_namespace(F)[0]
        winner = xp.astype(F > 0, xp.int64) if F.ndim == 1 else xp.argmax(F, axis=1)
        return labels_of(self.classes_, winner, place_of(F))

    def to_sklearn(self) -> Any:
        """Convert this classifier to one of scikit-learn with the same decision values.

        For tools that know scikit-learn's classes, such as ONNX and SHAP. The model has no
        certificate. (An SVC gives an example on the boundary itself to the second class.)

        Returns
        -------
        LinearSVC or SVC
            A fitted LinearSVC if this predictor is linear; with a kernel and two classes, an SVC.

        Raises
        ------
        NotFittedError
            If this classifier has not been fitted.
        ValueError
            If scikit-learn has no such predictor: with a kernel and more than two classes, with
            ``normalize=True``, or of objects that are no numbers.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from marginsvm import MaxMarginClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = MaxMarginClassifier(C=1.0, kernel="rbf").fit(X[50:], y[50:])
        >>> svc = clf.to_sklearn()
        >>> svc, bool(abs(svc.decision_function(X) - clf.decision_function(X)).max() < 1e-9)
        (SVC(gamma=...), True)
        """
        check_is_fitted(self)
        return classifier(self)

    def sparsify(self) -> Any:
        """Turn ``coef_`` into a sparse matrix, which is smaller where most of it is 0.

        Returns
        -------
        self
        """
        from sklearn.linear_model._base import SparseCoefMixin  # takes a tenth of a second

        return SparseCoefMixin.sparsify(self)

    def densify(self) -> Any:
        """Turn ``coef_`` into an array again.

        Returns
        -------
        self
        """
        from sklearn.linear_model._base import SparseCoefMixin

        return SparseCoefMixin.densify(self)
