"""The published results of a fit, of one or several programs, and their certified values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from marginsvm._threads import cached_property
from marginsvm._typing import Array
from marginsvm.certificate.overlap import with_refutation
from marginsvm.certificate.publication import FLOATS, Proof, published, with_weights
from marginsvm.problem.quadratic_program import QuadraticProgram, gap_of_norms
from marginsvm.problem.rows import OutputRows
from marginsvm.problem.vectors import Predictor

# Error of the predictor of a hard tube above which a proof of infeasibility is tried.
UNFIT = 1e-6


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


def prove_intervals(
    rows: OutputRows,
    programs: list[QuadraticProgram],
    points: Iterable[tuple[Array, Array, Array]],
    model: Predictor,
) -> Certified:
    """Publish predictors and alpha, (w, f, alpha), for intervals, and bound both values."""
    k = len(programs)
    found = tuple(
        with_weights(qp, published(qp, w, b, width, origin), alpha, 1.0 / k)
        for qp, w, b, alpha, width, origin in of_outputs(rows, programs, points)
    )
    certified = Certified(model, found, scales_of(rows, programs))
    if programs[0].hard and certified.error(rows.farthest) > UNFIT:
        tried = tuple(with_refutation(proof, total=1.0 / k) for proof in found)
        certified = replace(certified, proofs=tried)
    return certified


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
        b = f[: len(w)]
        width = f[len(w) :]
        if not rows.balanced:
            b = np.zeros(len(w))
            width = f
        if rows.farthest == 0.0:  # all targets are in the tube with w = 0
            w = 0.0 * w
            b = middle[some]
            width = 0.0 * width
        yield qp, w, b, alpha, width, origin[some]
