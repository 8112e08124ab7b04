"""The fitted attributes of a regression: the predictor, its certificate, the history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.certificate.certificate import Certificate
from marginsvm.estimator.interval_set import IntervalSet, in_norms
from marginsvm.estimator.results import Fitted


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
            route=self.progress.route,
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
        table = np.array([*self.progress.history], dtype=np.float64).reshape(-1, 6)
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
