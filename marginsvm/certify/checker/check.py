"""Whether the claims of a fitted estimator are true of its training data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from marginsvm.certify.checker.claims import (
    OF_MARGINS,
    OF_NORMS,
    published,
    relative_gap,
    rows_in_words,
)
from marginsvm.certify.checker.host import examples_on_host, on_host, with_attributes_on_host
from marginsvm.certify.checker.numbers import Floats, Rationals
from marginsvm.certify.checker.problem import Problem
from marginsvm.certify.checker.published import is_one_of, wrong_attributes, wrong_copies
from marginsvm.certify.checker.regression import NormCheck, NormProblem, checked_norms
from marginsvm.certify.checker.unwrapping import unwrapped

_FLOAT_RTOL = 1e-7  # of the largest norm of an example: far above the rounding of float64 sums
_NEGLIGIBLE = 1e-6  # of the scale: an upper bound at which any fit may give up on a separator
_NU_RTOL = 1e-12  # of ``nu_``, which is no bound: sums of weights and quotients of them, in floats
_STATUSES_WITHOUT_CLAIM = ("stalled", "max_iter", "stopped", "interrupted")


@dataclass(frozen=True)
class CertificateCheck:
    """What :func:`check_certificate` found; true if the certificate holds.

    Attributes
    ----------
    margin, margin_bound : float
        Both bounds, computed again (margin units: those of ``certificate_.of``); if
        ``exact``, rounded to the pessimistic side.
    excess : float
        By how much the claimed bounds are better than the recomputed ones, relative to the
        largest norm of an example. 0 or negative: nothing is claimed that does not hold.
    valid : bool
        Whether all claims hold, the excess being at most ``rtol``.
    reason : str
        What is wrong, or an empty string.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from marginsvm import MaxMarginClassifier, check_certificate
    >>> X, y = [[0.0], [1.0], [3.0]], [0, 0, 1]
    >>> clf = MaxMarginClassifier().fit(X, y)
    >>> clf.margin_bound_ = 0.9  # not what the certificate says
    >>> check_certificate(clf, X, y).reason
    'margin_bound_ is 0.9, not 1.0000...'
    >>> clf.certificate_ = replace(clf.certificate_, margin_bound=0.9)  # a false claim
    >>> check_certificate(clf, X, y).reason
    'the weights prove 1.0, not 0.9; gap_ is ...'
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
    bounds: Any = None,
) -> CertificateCheck | NormCheck:
    """Compute both bounds of a fitted estimator again, from the data alone.

    The lower bound comes from the predictor's decision values and its norm, the upper
    bound from the certificate's weights; nothing else of the fit is used. What the certificate
    says of these, and every fitted attribute that repeats it, is held against them.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this package, whose parameters have not been changed since; or a
        pipeline that ends in one, or a search over these, whose best estimator is checked.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data (a precomputed kernel: the kernel matrix); or the source of blocks that
        ``fit_blocks`` was given, and no y. If a pipeline is given, its earlier steps transform X.
        For steps whose ``transform`` rounds differently from their ``fit_transform`` (PCA),
        ``exact`` needs the last step and the X that it was fitted to.
    y : array-like of shape (n_samples,), default=None
        Class labels, or targets.
    sample_weight : array-like of shape (n_samples,), default=None
        As in fit. For a soft margin, they and the estimator's ``class_weight`` matter; for a hard
        margin, only whether they are 0.
    exact : bool, default=False
        Whether to compute in rational arithmetic, in which only the last root is rounded, to 60
        digits. This takes some microseconds for each entry of X, which is written out if it is
        sparse. Of kernels, only precomputed ones can be checked exactly.
    rtol : float, default=None
        Rounding allowed, relative to the largest norm of an example. None: 1e-7, or none at all if
        ``exact``.
    bounds : array-like of shape (n_samples, 2) or (n_samples, n_outputs, 2), default=None
        Of a regressor: as in fit.

    Returns
    -------
    CertificateCheck or, of a regressor, NormCheck
        True if the certificate holds, with both bounds.

    Raises
    ------
    NotFittedError
        If the estimator has not been fitted.
    TypeError
        If it is not one of this package, nor a pipeline or search that holds one.
    ValueError
        If y has other classes than the estimator was fitted to; or if the bounds cannot be had
        exactly, as the values of a named kernel are rounded.

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
    outermost, (estimator, X) = estimator, unwrapped(estimator, "certificate_", X)
    fields = OF_NORMS if is_regressor(estimator) else OF_MARGINS
    wrong = [*wrong_copies(outermost, estimator, fields)]
    estimator = with_attributes_on_host(estimator)
    X, y, sample_weight = examples_on_host(X), on_host(y), on_host(sample_weight)
    numbers = Rationals() if exact else Floats()
    rtol = (0.0 if exact else _FLOAT_RTOL) if rtol is None else rtol
    if is_regressor(estimator):
        regression = NormProblem(estimator, X, y, sample_weight, bounds, numbers)
        return checked_norms(regression, estimator, rtol, wrong)
    if exact and estimator.kernel not in ("linear", "precomputed"):
        raise ValueError(
            f"exact=True needs exact inner products, but the values of kernel={estimator.kernel!r} "
            "are rounded; fit with kernel='precomputed', and the kernel matrix is taken as exact"
        )
    return _checked_margins(
        Problem(estimator, X, y, sample_weight, numbers), estimator, rtol, wrong
    )


def _checked_margins(
    problem: Problem, estimator: Any, rtol: float, wrong: list[str]
) -> CertificateCheck:
    """Hold the claims of a classifier against what is found again; what else is wrong is known."""
    claim, numbers = estimator.certificate_, problem.numbers
    lower, upper = problem.lower_bound(), problem.upper_bound(claim.weights)
    margin, margin_bound = numbers.down(lower), numbers.up(upper)
    # a margin below 0 claims nothing, as no best margin is
    margin_excess = _excess(problem, claim.margin, max(lower, 0 * lower), 1)
    bound_excess = _excess(problem, claim.margin_bound, upper, -1)
    excess, reasons = numbers.up(max(margin_excess, bound_excess)), []
    if not margin_excess <= rtol:
        reasons.append(f"the predictor's margin is {margin!r}, not {claim.margin!r}")
    if not bound_excess <= rtol:
        reasons.append(f"the weights prove {margin_bound!r}, not {claim.margin_bound!r}")
    if not problem.is_distribution(claim.weights):
        reasons.append("the weights are no distribution over the rows")
    reasons += [*_wrong_words(estimator), *_wrong_separable(claim, problem)]
    if excess < inf:  # the bounds are numbers
        expected = published(claim, OF_MARGINS)
        reasons += [*_wrong_status(estimator, problem), *wrong_attributes(estimator, expected)]
        reasons += _wrong_nu(estimator, problem)
    reasons += wrong
    return CertificateCheck(margin, margin_bound, excess, not reasons, "; ".join(reasons))


def _excess(problem: Problem, claimed: float, proved: Any, direction: int) -> Any:
    """By how much a claimed bound is better than what is proved, relative to the scale.

    Infinite if either is not a number, so that it is above any tolerance.

    Parameters
    ----------
    problem : Problem
    claimed : float
    proved : number
    direction : {1, -1}
        1 for a lower bound, which is better if it is larger; -1 for an upper one.
    """
    if not (isinstance(claimed, Real) and np.isfinite(claimed)):
        return inf
    number = problem.numbers.number
    excess = direction * (number(claimed) - proved) / number(problem.scale)
    return inf if np.isnan(float(excess)) else excess


def _wrong_words(estimator: Any) -> Iterator[str]:
    """What is wrong with the description of the rows that the margins are of."""
    nu, share = getattr(estimator, "nu", None), getattr(estimator.certificate_, "nu", None)
    if share != nu:
        yield f"the margins are those with nu={nu}, not with nu={share}"
    claimed = estimator.certificate_.of
    named = rows_in_words(estimator.constant_) if estimator.normalize else "X"
    if claimed != named:
        yield f"the margins are of {named}, not of {claimed}"


def _wrong_separable(claim: Any, problem: Problem) -> Iterator[str]:
    """What is wrong with ``separable``."""
    if not any(claim.separable is word for word in (True, False, None)):
        yield f"separable is {claim.separable!r}, which is none of True, False and None"
    elif claim.separable is None:
        return
    elif claim.separable and not problem.separation() > 0:
        yield "separable is True, but the predictor does not separate the classes"
    elif not claim.separable and not problem.overlap_is_proved_by(claim.weights):
        yield "separable is False, but no exact weights near these are known to prove it"


def _wrong_nu(estimator: Any, problem: Problem) -> Iterator[str]:
    """What is wrong with ``nu_``, which only the hinge loss has: it follows from the weights."""
    found, nu = getattr(estimator, "nu_", None), problem.nu(estimator.certificate_.weights)
    if nu is None and found is not None:
        yield f"nu_ is {found!r}, but slack does not cost its size"
    elif nu is not None and not (isinstance(found, float) and abs(found - nu) <= _NU_RTOL * nu):
        yield f"nu_ is {found!r}, but the weights say {float(nu)!r}"


def _wrong_status(estimator: Any, problem: Problem) -> Iterator[str]:
    """What is wrong with ``status``, given that the bounds are right.

    A comparison with a bound or a tolerance that is NaN is false, and no status is taken for true
    unless a comparison says so.
    """
    claim, tol = estimator.certificate_, estimator.tol
    if is_one_of(claim.status, _STATUSES_WITHOUT_CLAIM):
        return
    negligible = max(tol, getattr(estimator, "epsilon", 0.0), _NEGLIGIBLE)
    inseparable = claim.separable is not None and not claim.separable
    nothing_left = inseparable or claim.margin_bound / problem.scale <= negligible
    holds = {
        "certified": claim.margin > 0 and relative_gap(claim.margin, claim.margin_bound) <= tol,
        "separated": problem.separation() > 0,
        "no_margin": np.isinf(estimator.C) and nothing_left,
    }
    if not is_one_of(claim.status, holds):
        known = ", ".join([*holds, *_STATUSES_WITHOUT_CLAIM])
        yield f"the status is {claim.status!r}, which is none of {known}"
    elif not holds[claim.status]:
        yield (
            f"the status is {claim.status!r}, but the bounds are {claim.margin!r} and "
            f"{claim.margin_bound!r}, with tol={tol}"
        )
