"""Predictions of fitted estimators, with features or with kernels."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils._array_api import get_namespace
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from marginsvm._typing import Array
from marginsvm._version import __version__
from marginsvm.data import mapped
from marginsvm.data.csr import as_block
from marginsvm.data.device import Device, OnDevice, kernel_of_rows, kernel_on_host
from marginsvm.data.normalized import inverse, norms_in_kernel
from marginsvm.estimator.objects import as_objects
from marginsvm.estimator.on_device import (
    check_same_namespace,
    fitted_there,
    labels_of,
    place_of,
    plain,
    rows_of,
    types_of,
)
from marginsvm.estimator.to_sklearn import classifier

_BLOCK_BYTES = 2**25  # memory of the kernel values of a test set that are computed together


class PredictorMixin:
    """decision_function and predict, from ``coef_`` or ``dual_coef_``."""

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    normalize: bool = False  # some estimators have it as a parameter
    _runs_on_devices: bool = False  # whether fits are by passes, which run where the examples are
    constant_: float  # fitted with normalize=True
    classes_: Array
    coef_: Array
    intercept_: Array
    support_: Array
    support_vectors_: Any
    dual_coef_: Array
    _gamma: float

    def _kernel_matrix(self, X: Any, Y: Any) -> Array:
        """Kernel of all pairs; a callable is given both sets at once, as in SVC."""
        X, Y, params = canonical(X), canonical(Y), self.kernel_params or {}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if callable(self.kernel):
                K = self.kernel(X, Y, **params)
                K = K.toarray() if sp.issparse(K) else np.asarray(K)
                if K.shape != (X.shape[0], Y.shape[0]):
                    raise ValueError(
                        "kernel(X, Y) must give a matrix with a row for each example of X and a "
                        f"column for each one of Y, here of shape {(X.shape[0], Y.shape[0])}, "
                        f"but it gave one of shape {K.shape}"
                    )
                # with integer values, products would be rounded to integers
                K = K.astype(np.result_type(K.dtype, np.float32), copy=False)
            else:
                named = {"gamma": self._gamma, "degree": self.degree, "coef0": self.coef0, **params}
                K = pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **named)
        xp = get_namespace(K)[0]
        if not xp.all(xp.isfinite(K)):
            raise ValueError(
                f"kernel {self.kernel!r} gives values that are not finite on these examples: scale "
                "X, or choose other kernel parameters"
            )
        return K

    def _norms(self, X: Any) -> Array:
        """Norms of examples, in the feature space of the kernel."""
        if self.kernel == "linear":
            return as_block(X).norms()
        if self.kernel == "precomputed":  # fit refuses other kernels
            return np.ones(X.shape[0])
        return norms_in_kernel(self._kernel_of(X), X)

    def _kernel_of(self, X: Any) -> Any:
        """The kernel function for these examples, with its values on the host."""
        kernel = self._kernel_matrix
        return kernel_on_host(kernel) if isinstance(X, OnDevice) else kernel

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
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="intercept_", method="decision_function")
        size = mapped.rows_in_part(X)
        if size and len(X) > 0:
            return np.concatenate([self.decision_function(x) for x in mapped.parts(X, size)])
        place, things = place_of(X), as_objects(self.kernel, X)
        if things is None:
            X, dtype = plain(X, place), types_of(place)
            X = validate_data(self, X, accept_sparse="csr", dtype=dtype, reset=False)
            X = rows_of(X, place)
        else:
            X = things
        F = self._linear_scores(X, place) if self.kernel == "linear" else self._by_kernel(X, place)
        F = F + fitted_there(self.intercept_, place)
        if self.normalize:
            factor = inverse(np.hypot(self._norms(X), self.constant_))
            F = F * fitted_there(factor[:, None], place)
        return F[:, 0] if F.shape[1] == 1 else F

    def _linear_scores(self, X: Any, place: Device | None) -> Any:
        """Scores before the intercept is added, of shape (n_samples, 1) or (.., n_classes)."""
        W = fitted_there(self.coef_, place).T
        return safe_sparse_dot(X, W, dense_output=True) if place is None else X @ W

    def _by_kernel(self, X: Any, place: Device | None) -> Any:
        """The same with a kernel, for some examples at a time."""
        support, V = (fitted_there(a, place) for a in (self.support_, self.dual_coef_.T))
        n_support = int(support.shape[0])
        size = int(min(max(1, _BLOCK_BYTES // (8 * max(1, n_support))), 1024))
        of = partial(self._kernel_values, support=support, place=place)
        F = [of(X[i : i + size]) @ V for i in range(0, X.shape[0], size)]
        return np.concatenate(F) if place is None else place.xp.concat(F)

    def _kernel_values(self, X: Any, support: Any, place: Device | None) -> Any:
        """Kernel of some examples with the support vectors."""
        if support.shape[0] == 0:  # the zero predictor; pairwise_kernels refuses an empty set
            K = np.empty((X.shape[0], 0))
            return K if place is None else OnDevice(place.put(K), place)
        if self.kernel == "precomputed":
            return X[:, support] if place is None else X.features(support)
        others = rows_of(fitted_there(self.support_vectors_, place), place)
        if place is None:
            return self._kernel_matrix(X, others)
        return OnDevice(kernel_of_rows(self._kernel_matrix)(X, others), place)

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


def canonical(X: Any) -> Any:
    """Bring a sparse matrix into the form that all of sklearn's kernels accept.

    It has no duplicate entries and, where they suffice, 32-bit indices.
    """
    if not sp.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 and max(*X.shape, X.nnz) < 2**31:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = type(X)(parts, shape=X.shape)
    return X
