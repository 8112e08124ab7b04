"""Weights that prove that no predictor fits, near those that prove a large norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm.certificate.proof import refuted
from marginsvm.certify.interval_bounds import Weighed, weighed
from marginsvm.problem.programs import programs_of, weights_of


def infeasibility(problem: Any, proof: Weighed) -> Weighed | None:
    """Weights near those of a bound that prove that no predictor fits, where some are found.

    One output without a predictor that fits is enough.
    """
    signed = proof.vector.coef
    for o, qp in enumerate(programs_of(problem)):
        apart = qp.output is None and signed.ndim == 2
        alpha = refuted(qp, weights_of(qp, signed[:, o] if apart else signed))
        if alpha is not None:
            found = np.zeros(signed.shape)
            V = qp.coefficients(alpha)
            if apart:
                found[:, o] = V[:, 0]
            else:
                found[:] = V.reshape(signed.shape)
            return weighed(problem, found)
    return None
