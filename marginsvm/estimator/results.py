"""The fitted attributes: the predictor, its certificate, the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._rounding import FEW
from marginsvm._typing import Array
from marginsvm.certificate.certificate import Certificate, rows_in_words
from marginsvm.certificate.proof import Proof
from marginsvm.estimator.training_set import TrainingSet
from marginsvm.fit import Algorithm, Progress
from marginsvm.fit.confirm import confirm
from marginsvm.fit.progress import Confirmed, History
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
            route=self.progress.route,
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


def _table(history: History, unit: float) -> dict[str, Array]:
    """The columns of the history, with bounds in margin units."""
    table = np.array([*history], dtype=np.float64).reshape(-1, 6)
    return {
        "n_iter": table[:, 0].astype(int),
        "n_passes": table[:, 1],
        "seconds": table[:, 2],
        "margin": table[:, 3] * unit,
        "margin_bound": table[:, 4] * unit,
    }
