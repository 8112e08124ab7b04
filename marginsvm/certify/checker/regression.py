"""Whether the claims of a fitted regressor are true of its training data.

A predictor fits if its predictions on the examples are in their intervals. Weights alpha prove that
the norm of one that fits is at least their gain over the norm of ``A^T alpha`` (weak duality).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from marginsvm.certify.checker.examples import Examples, Setting
from marginsvm.certify.checker.infeasible import nothing_fits
from marginsvm.certify.checker.linear_space import LinearSpace
from marginsvm.certify.checker.numbers import Numbers, Rationals
from marginsvm.certify.checker.published import is_csr


class NormProblem:
    """The problem that a regressor was set, and what a predictor and weights prove of it.

    Parameters
    ----------
    estimator : fitted regressor
    X, y, sample_weight, bounds : array-like
        As given to fit.
    numbers : Floats or Rationals
        What to compute in.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, bounds: Any, numbers: Numbers
    ) -> None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        kept = np.flatnonzero(weight > 0)
        examples = Examples(X, True, np.zeros(len(kept), int), weight[kept], kept, len(weight))
        linear = SimpleNamespace(
            normalize=False,
            coef_=np.atleast_2d(estimator.coef_),
            intercept_=np.atleast_1d(estimator.intercept_),
            p=estimator.p,
            fit_intercept=estimator.fit_intercept,
            intercept_scaling=estimator.intercept_scaling,
        )
        self.numbers, self._examples, self._estimator = numbers, examples, estimator
        self._space = LinearSpace(Setting(linear, examples, numbers))
        low, high = _ends(y, bounds, len(weight))
        self._low, self._high = low[kept], high[kept]  # as floats, without epsilon
        self._epsilon = 0.0 if bounds is not None else estimator.epsilon
        self._slack = None  # coordinate that a soft tube gives to the rows of each example
        norms = self._space.example_norms(False)
        if np.isfinite(estimator.C):
            cost = numbers.number(estimator.C) * numbers.array(examples.weight)
            self._slack = numbers.sqrt(1 / (2 * cost))[:, None]
            norms = numbers.norms(np.column_stack([norms, self._slack]), 2.0)
        self.largest_norm = norms.max()
        self._distance = self._distances(self._space.scores())

    def _end(self, end: NDArray, direction: int) -> NDArray:
        """Ends of the intervals as numbers; 0 where there is none."""
        finite = np.where(np.isfinite(end), end, 0.0)
        return self.numbers.array(finite) + direction * self.numbers.number(self._epsilon)

    def _distances(self, F: NDArray) -> NDArray:
        below = np.where(np.isfinite(self._low), self._end(self._low, -1) - F, 0 * F)
        above = np.where(np.isfinite(self._high), F - self._end(self._high, 1), 0 * F)
        self.scale = float(max(abs(F).max(), abs(F + below).max(), abs(F - above).max())) or 1.0
        return np.maximum(np.maximum(below, above), 0 * F)

    def violation(self, *, of_zero: bool = False) -> Any:
        """Largest distance of a prediction from its interval."""
        distance = self._distances(0 * self._distance) if of_zero else self._distance
        return distance.max()

    def norm(self) -> Any:
        """Norm of the predictor; for a soft tube, with the slack that it needs."""
        norm = self._space.predictor_norm()
        if self._slack is not None:
            used = (self._distance / self._slack).ravel()
            norm = self.numbers.norms(np.append(used, norm)[None], 2.0)[0]
        return norm * (1 + self.numbers.rounding_error)

    def length_and_gain(self, q: NDArray) -> tuple[Any, Any]:
        """Norm of ``A^T q`` and gain of weights; no gain where an end is infinite."""
        numbers, V = self.numbers, self.numbers.array(q)
        end = np.where(q > 0, self._low, self._high)
        if not np.isfinite(np.where(q != 0, end, 0.0)).all():
            return numbers.number(1.0), numbers.number(0.0)
        ends = np.where(q > 0, self._end(self._low, -1), self._end(self._high, 1))
        length = self._space.combination_norm(V, None)
        if self._slack is not None:
            length = numbers.norms(np.append((self._slack * V).ravel(), length)[None], 2.0)[0]
        return length * (1 + numbers.rounding_error), (ends * V).sum()

    def weights(self, claim: Any) -> NDArray | None:
        """The claimed weights of the examples that take part; None if they can be none."""
        shape = self._examples.n_given, self._low.shape[1]
        fits = is_csr(claim.weights, shape) and np.isfinite(claim.weights.data).all()
        return claim.weights.toarray()[self._examples.kept] if fits else None

    def nothing_fits(self, q: NDArray) -> bool:
        """Whether exact weights near these are proved to show that no predictor fits.

        Ends that are sums are moved outward to the next floats, unless they are floats; so what
        does not fit them does not fit the exact ones.
        """
        few = np.flatnonzero(q.any(axis=1))
        X, intercept = self._space.as_given(few)[0], self._estimator.fit_intercept
        low, high = self._low[few], self._high[few]
        if self._epsilon != 0.0:
            exact = Rationals()
            epsilon = exact.number(self._epsilon)
            low = np.vectorize(exact.down, otypes=[float])(exact.array(low) - epsilon)
            high = np.vectorize(exact.up, otypes=[float])(exact.array(high) + epsilon)
        return any(
            nothing_fits(X, low[:, j], high[:, j], q[few, j], intercept=intercept)
            for j in range(q.shape[1] if len(few) else 0)
        )


def _ends(y: Any, bounds: Any, n: int) -> tuple[NDArray, NDArray]:
    """Ends of the intervals, without epsilon, a column for each output."""
    if bounds is None:
        y = np.asarray(y, dtype=np.float64).reshape(n, -1)
        return y, y
    bounds = np.asarray(bounds, dtype=np.float64)
    return bounds[..., 0].reshape(n, -1), bounds[..., 1].reshape(n, -1)
