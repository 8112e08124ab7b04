"""Examples that are no rows of numbers, such as strings, for kernels that are functions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array


def as_objects(kernel: Any, X: Any) -> Array | None:
    """Examples for a callable kernel that are no rows of numbers, such as strings, as an array.

    None: the kernel is not callable, or the examples are rows of a matrix.
    """
    if not callable(kernel) or sp.issparse(X):
        return None
    given = np.asarray(X)
    return given.astype(object) if given.ndim == 1 and given.dtype.kind in "OUS" else None


def of_objects(kernel: Any, X: Array, i: Array, j: Array) -> Array:
    """Values of the kernel for objects that are given by their indices."""
    i, j = i[:, 0].astype(int), j[:, 0].astype(int)  # numbers reach kernels as floats
    return np.asarray(kernel(X[i], X[j]))


def first_equal(X: Array) -> Array:
    """Index of the first object that equals each one; what has no hash only equals itself."""
    first: dict[Any, int] = {}
    keys = (x if isinstance(x, Hashable) else id(x) for x in X)
    return np.array([first.setdefault(key, i) for i, key in enumerate(keys)])
