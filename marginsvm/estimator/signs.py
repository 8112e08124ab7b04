"""Signs that a user gives to coefficients."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import _check_monotonic_cst

from marginsvm._typing import Array
from marginsvm.certify.spec import ProblemSpec
from marginsvm.data.memory import as_store
from marginsvm.rows import LpNorm, SignedNorm


def signs_of(estimator: Any, training: Any) -> Array | None:
    """What ``monotonic_cst`` says of each feature: -1, 0 or 1; None: nothing of any.

    Raises
    ------
    ValueError
        If it cannot be kept, or does not fit the data.
    """
    given = getattr(estimator, "monotonic_cst", None)
    if given is None:
        return None
    if estimator.kernel != "linear":
        raise ValueError(
            "monotonic_cst is about coefficients of features, which a model with "
            f"kernel={estimator.kernel!r} has not: use kernel='linear', or monotonic_cst=None"
        )
    if training.classes is not None and len(training.classes) > 2:
        raise ValueError(
            f"monotonic_cst says how the decision value of the second of two classes changes, but "
            f"y has {len(training.classes)}: use sklearn.multiclass.OneVsRestClassifier, with "
            "signs for each class"
        )
    if as_store(training.X).whole is None:
        raise ValueError("monotonic_cst needs the examples in memory, as arrays of NumPy or SciPy")
    named = type(type(estimator).__name__, (), training.features)()  # what the check reads of it
    signs = _check_monotonic_cst(named, given)
    return signs if signs.any() else None


def norm_of(estimator: Any, training: Any) -> LpNorm:
    """The norm of predictors, with the signs that their coefficients must have."""
    signs = signs_of(estimator, training)
    if signs is not None:
        return SignedNorm(of_features=signs)
    return LpNorm.named(ProblemSpec.of(estimator).p, training.X.shape[-1])
