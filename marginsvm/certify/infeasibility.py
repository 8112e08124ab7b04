"""Weights that prove that no predictor fits, near those that prove a large norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from marginsvm._typing import Array
from marginsvm.certify.certifiable import Regression
from marginsvm.certify.exactly.infeasible import nothing_fits
from marginsvm.certify.interval_bounds import Weighed, weighed
from marginsvm.rows import Intervals, intervals_of

_NULL_STEPS = 1000  # of LSQR, which makes the combination of examples vanish
_NULL_TOL = 1e-15  # relative residual of it: all that float64 can do
_SIGN_TOL = 1e-9  # of the largest entry of the combination: one that is nearer to 0 may be either


def infeasibility(problem: Regression, proof: Weighed) -> Weighed | None:
    """Weights near those of a bound that prove that no predictor fits, where some are found.

    One output without a predictor that fits is enough. So the weights of the output of the
    largest bound are moved, as little as possible, to where the combination of the examples
    vanishes, and it is checked whether weights for which it does so exactly exist nearby.
    """
    intervals = intervals_of(problem.rows)
    alpha = proof.vector.coef.reshape(len(intervals.low), -1)
    ends = Intervals(intervals.low.reshape(alpha.shape), intervals.high.reshape(alpha.shape))
    gains = ends.terms(alpha).sum(axis=0)
    lengths = np.linalg.norm(proof.vector.image.reshape(alpha.shape[1], -1), axis=1)
    j = int((gains / np.where(lengths > 0.0, lengths, np.inf)).argmax())
    few = np.flatnonzero(alpha[:, j])
    given = problem.given(few)
    if given is None or len(few) == 0:
        return None
    X, _, intercept = given
    chosen = Intervals(ends.low[few, j], ends.high[few, j])
    signs, part = problem.signs, X
    if signs is not None:  # what signs make up for need not vanish
        combination = signs * (X.T @ alpha[few, j])
        part = X[:, combination >= -_SIGN_TOL * np.abs(combination).max(initial=0.0)]
    null = chosen.admissible(_moved_to_null(part, alpha[few, j], intercept=intercept))
    if not nothing_fits(X, chosen.low, chosen.high, null, intercept=intercept, signs=signs):
        return None
    alpha = np.zeros_like(alpha)
    alpha[few, j] = null
    return weighed(problem, alpha.reshape(intervals.low.shape))


def _moved_to_null(X: Any, alpha: Array, *, intercept: bool) -> Array:
    """The nearest weights for which the combination of the examples is all rounding.

    They are moved twice: where little of the weights remains, the first time loses its digits.
    """
    A = sp.csc_array(X, dtype=np.float64)
    if intercept:
        A = sp.hstack([A, np.ones((A.shape[0], 1))], format="csc")
    size = np.sqrt(A.power(2).sum(axis=0))
    A = A @ sp.diags_array(1.0 / np.where(size > 0.0, size, 1.0))
    for _ in range(2):
        z = lsqr(A, alpha, atol=_NULL_TOL, btol=_NULL_TOL, iter_lim=_NULL_STEPS)[0]
        alpha = np.asarray(alpha - A @ z)
    return alpha
