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
    n, k, sparse = problem.rows.n_examples, problem.rows.n_classes, csr_examples(problem)
    if problem.n_rows <= _MANY:
        return WorkingSet.start(problem)
    if not has_curvature(problem):
        return _for_kernels(problem)
    if k == 2 and sparse is None and problem.width > n and n <= MAX_ROWS:
        return WorkingSet.start(problem)
    if problem.slack is not None:
        system = system_for(problem)
        if sparse is not None and k > 2 and system.by_passes:
            return Ascent.start(problem, system)
        long = k == 2 and sparse is not None and problem.width > n // 4 and n <= _FEW_EXAMPLES
        return LongStart() if long else by_passes(problem)
    return _for_hard_margins(problem)


def hinge_method(problem: KernelMatrixAdapter) -> Hinge | HingeExamples:
    """The method for a soft margin whose slack is not squared."""
    if not has_curvature(problem):
        return HingeExamples.start(problem)
    n = problem.rows.n_examples
    if problem.width > n and n <= MAX_ROWS and csr_examples(problem) is None:
        return HingeExamples.start(problem, size=n)
    return Hinge.start(problem, FeatureSteps(system_for(problem)))


def _for_kernels(problem: KernelMatrixAdapter) -> Method:
    slack = 0.0 if problem.slack is None else problem.slack.min()
    if problem.rows.n_classes > 2 and slack >= _EASY:
        return Examples.start(problem)
    return replace(WorkingSet.start(problem), room=MAX_ROWS if slack >= _HARD else _ROOM)


def _for_hard_margins(problem: KernelMatrixAdapter) -> Method:
    n, few = problem.rows.n_examples, min(rows_of_all_pairs(problem), problem.n_rows)
    if csr_examples(problem) is None and few <= MAX_ROWS:
        return WorkingSet.start(problem)
    if problem.rows.n_classes > 2:
        return WorkingSet.start(problem) if few <= MAX_ROWS else by_passes(problem)
    if problem.width <= n // 4:
        return short_start(problem)
    return LongStart() if n <= _FEW_EXAMPLES else by_passes(problem)


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
