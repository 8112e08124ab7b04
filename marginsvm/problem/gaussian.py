"""The Gaussian kernel, with a bound on the error of its values, whatever the units of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from marginsvm._rounding import UNIT, Extended
from marginsvm._typing import Array

# Errors of exponents from which on examples are taken about a mean that is far, and distances are
# computed by differences.
_FINE, _COARSE = 1e-13, 1e-11
# Kernel values (32 MB), and numbers of pairs of examples, that are computed at once.
_AT_ONCE = 2**22


@np.errstate(over="ignore", invalid="ignore")
def gaussian_kernel(X: Any, Y: Any, gamma: float, dtype: Any = np.float64) -> Array:
    """``exp(-gamma |x - y|^2)`` for all pairs of examples.

    Distances are computed from inner products, about the mean where that makes up most of the
    examples, or by differences where a feature is far longer than the distances that count.
    """
    if sp.issparse(X) != sp.issparse(Y):
        X, Y = sp.csr_array(X), sp.csr_array(Y)
    K, size = np.empty((X.shape[0], Y.shape[0]), dtype), int(np.sqrt(_AT_ONCE))
    for i in gen_batches(X.shape[0], size):
        A = X[i].astype(np.float64, copy=False)
        for j in gen_batches(Y.shape[0], size):
            D = _squared_distances(A, Y[j].astype(np.float64, copy=False), gamma)
            np.exp(np.multiply(D, -gamma, out=D), out=D)
            K[i, j] = D
    return K


@np.errstate(over="ignore", invalid="ignore")
def gaussian_error(X: Any, gamma: float) -> float:
    """Error of the kernel values of some examples with each other, at most."""
    X = X.astype(np.float64, copy=False)
    Z = _without(_mean(X, X), X)
    raw, centred = (_error_of_products(A, A, gamma) for A in (X, Z))
    # parts of the examples are farther from their mean, or from 0 where that is nearer
    exponent = min(raw, max(16.0 * centred, _FINE), _COARSE)
    largest = 4.0 * abs(gamma) * float(_squares(Z).max(initial=0.0))
    relative = UNIT * (_terms(X) + 8) * min(largest, 0.37)  # as x exp(-x) is 0.37 at most
    return float(np.expm1(exponent)) + relative + 4.0 * UNIT


def extended_values(X: Any) -> int:
    """How many kernel values of such examples are computed in extended precision: a second."""
    return 2**24 // max(1, _terms(X))


def extended_gaussian(X: Any, i: Array, j: Array, gamma: float) -> Array:
    """The kernel values of the examples i with the examples j, in extended precision."""
    D = _by_differences(X[i].astype(Extended), X[j].astype(Extended))
    return np.asarray(np.exp(-Extended(gamma) * D))


def _squared_distances(X: Any, Y: Any, gamma: float) -> Array:
    error = _error_of_products(X, Y, gamma)
    if error > _FINE:
        mean = _mean(X, Y)
        if mean @ mean > 0.5 * _squares(X if X.shape[0] > Y.shape[0] else Y).mean():
            A, B = _without(mean, X), _without(mean, Y)
            if (centred := _error_of_products(A, B, gamma)) < error:
                X, Y, error = A, B, centred
    if not error <= _COARSE:
        sparse = sp.issparse(X)
        return _by_differences(X, Y) if sparse else np.asarray(cdist(X, Y, "sqeuclidean"))
    D = X @ Y.T
    D = D.toarray() if sp.issparse(D) else D
    D *= -2.0
    D += _squares(X)[:, None]
    D += _squares(Y)
    return np.maximum(D, 0.0, out=D)


def _by_differences(X: Any, Y: Any) -> Array:
    n, m = X.shape[0], Y.shape[0]
    D, size = np.empty((n, m), X.dtype), max(1, _AT_ONCE // max(1, m * _terms(X)))
    for some in gen_batches(n, size):
        mine = np.arange(n)[some]
        D[some] = _squares(X[np.repeat(mine, m)] - Y[np.tile(np.arange(m), len(mine))]).reshape(
            -1, m
        )
    return D


def _squares(X: Any) -> Array:
    """Squared lengths of examples."""
    squares = X.multiply(X) if sp.issparse(X) else np.square(X)
    return np.asarray(squares.sum(axis=1)).ravel()


def _terms(X: Any) -> int:
    """Numbers that an example has, at most."""
    return int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else int(X.shape[1])


def _error_of_products(X: Any, Y: Any, gamma: float) -> float:
    """Error of the exponents that inner products give, at most: of the size of their terms."""
    farthest = sum(np.sqrt(_squares(Z).max(initial=0.0)) for Z in (X, Y))
    return float(UNIT * (max(_terms(X), _terms(Y)) + 8) * abs(gamma) * farthest**2)


def _mean(X: Any, Y: Any) -> Array:
    """The mean of the larger set; of sparse ones, 0 where not all examples store a feature."""
    larger = X if X.shape[0] > Y.shape[0] else Y
    mean = np.asarray(larger.mean(axis=0), np.float64).ravel()
    for Z in (X, Y) if sp.issparse(X) else ():
        mean[np.bincount(Z.indices, minlength=len(mean)) < Z.shape[0]] = 0.0
    return mean


def _without(mean: Array, X: Any) -> Any:
    """Examples with a mean subtracted, of sparse ones from what they store."""
    if not sp.issparse(X):
        return X - mean
    return sp.csr_array((X.data - mean[X.indices], X.indices, X.indptr), shape=X.shape)
