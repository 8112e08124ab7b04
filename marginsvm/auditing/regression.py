"""What a linear regressor with a tube is worth: LinearSVR, SVR of a linear kernel, SGDRegressor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin_regressor import MaxMarginRegressor
from marginsvm.auditing.claims import claims_of
from marginsvm.auditing.models import (
    array_of,
    constant_of,
    cost_of,
    fit_intercept_of,
    refuse_nu,
)
from marginsvm.auditing.predictor import with_constant
from marginsvm.auditing.report import Judged, Worth

_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


def judged_regression(model: Any, X: Any, y: Array, weight: Array) -> Judged:
    """Judge a fitted regressor of one output on the examples of its fit."""
    loss = "epsilon_insensitive" if hasattr(model, "kernel") else getattr(model, "loss", None)
    refuse_nu(model)
    if getattr(model, "kernel", "linear") != "linear" or not hasattr(model, "coef_") or y.ndim != 1:
        raise ValueError("of regressors, linear ones of one output are judged, without a kernel")
    if loss not in _LOSSES or getattr(model, "penalty", "l2") != "l2":
        raise ValueError(
            f"of regressors, those with the losses {_LOSSES} are judged, and no l1 norm"
        )
    kept, n = weight > 0.0, len(y)
    X, y, weight = X[kept], y[kept], weight[kept]
    w, b = array_of(model, "coef_").ravel(), array_of(model, "intercept_").ravel()
    C, free, constant = cost_of(model, n, 0), fit_intercept_of(model), constant_of(model)
    xi = np.maximum(np.abs(X @ w + b - y) - model.epsilon, 0.0)
    cost = 0.5 * float(w @ w) + C * float(weight @ (xi if loss == _LOSSES[0] else xi * xi))
    best = MaxMarginRegressor(loss=loss, C=C, epsilon=model.epsilon, fit_intercept=free)
    own, penalty = _worth(cost, best, X, y, weight), None
    if constant is not None:
        added = 0.5 * float(b @ b) / constant**2
        best.set_params(fit_intercept=False)
        penalty = added, _worth(cost + added, best, with_constant(X, constant), y, weight)
    words = f"{loss} loss, C = {C:g}, epsilon = {model.epsilon:g}" + ", no intercept" * (not free)
    return Judged(
        name="",
        problem=words,
        n_samples=len(y),
        n_errors=int(np.count_nonzero(xi)),
        objective=own,
        margin=None,
        separable=None,
        claims=tuple(claims_of(model, own, penalty, free)),
        regression=True,
    )


def _worth(cost: float, best: Any, X: Any, y: Array, weight: Array) -> Worth:
    """An objective beside the bounds on the least."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the bounds say it
        best.fit(X, y, weight)
    return Worth(cost, float(best.objective_bound_), float(best.objective_), False)
