"""The published primal and dual point of a fit, and their certified values.

A solver stops by values in plain float64. At the end of a fit its last digits are then adjusted
once for the best bounds: the predictor is scaled, and alpha is made feasible (``F'alpha = 0``,
``alpha <= upper``). The adjusted numbers are published, and bounds on both values are proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._threads import cached_property
from marginsvm._typing import Array, Values
from marginsvm.certificate.bounded import (
    Dual,
    Floats,
    Known,
    Primal,
    balanced,
    best_multiple,
    caps_of,
    dual,
    imbalance,
    lowest_values,
    margin_of,
    norm_of,
    primal,
)
from marginsvm.certificate.certificate import relative_gap
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.quadratic_program import QuadraticProgram, gap_of_norms
from marginsvm.problem.vectors import Predictor

FLOATS = Floats()
# Fraction of nu's upper bounds that alpha may reach, a reserve for the rounding of sums.
BELOW = 1.0 - 2.0**-44
# Rounding of sums of alpha that are 1, or 0; and of one that nu's bounds have not allowed to be 1.
ROUNDED = 8.0 * FLOATS.unit
NOT_ALLOWED = 1e-12
# Upper bound on margins (in radii) below which a proof of overlap is tried; and, for features and
# for kernels, below which A'alpha may be exactly 0.
WORTH_A_PROOF = 1e-2
VANISHING = 1e-9
KERNEL_VANISHING = 1e-6


@dataclass(frozen=True)
class PublishedPredictor:
    """A published predictor, and its certified values.

    Attributes
    ----------
    coef, intercept : ndarray of shape (k, d) and (k,)
        In the units of the given X.
    w, f : ndarray
        In the units of the scaled examples: intercepts of all scores and, for nu-SVR, the width.
    primal : Primal
    multiple : float
        Factor by which the solver's predictor was scaled.
    """

    coef: Array
    intercept: Array
    w: Array
    f: Array
    primal: Primal
    multiple: float = 1.0


@dataclass(frozen=True)
class Proof:
    """Published primal and dual point, and their certified values, in units of the examples.

    Attributes
    ----------
    qp : QuadraticProgram
    predictor : PublishedPredictor
    alpha : ndarray of shape qp.shape
        Scaled to sum to 1, or to another given total.
    dual : Dual
    refuted : bool
        Whether an exact alpha nearby proves that no predictor separates, or fits without slack.
    rounded : ndarray of shape qp.shape or None
        The multiple of alpha that the predictor is ``A'alpha`` of, where it is at its bounds.
    """

    qp: QuadraticProgram
    predictor: PublishedPredictor
    alpha: Array
    dual: Dual
    refuted: bool = False
    rounded: Array | None = None

    @property
    def primal(self) -> Primal:
        return self.predictor.primal

    @property
    def margin(self) -> float:
        """Lower bound on the margin of the predictor."""
        return float(self.primal.margin)

    @property
    def margin_bound(self) -> float:
        """Upper bound on the margin of any predictor."""
        if self.qp.game:
            return float(self.dual.margin_bound)
        least = float(self.dual.objective())
        return float(margin_of(least, FLOATS, 1)) if 0.0 < least < inf else inf

    @property
    def gap(self) -> float:
        """Relative gap of margins, or of objectives at the same tube width."""
        if self.qp.by_margins:
            lower = self.margin
            upper = self.margin_bound
        else:
            wide = self.primal.violation if self.qp.hard else 0.0
            lower = float(self.dual.objective(wide))
            upper = float(self.primal.objective)
        return relative_gap(lower, upper)

    @property
    def may_be_refuted(self) -> bool:
        """Whether an exact alpha nearby may prove overlap, see ``overlap.refuted``."""
        small = WORTH_A_PROOF if self.qp.hard else vanishing(self.qp.examples)
        return self.qp.game and self.margin <= 0.0 and self.margin_bound <= small

    @property
    def weights(self) -> Array:
        """Multiple of alpha with ``w = A'alpha``, up to the gap."""
        if self.rounded is not None:
            return self.rounded
        if self.qp.game:
            length = float(self.dual.length)
            return self.alpha * (
                float(self.primal.norm) / length if length > 0.0 else 0.0
            )
        s = float(self.dual.best_multiple)
        return self.alpha * (max(s, 0.0) if s < inf else 1.0)


@dataclass(frozen=True)
class Certified:
    """Published results of a fit in units of the problem, with their certified values.

    Attributes
    ----------
    model : Predictor
        The adapter's predictor, as the algorithm has found it.
    proofs : tuple of Proof
        One, or one per output.
    scales : ndarray of shape (len(proofs),)
        Units of the outputs, relative to the largest.
    words : str
        Description of the model if no separator was found, for a sentence; may be empty.
    """

    model: Predictor
    proofs: tuple[Proof, ...]
    scales: Array
    words: str = ""

    @property
    def refuted(self) -> bool:
        """Whether overlap, or infeasibility, is proved."""
        return any(proof.refuted for proof in self.proofs)

    @property
    def separates(self) -> bool:
        """Whether the predictor separates, or fits, without slack."""
        if self.proofs[0].qp.by_margins:
            return bool(self.proofs[0].primal.separation > 0.0)
        return self.violation == 0.0

    @cached_property
    def lower(self) -> float:
        """Lower bound on the predictor's margin; for intervals, on one over its norm."""
        if self.proofs[0].qp.by_margins:
            return self.proofs[0].margin
        return 1.0 / self.norm if self.norm > 0.0 else inf

    @cached_property
    def upper(self) -> float:
        """Upper bound on the margin of any predictor; for intervals, on one over its norm."""
        if self.proofs[0].qp.by_margins:
            return self.proofs[0].margin_bound
        return 1.0 / self.norm_bound() if self.norm_bound() > 0.0 else inf

    # For intervals.

    @property
    def _scaled(self) -> Iterator[tuple[float, Proof]]:
        """The unit and the proof of each output."""
        return zip(self.scales, self.proofs, strict=True)

    @cached_property
    def norm(self) -> float:
        """Upper bound on the norm of the predictor and its slack."""
        squares = (s * s * float(proof.primal.objective) for s, proof in self._scaled)
        square = 2.0 * sum(squares)
        return float(np.sqrt(square) * (1.0 + FLOATS.gamma(len(self.proofs) + 4)))

    @cached_property
    def violation(self) -> float:
        """Upper bound on the distance of a score from its interval."""
        return float(max(s * proof.primal.violation for s, proof in self._scaled))

    @property
    def allowed(self) -> float:
        """Violation of the predictors in the comparison; 0 if slack covers it."""
        return self.violation if self.proofs[0].qp.hard else 0.0

    def objective_bounds(self, widened: float = 0.0) -> Array:
        """Lower bounds on the objectives of the outputs for intervals widened by ``widened``."""
        bounds = [proof.dual.objective(widened / s) for s, proof in self._scaled]
        return np.array(bounds, float)

    def norm_bound(self, widened: float = 0.0) -> float:
        """Lower bound on the norm of predictors that fit the intervals widened by ``widened``."""
        square = 2.0 * float((self.scales**2 * self.objective_bounds(widened)).sum())
        return float(np.sqrt(square) * (1.0 - FLOATS.gamma(len(self.proofs) + 4)))

    def error(self, zero: float) -> float:
        """The relative gap of norms, or the violation relative to that of w = 0, if larger."""
        P = np.array([float(proof.primal.objective) for proof in self.proofs])
        D = self.objective_bounds(self.allowed)
        P = np.append(P, self.norm**2)
        D = np.append(D, self.norm_bound(self.allowed) ** 2)
        gaps = [gap_of_norms(p, d) for p, d in zip(P, D, strict=True) if p]
        far = self.allowed / zero if zero > 0.0 else inf
        return float(max([0.0, *gaps, far if self.allowed > 0.0 else 0.0]))


def vanishing(examples: FloatExamples) -> float:
    """Upper bound on margins (in radii) below which ``A'alpha = 0`` may be proved exactly."""
    return KERNEL_VANISHING if examples.is_kernel else VANISHING


def prove(qp: QuadraticProgram, w: Array, f: Array, alpha: Array) -> Proof:
    """Publish a predictor and alpha, and bound both values.

    Parameters
    ----------
    qp : QuadraticProgram
        With a ``Design`` or a ``Gram``.
    w : ndarray of shape (k, d)
    f : ndarray of shape (n_free,)
        rho of hard margins and of nu-SVM is ignored.
    alpha : ndarray of shape qp.shape
        Feasible up to rounding.
    """
    width = f[-1:] if qp.level > 0 else f[:0]
    return with_weights(qp, published(qp, w, qp.offsets(f), width), alpha)


def with_weights(
    qp: QuadraticProgram,
    predictor: PublishedPredictor,
    alpha: Array,
    total: float = 1.0,
) -> Proof:
    """Proof of a published predictor and of alpha, scaled to sum to ``total``."""
    alpha = published_weights(qp, alpha, total)
    near = predictor.w, predictor.primal.norm
    return Proof(qp, predictor, alpha, dual(qp, alpha, FLOATS, near))


def published(
    qp: QuadraticProgram,
    w: Array,
    b: Array,
    width: Values = (),
    origin: Array | float = 0.0,
    known: Known = None,
) -> PublishedPredictor:
    """The predictor scaled by its best factor, as published.

    Parameters
    ----------
    qp : QuadraticProgram
    w : ndarray of shape (k, d)
    b : ndarray of shape (k,)
        Intercepts of the scores.
    width : ndarray of shape (1,) or ()
        Tube width of nu-SVR.
    origin : ndarray of shape (k,), or float
        Shift subtracted from the targets; such a predictor is not scaled.
    known : tuple or None
        Scores of w, and the sums of the absolute values of their terms, without signs; they are
        scaled with the predictor, in place.
    """
    examples = qp.examples
    w = qp.project(w)
    t = 1.0
    S, M = examples.bounded_scores(w) if known is None else known
    if qp.by_margins:
        shift = np.abs(b - examples.published(w)[1])  # intercepts are rounded
        v = lowest_values(qp, w, b, FLOATS, (S, M))
        v -= 2.0 * FLOATS.unit * shift.max()
        t = best_multiple(qp, float(norm_of(qp, w, FLOATS, S)), v)
        del v  # of all rows
    coef, shift = examples.published(t * w)
    S *= t
    M *= t
    return restated(qp, coef, (t * b + origin) - shift, width, origin, (S, M), t)


def restated(
    qp: QuadraticProgram,
    coef: Array,
    intercept: Array,
    width: Values = (),
    origin: Array | float = 0.0,
    known: Known = None,
    multiple: float = 1.0,
) -> PublishedPredictor:
    """Predictor from its published numbers, see ``published``."""
    w, b = qp.examples.stated(coef, intercept, origin)
    f = np.concatenate([b, width])
    return PublishedPredictor(
        coef, intercept, w, f, primal(qp, w, f, FLOATS, known), multiple
    )


def dual_coefficients(qp: QuadraticProgram, alpha: Array, price: Array | None) -> Array:
    """Coefficients of the examples in the units of the data, exactly ``C m`` where alpha is full.

    Parameters
    ----------
    qp : QuadraticProgram
    alpha : ndarray of shape qp.shape
    price : ndarray of shape (n,) or None
        ``C m`` of each example (in the units of these coefficients); None: no upper bounds.

    Returns
    -------
    ndarray of shape (n, k)
    """
    V = qp.rows.coefficients(alpha)
    with np.errstate(over="ignore"):  # examples in tiny units have vast coefficients
        found = V / qp.examples.radius**2
    if price is None:
        return found
    caps = qp.cap
    if caps is None:
        caps = np.zeros(len(V))
        caps[qp.rows.at] = qp.upper
    full = np.abs(V) >= (1.0 - FLOATS.gamma(qp.k)) * caps[:, None]
    return np.where(full, np.sign(V) * price[:, None], found)


# Rounding of published coefficients up to which scores are theirs: error terms have room for FEW.
HALF_OF_FEW = 0.5 * FEW


def at_its_bounds(
    qp: QuadraticProgram,
    w: Array,
    f: Array,
    alpha: Array,
    known: tuple[Array, Array],
    price: Array | None,
    origin: Array | float = 0.0,
    total: float = 1.0,
) -> Proof:
    """Proof of a predictor w, at the best f, and of an alpha at its bounds.

    With a kernel, w is ``A'alpha``, and alpha are the published coefficients, without a further
    multiple; ``price`` is as in ``dual_coefficients``, ``known`` and ``origin`` as in
    ``published``.
    """
    examples = qp.examples
    f = qp.best_f(known[0], f)
    b = intercepts(qp, f)
    width = f[-1:] if qp.level > 0 else f[:0]
    if not examples.is_kernel:
        predictor = published(qp, w, b, width, origin, known)
    else:
        coef = dual_coefficients(qp, alpha, price).T
        _, shift = examples.published(w)
        stated, _ = examples.stated(coef, b)
        of_these = np.all(np.abs(stated - w) <= HALF_OF_FEW * np.abs(w))
        scores = known if of_these else None
        predictor = restated(qp, coef, b + origin - shift, width, origin, scores)
    return replace(with_weights(qp, predictor, alpha, total), rounded=alpha)


def intercepts(qp: QuadraticProgram, f: Array) -> Array:
    """Intercepts of all scores; those of several classes sum to 0."""
    b = qp.offsets(f)
    return b - b.mean() if qp.several and qp.intercept else b


def unproved(
    qp: QuadraticProgram,
    w: Array,
    b: Array,
    alpha: Array,
    width: Values = (),
    origin: Array | float = 0.0,
    total: float = 1.0,
) -> Proof:
    """A predictor and alpha as they are, with values that claim nothing, without a pass."""
    coef, shift = qp.examples.published(qp.project(w))
    intercept = b + origin - shift
    w, b = qp.examples.stated(coef, intercept, origin)
    nothing = Primal(inf, 0.0, inf, inf, -inf)
    f = np.concatenate([b, width])
    predictor = PublishedPredictor(coef, intercept, w, f, nothing)
    alpha = published_weights(qp, alpha, total)
    return Proof(qp, predictor, alpha, Dual(0.0, inf, 0.0, 1.0, inf, FLOATS))


def published_weights(qp: QuadraticProgram, alpha: Array, total: float = 1.0) -> Array:
    """Alpha scaled to this sum, with ``F'alpha = 0`` and below the upper bounds of nu.

    The upper bounds of the hinge loss apply to the best multiple of alpha instead. Of the two rows
    of a target only one is positive, as their rounded difference is published.
    """
    if not qp.by_margins:
        alpha = qp.rows.stated(qp.rows.coefficients(alpha))
    caps, _ = caps_of(qp, alpha)
    if qp.game and caps is not None:
        alpha = alpha / (float(alpha.sum()) or 1.0)
        within = bool(np.all(caps_of(qp, alpha)[1] <= caps * (1.0 + ROUNDED)))
        if not (within and imbalance(qp, alpha, FLOATS) <= ROUNDED):
            room = (
                replace(qp, upper=caps * BELOW)
                if qp.cap is None
                else replace(qp, cap=caps * BELOW)
            )
            found = room.feasible(alpha)
            alpha = (
                found if abs(found.sum() - 1.0) <= NOT_ALLOWED else qp.feasible(alpha)
            )
    else:
        alpha = np.where(qp.upper > 0.0, np.maximum(alpha, 0.0), 0.0)
        alpha = qp.rows.balanced(alpha, qp.intercept, 0.0, None)
    found = alpha.sum()
    return (
        balanced(qp, alpha * (total / found))
        if 0.0 < found < inf
        else np.zeros_like(alpha)
    )
