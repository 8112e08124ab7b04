"""The hinge loss with a kernel, or few long examples: Newton's method on a working set.

A working set of examples is solved in the span of its examples, by their Gram matrix: roughly by
pairs of weights, and then by Newton's method. Examples with slack join it, and those far beyond
their margins leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import hinge_candidates, relative_gap
from marginsvm.algorithms.exact.choosing import spread_evenly
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.multipliers import Multipliers
from marginsvm.algorithms.exact.systems.free import FreeRows
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.caps import hinge_offsets
from marginsvm.certify.tolerances import LOST_TO_ROUNDING
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter, among
from marginsvm.rows import Vector

# Examples of a working set at most: their Gram matrix takes 650 MB.
_MAX = 9000
# Examples to begin with, and to add at least.
_FIRST = 400
# Examples without weight leave if their margins are beyond 1 by more than this.
_FAR = 0.1
# Relative gap up to which the first working set is solved, and a later one as a share of the last
# gap of the whole problem, and of the tolerance.
_COARSE, _OF_GAP, _OF_TOL = 0.1, 0.1, 0.2
# Share of the working set: if no more examples join, the next round solves as precisely as it must
# in the end.
_NEARLY_ALL = 0.1
# Newton steps on a working set at most, and in a row that bring the bounds no closer: what is left
# then is rounding.
_STEPS, _IDLE = 200, 30
# Margins, which are about 1, may miss their order by this share of the precision after steps by
# pairs, and by what is rounding; and steps for each example at most. Where these suffice, as they
# do unless the problem is badly conditioned, they are far quicker than Newton's.
_OF_PRECISION, _ROUNDED, _PAIRS = 1e-2, 1e-13, 50
# Factor of the squared term that rounds off the loss where Newton's method begins, as weights are
# known by then; and how many times that of the last working set's end, where others have joined.
_NARROW, _WIDER = 1e-2, 100.0

_FULL = (
    f"More than {_MAX} examples have slack or lie on the margin, and no more fit in memory. A "
    "larger C or kernels of shorter reach leave fewer; loss='squared_hinge' or fewer examples help "
    "as well."
)


@dataclass(frozen=True)
class HingeExamples(Method):
    """Some examples and the last weights on them; replaced whole by every round.

    Attributes
    ----------
    examples : ndarray of int, shape (m,)
        In ascending order.
    u : ndarray of shape (m,)
        Weights.
    s : float
        Factor of the squared term that rounds off the loss, see :class:`Multipliers`.
    precision : float
        Relative gap up to which the next round solves.
    candidates : tuple of Candidate
    settled : float
        Tolerance from which up nothing will change any more.
    """

    name: ClassVar[str] = "working set of examples"

    examples: Array
    u: Array
    s: float = _NARROW
    precision: float = _COARSE
    candidates: tuple[Candidate, ...] = ()
    settled: float = np.inf

    @property
    def limit(self) -> str:
        return _FULL if len(self.examples) >= _MAX else ""

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, size: int = _FIRST) -> HingeExamples:
        """Begin with some of each class, evenly spread."""
        some = spread_evenly(problem.rows.codes, min(size, _MAX))
        return cls(some, np.zeros(len(some)))

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[HingeExamples, Turn]:
        """Solve on the working set, check all examples, exchange some."""
        if tol >= self.settled:  # as nothing will change any more
            return self, Turn.ENDED
        u, s = self._solved(problem)
        q = np.zeros(problem.rows.shape)
        q[self.examples] = u
        proof = problem.combine(q, precise=True)
        margins, both = _of_weights(problem, proof)
        now = replace(self, u=u, s=s, candidates=both)
        gap, precise = relative_gap(problem, both), _OF_TOL * tol
        kept, new = self._exchanged(now.u, self._of_working_set(problem, margins), tol)
        if not len(new) and self.precision <= precise:
            return replace(now, settled=tol), Turn.STALLED
        coarse = max(min(self.precision, _OF_GAP * gap), precise)
        nearly_all = len(new) <= _NEARLY_ALL * len(kept)
        now = replace(now, precision=precise if nearly_all else coarse)
        return now._with(kept, new), Turn.GO_ON

    def _solved(self, problem: KernelMatrixAdapter) -> tuple[Array, float]:
        """Weights that solve for the working set, and how far the loss was rounded off for them."""
        part = among(problem, self.examples)
        best, s = part.combine(self._ascended(part), precise=True), self.s
        gap = relative_gap(part, _of_weights(part, best)[1])
        if gap > self.precision:
            best, s = self._by_newton(part, best, gap)
        problem.work.add_pass((len(self.examples) / problem.rows.n_examples) ** 2)
        return best.coef, s

    def _by_newton(
        self, part: KernelMatrixAdapter, best: Vector, least: float
    ) -> tuple[Vector, float]:
        """Better weights than those that steps by pairs have ended with, at the given gap."""
        now, idle = Multipliers.start(part, FreeRows(), best.coef, self.s), 0
        for _ in range(_STEPS):
            let_interrupts_through()
            now, idle = now.advance(part, self.precision)[0], idle + 1
            gap = relative_gap(part, _of_weights(part, now.newton.proof)[1])
            if gap < least:
                best, least, idle = now.newton.proof, gap, 0
            if gap <= self.precision or idle > _IDLE:
                break
        return best, now.narrow

    def _ascended(self, part: GramAdapter) -> Array:
        """Weights on the working set by compiled steps, which are many but quick."""
        from marginsvm.algorithms.compiled.capped_pairs import ascend_pairs

        assert part.caps is not None
        rows, K = part.rows, part.stored_products(np.float64)
        y = rows.moves(np.ones(rows.score_shape))
        u, f = self.u.copy(), K @ (y * self.u)
        precision, most = max(_OF_PRECISION * self.precision, _ROUNDED), _PAIRS * len(u)
        ascend_pairs(K, y, part.caps.largest, rows.balanced, precision, most, u, f)
        return u

    def _of_working_set(self, problem: KernelMatrixAdapter, margins: Array) -> Array:
        """Margins under the intercept that is best for the working set.

        Weights on its examples are best with that one; under the best of all examples, those that
        are missing may look as if they were not.
        """
        assert problem.caps is not None
        few, rows = self.examples, problem.rows
        offsets = hinge_offsets(rows.restrict(few), margins[few], problem.caps.largest[few])
        return np.asarray(margins + rows.expand(offsets[:, None] - offsets))

    def _exchanged(self, u: Array, margins: Array, tol: float) -> tuple[Array, Array]:
        """Positions of examples that are not far, and examples with slack to be added."""
        kept = np.flatnonzero((u > 0.0) | (margins[self.examples] <= 1.0 + _FAR))
        others = margins.copy()
        others[self.examples] = np.inf
        new = np.flatnonzero(others < 1.0 - max(0.1 * tol, LOST_TO_ROUNDING))
        most = min(max(_FIRST, len(self.examples)), max(_MAX - len(kept), 0))
        return kept, new[np.argsort(others[new], kind="stable")[:most]]

    def _with(self, kept: Array, new: Array) -> HingeExamples:
        """The working set without some of its examples, and with others."""
        examples = np.concatenate([self.examples[kept], new])
        order = np.argsort(examples)
        u = np.concatenate([self.u[kept], np.zeros(len(new))])
        s = min(_NARROW, _WIDER * self.s) if len(new) else self.s
        return replace(self, examples=examples[order], u=u[order], s=s)


def _of_weights(problem: KernelMatrixAdapter, proof: Vector) -> tuple[Array, tuple[Candidate, ...]]:
    """Margins of ``A^T u`` under its best intercept, and its bounds, as a predictor and a proof."""
    assert problem.caps is not None
    margins = problem.margins(proof, precise=True)
    caps = problem.caps.largest
    offsets = hinge_offsets(problem.rows, margins, caps)
    margins = margins + problem.rows.expand(offsets[:, None] - offsets)
    return margins, hinge_candidates(problem, proof, margins, proof)
