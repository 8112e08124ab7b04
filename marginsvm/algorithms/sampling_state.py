"""The state of adaptive sampling, and what a draw does to it: scalars, and two score columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix import KernelMatrixAdapter

FOLD = 1e4  # largest cancellation in w = w_hat + s g_hat that is let stand (dimensionless)
C, S, MASS_W, MASS_G, COLUMNS = range(5)  # the scalars of a state, as draws change them
HALF = math.sqrt(0.5)  # factor of the scores of both classes of a row


@dataclass(frozen=True)
class SamplingState:
    """``g = c g_hat`` and ``w = w_hat + s g_hat``: scalars times accumulated rows.

    Arrays are class by class, (n_classes, n_examples), the examples in ``order``:
    ``w, g`` are the scores of w_hat and g_hat on the examples, ``q_w, q_g`` their
    coefficients on the rows.
    """

    t: int
    seed: int
    order: Array
    w: Array
    g: Array
    q_w: Array
    q_g: Array
    offsets: Array  # class offsets that balanced the last draw
    scalars: Array  # c, s, the masses of w and g, and the columns used so far

    def copy(self) -> SamplingState:
        """The same with arrays of its own."""
        arrays = ("w", "g", "q_w", "q_g", "offsets", "scalars")
        return replace(self, **{name: getattr(self, name).copy() for name in arrays})


def advance(scalars: Array, theta: float, beta: float) -> tuple[float, float]:
    """Set the scalars of g' = beta (g + a), w' = w + theta (g' + a).

    Returns the factors of a in w_hat and g_hat.
    """
    scalars[MASS_G] = beta * (scalars[MASS_G] + 1.0)
    scalars[MASS_W] += theta * (scalars[MASS_G] + 1.0)
    if beta == 0.0:
        return theta, 0.0
    # w' = w_hat + (theta - s/c) a + (s + theta c') (g_hat + a/c)
    x_w, x_g = theta - scalars[S] / scalars[C], 1.0 / scalars[C]
    scalars[C] *= beta
    scalars[S] += theta * scalars[C]
    return x_w, x_g


def fold(w: Array, g: Array, q_w: Array, q_g: Array, scalars: Array, ends: bool) -> None:
    """w_hat <- w, g_hat <- g, c <- 1, s <- 0: the same w and g, without the cancellation.

    Where g ends, as beta is 0, nothing of it survives.
    """
    c, s = scalars[C], scalars[S]
    if not ends and c * FOLD >= 1.0 and abs(s) <= FOLD * c:
        return
    for sums, last in ((w, g), (q_w, q_g)):
        sums += s * last
        last *= 0.0 if ends else c
    scalars[C], scalars[S] = 1.0, 0.0


def add_row(
    scores: Array, coef: Array, x: float, row: tuple[int, int, int], kappa: Array, slack: float
) -> None:
    """Add x a to scores, x to coef: a = (i, c -> j), its kernel column over R^2 is kappa."""
    if x == 0.0:
        return
    i, c, j = row
    change = (HALF * x) * kappa
    scores[c] += change
    scores[j] -= change
    coef[j, i] += x
    scores[j, i] -= 2.0 * HALF * x * slack  # the row's own coordinate, seen by this row alone


def uniforms(seed: int, t: int, end: int, n: int) -> Array:
    """N uniform numbers for each of the draws t, ..., end - 1: the same for every split of them."""
    generator = np.random.Generator(np.random.PCG64(seed).advance(t * n))
    return generator.random((end - t, n))


def slack_per_example(problem: KernelMatrixAdapter) -> Array:
    """``1 / (2 C R^2)`` of each example (radii squared), with its own cost C; 0: a hard margin."""
    n = problem.rows.n_examples
    return np.zeros(n) if problem.slack is None else problem.slack.reshape(n, -1)[:, 0]
