"""Working sets of examples: soft margins of some examples, by Newton's method, for all classes.

A working set of rows has a row for each example and class that are near each other, and a Gram
matrix of all of them. Here the Gram matrix is that of the examples, whatever the number of
classes. Left out are examples whose rows all have margins beyond 1, where there is no slack.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.choosing import spread_evenly
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems.gram import BySpan
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.tolerances import LOST_TO_ROUNDING
from marginsvm.kernel_matrix import KernelMatrixAdapter, among
from marginsvm.rows import Rows, Vector, support_of

# Examples of a working set at most: their Gram matrix, with a copy in float32, takes 1 GB.
MAX_EXAMPLES = 9000
# Examples to begin with, for each class and in all at least; half of them join at least.
_EACH, _LEAST = 80, 400
# Examples without weight leave if all their margins are beyond 1 by more than this.
_FAR = 0.05
# Share of the working set: if fewer examples join, the next round solves more precisely; and as
# precisely as it must in the end.
_GROWING, _NEARLY_ALL = 0.5, 0.1
# Error of margins, which are about 1, up to which the first working set is solved; as a share of
# the gap between the bounds; as a share of the tolerance; and that is rounding.
_COARSE, _OF_GAP, _OF_TOL, _ROUNDED = 0.1, 0.1, 0.1, 1e-13
# Products with the Gram matrix, and numbers of it that they read (two seconds), at which a round
# ends.
_PRODUCTS, _NUMBERS = 300, 2e9

_FULL = (
    f"More than {MAX_EXAMPLES} examples have slack, and no more fit in memory. A larger C or "
    "kernels of shorter reach leave fewer examples with slack; with kernel='linear' or fewer "
    "examples there is no such limit."
)


@dataclass(frozen=True)
class Examples(Method):
    """Some examples and the last solution on them; replaced whole by every round.

    Attributes
    ----------
    examples : ndarray of int, shape (m,)
        In ascending order.
    coef : ndarray of shape (m, ...)
        Coefficients of the predictor on their rows.
    precision : float
        Error of margins, which are about 1, up to which the next round solves.
    candidates : tuple of Candidate
    settled : float
        Tolerance from which up nothing will change any more.
    """

    name: ClassVar[str] = "working set of examples"

    examples: Array
    coef: Array
    precision: float = _COARSE
    candidates: tuple[Candidate, ...] = ()
    settled: float = np.inf

    @property
    def weights(self) -> Array:
        return self.candidates[0].vector.coef

    @property
    def limit(self) -> str:
        return _FULL if len(self.examples) >= MAX_EXAMPLES else ""

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Examples:
        """Begin with some of each class, evenly spread."""
        some = spread_evenly(problem.rows.codes, first_size(problem))
        return cls(some, np.zeros((len(some), *problem.rows.shape[1:])))

    @classmethod
    def of(cls, problem: KernelMatrixAdapter, proof: Vector) -> Examples:
        """Begin with the examples of some rows, and the weights on them that are best so far."""
        squared = problem.norm(proof) ** 2
        coef = proof.coef * (proof.mass / max(squared, 1e-300))
        some = support_of(coef)
        return cls(some, coef[some])

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Examples, Turn]:
        """Solve on the working set, check all examples, exchange some.

        Next to a separator, where C is large, a solution takes many products, but few rows carry
        weight: a working set of rows is quicker and more precise.
        """
        if tol >= self.settled:  # as nothing will change any more
            return self, Turn.ENDED
        assert problem.slack is not None  # a soft margin
        newton, products = self._solved(problem)
        error = _error_of(newton, problem.rows.restrict(self.examples))
        q = np.zeros(problem.rows.shape)
        q[self.examples] = newton.weights
        proof = problem.combine(q, precise=True)
        margins = problem.margins(proof, precise=True)
        smallest = problem.rows.min_margin(problem.rows.group_min(margins))
        lower = Candidate(proof, min_margin=smallest, margins=margins)
        both = Candidate(proof, proof.mass, precise=True), lower
        now = replace(self, coef=newton.w.coef, candidates=both)
        if error > self.precision and newton.moving:
            return now, Turn.FEW if products > _PRODUCTS else Turn.GO_ON
        gap = 1.0 - max(smallest, 0.0) * proof.mass / max(problem.norm(proof) ** 2, 1e-300)
        precise = max(_OF_TOL * tol, _ROUNDED)
        lowest = self._lowest(problem, newton, margins - problem.slack * q)
        kept, new = self._exchanged(problem, newton, lowest, tol)
        if not len(new) and (error <= precise or not newton.moving):
            return replace(now, settled=tol), Turn.FEW if gap > tol else Turn.STALLED
        if len(new) <= _NEARLY_ALL * len(kept):
            now = replace(now, precision=precise)
        elif len(new) <= _GROWING * len(kept):
            now = replace(now, precision=max(min(0.5 * self.precision, _OF_GAP * gap), precise))
        return now._with(kept, new), Turn.GO_ON

    def _solved(self, problem: KernelMatrixAdapter) -> tuple[Newton, int]:
        """Newton's method on the working set, to its precision or until a round is long."""
        part = among(problem, self.examples)
        assert part.slack is not None
        system, m = replace(BySpan.of(part), goal=self.precision), part.rows.n_examples
        newton = Newton.of(part, Slack(part.slack), system, part.combine(self.coef))
        products, most = 0, min(_PRODUCTS, _NUMBERS / m**2)
        while _error_of(newton, part.rows) > self.precision and newton.moving and products <= most:
            newton, _ = newton.advance(part, 0.0)
            assert isinstance(newton.system, BySpan)
            products = newton.system.products
        problem.work.add_pass(products * (m / problem.rows.n_examples) ** 2)
        return newton, products

    def _exchanged(
        self, problem: KernelMatrixAdapter, newton: Newton, lowest: Array, tol: float
    ) -> tuple[Array, Array]:
        """Positions of examples that are not far, and examples with smaller margins to be added."""
        used = newton.weights.reshape(len(self.examples), -1).any(axis=1)
        kept = np.flatnonzero(used | (lowest[self.examples] <= 1.0 + _FAR))
        lowest[self.examples] = np.inf
        new = np.flatnonzero(lowest < 1.0 - max(0.5 * tol, LOST_TO_ROUNDING))
        most = max(first_size(problem) // 2, len(self.examples))
        room = max(MAX_EXAMPLES - len(kept), 0)
        return kept, new[np.argsort(lowest[new], kind="stable")[: min(most, room)]]

    def _with(self, kept: Array, new: Array) -> Examples:
        """The working set without some of its examples, and with others."""
        examples = np.concatenate([self.examples[kept], new])
        coef = np.concatenate([self.coef[kept], np.zeros((len(new), *self.coef.shape[1:]))])
        order = np.argsort(examples)
        return replace(self, examples=examples[order], coef=coef[order])

    def _lowest(self, problem: KernelMatrixAdapter, newton: Newton, margins: Array) -> Array:
        """Smallest margin of each example, under the best intercept for the working set."""
        if problem.rows.balanced:
            few = problem.rows.restrict(self.examples)
            b = newton.slack.best_intercept(few, margins[self.examples])
            margins = margins + problem.rows.moves(np.broadcast_to(b, problem.rows.score_shape))
        return np.array(margins.reshape(len(margins), -1).min(axis=1))


def _error_of(newton: Newton, rows: Rows) -> float:
    """How far the margins of ``A' u`` are from those of w, which are about 1."""
    return float(np.abs(rows.moves(newton.proof.image - newton.w.image)).max(initial=0.0))


def first_size(problem: KernelMatrixAdapter) -> int:
    """Examples to begin with."""
    return min(max(_LEAST, _EACH * problem.rows.n_classes), MAX_EXAMPLES // 2)
