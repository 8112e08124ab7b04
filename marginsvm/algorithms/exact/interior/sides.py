"""The two sides on which Newton's system of an interior point method can be solved.

Unknowns x are a predictor w and the free unknowns f. A step that changes margins by ``move`` and
weights by ``W (g - move)`` solves

    (R + E'WE) dx = E'Wg - fall,    E = [A, F],    R = 1 for w and 0 for f

On the side of features, this is the matrix. On the side of rows, w is ``A'c``, the matrix is
``AA' + 1/W``, and the unknowns are the weights themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.interior.row_weights import RowWeights
from marginsvm.algorithms.exact.interior.statement import Statement
from marginsvm.algorithms.exact.interior.turned import Frame
from marginsvm.certify.certifiable import written_out
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import curvature
from marginsvm.rows import Predictor, Vector

# Added to the diagonal, relative to it, for each unknown where rounding has made a matrix
# indefinite, as columns that depend on each other do; ten times as much where that is not enough.
_LIFT_BY_UNKNOWN = 1e-15
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

    def of_free(self, x: Array) -> Array:
        """``F f``, what the free unknowns add to the margins."""
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


class Cholesky:
    """A symmetric matrix that is positive definite up to rounding, factored.

    Parameters
    ----------
    M : ndarray of shape (m, m)
    """

    def __init__(self, M: Array) -> None:
        self._M, lift, failed = M, 0.0, 1
        while failed:
            lifted = M.T.copy(order="F")
            if lift:
                lifted.flat[:: len(M) + 1] += lift * M.diagonal()
            self._factor, failed = dpotrf(lifted, lower=0, clean=0, overwrite_a=1)
            self._corrections = _LIFTED if lift else _REFINED
            if lift > 1.0 or not np.isfinite(M.diagonal()).all():
                raise np.linalg.LinAlgError("not positive definite")
            lift = max(10.0 * lift, _LIFT_BY_UNKNOWN * len(M))

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
class FeatureSide:
    """The side of features: images, with the intercepts as their last entries, and the level."""

    problem: KernelMatrixAdapter
    statement: Statement
    frame: Frame | None = None

    @property
    def _shape(self) -> tuple[int, ...]:
        shape = self.problem.zeros().image.shape
        return (*shape[:-1], shape[-1] + self.problem.rows.balanced)

    @property
    def regular(self) -> Array:
        ridge = np.ones(self._shape)
        if self.problem.rows.balanced:
            ridge[..., -1] = 0.0
        return np.append(ridge, np.zeros(int(self.statement.game)))

    def _parts(self, x: Array) -> tuple[Array, Array, float]:
        """Image, intercepts and level."""
        m = len(x) - int(self.statement.game)
        both = x[:m].reshape(self._shape)
        level = float(x[m]) if self.statement.game else 0.0
        if not self.problem.rows.balanced:
            return both, np.zeros(both.shape[:-1]), level
        return both[..., :-1], both[..., -1], level

    def adjoint(self, u: Array) -> Array:
        """``E'u``."""
        problem, statement = self.problem, self.statement
        q = statement.on_rows(u, problem.rows)
        image = problem.combine(q, precise=True).image
        if problem.rows.balanced:
            image = np.append(image, problem.rows.adjoint(q).sum(axis=0)[..., None], axis=-1)
        return np.append(image, [u.sum()] * int(statement.game))

    def begun(self, u: Array) -> Array:
        return self.regular * self.adjoint(u)

    def margins(self, x: Array) -> Array:
        image, b, level = self._parts(x)
        rows = self.problem.rows
        F = self.problem.scores(Predictor(image, np.zeros(0)))
        return self.statement.flat(rows.moves(F + b)) + level

    def of_free(self, x: Array) -> Array:
        _, b, level = self._parts(x)
        rows = self.problem.rows
        return self.statement.flat(rows.moves(np.zeros(rows.score_shape) + b)) + level

    def fall(self, x: Array, u: Array) -> Array:
        fall = self.regular * x - self.adjoint(u)
        if self.statement.game:
            fall[-1] += 1.0
        return np.asarray(fall)

    def squared(self, x: Array) -> float:
        image = self._parts(x)[0]
        return float(np.vdot(image, image))

    def factored(self, weights: RowWeights) -> FactoredFeatures:
        problem, statement = self.problem, self.statement
        linked = weights.linked
        if linked is not None:
            linked = statement.on_rows(linked, problem.rows)
        own = statement.on_rows(statement.gross(weights.own), problem.rows)
        H = curvature(problem, own, linked).dense()
        if len(self._shape) == 2 and problem.rows.balanced:  # a shift of all intercepts is free
            ends = np.arange(self._shape[1] - 1, len(H), self._shape[1])
            H[np.ix_(ends, ends)] += H[ends, ends].mean()
        if statement.game:
            column = self.adjoint(weights.own)
            H = np.block([[H, column[:-1, None]], [column]])
        H.flat[:: len(H) + 1] += self.regular
        return FactoredFeatures(self, weights, Cholesky(H))

    def predictor(self, x: Array, proof: Vector) -> Predictor:
        return _in_frame(self._parts(x)[0], self.frame, proof)


@dataclass(frozen=True)
class FactoredFeatures:
    """``R + E'WE``, factored."""

    side: FeatureSide | WrittenOutSide
    weights: RowWeights
    matrix: Cholesky

    def direction(self, g: Array, fall: Array) -> tuple[Array, Array]:
        dx = self.matrix.solve(self.side.adjoint(self.weights.times(g)[0]) - fall, self._times)
        return dx, self.side.margins(dx)

    def _times(self, x: Array) -> Array:
        u = self.weights.times(self.side.margins(x))[0]
        return np.asarray(self.side.regular * x + self.side.adjoint(u))


@dataclass(frozen=True)
class WrittenOutSide:
    """The side of features where all rows fit into a processor's cache: E as a matrix."""

    problem: KernelMatrixAdapter
    statement: Statement
    E: Array
    regular: Array
    frame: Frame | None = None

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
        return cls(problem, statement, np.column_stack([A, F]), ridge, frame)

    def begun(self, u: Array) -> Array:
        return self.regular * self.adjoint(u)

    def margins(self, x: Array) -> Array:
        return self.statement.both(self.E @ x)

    def of_free(self, x: Array) -> Array:
        return self.margins((1.0 - self.regular) * x)

    def fall(self, x: Array, u: Array) -> Array:
        fall = self.regular * x - self.adjoint(u)
        fall[-1] += float(self.statement.game)
        return np.asarray(fall)

    def squared(self, x: Array) -> float:
        return float(np.vdot(self.regular * x, x))

    def factored(self, weights: RowWeights) -> FactoredFeatures:
        R = self.E * np.sqrt(self.statement.gross(weights.own))[:, None]
        H = R.T @ R
        H.flat[:: len(H) + 1] += self.regular
        return FactoredFeatures(self, weights, Cholesky(H))

    def adjoint(self, u: Array) -> Array:
        """``E'u``."""
        return np.asarray(self.statement.net(u) @ self.E)

    def predictor(self, x: Array, proof: Vector) -> Predictor:
        image = x[: np.count_nonzero(self.regular)]
        return _in_frame(image.reshape(self.problem.zeros().image.shape), self.frame, proof)


def _in_frame(image: Array, frame: Frame | None, proof: Vector) -> Predictor:
    """The predictor as the problem knows it; of features, with the coefficients of a proof."""
    return Predictor(image, proof.coef) if frame is None else frame.predictor(image, proof)


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

    def of_free(self, x: Array) -> Array:
        return self.statement.flat(self.F @ x[len(self.K) :])

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
