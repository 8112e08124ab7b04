"""Weights on rows as a mixture of best responses, each of which is described by a few numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from marginsvm._rounding import summed
from marginsvm._typing import Array
from marginsvm.data import passes
from marginsvm.data.block import Centre
from marginsvm.data.passes import Located, span_of
from marginsvm.kernel_matrix.responses import OnePassResponse
from marginsvm.rows import Rows

_AT_ONCE = 64  # best responses whose scores a block computes in one product


class BestPlay(NamedTuple):
    """What is kept of a best response, to compute its weights again.

    Attributes
    ----------
    response : OnePassResponse
    W : ndarray of shape (n_features,) or (k, n_features)
        The predictor, in units of x.
    shift : float or ndarray of shape (k,)
        Subtracted from every score.
    mu : float
    parameters : object
        What ``response.block_weights`` needs besides the margins.
    mass : float
        Sum of the weights.
    """

    response: OnePassResponse
    W: Array
    shift: Array | float
    mu: float
    parameters: Any
    mass: float

    def weights(self, rows: Rows, block: slice, scores: Array) -> Array:
        """Weights of the rows of a block, from ``X W^T``."""
        scores = scores.reshape(len(scores), *rows.score_shape[1:])
        M = rows.margins(scores - self.shift, block).astype(np.float64, copy=False)
        return self.response.block_weights(rows, block, M, self.mu, self.parameters)


class Mixture(NamedTuple):
    """``sum_t c_t q_t`` over best responses, and over weights on rows that were given outright.

    Attributes
    ----------
    played : list of BestPlay
    c : ndarray of shape (n_played,)
    given : ndarray of shape (n_given,)
        Coefficients of weights that travel with their rows.
    factors : ndarray of shape (k, k)
        Of the groups: they take the rounding out of the balance.
    """

    played: list[BestPlay]
    c: Array
    given: Array
    factors: Array

    def weights(self, rows: Rows, block: slice, X: Any, given: tuple[Array, ...]) -> Array:
        """Weights of the rows of a block."""
        q = np.zeros((X.shape[0], *rows.shape[1:]))
        for i in range(0, len(self.played), _AT_ONCE):
            some = self.played[i : i + _AT_ONCE]
            W = np.concatenate([np.atleast_2d(played.W) for played in some])
            F = (X @ W.T).reshape(len(q), len(some), -1)
            for t, (played, c) in enumerate(zip(some, self.c[i : i + _AT_ONCE], strict=True)):
                q += c * played.weights(rows, block, F[:, t])
        for c, weights in zip(self.given, given, strict=True):
            q += c * weights[block]
        return q * rows.expand(self.factors, block)


# What a pass computes of some blocks.


def weights_of(rows: Rows, blocks: list[Located], *given: Array, mixture: Mixture) -> Array:
    """Weights of the rows of some blocks."""
    return np.concatenate([mixture.weights(rows, block, X, given) for block, X in blocks])


def group_sums_of(rows: Rows, blocks: list[Located], *given: Array, mixture: Mixture) -> Array:
    """Sums of these weights over each group."""
    q = weights_of(rows, blocks, *given, mixture=mixture)
    return rows.block_sum(q, span_of(blocks))


def image_of(rows: Rows, blocks: list[Located], *given: Array, mixture: Mixture) -> Array:
    """``V^T (X, 1)`` of some blocks, V being the weights as coefficients; in float64."""

    def of(block: slice, X: Any) -> Array:
        V = rows.adjoint(mixture.weights(rows, block, X, given), block)
        image = passes.weighted_sum(rows, [(slice(None), X)], V, np.float64, Centre())
        return np.append(image, V.sum(axis=0)[..., None], axis=-1)

    return summed(of(block, X) for block, X in blocks)
