"""Rows that are elsewhere: vectors remember answers instead of weights on rows.

Every vector of a method whose only moves are softmax responses is a combination of the
answers it was given, and an answer is known by a few numbers: the predictor that was
answered, and what the weights of each group were divided by. So nothing that grows with the
number of examples moves during the rounds; weights on rows are computed when a proof is due, all
answers together in one product while a block is at hand.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.bounds import SURCHARGE
from marginsvm.certify.rounding import PAIRWISE, UNIT, summed
from marginsvm.data import passes
from marginsvm.data.passes import Block, Centre, Sums
from marginsvm.kernel_matrix.adapter import BestResponse
from marginsvm.kernel_matrix.linear import LinearAdapter
from marginsvm.kernel_matrix.responses import (
    Response,
    rebalancing,
    settle,
    softmax,
    softmax_weights,
)
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

_AT_ONCE = 64  # answers whose scores a block computes in one product


class Played(NamedTuple):
    """An answer: the softmax of the margins of a predictor.

    Attributes
    ----------
    W : ndarray of shape (n_features,) or (k, n_features)
    shift : float or ndarray of shape (k,)
    mu : float
    exponents : ndarray of shape (k, k)
        Logarithm of what the weights of each group are multiplied with, to sum to 1.
    """

    W: Array
    shift: Array | float
    mu: float
    exponents: Array


class Mixture(NamedTuple):
    """``sum_t c_t q_t`` over answers, and over weights on rows that were given outright.

    Attributes
    ----------
    answers : list of Played
    c : ndarray of shape (n_answers,)
    given : ndarray of shape (n_given,)
        Coefficients of weights that travel with their rows.
    factors : ndarray of shape (k, k)
        Of the groups: they take the rounding out of the balance.
    """

    answers: list[Played]
    c: Array
    given: Array
    factors: Array

    def weights(self, rows: Rows, block: slice, X: Any, given: tuple[Array, ...]) -> Array:
        """Weights of the rows of a block."""
        q = np.zeros((X.shape[0], *rows.shape[1:]))
        for i in range(0, len(self.answers), _AT_ONCE):
            some = self.answers[i : i + _AT_ONCE]
            W = np.concatenate([np.atleast_2d(answer.W) for answer in some])
            F = (X @ W.T).reshape(len(q), len(some), -1)
            for t, (answer, c) in enumerate(zip(some, self.c[i : i + _AT_ONCE], strict=True)):
                scores = F[:, t].reshape(len(q), *rows.score_shape[1:])
                M = rows.margins(scores - answer.shift, block).astype(np.float64, copy=False)
                q += c * np.exp(rows.expand(answer.exponents, block) - M / answer.mu)
        if rows.weights is not None:
            q *= rows.per_example(rows.weights[block])
        for c, weights in zip(self.given, given, strict=True):
            q += c * weights[block]
        return q * rows.expand(self.factors, block)


class LazyWeightsAdapter(LinearAdapter):
    """Rows of examples in a store far away; hard margins, and responses by softmax.

    Parameters
    ----------
    X, rows, C, norm, constant, plan
        As in LinearAdapter.
    capacity : int
        How many answers there may be: the length of the second part of a vector.
    """

    def __init__(self, *common: Any, capacity: int) -> None:
        super().__init__(*common)
        self._capacity = capacity
        self._played: dict[int, Played] = {}
        self._given: dict[int, Array] = {}
        self._proof: tuple[bytes, Mixture, list[Array], Array] | None = None

    def zeros(self) -> Vector:
        return Vector(np.zeros(self._image_shape), np.zeros(self._capacity))

    def _remembered(self, answers: dict[int, Any], answer: Any) -> Array:
        """Coefficients of a new answer."""
        t = len(self._played) + len(self._given)
        if t == self._capacity:
            raise RuntimeError(f"there is room for {self._capacity} answers only")
        answers[t] = answer
        return np.eye(1, self._capacity, t)[0]

    # Rounds.

    def respond(self, w: Vector, mu: float = 1.0, response: Response = softmax) -> BestResponse:
        assert response is softmax, "only a softmax is known by a few numbers"
        self.n_passes += 1
        W, shift = self._weights(w.image, precise=False)
        rows = self.rows
        if self._merges:
            sums = self._fold(partial(_softmax_sums, W=W, shift=shift, mu=mu), Sums.merged)
            low, table = -mu * sums.high, sums.logs
        else:
            low, table = self._fold(partial(_tables, W=W, shift=shift, mu=mu), _merged_tables)
        exponents, beta, log_total = settle(table)
        played = Played(W, shift, mu, exponents)
        if self._merges:
            image = sums.mixed(rows, exponents)
        else:
            image = self._fold(partial(_image, mixture=_alone(played)), np.add)[..., :-1]
        weights = softmax_weights(
            np.empty(0), rows.min_margin(low), mu * beta, log_total - self._log_weight
        )
        image = image.astype(np.float64, copy=False) / self.radius
        return BestResponse(Vector(image, self._remembered(self._played, played)), weights)

    def _fold(self, work: Any, merge: Any, *local: Array) -> Any:
        return self._store.fold(work, merge, self.rows, *local)

    @property
    def _log_weight(self) -> float:
        """Logarithm of the sum of the rows' sample weights."""
        weights, rows = self.rows.weights, self.rows
        total = rows.n_examples if weights is None else float(weights.sum())
        return float(np.log(total * (rows.n_rows / rows.n_examples)))

    # Proofs: the weights themselves.

    def combine(self, q: Array, *, precise: bool = False) -> Vector:
        q = q.reshape(self.rows.shape)
        image = self._adjoint(self.rows.adjoint(q), precise)
        return Vector(image, self._remembered(self._given, q))

    def _mixture(self, w: Vector) -> tuple[Mixture, list[Array]]:
        c = w.coef
        played = [t for t in self._played if c[t] != 0.0]
        given = [t for t in self._given if c[t] != 0.0]
        factors = np.ones((self.rows.n_groups, self.rows.n_groups))
        mixture = Mixture([self._played[t] for t in played], c[played], c[given], factors)
        return mixture, [self._given[t] for t in given]

    def _realised(self, w: Vector) -> tuple[Mixture, list[Array], Array]:
        """Weights of a vector, balanced again, and their ``V^T (X, 1)``: two passes."""
        key = w.coef.tobytes()
        if self._proof is None or self._proof[0] != key:
            mixture, given = self._mixture(w)
            table = self._fold(partial(_group_sums, mixture=mixture), np.add, *given)
            factors = np.nan_to_num(rebalancing(table))
            factors *= w.mass / float(np.sum(factors * table))
            mixture = mixture._replace(factors=factors)
            self.n_passes += 2
            image = self._fold(partial(_image, mixture=mixture), np.add, *given)
            self._proof = key, mixture, given, image
        return self._proof[1:]

    def weights(self, w: Vector) -> Array:
        mixture, given, _ = self._realised(w)
        self.n_passes += 1
        return np.concatenate(list(self._map(partial(_weights, mixture=mixture), *given)))

    def refresh(self, w: Vector) -> Vector:
        image = self._realised(w)[2]
        image, rest = image[..., :-1], image[..., -1]
        if self._centre.mean is not None:
            image = image - np.multiply.outer(rest, self._centre.mean)
        return Vector(image / self.radius, w.coef)

    def distribution(self, vector: Vector) -> Array:
        """Weights as they are: changed in their last digits, they would not be these answers'."""
        q = np.maximum(self.weights(vector), 0.0)
        return q / q.sum()

    def upper_bound(self, vector: Vector) -> float:
        rest, mass = self._realised(vector)[2][..., -1], vector.mass
        imbalance = float(np.abs(rest).sum()) / mass if self.rows.balanced else 0.0
        length = self._norm.dual.length(vector.image.ravel()) / mass * (1.0 + PAIRWISE)
        sums = UNIT * (self.rows.n_examples + 8) * (self._reach + 3.0)
        return length + sums + self._row_error + SURCHARGE * imbalance

    def _lowest(self, w: Vector) -> tuple[Array, None]:
        self.n_passes += 1
        W, shift = self._weights(w.image, precise=True)
        lows = partial(_lows, W=W, shift=shift, centre=self._centre)
        return self._fold(lows, np.minimum), None


def _alone(played: Played) -> Mixture:
    return Mixture([played], np.ones(1), np.empty(0), np.ones_like(played.exponents))


# What a pass computes of some blocks, and how two results become one.


def _softmax_sums(
    rows: Rows, blocks: list[Block], W: Array, shift: Array | float, mu: float
) -> Sums:
    return passes.softmax_sums(rows, blocks, rows.weights, None, W, shift, mu)[1]


def _tables(
    rows: Rows, blocks: list[Block], W: Array, shift: Array | float, mu: float
) -> tuple[Array, Array]:
    """Worst margin of each group, and the logarithm of its weights."""
    span = _span(blocks)
    M = rows.margins(passes.scores(rows, blocks, W, shift, Centre(), False, None), span)
    low = _by_class(rows, span, M, np.min, np.inf)
    finite = np.where(np.isfinite(low), low, 0.0)
    e = np.exp((rows.expand(finite, span) - M) / mu)
    e = e if rows.weights is None else e * rows.per_example(rows.weights[span])
    with np.errstate(divide="ignore"):
        return low, np.log(_by_class(rows, span, e, np.sum, 0.0)) - finite / mu


def _merged_tables(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.minimum(one[0], other[0]), np.logaddexp(one[1], other[1])


def _lows(rows: Rows, blocks: list[Block], W: Array, shift: Array | float, centre: Centre) -> Array:
    span = _span(blocks)
    M = rows.margins(passes.scores(rows, blocks, W, shift, centre, True, None), span)
    return _by_class(rows, span, M, np.min, np.inf)


def _weights(rows: Rows, blocks: list[Block], *given: Array, mixture: Mixture) -> Array:
    return np.concatenate([mixture.weights(rows, block, X, given) for block, X in blocks])


def _group_sums(rows: Rows, blocks: list[Block], *given: Array, mixture: Mixture) -> Array:
    q = _weights(rows, blocks, *given, mixture=mixture)
    return _by_class(rows, _span(blocks), q, np.sum, 0.0)


def _image(rows: Rows, blocks: list[Block], *given: Array, mixture: Mixture) -> Array:
    """``V^T (X, 1)``, in float64."""

    def of(block: slice, X: Any) -> Array:
        V = rows.adjoint(mixture.weights(rows, block, X, given), block)
        image = passes.weighted_sum(rows, [(slice(None), X)], V, np.float64, Centre())
        return np.append(image, V.sum(axis=0)[..., None], axis=-1)

    return summed(of(block, X) for block, X in blocks)


def _span(blocks: list[Block]) -> slice:
    return slice(blocks[0][0].start, blocks[-1][0].stop)


def _by_class(rows: Rows, span: slice, values: Array, reduce: Any, absent: float) -> Array:
    """Reduce over each group; some classes may have no example here."""
    if not rows.balanced:
        return np.array([[reduce(values)]])
    found = np.full((rows.n_classes, *values.shape[1:]), absent)
    codes = rows.codes[span]
    for c in np.unique(codes):
        found[c] = reduce(values[codes == c], axis=0)
    return rows.table(found, absent)
