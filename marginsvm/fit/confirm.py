"""The bounds on which a fit stops: computed again in float64, with all rounding allowed for."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from marginsvm._typing import Array
from marginsvm.certify.bounds import lower_bound, upper_bound
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import PublishedPredictor
from marginsvm.certify.interval_bounds import measured_fit, weighed
from marginsvm.certify.overlapping import overlap_is_proved
from marginsvm.certify.tolerances import NOTHING_LEFT
from marginsvm.fit.algorithm import Algorithm
from marginsvm.fit.progress import ConfirmedBounds, Progress
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.problem.responses import Weights, softmax
from marginsvm.rows import Predictor, Rows

# Logarithms of the factors by which margins, divided by the largest of them, are multiplied in
# the search for the scale of least loss: from e^-5, where the loss is flat, to e^10, where only
# the smallest margins count.
_LOG_SCALES = (-5.0, 10.0)


def confirm(
    algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
) -> ConfirmedBounds:
    """Bounds of the best model and the best proof so far, with all rounding allowed for.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    progress : Progress
        After one round at least.

    Returns
    -------
    ConfirmedBounds
    """
    found = progress.proof
    assert found is not None
    if found.proof is not None:
        return _confirmed_fit(problem, progress, found)
    proof = found.combination if found.precise else problem.refresh(found.combination)
    model, predictor, words = _best_model(algorithm, problem, progress)
    upper = upper_bound(problem, proof)
    hopeful = np.isinf(problem.C) and predictor.margin <= 0 and upper <= problem.errors.vanishing
    overlap = hopeful and overlap_is_proved(problem, proof)
    return ConfirmedBounds(model, predictor, proof, upper, overlap, words)


def _confirmed_fit(
    problem: KernelMatrixAdapter, progress: Progress, found: Candidate
) -> ConfirmedBounds:
    """The same where scores are to lie in intervals."""
    assert progress.best is not None
    fit = measured_fit(problem, progress.best.vector)
    proof = weighed(problem, found.vector.coef)
    infeasible = found.norm_bound == np.inf
    model = Candidate(fit.vector, norm=fit.norm, norm_bound=np.inf if infeasible else proof.norm)
    coef, intercept = problem.predictor(fit.vector, fit.offsets)
    margin, fits = model.lower(fit.norm) or 0.0, fit.violation == 0.0
    predictor = PublishedPredictor(margin, fit.offsets, coef, intercept, fits, 1.0)
    upper = model.upper(fit.norm)
    return ConfirmedBounds(
        fit.vector, predictor, proof.vector, upper, infeasible, fit=fit, weighed=proof
    )


def _best_model(
    algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
) -> tuple[Predictor, PublishedPredictor, str]:
    """Vector and predictor of the best separator or, if there is none, of the fallback."""
    best = progress.best
    if best is not None:
        offsets = None if best.fallback else best.offsets
        predictor = lower_bound(problem, best.vector, offsets, best.margins)
        if predictor.margin > problem.errors.resolution:
            return best.vector, predictor, ""
    last = algorithm.fallback(problem, progress)
    model, offsets = last.vector, last.offsets
    if problem.norm(model) <= NOTHING_LEFT * float(model.coef.sum()):
        model = problem.zeros()
    if offsets is None:
        margins = problem.margins(model, precise=True)  # which float32 may not hold
        offsets = least_loss(problem.rows, margins).offsets
    return model, lower_bound(problem, model, offsets), last.words


def least_loss(rows: Rows, margins: Array) -> Weights:
    """Softmax weights of the margins, scaled by the factor with the least exponential loss.

    Their offsets are the intercept that is best for the predictor at that scale, in the units of
    the given margins. Without scaling, the loss of small margins would be least at an intercept
    that puts all examples into the larger class.

    Parameters
    ----------
    rows : Rows
    margins : ndarray of shape rows.shape

    Returns
    -------
    Weights
    """
    size = float(np.abs(margins[np.isfinite(margins)]).max(initial=0.0)) or 1.0

    def response(log_scale: float) -> Weights:
        return softmax(rows, margins, size * float(np.exp(-log_scale)))

    least = minimize_scalar(lambda s: response(s).log_risk, bounds=_LOG_SCALES, method="bounded")
    return response(float(least.x))
