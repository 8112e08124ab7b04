"""Advice for a classifier's fit that did not reach its goal, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certificate.certificate import relative_gap
from marginsvm.fit import Progress
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.programs import ProblemSpec

# If the gap before rounding is at most this part of the published gap, rounding dominates; and the
# relative gap above which bounds are not worth accepting.
ROUNDING_SHARE = 0.5
WORTHLESS = 0.5
SIMILAR = 10.0  # largest ratio of the spreads of two features in similar units


def advice(clf: Any, problem: KernelMatrixAdapter, progress: Progress) -> str:
    """Advice for the fit of a classifier, from its fitted attributes and its progress."""
    if flaw := problem.flaw():
        return flaw
    if clf.status_ == "no_margin":
        return _without_margin(clf, problem, progress)
    # rounding dominates where the bounds before rounding are within the tolerance, or far closer
    # than the published ones
    last = progress.history[-1]
    of_rounds = relative_gap(last.lower, last.upper)
    hidden = of_rounds <= max(clf.tol, ROUNDING_SHARE * clf.gap_)
    if hidden or clf.status_ == "stalled":
        return _at_the_limit(clf, problem, hidden)
    if problem.nu is not None:
        return "Increase max_iter, or choose a larger nu, for fewer iterations."
    if ProblemSpec.of(clf).is_soft:
        return "Increase max_iter, or choose a smaller C, for fewer iterations."
    if clf.margin_ <= 0 and _has_C(clf):
        return "Increase max_iter, or set C < inf if the classes overlap."
    return "Increase max_iter."


def _has_C(clf: Any) -> bool:  # noqa: N802
    return "C" in clf._get_param_names()


def _softer(clf: Any, nu: float | None) -> str:
    """What makes a margin that can be positive."""
    if nu is not None:
        return "a larger nu gives a larger mean of margins"
    who = "" if _has_C(clf) else "MaxMarginClassifier with "
    return f"{who}C < inf gives a soft margin (MaxMarginClassifierCV chooses C)"


def _without_margin(clf: Any, problem: KernelMatrixAdapter, progress: Progress) -> str:
    softer = _softer(clf, problem.nu)
    if problem.nu is not None:
        return f"{softer.capitalize()}."
    known = progress.certified
    model = f"The model is {known.words}. " if known is not None and known.words else ""
    if clf.separable_ is False:
        return f"{model}{softer}."
    text = "Whether a smaller margin separates the classes is not known"
    if ProblemSpec.of(clf).kernel == "linear":
        text += ": check_separability may decide it, and features in similar units help"
    return f"{text}. {model}{softer}."


def _at_the_limit(clf: Any, problem: KernelMatrixAdapter, hidden: bool) -> str:
    """Advice where more iterations do not help; ``hidden``: because rounding hides the rest."""
    spec = ProblemSpec.of(clf)
    if problem.precision == np.float32:
        given = "the kernel matrix" if spec.kernel == "precomputed" else "X"
        wider = f"Pass {given} as float64."
        of_kernel = spec.kernel != "linear"
        if hidden and (of_kernel or clf.status_ != "stalled"):
            return (
                "More iterations do not help: rounding in float32 hides the rest. "
                f"{wider}"
            )
        if of_kernel:
            return (
                "No method came nearer; kernel values in float32 have seven digits. "
                f"{wider}"
            )
    text = "No method came nearer"
    ways = []
    if hidden:
        text = "More iterations do not help: rounding in float64 hides the rest"
    if clf.margin_ > 0.0 and clf.gap_ < WORTHLESS:
        ways.append("a tol above gap_ accepts these bounds")
    if spec.is_soft:
        may = "leaves less to hide" if hidden else "may be solved to the end"
        ways.append(f"a smaller C {may}")
    elif clf.margin_ <= 0:
        ways.append(_softer(clf, problem.nu))
    if _have_other_units(problem):
        may = "show more" if hidden else "may help"
        ways.append(f"features in similar units (StandardScaler) {may}")
    return f"{'; '.join([text, ' and '.join(ways)] if ways else [text])}."


def _have_other_units(problem: KernelMatrixAdapter) -> bool:
    """Whether the spreads of the features, as they are given, are far from similar."""
    design = problem.design
    if design is None or design.X.factor is not None:
        return False
    spread: Array = design.spread[design.spread > 0.0]
    return len(spread) > 0 and bool(spread.max() > SIMILAR * spread.min())
