"""Signs that a user gives to coefficients, and the norm of predictors that have them."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import _check_monotonic_cst

from marginsvm._typing import Array
from marginsvm.certify.spec import ProblemSpec
from marginsvm.data.memory import as_store
from marginsvm.rows import LpNorm, SignedNorm


def signs_of(seen: Any) -> Array | None:
    """What ``monotonic_cst`` says of each feature: -1, 0 or 1; None: nothing of any.

    Parameters
    ----------
    seen : estimator
        It knows the number and the names of the features.

    Raises
    ------
    ValueError
        If it does not fit the features, or there is no coefficient of any.
    """
    given = getattr(seen, "monotonic_cst", None)
    if given is None:
        return None
    if seen.kernel != "linear":
        raise ValueError(
            "monotonic_cst is about coefficients of features, which a model with "
            f"kernel={seen.kernel!r} has not: use kernel='linear', or monotonic_cst=None"
        )
    signs = _check_monotonic_cst(seen, given)
    return signs if signs.any() else None


def norm_of(spec: ProblemSpec, X: Any, signs: Array | None = None, n_classes: int = 2) -> LpNorm:
    """The norm of predictors, with the signs that their coefficients must have.

    Raises
    ------
    ValueError
        If signs cannot be kept: there are more classes, or the examples are not in memory.
    """
    if spec.monotonic_cst is not None and n_classes > 2:
        raise ValueError(
            f"monotonic_cst says how the decision value of the second of two classes changes, but "
            f"y has {n_classes}: use sklearn.multiclass.OneVsRestClassifier, with signs for each "
            "class"
        )
    if spec.monotonic_cst is not None and as_store(X).whole is None:
        raise ValueError("monotonic_cst needs the examples in memory, as arrays of NumPy or SciPy")
    if signs is None:
        return LpNorm.named(spec.p, X.shape[-1])
    return SignedNorm(feature_signs=signs)
