"""Second moments of a CSR matrix, compiled when first used."""

from __future__ import annotations

import numpy as np

from marginsvm._compiling import compiled
from marginsvm._typing import Array

_index = np.uint64  # unsigned: no test for an index that counts from the end


@compiled(error_model="numpy", _nrt=False)
def add_moments(indptr: Array, indices: Array, values: Array, weight: Array, out: Array) -> None:
    """Add to out, for each row x, what its sum with its transpose makes ``weight x x'``.

    Of each two entries of a row, one product is added, and half the square of each entry. The
    last row of out, which is of shape (d + 1, d + 1), gets ``weight x``. Indices are not checked,
    and one may occur several times in a row.
    """
    last = _index(len(out) - 1)
    for row in range(len(weight)):
        if weight[row] == 0.0:
            continue
        start = _index(indptr[row])
        for t in range(start, _index(indptr[row + 1])):
            i, term = _index(indices[t]), weight[row] * values[t]
            for s in range(start, t):
                out[i, _index(indices[s])] += term * values[s]
            out[i, i] += 0.5 * term * values[t]
            out[last, i] += term
