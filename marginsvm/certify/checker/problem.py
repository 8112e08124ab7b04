"""The margin problem that a fit was set, and the bounds that a predictor and weights prove on it.

A row of the problem is an example times the sign of its class (two classes), or an example held
against another class (more). A soft margin gives each row one coordinate of its own. The margin of
a predictor is its smallest value on a row, divided by its norm; no predictor has a larger margin
than the norm of ``A^T q``, where q is a distribution over the rows of A (weak duality).

With the hinge loss, the margin of a predictor w is ``1 / sqrt(|w|^2 + 2 C sum xi)``, for the slack
xi that lifts its values on all rows to 1. Multiples ``s q <= C`` of weights prove that the square
of its inverse is no less than ``2 s - s^2 |A^T q|^2``. With ``nu``, the margin is the mean of the
worst values of a share nu of the examples, over the norm, and weights on an example are at most
that of the example over nu times those of all (``capped.py``).

This is spelled out plainly, and shares no code with the fit but the proof that nothing separates
(``overlap.py``). Kernels of a name are scikit-learn's in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.checker.capped import PricedSlack, capped
from marginsvm.certify.checker.examples import Examples, Setting
from marginsvm.certify.checker.kernel_space import KernelSpace
from marginsvm.certify.checker.linear_space import LinearSpace
from marginsvm.certify.checker.numbers import Numbers
from marginsvm.certify.checker.overlap import nothing_separates
from marginsvm.certify.checker.published import is_csr

_SUM_TOLERANCE = 1e-9  # from 1, of weights that sum to 1 but for the rounding of each
_SURCHARGE = 3.0  # norms of the mean in the scale: see ``Problem.scale``


class Problem:
    """The rows of a margin problem.

    Parameters
    ----------
    estimator : fitted estimator
    X, y, sample_weight : array-like
        As given to fit; or a source of blocks, and None.
    numbers : Floats or Rationals
        What to compute in.

    Attributes
    ----------
    numbers : Floats or Rationals
    radius : number
        Largest norm of a row (counted from the mean, with an unpenalised intercept), in the units
        of margins.
    scale : float
        The radius and, where rows are counted from the mean, three times the norm of the mean: what
        the rounding of floats is relative to.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, numbers: Numbers
    ) -> None:
        examples = Examples.of(estimator, X, y, sample_weight)
        setting = Setting(estimator, examples, numbers)
        self.numbers, self._examples = numbers, examples
        self._codes, self._n_classes = examples.codes, len(estimator.classes_)
        self._binary = self._n_classes == 2
        self._own_class = self._codes[:, None] == np.arange(self._n_classes)
        self._row_length = numbers.sqrt(numbers.number(1.0 if self._binary else 2.0))  # |e_c - e_j|
        self._space = (LinearSpace if hasattr(estimator, "coef_") else KernelSpace)(setting)
        self._free_intercept = setting.free_intercept
        self._fit_intercept = bool(estimator.fit_intercept)
        self._normalized = bool(estimator.normalize)
        norms = self._space.example_norms(self._free_intercept)
        self._slack = None  # coordinate that a soft margin gives to the rows of each example
        free, weight = self._free_intercept, examples.weight
        self._capped = capped(estimator, self._codes, weight, numbers, free)
        if np.isfinite(estimator.C):
            cost = numbers.number(estimator.C) * numbers.array(examples.weight)
            slack = numbers.sqrt(1 / (2 * cost))
            norms = numbers.norms(np.column_stack([norms, slack]), 2.0)
            if self._capped is None:
                self._slack = (slack * self._row_length)[:, None]
        self._largest_norm = norms.max()
        self.radius = self._largest_norm * self._row_length
        offset = self._space.distance_from_origin() if self._free_intercept else 0.0
        self.scale = float(self.radius) + _SURCHARGE * float(self._row_length) * offset or 1.0

    def _row_values(self) -> NDArray:
        """Differences of decision values, one line an example, one entry a row."""
        F = self._space.scores()
        if self._binary:
            return np.where(self._codes == 1, F[:, 0], -F[:, 0])[:, None]
        return F[self._own_class][:, None] - F[~self._own_class].reshape(len(F), -1)

    def separation(self) -> Any:
        """Smallest value of the predictor on a row without slack; its norm does not matter."""
        return self._row_values().min()

    def lower_bound(self) -> Any:
        """Margin of the predictor; for a soft margin, with the slack that makes it largest."""
        values, norm = self._row_values(), self._space.predictor_norm()
        if self._capped is not None:
            return self._rounded(self._capped.lower_bound(values, norm), -1)
        if self._slack is None:
            return self._rounded(values.min() / norm, -1) if norm > 0 else norm
        # decision values are published in units of the margin: slack lifts all of them to 1
        slack_used = np.maximum(1 - values, 0 * values) / self._slack
        norm = self.numbers.norms(np.append(slack_used.ravel(), norm)[None], 2.0)[0]
        return self._rounded(1 / norm, -1)

    def upper_bound(self, weights: sp.csr_array) -> Any:
        """Norm of ``A^T q``, and a surcharge for weights that are not quite balanced.

        With an unpenalised intercept, q must weigh the classes alike. Counted from the mean, the
        intercept of a unit predictor with a positive margin is below the radius (class offsets
        differ by less than sqrt(2) times it), so that it adds less than radius times imbalance to
        ``<w, A^T q>``. The fit may count from another point than the mean, and charges three times
        as much in order to claim no less than is found here.

        Infinite for what can be no weights on the rows: they prove nothing.
        """
        if not self._may_be_weights(weights):
            return np.inf
        q = self._row_weights(weights)
        V = self._coefficients(q)
        imbalance = V.sum(axis=0) if self._free_intercept else None
        bound = self._space.combination_norm(V, imbalance)
        if self._slack is not None:
            bound = self.numbers.norms(np.append((self._slack * q).ravel(), bound)[None], 2.0)[0]
        off, mass = 0 if imbalance is None else abs(imbalance).sum(), q.sum()
        if not mass > 0:
            return np.inf
        if self._capped is not None:
            bound = self._capped.upper_bound(q, bound, off, self._largest_norm)
            return self._rounded(bound, 1) if bound < np.inf else np.inf
        return self._rounded((bound + self._largest_norm * off) / mass, 1)

    def _coefficients(self, q: NDArray) -> NDArray:
        """What ``A^T q`` multiplies the examples with, a column for each score."""
        if self._binary:
            return np.where(self._codes == 1, q[:, 0], -q[:, 0])[:, None]
        V = -q
        V[self._own_class] = q.sum(axis=1)
        return V

    def _may_be_weights(self, weights: sp.csr_array) -> bool:
        """Whether there is a finite number, not below 0, for each row."""
        shape = self._examples.n_given, 1 if self._binary else self._n_classes
        fits = is_csr(weights, shape)
        return fits and bool(np.all((weights.data >= 0) & (weights.data < np.inf)))

    def _row_weights(self, weights: sp.csr_array) -> NDArray:
        """Weights on the rows of the examples that take part, without rounding."""
        return self.numbers.array(self._row_floats(weights))

    def _row_floats(self, weights: sp.csr_array) -> NDArray:
        q = weights.toarray()[self._examples.kept]
        if not self._binary:
            q[self._own_class] = 0.0  # an example is not held against its own class
        return q

    def is_distribution(self, weights: sp.csr_array) -> bool:
        """Whether the rows' weights are none below 0 and sum to 1; there are no others."""
        if not self._may_be_weights(weights):
            return False
        mass = self.numbers.up(self._row_weights(weights).sum())
        return abs(mass - 1.0) <= _SUM_TOLERANCE and abs(weights.sum() - 1.0) <= _SUM_TOLERANCE

    def nu(self, weights: sp.csr_array) -> Any:
        """Parameter of NuSVC that goes with weights; None: slack does not cost its size."""
        slack = self._capped
        return slack.nu(self._row_weights(weights)) if isinstance(slack, PricedSlack) else None

    def overlap_is_proved_by(self, weights: sp.csr_array) -> bool:
        """Whether exact weights near these are proved to show that nothing separates.

        That is asked of the examples as they were given, without slack.
        """
        if not self._may_be_weights(weights):
            return False
        q = self._row_floats(weights)
        few = np.flatnonzero(q.any(axis=1))
        X, factor = self._space.as_given(few)
        q, codes = q[few] * factor[:, None], self._codes[few]
        return nothing_separates(X, codes, self._n_classes, q, intercept=self._fit_intercept)

    def _rounded(self, bound: Any, direction: int) -> Any:
        """The bound at the pessimistic end of what roots and powers may have rounded.

        Their error is relative to the bound, as all terms under a root are positive; but sums of
        normalised examples may cancel.
        """
        size = abs(bound) + self.radius if self._normalized else abs(bound)
        return bound + direction * self.numbers.rounding_error * size
