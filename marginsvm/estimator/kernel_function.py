"""The kernel that an estimator's parameters name."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.kernels import Kernel
from marginsvm.problem.matrix import as_matrix


def kernel_with(estimator: Any, gamma: float) -> Kernel:
    """The kernel of an estimator, with the ``gamma`` that its data gives it."""
    params = dict(estimator.kernel_params or {})
    named = {"gamma": gamma, "degree": estimator.degree, "coef0": estimator.coef0}
    if not callable(estimator.kernel):
        named |= {name: params.pop(name) for name in tuple(named) if name in params}
    return Kernel(estimator.kernel, **named, params=params)


def kernel_on(estimator: Any, X: Any, weights: Array | None) -> Kernel:
    """The kernel of an estimator on these examples; one of weight m counts like m copies."""
    metric = getattr(estimator, "kernel", "linear")
    if metric == "linear":
        return Kernel()
    has_gamma = not callable(metric) and metric != "precomputed"
    return kernel_with(estimator, _gamma(estimator.gamma, X, weights) if has_gamma else 0.0)


def norms_of(kernel: Kernel, X: Any) -> Array:
    """Norms of examples in the feature space of a kernel, in float64."""
    if kernel.metric == "linear":
        return as_matrix(X).norms()
    if kernel.metric == "precomputed":  # fit refuses a matrix of which this is not true
        return np.ones(X.shape[0])
    blocks = [as_matrix(X)[i : i + 256].array for i in range(0, X.shape[0], 256)]
    diagonal = np.concatenate([np.diagonal(kernel(B, B)) for B in blocks])
    return np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0))


def _gamma(gamma: str | float, X: Any, weights: Array | None) -> float:
    """``gamma`` as SVC understands it; an example of weight m counts like m copies."""
    if not isinstance(gamma, str):
        return gamma
    if gamma == "auto":
        return 1.0 / X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):  # a kernel that is not finite is refused
        variance = _variance(X, weights)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _variance(X: Any, weights: Array | None) -> float:
    """Variance of all entries of X, its examples weighted; exactly 0 if all are equal."""
    n, d = X.shape
    share = np.ones(n) if weights is None else weights
    share = share / share.sum() / d
    X = as_matrix(X)
    centre = X.mean_of_entries(share, 0.0, 1)
    centre += X.mean_of_entries(share, centre, 1)  # what rounding has left
    return X.mean_of_entries(share, centre, 2)
