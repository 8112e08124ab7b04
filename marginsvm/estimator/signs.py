"""Signs that a user asks of coefficients, and the norm of predictors that have them."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import _check_monotonic_cst

from marginsvm._typing import Array
from marginsvm.problem.matrix import as_matrix
from marginsvm.problem.norms import LpNorm, SignedNorm
from marginsvm.problem.spec import ProblemSpec


def signs_of(estimator: Any) -> Array | None:
    """Signs that ``monotonic_cst`` gives to features: -1, 1, or 0 for any; None: any for all.

    Parameters
    ----------
    estimator : estimator
        With ``n_features_in_`` and, if features have names, ``feature_names_in_``.

    Raises
    ------
    ValueError
        If ``monotonic_cst`` does not fit the features, or a kernel leaves them no coefficients.
    """
    given = getattr(estimator, "monotonic_cst", None)
    if given is None:
        return None
    if estimator.kernel != "linear":
        raise ValueError(
            "monotonic_cst is about coefficients of features, which a model with "
            f"kernel={estimator.kernel!r} has not: use kernel='linear', or monotonic_cst=None"
        )
    signs = _check_monotonic_cst(estimator, given)
    return signs if signs.any() else None


def norm_of(spec: ProblemSpec, X: Any, signs: Array | None = None, n_classes: int = 2) -> LpNorm:
    """The norm of predictors, with the signs that their coefficients must have.

    Raises
    ------
    ValueError
        If signs were given, but there are more than two classes, or X is not in memory.
    """
    if spec.monotonic_cst is not None and n_classes > 2:
        raise ValueError(
            f"monotonic_cst says how the decision value of the second of two classes changes, but "
            f"y has {n_classes}: use sklearn.multiclass.OneVsRestClassifier, with signs for each "
            "class"
        )
    X = as_matrix(X)
    if spec.monotonic_cst is not None and (not X.in_memory or getattr(X, "foreign", False)):
        raise ValueError("monotonic_cst needs the examples in memory, as arrays of NumPy or SciPy")
    if signs is None:
        return LpNorm.named(spec.p, X.shape[-1])
    return SignedNorm(feature_signs=signs)
