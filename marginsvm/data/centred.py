"""Examples with a centre subtracted, in units of a radius."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._rounding import CHAIN, EXTENDED_TERMS, EXTENDED_TERMS_OF_ALL, Extended
from marginsvm._typing import Array
from marginsvm.data import passes
from marginsvm.data.block import WRITTEN_OUT, Centre, examples_at_once
from marginsvm.data.measures import spread as spread_of
from marginsvm.data.memory import Store
from marginsvm.data.passes import Located
from marginsvm.rows import Rows

# CSR examples are copied to a dense array for a product if more than the first, a share, of their
# entries is stored, and they have at most as many entries, zeros included, as the second (64 MB).
_FILLED, _WHOLE = 0.03, 2**23


@dataclass(frozen=True)
class CentredExamples:
    """The examples of a store, centred, with a constant feature added, and divided by a radius.

    Attributes
    ----------
    store : Store
    rows : Rows
        Of their labels.
    centre : Centre
    constant : float
        Constant last feature of all examples, in the user's units; 0: there is none.
    radius : float
        What the examples are divided by, in the user's units.
    """

    store: Store
    rows: Rows
    centre: Centre
    constant: float
    radius: float

    @property
    def mean_before_products(self) -> bool:
        """Whether passes subtract the mean from each example, and not its share from products."""
        takes_a_mean = not (self.store.sparse or self.store.normalized)
        return self.centre.far and (takes_a_mean or self.centre.stored)

    @property
    def chain(self) -> int:
        """Largest number of terms in a chain of the precise sums over dense examples."""
        if not self.mean_before_products:
            return CHAIN
        return min(CHAIN, examples_at_once(self.store.shape[1]))

    @property
    def extended_terms(self) -> int:
        """Terms, at most, of sums over examples in extended precision."""
        return EXTENDED_TERMS_OF_ALL if self.store.at_hand else EXTENDED_TERMS

    def with_constant(self, image: Array, V: Array) -> Array:
        """``V^T (X, constant)``, given the image ``V^T X``."""
        if self.constant == 0.0:
            return image
        return np.append(image, self.constant * V.sum(axis=0)[..., None], axis=-1)

    def written_out(self, index: Array) -> Array:
        """Some examples as a dense float64 array about the mean, in the user's units."""
        X = self.store.take(index).written_out(self.centre.mean)
        return np.column_stack([X, np.full(len(X), self.constant)]) if self.constant else X

    def examples(self, index: Array) -> Array:
        """Some examples as a dense float64 array about the mean, in units of the radius."""
        X = self.written_out(index)
        X /= self.radius
        return X

    def gram(self, i: Array, j: Array) -> Array:
        """Inner products of the examples i with the examples j, in the user's units.

        Examples of a CSR matrix with few entries are copied to dense arrays, a few at a time.
        """
        X = self._few_entries(i)
        if X is None:
            left = self.written_out(i)
            return left @ (left if i is j else self.written_out(j)).T
        Y, out = X if i is j else self.store.take(j).csr, np.empty((len(i), len(j)))
        size = max(1, WRITTEN_OUT // X.shape[1])
        for first in range(0, len(i), size):
            part = slice(first, first + size)
            out[part] = (Y @ X[part].toarray().T.astype(np.float64, order="C")).T
        if self.centre.mean is not None:
            mean = self.centre.mean
            out -= X @ mean[:, None] + Y @ mean - mean @ mean
        out += self.constant**2
        return out

    def _few_entries(self, index: Array) -> Any:
        """Some examples of a CSR matrix, if few of their entries are not zero; else None."""
        if not self.store.sparse or self.centre.far:
            return None
        X, size = self.store.take(index).csr, len(index) * self.store.shape[1]
        return None if X.nnz > _FILLED * size and size <= _WHOLE else X

    def scaled_gram(self, index: Array, scale: Array) -> Array:
        """Inner products of some examples, each feature times its scale, in the user's units."""
        if not self.store.sparse or self.centre.mean is not None:
            X = self.written_out(index) * scale
            return X @ X.T
        d, X = self.store.shape[1], self.store.take(index).csr.astype(np.float64)
        X = X @ sp.diags_array(scale[:d])
        constant = self.constant * scale[d] if self.constant else 0.0
        return np.asarray((X @ X.T).toarray() + constant**2)

    def extended_image(self, few: Array, V: Array, features: Array) -> Array:
        """Some features of the image ``V^T X`` of few examples, in extended precision.

        Parameters
        ----------
        few : ndarray of int
            The examples.
        V : ndarray of shape (len(few), ...)
        features : ndarray of int
            Their indices in ascending order; that of the constant feature is the largest.
        """
        X = self.store.take(few)
        given = features[features < X.shape[1]]
        X = X.features(given) if len(given) < X.shape[1] else X
        if self.centre.mean is None:
            image = X.adjoint(V)
        else:  # before the product, so that no digits are lost
            image = V.T @ (X.toarray().astype(Extended) - self.centre.mean[given])
        if len(given) < len(features):
            image = self.with_constant(image, V)
        return np.asarray(image / self.radius)

    def extended_scores(self, index: Array, coef: Array) -> Array:
        """Scores ``X coef^T`` of some examples as given, summed in extended precision."""
        return self.store.take(index).times(coef.T.astype(Extended))

    @cached_property
    def extent(self) -> tuple[Array, Array] | None:
        """For each feature, its largest distance from the mean, and twice the mean's size.

        Both are in units of the radius. The rounding of products is bounded by these, feature by
        feature, so that one in large units does not hide what the others prove. None: the examples
        are normalized, and their norm, 1, bounds every feature. The first time, a pass is made.
        """
        if self.store.normalized:
            return None
        d, mean = self.store.shape[1], self.centre.mean
        work = partial(spread_of, centre=self.centre)
        spread = reduce(np.maximum, self.store.map(work, self.rows))
        late = np.zeros(d) if mean is None else 2.0 * np.abs(mean)
        if self.constant != 0.0:
            spread, late = np.append(spread, abs(self.constant)), np.append(late, 0.0)
        return spread / self.radius, late / self.radius

    def second_moments(self, weight: Array) -> Array:
        """``sum weight (x, 1)(x, 1)'`` over the examples, as ``examples`` writes them out."""
        work = partial(passes.second_moments, centre=self.centre)
        some = np.flatnonzero(weight)
        if self.store.whole is not None and 0 < 2 * some.size <= weight.size:
            # picking these from each block would cost more than copying them at once
            H = work(self.rows, self._few(some), weight[some])
        else:
            H = self.store.fold(work, np.add, self.rows, weight)
        d = len(H) - 1
        H[d, :d] /= self.radius
        H[:d, d] = H[d, :d]
        H[:d, :d] /= self.radius**2
        return H

    def _few(self, index: Array) -> Iterator[Located]:
        """Blocks of some of the examples, located by their place among these."""
        size = max(1, WRITTEN_OUT // (self.store.shape[1] + 1))
        for i in range(0, len(index), size):
            few = index[i : i + size]
            yield slice(i, i + len(few)), self.store.take(few)

    def columns(self, index: Array) -> Array:
        """Inner products of some examples, a row each, with all; without the constant feature."""
        right = self.examples(index)[:, : self.store.shape[1]] / self.radius
        work = partial(passes.columns, right=right, centre=self.centre)
        out = np.concatenate(list(self.store.map(work, self.rows)), axis=1)
        if self.centre.mean is not None and not self.mean_before_products:
            out -= (right @ self.centre.mean)[:, None]
        return out
