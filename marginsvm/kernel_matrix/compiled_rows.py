"""Products over some rows of a CSR matrix and some classes, compiled when first used.

Everything is in the units of the matrix, and no mean is subtracted. Sums are in float64, whatever
the values are in. Indices are not checked.

With several classes, vectors are arrays of shape (d, k), so that the k numbers that an entry of X
is multiplied with are contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._compiling import compiled, parts
from marginsvm._typing import Array

_index = np.uint64  # unsigned, so that no index is tested for counting from the end
# Sums may be taken in any order, so that terms are added in parallel; NaN and infinity are kept.
_REORDER = {"reassoc", "contract", "nsz"}
# Loops over one row are always inlined: a compiled copy of their own could round differently, and
# which of the two ran would depend on what is in the cache on disk.
# _nrt=False: no reference counts, as nothing here allocates.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": _REORDER, "_nrt": False}
inlined, loop = parts(forceinline=True, **_OPTIONS), compiled(**_OPTIONS)


@inlined
def dot(indices: Array, values: Array, start: int, stop: int, v: Array) -> float:
    """Inner product of a row, whose entries are at ``start : stop``, with a vector."""
    total = 0.0
    for t in range(_index(start), _index(stop)):
        total += v[_index(indices[t])] * values[t]
    return total


@inlined
def add_multiple(
    indices: Array, values: Array, start: int, stop: int, step: float, out: Array
) -> None:
    """Add a multiple of a row to a vector."""
    for t in range(_index(start), _index(stop)):
        out[_index(indices[t])] += step * values[t]


@inlined
def dot_of_class(indices: Array, values: Array, start: int, stop: int, V: Array, c: int) -> float:
    """Inner product of a row with one column of an array."""
    total, column = 0.0, _index(c)
    for t in range(_index(start), _index(stop)):
        total += V[_index(indices[t]), column] * values[t]
    return total


@inlined
def add_multiple_to_class(
    indices: Array, values: Array, start: int, stop: int, step: float, out: Array, c: int
) -> None:
    """Add a multiple of a row to one column of an array."""
    column = _index(c)
    for t in range(_index(start), _index(stop)):
        out[_index(indices[t]), column] += step * values[t]
