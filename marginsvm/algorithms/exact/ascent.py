"""Soft margins of many classes on sparse rows: dual ascent first, Newton's method at the end."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.path import Path
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems import System
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter, LpNorm
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.kernel_matrix.responses.balancing import balancing_factors
from marginsvm.rows import Rows, Vector

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
    candidates : tuple of Candidate
    ascent : ClassWeights or None
        The state of the ascent; None: not begun.
    gap : float
        Relative gap between the bounds.
    margins : ndarray of shape rows.shape
        Of the predictor.
    """

    name: ClassVar[str] = "coordinate ascent"

    candidates: tuple[Candidate, ...] = ()
    ascent: Any = None
    gap: float = np.inf
    margins: Array = field(default_factory=lambda: np.empty(0))

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Ascent, Turn]:
        """Some epochs, and the bounds of where they end."""
        assert problem.slack is not None
        at, rows = self._ascended(problem), problem.rows
        h = np.sqrt(2.0) * problem.radius  # the ascent's rows are x (e_y - e_j)
        w = h * at.W.T
        vector = Vector(w, np.zeros(rows.shape))
        _, shift = problem.predictor(vector, np.zeros(rows.n_classes))  # due to the mean
        margins = rows.margins(problem.scores(vector) + np.sqrt(2.0) * at.b - shift)
        u = Slack(problem.slack).weights(margins)
        smallest = rows.min_margin(rows.group_min(margins + problem.slack * u))
        separator = Candidate(Vector(w, u), min_margin=smallest)
        proof = problem.combine(_balanced(rows, at.u.astype(np.float64)), precise=True)
        lower = smallest / problem.norm(separator.vector)
        gap = 1.0 - lower * proof.mass / problem.norm(proof)
        seen = separator, Candidate(proof, proof.mass, precise=True)
        now = replace(self, candidates=seen, ascent=at, gap=gap, margins=margins)
        return now, Turn.SHORT if gap > _PROGRESS * self.gap and gap > tol else Turn.GO_ON

    def newton(self, problem: KernelMatrixAdapter, system: System) -> Newton:
        """Newton's method from where the ascent has come."""
        assert problem.slack is not None
        w, slack = self.candidates[0].vector.image, Slack(problem.slack)
        return Newton.at(problem, slack, system, w, self.margins)

    def path(self, problem: KernelMatrixAdapter, system: System) -> Path:
        """A path of soft margins, of which the weights of the ascent are the first multipliers."""
        scale = 2.0 * problem.radius**2  # the ascent's rows are x (e_y - e_j)
        return Path.start(problem, system, scale * self.candidates[1].vector.coef)

    def _ascended(self, problem: KernelMatrixAdapter) -> Any:
        """The state of the ascent after some more epochs."""
        from marginsvm.algorithms.compiled.sparse_classes import (
            ClassWeights,
            ascend_classes,
            balance_penalty,
        )

        assert problem.slack is not None
        X, k = csr_examples(problem), problem.rows.n_classes
        (n, d), begun = X.shape, self.ascent is not None
        squares, s = LpNorm().squared_lengths(X), 2.0 * problem.radius**2 * problem.slack[:, 0]
        penalty = balance_penalty(squares, s) if problem.rows.balanced else 0.0
        at = deepcopy(self.ascent) if begun else ClassWeights.start(n, d, k)
        epochs = int(np.clip(_WORK / max(1, X.nnz * k), 1, _EPOCHS))
        problem.work.add_pass(epochs)
        return ascend_classes(
            X.indptr, X.indices, X.data, problem.rows.codes, squares, s, penalty, at, epochs
        )


def _balanced(rows: Rows, u: Array) -> Array:
    """Weights that the ascent has nearly balanced, each group multiplied to balance them."""
    if not rows.balanced:
        return u
    factors = balancing_factors(rows.group_sum(u))
    return u * rows.expand(np.where(np.isfinite(factors), factors, 1.0))
