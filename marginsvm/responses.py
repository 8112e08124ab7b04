"""The data player's responses: weights on the rows that answer the margins of a predictor.

A response is a callable ``(rows, margins, mu) -> Weights``. It finds the unpenalised
intercept on its way: the class offsets ``beta`` at which its weights are balanced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from marginsvm._typing import Array
from marginsvm.kernel_matrix.rows import Rows, min_cycle


@dataclass(frozen=True)
class Weights:
    """What a response answers.

    Attributes
    ----------
    q : ndarray
        Weights on the rows, non-negative, balanced if the rows are.
    mass : float
        Their sum.
    worst : float
        Worst margin of the predictor that was answered, under its best intercept.
    offsets : ndarray of shape (k,)
        The response's own intercept, as class offsets of the margins.
    log_risk : float
        Logarithm of the average loss at ``offsets`` (prior as weights).
    gradient_mass : float
        Sum of the weights in the gradient of the average loss.
    """

    q: Array
    mass: float
    worst: float
    offsets: Array
    log_risk: float
    gradient_mass: float


class Response(Protocol):
    """A smoothed best response of the data player."""

    def __call__(self, rows: Rows, margins: Array, mu: float) -> Weights:
        """Answer the margins of all rows with weights on the rows."""
        ...


def softmax(rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
    """``argmin <margins, q> + mu KL(q || prior)`` over the (balanced) simplex.

    The gradient of Ji's ``psi`` for the exponential loss; Ramdas's ``p_mu``.
    """
    low = rows.group_min(margins)
    finite = np.where(np.isfinite(low), low, 0.0)
    e = np.exp((rows.expand(finite) - margins) * (1.0 / mu))
    prior = rows.prior
    e = e * prior if isinstance(prior, np.ndarray) else e
    with np.errstate(divide="ignore"):
        table = np.log(rows.group_sum(e)) - finite / mu
    beta = balance(lambda b: (np.exp(_shifted(table, b) - _peak(table, b)),) * 2, len(table))
    shifted = _shifted(table, beta)
    log_total = logsumexp(shifted)
    q = e * rows.expand(np.exp(_shifted(-finite / mu, beta) - log_total))
    log_risk = log_total if isinstance(prior, np.ndarray) else log_total + np.log(prior)
    return Weights(q, 1.0, rows.worst(low), mu * beta, log_risk, float(np.exp(min(log_risk, 700))))


def logistic(rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
    """Gradient of Ji's ``psi`` for the logistic loss (section 5.1, Appendix C).

    ``sigmoid(xi_i) / (1 - exp(-S))`` with ``xi = -margins`` and
    ``S = sum_i ln(1 + exp(xi_i))``; its mass is at least 1.
    """
    start = softmax(rows, margins, mu)
    if start.worst > 37.0 * mu:  # ln(1 + e^xi) = e^xi to the last bit: S underflows, q is softmax
        return start
    weight = rows.per_example(rows.weights) if rows.weights is not None else 1.0
    xi = margins / -mu

    def sigmoid(beta: Array) -> Array:
        return weight / (1.0 + np.exp(-(xi - _row_shift(rows, beta))))

    def sums(beta: Array) -> tuple[Array, Array]:
        s = sigmoid(beta)
        return rows.group_sum(s), rows.group_sum(s * (1.0 - s / weight))

    with np.errstate(over="ignore"):  # exp(-xi) = inf is a weight of zero
        beta = balance(sums, len(start.offsets), start.offsets / mu)
        q = sigmoid(beta)
    S = float(np.sum(weight * np.logaddexp(0.0, xi - _row_shift(rows, beta))))
    n = float(np.sum(np.broadcast_to(weight, rows.shape))) * rows.n_rows / np.prod(rows.shape)
    total = float(q.sum())
    q = q / -np.expm1(-S)
    return Weights(q, float(q.sum()), start.worst, mu * beta, np.log(S / n), total / n)


def worst_row(rows: Rows, margins: Array, mu: float = 0.0) -> Weights:
    """Limit of the responses as mu vanishes: all the weight on the worst row.

    With an intercept, on the worst row of each group along the worst cycle of groups:
    for two classes, half on the worst row of either class.
    """
    low = rows.group_min(margins)
    q = np.zeros(margins.size)
    edges = min_cycle(low)[1] if rows.balanced else [(0, 0)]
    for c, j in edges:
        q[rows.group_argmin(margins, c, j)] += 1.0 / len(edges)
    worst, offsets = rows.worst(low), rows.best_offsets(low)
    return Weights(q.reshape(margins.shape), 1.0, worst, offsets, -worst, 1.0)


def balance(
    sums: Callable[[Array], tuple[Array, Array]],
    k: int,
    beta: Array | None = None,
    *,
    tol: float = 1e-13,
    max_iter: int = 100,
) -> Array:
    """Class offsets at which the weights of each class, as c and as j, have equal sums.

    Parameters
    ----------
    sums : callable
        ``sums(beta)`` gives two k x k tables: the groups' weights, and their
        derivatives with respect to a group's own shift (with sign reversed).
    k : int
        Number of classes; 1 means that there is no intercept.
    beta : ndarray of shape (k,) or None
        Where to start.

    Notes
    -----
    The weights are the gradient of a convex function of ``beta``, whose minimiser is
    sought. Far from it, damped simultaneous steps of Osborne's matrix balancing, which
    solve two classes in one step; near it, Newton's steps.
    """
    beta = np.zeros(k) if beta is None else beta
    if k == 1:
        return beta
    for _ in range(max_iter):
        weight, slope = sums(beta)
        out, into = weight.sum(axis=1), weight.sum(axis=0)
        off = np.abs(out - into).sum() / weight.sum()
        if off <= tol:
            break
        if off > 0.1 or k == 2:
            step = 0.25 * (np.log(np.maximum(out, 1e-300)) - np.log(np.maximum(into, 1e-300)))
        else:
            hessian = np.diag(slope.sum(axis=0) + slope.sum(axis=1)) - slope - slope.T
            step = np.linalg.lstsq(hessian, out - into)[0]
        beta = beta + step
    return beta - beta.mean()


def _shifted(table: Array, beta: Array) -> Array:
    """Logarithms of the groups' weights once their margins are shifted by ``beta``."""
    shifted = table - beta[:, None] + beta
    if len(beta) > 1:
        np.fill_diagonal(shifted, -np.inf)
    return shifted


def _peak(table: Array, beta: Array) -> float:
    return float(_shifted(table, beta).max())


def _row_shift(rows: Rows, beta: Array) -> Array | float:
    return rows.expand(beta[:, None] - beta)
