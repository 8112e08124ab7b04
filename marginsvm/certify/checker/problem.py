"""The rows of a margin problem, spelled out plainly: what a certificate claims.

A row is an example times the sign of its class, or one held against another class. A certificate
claims that the predictor reaches a margin on all rows, and that the weights on them allow no
larger one. No code is shared with the fit but ``_overlap.py``, which decides from X, y and the
weights whether nothing separates; kernels of a name are scikit-learn's in both.
The numbers are floats or rationals (``_numbers.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight

from marginsvm._typing import Array
from marginsvm.certify.checker.kernels import kernel_values
from marginsvm.certify.checker.numbers import Floats, Rationals
from marginsvm.certify.checker.overlap import distinct, nothing_separates

Numbers = Floats | Rationals


class Problem:
    """The margin problem that an estimator was set.

    Parameters
    ----------
    estimator : fitted estimator
    X, y, sample_weight : array-like
        As given to fit; or a source of blocks, and None.
    numbers : Floats or Rationals

    Attributes
    ----------
    radius : number
        Largest norm of a row (about the mean, with an unpenalised intercept), in the units
        of margins.
    scale : float
        The same for examples as they are: what rounding is relative to.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, numbers: Numbers
    ) -> None:
        X, y, weight = _given(X, y, sample_weight)
        self._numbers = numbers
        self._kept = np.flatnonzero(weight > 0)
        self._codes = np.searchsorted(estimator.classes_, y[self._kept])
        self._k = len(estimator.classes_)
        self._own = self._codes[:, None] == np.arange(self._k)  # no rows
        constant = 0.0  # a feature that is the same for all
        if estimator.fit_intercept:
            scaling = estimator.intercept_scaling or 0.0
            constant = estimator.constant_ if estimator.normalize else scaling
        self._balanced = bool(estimator.fit_intercept) and constant == 0.0
        self._slack = None  # extra coordinates of the rows
        if np.isfinite(estimator.C):
            cost = numbers.array(estimator.C) * numbers.array(weight[self._kept])
            self._slack = numbers.sqrt(1 / (2 * cost))
        linear = hasattr(estimator, "coef_")
        self._intercept = bool(estimator.fit_intercept)
        self._normalized = bool(estimator.normalize)
        space = _Linear if linear else _Kernel
        self._space = space(estimator, X, self._kept, weight[self._kept], constant, numbers)
        lengths = self._space.lengths(self._balanced)
        if self._slack is not None:
            lengths = numbers.norms(np.column_stack([lengths, self._slack]), 2.0)
        self._radius = lengths.max()
        self.radius = self._radius if self._k == 2 else numbers.sqrt(2 * self._radius**2)
        offset = self._space.offset() if self._balanced else 0.0
        unit = 1.0 if self._k == 2 else float(np.sqrt(2.0))
        self.scale = float(self.radius) + 3.0 * unit * offset or 1.0

    def _margins(self) -> Array:
        """Differences of scores, one line an example."""
        F = self._space.scores()
        if self._k == 2:
            return np.where(self._codes == 1, F[:, 0], -F[:, 0])[:, None]
        return F[self._own][:, None] - F[~self._own].reshape(len(F), -1)

    def separation(self) -> Any:
        """Smallest margin of an example, slack left out, norm not divided by."""
        return self._margins().min()

    def lower_bound(self) -> Any:
        """Margin of the predictor; a soft margin counts its cheapest slacks."""
        margins, norm = self._margins(), self._space.norm()
        if self._slack is None:
            return self._doubted(margins.min() / norm, -1) if norm > 0 else norm
        # decision values are scaled to a margin of 1
        slack = self._slack[:, None] * (1 if self._k == 2 else self._numbers.sqrt(self._two()))
        violation = np.maximum(1 - margins, 0 * margins) / slack
        whole = self._numbers.norms(np.append(violation.ravel(), norm)[None], 2.0)[0]
        return self._doubted(1 / whole, -1)

    def _two(self) -> Any:
        return self._numbers.array([2.0])[0]

    def upper_bound(self, weights: sp.csr_array) -> Any:
        """Norm of ``A^T q``, and a surcharge for weights that are not quite balanced.

        About the mean, the intercept of a unit predictor with a positive margin is below the
        radius (class offsets differ by less than sqrt(2) times it), so that it adds less than
        radius times imbalance to ``<w, A^T q>``. The fit may count from another point than the
        mean, and charges three times as much in order to claim no less than is found here.
        """
        q = self.rows_of(weights)
        if self._k == 2:
            V = np.where(self._codes == 1, q[:, 0], -q[:, 0])[:, None]
        else:
            V = -q
            V[self._own] = q.sum(axis=1)
        rest = V.sum(axis=0) if self._balanced else None
        bound = self._space.norm_of(V, rest)
        if self._slack is not None:
            slack = self._slack[:, None] * (1 if self._k == 2 else self._numbers.sqrt(self._two()))
            bound = self._numbers.norms(np.append((slack * q).ravel(), bound)[None], 2.0)[0]
        if rest is not None:
            bound = bound + self._radius * abs(rest).sum()
        mass = q.sum()
        return self._doubted(bound / mass if mass > 0 else self.radius, 1)

    def rows_of(self, weights: sp.csr_array) -> Array:
        """Weights on the rows; an example has none against its own class."""
        q = self._numbers.array(weights.toarray()[self._kept])
        if self._k > 2:
            q[self._own] = 0 * q[self._own]
        return q

    def is_distribution(self, weights: sp.csr_array) -> bool:
        """Whether the rows' weights are none below 0 and sum to 1; the rest of them are 0."""
        if weights.shape[1] != (1 if self._k == 2 else self._k) or not np.all(weights.data >= 0):
            return False
        mass = self._numbers.up(self.rows_of(weights).sum())
        return abs(mass - 1.0) <= 1e-9 and abs(weights.sum() - 1.0) <= 1e-9

    def overlap_is_proved_by(self, weights: sp.csr_array) -> bool:
        """Whether exact weights near these make the classes meet, slack left out."""
        q = weights.toarray()[self._kept]
        if self._k > 2:
            q[self._own] = 0.0
        few = np.flatnonzero(q.any(axis=1))
        X, factor = self._space.given(few)
        q, codes = q[few] * factor[:, None], self._codes[few]
        return nothing_separates(X, codes, self._k, q, intercept=self._intercept)

    def _doubted(self, bound: Any, sign: int) -> Any:
        """The bound at the pessimistic end of the numbers' error.

        That is relative to the bound, as all terms under a root are positive; but sums of
        normalised examples may cancel.
        """
        whole = abs(bound) + self.radius if self._normalized else abs(bound)
        return bound + sign * self._numbers.doubt * whole


def _given(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
    """Blocks of examples, to be read several times, and the labels and weights of all."""
    if y is not None:
        return [X], np.asarray(y), _check_sample_weight(sample_weight, X, dtype=np.float64)
    labels, weights = [], []
    for X_block, y_block, *rest in X:  # fit has checked them
        labels.append(np.asarray(y_block))
        ones = np.ones(X_block.shape[0])
        weights.append(np.asarray(rest[0], dtype=np.float64) if rest else ones)
    return _Matrices(X), np.concatenate(labels), np.concatenate(weights)


class _Matrices:
    """The matrices of a source's blocks."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Any]:
        return (block[0] for block in self._source)


def _average(weight: Array, numbers: Numbers) -> Array:
    """Weights of the examples in their mean."""
    weight = numbers.array(weight)
    return np.asarray(weight / weight.sum())


class _Linear:
    def __init__(
        self,
        estimator: Any,
        X: Any,
        kept: Array,
        weight: Array,
        constant: float,
        numbers: Numbers,
    ) -> None:
        self._average = _average(weight, numbers)
        if estimator.p == "sparse":
            self._p = 1.0 + 1.0 / max(float(np.log(estimator.coef_.shape[1])), 1.0)
        else:
            self._p = float(estimator.p)
        self._numbers, self._q = numbers, self._p / (self._p - 1.0)
        self._given, self._kept, self._normalize = X, kept, estimator.normalize
        self._constant = constant
        self._coef = numbers.array(estimator.coef_)
        self._intercept = numbers.array(estimator.intercept_)
        if constant:  # its coefficient is in the intercept
            entry = numbers.array([constant])
            self._coef = np.hstack([self._coef, self._intercept[:, None] / entry])
            self._intercept = 0 * self._intercept
        self._ready = [*self._read()] if isinstance(X, list) else None

    def _blocks(self) -> Iterable[tuple[slice, Any]]:
        return self._read() if self._ready is None else self._ready

    def _read(self) -> Iterator[tuple[slice, Any]]:
        """Examples of positive weight, block by block, and which of these they are."""
        start = end = 0
        for X in self._given:
            X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
            first, last = np.searchsorted(self._kept, [start, start + X.shape[0]])
            here = self._kept[first:last] - start
            start, end = start + X.shape[0], end + len(here)
            if len(here):
                yield slice(end - len(here), end), self._as_fitted(X, here)

    def _as_fitted(self, X: Any, here: Array) -> Any:
        numbers = self._numbers
        X = numbers.array(X if here.size == X.shape[0] else X[here])
        if self._constant:
            stack = sp.hstack if sp.issparse(X) else np.hstack
            X = stack([X, numbers.array(np.full((here.size, 1), self._constant))])
        if self._normalize:
            X = X.tocsr() if sp.issparse(X) else X
            inverse = numbers.inverse(numbers.norms(X, 2.0))
            X = sp.diags_array(inverse) @ X if sp.issparse(X) else X * inverse[:, None]
        return X.tocsr() if sp.issparse(X) else X

    def given(self, few: Array) -> tuple[Any, Array]:
        """Some examples as they were given, and positive factors of their weights."""
        start = first = 0
        parts = []
        for X in self._given:
            X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
            kept = self._kept[few[first:]] - start
            here = kept[kept < X.shape[0]]
            few_of_block = X[here] if sp.issparse(X) else np.asarray(X[here], dtype=np.float64)
            parts.append(sp.csr_array(few_of_block))
            start, first = start + X.shape[0], first + len(here)
        X = sp.vstack(parts, format="csr").astype(np.float64)
        if not self._normalize:
            return X, np.ones(len(few))
        norms = Floats().norms(X, 2.0)
        inverse = Floats().inverse(np.hypot(norms, float(self._constant)))
        return X, np.where(inverse > 0, inverse, 1.0)

    def scores(self) -> Array:
        dot = self._numbers.dot
        return np.concatenate([dot(X, self._coef.T) for _, X in self._blocks()]) + self._intercept

    def norm(self) -> Any:
        return self._numbers.norms(self._coef.reshape(1, -1), self._p)[0]

    def lengths(self, centred: bool) -> Array:
        numbers, mean = self._numbers, self._mean() if centred else None
        return np.concatenate(
            [
                numbers.norms(X, self._q) if mean is None else numbers.distances(X, mean)
                for _, X in self._blocks()
            ]
        )

    def offset(self) -> float:
        """Distance of the mean from the origin."""
        return float(self._numbers.norms(self._mean()[None], 2.0)[0])

    def _mean(self) -> Array:
        return self._sum(self._average[:, None])[0]

    def _sum(self, V: Array) -> Array:
        """``V^T X``."""
        parts = (self._numbers.dot(V[block].T, X) for block, X in self._blocks())
        return reduce(np.add, parts)

    def norm_of(self, V: Array, rest: Array | None) -> Any:
        """Norm of ``V^T X``; V sums to ``rest``, next to nothing, which the mean takes away."""
        W = self._sum(V)
        if rest is not None:
            W = W - rest[:, None] * self._mean()
        return self._numbers.norms(W.reshape(1, -1), self._q)[0]


class _Kernel:
    def __init__(
        self,
        estimator: Any,
        X: Any,
        kept: Array,
        weight: Array,
        constant: float,
        numbers: Numbers,
    ) -> None:
        self._average = _average(weight, numbers)
        (X,) = X  # all examples in one block
        K = kernel_values(estimator, X, kept, weight)
        V = np.zeros((len(kept), len(estimator.dual_coef_)))
        V[np.searchsorted(kept, estimator.support_)] = estimator.dual_coef_.T
        self._numbers, self._V, self._K = numbers, numbers.array(V), numbers.array(K)
        self._given = K if estimator.kernel == "precomputed" else None
        self._examples: Any = (sp.csr_array(X) if sp.issparse(X) else np.asarray(X))[kept]
        self._intercept = numbers.array(estimator.intercept_)
        self._constant = numbers.array([constant])[0]
        self._scale = numbers.array(np.ones(len(kept)))  # of the rows, inverses of norms
        if estimator.normalize:
            given = estimator.kernel == "precomputed"  # with norms of 1, and divided by none
            squared = self._scale if given else np.diagonal(self._K)
            squared = np.maximum(squared, 0 * squared)  # of kernels that are no inner product
            self._scale = numbers.inverse(numbers.sqrt(squared + self._constant**2))

    def given(self, few: Array) -> tuple[Any, Array]:
        """Rows of a kernel matrix that was given; or a feature for each distinct example.

        The values of a kernel that is computed are rounded, and prove nothing of it, but
        equal examples are equal for any kernel.
        """
        if self._given is not None:
            return self._given[few], np.ones(len(few))
        X = self._examples[few]
        X = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        return distinct(X), np.ones(len(few))

    def scores(self) -> Array:
        F = self._numbers.dot(self._K, self._V) + self._intercept
        return F * self._scale[:, None]

    def norm(self) -> Any:
        squared = self._squared(self._V)
        if self._constant:  # a feature like any other, of which the intercept is a multiple
            squared = squared + ((self._intercept / self._constant) ** 2).sum()
        return self._numbers.sqrt(squared)

    def _squared(self, V: Array) -> Any:
        return (V * self._numbers.dot(self._K, V)).sum()

    def lengths(self, centred: bool) -> Array:
        squared = (np.diagonal(self._K) + self._constant**2) * self._scale**2
        if centred:
            mean = self._numbers.dot(self._K, self._average)
            squared = squared - 2 * mean + (self._average * mean).sum()
        return self._numbers.sqrt(squared)

    def offset(self) -> float:
        return float(np.sqrt(float(abs(np.diagonal(self._K)).max())))

    def norm_of(self, V: Array, rest: Array | None) -> Any:
        if rest is None:
            V = V * self._scale[:, None]
            whole = self._constant * V.sum(axis=0)
            return self._numbers.sqrt(self._squared(V) + (whole * whole).sum())
        return self._numbers.sqrt(self._squared(V - self._average[:, None] * rest))
