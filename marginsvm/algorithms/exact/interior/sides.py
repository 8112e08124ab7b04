"""Newton's system of an interior point method, and the two sides on which it can be solved.

Unknowns x are a predictor w and the free unknowns f: intercepts, then a level if there is one. A
step that changes margins by ``move`` and weights by ``W (g - move)`` solves

    (R + E'WE) dx = E'Wg - fall,    E = [A, F],    R = 1 for w and 0 for f

On the side of features, this is the matrix. On the side of rows, the matrix is ``AA' + 1/W``, and
its solution is by how much the weights change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import factored
from marginsvm.algorithms.exact.interior.row_weights import RowWeights
from marginsvm.algorithms.exact.interior.statement import Statement
from marginsvm.algorithms.exact.interior.turned import Frame, Turned, as_it_is, turned
from marginsvm.algorithms.exact.systems.features import (
    fix_shift,
    image_of,
    split,
    with_intercept,
)
from marginsvm.certify.certifiable import written_out
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import curvature
from marginsvm.rows import Predictor, Vector

# Numbers that stay in a processor's cache (2 MB): rows of no more are written out.
_CACHE = 2**18


class Cholesky:
    """A symmetric matrix that is positive definite up to rounding, factored.

    Parameters
    ----------
    M : ndarray of shape (m, m)
    """

    def __init__(self, M: Array) -> None:
        self._M, self._factor = M, factored(M.T.copy(order="F"))

    def solve(self, r: Array) -> Array:
        """The solution, corrected once by its residual."""
        x = dpotrs(self._factor, r, lower=0)[0]
        return np.asarray(x + dpotrs(self._factor, r - self._M @ x, lower=0)[0])


@dataclass(frozen=True)
class Side:
    """Margins and sums, by passes: unknowns are an image, with the free ones among its entries.

    Attributes
    ----------
    problem : KernelMatrixAdapter
        In its coordinates.
    statement : Statement
    frame : callable
        See ``turned``.
    products : ndarray or None
        See ``Turned``.
    """

    problem: KernelMatrixAdapter
    statement: Statement
    frame: Frame = as_it_is
    products: Array | None = None

    @cached_property
    def regular(self) -> Array:
        """The diagonal of R: 1 for the images, 0 for the free unknowns."""
        ridge = np.ones(self.problem.zeros().image.shape)
        if self.problem.rows.balanced:
            ridge = with_intercept(ridge, 0.0)
        return self._with_level(ridge.ravel(order="C"), 0.0)

    def _with_level(self, values: Array, of_level: float) -> Array:
        return np.append(values, of_level) if self.statement.total else values

    @cached_property
    def gram(self) -> Array:
        """Inner products of the rows, without their slack."""
        assert self.products is not None
        examples, signs = self.problem.rows.locate(self.statement.row_ids)
        return np.asarray(self.products[examples[:, None], examples] * (signs @ signs.T))

    def begun(self, u: Array) -> Array:
        """The unknowns that belong to weights: their own combination of rows, and f = 0."""
        return self.regular * self.adjoint(u)

    def adjoint(self, u: Array) -> Array:
        """``E'u``."""
        return self._with_level(self.summed(u), float(u @ self.statement.slackened))

    def margins(self, x: Array) -> Array:
        """``E x``."""
        margins = self.statement.both(self.of_rows(x))
        return margins + x[-1] * self.statement.slackened if self.statement.total else margins

    def fall(self, x: Array, u: Array) -> Array:
        """``R x + sums - E'u``, which is 0 at the solution."""
        fall = self.regular * x - self.adjoint(u)
        fall[-1] += self.statement.total
        return np.asarray(fall)

    def squared(self, x: Array) -> float:
        """Squared norm of the predictor."""
        return float(np.vdot(self.regular * x, x))

    def predictor(self, x: Array, proof: Vector) -> Predictor:
        """The predictor, with the coefficients of ``proof``, which is ``A'u``."""
        image = x[self.regular > 0.0].reshape(self.problem.zeros().image.shape)
        return self.frame(image, proof)

    def of_predictor(self, w: Predictor, x: Array, margins: Array) -> Array:
        """Its margins under the free unknowns of x, of which ``E x`` is known."""
        if not isinstance(w, Vector):
            return margins
        u = self.statement.chosen(w.coef)
        return self.margins(np.where(self.regular > 0.0, self.adjoint(u), x))

    def factored(self, weights: RowWeights) -> Factored | FactoredRows:
        """The system with given W: ``direction(g, fall)`` gives dx and how it moves margins."""
        if self.products is not None:
            return FactoredRows(self, weights)
        H = self.moments(weights)
        if self.statement.total:
            column = self.adjoint(weights.own * self.statement.slackened)
            H = np.block([[H, column[:-1, None]], [column]])
        H.flat[:: len(H) + 1] += self.regular
        return Factored(self, weights, Cholesky(H))

    def summed(self, u: Array) -> Array:
        """``E'u`` without the level."""
        q = self.statement.on_rows(u, self.problem.rows)
        return image_of(self.problem, q).ravel(order="C")

    def of_rows(self, x: Array) -> Array:
        """``E x`` for one side of each row, without the level."""
        problem, each = self.problem, self.problem.zeros().image.shape[:-1]
        w, b = split(problem, x[: len(x) - bool(self.statement.total)].reshape(*each, -1))
        return self.statement.chosen(problem.rows.moves(problem.scores(w) + b))

    def moments(self, weights: RowWeights) -> Array:
        """``E'WE`` without the level."""
        problem, statement = self.problem, self.statement
        linked = weights.linked
        if linked is not None:
            linked = statement.on_rows(linked, problem.rows)
        own = statement.on_rows(statement.gross(weights.own), problem.rows)
        H = curvature(problem, own, linked).dense()
        fix_shift(H, problem.zeros().image.shape, problem.rows)
        return H


class WrittenOutSide(Side):
    """The same by a matrix: where all rows fit into a processor's cache, or signs are rows."""

    @cached_property
    def _matrix(self) -> Array:
        """Of one side of each row, without the level."""
        features, statement = written_out(self.problem), self.statement
        assert features is not None
        A = features.points(statement.row_ids)
        F = self.problem.rows.balance_conditions(statement.row_ids)
        if statement.signs.size:
            # in the units of the features, so that their values are like those of the examples
            unit = np.abs(A).max(axis=0)
            A = np.vstack([A, statement.of_signs * np.where(unit > 0.0, unit, 1.0)])
            F = np.vstack([F, np.zeros((len(A) - len(F), F.shape[1]))])
        return np.column_stack([A, F])

    @cached_property
    def regular(self) -> Array:
        images = np.arange(self._matrix.shape[1]) < self.problem.zeros().image.size
        return self._with_level(images.astype(np.float64), 0.0)

    def summed(self, u: Array) -> Array:
        return np.asarray(self.statement.net(u) @ self._matrix)

    def of_rows(self, x: Array) -> Array:
        return np.asarray(self._matrix @ x[: self._matrix.shape[1]])

    def moments(self, weights: RowWeights) -> Array:
        R = self._matrix * np.sqrt(self.statement.gross(weights.own))[:, None]
        return np.asarray(R.T @ R)


@dataclass(frozen=True)
class Factored:
    """``R + E'WE``, factored."""

    side: Side
    weights: RowWeights
    matrix: Cholesky

    def direction(self, g: Array, fall: Array) -> tuple[Array, Array]:
        dx = self.matrix.solve(self.side.adjoint(self.weights.times(g)[0]) - fall)
        return dx, self.side.margins(dx)


class FactoredRows:
    """``AA' + 1/W``, factored, and what is left of the free unknowns' system.

    Both sides of a row move together: ``joined`` has the weights of rows. What they move against
    each other, only the level sees.
    """

    def __init__(self, side: Side, weights: RowWeights) -> None:
        self._side, self._weights, self._joined = side, weights, weights.joined()
        self._matrix, statement = Cholesky(self._joined.added_to(side.gram)), side.statement
        self._free = side.problem.rows.balance_conditions(statement.row_ids)
        self._at = np.flatnonzero(side.regular == 0.0)[: self._free.shape[1]]
        if statement.total:
            level = self._joined.gathered(weights, statement.slackened)
            self._free = np.column_stack([self._free, level])
            self._at = np.append(self._at, len(side.regular) - 1)
            self._apart = statement.slackened - statement.both(level)
        self._of_free = self._matrix.solve(self._free)
        self._schur = self._free.T @ self._of_free
        if statement.total:
            self._schur[-1, -1] += weights.of_both(statement.slackened)

    def direction(self, g: Array, fall: Array) -> tuple[Array, Array]:
        side, joined = self._side, self._joined
        of_rows = joined.gathered(self._weights, g)
        du = self._matrix.solve(of_rows + side.of_rows(side.regular * fall))
        df = self._free.T @ du - fall[self._at]
        if side.statement.total:
            df[-1] += self._weights.of_both(g)
        df = np.linalg.solve(self._schur, df) if df.size else df
        du = du - self._of_free @ df
        dx = side.regular * (side.adjoint(np.pad(du, (0, len(g) - len(du)))) - fall)
        dx[self._at] = df
        move = side.statement.both(of_rows - joined.inverse_times(du))
        if side.statement.total:
            move = move + df[-1] * self._apart
        return dx, move


def side_of(problem: KernelMatrixAdapter, statement: Statement, in_axes: bool) -> Side:
    """The unknowns in the coordinates in which they are few, or keep their digits."""
    signed = statement.signs.size > 0
    turn = Turned(problem, as_it_is) if signed else turned(problem, in_axes)
    in_cache = len(statement.row_ids) * turn.problem.width <= _CACHE
    in_cache = in_cache and written_out(turn.problem) is not None
    apart = not statement.shared or turn.products is not None  # second moments need no links
    side = WrittenOutSide if signed or (in_cache and apart) else Side
    return side(turn.problem, statement, turn.frame, turn.products)
