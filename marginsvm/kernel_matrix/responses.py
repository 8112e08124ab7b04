"""The data player's responses: weights on the rows that answer the margins of a predictor.

A response is a callable ``(rows, margins, mu) -> Weights``. It finds the unpenalised
intercept on its way: the class offsets ``beta`` at which its weights are balanced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from marginsvm._typing import Array
from marginsvm.rows.cycles import cycle_offsets, min_cycle
from marginsvm.rows.rows import Rows

_SPREAD = 20.0  # of logarithms, from where one cycle of groups outweighs the others


@dataclass(frozen=True)
class Weights:
    """What a response answers.

    Attributes
    ----------
    q : ndarray of shape rows.shape
        Weights on the rows, non-negative, balanced if the rows are.
    mass : float
        Their sum (dimensionless, as all but ``worst``).
    min_margin : float
        Worst margin of the predictor that was answered, under its best intercept (units of
        the radius).
    offsets : ndarray of shape (k,)
        The response's own intercept, as class offsets of the margins.
    log_risk : float
        Logarithm of the average loss at ``offsets`` (prior as weights; dimensionless).
    gradient_mass : float
        Sum of the weights in the gradient of the average loss (dimensionless).
    smoothness : float
        Ji's rho of the loss (dimensionless): its psi is rho-smooth in the maximum norm.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import make_rows
    >>> from marginsvm.kernel_matrix.responses import softmax
    >>> rows = make_rows(np.array([0, 1]), 2, balanced=False)
    >>> answer = softmax(rows, np.array([0.0, 1.0]))
    >>> answer.mass, answer.min_margin
    (1.0, 0.0)
    """

    q: Array
    mass: float
    min_margin: float
    offsets: Array
    log_risk: float
    gradient_mass: float
    smoothness: float = 1.0


class Response(Protocol):
    """A smoothed best response of the data player: what ``data.respond`` is given.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import make_rows
    >>> from marginsvm.kernel_matrix.responses import euclidean, softmax, worst_row
    >>> rows, margins = make_rows(np.array([0, 1]), 2, balanced=False), np.array([0.0, 0.5])
    >>> [response(rows, margins, 0.5).q.round(3) for response in (softmax, euclidean, worst_row)]
    [array([0.731, 0.269]), array([0.75, 0.25]), array([1., 0.])]
    """

    def __call__(self, rows: Rows, margins: Array, mu: float) -> Weights:
        """Answer the margins of all rows with weights on the rows.

        Parameters
        ----------
        rows : Rows
            What the margins are of; whether weights have to be balanced.
        margins : ndarray of shape rows.shape
            Of the predictor that is answered (units of the radius).
        mu : float
            Smoothing (units of the radius); 0: all weight on the worst row.

        Returns
        -------
        Weights
        """
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
    exponents, beta, log_total = settle(table)
    q = e * rows.expand(np.exp(exponents - finite / mu))
    log_risk = log_total if isinstance(prior, np.ndarray) else log_total + np.log(prior)
    return softmax_weights(q, rows.min_margin(low), mu * beta, log_risk)


def settle(table: Array) -> tuple[Array, Array, float]:
    """Balance the softmax of groups with these logarithms of weights.

    Gives the logarithm of what each group's weights are multiplied with, the class offsets
    that this amounts to (in units of mu), and the logarithm of the sum.
    """
    beta = balance(table)
    log_total = float(_logsumexp(_shifted(table, beta).ravel()))
    return _shifted(np.zeros_like(table), beta) - log_total, beta, log_total


def softmax_weights(q: Array, worst: float, offsets: Array, log_risk: float) -> Weights:
    """Weights of a softmax, whose loss is its own gradient."""
    return Weights(q, 1.0, worst, offsets, log_risk, float(np.exp(min(log_risk, 700))))


def logistic(rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
    """Gradient of Ji's ``psi`` for the logistic loss (section 5.1, Appendix C).

    ``sigmoid(xi_i) / (1 - exp(-S))`` with ``xi = -margins`` and
    ``S = sum_i ln(1 + exp(xi_i))``; its mass is at least 1.
    """
    start = softmax(rows, margins, mu)
    weight = rows.per_example(rows.weights) if rows.weights is not None else 1.0
    n = float(np.sum(np.broadcast_to(weight, rows.shape))) * rows.n_rows / np.prod(rows.shape)
    # Here ln(1 + e^xi) is e^xi to the last bit, and further out S underflows: the gradient is the
    # softmax, but the smoothness stays that of the logistic loss.
    if start.min_margin > 37.0 * mu:
        return replace(start, smoothness=n)
    xi = margins / -mu

    def gap(beta: Array) -> Array:
        return xi - rows.expand(_differences(beta))

    def risk(beta: Array) -> tuple[float, Array]:
        s = weight * expit(gap(beta))
        table = rows.group_sum(s)
        return float(np.sum(weight * np.logaddexp(0.0, gap(beta)))), _excess(table)

    def curvature(beta: Array) -> Array:
        s = expit(gap(beta))
        table = rows.group_sum(weight * s * (1.0 - s))
        return np.diag(table.sum(axis=0) + table.sum(axis=1)) - table - table.T

    beta = start.offsets / mu
    if rows.balanced:
        beta = minimize(risk, beta, jac=True, hess=curvature, method="trust-exact").x
    q = weight * expit(gap(beta))
    q = q * rows.expand(rebalancing(rows.group_sum(q)))
    S = float(np.sum(weight * np.logaddexp(0.0, gap(beta))))
    total = float(q.sum())
    q = q / -np.expm1(-S)
    log_risk = float(np.log(S / n))
    return Weights(q, float(q.sum()), start.min_margin, mu * beta, log_risk, total / n, n)


def euclidean(rows: Rows, margins: Array, mu: float = 1.0, centre: Array | None = None) -> Weights:
    """``argmin <margins, q> + mu/2 sum((q - centre)^2 / prior)`` over the (balanced) simplex.

    Ramdas's ``p_mu^q``, whose mu is n times this one: with n rows of equal prior, the
    projection of ``centre - margins / (n mu)``. The default centre is the prior.
    """
    density = rows.prior / mu
    t = (rows.prior if centre is None else centre) / density - margins
    offset = _project(rows, t, density)
    q = density * np.maximum(t - rows.expand(offset[0] + _differences(offset[1:])), 0.0)
    q = q * rows.expand(rebalancing(rows.group_sum(q)))
    worst = rows.min_margin(rows.group_min(margins))
    return Weights(q / q.sum(), 1.0, worst, offset[1:], -worst, 1.0)


def _project(rows: Rows, t: Array, density: float | Array) -> Array:
    """Offset of all rows, and class offsets, at which ``density * max(t - offset, 0)`` is balanced.

    One group of rows, or two, have a threshold each, found by sorting.
    """
    if not rows.balanced:
        return np.array([_threshold(t.ravel(), np.broadcast_to(density, t.shape).ravel(), 1.0), 0])
    if t.ndim > 1:
        return _balanced_project(rows, t, density)
    density = np.broadcast_to(density, t.shape)
    low, high = (_threshold(t[rows.codes == c], density[rows.codes == c], 0.5) for c in (0, 1))
    return np.array([0.5 * (low + high), 0.25 * (low - high), 0.25 * (high - low)])


def _threshold(t: Array, density: Array, mass: float) -> float:
    """The T at which ``density * max(t - T, 0)`` has this mass."""
    order = np.argsort(-t)
    t, density = t[order], density[order]
    return float(np.max((np.cumsum(density * t) - mass) / np.cumsum(density)))


def _balanced_project(rows: Rows, t: Array, density: float | Array) -> Array:
    """``_project`` for more classes, whose offsets minimise a piecewise quadratic function.

    Newton's method, exact once it knows which weights are positive; it starts where none
    of them is too small.
    """
    low = rows.group_min(-t)
    x = np.append(-rows.min_margin(low) - np.max(1.0 / density), rows.best_offsets(low))

    def value(x: Array) -> tuple[Array, float]:
        gap = np.maximum(t - rows.expand(x[0] + _differences(x[1:])), 0.0)
        return gap, float(x[0] + 0.5 * np.sum(density * gap**2))

    gap, height = value(x)
    for _ in range(100):
        if not np.isfinite(height):  # margins have overflowed; the vectors will show it
            return np.full_like(x, np.nan)
        excess, active = rows.group_sum(density * gap), rows.group_sum(density * (gap > 0))
        gradient = np.append(1.0 - excess.sum(), _excess(excess))
        step = np.linalg.solve(_curvature(active), -gradient)
        scale, before, old = 1.0, height + 1e-14 * abs(height), gap
        gap, height = value(x + step)
        while height > before + 1e-4 * scale * float(gradient @ step) and scale > 1e-10:
            scale *= 0.5
            gap, height = value(x + scale * step)
        x = x + scale * step
        if np.array_equal(gap > 0, old > 0):
            break
    return x


def _curvature(active: Array) -> Array:
    """Hessian in (offset, class offsets), from a table of the groups' densities.

    A constant added to all class offsets changes nothing, and a class without active
    rows little: both directions get some curvature.
    """
    out, into, total = active.sum(axis=1), active.sum(axis=0), active.sum()
    hessian = np.empty((len(out) + 1, len(out) + 1))
    hessian[0, 0] = total
    hessian[0, 1:] = hessian[1:, 0] = out - into
    hessian[1:, 1:] = np.diag(out + into + 1e-13 * total) - active - active.T + total
    return hessian


def worst_row(rows: Rows, margins: Array, mu: float = 0.0, *, first: bool = False) -> Weights:
    """Limit of the softmax as mu vanishes: all the weight on the worst row.

    With an intercept, on the worst row of each group along the worst cycle of groups:
    for two classes, half on the worst row of either class. Ties share as in the limit, or the
    ``first`` takes all.
    """
    low = rows.group_min(margins)
    share = np.zeros_like(low)
    for edge in min_cycle(low)[1] if rows.balanced else [(0, 0)]:
        share[edge] += 1.0
    e = (margins == rows.expand(np.where(np.isfinite(low), low, 0.0))) * rows.prior
    if first:
        tied, groups = np.flatnonzero(e), np.arange(low.size).reshape(low.shape)
        own = np.broadcast_to(rows.expand(groups), rows.shape).ravel()[tied]
        later = np.delete(tied, np.unique(own, return_index=True)[1])
        e.flat[later] = 0.0
    q = e * rows.expand(share / share.sum() / np.maximum(rows.group_sum(e), 1e-300))
    worst = rows.min_margin(low)
    return Weights(q, 1.0, worst, rows.best_offsets(low), -worst, 1.0)


def balance(table: Array, *, tol: float = 1e-13, max_iter: int = 100) -> Array:
    """Class offsets that balance a table of groups: row and column sums become equal.

    Parameters
    ----------
    table : ndarray of shape (k, k)
        Logarithms of the groups' weights; an offset multiplies group ``(c, j)`` by
        ``exp(beta[j] - beta[c])``. A 1 x 1 table has no intercept.

    Notes
    -----
    The offsets minimise a convex function. Far from it, damped simultaneous steps of
    Osborne's matrix balancing; near it, Newton's. Two classes have a closed form.
    Tables of widely spread weights start at the offsets that balance the heaviest cycle,
    where they would be balanced if the logarithms were infinitely larger.
    """
    k = len(table)
    if k == 1:
        return np.zeros(1)
    if k == 2:
        half = 0.25 * (table[0, 1] - table[1, 0])
        return np.array([half, -half])
    if not np.all(table < np.inf):  # margins have overflowed; the vectors will show it
        return np.full(k, np.nan)
    finite = np.abs(table[np.isfinite(table)])
    tol = max(tol, 8 * np.finfo(float).eps * float(finite.max(initial=0.0)))  # its rounding
    spread = finite.size == k * (k - 1) and np.ptp(finite) > _SPREAD
    beta = cycle_offsets(-table) if spread else np.zeros(k)
    for _ in range(max_iter):
        shifted = _shifted(table, beta)
        weight = np.exp(shifted - shifted.max())
        out, into = weight.sum(axis=1), weight.sum(axis=0)
        off = np.abs(out - into).sum() / weight.sum()
        if off <= tol:
            break
        if off > 0.1:
            step = 0.25 * (_logsumexp(shifted.T) - _logsumexp(shifted))
        else:
            hessian = np.diag(out + into) - weight - weight.T
            step = np.linalg.lstsq(hessian, out - into)[0]
        beta = beta + step
    return beta - beta.mean()


def _shifted(table: Array, beta: Array) -> Array:
    """Logarithms of the groups' weights once their margins are shifted by ``beta``."""
    shifted = table - _differences(beta)
    if len(beta) > 1:
        np.fill_diagonal(shifted, -np.inf)
    return shifted


def _logsumexp(a: Array) -> Array:
    """Over the first axis; on k x k tables SciPy's own spends 0.1 ms on generality."""
    peak = a.max(axis=0)
    return peak + np.log(np.exp(a - peak).sum(axis=0))


def _differences(beta: Array) -> Array:
    """Table of ``beta[c] - beta[j]``: what class offsets add to the margins of each group."""
    return beta[:, None] - beta


def _excess(table: Array) -> Array:
    """Gradient of the risk with respect to the class offsets."""
    return table.sum(axis=0) - table.sum(axis=1)


def rebalancing(table: Array) -> Array:
    """Factors of the groups that take the last rounding out of nearly balanced weights."""
    with np.errstate(divide="ignore"):
        beta = balance(np.log(table))
    return np.exp(-_differences(beta))
