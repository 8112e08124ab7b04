"""Whether weights prove that no predictor has all its scores in given intervals.

None has exactly if weights alpha solve ``X^T alpha = 0`` and have a positive gain: the sum of
``low alpha`` over positive and of ``high alpha`` over negative weights (Farkas' lemma). With these
weights, scores in the intervals sum to no less than the gain, but all scores sum to 0. With t for
the gain, that is a system of equations in ``|alpha|`` and t, all of them positive. It has the form
for which ``overlap.py`` decides whether exact weights exist near given ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginsvm.certify.exactly.overlap import integer_weights, nothing_separates


def nothing_fits(
    X: Any,
    low: NDArray,
    high: NDArray,
    alpha: NDArray,
    *,
    intercept: bool,
    signs: NDArray | None = None,
) -> bool:
    """Whether exact weights near alpha prove that no predictor fits.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
        Examples, or some of them: those with weight are enough.
    low, high : ndarray of shape (n,)
        Ends of the intervals; -inf and inf where there is none.
    alpha : ndarray of shape (n,)
        Weights of either sign.
    intercept : bool
        Whether predictors may have one.
    signs : ndarray of shape (d,), default=None
        Signs that their coefficients must have: -1, 0 for any, or 1. A sign is one more row: the
        value on ``s_j e_j`` is to be 0 at least, and its weight is what the combination lacks.

    Returns
    -------
    bool
        True is a proof. False says nothing.
    """
    found = _as_classes(X, low, high, alpha, intercept=intercept, signs=signs)
    if found is None:
        return False
    rows, weights = found
    return nothing_separates(rows, np.ones(len(weights), int), 2, weights, intercept=False)


def integers_that_prove_it(
    X: NDArray, low: NDArray, high: NDArray, alpha: NDArray, *, intercept: bool
) -> list[int] | None:
    """Integers that prove it, of the signs of weights none of which is 0; None: none were found."""
    found = _as_classes(X, low, high, alpha, intercept=intercept)
    if found is None:
        return None
    rows, weights = found
    codes = np.ones(len(weights), int)
    exact = integer_weights(rows, codes, 2, weights, intercept=False)
    if exact is None:
        return None
    size = dict(zip(exact[0][0].tolist(), exact[1], strict=True))
    return [int(sign) * size.get(i, 0) for i, sign in enumerate(np.sign(alpha))]


def _as_classes(
    X: Any,
    low: NDArray,
    high: NDArray,
    alpha: NDArray,
    *,
    intercept: bool,
    signs: NDArray | None = None,
) -> tuple[sp.csr_array, NDArray] | None:
    """Rows, and weights under which these nearly cancel; None: they have no gain.

    First those of the examples with weight, then those of the signs; the last is that of t.
    """
    few = np.flatnonzero(alpha)
    sign, q = np.sign(alpha[few]), np.abs(alpha[few])
    ends = np.where(sign > 0, low[few], -high[few])
    gain = float(ends @ q) if np.isfinite(ends).all() else 0.0
    if not 0.0 < gain < np.inf:
        return None
    unit = np.ldexp(1.0, int(np.frexp(gain / q.max())[1]))  # so that t is among the largest weights
    columns = [sp.diags_array(sign) @ sp.csr_array(X[few], dtype=np.float64), ends[:, None]]
    if intercept:
        columns.insert(1, sign[:, None])
    equations = sp.hstack(columns, format="csr")
    if signs is not None:
        of_signs, lacking = _rows_of_signs(equations, q, signs)
        equations, q = sp.vstack([equations, of_signs], format="csr"), np.append(q, lacking)
    gain_of_t = sp.csr_array(([-unit], ([0], [equations.shape[1] - 1])), (1, equations.shape[1]))
    return sp.vstack([equations, gain_of_t], format="csr"), np.append(q, gain / unit)


def _rows_of_signs(equations: sp.csr_array, q: NDArray, signs: NDArray) -> tuple[Any, NDArray]:
    """A row for each sign, in the units of the features, and what the combination lacks."""
    bound = np.flatnonzero(signs)
    size = abs(equations).max(axis=0).toarray().ravel()[bound]
    unit = np.exp2(np.frexp(size)[1])  # so that its weight is like theirs
    rows = (signs[bound] * unit, (np.arange(len(bound)), bound))
    lacking = np.maximum(-signs[bound] * (equations.T @ q)[bound] / unit, 0.0)
    return sp.csr_array(rows, shape=(len(bound), equations.shape[1])), lacking
