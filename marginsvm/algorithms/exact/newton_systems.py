"""Which way of solving Newton's systems suits a problem, and multipliers without features."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import Method
from marginsvm.algorithms.exact.multipliers import Multipliers
from marginsvm.algorithms.exact.pairs import best_multiple, weights_by_pairs
from marginsvm.algorithms.exact.rules import Problem
from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.systems.features import Direct, Iterative
from marginsvm.algorithms.exact.systems.free import FreeRows
from marginsvm.algorithms.exact.systems.gram import ByProducts
from marginsvm.algorithms.exact.systems.system import System
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.kernel_matrix import GramAdapter
from marginsvm.kernel_matrix.capabilities import side_in_cache

# Bytes for two examples of a kernel whose products with all are taken: in float64 and in float32,
# which is to be half of the cache.
_BYTES_OF_PRODUCTS = 24
# Factor by which costs are rounded off less at first where weights of another method are known.
_KNOWN = 1e-2


def system_for(problem: Problem, portfolio: Portfolio) -> System:
    """How Newton's systems of this size are solved."""
    s = Shape.of(problem)
    if isinstance(problem, GramAdapter) and not s.hinge:
        return ByProducts.of(problem)
    wide = s.classes == 2 and not s.tube and s.is_wide(portfolio)
    if s.by_kernel or (s.hinge and wide):
        return FreeRows()
    if s.classes == 2:
        most = portfolio.direct_sparse if s.sparse else portfolio.direct
        return Direct() if s.features <= min(most, s.rows) else Iterative()
    if s.unknowns <= portfolio.direct:
        return Direct()
    small = s.classes * s.features**2 <= portfolio.factors and s.features <= portfolio.factored
    by_passes = Iterative(sample=portfolio.sample if small else 0)
    return FreeRows(by_passes) if s.hinge else by_passes


def multipliers_by_products(problem: Problem, portfolio: Portfolio) -> Multipliers:
    """Multipliers for the hinge loss on inner products, from weights by pairs."""
    return _from(problem, portfolio, weights_by_pairs(problem, portfolio.few_left))


def multipliers_of(problem: Problem, portfolio: Portfolio, state: Method) -> Multipliers | None:
    """The same from the weights of another method; None: inner products do not fit in memory."""
    s, u = Shape.of(problem), None
    held = s.examples
    if state.candidates:  # it was not outgrown before its first round
        u = best_multiple(problem, state.candidates[0].combination)
        if problem.caps is not None:  # only products of free weights with each other
            caps = problem.rows.per_example(problem.caps.largest)
            held = int(np.count_nonzero((u > 0.0) & (u < caps)))
    if held > side_in_cache(problem, _BYTES_OF_PRODUCTS):
        return None
    if s.hinge:
        u = weights_by_pairs(problem, portfolio.few_left, u)
    return _from(problem, portfolio, u)


def _from(problem: Problem, portfolio: Portfolio, u: Array | None) -> Multipliers:
    system = system_for(problem, portfolio)
    return Multipliers.start(problem, system, u, 1.0 if u is None else _KNOWN)
