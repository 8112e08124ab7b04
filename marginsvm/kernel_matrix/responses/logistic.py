"""The response of the logistic loss."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from marginsvm._typing import Array
from marginsvm.kernel_matrix.responses.balancing import balanced, differences, imbalance
from marginsvm.kernel_matrix.responses.response import Weights
from marginsvm.kernel_matrix.responses.softmax import softmax
from marginsvm.rows import Rows

# Margin in units of mu from which ln(1 + exp(-margin)) is exp(-margin) to the last bit of
# float64, as exp(-37) < 2^-53. Farther out the sum of the losses underflows.
_EXPONENTIAL_FROM = 37.0


@dataclass(frozen=True)
class Logistic:
    """Gradient of Ji's ``psi`` for the logistic loss (section 5.1, Appendix C).

    ``sigmoid(xi_i) / (1 - exp(-S))`` with ``xi = -margins`` and
    ``S = sum_i ln(1 + exp(xi_i))``; its mass is at least 1.
    """

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        start = softmax.respond(rows, margins, mu)
        n = rows.total_weight
        if start.min_margin > _EXPONENTIAL_FROM * mu:
            # The gradient is the softmax, but the smoothness stays that of the logistic loss.
            return replace(start, smoothness=n)
        xi = margins / -mu
        beta = start.offsets / mu
        if rows.balanced:
            beta = _balancing_offsets(rows, xi, beta)
        xi = xi - rows.expand(differences(beta))
        q = balanced(rows, rows.weighted(expit(xi)))
        S = float(np.sum(rows.weighted(np.logaddexp(0.0, xi))))
        total = float(q.sum())
        q = q / -np.expm1(-S)
        log_risk = float(np.log(S / n))
        return Weights(q, float(q.sum()), start.min_margin, mu * beta, log_risk, total / n, n)

    __call__ = respond


def _balancing_offsets(rows: Rows, xi: Array, beta: Array) -> Array:
    """Class offsets that minimise the sum of the losses, where its gradient is balanced."""

    def loss(beta: Array) -> tuple[float, Array]:
        shifted = xi - rows.expand(differences(beta))
        value = float(np.sum(rows.weighted(np.logaddexp(0.0, shifted))))
        return value, imbalance(rows.group_sum(rows.weighted(expit(shifted))))

    def hessian(beta: Array) -> Array:
        s = expit(xi - rows.expand(differences(beta)))
        table = rows.group_sum(rows.weighted(s * (1.0 - s)))
        return np.diag(table.sum(axis=0) + table.sum(axis=1)) - table - table.T

    return minimize(loss, beta, jac=True, hess=hessian, method="trust-exact").x


logistic = Logistic()
