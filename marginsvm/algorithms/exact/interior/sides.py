"""The two sides on which Newton's system of an interior point method can be solved.

Unknowns x are a predictor w and the free unknowns f. A step that changes margins by ``move`` and
weights by ``W (g - move)`` solves

    (R + E'WE) dx = E'Wg - fall,    E = [A, F],    R = 1 for w and 0 for f

On the side of features, this is the matrix. On the side of rows, w is ``A'c``, the matrix is
``AA' + 1/W``, and the unknowns are the weights themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import factored
from marginsvm.algorithms.exact.interior.row_weights import RowWeights
from marginsvm.algorithms.exact.interior.statement import Statement
from marginsvm.algorithms.exact.interior.turned import Frame
from marginsvm.algorithms.exact.systems.features import fix_shift, with_intercept
from marginsvm.certify.certifiable import written_out
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import curvature
from marginsvm.rows import Predictor, Vector

# Corrections of a solution by its residual: one takes out what rounding, two what a lift has left.
_REFINED, _LIFTED = 1, 3
# Numbers that stay in a processor's cache (2 MB): rows of no more are written out.
_CACHE = 2**18


class Side(Protocol):
    """Margins and sums of one of the two sides."""

    def begun(self, u: Array) -> Array:
        """The unknowns that belong to weights: their own combination of rows, and f = 0."""
        ...

    def margins(self, x: Array) -> Array:
        """``E x``."""
        ...

    def fall(self, x: Array, u: Array) -> Array:
        """``R x + sums - E'u``, which is 0 at the solution."""
        ...

    def squared(self, x: Array) -> float:
        """Squared norm of the predictor."""
        ...

    def factored(self, weights: RowWeights) -> Any:
        """The system with given W: ``direction(g, fall)`` gives dx and how it moves margins."""
        ...

    def predictor(self, x: Array, proof: Vector) -> Predictor:
        """The predictor, with the coefficients of ``proof``, which is ``A'u``."""
        ...

    def of_predictor(self, w: Predictor, x: Array, margins: Array) -> Array:
        """Its margins under the intercepts of x, of which ``E x`` is known."""
        ...


class Cholesky:
    """A symmetric matrix that is positive definite up to rounding, factored.

    Parameters
    ----------
    M : ndarray of shape (m, m)
    """

    def __init__(self, M: Array) -> None:
        self._M = M
        self._factor, lift = factored(M.T.copy(order="F"))
        self._corrections = _LIFTED if lift else _REFINED

    def solve(self, r: Array, times: Callable[[Array], Array] | None = None) -> Array:
        """The solution, refined.

        Parameters
        ----------
        r : ndarray
        times : callable or None
            A product that has more digits than the entries, which are sums of squares: it takes the
            place of one with these where rounding has made the matrix indefinite.
        """
        times = times if times and self._corrections == _LIFTED else self._M.__matmul__
        x = dpotrs(self._factor, r, lower=0)[0]
        for _ in range(self._corrections):
            x = x + dpotrs(self._factor, r - times(x), lower=0)[0]
        return np.asarray(x)


@dataclass(frozen=True)
class OfFeatures(Side):
    """The side of features: images, with the intercepts, and the level as the last unknown.

    ``regular`` is the diagonal of R: 1 for the images, 0 for the free unknowns.
    """

    problem: KernelMatrixAdapter
    statement: Statement
    frame: Frame | None
    regular: Array

    @abstractmethod
    def adjoint(self, u: Array) -> Array:
        """``E'u``."""

    def begun(self, u: Array) -> Array:
        return self.regular * self.adjoint(u)

    def fall(self, x: Array, u: Array) -> Array:
        fall = self.regular * x - self.adjoint(u)
        fall[-1] += float(self.statement.game)
        return np.asarray(fall)

    def squared(self, x: Array) -> float:
        return float(np.vdot(self.regular * x, x))

    def predictor(self, x: Array, proof: Vector) -> Predictor:
        """Of features, with the coefficients of a proof; else as the problem knows it."""
        image = x[self.regular > 0.0].reshape(self.problem.zeros().image.shape)
        if self.frame is None:
            return Predictor(image, proof.coef)
        return self.frame.predictor(image, proof)

    def of_predictor(self, w: Predictor, x: Array, margins: Array) -> Array:
        return margins


@dataclass(frozen=True)
class FeatureSide(OfFeatures):
    """By passes: images with the intercepts as their last entries."""

    @classmethod
    def of(
        cls, problem: KernelMatrixAdapter, statement: Statement, frame: Frame | None = None
    ) -> FeatureSide:
        """The side of all features."""
        ridge = np.ones(problem.zeros().image.shape)
        if problem.rows.balanced:
            ridge = with_intercept(ridge, 0.0)
        return cls(problem, statement, frame, np.append(ridge, [0.0] * int(statement.game)))

    def adjoint(self, u: Array) -> Array:
        problem, statement = self.problem, self.statement
        q = statement.on_rows(u, problem.rows)
        image = problem.combine(q, precise=True).image
        if problem.rows.balanced:
            image = with_intercept(image, problem.rows.adjoint(q).sum(axis=0)[..., None])
        return np.append(image, [u.sum()] * int(statement.game))

    def margins(self, x: Array) -> Array:
        problem, shape = self.problem, self.problem.zeros().image.shape
        both, level = np.split(x, [len(x) - int(self.statement.game)])
        both = both.reshape(*shape[:-1], -1)
        F = problem.scores(Predictor(both[..., : shape[-1]], np.zeros(0)))
        if problem.rows.balanced:
            F = F + both[..., -1]
        return self.statement.flat(problem.rows.moves(F)) + level.sum()

    def factored(self, weights: RowWeights) -> FactoredFeatures:
        problem, statement = self.problem, self.statement
        linked = weights.linked
        if linked is not None:
            linked = statement.on_rows(linked, problem.rows)
        own = statement.on_rows(statement.gross(weights.own), problem.rows)
        H = curvature(problem, own, linked).dense()
        fix_shift(H, problem.zeros().image.shape, problem.rows)
        if statement.game:
            column = self.adjoint(weights.own)
            H = np.block([[H, column[:-1, None]], [column]])
        H.flat[:: len(H) + 1] += self.regular
        return FactoredFeatures(self, weights, Cholesky(H))


@dataclass(frozen=True)
class FactoredFeatures:
    """``R + E'WE``, factored."""

    side: OfFeatures
    weights: RowWeights
    matrix: Cholesky

    def direction(self, g: Array, fall: Array) -> tuple[Array, Array]:
        dx = self.matrix.solve(self.side.adjoint(self.weights.times(g)[0]) - fall, self._times)
        return dx, self.side.margins(dx)

    def _times(self, x: Array) -> Array:
        u = self.weights.times(self.side.margins(x))[0]
        return np.asarray(self.side.regular * x + self.side.adjoint(u))


@dataclass(frozen=True)
class WrittenOutSide(OfFeatures):
    """Where all rows fit into a processor's cache: E as a matrix."""

    E: Array

    @classmethod
    def of(
        cls, problem: KernelMatrixAdapter, statement: Statement, frame: Frame | None = None
    ) -> WrittenOutSide | None:
        """None: the rows are too many or too long, have no features, or share caps."""
        features, row_ids = written_out(problem), statement.row_ids
        if features is None or statement.shared or len(row_ids) * problem.width > _CACHE:
            return None
        return cls.made(problem, statement, frame)

    @classmethod
    def made(
        cls, problem: KernelMatrixAdapter, statement: Statement, frame: Frame | None = None
    ) -> WrittenOutSide:
        """The same, whatever their number; with the rows of signs."""
        features = written_out(problem)
        assert features is not None
        A, F = features.points(statement.row_ids), _of_free(problem, statement)
        if statement.signs.size:
            # in the units of the features, so that their values are like those of the examples
            unit = np.abs(A).max(axis=0)
            A = np.vstack([A, statement.of_signs * np.where(unit > 0.0, unit, 1.0)])
            F = np.vstack([F, np.zeros((len(A) - len(F), F.shape[1]))])
        ridge = np.append(np.ones(A.shape[1]), np.zeros(F.shape[1]))
        return cls(problem, statement, frame, ridge, np.column_stack([A, F]))

    def margins(self, x: Array) -> Array:
        return self.statement.both(self.E @ x)

    def factored(self, weights: RowWeights) -> FactoredFeatures:
        R = self.E * np.sqrt(self.statement.gross(weights.own))[:, None]
        H = R.T @ R
        H.flat[:: len(H) + 1] += self.regular
        return FactoredFeatures(self, weights, Cholesky(H))

    def adjoint(self, u: Array) -> Array:
        return np.asarray(self.statement.net(u) @ self.E)


def _of_free(problem: KernelMatrixAdapter, statement: Statement) -> Array:
    """What the free unknowns add to the margins: conditions of balance and, for a game, ones."""
    ones = np.ones((len(statement.row_ids), int(statement.game)))
    return np.column_stack([problem.rows.balance_conditions(statement.row_ids), ones])


class Gram:
    """The side of rows: coefficients of the predictor on the rows, then the free unknowns.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    statement : Statement
    """

    def __init__(self, problem: KernelMatrixAdapter, statement: Statement) -> None:
        self.problem, self.statement = problem, statement
        row_ids = statement.row_ids
        self.K = problem.gram(row_ids, row_ids)
        self.K.flat[:: len(row_ids) + 1] -= statement.own[: len(row_ids)]
        self.F = _of_free(problem, statement)

    def begun(self, u: Array) -> Array:
        return np.append(self.statement.net(u), np.zeros(self.F.shape[1]))

    def margins(self, x: Array) -> Array:
        n = len(self.K)
        return self.statement.flat(self.K @ x[:n] + self.F @ x[n:])

    def fall(self, x: Array, u: Array) -> Array:
        u = self.statement.net(u)
        short = -(self.F.T @ u)
        if self.statement.game:
            short[-1] += 1.0
        return np.append(x[: len(u)] - u, short)

    def squared(self, x: Array) -> float:
        c = x[: len(self.K)]
        return max(float(c @ (self.K @ c)), 0.0)

    def factored(self, weights: RowWeights) -> GramSystem:
        joined = weights.joined()
        return GramSystem(self, weights, joined, Cholesky(joined.added_to(self.K)))

    def predictor(self, x: Array, proof: Vector) -> Predictor:
        if self.statement.sides == 1:
            return proof
        return self.problem.combine(x[: len(self.K)].reshape(proof.coef.shape), precise=True)

    def of_predictor(self, w: Predictor, x: Array, margins: Array) -> Array:
        """Of that of the weights."""
        return self.margins(np.append(self.statement.flat(w.coef), x[len(self.K) :]))


class GramSystem:
    """``AA' + 1/W``, factored, and what is left of the free unknowns' system.

    Both sides of a row move together: ``joined`` has the weights of rows.
    """

    def __init__(
        self, side: Gram, weights: RowWeights, joined: RowWeights, matrix: Cholesky
    ) -> None:
        self.side, self._weights, self._joined, self._matrix = side, weights, joined, matrix
        self._of_free = matrix.solve(side.F)
        self._schur = side.F.T @ self._of_free

    def direction(self, g: Array, fall: Array) -> tuple[Array, Array]:
        side, joined = self.side, self._joined
        g = joined.gathered(self._weights, g)
        n = len(g)
        du = self._matrix.solve(g + side.K @ fall[:n])
        df = np.linalg.solve(self._schur, side.F.T @ du - fall[n:]) if side.F.shape[1] else fall[n:]
        du = du - self._of_free @ df
        return np.append(du - fall[:n], df), side.statement.flat(g - joined.inverse_times(du))
