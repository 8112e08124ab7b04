"""The Gram matrix of a kernel, with a bound on the error of its entries.

Certificates and solvers access a kernel through :class:`Gram`, in place of a
:class:`~marginsvm.problem.design.Design`: predictors w are coefficients of shape (k, n).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from copy import copy
from typing import Self, cast

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrf

from marginsvm._rounding import CHAIN, PAIRWISE, additions, product, totals
from marginsvm._threads import (
    cached_property,
    copied,
    ordered_map,
    single_threaded_blas,
)
from marginsvm._typing import Array, KernelFunction, Stored, Values
from marginsvm.problem.column_cache import CACHE_SIZE, TAKEN, ColumnCache
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.kernel_functions import Kernel, Products, in_floats, unit_of
from marginsvm.problem.matrix import (
    FEW_TAKEN,
    FLOAT64,
    Matrix,
    as_matrix,
    is_foreign,
    on_host,
    plain,
    support_of,
)
from marginsvm.problem.norms import LpNorm

# Memory of the kernel values computed at once, and of the strip of a stored matrix that a thread
# multiplies at once. Smallest number of strips of a product: sums depend on their number; and the
# memory of a matrix that is one strip, as it stays in cache.
COMPUTED_BYTES = 2**24
STRIP_BYTES = 2**22
STRIPS = 8
AT_ONCE = 2**23
# Columns of a matrix in memory are copied if fewer than one in so many counts.
FEW_COPIED = 2
IN_CACHE = 2**20  # bytes of values that are computed at once for a whole matrix
EXAMPLES_AT_ONCE = 4096  # of a column that a thread computes
BLOCK = 128  # examples of a block on the diagonal, of which only the diagonal is kept
EXAMINED = 500  # examples whose matrix is searched for negative eigenvalues: 0.1 s
# Rounding errors of a kernel value; an eigenvalue of n examples may be off by n times as much.
ROUNDINGS = 16


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
    >>> from marginsvm.problem.gram import Gram
    >>> from marginsvm.problem.kernel_functions import Kernel
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
        kernel: KernelFunction | None,
        X: Stored | Matrix,
        constant: float = 0.0,
        radius: float = 1.0,
        *,
        cache_size: float = CACHE_SIZE,
        dtype: np.dtype | None = None,
        scale: Array | None = None,
        count: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.kernel = kernel
        self.constant = constant
        self.radius = radius
        self.cache_size = cache_size
        self._count = count
        self._scale = scale
        self._shift = 0.0
        if scale is not None:
            self.constant = 0.0
            self._shift = constant**2
        self.X = X
        given = isinstance(X, np.ndarray | Matrix) or sp.issparse(X) or is_foreign(X)
        if given and kernel is not None:
            self.X = X if isinstance(X, Matrix) else as_matrix(in_floats(X))
        self.n = X.shape[0]
        self.error = 0.0
        self.K = self._matrix if kernel is None and scale is None else None
        self.products: Products | None = None
        if isinstance(kernel, Kernel) and kernel.of_products:
            self.products = Products(kernel, as_matrix(self.X))
            self.error = self.products.error
            dtype = self.X.dtype if dtype is None else dtype
        if scale is not None:
            self.error += PAIRWISE
        self._stored = dtype
        self.diagonal = self._diagonal()
        self.dtype = self._stored = self.diagonal.dtype

    @property
    def _matrix(self) -> Array:
        """The given matrix, where there is no kernel."""
        return cast("Array", self.X)

    def _diagonal(self) -> Array:
        if self.K is not None:
            return np.diagonal(self.K)
        if self.products is not None:
            kernel = self.products.kernel
            K = np.ones(self.n)
            if not self.products.gaussian:
                K = kernel.of(self.products.examples.squared_norms(LpNorm(), None))
            with np.errstate(over="ignore"):  # float32 may overflow
                return kernel.checked(self._as_kept(K, np.arange(self.n), None))
        return diagonal_of(self.values, self.n)

    def in_units(self, radius: float) -> Self:
        """The matrix in units of another radius."""
        other = copied(self)
        other.radius = radius
        return other

    def take(self, index: Array) -> Self:
        """The matrix of some of the examples."""
        other = copied(self)
        other.n = len(index)
        other.diagonal = self.diagonal[index]
        if self.kernel is None:
            other.X = self._matrix[index[:, None], index]
        else:
            other.X = self.X[index]
        other.K = None if self.K is None else self.K[index[:, None], index]
        other._scale = None if self._scale is None else self._scale[index]
        if self.products is not None:
            other.products = copy(self.products)
            other.products.examples = self.products.examples[index]
        other.kept = None
        return other

    def is_definite(self, *, centred: bool) -> bool:
        """Whether the matrix of some examples is positive semidefinite up to rounding.

        Centred: on coefficients that sum to 0 (predictors with an unpenalised intercept).
        """
        if isinstance(self.kernel, Kernel) and self.kernel.is_definite:
            return True  # eigenvalues take half of the time of a small fit
        some = np.unique(np.linspace(0, self.n - 1, min(self.n, EXAMINED)).astype(int))
        # indexing copies a given matrix
        K = self.values(some, some).astype(FLOAT64, copy=False)
        K += self.constant**2
        unit = float(np.finfo(self.dtype).eps * max(K.max(), -K.min()))
        if centred:
            K -= K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
        # a matrix of zeros has the unit 0
        K.flat[:: len(K) + 1] += ROUNDINGS * len(some) * unit or 1.0
        # a factor takes a tenth of the time of eigenvalues
        return bool(dpotrf(K.T, lower=1, clean=0, overwrite_a=1)[1] == 0)

    # Values, in the user's units.

    def values(self, i: Array, j: Array | None = None) -> Array:
        """Kernel values of the examples i with the examples j, or with all."""
        if self.K is not None:
            return self.K[i] if j is None else self.K[i[:, None], j]
        self._count(len(i) * (self.n if j is None else len(j)))
        kernel = self.kernel
        K: Array
        if kernel is None:
            K = self._matrix[i] if j is None else self._matrix[i[:, None], j]
        elif self.products is not None:
            Z = self.products.examples
            K = self.products.values(Z[i], Z if j is None else Z[j])
        elif j is not None:
            K = kernel(plain(self.X[i]), plain(self.X[j]))
        else:
            X = plain(self.X[i])
            parts = range(0, self.n, EXAMPLES_AT_ONCE)

            def work(a: int) -> Array:
                return kernel(plain(self.X[a : min(a + EXAMPLES_AT_ONCE, self.n)]), X).T

            K = np.concatenate(ordered_map(work, parts), axis=1)
        return self._as_kept(K, i, j)

    def _as_kept(self, K: Array, i: Array | slice, j: Array | slice | None) -> Array:
        """Values of the kernel, scaled and cast to ``dtype``."""
        if self._scale is not None:
            right = self._scale if j is None else self._scale[j]
            left = self._scale[i] if K.ndim == 1 else self._scale[i, None]
            K = (K.astype(FLOAT64, copy=False) + self._shift) * left * right
        return K if self._stored is None else K.astype(self._stored, copy=False)

    @property
    def fits(self) -> bool:
        """Whether the whole matrix fits in ``cache_size``."""
        return (
            self.K is not None
            or self.n**2 * self.dtype.itemsize <= self.cache_size * 2**20
        )

    @property
    def is_cheap(self) -> bool:
        """Whether the whole matrix takes milliseconds: products, no more than at once."""
        small = self.n**2 * self.dtype.itemsize <= COMPUTED_BYTES
        return small and self.fits and self.products is not None

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
            if self.products is None:
                for some in self._strips():
                    K[some] = self.values(some)
            else:
                self._fill(K, self.products)
            self.K = K
            self.kept = None
        return self.K

    def _fill(self, K: Array, products: Products) -> None:
        """Write the whole matrix, by the values on one side of the diagonal."""
        self._count(self.n * (self.n + 1) // 2)
        Z = products.examples
        size = max(TAKEN, IN_CACHE // (K.itemsize * self.n))
        for a in range(0, self.n, size):
            some, others = slice(a, a + size), slice(a, None)
            part = self._as_kept(products.values(Z[some], Z[others]), some, others)
            K[some, others] = part
            K[others, some] = part.T

    def _strips(self, index: Array | None = None) -> Iterator[Array]:
        index = np.arange(self.n) if index is None else index
        size = self._at_once
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
        V = w.T
        few = support_of(w.T)
        # columns of a kernel are computed, those of a given K are copied
        many = self.n / (FEW_TAKEN if self.K is None else FEW_COPIED)
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
            F += self.constant**2 * totals(V)
        F /= self.radius**2
        return F

    def _product(self, K: Array, V: Array, precise: bool) -> Array:
        """``K V``, strip by strip in several threads."""
        if not precise and K.nbytes <= AT_ONCE:
            return (K @ V.astype(K.dtype, copy=False)).astype(FLOAT64, copy=False)
        n = self.n
        F = np.empty(V.shape)
        size = max(1, STRIP_BYTES // (K.itemsize * self.n))
        if not precise:  # no copy in float64; few strips, as each costs a call
            size = max(size, -(-n // STRIPS))
            V = V.astype(K.dtype, copy=False)

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

    def squared_about_mean(self, weights: Array | None, most: int) -> Array:
        """Squared norms about the weighted mean of at most so many examples, evenly spaced.

        Without the constant feature, in the user's units.
        """
        v = np.ones(self.n) if weights is None else weights
        if self.n > most:
            some = np.linspace(0, self.n - 1, most).astype(int)
            v = np.bincount(some, v[some], minlength=self.n)
        v = v / v.sum()
        with single_threaded_blas():
            from_mean = self.scores(v) - self.constant**2
        return self.diagonal.astype(FLOAT64) - 2.0 * from_mean + v @ from_mean

    def published(self, w: Array) -> tuple[Array, Values]:
        """The coefficients of kernel values, and the offset subtracted from scores."""
        coef = w / self.radius**2
        return coef, -(self.constant**2) * coef.sum(axis=-1)

    def stated(
        self, coef: Array, intercept: Array, origin: Array | float = 0.0
    ) -> tuple[Array, Array]:
        """A published predictor in units of the examples, and its intercepts less the origin."""
        shift = -(self.constant**2) * coef.sum(axis=-1)
        return coef * self.radius**2, (intercept - origin) + shift

    def given(self, index: Array) -> tuple[Stored, Array, bool]:
        """Some examples as they were given, see :class:`~marginsvm.problem.design.Design`.

        Of a computed kernel, only the equality of examples is exact.
        """
        X = self.X if self.K is None or self.kernel is not None else self.K
        return on_host(plain(X[index])), np.ones(len(index)), self.constant != 0.0

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


def diagonal_of(values: Callable[[Array, Array], Array], n: int) -> Array:
    """The diagonal of a matrix of n rows, from blocks of its values."""
    blocks = (np.arange(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK))
    return np.concatenate([np.diagonal(values(some, some)) for some in blocks])


def keys_of(X: Stored) -> list[Hashable]:
    """Keys that are equal for equal examples; unhashable objects by identity."""
    if X.ndim == 1:
        return [x if getattr(x, "__hash__", None) else id(x) for x in X]
    X = sp.csr_array(X).astype(np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = zip(X.indptr, X.indptr[1:], strict=False)
    return [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends]


def distinct(X: Stored) -> sp.csr_array:
    """One indicator feature for each distinct example: the exact part of a computed kernel."""
    number: dict[Hashable, int] = {}
    of = [number.setdefault(key, len(number)) for key in keys_of(X)]
    return sp.csr_array(
        (np.ones(len(of)), (np.arange(len(of)), of)), (len(of), len(number))
    )
