"""The fitted attributes of a regression: the predictor, its certificate, the history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.certificate.certificate import Certificate
from marginsvm.certify.interval_bounds import published_weights
from marginsvm.estimator.interval_set import IntervalSet, in_norms
from marginsvm.estimator.results import Fitted
from marginsvm.rows import output_rows


class FittedIntervals(Fitted):
    """A fit of intervals after some epoch, from which the fitted attributes are computed."""

    training: IntervalSet  # type: ignore[assignment]

    def certificate(self, status: str) -> Certificate:
        fit, proof, infeasible = self.bounds.fit, self.bounds.weighed, self.bounds.overlap
        assert fit is not None
        assert proof is not None
        unit, length = self.training.unit, self.training.unit / self.problem.radius
        return Certificate(
            lower=np.inf if infeasible else proof.norm * length,
            upper=fit.norm * length,
            reading="norm",
            status=status,
            feasible=False if infeasible else (bool(fit.violation == 0.0) or None),
            weights=self.training.embed(published_weights(proof, output_rows(self.problem.rows))),
            radius=self.problem.radius,
            route=self.progress.route,
            violation=float(fit.violation * unit),
            widened_bound=proof.widened(fit.allowed) * length,
        )

    def attributes(self, status: str) -> dict[str, Any]:
        certificate, training, fit = self.certificate(status), self.training, self.bounds.fit
        assert fit is not None
        coef, _ = self.problem.predictor(self.bounds.model, fit.offsets)
        coef, intercept = training.in_units(coef), self._intercept()
        if training.is_column:
            coef = coef[None]
        return {
            **training.features,
            **self._predictor(coef),
            "intercept_": np.broadcast_to(intercept, coef.shape[:-1])[()],
            "certificate_": certificate,
            "n_iter_": self.progress.n_iter,
            "history_": self._table(),
        }

    def _predictor(self, coef: Array) -> dict[str, Any]:
        training = self.training
        if training.kernel.metric == "linear":
            return {"coef_": coef}
        coef = np.atleast_2d(coef)
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

    def _intercept(self) -> Array:
        fit, training = self.bounds.fit, self.training
        assert fit is not None
        _, intercept = self.problem.predictor(self.bounds.model, fit.offsets)
        return np.asarray(training.units * intercept)

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

    @property
    def _is_single(self) -> bool:
        return not (self.training.is_column or self.training.units.ndim)

    def certificate(self, status: str) -> Certificate:
        fit, proof, training = self.bounds.fit, self.bounds.weighed, self.training
        assert fit is not None
        assert proof is not None
        lengths = np.atleast_1d(training.units) / self.problem.radius
        norms = np.array([part.norm for part in fit.parts or (fit,)]) * lengths
        bounds = np.array([part.norm for part in proof.parts or (proof,)]) * lengths
        if self.bounds.overlap:
            bounds = np.where(bounds > 0.0, np.inf, bounds)
        return replace(
            super().certificate(status),
            objective=_halved_squares(norms, 1.0 + FEW, single=self._is_single),
            objective_bound=_halved_squares(bounds, 1.0 - FEW, single=self._is_single),
        )

    def attributes(self, status: str) -> dict[str, Any]:
        return {
            **super().attributes(status),
            "intercept_": np.atleast_1d(self._intercept()),
            "epsilon_": self._epsilon(),
            **({} if self.training.kernel.metric != "linear" else self._dual()),
        }

    def _epsilon(self) -> Any:
        """Half the width of the tube of each output: the one that was given, or the best one."""
        fit, training = self.bounds.fit, self.training
        assert fit is not None
        given = self.problem.nu is None
        epsilon = training.epsilon if given else training.units * fit.epsilon
        epsilon = np.broadcast_to(epsilon, np.atleast_1d(training.units).shape)
        return float(epsilon[0]) if self._is_single else epsilon.copy()

    def _dual(self) -> dict[str, Array]:
        """The examples with weight in the proof of a linear predictor, and their weights."""
        proof, training = self.bounds.weighed, self.training
        assert proof is not None
        scales = np.array([part.best_scale for part in proof.parts or (proof,)])
        alpha = proof.vector.coef.reshape(len(training.kept), -1)
        alpha = alpha * (scales * np.atleast_1d(training.units) / self.problem.radius**2)
        support = np.flatnonzero(alpha.any(axis=1))
        return {"support_": training.kept[support], "dual_coef_": alpha[support].T}


def _halved_squares(norms: Array, outward: float, *, single: bool) -> Any:
    """Objectives of norms."""
    found = 0.5 * norms**2 * outward
    return float(found[0]) if single else found
