"""Coordinate ascent on examples of many classes, which soon knows those that carry weight.

A round is some sweeps over the examples, each of which takes as long as a product with X for every
class, and moves the weights of each against all classes. Where the rest would take more of them
than other methods need, these go on.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import at_best_scale, candidates_of
from marginsvm.algorithms.exact.method import Method, Turn, best_bounds
from marginsvm.algorithms.exact.multipliers import is_rounded_off
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.caps import room_below
from marginsvm.certify.certifiable import written_out
from marginsvm.kernel_matrix import KernelMatrixAdapter, LpNorm
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.problem.responses import balanced
from marginsvm.rows import Predictor

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
            vector, margins = at_best_scale(problem, vector, margins)
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
    dense = features.written(np.arange(problem.rows.n_examples))
    n, d = dense.shape
    columns = np.tile(np.arange(d, dtype=np.int32), n)
    return sp.csr_matrix((dense.reshape(-1), columns, d * np.arange(n + 1)), dense.shape)


def _unit(problem: KernelMatrixAdapter) -> float:
    """The radius, in the units of these."""
    return 1.0 if csr_examples(problem) is None else problem.radius
