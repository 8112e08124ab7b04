"""Linear systems of Newton and interior-point steps: by the features, or by the rows.

Unknowns x = (w, f); E = [A, F]; R is the identity for w and 0 for f. A step dx changes the values
of the rows by ``E dx``, alpha by ``da = W (h - E dx)``, and solves, with
``fall = R x + g - E'alpha``,

    (R + E'WE) dx = E'W h - fall                      by the features, or
    (AA' + W^-1) da = h + A fall_w - F df             by the rows, where F'da = fall_f

Interior points have ``W^-1 = ridge + z/alpha + xi/over``; semismooth Newton has W = 0 on rows that
are at their bounds. Where the rows of an example share a cap, W is not diagonal: ``RowWeights``.

References
----------
M. C. Ferris, T. S. Munson. Interior-point methods for massive support vector machines. SIAM
Journal on Optimization, 2002.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from marginsvm._typing import Array, Stored
from marginsvm.problem.matrix import dense
from marginsvm.problem.norms import least_squares
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.row_maps import IntervalEnds

# Largest number of entries of a dense E: it stays in a processor's cache (2 MB).
IN_CACHE = 2**18
# Multiplications by its zeros that take less time than the calls for its blocks.
TINY = 2**21


# What is added to a diagonal, relative to it: at first, for each row, and in times of the last.
LIFT = 1e-15
HIGHER = 100.0


class Factor:
    """Factor of symmetric matrices, positive definite up to rounding, of shape (..., m, m).

    The diagonal is increased if Cholesky's factorisation fails. Solutions get one step of iterative
    refinement. For a stack, inverses are computed instead of Cholesky factors.
    """

    def __init__(self, M: Array) -> None:
        self.M = M
        if M.ndim > 2:
            self.inverse = np.linalg.inv(M)
            return
        self.factor, failed = dpotrf(M.T, lower=1, clean=0)
        lift = 0.0
        while failed:
            lift = max(HIGHER * lift, LIFT * len(M))
            if not lift < 1.0:
                raise np.linalg.LinAlgError("not positive definite")
            raised = M + np.diag(lift * M.diagonal())
            self.factor, failed = dpotrf(raised.T, lower=1, clean=0, overwrite_a=1)

    def __call__(self, r: Array) -> Array:
        """Solutions for right-hand sides of shape (..., m)."""
        return self.columns(r[..., None])[..., 0]

    def columns(self, r: Array) -> Array:
        """Solutions for right-hand sides of shape (..., m, c)."""
        x = self._solve(r)
        return x + self._solve(r - self.M @ x)

    def _solve(self, r: Array) -> Array:
        if not r.size:
            return r
        if self.M.ndim > 2:
            return self.inverse @ r
        return dpotrs(self.factor, r, lower=1)[0]


class RowWeights:
    """``W = (diag(h) + S'diag(pull)S)^-1`` by the Sherman-Morrison formula.

    S sums over the rows of an example, which share a cap; the first rows of all examples come
    first. Without pull, W is diagonal; then h may be a stack.

    Attributes
    ----------
    own, linked : ndarray
        ``v'Wv`` is the sum of ``own_j v_j^2`` and, for each two rows j and l of an example, of
        ``linked_j linked_l (v_j - v_l)^2``.
    """

    def __init__(self, h: Array, pull: Array | None = None) -> None:
        self.h = h
        self.pull = pull
        self.own = 1.0 / h
        if pull is not None:
            n = len(pull)
            self.free = self.own.reshape(-1, n)
            self.sums = self.free.sum(axis=0)
            left = 1.0 / (1.0 + pull * self.sums)
            self.own = (self.free * left).ravel()
            self.linked = (self.free * np.sqrt(pull * left)).ravel()
            self.largest = n * self.free.argmax(axis=0) + np.arange(n)

    def times(self, v: Array) -> Array:
        """``W v``."""
        if self.pull is None:
            return self.own * v
        # relative to the row with the largest weight: a constant on an example nearly cancels
        more = v.reshape(self.free.shape) - v[self.largest]
        each = more * self.sums - (self.free * more).sum(axis=0)
        return self.own * (v + (self.pull * each).ravel())

    def added_to(self, K: Array) -> Array:
        """``K + W^-1``."""
        M = K.copy()
        np.einsum("...ii->...i", M)[...] += self.h
        if self.pull is not None:
            at = np.arange(len(K)).reshape(self.free.shape)
            M[at[:, None], at] += self.pull
        return M


# ``direction(h, fall)`` returns the changes of x and of alpha.
Direction = Callable[..., tuple[Array, Array]]
# ``E x``, fall, the direction for any h, and that for ``h = goal - E x``.
Begun = tuple[Array, Array, Direction, tuple[Array, Array]]


class System(ABC):
    """A form of the system."""

    @abstractmethod
    def values_and_fall(self, x: Array, u: Array) -> tuple[Array, Array]:
        """``E x``, and ``R x + g - E'u``, which is 0 at the solution."""

    @abstractmethod
    def factor(self, weights: RowWeights) -> Direction:
        """Factorise the system for given weights W."""

    def begun(self, x: Array, u: Array, weights: RowWeights, goal: Array) -> Begun:
        """Both, with the first direction."""
        values, fall = self.values_and_fall(x, u)
        direction = self.factor(weights)
        return values, fall, direction, direction(goal - values, fall)


def even_weights(qp: QuadraticProgram) -> Array:
    """Weights of all rows, with sum 1 and ``F'alpha = 0``, proportional to the sample weights."""
    rows = qp.rows
    q = np.ones(qp.rows.n_rows)
    if np.any(qp.ridge):
        q = 1.0 / rows.flat(qp.ridge)
    elif qp.cap is not None:
        q = rows.flat(qp.cap[:, None])
    elif np.isfinite(qp.upper).all():
        q = rows.flat(qp.upper)
    if qp.intercept:  # equal sums of alpha for all pairs of classes, or for both signs
        q = q / np.bincount(rows.groups, q)[rows.groups]
    return q / q.sum()


def written_rows(qp: QuadraticProgram, ids: Array) -> Array:
    """Rows of A for given flat indices, as a dense array; of CSR without the mean."""
    X = dense(qp.design.rows(qp.rows.example_of(ids)))
    C = qp.rows.of_scores(ids)
    return np.asarray((C[:, :, None] * X[:, None, :]).reshape(len(C), -1))


class WrittenOut(System):
    """By the features, with E as an array of shape (..., n, m): small problems, signs, stacks.

    Attributes
    ----------
    R, g : ndarray
        In the order of x = (w, f).
    wide : ndarray
        E' and, to its right, the differences of each two of the ``each`` rows that share a cap.
    """

    def __init__(self, E: Array, R: Array, g: Array, each: int = 1) -> None:
        self.transposed = np.ascontiguousarray(E.swapaxes(-1, -2))
        self.E = self.transposed.swapaxes(-1, -2)
        self.R = R
        self.g = g
        self.wide = self.transposed
        if each > 1:
            self.pairs = a, b = np.triu_indices(each, 1)
            of = E.reshape(each, -1, E.shape[1])
            apart = (of[a] - of[b]).reshape(-1, E.shape[1])
            self.wide = np.hstack([self.transposed, apart.T])

    @classmethod
    def of(cls, qp: QuadraticProgram) -> WrittenOut:
        """System of a program; sign constraints are unit rows, after the others."""
        A = written_rows(qp, qp.rows.ids)
        F = qp.of_f(qp.rows.ids)
        if qp.signs is not None:
            # scaled by the features, so that their values are of the size of the examples'
            unit = np.abs(A).max(axis=0)
            units = np.diag(qp.signs * np.where(unit > 0.0, unit, 1.0))[qp.signs != 0]
            A = np.vstack([A, units])
            F = np.pad(F, ((0, len(units)), (0, 0)))
        R = np.append(np.ones(A.shape[1]), np.zeros(qp.n_free))
        g = np.append(np.zeros(A.shape[1]), qp.g)
        each = 1 if qp.cap is None else qp.k - 1
        return cls(np.hstack([A, F]), R, g, each)

    def take(self, some: Array) -> WrittenOut:
        """Systems of some programs of a stack."""
        E = self.transposed[some].swapaxes(-1, -2)
        return WrittenOut(E, self.R, self.g)

    def start(self, u: Array) -> Array:
        """``x = (A'u, 0)``."""
        return self.R * self.adjoint(u)

    def values(self, x: Array) -> Array:
        """``E x``."""
        return (self.E @ x[..., None])[..., 0]

    def adjoint(self, u: Array) -> Array:
        """``E'u``."""
        return (self.transposed @ u[..., None])[..., 0]

    def fall(self, x: Array, u: Array) -> Array:
        """``R x + g - E'u``, which is 0 at the solution."""
        return self.R * x + self.g - self.adjoint(u)

    def values_and_fall(self, x: Array, u: Array) -> tuple[Array, Array]:
        return self.values(x), self.fall(x, u)

    def square(self, x: Array) -> Array:
        """``|w|^2``."""
        return np.asarray(np.vecdot(self.R * x, x)[..., None])

    def point(self, x: Array, qp: QuadraticProgram) -> tuple[Array, Array]:
        """The predictor w and the unknowns f."""
        m = len(x) - qp.n_free
        return x[:m].reshape(qp.k, -1), x[m:]

    def moments(self, weights: RowWeights) -> Array:
        """``E'WE``."""
        wide = self.transposed
        v = weights.own
        if weights.pull is not None:
            of = weights.linked.reshape(weights.free.shape)
            a, b = self.pairs
            wide = self.wide
            v = np.append(v, of[a] * of[b])
        root = wide * np.sqrt(v)[..., None, :]
        return root @ root.swapaxes(-1, -2)

    def factor(self, weights: RowWeights) -> Direction:
        return self._direction(self.moments(weights), weights)

    def _direction(self, H: Array, weights: RowWeights) -> Direction:
        """From ``E'WE``; ``pulled`` is ``E'W h``, where it is known."""
        np.einsum("...ii->...i", H)[...] += self.R
        solve = Factor(H)

        def direction(
            h: Array, fall: Array, pulled: Array | None = None
        ) -> tuple[Array, Array]:
            if pulled is None:
                pulled = self.adjoint(weights.times(h))
            dx = solve(pulled - fall)
            return dx, weights.times(h - self.values(dx))

        return direction


class Features(WrittenOut):
    """By the features, with products by X instead of a dense E.

    x holds w and an intercept per score, except the last one's with several classes; then rho.
    """

    def __init__(self, qp: QuadraticProgram) -> None:
        self.qp = qp
        shape = (qp.k, qp.design.d + 1)
        kept = np.ones(shape, bool)
        kept[qp.n_intercepts :, -1] = False
        number = (np.cumsum(kept) - 1).reshape(shape)
        self.kept = np.flatnonzero(kept)
        m = np.count_nonzero(kept)
        self.of_w = number[:, :-1]
        self.of_f = number[: qp.n_intercepts, -1]
        if qp.level:
            self.of_f = np.append(self.of_f, m)
            m += 1
        self.R = np.ones(m)
        self.R[self.of_f] = 0.0
        self.g = np.zeros(m)
        self.g[self.of_f] = qp.g

    def values(self, x: Array) -> Array:
        return self.qp.rows.flat(self.qp.matvec(*self.point(x, self.qp)))

    def adjoint(self, u: Array) -> Array:
        alpha = self.qp.rows.shaped(u)
        return self.joined(self.qp.rmatvec(alpha), self.qp.balance(alpha))

    def values_and_fall(self, x: Array, u: Array) -> tuple[Array, Array]:
        """Both, by one pass over X."""
        qp = self.qp
        w, f = self.point(x, self.qp)
        alpha = self.qp.rows.shaped(u)
        S, found = qp.design.scores_and_combination(w, qp.rows.coefficients(alpha))
        fall = self.R * x + self.g - self.joined(found, qp.balance(alpha))
        return qp.rows.flat(qp.values(S, f)), fall

    def begun(self, x: Array, u: Array, weights: RowWeights, goal: Array) -> Begun:
        """Of blocks elsewhere, by one pass and that for the first direction's values."""
        qp = self.qp
        if qp.k > 1 or getattr(qp.design.X, "in_memory", True):
            return super().begun(x, u, weights, goal)
        rows = qp.rows
        alpha = rows.shaped(u)
        own = rows.shaped(weights.own)
        w, f = self.point(x, qp)
        of_f = qp.values(np.zeros((qp.examples.n, 1)), f)
        V = rows.coefficients(alpha)
        C = rows.coefficients(own * (goal - of_f))
        (v,) = rows.squares(own, None).T
        S, found, pulled, H = qp.design.newton_sums(w, V, C, v)
        values = qp.values(S, f)
        h = goal - values
        fall = self.R * x + self.g - self.joined(found, qp.balance(alpha))
        direction = self._direction(self._bordered(H, own), weights)
        first = direction(h, fall, self.joined(pulled, qp.balance(own * h)))
        return values, fall, direction, first

    def joined(self, w: Array, f: Array) -> Array:
        """The x of w and f."""
        x = np.empty(len(self.R))
        x[self.of_w] = w
        x[self.of_f] = f
        return x

    def point(self, x: Array, qp: QuadraticProgram) -> tuple[Array, Array]:
        return x[self.of_w], x[self.of_f]

    def moments(self, weights: RowWeights) -> Array:
        shaped = self.qp.rows.shaped
        linked = None if weights.pull is None else shaped(weights.linked)
        return self.of_shaped(shaped(weights.own), linked)

    def of_shaped(self, own: Array, linked: Array | None) -> Array:
        """``E'WE`` for weights in the shape of alpha."""
        qp = self.qp
        return self._bordered(qp.rows.moments(qp.design, own, linked), own)

    def _bordered(self, H: Array, own: Array) -> Array:
        """``E'WE`` from the moments: without those of fixed intercepts, with those of rho."""
        qp = self.qp
        if len(self.kept) < len(H):
            most = len(self.kept)
            whole = self.kept[-1] < most
            H = H[:most, :most] if whole else H[np.ix_(self.kept, self.kept)]
        if qp.level:
            c = qp.level * self.joined(qp.rmatvec(own), qp.balance(own))
            H = np.block([[H, c[:-1, None]], [c]])
        return H


class ByRows(System):
    """By the rows, with their inner products ``K = AA'``, of shape (..., n, n), and F.

    x is ``(c, f)`` with ``w = A'c``. For intervals, K is the Gram matrix of the examples, and each
    has two rows: ``at`` and ``sign`` are the example and the sign of each row.
    """

    def __init__(
        self,
        K: Array,
        F: Array,
        g: Array,
        at: Array | None = None,
        sign: Array | float = 1.0,
    ) -> None:
        self.K = K
        self.F = F
        self.g = g
        self.at = at
        self.sign = sign
        self.n = F.shape[-2]
        self.transposed = F.swapaxes(-1, -2)

    @classmethod
    def of(cls, qp: QuadraticProgram) -> ByRows:
        """System of a program without sign constraints."""
        rows = qp.rows
        F = qp.of_f(qp.rows.ids)
        if not isinstance(rows, IntervalEnds):
            return cls(qp.gram(rows.ids, rows.ids), F, qp.g)
        few, at = np.unique(rows.example, return_inverse=True)
        return cls(qp.examples.gram(few, few), F, qp.g, at, rows.sign)

    def take(self, some: Array) -> ByRows:
        return ByRows(self.K[some], self.F[some], self.g)

    def gathered(self, u: Array) -> Array:
        """Coefficients of the examples."""
        if self.at is None:
            return u
        return np.bincount(self.at, self.sign * u, len(self.K))

    def spread(self, v: Array) -> Array:
        """The adjoint of ``gathered``: values of the rows."""
        return v if self.at is None else self.sign * v[self.at]

    def image(self, c: Array) -> Array:
        """``AA'c``."""
        return self.spread((self.K @ self.gathered(c)[..., None])[..., 0])

    def start(self, u: Array) -> Array:
        f = np.zeros((*u.shape[:-1], self.F.shape[-1]))
        return np.concatenate([u, f], axis=-1)

    def values(self, x: Array) -> Array:
        c = x[..., : self.n]
        f = x[..., self.n :]
        return self.image(c) + (self.F @ f[..., None])[..., 0]

    def fall(self, x: Array, u: Array) -> Array:
        sums = (self.transposed @ u[..., None])[..., 0]
        return np.concatenate([x[..., : self.n] - u, self.g - sums], axis=-1)

    def values_and_fall(self, x: Array, u: Array) -> tuple[Array, Array]:
        return self.values(x), self.fall(x, u)

    def square(self, x: Array) -> Array:
        c = x[..., : self.n]
        return np.asarray(np.vecdot(c, self.image(c))[..., None])

    def point(self, x: Array, qp: QuadraticProgram) -> tuple[Array, Array]:
        return qp.rmatvec(qp.rows.shaped(x[: self.n])), x[self.n :]

    def factor(self, weights: RowWeights) -> Direction:
        n = self.n
        both = weights
        if self.at is not None:  # both rows of an interval share their example
            both = RowWeights(1.0 / np.bincount(self.at, weights.own, len(self.K)))
        factor = Factor(both.added_to(self.K))

        def solve(h: Array) -> Array:
            if self.at is None:
                return factor.columns(h)
            du = np.empty(h.shape)
            for j, column in enumerate(h.T):
                goal = both.h * self.gathered(weights.own * column)
                move = goal - both.h * factor(goal)
                du[:, j] = weights.own * (column - self.spread(move))
            return du

        of_F = solve(self.F)
        schur = self.transposed @ of_F

        def direction(h: Array, fall: Array) -> tuple[Array, Array]:
            missed = fall[..., :n]
            du = solve((h + self.image(missed))[..., None])
            df = np.linalg.solve(schur, self.transposed @ du - fall[..., n:, None])
            du = (du - of_F @ df)[..., 0]
            return np.concatenate([du - missed, df[..., 0]], axis=-1), du

        return direction


def side_of(qp: QuadraticProgram) -> WrittenOut | ByRows:
    """The form with the smaller systems: by the features (dense E or products), or by the rows."""
    d = qp.examples.d
    rows = qp.rows.n_rows
    if qp.signs is not None:
        return WrittenOut.of(qp)
    if d is None or qp.k * d > (rows if qp.several else qp.examples.n):
        return ByRows.of(qp)
    small = rows * qp.k * d <= IN_CACHE and not qp.examples.sparse
    if qp.cap is not None:  # E has blocks of zeros
        small = rows * (qp.k * d) ** 2 * qp.k <= TINY and small
    return WrittenOut.of(qp) if small else Features(qp)


# For sparse and dense programs: limits of free rows for systems by the rows, and of unknowns for
# systems by the features. FIRST: unknowns above which the first system, in which all rows are free,
# is solved by conjugate gradients, as it takes few iterations.
FREE_ROWS = (200, 4000)
UNKNOWNS = (300, 1200)
FIRST = 200
# Relative residual of conjugate gradients, and their largest number of iterations.
RESIDUAL = 0.1
PRODUCTS = 300
# Relative to the entries: changes of D that are rounding, and what regularises f in case none of
# its rows is free, by the features and by products.
SAME = 1e-12
OF_FEATURES = 1e-13
OF_PRODUCTS = 1e-12
NOTHING = 1e-300
STIFF = 1e6  # a term, relative to s, that keeps sums at their caps


class NewtonSystem:
    """The sequence of Newton systems ``(R + E'DE) (dw, df) = (r, 0)``.

    D is given as by ``Loss.derivative``: own and linked, in the shape of alpha.

    Attributes
    ----------
    qp : QuadraticProgram
    begun : bool
        Whether a system was solved before.
    features : Features or None
    own : ndarray
        The last D, and ``E'DE`` for it in H, as only rows with a changed D are updated; empty where
        there is none, or where rows are linked.
    H : ndarray
    """

    def __init__(self, qp: QuadraticProgram) -> None:
        self.qp = qp
        self.begun = False
        self.features = None if qp.examples.d is None else Features(qp)
        self.own = np.zeros(0)
        self.H = np.zeros(())

    def direction(
        self, own: Array, linked: Array | None, s: Array, r: Array
    ) -> tuple[Array, Array]:
        """Directions dw and df."""
        qp = self.qp
        features = self.features
        free = np.flatnonzero(own if linked is None else own + linked)
        if not free.size:
            return r, np.zeros(qp.n_free)
        dense = not qp.examples.sparse
        first = not self.begun
        self.begun = True
        if features is None or free.size <= min(FREE_ROWS[dense], qp.k * qp.design.d):
            return self._by_rows(free, own, linked, s, r)
        unknowns = len(features.R)
        if unknowns > UNKNOWNS[dense] or (first and unknowns > FIRST):
            return self._by_products(own, linked, r)
        x = features.joined(r, np.zeros(qp.n_free))
        H = np.zeros(())
        change = own
        if linked is None and self.own.size:
            times = float(own.max() / self.own.max())
            moved = own - times * self.own
            moved[np.abs(moved) <= SAME * own] = 0.0
            if np.count_nonzero(moved) < np.count_nonzero(own):
                H = times * self.H
                change = moved
        H = H + features.of_shaped(change, linked)
        if linked is None:
            self.own = own
            self.H = H.copy()
        else:
            self.own = np.zeros(0)
        np.einsum("ii->i", H)[...] += np.maximum(features.R, OF_FEATURES * H.max())
        return features.point(Factor(H)(x), qp)

    def _by_rows(
        self, free: Array, own: Array, linked: Array | None, s: Array, r: Array
    ) -> tuple[Array, Array]:
        qp = self.qp
        M = qp.gram(free, free)
        F = qp.of_f(free)
        h = np.broadcast_to(s, qp.shape).ravel()[free]
        np.einsum("ii->i", M)[...] += h
        if linked is not None:
            example = free // qp.k
            full = linked.ravel()[free] > 0.0
            M += (example[:, None] == example) * (STIFF * h * full)
        values = qp.rows.values(qp.examples.scores(r)).ravel()[free]
        solved = Factor(M).columns(np.column_stack([values, F]))
        y = solved[:, 0]
        of_F = solved[:, 1:]
        df = -least_squares(F.T @ of_F, F.T @ y)
        alpha = np.zeros(qp.shape)
        alpha.flat[free] = y + of_F @ df
        return r - qp.rmatvec(alpha), df

    def _by_products(
        self, own: Array, linked: Array | None, r: Array
    ) -> tuple[Array, Array]:
        """Conjugate gradients on the free examples, with a diagonal preconditioner."""
        qp = self.qp
        few = np.flatnonzero(own if own.ndim == 1 else own.any(axis=1))
        if linked is not None:
            few = np.flatnonzero((own + linked).any(axis=1))
        if 2 * len(few) < len(own):
            qp = qp.restrict(few)
            own = own[few]
            linked = None if linked is None else linked[few]
        n_free = qp.n_free

        def product(x: Array) -> Array:
            w = x[: len(x) - n_free].reshape(r.shape)
            f = x[len(x) - n_free :]
            m = qp.matvec(w, f)
            y = own * m
            if linked is not None:
                sums = linked.sum(axis=1)[:, None]
                y += linked * (sums * m - (linked * m).sum(axis=1)[:, None])
            return np.append(w + qp.rmatvec(y), qp.balance(y))

        H = curvature_of_f(qp, own, linked)
        of_f = Factor(H + (OF_PRODUCTS * H.trace() + NOTHING) * np.eye(n_free))
        V = qp.rows.squares(own, linked)
        squares = 1.0 + np.ravel(sum(qp.design.each_rows(_squares, V)))

        def precondition(x: Array) -> Array:
            return np.append(x[: r.size] / squares, of_f(x[r.size :]))

        right = np.append(r, np.zeros(n_free))
        size = RESIDUAL * np.sqrt(float(right @ precondition(right)))
        x = conjugate_gradients(product, precondition, 0.0 * right, right, size)[0]
        return x[: r.size].reshape(r.shape), x[r.size :]


def _squares(X: Stored, V: Array) -> Array:
    """``sum_i V_ij x_i^2`` for each feature, ignoring the mean of sparse examples."""
    squares = X * X if isinstance(X, np.ndarray) else X.multiply(X)
    return (squares.T @ V).T


def conjugate_gradients(
    multiply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    x: Array,
    r: Array,
    size: float,
) -> tuple[Array, Array]:
    """Conjugate gradients from x with residual r, until its norm by the preconditioner is <= size.

    With a projection as preconditioner, the equations are solved in its range, which contains x.
    """
    q = precondition(r)
    z = q
    rq = float(r @ q)
    for _ in range(PRODUCTS):
        if not rq > size * size:
            break
        Hz = multiply(z)
        bent = float(z @ Hz)
        if not bent > 0.0:  # rounding
            break
        x = x + rq / bent * z
        r = r - rq / bent * Hz
        q = precondition(r)
        before = rq
        rq = float(r @ q)
        z = q + rq / before * z
    return x, r


def curvature_of_f(qp: QuadraticProgram, own: Array, linked: Array | None) -> Array:
    """``F'DF``."""
    few = slice(0, qp.n_intercepts)
    H = qp.rows.curvature(own, linked)[few, few]
    if qp.level:
        c = qp.level * qp.balance(own)
        H = np.block([[H, c[:-1, None]], [c]])
    return H
