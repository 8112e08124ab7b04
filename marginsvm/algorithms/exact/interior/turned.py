"""Examples in other coordinates, in which systems of features are small or keep their digits.

Norms and margins do not depend on coordinates. Of fewer examples than features, only as many
coordinates as there are examples are not 0. And where all examples are far from the origin, but
near to each other, sums of their squares have no digits left for the directions in which they
differ; with the first axis along an example, those have coordinates of their own.

The same coordinates tell columns apart that nearly are copies of each other, which their squares
cannot. Where steps have come to their end, they begin anew in them.

Examples that are known by their inner products alone have coordinates, too, and so have others of
which these are fewer numbers: those of Cholesky's factor, which are few where the rank is low.
Where they are not, systems of the rows are solved sooner, by the products themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from marginsvm._typing import Array
from marginsvm.certify.certifiable import written_out
from marginsvm.kernel_matrix import KernelMatrixAdapter, LinearAdapter, in_units
from marginsvm.kernel_matrix.capabilities import csr_examples
from marginsvm.problem.design import Design
from marginsvm.rows import OutputRows, Predictor, Vector

# Numbers in examples that are written out at most (64 MB).
NUMBERS_WRITTEN = 2**23
# Unknowns at most, as a share of the rows, for which a system in coordinates of low rank takes no
# longer than one of the rows.
_FEW = 0.5

# Makes a predictor of features of its image in these coordinates, with the coefficients of a proof.
Frame = Callable[[Array, Vector], Predictor]


class Turned(NamedTuple):
    """A problem in other coordinates: with the same rows, slack and caps.

    Attributes
    ----------
    problem : KernelMatrixAdapter
        It is the given one where nothing is turned.
    frame : callable
    products : ndarray of shape (n_examples, n_examples) or None
        Inner products of the examples, where systems of the rows are smaller; None: those of the
        coordinates are.
    """

    problem: KernelMatrixAdapter
    frame: Frame
    products: Array | None = None


def as_it_is(image: Array, proof: Vector) -> Predictor:
    """The frame of coordinates that are those of the problem."""
    return Predictor(image, proof.coef)


def turned(problem: KernelMatrixAdapter, in_axes: bool = False) -> Turned:
    """The problem in other coordinates, where that makes systems smaller or keeps their digits.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    in_axes : bool
        Whether it is turned in any case.
    """
    features, image, n = written_out(problem), problem.zeros().image, problem.rows.n_examples
    d = image.shape[-1]
    stays = n * d > NUMBERS_WRITTEN or (csr_examples(problem) is not None and not in_axes)
    if features is None or (stays and image.size > problem.n_rows):
        return _by_pivots(problem)
    if stays or (n >= d and not in_axes):
        return Turned(problem, as_it_is)
    X = features.written(np.arange(n))
    order = np.argsort(-np.abs(X).max(axis=0))  # reflections keep the digits of small features last
    Q, R = np.linalg.qr(X[:, order].T)
    axes = np.empty_like(Q)
    axes[order] = Q
    other = _of_points(problem, np.ascontiguousarray(R.T))
    return Turned(other, lambda image, proof: Predictor(image @ axes.T, proof.coef))


def _by_pivots(problem: KernelMatrixAdapter) -> Turned:
    """The problem in the coordinates of a pivoted factor of its inner products."""
    n = problem.rows.n_examples
    products = problem.inner_products(np.arange(n))
    L, order, rank, _ = dpstrf(products, lower=1)
    points, order = np.empty((n, max(rank, 1))), order - 1
    points[order] = np.tril(L)[:, : points.shape[1]]

    def combined(image: Array, proof: Vector) -> Predictor:
        if not rank or not isinstance(problem.rows, OutputRows):
            return proof
        coef, some = np.zeros_like(proof.coef), order[:rank]
        coef[some] = solve_triangular(points[some], image, lower=True, trans=1)
        return problem.combine(coef, precise=True)

    other = _of_points(problem, points)
    few = other.zeros().image.size <= _FEW * problem.n_rows
    return Turned(other, combined, None if few else products)


def _of_points(problem: KernelMatrixAdapter, points: Array) -> LinearAdapter:
    """The problem of these points, in units of the radius, with the same rows, slack and caps."""
    other = in_units(problem, Design.of(points), problem.rows, problem.lengths, 1.0)
    other.C, other.ridge = problem.C, problem.ridge
    return other if problem.caps is None else other.below(problem.caps)
