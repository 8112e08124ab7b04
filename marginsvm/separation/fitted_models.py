"""Fitted models of statsmodels and lifelines, by what they hold; neither is imported.

Their design matrices have the intercept as a column, so none is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def arguments_of(results: Any, frame: Any) -> dict[str, Any] | None:
    """Arguments of check_separability that ask about a fitted model; None: it is data.

    Parameters
    ----------
    results : object
    frame : DataFrame
        What lifelines fitted, as its results do not keep it.
    """
    if hasattr(results, "_model") and hasattr(results, "duration_col"):
        return _of_lifelines(results, frame)
    model: Any = getattr(results, "model", None)
    if not hasattr(model, "exog") or not hasattr(model, "endog"):
        return None
    kind = next((c.__name__ for c in type(model).__mro__ if c.__name__ in _OF), None)
    if kind is None:
        known = ", ".join(_OF)
        raise ValueError(f"a fitted {type(model).__name__} is not known; known are {known}")
    X = np.asarray(model.exog, dtype=np.float64)
    names = list(model.exog_names)[: X.shape[1]]
    found = {"X": X, "feature_names": names, "fit_intercept": False, **_OF[kind](model)}
    offset = getattr(model, "offset", None)
    if offset is not None and np.ndim(offset) == 1:
        found["offset"] = offset
    return found


def _of_outcomes(family: str) -> Callable[[Any], dict[str, Any]]:
    return lambda model: {"y": np.asarray(model.endog), "family": family}


def _of_successes(model: Any) -> dict[str, Any]:
    return {"y": np.asarray(model.endog) > 0, "family": "binomial"}


def _of_classes(model: Any) -> dict[str, Any]:
    """Of codes, with the names of classes where these are in the same order."""
    codes, names = np.asarray(model.endog).astype(int), getattr(model, "_ynames_map", {})
    labels = np.array([names.get(c, "") for c in range(codes.max() + 1)])
    if np.all(np.char.isdigit(labels)):
        labels = labels.astype(int)
    ordered = np.all(labels[:-1] < labels[1:])
    return {"y": labels[codes] if ordered else codes, "family": "multinomial"}


def _of_order(model: Any) -> dict[str, Any]:
    from pandas import Categorical

    codes, labels = np.asarray(model.endog).astype(int), getattr(model, "labels", None)
    if labels is None or len(labels) <= codes.max():
        return {"y": codes, "family": "ordinal"}
    return {"y": Categorical.from_codes(codes, labels, ordered=True), "family": "ordinal"}


def _of_groups(model: Any) -> dict[str, Any]:
    return {**_of_outcomes("conditional")(model), "groups": np.asarray(model.groups)}


def _of_times(model: Any) -> dict[str, Any]:
    y = np.column_stack([model.endog, model.status])
    return {"y": y, "family": "cox", "strata": model.strata, "entry": model.entry}


def _of_glm(model: Any) -> dict[str, Any]:
    """Of the families whose separation is known, with weights."""
    name, y = type(model.family).__name__, np.asarray(model.endog)
    weight = np.asarray(model.freq_weights)
    weights = {"sample_weight": weight} if weight.shape == y.shape else {}
    if name == "Binomial":
        trials = np.broadcast_to(np.asarray(model.n_trials, dtype=float), y.shape)
        won = np.rint(y * trials) if np.all(trials > 0) else y * trials
        return {"y": np.column_stack([won, trials - won]), "family": "binomial", **weights}
    family = {"Poisson": "poisson", "NegativeBinomial": "negative_binomial"}.get(name)
    if family is None or type(model.family.link).__name__ != "Log":
        raise ValueError(f"a GLM of the family {name} with this link is not known")
    return {"y": y, "family": family, **weights}


_OF: dict[str, Callable[[Any], dict[str, Any]]] = {
    "Logit": _of_successes,
    "Probit": _of_successes,
    "MNLogit": _of_classes,
    "Poisson": _of_outcomes("poisson"),
    "NegativeBinomial": _of_outcomes("negative_binomial"),
    "GLM": _of_glm,
    "OrderedModel": _of_order,
    "ConditionalLogit": _of_groups,
    "PHReg": _of_times,
}


def _of_lifelines(fitter: Any, frame: Any) -> dict[str, Any]:
    if frame is None or not hasattr(frame, "columns"):
        raise ValueError(
            "lifelines keeps no data: give the frame that was fitted, check_separability(fit, df)"
        )
    event = frame[fitter.event_col] if fitter.event_col else np.ones(len(frame))
    apart = [fitter.strata] if isinstance(fitter.strata, str) else list(fitter.strata or [])
    beside = [fitter.duration_col, fitter.event_col, fitter.entry_col, fitter.weights_col]
    gone = {name for name in [*beside, fitter.cluster_col, *apart] if name is not None}
    X = fitter.regressors.transform_df(frame.drop(columns=list(gone)))["beta_"]
    return {
        "X": X.to_numpy(dtype=np.float64),
        "y": np.column_stack([frame[fitter.duration_col], event]),
        "family": "cox",
        "feature_names": list(X.columns),
        "strata": frame[apart].to_numpy() if apart else None,
        "entry": frame[fitter.entry_col] if fitter.entry_col else None,
        "sample_weight": frame[fitter.weights_col] if fitter.weights_col else None,
    }
