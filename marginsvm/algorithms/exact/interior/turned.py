"""Examples in other coordinates, in which systems of features are small or keep their digits.

Norms and margins do not depend on coordinates. Of fewer examples than features, only as many
coordinates as there are examples are not 0. And where all examples are far from the origin, but
near to each other, sums of their squares have no digits left for the directions in which they
differ; with the first axis along an example, those have coordinates of their own.
"""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.certifiable import written_out
from marginsvm.data.passes import Centre
from marginsvm.kernel_matrix import KernelMatrixAdapter, LinearAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples

# Numbers in examples that are written out at most (64 MB).
_WRITTEN = 2**23
# Distance of the mean from the origin, over that of the examples from the mean, from which on they
# are far: squares lose two digits.
_FAR = 10.0


def turned(problem: KernelMatrixAdapter) -> tuple[KernelMatrixAdapter, Array | None] | None:
    """The problem in other coordinates, and their axes.

    Returns
    -------
    None: it has more unknowns than rows, or no features.

    problem : KernelMatrixAdapter
        With the same rows, slack and caps.
    axes : ndarray of shape (n_features, n_coordinates) or None
        None: it is the given problem, of which nothing is turned.
    """
    features, n = written_out(problem), problem.rows.n_examples
    if features is None:
        return None
    image = problem.zeros().image
    d = image.shape[-1]
    if csr_examples(problem) is not None or n * d > _WRITTEN:
        return None if image.size > problem.n_rows else (problem, None)
    if n >= d and problem.rows.balanced:  # about the mean
        return problem, None
    X = features.examples(np.arange(n))
    mean = X.mean(axis=0)
    if n >= d and mean @ mean <= _FAR**2 * np.square(X - mean).sum(axis=1).mean():
        return problem, None
    order = np.argsort(-np.abs(X).max(axis=0))  # reflections keep the digits of small features last
    Q, R = np.linalg.qr(X[:, order].T)
    axes = np.empty_like(Q)
    axes[order] = Q
    frame = problem.frame_of(np.arange(n)), Centre()
    other = LinearAdapter(np.ascontiguousarray(R.T), problem.rows, frame=frame)
    return (other if problem.caps is None else other.below(problem.caps)), axes
