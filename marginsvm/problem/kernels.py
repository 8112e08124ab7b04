"""Kernel functions, and the Gram matrix with a bound on the error of its entries.

Certificates and solvers access a kernel through :class:`Gram`, in place of a
:class:`~marginsvm.problem.design.Design`: predictors w are coefficients of shape (k, n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.metrics.pairwise import pairwise_kernels

from marginsvm._rounding import CHAIN, PAIRWISE, UNIT, LpNorm, additions, product
from marginsvm._threads import cached_property, ordered_map
from marginsvm._typing import Array
from marginsvm.problem.design import mean_of
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.matrix import (
    FLOAT32,
    FLOAT64,
    Matrix,
    as_matrix,
    canonical,
    is_foreign,
    on_host,
    support_of,
)

CACHE_SIZE = 2000.0  # MB: columns of 8,700 of 30,000 examples
# Memory of the kernel values computed at once, and of the strip of a stored matrix that a thread
# multiplies at once. Smallest number of strips of a product: sums depend on their number; and the
# memory of a matrix that is one strip, as it stays in cache.
COMPUTED_BYTES, STRIP_BYTES, STRIPS, AT_ONCE = 2**24, 2**22, 8, 2**23
EXAMPLES_AT_ONCE = 4096  # of a column that a thread computes
BLOCK = 128  # examples of a block on the diagonal, of which only the diagonal is kept
LARGEST_POWER = 9  # degree of polynomials that are computed by products
# Error of an exponent from which on distances are computed by differences.
COARSE = 1e-11
TAKEN = 32  # columns that are computed at once where they are not kept
FIRST_GUESSES = 16  # columns; and two more for each that has been used


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
    >>> from marginsvm.problem.kernels import Kernel
    >>> Kernel("poly", gamma=1.0, degree=2, coef0=1.0)(np.eye(2), np.eye(2))
    array([[4., 1.],
           [1., 4.]])
    """

    metric: Any = "linear"
    gamma: float = 0.0
    degree: float = 0.0
    coef0: float = 0.0
    params: dict[str, Any] = field(default_factory=dict)

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

    def __call__(self, X: Any, Y: Any) -> Array:
        """Values of all pairs, in NumPy; a callable is given both sets at once, as in SVC."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self.of_products:
                if sp.issparse(X) != sp.issparse(Y):
                    X, Y = sp.csr_array(X), sp.csr_array(Y)
                X, Y = (as_matrix(in_floats(Z)) for Z in (X, Y))
                products = Products(self, Y, X)
                K = products.arguments(products.embedded(X), products.examples)
                return self.checked(self.of(K))
            if callable(self.metric):
                K = self.metric(X, Y, **self.params)
                K = K.toarray() if sp.issparse(K) else np.asarray(K)
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
            named = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
            named |= {"filter_params": True} | self.params
            X, Y = (canonical(on_host(Z)).astype(FLOAT64, copy=False) for Z in (X, Y))
            with config_context(assume_finite=True):
                return self.checked(pairwise_kernels(X, Y, metric=self.metric, **named))

    def checked(self, K: Any) -> Any:
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
    centre, zeros = (
        np.float64(0.0),
        d - np.diff(X.array.indptr) if X.sparse else np.zeros(n),
    )
    for _ in range(2):  # the second pass corrects rounding
        sums = X.about(np.full(d, centre)).times(np.ones(d))
        centre += share @ (sums - zeros * centre)
    squares = X.about(np.full(d, centre)).squared_norms(LpNorm(), None)
    return float(share @ (squares + zeros * centre**2))


def kernel_with(spec: Any, gamma: float) -> Kernel:
    """The kernel of an estimator, with ``gamma`` for its data."""
    params = dict(spec.kernel_params or {})
    named = {"gamma": gamma, "degree": spec.degree, "coef0": spec.coef0}
    if not callable(spec.kernel):
        named |= {name: params.pop(name) for name in tuple(named) if name in params}
    return Kernel(spec.kernel, **named, params=params)


def kernel_on(spec: Any, X: Any, weights: Array | None) -> Kernel:
    """The kernel of an estimator on weighted examples; weight m counts like m copies."""
    if callable(spec.kernel) or spec.kernel == "precomputed":
        return kernel_with(spec, 0.0)
    if not isinstance(spec.gamma, str):
        return kernel_with(spec, spec.gamma)
    if spec.gamma == "auto":
        return kernel_with(spec, 1.0 / X.shape[1])
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a kernel that is not finite is refused
        variance = variance_of(as_matrix(X), weights)
    return kernel_with(spec, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0)


def in_floats(X: Any) -> Any:
    """Examples whose numbers are floats, as sums of integers would be rounded to integers."""
    whole = isinstance(X, np.ndarray) or sp.issparse(X)
    return X.astype(FLOAT64) if whole and X.dtype.kind not in "f" else X


def unit_of(dtype: Any) -> float:
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
        self.kernel, self.gaussian, self.error = kernel, kernel.metric == "rbf", 0.0
        others, self.by_differences = X if others is None else others, False
        self.centre = np.zeros(X.shape[1])
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # what is not finite is refused
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
        terms = int(np.diff(X.array.indptr).max(initial=0)) if X.sparse else X.shape[1]
        unit = unit_of(self.examples.dtype)
        self.error = unit * max(kernel.power, 1) * (terms + 18.0)
        if self.gaussian:  # of an exponent
            longest = kernel.checked(max(-2.0 * float(Z.ends()[0][-1]) for Z in every))
            size = (terms + 10.0) * 2.0 * longest + 8.0
            self.by_differences = not UNIT * size <= COARSE
            if not self.by_differences:
                self.error = unit * size
            else:  # in float64
                self.examples, self.error = X, UNIT * (terms + 18.0)

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

    def arguments(self, some: Matrix, others: Matrix) -> Array:
        """Arguments of the kernel for all pairs, in the precision of the others."""
        W, gamma = some.written_out(), self.kernel.gamma
        if self.by_differences:
            return np.concatenate(
                others.each(
                    lambda X: cdist(W, X.written_out(), "sqeuclidean") * -gamma
                ),
                axis=1,
            )
        if self.gaussian:
            W[:, -2:] = W[:, :-3:-1].copy()
        right = W.T.astype(others.dtype, copy=False)
        return np.concatenate(others.each(lambda X: X.times(right).T), axis=1)


class ColumnCache:
    """LRU cache of columns of a Gram matrix that is never formed.

    Columns are always computed ``batch`` at a time, as products of another width round differently:
    a recomputed column has the same bits. So the cache size changes the time of a fit and nothing
    else. Compiled loops read the arrays: ``columns[slot[i]]`` is the column of example i.

    Parameters
    ----------
    compute : callable
        ``compute(examples) -> (len(examples), n)`` columns.
    n : int
    dtype : dtype
    size : float
        Memory (MB).
    batch : int
        Columns that are computed together: 16 cost about as much as four single ones.
    at_least : int
        Least capacity (columns), whatever the size.
    whole : ndarray of shape (n, n) or None
        The whole matrix, if it is in memory.
    order : ndarray of shape (n,) or None
        Order of the numbers of a column, unless the whole matrix is in memory.

    Attributes
    ----------
    columns : ndarray of shape (capacity, n)
    slot : ndarray of shape (n,)
        Position of each example's column; -1 if not cached.
    used : ndarray of shape (capacity + 1,)
        Time of the last use of each column and, as the last entry, the present time.
    n_used, n_missed : int
        Columns used so far, and cache misses among them.
    passes : float
        Passes that one column counts as.
    """

    n_used = n_missed = _n_guesses = _n_guesses_used = 0
    passes = 1.0

    def __init__(
        self,
        compute: Callable[[Array], Array],
        n: int,
        dtype: Any = FLOAT64,
        size: float = CACHE_SIZE,
        batch: int = 1,
        at_least: int = 1,
        whole: Array | None = None,
        order: Array | None = None,
    ) -> None:
        self.order = order if whole is None else None
        self._place = (
            np.argsort(self.order) if self.order is not None else np.empty(0, int)
        )
        self._compute, self.batch = compute, min(batch, n)
        capacity, self.slot = n, np.arange(n)
        if whole is None:
            room = int(size * 2**20 / (n * np.dtype(dtype).itemsize))
            capacity = min(max(room, self.batch + at_least), n)
            self.slot, whole = np.full(n, -1), np.empty((capacity, n), dtype)
        self.columns = whole if whole.flags.c_contiguous else whole.T  # symmetric
        self.used = np.zeros(capacity + 1, np.int64)
        self._owner = np.full(capacity, -1)
        self._guessed = np.zeros(capacity, np.int64)

    @property
    def hit_rate(self) -> float:
        """Cache hits per used column."""
        return 1.0 - self.n_missed / max(self.n_used, 1)

    def has(self, examples: Array) -> bool:
        """Whether the columns of these examples are cached."""
        return bool((self.slot[examples] >= 0).all())

    def fetch(
        self, wanted: Array, likely: Callable[[int], Array] | None = None
    ) -> None:
        """Cache the columns ``wanted``; if one is missing, also some of ``likely(most)``.

        These are guesses of what will be wanted: few, and more while half of them are used.
        """
        places = self.slot[wanted]
        self._stamp(places)
        missing = wanted[places < 0]
        self.n_missed += len(missing)
        most, guesses = 0, missing[:0]
        if likely is not None and len(missing):
            used = (self._guessed > 0) & (self.used[:-1] > self._guessed)
            self._guessed[used] = 0
            self._n_guesses_used += int(np.count_nonzero(used))
            most = FIRST_GUESSES + 2 * self._n_guesses_used - self._n_guesses
            most = min(most, len(self.columns) - len(wanted))
        if likely is not None and most > 0:
            guesses = likely(most)
            guesses = guesses[~np.isin(guesses, missing)]
        chosen = np.concatenate([missing, guesses])
        for i in range(0, len(chosen), self.batch):
            some = chosen[i : i + self.batch]
            self._keep(some, self._computed(some))
        self._guessed[self.slot[guesses]] = self.used[-1]
        self._n_guesses += len(guesses)

    def take(self, examples: Array) -> Iterator[tuple[Array, Array]]:
        """Columns of any number of examples, batch by batch, which are kept while there is room.

        Their numbers are in the order of the cache, see ``given``; a later batch overwrites them.
        """
        # always as many, so that sums keep their bits
        columns = np.empty(
            (min(TAKEN, len(examples)), len(self.slot)), self.columns.dtype
        )
        for i in range(0, len(examples), TAKEN):
            part = examples[i : i + TAKEN]
            places, some = self.slot[part], columns[: len(part)]
            here, missing = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
            for a, place in zip(here, places[here], strict=True):
                some[a] = self.columns[place]
            for m in range(0, len(missing), self.batch):
                new = missing[m : m + self.batch]
                some[new] = self._computed(part[new])
                if np.count_nonzero(self._owner < 0) >= len(new):
                    self._keep(part[new], some[new])
            yield part, some

    def given(self, F: Array) -> Array:
        """Numbers of all examples in the order of the cache, in the examples' own order."""
        return F if self.order is None else F[self._place]

    def _computed(self, examples: Array) -> Array:
        """At most a batch of columns."""
        columns = self._compute(np.resize(examples, self.batch))
        return (
            columns[: len(examples)]
            if self.order is None
            else np.stack([column[self.order] for column in columns[: len(examples)]])
        )

    def block(self, i: Array, j: Any = slice(None)) -> Array:
        """Kernel values of cached columns i, at the examples j."""
        return self.columns[self.slot[i]][
            :, j if self.order is None else self._place[j]
        ]

    def _keep(self, examples: Array, columns: Array) -> None:
        oldest = np.flatnonzero(self._owner < 0)[: len(examples)]
        if len(oldest) < len(examples):  # not enough places are free
            oldest = np.argsort(self.used[:-1], kind="stable")[: len(examples)]
        evicted = self._owner[oldest]
        self.slot[evicted[evicted >= 0]] = -1
        self._owner[oldest], self.slot[examples] = examples, oldest
        self.columns[oldest] = columns
        self._guessed[oldest] = 0
        self._stamp(oldest)

    def _stamp(self, places: Array) -> None:
        self.used[-1] += 1
        self.used[places[places >= 0]] = self.used[-1]


def plain(X: Any) -> Any:
    """Examples as a kernel function takes them."""
    return getattr(X, "array", X)


class Gram(FloatExamples):
    """Examples in the feature space of a kernel, ``(phi(x), constant) / radius``.

    Parameters
    ----------
    kernel : Kernel, callable or None
        ``kernel(X, Y)`` gives the values of all pairs; None: X is their matrix.
    X : array, CSR matrix, Matrix, or whatever the kernel takes and some examples can be taken of
        It has a shape.
    constant : float
        Its square is added to all values.
    radius : float
        Units of ``sqrt(K(x, x))``.
    cache_size : float
        Memory for kernel values (MB): the whole matrix is kept if it fits.
    dtype : dtype or None
        Of stored values; None: as the kernel gives them.
    scale : ndarray of shape (n,) or None
        Factor of ``(phi(x), constant)`` of each example, such as the inverse of its norm.
    count : callable
        Called with the number of values computed.

    Attributes
    ----------
    n : int
    d, mean, sparse : None, None and False
        As a Design has them.
    K : ndarray of shape (n, n) or None
        The whole matrix of values, if it is in memory; a given one is not copied.
    error : float
        Bound on the error of a value, relative to ``sqrt(K(x, x) K(y, y))``, where this package
        computes it.
    products : Products or None
        Computes the arguments of kernels that are functions of inner products.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.kernels import Gram, Kernel
    >>> gram = Gram(Kernel("rbf", gamma=1.0), np.array([[0.0], [1.0], [2.0]]))
    >>> gram.scores(np.array([[1.0, 0.0, -1.0]])).round(4).T
    array([[ 0.9817,  0.    , -0.9817]])
    """

    is_kernel = True
    d = mean = None
    sparse = False
    kept: ColumnCache | None = None

    def __init__(
        self,
        kernel: Any,
        X: Any,
        constant: float = 0.0,
        radius: float = 1.0,
        *,
        cache_size: float = CACHE_SIZE,
        dtype: Any = None,
        scale: Array | None = None,
        count: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.kernel, self.constant, self.radius = kernel, constant, radius
        self.cache_size, self._count, self._scale, self._shift = (
            cache_size,
            count,
            scale,
            0.0,
        )
        if scale is not None:
            self.constant, self._shift = 0.0, constant**2
        given = isinstance(X, np.ndarray | Matrix) or sp.issparse(X) or is_foreign(X)
        self.X: Any = as_matrix(in_floats(X)) if given and kernel is not None else X
        self.n, self.error = X.shape[0], 0.0
        self.K = X if kernel is None and scale is None else None
        self.products: Products | None = None
        if getattr(kernel, "of_products", False):
            self.products = Products(kernel, self.X)
            self.error, dtype = (
                self.products.error,
                self.X.dtype if dtype is None else dtype,
            )
        if scale is not None:
            self.error += PAIRWISE
        self.dtype: Any = None if dtype is None else np.dtype(dtype)
        self.diagonal = self._diagonal()
        self.dtype = self.diagonal.dtype

    def _diagonal(self) -> Array:
        if self.K is not None:
            return np.diagonal(self.K)
        if self.products is not None:
            K = np.ones(self.n)
            if not self.products.gaussian:
                K = self.kernel.of(self.products.examples.squared_norms(LpNorm(), None))
            with np.errstate(over="ignore"):  # in float32
                return self.kernel.checked(self._as_kept(K, np.arange(self.n), None))
        blocks = (np.arange(i, min(i + BLOCK, self.n)) for i in range(0, self.n, BLOCK))
        return np.concatenate([np.diagonal(self.values(some, some)) for some in blocks])

    def in_units(self, radius: float) -> Self:
        """The matrix in units of another radius."""
        other = copy(self)
        other.radius = radius
        vars(other).pop("squared_norms", None)
        return other

    def take(self, index: Array) -> Self:
        """The matrix of some of the examples."""
        other = self.in_units(self.radius)
        other.n, other.diagonal = len(index), self.diagonal[index]
        other.X = (
            self.X[index] if self.kernel is not None else self.X[index[:, None], index]
        )
        other.K = None if self.K is None else self.K[index[:, None], index]
        other._scale = None if self._scale is None else self._scale[index]
        if self.products is not None:
            other.products = copy(self.products)
            other.products.examples = self.products.examples[index]
        vars(other).pop("_single", None)
        other.kept = None
        return other

    # Values, in the user's units.

    def values(self, i: Array, j: Array | None = None) -> Array:
        """Kernel values of the examples i with the examples j, or with all."""
        if self.K is not None:
            return self.K[i] if j is None else self.K[i[:, None], j]
        self._count(len(i) * (self.n if j is None else len(j)))
        K: Array
        if self.kernel is None:
            K = self.X[i] if j is None else self.X[i[:, None], j]
        elif self.products is not None:
            Z = self.products.examples
            K = self.kernel.of(self.products.arguments(Z[i], Z if j is None else Z[j]))
        elif j is not None:
            K = self.kernel(plain(self.X[i]), plain(self.X[j]))
        else:
            X, parts = plain(self.X[i]), range(0, self.n, EXAMPLES_AT_ONCE)

            def work(a: int) -> Array:
                return self.kernel(
                    plain(self.X[a : min(a + EXAMPLES_AT_ONCE, self.n)]), X
                ).T

            K = np.concatenate(ordered_map(work, parts), axis=1)
        return self._as_kept(K, i, j)

    def _as_kept(self, K: Array, i: Array, j: Array | None) -> Array:
        """Values of the kernel, scaled and cast to ``dtype``."""
        if self._scale is not None:
            right = self._scale if j is None else self._scale[j]
            left = self._scale[i] if K.ndim == 1 else self._scale[i, None]
            K = (K.astype(FLOAT64, copy=False) + self._shift) * left * right
        return K if self.dtype is None else K.astype(self.dtype, copy=False)

    def single_values(self, i: Array) -> Array:
        """Kernel values of some examples with all, in float32, for solvers (not for bounds)."""
        if self.K is not None or self.products is None or self.products.by_differences:
            return self.values(i).astype(FLOAT32)
        self._count(len(i) * self.n)
        K = self.kernel.of(self.products.arguments(self._single[i], self._single))
        return (
            K
            if self._scale is None
            else self._as_kept(K, i, None).astype(FLOAT32, copy=False)
        )

    @cached_property
    def _single(self) -> Matrix:
        assert self.products is not None
        return as_matrix(self.products.examples.array.astype(FLOAT32))

    @property
    def fits(self) -> bool:
        """Whether the whole matrix fits in ``cache_size``."""
        return (
            self.K is not None
            or self.n**2 * self.dtype.itemsize <= self.cache_size * 2**20
        )

    def whole(self) -> Array:
        """The whole matrix of values, computed once.

        Raises
        ------
        ValueError
            If it takes more memory than ``cache_size``.
        """
        if not self.fits:
            raise ValueError(
                f"the kernel matrix of {self.n} examples takes more than "
                f"cache_size={self.cache_size:g} MB, and all of it is needed: raise cache_size, or "
                "use fewer examples or another estimator"
            )
        if self.K is None:
            K = np.empty((self.n, self.n), self.dtype)
            for some in self._strips():
                K[some] = self.values(some)
            self.K = K
        return self.K

    def _strips(self, index: Array | None = None) -> Iterator[Array]:
        index, size = np.arange(self.n) if index is None else index, self._at_once
        return (index[i : i + size] for i in range(0, len(index), size))

    @property
    def _at_once(self) -> int:
        """Columns that ``scores`` takes at once; copies of a few stay in cache."""
        few = self.kept is not None or self.K is not None
        return TAKEN if few else max(1, COMPUTED_BYTES // (8 * self.n))

    def keep_columns(
        self, size: float, batch: int = 1, at_least: int = 1, order: Array | None = None
    ) -> None:
        """Cache ``values(i)`` in their precision, in place of the whole matrix; size in MB."""
        how = size, batch, at_least, self.K, order
        self.kept = ColumnCache(self.values, self.n, self.dtype, *how)
        self.kept.passes = 1.0 / self.n

    # The interface of Design.

    def _scaled(self, K: Array) -> Array:
        K = K.astype(FLOAT64)  # a copy
        K += self.constant**2
        K /= self.radius**2
        return K

    def scores(self, w: Array, *, precise: bool = True) -> Array:
        """``K w'``, of shape (n, k), in float64; a sparse w takes only its columns of K.

        Without ``precise``, it is computed in the precision of the values.
        """
        V, few = w.T, support_of(w.T)
        many = self.n / (
            20 if self.K is None else 2
        )  # their columns are computed, or copied
        if self.kept is not None or len(few) < many or not self.fits:
            F = np.zeros(V.shape)
            kept = self.kept and self.kept.take(few)
            for some, columns in kept or (
                (i, self.values(i)) for i in self._strips(few)
            ):
                F += product(columns.T.astype(FLOAT64, copy=False), V[some])
            F = F if self.kept is None else self.kept.given(F)
        else:
            F = self._product(self.whole(), V, precise)
        if self.constant:
            F += self.constant**2 * V.sum(axis=0)
        F /= self.radius**2
        return F

    def _product(self, K: Array, V: Array, precise: bool) -> Array:
        """``K V``, strip by strip in several threads."""
        if not precise and K.nbytes <= AT_ONCE:
            return (K @ V.astype(K.dtype, copy=False)).astype(FLOAT64, copy=False)
        n, F, size = (
            self.n,
            np.empty(V.shape),
            max(1, STRIP_BYTES // (K.itemsize * self.n)),
        )
        if not precise:  # no copy in float64; few strips, as each costs a call
            size, V = max(size, -(-n // STRIPS)), V.astype(K.dtype, copy=False)

        def work(i: int) -> None:
            strip = K[i : i + size].astype(V.dtype, copy=False)
            F[i : i + size] = product(strip, V, CHAIN * precise)

        ordered_map(work, range(0, n, size))
        return F

    def combine(self, V: Array) -> Array:
        """The vector with the coefficients V, of shape (n, k)."""
        return V.T

    def inner(self, w: Array, u: Array) -> float:
        """Inner product of two vectors, summed over their outputs."""
        return float(np.sum(w.T * self.scores(u)))

    @cached_property
    def squared_norms(self) -> Array:
        """Squared norms of the examples."""
        return self._scaled(self.diagonal)

    def published(self, w: Array) -> tuple[Array, Any]:
        """The coefficients of kernel values, and the offset subtracted from scores."""
        coef = w / self.radius**2
        return coef, -(self.constant**2) * coef.sum(axis=-1)

    def stated(
        self, coef: Array, intercept: Array, origin: Array | float = 0.0
    ) -> tuple[Array, Array]:
        """A published predictor in units of the examples, and its intercepts less the origin."""
        shift = -(self.constant**2) * coef.sum(axis=-1)
        return coef * self.radius**2, (intercept - origin) + shift

    def given(self, index: Array) -> tuple[Any, Array, bool]:
        """Some examples as they were given, see :class:`~marginsvm.problem.design.Design`.

        Of a computed kernel, only the equality of examples is exact.
        """
        X: Any = self.K if self.kernel is None else self.X
        return (
            on_host(getattr(X[index], "array", X[index])),
            np.ones(len(index)),
            self.constant != 0.0,
        )

    # For bounds on the rounding of these products.

    @property
    def rounding(self) -> float:
        """Relative error of values; those of a given matrix have none."""
        return self.error + (unit_of(self.dtype) if self.kernel is not None else 0.0)

    @property
    def additions(self) -> tuple[int, int]:
        """Largest number of additions that round a term of ``scores``, and of ``inner``."""
        each = additions(self.n) + self.n // self._at_once + 4
        return each, 2 * each

    def bounded_scores(self, w: Array) -> tuple[Array, Array]:
        """``scores``, and bounds on sums of their absolute terms: |K_ij|^2 <= K_ii K_jj."""
        root = np.sqrt(np.abs(self.squared_norms))
        return self.scores(w), np.multiply.outer(root, np.abs(w) @ root)

    def squared_magnitude(self, w: Array) -> float:
        """Upper bound on the sum of the absolute terms of ``inner(w, w)``."""
        return float(((np.abs(w) @ np.sqrt(np.abs(self.squared_norms))) ** 2).sum())

    def gram(self, i: Array, j: Array) -> Array:
        """Inner products of the examples i with the examples j."""
        if self.kept is not None and self.kept.has(i):
            return self._scaled(self.kept.block(i, j))
        return self._scaled(self.values(i, j))

    def columns(self, index: Array) -> Array:
        """Inner products of some examples with all, of shape (len(index), n)."""
        return self._scaled(self.values(index))


def keys_of(X: Any) -> list[Any]:
    """Keys that are equal for equal examples; unhashable objects by identity."""
    if X.ndim == 1:
        return [x if getattr(x, "__hash__", None) else id(x) for x in X]
    X = sp.csr_array(X).astype(np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = zip(X.indptr, X.indptr[1:], strict=False)
    return [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends]


def distinct(X: Any) -> sp.csr_array:
    """One indicator feature for each distinct example: the exact part of a computed kernel."""
    number: dict[Any, int] = {}
    of = [number.setdefault(key, len(number)) for key in keys_of(X)]
    return sp.csr_array(
        (np.ones(len(of)), (np.arange(len(of)), of)), (len(of), len(number))
    )
