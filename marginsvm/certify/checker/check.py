"""Whether the claims of a fitted estimator are true of its training data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite, isnan
from numbers import Real
from typing import Any

from sklearn.base import is_regressor

from marginsvm.certify.checker.kernel_space import NoInnerProductsError
from marginsvm.certify.checker.numbers import Floats, Rationals
from marginsvm.certify.checker.objectives import wrong_objectives
from marginsvm.certify.checker.outliers import wrong_offset
from marginsvm.certify.checker.problem import Problem
from marginsvm.certify.checker.proof import Proved
from marginsvm.certify.checker.published import is_one_of, wrong_attributes, wrong_copies
from marginsvm.certify.claims import (
    PUBLISHED,
    Bounds,
    published,
    relative_gap,
    rows_in_words,
)
from marginsvm.certify.host import examples_on_host, on_host, with_attributes_on_host
from marginsvm.certify.unwrapping import unwrapped

_FLOAT_RTOL = 1e-7  # of the largest norm of an example: far above the rounding of float64 sums
_NEGLIGIBLE = 1e-6  # of the scale: an upper bound at which any fit may give up on a separator
_NU_RTOL = 1e-12  # of ``nu_``, which is no bound: sums of weights and quotients of them, in floats
_ZERO_RTOL = 1e-9  # of the violation of zero, which the fit and the check round differently
_STATUSES_WITHOUT_CLAIM = ("stalled", "max_iter", "stopped", "interrupted")


@dataclass(frozen=True)
class CertificateCheck(Bounds):
    """What :func:`check_certificate` found; true if the certificate holds.

    Attributes
    ----------
    lower, upper : float
        Both bounds, computed again; if ``exact``, rounded to the pessimistic side (units of what
        is bounded). They can be read as ``margin`` and ``margin_bound``, and as ``norm`` and
        ``norm_bound``: a margin is one over a norm.
    reading : {"margin", "norm"}
        What they are bounds on: the best margin or, of a regressor, the least norm.
    violation : float
        Of a regressor: largest distance of a prediction from its interval (units of y).
    excess : float
        By how much the best of the claims is better than these: of margins, and of weights,
        relative to the largest norm of an example; of norms, relative to the claim; of violations,
        relative to the largest prediction or end of an interval. 0 or negative: nothing is claimed
        that does not hold.
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
    >>> clf.certificate_ = replace(clf.certificate_, upper=0.9)  # a false claim
    >>> check_certificate(clf, X, y).reason
    'the weights prove 1.0..., not 0.9; gap_ is ...'
    """

    violation: float
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
) -> CertificateCheck:
    """Compute both bounds of a fitted estimator again, from the data alone.

    One bound comes from the predictor's decision values and its norm, the other one
    from the certificate's weights. What the certificate and the fitted attributes say is held
    against them.

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
        Class labels, or targets; outlier detectors have none.
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
    CertificateCheck
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
    reading = "norm" if is_regressor(estimator) else "margin"
    wrong = [*wrong_copies(outermost, estimator, PUBLISHED[reading])]
    estimator = with_attributes_on_host(estimator)
    X, y, sample_weight = examples_on_host(X), on_host(y), on_host(sample_weight)
    kernel = getattr(estimator, "kernel", "linear")
    if exact and kernel not in ("linear", "precomputed"):
        raise ValueError(
            f"exact=True needs exact inner products, but the values of kernel={kernel!r} "
            "are rounded; fit with kernel='precomputed', and the kernel matrix is taken as exact"
        )
    numbers = Rationals() if exact else Floats()
    rtol = (0.0 if exact else _FLOAT_RTOL) if rtol is None else rtol
    try:
        problem = Problem.of(estimator, X, y, sample_weight, numbers, bounds)
        if reading == "norm":
            wrong += wrong_objectives(problem, estimator, rtol)
        return _checked(problem, estimator, reading, rtol, wrong)
    except NoInnerProductsError as error:
        return CertificateCheck(0.0, inf, reading, inf, inf, False, str(error))


def _checked(
    problem: Problem, estimator: Any, reading: str, rtol: float, wrong: list[str]
) -> CertificateCheck:
    """Hold the claims of an estimator against what is found again; what else is wrong is known."""
    claim = estimator.certificate_
    q = problem.weights(claim.weights)
    read = _read_margins if reading == "margin" else _read_norms
    (lower, upper), violation, found = read(problem, problem.proved(q), claim, q)
    reasons = [text for text, excess in found.items() if not excess <= rtol]
    if claim.reading != reading:
        reasons.append(f"the bounds are on the {reading}, not on the {claim.reading}")
    if reading == "margin":
        if not problem.is_distribution(claim.weights, q):
            reasons.append("the weights are no distribution over the rows")
        reasons += _wrong_words(estimator)
    reasons += _wrong_existence(estimator, problem, reading, q)
    if problem.wrong_signs():
        reasons.append("a coefficient has a sign that monotonic_cst does not allow")
    excess = problem.numbers.up(max(found.values()))
    if excess < inf:  # the bounds are numbers
        reasons += _wrong_status(estimator, problem, reading)
        reasons += wrong_attributes(estimator, published(claim, PUBLISHED[reading]))
        reasons += _wrong_nu(estimator, problem, q)
    reasons += wrong_offset(estimator, problem, rtol)
    reasons += wrong
    text = "; ".join(reasons)
    return CertificateCheck(lower, upper, reading, violation, excess, not reasons, text)


Found = tuple[tuple[float, float], float, dict[str, Any]]


def _read_margins(problem: Problem, proof: Proved, claim: Any, q: Any) -> Found:
    """Both bounds on the margin, and by how much claims are better, relative to the scale."""
    numbers, scale = problem.numbers, problem.numbers.number(problem.scale)
    lower = problem.rounded(proof.margin, -1)
    upper = problem.rounded(proof.margin_bound, 1)
    margin, margin_bound = numbers.down(lower), numbers.up(upper)
    # a margin below 0 claims nothing, as no best margin is
    positive = max(lower, 0 * lower)
    found = {
        f"the predictor's margin is {margin!r}, not {claim.lower!r}": _above(
            claim.lower, lambda claimed: (numbers.number(claimed) - positive) / scale
        ),
        f"the weights prove {margin_bound!r}, not {claim.upper!r}": _above(
            claim.upper, lambda claimed: (upper - numbers.number(claimed)) / scale
        ),
    }
    return (margin, margin_bound), 0.0, found


def _read_norms(problem: Problem, proof: Proved, claim: Any, q: Any) -> Found:
    """Both bounds on the norm, and by how much claims are better.

    Those of weights are compared as lengths of ``A^T q``, over the largest norm of an example.
    """
    numbers, number = problem.numbers, problem.numbers.number
    allowed = 1 + numbers.rounding_error
    norm, violation, length = proof.norm * allowed, proof.violation, proof.length * allowed
    unit = float(problem.radius) or 1.0
    infeasible = claim.lower == inf
    proved = infeasible and problem.is_hard and problem.none_fits(q)
    widening = claim.violation if problem.is_hard and _is_finite(claim.violation) else 0.0

    def of_bound(claimed: float, delta: float) -> float:
        if q is None or not claimed > 0.0:
            return inf if q is None else -inf
        bound = proof.norm_bound(number(delta)) / allowed
        if not length > 0:  # caps alone limit the bound, unless it is infinite
            return -inf if bound == inf else float(1 - bound / number(claimed))
        return float(length * (1 - bound / number(claimed))) / unit

    found = {
        "norm": _above(claim.upper, lambda x: float(norm - number(x)) / (x or 1.0)),
        "violation": _above(
            claim.violation, lambda x: float(violation - number(x)) / problem.size_of_values()
        ),
        "norm_bound": -inf if infeasible else _above(claim.lower, lambda x: of_bound(x, 0.0)),
        "widened_bound": _above(claim.widened_bound, lambda x: of_bound(x, widening)),
    }
    found = {f"{name} does not hold": excess for name, excess in found.items()}
    if infeasible and not proved:
        found["no exact weights near these are known to prove that nothing fits"] = inf
    least = proof.norm_bound() / allowed
    bound = inf if proved else numbers.down(max(least, 0 * least)) if least < inf else 0.0
    return (bound, numbers.up(norm)), numbers.up(violation), found


def _above(claimed: Any, excess: Any) -> Any:
    """By how much a claim is better than what is proved; infinite if either is not a number.

    Infinite is above any tolerance.
    """
    found = excess(claimed) if _is_finite(claimed) else inf
    return inf if isnan(float(found)) else found


def _is_finite(claimed: Any) -> bool:
    return isinstance(claimed, Real) and isfinite(claimed)


def _wrong_words(estimator: Any) -> Iterator[str]:
    """What is wrong with the description of the rows that the margins are of."""
    nu, share = getattr(estimator, "nu", None), getattr(estimator.certificate_, "nu", None)
    if share != nu:
        yield f"the margins are those with nu={nu}, not with nu={share}"
    claimed = estimator.certificate_.of
    named = rows_in_words(estimator.constant_) if estimator.normalize else "X"
    if claimed != named:
        yield f"the margins are of {named}, not of {claimed}"


def _wrong_existence(estimator: Any, problem: Problem, reading: str, q: Any) -> Iterator[str]:
    """What is wrong with ``separable``, which regressors call ``feasible``."""
    claim = estimator.certificate_
    name, known = ("separable" if reading == "margin" else "feasible"), claim.feasible
    if not any(known is word for word in (True, False, None)):
        yield f"{name} is {known!r}, which is none of True, False and None"
    elif reading == "norm":
        if known is not None and not (claim.violation == 0.0 if known else claim.lower == inf):
            yield f"feasible is {known!r}, which the bounds do not say"
    elif known and not problem.separation() > 0:
        yield "separable is True, but the predictor does not separate the classes"
    elif known is False and not problem.none_fits(q):
        yield "separable is False, but no exact weights near these are known to prove it"


def _wrong_nu(estimator: Any, problem: Problem, q: Any) -> Iterator[str]:
    """What is wrong with ``nu_``, which only the hinge loss has: it follows from the weights."""
    found, nu = getattr(estimator, "nu_", None), problem.nu(q)
    if nu is None and found is not None:
        yield f"nu_ is {found!r}, but slack does not cost its size"
    elif nu is not None and not (isinstance(found, float) and abs(found - nu) <= _NU_RTOL * nu):
        yield f"nu_ is {found!r}, but the weights say {float(nu)!r}"


def _wrong_status(estimator: Any, problem: Problem, reading: str) -> Iterator[str]:
    """What is wrong with ``status``, given that the bounds are right.

    A comparison with a bound or a tolerance that is NaN is false, and no status is taken for true
    unless a comparison says so.
    """
    claim, tol = estimator.certificate_, estimator.tol
    if is_one_of(claim.status, _STATUSES_WITHOUT_CLAIM):
        return
    holds = _statuses(estimator, problem, reading)
    if not is_one_of(claim.status, holds):
        known = ", ".join([*holds, *_STATUSES_WITHOUT_CLAIM])
        yield f"the status is {claim.status!r}, which is none of {known}"
    elif not holds[claim.status]:
        yield (
            f"the status is {claim.status!r}, but the bounds are {claim.lower!r} and "
            f"{claim.upper!r}, with tol={tol}"
        )


def _statuses(estimator: Any, problem: Problem, reading: str) -> dict[str, bool]:
    """Whether each status that claims something would be true."""
    claim, tol = estimator.certificate_, estimator.tol
    if reading == "norm":
        allowed = tol * problem.violation_of_zero() * (1.0 + _ZERO_RTOL)
        near = not problem.is_hard or claim.violation <= allowed
        gap = relative_gap(claim.widened_bound, claim.upper)
        return {"certified": near and gap <= tol, "infeasible": claim.lower == inf}
    negligible = max(tol, getattr(estimator, "epsilon", 0.0), _NEGLIGIBLE)
    nothing_left = claim.feasible is False or claim.upper / problem.scale <= negligible
    return {
        "certified": claim.lower > 0 and relative_gap(claim.lower, claim.upper) <= tol,
        "separated": problem.separation() > 0,
        "no_margin": problem.is_hard and nothing_left,
    }
