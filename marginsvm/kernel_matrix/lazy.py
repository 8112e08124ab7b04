"""Examples on other machines: vectors hold coefficients of best responses, not of rows.

The vectors of an algorithm that uses best responses only are combinations of these. A best response
is described by a few numbers: the predictor that it responds to, and the parameters from which the
weights of a block's rows are computed, given their margins. So nothing that grows with the number
of examples is sent during the rounds. Weights on the rows are computed only when a proof needs
them (they are *lazy*): a pass then computes those of all best responses, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.certifiable import LowestMargins
from marginsvm.certify.linear_errors import LazyErrors
from marginsvm.data import passes
from marginsvm.data.block import Centre
from marginsvm.data.passes import Located, span_of
from marginsvm.kernel_matrix.adapter import BestResponse
from marginsvm.kernel_matrix.linear import LinearAdapter
from marginsvm.kernel_matrix.mixture import (
    BestPlay,
    Mixture,
    group_sums_of,
    image_of,
    weights_of,
)
from marginsvm.kernel_matrix.responses import OnePassResponse, Response, softmax
from marginsvm.kernel_matrix.responses.balancing import balancing_factors
from marginsvm.rows import Predictor, Rows, Vector


class LazyWeightsAdapter(LinearAdapter):
    """A problem with lazy weights, for hard margins and examples on other machines.

    A coefficient of a vector is the mass of a best response in it. A response that needs all
    margins at once is computed as in ``LinearAdapter``, and its weights are kept in memory.

    Parameters
    ----------
    X, rows, C, norm, constant, plan
        As in LinearAdapter.
    capacity : int
        Largest number of best responses, which is the length of a vector's coefficients.
    """

    _error_model = LazyErrors

    def __init__(self, *common: Any, capacity: int, **options: Any) -> None:
        super().__init__(*common, **options)
        self._capacity = capacity
        self._played: dict[int, BestPlay] = {}
        self._given: dict[int, Array] = {}  # each sums to 1
        self._proof: tuple[bytes, Mixture, list[Array], Array] | None = None

    def zeros(self) -> Vector:
        return Vector(np.zeros(self._image_shape), np.zeros(self._capacity))

    def _remembered(self, kept: dict[int, Any], new: Any, mass: float) -> Array:
        """Keep a new best response or new weights; give the coefficients of its vector."""
        t = len(self._played) + len(self._given)
        if t == self._capacity:
            raise RuntimeError(f"there is room for {self._capacity} best responses only")
        kept[t] = new
        return mass * np.eye(1, self._capacity, t)[0]

    # Rounds.

    def respond(self, w: Predictor, mu: float = 1.0, response: Response = softmax) -> BestResponse:
        if not isinstance(response, OnePassResponse):
            return super().respond(w, mu, response)
        self.work.add_pass()
        W, shift = self._weights(w.image, precise=False)
        sums = self._fold(
            partial(
                _sums, W=W, shift=shift, response=response, mu=mu, images=self._rounds.reads_once
            ),
            response.merge,
        )
        whole = response.finish(self.rows, sums, mu)
        image, weights = whole.image, whole.weights
        played = BestPlay(response, W, shift, mu, whole.parameters, weights.mass)
        if image is None:
            alone = Mixture([played], np.ones(1), np.empty(0), self._no_factors)
            image = self._fold(partial(image_of, mixture=alone), np.add)[..., :-1]
        image = image.astype(np.float64, copy=False) / self.radius
        coef = self._remembered(self._played, played, weights.mass)
        return BestResponse(Vector(image, coef), weights)

    def _fold(self, work: Any, merge: Any, *local: Array) -> Any:
        return self._store.fold(work, merge, self.rows, *local)

    # Proofs: the weights themselves.

    def combine(self, q: Array, *, precise: bool = False) -> Vector:
        q = q.reshape(self.rows.shape)
        image, mass = self._adjoint(self.rows.adjoint(q), precise), float(q.sum())
        return Vector(image, self._remembered(self._given, q / mass, mass))

    @property
    def _no_factors(self) -> Array:
        return np.ones((self.rows.n_offsets, self.rows.n_offsets))

    def _mixture(self, w: Predictor) -> tuple[Mixture, list[Array]]:
        c = w.coef
        played = [t for t in self._played if c[t] != 0.0]
        given = [t for t in self._given if c[t] != 0.0]
        some = [self._played[t] for t in played]
        masses = np.array([best.mass for best in some])
        mixture = Mixture(some, c[played] / masses, c[given], self._no_factors)
        return mixture, [self._given[t] for t in given]

    def _realised(self, w: Predictor) -> tuple[Mixture, list[Array], Array]:
        """Weights of a vector, balanced again, and their ``V^T (X, 1)``: two passes."""
        key = w.coef.tobytes()
        if self._proof is None or self._proof[0] != key:
            mixture, given = self._mixture(w)
            table = self._fold(partial(group_sums_of, mixture=mixture), np.add, *given)
            factors = np.nan_to_num(balancing_factors(table))
            factors *= float(w.coef.sum()) / float(np.sum(factors * table))
            mixture = mixture._replace(factors=factors)
            self.work.add_pass(2)
            image = self._fold(partial(image_of, mixture=mixture), np.add, *given)
            self._proof = key, mixture, given, image
        return self._proof[1:]

    def weights(self, w: Predictor) -> Array:
        """Weights of a vector on the rows: a pass, and two more for a vector that is new."""
        mixture, given, _ = self._realised(w)
        self.work.add_pass()
        return np.concatenate(
            list(self._store.map(partial(weights_of, mixture=mixture), self.rows, *given))
        )

    def refresh(self, w: Vector) -> Vector:
        """Compute a vector again from its weights: two passes for a vector that is new."""
        image = self._realised(w)[2]
        image, rest = image[..., :-1], image[..., -1]
        if self._centre.mean is not None:
            image = image - np.multiply.outer(rest, self._centre.mean)
        return Vector(image / self.radius, w.coef)

    def distribution(self, vector: Vector) -> LazyDistribution:
        return LazyDistribution(self, vector)

    def sums_of_weights(self, vector: Vector) -> Array:
        """Coefficients of a vector on the examples, summed: 0 where weights are balanced."""
        return self._realised(vector)[2][..., -1]

    def lowest_margins(self, w: Predictor) -> LowestMargins:
        self.work.add_pass()
        W, shift = self._weights(w.image, precise=True)
        lows = partial(_lows, W=W, shift=shift, centre=self._centre)
        return LowestMargins(w, self._fold(lows, np.minimum), None)


@dataclass(frozen=True)
class LazyDistribution:
    """A distribution whose weights are computed by passes, when they are needed.

    See :class:`marginsvm.certify.certifiable.Distribution`. The weights are published without a
    correction of their last digits, after which they would not be those of best responses.
    """

    problem: LazyWeightsAdapter
    vector: Vector
    moved = 0.0
    mass = 1.0

    @property
    def image(self) -> Array:
        return self.vector.image / self.vector.mass

    def weights(self) -> Array:
        q = np.maximum(self.problem.weights(self.vector), 0.0)
        return q / q.sum()

    def imbalance(self) -> float:
        rest = self.problem.sums_of_weights(self.vector)
        return float(np.abs(rest).sum()) / self.vector.mass if self.problem.rows.balanced else 0.0


# What a pass computes of some blocks.


def _sums(
    rows: Rows,
    blocks: list[Located],
    W: Array,
    shift: Array | float,
    response: OnePassResponse,
    mu: float,
    images: bool,
) -> Any:
    """What a response sums up of the blocks; without images where those would be large."""

    def block_sums(rows: Rows, block: slice, X: Any, margins: Array) -> Any:
        return response.block_sums(rows, block, X if images else None, margins, mu)

    return passes.margins_and_sums(rows, blocks, None, W, shift, block_sums, response.merge)[1]


def _lows(
    rows: Rows, blocks: list[Located], W: Array, shift: Array | float, centre: Centre
) -> Array:
    """Smallest margin of each group."""
    span = span_of(blocks)
    M = rows.margins(passes.scores(rows, blocks, W, shift, centre, True, None), span)
    return rows.block_min(M, span)
