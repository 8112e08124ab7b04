"""The exact maximum margin: working sets, solved exactly, certified by one pass a round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from marginsvm.algorithms.exact.choosing import difference_of_means
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.sparse import LongStart, short_start
from marginsvm.algorithms.exact.working_set import WorkingSet
from marginsvm.algorithms.momentum import Momentum
from marginsvm.data.threads import single_threaded_blas
from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import with_parameters
from marginsvm.estimator.parameters import CommonParameters, KernelParameters
from marginsvm.estimator.results import Fitted
from marginsvm.fit import Algorithm, Candidate, Progress, Requirements, Stopping, play
from marginsvm.fit.confirm import least_loss
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples

_LAST_RESORT = 50  # rounds of momentum, for a model where nothing separates
_PATIENCE = 10  # a round solves exactly, and shortens the proof unless rounding prevents it
_MANY = 500  # examples from which methods other than a working set may be worth their start


class Method(Protocol):
    """What the three methods have in common: they advance, and they prove."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """What the last round found."""
        ...

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> Method:
        """Give the method after one round more, itself if nothing is left to be done."""
        ...


@dataclass(frozen=True)
class ActiveSet(Algorithm):
    """Exact solutions on few rows, and a look at all rows in every round.

    Attributes
    ----------
    tol : float
        Relative gap to which rows are looked for that a solution gets wrong (dimensionless).
    """

    tol: float = 1e-6

    requires = Requirements(every_row=False)

    def start(self, problem: KernelMatrixAdapter) -> Method:
        """Choose a method for problems of this shape."""
        many = problem.rows.n_classes == 2 and problem.n_rows > _MANY
        if many and np.isfinite(problem.C) and problem.width <= problem.n_rows:
            return Newton.start(problem)
        if many and csr_examples(problem) is not None:
            return LongStart() if problem.width > problem.n_rows // 4 else short_start(problem)
        return WorkingSet.start(problem)

    @single_threaded_blas()
    def step(self, problem: KernelMatrixAdapter, state: Method) -> Method:
        """Solve, and look at all rows."""
        return state.advance(problem, self.tol)

    def candidates(self, problem: KernelMatrixAdapter, state: Method) -> Iterable[Candidate]:
        """What the method found."""
        return state.candidates

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """Where nothing separates, close to the minimiser of the exponential loss."""
        if progress.upper <= problem.errors.vanishing and problem.cheap_sums:
            last = play(Momentum(), problem, Stopping("rounds", max_iter=_LAST_RESORT))
            assert last.progress.last is not None
            return last.progress.last
        found = [] if progress.best is None else [progress.best.vector]
        vectors = [difference_of_means(problem), *found]
        loss = [least_loss(problem.rows, problem.margins(w)).log_risk for w in vectors]
        return Candidate(vectors[int(np.argmin(loss))])


@with_parameters
class MaxMarginClassifier(CommonParameters, KernelParameters, DualStateMixin, BaseEstimator):
    """Maximum-margin classifier, exact: the one to take if you have no other wish.

    Few rows decide the margin. A working set of rows is solved exactly, one pass over all
    rows certifies the answer or finds the rows that it gets wrong, and the worst of them
    join the set.

    Parameters
    ----------
    tol : float
        Relative gap between the certified bounds (dimensionless). Rounding may hide it: then
        the fit ends as ``stalled``, after ten rounds that brought the bounds no closer. 0 plays
        all rounds.
    max_iter : int
        Rounds in all, those before a warm start included: each solves a working set (soft
        margins with many examples: takes a Newton step) and looks at all rows once.
    warm_start : bool
        Go on from where the previous fit on the same data ended, bit for bit (kernels: up
        to rounding).

    Attributes
    ----------
    margin_ : float
        Certified lower bound on the best margin, which this predictor has (units of X). Margins
        down to 1e-9 of the radius are found and certified (kernels and rows with more than 1024
        features: 1e-7), thinner ones where the features are of different units.
    support_ : ndarray of shape (n_support,)
        Indices of the training examples with positive weight in the fitted predictor; of
        linear ones, too.

    See Also
    --------
    marginsvm.check_certificate : Compute the bounds again from the data alone.

    Notes
    -----
    =====================================  ===================================================
    problem                                method
    =====================================  ===================================================
    any, by default                        block principal pivoting on a working set
    pivoting does not settle               Wolfe's nearest point, one row at a time
    CSR, two classes, long rows            coordinate ascent, then pivoting over all rows with
                                           conjugate gradients, in the first round
    soft margin, two classes, N > d        finite Newton with an exact line search; a working
                                           set of its active rows where it stays slow
    =====================================  ===================================================

    All of them give vectors ``A^T q`` and separators, and bounds come from these alone.
    Of many dense examples, a round looks at those near the margin first, which stay in
    cache. Memory: the data, O(N), the square of the working set, some MB of examples;
    kernels: columns of all rows that were in the working set, up to 2 GiB. Where nothing
    separates, the model is the exponential loss's, about: that of some rounds of momentum
    (kernels, and fits that end early: the best separator so far or the difference of the
    class means, whichever has the smaller loss at its best scale).

    References
    ----------
    Philip Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976.

    J. Kim, H. Park. Fast nonnegative matrix factorization: an active-set-like method and
    comparisons. SIAM J. Sci. Comput., 2011.

    S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large
    scale linear SVMs. JMLR, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginClassifier().fit(X[:100], y[:100])
    >>> print(f"{clf.margin_:.5f}", clf.gap_ < 1e-6, len(clf.support_))
    0.81756 True 3
    """

    tol: float = 1e-6
    max_iter: int = 200

    def _algorithm(self) -> ActiveSet:
        return ActiveSet(self.tol)

    def _stopping(self) -> Stopping:
        return replace(super()._stopping(), negligible=None, patience=_PATIENCE)

    def _own_results(self, fitted: Fitted) -> dict[str, Any]:
        kept = fitted.training.kept
        q = fitted.bounds.model.coef.reshape(len(kept), -1)
        return {"support_": kept[q.max(axis=1) > 0]}
