"""Kernel values that a certificate is checked with, from the parameters as they are documented."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels


def kernel_values(estimator: Any, X: Any, kept: NDArray, weight: NDArray) -> NDArray:
    """Kernel values of all pairs of the examples of positive weight.

    They are entries of the user's matrix, values of the user's function, or of scikit-learn's
    function of that name.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like or sparse matrix
        All examples; or their kernel matrix, if that is precomputed.
    kept : ndarray of shape (n_kept,)
        Which examples have a positive weight.
    weight : ndarray of shape (n_kept,)
        Their weights, on which ``gamma="scale"`` depends.
    """
    if estimator.kernel == "precomputed":
        return np.asarray(X)[np.ix_(kept, kept)]
    X = (sp.csr_array(X) if sp.issparse(X) else np.asarray(X))[kept]
    if sp.issparse(X):  # some of scikit-learn's kernels need sorted entries and 32-bit indices
        X.sum_duplicates()
        X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    params = estimator.kernel_params or {}
    if callable(estimator.kernel):
        return np.asarray(estimator.kernel(X, X, **params))
    gamma = _gamma(estimator.gamma, X, weight)
    params = {"gamma": gamma, "degree": estimator.degree, "coef0": estimator.coef0, **params}
    return pairwise_kernels(X, X, metric=estimator.kernel, filter_params=True, **params)


def _gamma(gamma: str | float, X: Any, weight: NDArray) -> float:
    """``"scale"`` is 1 / (n_features * weighted variance of X), ``"auto"`` 1 / n_features."""
    if not isinstance(gamma, str):
        return gamma
    if gamma == "auto":
        return 1.0 / X.shape[1]
    X, weight = X.astype(np.float64), weight / (weight.sum() * X.shape[1])
    mean = float((weight @ X).sum())
    squares = X.power(2) if sp.issparse(X) else (X - mean) ** 2
    variance = float((weight @ squares).sum()) - (mean**2 if sp.issparse(X) else 0.0)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
