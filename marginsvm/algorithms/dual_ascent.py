"""The sequences of accelerated dual coordinate ascent, epoch by epoch, and the draws of one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from sklearn.utils import check_random_state

from marginsvm._typing import Array
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import row_layout
from marginsvm.rows import Intervals, Vector


class Sequences(Protocol):
    """Where accelerated coordinate ascent is: a value."""

    @property
    def answer(self) -> Vector:
        """The vector that the theory's rates are about."""
        ...

    def epoch(self, problem: KernelMatrixAdapter, order: Array) -> Self:
        """Move along some coordinates, one after the other."""
        ...

    def begun(self, vector: Vector, n: int) -> Self:
        """Begin the acceleration at a vector, along n coordinates that are drawn from."""
        ...


@dataclass(frozen=True)
class HardSequences:
    """Algorithm 2 of Raj and Bach, for margins of at least 1.

    Attributes
    ----------
    n : int
        Number of coordinates that are drawn from.
    zeta : Vector
        The sequence that the paper calls alpha.
    s : Vector
        The excess of its others, times a scalar: y is ``zeta + gamma**2 s``.
    gamma : float
        The paper's weight of zeta in y (dimensionless): 1 / n at first.
    """

    n: int
    zeta: Vector
    s: Vector
    gamma: float

    @classmethod
    def at(cls, problem: KernelMatrixAdapter, vector: Vector) -> Self:
        """The sequences where the acceleration begins, along all coordinates."""
        return cls(problem.n_rows, vector, problem.zeros(), 1.0 / problem.n_rows)

    @property
    def answer(self) -> Vector:
        """The sequence v, of which eq. (8) speaks."""
        return self.zeta + before(self.gamma) * self.s

    def begun(self, vector: Vector, n: int) -> Self:
        return type(self)(n, vector, 0.0 * vector, 1.0 / n)

    def epoch(self, problem: KernelMatrixAdapter, order: Array) -> Self:
        from marginsvm.algorithms.compiled import coordinates as loops

        zeta, s = self.zeta.copy(), self.s.copy()
        gamma = loops.accelerate(problem, order, self.n, zeta, s, self.gamma)
        return type(self)(self.n, zeta, s, gamma)


@dataclass(frozen=True)
class ProximalSequences:
    """Algorithm 1 of Lin, Lu and Xiao (APCG), for scores in intervals, and for soft margins.

    With a soft margin, the dual objective is strongly convex, by ``mu`` relative to the
    curvatures of the coordinates. After k steps along uniform draws from n coordinates, its
    expected gap is below a multiple of ``min((1 - sqrt(mu) / n)^k, (2n / (2n + k))^2)``. The
    second is the rate of Raj and Bach's eq. (8); their Corollary C.2, which is meant to be the
    first, has no n in it, and is false as printed.

    Attributes
    ----------
    intervals : Intervals
        Where scores are to lie; ``[1, inf)`` for margins.
    n : int
        Number of coordinates that are drawn from.
    mu : float
        Strong convexity of the dual objective; 0 for a hard margin.
    proximal : Vector
        The sequence of proximal steps (z in the paper).
    answer : Vector
        The sequence that the rates are about (x in the paper).
    gamma : float
        Weight of the distance in the paper's estimate sequence (dimensionless): 1 at first, and
        then falling to mu.
    """

    intervals: Intervals
    n: int
    mu: float
    proximal: Vector
    answer: Vector
    gamma: float = 1.0

    @classmethod
    def at(cls, problem: KernelMatrixAdapter, intervals: Intervals, vector: Vector) -> Self:
        """The sequences where the acceleration begins, along all coordinates."""
        return cls(intervals, problem.n_rows, strong_convexity(problem), vector, vector)

    def begun(self, vector: Vector, n: int) -> Self:
        return replace(self, n=n, proximal=vector, answer=vector, gamma=1.0)

    def epoch(self, problem: KernelMatrixAdapter, order: Array) -> Self:
        from marginsvm.algorithms.compiled import interval_steps as loops

        proximal, answer, gamma = loops.accelerate(
            problem, order, self.n, self.intervals, self.proximal, self.answer, self.gamma, self.mu
        )
        return replace(self, proximal=proximal, answer=answer, gamma=gamma)


def strong_convexity(problem: KernelMatrixAdapter) -> float:
    """Strong convexity of the dual relative to the curvatures of its coordinates; 0 if C is inf."""
    rows = row_layout(problem)
    return float((rows.slack / np.maximum(rows.curvature, np.finfo(float).tiny)).min())


def margin_sequences(problem: KernelMatrixAdapter, vector: Vector) -> Sequences:
    """The sequences for margins of at least 1: of a soft margin, those of linear rate."""
    if problem.slack is None:
        return HardSequences.at(problem, vector)
    return ProximalSequences.at(problem, margin_intervals(problem), vector)


def margin_intervals(problem: KernelMatrixAdapter) -> Intervals:
    """Where margins are to lie: at least at 1."""
    return Intervals(np.ones(problem.rows.shape), np.full(problem.rows.shape, np.inf))


def before(gamma: float) -> float:
    """Square of the gamma before this one."""
    return gamma**2 / (1.0 - gamma)


def draw_seed(random_state: Any) -> int:
    """Seed of a fit's draws."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def draw(
    seed: int, t: int, active: Array, n: int, sampling: str, curvature: Array | None = None
) -> Array:
    """Coordinates of epoch t: n of the active ones.

    With the curvatures of all coordinates, each is drawn in proportion to the root of its own.
    """
    rng = np.random.default_rng((seed, t))
    if curvature is not None:
        weights = np.sqrt(curvature[active])
        return rng.choice(active, size=n, p=weights / weights.sum())
    if sampling == "uniform":
        return active[rng.integers(active.size, size=n)]
    sweeps = np.tile(active, (-(-n // active.size), 1))
    return rng.permuted(sweeps, axis=1).ravel()[:n]
