"""Coordinate ascent on sparse rows of two classes, which soon knows those that carry weight.

A sweep over the rows takes as long as a product with X, and moves the weight of every row. A few of
them bring the weights near the solution. Then come pivoting over all rows, by products with X
alone, where these are long, as in text; and a working set where they are short.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import (
    at_best_scale,
    candidates_of,
    under_intercepts,
)
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.pivoting import exchange
from marginsvm.algorithms.exact.slack import signs_and_slack
from marginsvm.algorithms.exact.working_set import NARROW, WorkingSet
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter, LpNorm
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.problem.responses import balanced
from marginsvm.rows import Predictor

# Epochs of coordinate ascent before the first solution: the support is nearly known by then.
_EPOCHS = 10
# Part of the gap that margins which are off may leave.
_OF_GAP = 0.4
# The same without slack while rows are exchanged: which they are is known long before the last
# digits are.
_COARSE = 1e-2
# Products with X after which the weights are taken as they are, as the start of a working set.
_MAX_PRODUCTS = 300
# Weight of the balance, relative to the mean squared norm of a row, where ascent keeps it by a
# penalty. It is small next to the rows, as a stiff one would hold up single coordinates.
_PENALTY = 0.02


@dataclass(frozen=True)
class SparseProblem:
    """``min u'(G + slack)u/2 - 1'u, u >= 0`` (and ``y'u = 0``) over the rows ``y_i x_i``.

    Attributes
    ----------
    X : csr_matrix of shape (n, d)
    y : ndarray of shape (n,)
        Signs.
    slack : ndarray of shape (n,)
        Squares of the rows' extra coordinates.
    balanced : bool
    """

    X: sp.csr_matrix
    y: Array
    slack: Array
    balanced: bool

    def weights(self, tol: float) -> Array:
        """Optimal weights up to a gap, or what the limits on products and exchanges allow."""
        start, left = self.ascend(_EPOCHS), _MAX_PRODUCTS
        u = start
        for gap in (_OF_GAP * tol,) if self.slack.all() else (_COARSE, _OF_GAP * tol):
            if left > 0:
                u, left = self._pivot(u, gap, left)
        return u if np.isfinite(u).all() and u.any() else start  # singular, and contradictory

    @cached_property
    def diagonal(self) -> Array:
        """Squared norms of the rows, slack left out."""
        return LpNorm().squared_lengths_of_csr(self.X)

    def ascend(self, epochs: int) -> Array:
        """Weights after some epochs of coordinate ascent: close to the final support."""
        from marginsvm.algorithms.compiled.sparse_rows import SparseRowWeights, coordinate_ascent

        X, diagonal = self.X, self.diagonal
        penalty = _PENALTY * float(diagonal.mean()) if self.balanced else 0.0
        return coordinate_ascent(
            X.indptr, X.indices, X.data, self.y, diagonal + self.slack + penalty, self.slack,
            penalty, SparseRowWeights.start(*X.shape), epochs, 0.03,
        ).u  # fmt: skip

    def _pivot(self, u: Array, gap: float, left: int) -> tuple[Array, int]:
        """Block pivoting over all rows, up to a gap; and how many products are left.

        Margins, which are to be 1, may be off by as much. With slack, rows that are off by r leave
        ``sum r^2 / (2 slack)`` between the objectives, which are about ``sum u / 2``; and twice as
        much of these as of the margins.
        """
        lost = 2.0 * gap * float(u.sum())
        each = lost / np.sum(1.0 / self.slack) if self.slack.all() else 0.0
        precision = max(gap, float(np.sqrt(each)))

        def solve(passive: Array) -> tuple[None, Array]:
            nonlocal u, left
            u, w, b, used = self._solve(np.flatnonzero(passive), u, gap, lost, left)
            left -= used
            rest = np.flatnonzero(~passive)
            wanted = u >= 0
            wanted[rest] = self.y[rest] * (self.X[rest] @ w + b) - 1 < -precision
            return None, wanted if left > 0 else passive

        exchange(u > 0, solve)
        return np.maximum(u, 0.0), left

    def _solve(
        self, face: Array, u: Array, tol: float, lost: float, most: int
    ) -> tuple[Array, Array, float, int]:
        """Weights of the rows that are to carry some, whatever its sign; the rest get none."""
        from marginsvm.algorithms.compiled.sparse_rows import conjugate_gradients

        X, slack = self.X, self.slack[face]
        diagonal = self.diagonal[face] + slack
        inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
        x, w, b, used = conjugate_gradients(
            X.indptr[:-1][face], X.indptr[1:][face], X.indices, X.data, self.y[face], slack,
            inverse, u[face], self.balanced, tol, lost, most, X.shape[1],
        )  # fmt: skip
        u = np.zeros(len(u))
        u[face] = x
        return u, w, b, used


def sparse_problem(problem: KernelMatrixAdapter) -> SparseProblem:
    """Rows of a CSR matrix in the user's units; the weights have a scale of their own."""
    y, slack = signs_and_slack(problem)
    return SparseProblem(csr_examples(problem), y, slack * problem.radius**2, problem.rows.balanced)


def ascended(problem: KernelMatrixAdapter) -> Array:
    """Weights of two classes after some epochs, in the units of the problem."""
    return sparse_problem(problem).ascend(_EPOCHS) * problem.radius**2


def short_start(problem: KernelMatrixAdapter) -> WorkingSet:
    """Two epochs of coordinate ascent: the rows with the largest weights are the first set.

    Of short rows few carry weight, but all are more than the features, so that their Gram matrix
    would be singular.
    """
    u, codes = sparse_problem(problem).ascend(2), problem.rows.codes
    support = np.argsort(-u, kind="stable")[: 4 * (int(problem.width) + 1)]
    support = support[u[support] > 0]
    lacking = np.setdiff1d(codes, codes[support])
    support = np.union1d(support, np.flatnonzero(np.isin(codes, lacking))[:1])
    return WorkingSet.of(support, u[support], delicate=problem.width <= NARROW)


@dataclass(frozen=True)
class LongStart(Method):
    """First round for long rows: weights on all of them at once.

    Attributes
    ----------
    candidates : tuple of Candidate
    u : ndarray of shape (n_rows,)
        The weights.
    """

    name: ClassVar[str] = "coordinate ascent"

    candidates: tuple[Candidate, ...] = ()
    u: Array = field(default_factory=lambda: np.empty(0))

    @property
    def weights(self) -> Array:
        return self.u

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[LongStart, Turn]:
        """Solve over all rows; what that leaves open is a working set's."""
        rows, sparse = problem.rows, sparse_problem(problem)
        # balanced but for rounding, and for weights that were cut off at 0
        u = balanced(rows, problem.radius**2 * sparse.weights(max(tol, 1e-9)))
        proof = problem.combine(u, precise=True)
        w, margins = Predictor(proof.image, u), rows.margins(problem.scores(proof))
        if problem.slack is not None:
            w, margins = at_best_scale(problem, w, under_intercepts(problem, margins)[0])
        return replace(self, candidates=candidates_of(problem, w, margins, proof), u=u), Turn.FEW
