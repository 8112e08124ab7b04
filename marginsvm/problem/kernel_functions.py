"""Kernel functions, and their arguments with a bound on the error of the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import methodcaller
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.metrics.pairwise import pairwise_kernels

from marginsvm._rounding import UNIT
from marginsvm._typing import Array, Stored, Values
from marginsvm.problem.design import mean_of
from marginsvm.problem.matrix import (
    FLOAT32,
    FLOAT64,
    Csr,
    Matrix,
    as_matrix,
    canonical,
    dense,
    on_host,
)
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.programs import ProblemSpec

T = TypeVar("T", float, Array)

LARGEST_POWER = 9  # degree of polynomials that are computed by products
# Error of an exponent from which on distances are computed by differences.
COARSE = 1e-11
# Roundings besides those of a product's terms: of a value, relative to it; of an exponent, relative
# to the two longest squares in it; and of the exponential, relative to it.
VALUE_UNITS = 18.0
EXPONENT_UNITS = 10.0
EXP_UNITS = 8.0


@dataclass(frozen=True)
class Kernel:
    """A kernel with all its parameters, ``gamma`` being a number.

    Attributes
    ----------
    metric : str or callable
        A name of scikit-learn's, or a function of two sets of examples.
    gamma, degree, coef0
        As in SVC.
    params : dict
        Further parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.kernel_functions import Kernel
    >>> Kernel("poly", gamma=1.0, degree=2, coef0=1.0)(np.eye(2), np.eye(2))
    array([[4., 1.],
           [1., 4.]])
    """

    metric: str | Callable[..., Stored] = "linear"
    gamma: float = 0.0
    degree: float = 0.0
    coef0: float = 0.0
    params: dict[str, object] = field(default_factory=dict)

    @property
    def power(self) -> int:
        """Degree of a polynomial kernel computed by products; 0: another kernel."""
        whole = float(self.degree).is_integer() and 0 < self.degree <= LARGEST_POWER
        return (
            int(self.degree) if self.metric in ("poly", "polynomial") and whole else 0
        )

    @property
    def of_products(self) -> bool:
        """Whether values are computed from inner products of examples, see ``Products``."""
        named = self.metric == "rbf" or self.power > 0
        return named and self.gamma >= 0.0 and not self.params

    @property
    def is_definite(self) -> bool:
        """Whether values are known to be inner products, whatever the examples are."""
        return self.of_products and (self.metric == "rbf" or self.coef0 >= 0.0)

    def of(self, G: Array) -> Array:
        """Values from the arguments (see ``Products``), in place."""
        if self.metric == "rbf":
            return np.exp(np.minimum(G, 0.0, out=G), out=G)
        G += G.dtype.type(self.coef0)
        base = G.copy(order="K") if self.power > 1 else G  # mixed orders take long
        for _ in range(self.power - 1):
            G *= base
        return G

    def __call__(self, X: Stored, Y: Stored) -> Array:
        """Values of all pairs, in NumPy; a callable is given both sets at once, as in SVC."""
        with np.errstate(all="ignore"):
            if self.of_products:
                if sp.issparse(X) != sp.issparse(Y):
                    X = sp.csr_array(X)
                    Y = sp.csr_array(Y)
                X, Y = (as_matrix(in_floats(Z)) for Z in (X, Y))
                products = Products(self, Y, X)
                K = products.values(products.embedded(X), products.examples)
                return self.checked(K)
            if callable(self.metric):
                K = dense(self.metric(X, Y, **self.params))
                if K.shape != (X.shape[0], Y.shape[0]):
                    raise ValueError(
                        "kernel(X, Y) must give a matrix with a row for each example of X and a "
                        f"column for each one of Y, here of shape {(X.shape[0], Y.shape[0])}, "
                        f"but it gave one of shape {K.shape}"
                    )
                # products with an integer matrix would be rounded to integers
                return self.checked(
                    K.astype(np.result_type(K.dtype, FLOAT32), copy=False)
                )
            named: dict[str, object] = {
                "gamma": self.gamma,
                "degree": self.degree,
                "coef0": self.coef0,
            }
            named |= {"filter_params": True} | self.params
            X, Y = (canonical(on_host(Z)).astype(FLOAT64, copy=False) for Z in (X, Y))
            with config_context(assume_finite=True):
                return self.checked(pairwise_kernels(X, Y, metric=self.metric, **named))

    def checked(self, K: T) -> T:
        """K, if its entries are finite; else raise."""
        if not np.isfinite(K).all():
            raise ValueError(
                f"kernel {self.metric!r} gives values that are not finite on these examples: scale "
                "X, or choose other kernel parameters"
            )
        return K


def variance_of(X: Matrix, weights: Array | None) -> float:
    """Variance of all entries, the examples weighted; exactly 0 if all are equal."""
    n, d = X.shape
    share = np.ones(n) if weights is None else weights
    share = share / (share.sum() * d)
    centre = np.float64(0.0)
    zeros = d - np.diff(X.array.indptr) if isinstance(X, Csr) else np.zeros(n)
    for _ in range(2):  # the second pass corrects rounding
        sums = X.about(np.full(d, centre)).times(np.ones(d))
        centre += share @ (sums - zeros * centre)
    squares = X.about(np.full(d, centre)).squared_norms(LpNorm(), None)
    return float(share @ (squares + zeros * centre**2))


def kernel_with(spec: ProblemSpec, gamma: float) -> Kernel:
    """The kernel of an estimator, with ``gamma`` for its data."""
    params: dict[str, Values] = dict(spec.kernel_params or {})
    named = {"gamma": gamma, "degree": spec.degree, "coef0": spec.coef0}
    if not callable(spec.kernel):
        named |= {name: params.pop(name) for name in tuple(named) if name in params}
    return Kernel(spec.kernel, **named, params=params)


def kernel_on(spec: ProblemSpec, X: Stored | Matrix, weights: Array | None) -> Kernel:
    """The kernel of an estimator on weighted examples; weight m counts like m copies."""
    if callable(spec.kernel) or spec.kernel == "precomputed":
        return kernel_with(spec, 0.0)
    if not isinstance(spec.gamma, str):
        return kernel_with(spec, spec.gamma)
    if spec.gamma == "auto":
        return kernel_with(spec, 1.0 / X.shape[1])
    # a kernel that is not finite is refused
    with np.errstate(over="ignore", invalid="ignore"):
        variance = variance_of(as_matrix(X), weights)
    return kernel_with(spec, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0)


def in_floats(X: Stored) -> Stored:
    """Examples whose numbers are floats, as sums of integers would be rounded to integers."""
    whole = isinstance(X, np.ndarray) or sp.issparse(X)
    return X.astype(FLOAT64) if whole and X.dtype.kind not in "f" else X


def unit_of(dtype: np.dtype) -> float:
    """Rounding of one operation in the precision of a type."""
    return 0.5 * float(np.finfo(dtype).eps)


class Products:
    """Arguments of kernels that are functions of inner products of examples.

    Polynomial kernel: products of ``sqrt(gamma) x``. Gaussian kernel: ``-gamma |x - y|^2``, which
    is, with ``s = sqrt(2 gamma) (x - centre)``, the product of ``(s, 1, -|s|^2 / 2)`` for x and
    ``(s, -|s|^2 / 2, 1)`` for y. The centre is the mean of the features that all examples store.
    Where cancellation would lose digits (a feature with a spread far above ``1 / sqrt(gamma)``),
    differences of the examples are computed.

    Parameters
    ----------
    kernel : Kernel
    X : Matrix
    others : Matrix or None
        Second set of examples; None: X itself.

    Attributes
    ----------
    examples : Matrix
        The vectors of these products; X where differences are computed.
    error : float
        Bound on the error of a value, relative to ``sqrt(K(x, x) K(y, y))``.
    """

    def __init__(self, kernel: Kernel, X: Matrix, others: Matrix | None = None) -> None:
        self.kernel = kernel
        self.gaussian = kernel.metric == "rbf"
        self.error = 0.0
        others = X if others is None else others
        self.by_differences = False
        self.centre = np.zeros(X.shape[1])
        # what is not finite is refused
        with np.errstate(over="ignore", invalid="ignore"):
            kernel.checked(X.squared_norms(LpNorm(), None).max(initial=0.0))
            if self.gaussian:
                self.centre = np.where(X.stored() & others.stored(), mean_of(X), 0.0)
            self.examples = self.embedded(X)
            every = [self.examples, *([] if others is X else [self.embedded(others)])]
            if not self.gaussian:
                squared = [
                    Z.squared_norms(LpNorm(), None).max(initial=0.0) for Z in every
                ]
                kernel.checked(kernel.of(np.array(squared)))
        terms = X.shape[1]
        if isinstance(X, Csr):
            terms = int(np.diff(X.array.indptr).max(initial=0))
        unit = unit_of(self.examples.dtype)
        self.error = unit * max(kernel.power, 1) * (terms + VALUE_UNITS)
        if self.gaussian:  # errors are those of an exponent
            longest = kernel.checked(max(-2.0 * float(Z.ends()[0][-1]) for Z in every))
            size = (terms + EXPONENT_UNITS) * 2.0 * longest + EXP_UNITS
            self.by_differences = not UNIT * size <= COARSE
            if not self.by_differences:
                self.error = unit * size
            else:  # differences are computed in float64
                self.examples = X
                self.error = UNIT * (terms + VALUE_UNITS)

    def embedded(self, X: Matrix) -> Matrix:
        """Other examples in the form of ``examples``."""
        if self.by_differences:
            return X
        scale = np.sqrt((1.0 + self.gaussian) * self.kernel.gamma)
        Z = X.about(self.centre).multiplied(np.full(len(X), scale))
        if not self.gaussian:
            return Z
        squared = Z.squared_norms(LpNorm(), None)
        return Z.extended(np.column_stack([np.ones(len(squared)), -0.5 * squared]))

    def values(self, some: Matrix, others: Matrix) -> Array:
        """Values of the kernel for all pairs, in the precision of the others."""
        W = some.written_out()
        gamma = self.kernel.gamma
        if self.by_differences:
            found = others.each(
                lambda X: cdist(W, X.written_out(), "sqeuclidean") * -gamma
            )
        else:
            if self.gaussian:
                W[:, -2:] = W[:, :-3:-1].copy()
            W = W.astype(others.dtype, copy=False)
            found = others.each(methodcaller("products", W))
        one = len(found) == 1
        return self.kernel.of(found[0] if one else np.concatenate(found, axis=1))
