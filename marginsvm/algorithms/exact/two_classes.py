"""A proof that many classes overlap, by two of them that do.

A row of an example of class a held against class b, and one of an example of b held against a, are
opposite if the examples are equal. So weights that prove the overlap of two classes by themselves
prove that of all classes, too, and a problem of two classes is far smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import Method
from marginsvm.algorithms.exact.stage import Stage
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import two_classes

# Searches two classes for weights that prove their overlap; None: it finds none.
Prover = Callable[[KernelMatrixAdapter], Array | None]


@dataclass(frozen=True)
class ByTwoClasses:
    """A stage of a fit to many classes, and two of them by themselves after rounds 1, 2, 4, 8 ...

    They are the two between which there is the most weight of those not yet looked at.

    Attributes
    ----------
    stage : Stage
    prover : callable
        See ``Prover``.
    rounds : int
        Played so far.
    seen : tuple of (int, int)
        Classes that were looked at, and are not proved to overlap.
    found : tuple of Candidate
        The proof, if there is one.
    """

    stage: Stage
    prover: Prover
    rounds: int = 0
    seen: tuple[tuple[int, int], ...] = ()
    found: tuple[Candidate, ...] = ()

    @property
    def method(self) -> Method:
        """The stage's."""
        return self.stage.method

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The proof, if it is found, and those of the method."""
        return (*self.found, *self.method.candidates)

    @property
    def nearer(self) -> bool:
        """Whether the method has come nearer to a solution."""
        return self.stage.nearer

    def advance(
        self, problem: KernelMatrixAdapter, tol: float, portfolio: Portfolio
    ) -> ByTwoClasses:
        """A round of the method, and maybe a look at two classes."""
        stage = self.stage.advance(problem, tol, portfolio)
        if stage is self.stage:
            return self
        now = replace(self, stage=stage, rounds=self.rounds + 1)
        power_of_two = now.rounds & self.rounds == 0
        return now._looked(problem) if power_of_two and not self.found else now

    def _looked(self, problem: KernelMatrixAdapter) -> ByTwoClasses:
        """Look at two classes, unless the last round ends the fit by itself."""
        separates = any((c.min_margin or 0.0) > 0.0 for c in self.method.candidates)
        proofs = [c for c in self.method.candidates if c.mass > 0.0]
        if separates or not proofs:
            return self
        q = proofs[0].vector.coef
        if problem.norm(proofs[0].vector) <= problem.errors.vanishing * proofs[0].mass:
            return self
        pair = _most_contested(problem.rows.codes, q, self.seen)
        both = None if pair is None else two_classes(problem, *pair)
        weights = None if both is None else self.prover(both)
        if pair is None:
            return self
        if weights is None:
            return replace(self, seen=(*self.seen, pair))
        vector = problem.combine(_held_against(problem, pair, weights), precise=True)
        return replace(self, found=(Candidate(vector, vector.mass, precise=True),))


def _most_contested(
    codes: Array, q: Array, seen: tuple[tuple[int, int], ...]
) -> tuple[int, int] | None:
    """The two classes with the most weight on rows of either held against the other."""
    k = q.shape[1]
    table = np.zeros((k, k))
    np.add.at(table, codes, q)
    weight = np.triu(np.minimum(table, table.T), 1)
    for pair in seen:
        weight[pair] = 0.0
    a, b = divmod(int(weight.argmax()), k)
    return (a, b) if weight[a, b] > 0.0 else None


def _held_against(problem: KernelMatrixAdapter, pair: tuple[int, int], weights: Array) -> Array:
    """Weights of the problem of two classes on the rows of all."""
    q, codes = np.zeros(problem.rows.shape), problem.rows.codes
    members = np.flatnonzero(np.isin(codes, pair))
    q[members, sum(pair) - codes[members]] = weights
    return q
