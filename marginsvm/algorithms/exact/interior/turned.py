"""Examples in other coordinates, in which systems of features are small or keep their digits.

Norms and margins do not depend on coordinates. Of fewer examples than features, only as many
coordinates as there are examples are not 0. And where all examples are far from the origin, but
near to each other, sums of their squares have no digits left for the directions in which they
differ; with the first axis along an example, those have coordinates of their own.

The same coordinates tell columns apart that nearly are copies of each other, which their squares
cannot. Where steps have come to their end, they begin anew in them.

Examples that are known by their inner products alone have coordinates, too: those of Cholesky's
factor, which are few where the rank is low. The factor of a singular matrix itself would be all
rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from marginsvm._typing import Array
from marginsvm.certify.certifiable import written_out
from marginsvm.data.passes import Centre
from marginsvm.kernel_matrix import KernelMatrixAdapter, LinearAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.rows import Predictor, Vector

# Numbers in examples that are written out at most (64 MB).
NUMBERS_WRITTEN = 2**23
# Coordinates of examples of a kernel, as a share of their number, at most: with half as many, a
# step takes no longer than with their inner products.
_PIVOTS = 0.5


# Makes a predictor of features of its image in these coordinates, with the coefficients of a proof;
# of a kernel, one that combines examples.
Frame = Callable[[Array, Vector], Predictor]


def as_it_is(image: Array, proof: Vector) -> Predictor:
    """The frame of coordinates that are those of the problem."""
    return Predictor(image, proof.coef)


def by_few_pivots(problem: KernelMatrixAdapter) -> tuple[KernelMatrixAdapter, Frame] | None:
    """The problem of a kernel in coordinates; None: they are not few, or they are known already."""
    if written_out(problem) is not None:
        return None
    n = problem.rows.n_examples
    K, order, rank, _ = dpstrf(problem.inner_products(np.arange(n)), lower=1)
    if not 0 < rank <= _PIVOTS * n:
        return None
    L, order = np.tril(K)[:, :rank], order - 1
    points = np.empty_like(L, order="C")
    points[order] = L

    def combined(image: Array, proof: Vector) -> Predictor:
        coef = np.zeros_like(proof.coef)
        coef[order[:rank]] = solve_triangular(L[:rank], image, lower=True, trans=1)
        return problem.combine(coef, precise=True)

    return _of_points(problem, points), combined


def turned(
    problem: KernelMatrixAdapter, in_axes: bool = False
) -> tuple[KernelMatrixAdapter, Frame] | None:
    """The problem in other coordinates, where that makes systems smaller or keeps their digits.

    It has the same rows, slack and caps; it is the given one where nothing is turned.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    in_axes : bool
        Whether it is turned in any case.

    Returns
    -------
    None: it has more unknowns than rows, or no features.
    """
    features = written_out(problem)
    if features is None:
        return None
    image, n = problem.zeros().image, problem.rows.n_examples
    d = image.shape[-1]
    if n * d > NUMBERS_WRITTEN or (csr_examples(problem) is not None and not in_axes):
        return None if image.size > problem.n_rows else (problem, as_it_is)
    if n >= d and not in_axes:
        return problem, as_it_is
    X = features.examples(np.arange(n))
    order = np.argsort(-np.abs(X).max(axis=0))  # reflections keep the digits of small features last
    Q, R = np.linalg.qr(X[:, order].T)
    axes = np.empty_like(Q)
    axes[order] = Q
    other = _of_points(problem, np.ascontiguousarray(R.T))
    return other, lambda image, proof: Predictor(image @ axes.T, proof.coef)


def _of_points(problem: KernelMatrixAdapter, points: Array) -> LinearAdapter:
    """The problem of these points, in units of the radius, with the same rows, slack and caps."""
    frame = problem.frame_of(np.arange(len(points))), Centre()
    other = LinearAdapter(points, problem.rows, frame=frame)
    return other if problem.caps is None else other.below(problem.caps)
