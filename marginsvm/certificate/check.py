"""Check of a fitted estimator's certificate against its training data."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from math import inf, isfinite, isnan
from numbers import Real
from typing import TypeGuard

import joblib
import numpy as np
from sklearn.base import is_outlier_detector, is_regressor

from marginsvm._typing import Values
from marginsvm.certificate.bounded import Floats, Numbers, Rationals, largest_multiple
from marginsvm.certificate.certificate import (
    Bounds,
    Certificate,
    StatesObjectives,
    relative_gap,
    rows_in_words,
)
from marginsvm.certificate.exact_examples import NoInnerProductsError
from marginsvm.certificate.reading import Data, FittedPrograms
from marginsvm.certificate.unwrapping import FittedEstimator, layers, unwrapped
from marginsvm.problem.matrix import examples_on_host, on_host, with_attributes_on_host

RTOL = 1e-7  # relative to the largest norm of an example; far above the rounding of float64 sums
# upper bound (in radii) at which any fit may stop without a separator
NEGLIGIBLE = 1e-6
NU_RTOL = 1e-12  # relative error of ``nu_``, a quotient of sums of alpha in floats
ROUNDED_SHARE = 1e-12  # rounding of the share of the weight that is outside
ZERO_RTOL = 1e-9  # relative error of the violation of w = 0, which fit and check round differently
SUM_TOLERANCE = 1e-9  # rounding of the sum of the weights, which is 1
OBJECTIVES = ("objective", "objective_bound")
NO_CLAIM = ("stalled", "max_iter", "stopped", "interrupted")
ABSENT = object()


@dataclass(frozen=True)
class CertificateCheck(Bounds):
    """Result of :func:`~marginsvm.check_certificate`; true if the certificate holds.

    Attributes
    ----------
    lower, upper : float
        Both bounds, recomputed; if ``exact``, rounded outward (units of the margin or norm). They
        can be read as ``margin`` and ``margin_bound``, and as ``norm`` and ``norm_bound``: a margin
        is one over a norm.
    reading : {"margin", "norm"}
        The bounded quantity: the best margin or, of a regressor, the least norm.
    violation : float
        Of a regressor: largest distance of a prediction from its interval (units of y).
    excess : float
        Largest excess of a claimed value over the recomputed one. Margins and dual bounds:
        relative to the largest norm of an example; norms: relative to the claim; violations:
        relative to the largest prediction or end of an interval. All claims hold exactly if
        it is 0 or negative.
    valid : bool
        Whether all claims hold, with an excess of at most ``rtol``.
    reason : str
        The claims that fail, or an empty string.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from marginsvm import MaxMarginClassifier, check_certificate
    >>> X, y = [[0.0], [1.0], [3.0]], [0, 0, 1]
    >>> clf = MaxMarginClassifier().fit(X, y)
    >>> clf.certificate_ = replace(clf.certificate_, upper=0.9)  # a false claim
    >>> check_certificate(clf, X, y).reason
    'the weights prove 1.0..., not 0.9'
    """

    violation: float
    excess: float
    valid: bool
    reason: str

    def __bool__(self) -> bool:
        return self.valid


def check_certificate(
    estimator: object,
    X: object,
    y: object = None,
    sample_weight: object = None,
    *,
    exact: bool = False,
    rtol: float | None = None,
    bounds: object = None,
) -> CertificateCheck:
    """Recompute both bounds of a fitted estimator from the data, and compare its claims.

    One bound comes from the predictor's decision values and its norm, the other one from the
    certificate's dual variables. The certificate and the fitted attributes are compared with them.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this package with unchanged parameters; or a pipeline that ends in
        one, or a search over these, whose best estimator is checked.
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
        Whether to compute in rational arithmetic, where only the final root is rounded, to 60
        digits. This takes some microseconds per entry of X; sparse X is converted to dense. Of
        kernels, only ``precomputed`` can be checked exactly.
    rtol : float, default=None
        Tolerance for rounding, relative to the largest norm of an example. None: 1e-7, or 0 if
        ``exact``.
    bounds : array-like of shape (n_samples, 2) or (n_samples, n_outputs, 2), default=None
        Intervals of a regressor, as in fit.

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
        If y has other classes than in fit; or if ``exact`` is set for a named kernel, whose values
        are rounded.

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
    fitted: FittedEstimator
    fitted, X = unwrapped(estimator, "certificate_", X)
    reading = "norm" if is_regressor(fitted) else "margin"
    wrong = [*_wrong_copies(estimator, fitted)]
    fitted = with_attributes_on_host(fitted)
    X = examples_on_host(X)
    y = on_host(y)
    sample_weight = on_host(sample_weight)
    kernel = getattr(fitted, "kernel", "linear")
    if exact and kernel not in ("linear", "precomputed"):
        raise ValueError(
            f"exact=True needs exact inner products, but the values of kernel={kernel!r} "
            "are rounded; fit with kernel='precomputed', and the kernel matrix is taken as exact"
        )
    numbers: Numbers = Rationals() if exact else Floats(0.0)
    data = Data.of(fitted, X, y, sample_weight, bounds)
    try:
        # an infinite objective claims nothing
        with np.errstate(over="ignore", divide="ignore"):
            found = FittedPrograms(fitted, data, numbers)
            rtol = (0.0 if exact else RTOL) if rtol is None else rtol
            check = (_OfNorms if reading == "norm" else _OfMargins)(
                found, reading, rtol
            )
            return check.result(wrong)
    except NoInnerProductsError as error:
        return CertificateCheck(0.0, inf, reading, inf, inf, False, str(error))


class _Check:
    """Comparison of an estimator's claims with recomputed bounds; failures are collected."""

    def __init__(self, found: FittedPrograms, reading: str, rtol: float) -> None:
        self.found = found
        self.reading = reading
        self.rtol = rtol
        self.numbers = found.numbers
        self.estimator = found.estimator
        self.claim = found.estimator.certificate_
        self.reasons: list[str] = []
        self.refused = 0
        self.excess = -inf
        self.violation = 0.0
        self.table = found.table(self.claim.weights)
        shape = len(found.data.kept), sum(len(part.columns) for part in found.parts)
        table = np.zeros(shape) if self.table is None else self.table
        self.primals = [part.primal(self.numbers) for part in found.parts]
        self.duals = [part.dual(table, self.numbers) for part in found.parts]
        self.scale = self._scale()

    def _scale(self) -> float:
        """The largest norm of a row plus, for centred rows, three times the norm of the mean."""
        examples = self.found.examples
        qp = self.found.parts[0].qp
        if qp.p == 2.0 or self.numbers.exact:
            squares = examples.squared_norms
        else:
            squares = examples.squared_dual_norms(qp.p)
        # squared norms of an indefinite kernel may be negative
        longest = max(float(max(squares)), 0.0)
        scale = float(np.sqrt(longest)) * float(examples.radius)
        offset = 0.0
        if self.found.free and not examples.is_kernel:
            centre = qp.design.centre
            offset = (
                0.0 if centre is None else float(np.linalg.norm(centre.astype(float)))
            )
        longer = float(qp.rows.square) ** 0.5
        return longer * (scale + 3.0 * offset) or 1.0

    def refuse(self, claimed: object, excess: Callable[..., Values], text: str) -> None:
        """Reject a claim that is not a number, or whose excess is above the tolerance."""
        found = inf
        if _is_number(claimed):
            found = float(excess(self.numbers.number(float(claimed))))
            found = inf if isnan(found) else found
        self.excess = max(self.excess, found)
        if not found <= self.rtol:
            self.reasons.append(text)
            self.refused += 1

    def is_void(self, claimed: object) -> bool:
        """Whether this is the upper bound of a fit that ended before any was proved."""
        stopped = _is_one_of(self.claim.status, ("interrupted",))
        return stopped and isinstance(claimed, float) and claimed == inf

    def result(self, wrong: list[str]) -> CertificateCheck:
        if self.claim.reading != self.reading:
            self.reasons.append(
                f"the bounds are on the {self.reading}, not on the other one"
            )
        lower, upper = self.bounds()
        if self.refused > 1:
            self.reasons.append(
                "X and y may not be those of the fit, as the last step of a pipeline had them"
            )
        self.reasons += self.existence()
        signs = self.found.signs
        w = self.found.w
        if signs is not None and (signs * w < 0).any():
            self.reasons.append(
                "a coefficient has a sign that monotonic_cst does not allow"
            )
        if self.excess < inf:  # the bounds are numbers
            self.reasons += self.status()
            self.reasons += self.wrong_nu()
        self.reasons += self.wrong_offset()
        self.reasons += self.wrong_kind()
        reasons = [*self.reasons, *wrong]
        given = lower, upper, self.reading, self.violation, self.excess
        return CertificateCheck(*given, not reasons, "; ".join(reasons))

    def bounds(self) -> tuple[float, float]:
        raise NotImplementedError

    def holds(self) -> dict[str, bool]:
        raise NotImplementedError

    def not_stated(self) -> tuple[str, ...]:
        """Fields of the certificate that such fits leave at their defaults."""
        raise NotImplementedError

    def status(self) -> Iterator[str]:
        """Errors in the status, given correct bounds."""
        claim = self.claim
        if _is_one_of(claim.status, NO_CLAIM):
            return
        holds = self.holds()
        if not _is_one_of(claim.status, holds):
            known = ", ".join([*holds, *NO_CLAIM])
            yield f"the status is {claim.status!r}, not one of {known}"
        elif not holds[claim.status]:
            yield (
                f"the status is {claim.status!r}, but the bounds are {claim.lower!r} and "
                f"{claim.upper!r}, with tol={self.estimator.tol}"
            )

    def existence(self) -> Iterator[str]:
        """Errors in ``separable``, which regressors call ``feasible``."""
        name = ("feasible", "separable")[self.reading == "margin"]
        known = self.claim.feasible
        if not any(known is word for word in (True, False, None)):
            yield f"{name} is {known!r}, not True, False or None"
        elif known is not None:
            yield from self.wrong_existence(known)

    def wrong_existence(self, known: bool) -> Iterator[str]:
        raise NotImplementedError

    def refuted(self, outputs: list[int] | None = None) -> bool:
        """Whether an exact alpha near the published one proves that no predictor fits."""
        table = self.table
        found = self.found
        if table is None:
            return False
        some = (
            (range(table.shape[1]) if found.regression else [0])
            if outputs is None
            else outputs
        )
        return any(found.refuted(table, o) is not None for o in some)

    def wrong_nu(self) -> Iterator[str]:
        """Errors in ``nu_`` of the hinge loss, which follows from alpha."""
        found = getattr(self.estimator, "nu_", None)
        nu = None
        part = self.found.parts[0]
        hinge = self.found.spec.is_soft and self.found.spec.slack_is_linear
        if hinge and self.reading == "margin" and self.table is not None:
            alpha = part.alpha(self.table, self.numbers)
            caps = part.qp.cap if part.qp.cap is not None else part.qp.upper
            share = largest_multiple(part.qp, alpha)
            nu = float(share / caps.sum()) if share < inf else 0.0
        if nu is None and found is not None:
            yield f"nu_ is {found!r}, but the loss is not the hinge loss"
        elif nu is not None and not (
            isinstance(found, float) and abs(found - nu) <= NU_RTOL * nu
        ):
            yield f"nu_ is {found!r}, but the weights give {nu!r}"

    def wrong_kind(self) -> Iterator[str]:
        """Errors in fields that say what was fitted, or that are of other kinds of fits."""
        stated = {name: getattr(Certificate, name) for name in self.not_stated()}
        stated["one_class"] = is_outlier_detector(self.estimator)
        for name, value in stated.items():
            found = getattr(self.claim, name)
            if not (type(found) is type(value) and found == value):
                yield f"{name} is {found!r}, not {value!r}"
        radius = self.claim.radius
        if not (_is_number(radius) and 0.0 < radius < inf):
            yield f"radius is {radius!r}, not a positive number"

    def wrong_offset(self) -> Iterator[str]:
        """Errors in ``offset_`` of outlier detectors: at most a fraction nu lies below it."""
        estimator = self.estimator
        numbers = self.numbers
        found = self.found
        if not is_outlier_detector(estimator):
            return
        offset = getattr(estimator, "offset_", None)
        intercept: Values = getattr(estimator, "intercept_", None)
        if not (isinstance(offset, float) and np.isfinite(offset)):
            yield f"offset_ is {offset!r}, not a number"
        elif not np.array_equal(intercept, [-offset]):
            yield f"intercept_ is {intercept!r}, not minus offset_, {offset!r}"
        else:
            scores = found.examples.scores(found.w)[:, 0]
            level = numbers.number(offset)
            rounded = numbers.number(self.rtol) * (abs(scores).max() + abs(level))
            weight = numbers.array(found.data.weight)
            outside = float((weight * (scores < level - rounded)).sum() / weight.sum())
            if not outside <= (estimator.nu or 0.0) + ROUNDED_SHARE:
                yield (
                    f"{outside:.6g} of the weight is below offset_={offset!r}, "
                    f"not {estimator.nu or 0.0:g}"
                )


class _OfMargins(_Check):
    def not_stated(self) -> tuple[str, ...]:
        return ("violation", "widened_bound", "violation_of_zero", *OBJECTIVES)

    def bounds(self) -> tuple[float, float]:
        """Both bounds on the margin; claims may exceed them by rounding, relative to the scale."""
        numbers = self.numbers
        claim = self.claim
        found = self.found
        (primal,) = self.primals
        (dual,) = self.duals
        lower = primal.margin * found.radius
        upper = found.margin_bound(dual)
        margin = numbers.down(lower)
        margin_bound = numbers.up(upper)
        scale = numbers.number(self.scale)
        positive = max(lower, 0 * lower)
        self.refuse(
            claim.lower,
            lambda claimed: (claimed - positive) / scale,
            f"the predictor's margin is {margin!r}, not {claim.lower!r}",
        )
        if not self.is_void(claim.upper):
            self.refuse(
                claim.upper,
                lambda claimed: (upper - claimed) / scale,
                f"the weights prove {margin_bound!r}, not {claim.upper!r}",
            )
        mass = (
            -1.0
            if self.table is None
            else float(found.parts[0].alpha(self.table, numbers).sum())
        )
        if not (
            abs(mass - 1.0) <= SUM_TOLERANCE
            and abs(claim.weights.sum() - 1.0) <= SUM_TOLERANCE
        ):
            self.reasons.append("the weights are no distribution over the rows")
        nu = getattr(self.estimator, "nu", None)
        share = getattr(claim, "nu", None)
        if share != nu:
            self.reasons.append(
                f"the margins are those with nu={nu}, not with nu={share}"
            )
        named = rows_in_words(self.estimator.constant_) if found.spec.normalize else "X"
        if claim.of != named:
            self.reasons.append(f"the margins are of {named}, not of {claim.of}")
        return margin, margin_bound

    def holds(self) -> dict[str, bool]:
        claim = self.claim
        tol = self.estimator.tol
        negligible = max(getattr(self.estimator, "epsilon", 0.0), NEGLIGIBLE)
        nothing_left = claim.feasible is False or claim.upper / self.scale <= negligible
        return {
            "certified": claim.lower > 0
            and relative_gap(claim.lower, claim.upper) <= tol,
            "separated": self.primals[0].separation > 0,
            "no_margin": not self.found.spec.is_soft and nothing_left,
        }

    def wrong_existence(self, known: bool) -> Iterator[str]:
        if known and not self.primals[0].separation > 0:
            yield "separable is True, but the predictor does not separate the classes"
        elif not known and not self.refuted():
            yield "separable is False, but no exact proof is found near the weights"


class _OfNorms(_Check):
    def not_stated(self) -> tuple[str, ...]:
        objectives = isinstance(self.estimator, StatesObjectives)
        return ("nu", "of", *(() if objectives else OBJECTIVES))

    def bounds(self) -> tuple[float, float]:
        numbers = self.numbers
        claim = self.claim
        found = self.found
        objectives = [primal.objective for primal in self.primals]
        norm = found.norm_of(sum(objectives), 1)
        violation = max(primal.violation for primal in self.primals)
        values = [
            part.qp.examples.scores(part.w) + part.f[: part.qp.k]
            for part in found.parts
        ]
        ends = [part.qp.target for part in found.parts]
        size = float(max(abs(x).max(initial=0) for x in values + ends)) or 1.0
        infeasible = claim.lower == inf
        proved = infeasible and not found.spec.is_soft and self.refuted()
        wide = not found.spec.is_soft and _is_number(claim.violation)
        widening = claim.violation if wide else 0.0
        above = (
            (claim.upper, lambda x: float((norm - x) / abs(x or 1)), "norm"),
            (claim.violation, lambda x: (violation - x) / size, "violation"),
        )
        for claimed, excess, name in above:
            if not self.is_void(claimed):
                self.refuse(claimed, excess, f"{name} does not hold")
        if not infeasible:
            self.refuse(
                claim.lower, lambda x: self.short(x, 0), "norm_bound does not hold"
            )
        self.refuse(
            claim.widened_bound,
            lambda x: self.short(x, numbers.number(widening)),
            "widened_bound does not hold",
        )
        known = claim.violation_of_zero
        zero = self.violation_of_zero()
        if found.spec.is_soft:
            right = known is None
        else:
            rounding = ZERO_RTOL * (zero + found.epsilon)
            right = _is_number(known) and 0.0 <= known <= zero + rounding
        if not right:
            self.reasons.append(f"violation_of_zero is {known!r}, not {zero!r}")
        if infeasible and not proved:
            text = "no exact proof of infeasibility is found near the weights"
            self.reasons.append(text)
            self.excess = inf
        if isinstance(self.estimator, StatesObjectives):
            self.objectives(objectives)
        self.violation = numbers.up(violation)
        least = self.least(0)
        bound = inf if proved else numbers.down(least) if least < inf else 0.0
        return bound, numbers.up(norm)

    def least(self, widened: Values) -> Values:
        """Lower bound on the norm of predictors that fit the intervals widened by ``widened``."""
        total = 0
        for dual in self.duals:
            total = total + dual.objective(widened)
        return self.found.norm_of(total, -1)

    def short(self, claimed: Values, widened: Values) -> float:
        """Excess of a claimed bound, as a length relative to the largest norm of an example."""
        if self.table is None or not claimed > 0:
            return inf if self.table is None else -inf
        least = self.least(widened)
        if least == inf:
            return -inf
        return float(1 - least / claimed) * self.longest()

    def longest(self) -> float:
        """``|A'alpha|``, relative to the largest norm of an example."""
        lengths = [float(dual.length) ** 2 + float(dual.ridge) for dual in self.duals]
        length = float(np.sqrt(sum(lengths))) * float(self.found.radius)
        return min(length / self.scale, 1.0) if length > 0 else 1.0

    def objectives(self, objectives: list[Values]) -> None:
        """Errors in ``objective_`` and ``objective_bound_``, per output."""
        estimator = self.estimator
        found = self.found
        square = self.found.radius**2
        for name in ("objective_", "objective_bound_", "epsilon_"):
            if np.asarray(getattr(estimator, name, None)).shape != found.shape:
                self.reasons.append(f"{name} is not a number for each output")
                return
        if estimator.nu is None and not np.all(
            np.asarray(estimator.epsilon_) == estimator.epsilon
        ):
            self.reasons.append(
                f"epsilon_ is {estimator.epsilon_!r}, but epsilon is {estimator.epsilon!r}"
            )
        reached = np.atleast_1d(estimator.objective_)
        bounds = np.atleast_1d(estimator.objective_bound_)
        for o, dual in enumerate(self.duals):
            objective = objectives[o] / square
            least = dual.objective() / square
            if not self.is_void(reached[o]):
                self.refuse(
                    reached[o],
                    lambda x, P=objective: float(P - x) / (4.0 * abs(float(x or 1))),
                    f"objective_ is {reached[o]!r}, but that of the predictor is larger",
                )
            if bounds[o] == inf:
                if found.spec.is_soft or not self.refuted([o]):
                    self.reasons.append(
                        "objective_bound_ is inf, but no exact weights prove it"
                    )
                continue
            self.refuse(
                bounds[o],
                lambda x, D=least: (
                    float(1 - D / x) * self.longest() / 2.0 if x > 0 else -inf
                ),
                f"objective_bound_ is {bounds[o]!r}, which the weights do not prove",
            )

    def holds(self) -> dict[str, bool]:
        claim = self.claim
        tol = self.estimator.tol
        allowed = tol * self.violation_of_zero() * (1.0 + ZERO_RTOL)
        near = self.found.spec.is_soft or claim.violation <= allowed
        gap = relative_gap(claim.widened_bound or 0.0, claim.upper)
        return {"certified": near and gap <= tol, "infeasible": claim.lower == inf}

    def violation_of_zero(self) -> float:
        """Violation of the zero predictor, with its best intercept if norms do not count it."""
        found = self.found
        if found.free:
            ends = (found.low.max(axis=0) - found.high.min(axis=0)) / 2
        else:
            ends = np.maximum(found.low, -found.high).max(axis=0)
        return max(float((ends - found.epsilon).max()), 0.0)

    def wrong_existence(self, known: bool) -> Iterator[str]:
        if not (self.claim.violation == 0.0 if known else self.claim.lower == inf):
            yield f"feasible is {known!r}, which the bounds do not imply"


def _is_number(claimed: object) -> TypeGuard[float]:
    return isinstance(claimed, Real) and isfinite(claimed)


def _is_one_of(word: object, words: Container[str]) -> bool:
    """Whether ``word in words``; False for arrays and unhashable objects."""
    return isinstance(word, str) and word in words


def _wrong_copies(outermost: object, estimator: FittedEstimator) -> Iterator[str]:
    """Differences between a search's attributes and those of its best estimator."""
    fitted = {
        name: value for name, value in vars(estimator).items() if name.endswith("_")
    }
    for outer in layers(outermost):
        if outer is estimator or "certificate_" not in vars(outer):
            continue
        others = [
            name for name, value in fitted.items() if not _are_same(outer, name, value)
        ]
        if others:
            yield f"{type(outer).__name__} has another {', '.join(others)} than what it has found"
        chosen = getattr(outer, "C_", None)
        if not (isinstance(chosen, float) and chosen == estimator.C):
            yield f"C_ is {chosen!r}, not {estimator.C!r}"


def _are_same(outer: object, name: str, value: object) -> bool:
    found = getattr(outer, name, ABSENT)
    return found is value or joblib.hash(found) == joblib.hash(value)
