"""The published primal and dual point of a fit, and their certified values.

A solver stops by values in plain float64. At the end of a fit its last digits are then adjusted
once for the best bounds: the predictor is scaled, and alpha is made feasible (``F'alpha = 0``,
``alpha <= upper``). The adjusted numbers are published, and bounds on both values are proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import nnls

from marginsvm._threads import cached_property
from marginsvm._typing import Array
from marginsvm.certificate.bounded import (
    Dual,
    Floats,
    Known,
    Primal,
    balanced,
    best_multiple,
    caps_of,
    dual,
    error_of_targets,
    imbalance,
    lowest_values,
    margin_of,
    norm_of,
    primal,
)
from marginsvm.certificate.certificate import relative_gap
from marginsvm.certificate.exact import refuting_weights
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.kernels import distinct, keys_of
from marginsvm.problem.quadratic_program import QuadraticProgram, gap_of_norms
from marginsvm.problem.rows import OutputRows

FLOATS = Floats()
# Fraction of nu's upper bounds that alpha may reach, a reserve for the rounding of sums.
BELOW = 1.0 - 2.0**-44
# |A'alpha| (in radii, sum of alpha 1) above which NNLS on few rows is tried before alpha itself. If
# NNLS finds no smaller |A'alpha|, alpha is not tried.
ROUGH = 1e-9
ROUGH_IN_KERNELS = 1e-5  # for kernels: norms are roots of squares, whose terms cancel
MOST_NUMBERS = 2**25  # largest size of the rows in exact arithmetic
SAME_LENGTH = 1e-12  # rounding of squared norms, relative to the largest
# For NNLS: largest size of the dense rows; features from which on it takes seconds; and the penalty
# on F'alpha.
WRITTEN_OUT, MANY_FEATURES, STIFF = 2**22, 1000, 1e4
# Its columns at a time, and products with these, for each equation; the residual (of weights of sum
# 1) that is rounding, and the share that remains of one where more columns do not help.
WORKING_SET, NNLS_PRODUCTS, SOLVED, SLOWLY = 10, 4, 1e-10, 0.99
FREE = 2**22  # multiplications of a proof that may always be tried: a few milliseconds
# Upper bound on margins (in radii) below which a proof of overlap is tried; and, for features and
# for kernels, below which A'alpha may be exactly 0.
WORTH_A_PROOF = 1e-2
VANISHING, KERNEL_VANISHING = 1e-9, 1e-6
# Error of the predictor of a hard tube above which a proof of infeasibility is tried.
UNFIT = 1e-6


@dataclass(frozen=True)
class Predictor:
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
    predictor : Predictor
    alpha : ndarray of shape qp.shape
        Scaled to sum to 1, or to another given total.
    dual : Dual
    refuted : bool
        Whether an exact alpha nearby proves that no predictor separates, or fits without slack.
    rounded : ndarray of shape qp.shape or None
        The multiple of alpha that the predictor is ``A'alpha`` of, where it is at its bounds.
    """

    qp: QuadraticProgram
    predictor: Predictor
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
            lower, upper = self.margin, self.margin_bound
        else:
            wide = self.primal.violation if self.qp.hard else 0.0
            lower, upper = (
                float(self.dual.objective(wide)),
                float(self.primal.objective),
            )
        return relative_gap(lower, upper)

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
    qp: QuadraticProgram, predictor: Predictor, alpha: Array, total: float = 1.0
) -> Proof:
    """Proof of a published predictor and of alpha, scaled to sum to ``total``."""
    alpha = published_weights(qp, alpha, total)
    return Proof(qp, predictor, alpha, dual(qp, alpha, FLOATS))


def published(
    qp: QuadraticProgram,
    w: Array,
    b: Array,
    width: Any = (),
    origin: Array | float = 0.0,
    known: Known = None,
) -> Predictor:
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
        Scores of w, and the sums of the absolute values of their terms, without signs.
    """
    examples, w, t = qp.examples, qp.project(w), 1.0
    S, M = examples.bounded_scores(w) if known is None else known
    if qp.by_margins:
        shift = np.abs(b - examples.published(w)[1])  # intercepts are rounded
        v = lowest_values(qp, w, b, FLOATS, (S, M)) - 2.0 * FLOATS.unit * shift.max()
        t = best_multiple(qp, float(norm_of(qp, w, FLOATS, S)), v)
    coef, shift = examples.published(t * w)
    known = S, M = t * S, t * M
    return restated(qp, coef, (t * b + origin) - shift, width, origin, known, t)


def restated(
    qp: QuadraticProgram,
    coef: Array,
    intercept: Array,
    width: Any = (),
    origin: Array | float = 0.0,
    known: Known = None,
    multiple: float = 1.0,
) -> Predictor:
    """Predictor from its published numbers, see ``published``."""
    w, b = qp.examples.stated(coef, intercept, origin)
    f = np.concatenate([b, width])
    return Predictor(coef, intercept, w, f, primal(qp, w, f, FLOATS, known), multiple)


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
    with np.errstate(over="ignore"):  # of examples in tiny units
        found = V / qp.examples.radius**2
    if price is None:
        return found
    caps = qp.cap
    if caps is None:
        caps = np.zeros(len(V))
        caps[qp.rows.at] = qp.upper
    full = np.abs(V) >= (1.0 - FLOATS.gamma(qp.k)) * caps[:, None]
    return np.where(full, np.sign(V) * price[:, None], found)


def of_weights(
    qp: QuadraticProgram,
    alpha: Array,
    f: Array,
    price: Array | None,
    origin: Array | float = 0.0,
    total: float = 1.0,
) -> Proof:
    """Proof of alpha and of ``w = A'alpha``, at the best f.

    With a kernel, alpha are the published coefficients, without a further multiple; ``price`` is as
    in ``dual_coefficients``, ``origin`` as in ``published``.
    """
    examples, w = qp.examples, qp.project(qp.rmatvec(alpha))
    known = examples.bounded_scores(w)
    f = qp.best_f(known[0], f)
    b, width = intercepts(qp, f), f[-1:] if qp.level > 0 else f[:0]
    if not examples.is_kernel:
        predictor = published(qp, w, b, width, origin, known)
    else:
        coef, (_, shift) = dual_coefficients(qp, alpha, price).T, examples.published(w)
        predictor = restated(qp, coef, b + origin - shift, width, origin, known)
    return replace(with_weights(qp, predictor, alpha, total), rounded=alpha)


def intercepts(qp: QuadraticProgram, f: Array) -> Array:
    """Of all scores; those of several classes sum to 0."""
    b = qp.offsets(f)
    return b - b.mean() if qp.several and qp.intercept else b


def unproved(
    qp: QuadraticProgram,
    w: Array,
    b: Array,
    alpha: Array,
    width: Any = (),
    origin: Array | float = 0.0,
    total: float = 1.0,
) -> Proof:
    """A predictor and alpha as they are, with values that claim nothing, without a pass."""
    coef, shift = qp.examples.published(qp.project(w))
    intercept = b + origin - shift
    w, b = qp.examples.stated(coef, intercept, origin)
    nothing = Primal(inf, 0.0, inf, inf, -inf)
    f = np.concatenate([b, width])
    predictor = Predictor(coef, intercept, w, f, nothing)
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
        within = bool(np.all(caps_of(qp, alpha)[1] <= caps * (1.0 + 8.0 * FLOATS.unit)))
        if not (within and imbalance(qp, alpha, FLOATS) <= 8.0 * FLOATS.unit):
            room = (
                replace(qp, upper=caps * BELOW)
                if qp.cap is None
                else replace(qp, cap=caps * BELOW)
            )
            found = room.feasible(alpha)
            alpha = found if abs(found.sum() - 1.0) <= 1e-12 else qp.feasible(alpha)
    else:
        alpha = np.where(qp.upper > 0.0, np.maximum(alpha, 0.0), 0.0)
        alpha = qp.rows.balanced(alpha, qp.intercept, 0.0, None)
    found = alpha.sum()
    return (
        balanced(qp, alpha * (total / found))
        if 0.0 < found < inf
        else np.zeros_like(alpha)
    )


# Proofs of overlap and of infeasibility.


def refuted(
    qp: QuadraticProgram, alpha: Array, passes: float = inf, total: float = 1.0
) -> Array | None:
    """An alpha nearby, or on few rows, that proves that no predictor separates or fits.

    The proof is for the given examples, without slack, and begins at alpha as it is published, with
    this total: of examples that nearly depend on each other, last digits decide whether it is
    found. None: nothing is proved, or it would take longer than so many passes over all rows (and
    than a few milliseconds).
    """
    width = qp.examples.width * qp.k
    most = max(FREE, passes * qp.examples.n * width)
    for candidate in _candidates(qp, alpha, most):
        q = published_weights(qp, candidate, total)
        r, S, gains = rows_with_weight(qp, q)
        i, weights = qp.rows.example_of(r), q.flat[r]
        if not 0 < len(i) * (qp.examples.d or 1) <= MOST_NUMBERS:
            continue
        if 2 * len(i) * min(len(i), width) ** 2 > most:  # two factorisations
            continue
        X, factor, intercept = qp.examples.given(i)
        if qp.examples.is_kernel and qp.examples.kernel is not None:
            X = distinct(X)
        signs = None if qp.signs is None else qp.signs[: X.shape[1]]
        of: Any = {
            "intercept": intercept or qp.intercept,
            "signs": signs,
            "gains": gains,
        }
        if refuting_weights(X, S, weights * factor, **of) is not None:
            return q
    return None


def rows_with_weight(
    qp: QuadraticProgram, alpha: Array
) -> tuple[Array, Array, Array | None]:
    """Rows with alpha > 0, their score coefficients and (for intervals) targets."""
    rows = qp.rows
    r = rows.ids[np.flatnonzero(rows.flat(alpha))]
    # coefficients of several classes sum to 0: the last ones add no equation
    S = rows.of_scores(r)[:, : rows.n_intercepts]
    if qp.by_margins:
        return r, S, None
    return r, S, qp.target[r] - float(error_of_targets(qp, FLOATS))


def _candidates(qp: QuadraticProgram, alpha: Array, most: float) -> Iterator[Array]:
    # candidates with a large |A'alpha| come last, as published they would give weak bounds
    rough = float(dual(qp, alpha, FLOATS).length) > ROUGH * float(alpha.sum())
    if not rough:
        yield alpha
    if qp.hard:  # with nu, upper bounds exclude an alpha on few rows
        found = equal_examples(qp)
        if found is not None:
            yield found
        found = on_few_rows(qp, alpha, most)
        if found is not None:
            apart = ROUGH_IN_KERNELS if qp.examples.is_kernel else ROUGH
            if qp.by_margins and float(dual(qp, found, FLOATS).length) > apart * float(
                found.sum()
            ):
                return  # no alpha on these rows has a smaller A'alpha
            yield found
    if rough and np.count_nonzero(alpha) * (qp.examples.d or 1) <= WRITTEN_OUT:
        yield alpha


def equal_examples(qp: QuadraticProgram) -> Array | None:
    """Alpha of 1/2 on two equal examples of different classes; X must be in memory."""
    if not qp.by_margins or not getattr(qp.examples.X, "in_memory", True):
        return None
    codes = qp.rows.labels
    lengths = qp.examples.squared_norms
    order = np.argsort(lengths)
    near = np.diff(lengths[order]) <= SAME_LENGTH * np.abs(lengths).max()
    alike = np.sort(order[np.append(near, False) | np.append(False, near)])
    if not len(alike):
        return None
    X, factor, _ = qp.examples.given(alike)
    first: dict[Any, int] = {}
    for i, key, times in zip(alike, keys_of(X), factor, strict=True):
        other = first.setdefault((key, times), i)
        if codes[other] != codes[i]:
            q = np.zeros(qp.shape)
            q.flat[qp.rows.opposed(i, other)] = 0.5
            return q
    return None


def on_few_rows(qp: QuadraticProgram, alpha: Array, most: float = inf) -> Array | None:
    """A basic alpha, on at most as many rows as equations, with ``A'alpha = 0`` in floats.

    Nonnegative least squares on the rows with alpha > 0 or, for intervals, on all rows. None:
    there is none, or they are too many; where it takes more than ``most`` multiplications, alpha.
    """
    width = qp.examples.width * qp.k
    if not qp.by_margins and width * alpha.size <= WRITTEN_OUT:
        alpha = np.ones(qp.shape)
    r, S, gains = rows_with_weight(qp, alpha)
    i = qp.rows.example_of(r)
    if (
        not len(i)
        or width > MANY_FEATURES
        or len(i) * width > WRITTEN_OUT
        or qp.signs is not None
    ):
        return None
    few, at = np.unique(i, return_inverse=True)
    if not qp.examples.is_kernel:
        Z = qp.design.written_out(few)
    elif qp.examples.kernel is not None:  # rounded values: only equality is exact
        Z = distinct(qp.examples.given(few)[0]).toarray()
    else:
        Z = qp.examples.gram(few, few)
    A = np.einsum("rk,rd->kdr", S, Z[at]).reshape(-1, len(i))
    if qp.intercept:
        A = np.vstack([A, STIFF * S.T])
    last = np.ones(len(i)) if gains is None else gains / (np.abs(gains).max() or 1.0)
    A, wanted = np.vstack([A, last]), np.append(np.zeros(len(A)), 1.0)
    q = of_few_columns(A, wanted, alpha.flat[r], most)
    if q is None:
        return alpha
    for _ in range(2):  # iterative refinement
        some = np.flatnonzero(q > 1e-12 * q.max())  # smaller entries are rounding
        q[some] += np.linalg.lstsq(
            A[:, some], wanted - A[:, some] @ q[some], rcond=None
        )[0]
    q[np.abs(q) <= 1e-12 * q.max()] = 0.0
    if not q.any() or q.min() < 0.0:
        return None
    found = np.zeros(qp.shape)
    found.flat[r] = q
    return found


def of_few_columns(
    A: Array, wanted: Array, weight: Array, most: float = inf
) -> Array | None:
    """Nonnegative least squares ``min |A q - wanted|``, by a working set of columns.

    It starts with those of the largest weights. Others join by their price, the gradient there,
    which takes a product with all columns, where nonnegative least squares on all of them takes
    several for each equation.

    Parameters
    ----------
    A : ndarray of shape (n_equations, n_columns)
    wanted : ndarray of shape (n_equations,)
    weight : ndarray of shape (n_columns,)
    most : float
        Multiplications after which it gives up.

    Returns
    -------
    ndarray of shape (n_columns,) or None
        Least squares, or larger ones where these fall slowly; None: it has given up.
    """
    (m, n), last = A.shape, inf
    some = np.argsort(-weight, kind="stable")[: WORKING_SET * m]
    while True:
        most -= NNLS_PRODUCTS * m * m * len(some) + m * n
        if most < 0.0:
            return None
        try:
            q = nnls(A[:, some], wanted)[0]
        except RuntimeError:  # it cycles
            return None
        rest = wanted - A[:, some] @ q
        length = float(np.linalg.norm(rest))
        price = rest @ A
        price[some] = 0.0
        if not (SOLVED < length < SLOWLY * last and price.max() > 0.0):
            break
        joining = np.argsort(-price, kind="stable")[: WORKING_SET * m]
        some = np.append(some[q > 0.0], joining[price[joining] > 0.0])
        last = length
    found = np.zeros(n)
    found[some] = q
    return found


# Published results of a fit.


@dataclass(frozen=True)
class Confirmed:
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

    model: Any
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

    @cached_property
    def norm(self) -> float:
        """Upper bound on the norm of the predictor and its slack."""
        parts = zip(self.scales, self.proofs, strict=True)
        square = 2.0 * sum(s * s * float(proof.primal.objective) for s, proof in parts)
        return float(np.sqrt(square) * (1.0 + FLOATS.gamma(len(self.proofs) + 4)))

    @cached_property
    def violation(self) -> float:
        """Upper bound on the distance of a score from its interval."""
        parts = zip(self.scales, self.proofs, strict=True)
        return float(max(s * proof.primal.violation for s, proof in parts))

    @property
    def allowed(self) -> float:
        """Violation of the predictors in the comparison; 0 if slack covers it."""
        return self.violation if self.proofs[0].qp.hard else 0.0

    def objective_bounds(self, widened: float = 0.0) -> Array:
        """Lower bounds on the objectives of the outputs for intervals widened by ``widened``."""
        parts = zip(self.scales, self.proofs, strict=True)
        return np.array(
            [proof.dual.objective(widened / s) for s, proof in parts], dtype=float
        )

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


def prove_overlap(proof: Proof, passes: float = inf) -> Proof:
    """The proof, with ``refuted`` set if an exact alpha nearby proves overlap, see ``refuted``."""
    qp = proof.qp
    small = WORTH_A_PROOF if qp.hard else vanishing(qp.examples)
    hopeful = qp.game and proof.margin <= 0.0 and proof.margin_bound <= small
    return _refuted(proof, passes) if hopeful else proof


def vanishing(examples: FloatExamples) -> float:
    """Upper bound on margins (in radii) below which ``A'alpha = 0`` may be proved exactly."""
    return KERNEL_VANISHING if examples.is_kernel else VANISHING


def prove_intervals(
    rows: OutputRows,
    programs: list[QuadraticProgram],
    points: Iterable[tuple[Array, Array, Array]],
    model: Any,
) -> Confirmed:
    """Publish predictors and alpha, (w, f, alpha), for intervals, and bound both values."""
    k = len(programs)
    found = tuple(
        with_weights(qp, published(qp, w, b, width, origin), alpha, 1.0 / k)
        for qp, w, b, alpha, width, origin in of_outputs(rows, programs, points)
    )
    confirmed = Confirmed(model, found, scales_of(rows, programs))
    if programs[0].hard and confirmed.error(rows.farthest) > UNFIT:
        tried = tuple(_refuted(proof, total=1.0 / k) for proof in found)
        confirmed = replace(confirmed, proofs=tried)
    return confirmed


def scales_of(rows: OutputRows, programs: list[QuadraticProgram]) -> Array:
    """Units of the outputs that programs stand for, relative to the largest."""
    known = rows.scales
    return np.ones(len(programs)) if known is None else np.atleast_1d(known)


def of_outputs(
    rows: OutputRows,
    programs: list[QuadraticProgram],
    points: Iterable[tuple[Array, Array, Array]],
) -> Iterator[tuple[QuadraticProgram, Array, Array, Array, Array, Array]]:
    """Program, w, intercepts, alpha, width and origin of each output, from (w, f, alpha)."""
    k = len(programs)
    origin = np.broadcast_to(rows.origin if rows.balanced else 0.0, k * programs[0].k)
    middle = np.broadcast_to(rows.middle, k * programs[0].k)
    for o, (qp, (w, f, alpha)) in enumerate(zip(programs, points, strict=True)):
        some = slice(o, o + qp.k)
        b, width = f[: len(w)], f[len(w) :]
        if not rows.balanced:
            b, width = np.zeros(len(w)), f
        if rows.farthest == 0.0:  # all targets are in the tube with w = 0
            w, b, width = 0.0 * w, middle[some], 0.0 * width
        yield qp, w, b, alpha, width, origin[some]


def _refuted(proof: Proof, passes: float = inf, total: float = 1.0) -> Proof:
    alpha = refuted(proof.qp, proof.alpha, passes, total)
    if alpha is None:
        return proof
    return replace(proof, alpha=alpha, dual=dual(proof.qp, alpha, FLOATS), refuted=True)
