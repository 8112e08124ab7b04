"""The estimator of this package within pipelines and searches."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def unwrapped(estimator: Any, attribute: str, X: Any = None) -> tuple[Any, Any]:
    """Fitted estimator inside of pipelines and searches, and X as it was handed on to it.

    Parameters
    ----------
    estimator : estimator
        One of this package, a pipeline that ends in one, or a search over these; nested
        ones, too.
    attribute : str
        Fitted attribute that it must have.
    X : array-like, default=None
        What the outermost was given; None: only the estimator is asked for.

    Returns
    -------
    estimator, X
        The innermost estimator that has the attribute, and X transformed by the steps before it.

    Raises
    ------
    NotFittedError
        If it has not been fitted.
    TypeError
        If there is no such estimator in it.
    """
    found = None
    while True:
        found = (estimator, X) if hasattr(estimator, attribute) else found
        if isinstance(estimator, Pipeline):
            if X is not None and len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    check_is_fitted(estimator)
    if found is None:
        raise TypeError(f"{type(estimator).__name__} has no {attribute}: {_advice(estimator)}")
    return found


def _advice(estimator: Any) -> str:
    """What to pass in place of an estimator that this package has no part in, or a part only."""
    if hasattr(estimator, "estimators_"):
        return (
            "it holds several estimators, each fitted to examples and labels of its own; pass one "
            "of estimators_ with those"
        )
    return (
        "pass a fitted estimator of marginsvm, a pipeline that ends in one, or a search over these "
        "with refit=True"
    )
