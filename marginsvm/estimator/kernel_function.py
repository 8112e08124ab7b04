"""The kernel function that an estimator's parameters name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import gen_batches
from sklearn.utils._array_api import array_api_compat, get_namespace

from marginsvm._typing import Array
from marginsvm.certify.host import is_foreign, on_host
from marginsvm.data.csr import as_block
from marginsvm.data.device import OnDevice, kernel_on_host
from marginsvm.data.normalized import norms_in_kernel
from marginsvm.problem.gaussian import gaussian_error, gaussian_kernel

# Entries that are converted at once (32 MB in float64), and the least number of examples of these.
_CONVERTED, _FEWEST_CONVERTED = 2**22, 128


@dataclass(frozen=True)
class KernelFunction:
    """A kernel with all its parameters, ``gamma`` being a number.

    Attributes
    ----------
    metric : str or callable
        The ``kernel`` of an estimator.
    gamma, degree, coef0, params
        See :class:`marginsvm.estimator.parameters.KernelParameters`.
    widens : bool
        Whether values of a named kernel are computed in float64, whatever the examples are in.
    """

    metric: Any = "linear"
    gamma: float = 0.0
    degree: float = 0.0
    coef0: float = 0.0
    params: dict[str, Any] = field(default_factory=dict)
    widens: bool = False

    @classmethod
    def of(cls, estimator: Any, gamma: float) -> KernelFunction:
        """The kernel of an estimator, with the ``gamma`` that its data gives it."""
        params = estimator.kernel_params or {}
        widens = getattr(estimator, "_widens_kernels", False)
        return cls(estimator.kernel, gamma, estimator.degree, estimator.coef0, params, widens)

    @classmethod
    def on(cls, estimator: Any, X: Any, weights: Array | None) -> KernelFunction:
        """The kernel of an estimator on these examples; one of weight m counts like m copies."""
        metric = getattr(estimator, "kernel", "linear")
        if metric == "linear":
            return cls()
        has_gamma = not callable(metric) and metric != "precomputed"
        return cls.of(estimator, _gamma(estimator.gamma, X, weights) if has_gamma else 0.0)

    @property
    def named_params(self) -> dict[str, Any]:
        """All parameters of named kernels; a kernel may have fewer."""
        return {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0} | self.params

    def __call__(self, X: Any, Y: Any) -> Array:
        """Kernel values of all pairs; a callable is given both sets at once, as in SVC."""
        X, Y = canonical(X), canonical(Y)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if callable(self.metric):
                K = self.metric(X, Y, **self.params)
                K = K.toarray() if sp.issparse(K) else np.asarray(K)
                if K.shape != (X.shape[0], Y.shape[0]):
                    raise ValueError(
                        "kernel(X, Y) must give a matrix with a row for each example of X and a "
                        f"column for each one of Y, here of shape {(X.shape[0], Y.shape[0])}, "
                        f"but it gave one of shape {K.shape}"
                    )
                # with values that are integers, results of products would be rounded to integers
                K = K.astype(np.result_type(K.dtype, np.float32), copy=False)
            else:
                K = self._named(X, Y)
        xp = get_namespace(K)[0]
        if not xp.all(xp.isfinite(K)):
            raise ValueError(
                f"kernel {self.metric!r} gives values that are not finite on these examples: scale "
                "X, or choose other kernel parameters"
            )
        return K

    def _named(self, X: Any, Y: Any) -> Array:
        """Values of a named kernel; examples that must be converted are converted in parts."""
        named = self.named_params
        wide = self.widens and hasattr(X, "astype")  # some devices have no float64
        if self.metric == "rbf":
            return self._gaussian(X, Y, wide)
        values = partial(pairwise_kernels, metric=self.metric, filter_params=True, **named)
        if not wide or {X.dtype, Y.dtype} == {np.dtype(np.float64)}:
            return values(X, Y)
        if is_foreign(X):
            return values(X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False))
        K = np.empty((X.shape[0], Y.shape[0]), np.float64)
        size = max(_FEWEST_CONVERTED, _CONVERTED // X.shape[1])
        for i in gen_batches(X.shape[0], size):
            some = X[i].astype(np.float64, copy=False)
            for j in gen_batches(Y.shape[0], size):
                K[i, j] = values(some, Y[j].astype(np.float64, copy=False))
        return K

    def _gaussian(self, X: Any, Y: Any, wide: bool) -> Any:
        """Values of the Gaussian kernel, computed on the host, where the examples are."""
        A, B = on_host(X), on_host(Y)
        dtype = np.float64 if wide else np.result_type(A.dtype, B.dtype)
        K = gaussian_kernel(A, B, self.named_params["gamma"], dtype)
        if not is_foreign(X):
            return K
        return array_api_compat.array_namespace(X).asarray(K, device=array_api_compat.device(X))

    def error(self, X: Any) -> float:
        """Error of the values of these examples, at most, where this package computes distances."""
        if self.metric != "rbf":
            return 0.0
        X = canonical(on_host(X.on_host().matrix if isinstance(X, OnDevice) else X))
        single = X.dtype == np.float32 and not self.widens
        return gaussian_error(X, self.named_params["gamma"]) + 2.0**-24 * single

    def on_host(self, X: Any) -> Any:
        """The function for examples like these, with its values in NumPy."""
        return kernel_on_host(self) if isinstance(X, OnDevice) else self

    def norms(self, X: Any) -> Array:
        """Norms of examples in the feature space of the kernel."""
        if self.metric == "linear":
            return as_block(X).norms()
        if self.metric == "precomputed":  # fit refuses a matrix of which this is not true
            return np.ones(X.shape[0])
        return norms_in_kernel(self.on_host(X), X)


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
    X = as_block(X)
    centre = X.mean_of_entries(share, 0.0, 1)
    centre += X.mean_of_entries(share, centre, 1)  # what rounding has left
    return X.mean_of_entries(share, centre, 2)


def canonical(X: Any) -> Any:
    """Bring a sparse matrix into the form that all of scikit-learn's kernels accept.

    It has no duplicate entries and, where 32-bit indices suffice, these.
    """
    if not sp.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 and max(*X.shape, X.nnz) < 2**31:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = type(X)(parts, shape=X.shape)
    return X
