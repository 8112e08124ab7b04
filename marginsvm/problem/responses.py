"""Best responses: distributions over the rows (gradients of a loss) from a predictor's margins.

A response also finds the unpenalised intercept: the class offsets ``beta`` at which q satisfies the
equality constraint (is balanced).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp, log, nan
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from scipy.special import expit

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.problem.intercepts import (
    balance,
    balancing_factors,
    differences,
    imbalance,
    laplacian,
    least_of_convex,
    min_cycle,
)
from marginsvm.problem.rows import Rows

__all__ = [
    "CappedSoftmax",
    "Euclidean",
    "Logistic",
    "Response",
    "Softmax",
    "Weights",
    "WorstRow",
    "euclidean",
    "logistic",
    "softmax",
    "worst_row",
]

# least smoothing of capped responses of many classes, relative to the range of margins
LEAST_SMOOTHING = 1e-7
LARGEST_EXPONENT = 700.0  # dimensionless; the exponential of 710 overflows float64
# Exponents whose exponentials count as 0 beside those near 1; that of -708 is subnormal.
NEGLIGIBLE = -600.0
LEAST = float(np.finfo(np.float64).min)
# Exponent below which ln(1 + exp(x)) equals exp(x) in float64.
EXPONENTIAL = 37.0
# Rounding of a gradient of the logistic loss for each row of weight 1, and of Euclidean smoothing
# for each class.
FLAT = 1e-14
FLAT_PROJECTION = 1e-15
NO_SUM = 1e-300  # instead of 0, as a divisor
# Without smoothing: the smoothings that are solved for in turn, relative to the range of margins,
# and Newton steps for each.
SMOOTHINGS = tuple(0.1**i for i in range(1, 10))
STEPS = 50


@dataclass(eq=False)
class Weights:
    """A best response: weights q on the rows (dual variables), and by-products.

    Attributes
    ----------
    q : ndarray of shape rows.shape
        Non-negative; balanced if the rows are.
    mass : float
        ``sum(q)`` (dimensionless, as all but ``min_margin``).
    min_margin : float
        Smallest margin of the predictor under its best intercept (units of the radius).
    offsets : ndarray of shape (k,)
        The response's own intercept, as class offsets of the margins.
    log_risk : float
        Logarithm of the average loss at ``offsets`` (prior as weights; dimensionless).
    gradient_mass : float
        l1 norm of the gradient of the average loss in the margins (dimensionless).
    smoothness : float
        Ji's rho of the loss (dimensionless): its psi is rho-smooth in the maximum norm.
    start : ndarray or None
        For ``near`` of the next response, see :class:`Response`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.rows import make_rows
    >>> from marginsvm.extend import softmax
    >>> rows = make_rows(np.array([0, 1]), 2, balanced=False)
    >>> weights = softmax.respond(rows, np.array([0.0, 1.0]))
    >>> weights.mass, weights.min_margin
    (1.0, 0.0)
    """

    q: Array
    mass: float
    min_margin: float
    offsets: Array
    log_risk: float
    gradient_mass: float
    smoothness: float = 1.0
    start: Array | None = None


@runtime_checkable
class Response(Protocol):
    """A smoothed best response, the argument of ``problem.respond``.

    It is a frozen dataclass of its parameters, which can be pickled. A method ``below(upper)``
    returns the response under upper bounds (for ``nu``); ``near(start)`` the response whose search
    begins at the ``start`` that the weights of another one have.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.rows import make_rows
    >>> from marginsvm.extend import euclidean, softmax, worst_row
    >>> rows, margins = make_rows(np.array([0, 1]), 2, balanced=False), np.array([0.0, 0.5])
    >>> responses = (softmax, euclidean, worst_row)
    >>> [response.respond(rows, margins, 0.5).q.round(3) for response in responses]
    [array([0.731, 0.269]), array([0.75, 0.25]), array([1., 0.])]
    """

    def respond(self, rows: Rows, margins: Array, mu: float) -> Weights:
        """Weights on the rows, given the margins of all rows.

        Parameters
        ----------
        rows : Rows
            The rows; they say whether q has to be balanced.
        margins : ndarray of shape rows.shape
            Margins of the predictor (units of the radius).
        mu : float
            Smoothing (units of the radius); 0: all weight on the row of smallest margin.

        Returns
        -------
        Weights
        """
        ...


def below(response: Response, upper: Array) -> Response:
    """The response under upper bounds, one for each example.

    Raises
    ------
    ValueError
        If it has no such form.
    """
    if not hasattr(response, "below"):
        raise ValueError(
            f"nu caps the weights on the examples, but {type(response).__name__} gives weights "
            "without caps only: choose loss='exponential', or nu=None"
        )
    capped: Response = response.below(upper)
    return capped


@dataclass(frozen=True)
class Searched(Response):
    """A response that is found by a search.

    Parameters
    ----------
    start : ndarray of shape (2, m) or None
        What the last search found, and how far from what the one before found (units of the
        radius): this one begins as far from the last. It changes no more than rounding.
    """

    start: Array | None = field(default=None, kw_only=True, compare=False, repr=False)

    def near(self, start: Array) -> Self:
        """The same response, searched for from ``start`` on."""
        return type(self)(start=start)

    @property
    def guess(self) -> Array | None:
        """Where the search begins."""
        return None if self.start is None else self.start[0] + self.start[1]

    def next_start(self, found: Array) -> Array:
        """The start of the next search, after what this one has found."""
        return np.array(
            [found, found - (found if self.start is None else self.start[0])]
        )


def balanced(rows: Rows, q: Array) -> Array:
    """Balance nearly balanced weights up to rounding, by a factor for each group.

    Unchanged where a class has weight in one direction only, as no factors balance it.
    """
    factors = balancing_factors(rows.group_sum(q))
    some = np.isfinite(factors) & (factors > 0.0)
    return np.asarray(q * rows.expand(np.where(some, factors, 1.0)))


# The exponential loss.


@dataclass(frozen=True)
class Softmax(Searched):
    """``argmin <margins, q> + mu KL(q || prior)`` over the (balanced) simplex.

    The gradient of Ji's ``psi`` for the exponential loss; Ramdas's ``p_mu``.
    """

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        if margins.ndim == 1 or not rows.balanced:
            return self._of_few_groups(rows, margins, mu)
        E = margins / -mu
        largest = rows.group_min(margins) / -mu
        mass, q = self.exponentials(rows, E, largest)
        shift, weights_of = self.finished(rows, largest, mass, mu)
        q *= rows.expand(np.exp(largest - shift))
        return weights_of(q)

    __call__ = respond

    def below(self, upper: Array) -> CappedSoftmax:
        """The softmax under upper bounds."""
        return CappedSoftmax(upper)

    @staticmethod
    def exponentials(rows: Rows, E: Array, largest: Array) -> tuple[Array, Array]:
        """Exponentials relative to the largest exponent of each group, after their sums."""
        e = E - rows.expand(finite(largest))
        # exponentials that vanish are subnormal first: slow
        e[e < NEGLIGIBLE] = -np.inf
        e = rows.weighted(np.exp(e, out=e))
        return rows.group_sum(e), e

    @staticmethod
    def _of_few_groups(rows: Rows, margins: Array, mu: float) -> Weights:
        """Where there is one group, or two with half of the weight each, as they balance.

        This is a closed form, in numbers: for few rows, arrays of two take as long as all else.
        """

        def of_rows(values: Array) -> Array:
            return values.take(rows.codes) if rows.balanced else values

        low = rows.over_classes(np.minimum, margins, np.inf)
        e = of_rows(low) - margins
        if mu != 1.0:
            e *= 1.0 / mu
        e[e < NEGLIGIBLE] = -np.inf
        e = rows.weighted(np.exp(e, out=e))
        mass = rows.over_classes(np.add, e, 0.0).tolist()
        share = 1.0 / len(mass)
        lows = low.tolist()
        e *= of_rows(np.array([share / m if m > 0.0 else nan for m in mass]))
        logs = [
            log(m) - least / mu if m > 0.0 else nan
            for m, least in zip(mass, lows, strict=True)
        ]
        half = 0.25 * mu * (logs[0] - logs[-1])
        offsets = np.array([half, -half][: len(mass)])
        log_risk = share * sum(logs) - log(share * rows.total_weight)
        gradient_mass = exp(min(log_risk, LARGEST_EXPONENT))
        return Weights(e, 1.0, share * sum(lows), offsets, log_risk, gradient_mass)

    def finished(
        self, rows: Rows, largest: Array, mass: Array, mu: float
    ) -> tuple[Array, Callable[[Array], Weights]]:
        """The groups' shifts, such that q is the exponentials of the exponents less these, and the
        response as a function of q.
        """
        with np.errstate(divide="ignore"):
            table = largest + np.log(mass)
        guess = self.guess
        beta, log_total = balance(table, None if guess is None else guess / mu)
        log_risk = log_total - log(rows.total_weight)
        gradient_mass = exp(min(log_risk, LARGEST_EXPONENT))
        smallest = rows.min_margin(-mu * largest)
        offsets = mu * beta
        start = self.next_start(offsets) if len(beta) > 2 else None

        def weights_of(q: Array) -> Weights:
            return Weights(
                q, 1.0, smallest, offsets, log_risk, gradient_mass, start=start
            )

        return differences(beta) + log_total, weights_of


def finite(largest: Array) -> Array:
    """Largest exponents, finite also for groups that have no rows."""
    return np.maximum(largest, LEAST)


# The logistic loss.


@dataclass(frozen=True)
class Logistic(Searched):
    """Gradient of Ji's ``psi`` for the logistic loss (section 5.1, Appendix C).

    ``sigmoid(xi_i) / (1 - exp(-S))`` with ``xi = -margins`` and
    ``S = sum_i ln(1 + exp(xi_i))``; its mass is at least 1.
    """

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        smallest = rows.min_margin(rows.group_min(margins))
        n = rows.total_weight
        guess = self.guess
        far = smallest > EXPONENTIAL * mu
        if guess is None or far:
            # S may underflow there: the gradient is then the softmax, but the smoothness stays
            # that of the logistic loss.
            near = softmax.respond(rows, margins, mu)
            if far:
                return replace(near, smoothness=n, start=self.next_start(near.offsets))
            guess = near.offsets

        def at(beta: Array) -> tuple[Array, Array]:
            s = expit(xi - rows.expand(differences(beta)))
            return imbalance(rows.group_sum(rows.weighted(s))), s

        def curvature(s: Array) -> Array:
            return laplacian(rows.group_sum(rows.weighted(s * (1.0 - s))))

        xi = margins / -mu
        beta = guess / mu
        if rows.balanced and np.isfinite(beta).all():
            beta = least_of_convex(at, curvature, beta, 1.0, FLAT * n)[0]
        xi = xi - rows.expand(differences(beta))
        q = balanced(rows, rows.weighted(expit(xi)))
        S = float(np.sum(rows.weighted(np.logaddexp(0.0, xi))))
        total = float(q.sum())
        q = q / -np.expm1(-S)
        log_risk = float(np.log(S / n))
        offsets = mu * beta
        start = self.next_start(offsets) if rows.balanced else None
        return Weights(
            q, float(q.sum()), smallest, offsets, log_risk, total / n, n, start
        )

    __call__ = respond


# Euclidean smoothing: a projection onto the (balanced) simplex.


@dataclass(frozen=True, eq=False)
class Euclidean(Response):
    """``argmin <margins, q> + mu/2 sum((q - centre)^2 / prior)`` over the (balanced) simplex.

    Ramdas's ``p_mu^q``, whose mu is n times this one: with n rows of equal prior, the
    projection of ``centre - margins / (n mu)``.

    Parameters
    ----------
    centre : ndarray of shape rows.shape or None
        Prox-centre; None: the prior.
    """

    centre: Array | None = None

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        density = rows.prior / mu
        t = (rows.prior if self.centre is None else self.centre) / density - margins
        level, beta = self._offsets(rows, t, density)
        q = density * np.maximum(t - rows.expand(level + differences(beta)), 0.0)
        q = balanced(rows, q)
        smallest = rows.min_margin(rows.group_min(margins))
        return Weights(q / q.sum(), 1.0, smallest, beta, -smallest, 1.0)

    __call__ = respond

    @staticmethod
    def _offsets(rows: Rows, t: Array, density: float | Array) -> tuple[float, Array]:
        """Level and class offsets at which ``density * max(t - level - offset, 0)`` is balanced."""
        weight = np.broadcast_to(density, t.shape)
        if not rows.balanced:
            return _threshold(t.ravel(), weight.ravel(), 1.0), np.zeros(1)
        if t.ndim == 1:
            one, other = (
                _threshold(t[rows.codes == c], weight[rows.codes == c], 0.5)
                for c in (0, 1)
            )
            return 0.5 * (one + other), np.array([0.25, -0.25]) * (one - other)

        def at(x: Array) -> tuple[Array, Array]:
            gap = np.maximum(t - rows.expand(x[0] + differences(x[1:])), 0.0)
            mass = rows.group_sum(density * gap)
            return np.append(1.0 - mass.sum(), imbalance(mass)), gap > 0.0

        def curvature(active: Array) -> Array:
            table = rows.group_sum(density * active)
            out = table.sum(axis=1)
            into = table.sum(axis=0)
            H = np.empty((len(out) + 1, len(out) + 1))
            H[0, 0] = out.sum()
            H[0, 1:] = out - into
            H[1:, 0] = out - into
            H[1:, 1:] = laplacian(table) + out.sum()  # offsets of mean 0
            return H

        # Start at the larger of two levels at which q sums to 1 or more: the entry of the largest t
        # alone is 1 or more; or all entries would sum to 1 without the maximum with 0.
        low = rows.group_min(-t)
        beta = rows.best_offsets(low)
        real = np.isfinite(t)
        left = (t - rows.expand(differences(beta)))[real]
        of_all = (weight[real] @ left - 1.0) / weight[real].sum()
        x = np.append(max(-rows.min_margin(low) - np.max(1.0 / density), of_all), beta)
        if not np.isfinite(x).all():  # margins have overflowed: the vectors show it
            return np.nan, np.full(len(beta), np.nan)
        size = float(np.max(1.0 / density))
        x = least_of_convex(at, curvature, x, size, FLAT_PROJECTION * rows.n_classes)[0]
        return float(x[0]), x[1:] - x[1:].mean()


def _threshold(t: Array, density: Array, mass: float) -> float:
    """The T at which ``density * max(t - T, 0)`` has the sum ``mass``."""
    order = np.argsort(-t)
    t = t[order]
    density = density[order]
    return float(np.max((np.cumsum(density * t) - mass) / np.cumsum(density)))


# No smoothing: all the weight on the row of smallest margin.


@dataclass(frozen=True)
class WorstRow(Response):
    """Limit of the softmax as mu vanishes: all the weight on the row of smallest margin.

    With an intercept, the groups along the cycle with the least mean of smallest margins have equal
    weights, each on its row of smallest margin: for two classes, 1/2 on such a row of each class.

    Parameters
    ----------
    first : bool
        Ties within a group: whether the first row takes all the weight. Otherwise tied rows share
        it in proportion to the prior, as in the limit.
    """

    first: bool = False

    def respond(self, rows: Rows, margins: Array, mu: float = 0.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        low = rows.group_min(margins)
        share = np.zeros_like(low)
        for edge in min_cycle(low)[1] if rows.balanced else [(0, 0)]:
            share[edge] += 1.0
        e = (margins == rows.expand(np.where(np.isfinite(low), low, 0.0))) * rows.prior
        if self.first:
            tied = np.flatnonzero(e)
            groups = np.arange(low.size).reshape(low.shape)
            own = np.broadcast_to(rows.expand(groups), rows.shape).ravel()[tied]
            e.flat[np.delete(tied, np.unique(own, return_index=True)[1])] = 0.0
        # instead of 0 where a group has no rows
        sums = np.maximum(rows.group_sum(e), NO_SUM)
        q = e * rows.expand(share / share.sum() / sums)
        smallest = rows.min_margin(low)
        return Weights(q, 1.0, smallest, rows.best_offsets(low), -smallest, 1.0)

    __call__ = respond


softmax = Softmax()
logistic = Logistic()
euclidean = Euclidean()
worst_row = WorstRow()


# Upper bounds of the weights: nu.


class _Group(NamedTuple):
    """The response on rows whose q has a given sum.

    Attributes
    ----------
    q : ndarray of shape (n,)
    worst : float
        Minimum of ``<margins, q>`` over q with that sum and below the bounds.
    softened : float
        Minimum of ``<margins, q> + mu KL(q || upper)`` over these q.
    edge : float
        Margin at which q just reaches its bound.
    """

    q: Array
    worst: float
    softened: float
    edge: float


@dataclass(frozen=True, eq=False)
class CappedSoftmax(Response):
    """``argmin <margins, q> + mu KL(q || prior)`` over (balanced) q <= upper of sum 1.

    Rows with margins below ``edge`` are at their upper bounds, and q decays exponentially beyond:
    ``q = upper * min(1, exp((edge - margins) / mu))``. For mu = 0, the worst rows are at their
    bounds, and rows with margin ``edge`` share the remainder.

    With more than two classes, the bounds are on ``sum_j q_ij`` of each example. This sum then
    follows from the soft minimum of the example's margins, and a softmax divides it among the
    classes; the balancing offsets maximise a concave function.

    Parameters
    ----------
    upper : ndarray of shape (n_examples,)
        Upper bounds of the examples, in proportion to their sample weights.
    """

    upper: Array

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        if rows.n_classes > 2:
            return self._of_many_classes(rows, margins, mu)
        members = [np.arange(rows.n_rows)]
        if rows.balanced:
            members = [np.flatnonzero(rows.codes == c) for c in (0, 1)]
        mass = 1.0 / len(members)
        q = np.empty(rows.shape)
        edges = []
        worst = 0.0
        soft = 0.0
        for some in members:
            found = _of_group(margins[some], self.upper[some], mass, mu)
            q[some] = found.q
            edges.append(found.edge)
            worst = worst + found.worst
            soft = soft + found.softened
        offsets = np.zeros(1)
        if rows.balanced:
            offsets = np.array([-0.25, 0.25]) * (edges[0] - edges[1])
        return self._weights(rows, q, worst, soft, offsets, mu)

    __call__ = respond

    def _weights(
        self, rows: Rows, q: Array, worst: float, soft: float, offsets: Array, mu: float
    ) -> Weights:
        # the prior is proportional to the bounds; the factor acts as a shift of the margins
        of_example = np.broadcast_to(rows.prior, rows.shape).flat[0] * (
            rows.n_rows / len(q)
        )
        soft += mu * float(np.log(self.upper[0] / of_example))
        log_risk = -soft / mu if mu > 0.0 else -soft
        gradient_mass = float(np.exp(min(log_risk, LARGEST_EXPONENT)))
        return Weights(q, 1.0, worst, offsets, log_risk, gradient_mass)

    def _of_many_classes(self, rows: Rows, margins: Array, mu: float) -> Weights:
        k = rows.n_classes
        spread = float(np.ptp(margins[np.isfinite(margins)])) or 1.0
        smoothing = [max(mu, LEAST_SMOOTHING * spread)]
        if mu < smoothing[0]:  # without smoothing there is no closed form
            smoothing = [of * spread for of in SMOOTHINGS]

        def at(beta: Array) -> tuple[Array, tuple[Array, _Group]]:
            m = margins + rows.expand(differences(beta))
            lowest = m.min(axis=1, keepdims=True)
            e = np.exp((lowest - m) / mu)
            total = e.sum(axis=1, keepdims=True)
            soft = lowest[:, 0] - mu * np.log(total[:, 0] / (k - 1))
            group = _of_group(soft, self.upper, 1.0, mu)
            q = (group.q / total[:, 0])[:, None] * e
            return -rows.adjoint(q).sum(axis=0), (q, group)

        def curvature(there: tuple[Array, _Group]) -> Array:
            q, group = there
            # such an example only moves weight between its rows
            at_bound = group.q >= self.upper
            table = rows.group_sum(np.where(at_bound[:, None], 0.0, q))
            out = table.sum(axis=1)
            into = table.sum(axis=0)
            H = laplacian(table)
            H -= np.outer(out - into, out - into) / max(
                float(out.sum()), np.finfo(float).tiny
            )
            q = q[at_bound]
            H += np.diag(q.sum(axis=0)) - q.T @ (q / self.upper[at_bound, None])
            return np.asarray(H / mu)

        beta = np.zeros(k)
        steps = 0
        if rows.balanced:
            beta = np.nan_to_num(softmax.respond(rows, margins, smoothing[0]).offsets)
            steps = STEPS
        for mu in smoothing:  # which the two functions read
            flat = max(FLAT, UNIT * spread / mu)
            beta, (q, group), _ = least_of_convex(
                at, curvature, beta, spread, flat, steps
            )
        shifted = margins + rows.expand(differences(beta))
        worst = _of_group(shifted.min(axis=1), self.upper, 1.0, 0.0).worst
        offsets = beta - beta.mean() if rows.balanced else np.zeros(1)
        return self._weights(rows, q, worst, group.softened, offsets, mu)


def _of_group(margins: Array, upper: Array, mass: float, mu: float) -> _Group:
    """The response on rows with ``sum(q) = mass``, which the bounds allow.

    In the order of margins, find the first row that would not exceed its bound if it and all later
    rows shared the remaining mass in proportion to their exponentials.
    """
    order, left = worst_first(margins, upper, mass)
    last = len(left) - 1
    m = margins[order[:last]]
    c = upper[order[:last]]
    quantile = margins[order[last]]
    beyond = quantile - margins
    if mu > 0.0:
        with np.errstate(over="ignore"):
            exponent = np.minimum(beyond / mu, LARGEST_EXPONENT)
    else:  # in the limit exponents are infinite, but for rows of the same margin
        exponent = np.where(beyond > 0.0, LARGEST_EXPONENT, -np.inf)
        exponent[beyond == 0.0] = 0.0
    e = np.exp(exponent)
    e *= upper
    first = e[order[:last]]
    later = float(e[order[last:]].sum())
    rest = np.cumsum(first[::-1])[::-1] + later
    exceeds = (beyond[order[:last]] > LARGEST_EXPONENT * mu) | (
        left[:last] * first > c * rest
    )
    k = int(np.count_nonzero(exceeds))  # rows at their bounds, which come first
    # these sums are more precise than running ones
    others = max(mass - float(c[:k].sum()), 0.0)
    share = others / (float(first[k:].sum()) + later)
    q = np.minimum(share * e, upper)
    q[order[:k]] = c[:k]
    edge = float(quantile)
    if mu > 0.0 and share > 0.0:
        edge += mu * log(share)
    elif mu == 0.0:
        edge = _midpoint(margins, upper, order, left, mass)
    worst = float(c @ m + left[last] * quantile)
    return _Group(q, worst, float(c[:k] @ m[:k]) + others * edge, edge)


def _midpoint(
    margins: Array, upper: Array, order: Array, left: Array, mass: float
) -> float:
    """The margin at which the mass ends: where it is a row's upper bound, halfway to the next."""
    rounding = len(margins) * UNIT * mass
    last = len(left) - 1
    first = end = last
    if left[last] <= rounding and last > 0:
        first = last - 1
    elif last + 1 < len(order) and left[last] - upper[order[last]] >= -rounding:
        end = last + 1
    return 0.5 * float(margins[order[first]] + margins[order[end]])


def worst_first(margins: Array, upper: Array, mass: float) -> tuple[Array, Array]:
    """Rows sorted by margin, as far as their upper bounds sum to ``mass``.

    Returns
    -------
    order : ndarray of shape (n,)
        Sorted at least up to the row after the last one with remaining mass; later rows have no
        smaller margins.
    left : ndarray
        Mass that remains at each row up to that one, when all earlier rows are at their bounds.
    """
    order = np.arange(len(margins))
    # so many rows are enough, whatever their bounds
    enough = int(min(mass / float(upper.min()) + 3.0, len(order)))
    if enough < len(order):
        order = np.argpartition(margins, enough)
    order[:enough] = order[:enough][np.argsort(margins[order[:enough]])]
    passed = np.cumsum(upper[order[:enough]])
    last = min(int(np.searchsorted(passed, mass)), enough - 1)
    return order, mass - np.append(0.0, passed[:last])
