"""Fitted attributes: predictor, certificate, history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import FEW
from marginsvm._threads import cached_property
from marginsvm._typing import Array, Values
from marginsvm.certificate.bounded import level_of, lowest_values
from marginsvm.certificate.certificate import Certificate, rows_in_words
from marginsvm.certificate.publication import (
    FLOATS,
    Certified,
    Proof,
    dual_coefficients,
    restated,
)
from marginsvm.estimators.training_data import INLIER, TrainingData
from marginsvm.fit import Method, Progress, certify
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.matrix import plain
from marginsvm.problem.rows import output_rows

EQUAL = 1e-11  # relative rounding of the values of examples at the edge


@dataclass(frozen=True)
class Fitted:
    """A fit of classes after some iteration, from which fitted attributes are computed.

    Attributes
    ----------
    algorithm : Method
    problem : KernelMatrixAdapter
    training : TrainingData
    progress : Progress
    """

    algorithm: Method
    problem: KernelMatrixAdapter
    training: TrainingData
    progress: Progress

    @cached_property
    def bounds(self) -> Certified:
        """The published predictor, with bounds that allow for all rounding."""
        known = self.progress.certified
        return known or certify(self.algorithm, self.problem, self.progress)

    @cached_property
    def proof(self) -> Proof:
        """The published predictor and dual variables, where there is one program."""
        return self.bounds.proofs[0]

    def attributes(self, status: str) -> dict[str, object]:
        """Fitted attributes that all estimators have, and the kernel's gamma."""
        certificate = self.certificate(status)
        return {
            **self.training.features,
            "_gamma": self.training.kernel.gamma,
            **self.model(),
            "certificate_": certificate,
            "n_iter_": self.progress.n_iter,
            "history_": self.history(certificate),
        }

    def history(self, certificate: Certificate) -> dict[str, Array]:
        """The bounds of iterations, in plain floats; the last row has the certified ones."""
        rows = self.progress.history
        end = self.progress.line
        rows = [*(row for row in rows if row.n_iter < end.n_iter), end]
        n_iter, n_passes, seconds, *values = np.array(rows, dtype=np.float64).T
        found = self.in_units(*values)
        for name, column in found.items():
            column[-1] = getattr(certificate, name)
        counts = {"n_iter": n_iter.astype(int), "n_passes": n_passes}
        return {**counts, "seconds": seconds, **found}

    def certificate(self, status: str) -> Certificate:
        """The certificate, in the user's units."""
        proof = self.proof
        bounds = self.bounds
        division = self.training.division
        radius = self.problem.radius
        lower = proof.margin * radius
        lower -= FEW * abs(lower)
        return Certificate(
            lower=lower,
            upper=max(proof.margin_bound * radius * (1.0 + FEW), lower, 0.0),
            reading="margin",
            status=status,
            # a soft margin is positive, separable or not
            feasible=True if bounds.separates else (False if bounds.refuted else None),
            weights=self.embedded(proof.alpha),
            radius=radius / float(self.problem.rows.square) ** 0.5,
            of=rows_in_words(division.constant) if division else "X",
            nu=self.problem.nu,
        )

    def model(self) -> dict[str, object]:
        """The predictor and its classes."""
        return self.model_of(self.proof.predictor.coef, self.proof.predictor.intercept)

    def model_of(self, coef: Array, intercept: Array) -> dict[str, object]:
        """``model`` for a predictor given by its coefficients for X as given."""
        division = self.training.division
        found = dict[str, object]()
        if division is not None:
            coef, intercept = division.undone(coef, intercept)
            found["constant_"] = division.constant
        found |= {"classes_": self.training.classes, "intercept_": intercept}
        if self.training.kernel.metric == "linear":
            return {**found, "coef_": coef}
        return {**found, **self.of_kernel(coef)}

    def of_kernel(self, coef: Array) -> dict[str, object]:
        """Attributes of a kernel predictor, as in SVC, from coefficients of all examples."""
        support = np.flatnonzero(coef.any(axis=0))
        return {**self.of_support(support), "dual_coef_": coef[:, support]}

    def of_support(self, support: Array) -> dict[str, object]:
        """Attributes of the support vectors, as in SVC, from indices in the problem."""
        found: dict[str, object] = {
            "support_": self.training.kept[support],
            "n_support_": self.n_support(support).astype(np.int32),
        }
        X = self.training.X
        if self.training.kernel.metric == "precomputed":
            return {**found, "support_vectors_": np.empty((0, 0))}
        if not getattr(X, "in_memory", True):
            return found
        return {**found, "support_vectors_": plain(X[support])}

    def n_support(self, support: Array) -> Array:
        """Number of support vectors in each class, from indices in the problem."""
        codes = self.training.rows.codes[support]
        k = self.training.rows.n_classes
        return np.bincount(codes, minlength=k)

    def embedded(self, q: Array) -> sp.csr_array:
        """Dual variables as a sparse array with one row for each given example."""
        q = q.reshape(len(q), -1)
        n = self.training.n_given
        there = q != 0.0
        dtype = np.int32 if q.size < 2**31 else np.int64
        indptr = np.zeros(n + 1, dtype)
        indptr[self.training.kept + 1] = np.count_nonzero(there, axis=1)
        np.cumsum(indptr, out=indptr)
        j = np.nonzero(there)[1].astype(dtype)
        return sp.csr_array((q[there], j, indptr), shape=(n, q.shape[1]))

    def in_units(
        self, lower: Values, upper: Values, violation: Values
    ) -> dict[str, Values]:
        """Bounds of iterations in the user's units."""
        unit = self.problem.radius
        return {"margin": lower * unit, "margin_bound": upper * unit}


class FittedOneClass(Fitted):
    """A fit to examples of one class after some iteration, on libsvm's scale.

    Alpha sums to nu times the sum of the sample weights; for a hard margin, to 1.
    """

    def certificate(self, status: str) -> Certificate:
        return replace(super().certificate(status), one_class=True)

    @property
    def _mass(self) -> float:
        """Sum of alpha."""
        nu = self.problem.nu
        weights = self.training.rows.weights
        total = len(self.training.kept) if weights is None else float(weights.sum())
        return 1.0 if nu is None else nu * total

    @cached_property
    def proof(self) -> Proof:
        """The proof, with the predictor scaled to the norm of ``A'alpha``.

        With a kernel: to the sum of alpha.
        """
        (proof,) = self.bounds.proofs
        predictor = proof.predictor
        norm = float(proof.primal.norm)
        if norm == 0.0:
            return proof
        scale = self._mass * float(proof.dual.length) * self.problem.radius**2 / norm
        if self.training.kernel.metric != "linear":
            scale = self._mass / float(predictor.coef.sum())
        predictor = restated(proof.qp, scale * predictor.coef, predictor.intercept)
        return replace(proof, predictor=predictor)

    def model(self) -> dict[str, object]:
        proof = self.proof
        predictor = proof.predictor
        # rho, less its rounding
        values = lowest_values(proof.qp, predictor.w, predictor.f, FLOATS)
        offset = float(level_of(proof.qp, values))
        offset -= EQUAL * abs(offset)
        found = {"offset_": offset, "intercept_": np.array([-offset])}
        if self.training.kernel.metric != "linear":
            return {**found, **self.of_kernel(predictor.coef)}
        support = np.flatnonzero(proof.alpha)
        dual_coef = self._mass * proof.alpha[None, support]
        of_support = self.of_support(support)
        return {**found, **of_support, "coef_": predictor.coef, "dual_coef_": dual_coef}

    def n_support(self, support: Array) -> Array:
        return super().n_support(support)[INLIER:]


class FittedIntervals(Fitted):
    """A fit of intervals after some iteration; outputs may be separate problems."""

    @property
    def _units(self) -> Array:
        """Scale of each output, in units of y."""
        return np.atleast_1d(self.training.units)

    def _of_outputs(self, values: Array) -> Any:
        return float(values[0]) if self.training.single else values

    @property
    def violation_of_zero(self) -> float | None:
        """Violation of the predictor w = 0, in units of y; None: slack covers violations."""
        farthest = output_rows(self.problem.rows).farthest * self.training.unit
        return farthest if self.bounds.proofs[0].qp.hard else None

    def certificate(self, status: str) -> Certificate:
        bounds = self.bounds
        unit = self.training.unit
        radius = self.problem.radius
        length = unit / radius
        proofs = bounds.proofs
        objectives = {}
        if self.training.spec.outputs_are_apart:
            squares = np.square(self._units / radius)
            least = bounds.objective_bounds(bounds.allowed)
            least = np.where([one.refuted for one in proofs], np.inf, least) * squares
            reached = (
                np.array([float(one.primal.objective) for one in proofs]) * squares
            )
            objectives["objective"] = self._of_outputs(reached * (1.0 + FEW))
            objectives["objective_bound"] = self._of_outputs(least * (1.0 - FEW))
        return Certificate(
            lower=np.inf if bounds.refuted else bounds.norm_bound() * length,
            upper=bounds.norm * length,
            reading="norm",
            status=status,
            feasible=False if bounds.refuted else (bounds.violation == 0.0 or None),
            weights=self.embedded(
                np.hstack([one.qp.rows.coefficients(one.alpha) for one in proofs])
            ),
            radius=radius,
            violation=bounds.violation * unit,
            widened_bound=bounds.norm_bound(bounds.allowed) * length,
            violation_of_zero=self.violation_of_zero,
            **objectives,
        )

    def model(self) -> dict[str, object]:
        training = self.training
        proofs = self.bounds.proofs
        units = self._units
        coef = np.concatenate([one.predictor.coef for one in proofs])
        intercept = np.concatenate([one.predictor.intercept for one in proofs]) * units
        coef = coef * np.broadcast_to(units, len(coef))[:, None]
        linear = training.kernel.metric == "linear"
        one = training.single
        found = (
            self.of_kernel(coef) if not linear else {"coef_": coef[0] if one else coef}
        )
        found |= {"intercept_": intercept, "_is_column": not one}
        if not training.spec.outputs_are_apart:
            return {**found, "intercept_": intercept[0] if one else intercept}
        # half of the width that was given, or of the best one
        width = np.full(len(units), training.epsilon)
        if self.problem.nu is not None:
            width = units * [proof.predictor.f[-1] for proof in proofs]
        found["epsilon_"] = self._of_outputs(width)
        if linear:  # the support of the proof, and its dual variables
            of = zip(proofs, self.problem.prices, strict=True)
            columns = [dual_coefficients(p.qp, p.weights, price) for p, price in of]
            alpha = np.hstack(columns) * units
            support = np.flatnonzero(alpha.any(axis=1))
            found |= {**self.of_support(support), "dual_coef_": alpha[support].T}
        return found

    def n_support(self, support: Array) -> Array:
        return np.array([len(support)])

    def in_units(
        self, lower: Values, upper: Values, violation: Values
    ) -> dict[str, Values]:
        """Bounds on the norm, the inverse of the margin."""
        length = self.training.unit / self.problem.radius
        with np.errstate(divide="ignore"):
            norm = length / np.asarray(lower)
            bound = length / np.asarray(upper)
        violation = violation * self.training.unit
        return {"norm": norm, "norm_bound": bound, "violation": violation}


def publish(estimator: Any, attributes: dict[str, object]) -> None:
    """Replace all fitted attributes at once, so that none of an earlier fit remain."""
    others = {
        name: value for name, value in vars(estimator).items() if not name.endswith("_")
    }
    estimator.__dict__ = {**others, **attributes}
