"""Bounds to stop on, computed again in float64 from what the best vectors are made of."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from marginsvm._typing import Array
from marginsvm.certify.bounds import lower_bound, upper_bound
from marginsvm.certify.certifiable import Predictor
from marginsvm.certify.overlap import overlap_is_proved
from marginsvm.certify.tolerances import NOTHING_LEFT
from marginsvm.fit.algorithm import Algorithm
from marginsvm.fit.progress import ConfirmedBounds, Progress
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.responses import Weights, softmax
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

_LOG_SCALES = (-5.0, 10.0)  # of the largest margin, between which the loss is least


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
    proof = found.vector if found.precise else problem.refresh(found.vector)
    model, predictor = _best_model(algorithm, problem, progress)
    upper = upper_bound(problem, proof)
    hopeful = np.isinf(problem.C) and predictor.margin <= 0 and upper <= problem.errors.vanishing
    overlap = hopeful and overlap_is_proved(problem, proof)
    return ConfirmedBounds(model, predictor, proof, upper, overlap)


def _best_model(
    algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
) -> tuple[Vector, Predictor]:
    """Vector of the best separator, or of the fallback, and its predictor."""
    best = progress.best
    if best is not None:
        predictor = lower_bound(problem, best.vector, margins=best.margins)
        if predictor.margin > problem.errors.resolution:
            return best.vector, predictor
    last = algorithm.fallback(problem, progress)
    model, offsets = last.vector, last.offsets
    if problem.norm(model) <= NOTHING_LEFT * model.mass:
        model = problem.zeros()
    if offsets is None:
        offsets = least_loss(problem.rows, problem.margins(model)).offsets
    return model, lower_bound(problem, model, offsets)


def least_loss(rows: Rows, margins: Array) -> Weights:
    """Softmax of some multiple of these margins, that which has the least exponential loss.

    Its offsets are the best intercept for the margins as they are. (That of the loss without
    scaling would be the larger class's, whatever the predictor, where margins are small.)

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
