"""The end of a fit: publish its best predictor and alpha, and compute certified bounds."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from marginsvm._typing import Array
from marginsvm.certificate import proof as proofs
from marginsvm.certificate.proof import Confirmed
from marginsvm.fit.algorithm import Algorithm, Progress
from marginsvm.problem.adapter import KernelMatrixAdapter, Predictor, predictor_of, programs_of
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.responses import Weights, softmax
from marginsvm.problem.rows import Rows

# |A'alpha| over the sum of alpha (in radii) below which it is rounding.
NOTHING_LEFT = 1e-13
# Range of the logarithm of the factor of the margins (relative to the largest) in the search for
# the least loss: from e^-5, where the loss is flat, to e^10, where the smallest margins dominate.
LOG_SCALES = (-5.0, 10.0)


@np.errstate(over="ignore", invalid="ignore")  # vectors that overflow give no bounds
def confirm(algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress) -> Confirmed:
    """Publish the best model and the best alpha so far, with certified bounds.

    Parameters
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    progress : Progress
        After at least one iteration.
    """
    known = algorithm.confirmed(problem, progress)
    if known is not None:
        return known
    found, (qp,) = progress.proof, programs_of(problem)
    assert found is not None
    model, predictor = _best_model(algorithm, problem, progress, qp)
    proof = proofs.prove_overlap(problem, proofs.with_weights(qp, predictor, found.vector.coef))
    return Confirmed(model, (proof,), problem.rows.unit, np.ones(1))


def _best_model(
    algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress, qp: QuadraticProgram
) -> tuple[Predictor, proofs.Predictor]:
    """Vector and predictor of the best separator or, if there is none, of the fallback."""
    best = progress.best
    if best is not None:
        offsets = best_offsets(problem, problem.margins(best.vector, precise=True))
        found = _published(problem, qp, best.vector, offsets)
        if found.primal.margin > 0.0:
            return best.vector, found
    last = algorithm.fallback(problem, progress)
    model, known = last.vector, last.offsets
    if problem.norm(model) <= NOTHING_LEFT * float(model.coef.sum()):
        model = problem.zeros()
    if known is None:
        margins = problem.margins(model, precise=True)  # in float64: float32 may be too coarse
        known = least_loss(problem.rows, margins).offsets
    return model, _published(problem, qp, model, known)


def _published(
    problem: KernelMatrixAdapter, qp: QuadraticProgram, vector: Predictor, offsets: Array
) -> proofs.Predictor:
    b = np.atleast_1d(problem.rows.score_offsets(offsets))
    return proofs.published(qp, predictor_of(problem, vector), b)


def best_offsets(problem: KernelMatrixAdapter, margins: Array) -> Array:
    """Class offsets that are optimal for these margins under the problem's loss."""
    if problem.upper is not None:
        return softmax.below(problem.upper).respond(problem.rows, margins, 0.0).offsets
    return problem.rows.best_offsets(problem.rows.group_min(margins))


def least_loss(rows: Rows, margins: Array) -> Weights:
    """Softmax weights of the margins, scaled by the factor with the least exponential loss.

    Their offsets are the best intercept of the predictor at that scale, in the units of the given
    margins. Without scaling, the minimiser for small margins would be an intercept that predicts
    the larger class for all examples.

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

    least = minimize_scalar(lambda s: response(s).log_risk, bounds=LOG_SCALES, method="bounded")
    return response(float(least.x))
