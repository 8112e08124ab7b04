"""Advice for a fit that ended without its certificate: the last part of its warning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from marginsvm.certificate.certificate import relative_gap
from marginsvm.fit import Algorithm, Progress
from marginsvm.fit.progress import Confirmed
from marginsvm.problem.adapter import KernelMatrixAdapter

# Part of the published gap, or less, that rounds leave where most of it is rounding.
_ROUNDING_SHARE = 0.5
# Relative gap from which on bounds are not worth accepting.
_WORTHLESS = 0.5
# Factor between the spreads of two features up to which their units are similar: a digit.
_SIMILAR = 10.0
_IN_VAIN = "More rounds do not help:"


def remedies(
    estimator: Any, algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
) -> str:
    """Sentences that say what would help a fit that ended as this one did.

    Parameters
    ----------
    estimator : estimator
        Fitted, with the status ``max_iter``, ``stalled`` or ``no_margin``.
    algorithm : Algorithm
        What it played.
    problem : KernelMatrixAdapter
        The problem that it was fitted to.
    progress : Progress
        The end of the fit.
    """
    if flaw := problem.flaw():
        return flaw
    if estimator.status_ == "no_margin":
        return _thinner(estimator, problem, progress.confirmed)
    if limit := algorithm.limit(progress.state):
        return limit
    if _hidden_by_rounding(estimator):
        return _coarser(estimator, problem)
    if estimator.status_ == "stalled":
        return _stalled(estimator, problem)
    return _longer(estimator, problem)


def _thinner(estimator: Any, problem: KernelMatrixAdapter, bounds: Confirmed | None) -> str:
    """Say what the model is, and advise a soft margin, or a search for a thinner one."""
    soft = _softer(estimator, problem)
    if problem.nu is not None:
        return f"{soft.capitalize()}."
    model = f"The model is {bounds.words}. " if bounds is not None and bounds.words else ""
    if estimator.separable_ is False:
        return f"{model}{soft}."
    text = "Whether a thinner margin separates the classes is not known"
    if estimator.kernel == "linear":
        text += ": check_separability may decide it, and features in similar units help"
    return f"{text}. {model}{soft}."


def _hidden_by_rounding(estimator: Any) -> bool:
    """Whether most of the gap is rounding: what bounds allow for it, in all digits but a round's.

    The bounds of rounds, which allow for none, are then within the tolerance, or far nearer to
    each other than the published ones.
    """
    history = estimator.history_
    of_rounds = relative_gap(history["margin"][-1], history["margin_bound"][-1])
    return bool(of_rounds <= max(estimator.tol, _ROUNDING_SHARE * estimator.gap_))


def _coarser(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Say that rounding hides the rest, and advise a larger tolerance, or float64.

    The exact solver computes in float64 with features of either type, but kernel values have
    the type of X.
    """
    kernel = estimator.kernel != "linear"
    if problem.precision == np.float32 and (kernel or estimator.status_ != "stalled"):
        return f"{_IN_VAIN} rounding in float32 hides the rest. {_wider(estimator)}."
    ways = " and ".join(_ways(estimator, problem, "leaves less to hide", "show more"))
    return f"{_IN_VAIN} rounding in float64 hides the rest{'; ' * bool(ways)}{ways}."


def _stalled(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Say that no method came nearer, which is all that is known, and what may help."""
    text = "No method came nearer"
    if problem.precision == np.float32 and estimator.kernel != "linear":
        return f"{text}; kernel values in float32 have seven digits. {_wider(estimator)}."
    ways = " and ".join(_ways(estimator, problem, "may be solved to the end", "may help"))
    return f"{text}{'; ' * bool(ways)}{ways}."


def _wider(estimator: Any) -> str:
    """Advise numbers of more digits."""
    what = "the kernel matrix" if estimator.kernel == "precomputed" else "X"
    return f"Pass {what} as float64"


def _ways(
    estimator: Any, problem: KernelMatrixAdapter, smaller: str, similar: str
) -> Iterator[str]:
    """Ways on from bounds that come no nearer; what a smaller C and similar units do, in words."""
    if estimator.margin_ > 0.0 and estimator.gap_ < _WORTHLESS:
        yield "a tol above gap_ accepts these bounds"
    if np.isfinite(estimator.C):
        yield f"a smaller C {smaller}"
    elif estimator.margin_ <= 0:
        yield _softer(estimator, problem)
    if _has_different_units(problem):
        yield f"features in similar units (StandardScaler) {similar}"


def _has_different_units(problem: KernelMatrixAdapter) -> bool:
    """Whether the spreads of features differ by much."""
    design = problem.design
    spread = None if design is None or design.X.factor is not None else design.spread
    if spread is None:
        return False
    spread = spread[spread > 0.0]
    return bool(len(spread) and spread.max() > _SIMILAR * spread.min())


def _softer(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Name what gives a positive margin where the smallest margin is not positive."""
    if problem.nu is not None:
        return "a larger nu gives a larger mean of margins"
    whose = "" if "C" in estimator.get_params() else "MaxMarginClassifier with "
    return f"{whose}C < inf gives a soft margin (MaxMarginClassifierCV chooses C)"


def _longer(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Advise more rounds, or another C."""
    if problem.nu is not None:
        return "Increase max_iter, or choose a larger nu, which takes fewer rounds."
    if np.isfinite(estimator.C):
        return "Increase max_iter, or choose a smaller C, which takes fewer rounds."
    overlap = estimator.margin_ <= 0 and "C" in estimator.get_params()
    return "Increase max_iter" + (", or set C < inf if the classes overlap." if overlap else ".")
