"""Softmax with caps: the response of a data player who may put so much on a row, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.caps import worst_first
from marginsvm.kernel_matrix.responses.response import Weights
from marginsvm.rows import Rows

# The largest logarithm of a weight over its cap (dimensionless), were there no cap, that is told
# from larger ones: the exponential of 710 overflows float64, and all these weights are capped.
_LARGEST_EXPONENT = 700.0


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

    Parameters
    ----------
    caps : ndarray of shape rows.shape
        Largest weights of rows of two classes, in proportion to the prior within each class where
        weights have to balance, else in all.
    """

    caps: Array

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        members = [rows.codes == 0, rows.codes == 1] if rows.balanced else [slice(None)]
        mass, q = 1.0 / len(members), np.empty(rows.shape)
        prior, edges, worst, soft = np.broadcast_to(rows.prior, rows.shape), [], 0.0, 0.0
        for some in members:
            found = _of_group(margins[some], self.caps[some], mass, mu)
            q[some] = found.q
            # the prior is the caps over a number, which counts as if it moved the margins
            entropy = mu * float(np.log(self.caps[some][0] / prior[some][0]))
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
    rest = np.cumsum((c * e)[::-1])[::-1]
    exceeds = (exponent > _LARGEST_EXPONENT) | (left * e > rest)
    k = int(np.count_nonzero(exceeds[:last]))  # those that do come first
    share = left[k] / rest[k]
    q = np.empty(len(m))
    q[order] = np.append(c[:k], c[k:] * np.minimum(share * e[k:], 1.0))
    edge = float(m[last] + mu * np.log(share)) if share > 0.0 else float(m[last])
    capped = float(c[:k] @ m[:k])
    worst = float(c[:last] @ m[:last] + left[last] * m[last])
    return _Group(q, worst, capped + float(left[k]) * edge, edge)
