"""Norms of predictors, the dual norms of examples, and least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgelsy

from marginsvm._rounding import chained
from marginsvm._typing import Array, Stored

# Below this, or above its inverse, squares in a sum of squares may have under- or overflowed.
_SQUARES_LOST = 1e-200
SHORT = 120  # numbers whose sum, in any order, is as accurate as a pairwise one of more
_EPS = 2.0**-52
BLOCK = 70  # columns that LAPACK works on together, and a few
_LEAST_DIVISOR = 1e-300  # least length (any unit) used as a divisor


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
            # no square that counts was lost
            if _SQUARES_LOST < squared < 1.0 / _SQUARES_LOST:
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
        top = float(np.abs(u).max(initial=0.0))
        length = self.dual.length(u)
        if length * length == 0.0:
            return np.zeros_like(u), 0.0
        diagonal = (np.abs(u) / top) ** (self.q - 2.0) * (top / length) ** (
            self.q - 2.0
        )
        return (self.q - 1.0) * diagonal, (self.q - 2.0) / length**2

    def squared_lengths(self, X: Stored) -> Array:
        """``|x|_q^2`` of every row, in float64; a CSR matrix has no duplicate entries."""
        of_array = isinstance(X, np.ndarray)
        if self.p == 2.0 and of_array:
            X = np.ascontiguousarray(X, np.float64)  # sums column by column lose digits
            return np.vecdot(X, X)
        if self.p == 2.0:
            return _sums_of_squares(X)
        X = abs(X).astype(np.float64)
        top = np.float64(X.max()) or np.float64(1.0)
        powers = (X / top) ** self.q if of_array else (X / top).power(self.q)
        return top**2 * np.asarray(powers.sum(axis=1)).ravel() ** (2.0 / self.q)

    def squared_distances(self, X: sp.csr_array, mean: Array) -> Array:
        """Upper bounds on ``|x - mean|_q^2`` for every row of a CSR matrix.

        In columns without an entry, the difference is the mean's entry. So the sum is that of the
        mean, less its terms in the columns where the row has entries, rounded up.
        """
        length = self.dual.length(mean)
        if length == 0.0:
            return self.squared_lengths(X)
        shares = (np.abs(mean) / length) ** self.q
        here = sp.csr_array((shares[X.indices], X.indices, X.indptr), X.shape).sum(
            axis=1
        )
        rest = np.clip(1.0 - np.asarray(here).ravel() + chained(X.shape[1]), 0.0, 1.0)
        rest[np.diff(X.indptr) == X.shape[1]] = 0.0
        entries = X.data.astype(np.float64) - mean[X.indices]
        differences = sp.csr_array((entries, X.indices, X.indptr), X.shape)
        squared = self.squared_lengths(differences)
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
        # the sum makes 0 of -0
        return np.where(self.feature_signs * u < 0.0, 0.0, u + 0.0)


def _sums_of_squares(X: sp.csr_array) -> Array:
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


def least_squares(A: Array, b: Array) -> Array:
    """The shortest x with the least ``|A x - b|``; by LAPACK, as these systems are small."""
    m, n = A.shape
    if n == 0:
        return np.zeros(0)
    x = np.zeros((max(m, n), 1))
    x[:m, 0] = b
    order = np.zeros((n, 1), np.int32)
    return dgelsy(A, x, order, _EPS * len(x), BLOCK * (n + 2))[1][:n, 0]
