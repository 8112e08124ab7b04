"""Rosenblatt (1958): The Perceptron; Algorithm 1 of Ramdas and Pena (2014)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.baselines import BatchPerceptron, Perceptron
from marginsvm.certify.bounds import rounding_error
from marginsvm.estimator.declaring import with_parameters
from marginsvm.estimator.results import Fitted
from marginsvm.fit import Requirements, Stopping
from marginsvm.kernel_matrix import BestResponse, KernelMatrixAdapter
from marginsvm.kernel_matrix.responses import Weights, worst_row
from marginsvm.rows import Rows, Vector


@dataclass(frozen=True)
class Mistakes(Perceptron):
    """Algorithm 1 of Ramdas and Pena, Rosenblatt's: misclassified rows are added one by one."""

    requires = Requirements(by_passes=False, in_order=True)

    def respond(
        self, problem: KernelMatrixAdapter, w: Vector, last: BestResponse | None
    ) -> BestResponse:
        """The next misclassified row after the one that was added last."""
        visited = -1 if last is None else cast(Mistake, last.weights).visited
        rounding = 2.0 * rounding_error(problem, w)  # of two margins
        return problem.respond(w, response=NextMistake(visited + 1, rounding))


@with_parameters
class KernelPerceptron(BatchPerceptron):
    r"""Rosenblatt's perceptron: misclassified examples are added one by one.

    The data is gone through again and again, and each misclassified row is added to the predictor.
    A round is one mistake. With an intercept, a row is paired with the row of smallest margin in
    the opposite group (two classes: in the other class). The pair is misclassified if the sum of
    the two margins is not positive, and half of each row is added. The fit ends at any separator.
    If there is none, the average of the predictors is the model.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit an intercept; it is not penalised.
    tol : float
        Upper bound on the margin at which the fit ends without a separator (relative to the
        radius).
    max_iter : int
        Largest number of mistakes, those before a warm start included.

    Attributes
    ----------
    n_mistakes_ : int
        Updates made.

    Notes
    -----
    =======================  ==========================================================
    paper                    code
    =======================  ==========================================================
    :math:`y_i x_i`          a row of the data, divided by the radius
    :math:`w_k`              ``w``, after k mistakes: its mass, ``n_mistakes_``
    =======================  ==========================================================

    References
    ----------
    F. Rosenblatt. The perceptron. Psychological Review 65 (1958). Algorithm 1 of Ramdas
    and Pena (2014); the peer of figure 1 of Hanashiro and Abernethy (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm import KernelPerceptron
    >>> X = np.array([[1.0, 0.0], [1.0, -1.0]])
    >>> KernelPerceptron(fit_intercept=False).fit(X, [1, -1]).n_mistakes_
    5
    """

    tol: float = 1e-6
    stopping: str = field(default="separation", init=False)  # no parameters of this estimator
    steps: str = field(default="constant", init=False)

    def _algorithm(self) -> Mistakes:
        return Mistakes()

    def _stopping(self) -> Stopping:
        return replace(super()._stopping(), negligible=self.tol)

    def _own_results(self, fitted: Fitted) -> dict[str, Any]:
        return {"n_mistakes_": int(fitted.progress.state.mass)}


@dataclass(frozen=True)
class Mistake(Weights):
    """Weights on a misclassified row and, if balanced, on its partner.

    Attributes
    ----------
    visited : int
        Flat index of the row from which the search began; the next search begins after it.
    """

    visited: int = -1


@dataclass(frozen=True)
class NextMistake:
    """The first misclassified row from ``start`` on or, without any, the row of smallest margin.

    Balanced rows: each row is paired with the row of smallest margin in the opposite group. If
    all of these pairs are classified correctly but a longer cycle of groups is not, the cycle
    with the smallest mean margin is the mistake, and the next search begins at the same row.

    Attributes
    ----------
    start : int
        Flat index of the row from which the search begins.
    rounding : float
        Margins up to this may be 0 up to rounding (units of the radius).
    """

    start: int
    rounding: float = 0.0

    def respond(self, rows: Rows, margins: Array, mu: float) -> Mistake:
        """Weights on the rows of the next mistake, given the margins of all rows."""
        low = rows.group_min(margins)
        paired = margins if not rows.balanced else margins + rows.expand(low.T)
        mistakes = np.flatnonzero(paired <= self.rounding)
        if mistakes.size == 0:
            worst_rows = worst_row.respond(rows, margins)
            return Mistake(**vars(worst_rows), visited=self.start - 1)
        row = int(mistakes[np.searchsorted(mistakes, self.start) % mistakes.size])
        q = np.zeros(rows.shape)
        q.flat[row] = 1.0
        if rows.balanced:
            groups = np.arange(low.size).reshape(low.shape)
            own = np.broadcast_to(rows.expand(groups), rows.shape).flat[row]
            partner = np.argmin(np.where(rows.expand(groups.T) == own, margins, np.inf))
            q.flat[row] = q.flat[partner] = 0.5
        smallest = rows.min_margin(low)
        return Mistake(q, 1.0, smallest, rows.best_offsets(low), -smallest, 1.0, visited=row)
