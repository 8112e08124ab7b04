"""The Gaussian kernel in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from marginsvm._rounding import Extended
from marginsvm._typing import Array

_AT_ONCE = 2**22  # numbers of pairs of examples that are computed at once


def extended_values(X: Any) -> int:
    """How many kernel values of such examples are computed in extended precision: a second."""
    return 2**24 // max(1, _terms(X))


def extended_gaussian(X: Any, i: Array, j: Array, gamma: float) -> Array:
    """The kernel values of the examples i with the examples j, in extended precision."""
    A, B = X[i].astype(Extended), X[j].astype(Extended)
    n, m = len(i), len(j)
    D, size = np.empty((n, m), Extended), max(1, _AT_ONCE // max(1, m * _terms(X)))
    for some in gen_batches(n, size):
        mine = np.arange(n)[some]
        differences = A[np.repeat(mine, m)] - B[np.tile(np.arange(m), len(mine))]
        squares = differences.multiply(differences) if sp.issparse(X) else np.square(differences)
        D[some] = np.asarray(squares.sum(axis=1)).reshape(-1, m)
    return np.asarray(np.exp(-Extended(gamma) * D))


def _terms(X: Any) -> int:
    """Numbers that an example has, at most."""
    return int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else int(X.shape[1])
