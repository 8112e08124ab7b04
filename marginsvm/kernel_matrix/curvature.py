"""Second derivatives of a squared slack, as an operator: for conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.data import moments, passes
from marginsvm.data.block import Centre
from marginsvm.data.centred import CentredExamples
from marginsvm.data.few_pairs import FewPairs
from marginsvm.data.memory import MemoryStore, Store
from marginsvm.data.work import Work
from marginsvm.rows import Rows, support_of

# Share of the examples: if fewer are active, those of a sparse matrix are copied once, so that
# products read no others.
_SHARE_COPIED = 0.7


class LinearCurvature:
    """``A' D A`` of a problem with features; see ``capabilities.Curvature``.

    Parameters
    ----------
    examples : CentredExamples
    weight : ndarray of shape rows.shape
        Non-negative weights of the rows, the diagonal of D.
    linked : ndarray of shape rows.shape or None
        More than two classes, whose rows share a cap: see ``moments.linked_moments``.
        None: D is diagonal.
    work : Work
        Counter of passes.
    """

    def __init__(
        self, examples: CentredExamples, weight: Array, linked: Array | None, work: Work
    ) -> None:
        self._examples, self._rows, self._weight = examples, examples.rows, weight
        self._linked = linked
        self._work = work
        self._active = support_of(weight if linked is None else weight + linked)
        self._share = len(self._active) / len(weight)
        # where the mean is subtracted from the examples, sums need no correction
        mean, first = examples.centre.mean, examples.mean_before_products
        self._mean = np.zeros(examples.store.shape[1]) if mean is None or first else mean
        self._taken_first = examples.centre if first else Centre()

    @cached_property
    def _parts(self) -> tuple[Store, Rows, Array, Array | None]:
        """The examples with weight, their rows and weights; copied where that saves time."""
        store, rows, weight, linked = (
            self._examples.store, self._rows, self._weight, self._linked,
        )  # fmt: skip
        if store.whole is None or not store.sparse or not 0 < self._share < _SHARE_COPIED:
            return store, rows, weight, linked
        few = self._active
        linked = None if linked is None else linked[few]
        return MemoryStore(store.take(few)), rows.restrict(few), weight[few], linked

    def _folded(self, work: Callable[..., Any]) -> tuple[Array, ...]:
        store, rows, weight, linked = self._parts
        return store.fold(work, _added, rows, weight, linked)

    def __call__(self, Z: Array) -> Array:
        """Product with an image; one pass over the examples with weight."""
        self._work.add_pass(self._share)
        d, radius, constant = len(self._mean), self._examples.radius, self._examples.constant
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
        whole, taken_first = self._examples.store.whole, self._examples.mean_before_products
        X = None if whole is None else whole.dense
        if X is None or self._linked is not None or taken_first or not FewPairs.suit(self._weight):
            return None
        return FewPairs(X, self._rows, self._weight)

    @cached_property
    def _of_squares(self) -> Array:
        """The weights of the squares of each class' scores."""
        return passes.squared_adjoint(self._rows, self._weight, self._linked)

    def _sums(self, W: Array, shift: Array) -> tuple[Array, Array]:
        """``V^T X`` and the sum of V, for coefficients V of weight times what W adds to margins."""
        if self._few_pairs is not None:
            return self._few_pairs.curvature(W, shift)
        work = partial(passes.curvature, W=W, shift=shift, centre=self._taken_first)
        image, total = self._folded(work)
        return image, total

    def diagonal(self) -> Array:
        """The diagonal of this matrix, in the shape of an image."""
        self._work.add_pass(self._share)
        radius, constant = self._examples.radius, self._examples.constant
        squared, image, total = self._folded(partial(passes.squares, centre=self._taken_first))
        mean = self._mean
        squared = squared - 2.0 * mean * image + np.multiply.outer(total, mean * mean)
        squared = np.maximum(squared, 0.0) / radius**2
        return self._extended(squared, total, (constant / radius) ** 2)

    def dense(self) -> Array:
        """The matrix itself, over the entries of an image in C order; weights may be negative."""
        self._work.add_pass(self._share)
        if self._rows.n_classes == 2:
            H = self._examples.second_moments(self._weight)
            return H if self._rows.balanced else H[:-1, :-1]
        store, centre, radius = self._examples.store, self._examples.centre, self._examples.radius
        plain, linked = moments.second_moments_of_classes, moments.linked_moments
        if self._linked is None:
            work = partial(plain, centre=centre, radius=radius)
            return store.fold(work, np.add, self._rows, self._weight)
        work = partial(linked, centre=centre, radius=radius)
        S = store.fold(work, np.add, self._rows, self._weight, self._linked)
        return moments.of_differences(S, self._rows.n_classes)

    def of_class(self, c: int, most: int) -> Array:
        """The part of class c in the matrix, from about ``most`` of the examples."""
        T = self._of_squares[..., c]
        some = np.flatnonzero(T)
        if len(some) > most:
            few = some[np.arange(most) * len(some) // most]
            T, rest = np.zeros_like(T), T
            T[few] = rest[few] * (rest.sum() / rest[few].sum())
        H = self._examples.second_moments(T)
        return H if self._rows.balanced else H[:-1, :-1]

    def _extended(self, image: Array, total: Array, constant: float) -> Array:
        if not (constant or self._rows.balanced):
            return image
        return np.append(image, (total * (constant or 1.0))[..., None], axis=-1)


def _added(one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))
