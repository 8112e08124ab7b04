"""Predictions of fitted estimators, and their pickling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils._array_api import get_namespace
from sklearn.utils.validation import check_is_fitted, validate_data

from marginsvm._typing import Array
from marginsvm._version import __version__
from marginsvm._warnings import warn
from marginsvm.estimators.inputs import (
    HOST,
    Device,
    as_objects,
    check_same_namespace,
    place_of,
    rows_in_part,
)
from marginsvm.estimators.to_sklearn import classifier
from marginsvm.estimators.training_data import norms_of
from marginsvm.problem.kernel_functions import kernel_with
from marginsvm.problem.matrix import canonical, inverse
from marginsvm.problem.programs import ProblemSpec

# Memory of the kernel values of a test set that are computed together.
KERNEL_BYTES = 2**25

# Attributes of scikit-learn's support vector machines that ours do not have, and the way.
ABSENT = {
    "fit_status_": "status_ says how the fit ended",
    "shape_fit_": "n_features_in_ is the number of features",
}
ABSENT_WITH_KERNEL = {
    "coef_": (
        "only a linear kernel has coefficients of features. dual_coef_ are those of "
        "support_vectors_, and decision_function(X) gives the scores"
    ),
}
CALIBRATE = (
    "margins are no probabilities. CalibratedClassifierCV(clf).fit(X, y) of sklearn.calibration "
    "learns these from decision_function(X)"
)
ABSENT_OF_CLASSIFIERS = {
    **ABSENT,
    "predict_proba": CALIBRATE,
    "predict_log_proba": CALIBRATE,
    "probA_": CALIBRATE,
    "probB_": CALIBRATE,
    "class_weight_": (
        "compute_class_weight of sklearn.utils.class_weight gives the weights of classes"
    ),
}


class ExplainsAbsent:
    """Error messages for missing attributes that name the way to what was wanted."""

    _absent: ClassVar[dict[str, str]] = ABSENT

    if not TYPE_CHECKING:  # a checker of types should see which attributes are missing

        def __getattr__(self, name: str) -> Any:
            # Called only where an attribute is missing, or a property has raised AttributeError.
            why = self._absent.get(name)
            if "dual_coef_" in vars(self):
                why = why or ABSENT_WITH_KERNEL.get(name)
            if why is None:
                return self.__getattribute__(name)  # raises Python's own error
            raise AttributeError(f"{type(self).__name__} has no {name}: {why}.")


class ScoresMixin(ExplainsAbsent):
    """Scores from ``coef_`` or ``dual_coef_``; scikit-learn's tags, and pickling."""

    # Whether named kernels are computed in float64 for any dtype of X: the exact solver's gap is
    # below the rounding of kernel values in float32.
    _widens_kernels: bool = False
    constant_: float  # fitted with normalize=True
    classes_: Array
    coef_: Array
    intercept_: Array
    support_: Array
    support_vectors_: Any
    dual_coef_: Array
    _gamma: float

    @classmethod
    def _runs_on_devices(cls) -> bool:
        """Whether fits are by passes, which run on the device of the examples."""
        return False

    def _kernel_matrix(self, X: Any, Y: Any) -> Array:
        """Kernel of all pairs of two sets of examples."""
        return kernel_with(ProblemSpec.of(self), self._gamma)(X, Y)

    def _scores_of(self, X: Any, method: str) -> Array:
        """``w.x + b`` of some examples, for a method of that name."""
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="intercept_", method=method)
        size = rows_in_part(X)
        spec = ProblemSpec.of(self)
        place = place_of(X)
        if size and len(X) > 0:
            parts = (np.asarray(X[i : i + size]) for i in range(0, len(X), size))
            return np.concatenate([self._scores_of(part, method) for part in parts])
        objects = as_objects(spec.kernel, X)
        if objects is not None:
            X = objects
        else:
            # a tensor of torch may be part of a graph
            X = X.detach() if place is not HOST and hasattr(X, "detach") else X
            how = {"accept_sparse": "csr", "dtype": place.float_types, "reset": False}
            X = canonical(validate_data(self, X, **how))
        return self._scores(X, spec, place)

    def _scores(self, X: Any, spec: ProblemSpec, place: Device) -> Any:
        if spec.kernel == "linear":
            W = place.put(self.coef_)
            F = X @ (W.T if W.ndim > 1 else W[:, None])
            F = F.toarray() if sp.issparse(F) else F
        else:
            F = self._by_kernel(X, spec, place)
        F = F + place.put(self.intercept_)
        if spec.normalize:
            norms = norms_of(kernel_with(spec, self._gamma), X)
            F = F * place.put(inverse(np.hypot(norms, self.constant_))[:, None])
        return F[:, 0] if F.shape[1] == 1 else F

    def _by_kernel(self, X: Any, spec: ProblemSpec, place: Device) -> Any:
        """Kernel values with the support vectors times their coefficients, in parts."""
        support = place.put(self.support_)
        V = place.put(self.dual_coef_).T
        xp = place.xp
        n = int(X.shape[0])
        n_support = int(support.shape[0])
        if n_support == 0:  # the zero predictor; pairwise_kernels refuses an empty set
            return place.put(np.zeros((n, int(V.shape[1]))))
        size = min(max(1, KERNEL_BYTES // (8 * n_support)), 1024)
        F = []
        for i in range(0, n, size):
            # other libraries want an end that is inside, and all axes
            j = min(i + size, n)
            part = X[i:j] if place is HOST else X[i:j, :]
            if spec.kernel == "precomputed":
                K = xp.take(part, support, axis=1)
            else:
                K = place.put(
                    self._kernel_matrix(part, place.put(self.support_vectors_))
                )
            F.append(K @ V)
        return xp.concat(F)

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_marginsvm_version": __version__}  # type: ignore[dict-item]

    def __setstate__(self, state: dict[str, object]) -> None:
        written_by = state.pop("_marginsvm_version", "unknown")
        if written_by != __version__:
            # other versions continue from other states
            state.pop("_progress", None)
            other = InconsistentVersionWarning(
                estimator_name=f"marginsvm.{type(self).__name__}",
                current_sklearn_version=__version__,
                original_sklearn_version=written_by,
            )
            warn(other, InconsistentVersionWarning)
        super().__setstate__(state)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags, kernel = super().__sklearn_tags__(), getattr(self, "kernel", "linear")  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = kernel == "precomputed"
        tags.array_api_support = self._runs_on_devices() and not callable(kernel)
        return tags


class PredictorMixin(ScoresMixin):
    """decision_function and predict of classifiers."""

    _absent = ABSENT_OF_CLASSIFIERS

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
        return self._labels(self.decision_function(X))

    def _labels(self, F: Any) -> Array:
        xp = get_namespace(F)[0]
        winner = xp.astype(F > 0, xp.int64) if F.ndim == 1 else xp.argmax(F, axis=1)
        return place_of(F).labels(self.classes_, winner)

    def to_sklearn(self) -> Any:
        """Convert this classifier to one of scikit-learn with the same decision values.

        For tools that need scikit-learn's classes, such as ONNX and SHAP. The model has no
        certificate. (An SVC assigns examples on the boundary to the second class.)

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
            ``normalize=True``, or for examples that are not numeric.

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
        # Importing it takes a tenth of a second.
        from sklearn.linear_model._base import SparseCoefMixin

        return SparseCoefMixin.sparsify(self)

    def densify(self) -> Any:
        """Turn ``coef_`` into an array again.

        Returns
        -------
        self
        """
        from sklearn.linear_model._base import SparseCoefMixin

        return SparseCoefMixin.densify(self)
