"""Advice for a fit that ended without its certificate: the last part of its warning."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm.certify.checker.claims import relative_gap
from marginsvm.kernel_matrix import KernelMatrixAdapter

_IN_VAIN = "More rounds do not help:"


def remedies(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Sentences that say what would help a fit that ended as this one did.

    Parameters
    ----------
    estimator : estimator
        Fitted, with the status ``max_iter``, ``stalled`` or ``no_margin``.
    problem : KernelMatrixAdapter
        The problem that it was fitted to.
    """
    if flaw := problem.flaw():
        return flaw
    if estimator.status_ == "no_margin":
        return _thinner(estimator)
    return _coarser(estimator, problem) if _hidden_by_rounding(estimator) else _longer(estimator)


def _thinner(estimator: Any) -> str:
    """Advise a search for a thinner margin, where there may be one, or a soft margin."""
    whose = "" if "C" in estimator.get_params() else "MaxMarginClassifier with "
    soft = f"{whose}C < inf gives a soft margin."
    if estimator.separable_ is False:
        return soft
    text = "Whether a thinner margin separates the classes is not known"
    if estimator.kernel == "linear":
        text += ": check_separability may decide it, and features in similar units help"
    return f"{text}. {soft}"


def _hidden_by_rounding(estimator: Any) -> bool:
    """Whether rounding hides the rest: the bounds of rounds have met, or no longer change."""
    history = estimator.history_
    met = relative_gap(history["margin"][-1], history["margin_bound"][-1]) <= estimator.tol
    return estimator.status_ == "stalled" or met


def _coarser(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Advise a larger tolerance, or float64.

    The exact solver computes in float64 with features of either type, but kernel values have
    the type of X.
    """
    kernel = estimator.kernel != "linear"
    if problem.precision == np.float32 and (kernel or estimator.status_ != "stalled"):
        what = "the kernel matrix" if estimator.kernel == "precomputed" else "X"
        return f"{_IN_VAIN} rounding in float32 hides the rest. Pass {what} as float64."
    ways = []
    if estimator.margin_ > 0:
        ways.append(f"tol={_just_above(estimator.gap_):.0e} accepts these bounds")
    if np.isfinite(estimator.C):
        ways.append("a smaller C leaves less to hide")
    elif estimator.margin_ <= 0:
        ways.append("C < inf gives a soft margin")
    return f"{_IN_VAIN} rounding in float64 hides the rest; {' and '.join(ways)}."


def _longer(estimator: Any) -> str:
    """Advise more rounds, or another C."""
    if np.isfinite(estimator.C):
        return "Increase max_iter, or choose a smaller C, which takes fewer rounds."
    overlap = estimator.margin_ <= 0 and "C" in estimator.get_params()
    return "Increase max_iter" + (", or set C < inf if the classes overlap." if overlap else ".")


def _just_above(gap: float) -> float:
    """A number of one digit that is larger than the gap by a twentieth or more."""
    gap = max(gap, 1e-15)
    digit = 10.0 ** np.floor(np.log10(gap))
    return float(np.ceil(1.05 * gap / digit) * digit)
