"""How the scores of the examples become the values of rows: the multiclass reduction.

Row r has the value ``c_r' S[e_r]`` for scores S of shape (n, k): as a row of A it is its example
``x_e`` times its coefficients ``c_r`` of the k scores. Rows are never formed as a matrix.

==================  ======================  ===============================  ============  =========
map                 problems                value of a row                   shape         labels
==================  ======================  ===============================  ============  =========
``SignedExamples``  two classes, one class  ``sign_i S[i, 0]``               (n,)          the sign
``IntervalEnds``    regression              ``sign_r S[example_r, output_r]`` (n_rows,)    the sign
``ClassPairs``      k > 2 classes           ``S[i, c_i] - S[i, j]``, j != c  (n, k)        classes c
==================  ======================  ===============================  ============  =========

Rows of ``ClassPairs`` are ``sqrt(2)`` times as long as their examples. A *flat index* of a row is
its index in the flattened array of this shape; an entry for an example's own class is no row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod

import numpy as np

from marginsvm._threads import cached_property
from marginsvm._typing import Array, Index, Values
from marginsvm.problem.design import Design
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.intercepts import laplacian
from marginsvm.problem.norms import least_squares

# Balancing of several classes: the part of a cap that counts as rounding; the least factor of an
# alpha in a step; rounding of F'alpha for each class, and of the sum, relative to the sum; and the
# part of the residual that a step of the same kind has to leave at most.
FULL = 1e-14
LEAST = 0.1
ROUNDING = 1e-15
ROUNDED_SUM = 1e-12
HALF = 0.5
BALANCING_STEPS = 100


class RowMap(ABC):
    """The map from scores to values of rows.

    Attributes
    ----------
    n, k : int
        Examples, and scores of an example.
    shape : tuple of int
        Shape of values and of alpha.
    n_intercepts : int
        Number of free intercepts: k, or k - 1 if scores may be shifted by one number.
    square : int
        Squared norm of a row, relative to its example's.
    links : int
        Largest number of rows by which two intercepts are linked.
    cycle : int
        Number of rows that bounds the lengths of all cycles of classes.
    """

    n: int
    k: int
    shape: tuple[int, ...]
    n_intercepts: int
    square = 1
    links = 1
    cycle = 1

    # The map and its adjoint.

    @abstractmethod
    def values(self, S: Array) -> Array:
        """Values of the rows from scores of shape (n, k); 0 where there is no row."""

    @abstractmethod
    def coefficients(self, alpha: Array) -> Array:
        """The adjoint of ``values``: coefficients of the examples, of shape (n, k)."""

    @abstractmethod
    def bounds(self, E: Array) -> Array:
        """Bounds on changes of the values, from bounds E on those of the scores."""

    @abstractmethod
    def gram(self, examples: FloatExamples, i: Array, j: Array) -> Array:
        """Inner products of rows, given by their flat indices."""

    # Rows, one by one.

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return prod(self.shape)

    @cached_property
    def ids(self) -> Array:
        """Flat indices of all rows; of several classes, the first row of each example first."""
        return np.arange(prod(self.shape))

    @cached_property
    def at(self) -> Array:
        """The example of each row."""
        return self.example_of(self.ids)

    @abstractmethod
    def example_of(self, ids: Array) -> Array:
        """Examples of rows given by their flat indices."""

    @abstractmethod
    def of_scores(self, ids: Array) -> Array:
        """Coefficients of the k scores in rows given by their flat indices."""

    def flat(self, values: Array) -> Array:
        """Values of all rows in one flat order, from an array that broadcasts against alpha."""
        return np.broadcast_to(values, self.shape)

    def shaped(self, u: Array) -> Array:
        """Values in the shape of alpha, from those of all rows."""
        return u[: self.n_rows]

    def fill(self, values: Array, number: float) -> Array:
        """Set the entries that are no rows, in place."""
        return values

    def least(self, values: Array) -> Array:
        """The smallest value of each example, or of each row that stands alone."""
        return values

    def stated(self, table: Array) -> Array:
        """Alpha from published weights of shape (n, columns)."""
        return table[:, 0]

    # Groups: the classes that a row holds apart.

    @property
    @abstractmethod
    def labels(self) -> Array:
        """Class of each example or, without several, 0 and 1 by the sign of each row."""

    @property
    def groups(self) -> Array:
        """The pair of classes of each row, numbered from 0; in the order of ``ids``."""
        return self.labels

    @abstractmethod
    def opposed(self, i: int, h: int) -> list[int]:
        """Flat indices of the rows that hold two examples of different classes apart."""

    @abstractmethod
    def sums(self, alpha: Array, total: Callable[[Array], Values]) -> list[Values]:
        """``F'alpha`` for the intercepts of all k scores, each computed by ``total``."""

    @abstractmethod
    def balanced(
        self, alpha: Array, free: bool, mass: float, cap: Array | None
    ) -> Array:
        """A point near alpha, which is not negative, with ``F'alpha = 0`` if intercepts are free.

        Several classes: alpha is multiplied by ``1 + F x`` until its sum is ``mass`` (0: any), and
        by factors below the caps. Otherwise the sign with the larger sum is scaled down.
        """

    @abstractmethod
    def take(self, i: Array) -> tuple[Array, RowMap]:
        """Examples of some rows (of several classes: some examples), and the map of these rows."""

    # Sums of squares, for weights ``own``, and ``linked`` of pairs of rows of an example.

    @abstractmethod
    def moments(self, examples: Design, own: Array, linked: Array | None) -> Array:
        """``E'WE`` for E = [x, 1] in each row, of shape (k (d + 1), k (d + 1))."""

    @abstractmethod
    def curvature(self, own: Array, linked: Array | None) -> Array:
        """``F'WF``, of shape (k, k)."""

    @abstractmethod
    def squares(self, own: Array, linked: Array | None) -> Array:
        """Weights of the squares of examples in the diagonal of ``A'WA``, of shape (n, k)."""


class SignedExamples(RowMap):
    """One row for each example: ``sign_i x_i``.

    Parameters
    ----------
    sign : ndarray of shape (n,)

    Attributes
    ----------
    cell : tuple
        Index of the score of each row.
    """

    cell: tuple[Index, Index | int] = (slice(None), 0)

    def __init__(self, sign: Array) -> None:
        self.sign = sign
        self.shape = sign.shape
        self.n = len(sign)
        self.k = 1
        self.n_intercepts = 1

    def values(self, S: Array) -> Array:
        return self.sign * S[self.cell]

    def coefficients(self, alpha: Array) -> Array:
        return (self.sign * alpha)[:, None]

    def bounds(self, E: Array) -> Array:
        return E[self.cell]

    def gram(self, examples: FloatExamples, i: Array, j: Array) -> Array:
        signs = np.multiply.outer(self.sign[i], self.sign[j])
        return examples.gram(self.example_of(i), self.example_of(j)) * signs

    def example_of(self, ids: Array) -> Array:
        return ids

    def of_scores(self, ids: Array) -> Array:
        return self.sign[ids, None].astype(float)

    @cached_property
    def labels(self) -> Array:
        return (self.sign > 0).astype(int)

    def opposed(self, i: int, h: int) -> list[int]:
        return [i, h]

    def sums(self, alpha: Array, total: Callable[[Array], Values]) -> list[Values]:
        return [total(self.sign * alpha)]

    def balanced(
        self, alpha: Array, free: bool, mass: float, cap: Array | None
    ) -> Array:
        if not free:
            return alpha
        up = self.sign > 0
        high = float(alpha[up].sum())
        low = float(alpha[~up].sum())
        if min(high, low) <= 0.0:
            return np.zeros_like(alpha)
        return alpha * np.where(up, min(1.0, low / high), min(1.0, high / low))

    def take(self, i: Array) -> tuple[Array, RowMap]:
        return i, SignedExamples(self.sign[i])

    def moments(self, examples: Design, own: Array, linked: Array | None) -> Array:
        (v,) = self.squares(own, linked).T
        return examples.second_moments(v)

    def curvature(self, own: Array, linked: Array | None) -> Array:
        return np.diag(np.bincount(0 * self.labels, own))

    def squares(self, own: Array, linked: Array | None) -> Array:
        return own[:, None]


class IntervalEnds(SignedExamples):
    """A row for each finite end of the intervals of examples and outputs.

    Several outputs have one norm, and no free intercepts. Sums of squares are of one output: no
    solver takes several.

    Parameters
    ----------
    sign, example, output : ndarray of shape (n_rows,)
        1 for lower ends, -1 for upper ones; example and output of each row.
    n, k : int
        Examples and outputs.
    """

    cell: tuple[Array, Values]

    def __init__(
        self, sign: Array, example: Array, output: Array, n: int, k: int
    ) -> None:
        super().__init__(sign)
        self.example = example
        self.output = output
        self.n = n
        self.k = k
        self.n_intercepts = k
        self.cell = (example, output if k > 1 else 0)

    def coefficients(self, alpha: Array) -> Array:
        v = self.sign * alpha
        V = np.zeros((self.n, self.k), dtype=v.dtype)
        np.add.at(V, self.cell, v)
        return V

    def gram(self, examples: FloatExamples, i: Array, j: Array) -> Array:
        G = super().gram(examples, i, j)
        return G * np.equal.outer(self.output[i], self.output[j]) if self.k > 1 else G

    def example_of(self, ids: Array) -> Array:
        return self.example[ids]

    def of_scores(self, ids: Array) -> Array:
        C = np.zeros((len(ids), self.k))
        C[np.arange(len(ids)), self.output[ids]] = self.sign[ids]
        return C

    def stated(self, table: Array) -> Array:
        of = self.sign * table[self.cell]
        return np.maximum(of, 0 * of)

    def take(self, i: Array) -> tuple[Array, RowMap]:
        few, at = np.unique(self.example[i], return_inverse=True)
        return few, IntervalEnds(self.sign[i], at, self.output[i], len(few), self.k)

    def squares(self, own: Array, linked: Array | None) -> Array:
        return np.bincount(self.example, own, self.n)[:, None]


class ClassPairs(RowMap):
    """Row (i, j) is ``x_i (e_c - e_j)'`` for an example of class c and another class j.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of each example.
    k : int
        Number of classes.
    """

    square = 2

    def __init__(self, codes: Array, k: int) -> None:
        self.codes = codes
        self.n = len(codes)
        self.k = k
        self.n_intercepts = k - 1
        self.shape = (len(codes), k)
        self.links = k - 1
        self.cycle = k * k

    @cached_property
    def own(self) -> tuple[Array, Array]:
        """Index of the entries that are no rows: of the examples' own classes."""
        return np.arange(self.n), self.codes

    @property
    def n_rows(self) -> int:
        return self.n * (self.k - 1)

    @cached_property
    def ids(self) -> Array:
        rows = np.flatnonzero(self.codes[:, None] != np.arange(self.k))
        return rows.reshape(self.n, -1).T.ravel()

    def values(self, S: Array) -> Array:
        return S[self.own][:, None] - S

    def coefficients(self, alpha: Array) -> Array:
        V = -alpha
        V[self.own] += alpha.sum(axis=1)
        return V

    def bounds(self, E: Array) -> Array:
        return E + E[self.own][:, None]

    def gram(self, examples: FloatExamples, i: Array, j: Array) -> Array:
        e, a = np.divmod(i, self.k)
        h, b = np.divmod(j, self.k)
        few, at = np.unique(e, return_inverse=True)
        rest, there = (few, at) if j is i else np.unique(h, return_inverse=True)
        c = self.codes[e][:, None]
        d = self.codes[h]
        a = a[:, None]
        signs = 1 * (c == d) - (c == b) - (a == d) + (a == b)
        return examples.gram(few, rest)[at[:, None], there] * signs

    def example_of(self, ids: Array) -> Array:
        return ids // self.k

    def of_scores(self, ids: Array) -> Array:
        example, other = np.divmod(ids, self.k)
        identity = np.eye(self.k)
        return identity[self.codes[example]] - identity[other]

    def flat(self, values: Array) -> Array:
        return super().flat(values).ravel()[self.ids]

    def shaped(self, u: Array) -> Array:
        alpha = np.zeros(self.shape)
        alpha.flat[self.ids] = u
        return alpha

    def fill(self, values: Array, number: float) -> Array:
        values[self.own] = number
        return values

    def least(self, values: Array) -> Array:
        return values.min(axis=1)

    def stated(self, table: Array) -> Array:
        return self.fill(table.copy(order="K"), 0 * table[0, 0])

    @property
    def labels(self) -> Array:
        return self.codes

    @cached_property
    def groups(self) -> Array:
        return self.codes[self.at] * self.k + self.ids % self.k

    def opposed(self, i: int, h: int) -> list[int]:
        return [i * self.k + int(self.codes[h]), h * self.k + int(self.codes[i])]

    def excess(self, alpha: Array, c: int, total: Callable[[Array], Values]) -> Values:
        """The entry of ``F'alpha`` for the intercept of a class."""
        mine = self.codes == c
        return total(np.concatenate([alpha[mine].ravel(), -alpha[~mine, c]]))

    def sums(self, alpha: Array, total: Callable[[Array], Values]) -> list[Values]:
        return [self.excess(alpha, c, total) for c in range(self.k)]

    def balanced(
        self, alpha: Array, free: bool, mass: float, cap: Array | None
    ) -> Array:
        some = np.flatnonzero(alpha.any(axis=1))
        if not len(some):
            return alpha
        u = alpha[some]  # scaled in each step
        part = ClassPairs(self.codes[some], self.k)
        cap = None if cap is None else cap[some]
        m = free * (self.k - 1)
        if mass:
            u *= mass / u.sum()
        full = np.zeros(len(u), bool)  # examples whose alpha sums to their cap
        keeps_sums = True  # whether the next step leaves these sums as they are
        last = np.inf  # residual before the last step
        for _ in range(BALANCING_STEPS):
            if cap is not None:
                sums = u.sum(axis=1)
                full = sums >= (1.0 - FULL) * cap
                u[full] *= (cap[full] / sums[full])[:, None]
            total = u.sum()
            off = part.coefficients(u).sum(axis=0)[:m] / total
            short = (mass - total) / total if mass else 0.0
            most = np.abs(off).max(initial=0.0)
            if most <= ROUNDING * self.k and abs(short) <= ROUNDED_SUM:
                break
            residual = max(most, abs(short))
            if not residual <= HALF * last:
                keeps_sums = not keeps_sums
            last = residual
            own = u
            linked = None
            if keeps_sums and full.any():
                own = np.where(full[:, None], 0.0, u)
                linked = (u - own) / np.sqrt(sums)[:, None]
            H = np.zeros((m + 1, m + 1))
            H[:m, :m] = part.curvature(own, linked)[:m, :m]
            if mass:
                H[m, :m] = H[:m, m] = part.coefficients(own).sum(axis=0)[:m]
                H[m, m] = own.sum()
            x = least_squares(H, total * np.append(-off, short))
            offsets = np.append(x[:m], np.zeros(self.k - m))
            move = offsets[part.codes][:, None] - offsets + x[m]
            if linked is not None:
                share = u[full] / u[full].sum(axis=1, keepdims=True)
                move[full] -= (share * move[full]).sum(axis=1, keepdims=True)
            u *= np.maximum(1.0 + move, LEAST)
        else:
            if mass:
                u *= mass / u.sum()
            elif cap is not None:
                u *= float((cap / np.maximum(u.sum(axis=1), cap)).min())
        alpha[some] = u
        return alpha

    def take(self, i: Array) -> tuple[Array, RowMap]:
        return i, ClassPairs(self.codes[i], self.k)

    def moments(self, examples: Design, own: Array, linked: Array | None) -> Array:
        k = self.k
        d1 = examples.d + 1
        members = [np.flatnonzero(self.codes == c) for c in range(k)]
        blocks = np.zeros((k, d1, k, d1))
        for a in range(k):
            for b in range(a):
                v = np.zeros(self.n) if linked is None else linked[:, a] * linked[:, b]
                v[members[a]] += own[members[a], b]
                v[members[b]] += own[members[b], a]
                if v.any():
                    M = examples.second_moments(v)
                    blocks[a, :, a] += M
                    blocks[b, :, b] += M
                    blocks[a, :, b] -= M
                    blocks[b, :, a] -= M
        return blocks.reshape(k * d1, k * d1)

    def curvature(self, own: Array, linked: Array | None) -> Array:
        k = self.k
        pairs = self.codes[:, None] * k + np.arange(k)
        H = laplacian(np.bincount(pairs.ravel(), own.ravel(), k * k).reshape(k, k))
        if linked is not None:
            H += np.diag(linked.sum(axis=1) @ linked) - linked.T @ linked
        return H

    def squares(self, own: Array, linked: Array | None) -> Array:
        V = own.copy()
        V[self.own] += own.sum(axis=1)
        return (
            V if linked is None else V + linked * (linked.sum(axis=1)[:, None] - linked)
        )
