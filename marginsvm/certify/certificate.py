"""The proof that comes with every fit, and a check of it that shares no code with the fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm.certify.checker.numbers import Floats, Rationals
from marginsvm.certify.checker.problem import Problem
from marginsvm.certify.checker.unwrapping import unwrapped


@dataclass(frozen=True)
class MarginCertificate:
    """Two bounds on the best possible margin, and what proves them.

    Attributes
    ----------
    margin : float
        Margin that the fitted predictor reaches at least: a lower bound (margin units, those
        of X, or what ``of`` says; for a soft margin, of X with one slack coordinate a row).
        Below 0, it claims nothing.
    margin_bound : float
        No predictor has a larger margin: the norm of ``A^T q`` (margin units). Both bounds
        allow for all rounding.
    status : str
        How the fit ended: ``certified``, ``separated``, ``no_margin``, ``stalled``,
        ``max_iter``, ``stopped`` or ``interrupted``.
    separable : bool or None
        Whether the classes can be separated: True if the predictor separates them, False if
        exact weights near ``weights`` are proved to make the classes meet, else None.
    weights : csr_array of shape (n_samples, 1) or (n_samples, n_classes)
        The distribution q that proves the upper bound. More than two classes: entry
        ``(i, j)`` belongs to example i held against class j.
    radius : float
        Largest norm of an example (units of X; with an intercept about the mean, or about that
        of some examples): the scale of margins.
    of : str
        What has these margins, in words: ``X``; or, with ``normalize=True``, the examples
        divided by their norms. ``separable`` is true of X in each case.

    Examples
    --------
    >>> from marginsvm import MaxMarginClassifier
    >>> clf = MaxMarginClassifier().fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> print(clf.certificate_)
    certified: 0.999999 <= best margin <= 1.00001 (relative gap ...), separable: True
    >>> clf.certificate_.weights.toarray().ravel()
    array([0. , 0.5, 0.5])
    """

    margin: float
    margin_bound: float
    status: str
    separable: bool | None
    weights: sp.csr_array
    radius: float
    of: str = "X"

    @property
    def gap(self) -> float:
        """Relative gap between the bounds, ``(margin_bound - margin) / margin_bound``.

        From 0 to 1 (dimensionless): the part of the upper bound that the predictor's margin
        falls short of. No best margin is negative, so a lower bound below 0 counts as 0: the
        gap is 1 where no separator was found, and 0 where both bounds are 0.
        """
        return relative_gap(self.margin, self.margin_bound)

    def outcome(self, max_iter: int, tol: float) -> str:
        """Say how a fit ended that did not reach its goal.

        Parameters
        ----------
        max_iter : int
            Rounds that the fit was allowed.
        tol : float
            Relative gap that it was to reach (dimensionless).

        Returns
        -------
        str
        """
        if self.status == "no_margin":
            if self.separable is False:
                known = "no predictor separates the classes"
            else:
                known = (
                    f"no predictor has a margin{self._where} above "
                    f"{at_most(self.margin_bound, 3)}, next to nothing beside the data's radius of "
                    f"{self.radius:.3g}"
                )
            return f"proved that {known} (certificate_.weights is the proof)."
        how = "stalled" if self.status == "stalled" else f"ended after max_iter={max_iter} rounds"
        bounds = bounds_text(self.margin, self.margin_bound, self._where)
        return f"{how} with {bounds}, a relative gap of {self.gap:.3g} > tol={tol}."

    @property
    def _where(self) -> str:
        """What has the margins, where that is not plain."""
        return "" if self.of == "X" else f" on {self.of}"

    def __str__(self) -> str:
        bounds = bounds_text(self.margin, self.margin_bound, self._where)
        return f"{self.status}: {bounds} (relative gap {self.gap:.2g}), separable: {self.separable}"


def rows_in_words(constant: float) -> str:
    """Describe the rows of ``normalize=True``, of which both bounds are.

    Parameters
    ----------
    constant : float
        The constant feature that joined every example before the division; 0: none did.
    """
    row = f"(x, {constant:.4g})" if constant else "x"
    return f"{row} / ||{row}||"


def relative_gap(lower: float, upper: float) -> float:
    """Compute :attr:`MarginCertificate.gap` of two bounds; 1 while an upper one is missing."""
    lower = max(lower, 0.0)
    if not lower < upper:
        return 0.0
    return (upper - lower) / upper if np.isfinite(upper) else 1.0


def bounds_text(lower: float, upper: float, where: str = "") -> str:
    """Both bounds as an inequality; a lower one that is not positive claims nothing."""
    below = f"{at_least(lower)} <= " if lower > 0 else ""
    return f"{below}best margin{where} <= {at_most(upper)}"


def at_least(bound: float, digits: int = 6) -> str:
    """Write a lower bound in so many digits that what is written is one, too."""
    return _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = 6) -> str:
    """Write an upper bound in so many digits that what is written is one, too."""
    return _rounded(bound, digits, ROUND_CEILING)


def _rounded(x: float, digits: int, direction: str) -> str:
    if not np.isfinite(x):
        return str(x)
    context = Context(prec=digits, rounding=direction, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return f"{float(context.create_decimal_from_float(float(x))):.{digits}g}"


@dataclass(frozen=True)
class CertificateCheck:
    """What :func:`check_certificate` found; true if the certificate holds.

    Attributes
    ----------
    margin, margin_bound : float
        Both bounds, computed again (margin units: those of ``certificate_.of``); if
        ``exact``, rounded to the pessimistic side.
    excess : float
        By how much the better of the claimed bounds is better than these, relative to the
        largest norm of an example; 0 or negative: nothing is claimed that does not hold.
    valid : bool
        Whether the claims hold, the excess being at most ``rtol``.
    reason : str
        What is wrong, or an empty string.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from marginsvm import MaxMarginClassifier, check_certificate
    >>> X, y = [[0.0], [1.0], [3.0]], [0, 0, 1]
    >>> clf = MaxMarginClassifier().fit(X, y)
    >>> clf.certificate_ = replace(clf.certificate_, margin_bound=0.9)  # a false claim
    >>> check_certificate(clf, X, y).reason
    'the weights prove 1.0, not 0.9'
    """

    margin: float
    margin_bound: float
    excess: float
    valid: bool
    reason: str

    def __bool__(self) -> bool:
        return self.valid


def check_certificate(
    estimator: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    exact: bool = False,
    rtol: float | None = None,
) -> CertificateCheck:
    """Compute both bounds of a fitted estimator again, from the data alone.

    The lower bound comes from the predictor's decision values and its norm, the upper
    bound from the certificate's weights; nothing else of the fit is used. ``separable_`` and
    ``status_`` are checked against them.

    Parameters
    ----------
    estimator : estimator
        A fitted one, of this package, with the parameters that it was fitted with; or a
        pipeline that ends in one, or a search over these, whose best estimator is checked.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data (a precomputed kernel: the kernel matrix); or the source of blocks that
        ``fit_blocks`` was given, and no y. The earlier steps of a pipeline transform it;
        where their rounding differs from that of ``fit_transform`` (PCA), ``exact`` needs
        what the last step was given.
    y : array-like of shape (n_samples,), default=None
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        As in fit; they matter for a soft margin.
    exact : bool, default=False
        Compute in rational arithmetic, in which nothing is rounded but the last root, to 60
        digits. Takes some microseconds an entry of X, which is written out if it is
        sparse. Kernels: precomputed ones only.
    rtol : float, default=None
        Rounding allowed, relative to the largest norm of an example. None: 1e-7, or none at all if
        ``exact``.

    Returns
    -------
    CertificateCheck
        True if the certificate holds, with both bounds.

    Raises
    ------
    NotFittedError
        If the estimator has not been fitted.
    TypeError
        If it is not one of this package, nor a pipeline or search that holds one.
    ValueError
        If the bounds cannot be had exactly: the values of a named kernel are rounded.

    References
    ----------
    Ji et al., Lemma A.1 (duality); Ramdas and Pena, Theorem 2 (Gordan).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MomentumMarginClassifier, check_certificate
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[:100], y[:100]
    >>> clf = MomentumMarginClassifier().fit(X, y)
    >>> bool(check_certificate(clf, X, y)), bool(check_certificate(clf, X, y, exact=True))
    (True, True)
    """
    estimator, X = unwrapped(estimator, "certificate_", X)
    if exact and estimator.kernel not in ("linear", "precomputed"):
        raise ValueError(
            f"exact=True needs exact inner products, but the values of kernel={estimator.kernel!r} "
            "are rounded; fit with kernel='precomputed', and the kernel matrix is taken as exact"
        )
    numbers = Rationals() if exact else Floats()
    rtol = (0.0 if exact else 1e-7) if rtol is None else rtol
    problem = Problem(estimator, X, y, sample_weight, numbers)
    claim = estimator.certificate_
    lower, upper = problem.lower_bound(), problem.upper_bound(claim.weights)
    found = numbers.down(lower), numbers.up(upper)
    reasons, excess = [], float("inf")
    if np.isfinite([claim.margin, claim.margin_bound]).all():
        margin, bound = numbers.array([claim.margin, claim.margin_bound])
        scale = numbers.array(problem.scale)[()]
        too_good = (margin - max(lower, 0 * lower)) / scale  # below 0, it claims nothing
        too_small = (upper - bound) / scale
        excess = numbers.up(max(too_good, too_small))
        if not too_good <= rtol:
            reasons.append(f"the predictor's margin is {found[0]!r}, not {claim.margin!r}")
        if not too_small <= rtol:
            reasons.append(f"the weights prove {found[1]!r}, not {claim.margin_bound!r}")
    else:
        reasons.append(f"the bounds {claim.margin} and {claim.margin_bound} are not finite")
    if claim.of != (named := rows_in_words(estimator.constant_) if estimator.normalize else "X"):
        reasons.append(f"the margins are of {named}, not of {claim.of}")
    if not problem.is_distribution(claim.weights):
        reasons.append("the weights are no distribution over the rows")
    reasons += _outcome(estimator, problem)
    return CertificateCheck(*found, excess, not reasons, "; ".join(reasons))


def _outcome(estimator: Any, problem: Problem) -> Iterator[str]:
    """What is wrong with ``separable_`` and ``status_``, given that the bounds are right."""
    claim, hard = estimator.certificate_, np.isinf(estimator.C)
    close = claim.margin_bound / problem.scale
    if claim.separable is True and not problem.separation() > 0:
        yield "separable is True, but the predictor does not separate the classes"
    if claim.separable is False and not problem.overlap_is_proved_by(claim.weights):
        yield "separable is False, but no exact weights near these are known to prove it"
    positive = claim.margin > 0
    holds = {
        "certified": positive and claim.gap <= estimator.tol,
        "separated": problem.separation() > 0,
        "no_margin": hard
        and (
            claim.separable is False
            or close <= max(estimator.tol, getattr(estimator, "epsilon", 0.0), 1e-6)
        ),
    }
    if not holds.get(claim.status, True):
        yield (
            f"the status is {claim.status!r}, but the bounds are {claim.margin!r} and "
            f"{claim.margin_bound!r}, with tol={estimator.tol}"
        )
