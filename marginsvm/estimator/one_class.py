"""Examples of one class, without labels: their rows, and what a fit to them publishes.

Each example is a row, as those of the second of two classes are, and there is no intercept: the
margin is how far a predictor of norm 1 keeps the examples from the origin. What is published is on
libsvm's scale: the weights of a predictor sum to nu times those of all examples, and to 1 for a
hard margin.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certificate.bounded import level_of, lowest_values
from marginsvm.certificate.certificate import Certificate
from marginsvm.certificate.proof import FLOATS, Proof, restated
from marginsvm.estimator.on_device import refuse_foreign
from marginsvm.estimator.precomputed import check_gram
from marginsvm.estimator.results import Fitted
from marginsvm.estimator.training_set import ClassLabels, TrainingSet
from marginsvm.estimator.validated import (
    Validated,
    check_kernel_params,
    examples_at,
    positive,
    validated_weight,
)
from marginsvm.estimator.weights import ClassWeights
from marginsvm.problem.matrix import canonical

_INLIER, _OUTLIERS_FIRST = 1, np.array([-1, 1])  # the class of all examples, and what is predicted

# By how much values of examples at the edge differ in a fit, relative to it.
EQUAL = 1e-11


def one_class_set(estimator: Any, X: Any, sample_weight: Any) -> TrainingSet:
    """Validate the arguments of ``fit`` before a fit begins."""
    refuse_foreign(type(estimator).__name__, X)
    check_kernel_params(estimator)
    given = Validated.of(estimator, X)
    X = canonical(given.X)
    if estimator.kernel == "precomputed":
        check_gram(X)
    n = X.shape[0]
    kept, weights = positive(validated_weight(sample_weight, X), n)
    X = examples_at(X, kept, estimator.kernel)
    if len(kept) == 0:
        raise ValueError("all sample weights are 0: fit needs an example of positive weight")
    codes, none = np.full(len(kept), _INLIER), ClassWeights(np.empty(0), np.empty(0))
    labels = ClassLabels(codes, _OUTLIERS_FIRST, kept, weights, n - len(kept), none)
    training = TrainingSet.of(estimator, X, labels, features=given.features)
    return replace(training, classes=None)


class FittedOneClass(Fitted):
    """A fit to examples of one class after some round, from which attributes are computed."""

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
        return {**found, "n_support_": found["n_support_"][_INLIER:]}
