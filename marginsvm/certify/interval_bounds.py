"""What vectors prove where the scores of predictors are to lie in intervals.

A margin is one over a norm. Where the scores of w are asked to lie in intervals ``[l_i, h_i]``,
the average ``<A^T q, w>`` is no less than the *gain* of weights q, the sum of ``l_i q_i`` over
positive and of ``h_i q_i`` over negative weights. So no such w is shorter than ``gain / |A^T q|``.
If the intervals are widened by delta on both sides, the gain is less by ``delta sum |q_i|``.

Slack that costs its square adds a coordinate to each row. If it costs its size, with caps c on the
weights, the norm is the root of ``|w|^2 + 2 sum_i c_i xi_i``, and any multiple s q below the caps
proves that its square is no less than ``2 s gain - s^2 |A^T q|^2``. With a share nu, the intervals
are points, and s times the sum of ``|q_i|`` is to be at most nu times the sum of the caps as well.

An intercept that is not penalised asks for weights that sum to 0 for each output. Outputs with such
intercepts are problems of their own, and each is measured for itself as well.

Everything is in units of the problem's radius, and an estimate: rounds compute with it, and what is
published is proved by :mod:`marginsvm.certificate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum, inf
from typing import Any

import numpy as np

from marginsvm._rounding import FEW, PAIRWISE
from marginsvm._typing import Array
from marginsvm.certify.caps import room_below
from marginsvm.certify.interval_offsets import best_shift
from marginsvm.certify.prices import hinge_caps, sums_of_columns
from marginsvm.certify.tolerances import BALANCE_CORRECTIONS, IMBALANCE_SURCHARGE
from marginsvm.rows import AnyPredictor, OutputRows, Predictor, Vector, output_rows


@dataclass(frozen=True)
class Weighed:
    """What weights prove about the norms of predictors whose scores are in given intervals.

    Attributes
    ----------
    vector : Vector
        ``A^T q`` and the weights q, whose absolute values sum to 1, or all are 0.
    length : float
        ``|A^T q|``, slack included, at most.
    gain : float
        Their gain, at least.
    mass : float
        Sum of their absolute values.
    multiple : float or None
        Largest factor at which they are below the caps; None: there are no caps.
    parts : tuple of Weighed
        The same of each output, where these are problems of their own and there are several.
    """

    vector: Vector
    length: float
    gain: float
    mass: float
    multiple: float | None = None
    parts: tuple[Weighed, ...] = ()

    def widened(self, delta: float) -> float:
        """Lower bound on the norm where the intervals are widened by ``delta``."""
        gain = self.gain - delta * (1.0 + PAIRWISE) * self.mass
        if gain <= 0.0:
            return 0.0
        if self.multiple is None:
            return gain / self.length * (1.0 - FEW) if self.length > 0.0 else np.inf
        s = self.multiple * (1.0 - FEW)
        if self.length**2 > 0.0:
            s = min(s, gain / self.length**2)
        return float(np.sqrt(max(s * (2.0 * gain - s * self.length**2), 0.0))) * (1.0 - FEW)

    @property
    def norm(self) -> float:
        """Lower bound on the norm of every predictor that fits."""
        return self.widened(0.0)

    @property
    def best_scale(self) -> float:
        """The multiple of these weights that proves the bound, if intervals are not widened."""
        s = self.gain / self.length**2 if self.length**2 > 0.0 else inf
        s = max(s, 0.0) if self.multiple is None else min(max(s, 0.0), self.multiple)
        return s if s < inf else 1.0


def weighed(problem: Any, alpha: Array) -> Weighed:
    """What weights on the rows prove, whatever they are."""
    rows = output_rows(problem.rows)
    alpha, apart = rows.intervals.admissible(alpha), outputs_apart(rows)
    scales = 1.0 if rows.scales is None else rows.scales
    if apart:
        vector = problem.combine(_of_unit_size(alpha, 1.0, balanced=rows.balanced), precise=True)
        alpha = vector.coef * [part.best_scale for part in _parts(problem, vector)]
    q = _of_unit_size(alpha, scales, balanced=rows.balanced)
    vector = problem.combine(q, precise=True)
    if not apart:
        return _weighed(problem, vector)
    parts = _parts(problem, vector)
    pairs = [*zip(np.broadcast_to(scales, len(parts)), parts, strict=True)]
    multiples = [part.multiple for part in parts if part.multiple and part.mass > 0.0]
    return Weighed(
        vector,
        together([scale * part.length for scale, part in pairs]) * (1.0 + FEW),
        fsum(scale * scale * part.gain for scale, part in pairs) * (1.0 - FEW),
        fsum(scale * part.mass for scale, part in pairs) * (1.0 + FEW),
        None if problem.caps is None else min(multiples, default=0.0),
        tuple(parts),
    )


def _of_unit_size(alpha: Array, scales: float | Array, *, balanced: bool) -> Array:
    """Weights whose sizes, in the largest of the outputs' units, sum to 1, unless all are 0."""
    size = float(np.abs(alpha * scales).sum())
    q = alpha / size if size > 0.0 else np.zeros_like(alpha)
    return _balanced(q) if balanced else q


def published_weights(proof: Weighed, rows: OutputRows) -> Array:
    """The weights of a proof, in the largest of the outputs' units."""
    return proof.vector.coef * (1.0 if rows.scales is None else rows.scales)


def _parts(problem: Any, vector: Vector) -> list[Weighed]:
    """The same of each output."""
    apart = outputs_apart(output_rows(problem.rows))
    return [_weighed(problem, of_output(problem, vector, j)) for j in apart]


def _weighed(problem: Any, vector: Vector) -> Weighed:
    """The same of weights that are balanced, up to rounding."""
    rows, q, off = output_rows(problem.rows), vector.coef, 0.0
    if rows.balanced:
        off = float(np.abs(sums_of_outputs(q)).sum()) * (1.0 + FEW)
    slack = 0.0 if problem.slack is None else float(np.sqrt(np.sum(problem.slack * q * q)))
    length = float(np.hypot(problem.length(vector), slack)) * (1.0 + PAIRWISE)
    # The check counts from another origin, of examples and of the ends, see ``upper_bound``.
    length += IMBALANCE_SURCHARGE * off * problem.errors.farthest
    farthest = rows.intervals.size + float(np.abs(rows.origin).max(initial=0.0))
    gain = rows.intervals.gain(q) - IMBALANCE_SURCHARGE * off * farthest
    multiple = None if problem.caps is None else _multiple(problem, np.abs(q))
    return Weighed(vector, length, gain, float(np.abs(q).sum()), multiple)


def _multiple(problem: Any, sizes: Array) -> float:
    """Largest factor of weights at which they and their sums are below the caps; 0: all are 0."""
    caps = hinge_caps(problem.caps)
    if not sizes.any():
        return 0.0
    with np.errstate(over="ignore"):  # of what is too large, and then is not the least
        of_sums = room_below(caps.most, sums_of_columns(sizes))
        return min(room_below(caps.largest, sizes), of_sums) * (1.0 - FEW)


def _balanced(q: Array) -> Array:
    """Weights, changed in the last digits of a small one of each output, so that they sum to 0."""
    q = q.copy()
    for column in q.reshape(len(q), -1).T:
        for _ in range(BALANCE_CORRECTIONS):
            excess, some = fsum(column.tolist()), np.flatnonzero(column)
            able = some[np.abs(column[some]) > 2.0 * abs(excess)]
            if excess == 0.0 or not len(able):
                break
            column[able[np.abs(column[able]).argmin()]] -= excess
    return q


@dataclass(frozen=True)
class Fit:
    """A predictor, and how far its scores are from their intervals.

    Attributes
    ----------
    vector : Predictor
    norm : float
        Its norm, that of its slack included, at most.
    violation : float
        Largest distance of one of its scores to its interval, at most.
    allowed : float
        What it may be compared with: predictors that violate the intervals by no more than this.
        It is the violation or, with a soft margin, 0, as slack makes up for it.
    cost : float
        Root of the sum of squared distances to the intervals, weighted; with a soft margin, the
        norm.
    offsets : ndarray of shape rows.shape[1:]
        Its intercepts, the best ones, if they are not penalised; else 0.
    epsilon : ndarray of shape rows.shape[1:]
        With a share, half the width of its tubes, the best ones; else 0.
    parts : tuple of Fit
        The same of each output, where these are problems of their own and there are several.
    """

    vector: Predictor
    norm: float
    violation: float
    allowed: float
    cost: float
    offsets: Array = field(default_factory=lambda: np.zeros(()))
    epsilon: Array = field(default_factory=lambda: np.zeros(()))
    parts: tuple[Fit, ...] = ()

    def error(self, proof: Weighed, zero: float) -> float:
        """Relative gap, or the violation relative to that of zero if that is larger.

        Of outputs that are problems of their own, the largest of all.
        """
        least = max(proof.widened(self.allowed), 0.0)
        gap = 1.0 - min(least / self.norm, 1.0) if self.norm > 0.0 else 0.0
        error = max(gap, self.allowed / zero if zero > 0.0 else inf) if self.allowed > 0.0 else gap
        parts = zip(self.parts, proof.parts, strict=True)
        return max([error, *(fit.error(weights, zero) for fit, weights in parts)])


def measured_fit(problem: Any, vector: Predictor) -> Fit:
    """Norm and violation of the predictor of a vector, under the best intercepts."""
    rows, F = output_rows(problem.rows), problem.scores(vector)
    b = np.zeros(rows.shape[1:])
    if rows.balanced:
        b = best_shifts(problem, F)
    apart = outputs_apart(rows)
    if not apart:
        return _measured(problem, vector, F, b)
    parts = [_measured(problem, of_output(problem, vector, j), F, b, j) for j in apart]
    sized = [*zip(rows.scales, parts, strict=True)] if rows.scales is not None else []
    return Fit(
        vector,
        together([scale * fit.norm for scale, fit in sized]),
        max(scale * fit.violation for scale, fit in sized),
        max(scale * fit.allowed for scale, fit in sized),
        together([scale * fit.cost for scale, fit in sized]),
        b,
        np.array([fit.epsilon for fit in parts]),
        tuple(parts),
    )


def _measured(problem: Any, vector: Predictor, F: Array, b: Array, j: int | None = None) -> Fit:
    """The same for the scores of one output, or of all together, and given intercepts."""
    rows, norm = output_rows(problem.rows), problem.length(vector)

    def of(values: Array) -> Array:
        values = np.broadcast_to(values, rows.shape)
        return values if j is None else values[:, j]

    excess = of(rows.intervals.excess(F + b)) + rounding_of_scores(problem, vector, norm, b)
    violation = max(float(excess.max()), 0.0) * (1.0 + FEW)
    missing = np.maximum(excess, 0.0)
    if problem.caps is not None:
        caps = hinge_caps(problem.caps)
        caps = caps if j is None else caps.output(j)
        epsilon = caps.width(missing)
        outside = np.maximum(missing * (1.0 + FEW) - epsilon, 0.0)
        price = float(np.vdot(caps.largest, outside)) + float(np.sum(caps.most * epsilon))
        norm = float(np.sqrt(norm * norm + 2.0 * price * (1.0 + 4.0 * PAIRWISE))) * (1.0 + FEW)
        return Fit(vector, norm, violation, 0.0, norm, b, epsilon)
    if problem.slack is not None:
        squared = float(np.sum(missing**2 / of(problem.slack)))
        norm = float(np.hypot(norm, np.sqrt(squared))) * (1.0 + PAIRWISE)
        return Fit(vector, norm, violation, 0.0, norm, b)
    cost = float(np.sqrt((of(rows.weighted(np.ones(rows.shape))) * missing**2).sum()))
    return Fit(vector, norm, violation, violation, cost, b)


def rounding_of_scores(problem: Any, vector: Predictor, norm: float, b: Array) -> float:
    """By how much a score of a predictor with this norm and these intercepts may be rounded."""
    rows = output_rows(problem.rows)
    error = problem.margin_error(vector) + FEW * rows.intervals.size
    return error + (_error_of_intercepts(rows, b, moved=norm > 0.0) if rows.balanced else 0.0)


def best_shifts(problem: Any, F: Array) -> Array:
    """The intercepts at which predictors of these scores cost least, one for each output."""
    rows = output_rows(problem.rows)
    price: Array | None = None
    if problem.caps is not None:
        price = hinge_caps(problem.caps).largest
    elif problem.slack is not None:
        price = 1.0 / np.broadcast_to(problem.slack, rows.shape)
    low, high = (end - F for end in (rows.intervals.low, rows.intervals.high))
    columns = [
        best_shift(
            low.reshape(len(F), -1)[:, j],
            high.reshape(len(F), -1)[:, j],
            None if price is None else price.reshape(len(F), -1)[:, j],
            squared=problem.caps is None,
            share=1.0 if problem.caps is None else problem.caps.nu or 1.0,
        )
        for j in range(low[0].size)
    ]
    return np.array(columns).reshape(rows.shape[1:])


def _error_of_intercepts(rows: OutputRows, b: Array, *, moved: bool) -> float:
    """Rounding of the intercepts as they are published, with what was subtracted from the ends.

    The mean of the examples adds one more term, where the predictor is not 0.
    """
    origin, total = rows.origin, b + rows.origin
    rest = total - b
    error = np.abs((b - (total - rest)) + (origin - rest))
    error = error + FEW * (np.abs(b) + np.abs(total) * (0.25 if moved else 0.0))
    return float(error.max(initial=0.0))


def together(norms: list[float]) -> float:
    """The norm of all outputs, from those of each, at most."""
    return float(np.sqrt(fsum(x * x for x in norms))) * (1.0 + FEW)


def sums_of_outputs(q: Array) -> Array:
    """Sums of the weights of each output, each rounded once."""
    return np.array([fsum(column.tolist()) for column in q.reshape(len(q), -1).T])


def outputs_apart(rows: OutputRows) -> range:
    """Outputs that are problems of their own, where there are several; else none."""
    apart = rows.scales is not None and len(rows.shape) == 2
    return range(rows.shape[1] if apart else 0)


def of_output(problem: Any, vector: AnyPredictor, j: int) -> AnyPredictor:
    """The part of a predictor that belongs to one output."""
    coef = np.zeros_like(vector.coef)
    coef[:, j] = vector.coef[:, j]
    return type(vector)(problem.of_output(vector.image, j), coef)
