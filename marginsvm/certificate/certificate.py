"""The certificate of every fit: a lower and an upper bound, and the dual point behind them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from operator import attrgetter

import scipy.sparse as sp

from marginsvm._rounding import at_least, at_most
from marginsvm._typing import Values


@dataclass(frozen=True)
class Bounds:
    """Two bounds on the best margin, or on the least norm: a margin is one over a norm.

    Attributes
    ----------
    lower, upper : float
        The best margin, or the least norm, is between them.
    reading : {"margin", "norm"}
        The bounded quantity.
    """

    lower: float
    upper: float
    reading: str

    @property
    def margin(self) -> float:
        """Lower bound on the best margin: that of the predictor."""
        return self.lower if self.reading == "margin" else _inverse(self.upper, 0.0)

    @property
    def margin_bound(self) -> float:
        """Upper bound on the margin of any predictor."""
        return self.upper if self.reading == "margin" else _inverse(self.lower, inf)

    @property
    def norm(self) -> float:
        """Upper bound on the least norm: that of the predictor where its values are 1 or more."""
        return self.upper if self.reading == "norm" else _inverse(self.lower, inf)

    @property
    def norm_bound(self) -> float:
        """Lower bound on the norm of any predictor that fits."""
        return self.lower if self.reading == "norm" else _inverse(self.upper, 0.0)


def _inverse(x: float, towards: float) -> float:
    """``1 / x``, rounded towards 0 or infinity; infinite for ``x <= 0``."""
    return float(nextafter(1.0 / x, towards)) if x > 0.0 else inf


def relative_gap(lower: float, upper: float) -> float:
    """Relative gap between two bounds on the best margin, from 0 to 1 (dimensionless).

    The best margin is never negative, so a lower bound below 0 counts as 0. The gap is 1 without
    an upper bound, and NaN if a bound is NaN.
    """
    lower = max(lower, 0.0)
    if lower >= upper:
        return 0.0
    return 1.0 if upper == inf else (upper - lower) / upper


def _of_certificate(name: str) -> property:
    """Property that reads a fitted attribute from the certificate."""
    # without a docstring: the reference shows those of the classes
    return property(attrgetter(f"certificate_.{name}"))


class StatesMargin:
    """Fitted attributes of estimators that state a margin."""

    margin_ = _of_certificate("margin")
    margin_bound_ = _of_certificate("margin_bound")
    gap_ = _of_certificate("gap")
    separable_ = _of_certificate("feasible")
    status_ = _of_certificate("status")


class StatesNorm:
    """Fitted attributes of estimators that state a norm."""

    norm_ = _of_certificate("norm")
    norm_bound_ = _of_certificate("norm_bound")
    gap_ = _of_certificate("gap")
    violation_ = _of_certificate("violation")
    feasible_ = _of_certificate("feasible")
    status_ = _of_certificate("status")


class StatesObjectives:
    """Fitted attributes of estimators that state an objective for each output."""

    objective_ = _of_certificate("objective")
    objective_bound_ = _of_certificate("objective_bound")


@dataclass(frozen=True, kw_only=True)
class Certificate(Bounds):
    """Two bounds on the best margin, or on the least norm, with the dual point that proves one.

    A margin is one over a norm: a certificate can be read as bounds on either, as ``margin`` and
    ``margin_bound``, and as ``norm`` and ``norm_bound``. Fits of classifiers state the margin,
    those of regressors the norm.

    Attributes
    ----------
    lower, upper : float
        The best margin, or the least norm, is between them, with all rounding accounted for. The
        fitted predictor's margin is at least ``lower`` (vacuous below 0), in the units of the data
        that ``of`` names; for a soft margin, of X with one slack coordinate per row. The norm of a
        fitted regressor, including its slack if ``C < inf``, is at most ``upper`` (units of y over
        those of X); an infinite ``lower`` proves that no predictor fits.
    reading : {"margin", "norm"}
        The bounded quantity.
    status : str
        How the fit ended: ``certified``, ``separated``, ``no_margin``, ``infeasible``, ``stalled``,
        ``max_iter``, ``stopped`` or ``interrupted``.
    feasible : bool or None
        Whether some predictor separates the classes, or fits the intervals; ``separable`` is an
        alias. True: this predictor does. False: none does, since a dual point q near ``weights`` is
        proved to exist with ``A^T q`` exactly zero (and ``target^T q > 0`` for regressors). None:
        undecided.
    weights : csr_array of shape (n_samples, 1) or (n_samples, n_classes or n_outputs)
        Dual variables alpha, scaled to sum to 1, that prove the bound on all predictors: a
        distribution q over the rows. More than two classes: entry ``(i, j)`` belongs to the row of
        example i against class j. Regressors: signed, with absolute values that sum to 1.
    radius : float
        Largest norm of an example, the scale of margins (units of X). With an intercept, examples
        are measured from the mean of all or of some of them.
    of : str
        The data whose margins are bounded, in words: ``X`` or, with ``normalize=True``, the
        examples divided by their norms. ``separable`` refers to X in either case.
    nu : float or None
        If not None, the margin is the mean over the fraction nu of the examples with the smallest
        margins (dimensionless). ``separable`` refers to all examples in either case.
    violation : float
        Upper bound on the distance of a prediction from its interval (units of y).
    one_class : bool
        Whether the examples have no labels. Then ``separable`` tells whether some predictor is
        positive on all of them, that is, whether their convex hull excludes the origin.
    widened_bound : float or None
        Lower bound on the norm of all predictors whose violation is at most ``violation`` (units
        of the norm). With ``C < inf``, slack covers the violation, and it equals ``norm_bound``.
        None: no violation.
    violation_of_zero : float or None
        Violation of the predictor w = 0, with its best intercept if norms do not count it (units of
        y). None: slack covers violations.
    objective, objective_bound : float, ndarray of shape (n_outputs,), or None
        Of MaxMarginRegressor, per output: an upper bound on the objective of the predictor, and a
        lower bound on the minimum (units of y over those of X, squared).

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
    violation: float = 0.0
    one_class: bool = False
    widened_bound: float | None = None
    violation_of_zero: float | None = None
    objective: Values = None
    objective_bound: Values = None

    @property
    def separable(self) -> bool | None:
        """Alias of ``feasible`` for classifiers."""
        return self.feasible

    @property
    def gap(self) -> float:
        """Relative gap between the bounds, ``(upper - lower) / upper``.

        From 0 to 1 (dimensionless). The best margin is never negative, so a lower bound below 0
        counts as 0: the gap is 1 if no separator was found, and 0 if both bounds are 0. A predictor
        that violates its intervals is compared with the predictor of least norm among all with no
        larger violation; the gap is its violation relative to that of w = 0, if that is larger.
        """
        lower = self.lower if self.widened_bound is None else self.widened_bound
        gap = relative_gap(lower, self.upper)
        if self.violation_of_zero is None or not self.violation > 0.0:
            return gap
        if not self.violation < self.violation_of_zero:
            return 1.0
        return max(gap, self.violation / self.violation_of_zero)

    def outcome(self, max_iter: int, tol: float) -> str:
        """Describe in a sentence why a fit did not reach its goal.

        The sentence has no figures of the fit, so that Python shows it once in a grid search.

        Parameters
        ----------
        max_iter : int
            Limit of iterations of the fit.
        tol : float
            Tolerance of the relative gap (dimensionless).

        Returns
        -------
        str
        """
        if self.feasible is False and self.reading == "norm":
            return (
                "proved that no predictor fits (Farkas): some weights q near certificate_.weights "
                "have A'q = 0 exactly and target'q > 0."
            )
        if self.status == "no_margin":
            known = f"every {quantity(self.nu)} is negligible relative to the radius of the data"
            if self.feasible is False:
                known = _OVERLAP[self.one_class]
            return f"proved that {known} (certificate_.weights is the proof)."
        how = (
            "stalled"
            if self.status == "stalled"
            else f"ended after max_iter={max_iter} iterations"
        )
        return (
            f"{how} at a relative gap above tol={tol} (certificate_ has both bounds)."
        )

    @property
    def what(self) -> str:
        """The bounded quantity in words, and its data unless that is X."""
        return quantity(self.nu) + ("" if self.of == "X" else f" on {self.of}")

    def __str__(self) -> str:
        if self.reading == "margin":
            bounds = bounds_text(self.lower, self.upper, self.what)
            gap = f"relative gap {self.gap:.2g}"
            return f"{self.status}: {bounds} ({gap}), separable: {self.feasible}"
        return (
            f"{self.status}: {at_least(self.lower)} <= least norm, norm {at_most(self.upper)}, "
            f"violation {at_most(self.violation, 3)}, feasible: {self.feasible}"
        )


_OVERLAP = {  # key: one_class
    False: "the classes overlap: no predictor separates them",
    True: "the convex hull of the examples holds the origin: no predictor is positive on all",
}


def quantity(nu: float | None) -> str:
    """The maximised quantity in words: the smallest margin or, with nu, a mean of the smallest."""
    return (
        "margin" if nu is None else f"mean of the worst {100.0 * nu:.3g} % of margins"
    )


def bounds_text(lower: float, upper: float, what: str = "margin") -> str:
    """Write both bounds as an inequality; a lower bound ``<= 0`` is omitted."""
    below = f"{at_least(lower)} <= " if lower > 0 else ""
    return f"{below}best {what} <= {at_most(upper)}"


def rows_in_words(constant: float) -> str:
    """Describe the examples of ``normalize=True``, divided by their norms.

    Parameters
    ----------
    constant : float
        Value of the constant feature appended before the division; 0: none.
    """
    row = f"(x, {constant:.4g})" if constant else "x"
    return f"{row} / ||{row}||"
