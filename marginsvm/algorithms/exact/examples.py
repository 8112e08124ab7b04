"""Working sets of examples: margins of some examples, by their Gram matrix, soft or hard.

A working set of rows has a row for each example and class that are near each other, and a Gram
matrix of all of them. Here the Gram matrix is that of the examples, whatever the number of
classes. Multipliers solve for them, from the last weights on. With the hinge loss, steps by pairs
of weights, which are many but quick, come first, and mostly are enough. Left out are examples whose
rows all have margins beyond 1, where there is no slack.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import hinge_candidates, relative_gap
from marginsvm.algorithms.exact.choosing import first_examples, first_of_each_class, first_size
from marginsvm.algorithms.exact.climb import FAR, FEW_JOIN, STEPS_AN_EXAMPLE
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.multipliers import Multipliers
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems.free import FreeRows
from marginsvm.algorithms.exact.systems.gram import ByProducts
from marginsvm.algorithms.exact.systems.system import System
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.prices import hinge_offsets
from marginsvm.certify.tolerances import LOST_TO_ROUNDING
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter, among
from marginsvm.kernel_matrix.capabilities import side_in_cache
from marginsvm.rows import Vector, support_of

# Examples of a working set at most: their Gram matrix, with a copy in float32, takes 1 GB.
MAX_EXAMPLES, _BYTES = 9000, 12
# Relative gap up to which the first working set is solved. And a later one, as a share of the last
# gap of all, or of the tolerance, which the margins of those that join miss 1 by; and that is
# rounding.
_FIRST_ERROR, _OF_GAP, _OF_TOL, _ROUNDED_ERROR = 0.1, 0.05, 0.1, 1e-13
# Steps of multipliers in a row that bring the bounds no closer: what is left then is rounding.
_IDLE_MULTIPLIERS = 30
# After steps by pairs, margins may miss their order by this share of the error. Where they suffice,
# as they do unless the problem is badly conditioned, they are far quicker than Newton's.
_OF_ERROR = 1e-2
# Factor by which multipliers round off the loss less than at first, as weights are known; and how
# many times that of the last working set's end, where others have joined.
_NARROW, _WIDER_RANGE = 1e-2, 100.0

_NO_MORE_EXAMPLES = (
    "More than {} examples have slack or weight, and no more fit in memory (1 GB, or half of "
    "cache_size if that is less). A larger C or kernels of shorter reach leave fewer; with "
    "kernel='linear' or fewer examples there is no such limit."
)


class _Solution(NamedTuple):
    """What is known of a working set.

    Attributes
    ----------
    u : ndarray of shape (m, ...)
        Weights on its rows.
    gap : float
        Relative gap that they leave there.
    narrow : float
        How far costs were rounded off in the end.
    products : int
        Products with the Gram matrix that it has taken.
    """

    u: Array
    gap: float
    narrow: float
    products: int


@dataclass(frozen=True)
class Examples(Method):
    """Some examples and the last solution on them; replaced whole by every round.

    Attributes
    ----------
    examples : ndarray of int, shape (m,)
        In ascending order.
    coef : ndarray of shape (m, ...)
        Weights on their rows.
    precision : float
        Relative gap up to which the next round solves, see ``_FIRST_ERROR``.
    candidates : tuple of Candidate
    settled : float
        This state is final for every tolerance from this one up.
    narrow : float
        How far multipliers round off the hinge loss at first.
    most : int
        Examples that there is room for.
    """

    name: ClassVar[str] = "working set of examples"

    examples: Array
    coef: Array
    precision: float = _FIRST_ERROR
    candidates: tuple[Candidate, ...] = ()
    settled: float = np.inf
    narrow: float = _NARROW
    most: int = MAX_EXAMPLES

    @property
    def weights(self) -> Array | None:
        proof = self.candidates[1]
        return proof.vector.coef if proof.mass > 0.0 else None  # what caps bound is no margin

    @property
    def limit(self) -> str:
        full = len(self.examples) >= self.most
        return (
            _NO_MORE_EXAMPLES.format(self.most, round(_BYTES * MAX_EXAMPLES**2 / 2**20))
            if full
            else ""
        )

    @classmethod
    def start(cls, problem: KernelMatrixAdapter) -> Examples:
        """Begin with some of each class, evenly spread."""
        some, most = first_examples(problem), most_examples(problem)
        return cls(some, np.zeros((len(some), *problem.rows.shape[1:])), most=most)

    @classmethod
    def of(cls, problem: KernelMatrixAdapter, proof: Vector) -> Examples:
        """Begin with the examples of some rows, and the weights on them that are best so far."""
        squared = problem.norm(proof) ** 2
        coef = proof.coef * (proof.mass / max(squared, 1e-300))
        some = np.union1d(support_of(coef), first_of_each_class(problem))
        return cls(some, coef[some], most=most_examples(problem))

    @classmethod
    def of_few(cls, problem: KernelMatrixAdapter, proof: Vector) -> Examples | None:
        """The same; None where there are more than there is room for."""
        found = cls.of(problem, proof)
        return found if len(found.examples) <= found.most else None

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Examples, Turn]:
        """Solve on the working set, check all examples, exchange some."""
        if tol >= self.settled:  # as nothing will change any more
            return self, Turn.STALLED
        solution = self._solved(among(problem, self.examples))
        share = len(self.examples) / problem.rows.n_examples
        problem.work.add_pass(solution.products * share**2)
        q = np.zeros(problem.rows.shape)
        q[self.examples] = solution.u
        margins, both = _bounds(problem, problem.combine(q, precise=True))
        now = replace(self, coef=solution.u, candidates=both, narrow=solution.narrow)
        gap, precise = relative_gap(problem, both), max(_OF_TOL * tol, _ROUNDED_ERROR)
        kept, new = self._exchanged(problem, solution, self._lowest(problem, margins), tol)
        if not len(new) and not precise < solution.gap <= self.precision:
            return replace(now, settled=tol), Turn.STALLED
        nearly_all = len(new) <= FEW_JOIN * len(kept)
        coarse = max(min(self.precision, _OF_GAP * gap), precise)
        return replace(now, precision=precise if nearly_all else coarse)._with(
            kept, new
        ), Turn.GO_ON

    def _solved(self, part: GramAdapter) -> _Solution:
        """Weights on the working set, from the last ones: to its precision, if they come near it.

        With the hinge loss steps by pairs of weights come first, multipliers where those do not do.
        """
        hinge = part.caps is not None
        u, narrow = (self._ascended(part), self.narrow) if hinge else (self.coef, 1.0)
        system: System = FreeRows() if hinge else ByProducts.of(part)
        best, now, idle = part.combine(u, precise=True), None, 0
        least = relative_gap(part, _bounds(part, best)[1])
        while least > self.precision and idle <= _IDLE_MULTIPLIERS:
            let_interrupts_through()
            now = now or Multipliers.start(part, system, best.coef, narrow)
            now = now.advance(part, self.precision)[0]
            gap, narrow = relative_gap(part, _bounds(part, now.newton.proof)[1]), now.narrow
            idle = 0 if gap < least else idle + 1
            if gap < least or not best.mass > 0.0:  # no weights prove nothing
                best, least = now.newton.proof, gap
        system = now.newton.system if now else system
        products = system.products if isinstance(system, ByProducts) else 1
        return _Solution(best.coef, least, narrow, products)

    def _ascended(self, part: GramAdapter) -> Array:
        """Weights on the working set by compiled steps; the same ones where none compiles."""
        from marginsvm._compiling import compiles
        from marginsvm.algorithms.compiled.pairs import ascend_pairs

        assert part.caps is not None
        if not compiles():
            return self.coef
        rows, K = part.rows, part.stored_products(np.float64)
        y, own = rows.moves(np.ones(rows.score_shape)), np.zeros(len(K))
        u, f = self.coef.copy(), K @ (y * self.coef)
        precision, most = max(_OF_ERROR * self.precision, _ROUNDED_ERROR), STEPS_AN_EXAMPLE * len(u)
        ascend_pairs(K, y, part.caps.largest, own, rows.balanced, precision, most, u, f)
        return u

    def _lowest(self, problem: KernelMatrixAdapter, margins: Array) -> Array:
        """Smallest margin of each example, under the intercept that is best for the working set.

        Weights on its examples are best with that one; under the best of all examples, those that
        are missing may look as if they were not.
        """
        rows, some = problem.rows, self.examples
        few = rows.restrict(some)
        if problem.caps is not None:
            offsets = hinge_offsets(few, margins[some], problem.caps.largest[some])
            margins = margins + rows.expand(offsets[:, None] - offsets)
        elif rows.balanced and problem.slack is not None:
            b = Slack(problem.slack[some]).best_intercept(few, margins[some])
            margins = margins + rows.moves(np.broadcast_to(b, rows.score_shape))
        elif rows.balanced:
            offsets = few.best_offsets(few.group_min(margins[some]))
            margins = margins + rows.expand(offsets[:, None] - offsets)
        return np.array(margins.reshape(len(margins), -1).min(axis=1))

    def _exchanged(
        self, problem: KernelMatrixAdapter, solution: _Solution, lowest: Array, tol: float
    ) -> tuple[Array, Array]:
        """Positions of examples that are not far, and examples with smaller margins to be added."""
        used = solution.u.reshape(len(self.examples), -1).any(axis=1)
        used |= np.isin(self.examples, first_of_each_class(problem))
        kept = np.flatnonzero(used | (lowest[self.examples] <= 1.0 + FAR))
        lowest[self.examples] = np.inf
        new = np.flatnonzero(lowest < 1.0 - max(_OF_TOL * tol, LOST_TO_ROUNDING))
        most = max(first_size(problem.rows.n_classes) // 2, len(self.examples))
        room = max(self.most - len(kept), 0)
        return kept, new[np.argsort(lowest[new], kind="stable")[: min(most, room)]]

    def _with(self, kept: Array, new: Array) -> Examples:
        """The working set without some of its examples, and with others."""
        examples = np.concatenate([self.examples[kept], new])
        coef = np.concatenate([self.coef[kept], np.zeros((len(new), *self.coef.shape[1:]))])
        order = np.argsort(examples)
        narrow = min(_NARROW, _WIDER_RANGE * self.narrow) if len(new) else self.narrow
        return replace(self, examples=examples[order], coef=coef[order], narrow=narrow)


def _bounds(problem: KernelMatrixAdapter, proof: Vector) -> tuple[Array, tuple[Candidate, ...]]:
    """Margins of ``A' u``, slack left out, and its bounds, as a predictor and as a proof."""
    margins = problem.margins(proof, precise=True)
    if problem.caps is not None:
        offsets = hinge_offsets(problem.rows, margins, problem.caps.largest)
        margins = margins + problem.rows.expand(offsets[:, None] - offsets)
        return margins, hinge_candidates(problem, proof, margins, proof)
    smallest = problem.rows.min_margin(problem.rows.group_min(margins))
    separator = Candidate(proof, min_margin=smallest, margins=margins)
    both = separator, Candidate(proof, proof.mass, precise=True)
    if problem.slack is None:
        return margins, both
    return margins - problem.slack * proof.coef, both


def most_examples(problem: KernelMatrixAdapter) -> int:
    """Examples whose Gram matrix, with a copy in float32, takes half of the cache at most."""
    return int(min(MAX_EXAMPLES, side_in_cache(problem, 2 * _BYTES)))
