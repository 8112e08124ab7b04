"""Fitted attributes: the predictor, its certificate, the history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.certificate.bounded import level_of, lowest_values
from marginsvm.certificate.certificate import Certificate, rows_in_words
from marginsvm.certificate.proof import FLOATS, Proof, restated
from marginsvm.estimators.training_data import INLIER, IntervalSet, TrainingSet, in_norms
from marginsvm.fit import Algorithm, Progress
from marginsvm.fit.confirm import confirm
from marginsvm.fit.progress import Confirmed, Line
from marginsvm.problem.adapter import KernelMatrixAdapter


@dataclass(frozen=True)
class Fitted:
    """A fit after some round, from which the fitted attributes are computed.

    Attributes
    ----------
    algorithm : Algorithm
    problem : KernelMatrixAdapter
    training : TrainingSet
    progress : Progress
    """

    algorithm: Algorithm
    problem: KernelMatrixAdapter
    training: TrainingSet
    progress: Progress

    @cached_property
    def bounds(self) -> Confirmed:
        """Bounds that allow for all rounding."""
        known = self.progress.confirmed
        return known or confirm(self.algorithm, self.problem, self.progress)

    @cached_property
    def proof(self) -> Proof:
        """What is published, and what it proves."""
        return self.bounds.proofs[0]

    @property
    def unit(self) -> float:
        """The size of one radius in margin units."""
        return self.problem.radius * self.problem.rows.unit

    def certificate(self, status: str) -> Certificate:
        """The certificate, in the user's units."""
        training = self.training
        proof, radius, division = self.proof, self.problem.radius, training.division
        lower = proof.margin * radius
        lower -= FEW * abs(lower)
        return Certificate(
            lower=lower,
            upper=max(proof.margin_bound * radius * (1.0 + FEW), lower, 0.0),
            reading="margin",
            status=status,
            feasible=self._separable(),
            weights=training.embed(proof.alpha),
            radius=radius,
            of=rows_in_words(division.constant) if division else "X",
            nu=self.problem.nu,
        )

    def _separable(self) -> bool | None:
        if self.bounds.separates:  # a soft margin is positive, separable or not
            return True
        return False if self.bounds.refuted else None

    def attributes(self, status: str) -> dict[str, Any]:
        """Fitted attributes that all estimators have."""
        certificate = self.certificate(status)
        return {
            **self.training.features,
            "_gamma": self.training.kernel.gamma,
            **self._model(),
            **self._classes(),
            "certificate_": certificate,
            "n_iter_": self.progress.n_iter,
            "history_": _table(self.progress.history, self.unit),
        }

    def _classes(self) -> dict[str, Any]:
        return {"classes_": self.training.classes}

    def _model(self) -> dict[str, Any]:
        predictor, training = self.proof.predictor, self.training
        coef, intercept = predictor.coef, predictor.intercept
        found = {}
        if training.division is not None:
            coef, intercept = training.division.undone(coef, intercept)
            found["constant_"] = training.division.constant
        if training.kernel.metric == "linear":
            return {**found, "coef_": coef, "intercept_": intercept}
        support = np.flatnonzero(coef.any(axis=0))
        return {
            **found,
            **self.of_support(support),
            "support_vectors_": training.support_vectors(support),
            "dual_coef_": coef[:, support],
            "intercept_": intercept,
        }

    def of_support(self, support: Array) -> dict[str, Array]:
        """Which examples make up the predictor, by their indices in the problem, and how many."""
        codes, k = self.training.rows.codes[support], self.training.rows.n_classes
        n_support = np.bincount(codes, minlength=k).astype(np.int32)
        return {"support_": self.training.kept[support], "n_support_": n_support}


def _table(history: list[Line], unit: float) -> dict[str, Array]:
    """The columns of the history, with bounds in margin units."""
    table = np.array(history, dtype=np.float64).reshape(-1, 6)
    return {
        "n_iter": table[:, 0].astype(int),
        "n_passes": table[:, 1],
        "seconds": table[:, 2],
        "margin": table[:, 3] * unit,
        "margin_bound": table[:, 4] * unit,
    }


class FittedIntervals(Fitted):
    """A fit of intervals after some epoch, from which the fitted attributes are computed."""

    training: IntervalSet  # type: ignore[assignment]

    def certificate(self, status: str) -> Certificate:
        bounds, training, radius = self.bounds, self.training, self.problem.radius
        length = training.unit / radius
        return Certificate(
            lower=np.inf if bounds.refuted else bounds.norm_bound() * length,
            upper=bounds.norm * length,
            reading="norm",
            status=status,
            feasible=False if bounds.refuted else (bounds.violation == 0.0 or None),
            weights=training.embed(self._weights()),
            radius=radius,
            violation=bounds.violation * training.unit,
            widened_bound=bounds.norm_bound(bounds.allowed) * length,
        )

    def _weights(self) -> Array:
        """Signed weights of the examples and outputs."""
        return np.hstack([one.qp.coefficients(one.alpha) for one in self.bounds.proofs])

    def _published(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of all outputs (units of y)."""
        found = [one.predictor for one in self.bounds.proofs]
        coef = np.concatenate([predictor.coef for predictor in found])
        intercept = np.concatenate([predictor.intercept for predictor in found])
        units = np.broadcast_to(self.training.units, len(coef))
        return coef * units[:, None], intercept * units

    @property
    def _is_single(self) -> bool:
        """Whether y is an array without columns."""
        return self.training.intervals.low.ndim == 1 and not self.training.is_column

    def attributes(self, status: str) -> dict[str, Any]:
        training, (coef, intercept) = self.training, self._published()
        return {
            **training.features,
            **self._predictor(coef),
            "intercept_": intercept[0] if self._is_single else intercept,
            "certificate_": self.certificate(status),
            "n_iter_": self.progress.n_iter,
            "history_": self._table(),
        }

    def _predictor(self, coef: Array) -> dict[str, Any]:
        training = self.training
        if training.kernel.metric == "linear":
            return {"coef_": coef[0] if self._is_single else coef}
        support = np.flatnonzero(coef.any(axis=0))
        given = training.kernel.metric == "precomputed"
        vectors = np.empty((0, 0)) if given else training.X[support]
        return {
            "_gamma": training.kernel.gamma,
            "support_": training.kept[support],
            "n_support_": np.array([len(support)], dtype=np.int32),
            "support_vectors_": vectors,
            "dual_coef_": coef[:, support],
        }

    def _table(self) -> dict[str, Array]:
        """The columns of the history, in the user's units."""
        table = np.array(self.progress.history, dtype=np.float64).reshape(-1, 6)
        length = self.training.unit / self.problem.radius
        norm, bound = in_norms(table[:, 3], table[:, 4], length)
        return {
            "n_iter": table[:, 0].astype(int),
            "n_passes": table[:, 1],
            "seconds": table[:, 2],
            "norm": norm,
            "norm_bound": bound,
            "violation": table[:, 5] * self.training.unit,
        }


class FittedOutputs(FittedIntervals):
    """A fit of outputs that are problems of their own, each with its objective."""

    def certificate(self, status: str) -> Certificate:
        bounds = self.bounds
        least = bounds.objective_bounds(bounds.allowed)
        least = np.where([one.refuted for one in bounds.proofs], np.inf, least)
        reached = np.array([float(one.primal.objective) for one in bounds.proofs])
        return replace(
            super().certificate(status),
            objective=self._of_outputs(reached * self._squares * (1.0 + FEW)),
            objective_bound=self._of_outputs(least * self._squares * (1.0 - FEW)),
        )

    @property
    def _squares(self) -> Array:
        """Objectives in the user's units."""
        return np.square(np.atleast_1d(self.training.units) / self.problem.radius)

    def _of_outputs(self, values: Array) -> Any:
        return float(values[0]) if self._is_single else values

    def attributes(self, status: str) -> dict[str, Any]:
        found = super().attributes(status)
        found["intercept_"] = np.atleast_1d(found["intercept_"])
        found["epsilon_"] = self._of_outputs(self._epsilon())
        return {**found, **({} if self.training.kernel.metric != "linear" else self._dual())}

    def _epsilon(self) -> Array:
        """Half the width of the tube of each output: the one that was given, or the best one."""
        units = np.atleast_1d(self.training.units)
        if self.problem.nu is None:
            return np.full(len(units), self.training.epsilon)
        return units * [one.predictor.f[-1] for one in self.bounds.proofs]

    def _dual(self) -> dict[str, Array]:
        """The examples with weight in the proof of a linear predictor, and their weights."""
        proofs, units = self.bounds.proofs, np.atleast_1d(self.training.units)
        alpha = np.hstack([one.qp.coefficients(one.weights) for one in proofs])
        alpha = alpha * (units / self.problem.radius**2)
        support = np.flatnonzero(alpha.any(axis=1))
        return {"support_": self.training.kept[support], "dual_coef_": alpha[support].T}


# By how much values of examples at the edge differ in a fit, relative to it.
EQUAL = 1e-11


class FittedOneClass(Fitted):
    """A fit to examples of one class after some round, on libsvm's scale.

    The weights of a predictor sum to nu times those of all examples, and to 1 for a hard margin.
    """

    def certificate(self, status: str) -> Certificate:
        return replace(super().certificate(status), one_class=True)

    def _classes(self) -> dict[str, Any]:
        return {}

    @property
    def _mass(self) -> float:
        """What the weights of a predictor sum to."""
        if self.problem.nu is None:
            return 1.0
        weights = self.training.rows.weights
        total = len(self.training.kept) if weights is None else float(weights.sum())
        return self.problem.nu * total

    @cached_property
    def proof(self) -> Proof:
        """Of a predictor that has the length of the weights that prove the bound.

        Weights on the examples, as kernels have them, have their sum.
        """
        (proof,) = self.bounds.proofs
        predictor, norm = proof.predictor, float(proof.primal.norm)
        if norm == 0.0:
            return proof
        scale = self._mass * float(proof.dual.length) * self.problem.radius**2 / norm
        if self.training.kernel.metric != "linear":
            scale = self._mass / float(predictor.coef.sum())
        predictor = restated(proof.qp, scale * predictor.coef, predictor.intercept)
        return replace(proof, predictor=predictor)

    def _model(self) -> dict[str, Any]:
        training, proof = self.training, self.proof
        coef, offset = proof.predictor.coef, self._offset
        found = {"offset_": offset, "intercept_": np.array([-offset])}
        if training.kernel.metric == "linear":
            support = np.flatnonzero(proof.alpha)
            return {
                **found,
                **self.of_support(support),
                "coef_": coef,
                "dual_coef_": self._mass * proof.alpha[None, support],
            }
        support = np.flatnonzero(coef.any(axis=0))
        vectors = training.support_vectors(support)
        of_kernel = {"support_vectors_": vectors, "dual_coef_": coef[:, support]}
        return {**found, **self.of_support(support), **of_kernel}

    @property
    def _offset(self) -> float:
        """The value at the edge of the share, less its rounding."""
        qp, predictor = self.proof.qp, self.proof.predictor
        edge = float(level_of(qp, lowest_values(qp, predictor.w, predictor.f, FLOATS)))
        return edge - EQUAL * abs(edge)

    def of_support(self, support: Array) -> dict[str, Array]:
        found = super().of_support(support)
        return {**found, "n_support_": found["n_support_"][INLIER:]}
