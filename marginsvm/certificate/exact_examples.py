"""Examples in fractions, for exact proofs; dense arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import lcm
from typing import TypeVar

import numpy as np

from marginsvm._rounding import UNIT, additions, product, totals
from marginsvm._threads import cached_property
from marginsvm._typing import Array, Values
from marginsvm.certificate.bounded import Numbers, Rationals
from marginsvm.problem.examples import Examples
from marginsvm.problem.matrix import Matrix

T = TypeVar("T")

FRACTIONS = 2**14  # entries of blocks that are fractions at a time: some MB


class NoInnerProductsError(ValueError):
    """A kernel matrix is not positive semidefinite, so that it proves nothing."""


class ExactFeatures(Examples):
    """Features as fractions: the exact counterpart of :class:`~marginsvm.problem.design.Design`.

    Parameters
    ----------
    X : array of shape (n, d)
        Floats or fractions.
    centred : bool
        Whether the mean is subtracted from the examples in sums whose weights do not sum to 0.
    """

    is_kernel = False
    radius = 1

    def __init__(self, X: Array, *, centred: bool = True) -> None:
        self.n, self.d = X.shape
        self.centred = centred
        self.X = Rationals().array(X)
        self._integers, self._denominator = over_one_denominator(self.X)

    def _times(self, A: Array, B: Array, denominator: int) -> Array:
        return np.frompyfunc(lambda v: Fraction(v, denominator), 1, 1)(A @ B)

    def scores(self, w: Array) -> Array:
        integers, denominator = over_one_denominator(w)
        return self._times(self._integers, integers.T, denominator * self._denominator)

    def combine(self, V: Array) -> Array:
        """``V'X``, of centred examples where V does not sum to 0."""
        integers, denominator = over_one_denominator(V)
        w = self._times(integers.T, self._integers, denominator * self._denominator)
        total = V.sum(axis=0)
        off = self.centred and total.any()
        return w - np.multiply.outer(total, self.centre) if off else w

    def inner(self, w: Array, u: Array) -> Values:
        return (w * u).sum()

    @cached_property
    def centre(self) -> Array:
        """A point near the examples: their mean, as floats."""
        if not self.centred:
            return np.zeros(self.d, int)
        return Rationals().array(self.X.astype(float).mean(axis=0))

    @cached_property
    def squared_norms(self) -> Array:
        return ((self.X - self.centre) ** 2).sum(axis=1)

    def squared_dual_norms(self, p: float) -> Array:
        """Squared dual norms about the mean."""
        numbers = Rationals()
        return np.array(
            [numbers.length(x, p / (p - 1)) ** 2 for x in self.X - self.centre]
        )


class ExactBlocks(Examples):
    """Features of blocks as fractions, a few examples at a time.

    Parameters
    ----------
    X : Matrix
    exact : callable
        ``exact(matrix)`` gives the :class:`ExactFeatures` of a matrix in memory.
    centre : ndarray of shape (d,)
        A point near the examples, in floats.
    """

    is_kernel = False
    radius = 1

    def __init__(
        self, X: Matrix, exact: Callable[[Matrix], ExactFeatures], centre: Array
    ) -> None:
        self.X = X
        self._exact = exact
        self.n = len(X)
        self.centre = Rationals().array(centre)
        self.d = len(centre)

    def _each(self, work: Callable[..., T], *local: Array) -> list[T]:
        def of_parts(X: Matrix, *some: Array) -> Iterator[T]:
            for span in X.spans(FRACTIONS):
                part = self._exact(X[span])
                vars(part)["centre"] = self.centre
                yield work(part, *(a[span] for a in some))

        return [
            one
            for found in self.X.each(lambda *a: [*of_parts(*a)], *local)
            for one in found
        ]

    def scores(self, w: Array) -> Array:
        return np.concatenate(self._each(lambda X: X.scores(w)))

    def combine(self, V: Array) -> Array:
        return sum(self._each(lambda X, V: X.combine(V), V))

    def inner(self, w: Array, u: Array) -> Values:
        return (w * u).sum()

    @cached_property
    def squared_norms(self) -> Array:
        return np.concatenate(self._each(lambda X: X.squared_norms))

    def squared_dual_norms(self, p: float) -> Array:
        return np.concatenate(self._each(lambda X: X.squared_dual_norms(p)))


class KernelMatrix(Examples):
    """Examples ``(phi(x), constant) scale`` with a kernel matrix K.

    Vectors w are given by their coefficients of all phi(x), and a last one for the constant.

    Parameters
    ----------
    K : array of shape (n, n)
    scale : array of shape (n,) or None
        Factors of the examples, such as the inverses of their norms.
    constant : number
    numbers : Floats or Rationals
    rounding : float
        Relative error of the kernel values.
    """

    is_kernel = True
    radius = 1
    d = None
    rounding = 0.0
    additions = 0, 0

    def __init__(
        self,
        K: Array,
        scale: Array | None,
        constant: Values,
        numbers: Numbers,
        rounding: float = 0.0,
    ) -> None:
        self.n = len(K)
        self.K = numbers.array(K)
        self.rounding = rounding + UNIT
        self.constant = constant
        self._numbers = numbers
        self.scale = numbers.array(np.ones(self.n)) if scale is None else scale
        self.additions = additions(self.n) + 4, 2 * additions(self.n) + 8
        if numbers.exact and (self.K.T != self.K).any():
            raise NoInnerProductsError("the kernel matrix is not symmetric")

    def _times(self, V: Array) -> Array:
        return exact_product(self.K, V) if self._numbers.exact else product(self.K, V)

    def scores(self, w: Array) -> Array:
        return (self._times(w[:, :-1].T) + self.constant * w[:, -1]) * self.scale[
            :, None
        ]

    def combine(self, V: Array) -> Array:
        V = V * self.scale[:, None]
        return np.hstack([V.T, self.constant * totals(V)[:, None]])

    def inner(self, w: Array, u: Array) -> Values:
        squares = (w[:, :-1].T * self._times(u[:, :-1].T)).sum(axis=0)
        if self._numbers.exact and squares.min() < 0:
            raise NoInnerProductsError(
                "the kernel matrix is none of inner products: a combination has the squared norm "
                f"{float(squares.min()):.3g}. If that is rounding of its values, only a check with "
                "exact=False allows for it"
            )
        return squares.sum() + (w[:, -1] * u[:, -1]).sum()

    @property
    def squared_norms(self) -> Array:
        return (
            (np.diagonal(self.K) + self.constant * self.constant)
            * self.scale
            * self.scale
        )

    def bounded_scores(self, w: Array) -> tuple[Array, Array]:
        S = self.scores(w)
        root = np.sqrt(np.abs(np.diagonal(self.K)))
        of_phi = np.multiply.outer(root, np.abs(w[:, :-1]) @ root)
        w = np.abs(w[:, -1])
        return S, (of_phi + abs(self.constant) * w) * self.scale[:, None]

    def squared_magnitude(self, w: Array) -> float:
        """Upper bound on the sum of absolute values of the terms of ``inner(w, w)``."""
        root = np.sqrt(np.abs(np.diagonal(self.K)))
        return float(((np.abs(w[:, :-1]) @ root) ** 2).sum() + (w[:, -1] ** 2).sum())


def over_one_denominator(x: Array) -> tuple[Array, int]:
    """Integers and their common denominator: sums of integers are quicker than of fractions."""
    denominator = lcm(*{v.denominator for v in x.flat})
    scaled = np.frompyfunc(lambda v: v.numerator * (denominator // v.denominator), 1, 1)
    return scaled(x), denominator


def exact_product(A: Array, B: Array) -> Array:
    """Matrix product of fractions."""
    a, d = over_one_denominator(A)
    b, e = over_one_denominator(B)
    return np.frompyfunc(lambda v: Fraction(v, d * e), 1, 1)(a @ b)
