"""The numbers that a fit publishes, and what they prove: computed once, at its end.

A solver stops by its own plain values. What it has found then is moved, by its last digits, to
where it proves most: the predictor to its best multiple, the weights to where they balance and keep
to their upper bounds. These numbers are published, and both values of them are proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import nnls

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certificate.bounded import (
    Dual,
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
from marginsvm.certificate.exact import refuting_weights
from marginsvm.certificate.numbers import Floats
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.kernels import distinct, keys_of
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.rows import output_rows

FLOATS = Floats()
# Part of an upper bound of a share that weights keep to, so that sums of bounds may be rounded.
BELOW = 1.0 - 2.0**-44
# Norm of what weights combine to (in radii) above which fewer rows are tried before them and, where
# least squares find no shorter combination, no weights after these.
ROUGH = 1e-9
ROUGH_IN_KERNELS = 1e-5  # of the latter: norms are roots of squares, whose terms cancel
MOST_NUMBERS = 2**25  # of rows that are looked at exactly
SAME_LENGTH = 1e-12  # difference of squared norms, relative to the largest, that is rounding
# Numbers of rows that are written out in search of weights under which they cancel; features with
# which NNLS takes seconds; and the price of weights that do not balance, in that search.
WRITTEN_OUT, MANY_FEATURES, STIFF = 2**22, 1000, 1e4
# Upper bound on margins (in radii) from which on a proof that nothing separates is sought; and,
# of features and of kernels, those below which rows may cancel.
WORTH_A_PROOF = 1e-2
VANISHING, KERNEL_VANISHING = 1e-9, 1e-6
# Error of a predictor of a hard tube beyond which it is tried to prove that none fits.
UNFIT = 1e-6


@dataclass(frozen=True)
class Predictor:
    """A predictor as it is published, and what it is worth.

    Attributes
    ----------
    coef, intercept : ndarray of shape (k, d) and (k,)
        For examples as they were given.
    w, f : ndarray
        The same in units of the examples: intercepts of all scores and, of tubes, their width.
    primal : Primal
    multiple : float
        What the given predictor was multiplied by.
    """

    coef: Array
    intercept: Array
    w: Array
    f: Array
    primal: Primal
    multiple: float = 1.0


@dataclass(frozen=True)
class Proof:
    """Published numbers, and what they prove, in units of the examples.

    Attributes
    ----------
    qp : QuadraticProgram
    predictor : Predictor
    alpha : ndarray of shape qp.shape
        Weights that sum to 1, or to another total that is asked for.
    dual : Dual
    refuted : bool
        Whether exact weights near these show that no predictor separates, or fits without slack.
    """

    qp: QuadraticProgram
    predictor: Predictor
    alpha: Array
    dual: Dual
    refuted: bool = False

    @property
    def primal(self) -> Primal:
        return self.predictor.primal

    @property
    def margin(self) -> float:
        """The margin that the predictor reaches, at least."""
        return float(self.primal.margin)

    @property
    def margin_bound(self) -> float:
        """No predictor has a larger one."""
        if self.qp.game:
            return float(self.dual.margin_bound)
        least = float(self.dual.objective())
        return float(margin_of(least, FLOATS, 1)) if 0.0 < least < inf else inf

    @property
    def gap(self) -> float:
        """Relative gap of both values: on margins, or on objectives of equally wide tubes."""
        if self.qp.by_margins:
            lower, upper = max(self.margin, 0.0), self.margin_bound
        else:
            wide = self.primal.violation if self.qp.hard else 0.0
            lower, upper = float(self.dual.objective(wide)), float(self.primal.objective)
        if lower >= upper:
            return 0.0
        return 1.0 if upper == inf else (upper - lower) / upper

    @property
    def weights(self) -> Array:
        """Multiple of alpha whose combination is the predictor, up to what the gap leaves."""
        if self.qp.game:
            length = float(self.dual.length)
            return self.alpha * (float(self.primal.norm) / length if length > 0.0 else 0.0)
        s = float(self.dual.best_multiple)
        return self.alpha * (max(s, 0.0) if s < inf else 1.0)


def prove(qp: QuadraticProgram, w: Array, f: Array, alpha: Array) -> Proof:
    """Publish a predictor and weights, and prove what they are worth.

    Parameters
    ----------
    qp : QuadraticProgram
        With a ``Design`` or a ``Gram``.
    w : ndarray of shape (k, d)
    f : ndarray of shape (n_free,)
        The level of hard margins and shares is not read.
    alpha : ndarray of shape qp.shape
        Feasible up to rounding.
    """
    width = f[-1:] if qp.level > 0 else f[:0]
    return with_weights(qp, published(qp, w, qp.offsets(f), width), alpha)


def with_weights(
    qp: QuadraticProgram, predictor: Predictor, alpha: Array, total: float = 1.0
) -> Proof:
    """Proof of a published predictor and of weights that are to sum to a total."""
    alpha = published_weights(qp, alpha, total)
    return Proof(qp, predictor, alpha, dual(qp, alpha, FLOATS))


def published(
    qp: QuadraticProgram, w: Array, b: Array, width: Any = (), origin: Array | float = 0.0
) -> Predictor:
    """A predictor at its best multiple, as it is published.

    Parameters
    ----------
    qp : QuadraticProgram
    w : ndarray of shape (k, d)
    b : ndarray of shape (k,)
        Intercepts of the scores.
    width : ndarray of shape (1,) or ()
        Of a tube whose width is an unknown.
    origin : ndarray of shape (k,), or float
        What was subtracted from the targets, which have no multiple.
    """
    examples, w, t = qp.examples, qp.project(w), 1.0
    S, M = examples.scores(w), examples.magnitudes(w)
    if qp.by_margins:
        shift = np.abs(b - examples.published(w)[1])  # intercepts are rounded
        v = lowest_values(qp, w, b, FLOATS, (S, M)) - 2.0 * FLOATS.unit * shift.max()
        t = best_multiple(qp, float(norm_of(qp, w, FLOATS)), v)
    coef, shift = examples.published(t * w)
    found = restated(qp, coef, (t * b + origin) - shift, width, origin, (t * S, t * M))
    return replace(found, multiple=t)


def restated(
    qp: QuadraticProgram,
    coef: Array,
    intercept: Array,
    width: Any = (),
    origin: Array | float = 0.0,
    known: Known = None,
) -> Predictor:
    """A predictor by its published numbers, see ``published``."""
    w, b = qp.examples.stated(coef, intercept, origin)
    f = np.append(b, width)
    return Predictor(coef, intercept, w, f, primal(qp, w, f, FLOATS, known))


def published_weights(qp: QuadraticProgram, alpha: Array, total: float = 1.0) -> Array:
    """Weights with this sum that balance, and keep to the upper bounds of a share.

    Other upper bounds are those of the multiple that proves most. Of the two rows of a target one
    has weight: their difference is what is published, and it is rounded.
    """
    if qp.codes is None and qp.example is not None:
        at = (qp.example, 0 if qp.output is None else qp.output)
        alpha = np.maximum(qp.sign * qp.coefficients(alpha)[at], 0.0)
    caps, _ = caps_of(qp, alpha)
    if qp.game and caps is not None:
        alpha = alpha / (float(alpha.sum()) or 1.0)
        within = bool(np.all(caps_of(qp, alpha)[1] <= caps * (1.0 + 8.0 * FLOATS.unit)))
        if not (within and imbalance(qp, alpha, FLOATS) <= 8.0 * FLOATS.unit):
            room = (
                replace(qp, upper=caps * BELOW) if qp.cap is None else replace(qp, cap=caps * BELOW)
            )
            found = room.feasible(alpha)
            alpha = found if abs(found.sum() - 1.0) <= 1e-12 else qp.feasible(alpha)
    else:
        of_any_size = np.where(qp.upper > 0.0, inf, 0.0)
        alpha = replace(qp, upper=of_any_size, cap=None, level=0, total=0).feasible(alpha)
    found = alpha.sum()
    return balanced(qp, alpha * (total / found)) if 0.0 < found < inf else np.zeros_like(alpha)


# That nothing separates, or fits.


def refuted(qp: QuadraticProgram, alpha: Array) -> Array | None:
    """Weights near alpha, or on few of its rows, that show that no predictor has its values.

    That is asked of the examples as they were given, without slack. None: nothing is proved.
    """
    for q in _candidates(qp, alpha):
        i, S, weights, gains = rows_with_weight(qp, q)
        if not 0 < len(i) * (qp.examples.d or 1) <= MOST_NUMBERS:
            continue
        X, factor, intercept = qp.examples.given(i)
        if qp.examples.d is None and qp.examples.kernel is not None:
            X = distinct(X)
        signs = None if qp.signs is None else qp.signs[: X.shape[1]]
        of: Any = {"intercept": intercept or qp.intercept, "signs": signs, "gains": gains}
        if refuting_weights(X, S, weights * factor, **of) is not None:
            return q
    return None


def rows_with_weight(
    qp: QuadraticProgram, alpha: Array
) -> tuple[Array, Array, Array, Array | None]:
    """Examples and scores of the rows with weight, these weights, and of intervals their ends."""
    if qp.codes is not None:
        i, j = np.nonzero(alpha * (np.arange(qp.k) != qp.codes[:, None]))
        S = np.eye(qp.k)[qp.codes[i]] - np.eye(qp.k)[j]
        return i, S[:, :-1], alpha[i, j], None  # the columns sum to 0
    r = np.flatnonzero(alpha)
    i = r if qp.example is None else qp.example[r]
    of = np.zeros(len(r), int) if qp.output is None else qp.output[r]
    S = qp.sign[r][:, None] * np.eye(qp.k)[of]
    if qp.by_margins:
        return i, S, alpha[r], None
    return i, S, alpha[r], qp.target[r] - float(error_of_targets(qp, FLOATS))


def _candidates(qp: QuadraticProgram, alpha: Array) -> Iterator[Array]:
    # what is far from a proof comes last: it would prove little where it is published
    rough = float(dual(qp, alpha, FLOATS).length) > ROUGH * float(alpha.sum())
    if not rough:
        yield alpha
    if qp.hard:  # few rows cannot have all the weight of a share
        found = equal_examples(qp)
        if found is not None:
            yield found
        found = on_few_rows(qp, alpha)
        if found is not None:
            apart = ROUGH if qp.examples.d is not None else ROUGH_IN_KERNELS
            if qp.by_margins and float(dual(qp, found, FLOATS).length) > apart * float(found.sum()):
                return  # no weights of these rows come nearer to 0
            yield found
    if rough and np.count_nonzero(alpha) * (qp.examples.d or 1) <= WRITTEN_OUT:
        yield alpha


def equal_examples(qp: QuadraticProgram) -> Array | None:
    """Weights of 1/2 on two equal examples of different classes, which must be in memory."""
    if not qp.by_margins or not getattr(qp.examples.X, "in_memory", True):
        return None
    codes = qp.codes if qp.codes is not None else (qp.sign > 0).astype(int)
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
            if qp.codes is None:
                q[[i, other]] = 0.5
            else:
                q[i, codes[other]] = q[other, codes[i]] = 0.5
            return q
    return None


def on_few_rows(qp: QuadraticProgram, alpha: Array) -> Array | None:
    """Weights on as many rows as there are equations, for which the rows cancel in floats.

    Nonnegative least squares among the rows with weight or, of intervals, among all rows.
    """
    width = (qp.examples.d or qp.examples.n) * qp.k
    if not qp.by_margins and width * alpha.size <= WRITTEN_OUT:
        alpha = np.ones(qp.shape)
    i, S, _, gains = rows_with_weight(qp, alpha)
    if not len(i) or width > MANY_FEATURES or len(i) * width > WRITTEN_OUT or qp.signs is not None:
        return None
    few, at = np.unique(i, return_inverse=True)
    if qp.examples.d is not None:
        Z = qp.examples.written_out(few)
    elif qp.examples.kernel is not None:  # of which only that examples are equal is exact
        Z = distinct(qp.examples.given(few)[0]).toarray()
    else:
        Z = qp.examples.gram(few, few)
    A = np.einsum("rk,rd->kdr", S, Z[at]).reshape(-1, len(i))
    if qp.intercept:
        A = np.vstack([A, STIFF * S.T])
    last = np.ones(len(i)) if gains is None else gains / (np.abs(gains).max() or 1.0)
    A, wanted = np.vstack([A, last]), np.append(np.zeros(len(A)), 1.0)
    try:
        q = nnls(A, wanted)[0]
    except RuntimeError:  # it cycles
        return None
    for _ in range(2):  # the last digits
        some = np.flatnonzero(q > 1e-12 * q.max())  # others are rounding
        q[some] += np.linalg.lstsq(A[:, some], wanted - A[:, some] @ q[some], rcond=None)[0]
    q[np.abs(q) <= 1e-12 * q.max()] = 0.0
    if not q.any() or q.min() < 0.0:
        return None
    found = np.zeros(qp.shape)
    if qp.codes is not None:
        alpha = alpha * (np.arange(qp.k) != qp.codes[:, None])
    found[np.nonzero(alpha)] = q
    return found


# What a fit publishes.


@dataclass(frozen=True)
class Confirmed:
    """What a fit publishes, in units of the problem, and what that proves.

    Attributes
    ----------
    model : Predictor
        Of the adapter: as rounds have found it.
    proofs : tuple of Proof
        One, or one for each output that is a problem of its own.
    unit : float
        A margin of the program in those of rows.
    scales : ndarray of shape (len(proofs),)
        Units of the outputs, relative to the largest.
    words : str
        What the model is where no separator was found, for a sentence; may be empty.
    """

    model: Any
    proofs: tuple[Proof, ...]
    unit: float
    scales: Array
    words: str = ""

    @property
    def refuted(self) -> bool:
        """Whether it is proved that no predictor separates, or that none fits."""
        return any(proof.refuted for proof in self.proofs)

    @property
    def separates(self) -> bool:
        """Whether the predictor separates, or fits; a soft margin is positive in either case."""
        if self.proofs[0].qp.by_margins:
            return bool(self.proofs[0].primal.separation > 0.0)
        return self.violation == 0.0

    @cached_property
    def lower(self) -> float:
        """The margin of the predictor, at least; of intervals, one over its norm."""
        if self.proofs[0].qp.by_margins:
            return self.proofs[0].margin / self.unit
        return 1.0 / self.norm if self.norm > 0.0 else inf

    @cached_property
    def upper(self) -> float:
        """No predictor has a larger margin; of intervals, a larger inverse of its norm."""
        if self.proofs[0].qp.by_margins:
            return self.proofs[0].margin_bound / self.unit
        return 1.0 / self.norm_bound() if self.norm_bound() > 0.0 else inf

    # Of intervals.

    @cached_property
    def norm(self) -> float:
        """Of the predictor and its slack, at most."""
        parts = zip(self.scales, self.proofs, strict=True)
        square = 2.0 * sum(s * s * float(proof.primal.objective) for s, proof in parts)
        return float(np.sqrt(square) * (1.0 + FLOATS.gamma(len(self.proofs) + 4)))

    @cached_property
    def violation(self) -> float:
        """Largest distance of a score from its interval, at most."""
        parts = zip(self.scales, self.proofs, strict=True)
        return float(max(s * proof.primal.violation for s, proof in parts))

    @property
    def allowed(self) -> float:
        """Violation of the predictors that it is compared with; slack makes up for it."""
        return self.violation if self.proofs[0].qp.hard else 0.0

    def objective_bounds(self, widened: float = 0.0) -> Array:
        """Least objectives of the outputs, where the intervals are widened by so much."""
        parts = zip(self.scales, self.proofs, strict=True)
        return np.array([proof.dual.objective(widened / s) for s, proof in parts], dtype=float)

    def norm_bound(self, widened: float = 0.0) -> float:
        """No predictor that fits intervals that are widened by so much is shorter."""
        square = 2.0 * float((self.scales**2 * self.objective_bounds(widened)).sum())
        return float(np.sqrt(square) * (1.0 - FLOATS.gamma(len(self.proofs) + 4)))

    def error(self, zero: float) -> float:
        """The largest relative gap of norms, or the violation relative to that of zero."""
        P = np.array([float(proof.primal.objective) for proof in self.proofs])
        D = self.objective_bounds(self.allowed)
        P, D = np.append(P, self.norm**2), np.append(D, self.norm_bound(self.allowed) ** 2)
        gaps = [1.0 - np.sqrt(min(max(d / p, 0.0), 1.0)) for p, d in zip(P, D, strict=True) if p]
        far = self.allowed / zero if zero > 0.0 else inf
        return float(max([0.0, *gaps, far if self.allowed > 0.0 else 0.0]))


def prove_overlap(problem: KernelMatrixAdapter, proof: Proof) -> Proof:
    """The same, refuted if exact weights near its own show that nothing separates."""
    qp = proof.qp
    small = WORTH_A_PROOF if qp.hard else vanishing(problem)
    hopeful = qp.game and proof.margin <= 0.0 and proof.margin_bound <= small
    if hopeful and (alpha := refuted(qp, proof.alpha)) is not None:
        return replace(with_weights(qp, proof.predictor, alpha), refuted=True)
    return proof


def vanishing(problem: KernelMatrixAdapter) -> float:
    """Upper bound (in radii) below which it may be proved that rows cancel."""
    return VANISHING if problem.examples.d is not None else KERNEL_VANISHING


def prove_intervals(
    problem: KernelMatrixAdapter,
    programs: list[QuadraticProgram],
    model: Any,
    points: list[tuple[Array, Array]],
    alphas: list[Array],
) -> Confirmed:
    """Publish predictors (w, f) and weights of programs of intervals, and prove their worth."""
    rows, k, found = output_rows(problem.rows), len(programs), []
    origin = np.broadcast_to(rows.origin if rows.balanced else 0.0, k * programs[0].k)
    middle = np.broadcast_to(rows.middle, k * programs[0].k)
    for o, (qp, (w, f), alpha) in enumerate(zip(programs, points, alphas, strict=True)):
        some = slice(o, o + qp.k)
        b, width = f[: len(w)], f[len(w) :]
        if not rows.balanced:
            b, width = np.zeros(len(w)), f
        if rows.farthest == 0.0:  # tubes that hold all targets with w = 0
            w, b, width = 0.0 * w, middle[some], 0.0 * width
        predictor = published(qp, w, b, width, origin[some])
        found.append(with_weights(qp, predictor, alpha, 1.0 / k))
    scales = np.ones(k) if rows.scales is None else np.atleast_1d(rows.scales)
    confirmed = Confirmed(model, tuple(found), 1.0, scales)
    if programs[0].hard and confirmed.error(rows.farthest) > UNFIT:
        tried = tuple(_refuted(proof, 1.0 / k) for proof in found)
        confirmed = replace(confirmed, proofs=tried)
    return confirmed


def _refuted(proof: Proof, total: float) -> Proof:
    alpha = refuted(proof.qp, proof.alpha)
    if alpha is None:
        return proof
    return replace(with_weights(proof.qp, proof.predictor, alpha, total), refuted=True)
