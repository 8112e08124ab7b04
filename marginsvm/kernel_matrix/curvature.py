"""Second derivatives of a squared slack, as an operator: for conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._rounding import summed
from marginsvm._typing import Array
from marginsvm.kernel_matrix import moments
from marginsvm.kernel_matrix.adapter import LinearAdapter
from marginsvm.kernel_matrix.few_pairs import FewPairs
from marginsvm.problem.matrix import Dense

# Share of the examples: if fewer are active, they are copied once, so that products read no others.
_SHARE_COPIED = 0.7


class LinearCurvature:
    """``A' diag(weight) A``, where the intercept is a further entry of images, the last.

    Images are those of the problem; where rows are balanced, one entry is appended for the constant
    feature 1 that an unpenalised intercept amounts to. Examples without weight are not read.

    Parameters
    ----------
    problem : LinearAdapter
    weight : ndarray of shape rows.shape
        Non-negative weights of the rows, the diagonal of D.
    linked : ndarray of shape rows.shape or None
        More than two classes, whose rows share a cap: scores of example i for classes j and l other
        than its own are held against each other with the weight ``linked_ij linked_il``.
    """

    def __init__(self, problem: LinearAdapter, weight: Array, linked: Array | None) -> None:
        self._design, self._rows, self._weight = problem.design, problem.rows, weight
        self._linked, self._work = linked, problem.work
        has = weight if linked is None else weight + linked
        active = np.flatnonzero(has.reshape(len(has), -1).any(axis=1))
        self._share = len(active) / len(weight)
        late = self._design.late
        self._mean = np.zeros(self._design.X.shape[1]) if late is None else late
        self._parts = self._design.near, self._rows, weight, linked
        if self._design.X.in_memory and 0 < self._share < _SHARE_COPIED:
            few = None if linked is None else linked[active]
            self._parts = self._design.near[active], self._rows[active], weight[active], few

    def _each(self, work: Any) -> list[Any]:
        X, *local = self._parts
        return X.each(work, *local)

    def __call__(self, Z: Array) -> Array:
        """Product with an image; one pass over the examples with weight."""
        self._work.add_pass(self._share)
        d, radius, constant = len(self._mean), self._design.radius, self._design.constant
        W = Z[..., :d] / radius
        shift = W @ self._mean
        if constant != 0.0 or self._rows.balanced:  # the last entry is that of a constant feature
            shift = shift - Z[..., -1] * (constant / radius if constant else 1.0)
        image, total = self._sums(W, shift)
        image = image - np.multiply.outer(total, self._mean)
        return self._extended(image / radius, total, constant / radius)

    @cached_property
    def _few_pairs(self) -> FewPairs | None:
        """The rows with weight, where products with these alone are quicker."""
        X = self._design.near
        if not isinstance(X, Dense) or X.foreign or self._linked is not None:
            return None
        if not FewPairs.suit(self._weight):
            return None
        return FewPairs(X.array, self._rows, self._weight)

    def _sums(self, W: Array, shift: Array) -> tuple[Array, Array]:
        """``V^T X`` and the sum of V, for coefficients V of weight times what W adds to margins."""
        if self._few_pairs is not None:
            return self._few_pairs.curvature(W, shift)

        def work(X: Any, rows: Any, weight: Array, linked: Array | None) -> tuple[Array, Array]:
            F = X.times(W.T.astype(X.dtype, copy=False)) - shift
            V = rows.adjoint(weight * rows.moves(F))
            if linked is not None:
                each, both = linked.sum(axis=1, keepdims=True), (linked * F).sum(axis=1)[:, None]
                V += 0.5 * linked * (each * F - both)
            return X.adjoint(V.astype(X.dtype, copy=False)), V.sum(axis=0)

        images, totals = zip(*self._each(work), strict=True)
        return summed(images), summed(totals)

    def diagonal(self) -> Array:
        """The diagonal of this matrix, in the shape of an image."""
        self._work.add_pass(self._share)
        radius, constant = self._design.radius, self._design.constant

        def work(X: Any, rows: Any, weight: Array, linked: Array | None) -> tuple[Array, ...]:
            T = squared_adjoint(rows, weight, linked)
            return X.squared().adjoint(T), X.adjoint(T), T.sum(axis=0)

        squared, image, total = (summed(a) for a in zip(*self._each(work), strict=True))
        mean = self._mean
        squared = squared - 2.0 * mean * image + np.multiply.outer(total, mean * mean)
        squared = np.maximum(squared, 0.0) / radius**2
        return self._extended(squared, total, (constant / radius) ** 2)

    def dense(self) -> Array:
        """The matrix itself, over the entries of an image in C order; weights may be negative."""
        self._work.add_pass(self._share)
        if self._rows.n_classes == 2:
            H = self._design.second_moments(self._weight)
            return H if self._rows.balanced else H[:-1, :-1]
        written = _Written(self._mean, self._design.radius)
        plain, linked = moments.second_moments_of_classes, moments.linked_moments
        if self._linked is None:
            return summed(self._each(lambda X, rows, v, _: plain(written, rows, X, v)))
        S = summed(self._each(lambda X, rows, v, B: linked(written, rows, X, v, B)))
        return moments.of_differences(S, self._rows.n_classes)

    def of_class(self, c: int, most: int) -> Array:
        """The part of class c in the matrix, from about ``most`` of the examples."""
        T = squared_adjoint(self._rows, self._weight, self._linked)[..., c]
        some = np.flatnonzero(T)
        if len(some) > most:
            few = some[np.arange(most) * len(some) // most]
            T, rest = np.zeros_like(T), T
            T[few] = rest[few] * (rest.sum() / rest[few].sum())
        H = self._design.second_moments(T)
        return H if self._rows.balanced else H[:-1, :-1]

    def _extended(self, image: Array, total: Array, constant: float) -> Array:
        if not (constant or self._rows.balanced):
            return image
        return np.append(image, (total * (constant or 1.0))[..., None], axis=-1)


class _Written:
    """Examples written out about a mean, in units of a radius."""

    def __init__(self, mean: Array, radius: float) -> None:
        self._mean, self._radius = mean, radius

    def __call__(self, X: Any) -> Array:
        return (X.written_out() - self._mean) / self._radius


def squared_adjoint(rows: Any, weight: Array, linked: Array | None) -> Array:
    """``Rows.squared_adjoint``, with what ``linked`` adds; see ``moments.linked_moments``."""
    T = rows.squared_adjoint(weight)
    if linked is not None:
        T = T + 0.5 * linked * (linked.sum(axis=1, keepdims=True) - linked)
    return np.asarray(T)
