"""What a regressor with a tube is worth: LinearSVR, SVR, NuSVR, SGDRegressor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin_regressor import MaxMarginRegressor
from marginsvm.auditing.audit_report import Judged, Worth
from marginsvm.auditing.claimed import claims_of
from marginsvm.auditing.models import (
    NEAR_SCORE,
    TRIED,
    constant_of,
    cost_of,
    fit_intercept_of,
    readings,
)
from marginsvm.auditing.predictor import AuditedPredictor, with_constant
from marginsvm.certify.host import on_host
from marginsvm.certify.prices import HingeCaps

_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


def judged_regression(model: Any, X: Any, y: Array, weight: Array) -> Judged:
    """Judge a fitted regressor of one output on the examples of its fit."""
    loss = getattr(model, "loss", _LOSSES[0] if hasattr(model, "kernel") else None)
    if loss not in _LOSSES or getattr(model, "penalty", "l2") != "l2" or y.ndim != 1:
        raise ValueError(
            f"of regressors, those of one output with the losses {_LOSSES} are judged, and no l1 "
            "norm"
        )
    C, free, constant = cost_of(model, len(y), 0), fit_intercept_of(model), constant_of(model)
    if np.isinf(C):
        raise ValueError("of regressors, those with C < inf are judged")
    predictor = _predictor(model, X, weight)
    kept = weight > 0.0
    distances = np.abs(predictor.scores(X)[:, 0] - y)[kept]
    tube, price, xi = _tube(model, HingeCaps(C * weight[kept], _share(model)), distances)
    slack = C * weight[kept] @ (xi if loss == _LOSSES[0] else xi * xi)
    cost = 0.5 * predictor.squared_norm() + price + float(slack)
    best = MaxMarginRegressor(loss=loss, C=C, fit_intercept=free).set_params(**tube)
    if predictor.kernel is not None:
        best.set_params(kernel=predictor.kernel.metric, **predictor.kernel.params)
    own, penalty = _worth(cost, best, X, y, weight), None
    if constant is not None:
        added = 0.5 * float(predictor.intercept @ predictor.intercept) / constant**2
        best.set_params(fit_intercept=False)
        penalty = added, _worth(cost + added, best, with_constant(X, constant), y, weight)
    words = [f"{loss} loss", f"C = {C:g}", *(f"{name} = {x:g}" for name, x in tube.items())]
    return Judged(
        name="",
        problem=", ".join([*words, *predictor.words, *["no intercept"] * (not free)]),
        n_samples=len(xi),
        n_errors=int(np.count_nonzero(xi)),
        objective=own,
        margin=None,
        separable=None,
        claims=tuple(claims_of(model, own, penalty, free)),
        regression=True,
    )


def _share(model: Any) -> float | None:
    return getattr(model, "nu", None) or None  # 0 in those that have none


def _tube(model: Any, caps: HingeCaps, distances: Array) -> tuple[dict[str, float], float, Array]:
    """The parameter that gives a tube its width, the price of that, and what is outside.

    With nu, it is the best width for these distances.
    """
    if caps.nu is None:
        epsilon = float(model.epsilon)
        return {"epsilon": epsilon}, 0.0, np.maximum(distances - epsilon, 0.0)
    width = float(caps.width(distances))
    return {"nu": caps.nu}, float(caps.most) * width, np.maximum(distances - width, 0.0)


def _predictor(model: Any, X: Any, weight: Array) -> AuditedPredictor:
    """The reading of a model's attributes that predicts what it predicts."""
    some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], TRIED)).astype(int)
    predicted = np.asarray(on_host(model.predict(X[some])), dtype=np.float64).ravel()
    near = NEAR_SCORE * np.abs(predicted).max()
    for read in readings(model, X, weight):
        if np.abs(read.scores(X[some])[:, 0] - predicted).max() <= near:
            return read.flat()
    raise ValueError(
        f"the attributes of {type(model).__name__} do not give what it predicts: it is no linear "
        "or kernel regressor that can be read, or was fitted to other examples"
    )


def _worth(cost: float, best: Any, X: Any, y: Array, weight: Array) -> Worth:
    """An objective beside the bounds on the least."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the bounds say it
        best.fit(X, y, weight)
    return Worth(cost, float(best.objective_bound_), float(best.objective_), False)
