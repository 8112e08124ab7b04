"""What an outlier detector of one class is worth: OneClassSVM."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin_outliers import MaxMarginOutlierDetector
from marginsvm.auditing.audit_report import Claim, Judged, Worth
from marginsvm.auditing.claimed import claims_of
from marginsvm.auditing.models import NEAR_SCORE, TRIED, readings
from marginsvm.auditing.predictor import AuditedPredictor
from marginsvm.certify.caps import ShareCaps
from marginsvm.certify.host import on_host


def judged_one_class(model: Any, X: Any, weight: Array) -> Judged:
    """Judge a fitted detector on the examples of its fit."""
    nu = getattr(model, "nu", None)
    if not nu:
        raise ValueError("of outlier detectors, those with nu are judged")
    predictor, kept = _predictor(model, X, weight), weight > 0.0
    here, weight = X[kept], weight[kept]
    decided = predictor.scores(here)[:, 0]
    scores, norm = decided - predictor.intercept[0], float(np.sqrt(predictor.squared_norm()))
    value = ShareCaps(weight / (nu * weight.sum()), nu).lower_bound(norm, scores)[0]
    best = MaxMarginOutlierDetector(nu=nu, kernel="linear")
    if predictor.kernel is not None:
        best.set_params(kernel=predictor.kernel.metric, **predictor.kernel.params)
        if predictor.kernel.metric == "precomputed":
            here = here[:, kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the bounds say it
        certificate = best.fit(here, sample_weight=weight).certificate_
    outside = float(weight @ (decided < 0.0)) / float(weight.sum())
    text = f"at most nu={nu:g} of the examples are outliers ({outside:.4g} are)"
    return Judged(
        name="",
        problem=", ".join([f"nu = {nu:g}", *predictor.words]),
        n_samples=len(weight),
        n_errors=int(np.count_nonzero(decided < 0.0)),
        objective=None,
        margin=Worth(value, certificate.margin, certificate.margin_bound, True),
        separable=certificate.feasible,
        claims=(*claims_of(model, None, None, False), Claim("share", outside <= nu, text)),
    )


def _predictor(model: Any, X: Any, weight: Array) -> AuditedPredictor:
    """The reading of a model's attributes that decides what it decides."""
    some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], TRIED)).astype(int)
    decided = np.asarray(on_host(model.decision_function(X[some])), dtype=np.float64).ravel()
    intercept = np.atleast_1d(-np.asarray(on_host(model.offset_), dtype=np.float64))
    for read in readings(model, X, weight):
        found = replace(read, intercept=intercept)
        near = NEAR_SCORE * float(np.abs(decided - intercept).max())
        if np.abs(found.scores(X[some])[:, 0] - decided).max() <= near:
            return found.flat()
    raise ValueError(
        f"the attributes of {type(model).__name__} do not give what it decides: it is no linear "
        "or kernel detector that can be read, or was fitted to other examples"
    )
