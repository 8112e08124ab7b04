"""The certificate that comes with every fit: two bounds, and what proves them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np
import scipy.sparse as sp

from marginsvm.certify.claims import Bounds, relative_gap


@dataclass(frozen=True, kw_only=True)
class Certificate(Bounds):
    """Two bounds on the best margin, or on the least norm, and what proves them.

    A margin is one over a norm: a certificate can be read as bounds on either, as ``margin`` and
    ``margin_bound``, and as ``norm`` and ``norm_bound``. Fits of classifiers state the margin,
    those of regressors the norm.

    Attributes
    ----------
    lower, upper : float
        The best margin, or the least norm, is between them, with all rounding allowed for. The
        margin of the fitted predictor is ``lower`` at least (a bound below 0 says nothing), in
        margin units: those of X or of what ``of`` names; for a soft margin, of X with one slack
        coordinate for each row. The norm of a fitted regressor is ``upper`` at most, that of its
        slack included with ``C < inf`` (units of y over those of X); if ``lower`` is infinite, it
        is proved that no predictor fits.
    reading : {"margin", "norm"}
        What they are bounds on.
    status : str
        How the fit ended: ``certified``, ``separated``, ``no_margin``, ``infeasible``, ``stalled``,
        ``max_iter``, ``stopped`` or ``interrupted``.
    feasible : bool or None
        Whether some predictor separates the classes, or fits the intervals; ``separable`` is the
        same. True: this one does. False: weights near ``weights`` are proved to exist for which
        ``A^T q`` is exactly zero (and the gain positive), so that none does. None: neither is
        known.
    weights : csr_array of shape (n_samples, 1) or (n_samples, n_classes or n_outputs)
        What proves the bound that no predictor exceeds: a distribution q over the rows. More
        than two classes: entry ``(i, j)`` belongs to example i held against class j. Regressors:
        weights of either sign, whose absolute values sum to 1.
    radius : float
        Largest norm of an example, the scale of margins (units of X). With an intercept, examples
        are measured from the mean of all or of some of them.
    of : str
        What the margins are those of, in words: ``X`` or, with ``normalize=True``, the examples
        divided by their norms. ``separable`` is about X in either case.
    nu : float or None
        If not None, margins are means of the worst margins of this share of the examples
        (dimensionless). ``separable`` is about all examples in either case.
    route : tuple of (str, int)
        The methods of the fit, in turn, and how many rounds each has played: more than one only
        where :class:`~marginsvm.MaxMarginClassifier` changed its method.
    violation : float
        Largest distance of a prediction from its interval, at most (units of y).
    one_class : bool
        Whether the examples have no labels: ``separable`` is then whether some predictor has
        positive values on all of them, so that their convex hull does not hold the origin.
    widened_bound : float or None
        No predictor of a smaller norm has a violation of ``violation`` or less (units of the norm).
        With ``C < inf``, slack makes up for the violation: it is equal to ``norm_bound``. None:
        nothing is violated.

    Examples
    --------
    >>> from marginsvm import DualLpRegressor, MaxMarginClassifier
    >>> clf = MaxMarginClassifier().fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> print(clf.certificate_)
    certified: 0.999999 <= best margin <= 1.00001 (relative gap ...), separable: True
    >>> clf.certificate_.weights.toarray().ravel()
    array([0. , 0.5, 0.5])
    >>> reg = DualLpRegressor(fit_intercept=False, random_state=0).fit([[3.0, 4.0]], [10.0])
    >>> print(reg.certificate_)
    certified: 1.99999 <= least norm, norm 2.00001, violation ..., feasible: None
    """

    status: str
    feasible: bool | None
    weights: sp.csr_array
    radius: float
    of: str = "X"
    nu: float | None = None
    route: tuple[tuple[str, int], ...] = ()
    violation: float = 0.0
    one_class: bool = False
    widened_bound: float | None = None

    @property
    def separable(self) -> bool | None:
        """What ``feasible`` is called where there are classes."""
        return self.feasible

    @property
    def gap(self) -> float:
        """Relative gap between the bounds, ``(upper - lower) / upper``.

        From 0 to 1 (dimensionless): by which fraction of the upper bound the predictor's margin
        falls short of it. No best margin is negative, so a lower bound below 0 counts as 0: the
        gap is 1 where no separator was found, and 0 where both bounds are 0. A predictor that
        violates its intervals is compared with the shortest one that violates them by no more.
        """
        lower = self.lower if self.widened_bound is None else self.widened_bound
        return relative_gap(lower, self.upper)

    def outcome(self, max_iter: int, tol: float) -> str:
        """Describe the end of a fit that did not reach its goal, in a sentence.

        It has no figures of the fit, so that Python shows it once in a search over many fits.

        Parameters
        ----------
        max_iter : int
            Number of rounds that the fit was allowed.
        tol : float
            Relative gap that the fit was to reach (dimensionless).

        Returns
        -------
        str
        """
        if self.feasible is False and self.reading == "norm":
            return (
                "proved that no predictor fits: weights near certificate_.weights have a "
                "combination of examples that is exactly zero, and a positive gain."
            )
        if self.status == "no_margin":
            known = f"every {quantity(self.nu)} is negligible beside the radius of the data"
            if self.feasible is False:
                known = _OVERLAP[self.one_class]
            return f"proved that {known} (certificate_.weights is the proof)."
        how = "stalled" if self.status == "stalled" else f"ended after max_iter={max_iter} rounds"
        return f"{how} at a relative gap above tol={tol} (certificate_ has both bounds)."

    @property
    def what(self) -> str:
        """Words for what is bounded, and what it is that of, unless that is X itself."""
        return quantity(self.nu) + ("" if self.of == "X" else f" on {self.of}")

    def __str__(self) -> str:
        if self.reading == "margin":
            bounds = bounds_text(self.lower, self.upper, self.what)
            return (
                f"{self.status}: {bounds} (relative gap {self.gap:.2g}), separable: {self.feasible}"
            )
        return (
            f"{self.status}: {at_least(self.lower)} <= least norm, norm {at_most(self.upper)}, "
            f"violation {at_most(self.violation, 3)}, feasible: {self.feasible}"
        )


_OVERLAP = {  # by whether there is one class
    False: "the classes overlap: no predictor separates them",
    True: "the convex hull of the examples holds the origin: no predictor is positive on all",
}


def quantity(nu: float | None) -> str:
    """Words for what is maximised: the smallest margin, or the mean over a share of the worst."""
    return "margin" if nu is None else f"mean of the worst {100.0 * nu:.3g} % of margins"


def bounds_text(lower: float, upper: float, what: str = "margin") -> str:
    """Write both bounds as an inequality; a lower one that is not positive is left out."""
    below = f"{at_least(lower)} <= " if lower > 0 else ""
    return f"{below}best {what} <= {at_most(upper)}"


def at_least(bound: float, digits: int = 6) -> str:
    """Write a lower bound, rounded down, so that the written number is a lower bound as well."""
    return _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = 6) -> str:
    """Write an upper bound, rounded up, so that the written number is an upper bound as well."""
    return _rounded(bound, digits, ROUND_CEILING)


def _rounded(x: float, digits: int, direction: str) -> str:
    if not np.isfinite(x):
        return str(x)
    context = Context(prec=digits, rounding=direction, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return f"{float(context.create_decimal_from_float(float(x))):.{digits}g}"
