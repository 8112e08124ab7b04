"""Attributes of scikit-learn's support vector machines that ours do not have, and the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

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
