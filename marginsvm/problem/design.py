"""The examples of a linear problem, in its units: ``(x - mean, constant) / radius``.

Certificates and solvers access X through it; :class:`marginsvm.problem.gram.Gram` has the same
interface for a kernel. Predictors w have the shape (k, d), one row for each output; coefficients V
of the examples have the shape (n, k).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from itertools import chain
from typing import Self, TypeVar

import numpy as np

from marginsvm._rounding import (
    CHAIN,
    EXTENDED_TERMS_OF_ALL,
    LONG,
    PAIRWISE,
    UNIT,
    Extended,
    additions,
    exact_inner,
    inner,
    summed,
    totals,
)
from marginsvm._threads import cached_property, copied
from marginsvm._typing import Along, Array, Index, Stored, Values
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.matrix import (
    BLOCK_BYTES,
    FEW_TAKEN,
    FLOAT64,
    SPARSE_PRODUCT_COST,
    Csr,
    Dense,
    Matrix,
    as_matrix,
    on_host,
    support_of,
)
from marginsvm.problem.norms import LpNorm

# Ratio of the norm of the mean to the largest norm of a centred example above which subtracting
# the mean's part from products loses digits: it is then subtracted from a copy of the examples.
FAR_MEAN = 8.0
# CSR examples are written out for inner products if more than a share of their entries is stored,
# and they have at most as many entries, zeros included.
FILLED = 0.03
WHOLE = 2**23
# Sums of norms, relative to that of the sum, up to which they bound its rounding well enough.
CANCELLED = 1e3
NO_SQUARE = 1e-300  # instead of squares that underflow in radii
PART = 4096  # examples whose products are computed at once in extended precision


T = TypeVar("T")


class Design(FloatExamples):
    """``(x - centre, constant) / radius`` for all examples x, which are not copied.

    The centre's part is subtracted from products. Only a centre far from 0 is subtracted from a
    copy of the examples; from sparse ones, in the features that all of them store.

    Parameters
    ----------
    X : Matrix
    centre : ndarray of shape (n_features,) or None
        Units of x.
    constant, radius : float
        Units of x.
    early : ndarray of shape (n_features,) or None
        The part of the centre that is subtracted from a copy.

    Attributes
    ----------
    n, d : int
        Examples and coordinates, the constant feature among them.
    sparse : bool
    radius : float
        All coordinates are divided by it (units of x).
    mean : ndarray of shape (d,) or None
        Subtracted in ``scores``, ``combine``, ``gram`` and ``columns``, and still to be subtracted
        from ``rows`` of a CSR matrix (in units of the radius). None: nothing.
    near : Matrix
        The examples that products are computed with: X, or its copy about a far centre.
    late : ndarray of shape (n_features,) or None
        The part of the centre to be subtracted from products with ``near`` (units of x).

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.design import Design
    >>> X = np.array([[1.0, 0.0], [3.0, 4.0]])
    >>> design = Design.of(X, mean=X[0], radius=2.0)
    >>> design.scores(np.array([[1.0, 1.0]]))
    array([[0.],
           [3.]])
    >>> design.combine(np.array([[1.0], [1.0]]))
    array([[1., 2.]])
    """

    is_kernel = False
    X: Matrix
    d: int

    def __init__(
        self,
        X: Matrix,
        centre: Array | None = None,
        constant: float = 0.0,
        radius: float = 1.0,
        early: Array | None = None,
    ) -> None:
        self.X = X
        self.centre = centre
        self.constant = constant
        self.radius = radius
        self.n = len(X)
        self.d = X.shape[1] + (constant != 0.0)
        self.sparse = X.sparse
        self.near = X
        self.late = centre
        self._lengths: dict[float, Array] = {}
        if early is not None and early.any():
            assert centre is not None
            self.near = X.about(early)
            self.late = None if np.array_equal(early, centre) else centre - early

    @classmethod
    def of(
        cls,
        X: Stored | Matrix,
        mean: Array | None = None,
        constant: float = 0.0,
        radius: float = 1.0,
        *,
        norm: LpNorm | None = None,
    ) -> Self:
        """The design of an array, a CSR matrix or a Matrix.

        One pass decides whether the mean is far from 0.

        Parameters
        ----------
        X : array, CSR matrix or Matrix of shape (n, n_features)
        mean : ndarray of shape (n_features,) or None
            A point near the examples, such as their mean (units of x).
        constant, radius : float
            Units of x.
        norm : LpNorm or None
            The norm of predictors, if it is not the Euclidean one: the mean of dense examples is
            then subtracted from a copy.
        """
        X = as_matrix(X)
        design = cls(X, mean, constant, radius)
        if mean is None or X.factor is not None:
            return design
        if norm is None or norm.p == 2.0:
            longest = float(design.squared_lengths(LpNorm()).max(initial=0.0))
            if not longest * FAR_MEAN**2 < mean @ mean:
                return design
        stored = np.all(X.each(lambda block: block.stored()), axis=0)
        return cls(X, mean, constant, radius, np.where(stored, mean, 0.0))

    def in_units(self, radius: float) -> Self:
        """The design in units of another radius."""
        other = copied(self)
        other.radius = radius
        return other

    def take(self, index: Array) -> Self:
        """The design of some of the examples."""
        other = copied(self)
        other.X = self.X[index]
        other.near = self.near[index]
        other.n = len(other.X)
        other._lengths = {}
        return other

    @property
    def mean(self) -> Array | None:
        """To be subtracted in products and from rows of a CSR matrix (units of the radius)."""
        if self.late is None:
            return None
        return self._with_constant(self.late, 0.0) / self.radius

    def _with_constant(self, x: Array, constant: Values) -> Array:
        """Vectors with an entry for the constant feature, if there is one."""
        if not self.constant:
            return x
        last = np.broadcast_to(constant, x.shape[:-1])
        return np.append(x, last[..., None], axis=-1)

    # Products with all examples.

    @cached_property
    def table(self) -> Table | None:
        """All examples in these units, for iterations on few of them; None: they are not few."""
        X = self.near
        entries = 2 * X.size if self.sparse else X.size  # its transpose is kept, too
        if X.foreign or not X.in_memory or entries * FLOAT64.itemsize > BLOCK_BYTES:
            return None
        rows = rows_of(X, self.late, self.constant, self.radius)
        rows = rows.astype(X.dtype, copy=False)
        return Table(rows, self.mean if self.sparse else None)

    def published(self, w: Array) -> tuple[Array, Values]:
        """The predictor for x as given, and the offset subtracted from its scores."""
        return self._unscaled(w, self.centre)

    def stated(
        self, coef: Array, intercept: Array, origin: Array | float = 0.0
    ) -> tuple[Array, Array]:
        """A published predictor in units of the examples, and its intercepts about the centre.

        ``origin`` was subtracted from the targets. Each intercept is rounded once.
        """
        w = coef * self.radius
        b = intercept
        if self.constant:
            return self._with_constant(w, b * (self.radius / self.constant)), 0.0 * b
        centre = np.zeros(0) if self.centre is None else self.centre
        moved = zip(
            coef[:, : len(centre)], b.tolist(), (0.0 * b - origin).tolist(), strict=True
        )
        return w, np.array([exact_inner(c, centre, *added) for c, *added in moved])

    def given(self, index: Array) -> tuple[Stored, Array, bool]:
        """Some examples as they were given, the factors of their dual variables, and whether
        predictors have an intercept besides these features.
        """
        X = self.X
        factor = np.ones(len(index))
        if X.given is None or X.factor is None:
            return on_host(X[index].array), factor, self.constant != 0.0
        factor = X.factor[index]
        given = on_host(X.given[index].array)
        return given, np.where(factor > 0.0, factor, 1.0), X.constant != 0.0

    def _unscaled(self, w: Array, mean: Array | None) -> tuple[Array, Values]:
        coef = w[..., : self.X.shape[1]] / self.radius
        shift = 0.0 if mean is None else coef @ mean
        return coef, shift - w[..., -1] * (
            self.constant / self.radius
        ) if self.constant else shift

    def for_products(self, w: Array, precise: bool) -> tuple[Array, Values]:
        """The factor of ``near`` in products, and the offset subtracted from these."""
        coef, shift = self._unscaled(w, self.late)
        return coef.T.astype(FLOAT64 if precise else self.near.dtype, copy=False), shift

    def scores(self, w: Array, *, precise: bool = True) -> Array:
        """Products of w, of shape (k, d), with all examples, of shape (n, k), in float64.

        Without ``precise``, they are computed in the precision of the examples.
        """
        if not precise and self.table is not None:
            return self.table.scores(w)
        coef, shift = self.for_products(w, precise)
        chain = LONG * precise
        F = self.near.each(
            lambda X: np.subtract(X.times(coef, chain), shift, dtype=FLOAT64)
        )
        return F[0] if len(F) == 1 else np.concatenate(F)

    def combine(self, V: Array, *, precise: bool = True) -> Array:
        """``V' A``, of shape (k, d), in float64; examples with coefficient 0 are not read.

        Without ``precise``, as in ``scores``.
        """
        near = self.near
        nonzero = np.count_nonzero(V)
        if nonzero == 0:
            return np.zeros((*V.shape[1:], self.d))
        if FEW_TAKEN * nonzero < V.size:
            few = support_of(V)
            w = near[few].adjoint(V[few].astype(FLOAT64, copy=False), CHAIN)
        elif not precise and self.table is not None:
            return self.table.combine(V)
        else:
            W, chain = (V, CHAIN) if precise else (in_precision(V, near.dtype), 0)
            w = summed(near.each(lambda block, V: block.adjoint(V, chain), W))
        return self.completed(w.astype(FLOAT64, copy=False), totals(V))

    def scores_and_combination(self, w: Array, V: Array) -> tuple[Array, Array]:
        """``scores`` of w and ``combine`` of V, by one pass."""
        coef, shift = self.for_products(w, True)

        def both(X: Matrix, V: Array) -> tuple[Array, Array]:
            S = np.subtract(X.times(coef, LONG), shift, dtype=FLOAT64)
            return S, X.adjoint(V, CHAIN)

        S, W = zip(*self.near.each(both, V), strict=True)
        return np.concatenate(S), self.completed(summed(W), totals(V))

    def newton_sums(
        self, w: Array, V: Array, C: Array, v: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Scores S of w, ``combine`` of V and of ``C - v S``, and ``second_moments`` of v, by one
        pass; of one score.
        """
        coef, shift = self.for_products(w, True)
        late = self.late

        def sums(
            X: Matrix, V: Array, C: Array, v: Array
        ) -> tuple[list[Array], Array, Array]:
            S = np.subtract(X.times(coef, LONG), shift, dtype=FLOAT64)
            both = np.hstack([V, C - v[:, None] * S])
            return [S], X.adjoint(both, CHAIN), X.second_moments(v, late)

        def joined(
            found: list[tuple[list[Array], Array, Array]],
        ) -> list[tuple[list[Array], Array, Array]]:
            parts, W, H = zip(*found, strict=True)
            return [([*chain(*parts)], summed(W), summed(H))]

        ((parts, W, H),) = joined(self.near.each(sums, V, C, v, join=joined))
        S = np.concatenate(parts)
        total = np.append(totals(V), totals(C - v[:, None] * S))
        found, other = self.completed(W, total)
        return S, found[None], other[None], self._scaled(H)

    def combine_extended(self, V: Array) -> tuple[Array, Array] | None:
        """``V' A`` for coefficients V in extended precision, and the error of each entry.

        None: it would take long, or extended precision is no wider than float64.
        """
        few = support_of(V)
        X = self.X
        unit = float(np.finfo(Extended).eps)
        if not (X.in_memory and X.factor is None and unit < UNIT) or X.foreign:
            return None
        parts = np.array_split(few, len(few) // PART + 1)
        if sum(X[part].size for part in parts) * V.shape[1] > EXTENDED_TERMS_OF_ALL:
            return None
        stored = np.all([X[part].stored() for part in parts], axis=0)
        centre = np.zeros(X.shape[1]) if self.centre is None else self.centre
        early = np.where(stored, centre, 0.0)
        late = centre - early
        total = totals(V)
        mass = totals(abs(V)).astype(FLOAT64)
        w = -np.multiply.outer(total, late)
        size = np.multiply.outer(mass, abs(late))
        for part in parts:
            W = V[part]
            x = X[part].array.astype(Extended)
            if isinstance(x, np.ndarray):
                x -= early
            else:
                x.data -= early[x.indices]
            w += W.T @ x
            size += abs(W.T).astype(FLOAT64) @ abs(x).astype(FLOAT64)
        size = self._with_constant(size, abs(self.constant) * mass) / self.radius
        w = self._with_constant(w, self.constant * total) / self.radius
        error = unit * (len(few) + V.shape[1] + 8) * size + 2.0 * UNIT * abs(w)
        return w.astype(FLOAT64), error.astype(FLOAT64)

    def completed(self, w: Array, total: Values) -> Array:
        """``V' A`` from ``V' X`` and the sum of V."""
        if self.late is not None:
            w = w - np.multiply.outer(total, self.late)
        return self._with_constant(w, self.constant * total) / self.radius

    def inner(self, w: Array, u: Array) -> float:
        """Inner product of two predictors, summed over their outputs."""
        return inner(w, u)

    # For bounds on the rounding of these products.

    @property
    def rounding(self) -> float:
        """Relative error of the numbers that products are computed with."""
        if self.X.factor is None:
            return UNIT  # a mean that is subtracted from a copy rounds
        return 2.0 * float(np.finfo(self.X.dtype).eps) + PAIRWISE

    @property
    def additions(self) -> tuple[int, int]:
        """Largest number of additions that round a term of ``scores``, and of ``combine``."""
        n = self.n
        d = self.d
        if not isinstance(self.near, Dense) or self.near.foreign:
            return d + 4, n + 4
        blocks = n // max(1, BLOCK_BYTES // max(1, d * self.near.dtype.itemsize)) + 1
        return additions(d, LONG) + 4, additions(n, CHAIN) + blocks + 4

    @property
    def reach(self) -> Array | None:
        """Upper bounds on the norms of dense examples and of the mean that products subtract.

        Sums of these bound the norms of sums of absolute values without a pass; they are at most
        ``sqrt(d)`` times as large, and as a rule less than twice. None: sparse examples overlap
        little.
        """
        if not isinstance(self.near, Dense):
            return None
        late = 0.0 if self.mean is None else 2.0 * LpNorm().length(self.mean)
        # by squares that underflow in the units of X
        lost = self.d * np.finfo(FLOAT64).smallest_subnormal / self.radius**2
        return np.sqrt(np.maximum(self.squared_norms + lost, NO_SQUARE)) + late

    def bounded_scores(self, w: Array) -> tuple[Array, Array]:
        """``A w'`` and ``|A| |w|'``, by one pass."""
        coef, shift = self.for_products(w, True)
        sizes = np.abs(w[..., : self.X.shape[1]]) / self.radius
        off = np.zeros(len(w))
        if self.late is not None:
            off = sizes @ np.abs(self.late)
        if self.constant:
            off = off + np.abs(w[..., -1] * (self.constant / self.radius))

        def both(X: Matrix) -> tuple[Array, Array]:
            S = np.subtract(X.times(coef, LONG), shift, dtype=FLOAT64)
            return S, np.add(X.times(sizes.T, LONG, sizes=True), off, dtype=FLOAT64)

        S, M = map(np.concatenate, zip(*self.near.each(both), strict=True))
        return S, M

    def bounded_combine(self, V: Array) -> tuple[Array, Array]:
        """``V' A``, and ``|V|' |A|`` or an upper bound on the norm of each row."""
        reach = self.reach
        if reach is not None:
            w = self.combine(V)
            size = np.abs(V.T) @ reach
            if LpNorm().length(size) <= CANCELLED * LpNorm().length(w):
                return w, size
        few = support_of(V)
        total = totals(V)
        near = self.near
        of_all = totals(np.abs(V))
        if FEW_TAKEN * len(few) < len(V):
            near = near[few]
            V = V[few]

        def both(X: Matrix, V: Array) -> tuple[Array, Array]:
            return X.adjoint(V, CHAIN), X.adjoint(np.abs(V), CHAIN, sizes=True)

        w, size = map(summed, zip(*near.each(both, V), strict=True))
        if self.late is not None:
            size = size + np.multiply.outer(of_all, np.abs(self.late))
        size = self._with_constant(size, abs(self.constant) * of_all) / self.radius
        return self.completed(w.astype(FLOAT64, copy=False), total), size

    def squared_lengths(self, norm: LpNorm) -> Array:
        """Squared lengths in the dual of a norm, without the constant feature (units of x)."""
        late = self.late
        if norm.p not in self._lengths:
            with np.errstate(all="ignore"):  # X may hold NaN: the first pass over it
                found = self.near.each(lambda block: block.squared_norms(norm, late))
                self._lengths[norm.p] = np.maximum(np.concatenate(found), 0.0)
        return self._lengths[norm.p]

    def squared_dual_norms(self, p: float) -> Array:
        """Squared norms of the examples in the dual of the p-norm."""
        norm = LpNorm(p)
        squared = norm.squared_with_entry(self.squared_lengths(norm), self.constant)
        return squared / self.radius**2

    @cached_property
    def squared_norms(self) -> Array:
        """Squared Euclidean norms of the examples."""
        return (self.squared_lengths(LpNorm()) + self.constant**2) / self.radius**2

    @cached_property
    def spread(self) -> Array:
        """Largest absolute value of each coordinate; the first call makes a pass."""
        ends = zip(*self.X.each(lambda block: block.ends()), strict=True)
        low, high = (
            f.reduce(end) for f, end in zip((np.minimum, np.maximum), ends, strict=True)
        )
        centre = 0.0 if self.centre is None else self.centre
        spread = np.maximum(np.abs(high - centre), np.abs(low - centre))
        return self._with_constant(spread, abs(self.constant)) / self.radius

    # Some of the examples.

    def rows(self, index: Index) -> Stored:
        """Some examples as a float64 array; sparse ones as CSR, without subtracting ``mean``."""
        return rows_of(self.near[index], self.late, self.constant, self.radius)

    def all_rows(self) -> tuple[Stored, float]:
        """All examples as ``rows``, in units of the number returned: X itself where it will do."""
        X = self.near
        shifted = self.late is not None and not self.sparse
        same = X.dtype == FLOAT64 and not (self.constant or shifted or X.foreign)
        if same and (self.sparse or X.array.flags.c_contiguous):
            return X.array, self.radius
        return self.rows(slice(0, self.n)), 1.0

    def each_rows(self, work: Callable[..., T], *local: Along | None) -> list[T]:
        """``work(rows, *parts)`` for the rows of blocks of examples, by one pass."""
        # a Design is not sent to other machines
        of = self.late, self.constant, self.radius
        return self.near.each(lambda X, *parts: work(rows_of(X, *of), *parts), *local)

    def written_out(self, index: Array) -> Array:
        """Some examples as a float64 array, less the mean."""
        return written(self.near[index], self.late, self.constant, self.radius)

    def gram(self, i: Array, j: Array) -> Array:
        """Inner products of the examples i with the examples j, of shape (len(i), len(j))."""
        X = self.near[i]
        size = len(i) * self.X.shape[1]
        if not isinstance(X, Csr) or (X.size > FILLED * size and size <= WHOLE):
            left = written(X, self.late, self.constant, self.radius)
            return left @ (left if i is j else self.written_out(j)).T
        Y = X if i is j else self.near[j]
        out = np.empty((len(i), len(j)))
        if SPARSE_PRODUCT_COST * X.size <= size:
            out = (X.array.astype(FLOAT64) @ Y.array.T).toarray()
        else:
            for some in X.spans():
                out[some] = Y.times(np.asarray(X[some].written_out().T, order="C")).T
        if self.late is not None:
            out -= (
                X.times(self.late)[:, None] + Y.times(self.late) - self.late @ self.late
            )
        out += self.constant**2
        out /= self.radius**2
        return out

    def columns(self, index: Array) -> Array:
        """Inner products of some examples with all, of shape (len(index), n)."""
        coef, shift = self._unscaled(self.written_out(index), self.late)
        right = np.asarray(coef.T, order="C")
        return np.concatenate(
            self.near.each(lambda X: (X.times(right) - shift).T), axis=1
        )

    def second_moments(self, weight: Array) -> Array:
        """``sum weight (x, 1)(x, 1)'`` over the examples; weights may be negative."""
        some = np.flatnonzero(weight)
        late = self.late
        if self.X.in_memory and not self.sparse and 2 * some.size <= weight.size:
            H = self.near[some].second_moments(weight[some], late)
        else:
            found = self.near.each(
                lambda block, v: block.second_moments(v, late),
                weight,
                join=lambda found: [summed(found)],
            )
            H = summed(found)
        return self._scaled(H)

    def _scaled(self, H: Array) -> Array:
        """Second moments in units of the radius, with the constant feature."""
        H[-1, :-1] /= self.radius
        H[:-1, -1] = H[-1, :-1]
        H[:-1, :-1] /= self.radius**2
        if self.constant:  # this feature is a multiple of the last coordinate, 1
            H = np.block([[H, H[:, -1:]], [H[-1:], H[-1:, -1:]]])
            H[-2] *= self.constant / self.radius
            H[:, -2] *= self.constant / self.radius
        return H


class Table:
    """Few examples in their units, so that products are no more than their arithmetic.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n, d)
        In the precision of the examples.
    mean : ndarray of shape (d,) or None
        To be subtracted in products.
    """

    def __init__(self, rows: Stored, mean: Array | None) -> None:
        self.rows = rows
        self.mean = mean
        self.columns = rows.T if isinstance(rows, np.ndarray) else rows.T.tocsr()

    def scores(self, w: Array) -> Array:
        """See ``Design.scores``."""
        F = self.rows @ w.T.astype(self.rows.dtype, copy=False)
        if self.mean is not None:
            F = F - w @ self.mean
        return F.astype(FLOAT64, copy=False)

    def combine(self, V: Array) -> Array:
        """See ``Design.combine``."""
        dtype = self.rows.dtype
        if dtype == V.dtype:
            w = (self.columns @ V).T
        else:
            w = (self.columns @ in_precision(V, dtype)).T.astype(FLOAT64)
        if self.mean is not None:
            w = w - np.multiply.outer(V.sum(axis=0), self.mean)
        return w


def in_precision(V: Array, dtype: np.dtype) -> Array:
    """Coefficients in the precision of products, where negligible ones could be subnormal: these
    take five times as long, and become 0.
    """
    W = V.astype(dtype)
    size = np.abs(V)
    W[size < np.finfo(dtype).eps ** 2 * size.max()] = 0.0
    return W


def written(some: Matrix, late: Array | None, constant: float, radius: float) -> Array:
    """Examples as a float64 array, less the mean."""
    X = some.written_out()
    if late is not None:
        X -= late
    if constant:
        X = np.column_stack([X, np.full(len(X), constant)])
    X /= radius
    return X


def rows_of(some: Matrix, late: Array | None, constant: float, radius: float) -> Stored:
    """Examples as a float64 array less the mean; sparse ones as CSR, without subtracting it."""
    if not isinstance(some, Csr):
        return written(some, late, constant, radius)
    if constant:
        some = some.extended(np.full((len(some), 1), constant))
    X = copy(some.array)  # the places of entries are shared
    X.data = X.data.astype(FLOAT64, copy=False) / radius
    return X


def mean_of(
    X: Stored | Matrix, weights: Array | None = None, size: int | None = None
) -> Array:
    """Weighted mean of all examples or, with a size, of about that many, evenly spaced."""
    X = as_matrix(X)
    v = np.ones(len(X)) if weights is None else weights
    if size is not None and 4 * size < len(X):
        some = np.arange(size) * len(X) // size
        X = X[some]
        v = v[some]
    with np.errstate(all="ignore"):  # X may hold anything
        return summed(X.each(lambda block, v: block.adjoint(v, CHAIN), v / v.sum()))
