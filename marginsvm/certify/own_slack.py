"""Soft margins whose slack costs its square: a predictor with the slack that it needs."""

from __future__ import annotations

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE, UNIT
from marginsvm._typing import Array

_SCALINGS = 20  # steps to the best multiple of a predictor at most: three or four suffice


def with_least_slack(
    length: float, margins: Array, slack: Array, common: float | None = None
) -> tuple[float, float]:
    """Lower bound on the margin of a predictor with the slack that it needs, and no more.

    That is ``1 / sqrt(2 P)`` for ``P = |t w|^2 / 2 + sum_r max(0, 1 - t m_r)^2 / (2 s_r)``, by a
    multiple t of the predictor that is found by Newton's method; any t gives a bound.

    Parameters
    ----------
    length : float
        Norm of the predictor without slack, at most.
    margins, slack : ndarray of shape rows.shape
        Its margins without slack, at least, and s.
    common : float, default=None
        ``1 / t``, if it is chosen already: the margin that is published as 1.

    Returns
    -------
    bound, common : float
    """
    some = np.isfinite(margins)
    m, s = margins[some], np.broadcast_to(slack, margins.shape)[some]
    t = 1.0 / (common or 1.0)
    for _ in range(0 if common else _SCALINGS):
        a = t * m < 1.0
        square = length**2 + float(np.sum(m[a] ** 2 / s[a]))
        better = float(np.sum(m[a] / s[a])) / square if square > 0.0 else t
        if not 0.0 < better < np.inf or abs(better - t) <= UNIT * t:
            break
        t = better
    missing = np.maximum(1.0 - t * m, 0.0)
    objective = 0.5 * (t * length) ** 2 + 0.5 * float(np.sum(missing * missing / s))
    objective *= 1.0 + 4.0 * PAIRWISE
    return (1.0 - FEW) / float(np.sqrt(2.0 * objective)) if objective > 0.0 else 0.0, 1.0 / t
