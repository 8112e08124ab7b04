"""Softmax with caps: the response of a data player who may put so much on a row, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginsvm._few_unknowns import least_of_convex
from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.certify.caps import worst_first
from marginsvm.kernel_matrix.responses.balancing import balancing_offsets
from marginsvm.kernel_matrix.responses.response import Weights
from marginsvm.rows import Rows

# The largest logarithm of a weight over its cap (dimensionless), were there no cap, that is told
# from larger ones: the exponential of 710 overflows float64, and all these weights are capped.
_LARGEST_EXPONENT = 700.0
# The least smoothing of more than two classes, as a share of the range of the margins: their best
# weights without any have no formula.
_SHARPEST = 1e-7
# Imbalance of weights, which sum to 1, that is rounding; and Newton steps for the offsets at most.
_ROUNDED_SUM, _OFFSET_STEPS = 1e-14, 50


class _Group(NamedTuple):
    """The response on rows whose weights have a given sum.

    Attributes
    ----------
    q : ndarray of shape (n,)
    worst : float
        Least average of the margins by weights with that sum and below the caps, times the sum.
    softened : float
        The same with the relative entropy of the weights to the caps, times mu, added.
    edge : float
        Margin at which a weight would just reach its cap.
    """

    q: Array
    worst: float
    softened: float
    edge: float


@dataclass(frozen=True, eq=False)
class CappedSoftmax:
    """``argmin <margins, q> + mu KL(q || prior)`` over (balanced) q <= caps of mass 1.

    Rows below some margin have their caps as weights, and those of the others fall off
    exponentially from there: ``q = caps * min(1, exp((edge - margins) / mu))``. For mu = 0, it is
    the worst rows that have their caps, and rows of equal margin share what is left.

    With more than two classes, the caps are on the sums over the rows of each example. An example
    then has the weight of its soft minimum over the classes, divided among these by a softmax; and
    the offsets that balance are the maximum of a concave function.

    Parameters
    ----------
    caps : ndarray of shape (n_examples,)
        Largest weights of the examples, in proportion to their sample weights.
    """

    caps: Array

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        if rows.n_classes > 2:
            return _of_many_classes(rows, margins, self.caps, mu)
        members = [np.arange(rows.n_rows)]
        if rows.balanced:
            members = [np.flatnonzero(rows.codes == c) for c in (0, 1)]
        mass, q = 1.0 / len(members), np.empty(rows.shape)
        prior, edges, worst, soft = np.broadcast_to(rows.prior, rows.shape), [], 0.0, 0.0
        for some in members:
            found = _of_group(margins[some], self.caps[some], mass, mu)
            q[some] = found.q
            # the prior is the caps over a number, which counts as if it moved the margins
            entropy = mu * float(np.log(self.caps[some[0]] / prior[some[0]]))
            edges.append(found.edge + entropy)
            worst, soft = worst + found.worst, soft + found.softened + mass * entropy
        offsets = np.zeros(1)
        if rows.balanced:
            offsets = np.array([-0.25, 0.25]) * (edges[0] - edges[1])
        log_risk = -soft / mu if mu > 0.0 else -soft
        gradient_mass = float(np.exp(min(log_risk, _LARGEST_EXPONENT)))
        return Weights(q, 1.0, worst, offsets, log_risk, gradient_mass)

    __call__ = respond


def _of_group(margins: Array, caps: Array, mass: float, mu: float) -> _Group:
    """The response on rows whose weights sum up to ``mass``, which the caps allow.

    Going from the worst row to better ones, the first is looked for that would not exceed its cap
    if it and all after it shared what is left in proportion to their exponentials.
    """
    order, left, last = worst_first(margins, caps, mass)
    m, c = margins[order], caps[order]
    beyond = m[last] - m
    with np.errstate(over="ignore"):  # as for mu = 0: infinite, but for rows of the same margin
        exponent = np.divide(beyond, mu, out=np.copysign(np.inf, beyond), where=mu > 0.0)
    exponent[beyond == 0.0] = 0.0
    e = np.exp(np.minimum(exponent, _LARGEST_EXPONENT))
    e *= c
    rest = np.cumsum(e[:last][::-1])[::-1] + e[last:].sum()
    exceeds = (exponent[:last] > _LARGEST_EXPONENT) | (left[:last] * e[:last] > c[:last] * rest)
    k = int(np.count_nonzero(exceeds))  # those that do come first
    others = max(mass - float(c[:k].sum()), 0.0)  # by sums that are more precise than running ones
    share = others / float(e[k:].sum())
    q = np.empty(len(m))
    q[order] = np.append(c[:k], np.minimum(share * e[k:], c[k:]))
    edge = float(m[last] + mu * np.log(share)) if share > 0.0 else float(m[last])
    capped = float(c[:k] @ m[:k])
    worst = float(c[:last] @ m[:last] + left[last] * m[last])
    return _Group(q, worst, capped + others * edge, edge)


class _ManyClasses(NamedTuple):
    """Weights of many classes at some offsets.

    Attributes
    ----------
    q : ndarray of shape (n, k)
    group : _Group
        Of the examples, at their soft minima.
    mu : float
    """

    q: Array
    group: _Group
    mu: float


def _of_many_classes(rows: Rows, margins: Array, caps: Array, mu: float) -> Weights:
    """The response of more than two classes.

    Its objective as a function of the offsets, with the best weights for each, is concave, and its
    slope is what weights lack of balance.
    """
    k, finite = rows.n_classes, margins[np.isfinite(margins)]
    spread = float(np.ptp(finite)) or 1.0
    mu = max(mu, _SHARPEST * spread)

    def at(beta: Array) -> tuple[Array, _ManyClasses]:
        m = margins + rows.expand(beta[:, None] - beta)
        lowest = m.min(axis=1, keepdims=True)
        e = np.exp((lowest - m) / mu)
        total = e.sum(axis=1, keepdims=True)
        soft = lowest[:, 0] - mu * np.log(total[:, 0] / (k - 1))
        group = _of_group(soft, caps, 1.0, mu)
        q = (group.q / total[:, 0])[:, None] * e
        return -rows.adjoint(q).sum(axis=0) * np.sqrt(2.0), _ManyClasses(q, group, mu)

    beta, most = np.zeros(k), 0
    if rows.balanced:
        beta, most = _first_offsets(rows, margins, caps, mu), _OFFSET_STEPS
    flat = max(_ROUNDED_SUM, UNIT * spread / mu)
    beta, there, _ = least_of_convex(
        at, lambda there: _curvature(rows, there, caps), beta, spread, flat, most
    )
    # the prior is the caps over a number, which counts as if it moved the margins
    prior = np.broadcast_to(rows.prior, rows.shape)[:, 0] * (k - 1)
    softened = there.group.softened + mu * float(np.log(caps[0] / prior[0]))
    shifted = margins + rows.expand(beta[:, None] - beta)
    worst = _of_group(shifted.min(axis=1), caps, 1.0, 0.0).worst
    offsets = beta - beta.mean() if rows.balanced else np.zeros(1)
    log_risk = -softened / mu
    gradient_mass = float(np.exp(min(log_risk, _LARGEST_EXPONENT)))
    return Weights(there.q, 1.0, worst, offsets, log_risk, gradient_mass)


def _first_offsets(rows: Rows, margins: Array, caps: Array, mu: float) -> Array:
    """Offsets that balance weights without caps."""
    low = rows.group_min(margins)
    finite = np.where(np.isfinite(low), low, 0.0)
    e = np.exp((rows.expand(finite) - margins) / mu) * caps[:, None]
    with np.errstate(divide="ignore"):
        table = np.log(rows.group_sum(e)) - finite / mu
    return np.nan_to_num(mu * balancing_offsets(table))


def _curvature(rows: Rows, there: _ManyClasses, caps: Array) -> Array:
    """Second derivatives in the offsets; an example at its cap only moves weight between rows."""
    q, mu = there.q, there.mu
    capped = there.group.q >= caps
    table = rows.group_sum(np.where(capped[:, None], 0.0, q))
    out, into = table.sum(axis=1), table.sum(axis=0)
    H = np.diag(out + into) - table - table.T
    H -= np.outer(out - into, out - into) / max(float(out.sum()), np.finfo(float).tiny)
    at_cap = q[capped]
    H += np.diag(at_cap.sum(axis=0)) - at_cap.T @ (at_cap / caps[capped, None])
    return np.asarray(H / mu)
