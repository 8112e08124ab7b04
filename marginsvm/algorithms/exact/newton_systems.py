"""Which way of solving Newton's systems suits the shape of a problem."""

from __future__ import annotations

from marginsvm.algorithms.exact.rules import Problem
from marginsvm.algorithms.exact.shape import Portfolio, Shape
from marginsvm.algorithms.exact.systems.features import Direct, Iterative
from marginsvm.algorithms.exact.systems.free import FreeRows
from marginsvm.algorithms.exact.systems.system import System


def system_for(problem: Problem, portfolio: Portfolio) -> System:
    """How Newton's systems of this size are solved."""
    s = Shape.of(problem)
    if s.classes == 2:
        most = portfolio.direct_sparse if s.sparse else portfolio.direct
        return Direct() if s.features <= min(most, s.rows) else Iterative()
    if s.unknowns <= portfolio.direct:
        return Direct()
    small = s.classes * s.features**2 <= portfolio.factors and s.features <= portfolio.factored
    by_passes = Iterative(sample=portfolio.sample if small else 0)
    return FreeRows(by_passes) if s.hinge else by_passes
