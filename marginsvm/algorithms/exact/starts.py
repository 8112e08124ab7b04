"""Coordinate ascent, which soon knows which rows carry weight: for sparse rows above all.

A sweep over the rows takes as long as a product with X, and moves the weight of every row. A few of
them bring the weights of two classes near the solution (``SparseProblem``; then come pivoting over
all rows by products with X alone, where these are long, as in text, and a working set, where they
are short), and those of many classes (``Ascent``; then comes Newton's method).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import cached_property
from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import candidates_of
from marginsvm.algorithms.exact.method import Method, Turn, best_bounds
from marginsvm.algorithms.exact.multipliers import is_rounded_off
from marginsvm.algorithms.exact.pivoting import exchange
from marginsvm.algorithms.exact.slack import Slack, signs_and_slack
from marginsvm.algorithms.exact.working_set import NARROW, WorkingSet
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.caps import room_below
from marginsvm.certify.certifiable import written_out
from marginsvm.kernel_matrix import KernelMatrixAdapter, LpNorm
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.kernel_matrix.responses.balancing import balanced
from marginsvm.rows import Predictor

# Epochs of coordinate ascent before the first solution: the support is nearly known by then.
_EPOCHS = 10
# Part of the gap that margins which are off may leave.
_OF_GAP = 0.4
# Products with X after which the weights are taken as they are, as the start of a working set.
_MAX_PRODUCTS = 300
# Weight of the balance, relative to the mean squared norm of a row, where ascent keeps it by a
# penalty. It is small next to the rows, as a stiff one would hold up single coordinates.
_PENALTY = 0.02
# Epochs of a round: as long as a pass that computes all margins, or longer.
_EPOCHS_A_ROUND = 8
# Parts of a round where slack costs its square, each of which begins with the last change once
# more: momentum is as stable after fewer epochs, and gains more.
_PARTS_OF_ROUND = 4
# Relative change of scale up to which weights are taken at their best multiple: weights that are
# farther from it cancel, and all that they lack besides would grow with them.
_NEAR_SCALE = 0.25
# Entries of X that the epochs of a round visit at most, times classes: a second, or about.
_ENTRIES = 1e9
# Epochs that may be left, at the rate of the last half: as long as multipliers take to the end; and
# Newton's method alone, where slack costs enough to need no others.
_EPOCHS_LEFT, _EPOCHS_OF_NEWTON = 500.0, 100.0
# A gap above which it does not tell how many epochs are left: momentum is still to come.
_EARLY = 0.9
# Share of the gap: a round that leaves more than this asks for more momentum.
_SLOW = 0.5


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
        start = self.ascend(_EPOCHS)
        u = self._pivot(start, _OF_GAP * tol)
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

    def _pivot(self, u: Array, gap: float) -> Array:
        """Block pivoting over all rows, up to a gap.

        Margins, which are to be 1, may be off by as much. With slack, rows that are off by r leave
        ``sum r^2 / (2 slack)`` between the objectives, which are about ``sum u / 2``; and twice as
        much of these as of the margins.
        """
        left, lost = _MAX_PRODUCTS, 2.0 * gap * float(u.sum())
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
        return np.maximum(u, 0.0)

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
            b = Slack(problem.slack).settled(rows, margins)[1]
            margins = margins + rows.moves(np.broadcast_to(b, rows.score_shape))
            w, margins = _at_best_scale(problem, w, margins)
        return replace(self, candidates=candidates_of(problem, w, margins, proof), u=u), Turn.FEW


@dataclass(frozen=True)
class Ascent(Method):
    """Weights that dual ascent has reached, and the bounds there.

    Attributes
    ----------
    candidates : tuple of Candidate
    ascent : ClassWeights or None
        The state of the ascent; None: not begun.
    gaps : tuple of float
        Relative gaps between the bounds, before each round and now.
    before : ClassWeights or None
        The state of the round before, or of the part of a round.
    pace : int
        Rounds, or parts of these, that left much of the gap, since weights last proved less than
        before. Each begins with ``(pace - 1) / (pace + 2)`` of the last change once more:
        Nesterov's momentum, which begins anew where it leads away (O'Donoghue and Candes 2015).
    best : tuple of (float, float)
        Bounds so far (in radii); where slack does not cost its square, those of the last round.
    """

    name: ClassVar[str] = "coordinate ascent"

    candidates: tuple[Candidate, ...] = ()
    ascent: Any = None
    gaps: tuple[float, ...] = (1.0,)
    before: Any = None
    pace: int = 1
    best: tuple[float, float] = (0.0, np.inf)

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Ascent, Turn]:
        """Some epochs, and the bounds of where they end."""
        (at, last), rows = self._ascended(problem), problem.rows
        h = np.sqrt(2.0) * _unit(problem)  # the ascent's rows are x (e_y - e_j)
        u = balanced(rows, h * h * at.u.astype(np.float64))
        if problem.caps is not None:
            u = u * min(1.0, room_below(problem.caps.largest, u.sum(axis=1)))
        vector = Predictor(h * at.W.T, u)
        b = np.sqrt(2.0) * at.b
        if csr_examples(problem) is not None:  # these are not about their mean
            b = b - problem.predictor(vector, np.zeros(rows.n_classes))[1]
        margins = rows.margins(problem.scores(vector) + b)
        if problem.slack is not None:
            vector, margins = _at_best_scale(problem, vector, margins)
        seen = candidates_of(problem, vector, margins, problem.combine(u, precise=True))
        known = (0.0, np.inf) if problem.slack is None else self.best
        lower, upper = best_bounds(problem, seen, known)
        gaps = (*self.gaps, 1.0 - (lower / upper) ** 2)
        more = 1 if problem.slack is None or self.pace < 3 else _PARTS_OF_ROUND
        slow = gaps[-1] > _SLOW * gaps[-2]
        pace = self.pace + more * slow if upper < self.best[1] else 1
        now = Ascent(seen, at, gaps, last, pace, (lower, upper))
        most = _EPOCHS_LEFT if is_rounded_off(problem) else _EPOCHS_OF_NEWTON
        left = now._epochs_left(tol, steady=problem.caps is None)
        return now, Turn.SHORT if left > most else Turn.GO_ON

    def _epochs_left(self, tol: float, steady: bool) -> float:
        """How many epochs are left, at the rate of the last half of those so far.

        Where the rate is steady, it is that of the odds, gap : 1 - gap. A small gap falls as these
        do; where it is large, they fall as what has been reached grows. Caps make it slower later.
        """
        end, rounds, epochs = max(tol, UNIT), len(self.gaps) - 1, self.ascent.epochs
        if rounds == 1:  # weights that begin at 0 are slow at first
            return 0.0
        if steady and self.gaps[-1] > _EARLY:  # as many again
            return float(epochs)
        gaps, half = np.clip(self.gaps, end, 1.0 - UNIT), rounds // 2
        log = np.log(gaps / (1.0 - gaps) if steady else gaps)
        last, gone = epochs * (1.0 - half / rounds), log[half] - log[-1]
        return float(last * (log[-1] - np.log(end)) / gone) if gone > 0.0 else np.inf

    def _ascended(self, problem: KernelMatrixAdapter) -> tuple[Any, Any]:
        """The states after some more epochs, and before the last block of these."""
        from marginsvm.algorithms.compiled.sparse_classes import (
            SparseClassWeights,
            ascend_classes,
            balance_penalty,
            lead_classes,
        )

        X, k, codes = _by_entries(problem), problem.rows.n_classes, problem.rows.codes
        (n, d), scale = X.shape, 2.0 * _unit(problem) ** 2
        rows, squares = (X.indptr, X.indices, X.data, codes), LpNorm().squared_lengths_of_csr(X)
        s = np.zeros(n) if problem.slack is None else scale * problem.slack[:, 0]
        caps = np.full(n, np.inf) if problem.caps is None else problem.caps.largest / scale
        penalty = balance_penalty(squares, s, caps) if problem.rows.balanced else 0.0
        at, before = self.ascent or SparseClassWeights.start(n, d, k), self.before
        epochs = int(np.clip(_ENTRIES / max(1, X.nnz * k), 1, _EPOCHS_A_ROUND))
        problem.work.add_pass(epochs)
        soft, slow = problem.slack is not None, self.pace > 2
        part = max(1, epochs // _PARTS_OF_ROUND) if soft else epochs
        parts = [part] * (epochs // part) if slow else [epochs - part, part]
        for pace, some in enumerate(filter(None, parts), self.pace):
            now = deepcopy(at)
            if self.pace > 1 and before is not None:
                lead_classes(*rows, penalty, now, before, (pace - 1.0) / (pace + 2.0))
            now = ascend_classes(*rows, squares, s, caps, penalty, now, some)
            at, before = now, at if at.epochs else None  # the first change is no direction
        more = _best_multiple(at, s) - 1.0 if soft and slow else 0.0
        if 0.0 < abs(more) < _NEAR_SCALE:
            before, none = deepcopy(before), SparseClassWeights.start(n, d, k)
            for state in (at, before):
                lead_classes(*rows, penalty, state, none, more)
        return at, before


def _at_best_scale(
    problem: KernelMatrixAdapter, w: Predictor, margins: Array
) -> tuple[Predictor, Array]:
    """A predictor and its margins, scaled so that it and its slack, by its square, cost least.

    Next to a separator, slack that a slightly longer predictor would not need costs many times as
    much as the predictor does.
    """
    assert problem.slack is not None
    square = problem.inner(w, w)
    t = 1.0 + Slack(problem.slack).line_search(margins, margins, square, square)
    return (Predictor(t * w.image, w.coef), t * margins) if t > 0.0 else (w, margins)


def _best_multiple(at: Any, slack: Array) -> float:
    """The factor of weights at which they prove most: steps are slowest along the weights."""
    square = float(np.vdot(at.W, at.W) + slack @ np.einsum("ij,ij->i", at.u, at.u))
    return float(at.u.sum(dtype=np.float64)) / square if square > 0.0 else 1.0


def _by_entries(problem: KernelMatrixAdapter) -> Any:
    """The examples as a CSR matrix: in the user's units or, of dense ones, as the problem has."""
    X = csr_examples(problem)
    if X is not None:
        return X
    features = written_out(problem)
    assert features is not None
    dense = features.examples(np.arange(problem.rows.n_examples))
    n, d = dense.shape
    columns = np.tile(np.arange(d, dtype=np.int32), n)
    return sp.csr_matrix((dense.reshape(-1), columns, d * np.arange(n + 1)), dense.shape)


def _unit(problem: KernelMatrixAdapter) -> float:
    """The radius, in the units of these."""
    return 1.0 if csr_examples(problem) is None else problem.radius
