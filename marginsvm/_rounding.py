"""Sums, products and norms, and bounds on their rounding errors.

By these, lower and upper bounds on margins are moved outward.

A sum of n products, each term of which passes through at most m additions, has an error of at most
``(m + 1) u / (1 - (m + 1) u)`` times the sum of the absolute values, u = 2^-53, whatever the
order of the additions. So the sums from which bounds are computed are split into short chains.

References
----------
N. Higham. Accuracy and Stability of Numerical Algorithms. SIAM, 2002. Section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import reduce
from math import fsum
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array

# Relative rounding error of one operation in float64.
UNIT = 2.0**-53
# Relative error of a few operations: scaling, signs, and the rounding of published numbers.
FEW = 8.0 * UNIT
# Relative error of NumPy's pairwise sums of contiguous numbers, and of a few operations.
PAIRWISE = 64.0 * UNIT
# A type with more digits, where the platform has one: for sums of few terms.
Extended = np.longdouble
# Largest number of terms of sums over all examples in extended precision: some tenths of a second,
# a part of the examples at a time.
EXTENDED_TERMS_OF_ALL = 2**24
# Terms in a chain of the sums from which bounds are computed, and of sums that need fewer digits.
CHAIN, LONG = 256, 1024
# Dekker's constant: x c - (x c - x) is the upper half of the digits of x.
_SPLITTER = 2.0**27 + 1.0
# Below this, or above its inverse, squares in a sum of squares may have under- or overflowed.
_SQUARES_LOST = 1e-200
SHORT = 120  # numbers whose sum, in any order, is as accurate as a pairwise one of more
_LEAST_DIVISOR = 1e-300  # least length (any unit) used as a divisor


def chained(n: int, chain: int = CHAIN) -> float:
    """Relative error of ``product`` over n terms, and of adding blocks of such products."""
    return 1.01 * UNIT * (additions(n, chain) + 8)


def additions(n: int, chain: int = CHAIN) -> int:
    """Additions that a term of ``product`` over n terms passes through at most."""
    return min(n, chain) + 2 * (n // chain)


def product(A: Array, B: Array, chain: int = CHAIN) -> Array:
    """``A @ B`` in short chains, nearly as fast; of any length where ``chain`` is 0.

    NumPy's matmul keeps other threads waiting where it gives up to 500 numbers (2.4), but dot
    copies parts of columns.
    """
    n, found = A.shape[-1], None
    for i in range(0, n or 1, chain or n or 1):
        a, b = (A[..., i : i + chain], B[i : i + chain]) if n > (chain or n) else (A, B)
        part: Array = np.dot(a, b) if a.flags.forc and b.flags.forc else a @ b
        found = part if found is None else np.add(found, part, out=found)
    assert found is not None
    return found


def inner(A: Array, B: Array) -> float:
    """Sum of the products of all entries, without a copy where both are in the same order."""
    if A.flags.f_contiguous and B.flags.f_contiguous:
        A, B = A.T, B.T
    return float(np.vdot(A, B))


def check_exact(X: Any, name: str = "X") -> None:
    """Refuse numbers that float64 would round: what is proved would be of other numbers.

    Parameters
    ----------
    X : array-like or sparse matrix
        Arrays of other libraries are not looked at.
    name : str
        What it is called in the message.

    Raises
    ------
    ValueError
        If float64 does not hold one of the numbers.

    Examples
    --------
    >>> from marginsvm._rounding import check_exact
    >>> check_exact([[2**53], [2**60]])
    >>> check_exact([[2**60 + 1]])
    Traceback (most recent call last):
    ValueError: X has numbers that float64 does not hold, such as 1152921504606846977: ...
    """
    if hasattr(X, "iloc") and X.ndim == 2:  # a data frame has a type for each column
        for j in range(X.shape[1]):
            check_exact(np.asarray(X.iloc[:, j]), name)
        return
    if isinstance(X, list | tuple) or hasattr(X, "iloc"):
        with suppress(
            ValueError
        ):  # of lists of different lengths, which are refused elsewhere
            X = np.asarray(X)
    if sp.issparse(X) and not isinstance(getattr(X, "data", None), np.ndarray):  # dok
        X = X.tocsr()
    values = X.data if sp.issparse(X) else X
    for value in _suspects(values) if isinstance(values, np.ndarray) else ():
        if _is_rounded(value.item() if isinstance(value, np.generic) else value):
            raise ValueError(
                f"{name} has numbers that float64 does not hold, such as {value}: a fit would be "
                "of other numbers. Subtract what they have in common, or use categories"
            )


def _suspects(values: Array) -> Array:
    """Those of the numbers that float64 may round."""
    kind, large = values.dtype.kind, 2**53
    if kind in "iu" and values.itemsize == 8:
        return values[(values > large) | (values < -large)]
    if kind == "f" and values.itemsize > 8:
        return values[values != values.astype(np.float64)]
    return values.ravel() if kind == "O" else values.ravel()[:0]


def _is_rounded(value: Any) -> bool:
    try:
        return isinstance(value, Real | Decimal) and bool(
            float(value) != value == value
        )
    except OverflowError:
        return True


def exact_inner(a: Array, b: Array, *added: float) -> float:
    """The sum of ``a b`` and of the numbers ``added``, rounded once."""
    some = a.nonzero()
    a, b = a[some], b[some]
    product = a * b
    return fsum([*product.tolist(), *rounding_of(product, a, b).tolist(), *added])


def rounding_of(product: Array, a: Array, b: Array) -> Array:
    """What rounding has taken from a product: ``a b - product``, a number of float64 (Dekker)."""
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    rest = ((product - a_high * b_high) - a_low * b_high) - a_high * b_low
    return np.asarray(a_low * b_low - rest)


def _high(a: Array) -> Array:
    """The upper half of the digits of each number."""
    scaled = _SPLITTER * a
    return np.asarray(scaled - (scaled - a))


def summed(parts: Iterable[Array]) -> Array:
    """Sum of arrays, one after the other."""
    return reduce(np.add, parts)


def at_least(bound: float, digits: int = 6) -> str:
    """Write a lower bound, rounded down, so that the written number is a lower bound as well."""
    return _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = 6) -> str:
    """Write an upper bound, rounded up, so that the written number is an upper bound as well."""
    return _rounded(bound, digits, ROUND_CEILING)


def _rounded(x: float, digits: int, direction: str) -> str:
    if not np.isfinite(x):
        return str(x)
    context = Context(prec=digits, rounding=direction, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return f"{float(context.create_decimal_from_float(float(x))):.{digits}g}"


# Norms.


@dataclass(frozen=True)
class LpNorm:
    """``|theta|_p`` for predictors, ``|u|_q`` for vectors ``u = A^T c``, 1/p + 1/q = 1.

    Parameters
    ----------
    p : float, default=2.0
        In (1, 2].
    """

    p: float = 2.0

    @property
    def signs(self) -> Array | None:
        """Signs that the entries of predictors must have; None: any."""
        return None

    @classmethod
    def named(cls, p: float | str, n_features: int) -> LpNorm:
        """Norm with this exponent; ``"sparse"`` is 1 + 1 / ln d for d features, at most 2."""
        if p == "sparse":
            return cls(1.0 + 1.0 / float(np.log(max(n_features, np.e))))
        return cls(float(p))

    @property
    def q(self) -> float:
        """Exponent of the dual norm."""
        return self.p / (self.p - 1.0)

    @property
    def dual(self) -> LpNorm:
        """The dual norm."""
        return self if self.p == 2.0 else LpNorm(self.q)

    def length(self, x: Array) -> float:
        """Norm of an array, scaled by its largest entry where squares would lose digits."""
        if self.p == 2.0:
            with np.errstate(over="ignore"):
                squared = float(np.vdot(x, x) if x.size <= SHORT else np.sum(x * x))
            if (
                _SQUARES_LOST < squared < 1.0 / _SQUARES_LOST
            ):  # no square that counts was lost
                return float(np.sqrt(squared))
        top = float(np.abs(x).max(initial=0.0))
        return (
            top * float(np.sum(np.abs(x / top) ** self.p) ** (1.0 / self.p))
            if top
            else 0.0
        )

    def mirror(self, u: Array) -> Array:
        """Mirror image of u, a predictor: the gradient of ``|u|_q^2 / 2``; for p = 2, u itself."""
        return _gradient(u, self.q)

    def mirrored(self, theta: Array) -> Array:
        """The inverse of ``mirror``: the gradient of ``|theta|_p^2 / 2``."""
        return _gradient(theta, self.p)

    def curvature(self, u: Array) -> tuple[Array, float]:
        """The diagonal D and the factor c of the Hessian ``D - c theta theta'`` of ``|u|_q^2 / 2``.

        Here theta is the mirror image of u.
        """
        top, length = float(np.abs(u).max(initial=0.0)), self.dual.length(u)
        if length * length == 0.0:
            return np.zeros_like(u), 0.0
        diagonal = (np.abs(u) / top) ** (self.q - 2.0) * (top / length) ** (
            self.q - 2.0
        )
        return (self.q - 1.0) * diagonal, (self.q - 2.0) / length**2

    def squared_lengths(self, X: Array) -> Array:
        """``|x|_q^2`` of every row of an array, in float64."""
        if self.p == 2.0:
            X = np.ascontiguousarray(X, np.float64)  # sums column by column lose digits
            return np.vecdot(X, X)
        X = abs(X).astype(np.float64)
        top = np.float64(X.max()) or np.float64(1.0)
        return top**2 * ((X / top) ** self.q).sum(axis=1) ** (2.0 / self.q)

    def squared_lengths_of_csr(self, X: Any) -> Array:
        """``|x|_q^2`` of every row of a CSR matrix without duplicate entries."""
        if self.p == 2.0:
            return _sums_of_squares(X)
        X = abs(X).astype(np.float64)
        top = np.float64(X.max()) or np.float64(1.0)
        powers = (X / top).power(self.q).sum(axis=1)
        return top**2 * np.asarray(powers).ravel() ** (2.0 / self.q)

    def squared_distances(self, X: Any, mean: Array) -> Array:
        """Upper bounds on ``|x - mean|_q^2`` for every row of a CSR matrix.

        In columns without an entry, the difference is the mean's entry. So the sum is that of the
        mean, less its terms in the columns where the row has entries, rounded up.
        """
        length = self.dual.length(mean)
        if length == 0.0:
            return self.squared_lengths_of_csr(X)
        shares = (np.abs(mean) / length) ** self.q
        here = sp.csr_array((shares[X.indices], X.indices, X.indptr), X.shape).sum(
            axis=1
        )
        rest = np.clip(1.0 - np.asarray(here).ravel() + chained(X.shape[1]), 0.0, 1.0)
        rest[np.diff(X.indptr) == X.shape[1]] = 0.0
        entries = X.data.astype(np.float64) - mean[X.indices]
        differences = sp.csr_array((entries, X.indices, X.indptr), X.shape)
        squared = self.squared_lengths_of_csr(differences)
        return self.squared_with_entry(squared, length * rest ** (1.0 / self.q))

    def squared_with_entry(self, squared: Array, constant: float | Array) -> Array:
        """Squared lengths after an entry ``constant`` is appended, from those before."""
        if not np.any(constant):
            return squared
        top = np.maximum(np.maximum(np.sqrt(squared), np.abs(constant)), _LEAST_DIVISOR)
        powers = (np.sqrt(squared) / top) ** self.q + (np.abs(constant) / top) ** self.q
        return top**2 * powers ** (2.0 / self.q)


@dataclass(frozen=True, eq=False, kw_only=True)
class SignedNorm(LpNorm):
    """The Euclidean norm of predictors whose entries have given signs.

    The support function of the unit ball of these predictors at u is the norm of the projection of
    u onto their cone (entries of u with the wrong sign are set to 0). So the mirror image of u is
    this projection.

    Parameters
    ----------
    feature_signs : ndarray of shape (n_features,)
        -1, 0 for any sign, or 1.
    """

    feature_signs: Array

    @property
    def signs(self) -> Array:
        return self.feature_signs

    def mirror(self, u: Array) -> Array:
        return np.where(
            self.feature_signs * u < 0.0, 0.0, u + 0.0
        )  # the sum makes 0 of -0


def _sums_of_squares(X: Any) -> Array:
    """Squared lengths of the rows of a CSR matrix, without the checks of ``X.multiply(X)``."""
    nonempty = np.flatnonzero(np.diff(X.indptr))
    squared = np.zeros(X.shape[0])
    if len(nonempty):
        squares = np.square(X.data[: X.indptr[-1]], dtype=np.float64)
        squared[nonempty] = np.add.reduceat(squares, X.indptr[nonempty])
    return squared


def _gradient(u: Array, r: float) -> Array:
    """Gradient of ``|u|_r^2 / 2``, scaled by the largest entry so that nothing overflows."""
    if r == 2.0:
        return u
    top = float(np.abs(u).max(initial=0.0))
    if top == 0.0:
        return u
    x = np.abs(u) / top
    phi = x ** (r - 1.0)
    return np.copysign(phi, u) * (top * float(np.sum(x * phi)) ** ((2.0 - r) / r))
