"""What a predictor and weights prove: one statement for classes, tubes and shares.

Let the values of a predictor on the rows be asked to lie in intervals, ``l_r <= a_r w <= h_r``; for
classes, ``l = 1``, and there is no upper end. Slack may make up for what is missing, at the price
of its square (*own*: each row has one coordinate of its own) or of its size (*caps*).

Weights q on the rows, of the sign of the end that they belong to, prove that no predictor with its
slack is shorter than their *gain*, the sum of ``l q+ - h q-``, over the length of ``A^T q`` (weak
duality). If the intervals are wider by delta, the gain is less by delta times the sum of ``|q|``.

The results are read in three ways: as *norms*; as *margins*, which are one over norms; and as
*shares*, where the end is the same for all rows and is itself to be as large as possible. The
margin is then the mean of the worst values of the share, over the norm; a hard margin is the share
of a single row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginsvm.certify.checker.kernel_space import KernelSpace
from marginsvm.certify.checker.linear_space import LinearSpace
from marginsvm.certify.checker.numbers import Numbers
from marginsvm.certify.checker.rows import Rows

_EXCESS = 4  # times the largest norm: what moving a unit of weight changes, see ``margin_bound``


@dataclass(frozen=True)
class Slack:
    """What slack costs; hard margins and hard tubes have none.

    Attributes
    ----------
    own : ndarray of shape (n, 1) or None
        The coordinate that each row of an example has for itself: the price of the square.
    caps : ndarray of shape (n, 1) or None
        Largest sums of the weights of the examples: the price of the size or, of a share, of
        weights that sum to 1.
    share : bool
        Whether the caps are those of a share; without caps, that is a single row: a hard margin.
    most : number or None
        Of prices, for tubes of unknown width: the largest sum of the weights of an output; None:
        the width is given.
    tube : ndarray of shape (n_outputs,) or number
        Half the width of these tubes: slack is counted from there, and ``most`` times it is paid.
    """

    own: NDArray | None = None
    caps: NDArray | None = None
    share: bool = False
    most: Any = None
    tube: Any = 0


@dataclass(frozen=True)
class Proved:
    """What a predictor and weights prove, as numbers without allowance for rounding.

    Attributes
    ----------
    worst : number
        What the values come to, over the norm: the smallest, or the mean of the worst share; 1
        where slack lifts all of them to their ends.
    norm : number
        Norm of the predictor, its slack included.
    violation : number
        Largest distance of a value from its interval.
    length : number
        ``|A^T q|``, slack included.
    gain, mass : number
        Gain of q, and the sum of its absolute values.
    imbalance : number
        How far q is from balanced weights, as a sum of absolute values; 0 without a free intercept.
    multiple : number or None
        Largest factor at which the weights are below the caps that are prices; None: no prices.
    excess : number
        Sum of what exceeds the caps of a share.
    farthest : number
        Largest norm of an example, slack included.
    reach : number
        Largest finite end of an interval.
    links : int
        Links between intercepts: over one, these differ by 1 and a row at most.
    cycle : int
        By how many times a row values may differ because of the best intercepts of a share.
    numbers : Floats or Rationals
    """

    worst: Any
    norm: Any
    violation: Any
    length: Any
    gain: Any
    mass: Any
    imbalance: Any
    multiple: Any
    excess: Any
    farthest: Any
    reach: Any
    links: int
    cycle: int
    numbers: Numbers

    @property
    def margin(self) -> Any:
        """Margin of the predictor."""
        return self.worst / self.norm if self.norm > 0 else self.norm

    @property
    def margin_bound(self) -> Any:
        """No predictor has a larger margin; infinite where the weights prove nothing.

        With an unpenalised intercept, q must weigh the classes alike. Counted from the mean, the
        intercept of a unit predictor with a positive margin is below the radius (class offsets
        differ by less than sqrt(2) times it), so that it adds less than radius times imbalance to
        ``<w, A^T q>``. The fit may count from another point than the mean, and charges three times
        as much in order to claim no less than is found here.

        What exceeds the caps of a share has to go to other rows. With two classes, the best
        intercept gives the value at the edge of the share to an example of either class. So it is
        at most the radius for a predictor of norm 1, and values are at most twice that: what moves
        changes the average by at most four times as much. With k classes, the edge and the best
        offsets are where k examples link the classes, with one cycle: the edge is at most k times a
        link, and offsets differ by at most k squared times it.
        """
        if not self.mass > 0:
            return inf
        if self.multiple is not None:
            bound = self.norm_bound()
            return 1 / bound if bound > 0 else inf
        surcharge = self.cycle * self.farthest * (self.imbalance + _EXCESS * self.excess)
        return (self.length + surcharge) / self.mass

    def norm_bound(self, delta: Any = 0) -> Any:
        """No predictor that fits intervals that are wider by delta has a smaller norm.

        Infinite if none fits; without a gain, it is not positive, and says nothing.

        Some row is at its end for the best intercept, which is thus at most the largest end plus
        the length of a row times the norm of the predictor. (At the best offsets of k classes,
        these are linked by k - 1 examples, each of which has the value 1 against another class, or
        the same value against two.) So imbalance costs gain as well as length. Where slack has a
        price, the best multiple of the weights below the caps is taken.
        """
        off = self.links * self.imbalance
        gain = self.gain - self.reach * off - delta * self.mass
        length = self.length + self.farthest * off
        if self.multiple is None or not gain > 0:
            return gain / length if length > 0 else inf if gain > 0 else gain
        s = min(self.multiple, gain / (length * length)) if length > 0 else self.multiple
        return self.numbers.sqrt(s * (2 * gain - s * length * length))


def proved(
    space: LinearSpace | KernelSpace,
    scores: NDArray,
    rows: Rows,
    slack: Slack,
    q: NDArray,
    farthest: Any,
    *,
    balanced: bool,
) -> Proved:
    """What the predictor of a space, and weights q on its rows, prove.

    Parameters
    ----------
    space : LinearSpace or KernelSpace
        The examples, and the predictor.
    scores : ndarray of shape (n, n_scores)
        Those of the predictor, as numbers.
    rows : ClassRows or IntervalRows
    slack : Slack
    q : ndarray of shape (n, n_columns)
        Weights on the rows, as numbers.
    farthest : number
        Largest norm of an example, slack included.
    balanced : bool
        Whether there is an intercept that norms do not count.
    """
    values, V = rows.values(scores), rows.coefficients(q)
    imbalance = V.sum(axis=0) if balanced else None
    norm, length = space.predictor_norm(), space.combination_norm(V, imbalance)
    priced = _with_slack(slack, rows, values, q, norm, length)
    return Proved(
        **priced,
        violation=rows.distances(values).max(),
        gain=rows.gain(q),
        mass=abs(q).sum(),
        imbalance=0 if imbalance is None else abs(imbalance).sum(),
        farthest=farthest,
        reach=rows.reach,
        links=rows.links,
        cycle=rows.cycle if slack.caps is not None else 1,
        numbers=rows.numbers,
    )


def _with_slack(
    slack: Slack, rows: Rows, values: NDArray, q: NDArray, norm: Any, length: Any
) -> dict[str, Any]:
    """What slack makes of the values, of the norm, and of the length of ``A^T q``."""
    numbers, distance = rows.numbers, rows.distances(values)
    of_example = rows.under_a_cap(abs(q))
    worst, multiple, excess = numbers.number(1.0), None, 0
    if slack.own is not None:
        norm = numbers.norms(np.append((distance / slack.own).ravel(), norm)[None], 2.0)[0]
        length = numbers.norms(np.append((slack.own * q).ravel(), length)[None], 2.0)[0]
    elif slack.caps is None:
        worst = values.min() if slack.share else worst
    elif slack.share:
        worst = _mean_of_worst(values.min(axis=1), slack.caps.ravel())
        excess = of_example - of_example.sum() * slack.caps
        excess = np.maximum(excess, 0 * excess).sum()
    else:
        price, multiple = _priced(slack, rows.slack(distance), of_example)
        norm = numbers.sqrt(norm * norm + 2 * price)
    return {"worst": worst, "norm": norm, "length": length, "multiple": multiple, "excess": excess}


def _priced(slack: Slack, missing: NDArray, of_example: NDArray) -> tuple[Any, Any]:
    """What slack costs, and the largest factor of weights at which they exceed no cap."""
    assert slack.caps is not None
    multiple = _largest_multiple(of_example, slack.caps)
    if slack.most is None:
        return (slack.caps * missing).sum(), multiple
    outside = np.maximum(missing - slack.tube, 0 * missing)
    price = (slack.caps * outside).sum() + (slack.most * (slack.tube + 0 * missing[0])).sum()
    mass = of_example.sum(axis=0).max()
    return price, min(multiple, slack.most / mass) if mass > 0 else multiple


def _mean_of_worst(worst: NDArray, caps: NDArray) -> Any:
    """Mean of the worst values of a share: it is filled with these first."""
    order = np.argsort(worst, kind="stable")
    worst, caps = worst[order], caps[order]
    left = 1 - (np.cumsum(caps) - caps)
    return (np.maximum(np.minimum(caps, left), 0 * caps) * worst).sum()


def _largest_multiple(of_example: NDArray, caps: NDArray) -> Any:
    """Largest factor of weights at which all of them are below their caps."""
    used, caps = of_example > 0, np.broadcast_to(caps, of_example.shape)
    if not used.any():
        return 0 * caps.max()
    with np.errstate(over="ignore"):  # of what is too large, and then is not the least
        return (caps[used] / of_example[used]).min()


def largest_share(q: NDArray, caps: NDArray) -> Any:
    """Largest share for which weights that sum to 1 exceed no cap: parameter nu of NuSVC."""
    return _largest_multiple(q.sum(axis=1)[:, None], caps) / caps.sum()
