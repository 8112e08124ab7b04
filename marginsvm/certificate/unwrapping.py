"""The estimator of this package within pipelines and searches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from marginsvm._typing import Array, Stored
from marginsvm.certificate.certificate import Certificate


class FittedEstimator(Protocol):
    """What a certificate reads of a fitted estimator; few have all of it."""

    C: float
    nu: float | None
    tol: float
    epsilon: float
    kernel: object
    _widens_kernels: bool
    certificate_: Certificate
    classes_: Array
    coef_: Stored
    dual_coef_: Array
    support_: Array
    intercept_: Array | float
    constant_: float
    epsilon_: Array | float
    objective_: Array | float
    objective_bound_: Array | float


def layers(estimator: object) -> Iterator[object]:
    """Yield an estimator and those within it: last steps and best estimators."""
    while True:
        yield estimator
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return


def unwrapped(
    estimator: object,
    attribute: str,
    X: object = None,
    *,
    of: str = "estimator of marginsvm",
) -> tuple[Any, Any]:
    """The fitted estimator inside pipelines and searches, and X as transformed for it.

    Parameters
    ----------
    estimator : estimator
        One of this package, a pipeline that ends in one, or a search over these; nested
        ones, too.
    attribute : str
        Fitted attribute that it must have.
    X : array-like, default=None
        Input of the outermost estimator; None: only the estimator is needed.
    of : str
        Which estimators have it.

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
    for layer in layers(estimator):
        found = (layer, X) if hasattr(layer, attribute) else found
        if isinstance(layer, Pipeline) and X is not None and len(layer.steps) > 1:
            X = layer[:-1].transform(X)
    check_is_fitted(layer)
    if found is None:
        raise TypeError(
            f"{type(layer).__name__} has no {attribute}: {_advice(layer, of)}"
        )
    return found


def _advice(estimator: object, of: str) -> str:
    """Advice on what to pass instead of an unsupported estimator."""
    if hasattr(estimator, "estimators_"):
        return (
            "it holds several estimators, each with its own training data; pass one of estimators_ "
            "with its data"
        )
    return (
        f"pass a fitted {of}, a pipeline that ends in one, or a search over these "
        "with refit=True"
    )
