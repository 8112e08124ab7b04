"""Advice for a fit that ended without its certificate: the last part of its warning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.certifiable import written_out
from marginsvm.certify.claims import relative_gap
from marginsvm.fit import Algorithm, Progress
from marginsvm.fit.progress import ConfirmedBounds
from marginsvm.kernel_matrix import KernelMatrixAdapter

# Cost of the model's slack, relative to the penalty on the model, at the C that is proposed. With
# less than 1, a soft margin gives up the model for a shorter one; with 100, it keeps it.
_DEARER = 10.0
# Steps in search of the scale at which a predictor has the least slack.
_SCALE_STEPS = 30
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


def _thinner(estimator: Any, problem: KernelMatrixAdapter, bounds: ConfirmedBounds | None) -> str:
    """Say what the model is, and advise a soft margin, or a search for a thinner one."""
    model, soft = "", _softer(estimator, problem)
    if problem.nu is not None:
        further = "" if estimator.separable_ is False else ", and a smaller tol looks further"
        return f"{soft.capitalize()}{further}."
    if bounds is not None and bounds.words:
        C = first_C(problem, bounds)
        model = f"The model is {bounds.words}. "
        if C is not None:
            soft += f": start from C={C:.1g}, and try ten times more and ten times less"
    if estimator.separable_ is False:
        return f"{model}{soft}."
    text = "Whether a thinner margin separates the classes is not known"
    if estimator.kernel == "linear":
        text += ": check_separability may decide it, and features in similar units help"
    return f"{text}. {model}{soft}."


def first_C(problem: KernelMatrixAdapter, bounds: ConfirmedBounds) -> float | None:  # noqa: N802
    """A soft margin to begin a search with: the slack of the model costs ten times its penalty.

    ``C sum xi^2 = 10 |w|^2 / 2``, at the scale of the model w at which its slacks xi are least.
    This C follows the units of the features, and the number and the weights of the examples.
    None where the model is nothing, or its margins are not known.
    """
    rows, norm = problem.rows, problem.norm(bounds.model)
    margins = problem.lowest_margins(bounds.model).margins
    if margins is None:
        return None
    offsets = bounds.predictor.offsets
    m = (margins + rows.expand(offsets[:, None] - offsets)).ravel()
    weight = np.broadcast_to(rows.weighted(np.ones(margins.shape)), margins.shape).ravel()
    scale, slack = _least_slack(m[np.isfinite(m)], weight[np.isfinite(m)])
    if slack <= 0.0:
        return None
    with np.errstate(over="ignore"):
        length = np.float64(scale) * norm / problem.radius
        C = float(0.5 * _DEARER * length * length / slack)
    return C if 0.0 < C < np.inf else None


def _least_slack(m: Array, weight: Array) -> tuple[float, float]:
    """Factor of the margins at which their sum of squared slacks is least, and that sum."""
    scale, active = 0.0, np.ones(len(m), bool)
    for _ in range(_SCALE_STEPS):
        force, curvature = weight @ (active * m), weight @ (active * m * m)
        if curvature <= 0.0:
            break
        scale = max(float(force / curvature), 0.0)
        active, last = scale * m < 1.0, active
        if np.array_equal(active, last):
            break
    return scale, float(weight @ np.maximum(1.0 - scale * m, 0.0) ** 2)


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
    text = f"The last {estimator._stopping().patience} rounds came no nearer"
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
        yield f"tol={_just_above(estimator.gap_):.0e} accepts these bounds"
    if np.isfinite(estimator.C):
        yield f"a smaller C {smaller}"
    elif estimator.margin_ <= 0:
        yield _softer(estimator, problem)
    if ranges := _different_units(problem):
        yield f"features in similar units (StandardScaler) {similar}: {ranges}"


def _different_units(problem: KernelMatrixAdapter) -> str:
    """How far the narrowest and the widest feature spread, if these differ by much, in words."""
    features = written_out(problem)
    spread = None if features is None else features.spread()
    if spread is None:
        return ""
    spread = np.sort(spread[spread > 0.0])
    if not len(spread) or spread[-1] <= _SIMILAR * spread[0]:
        return ""
    least, largest = spread[[0, -1]] * problem.radius
    return f"some spread over about {least:.1g}, others over {largest:.1g}"


def _softer(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Name what gives a positive margin where the smallest margin is not positive."""
    if problem.nu is not None:
        return "a larger nu gives a larger mean of margins"
    whose = "" if "C" in estimator.get_params() else "MaxMarginClassifier with "
    return f"{whose}C < inf gives a soft margin"


def _longer(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Advise more rounds, or another C."""
    if problem.nu is not None:
        return "Increase max_iter, or choose a larger nu, which takes fewer rounds."
    if np.isfinite(estimator.C):
        return "Increase max_iter, or choose a smaller C, which takes fewer rounds."
    overlap = estimator.margin_ <= 0 and "C" in estimator.get_params()
    return "Increase max_iter" + (", or set C < inf if the classes overlap." if overlap else ".")


def _just_above(gap: float) -> float:
    """A number of one digit that is larger than the gap by a twentieth or more."""
    gap = max(gap, 1e-15)
    digit = 10.0 ** np.floor(np.log10(gap))
    return float(np.ceil(1.05 * gap / digit) * digit)
