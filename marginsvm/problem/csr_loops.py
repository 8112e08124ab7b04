"""Second moments of CSR examples, compiled; importing it imports numba."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from marginsvm._compiling import compiled
from marginsvm._typing import Array

index = np.uint64  # unsigned: numba needs no test for negative indices


def _by_products(
    data: Array, indices: Array, indptr: Array, weight: Array, H: Array
) -> None:
    X = sp.csr_array((data, indices, indptr), (len(weight), len(H)))
    H += sp.tril(X.T @ X.multiply(weight[:, None]).tocsr()).toarray()


@compiled(_by_products, error_model="numpy", fastmath={"nsz", "reassoc", "contract"})
def add_moments(
    data: Array, indices: Array, indptr: Array, weight: Array, H: Array
) -> None:
    """Add ``sum weight x x'`` to the lower triangle of H; entries are in the order of features."""
    for i in range(len(weight)):
        if weight[i] != 0.0:
            first = index(indptr[i])
            for t in range(first, index(indptr[i + 1])):
                row = H[index(indices[t])]
                x = weight[i] * data[t]
                for u in range(first, t + index(1)):
                    row[index(indices[u])] += x * data[u]
