"""Block principal pivoting on a stack of small problems of two classes, all at once.

Each alpha is free or at a bound. The free ones solve a linear system, by the features if these are
fewer and the loss is the squared hinge, else by the rows; all infeasible variables change sides. If
none is infeasible, the solution is exact up to rounding. The exchanges may cycle: problems that
have not converged after some iterations are returned as unsolved.

References
----------
J. Judice, F. Pires. A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems. Computers & Operations Research, 1994.

S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large scale linear
SVMs. JMLR, 2005 (by the features: the full Newton step).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from marginsvm._typing import Array

LIFT = 1e-14  # added to the diagonal, relative to the mean square of the examples
ROUNDED = 1e-11  # of bounds, relative to the largest alpha, and of margins


@np.errstate(all="ignore")  # singular systems leave a problem unsolved
def pivoted(
    X: Array,
    y: Array,
    ridge: Array | None = None,
    upper: Array | None = None,
    *,
    intercept: bool = True,
    max_iter: int = 20,
) -> tuple[Array, Array, Array, Array]:
    """Solve a stack of problems with squared hinge loss, or with at least as many features as rows.

    Parameters
    ----------
    X : ndarray of shape (B, n, d) or (1, n, d)
    y : ndarray of shape (B, n)
        1 and -1.
    ridge, upper : ndarray of shape (B, n) or None
        Ridge of the squared hinge loss, upper bounds of the hinge loss; both None: hard margins,
        as least norms.
    intercept : bool
    max_iter : int

    Returns
    -------
    w, f, alpha : ndarray of shape (B, d), (B, 1) and (B, n)
    solved : ndarray of bool, shape (B,)
    """
    B, n = y.shape
    d = X.shape[-1]
    own = np.zeros((B, n)) if ridge is None else ridge
    cap = np.full((B, n), np.inf) if upper is None else upper
    by_features = ridge is not None and d < n
    if by_features:
        E = np.concatenate([X, np.full((*X.shape[:2], 1), float(intercept))], axis=2)
        R = np.append(np.ones(d), 0.0 if intercept else 1.0)
    else:
        K = X @ X.swapaxes(1, 2)
        size = np.einsum("bii->b", K)[:, None] / n
        if intercept:  # signed alpha sums to 0; K alone is nearly singular about a mean
            K += size[:, :, None]
        added = own + LIFT * size
        systems = np.empty((B, n, n))

    def features(live: Array, free: Array) -> tuple[Array, Array, Array]:
        """Signed alpha, values of the rows, and intercepts, by systems of the features."""
        A = E[live % len(E)] if len(E) > 1 else E
        y_live = y[live]
        weight = free / own[live]
        root = A * np.sqrt(weight)[..., None]
        H = root.swapaxes(1, 2) @ root
        np.einsum("bii->bi", H)[...] += R
        x = np.linalg.solve(H, A.swapaxes(1, 2) @ (weight * y_live)[..., None])
        values = (A @ x)[..., 0]
        return weight * (y_live - values), values, x[:, -1, 0] * intercept

    def rows(live: Array, free: Array, full: Array) -> tuple[Array, Array, Array]:
        """The same by systems of the rows; ``full``: those at their upper bounds."""
        G = K if len(live) == B or len(K) == 1 else K[live]
        M = systems[: len(live)]
        M[...] = G
        of, bound = np.nonzero(~free)
        M[of, bound] = 0.0
        M[of, :, bound] = 0.0
        np.einsum("bii->bi", M)[...] += np.where(free, added[live], 1.0)
        fixed = np.where(full, y[live] * cap[live], 0.0)
        both = np.empty((len(live), 2, n))  # for the targets, and for the intercept
        both[:, 0] = y[live]
        if full.any():
            both[:, 0] -= (G @ fixed[..., None])[..., 0]
        both[:, 1] = 1.0
        both *= free[:, None]
        for m, ends in zip(M, both, strict=True):
            _, _, failed = dposv(m.T, ends.T, lower=1, overwrite_a=1, overwrite_b=1)
            if failed:
                ends[:] = np.nan
        v = both[:, 0]
        ones = both[:, 1]
        b = np.zeros((len(live), 1))
        if intercept:
            b = (v + fixed).sum(axis=1, keepdims=True) / ones.sum(axis=1, keepdims=True)
        v = v - b * ones + fixed
        return v, (G @ v[..., None])[..., 0] + b, b[:, 0]

    v = np.zeros((B, n))  # signed alpha
    f = np.zeros((B, 1))
    solved = np.zeros(B, bool)
    # The state: problems that are not solved, and which of their alpha are free, and full.
    live = np.arange(B)
    free = np.ones((B, n), bool)
    full = np.zeros((B, n), bool)
    for _ in range(max_iter):
        try:
            found = features(live, free) if by_features else rows(live, free, full)
        except np.linalg.LinAlgError:
            break
        v[live], values, f[live, 0] = found
        alpha = y[live] * v[live]
        short = 1.0 - y[live] * values - own[live] * alpha
        slight = ROUNDED * np.abs(alpha).max(axis=1, keepdims=True)
        low = free & (alpha < -slight)
        high = free & (alpha > cap[live] + slight)
        enters = ~free & (np.where(full, -short, short) > ROUNDED)
        left = (low | high | enters).any(axis=1)
        solved[live] = ~left & np.isfinite(alpha).all(axis=1)
        if not left.any():
            break
        free = ((free & ~low & ~high) | enters)[left]
        full = ((full & ~enters) | high)[left]
        live = live[left]
    return (v[:, None] @ X)[:, 0], f, np.clip(y * v, 0.0, cap), solved
