"""Which method solves a problem, and when another takes over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginsvm.algorithms.exact.ascent import Ascent
from marginsvm.algorithms.exact.choosing import rows_of_all_pairs
from marginsvm.algorithms.exact.examples import Examples
from marginsvm.algorithms.exact.hinge import FeatureSteps, Hinge
from marginsvm.algorithms.exact.hinge_examples import HingeExamples
from marginsvm.algorithms.exact.method import MAX_ROWS, Method
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.pairs import DualIterative, PairIterative
from marginsvm.algorithms.exact.path import Path, is_steep
from marginsvm.algorithms.exact.slack import SquaredSlack
from marginsvm.algorithms.exact.sparse import LongStart, short_start
from marginsvm.algorithms.exact.systems import Direct, Iterative, System
from marginsvm.algorithms.exact.working_set import WorkingSet
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples, has_curvature
from marginsvm.rows import Vector

# Rows from which on other methods are quicker than a working set from the start.
_MANY = 500
# Squares of the extra coordinates (in radii squared) from which on a soft margin with a kernel
# leads Newton's method to its end in few products, whatever the support; and from which on it does
# so better than a working set of thousands of rows.
_EASY, _HARD = 0.05, 1e-3
# Rows of a working set at most where another method has shown which carry weight: their
# Gram matrix takes 200 MB.
_ROOM = 5000
# Examples of a sparse matrix up to which its dual, of as many unknowns, is solved directly.
_FEW_EXAMPLES = 2000
# Features of dense and of sparse examples of two classes up to which the matrix of Newton's system
# is formed; and its unknowns with more classes.
_DIRECT, _DIRECT_SPARSE, _DIRECT_CLASSES = 1000, 500, 1000
# Features, and numbers in the factors of all classes (256 MB), up to which each class's part
# of the matrix is factored, from so many examples, to precondition the whole.
_FACTORED, _FACTORS, _SAMPLE = 2000, 2**25, 3000


def first_method(problem: KernelMatrixAdapter) -> Method:
    """Choose a method by the shape of a problem."""
    if problem.n_rows <= _MANY:
        return WorkingSet.start(problem)
    if not has_curvature(problem):
        if _is_for_examples(problem):
            return Examples.start(problem)
        return replace(WorkingSet.start(problem), room=_room_with_kernels(problem))
    if _is_wide(problem):
        return WorkingSet.start(problem)
    if problem.slack is not None:
        system, sparse = system_for(problem), csr_examples(problem) is not None
        if sparse and problem.rows.n_classes > 2 and system.by_passes:
            return Ascent.start(problem, system)
        return LongStart() if _is_long(problem) else by_passes(problem)
    return _for_hard_margins(problem)


def hinge_method(problem: KernelMatrixAdapter) -> Hinge | HingeExamples:
    """The method for a soft margin whose slack is not squared."""
    if not has_curvature(problem):
        return HingeExamples.start(problem)
    if _is_wide(problem):
        return HingeExamples.start(problem, size=problem.rows.n_examples)
    return Hinge.start(problem, FeatureSteps(system_for(problem)))


def _least_slack(problem: KernelMatrixAdapter) -> float:
    return 0.0 if problem.slack is None else float(problem.slack.min())


def _is_for_examples(problem: KernelMatrixAdapter) -> bool:
    """Whether Newton's method solves a problem with a kernel, on a working set of examples."""
    return problem.rows.n_classes > 2 and _least_slack(problem) >= _EASY


def _room_with_kernels(problem: KernelMatrixAdapter) -> int:
    """Rows that a working set of a problem with a kernel may hold."""
    return MAX_ROWS if _least_slack(problem) >= _HARD else _ROOM


def _is_wide(problem: KernelMatrixAdapter) -> bool:
    """Whether there are few dense examples, of more features than examples."""
    n, dense = problem.rows.n_examples, csr_examples(problem) is None
    return problem.rows.n_classes == 2 and dense and problem.width > n and n <= MAX_ROWS


def _is_long(problem: KernelMatrixAdapter) -> bool:
    """Whether there are few sparse examples, which are long."""
    n, sparse = problem.rows.n_examples, csr_examples(problem) is not None
    two = problem.rows.n_classes == 2
    return two and sparse and problem.width > n // 4 and n <= _FEW_EXAMPLES


def _for_hard_margins(problem: KernelMatrixAdapter) -> Method:
    n, few = problem.rows.n_examples, min(rows_of_all_pairs(problem), problem.n_rows)
    if csr_examples(problem) is None and few <= MAX_ROWS:
        return WorkingSet.start(problem)
    if problem.rows.n_classes > 2:
        return WorkingSet.start(problem) if few <= MAX_ROWS else by_passes(problem)
    if problem.width <= n // 4:
        return short_start(problem)
    return LongStart() if n <= _FEW_EXAMPLES else by_passes(problem)


def method_near(problem: KernelMatrixAdapter, w: Vector, proof: Vector) -> Method | None:
    """Method that begins near the solution for another C; None: beginning anew is as quick.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    w : Vector
        The best predictor there.
    proof : Vector
        The best weights there.
    """
    if problem.n_rows <= _MANY or problem.slack is None:
        return None
    if _is_wide(problem) or not (has_curvature(problem) or _is_for_examples(problem)):
        row_ids, room = np.flatnonzero(proof.coef), MAX_ROWS
        if not has_curvature(problem):
            room = _room_with_kernels(problem)
        if len(row_ids) > room:
            return None
        return WorkingSet.of(row_ids, proof.coef.flat[row_ids], room=room)
    if not has_curvature(problem):
        return Examples.of(problem, proof)
    if _is_long(problem):
        return None
    slack, margins = SquaredSlack(problem.slack), problem.rows.margins(problem.scores(w))
    return Newton.at(problem, slack, system_for(problem), w.image, margins)


def next_method(problem: KernelMatrixAdapter, state: Method) -> Method:
    """The method of the next round: another one where this has come to its limits."""
    if state.strays and is_steep(problem):
        return Path.start(problem, system_for(problem))
    u = state.few_weights
    if u is not None:
        row_ids = np.flatnonzero(u)
        work = WorkingSet.of(row_ids, u.flat[row_ids], state.candidates, room=_ROOM)
        return replace(work, otherwise=state.to_the_end())
    if not state.outgrown:
        return state
    if has_curvature(problem):
        return state.otherwise or by_passes(problem)
    if state.room < _ROOM:  # a kernel
        return Examples.of(problem, state.candidates[0].vector)
    return state.full()


def by_passes(problem: KernelMatrixAdapter) -> Newton | Path:
    """Newton's method, for a hard margin along a path of soft ones."""
    system = system_for(problem)
    if problem.slack is None:
        return Path.start(problem, system)
    return Newton.start(problem, SquaredSlack(problem.slack), system)


def system_for(problem: KernelMatrixAdapter) -> System:
    """How Newton's systems of this size are solved."""
    k, width = problem.rows.n_classes, int(problem.zeros().image.shape[-1])
    sparse = csr_examples(problem) is not None
    if k == 2:
        most = min(_DIRECT_SPARSE if sparse else _DIRECT, problem.n_rows)
        return Direct() if width <= most else Iterative()
    if k * (width + 1) <= _DIRECT_CLASSES:
        return Direct()
    if sparse:
        return PairIterative() if is_steep(problem) else DualIterative()
    factored = width <= _FACTORED and k * width**2 <= _FACTORS
    return Iterative(sample=_SAMPLE if factored else 0)
