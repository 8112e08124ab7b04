"""Rows and predictors as vectors of features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_monotonic_cst

from marginsvm.certify.checker.examples import Setting
from marginsvm.certify.checker.numbers import Floats


class LinearSpace:
    """Features of the examples, with p-norms of predictors and q-norms of rows, 1/p + 1/q = 1."""

    def __init__(self, setting: Setting) -> None:
        estimator, numbers = setting.estimator, setting.numbers
        self._numbers, self._examples, self._shares = numbers, setting.examples, setting.shares
        self._constant, self._normalized = setting.constant, setting.spec.normalize
        coef = estimator.coef_
        self._coef = numbers.array(coef.toarray() if sp.issparse(coef) else coef)
        self._intercept = numbers.array(estimator.intercept_)
        if self._constant:  # its coefficient is in the intercept
            coefficient = self._intercept[:, None] / numbers.number(self._constant)
            self._coef = np.hstack([self._coef, coefficient])
            self._intercept = 0 * self._intercept
        self.signs = signs_of(estimator)
        self._p = _exponent(setting.spec.p, estimator.coef_.shape[1])
        self._q = self._p / (self._p - 1.0)
        self._kept_blocks = [*self._read()] if setting.examples.in_memory else None

    def _blocks(self) -> Iterable[tuple[slice, Any]]:
        return self._read() if self._kept_blocks is None else self._kept_blocks

    def _read(self) -> Iterator[tuple[slice, Any]]:
        return ((block, self._as_fitted(X)) for block, X in self._examples.blocks())

    def _as_fitted(self, X: Any) -> Any:
        """Examples with the constant feature, and divided by their norms, where rows are these."""
        numbers, X = self._numbers, self._numbers.array(X)
        if self._constant:
            stack = sp.hstack if sp.issparse(X) else np.hstack
            X = stack([X, numbers.array(np.full((X.shape[0], 1), self._constant))])
        if self._normalized:
            X = X.tocsr() if sp.issparse(X) else X
            inverse = numbers.inverse(numbers.norms(X, 2.0))
            X = sp.diags_array(inverse) @ X if sp.issparse(X) else X * inverse[:, None]
        return X.tocsr() if sp.issparse(X) else X

    def as_given(self, few: NDArray) -> tuple[Any, NDArray]:
        """Some examples as the user gave them, and positive factors that turn them into rows."""
        X = self._examples.some(few)
        if not self._normalized:
            return X, np.ones(len(few))
        norms = Floats().norms(X, 2.0)
        inverse = Floats().inverse(np.hypot(norms, float(self._constant)))
        return X, np.where(inverse > 0, inverse, 1.0)

    def scores(self) -> NDArray:
        """Decision values of all examples, a column for each line of ``coef_``."""
        dot = self._numbers.dot
        return np.concatenate([dot(X, self._coef.T) for _, X in self._blocks()]) + self._intercept

    def has_wrong_signs(self) -> bool:
        """Whether a coefficient has a sign that it must not have."""
        return self.signs is not None and bool((self.signs * self._coef < 0).any())

    def predictor_norm(self) -> Any:
        """p-norm of the predictor."""
        return self._numbers.norms(self._coef.reshape(1, -1), self._p)[0]

    def example_norms(self, centred: bool) -> NDArray:
        """q-norms of the examples; ``centred``: Euclidean distances from their mean."""
        numbers, mean = self._numbers, self._mean() if centred else None
        return np.concatenate(
            [
                numbers.norms(X, self._q) if mean is None else numbers.distances(X, mean)
                for _, X in self._blocks()
            ]
        )

    def distance_from_origin(self) -> float:
        """Norm of the mean of the examples."""
        return float(self._numbers.norms(self._mean()[None], 2.0)[0])

    def _mean(self) -> NDArray:
        return self._combined(self._shares[:, None])[0]

    def _combined(self, V: NDArray) -> NDArray:
        """``V^T X``."""
        parts = (self._numbers.dot(V[block].T, X) for block, X in self._blocks())
        return reduce(np.add, parts)

    def combination_norm(self, V: NDArray, imbalance: NDArray | None) -> Any:
        """q-norm of ``V^T X``.

        ``imbalance`` is what the columns of V sum to, if X is to be counted from its mean.
        """
        W = self._combined(V)
        if imbalance is not None:
            W = W - imbalance[:, None] * self._mean()
        if self.signs is not None:  # no predictor with these signs gains by the others
            W = np.where(self.signs * W < 0, 0 * W, W)
        return self._numbers.norms(W.reshape(1, -1), self._q)[0]


def signs_of(estimator: Any) -> NDArray | None:
    """Signs that the coefficients of an estimator must have: -1, 0 or 1; None: any."""
    given = getattr(estimator, "monotonic_cst", None)
    return None if given is None else _check_monotonic_cst(estimator, given).astype(int)


def _exponent(p: float | str, n_features: int) -> float:
    """The exponent p of the norm; ``"sparse"`` is ``1 + 1 / log(n_features)``, at most 2."""
    if p == "sparse":
        return 1.0 + 1.0 / max(float(np.log(n_features)), 1.0)
    return float(p)
