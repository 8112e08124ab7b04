"""What is left of a regression as its infinite coefficients go to their limits.

The finite coefficients tend to those of the regression on the conditions that are not separated,
with *all* columns, of which those that are no longer identified there are left out. Leaving out
the infinite columns instead is wrong: what is infinite for the whole may still vary in the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.certify.checker.coordinates import identified_columns
from marginsvm.separability.design import with_intercept
from marginsvm.separability.sparse_faces import identified_of_sparse


class Remainder(NamedTuple):
    """Examples and columns of the regression that has the finite coefficients.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_samples,)
        Examples that are not separated.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    rows: Array
    columns: Array


def remainder_of(X: Any, rows: Array, fit_intercept: bool) -> Remainder:
    """The rest of a regression with a coefficient for each column.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    rows : ndarray of bool, shape (n_samples,)
    fit_intercept : bool
    """
    if not rows.any():
        return Remainder(rows, np.zeros(0, int))
    rest = with_intercept(X[rows]) if fit_intercept else X[rows]
    found = (identified_of_sparse if sp.issparse(rest) else identified_columns)(rest)
    columns = found - int(fit_intercept)
    return Remainder(rows, columns[columns >= 0])
