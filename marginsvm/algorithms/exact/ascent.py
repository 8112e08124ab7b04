"""Soft margins of many classes on sparse rows: dual ascent first, Newton's method at the end."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginsvm.algorithms.exact.method import Method
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import SquaredSlack
from marginsvm.algorithms.exact.systems import System
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter, LpNorm
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.rows import Vector

# Epochs of a round: as long as a pass that computes all margins, or longer.
_EPOCHS = 8
# Entries of X that the epochs of a round visit at most, times classes: a second, or about.
_WORK = 1e9
# Share of the gap that a round must remove for another one to pay: Newton's last steps, which take
# longer, remove nearly all of it.
_PROGRESS = 0.5


@dataclass(frozen=True)
class Ascent(Method):
    """Weights that dual ascent has reached, and the bounds there.

    Attributes
    ----------
    newton : Newton
        The iterate of Newton's method that these weights give.
    weights : ClassWeights or None
        The state of the ascent; None: not begun.
    """

    newton: Newton
    weights: Any = None

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, system: System) -> Ascent:
        """Begin at w = 0."""
        assert problem.slack is not None
        return cls(Newton.start(problem, SquaredSlack(problem.slack), system))

    @property
    def candidates(self) -> tuple[Candidate, ...]:  # type: ignore[override]
        return self.newton.candidates

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> Method:
        """Some epochs, and the bounds of where they end."""
        from marginsvm.algorithms.compiled.sparse_classes import (
            ClassWeights,
            ascend_classes,
            balance_penalty,
        )

        X, k, slack = csr_examples(problem), problem.rows.n_classes, problem.slack
        assert slack is not None
        longer = np.sqrt(2.0) * problem.radius  # the ascent's rows are x (e_y - e_j)
        squares, s = LpNorm().squared_lengths(X), slack[:, 0] * longer**2
        penalty = balance_penalty(squares, s) if problem.rows.balanced else 0.0
        at = (
            ClassWeights.start(X.shape[0], X.shape[1], k)
            if self.weights is None
            else deepcopy(self.weights)
        )
        epochs = int(np.clip(_WORK / max(1, X.nnz * k), 1, _EPOCHS))
        problem.work.add_pass(epochs)
        at = ascend_classes(
            X.indptr, X.indices, X.data, problem.rows.codes, squares, s, penalty, at, epochs
        )
        w = longer * at.W.T
        scores = problem.scores(Vector(w, np.zeros(problem.rows.shape)))
        b = np.sqrt(2.0) * at.b
        margins = problem.rows.margins(scores + b)
        newton = Newton.at(problem, self.newton.slack, self.newton.system, w, margins)
        if newton.gap > _PROGRESS * self.newton.gap:
            return newton
        return replace(self, newton=newton, weights=at)
