"""A predictor of another program, as numbers: its scores and its norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import gen_batches

from marginsvm._typing import Array

_VALUES = 2**24  # of the kernel at a time: 128 MB


@dataclass(frozen=True)
class Kernel:
    """A kernel as libsvm has it, and the examples that a predictor is a combination of.

    Attributes
    ----------
    metric : str or callable
    params : dict
        Of a kernel of a name.
    vectors : ndarray or csr matrix of shape (n_support, n_features)
        The examples or, if precomputed, the lines of the kernel matrix that belong to them.
    support : ndarray of shape (n_support,) or None
        Their places; only needed if precomputed.
    """

    metric: str | Callable[..., Array]
    params: dict[str, float]
    vectors: Any
    support: Array | None = None

    def __call__(self, X: Any) -> Array:
        """Values at examples and vectors."""
        if self.metric == "precomputed":
            return np.asarray(X[:, self.support])
        if callable(self.metric):
            return np.asarray(self.metric(X, self.vectors))
        return pairwise_kernels(
            X, self.vectors, metric=self.metric, filter_params=True, **self.params
        )

    def of(self, some: Array) -> Kernel:
        """The same with some of the vectors."""
        support = None if self.support is None else self.support[some]
        return replace(self, vectors=self.vectors[some], support=support)


@dataclass(frozen=True)
class AuditedPredictor:
    """Coefficients of features, or of the vectors of a kernel, and an intercept.

    Attributes
    ----------
    coef : ndarray of shape (n_scores, n_features) or (n_scores, n_support)
    intercept : ndarray of shape (n_scores,)
    kernel : Kernel or None
        None: a linear predictor.
    """

    coef: Array
    intercept: Array
    kernel: Kernel | None = None

    def scores(self, X: Any) -> Array:
        """Decision values of examples, of shape (n, n_scores)."""
        if self.kernel is None:
            return np.asarray(X @ self.coef.T) + self.intercept
        lines = max(1, _VALUES // max(1, self.coef.shape[1]))
        parts = [self.kernel(X[here]) @ self.coef.T for here in gen_batches(X.shape[0], lines)]
        return np.concatenate(parts) + self.intercept

    @property
    def words(self) -> list[str]:
        """The name of its kernel, if it has one."""
        if self.kernel is None:
            return []
        metric = self.kernel.metric
        return [f"{metric if isinstance(metric, str) else 'callable'} kernel"]

    def squared_norm(self) -> float:
        """Its square, without the intercept."""
        if self.kernel is None:
            return float(np.sum(self.coef * self.coef))
        image = replace(self, intercept=0.0 * self.intercept).scores(self.kernel.vectors)
        return max(float(np.sum(self.coef * image.T)), 0.0)

    def flat(self) -> AuditedPredictor:
        """The same by coefficients of the features, where its kernel is linear."""
        if self.kernel is None or self.kernel.metric != "linear":
            return self
        return AuditedPredictor(np.asarray(self.coef @ self.kernel.vectors), self.intercept)


def with_constant(X: Any, constant: float | None) -> Any:
    """Examples with one feature more that all share: an intercept that is penalised."""
    column = np.full((X.shape[0], 1), constant)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
