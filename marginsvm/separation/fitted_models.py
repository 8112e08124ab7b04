"""Data of models of statsmodels and lifelines; neither is imported.

Their design matrices have the intercept as a column, so none is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm.separation.families import FAMILIES, OWN

ROUNDED = 1e-9  # a share times trials that is this near a number of successes is one

_FAMILIES = {model: f.name for f in FAMILIES.values() for model in f.models} | {
    "GLM": ""
}


def arguments_of(results: Any, frame: Any) -> dict[str, Any] | None:
    """Arguments of check_separability for a model; None: ``results`` is data.

    Parameters
    ----------
    results : object
    frame : DataFrame
        The data of a lifelines fit, which its results do not keep.
    """
    if hasattr(results, "_model") and hasattr(results, "duration_col"):
        return _of_lifelines(results, frame)
    model: Any = getattr(results, "model", results)
    methods = callable(getattr(model, "fit", None))  # a frame may have such a column
    if not (methods and hasattr(model, "exog") and hasattr(model, "endog")):
        return None
    kind = next(
        (c.__name__ for c in type(model).__mro__ if c.__name__ in _FAMILIES), None
    )
    if kind is None:
        known = ", ".join(_FAMILIES)
        raise ValueError(
            f"a fitted {type(model).__name__} is not known; known are {known}"
        )
    X = np.asarray(model.exog, dtype=float)
    y = np.asarray(model.endog)
    family = _FAMILIES[kind]
    names = list(model.exog_names)[: X.shape[1]]
    found = {
        "X": X,
        "feature_names": names,
        "fit_intercept": False,
        "family": family,
        "y": y,
    }
    for name in OWN:
        if np.ndim(getattr(model, name, 0)) == 1:
            found[name] = getattr(model, name)
    if kind == "GLM":
        found |= _of_glm(model, y)
    elif family == "binomial":
        found["y"] = _successes(y, np.ones(len(y)))
    elif family == "cox":
        found["y"] = np.column_stack([y, model.status])
    elif family in ("multinomial", "ordinal"):
        found["y"] = _named(model, y.astype(int), family)
    return {**found, "y": _labelled(found["y"], model)}


def _labelled(y: Any, model: Any) -> Any:
    """Outcomes with their name and the labels of their rows, as pandas has them."""
    from pandas import DataFrame, Series

    names = model.endog_names
    names = [names, "other"] if isinstance(names, str) else names
    index = model.data.row_labels
    if index is not None and len(index) != len(y):  # statsmodels leaves out some groups
        index = None
    if np.ndim(y) == 1:
        return Series(y, index=index, name=names[0])
    return DataFrame(y, index=index, columns=names)


def _named(model: Any, codes: Any, family: str) -> Any:
    """Codes replaced by class names, where these are known and in the same order."""
    if family == "ordinal":
        labels = getattr(model, "labels", None)
        if labels is None or len(labels) <= codes.max():
            return codes
        from pandas import Categorical

        return Categorical.from_codes(codes, labels, ordered=True)
    names = getattr(model, "_ynames_map", {})
    labels = np.array([names.get(c, "") for c in range(codes.max() + 1)])
    if np.all(np.char.isdigit(labels)):
        labels = labels.astype(int)
    return labels[codes] if np.all(labels[:-1] < labels[1:]) else codes


def _of_glm(model: Any, y: Any) -> dict[str, object]:
    """Arguments for a GLM of a supported family, with weights."""
    name = type(model.family).__name__
    weight = np.asarray(model.freq_weights)
    weights = {"sample_weight": weight} if weight.shape == y.shape else {}
    if name == "Binomial":
        trials = np.broadcast_to(np.asarray(model.n_trials, dtype=float), y.shape)
        return {"y": _successes(y, trials), "family": "binomial", **weights}
    family = _FAMILIES.get(name)  # models of counts have the names of their families
    if family is None or type(model.family.link).__name__ != "Log":
        raise ValueError(f"a GLM of the family {name} with this link is not known")
    return {"family": family, **weights}


def _successes(y: Any, trials: Any) -> Any:
    """Labels 0 and 1, if both occur and there is one trial each; else a table of counts."""
    won = y * trials
    whole = np.rint(won)
    won = np.where(np.abs(won - whole) <= ROUNDED * trials, whole, won)
    if np.all(trials == 1) and set(won.tolist()) == {0.0, 1.0}:
        return won.astype(int)
    return np.column_stack([won, trials - won])


def _of_lifelines(fitter: Any, frame: Any) -> dict[str, object]:
    if frame is None or not hasattr(frame, "columns"):
        raise ValueError(
            "lifelines keeps no data: check_separability(fit, df) takes its frame, df"
        )
    X = fitter.regressors.transform_df(frame)["beta_"]
    event = frame.get(fitter.event_col, np.ones(len(frame)))
    return {
        "X": X.astype(np.float64),
        "y": np.column_stack([frame[fitter.duration_col], event]),
        "family": "cox",
        "strata": frame.get(fitter.strata),
        "entry": frame.get(fitter.entry_col),
        "sample_weight": frame.get(fitter.weights_col),
    }
