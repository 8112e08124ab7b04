"""The hinge loss with a kernel, or few long examples: Newton's method on a working set.

A working set of examples is solved in the span of its examples, by their Gram matrix: roughly by
pairs of weights, and then by Newton's method. Examples with slack join it, and those far beyond
their margins leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.choosing import spread_evenly
from marginsvm.algorithms.exact.hinge import GramSteps, Hinge, hinge_candidates, relative_gap
from marginsvm.algorithms.exact.method import Method
from marginsvm.certify.candidate import HingeCandidate
from marginsvm.certify.caps import hinge_offsets
from marginsvm.certify.tolerances import LOST_TO_ROUNDING
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter, make_rows
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
# Newton steps on a working set at most: what is left then is rounding.
_STEPS = 200
# Margins, which are about 1, may miss their order by this after steps by pairs, of which there are
# so many for each example at most: from there on, Newton's steps are quicker, as they are few.
_FINE, _PAIRS = 1e-3, 20
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
        Factor of the squared term that rounds off the loss, see :class:`Hinge`.
    precision : float
        Relative gap up to which the next round solves.
    candidates : tuple of HingeCandidate
    settled : float
        Tolerance from which up nothing will change any more.
    """

    examples: Array
    u: Array
    s: float = _NARROW
    precision: float = _COARSE
    candidates: tuple[HingeCandidate, ...] = ()
    settled: float = np.inf

    @property
    def limit(self) -> str:
        return _FULL if len(self.examples) >= _MAX else ""

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, size: int = _FIRST) -> HingeExamples:
        """Begin with some of each class, evenly spread."""
        some = spread_evenly(problem.rows.codes, min(size, _MAX))
        return cls(some, np.zeros(len(some)))

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> HingeExamples:
        """Solve on the working set, check all examples, exchange some."""
        if tol >= self.settled:  # as nothing will change any more
            return self
        solved, factor = self._solved(problem)
        q = np.zeros(problem.rows.shape)
        q[self.examples] = solved.proof.coef * factor
        proof = problem.combine(q, precise=True)
        margins, both = _of_weights(problem, proof)
        now = replace(self, u=q[self.examples], s=solved.narrow, candidates=both)
        gap, precise = relative_gap(both), _OF_TOL * tol
        kept, new = self._exchanged(now.u, margins, tol)
        if not len(new) and self.precision <= precise:
            return replace(now, settled=tol)
        now = replace(now, precision=max(min(self.precision, _OF_GAP * gap), precise))
        return now._with(kept, new)

    def _solved(self, problem: KernelMatrixAdapter) -> tuple[Hinge, float]:
        """A solution on the working set, and the factor that turns its weights into these units."""
        few, rows = self.examples, problem.rows
        weights = None if rows.weights is None else rows.weights[few]
        of_few = make_rows(rows.codes[few], 2, balanced=rows.balanced, weights=weights)
        K, C = problem.inner_products(few), problem.C * problem.radius**2
        u = self._ascended(problem, K)
        part = GramAdapter(None, K, of_few, C).with_hinge_loss()
        now = Hinge.start(part, GramSteps(), u * part.radius**2, self.s)
        for _ in range(_STEPS):
            if relative_gap(_of_weights(part, now.proof)[1]) <= self.precision:
                break
            let_interrupts_through()
            now = now.advance(part, self.precision)
        problem.work.add_pass((len(few) / rows.n_examples) ** 2)
        return now, 1.0 / part.radius**2

    def _ascended(self, problem: KernelMatrixAdapter, K: Array) -> Array:
        """Weights on the working set by compiled steps, which are many but quick."""
        from marginsvm.algorithms.compiled.capped_pairs import ascend_pairs

        assert problem.caps is not None
        few, rows = self.examples, problem.rows
        y = rows.moves(np.ones(rows.score_shape))[few]
        u, f = self.u.copy(), K @ (y * self.u)
        precision, most = max(_OF_GAP * self.precision, _FINE), _PAIRS * len(few)
        ascend_pairs(K, y, problem.caps.largest[few], rows.balanced, precision, most, u, f)
        return u

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


def _of_weights(
    problem: KernelMatrixAdapter, proof: Vector
) -> tuple[Array, tuple[HingeCandidate, ...]]:
    """Margins of ``A^T u`` under its best intercept, and its bounds, as a predictor and a proof."""
    assert problem.caps is not None
    margins = problem.margins(proof, precise=True)
    caps = problem.caps.largest
    offsets = hinge_offsets(problem.rows, margins, caps)
    margins = margins + problem.rows.expand(offsets[:, None] - offsets)
    return margins, hinge_candidates(problem, caps, proof, margins, proof)
