"""Dual coordinate ascent for many classes on sparse rows, an example at a time.

The rows of example i are ``x_i (e_y - e_j)``, y its own class and j any other, with weights
``u_ij >= 0``:

    max  sum u - |W|^2/2 - sum s_i u_ij^2 / 2,     W = sum u_ij x_i (e_y - e_j)

with, for the hinge loss, ``sum_j u_ij <= cap_i``; and, with an intercept,
``balance = sum u_ij (e_y - e_j) = 0``, by the method of multipliers: ``b`` moves with every step,
by ``penalty``, and once more with every epoch. Rows that are longer by a factor h have the same
solution with ``u h^2`` in place of u, ``W h`` in place of W and ``s / h^2`` in place of s.

The rows of one example all have the same products with each other, so that their best weights
given all others are a threshold away: no sweeps are needed. Most weights end as 0. All
classes are looked at in epochs 1, 2, 4, 8, 16, 24, ..., only those with a weight in between. On
text of 20 and of 100 classes, that took as many epochs as to look at all of them every time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.compiled.sparse_rows import shuffle
from marginsvm.kernel_matrix.compiled_rows import add_multiple_to_class, dot_of_class, inlined, loop

_index = np.uint64  # unsigned: no test for an index that counts from the end
# Epochs after which all classes are looked at once more. In epochs 2^i alone, counts of 20,000 x
# 2,000 in 8 classes went on for hundreds of epochs without a class that had to get weight.
_LOOK = 8
# Weight of the balance: shares of the mean slack and of the mean squared norm of an example. It
# adds to the curvature of every weight, which it should not dominate. With a large slack,
# whatever is small beside the slack brings the balance too slowly; with a small one, the rest of
# the problem is slow, and a stiff balance holds it up.
_OF_SLACK, _OF_SQUARES = 0.05, 0.004
# And share of all caps that moves an intercept by 1, the width of margins: with a small C nothing
# else would.
_OF_CAPS = 0.03


def balance_penalty(squares: Array, slack: Array, caps: Array) -> float:
    """Weight of the balance at which few epochs bring both the balance and the rest."""
    of_caps = 1.0 / (_OF_CAPS * float(caps.sum()))  # 0 without caps
    return _OF_SLACK * float(slack.mean()) + _OF_SQUARES * float(squares.mean()) + of_caps


class SparseClassWeights(NamedTuple):
    """Where the ascent is; arrays are updated in place.

    Attributes
    ----------
    u : ndarray of shape (n, k)
        Weights; 0 in the example's own class. In float32 they take half the memory: steps are
        those of the rounded weights, so that W stays their image.
    W : ndarray of float64, shape (d, k)
        Image of the weights.
    b : ndarray of float64, shape (k,)
        Intercepts.
    balance : ndarray of float64, shape (k,)
        How far the weights are off balance.
    order : ndarray of shape (n,)
        Examples in the order of the last epoch.
    seed : ndarray of uint64, shape (1,)
        State of the generator that shuffles them.
    epochs : int
        Epochs done.
    """

    u: Array
    W: Array
    b: Array
    balance: Array
    order: Array
    seed: Array
    epochs: int

    @classmethod
    def start(cls, n: int, d: int, k: int, dtype: type = np.float32) -> SparseClassWeights:
        """No weights."""
        u: Array = np.zeros((n, k), dtype)
        b, seed = np.zeros((2, k)), np.ones(1, np.uint64)
        return cls(u, np.zeros((d, k)), b[0], b[1], np.arange(n), seed, 0)


@inlined
def _add_scores(
    indices: Array, values: Array, start: int, stop: int, W: Array, scores: Array
) -> None:
    """Add the scores of an example for all classes."""
    for t in range(_index(start), _index(stop)):
        column, value = _index(indices[t]), values[t]
        for c in range(_index(len(scores))):
            scores[c] += value * W[column, c]


@inlined
def _all_classes(
    indices: Array, values: Array, start: int, stop: int, own: int, W: Array, b: Array,
    classes: Array, scores: Array,
) -> tuple[int, float]:  # fmt: skip
    """List all classes but the example's own, and their scores; give their number, and its."""
    for c in range(len(scores)):
        scores[c] = b[c]
    _add_scores(indices, values, start, stop, W, scores)
    score, m = scores[own], 0
    for c in range(len(scores)):
        if c != own:
            classes[m], scores[m] = c, scores[c]
            m += 1
    return m, score


@inlined
def _classes_with_weight(
    indices: Array, values: Array, start: int, stop: int, own: int, W: Array, b: Array,
    u: Array, i: int, classes: Array, scores: Array,
) -> tuple[int, float]:  # fmt: skip
    """The same for the classes in which example i has a weight."""
    m = 0
    for c in range(len(scores)):
        if u[i, c] > 0.0:
            classes[m] = c
            m += 1
    if m == 0:
        return 0, 0.0
    classes[m] = own
    for p in range(m + 1):
        c = classes[p]
        scores[p] = b[c] + dot_of_class(indices, values, start, stop, W, c)
    return m, scores[m]


@inlined
def _forces(
    u: Array, i: int, score: float, q: float, s: float, classes: Array, scores: Array, m: int
) -> None:
    """Turn scores into the forces on the weights if all of them were 0."""
    total = 0.0
    for p in range(m):
        total += u[i, classes[p]]
    for p in range(m):
        weight = np.float64(u[i, classes[p]])
        slope = 1.0 - (score - scores[p]) - s * weight
        scores[p] = slope + (q + s) * weight + q * total


@inlined
def _level(force: Array, q: float, s: float, cap: float, m: int) -> float:
    """What forces must exceed: weights are ``max(0, force - level) / (q + s)``.

    It is q times the sum of the best weights or, where these are worth more than the cap, the level
    at which they are worth that. Newton's method from below: both sums fall and are convex, so that
    no step overshoots, and the one that knows which weights are positive is exact.
    """
    level, capped = 0.0, False
    for _ in range(2 * (m + 1)):
        above, count = 0.0, 0
        for p in range(m):
            if force[p] > level:
                above += force[p]
                count += 1
        total = above / (q + s + count * q)
        capped = capped or total > cap
        new = (above - (q + s) * cap) / max(count, 1) if capped else q * total
        if new <= level:
            break
        level = new
    return level


@inlined
def _move(
    indices: Array, values: Array, start: int, stop: int, own: int, W: Array, b: Array,
    balance: Array, u: Array, i: int, penalty: float, q: float, s: float, cap: float,
    classes: Array, force: Array, m: int,
) -> None:  # fmt: skip
    """Give the best weights to an example, and their image to those classes that changed."""
    level, sum_of_steps = _level(force, q, s, cap, m), 0.0
    for p in range(m + 1):  # the last one is the example's own class
        c, step = own, -sum_of_steps
        if p < m:
            c = classes[p]
            old = np.float64(u[i, c])
            u[i, c] = max(0.0, (force[p] - level) / (q + s))
            step = u[i, c] - old
            sum_of_steps += step
        if step != 0.0:
            add_multiple_to_class(indices, values, start, stop, -step, W, c)
            balance[c] -= step
            b[c] -= penalty * step


@loop
def _ascend(
    indptr, indices, values, codes, squares, slack, caps, penalty,
    u, W, b, balance, order, seed, begin, end, classes, scores,
):  # fmt: skip
    """Epochs of ``ascend_classes``, from begin to end."""
    n, k = u.shape
    for epoch in range(begin, end):
        shuffle(order, n, seed)
        for i in order:
            start, stop, own = indptr[i], indptr[i + 1], codes[i]
            q, s = squares[i] + penalty, slack[i]
            if q + s <= 0.0:  # an example of zeros with a hard margin: nothing moves it
                continue
            if epoch % _LOOK == 0 or epoch & (epoch - 1) == 0:
                m, score = _all_classes(indices, values, start, stop, own, W, b, classes, scores)
            else:
                m, score = _classes_with_weight(
                    indices, values, start, stop, own, W, b, u, i, classes, scores
                )
            _forces(u, i, score, q, s, classes, scores, m)
            _move(
                indices, values, start, stop, own, W, b,
                balance, u, i, penalty, q, s, caps[i], classes, scores, m,
            )  # fmt: skip
        for c in range(k):
            b[c] += penalty * balance[c]


@loop
def _lead(indptr, indices, values, codes, u, W, balance, before, factor):
    """Move weights by a factor of what they have moved since before; none falls below 0."""
    n, k = u.shape
    for i in range(n):
        start, stop, total = indptr[i], indptr[i + 1], 0.0
        for c in range(k):
            old = np.float64(u[i, c])
            if old == before[i, c]:
                continue
            u[i, c] = max(0.0, old + factor * (old - before[i, c]))
            step = u[i, c] - old
            if step != 0.0:
                add_multiple_to_class(indices, values, start, stop, -step, W, c)
                balance[c] -= step
                total += step
        if total != 0.0:
            own = codes[i]
            add_multiple_to_class(indices, values, start, stop, total, W, own)
            balance[own] += total


def lead_classes(
    indptr: Array,
    indices: Array,
    values: Array,
    codes: Array,
    penalty: float,
    at: SparseClassWeights,
    before: SparseClassWeights,
    factor: float,
) -> None:
    """Go on in the direction in which epochs have moved weights and intercepts since before.

    Parameters are those of ``ascend_classes``; ``at`` is updated.
    """
    price = at.b - penalty * at.balance  # of the balance; the rest of b follows from the weights
    price += factor * (price - before.b + penalty * before.balance)
    _lead(indptr, indices, values, codes, at.u, at.W, at.balance, before.u, factor)
    at.b[:] = price + penalty * at.balance


def ascend_classes(
    indptr: Array,
    indices: Array,
    values: Array,
    codes: Array,
    squares: Array,
    slack: Array,
    caps: Array,
    penalty: float,
    at: SparseClassWeights,
    epochs: int,
) -> SparseClassWeights:
    """Some epochs of ascent, which go on from where others ended.

    Parameters
    ----------
    indptr, indices, values : ndarray
        The CSR matrix, of which no row is left out.
    codes : ndarray of int, shape (n,)
        Classes of the examples.
    squares : ndarray of shape (n,)
        Squared norms of the examples.
    slack : ndarray of shape (n,)
        Squares s of their rows' extra coordinates; a weight divides them. Zeros with caps.
    caps : ndarray of shape (n,)
        Largest sums of an example's weights; infinite with squared slack.
    penalty : float
        Weight of the balance, in the units of ``squares``; 0: there is no intercept.
    at : ClassWeights
        Is updated, and no longer to be used.
    epochs : int
    """
    k, end = len(at.b), at.epochs + epochs + 1
    _ascend(
        indptr, indices, values, codes, squares, slack, caps, penalty,
        *at[:6], at.epochs + 1, end, np.empty(k, np.int64), np.empty(k),
    )  # fmt: skip
    return at._replace(epochs=end - 1)
