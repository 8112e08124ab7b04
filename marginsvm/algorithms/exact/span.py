"""The soft margin of fewest unknowns: the best combination of some known predictors.

Along C, the solutions for the last three values span one for the next that is nearly right: it
contains the extrapolation by a parabola, and whatever is better. Their scores are known, so that no
pass over the examples is needed.
"""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.rows import Rows

# Newton steps at most; from the last predictor, three or four suffice.
_STEPS = 20
# Decrease of the objective, relative to it, that a step must promise. What the span lacks costs a
# hundred times as much.
_DECREASE = 1e-6
# Singular values, relative to the largest, up to which predictors are linearly dependent.
_DEPENDENT = 1e-12


def best_combination(
    rows: Rows, slack: Slack, margins: list[Array], products: Array
) -> tuple[Array, Array, Array]:
    """Minimise the objective of a soft margin over the combinations of some predictors.

    Parameters
    ----------
    rows : Rows
    slack : Slack
    margins : list of ndarray of shape rows.shape
        Of each predictor, with an intercept if there is one; the last is where to begin.
    products : ndarray of shape (m, m)
        Inner products of the predictors, without their intercepts.

    Returns
    -------
    coef : ndarray of shape (m,)
    shift : ndarray of shape rows.score_shape[1:]
        What the best intercepts add to the same combination of those of the predictors.
    margins : ndarray of shape rows.shape
        Of the combination, under the best intercept.
    """
    nothing = rows.margins(np.zeros(rows.score_shape))  # infinite where there is no row
    M = np.stack([m.ravel() for m in margins])
    M[:, np.isinf(nothing).ravel()] = 0.0
    s = np.broadcast_to(slack.s, rows.shape).ravel()
    c = np.eye(1, len(margins), len(margins) - 1)[0]
    now, shift = margins[-1], np.zeros(rows.score_shape[1:])
    for _ in range(_STEPS):
        if rows.balanced:
            b = slack.best_intercept(rows, now)
            shift, now = shift + b, now + rows.moves(np.broadcast_to(b, rows.score_shape))
        u = slack.weights(now).ravel()
        force = M @ u - products @ c
        H = products + (M * ((u > 0.0) / s)) @ M.T
        step = np.linalg.lstsq(H, force, rcond=_DEPENDENT)[0]
        objective = 0.5 * (float(c @ products @ c) + float((s * u) @ u))
        if not 0.5 * float(force @ step) > _DECREASE * objective:
            break
        move = (step @ M).reshape(rows.shape)
        slope, square = float(c @ products @ step), float(step @ products @ step)
        t = slack.line_search(now, move, slope, square)
        c, now = c + t * step, now + t * move + nothing
    return c, shift, now
