"""Whether the offset of an outlier detector leaves out as few examples as it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector

from marginsvm.certify.checker.problem import Problem

_ROUNDING_OF_SHARES = 1e-12  # of shares, which are sums of weights over that of all


def wrong_offset(estimator: Any, problem: Problem, rtol: float) -> Iterator[str]:
    """What is wrong with ``offset_`` and ``intercept_``, of detectors: a share is below it."""
    if not is_outlier_detector(estimator):
        return
    offset: Any = getattr(estimator, "offset_", None)
    intercept: Any = getattr(estimator, "intercept_", None)
    if not (isinstance(offset, float) and np.isfinite(offset)):
        yield f"offset_ is {offset!r}, which is no number"
    elif not np.array_equal(intercept, [-offset]):
        yield f"intercept_ is {intercept!r}, not minus offset_, {offset!r}"
    else:
        outside = float(problem.weight_below(offset, rtol))
        allowed = estimator.nu or 0.0
        if not outside <= allowed + _ROUNDING_OF_SHARES:
            yield f"{outside:.6g} of the weight is below offset_={offset!r}, not {allowed:g}"
