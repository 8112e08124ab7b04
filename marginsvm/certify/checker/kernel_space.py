"""Rows and predictors in the feature space of a kernel, known by their inner products."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels

from marginsvm.certify.checker.examples import Setting
from marginsvm.certify.exactly.overlap import distinct

_FAR_SQUARE = 1e4  # squared norm of a mean, times gamma: of farther examples, it is subtracted


class NoInnerProductsError(ValueError):
    """Exact numbers show that a kernel matrix is none of inner products: it proves nothing."""


class KernelSpace:
    """Combinations of the examples, with the norm that their kernel matrix defines.

    It has the methods of :class:`~marginsvm.certify.checker.linear_space.LinearSpace`.
    """

    signs = None  # of coefficients of features, which it does not have

    def __init__(self, setting: Setting) -> None:
        estimator, examples, numbers = setting.estimator, setting.examples, setting.numbers
        ((_, X),) = examples.blocks()  # a fit with a kernel has all examples at hand
        kept, given = examples.kept, estimator.kernel == "precomputed"
        K = X.take(kept, axis=1) if given else kernel_values(estimator, X, examples.weight)
        self._precomputed, self._features = K if given else None, X
        coef = np.zeros((len(kept), len(estimator.dual_coef_)))
        coef[np.searchsorted(kept, estimator.support_)] = estimator.dual_coef_.T
        self._numbers, self._shares = numbers, setting.shares
        self._coef, self._K = numbers.array(coef), numbers.array(K)
        self._intercept = numbers.array(estimator.intercept_)
        self._constant = numbers.number(setting.constant)
        self._scale = self._row_scale(estimator.normalize, len(kept))
        if numbers.are_exact and (self._K != self._K.T).any():
            raise NoInnerProductsError("the kernel matrix is not symmetric")

    def _row_scale(self, normalized: bool, n: int) -> NDArray:
        """What examples are multiplied with to become rows: inverses of norms, or 1."""
        numbers = self._numbers
        ones = numbers.array(np.ones(n))
        if not normalized:
            return ones
        # examples of a precomputed kernel have norms of 1, which nothing is divided by
        squared = np.diagonal(self._K) if self._precomputed is None else ones
        squared = np.maximum(squared, 0 * squared)  # of kernels that are no inner product
        return numbers.inverse(numbers.sqrt(squared + self._constant**2))

    def as_given(self, few: NDArray) -> tuple[Any, NDArray]:
        """Rows of a precomputed kernel matrix; else, a feature for each distinct example.

        The values of a kernel that is computed are rounded, and prove nothing of it, but
        equal examples are equal for any kernel.
        """
        if self._precomputed is not None:
            return self._precomputed[few], np.ones(len(few))
        return distinct(self._features[few]), np.ones(len(few))

    def scores(self) -> NDArray:
        """Decision values of all rows, a column for each line of ``dual_coef_``."""
        F = self._numbers.dot(self._K, self._coef) + self._intercept
        return F * self._scale[:, None]

    def has_wrong_signs(self) -> bool:
        """Whether a coefficient has a sign that it must not have."""
        return False

    def predictor_norm(self) -> Any:
        """Norm of the predictor; an intercept counts if it is a multiple of the constant."""
        squared = self._squared_norm(self._coef)
        if self._constant:
            squared = squared + ((self._intercept / self._constant) ** 2).sum()
        return self._numbers.sqrt(squared)

    def _squared_norm(self, V: NDArray) -> Any:
        """Sum of those of combinations; one below 0 is rounding only where numbers are rounded."""
        squared = (V * self._numbers.dot(self._K, V)).sum(axis=0)
        if self._numbers.are_exact and squared.min() < 0:
            raise NoInnerProductsError(
                "the kernel matrix is none of inner products: a combination has the squared norm "
                f"{float(squared.min()):.3g}. If that is rounding of its values, only a check with "
                "exact=False allows for it"
            )
        return squared.sum()

    def example_norms(self, centred: bool) -> NDArray:
        """Norms of the rows; ``centred``: distances from their mean."""
        squared = (np.diagonal(self._K) + self._constant**2) * self._scale**2
        if centred:
            mean = self._numbers.dot(self._K, self._shares)
            squared = squared - 2 * mean + (self._shares * mean).sum()
        return self._numbers.sqrt(squared)

    def distance_from_origin(self) -> float:
        """Norm of the mean of the examples at most: the largest norm of one."""
        return float(np.sqrt(float(abs(np.diagonal(self._K)).max())))

    def combination_norm(self, V: NDArray, imbalance: NDArray | None) -> Any:
        """Norm of the combination of the rows with the coefficients V.

        ``imbalance`` is what the columns of V sum to, if rows are to be counted from their mean.
        """
        if imbalance is None:
            V = V * self._scale[:, None]
            of_constant = self._constant * V.sum(axis=0)
            return self._numbers.sqrt(self._squared_norm(V) + (of_constant * of_constant).sum())
        return self._numbers.sqrt(self._squared_norm(V - self._shares[:, None] * imbalance))


def kernel_values(estimator: Any, X: Any, weight: NDArray) -> NDArray:
    """Values of the user's function, or of scikit-learn's of that name, at all pairs of examples.

    Parameters
    ----------
    estimator : fitted estimator
    X : ndarray or csr_array of shape (n_kept, n_features)
        The examples of positive weight.
    weight : ndarray of shape (n_kept,)
        Their weights, on which ``gamma="scale"`` depends.
    """
    if sp.issparse(X):  # some of scikit-learn's kernels need sorted entries and 32-bit indices
        X = X.copy()
        X.sum_duplicates()
        X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    params = estimator.kernel_params or {}
    if callable(estimator.kernel):
        K = estimator.kernel(X, X, **params)
        return K.toarray() if sp.issparse(K) else np.asarray(K)
    gamma = _gamma(estimator.gamma, X, weight)
    if getattr(estimator, "_widens_kernels", False):
        X = X.astype(np.float64)
    params = {"gamma": gamma, "degree": estimator.degree, "coef0": estimator.coef0, **params}
    if estimator.kernel == "rbf" and not sp.issparse(X):
        mean = X.mean(axis=0, dtype=X.dtype)
        if params["gamma"] * (mean @ mean) > _FAR_SQUARE:  # distances have more digits about a mean
            X = X - mean
    with np.errstate(over="ignore"):  # distances of examples in float32, whose kernel is 0
        return pairwise_kernels(X, X, metric=estimator.kernel, filter_params=True, **params)


def _gamma(gamma: str | float, X: Any, weight: NDArray) -> float:
    """``"scale"`` is 1 / (n_features * weighted variance of X), ``"auto"`` 1 / n_features."""
    if not isinstance(gamma, str):
        return gamma
    if gamma == "auto":
        return 1.0 / X.shape[1]
    X, weight = X.astype(np.float64), weight / (weight.sum() * X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):  # a kernel that is not finite was refused
        mean = float((weight @ X).sum())
        mean += _moment(X, weight, mean, 1)  # what rounding has left: equal entries have none
        variance = _moment(X, weight, mean, 2)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _moment(X: Any, weight: NDArray, mean: float, power: int) -> float:
    """Mean of a power of what the entries of X exceed a number by."""
    if not sp.issparse(X):
        return float((weight @ (X - mean) ** power).sum())
    stored = sp.csr_array(((X.data - mean) ** power, X.indices, X.indptr), shape=X.shape)
    zeros = weight @ (X.shape[1] - np.diff(X.indptr))
    return float((weight @ stored).sum() + zeros * np.float64(-mean) ** power)
